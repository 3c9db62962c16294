/* bench.h - what the programs that measure share: clocks, medians, slopes, rows in processes of
 * their own.  For a program's main thread. */
#ifndef TOPT_BENCH_H
#define TOPT_BENCH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_MAX_RUNS = 99 };

/* Options that all have: --runs N, --only NAME, --json FILE, --quick; --limit SECONDS where a
 * program has a limit, which is what it is before. */
struct bench_options {
    int runs, quick;
    const char *only, *json;
    double limit; /* 0: the program has none */
};
/* 0, or the exit status after a line on how to use 'program'.  '*ret' holds what is so where
 * nothing is said. */
int bench_options(int argc, char **argv, const char *program, struct bench_options *ret);

double bench_wall(void);      /* seconds */
double bench_processor(void); /* of all threads of this process */
int64_t bench_rss_kib(void);  /* largest resident set of this process so far */
/* Sorts 'at'. */
double bench_median(double *at, int n);

/* Run 'measure' in a process of its own, so that rows do not see each other's memory; it fills
 * 'result', which comes back through a pipe.  -1 where the process died. */
int bench_apart(void (*measure)(const void *row, void *result), const void *row,
                void *result, size_t size);

/* A flag that is set once this process uses so many seconds of the processor more; calling it
 * again starts anew. */
const atomic_bool *bench_limit(double seconds);

/* Least squares of log y over log x: the exponent by which y grows; NAN of less than two. */
struct bench_slope {
    double n, sx, sy, sxx, sxy;
};
void bench_slope_add(struct bench_slope *s, double x, double y);
double bench_slope(const struct bench_slope *s);

#endif
