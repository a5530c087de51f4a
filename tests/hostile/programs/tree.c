/* tree SPEC...: starts one child for each SPEC, a program beside its own and options divided by commas; TERM ends it. */
#include "hostile.h"

static char directory[PATH_MAX];

static void become(char **argv, char *spec)
{
    char path[PATH_MAX + 64], *args[16] = {path, argv[1], argv[2]};
    int count = 3;
    char *program = strsep(&spec, ",");
    while (spec && count < 15)
        args[count++] = strsep(&spec, ",");
    snprintf(path, sizeof path, "%s/%s", directory, program);
    execv(path, args);
    note("NOEXEC");
    _exit(99);
}

static void leave(int number)
{
    note_term(number);
    _exit(0);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    snprintf(directory, sizeof directory, "%s", argv[0]);
    *strrchr(directory, '/') = 0;
    on(SIGTERM, leave);
    for (int each = 3; each < argc; each++)
        if (spawn() == 0)
            become(argv, argv[each]);
    arrive();
    stay();
}
