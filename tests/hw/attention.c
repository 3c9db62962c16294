/* Rates of attention kernels: which row of a profile a run takes, and what it reaches by length. */
#include <stdlib.h>
#include <string.h>

#include "hw_impl.h"
#include "refused.h"
#include "tap.h"
#include "topt_json.h"

#define ROW(kernel, head, causal, direction, points)                                     \
    "{'kernel':'" kernel "','head':" head ",'causal':" causal ",'direction':'" direction \
    "','type':'f32','points':" points ",'source':'s'}"
#define ROWS                                                                             \
    ROW("flash-2", "64", "true", "forward", "[[1024,0.2],[4096,0.4]]")                   \
    "," ROW("flash-2", "64", "true", "backward", "[[1024,0.1]]") "," ROW(                \
        "flash-2", "128", "true", "both",                                                \
        "[[1024,0.5]]") "," ROW("flash-2", "128", "false", "forward", "[[1024,0.8]]")

/* A device of 1e9 operations a second whose attention reaches all of it where no row says else. */
static struct topt_hw *parse(const char *attention, struct topt_error *err)
{
    char text[4096];
    snprintf(
        text, sizeof text,
        "{'format':'topt-hw/1','name':'t','nodes':1,'gpus_per_node':1,'device':{"
        "'name':'d','memory_bytes':1000,'flops':{'f32':1e9},'efficiency':{'matmul':1,"
        "'attention':1,'elementwise':1},'memory_bandwidth':1e18,'launch_ns':0,"
        "'attention':%s,'source':'s'},'links':[]}",
        attention);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    json_t *doc = topt_json_parse(text, strlen(text), "test", err);
    struct topt_hw *hw = doc ? topt_hw_from_json(doc, err) : NULL;
    json_decref(doc);
    return hw;
}

/* Nanoseconds of 1000 operations, which take 1000 at the peak. */
static int64_t ns(const struct topt_hw *hw, enum topt_attention kernel, int64_t head,
                  int64_t length, int causal, int backward)
{
    struct topt_attention_run run = {kernel, head, length, causal, backward, NULL};
    return topt_hw_attention(hw, TOPT_F32, &run, 1000, 0, 1).ns;
}

static void lengths(const struct topt_hw *hw)
{
    enum topt_attention k = TOPT_ATTENTION_FLASH2;
    is_int(ns(hw, k, 64, 1024, 1, 0), 5000, "a fifth of the peak at 1024 positions");
    is_int(ns(hw, k, 64, 4096, 1, 0), 2500, "two fifths at 4096");
    is_int(ns(hw, k, 64, 2048, 1, 0), 3334, "between them at 2048");
    is_int(ns(hw, k, 64, 16, 1, 0), 5000, "below the first length its share");
    is_int(ns(hw, k, 64, 1 << 20, 1, 0), 2500, "above the last one its share");
}

static void rows(const struct topt_hw *hw)
{
    enum topt_attention k = TOPT_ATTENTION_FLASH2;
    is_int(ns(hw, k, 64, 1024, 1, 1), 10000, "backward has a row of its own");
    is_int(ns(hw, k, 128, 1024, 1, 0), 2000, "a row of both directions stands for one");
    is_int(ns(hw, k, 128, 1024, 0, 0), 1250, "a row without a mask");
    is_int(ns(hw, k, 128, 1024, 0, 1), 2000, "backward without a mask: the same head's");
    is_int(ns(hw, k, 80, 1024, 1, 0), 5000, "heads of 80 are nearer to 64");
    is_int(ns(hw, k, 256, 1024, 1, 0), 2000, "heads of 256 are nearer to 128");
}

static void kernels(const struct topt_hw *hw)
{
    is_int(ns(hw, TOPT_ATTENTION_FLASH3, 64, 1024, 1, 0), 5000,
           "without rows a kernel has those of the one before it");
    is_int(ns(hw, TOPT_ATTENTION_CUDNN, 64, 1024, 1, 1), 10000, "cuDNN's too");
    is_int(ns(hw, TOPT_ATTENTION_FLASH1, 64, 1024, 1, 0), 1000,
           "an older one goes by the efficiency");
    struct topt_attention_run run = {TOPT_ATTENTION_FLASH2, 64, 1024, 1, 0, NULL};
    is_int(topt_hw_attention(hw, TOPT_F64, &run, 1000, 0, 1).ns, 1000,
           "and so does a type without rows");
    for (int i = 0; i < TOPT_ATTENTION_COUNT; i++)
        ok(strcmp(topt_attention_name((enum topt_attention)i), "unknown"),
           "kernel %d has a name", i);
}

static void refused(void)
{
    static const char *const wrong[][2] = {
        {"{}", "device.attention must be"},
        {"'nowhere'", "no shipped profile"},
        {"[" ROW("flash-9", "64", "true", "forward", "[[1,0.1]]") "]",
         "flash-2, flash-1"},
        {"[" ROW("flash-2", "0", "true", "forward", "[[1,0.1]]") "]", "head"},
        {"[" ROW("flash-2", "64", "3", "forward", "[[1,0.1]]") "]", "[0].causal"},
        {"[" ROW("flash-2", "64", "true", "up", "[[1,0.1]]") "]", "forward, backward"},
        {"[" ROW("flash-2", "64", "true", "both", "[]") "]", "[0].points"},
        {"[" ROW("flash-2", "64", "true", "both", "[[2,0.1],[2,0.2]]") "]", "rising"},
        {"[" ROW("flash-2", "64", "true", "both", "[[2,1.5]]") "]", "at most 1"},
        {"[{'kernel':'flash-2','speed':1}]", "device.attention[0]"}};
    all_refused(parse, wrong, sizeof wrong / sizeof *wrong);
}

static int64_t shipped_ns(const struct topt_hw *hw, enum topt_dtype t,
                          enum topt_attention kernel, int64_t head, int backward)
{
    struct topt_attention_run run = {kernel, head, 4096, 1, backward, NULL};
    return topt_hw_attention(hw, t, &run, (int64_t)1 << 44, 0, 1).ns;
}

/* The module's kernel, until a device has run it. */
static void own(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = topt_hw_load("a100-80-dgx", &err);
    enum topt_attention first = TOPT_ATTENTION_FLASH1, ours = TOPT_ATTENTION_OWN;
    if (!ok(hw != NULL, "a shipped profile %s", err.text))
        return;
    is_int(shipped_ns(hw, TOPT_BF16, ours, 128, 0),
           shipped_ns(hw, TOPT_BF16, first, 128, 0),
           "forward it takes what the first FlashAttention does");
    double back = (double)shipped_ns(hw, TOPT_BF16, ours, 128, 1) /
                  (double)shipped_ns(hw, TOPT_BF16, first, 128, 1);
    ok(back > 1.79 && back < 1.81, "nine products for five: %.3f", back);
    for (int b = 0; b < 2; b++)
        ok(shipped_ns(hw, TOPT_BF16, ours, 192, b) >
               3 * shipped_ns(hw, TOPT_BF16, ours, 128, b),
           "what it does not take goes by blocks of queries");
    struct topt_attention_run run = {ours, 64, 4096, 1, 0, NULL};
    is_int(topt_hw_attention(hw, TOPT_BF16, &run, 1 << 30, 0, 1).basis,
           TOPT_BASIS_ANALYTIC, "which is assumed");
    topt_hw_destroy(hw);
    hw = topt_hw_load("lab-cpu", &err);
    ok(hw && !topt_hw_has_gpus(hw), "ranks that share cores are no GPUs");
    topt_hw_destroy(hw);
}

/* A longer sequence has more operations a position: no row may make it cheaper as a whole. */
static void longer_is_dearer(void)
{
    int bad = 0, n = 0;
    for (const char *const *name = topt_hw_shipped(); *name; name++) {
        struct topt_error err = {0};
        struct topt_hw *hw = topt_hw_load(*name, &err);
        for (int k = 0; hw && k < TOPT_ATTENTION_COUNT * 8; k++) {
            int64_t before = 0;
            for (int64_t s = 64; s <= 1 << 17; s *= 2, n++) {
                struct topt_attention_run run = {(enum topt_attention)(k / 8),
                                                 k & 1 ? 64 : 128,
                                                 s,
                                                 k >> 1 & 1,
                                                 k >> 2 & 1,
                                                 NULL};
                int64_t t = topt_hw_attention(hw, TOPT_BF16, &run, s * s * 256, 0, 1).ns;
                bad += t < before;
                before = t;
            }
        }
        ok(hw != NULL, "%s %s", *name, err.text);
        topt_hw_destroy(hw);
    }
    is_int(bad, 0, "longer sequences never take less time, of %d", n);
}

int main(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = parse("[" ROWS "]", &err);
    if (ok(hw != NULL, "rows are read %s", err.text)) {
        lengths(hw);
        rows(hw);
        kernels(hw);
        topt_hw_destroy(hw);
    }
    refused();
    own();
    longer_is_dearer();
    return done_testing();
}
