/* vforker: a parent that waits in vfork for ever, where no stop and no polite signal reaches it, and its child. */
#include "hostile.h"

int main(int argc, char **argv)
{
    begin(argc, argv);
    on(SIGTERM, SIG_IGN);
    if (vfork() == 0) {
        fuse();
        arrive();
        stay();
    }
    return 0;
}
