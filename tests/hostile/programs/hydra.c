/* hydra [heads]: a group where each that sees another die forks two in its place at once, up to four times the start. */
#include "hostile.h"

#define MOST 64
static struct table {
    _Atomic int heads[MOST]; /* pids; 0: free; -1: being filled */
    int most;
} *table;

static void live(int own);

static void grow(int slot)
{
    if (is_over())
        _exit(0);
    pid_t child = try_spawn();
    if (child == 0)
        live(slot);
    int filling = -1; /* unless the child was quicker, or is already dead and replaced */
    __atomic_compare_exchange_n((int *)&table->heads[slot], &filling, child > 0 ? child : 0, 0, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
}

static void take_free_slot(void)
{
    for (int slot = 0; slot < table->most; slot++) {
        int none = 0;
        if (__atomic_compare_exchange_n((int *)&table->heads[slot], &none, -1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            grow(slot);
            return;
        }
    }
}

/* Watches every other head by pidfd, which tells of a death even while the dead one still waits to be reaped. */
static void live(int own)
{
    struct pollfd watched[MOST];
    int seen[MOST];
    on(SIGTERM, SIG_IGN);
    on(SIGCHLD, SIG_IGN);
    table->heads[own] = getpid();
    for (int slot = 0; slot < MOST; slot++) {
        watched[slot] = (struct pollfd){.fd = -1, .events = POLLIN};
        seen[slot] = 0;
    }
    for (;;) {
        for (int slot = 0; slot < table->most; slot++) {
            int pid = table->heads[slot];
            if (pid == seen[slot] || slot == own)
                continue;
            if (watched[slot].fd >= 0)
                close(watched[slot].fd);
            watched[slot].fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
            seen[slot] = pid;
            if (pid > 0 && watched[slot].fd < 0 && errno == ESRCH
                && __atomic_compare_exchange_n((int *)&table->heads[slot], &pid, -1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                grow(slot);
        }
        poll(watched, (nfds_t)table->most, 5);
        for (int slot = 0; slot < table->most; slot++) {
            int pid = seen[slot];
            if (watched[slot].fd < 0 || !watched[slot].revents)
                continue;
            close(watched[slot].fd);
            watched[slot].fd = -1;
            if (__atomic_compare_exchange_n((int *)&table->heads[slot], &pid, -1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
                grow(slot);
                take_free_slot();
            }
        }
    }
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    int heads = argc > 3 ? atoi(argv[3]) : 8;
    if (heads < 2 || heads > MOST / 4)
        return 96;
    table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    table->most = heads * 4;
    on(SIGTERM, SIG_IGN);
    on(SIGCHLD, SIG_IGN);
    for (int slot = 1; slot < heads; slot++) {
        table->heads[slot] = -1;
        pid_t child = try_spawn();
        if (child == 0) {
            arrive();
            live(slot);
        }
        int filling = -1;
        __atomic_compare_exchange_n((int *)&table->heads[slot], &filling, child > 0 ? child : 0, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
    }
    arrive();
    live(0);
}
