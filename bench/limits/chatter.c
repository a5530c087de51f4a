/* The command of S6: LINES numbered lines of 64 bytes, EACH at a time, one lot every PERIOD_MS, by the clock. */
#define _GNU_SOURCE
#include <unistd.h>

#include "clock.h"

enum { LINE = 64, MOST = 1 << 16 };

int main(int argc, char **argv) {
    static char lot[MOST];
    if (argc != 4) {
        fprintf(stderr, "usage: chatter LINES EACH PERIOD_MS\n");
        return 2;
    }
    int lines = atoi(argv[1]), each = atoi(argv[2]), said = 0;
    int64_t period_ns = atoll(argv[3]) * 1000000, next = now_ns();
    if (each < 1 || each * LINE >= MOST)
        return 2;
    while (said < lines) {
        int size = 0;
        for (int i = 0; i < each && said < lines; i++, size += LINE)
            snprintf(lot + size, LINE + 1, "%08u a line of one run among many, as long as all of its ot\n",
                     (unsigned)said++ % 100000000u);
        for (int done = 0; done < size;) {
            ssize_t wrote = write(1, lot + done, (size_t)(size - done));
            if (wrote < 0)
                fail("write");
            done += (int)wrote;
        }
        next += period_ns;
        struct timespec until = {next / 1000000000, next % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    return 0;
}
