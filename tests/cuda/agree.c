/* agree.c - plans train on the CUDA device as one process trains on the host.
 *
 * usage: [mpirun -n N] cuda_agree nccl|staged [--plans K] [--steps N] [--models all]
 *
 * Random plans of an MLP, a GPT and a Llama (or of every test model) for as many devices as
 * there are ranks, in f32 and f64 (and bf16, loosely, there in two micro-batches whose gradients
 * are added up in f32), on whatever the module opens, over NCCL or by way of the hosts'
 * memory, against the host backend in a single process: losses under momentum, which shows a
 * missing reduction at the second step, and bytes alive at once against the program's peak.
 * Without MPI: TOPT_RENDEZVOUS, TOPT_RANKS and TOPT_RANK. */
#include "device.h"
#include "models.h"

#include "comm_staged.h"
#include "topt_export.h"
#include "topt_plan.h"
#include "topt_runtime.h"

#include <math.h>
#include <unistd.h>

enum { MAX_STEPS = 100 };

struct suite {
    int plans, steps, all;
    const char *kind;
    const struct topt_module *module;
    struct topt_comm *host;
    struct topt_hw *hw;
};

struct trace {
    double loss[MAX_STEPS];
    int64_t peak, planned;
    int setups; /* of products and memory, in steps */
};

/* The others would wait for a rank that can't go on. */
static void must(struct topt_comm *c, int rc, const struct topt_error *err)
{
    if (!rc)
        return;
    printf("Bail out! rank %d: %s\n", c ? c->rank : 0, err->text);
    fflush(stdout);
    if (c)
        c->ops->abort(c, 1);
    exit(1);
}

static void train(const struct suite *u, struct topt_comm *comm, struct topt_device *d,
                  const struct topt_plan_doc *p, struct trace *t)
{
    struct topt_error err = {0};
    struct topt_session *s;
    struct topt_session_options o = {.lr = 0.05, .seed = 5, .overlap = 1};
    must(comm,
         p->program->mesh.devices > 1 && topt_program_bucket(p->program, 1 << 11, &err),
         &err);
    must(comm,
         (topt_feed_text(test_text, sizeof test_text - 1, p->model, 11, &o.feed, &err) &&
          topt_feed_synthetic(p->model, 11, &o.feed, &err)) ||
             topt_session_create(p->program, comm, d, &o, &s, &err),
         &err);
    t->setups = -emulated_count("fake_cuda_setups");
    for (int k = 0; k < u->steps; k++)
        must(comm, topt_session_step(s, &t->loss[k], &err), &err);
    t->setups += emulated_count("fake_cuda_setups");
    double peak = (double)topt_session_peak_bytes(s);
    must(comm, comm->ops->max(comm, &peak, 1, &err), &err);
    t->peak = (int64_t)peak;
    t->planned = p->program->peak_bytes;
    topt_session_destroy(s);
    topt_feed_close(&o.feed);
}

static int mixes_samples(const struct topt_model *m)
{
    for (int i = 0; i < m->nops; i++)
        if (m->op[i].spec->coupled)
            return 1;
    return 0;
}

static struct topt_plan_doc *sample(const struct suite *u, const struct topt_model *m,
                                    enum topt_dtype dtype, int gpus, int nth)
{
    struct topt_error err = {0};
    struct topt_request r;
    struct topt_plan_doc *p = NULL;
    json_t *plans = NULL;
    topt_request_init(&r);
    r.model = m;
    r.hw = u->hw;
    r.gpus = gpus;
    r.settings.dtype = dtype;
    r.settings.optimizer = TOPT_MOMENTUM;
    r.settings.gradient_f32 = dtype == TOPT_BF16;
    r.settings.micro_batches = dtype == TOPT_BF16 && !mixes_samples(m) ? 2 : 1;
    must(u->host,
         topt_plan_sample(&r, nth + 1, 3, &plans, &err) ||
             topt_plan_read(json_array_get(plans, (size_t)nth), &p, &err),
         &err);
    json_decref(plans);
    return p;
}

/* On every rank, so that none waits long for another. */
static void reference(const struct suite *u, const struct topt_model *m,
                      enum topt_dtype dtype, struct trace *t)
{
    struct topt_error err = {0};
    struct topt_device d;
    struct topt_comm *one = NULL;
    enum topt_dtype on_host = dtype == TOPT_BF16 ? TOPT_F32 : dtype;
    struct topt_plan_doc *p = sample(u, m, on_host, 1, 0);
    must(u->host,
         topt_device_open_host(on_host, &d, &err) || topt_comm_single(&one, &err), &err);
    train(u, one, &d, p, t);
    topt_comm_destroy(one);
    topt_device_close(&d);
    topt_plan_doc_destroy(p);
}

static double bound_of(enum topt_dtype t)
{
    return t == TOPT_F64 ? 1e-10 : t == TOPT_F32 ? 1e-5 : 2e-2;
}

static struct topt_comm *between_devices(const struct suite *u, struct topt_device *d)
{
    struct topt_error err = {0};
    struct topt_comm *c = NULL;
    int nccl = !strcmp(u->kind, "nccl");
    must(u->host,
         nccl ? u->module->communicator(u->host, d, &c, &err)
              : topt_comm_staged(u->host, d, &c, &err),
         &err);
    return c;
}

/* Where a little more or less changes much (who is chosen, what is largest), bf16 is not
 * held to f32's losses. */
static void check_model(const struct suite *u, struct topt_model *m, int smooth,
                        enum topt_dtype dtype)
{
    struct topt_device d;
    struct trace ref, t;
    double worst = 0;
    int peaks = 0, late = 0;
    reference(u, m, dtype, &ref);
    open_device(u->module, dtype, u->host->rank, &d);
    struct topt_comm *comm = between_devices(u, &d);
    for (int k = 0; k < u->plans; k++) {
        struct topt_plan_doc *p = sample(u, m, dtype, u->host->size, k);
        train(u, comm, &d, p, &t);
        peaks += t.peak == t.planned;
        late += t.setups;
        for (int i = 0; i < u->steps; i++) {
            double off = fabs(t.loss[i] - ref.loss[i]) / fabs(ref.loss[i]);
            worst = isfinite(off) ? fmax(worst, off) : INFINITY;
        }
        topt_plan_doc_destroy(p);
    }
    topt_comm_destroy(comm);
    topt_device_close(&d);
    if (!u->host->rank) {
        double bound = dtype == TOPT_BF16 && !smooth ? 0.5 : bound_of(dtype);
        ok(worst <= bound && fabs(ref.loss[u->steps - 1] - ref.loss[0]) > 1e-3,
           "%s %s on %d ranks, %s: losses of %d plans over %d steps, %.4f to %.4f "
           "(off by %.1e)",
           m->name, topt_dtype_name(dtype), u->host->size, u->kind, u->plans, u->steps,
           ref.loss[0], t.loss[u->steps - 1], worst);
        ok(peaks == u->plans && !late,
           "... in the memory that was planned, all set up before the first step (%d "
           "late)",
           late);
    }
    topt_model_destroy(m);
}

/* Gradients of rows are the host's alone: here tables have whole ones. */
static struct topt_model *built(int i)
{
    struct topt_model *m = test_models[i].build();
    for (int k = 0; k < m->nops; k++)
        m->op[k].attrs->sparse = 0;
    return m;
}

static int takes_part(const struct suite *u, int i)
{
    struct topt_model *(*const build)(void) = test_models[i].build;
    if (u->all)
        return 1;
    return build == build_mlp || build == build_gpt || build == build_llama;
}

static int option(int argc, char **argv, const char *name, int otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], name))
            return !strcmp(argv[i + 1], "all") ? 1 : atoi(argv[i + 1]);
    return otherwise;
}

int main(int argc, char **argv)
{
    enum { all = sizeof test_models / sizeof *test_models };
    struct topt_error err = {0};
    struct suite u = {.kind = argc > 1 ? argv[1] : "staged"};
    u.plans = option(argc, argv, "--plans", 3);
    u.steps = option(argc, argv, "--steps", 12);
    u.all = option(argc, argv, "--models", 0);
    u.steps = u.steps < MAX_STEPS ? u.steps : MAX_STEPS;
    u.module = the_module();
    must(NULL, topt_comm_open(&argc, &argv, &u.host, &err), &err);
    u.hw = topt_hw_load("v100-dgx1-2x8", &err);
    must(u.host, !u.hw, &err);
    for (int t = TOPT_F32; t <= TOPT_BF16; t++) {
        for (int i = 0; i < all; i++)
            if (takes_part(&u, i))
                check_model(&u, built(i), test_models[i].smooth, (enum topt_dtype)t);
    }
    int rank = u.host->rank;
    topt_hw_destroy(u.hw);
    topt_comm_destroy(u.host);
    topt_comm_mpi_finish();
    return rank ? 0 : done_testing();
}
