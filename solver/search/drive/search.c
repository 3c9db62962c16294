/* search.c - the table of searches, and what is the same for all of them. */
#include "check_problem.h"
#include "frontier.h"
#include "frontier_tracking.h"
#include "search_common.h"
#include "topt_near.h"
#include "topt_tensoropt.h"

#include <math.h>
#include <string.h>

static const struct algorithm {
    const char *name;
    int (*run)(const struct topt_search_problem *problem,
               const struct topt_search_options *options, struct topt_frontier **ret,
               struct topt_error *err);
} algorithms[] = {
    {"ft", topt_search_ft},
    {"ft-plain", topt_search_plain},
    {"ft-elimination", topt_search_elimination},
    {"brute-force", topt_search_brute},
};

#define NALGORITHMS (sizeof algorithms / sizeof algorithms[0])

const char *const *topt_search_algorithms(void)
{
    static const char *const names[] = {"ft", "ft-plain", "ft-elimination", "brute-force",
                                        NULL};
    _Static_assert(sizeof names / sizeof names[0] == NALGORITHMS + 1, "a name a row");
    return names;
}

int topt_search_threads(int64_t given, int *ret, struct topt_error *err)
{
    if (given < 0 || given > TOPT_SEARCH_MAX_THREADS)
        return topt_fail(err, TOPT_ERR_USAGE, "--threads %lld: at most %d",
                         (long long)given, TOPT_SEARCH_MAX_THREADS);
    *ret = (int)given;
    return 0;
}

static int check_options(const struct topt_search_options *o, struct topt_error *err)
{
    if (o->memory_limit < 0 || o->time_limit < 0 || o->brute_force_limit < 0 ||
        o->max_bytes < 0 || o->max_work < 0 || o->max_entries < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "a negative limit");
    if (o->threads < 0 || o->threads > TOPT_SEARCH_MAX_THREADS)
        return topt_fail(err, TOPT_ERR_INVAL, "%d threads; 0 to %d are possible",
                         o->threads, TOPT_SEARCH_MAX_THREADS);
    if (!isfinite(o->epsilon) || o->epsilon < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "epsilon must be a number of at least 0");
    return 0;
}

/* A search that is told to stop before it has a point claims nothing. */
static int run(const struct algorithm *a, const struct topt_search_problem *problem,
               const struct topt_search_options *options, struct topt_frontier **ret,
               struct topt_error *err)
{
    struct topt_error why = {0};
    if (!a->run(problem, options, ret, &why))
        return 0;
    *ret = NULL;
    if (!topt_search_gave_up(options, &why)) {
        if (err)
            *err = why;
        return -1;
    }
    *ret = topt_frontier_create(problem, err);
    if (!*ret)
        return -1;
    (*ret)->exact = 0;
    (*ret)->epsilon = INFINITY;
    return 0;
}

int topt_search(const struct topt_search_problem *problem,
                const struct topt_search_options *options, struct topt_frontier **ret,
                struct topt_error *err)
{
    static const struct topt_search_options defaults;
    if (!options)
        options = &defaults;
    const char *name = options->algorithm ? options->algorithm : "ft";
    struct topt_near near = {.name = name};
    char meant[TOPT_NEAR_WORDS];
    *ret = NULL;
    for (size_t i = 0; i < NALGORITHMS; i++) {
        topt_near_try(&near, algorithms[i].name);
        if (strcmp(algorithms[i].name, name))
            continue;
        if (check_options(options, err) || topt_search_check(problem, err))
            return -1;
        if (run(&algorithms[i], problem, options, ret, err))
            return -1;
        topt_frontier_keep_wanted(*ret, options);
        return 0;
    }
    return topt_fail(
        err, TOPT_ERR_USAGE,
        "unknown algorithm '%.40s'%s (one of ft, ft-plain, ft-elimination, brute-force)",
        name, topt_near_words(&near, meant));
}
