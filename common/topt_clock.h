/* topt_clock.h - time that passes, by the monotonic clock, and the processor's time of a thread.
 * Thread safety: reentrant. */
#ifndef TOPT_CLOCK_H
#define TOPT_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t topt_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t topt_clock_ms(void)
{
    return topt_clock_ns() / 1000000;
}

/* Nanoseconds that a processor spent on the calling thread. */
static inline double topt_thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline struct timespec topt_clock_timespec(int64_t ms)
{
    return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
}

#endif
