/* algorithm.c - the table of other systems' searches. */
#include "algorithm.h"
#include "topt_choices.h"
#include "topt_question.h"

#include <string.h>

static const struct topt_algorithm algorithms[] = {
    {.name = "data-parallel",
     .searches = "nothing: every operator over its batch",
     .leaves_out = "sharded or split parameters",
     .restriction = &topt_restrict_batch,
     .factors = TOPT_FACTOR_MICRO},
    {.name = "horovod",
     .searches =
         "nothing: data parallel, gradients all-reduced in buckets beside backward",
     .leaves_out = "sharded or split parameters",
     .restriction = &topt_restrict_batch,
     .factors = TOPT_FACTOR_MICRO,
     .fused = 1},
    {.name = "parallax",
     .searches = "nothing: rows of sparse tables with owners, the rest data parallel",
     .leaves_out = "sharded or split parameters",
     .restriction = &topt_restrict_hybrid,
     .factors = TOPT_FACTOR_MICRO,
     .tables = 1 << TOPT_ZERO_OWNER},
    {.name = "optcnn",
     .searches = "the fastest strategy of its space, whatever memory it takes",
     .leaves_out = "contraction splits, replicated work",
     .restriction = &topt_restrict_outputs,
     .factors = TOPT_FACTOR_MICRO,
     .time_only = 1},
    {.name = "right-end",
     .searches = "the fastest strategy of the whole space, whatever memory it takes",
     .factors = TOPT_FACTORS_ALL,
     .time_only = 1},
    {.name = "tofu",
     .searches = "the fastest strategy that stores every tensor split over all devices",
     .leaves_out = "replicated parameters and activations",
     .restriction = &topt_restrict_spread,
     .factors = TOPT_FACTOR_ZERO | TOPT_FACTOR_MICRO,
     .always = TOPT_FACTOR_ZERO,
     .zero = 1 << TOPT_ZERO_NONE | 1 << TOPT_ZERO_PARAM},
    {.name = "mesh-tensorflow",
     .searches = "one device mesh, and for each layer a map of its dimensions to it",
     .leaves_out = "uneven splits, resharding between layers, sharded parameters",
     .restriction = &topt_restrict_named,
     .factors = TOPT_FACTOR_MICRO,
     .one_mesh = 1},
    {.name = "mesh-tensorflow-reshape",
     .searches = "the same, and tensors may be renamed on their way (mtf.reshape)",
     .leaves_out = "uneven splits, several meshes, sharded parameters",
     .restriction = &topt_restrict_renamed,
     .factors = TOPT_FACTOR_MICRO,
     .one_mesh = 1},
    {.name = "mesh-tensorflow-tied",
     .searches = "one device mesh, one map for all layers, one name for all channels",
     .leaves_out =
         "uneven splits, resharding between layers, two split dimensions of an operator",
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

const char *topt_algorithm_solver_name(const char *name)
{
    return topt_algorithm_find(name) ? NULL : name;
}

/* Searches of the bare problem come first. */
static const char *algorithm_at(unsigned i)
{
    const char *const *searches = topt_search_algorithms();
    for (; *searches; searches++)
        if (!i--)
            return *searches;
    return i < ALGORITHMS ? algorithms[i].name : NULL;
}

int topt_algorithm_check(const char *name, struct topt_error *err)
{
    unsigned n = 0;
    while (algorithm_at(n))
        n++;
    return name ? topt_name_find("algorithm", name, algorithm_at, n, &n, err) : 0;
}
