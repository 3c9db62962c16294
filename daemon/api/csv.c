/* csv.c - see csv.h.  The columns are those of the points; what a point has not is left empty. */
#include "csv.h"

#include <string.h>

#include "topt_text.h"

static const char *const columns[] = {"gpus",
                                      "nodes",
                                      "feasible",
                                      "time_ns",
                                      "memory_bytes",
                                      "peak_bytes",
                                      "limit",
                                      "exact",
                                      "space",
                                      "micro_batches",
                                      "strategy",
                                      "training_hours",
                                      "training_gpu_hours",
                                      "training_cost"};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* In quotes where it holds what separates. */
static void add_text(struct topt_text *t, const char *s)
{
    int quoted = strpbrk(s, ",\"\r\n") != NULL;
    topt_text_add(t, "%s", quoted ? "\"" : "");
    for (; *s; s++)
        topt_text_add(t, *s == '"' ? "\"\"" : "%c", *s);
    topt_text_add(t, "%s", quoted ? "\"" : "");
}

static void add_value(struct topt_text *t, const json_t *v)
{
    if (json_is_string(v))
        add_text(t, json_string_value(v));
    else if (json_is_integer(v))
        topt_text_add(t, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        topt_text_add(t, "%.17g", json_real_value(v));
    else if (json_is_boolean(v))
        topt_text_add(t, "%s", json_is_true(v) ? "true" : "false");
}

struct reply csv_reply(const struct request *q, const json_t *answer)
{
    const json_t *points = json_object_get(answer, "points"), *point;
    struct topt_text t = {0};
    size_t i;
    if (!json_is_array(points))
        return reply_error(q, 406, "not_acceptable", "Accept", NULL,
                           "only curves and frontiers have a text/csv form; ask for "
                           "application/json");
    for (int c = 0; c < COLUMNS; c++)
        topt_text_add(&t, "%s%s", c ? "," : "", columns[c]);
    topt_text_add(&t, "\r\n");
    json_array_foreach(points, i, point)
    {
        for (int c = 0; c < COLUMNS; c++) {
            topt_text_add(&t, "%s", c ? "," : "");
            add_value(&t, json_object_get(point, columns[c]));
        }
        topt_text_add(&t, "\r\n");
    }
    if (t.oom)
        topt_text_fini(&t);
    return reply_owned(200, "text/csv; charset=utf-8", t.s);
}
