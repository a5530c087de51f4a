/* escaper PROCS_FILE: moves itself into another cgroup by writing to its cgroup.procs, with a child that stays behind. */
#include "hostile.h"

int main(int argc, char **argv)
{
    begin(argc, argv);
    on(SIGTERM, note_term);
    if (spawn() == 0) {
        arrive();
        stay();
    }
    int procs = argc > 3 ? open(argv[3], O_WRONLY) : -1;
    if (procs < 0 || write(procs, "0", 1) != 1)
        return 99;
    close(procs);
    arrive();
    stay();
}
