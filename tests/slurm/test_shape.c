/* test_shape.c - Slurm's words for nodes and GPUs, and plans held against them. */
#include <string.h>

#include "shape.h"
#include "tap.h"

static void nodes(const char *text, int64_t want)
{
    int64_t n = -1;
    int rc = topt_shape_nodes(text, &n, NULL);
    is_int(rc ? -1 : n, want, "-N '%s'", text);
}

static void gpus(const char *text, int64_t want, const char *want_type)
{
    int64_t n = -1;
    char type[64] = "?";
    int rc = topt_shape_gpus(text, &n, type, NULL);
    is_int(rc ? -1 : n, want, "GPUs '%s'", text);
    ok(rc || strcmp(type, want_type) == 0, "its type '%s'", type);
}

static void gres(const char *text, int64_t want, const char *want_others)
{
    int64_t n = -1;
    char type[64];
    struct topt_text others = {0};
    int rc = topt_shape_gres(text, &n, type, &others, NULL);
    is_int(rc ? -1 : n, want, "--gres '%s'", text);
    ok(rc || strcmp(others.s ? others.s : "", want_others) == 0, "leaves '%s'",
       others.s ? others.s : "");
    topt_text_fini(&others);
}

static void tres(const char *text, int64_t want, const char *want_others)
{
    int64_t n = -1;
    char type[64];
    struct topt_text others = {0};
    int rc = topt_shape_tres(text, &n, type, &others, NULL);
    is_int(rc ? -1 : n, want, "--tres-per-task '%s'", text);
    ok(rc || strcmp(others.s ? others.s : "", want_others) == 0, "leaves '%s'",
       others.s ? others.s : "");
    topt_text_fini(&others);
}

static void test_words(void)
{
    nodes("1", 1);
    nodes("2-2", 2);
    nodes("1-4", 4);
    nodes("3-", 3);
    nodes("1,2,4", 4);
    nodes("", -1);
    nodes("x", -1);
    nodes("0", -1);
    nodes("2k", -1);
    nodes("-3", -1);
    gpus("4", 4, "");
    gpus("a100:4", 4, "a100");
    gpus("gpu:4", 4, "");
    gpus("gpu", 1, "");
    gpus("gpu:a100:2", 2, "a100");
    gpus("gres:gpu:h100:8", 8, "h100");
    gpus("gres/gpu:8", 8, "");
    gpus("gpu:a100", 1, "a100");
    gpus("a100:2,v100:2", -1, "");
    gpus("a:b:2", -1, "");
    gpus("-1", -1, "");
    gres("gpu:2", 2, "");
    gres("gpu:a100:2,fs:1", 2, "fs:1");
    gres("fs:1,license:3", 0, "fs:1,license:3");
    gres("shard:1,gpu,nic:2", 1, "shard:1,nic:2");
    gres("gpu:a:1,gpu:b:1", -1, "");
    gres("gpux:3", 0, "gpux:3");
    tres("cpu=4", 0, "cpu=4");
    tres("cpu=4,gres/gpu=2", 2, "cpu=4");
    tres("cpu:4,gres/gpu:a100=2", 2, "cpu:4");
    tres("gres/gpu:a100:2", 2, "");
    tres("gres/gpu=-1", -1, "");
}

static int64_t bound(const char *mode, const char *gpus_wish, const char *max_wish,
                     struct topt_bounds b)
{
    struct topt_ask ask = {0};
    int64_t ret = -2;
    if (topt_ask_set(&ask, TOPT_ASK_MODE, mode) ||
        (gpus_wish && topt_ask_set(&ask, TOPT_ASK_GPUS, gpus_wish)) ||
        (max_wish && topt_ask_set(&ask, TOPT_ASK_MAX_GPUS, max_wish)))
        abort();
    topt_shape_settle(&ask, &b);
    if (topt_shape_bound(&ask, &b, &ret, NULL))
        ret = -1;
    topt_ask_fini(&ask);
    return ret;
}

static void test_bound(void)
{
    const struct topt_bounds none = {0};
    is_int(bound("mini-parallelism", NULL, NULL, none), 0, "no bound");
    is_int(bound("mini-parallelism", NULL, "8", none), 8, "--topt-max-gpus");
    is_int(bound("mini-parallelism", NULL, "8", (struct topt_bounds){.tasks = 4}), 4,
           "-n");
    is_int(bound("mini-parallelism", NULL, "2", (struct topt_bounds){.gpus = 4}), 2,
           "least");
    is_int(bound("mini-parallelism", NULL, NULL, (struct topt_bounds){.nodes = 2}), 0,
           "-N alone says no number");
    is_int(bound("mini-parallelism", NULL, NULL,
                 (struct topt_bounds){.nodes = 2, .gpus_per_node = 3}),
           6, "-N with GPUs per node");
    is_int(bound("mini-parallelism", NULL, NULL,
                 (struct topt_bounds){.nodes = 2, .tasks_per_node = 4, .gpus = 16}),
           8, "-N with tasks per node");
    is_int(bound("mini-parallelism", NULL, NULL, (struct topt_bounds){.tasks = 1}), 0,
           "-n 1 is said out of habit");
    is_int(
        bound("mini-parallelism", NULL, NULL,
              (struct topt_bounds){.nodes = 1, .gpus_per_node = 4, .tasks_per_node = 1}),
        4, "one task a node, as torchrun wants");
    is_int(
        bound("mini-parallelism", NULL, NULL,
              (struct topt_bounds){.tasks = 3, .gpus_per_node = 4, .tasks_per_node = 1}),
        12, "tasks are nodes then");
    is_int(bound("mini-parallelism", NULL, NULL,
                 (struct topt_bounds){.nodes = 2, .tasks = 2, .gpus_per_node = 4}),
           8, "as many tasks as nodes");
    is_int(bound("mini-parallelism", NULL, NULL,
                 (struct topt_bounds){.tasks = 2, .gpus_per_task = 4}),
           8, "--gpus-per-task");
    is_int(bound("mini-parallelism", NULL, NULL,
                 (struct topt_bounds){.tasks = 1, .gpus_per_task = 4}),
           4, "--gpus-per-task of one");
    is_int(bound("mini-parallelism", NULL, NULL,
                 (struct topt_bounds){.tasks = 8, .tasks_per_gpu = 2}),
           4, "--ntasks-per-gpu");
    is_int(bound("mini-time", NULL, NULL, none), -1, "mini-time needs a number");
    is_int(bound("mini-time", "4", NULL, none), 0, "its own");
    is_int(bound("mini-time", NULL, NULL, (struct topt_bounds){.gpus = 4}), 4,
           "or --gpus");
    is_int(bound("mini-time", "8", NULL, (struct topt_bounds){.gpus = 4}), -1,
           "not above it");
    is_int(bound("mini-time", "8", "4", none), -1, "nor above --topt-max-gpus");
}

static void fits(struct topt_bounds b, int want, const char *text)
{
    static const struct topt_answer plan = {.gpus = 8, .nodes = 2, .gpus_per_node = 4};
    struct topt_error err = {0};
    const struct topt_ask ask = {0};
    topt_shape_settle(&ask, &b);
    is_int(topt_shape_fits(&b, &plan, &err), want, "%s: %s", text, err.text);
}

static void test_fits(void)
{
    char words[160], tiny[8];
    const struct topt_bounds all = {
        .nodes = 2, .gpus = 8, .gpus_per_node = 4, .tasks = 8, .tasks_per_node = 4};
    fits((struct topt_bounds){0}, 0, "no options");
    fits(all, 0, "exactly");
    fits((struct topt_bounds){.nodes = 1}, -1, "nodes");
    fits((struct topt_bounds){.gpus = 7}, -1, "gpus");
    fits((struct topt_bounds){.gpus_per_node = 3}, -1, "gpus per node");
    fits((struct topt_bounds){.tasks = 7}, -1, "tasks");
    fits((struct topt_bounds){.tasks_per_node = 3}, -1, "tasks per node");
    fits((struct topt_bounds){.tasks_per_node = 1}, 0, "one task a node");
    fits((struct topt_bounds){.tasks_per_node = 1, .tasks = 2}, 0, "on so many");
    fits((struct topt_bounds){.tasks_per_node = 1, .tasks = 1}, 0, "-n 1");
    fits((struct topt_bounds){.tasks_per_node = 1, .tasks = 1, .nodes = 1}, -1, "-N 1");
    fits((struct topt_bounds){.tasks = 1, .gpus_per_task = 4}, -1, "GPUs of a task");
    fits((struct topt_bounds){.tasks = 8, .tasks_per_gpu = 1}, 0, "tasks of a GPU");
    fits((struct topt_bounds){.tasks = 8, .tasks_per_gpu = 2}, -1, "two tasks of a GPU");
    ok(strcmp(topt_shape_words(&all, words, sizeof words),
              "-N 2, --gpus=8, --gpus-per-node=4, -n 8, --ntasks-per-node=4") == 0,
       "in words: %s", words);
    ok(strlen(topt_shape_words(&all, tiny, sizeof tiny)) < sizeof tiny, "cut to fit");
}

int main(void)
{
    test_words();
    test_bound();
    test_fits();
    return done_testing();
}
