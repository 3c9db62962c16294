/* alternatives.c - one answer beside others: the fewest GPUs, a whole node, the cheapest, the knee, the
 * fastest.
 *
 * The fastest is the smallest count than which none that was tried is faster; best.h defines
 * the knee and efficiency.  "min_efficiency" of each is the roundest one that would choose it. */
#include "best.h"
#include "planning.h"
#include "request.h"
#include "topt_json.h"
#include "topt_question.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A name of a point, and why it has it. */
struct named {
    size_t at;
    const char *name, *why;
};

/* Add a row; a number of GPUs that has one already gets another name. */
static void add_row(json_t *rows, const json_t *point, const char *name, const char *why)
{
    json_t *last = json_array_get(rows, json_array_size(rows) - 1), *row;
    if (last && topt_json_number_at(last, "gpus") == topt_json_number_at(point, "gpus")) {
        json_array_append_new(json_object_get(last, "names"), json_string(name));
        return;
    }
    row = json_pack("{s:[s], s:s}", "names", name, "why", why);
    json_object_update(row, (json_t *)point);
    json_object_del(row, "limit");
    json_object_del(row, "feasible");
    json_array_append_new(rows, row);
}

/* The efficiency with the fewest digits that 'row' has and no larger count; none where
 * one has it too. */
static void put_choice(const json_t *points, json_t *row)
{
    double own = topt_json_number_at(row, "efficiency"), above = 0, tens = 10;
    for (size_t i = json_array_size(points); i-- > 0;) {
        const json_t *p = json_array_get(points, i);
        if (topt_json_number_at(p, "gpus") > topt_json_number_at(row, "gpus") &&
            topt_json_number_at(p, "efficiency") > above)
            above = topt_json_number_at(p, "efficiency");
    }
    for (int digits = 1; digits <= 6 && above < own; digits++, tens *= 10) {
        double rounded = floor(own * tens) / tens;
        if (rounded > above && rounded <= own) {
            json_object_set_new(row, "min_efficiency", json_real(rounded));
            return;
        }
    }
}

int topt_alternatives_find(struct topt_planning *m, json_t *fewest, const int64_t *count,
                           int n, const char *why_fewest, const char *why_fastest,
                           struct topt_alternatives *ret, struct topt_error *err)
{
    *ret = (struct topt_alternatives){json_array(), json_array()};
    if (fewest)
        json_array_append_new(ret->points, fewest);
    for (int i = 0; i < n; i++) {
        json_t *point;
        if (topt_request_brief(m->request)) {
            json_array_clear(ret->points);
            return 0;
        }
        if (!topt_count_divides_batch(m, count[i], NULL))
            continue;
        if (topt_count_point(m, count[i], &point, err))
            return -1;
        if (json_is_true(json_object_get(point, "feasible")))
            json_array_append(ret->points, point);
        json_decref(point);
    }
    if (!json_array_size(ret->points))
        return 0;
    size_t i, fastest = 0, cheapest = 0, node = SIZE_MAX;
    double soonest = INFINITY, least = INFINITY;
    json_t *p;
    json_array_foreach(ret->points, i, p)
    {
        double ns = topt_json_number_at(p, "time_ns"),
               gpus = topt_json_number_at(p, "gpus");
        fastest = ns < soonest ? i : fastest;
        soonest = fmin(soonest, ns);
        cheapest = gpus * ns < least ? i : cheapest;
        least = fmin(least, gpus * ns);
        node = gpus == topt_hw_gpus_per_node(m->request->hw) ? i : node;
    }
    const struct named named[] = {
        {0, "fewest", why_fewest},
        {node, "one node", "all GPUs of one node"},
        {cheapest, "cheapest", "fewest GPU-hours"},
        {(size_t)topt_rate_points(ret->points), "knee",
         "beyond it each further GPU adds less than half of the best speed per GPU"},
        {fastest, "fastest", why_fastest}};
    json_array_foreach(ret->points, i, p)
    {
        for (size_t k = 0; k < sizeof named / sizeof *named; k++)
            if (named[k].at == i)
                add_row(ret->named, p, named[k].name, named[k].why);
    }
    json_array_foreach(ret->named, i, p) put_choice(ret->points, p);
    return 0;
}

int64_t topt_alternatives_efficient(const struct topt_alternatives *a,
                                    double min_efficiency)
{
    int64_t gpus = 0;
    for (size_t i = 0; min_efficiency > 0 && i < json_array_size(a->points); i++) {
        const json_t *p = json_array_get(a->points, i);
        if (topt_json_number_at(p, "efficiency") >= min_efficiency)
            gpus = json_integer_value(json_object_get(p, "gpus"));
    }
    return gpus;
}

void topt_alternatives_fini(struct topt_alternatives *a)
{
    json_decref(a->points);
    json_decref(a->named);
    *a = (struct topt_alternatives){0};
}
