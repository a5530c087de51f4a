/* stopped: stops itself, and stops itself again whenever it is continued; notes the TERM and the CONT that reach it. */
#include "hostile.h"

int main(int argc, char **argv)
{
    begin(argc, argv);
    on(SIGTERM, note_term);
    arrive();
    for (;;) {
        raise(SIGSTOP);
        note("CONT");
    }
}
