/* The limit of S2: N times `bash -c 'echo hi'` on a pipe, its output into a file, its end known. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

extern char **environ;

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: spawn FILE COUNT\n");
        return 2;
    }
    char *command[] = {"bash", "-c", "echo hi", NULL};
    int count = atoi(argv[2]);
    for (int i = 0; i < count; i++) {
        char buffer[4096];
        int64_t began = now_ns();
        int ends[2], file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (file < 0 || pipe2(ends, O_CLOEXEC) < 0)
            fail("open");
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        pid_t child;
        if ((errno = posix_spawnp(&child, command[0], &actions, NULL, command, environ)))
            fail("bash");
        close(ends[1]);
        ssize_t got, bytes = 0;
        while ((got = read(ends[0], buffer, sizeof buffer)) > 0) {
            if (write(file, buffer, (size_t)got) != got)
                fail("write");
            bytes += got;
        }
        int status;
        waitpid(child, &status, 0);
        close(ends[0]);
        close(file);
        int64_t took = now_ns() - began;
        posix_spawn_file_actions_destroy(&actions);
        if (bytes != 3 || status)
            return 1;
        printf("%lld\n", (long long)took);
    }
    return 0;
}
