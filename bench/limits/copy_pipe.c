/* The limit of S3a: a command on a pipe of 1 MiB, read and written to a file, nothing else. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

extern char **environ;

enum { PIPE = 1 << 20, BUFFER = 1 << 18 };

int main(int argc, char **argv) {
    static char buffer[BUFFER];
    if (argc < 3) {
        fprintf(stderr, "usage: copy_pipe FILE COMMAND...\n");
        return 2;
    }
    int64_t began = now_ns();
    int ends[2], file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || pipe2(ends, O_CLOEXEC) < 0)
        fail("open");
    fcntl(ends[1], F_SETPIPE_SZ, PIPE);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    pid_t child;
    if ((errno = posix_spawnp(&child, argv[2], &actions, NULL, argv + 2, environ)))
        fail(argv[2]);
    close(ends[1]);
    uint64_t bytes = 0;
    for (;;) {
        ssize_t got = read(ends[0], buffer, BUFFER), done = 0;
        if (got < 0)
            fail("read");
        if (got == 0)
            break;
        while (done < got) {
            ssize_t wrote = write(file, buffer + done, (size_t)(got - done));
            if (wrote < 0)
                fail("write");
            done += wrote;
        }
        bytes += (uint64_t)got;
    }
    int status;
    waitpid(child, &status, 0);
    double seconds = (double)(now_ns() - began) / 1e9;
    printf("{\"bytes\": %llu, \"seconds\": %.6f, \"cpu_s\": %.6f, \"status\": %d}\n", (unsigned long long)bytes, seconds,
           own_cpu_s(), status);
    return 0;
}
