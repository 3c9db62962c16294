/* Shipped profiles: what must hold of every price, and how well curves predict themselves. */
#include <stdlib.h>
#include <string.h>

#include "hw_impl.h"
#include "tap.h"
#include "topt_json.h"

/* Groups of every shape of powers of two, and of the whole cluster. */
enum { MAX_GROUPS = 256 };
static int groups_of(const struct topt_hw *hw, struct topt_group ret[MAX_GROUPS])
{
    int n = 0, nodes = topt_hw_max_nodes(hw), per_node = topt_hw_gpus_per_node(hw);
    for (int k = 1; k <= nodes; k *= 2)
        for (int m = 1; m <= per_node; m *= 2)
            for (int s = 1; s <= per_node / m; s *= 2)
                if (k * m > 1)
                    ret[n++] = (struct topt_group){k, m, s};
    ret[n++] = (struct topt_group){nodes, per_node, 1};
    return n;
}

/* Number of sizes at which more bytes are cheaper. */
static int falls(const struct topt_hw *hw, enum topt_collective c, struct topt_group g)
{
    int bad = 0;
    int64_t before = 0;
    for (int k = 0; k < 240; k++) {
        int64_t bytes = ((int64_t)1 << (k / 6)) * (6 + k % 6) / 6;
        int64_t ns = topt_hw_collective_ns(hw, c, g, bytes);
        bad += ns < before || ns < 1;
        before = ns;
    }
    return bad;
}

static void prices(const struct topt_hw *hw)
{
    struct topt_group g[MAX_GROUPS], one = {1, 1, 1};
    int n = groups_of(hw, g), bad = 0, free_of_charge = 0, huge = 0;
    for (int c = 0; c < TOPT_COLLECTIVE_COUNT; c++) {
        enum topt_collective kind = (enum topt_collective)c;
        free_of_charge += topt_hw_collective_ns(hw, kind, one, 1 << 20) != 0;
        for (int i = 0; i < n; i++) {
            bad += falls(hw, kind, g[i]);
            huge += topt_hw_collective_ns(hw, kind, g[i], INT64_MAX) <= 0;
        }
    }
    is_int(bad, 0, "%s: more bytes are never cheaper, in %d groups", topt_hw_name(hw), n);
    is_int(free_of_charge, 0, "a group of one costs nothing");
    is_int(huge, 0, "any number of bytes has a time");
}

/* Two nodes talk slower than one; all-reduce is dearer than either of its halves. */
static void orders(const struct topt_hw *hw)
{
    int m = topt_hw_gpus_per_node(hw);
    struct topt_group in = {1, m, 1}, out = {2, m, 1};
    int64_t bytes = 64 << 20, ar = topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, in, bytes);
    if (m > 1)
        ok(ar > topt_hw_collective_ns(hw, TOPT_ALL_GATHER, in, bytes) &&
               ar > topt_hw_collective_ns(hw, TOPT_REDUCE_SCATTER, in, bytes),
           "all-reduce is dearer than its halves");
    if (topt_hw_max_nodes(hw) > 1)
        ok(ar < topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, out, bytes),
           "and dearer over two nodes");
    struct topt_group far = {topt_hw_max_nodes(hw), m, 1};
    if (topt_hw_max_nodes(hw) > 2)
        ok(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, out, bytes) <
               topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, far, bytes),
           "and over all nodes");
}

static void computes(const struct topt_hw *hw)
{
    int64_t before = 0;
    int bad = 0;
    for (int k = 0; k < 62; k++) {
        int64_t n = (int64_t)1 << k;
        int64_t a = topt_hw_compute_ns(hw, TOPT_F32, TOPT_WORK_MATMUL, n, 0, 1);
        int64_t b = topt_hw_compute_ns(hw, TOPT_F32, TOPT_WORK_ELEMENTWISE, 0, n, 1);
        bad += a < before || a < 1 || b < 1;
        before = a;
    }
    is_int(bad, 0, "more work is never cheaper");
    /* An array of a paper's study has what the paper says of it. */
    int study = !strcmp(topt_hw_name(hw), "tpu-v2-v3");
    ok(topt_hw_has_dtype(hw, study ? TOPT_BF16 : TOPT_F32), "has %s",
       study ? "bf16" : "f32");
    ok(topt_hw_memory_bytes(hw) > (int64_t)1 << 29, "has memory");
    int64_t low, high, gpu = topt_hw_memory_bytes(hw) > (int64_t)4 << 30;
    topt_hw_runtime_bytes(hw, &low, &high);
    ok(gpu && !study ? low > 0 && high > low && high <= (int64_t)2 << 30 : high == 0,
       "says what the runtime takes: %lld to %lld", (long long)low, (long long)high);
}

static void predicts(const struct topt_hw *hw)
{
    struct topt_hw_curve_check c;
    double sum = 0, rates = 0;
    int n = 0;
    for (; topt_hw_curve_check(hw, n, &c); n++) {
        sum += c.mean_error;
        rates += c.rate_error;
    }
    if (n)
        ok(sum / n < 0.08,
           "%s: a point left out is predicted within 8 %% (%.1f %%, %d curves)",
           topt_hw_name(hw), 100 * sum / n, n);
    if (n)
        ok(rates / n > 0.7, "... and below 1 MiB bytes over rates are wrong by %.0f %%",
           100 * rates / n);
}

static void round_trip(const struct topt_hw *hw)
{
    struct topt_error err = {0};
    json_t *doc = topt_hw_to_json(hw);
    struct topt_hw *again = topt_hw_from_json(doc, &err);
    json_t *doc2 = again ? topt_hw_to_json(again) : NULL;
    ok(again && json_equal(doc, doc2), "the document round-trips %s", err.text);
    struct topt_group g = {1, topt_hw_gpus_per_node(hw), 1};
    ok(again && topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, g, 12345678) ==
                    topt_hw_collective_ns(again, TOPT_ALL_REDUCE, g, 12345678),
       "to the same prices");
    json_decref(doc);
    json_decref(doc2);
    topt_hw_destroy(again);
}

/* The number of an object, times 'factor'. */
static void scale(json_t *o, const char *key, double factor)
{
    json_t *x = json_object_get(o, key);
    if (x)
        json_object_set_new(o, key, json_real(json_number_value(x) * factor));
}

/* The rates of a list of [members, rate], times 'factor'. */
static void scale_pairs(json_t *list, double factor)
{
    size_t i;
    json_t *pair;
    json_array_foreach(list, i, pair) json_array_set_new(
        pair, 1, json_real(json_number_value(json_array_get(pair, 1)) * factor));
}

/* The profile with every rate of its memory and of its links of one level times 'factor'.  Curves
 * that were measured over these links, which would then be of another machine, are left out. */
static struct topt_hw *with_rates(const struct topt_hw *hw, const char *level,
                                  double factor, struct topt_error *err)
{
    int node = !strcmp(level, "node");
    json_t *doc = topt_hw_to_json(hw), *l, *curves = json_object_get(doc, "curves");
    size_t i;
    scale(json_object_get(doc, "device"), "memory_bandwidth", factor);
    for (i = json_array_size(curves); i-- > 0;) {
        const json_t *nodes = json_object_get(json_array_get(curves, i), "nodes");
        if (node || json_integer_value(nodes) > 1)
            json_array_remove(curves, i);
    }
    json_array_foreach(json_object_get(doc, "links"), i, l)
    {
        if (strcmp(json_string_value(json_object_get(l, "level")), level))
            continue;
        scale(l, "bytes_per_second", factor);
        scale(l, "device_bytes_per_second", factor);
        scale(l, "all_reduce_bytes_per_second", factor);
        scale_pairs(json_object_get(l, "by_group"), factor);
        scale_pairs(json_object_get(l, "all_reduce_by_group"), factor);
    }
    struct topt_hw *ret = topt_hw_from_json(doc, err);
    json_decref(doc);
    return ret;
}

/* Prices that fall when a level's links halve their rates. */
static int faster(const struct topt_hw *hw, const struct topt_hw *slow)
{
    struct topt_group g[MAX_GROUPS];
    int n = groups_of(hw, g), bad = 0;
    for (int c = 0; c < TOPT_COLLECTIVE_COUNT; c++)
        for (int i = 0; i < n; i++)
            for (int k = 0; k < 36; k += 3) {
                enum topt_collective kind = (enum topt_collective)c;
                int64_t bytes = (int64_t)1 << k;
                bad += topt_hw_collective_ns(slow, kind, g[i], bytes) <
                       topt_hw_collective_ns(hw, kind, g[i], bytes);
            }
    return bad;
}

/* Nothing gets faster when bandwidth falls. */
static void slower(const struct topt_hw *hw)
{
    static const char *const levels[] = {"node", "cluster"};
    for (int l = 0; l < 2 && !topt_hw_groups(hw); l++) {
        struct topt_error err = {0};
        struct topt_hw *fast = with_rates(hw, levels[l], 1, &err);
        struct topt_hw *slow = with_rates(hw, levels[l], 0.5, &err);
        if (!ok(fast && slow, "at half the bandwidth %s", err.text)) {
            topt_hw_destroy(fast);
            topt_hw_destroy(slow);
            continue;
        }
        is_int(faster(fast, slow), 0, "%s: no price falls with the rates of the %s",
               topt_hw_name(hw), levels[l]);
        int bad = 0;
        for (int k = 0; k < 50; k++) {
            int64_t n = (int64_t)1 << k;
            bad += topt_hw_compute_ns(slow, TOPT_F32, TOPT_WORK_ELEMENTWISE, 1, n, 1) <
                   topt_hw_compute_ns(hw, TOPT_F32, TOPT_WORK_ELEMENTWISE, 1, n, 1);
        }
        is_int(bad, 0, "nor with its memory's");
        topt_hw_destroy(fast);
        topt_hw_destroy(slow);
    }
}

/* A profile says where its figures come from, of when it is, and what it lacks. */
static void tells(const struct topt_hw *hw)
{
    json_t *doc = topt_hw_to_json(hw), *lacks = topt_hw_lacks(hw),
           *device = json_object_get(doc, "device");
    const char *source = json_string_value(json_object_get(device, "source"));
    int year;
    const char *vendor = topt_hw_shipped_origin(topt_hw_name(hw), &year);
    ok(source && *source, "the device's figures have a source");
    ok(!*vendor == !year && (!year || (year > 2000 && year < 2100)),
       "is of a year where it has a vendor: %s %d", vendor, year);
    int bf16 = 0;
    size_t i;
    json_t *x;
    json_array_foreach(lacks, i, x) bf16 += !strcmp(json_string_value(x), "bf16");
    is_int(bf16, !topt_hw_has_dtype(hw, TOPT_BF16), "says whether bf16 is lacking");
    json_decref(lacks);
    json_decref(doc);
}

static void known_values(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = topt_hw_load("a100-80-dgx", &err);
    struct topt_group g = {1, 8, 1};
    if (!ok(hw != NULL, "a100-80-dgx %s", err.text))
        return;
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, g, 1 << 20), 76710, "a point");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, g, 3 << 19), 94555,
           "between points");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, g, 1), 31770, "below the first");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, g, (int64_t)1 << 33), 64194000,
           "above the last");
    /* 312e12 flops at 0.8 take 1.25 s; 2039e9 bytes at 0.85 take 1/0.85 s. */
    is_int(topt_hw_compute_ns(hw, TOPT_BF16, TOPT_WORK_MATMUL, 312000000000000, 0, 1),
           1250005000, "flops decide");
    is_int(topt_hw_compute_ns(hw, TOPT_BF16, TOPT_WORK_MATMUL, 1, 2039000000000, 1),
           1176475589, "bytes decide");
    topt_hw_destroy(hw);
    hw = topt_hw_load("lab-cpu", &err);
    int64_t two = topt_hw_compute_ns(hw, TOPT_F32, TOPT_WORK_MATMUL, 60000000, 0, 2);
    int64_t eight = topt_hw_compute_ns(hw, TOPT_F32, TOPT_WORK_MATMUL, 60000000, 0, 8);
    is_int(two, 1002000, "as many devices as cores");
    is_int(eight, 4002000, "four times as many take four times as long");
    topt_hw_destroy(hw);
}

int main(void)
{
    int n = 0;
    for (const char *const *name = topt_hw_shipped(); *name; name++, n++) {
        struct topt_error err = {0};
        struct topt_hw *hw = topt_hw_load(*name, &err);
        if (!ok(hw && !strcmp(topt_hw_name(hw), *name), "%s is shipped %s", *name,
                err.text))
            continue;
        prices(hw);
        orders(hw);
        computes(hw);
        predicts(hw);
        round_trip(hw);
        slower(hw);
        tells(hw);
        topt_hw_destroy(hw);
    }
    ok(n >= 39, "%d profiles", n);
    known_values();
    return done_testing();
}
