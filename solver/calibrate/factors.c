/* factors.c - the table of factors: few, each with bounds and a meaning, so that what is fitted can be held
 * against what is known of a machine.
 *
 * Bounds are what measured clusters lie within of the shipped profiles' figures, generously: a factor at
 * its bound says that something else is wrong. */
#include "calibrate_parts.h"

#include <string.h>

#include "topt_json.h"

static void scale(json_t *of, const char *key, double by)
{
    const json_t *x = json_object_get(of, key);
    if (json_is_number(x))
        json_object_set_new(of, key, json_real(json_number_value(x) * by));
}

/* The second of each pair [x, y], at most 'most'. */
static void scale_pairs(json_t *pairs, double by, double most)
{
    size_t i;
    json_t *pair;
    json_array_foreach(pairs, i, pair)
    {
        double y = json_number_value(json_array_get(pair, 1)) * by;
        json_array_set_new(pair, 1, json_real(y < most ? y : most));
    }
}

static void scale_tables(json_t *tables, double by, double most)
{
    const char *key;
    json_t *pairs;
    json_object_foreach(tables, key, pairs) scale_pairs(pairs, by, most);
}

/* Times of single kernels that were measured: elementwise ones and sweeps, or all others. */
static void scale_kernels(json_t *device, int elementwise, double by)
{
    size_t i, n;
    json_t *row, *sample;
    json_array_foreach(json_object_get(device, "kernels"), i, row)
    {
        enum topt_kernel k =
            topt_kernel_named(json_string_value(json_object_get(row, "kernel")));
        int of_bytes =
            k == TOPT_KERNEL_COUNT || topt_kernel_work(k) == TOPT_WORK_ELEMENTWISE;
        if (of_bytes != elementwise)
            continue;
        json_array_foreach(json_object_get(row, "samples"), n, sample)
        {
            size_t last = json_array_size(sample) - 1;
            double ns = json_number_value(json_array_get(sample, last));
            json_array_set_new(sample, last, json_real(ns / by));
        }
    }
}

/* Shares of the peak; those of a table above 10, and of rows of attention and products above 1, no profile may have. */
static void scale_compute(json_t *profile, double by)
{
    json_t *device = json_object_get(profile, "device"),
           *efficiency = json_object_get(device, "efficiency"), *row;
    size_t i;
    scale(efficiency, "matmul", by);
    scale(efficiency, "attention", by);
    scale_kernels(device, 0, by);
    scale_tables(json_object_get(device, "matmul_by_size"), by, 10);
    scale_tables(json_object_get(device, "attention_by_size"), by, 10);
    json_array_foreach(json_object_get(device, "attention"), i, row)
        scale_pairs(json_object_get(row, "points"), by, 1);
    json_array_foreach(json_object_get(device, "products"), i, row)
    {
        double share = json_number_value(json_object_get(row, "share")) * by;
        json_object_set_new(row, "share", json_real(share < 1 ? share : 1));
    }
}

static void scale_memory(json_t *profile, double by)
{
    json_t *device = json_object_get(profile, "device");
    json_t *efficiency = json_object_get(device, "efficiency");
    scale_kernels(device, 1, by);
    if (!json_object_get(efficiency, "memory"))
        json_object_set_new(efficiency, "memory", json_real(1));
    scale(efficiency, "memory", by);
    scale(efficiency, "elementwise", by);
}

static void scale_launch(json_t *profile, double by)
{
    scale(json_object_get(profile, "device"), "launch_ns", by);
}

/* The rates of a level, and the measured times of its groups. */
static void scale_link(json_t *profile, const char *level, double by)
{
    static const char *const rates[] = {"bytes_per_second", "all_reduce_bytes_per_second",
                                        "device_bytes_per_second"};
    int between = !strcmp(level, "cluster");
    size_t i;
    json_t *x;
    json_array_foreach(json_object_get(profile, "links"), i, x)
    {
        if (strcmp(topt_json_words_at(x, "level"), level))
            continue;
        for (size_t k = 0; k < sizeof rates / sizeof *rates; k++)
            scale(x, rates[k], by);
        scale_pairs(json_object_get(x, "by_group"), by, 1e18);
        scale_pairs(json_object_get(x, "all_reduce_by_group"), by, 1e18);
    }
    json_array_foreach(json_object_get(profile, "curves"), i, x)
    {
        size_t k;
        json_t *point;
        if ((topt_json_whole_at(x, "nodes") > 1) != between)
            continue;
        json_array_foreach(json_object_get(x, "points"), k, point) json_array_set_new(
            point, 1,
            json_integer(
                (json_int_t)(json_number_value(json_array_get(point, 1)) / by + 0.5)));
    }
}

static void scale_node(json_t *profile, double by)
{
    scale_link(profile, "node", by);
}

static void scale_cluster(json_t *profile, double by)
{
    scale_link(profile, "cluster", by);
}

const struct factor factors[FACTORS] = {
    {"compute", "rate of products and attention", 0.5, 1.5, scale_compute},
    {"memory", "bandwidth of a GPU's memory", 0.5, 1.5, scale_memory},
    {"node", "bandwidth between GPUs of a node", 0.25, 2, scale_node},
    {"cluster", "bandwidth between nodes", 0.1, 2, scale_cluster},
    {"launch", "host's time per kernel", 0.2, 10, scale_launch},
};

json_t *factors_apply(const json_t *profile, const double by[FACTORS])
{
    json_t *doc = json_deep_copy(profile);
    for (int i = 0; doc && i < FACTORS; i++)
        if (by[i] < 1 || by[i] > 1)
            factors[i].apply(doc, by[i]);
    return doc;
}
