/* traced: a tracer that holds every signal back from its child, which therefore can neither be stopped nor ended politely. */
#include "hostile.h"
#include <sys/ptrace.h>

int main(int argc, char **argv)
{
    int ready[2];
    char byte;
    begin(argc, argv);
    on(SIGTERM, SIG_IGN);
    if (pipe(ready) != 0)
        return 99;
    pid_t child = spawn();
    if (child == 0) {
        on(SIGTERM, note_term);
        close(ready[1]);
        if (read(ready[0], &byte, 1) == 1)
            arrive();
        stay();
    }
    if (ptrace(PTRACE_SEIZE, child, 0L, 0L) != 0 || write(ready[1], "1", 1) != 1)
        return 99;
    arrive();
    stay(); /* whatever the child stops for, it is never told to go on */
}
