/* The limit of S7: COUNT times SIZE bytes of FILE at a random place, by pread. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"

int main(int argc, char **argv) {
    static char buffer[1 << 20];
    struct stat known;
    if (argc != 4) {
        fprintf(stderr, "usage: page FILE SIZE COUNT\n");
        return 2;
    }
    size_t size = strtoull(argv[2], NULL, 10);
    int count = atoi(argv[3]), file = open(argv[1], O_RDONLY);
    if (size > sizeof buffer || file < 0 || fstat(file, &known) || (size_t)known.st_size <= size)
        fail(argv[1]);
    uint64_t noise = 88172645463325252u;
    for (int i = 0; i < count; i++) {
        noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
        off_t place = (off_t)(noise % ((uint64_t)known.st_size - size));
        int64_t began = now_ns();
        if (pread(file, buffer, size, place) != (ssize_t)size)
            fail("pread");
        printf("%lld\n", (long long)(now_ns() - began));
    }
    return 0;
}
