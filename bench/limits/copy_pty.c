/* The limit of S3b: a command on a pty, read and written to a file as it comes; CR LF is left as it is. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

extern char **environ;

int main(int argc, char **argv) {
    static char buffer[1 << 16];
    if (argc < 3) {
        fprintf(stderr, "usage: copy_pty FILE COMMAND...\n");
        return 2;
    }
    int64_t began = now_ns();
    int file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char slave[64];
    if (file < 0 || master < 0 || grantpt(master) || unlockpt(master) || ptsname_r(master, slave, sizeof slave))
        fail("open");
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, slave, O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    pid_t child;
    if ((errno = posix_spawnp(&child, argv[2], &actions, &attributes, argv + 2, environ)))
        fail(argv[2]);
    uint64_t bytes = 0;
    for (;;) {
        ssize_t got = read(master, buffer, sizeof buffer), done = 0;
        if (got < 0 && errno != EIO)
            fail("read");
        if (got <= 0) /* EIO: the last holder of the slave has closed it */
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
