/* jailed: a parent, and the first process of a pid namespace with an orphan of its own inside; all ignore TERM. */
#include "hostile.h"

int main(int argc, char **argv)
{
    begin(argc, argv);
    on(SIGTERM, SIG_IGN);
    if (unshare(CLONE_NEWPID) != 0)
        return 99;
    pid_t first = spawn();
    int handle = first > 0 ? (int)syscall(SYS_pidfd_open, first, 0) : -1;
    if (first == 0) {
        if (spawn() == 0) {
            if (spawn() != 0)
                _exit(0);
            setsid();
            arrive();
            stay();
        }
        arrive();
        sleep_until_fuse(0); /* the kernel keeps the first of a namespace from its own timer's SIGKILL */
        _exit(0);
    }
    if (handle < 0)
        return 99;
    arrive();
    sleep_until_fuse(1); /* should it be stopped */
    syscall(SYS_pidfd_send_signal, handle, SIGKILL, NULL, 0);
    stay();
}
