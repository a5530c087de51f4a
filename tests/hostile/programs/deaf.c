/* deaf: ignores TERM, INT, HUP and QUIT. */
#include "hostile.h"

int main(int argc, char **argv)
{
    begin(argc, argv);
    on(SIGTERM, SIG_IGN);
    on(SIGINT, SIG_IGN);
    on(SIGHUP, SIG_IGN);
    on(SIGQUIT, SIG_IGN);
    arrive();
    stay();
}
