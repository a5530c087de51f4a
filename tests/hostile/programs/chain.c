/* chain [group|session] [pause_us]: forks its successor and exits, forever; with `session` each one makes its own. */
#include "hostile.h"

int main(int argc, char **argv)
{
    begin(argc, argv);
    int own_session = argc > 3 && strcmp(argv[3], "session") == 0;
    long pause_us = argc > 4 ? atol(argv[4]) : 0;
    on(SIGTERM, SIG_IGN);
    for (long hop = 0;; hop++) {
        pid_t child = try_spawn();
        if (child > 0)
            _exit(0);
        if (child < 0)
            nap_us(1000); /* no room for one more: try again */
        if (own_session)
            setsid();
        if (hop == 20)
            arrive();
        if (is_over())
            _exit(0);
        if (pause_us > 0)
            nap_us(pause_us);
    }
}
