/* forkbomb PIDS_DIR: every process forks for ever; runs only inside the pids cgroup PIDS_DIR with a limit of at most 256. */
#include "hostile.h"

/* The second fuse: without the limit around it this program does nothing at all. */
static int is_bounded(const char *directory)
{
    char path[PATH_MAX], text[32] = "", line[PATH_MAX], wanted[PATH_MAX];
    snprintf(path, sizeof path, "%s/pids.max", directory);
    FILE *limit = fopen(path, "r");
    if (!limit || !fgets(text, sizeof text, limit))
        return 0;
    fclose(limit);
    if (atoi(text) < 1 || atoi(text) > 256)
        return 0;
    snprintf(wanted, sizeof wanted, "%s\n", strrchr(directory, '/'));
    FILE *own = fopen("/proc/self/cgroup", "r");
    int inside = 0;
    while (own && fgets(line, sizeof line, own)) {
        char *controllers = strchr(line, ':'), *group = strrchr(line, '/');
        if (controllers && strncmp(controllers, ":pids:", 6) == 0 && group && strcmp(group, wanted) == 0)
            inside = 1;
    }
    if (own)
        fclose(own);
    return inside;
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    if (argc < 4 || !is_bounded(argv[3]))
        return 97;
    on(SIGTERM, SIG_IGN);
    on(SIGCHLD, SIG_IGN);
    int refused = 0;
    for (;;) {
        pid_t child = try_spawn();
        if (child == 0)
            refused = 1; /* only the first one tells */
        if (child < 0 && errno == EAGAIN && !refused) {
            say(STDOUT_FILENO, "EAGAIN");
            refused = 1;
        }
        if (is_over())
            _exit(0);
        if (child < 0)
            nap_us(500);
    }
}
