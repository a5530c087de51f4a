/* The limit of S1: `true` typed N times into an open bash on a pty, its exit code read from the prompt. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "clock.h"

extern char **environ;

/* Reads up to the marker BEL CODE BEL that the prompt prints; returns CODE, or -1 at the end. */
static int read_prompt(int master) {
    char seen[1 << 16];
    size_t held = 0;
    for (;;) {
        ssize_t got = read(master, seen + held, sizeof seen - 1 - held);
        if (got <= 0)
            return -1;
        held += (size_t)got;
        seen[held] = 0;
        char *first = memchr(seen, 7, held);
        if (first && strchr(first + 1, 7))
            return atoi(first + 1);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: shell_pty COUNT\n");
        return 2;
    }
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char slave[64];
    struct termios terminal;
    if (master < 0 || grantpt(master) || unlockpt(master) || ptsname_r(master, slave, sizeof slave))
        fail("pty");
    tcgetattr(master, &terminal);
    terminal.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(master, TCSANOW, &terminal);
    setenv("PS1", "\a$?\a", 1);
    setenv("HISTFILE", "", 1);
    unsetenv("PROMPT_COMMAND");
    char *command[] = {"bash", "--norc", "--noprofile", "--noediting", "-i", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, slave, O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    pid_t child;
    if ((errno = posix_spawnp(&child, command[0], &actions, &attributes, command, environ)))
        fail("bash");
    int failed = read_prompt(master) != 0;
    for (int i = 0, count = atoi(argv[1]); i < count && !failed; i++) {
        /* Between two of them another code, untimed: a prompt read one too early would show. */
        if (write(master, "false\n", 6) != 6)
            fail("write");
        failed = read_prompt(master) != 1;
        int64_t began = now_ns();
        if (write(master, "true\n", 5) != 5)
            fail("write");
        failed |= read_prompt(master) != 0;
        printf("%lld\n", (long long)(now_ns() - began));
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return failed;
}
