/* Operations of imported models against PyTorch's own count: oracle/flops.json has what
 * oracle/make_flops.py saw PyTorch compute forward for the configs of oracle/counts.json.
 *
 * A training step takes three times the products with parameters (6 operations a parameter
 * and position, of experts those that a position goes to) and, since backward computes the
 * scores again, three and a half times those of attention. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class_config.h"
#include "tap.h"
#include "topt_json.h"
#include "topt_model.h"

enum { PERMILLE = 30 };

static double of_kinds(const struct topt_model *m, const char *const *kinds)
{
    double sum = 0;
    for (; *kinds; kinds++) {
        struct topt_model_stats s = {0};
        topt_model_kind_stats(m, *kinds, &s);
        sum += (double)s.flops_per_sample;
    }
    return sum;
}

/* A recurrence is among the products where PyTorch's own code of it is written as such. */
static double forward(const struct topt_model *m, int recurrences)
{
    static const char *const scans[] = {"scan", "ssd", "delta_rule", "selective_scan",
                                        NULL};
    static const char *const products[] = {
        "linear",  "conv", "conv_grouped", "conv_transpose", "causal_conv",
        "experts", NULL};
    static const char *const attention[] = {"attention", NULL};
    return (recurrences ? of_kinds(m, scans) / 3 : 0) + of_kinds(m, products) / 3 +
           of_kinds(m, attention) * 2 / 7;
}

static struct topt_model *import(json_t *config, int64_t seq, const char *part)
{
    struct topt_error err = {0};
    struct topt_import_options o = {.batch = 1, .seq = seq, .part = part};
    struct topt_model *m = import_class(config, &o, &err);
    o.seq = 0; /* of images and sounds alone the extents are the config's */
    return m ? m : import_class(config, &o, &err);
}

static void check(const json_t *row, const json_t *seen)
{
    const char *name = json_string_value(json_object_get(row, "name"));
    json_t *config = json_deep_copy(json_object_get(row, "config"));
    json_t *class = json_object_get(row, "class");
    const char *end = json_string_value(class);
    if (end && strncmp(end, "Auto", 4) && !json_object_get(config, "architectures"))
        json_object_set_new(config, "architectures", json_pack("[s]", end));
    int several = json_object_get(config, "text_config") ||
                  json_object_get(config, "vision_config");
    struct topt_model *m =
        import(config, json_integer_value(json_object_get(seen, "seq")),
               several ? "text" : NULL);
    double right = json_number_value(json_object_get(seen, "matmul")) +
                   json_number_value(json_object_get(seen, "attention"));
    double ours = m ? forward(m, 0) : 0, with = m ? forward(m, 1) : 0;
    if (fabs(with - right) < fabs(ours - right))
        ours = with;
    double apart = ours / right - 1;
    ok(m && apart * 1000 < PERMILLE && apart * 1000 > -PERMILLE,
       "%s: %.4g operations forward, %.4g are right, %+.1f %%", name, ours, right,
       100 * apart);
    topt_model_destroy(m);
    json_decref(config);
}

static json_t *load(const char *file)
{
    char path[600];
    struct topt_error err = {0};
    snprintf(path, sizeof path, "%s/%s", ORACLE, file);
    json_t *doc = topt_json_load(path, 8 << 20, &err);
    ok(doc != NULL, "%s is read %s", file, err.text);
    return doc;
}

int main(void)
{
    json_t *counts = load("counts.json"), *flops = load("flops.json"), *seen, *row;
    size_t i, j;
    json_array_foreach(json_object_get(flops, "models"), i, seen)
    {
        const char *name = json_string_value(json_object_get(seen, "name"));
        json_array_foreach(
            json_object_get(counts, "models"), j,
            row) if (!strcmp(json_string_value(json_object_get(row, "name")), name))
            check(row, seen);
    }
    json_decref(counts);
    json_decref(flops);
    return done_testing();
}
