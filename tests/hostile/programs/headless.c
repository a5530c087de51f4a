/* headless: its first thread exits, so it looks like a zombie, while another thread lives on and has forked a child. */
#include <pthread.h>
#include "hostile.h"

static void *live_on(void *nothing)
{
    (void)nothing;
    if (spawn() == 0) {
        arrive();
        stay();
    }
    nap_us(2000); /* the first thread goes meanwhile */
    arrive();
    stay();
}

int main(int argc, char **argv)
{
    pthread_t thread;
    begin(argc, argv);
    on(SIGTERM, note_term);
    if (pthread_create(&thread, NULL, live_on, NULL) != 0)
        return 99;
    syscall(SYS_exit, 0); /* this thread alone */
}
