/* sibling: clones with CLONE_PARENT, so that its child is its parent's child, in a session of its own. */
#include "hostile.h"

int main(int argc, char **argv)
{
    begin(argc, argv);
    on(SIGTERM, note_term);
    long child = syscall(SYS_clone, CLONE_PARENT, 0L, 0L, 0L, 0L); /* the exit signal is the parent's */
    if (child < 0)
        return 99;
    if (child == 0) {
        fuse();
        setsid();
    }
    arrive();
    stay();
}
