/* Touches SIZE bytes of memory and gives them back, so that a virtual machine has them at hand for what is measured next. */
#include <sys/mman.h>

#include "clock.h"

int main(int argc, char **argv) {
    size_t size = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    for (size_t i = 0; i < size; i += 4096)
        memory[i] = 1;
    return 0;
}
