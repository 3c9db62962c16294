/* test_pins.c - splits that whoever asks has chosen: plans obey them, say what they cost, and what
 * can't be is refused with what can. */
#include <stdlib.h>
#include <string.h>

#include "random_model.h"
#include "tap.h"
#include "topt_plan.h"

static int64_t whole(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static struct topt_model *perceptron(int64_t batch)
{
    struct topt_model *m = topt_model_create("perceptron", batch, 1, NULL);
    int x = topt_model_add(m, "embedding", "words", 0, NULL,
                           &(struct topt_attrs){.vocab = 64, .features = 32}, NULL);
    topt_model_say_role(m, TOPT_ROLE_EMBEDDING);
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "h%d.up", i);
        x = topt_model_add(m, "linear", name, 1, &x, &(struct topt_attrs){.features = 64},
                           NULL);
        topt_model_say_role(m, TOPT_ROLE_UP);
        snprintf(name, sizeof name, "h%d.down", i);
        x = topt_model_add(m, "linear", name, 1, &x, &(struct topt_attrs){.features = 32},
                           NULL);
        topt_model_say_role(m, TOPT_ROLE_DOWN);
    }
    x = topt_model_add(m, "linear", "head", 1, &x, &(struct topt_attrs){.features = 64},
                       NULL);
    topt_model_say_role(m, TOPT_ROLE_HEAD);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    return x >= 0 && !topt_model_finish(m, NULL) ? m : NULL;
}

static struct topt_hw *cluster(void)
{
    return topt_hw_load("v100-dgx1-2x8", NULL);
}

static void request(struct topt_request *r, const struct topt_model *m,
                    const struct topt_hw *hw, enum topt_space space)
{
    topt_request_init(r);
    r->model = m;
    r->hw = hw;
    r->gpus = 8;
    r->mode = TOPT_MINI_TIME;
    r->counts = TOPT_COUNTS_WHOLE;
    r->space = space;
}

/* Parts that a plan gives to an operator's dimension. */
static int parts(const struct topt_plan_doc *p, const char *op, const char *dim)
{
    int i = 0, d = 0, n = 1;
    while (strcmp(p->model->op[i].name, op))
        i++;
    while (strcmp(p->model->op[i].spec->dim[d].name, dim))
        d++;
    for (int a = 0; a < p->mesh.naxes; a++)
        if (p->strategy->config[i].dim[a] == d)
            n *= p->mesh.size[a];
    return n;
}

static struct topt_plan_doc *ask(struct topt_request *r, const char *pin,
                                 json_t **ret_answer)
{
    struct topt_error err = {0};
    struct topt_plan_doc *p = NULL;
    r->pin = pin;
    *ret_answer = NULL;
    if (topt_plan(r, ret_answer, &err) ||
        topt_plan_read(json_object_get(*ret_answer, "plan"), &p, &err))
        printf("# %s: %s\n", pin, err.text);
    return p;
}

/* ---- obeyed ------------------------------------------------------------------------- */

static void test_obeyed(enum topt_space space)
{
    struct topt_model *m = perceptron(16);
    struct topt_hw *hw = cluster();
    struct topt_request r;
    json_t *free_answer, *answer;
    request(&r, m, hw, space);
    r.blocks = TOPT_BLOCKS_FREE;
    struct topt_plan_doc *p = ask(&r, NULL, &free_answer);
    ok(p && !json_object_get(free_answer, "pins"), "%s: nothing is pinned",
       topt_space_name(space));
    topt_plan_doc_destroy(p);
    p = ask(&r, "h1.up=k:8", &answer);
    ok(p && parts(p, "h1.up", "k") == 8, "one operator is split as it is told");
    const json_t *pins = json_object_get(answer, "pins"),
                 *without = json_object_get(pins, "without");
    is_int(whole(pins, "operators"), 1, "one operator is pinned");
    is_int(whole(without, "time_ns"), whole(free_answer, "time_ns"),
           "beside it stands what is without");
    ok(whole(answer, "time_ns") >= whole(without, "time_ns"), "which is no slower");
    char *text = topt_plan_explain(json_object_get(answer, "plan"),
                                   &(struct topt_explain_options){0}, NULL);
    ok(text && strstr(text, "Pinned: h1.up=k:8 (1 operator); without"),
       "and is explained");
    free(text);
    topt_plan_doc_destroy(p);
    json_decref(answer);
    p = ask(&r, "h*.up=b:2,n:4;h2.up=b:8", &answer);
    ok(p && parts(p, "h0.up", "b") == 2 && parts(p, "h3.up", "n") == 4 &&
           parts(p, "h2.up", "b") == 8 && parts(p, "h2.up", "n") == 1,
       "a pattern, and an exception that comes later");
    topt_plan_doc_destroy(p);
    json_decref(answer);
    if (space == TOPT_SPACE_FULL) {
        p = ask(&r, "h1.down=b:g1+g2,k:g0", &answer);
        int i = 0;
        while (p && strcmp(p->model->op[i].name, "h1.down"))
            i++;
        const struct topt_config *c = p ? &p->strategy->config[i] : NULL;
        ok(p && parts(p, "h1.down", "b") == 4 && c->dim[1] == c->dim[2] &&
               c->dim[0] != c->dim[1],
           "by axes");
        topt_plan_doc_destroy(p);
        json_decref(answer);
    }
    p = ask(&r, "h*.down=data 2 x tensor 4 over k", &answer);
    ok(p && parts(p, "h1.down", "b") == 2 && parts(p, "h1.down", "k") == 4,
       "in the words of topt explain");
    topt_plan_doc_destroy(p);
    json_decref(answer);
    r.blocks = TOPT_BLOCKS_ALIKE;
    p = ask(&r, "h1.up=n:8", &answer);
    ok(p && parts(p, "h1.up", "n") == 8 && parts(p, "h3.up", "n") == 8,
       "where blocks choose alike, a pin of one is of all");
    topt_plan_doc_destroy(p);
    json_decref(answer);
    json_decref(free_answer);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

/* What the whole search finds, told to it as pins, is found again. */
static void test_own_plan(void)
{
    struct topt_model *m = perceptron(16);
    struct topt_hw *hw = cluster();
    struct topt_request r;
    json_t *answer, *again;
    char text[1024] = "";
    size_t n = 0;
    request(&r, m, hw, TOPT_SPACE_CANONICAL);
    r.blocks = TOPT_BLOCKS_FREE;
    struct topt_plan_doc *p = ask(&r, NULL, &answer);
    for (int i = 0; p && i < m->nops; i++) {
        const struct topt_op *op = &m->op[i];
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=", i ? ";" : "", op->name);
        for (int d = 0; d < op->spec->ndims; d++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s:%d", d ? "," : "",
                                  op->spec->dim[d].name,
                                  parts(p, op->name, op->spec->dim[d].name));
    }
    topt_plan_doc_destroy(p);
    p = ask(&r, text, &again);
    is_int(whole(again, "time_ns"), whole(answer, "time_ns"),
           "all of a plan pinned: it is the plan");
    is_int(whole(json_object_get(again, "pins"), "operators"), m->nops,
           "of all operators");
    topt_plan_doc_destroy(p);
    json_decref(again);
    json_decref(answer);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

/* Of the uniform space, for a framework that obeys no other. */
static void test_uniform(void)
{
    struct topt_model *m = perceptron(16);
    struct topt_hw *hw = cluster();
    struct topt_query words = {
        .framework = "pytorch", .pin = "h*.up=n:2,b:4", .tensor_parallel = 1};
    struct topt_request r;
    struct topt_error err = {0};
    json_t *answer = NULL;
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    r.gpus = 8;
    ok(!topt_request_read(&words, &r, NULL, &err) && !topt_request_complete(&r, &err),
       "a pin in words %s", err.text);
    ok(!topt_plan(&r, &answer, &err), "asked for PyTorch %s", err.text);
    const json_t *uniform = json_object_get(answer, "uniform");
    ok(whole(uniform, "tp") == 2 && whole(uniform, "dp") == 4,
       "the whole model follows what one operator must do");
    json_decref(answer);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

/* ---- refused ------------------------------------------------------------------------ */

static void refused(const char *pin, const char *says)
{
    struct topt_model *m = perceptron(16);
    struct topt_hw *hw = cluster();
    struct topt_query words = {0};
    struct topt_request r;
    struct topt_error err = {0};
    json_t *answer = NULL;
    request(&r, m, hw, TOPT_SPACE_CANONICAL);
    strcpy(words.pin, pin);
    int rc = topt_request_read(&words, &r, NULL, &err);
    r.gpus = 8;
    r.mode = TOPT_MINI_TIME;
    ok((rc || topt_plan(&r, &answer, &err)) && strstr(err.text, says), "%s: %s", pin,
       err.text);
    json_decref(answer);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

static void test_refused(void)
{
    refused("h0.upp=b:8", "did you mean h0.up?");
    refused("conv*=b:8", "it has words, up, down, head, loss");
    refused("h0.up=z:8", "has no dimension 'z' (it has b, s, k, n)");
    refused("h0.up=n:3", "can't be split so on 8 GPUs; possible: same 8 | ");
    refused("h0.up=b:16", "can't be split so on 8 GPUs");
    refused("h0.up=tensor 3", "can't be split so on 8 GPUs");
    refused("h0.up", "a pin is NAME=SPLIT");
    refused("h0.up=sideways", "a pin's split is");
    refused("h0.up=b:x", "a pin's split is");
    refused("h0.up=data 8 with ZeRO-9", "a pin's split is");
}

/* Without pins it fits, and that is said. */
static void test_unfit(void)
{
    struct topt_model *m = perceptron(16);
    struct topt_hw *hw = cluster();
    struct topt_request r;
    json_t *answer;
    request(&r, m, hw, TOPT_SPACE_CANONICAL);
    r.settings.granule_bytes = 1;
    r.factors = TOPT_FACTOR_ZERO;
    struct topt_plan_doc *p = ask(&r, "*=same 8", &answer);
    int64_t all = whole(answer, "memory_bytes");
    ok(p && all > 0, "everything everywhere");
    topt_plan_doc_destroy(p);
    json_decref(answer);
    r.memory_limit = all - 1;
    r.pin = "*=same 8";
    struct topt_error err = {0};
    ok(!topt_plan(&r, &answer, &err) &&
           !json_is_true(json_object_get(answer, "feasible")),
       "does not fit in less %s", err.text);
    const char *why = json_string_value(json_object_get(answer, "why"));
    ok(why && strstr(why, "; without --pin "), "%s", why ? why : "");
    json_decref(answer);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

int main(void)
{
    test_obeyed(TOPT_SPACE_CANONICAL);
    test_obeyed(TOPT_SPACE_FULL);
    test_own_plan();
    test_uniform();
    test_refused();
    test_unfit();
    return done_testing();
}
