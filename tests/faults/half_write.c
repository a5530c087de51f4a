/* Preloaded into a keeper: makes real short writes, and a full disk after half a write, on one file.
 *
 * FAULT_FILE   the name's end of the file that is hit; all other descriptors are left alone
 * FAULT_MODE   "one": one byte of each write goes in; "half": half of the first write goes in, then ENOSPC
 * FAULT_ARMED  the fault acts while a file of this name exists
 * FAULT_LOG    each fault that happened is appended to it as a line: mode, bytes asked, result
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

typedef ssize_t (*write_call)(int, const void *, size_t);
typedef ssize_t (*pwrite_call)(int, const void *, size_t, off64_t);
typedef ssize_t (*writev_call)(int, const struct iovec *, int);
typedef ssize_t (*pwritev_call)(int, const struct iovec *, int, off64_t);

static int half_done;

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static int is_target(int fd) {
    const char *end = getenv("FAULT_FILE"), *armed = getenv("FAULT_ARMED");
    char link[64], path[4096];
    if (!end || !armed) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(link, path, sizeof path - 1);
    size_t want = strlen(end);
    if (got < (ssize_t)want) return 0;
    path[got] = 0;
    if (strcmp(path + got - want, end)) return 0;
    if (!access(armed, F_OK)) return 1;
    half_done = 0;
    return 0;
}

static void note(const char *mode, size_t asked, ssize_t result) {
    char line[128];
    int size = snprintf(line, sizeof line, "%s %zu %zd\n", mode, asked, result);
    int log = open(getenv("FAULT_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log >= 0) {
        ssize_t ignored = ((write_call)real("write"))(log, line, (size_t)size);
        (void)ignored;
        close(log);
    }
}

/* At how many bytes to cut a write of `count`; 0 is a full disk. */
static size_t allowed(size_t count, const char **mode) {
    *mode = getenv("FAULT_MODE");
    if (count < 2 && !strcmp(*mode, "one")) return count;
    if (!strcmp(*mode, "one")) return 1;
    if (half_done) return 0;
    half_done = 1;
    return count < 2 ? 0 : count / 2;
}

static ssize_t cut(int fd, const void *data, size_t count, off64_t at) {
    const char *mode;
    size_t part = allowed(count, &mode);
    ssize_t result = -1;
    if (part) {
        result = at < 0 ? ((write_call)real("write"))(fd, data, part) : ((pwrite_call)real("pwrite64"))(fd, data, part, at);
    } else {
        errno = ENOSPC;
    }
    int keep = errno;
    if (result != (ssize_t)count) note(mode, count, result);
    errno = keep;
    return result;
}

static ssize_t cut_vector(int fd, const struct iovec *parts, int many, off64_t at) {
    size_t total = 0, filled = 0;
    for (int i = 0; i < many; i++) total += parts[i].iov_len;
    char *flat = malloc(total + 1);
    for (int i = 0; i < many; i++) {
        memcpy(flat + filled, parts[i].iov_base, parts[i].iov_len);
        filled += parts[i].iov_len;
    }
    ssize_t result = cut(fd, flat, total, at);
    int keep = errno;
    free(flat);
    errno = keep;
    return result;
}

ssize_t write(int fd, const void *data, size_t count) {
    return is_target(fd) ? cut(fd, data, count, -1) : ((write_call)real("write"))(fd, data, count);
}

ssize_t pwrite64(int fd, const void *data, size_t count, off64_t at) {
    return is_target(fd) ? cut(fd, data, count, at) : ((pwrite_call)real("pwrite64"))(fd, data, count, at);
}

ssize_t writev(int fd, const struct iovec *parts, int many) {
    return is_target(fd) ? cut_vector(fd, parts, many, -1) : ((writev_call)real("writev"))(fd, parts, many);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int many, off64_t at) {
    return is_target(fd) ? cut_vector(fd, parts, many, at) : ((pwritev_call)real("pwritev64"))(fd, parts, many, at);
}
