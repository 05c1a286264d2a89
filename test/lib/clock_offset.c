/* Moves the clock of the processes it is preloaded into by as many seconds as the file named by CLOCK_OFFSET_FILE says
   at the moment (8 bytes, native order). Reaches every process of a server: libfaketime does not reach those that
   PostgreSQL 15 forks in a signal handler, such as dynamic background workers. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *offset;

__attribute__((constructor)) static void map_offset(void)
{
    const char *name = getenv("CLOCK_OFFSET_FILE");
    int         file = name != NULL ? open(name, O_RDONLY) : -1;
    void       *map = file >= 0 ? mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;

    if (file >= 0)
        close(file);
    if (map != MAP_FAILED)
        offset = map;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int) syscall(SYS_clock_gettime, clock, now);

    if (result == 0 && offset != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *offset;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;

    (void) zone;
    if (clock_gettime(CLOCK_REALTIME, &precise) != 0)
        return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *seconds)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    if (seconds != NULL)
        *seconds = now.tv_sec;
    return now.tv_sec;
}
