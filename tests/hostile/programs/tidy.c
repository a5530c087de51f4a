/* tidy MS: upon TERM takes MS milliseconds to clean up, notes that it has, and exits 0. */
#include "hostile.h"

static volatile sig_atomic_t asked;

static void ask(int number)
{
    note_term(number);
    asked = 1;
}

int main(int argc, char **argv)
{
    sigset_t held, free_set;
    begin(argc, argv);
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    sigprocmask(SIG_BLOCK, &held, &free_set);
    on(SIGTERM, ask);
    arrive();
    while (!asked)
        sigsuspend(&free_set);
    nap_us(argc > 3 ? atol(argv[3]) * 1000 : 0);
    note("TIDY");
    return 0;
}
