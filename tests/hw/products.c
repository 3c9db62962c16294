/* Rates of matrix products by shape: what short sums and small results cost. */
#include <stdlib.h>
#include <string.h>

#include "hw_impl.h"
#include "refused.h"
#include "tap.h"
#include "topt_json.h"

#define ROW(type, share, depth, outputs)                                                 \
    "{'type':'" type "','share':" share ",'depth':" depth ",'outputs':" outputs          \
    ",'source':'s'}"

/* A device of 1e9 operations a second that reaches all of them where no row says else. */
static struct topt_hw *parse(const char *products, struct topt_error *err)
{
    char text[4096];
    snprintf(
        text, sizeof text,
        "{'format':'topt-hw/1','name':'t','nodes':1,'gpus_per_node':1,'device':{"
        "'name':'d','memory_bytes':1000,'flops':{'f32':1e9},'efficiency':{'matmul':1,"
        "'attention':1,'elementwise':1},'memory_bandwidth':1e9,'launch_ns':3,"
        "'products':%s,'source':'s'},'links':[]}",
        products);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    json_t *doc = topt_json_parse(text, strlen(text), "test", err);
    struct topt_hw *hw = doc ? topt_hw_from_json(doc, err) : NULL;
    json_decref(doc);
    return hw;
}

/* Nanoseconds of 'outputs' sums of 'depth' terms. */
static int64_t ns(const struct topt_hw *hw, int64_t outputs, int64_t depth, int64_t bytes)
{
    return topt_hw_product(hw, TOPT_F32, 2 * outputs * depth, outputs, bytes, 1).ns;
}

static void shapes(const struct topt_hw *hw)
{
    is_int(ns(hw, 100, 90, 0), 2 * (100 + 20) * (90 + 10) * 2 + 3,
           "half of the peak, ten terms and twenty results more");
    is_int(ns(hw, 100, 90, 100000), 100000 + 3, "or the time of its bytes");
    is_int(topt_hw_product(hw, TOPT_F64, 1000, 10, 0, 1).ns, 1000 + 3,
           "a type without a row goes by the efficiency");
    is_int(topt_hw_product(hw, TOPT_F32, 1000, 0, 0, 1).ns, 1000 + 3,
           "and so do products whose results nobody counted");
    ok(ns(hw, 1000, 1000, 0) * 64 > ns(hw, 4000, 4000, 0),
       "small products are dearer an operation");
}

static void refused(void)
{
    static const char *const wrong[][2] = {
        {"{}", "device.products must be"},
        {"'nowhere'", "no shipped profile"},
        {"'p100-4x4'", "no shipped profile that has rows"},
        {"[" ROW("f7", "0.5", "1", "1") "]", "one of f32, f64, bf16, f16, f8"},
        {"[" ROW("f32", "0.5", "1", "1") "," ROW("f32", "0.5", "1", "1") "]",
         "of no other row"},
        {"[" ROW("f32", "0", "1", "1") "]", "device.products[0]"},
        {"[" ROW("f32", "1", "-1", "1") "]", "depth"},
        {"[" ROW("f32", "1", "1", "'2'") "]", "outputs"},
        {"[{'type':'f32','share':1,'depth':1,'outputs':1}]", "source"},
        {"[{'type':'f32','speed':1}]", "device.products[0]"}};
    all_refused(parse, wrong, sizeof wrong / sizeof *wrong);
}

/* No product of any shipped profile takes less time with more terms or more results. */
static void larger_is_dearer(void)
{
    int bad = 0, n = 0;
    for (const char *const *name = topt_hw_shipped(); *name; name++) {
        struct topt_error err = {0};
        struct topt_hw *hw = topt_hw_load(*name, &err);
        for (int64_t d = 16; hw && d <= 1 << 16; d *= 2)
            for (int64_t o = 1 << 10; o <= 1 << 28; o *= 2, n++)
                bad += ns(hw, 2 * o, d, 0) < ns(hw, o, d, 0) ||
                       ns(hw, o, 2 * d, 0) < ns(hw, o, d, 0);
        ok(hw != NULL, "%s %s", *name, err.text);
        topt_hw_destroy(hw);
    }
    is_int(bad, 0, "larger products never take less time, of %d", n);
}

/* The measured table that a row was fitted to, at a few shapes: milliseconds. */
static void as_measured(void)
{
    static const struct {
        const char *hw;
        int64_t m, n, k;
        double ms;
        enum topt_dtype type;
    } table[] = {
        {"a100-80-dgx", 16384, 768, 768, 0.1043, TOPT_BF16},
        {"a100-80-dgx", 16384, 3072, 768, 0.3271, TOPT_BF16},
        {"a100-80-dgx", 4096, 4096, 4096, 0.5489, TOPT_BF16},
        {"a100-80-dgx", 32768, 4096, 1024, 1.1169, TOPT_BF16},
        {"a100-80-dgx", 1024, 3072, 16384, 0.3961, TOPT_BF16},
        {"a100-80-dgx", 32768, 8192, 512, 1.3033, TOPT_BF16},
        {"h100-80-dgx", 4096, 4096, 4096, 0.1129, TOPT_F8},
        {"h100-80-dgx", 8192, 8192, 8192, 0.8523, TOPT_F8},
        {"h100-80-dgx", 16384, 16384, 16384, 6.3865, TOPT_F8},
        {"h100-80-dgx", 6144, 12288, 12288, 1.3730, TOPT_F8},
        {"h200-dgx", 4096, 4096, 4096, 0.1100, TOPT_F8},
        {"h200-dgx", 8192, 8192, 8192, 0.8454, TOPT_F8},
        {"h200-dgx", 16384, 16384, 16384, 6.4379, TOPT_F8},
        {"gb200-nvl72", 4096, 4096, 4096, 0.0485, TOPT_F8},
        {"gb200-nvl72", 8192, 8192, 8192, 0.3822, TOPT_F8},
        {"gb200-nvl72", 16384, 16384, 16384, 3.0259, TOPT_F8},
        {"v100-dgx1-2x8", 1760, 7000, 1760, 3.376, TOPT_F32},
        {"v100-dgx1-2x8", 4608, 24000, 1536, 25.936, TOPT_F32},
        {"v100-dgx1-2x8", 1760, 7000, 1760, 0.485, TOPT_F16},
        {"v100-dgx1-2x8", 2048, 7000, 2048, 0.599, TOPT_F16},
        {"v100-dgx1-2x8", 4096, 7000, 4096, 2.092, TOPT_F16},
        {"v100-dgx1-2x8", 1024, 48000, 2560, 2.384, TOPT_F16},
        {"t4-g4dn", 2048, 7000, 2048, 12.579, TOPT_F32},
        {"t4-g4dn", 2560, 7000, 2560, 2.169, TOPT_F16},
        {"t4-g4dn", 4096, 7000, 4096, 5.531, TOPT_F16},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct topt_error err = {0};
        struct topt_hw *hw = topt_hw_load(table[i].hw, &err);
        int64_t outputs = table[i].m * table[i].n;
        int64_t bytes = 2 * (outputs + table[i].k * (table[i].m + table[i].n));
        double ms =
            hw ? (double)topt_hw_product(hw, table[i].type, 2 * outputs * table[i].k,
                                         outputs, bytes, 1)
                         .ns /
                     1e6
               : 0;
        ok(ms > 0.85 * table[i].ms && ms < 1.15 * table[i].ms,
           "%s %lld x %lld x %lld: %.3f ms, measured %.3f", table[i].hw,
           (long long)table[i].m, (long long)table[i].n, (long long)table[i].k, ms,
           table[i].ms);
        topt_hw_destroy(hw);
    }
}

int main(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = parse("[" ROW("f32", "0.5", "10", "20") "]", &err);
    if (ok(hw != NULL, "rows are read %s", err.text)) {
        shapes(hw);
        topt_hw_destroy(hw);
    }
    refused();
    larger_is_dearer();
    as_measured();
    return done_testing();
}
