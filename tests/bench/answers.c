/* answers.c - exact answers to random questions, a line each, to be held against another program's.
 *
 *     answers [--seeds N] [--from SEED] [--models | --graphs] [--time] >answers.txt
 *
 * Of each seed (300, from 1) a random model on a random cluster in a random space, and a
 * random bare problem: the frontier, the fastest within a limit, the fewest devices.  A
 * line has the seed, what was asked, whether the answer is said to be exact, and the
 * memory and time of every point.  It asks through topt_plan.h and topt_search.h alone, so
 * that the same file builds against programs whose insides differ; then the lines of both
 * have to be the same.  Only "rough" lines, which claim no exactness, may differ.  --time
 * says on standard error which questions take more than 0.2 s. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../solver/random_model.h"
#include "instances.h"
#include "topt_plan.h"
#include "../search/random_problem.h"

static int timed;
static double begun;

static double processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The beginning of a line. */
static void begin(const char *kind, uint64_t seed, const char *of, const char *what)
{
    printf("%s %" PRIu64 " %s %s ", kind, seed, of, what);
    fflush(stdout);
    begun = processor();
}

static void end(uint64_t seed, const char *what)
{
    double took = processor() - begun;
    putchar('\n');
    if (timed && took > 0.2)
        fprintf(stderr, "seed %" PRIu64 ", %s: %.2f s\n", seed, what, took);
}

/* ---- models ------------------------------------------------------------------------ */

static const struct cluster {
    int nodes, per_node;
    enum topt_space most; /* the largest space that is asked of it */
} clusters[] = {
    {1, 1, TOPT_SPACE_FULL},      {1, 2, TOPT_SPACE_FULL},
    {1, 3, TOPT_SPACE_FULL},      {1, 4, TOPT_SPACE_FULL},
    {2, 2, TOPT_SPACE_FULL},      {1, 6, TOPT_SPACE_FULL},
    {2, 3, TOPT_SPACE_FULL},      {1, 8, TOPT_SPACE_FULL},
    {2, 4, TOPT_SPACE_FULL},      {4, 2, TOPT_SPACE_FULL},
    {3, 4, TOPT_SPACE_CANONICAL}, {2, 8, TOPT_SPACE_FULL},
    {4, 4, TOPT_SPACE_CANONICAL}, {2, 16, TOPT_SPACE_CANONICAL},
    {4, 8, TOPT_SPACE_CANONICAL}, {8, 8, TOPT_SPACE_CANONICAL},
};
enum {
    NCLUSTERS = sizeof clusters / sizeof *clusters,
    FROM_LARGE = 11,
    FROM_MANY = 13,
    FEW_OPERATORS = 6
};

static struct topt_hw *random_cluster(const struct cluster *c, uint64_t *seed)
{
    char text[1200];
    snprintf(
        text, sizeof text,
        "{\"format\":\"topt-hw/1\",\"name\":\"random\",\"nodes\":%d,\"gpus_per_node\":%d,"
        "\"device\":{\"name\":\"d\",\"memory_bytes\":100000000000,\"reserve_bytes\":0,"
        "\"flops\":{\"f32\":1e%d},\"efficiency\":{\"matmul\":0.5,\"attention\":0.5,"
        "\"elementwise\":1},\"memory_bandwidth\":1e10,\"launch_ns\":100,\"source\":\"x\"}"
        ",\"links\":[{\"level\":\"node\",\"bytes_per_second\":%de6,\"latency_ns\":%d,"
        "\"source\":\"x\"},{\"level\":\"cluster\",\"bytes_per_second\":%de6,"
        "\"latency_ns\":5000,\"source\":\"x\"}],"
        "\"collective\":{\"launch_ns\":10,\"source\":\"x\"},\"curves\":[]}",
        c->nodes, c->per_node, 9 + random_below(seed, 4), 100 + random_below(seed, 5000),
        random_below(seed, 2000), 10 + random_below(seed, 500));
    json_t *doc = json_loads(text, 0, NULL);
    struct topt_hw *hw = doc ? topt_hw_from_json(doc, NULL) : NULL;
    json_decref(doc);
    return hw;
}

/* A small transformer, whose dimensions many devices can share. */
static struct topt_model *transformer(uint64_t *seed, int most_layers)
{
    struct topt_import_options o = {.batch = 16 << random_below(seed, 3),
                                    .seq = 16 << random_below(seed, 3)};
    int width = 32 << random_below(seed, 3), layers = 1 + random_below(seed, most_layers),
        vocabulary = 256 << random_below(seed, 3);
    char text[600];
    if (random_below(seed, 2))
        snprintf(text, sizeof text,
                 "{\"model_type\":\"gpt2\",\"n_layer\":%d,\"n_embd\":%d,\"n_head\":4,"
                 "\"n_positions\":512,\"vocab_size\":%d}",
                 layers, width, vocabulary);
    else
        snprintf(text, sizeof text,
                 "{\"model_type\":\"llama\",\"hidden_size\":%d,\"intermediate_size\":%d,"
                 "\"num_attention_heads\":8,\"num_hidden_layers\":%d,"
                 "\"num_key_value_heads\":4,\"hidden_act\":\"silu\","
                 "\"max_position_embeddings\":512,\"vocab_size\":%d}",
                 width, 3 * width, layers, vocabulary);
    return topt_model_import(text, strlen(text), "random", &o, NULL);
}

static struct topt_model *any_model(uint64_t seed, int cluster, uint64_t *s)
{
    if (random_below(s, 4) == 0)
        return transformer(s, cluster >= FROM_LARGE ? 1 : 2);
    if (cluster >= FROM_LARGE)
        return random_model(seed, 1 + random_below(s, 3));
    return random_below(s, 2)
               ? block_model(seed, 2 + random_below(s, 3), 1 + random_below(s, 4))
               : random_model(seed, 1 + random_below(s, 6));
}

struct question {
    struct topt_request r;
    struct topt_hw *hw;
    struct topt_model *model;
    int64_t devices;
    int frontiers; /* whole ones are asked, too: they take long on many devices */
    char words[80];
};

static void forget(struct question *q)
{
    topt_model_destroy(q->model);
    topt_hw_destroy(q->hw);
}

/* -1 where nothing can be asked of these. */
static int any_question(uint64_t seed, struct question *q)
{
    static const char *const blocks[] = {"auto", "auto", "free", "alike"};
    static const char *const factors[] = {
        "auto", "none", "zero", "zero,micro", "recompute", "zero,recompute", "all"};
    uint64_t s = seed * 104729;
    int at = random_below(&s, NCLUSTERS), tensor = random_below(&s, 2),
        obeys = random_below(&s, 5) > 0;
    const struct cluster *c = &clusters[at];
    struct topt_query words = {.tensor_parallel = tensor, .counts = "whole"};
    strcpy(words.framework, obeys ? "topt" : "pytorch");
    strcpy(words.blocks, blocks[random_below(&s, 4)]);
    strcpy(words.factors, factors[random_below(&s, 7)]);
    *q = (struct question){.devices = (int64_t)c->nodes * c->per_node};
    topt_request_init(&q->r);
    q->hw = random_cluster(c, &s);
    q->model = any_model(seed, at, &s);
    q->r.hw = q->hw;
    q->r.model = q->model;
    q->r.settings.granule_bytes = random_below(&s, 3) ? 64 : 1;
    if (!q->hw || !q->model || topt_request_read(&words, &q->r, NULL, NULL))
        return -1;
    int recomputes = q->r.factors & TOPT_FACTOR_RECOMPUTE;
    q->frontiers = at < FROM_LARGE ||
                   (q->model->nops < FEW_OPERATORS && (at < FROM_MANY || !recomputes));
    q->r.space = TOPT_SPACE_UNIFORM;
    if (obeys)
        q->r.space = (enum topt_space)(TOPT_SPACE_FULL + random_below(&s, 3));
    if (q->r.space < c->most)
        q->r.space = c->most;
    snprintf(q->words, sizeof q->words, "%s-%dx%d-%s-%s-%s", words.framework, c->nodes,
             c->per_node, topt_space_name(q->r.space), words.blocks, words.factors);
    return topt_request_complete(&q->r, NULL);
}

/* Where nothing fits there is no claim of exactness. */
static void print_claim(const json_t *a)
{
    const json_t *fits = json_object_get(a, "feasible"),
                 *exact = json_object_get(a, "exact");
    printf("%s %s", json_is_false(exact) ? "rough" : "exact",
           json_is_true(fits)    ? "fits"
           : json_is_false(fits) ? "none"
                                 : "open");
}

static void print_point(const json_t *p)
{
    printf(" %" JSON_INTEGER_FORMAT ":%" JSON_INTEGER_FORMAT,
           json_integer_value(json_object_get(p, "memory_bytes")),
           json_integer_value(json_object_get(p, "time_ns")));
}

/* A plan's devices and costs, or what comes nearest; its memory, 0 where there is none. */
static int64_t ask_plan(const struct question *q, uint64_t seed, const char *what,
                        enum topt_mode mode, int64_t limit)
{
    struct topt_request r = q->r;
    struct topt_error err = {0};
    json_t *a = NULL;
    int64_t memory = 0;
    r.mode = mode;
    r.gpus = mode == TOPT_MINI_TIME ? q->devices : 0;
    r.memory_limit = limit;
    begin("model", seed, q->words, what);
    if (topt_plan(&r, &a, &err)) {
        printf("error %d", err.code);
    } else {
        const json_t *nearest = json_object_get(a, "nearest"),
                     *of = nearest ? nearest : a;
        print_claim(a);
        printf(" on %" JSON_INTEGER_FORMAT,
               json_integer_value(json_object_get(of, "gpus")));
        print_point(of);
        memory = json_integer_value(json_object_get(of, "memory_bytes"));
    }
    end(seed, what);
    json_decref(a);
    return memory;
}

/* Least and most memory of the frontier; 0 where there is none. */
static void ask_frontier(const struct question *q, uint64_t seed, const char *what,
                         int64_t limit, int64_t memory[2])
{
    struct topt_request r = q->r;
    struct topt_error err = {0};
    json_t *a = NULL;
    r.gpus = q->devices;
    r.memory_limit = limit;
    memory[0] = memory[1] = 0;
    begin("model", seed, q->words, what);
    if (topt_plan_frontier(&r, &a, &err)) {
        printf("error %d", err.code);
    } else {
        const json_t *points = json_object_get(a, "points"), *p = NULL;
        print_claim(a);
        for (size_t i = 0; i < json_array_size(points); i++) {
            p = json_array_get(points, i);
            memory[1] = json_integer_value(json_object_get(p, "memory_bytes"));
            if (i == 0)
                memory[0] = memory[1];
            print_point(p);
        }
    }
    end(seed, what);
    json_decref(a);
}

/* The frontier, and each question without a limit and within one that lies beside or
 * among its points. */
static void ask_model(uint64_t seed)
{
    struct question q;
    uint64_t s = seed * 31;
    if (any_question(seed, &q)) {
        printf("model %" PRIu64 " %s not asked\n", seed, q.words);
        forget(&q);
        return;
    }
    int64_t fastest = ask_plan(&q, seed, "fastest", TOPT_MINI_TIME, 0);
    int64_t memory[2] = {fastest * 3 / 4, fastest}, none[2];
    if (q.frontiers)
        ask_frontier(&q, seed, "frontier", 0, memory);
    int64_t least = memory[0] * 97 / 100;
    int64_t limit = least + (memory[1] - least) * random_below(&s, 101) / 100;
    if (q.frontiers && limit > 0)
        ask_frontier(&q, seed, "frontier-within", limit, none);
    if (limit > 0) {
        ask_plan(&q, seed, "fastest-within", TOPT_MINI_TIME, limit);
        ask_plan(&q, seed, "fewest-within", TOPT_MINI_PARALLELISM, limit);
    }
    forget(&q);
}

/* ---- bare problems ----------------------------------------------------------------- */

static void print_frontier(const struct topt_frontier *f)
{
    printf("%s", f->exact ? "exact" : "rough");
    for (int i = 0; i < f->npoints; i++)
        printf(" %" PRId64 ":%" PRId64, f->cost[i].memory, f->cost[i].time);
}

/* The frontier stays with the caller; NULL where it failed. */
static struct topt_frontier *search(const struct topt_search_problem *p, uint64_t seed,
                                    const char *of, const char *what,
                                    struct topt_search_options o)
{
    struct topt_frontier *f = NULL;
    struct topt_error err = {0};
    begin("graph", seed, of, what);
    if (topt_search(p, &o, &f, &err)) {
        printf("error %d", err.code);
        f = NULL;
    } else {
        print_frontier(f);
    }
    end(seed, what);
    return f;
}

static void ask_graph(const struct topt_search_problem *p, uint64_t seed, const char *of,
                      uint64_t *s)
{
    struct topt_search_options o = {.threads = 1};
    struct topt_frontier *f = search(p, seed, of, "frontier", o);
    topt_frontier_destroy(
        search(p, seed, of, "fastest", (struct topt_search_options){.fastest = 1}));
    if (f && f->npoints) {
        struct topt_cost least = f->cost[0], most = f->cost[f->npoints - 1];
        o.memory_limit =
            1 + least.memory + (most.memory - least.memory) * random_below(s, 101) / 100;
        topt_frontier_destroy(search(p, seed, of, "frontier-within", o));
        o.fastest = 1;
        topt_frontier_destroy(search(p, seed, of, "fastest-within", o));
        o.time_limit =
            1 + most.time + (least.time - most.time) * random_below(s, 101) / 100;
        topt_frontier_destroy(search(p, seed, of, "fastest-in-time", o));
        o.fastest = 0;
        o.memory_limit = 0;
        topt_frontier_destroy(search(p, seed, of, "frontier-in-time", o));
    }
    topt_frontier_destroy(f);
}

/* Up to 14 operators in any shape, blocks of up to 60. */
static void ask_small(uint64_t seed, uint64_t *s)
{
    static const int64_t most[] = {3, 40, 1000, 1000000};
    struct rng rng = {seed};
    struct random_problem g;
    struct random_spec spec = {.shape = (enum shape)random_below(s, SHAPES),
                               .max_configs = 1 + random_below(s, 6),
                               .max_alternatives = 1 + random_below(s, 3),
                               .max_cost = most[random_below(s, 4)],
                               .empty_percent = random_below(s, 3) * 10,
                               .classes_percent = random_below(s, 3) * 50};
    spec.nops = 1 + random_below(s, 14);
    if (spec.shape == SHAPE_BLOCKS)
        spec.nops = 4 + 3 * random_below(s, 19);
    if (spec.shape == SHAPE_DENSE && spec.nops > 6)
        spec.nops = 6;
    char of[40];
    snprintf(of, sizeof of, "small-%d-%d", (int)spec.shape, spec.nops);
    problem_make(&g, &rng, spec);
    ask_graph(&g.p, seed, of, s);
    problem_free(&g);
}

/* Layers of up to 120 operators, most of them alike. */
static void ask_layers(uint64_t seed, uint64_t *s)
{
    static const struct {
        const char *name;
        int per_layer;
    } shape[] = {{"residual", 7}, {"forkjoin", 5}, {"chain", 1}, {"residual", 7}};
    int k = random_below(s, 4), most = 120 / shape[k].per_layer;
    struct instance_spec spec = {.shape = shape[k].name,
                                 .costs = random_below(s, 2) ? "split" : "random",
                                 .size = 2 + random_below(s, most - 1),
                                 .configs = 3 + random_below(s, 6),
                                 .range = random_below(s, 2) ? 100 : 2000,
                                 .alike = random_below(s, 4) > 0,
                                 .seed = seed};
    char of[60];
    snprintf(of, sizeof of, "%s-%d-%d", spec.shape, spec.size * shape[k].per_layer,
             spec.configs);
    struct instance *in = instance_make(&spec);
    if (in)
        ask_graph(instance_problem(in), seed, of, s);
    instance_free(in);
}

int main(int argc, char **argv)
{
    uint64_t from = 1, seeds = 300;
    int models = 1, graphs = 1;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--seeds") && i + 1 < argc)
            seeds = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--from") && i + 1 < argc)
            from = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--models"))
            graphs = 0;
        else if (!strcmp(argv[i], "--graphs"))
            models = 0;
        else if (!strcmp(argv[i], "--time"))
            timed = 1;
        else
            return fprintf(stderr, "usage: answers [--seeds N] [--from SEED] [--models | "
                                   "--graphs] [--time]\n"),
                   2;
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        uint64_t s = seed * 7919;
        if (models)
            ask_model(seed);
        if (graphs && seed % 2 == 0)
            ask_layers(seed, &s);
        else if (graphs)
            ask_small(seed, &s);
    }
    return 0;
}
