/* test_memo.c - answers from the memo of a problem, against those of a search.
 *
 * Of a random problem (model, cluster, framework, settings) random questions are asked (mode,
 * memory limit, maximum of GPUs, efficiency, counts, factors), one after the other from one memo.
 * Each must be answered by the same text as from a memo of its own, and once more without a
 * search. */
#include <stdlib.h>
#include <string.h>

#include "topt_json.h"
#include "topt_plan.h"
#include "random_hw.h"
#include "random_model.h"
#include "sizes.h"
#include "tap.h"

enum { PROBLEMS = TOPT_TEST_SIZE_FROM(64, 8), QUESTIONS = 24 };

/* ---- random problems ---------------------------------------------------------------- */

static const int64_t device_bytes[] = {2000, 6000, 20000, 60000, 200000, 1000000000};

/* A small one of a family that people train, adapters too. */
static struct topt_model *make_llama(uint64_t *seed)
{
    struct topt_import_options o = {.batch = 8 << random_below(seed, 3), .seq = 16};
    struct topt_error err = {0};
    char text[400];
    snprintf(text, sizeof text,
             "{\"model_type\":\"llama\",\"hidden_size\":32,\"num_hidden_layers\":%d,"
             "\"num_attention_heads\":4,\"num_key_value_heads\":%d,"
             "\"intermediate_size\":%d,\"vocab_size\":64,\"hidden_act\":\"silu\","
             "\"max_position_embeddings\":64,\"tie_word_embeddings\":%s}",
             1 + random_below(seed, 4), 2 << random_below(seed, 2),
             64 + 8 * random_below(seed, 9), random_below(seed, 2) ? "true" : "false");
    struct topt_model *m = topt_model_import(text, strlen(text), "llama", &o, &err);
    if (!m)
        printf("# %s\n", err.text);
    return m;
}

/* For the small random models, or for larger ones. */
static struct topt_hw *make_cluster(uint64_t *seed, int larger)
{
    static const int sizes[][2] = {{1, 4}, {2, 4}, {4, 2}, {3, 2}, {2, 6}, {1, 8}};
    const int *size = sizes[random_below(seed, 6)];
    struct made_up c = {.nodes = size[0], .per_node = size[1], .cluster_ns = 900};
    c.cluster_mb = 10 + random_below(seed, 500);
    c.node_ns = random_below(seed, 5000);
    c.node_mb = 100 + random_below(seed, 5000);
    c.memory = (long long)device_bytes[random_below(seed, 6)] * larger;
    return made_up_cluster(&c);
}

/* A problem; whoever asks destroys model and cluster. */
static int make_problem(uint64_t number, struct topt_request *r)
{
    static const char *const frameworks[] = {"pytorch",    "deepspeed", "megatron",
                                             "torchtitan", "primus",    "topt"};
    static const char *const counts[] = {"whole", "pow2", "any", "nodes"};
    uint64_t seed = number * 104729 + 17;
    struct topt_error err = {0};
    const char *field;
    struct topt_query w = {.mode = "mini-parallelism", .space = "uniform"};
    strcpy(w.precision, number % 3 ? "f32" : "");
    strcpy(w.framework, frameworks[random_below(&seed, 6)]);
    strcpy(w.counts, counts[random_below(&seed, 4)]);
    w.tensor_parallel = random_below(&seed, 3) == 0;
    topt_request_init(r);
    r->model = number % 4 < 2    ? make_llama(&seed)
               : number % 4 == 2 ? block_model(number, 2, 1 + random_below(&seed, 2))
                                 : random_model(number, 1 + random_below(&seed, 4));
    r->hw = make_cluster(&seed, number % 4 < 2 ? 40 : 1);
    if (topt_request_read(&w, r, &field, &err)) {
        printf("# %s\n", err.text);
        return 0;
    }
    r->tensor_parallel = r->tensor_parallel && number % 4 < 2; /* with roles */
    r->settings.granule_bytes = 1 + 63 * random_below(&seed, 2);
    r->threads = 1 + random_below(&seed, 2);
    if (random_below(&seed, 4) == 0)
        r->factors = random_below(&seed, 8);
    if (r->model && r->hw && !topt_request_complete(r, &err))
        return 1;
    printf("# %s\n", err.text);
    return 0;
}

static void fini_problem(struct topt_request *r)
{
    topt_model_destroy((struct topt_model *)r->model);
    topt_hw_destroy((struct topt_hw *)r->hw);
}

/* ---- random questions ---------------------------------------------------------------- */

/* Limits from what hardly anything fits in to all that the device has. */
static int64_t random_limit(uint64_t *seed, const struct topt_hw *hw)
{
    int64_t all = topt_hw_memory_bytes(hw), limit = all;
    for (int i = random_below(seed, 24); i > 0; i--)
        limit = limit * (50 + random_below(seed, 50)) / 100;
    return random_below(seed, 4) ? (limit ? limit : 1) : 0;
}

/* The maximum, and where it is so some of the counts. */
static void ask_counts(uint64_t *seed, struct topt_request *q, int64_t *list)
{
    int64_t all = (int64_t)topt_hw_max_nodes(q->hw) * topt_hw_gpus_per_node(q->hw);
    q->max_gpus = random_below(seed, 2) ? 1 + random_below(seed, (int)all) : 0;
    if (random_below(seed, 3))
        return;
    for (int64_t c = 1; c <= (q->max_gpus ? q->max_gpus : all); c *= 2)
        if (c <= topt_hw_gpus_per_node(q->hw) && topt_hw_gpus_per_node(q->hw) % c == 0)
            list[q->ngpu_list++] = c;
    q->gpu_list = list;
}

static struct topt_request make_question(uint64_t *seed, const struct topt_request *r,
                                         int64_t *list)
{
    struct topt_request q = *r;
    q.mode = (enum topt_mode)random_below(seed, TOPT_MODE_COUNT);
    q.memory_limit = random_limit(seed, r->hw);
    if (random_below(seed, 4) == 0)
        q.factors = random_below(seed, 8);
    if (q.mode == TOPT_MINI_TIME) {
        q.gpus = 1 + random_below(seed, 2); /* that every list of counts has */
        return q;
    }
    ask_counts(seed, &q, list);
    if (q.mode == TOPT_MINI_PARALLELISM && random_below(seed, 2))
        q.min_efficiency = (1 + random_below(seed, 100)) / 100.0;
    return q;
}

/* The answer as text, or the error's; freed by the caller. */
static char *told(int rc, json_t *answer, const struct topt_error *err)
{
    char *text = rc ? strdup(err->text) : topt_json_text(answer, 0);
    json_decref(answer);
    return text;
}

static char *searched(const struct topt_request *q)
{
    struct topt_error err = {0};
    json_t *answer = NULL;
    int rc = topt_plan(q, &answer, &err);
    return told(rc, answer, &err);
}

static char *remembered(struct topt_memo *m, const struct topt_request *q)
{
    struct topt_error err = {0};
    json_t *answer = NULL;
    int rc = topt_plan_from(q, m, &answer, &err);
    return told(rc, answer, &err);
}

static void show(const struct topt_request *q, const char *a, const char *b)
{
    printf("# mode %s, limit %lld, gpus %lld, at most %lld, efficiency %g, list of %d\n",
           topt_mode_name(q->mode), (long long)q->memory_limit, (long long)q->gpus,
           (long long)q->max_gpus, q->min_efficiency, q->ngpu_list);
    int at = 0;
    while (a[at] && a[at] == b[at])
        at++;
    at = at > 80 ? at - 80 : 0;
    printf("# searched:   %.240s\n# remembered: %.240s\n", a + at, b + at);
}

/* ---- all of it ----------------------------------------------------------------------- */

struct tally {
    int differ, again, fit, none, with, named;
    size_t bytes; /* the largest memo */
};

/* What it is answered by the memo, twice, against what it is answered alone. */
static void ask(const struct topt_request *q, struct topt_memo *m, struct tally *t)
{
    char *a = searched(q), *b = remembered(m, q);
    int64_t before = topt_memo_searches(m);
    char *c = remembered(m, q);
    int fits = strstr(a, "\"feasible\":true") != NULL;
    if (strcmp(a, b) || strcmp(a, c)) {
        t->differ++;
        show(q, a, strcmp(a, b) ? b : c);
    }
    t->again += topt_memo_searches(m) != before;
    t->fit += fits;
    t->none += !fits;
    t->with += strstr(a, "\"with\":[{") != NULL;
    t->named += strstr(a, "\"knee\"") != NULL;
    if (topt_memo_bytes(m) > t->bytes)
        t->bytes = topt_memo_bytes(m);
    free(a);
    free(b);
    free(c);
}

static void test_problems(void)
{
    struct tally t = {0};
    int made = 0;
    for (uint64_t number = 1; number <= PROBLEMS; number++) {
        struct topt_request r;
        struct topt_memo *m = topt_memo_create();
        uint64_t seed = number;
        if (m && make_problem(number, &r)) {
            made++;
            for (int i = 0; i < QUESTIONS; i++) {
                int64_t list[16];
                struct topt_request q = make_question(&seed, &r, list);
                int differed = t.differ;
                ask(&q, m, &t);
                if (t.differ > differed)
                    printf("# problem %d, question %d\n", (int)number, i);
            }
        }
        topt_memo_destroy(m);
        fini_problem(&r);
    }
    is_int(made, PROBLEMS, "%d problems", made);
    is_int(t.differ, 0, "%d questions are answered as by a search, byte for byte",
           t.fit + t.none);
    is_int(t.again, 0, "and nothing is searched twice");
    ok(t.fit > 4 * PROBLEMS && t.none > PROBLEMS,
       "%d of them have an answer that fits, %d do not", t.fit, t.none);
    ok(PROBLEMS < 32 || (t.with > 0 && t.named > PROBLEMS / 4), /* of few none may */
       "%d say what would fit on fewer, %d name a knee", t.with, t.named);
    ok(t.bytes > 0 && t.bytes < 16 << 20, "the largest memo takes %zu bytes", t.bytes);
}

/* Another system's algorithm, another space: nothing of it is of use to other questions. */
static void test_others(void)
{
    struct topt_request r, q;
    struct topt_memo *m = topt_memo_create();
    struct tally t = {0};
    if (!m || !make_problem(1, &r)) {
        ok(0, "a problem");
        return;
    }
    char *before = remembered(m, &r);
    r.mode = TOPT_MINI_TIME;
    r.gpus = 2;
    q = r;
    q.algorithm = "data-parallel";
    ask(&q, m, &t);
    q.algorithm = NULL;
    q.space = TOPT_SPACE_CANONICAL;
    ask(&q, m, &t);
    q.max_work = 1;
    ask(&q, m, &t);
    is_int(t.again, 3, "questions of other kinds are searched each time");
    r.mode = TOPT_MINI_PARALLELISM;
    r.gpus = 0;
    char *after = remembered(m, &r);
    ok(!t.differ && t.fit > 0 && !strcmp(before, after), "and leave nothing behind");
    free(before);
    free(after);
    topt_memo_destroy(m);
    fini_problem(&r);
}

int main(void)
{
    test_problems();
    test_others();
    return done_testing();
}
