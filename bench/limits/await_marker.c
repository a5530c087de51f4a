/* The limit of S4: a command on a pipe or a pty, what it says into a file, and from each marker's write to its being seen. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

extern char **environ;

int main(int argc, char **argv) {
    static char buffer[(1 << 18) + 64];
    if (argc < 6) {
        fprintf(stderr, "usage: await_marker pipe|pty FILE COUNT FIFO COMMAND...\n");
        return 2;
    }
    int is_pty = !strcmp(argv[1], "pty"), count = atoi(argv[3]), ends[2], from;
    int file = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    if (is_pty) {
        char slave[64];
        from = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (from < 0 || grantpt(from) || unlockpt(from) || ptsname_r(from, slave, sizeof slave))
            fail("pty");
        posix_spawn_file_actions_addopen(&actions, 0, slave, O_RDWR, 0);
        posix_spawn_file_actions_adddup2(&actions, 0, 1);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    } else {
        if (pipe2(ends, O_CLOEXEC) < 0)
            fail("pipe");
        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        from = ends[0];
    }
    pid_t child;
    if (file < 0 || (errno = posix_spawnp(&child, argv[5], &actions, &attributes, argv + 5, environ)))
        fail(argv[5]);
    if (!is_pty)
        close(ends[1]);
    int fifo = -1, seen = 0;
    size_t kept = 0; /* the end of what was read before: a marker may be cut in two */
    while (seen < count) {
        ssize_t got = read(from, buffer + kept, sizeof buffer - 1 - kept);
        if (got <= 0)
            fail("read");
        if (write(file, buffer + kept, (size_t)got) != got)
            fail("write");
        size_t size = kept + (size_t)got;
        buffer[size] = 0;
        const char *mark = fifo < 0 ? memmem(buffer, size, "ready", 5) : memmem(buffer, size, "@@", 2);
        if (mark && (fifo < 0 || memmem(mark + 2, size - (size_t)(mark + 2 - buffer), "@@", 2))) {
            int64_t now = now_ns();
            if (fifo < 0)
                fifo = open(argv[4], O_WRONLY | O_CLOEXEC);
            else
                printf("%lld\n", (long long)(now - strtoll(mark + 2, NULL, 10))), seen++;
            if (fifo < 0 || (seen < count && write(fifo, "x", 1) != 1))
                fail("fifo");
            kept = 0;
        } else {
            kept = size < 48 ? size : 48;
            memmove(buffer, buffer + size - kept, kept);
        }
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
