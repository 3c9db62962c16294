/* bench.c - what the programs that measure share. */
#include "bench.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int take(struct bench_options *o, const char *name, const char *value)
{
    if (!strcmp(name, "--only"))
        o->only = value;
    else if (!strcmp(name, "--json"))
        o->json = value;
    else if (!strcmp(name, "--runs"))
        o->runs = atoi(value);
    else if (!strcmp(name, "--limit") && o->limit > 0)
        o->limit = atof(value);
    else
        return -1;
    return 0;
}

int bench_options(int argc, char **argv, const char *program, struct bench_options *ret)
{
    int limited = ret->limit > 0, bad = 0;
    for (int i = 1; i < argc && !bad; i++)
        if (!strcmp(argv[i], "--quick"))
            ret->quick = 1;
        else if (i + 1 == argc || take(ret, argv[i], argv[i + 1]))
            bad = 1;
        else
            i++;
    if (!bad && ret->runs >= 1 && ret->runs <= BENCH_MAX_RUNS &&
        (!limited || ret->limit > 0))
        return 0;
    fprintf(stderr, "usage: %s [--runs 1..%d] [--only NAME] [--json FILE] [--quick]%s\n",
            program, BENCH_MAX_RUNS, limited ? " [--limit SECONDS]" : "");
    return 2;
}

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bench_wall(void)
{
    return now(CLOCK_MONOTONIC);
}

double bench_processor(void)
{
    return now(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t bench_rss_kib(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

double bench_median(double *at, int n)
{
    qsort(at, (size_t)n, sizeof *at, by_size);
    return at[n / 2];
}

int bench_apart(void (*measure)(const void *row, void *result), const void *row,
                void *result, size_t size)
{
    int fd[2];
    memset(result, 0, size);
    if (pipe(fd))
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        measure(row, result);
        _exit(write(fd[1], result, size) != (ssize_t)size);
    }
    close(fd[1]);
    ssize_t n = pid > 0 ? read(fd[0], result, size) : -1;
    close(fd[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return n == (ssize_t)size ? 0 : -1;
}

/* A thread that looks: a timer of processor time would make the clock itself coarse. */
static atomic_bool over;
static _Atomic int64_t until_ms;

static void *watch(void *unused)
{
    struct timespec nap = {.tv_nsec = 20000000};
    while (bench_processor() * 1e3 < (double)atomic_load(&until_ms))
        nanosleep(&nap, NULL);
    atomic_store(&over, 1);
    return unused;
}

const atomic_bool *bench_limit(double seconds)
{
    pthread_t thread;
    int64_t first = 0, until = (int64_t)(1e3 * (bench_processor() + seconds));
    if (!atomic_compare_exchange_strong(&until_ms, &first, until))
        atomic_store(&until_ms, until);
    else if (!pthread_create(&thread, NULL, watch, NULL))
        pthread_detach(thread);
    return &over;
}

void bench_slope_add(struct bench_slope *s, double x, double y)
{
    if (!(x > 0 && y > 0))
        return;
    x = log(x);
    y = log(y);
    s->n++;
    s->sx += x;
    s->sy += y;
    s->sxx += x * x;
    s->sxy += x * y;
}

double bench_slope(const struct bench_slope *s)
{
    return s->n < 2 ? NAN
                    : (s->n * s->sxy - s->sx * s->sy) / (s->n * s->sxx - s->sx * s->sx);
}
