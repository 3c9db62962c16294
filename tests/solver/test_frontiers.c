/* test_frontiers.c - answers from frontiers that are kept, against those of a search.
 *
 * Of a random problem (model, cluster, framework, settings) the frontiers are made complete,
 * written down and read back.  Every question about it (mode, memory limit, maximum of GPUs,
 * efficiency, counts) must then be answered by the same text as a search gives, without one.
 * Then: what is found on the way serves other questions; other problems, other versions and
 * damaged documents are refused. */
#include <stdlib.h>
#include <string.h>

#include "topt_frontiers.h"
#include "topt_json.h"
#include "topt_plan.h"
#include "random_model.h"
#include "sizes.h"
#include "tap.h"

enum {
    PROBLEMS = TOPT_TEST_SIZE_FROM(64, 8),
    QUESTIONS = 24,
    MUTANTS = TOPT_TEST_SIZE(400)
};

/* ---- random problems ---------------------------------------------------------------- */

static int make_frontiers(const struct topt_request *r, struct topt_frontiers **ret,
                          struct topt_error *err)
{
    struct topt_frontiers *f;
    if (topt_frontiers_create(r, &f, err))
        return -1;
    if (topt_frontiers_complete(f, r, err)) {
        topt_frontiers_destroy(f);
        return -1;
    }
    *ret = f;
    return 0;
}

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
    char text[1200];
    struct topt_error err = {0};
    snprintf(
        text, sizeof text,
        "{\"format\":\"topt-hw/1\",\"name\":\"random\",\"nodes\":%d,\"gpus_per_node\":%d,"
        "\"device\":{\"name\":\"d\",\"memory_bytes\":%lld,\"reserve_bytes\":0,"
        "\"flops\":{\"f32\":1e9,\"bf16\":2e9},\"efficiency\":{\"matmul\":0.5,"
        "\"attention\":0.5,\"elementwise\":1},\"memory_bandwidth\":1e10,"
        "\"launch_ns\":100,\"source\":\"x\"},"
        "\"links\":[{\"level\":\"node\",\"bytes_per_second\":%de6,\"latency_ns\":%d,"
        "\"source\":\"x\"},{\"level\":\"cluster\",\"bytes_per_second\":%de6,"
        "\"latency_ns\":900,\"source\":\"x\"}],"
        "\"collective\":{\"launch_ns\":10,\"source\":\"x\"},\"curves\":[]}",
        size[0], size[1], (long long)device_bytes[random_below(seed, 6)] * larger,
        100 + random_below(seed, 5000), random_below(seed, 5000),
        10 + random_below(seed, 500));
    json_t *doc = json_loads(text, 0, NULL);
    struct topt_hw *hw = topt_hw_from_json(doc, &err);
    json_decref(doc);
    if (!hw)
        printf("# %s\n", err.text);
    return hw;
}

/* A problem; whoever asks destroys model and cluster. */
static int make_problem(uint64_t number, struct topt_request *r)
{
    static const char *const frameworks[] = {"pytorch", "deepspeed", "megatron",
                                             "torchtitan", "topt"};
    static const char *const counts[] = {"whole", "pow2", "any", "nodes"};
    uint64_t seed = number * 104729 + 17;
    struct topt_error err = {0};
    const char *field;
    struct topt_words w = {.mode = "mini-parallelism",
                           .space = "uniform",
                           .precision = number % 3 ? "f32" : NULL,
                           .framework = frameworks[random_below(&seed, 5)],
                           .counts = counts[random_below(&seed, 4)],
                           .tensor_parallel = random_below(&seed, 3) == 0};
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

/* The maximum, and some of the counts that the problem's complete frontiers are of. */
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

static char *kept(struct topt_frontiers *f, const struct topt_request *q)
{
    struct topt_error err = {0};
    json_t *answer = NULL;
    int rc = topt_frontiers_answer(f, q, &answer, &err);
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
    printf("# searched: %.240s\n# kept:     %.240s\n", a + at, b + at);
}

/* ---- all of it ----------------------------------------------------------------------- */

static struct topt_frontiers *write_and_read(struct topt_frontiers *f)
{
    struct topt_error err = {0};
    struct topt_frontiers *back = NULL;
    json_t *doc = topt_frontiers_to_json(f);
    char *text = topt_json_text(doc, 0);
    json_decref(doc);
    doc = topt_json_parse(text, strlen(text), "frontiers", &err);
    if (!doc || topt_frontiers_from_json(doc, &back, &err))
        printf("# %s\n", err.text);
    json_decref(doc);
    free(text);
    return back;
}

struct tally {
    int differ, searches, fit, none, with, named;
};

static void ask_all(uint64_t seed, struct topt_frontiers *f, const struct topt_request *r,
                    struct tally *t)
{
    for (int i = 0; i < QUESTIONS; i++) {
        int64_t list[16], before = topt_frontiers_searches(f);
        struct topt_request q = make_question(&seed, r, list);
        char *a = searched(&q), *b = kept(f, &q);
        int fits = strstr(a, "\"feasible\":true") != NULL;
        t->fit += fits;
        t->none += !fits;
        t->with += strstr(a, "\"with\":[{") != NULL;
        t->named += strstr(a, "\"names\":[\"knee\"") != NULL;
        if (strcmp(a, b)) {
            t->differ++;
            show(&q, a, b);
        }
        if (topt_frontiers_searches(f) != before) {
            t->searches++;
            show(&q, a, b);
        }
        free(a);
        free(b);
    }
}

static void test_problems(void)
{
    struct tally all = {0};
    int made = 0;
    for (uint64_t number = 1; number <= PROBLEMS; number++) {
        struct topt_error err = {0};
        struct topt_request r;
        struct topt_frontiers *f = NULL, *back = NULL;
        struct tally t = {0};
        if (make_problem(number, &r)) {
            if (make_frontiers(&r, &f, &err))
                printf("# problem %d: %s\n", (int)number, err.text);
            else if ((back = write_and_read(f)))
                ask_all(number, back, &r, &t);
            made += back != NULL;
        }
        if (t.differ || t.searches)
            printf("# problem %d: %d answers differ, %d took a search\n", (int)number,
                   t.differ, t.searches);
        all.differ += t.differ;
        all.searches += t.searches;
        all.fit += t.fit;
        all.none += t.none;
        all.with += t.with;
        all.named += t.named;
        topt_frontiers_destroy(f);
        topt_frontiers_destroy(back);
        fini_problem(&r);
    }
    is_int(made, PROBLEMS, "%d problems have frontiers that are written and read", made);
    is_int(all.differ, 0, "%d questions are answered as by a search, byte for byte",
           all.fit + all.none);
    is_int(all.searches, 0, "and none of them takes a search");
    ok(all.fit > 4 * PROBLEMS && all.none > 2 * PROBLEMS,
       "%d of them have an answer that fits, %d do not", all.fit, all.none);
    ok(all.with > 0 && all.named > PROBLEMS / 4,
       "%d say what would fit on fewer, %d name a knee", all.with, all.named);
}

/* From empty ones on, question by question, in whatever order. */
static void test_growing(void)
{
    int differ = 0, again = 0;
    for (uint64_t number = 1; number <= PROBLEMS / 2; number++) {
        struct topt_request r;
        struct topt_frontiers *f = NULL;
        uint64_t seed = number + 1000;
        if (make_problem(number, &r) && !topt_frontiers_create(&r, &f, NULL)) {
            for (int i = 0; i < 8; i++) {
                int64_t list[16];
                struct topt_request q = make_question(&seed, &r, list);
                char *a = searched(&q), *b = kept(f, &q);
                int64_t before = topt_frontiers_searches(f);
                char *c = kept(f, &q);
                if (strcmp(a, b) || strcmp(a, c)) {
                    differ++;
                    printf("# problem %d\n", (int)number);
                    show(&q, a, strcmp(a, b) ? b : c);
                }
                again += topt_frontiers_searches(f) != before;
                free(a);
                free(b);
                free(c);
            }
        }
        topt_frontiers_destroy(f);
        fini_problem(&r);
    }
    is_int(differ, 0, "what is kept of questions before does not change an answer");
    is_int(again, 0, "and nothing is searched twice");
}

/* ---- refusals ------------------------------------------------------------------------ */

/* Is a document refused, when it is read or when it is asked? */
static int refused(const json_t *doc, const struct topt_request *r, const char *says)
{
    struct topt_error err = {0};
    struct topt_frontiers *f = NULL;
    json_t *answer = NULL;
    int rc = topt_frontiers_from_json(doc, &f, &err) ||
             topt_frontiers_answer(f, r, &answer, &err);
    if (!strstr(err.text, says))
        printf("# %s\n", err.text);
    topt_frontiers_destroy(f);
    json_decref(answer);
    return rc && err.code == TOPT_ERR_INVAL && strstr(err.text, says);
}

static void test_refusals(void)
{
    struct topt_error err = {0};
    struct topt_request r, other;
    struct topt_frontiers *f = NULL;
    json_t *answer = NULL;
    ok(make_problem(1, &r) && !make_frontiers(&r, &f, &err), "frontiers are made");
    json_t *doc = topt_frontiers_to_json(f);
    other = r;
    other.settings.granule_bytes *= 2;
    ok(topt_frontiers_answer(f, &other, &answer, &err) && !answer &&
           refused(doc, &other, "is asked for"),
       "another problem is refused, kept or read");
    other = r;
    other.space = TOPT_SPACE_CANONICAL;
    ok(!topt_frontiers_keeps(&other) && topt_frontiers_answer(f, &other, &answer, &err) &&
           refused(doc, &other, "uniform"),
       "and another space");
    other = r;
    other.max_work = 1;
    ok(!topt_frontiers_keeps(&other), "where work is limited nothing is kept");
    json_object_set_new(doc, "version", json_string("0.0.0"));
    ok(refused(doc, &r, "made by topt 0.0.0"), "another version's are refused");
    json_decref(doc);
    topt_frontiers_destroy(f);
    fini_problem(&r);
}

/* Damaged documents are refused or answer something; they never break anything. */
static void test_damage(void)
{
    struct topt_request r;
    struct topt_frontiers *f = NULL;
    uint64_t seed = 5;
    int read = 0;
    if (!make_problem(3, &r) || make_frontiers(&r, &f, NULL)) {
        ok(0, "frontiers are made");
        return;
    }
    json_t *doc = topt_frontiers_to_json(f);
    char *text = topt_json_text(doc, 0);
    int n = (int)strlen(text);
    for (int i = 0; i < MUTANTS; i++) {
        static const char bytes[] = "0123456789,[]()A\"-";
        struct topt_frontiers *back = NULL;
        struct topt_error err = {0};
        char *mutant = strdup(text);
        for (int k = 1 + random_below(&seed, 3); k > 0; k--)
            mutant[random_below(&seed, n)] = bytes[random_below(&seed, sizeof bytes - 1)];
        json_t *d = topt_json_parse(mutant, strlen(mutant), "mutant", &err);
        if (d && !topt_frontiers_from_json(d, &back, &err)) {
            free(kept(back, &r));
            read++;
        }
        topt_frontiers_destroy(back);
        json_decref(d);
        free(mutant);
    }
    ok(1, "%d of %d damaged documents could be read and asked", read, (int)MUTANTS);
    free(text);
    json_decref(doc);
    topt_frontiers_destroy(f);
    fini_problem(&r);
}

int main(void)
{
    test_problems();
    test_growing();
    test_refusals();
    test_damage();
    return done_testing();
}
