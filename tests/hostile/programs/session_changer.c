/* session_changer: three generations, each in a session or group of its own; the second adopts orphans as a subreaper. */
#include "hostile.h"

int main(int argc, char **argv)
{
    begin(argc, argv);
    on(SIGTERM, note_term);
    if (spawn() != 0) {
        arrive();
        stay();
    }
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (spawn() == 0) {
        if (spawn() != 0) { /* its child is left to the subreaper */
            _exit(0);
        }
        if (spawn() == 0) {
            setpgid(0, 0);
            arrive();
            stay();
        }
        setsid();
        arrive();
        stay();
    }
    arrive();
    stay();
}
