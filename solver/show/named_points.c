/* named_points.c - see topt_named_points.h. */
#include "topt_named_points.h"

#include <math.h>

#include "topt_json.h"

static const double KNEE_SHARE = 0.5;

/* 0 where nothing fits. */
static double speed(const json_t *point)
{
    double ns = topt_json_number_at(point, "time_ns");
    return ns > 0 ? 1 / ns : 0;
}

static double best_speed_a_gpu(const json_t *points)
{
    double best = 0;
    size_t i;
    json_t *p;
    json_array_foreach(points, i, p)
    {
        double own = speed(p) / topt_json_number_at(p, "gpus");
        best = own > best ? own : best;
    }
    return best;
}

int topt_rate_points(json_t *points)
{
    double best = best_speed_a_gpu(points);
    const json_t *k = NULL;
    int knee = -1, last = -1;
    size_t i;
    json_t *p;
    json_array_foreach(points, i, p)
    {
        if (speed(p) <= 0)
            continue;
        last = (int)i;
        double more = topt_json_number_at(p, "gpus") - topt_json_number_at(k, "gpus");
        json_object_set_new(p, "efficiency",
                            json_real(speed(p) / topt_json_number_at(p, "gpus") / best));
        if (!k || speed(p) - speed(k) >= KNEE_SHARE * best * more) {
            knee = (int)i;
            k = p;
        }
    }
    return knee < last ? knee : -1;
}

/* The knee is where speed less half of the best speed a GPU for each GPU is most. */
double topt_rate_speed(const json_t *points, double gpus, double efficiency)
{
    double best = best_speed_a_gpu(points), fastest = 0, most = -INFINITY;
    size_t i;
    json_t *p;
    json_array_foreach(points, i, p)
    {
        double share = KNEE_SHARE * best * topt_json_number_at(p, "gpus");
        fastest = fmax(fastest, speed(p));
        most = fmax(most, speed(p) - share);
    }
    double knee = most + KNEE_SHARE * best * gpus;
    double efficient = best * gpus * fmin(efficiency, 1);
    return efficiency < INFINITY ? fmin(fmin(fastest, knee), efficient) : efficient;
}

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

void topt_points_name(json_t *points, int per_node, const char *why_fewest,
                      const char *why_fastest, json_t *rows)
{
    size_t i, fastest = 0, cheapest = 0, node = SIZE_MAX;
    double soonest = INFINITY, least = INFINITY;
    json_t *p;
    json_array_clear(rows);
    json_array_foreach(points, i, p)
    {
        double ns = topt_json_number_at(p, "time_ns"),
               gpus = topt_json_number_at(p, "gpus");
        fastest = ns < soonest ? i : fastest;
        soonest = fmin(soonest, ns);
        cheapest = gpus * ns < least ? i : cheapest;
        least = fmin(least, gpus * ns);
        node = gpus == per_node ? i : node;
    }
    const struct named named[] = {
        {0, "fewest", why_fewest},
        {node, "one node", "all GPUs of one node"},
        {cheapest, "cheapest", "fewest GPU-hours"},
        {(size_t)topt_rate_points(points), "knee",
         "beyond it each further GPU adds less than half of the best speed per GPU"},
        {fastest, "fastest", why_fastest}};
    json_array_foreach(points, i, p)
    {
        for (size_t k = 0; k < sizeof named / sizeof *named; k++)
            if (named[k].at == i)
                add_row(rows, p, named[k].name, named[k].why);
    }
    json_array_foreach(rows, i, p) put_choice(points, p);
}

int64_t topt_points_efficient(const json_t *points, double min_efficiency)
{
    int64_t gpus = 0;
    for (size_t i = 0; min_efficiency > 0 && i < json_array_size(points); i++) {
        const json_t *p = json_array_get(points, i);
        if (topt_json_number_at(p, "efficiency") >= min_efficiency)
            gpus = json_integer_value(json_object_get(p, "gpus"));
    }
    return gpus;
}
