/* daemon [keep|close]: a double fork with setsid; keeps the three streams open, or closes them; its main process exits 0. */
#include "hostile.h"

int main(int argc, char **argv)
{
    begin(argc, argv);
    int closes = argc > 3 && strcmp(argv[3], "close") == 0;
    if (spawn() != 0) {
        wait(NULL);
        return 0;
    }
    setsid();
    if (spawn() != 0)
        _exit(0);
    on(SIGTERM, note_term); /* and goes on */
    if (chdir("/") != 0)
        _exit(95);
    arrive();
    if (closes)
        for (int fd = 0; fd < 3; fd++)
            close(fd);
    stay();
}
