/* What every hostile program begins with: its marker, its lifeline, its fuse, and how it says that it is in place. */
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAYBE __attribute__((unused))
#define LONGEST_S 60

/* argv[1] is a directory whose name is the test's marker, argv[2] the second of CLOCK_MONOTONIC at which all is over.
 * `line` in the directory is a FIFO that each process holds open for writing: its reader sees the end of file exactly
 * when no process is left, whatever became of their names, sessions and parents. Without the file nothing forks on. */
static const char *home;
static long fuse_at_s;
static const char *own_name;
static char line_path[PATH_MAX];
static int log_fd = -1;

/* A timer that sends SIGKILL: an alarm would wait in a process that is stopped, and could be ignored. */
static MAYBE void fuse(void)
{
    struct sigevent event;
    struct itimerspec when;
    timer_t timer;
    memset(&event, 0, sizeof event);
    memset(&when, 0, sizeof when);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    when.it_value.tv_sec = fuse_at_s;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, TIMER_ABSTIME, &when, NULL) != 0)
        _exit(90);
}

/* A timer does not pass a fork: every child gets one before it does anything else. */
static MAYBE pid_t try_spawn(void)
{
    pid_t child = fork();
    if (child == 0)
        fuse();
    return child;
}

/* No program goes on with a pid that is none: a signal to -1 would be one to everybody. None calls kill(2) at all. */
static MAYBE pid_t spawn(void)
{
    pid_t child = try_spawn();
    if (child < 0)
        _exit(89);
    return child;
}

/* One line, "WHAT PROGRAM PID", in one write; may be called from a signal handler. */
static MAYBE void say(int fd, const char *what)
{
    char text[160], digits[16];
    int length = 0, count = 0;
    unsigned long pid = (unsigned long)getpid();
    for (const char *from = what; *from && length < 60; from++)
        text[length++] = *from;
    text[length++] = ' ';
    for (const char *from = own_name; *from && length < 120; from++)
        text[length++] = *from;
    text[length++] = ' ';
    do
        digits[count++] = (char)('0' + pid % 10);
    while ((pid /= 10) != 0);
    while (count > 0)
        text[length++] = digits[--count];
    text[length++] = '\n';
    if (write(fd, text, (size_t)length) < 0)
        return;
}

static MAYBE void note(const char *what) { say(log_fd, what); }

/* In place: said on stdout, where the test waits for it, and in the log. */
static MAYBE void arrive(void)
{
    note("HERE");
    say(STDOUT_FILENO, "HERE");
}

static MAYBE int is_over(void) { return access(line_path, F_OK) != 0; }

static MAYBE void on(int number, void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, NULL);
}

static MAYBE void note_term(int number)
{
    (void)number;
    int saved = errno;
    note("TERM");
    errno = saved;
}

static MAYBE _Noreturn void stay(void)
{
    for (;;)
        pause();
}

/* For a process that no signal of its own may end: sleeps until so long before the fuse. */
static MAYBE void sleep_until_fuse(int less_s)
{
    struct timespec end = {fuse_at_s - less_s, 0};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
        ;
}

static MAYBE void nap_us(long us)
{
    struct timespec length = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&length, NULL);
}

/* The second fuse, of number: a pids cgroup of the marker's own, where the test could make one. */
static MAYBE void be_bounded(void)
{
    char path[PATH_MAX], procs[PATH_MAX], line[PATH_MAX];
    int inside = 0;
    snprintf(path, sizeof path, "%s/bound", home);
    FILE *bound = fopen(path, "r");
    if (!bound)
        return;
    if (!fgets(procs, sizeof procs, bound))
        exit(95);
    fclose(bound);
    FILE *own = fopen("/proc/self/cgroup", "r");
    while (own && fgets(line, sizeof line, own))
        inside |= strstr(line, strrchr(home, '/')) != NULL;
    if (own)
        fclose(own);
    int joined = inside ? -1 : open(procs, O_WRONLY);
    if (!inside && (joined < 0 || write(joined, "0", 1) != 1) && geteuid() == 0)
        exit(95); /* rather not at all than without a bound */
    if (joined >= 0)
        close(joined);
}

static MAYBE void begin(int argc, char **argv)
{
    struct timespec now;
    char log_path[PATH_MAX];
    if (argc < 3)
        exit(91);
    own_name = strrchr(argv[0], '/') ? strdup(strrchr(argv[0], '/') + 1) : strdup(argv[0]);
    home = strdup(argv[1]);
    fuse_at_s = atol(argv[2]);
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (fuse_at_s <= 0 || fuse_at_s > now.tv_sec + LONGEST_S + 1)
        exit(92);
    fuse();
    snprintf(line_path, sizeof line_path, "%s/line", home);
    snprintf(log_path, sizeof log_path, "%s/log", home);
    if (open(line_path, O_WRONLY | O_NONBLOCK) < 0)
        exit(93); /* no test is there to see to it */
    log_fd = open(log_path, O_WRONLY | O_APPEND);
    if (log_fd < 0)
        exit(94);
    if (strcmp(own_name, "forkbomb") != 0) /* it looks for a bound of its own */
        be_bounded();
}
