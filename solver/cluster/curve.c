/* curve.c - what a model takes on other numbers of GPUs; see topt_cluster.h. */
#include "topt_cluster.h"

#include <stdio.h>
#include <stdlib.h>

#include "topt_json.h"

/* Can jobs of so many GPUs be packed?  Divisors of a node, and whole nodes. */
static int is_regular(int64_t gpus, int64_t per_node)
{
    return gpus > 0 && (gpus < per_node ? per_node % gpus : gpus % per_node) == 0;
}

static int by_gpus(const void *a, const void *b)
{
    const struct {
        int64_t gpus, time_ns;
    } *x = a, *y = b;
    return (x->gpus > y->gpus) - (x->gpus < y->gpus);
}

int topt_cluster_curve_read(const json_t *doc, int64_t gpus_per_node,
                            struct topt_cluster_curve *ret, struct topt_error *err)
{
    const char *model;
    const json_t *points, *p;
    size_t i;
    if (topt_json_format(doc, "curve", err) ||
        topt_json_string(doc, "", "model", &model, err) ||
        topt_json_array(doc, "", "points", &points, err))
        return -1;
    *ret = (struct topt_cluster_curve){.n = 0};
    snprintf(ret->name, sizeof ret->name, "%s", model);
    json_array_foreach(points, i, p)
    {
        int64_t gpus = topt_json_whole_at(p, "gpus");
        int64_t time = topt_json_whole_at(p, "time_ns");
        if (!json_is_true(json_object_get(p, "feasible")) || time < 1 ||
            !is_regular(gpus, gpus_per_node))
            continue;
        if (ret->n == TOPT_CLUSTER_POINTS)
            return topt_fail(err, TOPT_ERR_LIMIT, "%s: more than %d numbers of GPUs",
                             model, TOPT_CLUSTER_POINTS);
        ret->point[ret->n].gpus = gpus;
        ret->point[ret->n++].time_ns = time;
    }
    if (!ret->n)
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "%s fits on no number of GPUs that fills nodes of %lld evenly",
                         model, (long long)gpus_per_node);
    qsort(ret->point, (size_t)ret->n, sizeof *ret->point, by_gpus);
    int64_t knee = topt_json_whole_at(doc, "knee");
    for (int k = 0; k < ret->n; k++)
        if (!knee || ret->point[k].gpus <= knee)
            ret->knee = k;
    return 0;
}
