/* session.c - a run in a single process: samples, initial weights, bytes, errors. */
#include "memory.h"
#include "models.h"
#include "plant.h"
#include "tap.h"
#include "topt_runtime.h"

#include <math.h>

struct rig {
    struct topt_model *m, *micro;
    struct topt_hw *hw;
    struct topt_router *router;
    struct topt_program *p;
    struct topt_comm *comm;
    struct topt_device dev;
    struct topt_feed feed;
};

static void need(int rc, const struct topt_error *err)
{
    if (!rc)
        return;
    printf("Bail out! %s\n", err->text);
    exit(1);
}

static void rig_init_model(struct rig *r, struct topt_model *m,
                           const struct topt_settings *s)
{
    struct topt_error err = {0};
    struct topt_mesh one;
    r->m = m;
    r->micro = topt_model_rebatch(r->m, r->m->batch / s->micro_batches, &err);
    need(!r->micro, &err);
    struct topt_strategy *strategy = topt_strategy_create(r->micro);
    need(topt_mesh_init(&one, 1, 1, &err), &err);
    r->hw = topt_hw_load("lab-cpu", &err);
    need(!r->hw, &err);
    r->router = topt_router_create(r->hw, &one);
    need(topt_lower(r->micro, &one, s, strategy, r->router, 0, &r->p, &err), &err);
    need(topt_comm_single(&r->comm, &err), &err);
    need(topt_device_open_host(s->dtype, &r->dev, &err), &err);
    need(topt_feed_text(test_text, sizeof test_text - 1, r->m, 11, &r->feed, &err), &err);
    topt_strategy_destroy(strategy);
}

static void rig_init_settings(struct rig *r, const struct topt_settings *s)
{
    rig_init_model(r, build_mlp(), s);
}

static void rig_init(struct rig *r, enum topt_dtype dtype, enum topt_optimizer optimizer)
{
    struct topt_settings s = topt_settings_default();
    s.dtype = dtype;
    s.optimizer = optimizer;
    rig_init_settings(r, &s);
}

static void rig_fini(struct rig *r)
{
    topt_feed_close(&r->feed);
    topt_device_close(&r->dev);
    topt_comm_destroy(r->comm);
    topt_program_destroy(r->p);
    topt_router_destroy(r->router);
    topt_hw_destroy(r->hw);
    topt_model_destroy(r->micro);
    topt_model_destroy(r->m);
}

static double train_with(struct rig *r, int steps,
                         const struct topt_session_options *options)
{
    struct topt_error err = {0};
    struct topt_session *s;
    struct topt_session_options o = *options;
    double loss = NAN;
    o.feed = r->feed;
    need(topt_session_create(r->p, r->comm, &r->dev, &o, &s, &err), &err);
    for (int k = 0; k < steps; k++)
        need(topt_session_step(s, &loss, &err), &err);
    is_int(topt_session_peak_bytes(s), r->p->peak_bytes, "the peak is the planned one");
    topt_session_destroy(s);
    return loss;
}

static double train(struct rig *r, int steps, double lr, uint64_t seed)
{
    struct topt_session_options o = {.lr = lr, .seed = seed};
    return train_with(r, steps, &o);
}

static void check_training(void)
{
    for (int o = 0; o < TOPT_OPTIMIZER_COUNT; o++) {
        struct rig r;
        if (!topt_optimizer_runs((enum topt_optimizer)o))
            continue;
        rig_init(&r, TOPT_F32, (enum topt_optimizer)o);
        double lr = o >= TOPT_ADAM ? 0.01 : o == TOPT_SGD ? 1 : 0.1;
        double first = train(&r, 1, lr, 1), last = train(&r, 40, lr, 1);
        ok(last < 0.9 * first, "%s learns: %.3f to %.3f",
           topt_optimizer_name((enum topt_optimizer)o), first, last);
        ok(train(&r, 40, lr, 1) == last, "the same run is the same to the last bit");
        ok(train(&r, 1, lr, 2) != first, "another seed is another run");
        rig_fini(&r);
    }
}

/* Biases are added by the products before them, and summed up by those that read the same. */
static void check_together(void)
{
    struct topt_error err = {0};
    struct topt_session *s;
    struct rig r;
    double loss = NAN;
    rig_init(&r, TOPT_F64, TOPT_ADAM);
    double apart = train(&r, 5, 0.01, 1);
    need(topt_program_in_place(r.p, 1, &err), &err);
    ok(fabs(train(&r, 5, 0.01, 1) - apart) < 1e-12 * apart,
       "kernels done together compute the same");
    struct topt_session_options o = {.seed = 1, .feed = r.feed};
    need(topt_session_create(r.p, r.comm, &r.dev, &o, &s, &err), &err);
    need(topt_session_step(s, &loss, &err), &err);
    struct topt_session_times t = topt_session_times(s);
    ok(t.kernel_calls[TOPT_K_BIAS_FWD] == 3 && !t.kernel_ns[TOPT_K_BIAS_FWD] &&
           t.kernel_calls[TOPT_K_BIAS_BWD] == 3 && !t.kernel_ns[TOPT_K_BIAS_BWD] &&
           t.kernel_calls[TOPT_K_LINEAR_FWD] == 4 && t.kernel_ns[TOPT_K_LINEAR_FWD] > 0,
       "biases take no pass of their own");
    topt_session_destroy(s);
    rig_fini(&r);
}

/* Random numbers by counter: unit variance, and no stream is another. */
static void check_random(void)
{
    double sum = 0, square = 0, cross = 0;
    enum { N = 20000 };
    for (uint64_t i = 0; i < N; i++) {
        double x = topt_random_normal(1, i), y = topt_random_normal(2, i);
        sum += x;
        square += x * x;
        cross += x * y;
    }
    ok(fabs(sum / N) < 0.03 && fabs(square / N - 1) < 0.05 && fabs(cross / N) < 0.03,
       "normal numbers: mean %.3f, variance %.3f, correlation %.3f", sum / N, square / N,
       cross / N);
}

static void check_refusals(void)
{
    struct rig r;
    struct topt_error err = {0};
    struct topt_session *s;
    struct topt_session_options o = {.seed = 1};
    rig_init(&r, TOPT_F64, TOPT_SGD);
    struct topt_device other;
    need(topt_device_open_host(TOPT_F32, &other, &err), &err);
    ok(topt_session_create(r.p, r.comm, &other, &o, &s, &err) &&
           err.code == TOPT_ERR_INVAL,
       "a device of other numbers: %s", err.text);
    o.feed = r.feed;
    need(topt_session_create(r.p, r.comm, &r.dev, &o, &s, &err), &err);
    double *x;
    int64_t n;
    ok(topt_session_gather(s, r.p->nbuffers - 1, &x, &n, NULL, &err),
       "a buffer that is not alive can't be gathered: %s", err.text);
    for (int b = 0; b < r.p->nbuffers; b++) {
        if (r.p->buffer[b].cls != TOPT_CLASS_PARAM)
            continue;
        double spread;
        need(topt_session_gather(s, b, &x, &n, &spread, &err), &err);
        is_int(n, topt_buffer_elements(s, b), "a parameter is gathered whole");
        free(x);
        break;
    }
    topt_session_destroy(s);
    topt_session_destroy(NULL);
    rig_fini(&r);
}

/* A program that uses a buffer before it is there, or frees it twice, is refused. */
static void check_broken_program(void)
{
    struct rig r;
    struct topt_error err = {0};
    struct topt_session *s;
    struct topt_session_options o = {.seed = 1};
    double loss;
    rig_init(&r, TOPT_F32, TOPT_SGD);
    o.feed = r.feed;
    for (int i = r.p->init_end; i < r.p->ninstr; i++)
        if (r.p->instr[i].kind == TOPT_I_ALLOC) {
            leave_out(r.p, i);
            break;
        }
    need(topt_session_create(r.p, r.comm, &r.dev, &o, &s, &err), &err);
    ok(topt_session_step(s, &loss, &err) && err.code == TOPT_ERR_INTERNAL,
       "an allocation left out: %s", err.text);
    topt_session_destroy(s);
    rig_fini(&r);
}

/* The same samples in the same order, whatever comes at once. */
static void check_micro_batches(void)
{
    double whole = 0, worst = 0;
    int64_t peak = 0, smaller = 1;
    for (int n = 1; n <= 8; n *= 2) {
        struct topt_settings settings = topt_settings_default();
        struct rig r;
        settings.dtype = TOPT_F64;
        settings.optimizer = TOPT_MOMENTUM;
        settings.micro_batches = n;
        rig_init_settings(&r, &settings);
        double loss = train(&r, 30, 0.1, 1);
        whole = n == 1 ? loss : whole;
        worst = fmax(worst, fabs(loss - whole) / whole);
        smaller &= n == 1 || r.p->peak_bytes < peak;
        peak = r.p->peak_bytes;
        rig_fini(&r);
    }
    ok(worst < 1e-12, "1 to 8 micro-batches train alike (off by %.1e)", worst);
    ok(smaller, "each halving of the micro-batch takes fewer bytes");
}

static void check_weight_decay(void)
{
    struct rig adam, adamw;
    rig_init(&adam, TOPT_F64, TOPT_ADAM);
    rig_init(&adamw, TOPT_F64, TOPT_ADAMW);
    struct topt_session_options o = {.lr = 0.01, .seed = 1}, none = o, ten = o, one = o;
    none.weight_decay = -1;
    ten.weight_decay = 10;
    one.weight_decay = 0.01;
    double plain = train_with(&adam, 20, &o), kept = train_with(&adamw, 20, &none);
    ok(kept == plain, "adamw without decay is adam");
    ok(train_with(&adamw, 20, &o) == train_with(&adamw, 20, &one) &&
           train_with(&adamw, 20, &o) != plain,
       "adamw decays by 0.01 where nothing else is said");
    ok(train_with(&adamw, 20, &ten) > kept, "much decay is in the way of learning");
    rig_fini(&adam);
    rig_fini(&adamw);
}

/* The first step again with other weights: what it drops is the same. */
static double first_loss(struct topt_session *s)
{
    struct topt_error err = {0};
    double loss = NAN;
    s->step = 0;
    need(topt_session_step(s, &loss, &err), &err);
    return loss;
}

/* A step of size h against the gradient lowers the loss by h times its square. */
static void check_dropped(const char *what, struct topt_model *m,
                          const struct topt_dropout *dropout)
{
    struct topt_error err = {0};
    struct topt_settings settings = topt_settings_default();
    struct topt_session *s;
    struct rig r;
    int drops = 0;
    settings.dtype = TOPT_F64;
    settings.optimizer = TOPT_SGD;
    rig_init_model(&r, m, &settings);
    need(topt_program_clip(r.p, &err) || topt_program_dropout(r.p, dropout, &err) ||
             topt_program_in_place(r.p, 1, &err),
         &err);
    for (int i = 0; i < r.p->ninstr; i++)
        drops += r.p->instr[i].kind == TOPT_I_DROP;
    struct topt_session_options o = {
        .lr = 1e-6, .seed = 1, .feed = r.feed, .dropout = *dropout};
    need(topt_session_create(r.p, r.comm, &r.dev, &o, &s, &err), &err);
    s->options.lr = 0.5; /* what adapters add is 0 at first */
    for (int k = 0; k < 3; k++)
        (void)first_loss(s);
    s->options.lr = 1e-6;
    double first = first_loss(s), norm = topt_session_gradient_norm(s), right, whole;
    double slope = (first - first_loss(s)) / (1e-6 * norm * norm);
    need(topt_session_evaluate(s, &r.feed, 1, &whole, &right, &err), &err);
    ok(fabs(slope - 1) < 1e-4, "%s: what is dropped has the slopes of the loss (%.6f)",
       what, slope);
    ok(fabs(whole - first) > 1e-4, "... and nothing is dropped in an evaluation");
    ok(drops > 0 || dropout->attention > 0, "... by %d instructions", drops);
    topt_session_destroy(s);
    rig_fini(&r);
}

static void check_dropout(void)
{
    struct topt_error err = {0};
    struct topt_model *gpt = build_gpt(), *lora = build_gpt();
    for (int i = 3; i < gpt->nops; i++)
        gpt->op[i].layer = 0;
    check_dropped("residuals", gpt, &(struct topt_dropout){.residual = 0.3});
    check_dropped("attention", build_gpt(), &(struct topt_dropout){.attention = 0.3});
    need(topt_model_train(&lora, "lora:2", &err), &err);
    check_dropped("adapters", lora, &(struct topt_dropout){.adapter = 0.3});
}

static void check_plan_only(void)
{
    static const enum topt_optimizer only[] = {TOPT_ADAFACTOR, TOPT_ADAM8,
                                               TOPT_PAGED_ADAMW};
    for (int i = 0; i < 3; i++) {
        struct rig r;
        struct topt_error err = {0};
        struct topt_session *s;
        rig_init(&r, TOPT_F32, only[i]);
        struct topt_session_options o = {.seed = 1, .feed = r.feed};
        ok(topt_session_create(r.p, r.comm, &r.dev, &o, &s, &err) &&
               strstr(err.text, "topt run has no optimizer"),
           "%s: %s", topt_optimizer_name(only[i]), err.text);
        rig_fini(&r);
    }
}

int main(void)
{
    check_training();
    check_together();
    check_micro_batches();
    check_weight_decay();
    check_plan_only();
    check_dropout();
    check_random();
    check_refusals();
    check_broken_program();
    return done_testing();
}
