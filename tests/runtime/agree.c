/* agree.c - every plan trains the same model.
 *
 * usage: mpirun -n 8 runtime_agree [--plans N] [--steps N] [--seed S]
 *
 * Random strategies of three models (half of them by topt_plan_sample, written as documents
 * and read back) on 2, 3, 4, 6 and 8 ranks, in f32 and f64, against one
 * rank: losses of all steps under momentum (which shows a missing reduction at the second
 * step, where Adam would hide it), step-1 gradients, and the bytes alive at once against the
 * program's peak.  Then a gradient's all-reduce is left out, and the same comparison must
 * notice. */
#include "mpi_world.h"
#include "models.h"
#include "topt_plan.h"
#include "topt_runtime.h"

#include <getopt.h>
#include <math.h>

enum { MAX_STEPS = 200, MAX_GRADS = 64 };

struct trace {
    double loss[MAX_STEPS];
    int steps;
    int ngrads;
    struct grad {
        int op, operand;
        double *x;
        int64_t n;
    } grad[MAX_GRADS];
    double spread; /* between copies of a gradient on different ranks */
    int64_t peak, planned_peak;
};

struct suite {
    int plans, steps;
    uint64_t seed;
    struct topt_hw *hw;
    const struct topt_model *model;
    struct topt_settings settings;
    struct topt_feed feed;
};

static int take_gradient(void *ctx, struct topt_session *s, int instr,
                         struct topt_error *err)
{
    struct trace *t = ctx;
    const struct topt_program *p = topt_session_program(s);
    const struct topt_buffer *b = &p->buffer[p->instr[instr].b];
    for (int i = 0; i < t->ngrads; i++)
        if (t->grad[i].op == b->op && t->grad[i].operand == b->operand)
            return 0; /* of the first step already */
    struct grad *g = &t->grad[t->ngrads++];
    double spread;
    g->op = b->op;
    g->operand = b->operand;
    if (topt_session_gather(s, p->instr[instr].b, &g->x, &g->n, &spread, err))
        return -1;
    t->spread = fmax(t->spread, spread);
    return 0;
}

static void trace_fini(struct trace *t)
{
    for (int i = 0; i < t->ngrads; i++)
        free(t->grad[i].x);
    memset(t, 0, sizeof *t);
}

/* Train; 'skip' leaves out an instruction, and a few steps are enough to tell. */
static void train(const struct suite *u, struct topt_comm *comm,
                  const struct topt_program *p, int skip, struct trace *t)
{
    struct topt_error err = {0};
    struct topt_device dev;
    struct topt_session *s;
    struct topt_session_options o = {.lr = 0.05,
                                     .seed = 5,
                                     .feed = u->feed,
                                     .before_update = take_gradient,
                                     .ctx = t,
                                     .skip_instr = skip};
    memset(t, 0, sizeof *t);
    if (topt_device_open_host(p->settings.dtype, &dev, &err) ||
        topt_session_create(p, comm, &dev, &o, &s, &err))
        give_up(&err);
    t->steps = skip && u->steps > 5 ? 5 : u->steps;
    for (int k = 0; k < t->steps; k++)
        if (topt_session_step(s, &t->loss[k], &err))
            give_up(&err);
    double peak = (double)topt_session_peak_bytes(s);
    if (comm->ops->max(comm, &peak, 1, &err))
        give_up(&err);
    t->peak = (int64_t)peak;
    t->planned_peak = p->peak_bytes;
    topt_session_destroy(s);
    topt_device_close(&dev);
}

static double loss_bound(const struct suite *u)
{
    return u->settings.dtype == TOPT_F64 ? 1e-10 : 1e-5;
}

static double worst_loss(const struct trace *a, const struct trace *b)
{
    double worst = 0;
    for (int k = 0; k < a->steps; k++) {
        double d = fabs(a->loss[k] - b->loss[k]) / fabs(b->loss[k]);
        worst = isfinite(d) ? fmax(worst, d) : INFINITY;
    }
    return worst;
}

/* Beside the largest element of each gradient; rank 0 only. */
static double worst_gradient(const struct trace *a, const struct trace *b)
{
    double worst = a->ngrads == b->ngrads ? 0 : INFINITY;
    for (int i = 0; i < a->ngrads && i < b->ngrads && a->grad[i].x; i++) {
        double scale = 1e-30, diff = 0;
        for (int64_t k = 0; k < b->grad[i].n; k++) {
            scale = fmax(scale, fabs(b->grad[i].x[k]));
            diff = fmax(diff, fabs(a->grad[i].x[k] - b->grad[i].x[k]));
        }
        worst = fmax(worst, diff / scale);
    }
    return worst;
}

static struct topt_program *lower(const struct suite *u, const struct topt_mesh *mesh,
                                  const struct topt_strategy *s)
{
    struct topt_error err = {0};
    struct topt_program *p;
    struct topt_router *r = topt_router_create(u->hw, mesh);
    if (!r || topt_lower(u->model, mesh, &u->settings, s, r, &p, &err))
        give_up(&err);
    topt_router_destroy(r);
    return p;
}

/* The all-reduce of a parameter's gradient, 'nth' from the start; 0 where there is none. */
static int find_reduction(const struct topt_program *p, int nth)
{
    for (int i = p->init_end; i < p->ninstr; i++) {
        const struct topt_instr *in = &p->instr[i];
        if (in->kind == TOPT_I_MOVE && in->move.kind == TOPT_MOVE_ALL_REDUCE &&
            in->a == in->b && p->buffer[in->a].cls == TOPT_CLASS_GRAD && nth-- == 0)
            return i;
    }
    return 0;
}

/* Losses and gradients of one program against the reference; counts planted bugs found. */
static void check_program(const struct suite *u, struct topt_comm *comm,
                          const struct topt_program *p, const struct trace *ref,
                          double worst[3], int planted[2])
{
    struct trace t;
    train(u, comm, p, 0, &t);
    worst[0] = fmax(worst[0], worst_loss(&t, ref));
    if (!comm->rank) {
        worst[1] = fmax(worst[1], worst_gradient(&t, ref));
        worst[1] = fmax(worst[1], t.spread);
    }
    if (t.peak != t.planned_peak)
        worst[2]++;
    trace_fini(&t);
    int skip = find_reduction(p, planted[0] % 3);
    if (!skip || planted[0] >= 3)
        return;
    train(u, comm, p, skip, &t);
    planted[0]++;
    planted[1] += worst_loss(&t, ref) > loss_bound(u);
    trace_fini(&t);
}

static void check_own(struct suite *u, struct topt_comm *comm, const struct trace *ref,
                      double worst[3], int planted[2])
{
    const struct topt_mesh *mesh = &comm->mesh;
    struct dice d = {.stream =
                         u->seed * 1000 + (uint64_t)(mesh->nodes * 100 + mesh->per_node)};
    for (int k = 0; k < u->plans; k++) {
        struct topt_strategy *s = roll_strategy(&d, u->model, mesh);
        struct topt_program *p = lower(u, mesh, s);
        double before = worst[0];
        check_program(u, comm, p, ref, worst, planted);
        if (worst[0] > loss_bound(u) && !comm->rank && worst[0] > before) {
            char *text = topt_program_text(p);
            printf("# plan %d of seed %llu is off by %.2e:\n%s", k,
                   (unsigned long long)u->seed, worst[0], text ? text : "");
            free(text);
        }
        topt_program_destroy(p);
        topt_strategy_destroy(s);
    }
}

static void check_sampled(struct suite *u, struct topt_comm *comm,
                          const struct trace *ref, double worst[3], int planted[2])
{
    struct topt_error err = {0};
    struct topt_request r;
    json_t *plans = NULL, *doc;
    size_t i;
    topt_request_init(&r);
    r.model = u->model;
    r.hw = u->hw;
    r.gpus = comm->size;
    r.settings = u->settings;
    if (topt_plan_sample(&r, u->plans, u->seed, &plans, &err))
        give_up(&err);
    json_array_foreach(plans, i, doc)
    {
        struct topt_plan_doc *p;
        if (topt_plan_read(doc, &p, &err))
            give_up(&err);
        check_program(u, comm, p->program, ref, worst, planted);
        topt_plan_doc_destroy(p);
    }
    json_decref(plans);
}

static void check_world(struct suite *u, int nodes, int per_node, const struct trace *ref)
{
    struct topt_error err = {0};
    struct topt_mesh mesh;
    double worst[3] = {0};
    int planted[2] = {0};
    if (topt_mesh_init(&mesh, nodes, per_node, &err))
        give_up(&err);
    struct topt_comm *comm = sub_world(mesh.devices);
    if (comm) {
        if (topt_comm_bind(comm, &mesh, &err))
            give_up(&err);
        check_own(u, comm, ref, worst, planted);
        check_sampled(u, comm, ref, worst, planted);
    }
    topt_comm_destroy(comm);
    quiet_barrier();
    const char *what = topt_dtype_name(u->settings.dtype);
    ok0(worst[0] <= loss_bound(u),
        "%s %s on %dx%d: losses of %d plans over %d steps "
        "agree (off by %.1e)",
        u->model->name, what, nodes, per_node, 2 * u->plans, u->steps, worst[0]);
    ok0(worst[1] <= 2 * loss_bound(u), "... and their step-1 gradients (off by %.1e)",
        worst[1]);
    ok0(worst[2] == 0, "... and the bytes alive at once are the planned peak");
    ok0(planted[1] == planted[0], "... and %d of %d left-out reductions were noticed",
        planted[1], planted[0]);
}

static void check_model(struct suite *u, struct topt_model *m, enum topt_dtype dtype)
{
    static const int mesh[][2] = {{1, 1}, {1, 2}, {1, 3}, {2, 2}, {2, 3}, {2, 4}, {1, 8}};
    struct topt_error err = {0};
    struct trace ref = {.ngrads = 0};
    u->model = m;
    u->settings = topt_settings_default();
    u->settings.dtype = dtype;
    u->settings.optimizer = TOPT_MOMENTUM;
    if (topt_feed_text(test_text, sizeof test_text - 1, m, 11, &u->feed, &err))
        give_up(&err);
    struct topt_mesh one;
    struct topt_comm *single;
    if (topt_mesh_init(&one, 1, 1, &err) || topt_comm_single(&single, &err))
        give_up(&err);
    struct topt_strategy *s = topt_strategy_create(m);
    struct topt_program *p = lower(u, &one, s);
    train(u, single, p, 0, &ref);
    ok0(ref.loss[u->steps - 1] < 0.9 * ref.loss[0], "%s %s learns: %.4f to %.4f", m->name,
        topt_dtype_name(dtype), ref.loss[0], ref.loss[u->steps - 1]);
    for (size_t i = 0; i < sizeof mesh / sizeof *mesh; i++)
        check_world(u, mesh[i][0], mesh[i][1], &ref);
    trace_fini(&ref);
    topt_program_destroy(p);
    topt_strategy_destroy(s);
    topt_comm_destroy(single);
    topt_feed_close(&u->feed);
    topt_model_destroy(m);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"plans", 1, NULL, 'p'}, {"steps", 1, NULL, 's'}, {"seed", 1, NULL, 'r'}, {0}};
    struct topt_error err = {0};
    struct suite u = {.plans = 2, .steps = 50};
    const char *seed = NULL;
    world_begin(&argc, &argv);
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'p')
            u.plans = atoi(optarg);
        else if (c == 's')
            u.steps = atoi(optarg) < MAX_STEPS ? atoi(optarg) : MAX_STEPS;
        else if (c == 'r')
            seed = optarg;
        else
            return 2;
    }
    if (world_size != 8) {
        MPI_Finalize();
        skip_all("needs 8 ranks");
    }
    u.seed = world_seed(seed);
    u.hw = topt_hw_load("v100-dgx1-2x8", &err);
    if (!u.hw)
        give_up(&err);
    for (int dtype = TOPT_F32; dtype <= TOPT_F64; dtype++) {
        check_model(&u, build_mlp(), (enum topt_dtype)dtype);
        check_model(&u, build_gpt(), (enum topt_dtype)dtype);
        check_model(&u, build_llama(), (enum topt_dtype)dtype);
    }
    topt_hw_destroy(u.hw);
    return world_end();
}
