/* nameless [argv|env]: wipes its command line, or runs with an empty environment, under the name of a kernel thread. */
#include "hostile.h"

int main(int argc, char **argv)
{
    char *nothing[] = {NULL};
    int wipes = argc > 3 && strcmp(argv[3], "argv") == 0;
    if (!wipes && environ[0] != NULL) {
        execve(argv[0], argv, nothing);
        return 99;
    }
    begin(argc, argv);
    if (wipes) { /* the environment still has the marker */
        for (int each = argc - 1; each >= 0; each--)
            memset(argv[each], 0, strlen(argv[each]));
    }
    prctl(PR_SET_NAME, "kworker/0:0");
    prctl(PR_SET_DUMPABLE, 0);
    on(SIGTERM, note_term);
    setsid();
    arrive();
    stay();
}
