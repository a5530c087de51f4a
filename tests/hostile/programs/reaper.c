/* reaper PROGRAM ARGUMENT...: not hostile: starts one that is, adopts and reaps all below it as a keeper would, and ends. */
#include "hostile.h"

int main(int argc, char **argv)
{
    if (argc < 2)
        return 91;
    alarm(LONGEST_S + 10);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t child = fork();
    if (child < 0)
        return 99;
    if (child == 0) {
        execv(argv[1], argv + 1);
        _exit(99);
    }
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    return 0;
}
