/* The limit of S6: COUNT commands at once, each on a pipe into a file of its own in DIR, until all have ended. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

extern char **environ;

enum { MOST = 1024, PIECE = 1 << 16 };

int main(int argc, char **argv) {
    static char buffer[PIECE];
    static int from[MOST], to[MOST];
    if (argc < 4 || atoi(argv[2]) > MOST) {
        fprintf(stderr, "usage: crowd DIR COUNT COMMAND...\n");
        return 2;
    }
    int64_t began = now_ns();
    int count = atoi(argv[2]), watcher = epoll_create1(EPOLL_CLOEXEC), open_ends = 0, failed = 0, status;
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) {
        char name[4096];
        int ends[2];
        pid_t child;
        snprintf(name, sizeof name, "%s/%d", argv[1], i);
        if (pipe2(ends, O_CLOEXEC) < 0 || (to[i] = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0)
            fail(name);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        if ((errno = posix_spawnp(&child, argv[3], &actions, NULL, argv + 3, environ)))
            fail(argv[3]);
        posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        from[i] = ends[0];
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        if (epoll_ctl(watcher, EPOLL_CTL_ADD, ends[0], &event) < 0)
            fail("epoll");
        open_ends++;
    }
    while (open_ends) {
        struct epoll_event events[64];
        int ready = epoll_wait(watcher, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            uint32_t which = events[i].data.u32;
            ssize_t got = read(from[which], buffer, sizeof buffer);
            if (got < 0 || (got > 0 && write(to[which], buffer, (size_t)got) != got))
                fail("copy");
            bytes += (uint64_t)got;
            if (!got) {
                /* a command that was started after it may hold the pipe for a moment yet */
                epoll_ctl(watcher, EPOLL_CTL_DEL, from[which], NULL);
                close(from[which]), close(to[which]), open_ends--;
            }
        }
    }
    for (int i = 0; i < count; i++)
        if (wait(&status) < 0 || status)
            failed++;
    double seconds = (double)(now_ns() - began) / 1e9;
    printf("{\"bytes\": %llu, \"seconds\": %.6f, \"cpu_s\": %.6f, \"failed\": %d}\n", (unsigned long long)bytes, seconds,
           own_cpu_s(), failed);
    return 0;
}
