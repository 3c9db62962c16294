/* curve.c - what a model takes on other numbers of GPUs; see topt_cluster.h. */
#include "topt_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cells.h"
#include "topt_json.h"
#include "topt_text.h"

enum { MOST_BYTES = 1 << 24 };

/* Can jobs of so many GPUs be packed?  Divisors of a node, and whole nodes. */
static int is_regular(int64_t gpus, int64_t per_node)
{
    return gpus > 0 && (gpus < per_node ? per_node % gpus : gpus % per_node) == 0;
}

/* The kind of a hardware profile; where there is but one without a name, that. */
static int kind_of(const struct topt_cluster_kind *kind, int nkinds, const char *name)
{
    for (int k = 0; k < nkinds; k++)
        if (!*kind[k].name || (name && !strcmp(kind[k].name, name)))
            return k;
    return -1;
}

/* The curve of this name, which is added where there is none; NULL: there are too many. */
static struct topt_cluster_curve *find(struct topt_cluster_curve *curve, size_t most,
                                       size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(curve[i].name, name))
            return &curve[i];
    if (*n == most)
        return NULL;
    struct topt_cluster_curve *ret = &curve[(*n)++];
    *ret = (struct topt_cluster_curve){.restart_s = -1};
    snprintf(ret->name, sizeof ret->name, "%s", name);
    return ret;
}

/* In its place; 0 where it is passed over, 1 where there is no more room. */
static int add_point(struct topt_cluster_curve *c, const struct topt_cluster_kind *kind,
                     int k, int64_t gpus, int64_t time_ns)
{
    int at = c->n;
    if (k < 0 || time_ns < 1 || !is_regular(gpus, kind[k].gpus_per_node))
        return 0;
    if (c->n == TOPT_CLUSTER_POINTS)
        return 1;
    while (at && (c->point[at - 1].kind > k ||
                  (c->point[at - 1].kind == k && c->point[at - 1].gpus > gpus)))
        at--;
    memmove(&c->point[at + 1], &c->point[at], (size_t)(c->n - at) * sizeof *c->point);
    c->point[at].gpus = gpus;
    c->point[at].time_ns = time_ns;
    c->point[at].kind = k;
    c->n++;
    return 0;
}

void topt_cluster_curve_index(struct topt_cluster_curve *c)
{
    for (int k = 0; k <= TOPT_CLUSTER_KINDS; k++) {
        c->first[k] = 0;
        while (c->first[k] < c->n && c->point[c->first[k]].kind < k)
            c->first[k]++;
    }
}

/* The point at which a kind's curve bends, or its last. */
static void set_knee(struct topt_cluster_curve *c, int k, int64_t gpus)
{
    for (int i = c->first[k]; i < c->first[k + 1]; i++)
        if (!gpus || c->point[i].gpus <= gpus || i == c->first[k])
            c->knee[k] = i;
}

static int no_room(const char *name, struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_LIMIT, "%s: more than %d numbers of GPUs", name,
                     TOPT_CLUSTER_POINTS);
}

/* Places of points have moved where a kind before it was added. */
static void keep_knees(struct topt_cluster_curve *c, const int64_t *gpus)
{
    topt_cluster_curve_index(c);
    for (int k = 0; k < TOPT_CLUSTER_KINDS; k++)
        set_knee(c, k, gpus[k]);
}

int topt_cluster_curve_read(const json_t *doc, const struct topt_cluster_kind *kind,
                            int nkinds, struct topt_cluster_curve *curve, size_t most,
                            size_t *n, struct topt_error *err)
{
    const char *model;
    const json_t *points, *p;
    int64_t knee[TOPT_CLUSTER_KINDS] = {0};
    size_t i;
    if (topt_json_format(doc, "curve", err) ||
        topt_json_string(doc, "", "model", &model, err) ||
        topt_json_array(doc, "", "points", &points, err))
        return -1;
    int k = kind_of(kind, nkinds, json_string_value(json_object_get(doc, "hw")));
    struct topt_cluster_curve *c = NULL;
    char name[TOPT_CLUSTER_NAME];
    snprintf(name, sizeof name, "%.47s", model);
    /* Several answers for one model and kind are several curves: of other batches, or of
     * adapters. */
    for (int of = 2; !c; of++) {
        if (!(c = find(curve, most, n, name)))
            return topt_fail(err, TOPT_ERR_LIMIT, "more than %zu curves", most);
        if (k >= 0 && c->first[k] < c->first[k + 1])
            c = NULL;
        snprintf(name, sizeof name, "%.30s#%d", model, of);
    }
    for (int at = 0; at < TOPT_CLUSTER_KINDS; at++)
        if (c->first[at] < c->first[at + 1])
            knee[at] = c->point[c->knee[at]].gpus;
    int before = c->n;
    json_array_foreach(
        points, i,
        p) if (json_is_true(json_object_get(p, "feasible")) &&
               add_point(c, kind, k, topt_json_whole_at(p, "gpus"),
                         topt_json_whole_at(p, "time_ns"))) return no_room(model, err);
    if (c->n == before)
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         k < 0 ? "%s is of hardware that no --kind names"
                               : "%s fits on no number of GPUs that fills nodes evenly",
                         model);
    knee[k] = topt_json_whole_at(doc, "knee");
    keep_knees(c, knee);
    return 0;
}

int topt_cluster_curves_read(const char *path, const struct topt_cluster_kind *kind,
                             int nkinds, struct topt_cluster_curve *curve, size_t most,
                             size_t *n, struct topt_error *err)
{
    static const int64_t none[TOPT_CLUSTER_KINDS];
    size_t len, before = *n;
    char *text = topt_read_file(path, MOST_BYTES, &len, err), *save = NULL;
    int rc = text ? 0 : -1, number = 0;
    for (char *line = text ? strtok_r(text, "\r\n", &save) : NULL; !rc && line;
         line = strtok_r(NULL, "\r\n", &save)) {
        char *cell[CELLS];
        double gpus, run, restart;
        if (*line == '#' || !number++) /* and the head */
            continue;
        if (cells_of(line, cell) != 5 || cells_number(cell[2], &gpus) ||
            cells_number(cell[3], &run) || cells_number(cell[4], &restart) || run > 1e9 ||
            gpus > 1e6) {
            rc = topt_fail(err, TOPT_ERR_INVAL, "%s: line %d is no point of a curve",
                           path, number);
            break;
        }
        struct topt_cluster_curve *c = find(curve, most, n, cell[0]);
        if (!c)
            rc = topt_fail(err, TOPT_ERR_LIMIT, "more than %zu curves", most);
        else if (add_point(c, kind, kind_of(kind, nkinds, cell[1]), (int64_t)gpus,
                           (int64_t)(run * 1e9)))
            rc = no_room(cell[0], err);
        else
            c->restart_s = (int64_t)restart;
    }
    for (size_t i = before; !rc && i < *n; i++) {
        keep_knees(&curve[i], none);
        if (!curve[i].n)
            rc = topt_fail(err, TOPT_ERR_INFEASIBLE,
                           "%s: %s has no number of GPUs that fills nodes evenly", path,
                           curve[i].name);
    }
    free(text);
    return rc;
}
