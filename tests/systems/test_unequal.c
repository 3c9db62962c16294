/* test_unequal.c - groups of unlike devices: shares against all others, and the two clusters that
 * shares are for. */
#include <stdlib.h>
#include <string.h>

#include "sizes.h"
#include "tap.h"
#include "topt_json.h"
#include "topt_plan.h"
#include "topt_text.h"
#include "topt_unequal.h"

static struct topt_model *gpt(int width, int layers, int64_t batch, int64_t seq)
{
    char path[] = "/tmp/topt-unequal-XXXXXX", text[256];
    struct topt_error err = {0};
    struct topt_import_options o = {.batch = batch, .seq = seq};
    struct topt_model *m = NULL;
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        return NULL;
    snprintf(text, sizeof text,
             "{\"model_type\":\"gpt2\",\"n_embd\":%d,\"n_layer\":%d,\"n_head\":%d,"
             "\"n_positions\":2048,\"vocab_size\":50257}",
             width, layers, width / 128);
    fputs(text, f);
    if (!fclose(f))
        m = topt_model_load(path, &o, &err);
    remove(path);
    if (!m)
        printf("# %s\n", err.text);
    return m;
}

static json_t *ask_in(const struct topt_model *m, const struct topt_hw *hw,
                      const char *framework, const char *precision,
                      struct topt_error *err)
{
    struct topt_request r;
    json_t *answer = NULL;
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    r.threads = 1;
    struct topt_query w = {0};
    strcpy(w.framework, framework ? framework : "");
    strcpy(w.precision, precision ? precision : "");
    if (topt_request_read(&w, &r, NULL, err) || topt_request_complete(&r, err))
        return NULL;
    return topt_plan_unequal(&r, &answer, err) ? NULL : answer;
}

static json_t *ask(const struct topt_model *m, const struct topt_hw *hw,
                   const char *framework, struct topt_error *err)
{
    return ask_in(m, hw, framework, NULL, err);
}

static int64_t whole(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static double real(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static const json_t *group(const json_t *answer, size_t i)
{
    return json_array_get(json_object_get(answer, "groups"), i);
}

/* What holds of every answer: all rows, all of the state, within memory, and the time of the
 * slowest with what is exchanged. */
static void sane(const json_t *answer, int64_t batch)
{
    int64_t rows = 0, slowest = 0;
    int fits = 1,
        over = !strcmp(json_string_value(json_object_get(answer, "state")), "sharded");
    double state = 0;
    for (size_t i = 0; group(answer, i); i++) {
        const json_t *g = group(answer, i);
        rows += whole(g, "rows");
        state += real(g, "state_share");
        fits &= whole(g, "memory_bytes") <= whole(g, "memory_limit");
        slowest = whole(g, "time_ns") > slowest ? whole(g, "time_ns") : slowest;
    }
    is_int(rows, batch, "all rows are given");
    ok(!over || (state > 1 - 1e-9 && state < 1 + 1e-9), "all of the state is somewhere");
    ok(fits, "every group is within its memory");
    is_int(whole(answer, "time_ns"), slowest + whole(answer, "exchange_ns"),
           "a step is the slowest group's, and what is exchanged");
}

/* 8 A100 and 8 V100 over 100 Gb/s, a GPT of 1.3 B parameters: with gradients in 16 bits, and in 32
 * bits where the batch is large enough to hide most of what travels between groups, or where the
 * optimizer's state is sharded over all devices, so that parameters come back in 16 bits. */
static void by_speed(int64_t batch, const char *framework, const char *precision)
{
    struct topt_error err = {0};
    struct topt_model *m = gpt(2048, 24, batch, 2048);
    struct topt_hw *hw = topt_hw_load("a100-v100", &err);
    json_t *a = m && hw ? ask_in(m, hw, framework, precision, &err) : NULL;
    if (ok(a && json_is_true(json_object_get(a, "feasible")), "it fits %s", err.text)) {
        double rates = 0;
        sane(a, batch);
        for (size_t i = 0; group(a, i); i++)
            rates += 1 / real(group(a, i), "alone_ns");
        double over = real(a, "time_ns") * rates;
        double equal = real(json_object_get(a, "equal"), "time_ns") / real(a, "time_ns");
        /* Products are dearer an operation where a group has few rows, and an embedding's gradient is as large. */
        ok(over <= 1.07,
           "%lld samples in %s: a step takes %.3f of what the sum of rates gives",
           (long long)batch, precision, over);
        ok(equal >= 1.6, "equal shares take %.2f times as long", equal);
    }
    json_decref(a);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

/* 40 and 80 GB: the state of 42 B parameters has 39 GiB on each of 16 devices. */
static void by_memory(void)
{
    struct topt_error err = {0};
    struct topt_model *m = gpt(8192, 52, 32, 2048);
    struct topt_hw *hw = topt_hw_load("a100-40-80", &err);
    json_t *a = m && hw ? ask(m, hw, "pytorch", &err) : NULL;
    if (ok(a && json_is_true(json_object_get(a, "feasible")), "it fits %s", err.text)) {
        sane(a, 32);
        ok(json_is_false(json_object_get(json_object_get(a, "equal"), "feasible")),
           "equal shares do not");
        ok(real(group(a, 0), "state_share") > real(group(a, 1), "state_share"),
           "devices with more memory hold more of the state");
        ok(json_object_get(json_object_get(json_object_get(a, "plan"), "mesh"),
                           "state_shares") != NULL,
           "and one plan for all ranks says so");
    }
    json_decref(a);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

/* A profile of two groups of CPU ranks; the second is so many times slower. */
static struct topt_hw *two(double slower, struct topt_error *err)
{
    json_t *doc = json_object(), *groups = json_array(), *g;
    struct topt_hw *lab = topt_hw_load("lab-cpu", err);
    json_object_set_new(doc, "format", json_string("topt-hw/1"));
    json_object_set_new(doc, "name", json_string("two"));
    json_object_set_new(doc, "groups", groups);
    json_object_set_new(doc, "between",
                        json_pack("{s:f, s:i, s:s}", "bytes_per_second", 1e10,
                                  "latency_ns", 1000, "source", "s"));
    for (int i = 0; i < 2; i++) {
        g = topt_hw_to_json(lab);
        json_object_set_new(g, "name", json_string(i ? "b" : "a"));
        json_object_set_new(g, "nodes", json_integer(1));
        json_t *device = json_object_get(g, "device");
        json_object_del(device, "shared_cores");
        json_object_set_new(device, "flops",
                            json_pack("{s:f}", "f32", i ? 4e10 / slower : 4e10));
        json_array_append_new(groups, g);
    }
    topt_hw_destroy(lab);
    struct topt_hw *hw = topt_hw_from_json(doc, err);
    json_decref(doc);
    return hw;
}

/* The best of all rows in units of 4, by the questions about each group. */
static int64_t all_rows(const struct topt_model *m, const struct topt_hw *hw,
                        int64_t exchange)
{
    int64_t best = INT64_MAX;
    for (int64_t rows = 4; rows < m->batch; rows += 4) {
        int64_t slowest = 0;
        for (int i = 0; i < 2; i++) {
            struct topt_error err = {0};
            struct topt_request r;
            json_t *a = NULL;
            struct topt_model *part =
                topt_model_rebatch(m, i ? m->batch - rows : rows, &err);
            topt_request_init(&r);
            r.model = part;
            r.hw = topt_hw_group(hw, i);
            r.threads = 1;
            r.mode = TOPT_MINI_TIME;
            r.gpus = 4;
            if (topt_framework_find("pytorch", &r.framework, &err) ||
                topt_request_complete(&r, &err) || topt_plan(&r, &a, &err) ||
                !json_is_true(json_object_get(a, "feasible")))
                slowest = INT64_MAX / 2;
            else if (whole(a, "time_ns") > slowest)
                slowest = whole(a, "time_ns");
            json_decref(a);
            topt_model_destroy(part);
        }
        best = slowest + exchange < best ? slowest + exchange : best;
    }
    return best;
}

static void against_all(void)
{
    static const double slower[] = {1, 2, 3.3};
    for (int i = 0; i < TOPT_TEST_SIZE_FROM(3, 2); i++) {
        struct topt_error err = {0};
        struct topt_model *m = gpt(128, 2, 48, 64);
        struct topt_hw *hw = two(slower[i], &err);
        json_t *a = m && hw ? ask(m, hw, "pytorch", &err) : NULL;
        if (ok(a && json_is_true(json_object_get(a, "feasible")), "%.1f times slower %s",
               slower[i], err.text)) {
            sane(a, 48);
            int64_t best = all_rows(m, hw, whole(a, "exchange_ns"));
            ok(real(a, "time_ns") <= 1.01 * (double)best,
               "%lld rows of 48: no others are faster by 1 %%",
               (long long)whole(group(a, 0), "rows"));
            ok(i ||
                   (whole(group(a, 0), "rows") == 24 &&
                    whole(a, "time_ns") <= whole(json_object_get(a, "equal"), "time_ns")),
               "groups that are alike take halves");
        }
        json_decref(a);
        topt_hw_destroy(hw);
        topt_model_destroy(m);
    }
}

/* ---- what a strategy takes on each group ---------------------------------------------- */

/* A plan of equal devices for 48 samples, data parallel without sharding: rows are all that the
 * first axis splits. */
static struct topt_plan_doc *equal_plan(const struct topt_model *m,
                                        const struct topt_hw *hw, struct topt_error *err)
{
    struct topt_request r;
    struct topt_framework ddp = *topt_framework_at(0);
    struct topt_plan_doc *p = NULL;
    json_t *a = NULL;
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    r.threads = 1;
    r.mode = TOPT_MINI_TIME;
    r.gpus = 8;
    ddp.zero = 1 << TOPT_ZERO_NONE;
    r.framework = &ddp;
    if (topt_request_complete(&r, err) || topt_plan(&r, &a, err) ||
        topt_plan_read(json_object_get(a, "plan"), &p, err))
        p = NULL;
    json_decref(a);
    return p;
}

/* Its cost for so many samples, on equal shares of a cluster as a group sees it. */
static int64_t alone_ns(const struct topt_plan_doc *p, const struct topt_hw *hw,
                        int group, int64_t batch, struct topt_error *err)
{
    struct topt_strategy_cost c = {.time_ns = -1};
    struct topt_model *m = topt_model_rebatch(p->micro, batch, err);
    struct topt_hw *own = topt_hw_among(hw, group, err);
    struct topt_router *router = own ? topt_router_create(own, &p->mesh) : NULL;
    struct topt_costing k = {m, own, &p->mesh, &p->settings, router, NULL};
    if (!m || !router || topt_cost_strategy(&k, p->strategy, &c, err))
        c.time_ns = -1;
    topt_router_destroy(router);
    topt_hw_destroy(own);
    topt_model_destroy(m);
    return c.time_ns;
}

/* With 36 and 12 of 48 rows a group takes what equal groups of its kind take for 72 and 24. */
static void costs_of_groups(void)
{
    static const int64_t shares[][2] = {{1, 1}, {3, 1}};
    struct topt_error err = {0};
    struct topt_model *m = gpt(128, 2, 48, 64);
    struct topt_hw *hw = two(2.5, &err);
    struct topt_plan_doc *p = m && hw ? equal_plan(m, hw, &err) : NULL;
    if (!ok(p && p->settings.micro_batches == 1 && p->mesh.size[0] == 2, "a plan %s",
            err.text))
        return;
    for (int i = 0; i < 2; i++) {
        struct topt_mesh mesh = p->mesh;
        struct topt_group_costs g;
        struct topt_costing k = {p->micro, hw, &mesh, &p->settings, p->router, NULL};
        int64_t sum = shares[i][0] + shares[i][1];
        if (!ok(!topt_mesh_shares(&mesh, shares[i], 2, &err) &&
                    !topt_cost_groups(&k, p->strategy, &g, &err),
                "costs of groups %s", err.text))
            continue;
        for (int x = 0; x < 2; x++)
            is_int(g.of[x].time_ns, alone_ns(p, hw, x, 2 * 48 * shares[i][x] / sum, &err),
                   "a group's time is that of as many rows on devices of its kind");
        is_int(g.slowest, i ? g.of[1].time_ns > g.of[0].time_ns : 1, "the slowest");
    }
    topt_plan_doc_destroy(p);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

/* A first axis that is no prime number, and devices of a group that are meant. */
static void parts(void)
{
    struct topt_error err = {0};
    struct topt_mesh m;
    ok(!topt_mesh_init_parts(&m, 4, 8, 2, &err) && m.naxes == 3 && m.size[0] == 4 &&
           m.size[1] == 2 && m.node_axes == 2 && m.devices == 16,
       "8 nodes in 4 parts");
    ok(!topt_mesh_init_parts(&m, 9, 1, 9, &err) && m.naxes == 1 && m.size[0] == 9 &&
           !m.node_axes && topt_mesh_coord(&m, 7, 0) == 7,
       "9 devices of one node in 9");
    ok(topt_mesh_init_parts(&m, 3, 4, 2, &err) && strstr(err.text, "4 nodes are not 3"),
       "%s", err.text);
    struct topt_hw *hw = two(2, &err);
    for (int gpus = 2; gpus <= 5; gpus += 3) {
        json_t *doc = topt_hw_to_json(hw);
        json_object_set_new(json_array_get(json_object_get(doc, "groups"), 1), "gpus",
                            json_integer(gpus));
        json_object_del(doc, "nodes");
        json_object_del(doc, "gpus_per_node");
        json_object_del(doc, "device");
        struct topt_hw *some = topt_hw_from_json(doc, &err);
        ok(gpus == 5 ? !some && strstr(err.text, "groups[1].gpus") != NULL
                     : some && topt_hw_group_devices(some, 1) == 2 &&
                           topt_hw_max_nodes(some) == 3,
           "%d of a group of 4: %s", gpus, gpus == 5 ? err.text : "3 nodes of 2");
        topt_hw_destroy(some);
        json_decref(doc);
    }
    topt_hw_destroy(hw);
}

static void refused(void)
{
    struct topt_error err = {0};
    struct topt_model *m = gpt(128, 2, 48, 64);
    struct topt_hw *hw = two(2, &err);
    struct topt_request r;
    json_t *a = NULL;
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    r.gpus = 4;
    ok(m && hw && topt_plan_unequal(&r, &a, &err) && strstr(err.text, "--gpus 8"), "%s",
       err.text);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

int main(void)
{
    if (TOPT_TEST_PART == 1) { /* numbers; smaller searches below run the same code */
        by_speed(512, "pytorch", "bf16");
        by_speed(512, "megatron", "bf16-mixed");
    }
    by_memory();
    against_all();
    costs_of_groups();
    parts();
    refused();
    return done_testing();
}
