/* hint.c - see topt_hint.h. */
#include "topt_hint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "topt_text.h"

static const double MOST_HOURS = 1.25, SAME_HOURS = 0.05;

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

/* GPU-hours of a step on 'row', relative to those of 'answer'. */
static double hours(const json_t *row, const json_t *answer)
{
    return number(row, "gpus") * number(row, "time_ns") /
           (number(answer, "gpus") * number(answer, "time_ns"));
}

static int is_worth(const json_t *row, const json_t *answer)
{
    return number(row, "gpus") > number(answer, "gpus") &&
           number(row, "time_ns") < number(answer, "time_ns") &&
           number(row, "min_efficiency") > 0 && hours(row, answer) <= MOST_HOURS;
}

/* "3.9 times as fast for the same GPU-hours". */
static void add_gain(const json_t *row, const json_t *answer, struct topt_text *t)
{
    char cost[32] = "the same";
    double faster = number(answer, "time_ns") / number(row, "time_ns");
    if (fabs(hours(row, answer) - 1) > SAME_HOURS)
        snprintf(cost, sizeof cost, "%.1f times the", hours(row, answer));
    topt_text_add(t, "%.*f times as fast for %s GPU-hours", faster < 10 ? 1 : 0, faster,
                  cost);
}

char *hint_beyond(const json_t *answer, int64_t most, const char *limit)
{
    const json_t *rows = json_object_get(answer, "alternatives"), *best = NULL;
    struct topt_text t = {0};
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (number(row, "gpus") > (double)most &&
            number(row, "time_ns") < number(answer, "time_ns") &&
            (!best || number(row, "time_ns") < number(best, "time_ns")))
            best = row;
    }
    topt_text_add(&t, "more than %s", limit);
    if (best) {
        topt_text_add(&t, ": %.0f GPUs on %.0f nodes would be ", number(best, "gpus"),
                      number(best, "nodes"));
        add_gain(best, answer, &t);
    } else {
        topt_text_add(&t, " would not be faster");
    }
    return t.s;
}

char *hint_line(const json_t *answer, const char *option)
{
    const json_t *rows = json_object_get(answer, "alternatives"), *best = NULL;
    struct topt_text t = {0};
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (is_worth(row, answer) && number(row, "gpus") > number(best, "gpus"))
            best = row;
    }
    if (!best)
        return NULL;
    topt_text_add(&t, "%.0f GPUs would be ", number(best, "gpus"));
    add_gain(best, answer, &t);
    topt_text_add(&t, ": %s%.6g", option, number(best, "min_efficiency"));
    return t.s;
}

char *hint_with(const json_t *answer, const char *prefix)
{
    struct topt_text t = {0};
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(answer, "with"), i, row)
    {
        const char *ask = json_string_value(json_object_get(row, "ask"));
        double gpus = number(row, "gpus");
        if (!ask)
            continue;
        topt_text_add(&t, "%s", t.len ? "; with " : "with ");
        for (const char *next; (next = strstr(ask, "--")); ask = next + 2) {
            topt_text_put(&t, ask, (size_t)(next - ask));
            topt_text_add(&t, "%s", prefix);
        }
        topt_text_add(&t, "%s it fits on %.0f GPU%s", ask, gpus, gpus > 1 ? "s" : "");
    }
    return t.s;
}
