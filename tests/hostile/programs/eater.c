/* eater MIB: says that it is here, then eats MIB mebibytes page by page, and says so if it gets through. */
#include "hostile.h"

int main(int argc, char **argv)
{
    begin(argc, argv);
    long mib = argc > 3 ? atol(argv[3]) : 64;
    if (mib > 512)
        return 97;
    arrive();
    for (long each = 0; each < mib; each++) {
        char *part = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (part == MAP_FAILED)
            return 99;
        memset(part, 1, 1 << 20);
    }
    note("FULL");
    stay();
}
