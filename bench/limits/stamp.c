/* Says at what monotonic nanosecond its main began, and ends: shows when a keeper's command really runs. */
#include <unistd.h>

#include "clock.h"

int main(void) {
    char text[32];
    int length = snprintf(text, sizeof text, "%lld\n", (long long)now_ns());
    return write(1, text, (size_t)length) != length;
}
