/* efficiency.c - see efficiency.h. */
#include "efficiency.h"

static const double KNEE_SHARE = 0.5;

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

/* 0 where nothing fits. */
static double speed(const json_t *point)
{
    double ns = number(point, "time_ns");
    return ns > 0 ? 1 / ns : 0;
}

static double best_speed_a_gpu(const json_t *points)
{
    double best = 0;
    size_t i;
    json_t *p;
    json_array_foreach(points, i, p)
    {
        double own = speed(p) / number(p, "gpus");
        best = own > best ? own : best;
    }
    return best;
}

int topt_rate_points(json_t *points)
{
    double best = best_speed_a_gpu(points);
    const json_t *k = NULL;
    int knee = -1;
    size_t i;
    json_t *p;
    json_array_foreach(points, i, p)
    {
        if (speed(p) <= 0)
            continue;
        double more = number(p, "gpus") - number(k, "gpus");
        json_object_set_new(p, "efficiency",
                            json_real(speed(p) / number(p, "gpus") / best));
        if (!k || speed(p) - speed(k) >= KNEE_SHARE * best * more) {
            knee = (int)i;
            k = p;
        }
    }
    return knee;
}
