/* Writes SIZE bytes of numbered text lines to stdout as fast as a pipe takes them: the same bytes every time.

   A block is 64 KiB: 1,024 lines of 64 bytes, and the first line carries the block's number, so that a block
   that is lost, doubled or moved changes the hash. Nothing but that number is computed while writing. */
#include <unistd.h>

#include "clock.h"

enum { LINE = 64, BLOCK = 1 << 16 };

int main(int argc, char **argv) {
    static char block[BLOCK];
    if (argc != 2) {
        fprintf(stderr, "usage: produce SIZE_BYTES\n");
        return 2;
    }
    uint64_t left = strtoull(argv[1], NULL, 10), noise = 88172645463325252u, number = 0;
    for (int i = 0; i < BLOCK; i++) {
        noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
        block[i] = i % LINE == LINE - 1 ? '\n' : (char)(' ' + noise % 94);
    }
    while (left) {
        char digits[17];
        snprintf(digits, sizeof digits, "%016llx", (unsigned long long)number++);
        memcpy(block, digits, 16);
        size_t want = left < BLOCK ? left : BLOCK, done = 0;
        while (done < want) {
            ssize_t wrote = write(1, block + done, want - done);
            if (wrote < 0 && errno != EINTR)
                fail("write");
            if (wrote > 0)
                done += (size_t)wrote;
        }
        left -= want;
    }
    return 0;
}
