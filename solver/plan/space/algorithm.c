/* algorithm.c - the table of other systems' searches. */
#include "algorithm.h"
#include "restrict.h"
#include "topt_choices.h"
#include "topt_near.h"
#include "topt_text.h"
#include "topt_search.h"

#include <string.h>

const struct topt_fusion topt_horovod = {.bucket_bytes = 64 << 20, .cycle_ns = 5000000};

static const struct topt_algorithm algorithms[] = {
    {.name = "data-parallel",
     .means = "every operator over its batch, parameters replicated",
     .restriction = &topt_restrict_batch,
     .factors = TOPT_FACTOR_MICRO},
    {.name = "horovod",
     .means = "data parallel; gradients are all-reduced in buckets, beside backward",
     .restriction = &topt_restrict_batch,
     .factors = TOPT_FACTOR_MICRO,
     .fused = 1},
    {.name = "optcnn",
     .means = "the fastest strategy, whatever memory it takes",
     .factors = TOPT_FACTORS_ALL,
     .time_only = 1},
    {.name = "tofu",
     .means = "every stored tensor split over all devices, the fastest such strategy",
     .restriction = &topt_restrict_spread,
     .factors = TOPT_FACTOR_ZERO | TOPT_FACTOR_MICRO,
     .always = TOPT_FACTOR_ZERO,
     .zero = 1 << TOPT_ZERO_NONE | 1 << TOPT_ZERO_PARAM},
    {.name = "mesh-tensorflow",
     .means = "one device mesh, one map of names of dimensions to its dimensions",
     .restriction = &topt_restrict_named,
     .factors = TOPT_FACTOR_MICRO,
     .one_mesh = 1,
     .alike = 1},
    {.name = "mesh-tensorflow-tied",
     .means = "the same with one name for all channels and features",
     .restriction = &topt_restrict_one_channel,
     .factors = TOPT_FACTOR_MICRO,
     .one_mesh = 1,
     .alike = 1},
};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

const struct topt_algorithm *topt_algorithm_at(int i)
{
    return i >= 0 && i < ALGORITHMS ? &algorithms[i] : NULL;
}

const struct topt_algorithm *topt_algorithm_find(const char *name)
{
    for (int i = 0; name && i < ALGORITHMS; i++)
        if (!strcmp(algorithms[i].name, name))
            return &algorithms[i];
    return NULL;
}

const char *topt_algorithm_search(const char *name)
{
    return topt_algorithm_find(name) ? NULL : name;
}

int topt_algorithm_check(const char *name, struct topt_error *err)
{
    const char *const *searches = topt_search_algorithms();
    struct topt_text all = {0};
    struct topt_near near = {.name = name};
    char meant[TOPT_NEAR_WORDS];
    if (!name || topt_algorithm_find(name))
        return 0;
    for (int i = 0; searches[i]; i++) {
        if (!strcmp(searches[i], name)) {
            topt_text_fini(&all);
            return 0;
        }
        topt_near_try(&near, searches[i]);
        topt_text_add(&all, "%s%s", i ? ", " : "", searches[i]);
    }
    for (int i = 0; i < ALGORITHMS; i++) {
        topt_near_try(&near, algorithms[i].name);
        topt_text_add(&all, ", %s", algorithms[i].name);
    }
    topt_fail(err, TOPT_ERR_INVAL, "unknown algorithm '%.40s'%s (one of %s)", name,
              topt_near_words(&near, meant), all.s ? all.s : "");
    topt_text_fini(&all);
    return -1;
}
