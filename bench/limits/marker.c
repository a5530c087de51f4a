/* The command of S4: SIZE bytes of lines, `ready`, then for each byte that comes through FIFO, 20 ms later, a marker
   that says at what monotonic nanosecond its write began. */
#include <fcntl.h>
#include <unistd.h>

#include "clock.h"

enum { LINE = 64, BLOCK = 1 << 16, DELAY_NS = 20000000 };

static void put(const char *data, size_t size) {
    while (size) {
        ssize_t wrote = write(1, data, size);
        if (wrote < 0)
            fail("write");
        data += wrote, size -= (size_t)wrote;
    }
}

int main(int argc, char **argv) {
    static char block[BLOCK];
    if (argc != 3) {
        fprintf(stderr, "usage: marker FIFO SIZE_BYTES\n");
        return 2;
    }
    uint64_t left = strtoull(argv[2], NULL, 10);
    for (int i = 0; i < BLOCK; i++)
        block[i] = i % LINE == LINE - 1 ? '\n' : (char)('a' + i % 23);
    while (left) {
        size_t want = left < BLOCK ? left : BLOCK;
        put(block + BLOCK - want, want);
        left -= want;
    }
    put("ready\n", 6);
    int fifo = open(argv[1], O_RDONLY);
    if (fifo < 0)
        fail(argv[1]);
    char armed, text[64];
    while (read(fifo, &armed, 1) == 1) {
        struct timespec delay = {0, DELAY_NS};
        nanosleep(&delay, NULL);
        int length = snprintf(text, sizeof text, "@@%lld@@\n", (long long)now_ns());
        put(text, (size_t)length);
    }
    return 0;
}
