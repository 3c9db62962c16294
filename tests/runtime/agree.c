/* agree.c - every plan trains the same model.
 *
 * usage: mpirun -n 8 runtime_agree [--plans N] [--steps N] [--seed S] [--model NAME] [--mesh NxG]
 *                                  [--train WHAT|some] [--beside]
 *
 * Random strategies of the tests' models (half of them by topt_plan_sample, written as
 * documents and read back), in random numbers of micro-batches, on 2 to 8 ranks (or those
 * of --mesh, of as many as there are) against one: the losses of all steps, the first
 * step's gradients, and the bytes alive at once against what was planned. In f64 every
 * model under momentum (which shows a missing reduction at the second step), Adam and
 * row-wise Adagrad; in f32 those that are smooth, since a routed token or a maximum that
 * goes the other way is another training.  Without --plans a sample that the seed draws:
 * each model in one of these ways on one mesh.
 *
 * With --train the models are trained in part: as that says, or 'some', adapters or parameters
 * that the seed draws.
 *
 * With --beside samples are padded, numbers are dropped, and experts are balanced.
 *
 * Then bugs are planted, and the same comparison must notice each. */
#include "program_text.h"
#include "models.h"
#include "plant.h"
#include "topt_json.h"
#include "topt_export.h"
#include "topt_plan.h"
#include "trace.h"

#include <getopt.h>

static const int meshes[][2] = {{1, 2}, {1, 3}, {2, 2}, {1, 4}, {2, 3},
                                {1, 6}, {3, 2}, {2, 4}, {1, 8}};
enum { MESHES = sizeof meshes / sizeof *meshes, PLANTED = 3, PLANTED_STEPS = 4 };

static const struct way {
    enum topt_dtype dtype;
    enum topt_optimizer optimizer;
    double lr, bound;
} ways[] = {{TOPT_F64, TOPT_MOMENTUM, 0.05, 1e-10},
            {TOPT_F64, TOPT_ADAM, 0.005, 1e-10},
            {TOPT_F64, TOPT_ROW_WISE_ADAGRAD, 0.02, 1e-9},
            {TOPT_F32, TOPT_MOMENTUM, 0.05, 1e-5}};

struct suite {
    int plans, steps;
    int mesh[2]; /* 0: all of 'meshes', or one that is drawn */
    uint64_t seed;
    const char *train; /* NULL: all */
    int beside;        /* padding, dropout, the balance of experts */
    struct topt_hw *hw;
    struct topt_model *model;
    const struct way *way;
    struct topt_settings settings;
    struct training how;
    struct trace ref;
};

/* How far the plans on one mesh were off. */
struct result {
    double loss, gradient;
    double least_peak; /* bytes alive at once over those planned */
    int over;          /* plans that needed more than their bound */
    int plans;
};

static struct topt_program *lower(const struct suite *u, const struct topt_model *m,
                                  const struct topt_mesh *mesh,
                                  const struct topt_settings *settings,
                                  const struct topt_strategy *s, int64_t *ret_bound)
{
    struct topt_error err = {0};
    struct topt_program *p;
    struct topt_strategy_cost cost;
    struct topt_router *r = topt_router_create(u->hw, mesh);
    struct topt_costing k = {
        .model = m, .hw = u->hw, .mesh = mesh, .settings = settings, .router = r};
    if (!r || topt_lower(m, mesh, settings, s, r, 0, &p, &err) ||
        topt_cost_strategy(&k, s, &cost, &err))
        give_up(&err);
    if (ret_bound)
        *ret_bound = cost.memory_bytes;
    topt_router_destroy(r);
    return p;
}

/* Most in place, some of these with kernels done together; some with gradients in buckets, some
 * with these behind backward as well. */
static void check_program(const struct suite *u, struct topt_comm *comm,
                          struct topt_program *p, int64_t bound, struct result *x)
{
    struct topt_error err = {0};
    struct trace t;
    struct training how = u->how;
    how.overlap = x->plans % 3 == 2 || comm->size == 2;
    if (topt_program_dropout(p, &how.dropout, &err))
        give_up(&err);
    if (x->plans % 4 && topt_program_in_place(p, x->plans % 4 > 1, &err))
        give_up(&err);
    if ((x->plans % 3 || how.overlap) && topt_program_bucket(p, 1 << 11, &err))
        give_up(&err);
    train(&how, comm, p, &t);
    double loss = worst_loss(&t, &u->ref);
    double gradient = comm->rank ? 0 : worst_gradient(&t, &u->ref);
    if (!comm->rank && (loss > u->way->bound || gradient > 2 * u->way->bound)) {
        char *text = program_text(p);
        printf("# off by %.2e, gradients by %.2e:\n%s", loss, gradient, text ? text : "");
        free(text);
    }
    x->loss = fmax(x->loss, loss);
    x->gradient = fmax(x->gradient, gradient);
    x->least_peak = fmin(x->least_peak, (double)t.peak / (double)p->peak_bytes);
    if (!comm->rank && !u->beside && (t.peak > p->peak_bytes || p->peak_bytes > bound)) {
        x->over++;
        printf("# %dx%d: %lld bytes at once, %lld planned, %lld the bound\n",
               p->mesh.nodes, p->mesh.per_node, (long long)t.peak,
               (long long)p->peak_bytes, (long long)bound);
    }
    x->plans++;
    trace_fini(&t);
}

static int mixes_samples(const struct topt_model *m)
{
    for (int i = 0; i < m->nops; i++)
        if (m->op[i].spec->coupled)
            return 1;
    return 0;
}

static int64_t roll_micro_batches(struct dice *d, const struct topt_model *m)
{
    int64_t n = (int64_t)1 << roll(d, 3);
    return mixes_samples(m) || m->batch % n ? 1 : n;
}

static void check_own(const struct suite *u, struct topt_comm *comm, struct dice *d,
                      struct result *x)
{
    struct topt_error err = {0};
    struct topt_settings settings = u->settings;
    settings.micro_batches = roll_micro_batches(d, u->model);
    struct topt_model *micro =
        topt_model_rebatch(u->model, u->model->batch / settings.micro_batches, &err);
    if (!micro)
        give_up(&err);
    struct topt_strategy *s = roll_strategy(d, micro, &comm->mesh);
    int64_t bound;
    struct topt_program *p = lower(u, micro, &comm->mesh, &settings, s, &bound);
    check_program(u, comm, p, bound, x);
    topt_program_destroy(p);
    topt_strategy_destroy(s);
    topt_model_destroy(micro);
}

/* The text of a random plan, which one rank draws for all. */
static char *sample(const struct suite *u, int gpus, int64_t micro_batches, uint64_t seed,
                    struct topt_error *err)
{
    struct topt_request r;
    json_t *plans = NULL;
    topt_request_init(&r);
    r.model = u->model;
    r.hw = u->hw;
    r.gpus = gpus;
    r.space = TOPT_SPACE_CANONICAL;
    r.settings = u->settings;
    r.settings.micro_batches = micro_batches;
    if (topt_plan_sample(&r, 1, seed, &plans, err))
        return NULL;
    char *text = topt_json_text(json_array_get(plans, 0), 0);
    json_decref(plans);
    return text;
}

static void check_sampled(const struct suite *u, struct topt_comm *comm, struct dice *d,
                          struct result *x)
{
    struct topt_error err = {0};
    int64_t micro = roll_micro_batches(d, u->model);
    uint64_t seed = (uint64_t)roll(d, 1 << 30);
    char *text = comm->rank ? NULL : sample(u, comm->size, micro, seed, &err);
    size_t len = text ? strlen(text) : 0;
    struct topt_plan_doc *p;
    if (topt_comm_share_text(comm, !comm->rank && !text, &text, &len, &err))
        give_up(&err);
    json_t *doc = topt_json_parse(text, len, "sample", &err);
    if (!doc || topt_plan_read(doc, &p, &err))
        give_up(&err);
    check_program(u, comm, p->program, p->memory_bytes, x);
    topt_plan_doc_destroy(p);
    json_decref(doc);
    free(text);
}

static void check_world(const struct suite *u, const int mesh_of[2])
{
    struct topt_error err = {0};
    struct topt_mesh mesh;
    struct result x = {.least_peak = 1};
    struct dice d = {.stream = u->seed * 1000 + (uint64_t)(mesh_of[0] * 10 + mesh_of[1])};
    if (topt_mesh_init(&mesh, mesh_of[0], mesh_of[1], &err))
        give_up(&err);
    struct topt_comm *comm = sub_world(mesh.devices);
    if (comm && topt_comm_bind(comm, &mesh, &err))
        give_up(&err);
    for (int k = 0; comm && k < u->plans; k++)
        (k % 2 ? check_sampled : check_own)(u, comm, &d, &x);
    topt_comm_destroy(comm);
    quiet_barrier();
    ok0(x.loss <= u->way->bound && x.gradient <= 2 * u->way->bound,
        "%s %s %s on %dx%d: %d plans agree over %d steps (losses off by %.1e, first "
        "gradients %.1e)",
        u->model->name, topt_dtype_name(u->way->dtype),
        topt_optimizer_name(u->way->optimizer), mesh_of[0], mesh_of[1], x.plans, u->steps,
        x.loss, x.gradient);
    ok0((x.least_peak >= 0.98 || u->beside) && !x.over,
        "... and the bytes alive at once are within 2%% of the planned peak (%.2f%% at "
        "least), which is within the bound",
        100 * x.least_peak);
}

/* ---- the reference ----------------------------------------------------------------------- */

static double mean_loss(const struct trace *t, int from, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += t->loss[from + k];
    return sum / n;
}

/* Texts of some length, behind padding. */
static void fill_some(void *ctx, int encoder, int64_t step, int64_t sample,
                      int32_t ret[2])
{
    (void)ctx;
    uint64_t r = topt_random((uint64_t)(3 * step + encoder), (uint64_t)sample);
    ret[0] = (int32_t)(r % 3);
    ret[1] = ret[0] + 2 + (int32_t)((r >> 8) % 8);
}

/* Dropout asks which operators are of layers. */
static void roll_beside(struct training *how, struct topt_model *m)
{
    how->dropout = (struct topt_dropout){0.1, 0.2, 0.3};
    how->feed.filled = fill_some;
    for (int i = 0; i < m->nops; i++) {
        m->op[i].layer = i < 3 ? -1 : 0;
        if (!strcmp(m->op[i].spec->name, "route"))
            how->balance = 0.1;
    }
}

static void begin(struct suite *u, struct topt_model *m, const struct way *way)
{
    struct topt_error err = {0};
    struct topt_mesh one;
    struct topt_comm *single;
    u->model = m;
    u->way = way;
    u->settings = topt_settings_default();
    u->settings.dtype = way->dtype;
    u->settings.optimizer = way->optimizer;
    u->how = (struct training){.lr = way->lr, .steps = u->steps};
    if (topt_feed_text(test_text, sizeof test_text - 1, m, 11, &u->how.feed, &err) &&
        topt_feed_synthetic(m, 11, &u->how.feed, &err))
        give_up(&err);
    if (u->beside)
        roll_beside(&u->how, m);
    if (topt_mesh_init(&one, 1, 1, &err) || topt_comm_single(&single, &err))
        give_up(&err);
    struct topt_strategy *s = topt_strategy_create(m);
    struct topt_program *p = lower(u, m, &one, &u->settings, s, NULL);
    if (topt_program_dropout(p, &u->how.dropout, &err))
        give_up(&err);
    train(&u->how, single, p, &u->ref);
    topt_program_destroy(p);
    topt_strategy_destroy(s);
    topt_comm_destroy(single);
}

static void end(struct suite *u)
{
    trace_fini(&u->ref);
    topt_feed_close(&u->how.feed);
}

/* In so many steps or more. */
enum { LEARNING_STEPS = 20 };

static void check_learns(const struct suite *u)
{
    int n = u->steps / 5;
    double first = mean_loss(&u->ref, 0, n), last = mean_loss(&u->ref, u->steps - n, n);
    ok0(last < 0.95 * first, "%s %s %s learns: %.4f to %.4f", u->model->name,
        topt_dtype_name(u->way->dtype), topt_optimizer_name(u->way->optimizer), first,
        last);
}

/* ---- trained in part ------------------------------------------------------------------------ */

static int has_parameters(const struct topt_op *op)
{
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->operand[o].role == TOPT_PARAM && op->operand[o].present)
            return 1;
    return 0;
}

/* Each operator's parameters are trained or not; some are. */
static void roll_names(const struct topt_model *m, struct dice *d, char *ret, size_t size)
{
    size_t n = 0;
    int last = 0;
    for (int i = 0; i < m->nops; i++) {
        last = has_parameters(&m->op[i]) ? i : last;
        if (has_parameters(&m->op[i]) && roll(d, 2) && n + 60 < size)
            n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? "," : "", m->op[i].name);
    }
    if (n == 0)
        snprintf(ret, size, "%s", m->op[last].name);
}

static struct topt_model *trained_in_part(const struct suite *u, struct topt_model *m,
                                          struct dice *d)
{
    struct topt_error err = {0};
    char names[800];
    if (!u->train)
        return m;
    roll_names(m, d, names, sizeof names);
    int some = !strcmp(u->train, "some");
    if (some && roll(d, 2) && !topt_model_train(&m, "lora:2", &err))
        return m;
    if (topt_model_train(&m, some ? names : u->train, &err))
        give_up(&err);
    return m;
}

/* What is trained has the gradients that it has where all is: parameters of the same operators. */
static void check_gradients(const struct suite *u, int number)
{
    struct suite all = *u;
    double worst = 0;
    all.steps = 1;
    begin(&all, test_models[number].build(), u->way);
    for (int i = 0; i < u->ref.ngrads; i++) {
        const struct grad *g = &u->ref.grad[i], *h = same_grad(&all.ref, g);
        for (int64_t k = 0; h && k < g->n; k++)
            worst = fmax(worst, fabs(g->x[k] - h->x[k]) / fmax(largest(h), 1e-3));
        worst = h ? worst : INFINITY;
    }
    ok0(u->ref.ngrads > 0 && u->ref.ngrads <= all.ref.ngrads && worst <= u->way->bound,
        "%s: %d of %d gradients, which are those of training all (off by %.1e)",
        u->model->name, u->ref.ngrads, all.ref.ngrads, worst);
    end(&all);
    topt_model_destroy(all.model);
}

/* All ways and meshes, or one of each that the seed draws. */
static void check_model(struct suite *u, int number, const char *name, struct dice *d)
{
    struct topt_model *m = test_models[number].build();
    int skip = name && strcmp(name, m->name);
    m = skip ? m : trained_in_part(u, m, d);
    int nways = test_models[number].smooth ? 4 : 3;
    int all = u->plans > 0, plans = u->plans, way = roll(d, nways),
        mesh = roll(d, MESHES);
    u->plans = all ? plans : 2;
    for (int w = 0; w < nways && !skip; w++) {
        if (!all && w != way)
            continue;
        begin(u, m, &ways[w]);
        if (m->train && !world_rank)
            printf("# %s trains %s\n", m->name, m->train);
        if (!u->train && !u->beside && u->steps >= LEARNING_STEPS)
            check_learns(u);
        else if (u->train && !u->beside && strncmp(m->train, "lora", 4) != 0)
            check_gradients(u, number);
        for (int k = 0; k < MESHES && !u->mesh[0]; k++)
            if (all || k == mesh)
                check_world(u, meshes[k]);
        if (u->mesh[0])
            check_world(u, u->mesh);
        end(u);
    }
    u->plans = plans;
    topt_model_destroy(m);
}

/* ---- planted bugs ------------------------------------------------------------------------- */

static struct topt_program *roll_program(const struct suite *u, struct dice *d,
                                         const struct topt_mesh *mesh)
{
    struct topt_strategy *s = roll_strategy(d, u->model, mesh);
    for (int i = 0; i < s->nops; i++)
        s->config[i].zero = TOPT_ZERO_NONE;
    struct topt_program *p = lower(u, u->model, mesh, &u->settings, s, NULL);
    topt_strategy_destroy(s);
    return p;
}

/* 1: noticed; 0: not; -1: the strategy has no place for this bug. */
static int notices(const struct suite *u, struct topt_comm *comm, struct topt_program *p,
                   enum plant kind)
{
    struct topt_error err = {0};
    struct planted x;
    struct trace t;
    struct training how = u->how;
    plant(&x, kind, p);
    how.device = &x.device;
    if (kind == PLANT_REDUCTION)
        x.hits = leave_out_reduction(p);
    train(&how, comm, p, &t);
    double hits = x.hits, off = worst_loss(&t, &u->ref);
    if (comm->ops->max(comm, &hits, 1, &err))
        give_up(&err);
    trace_fini(&t);
    if (!(hits > 0))
        return off > u->way->bound ? 0 : -1; /* a device in between changes nothing */
    return off > u->way->bound;
}

static void check_plant(struct suite *u, enum plant kind)
{
    struct topt_error err = {0};
    struct topt_mesh mesh;
    struct dice d = {.stream = u->seed * 77 + (uint64_t)kind};
    int planted = 0, noticed = 0;
    begin(u, kind == PLANT_MASK ? build_mixed() : build_mlp(), &ways[0]);
    if (topt_mesh_init(&mesh, 1, 2, &err))
        give_up(&err);
    struct topt_comm *comm = sub_world(mesh.devices);
    if (comm && topt_comm_bind(comm, &mesh, &err))
        give_up(&err);
    for (int k = 0; comm && k < 100 && planted < PLANTED; k++) {
        struct topt_program *p = roll_program(u, &d, &mesh);
        int got = notices(u, comm, p, kind);
        planted += got >= 0;
        noticed += got > 0;
        topt_program_destroy(p);
    }
    topt_comm_destroy(comm);
    quiet_barrier();
    ok0(planted == PLANTED && noticed == planted, "%s is noticed: %d of %d",
        plant_name[kind], noticed, planted);
    end(u);
    topt_model_destroy(u->model);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"plans", 1, NULL, 'p'},  {"steps", 1, NULL, 's'},
        {"seed", 1, NULL, 'r'},   {"model", 1, NULL, 'm'},
        {"mesh", 1, NULL, 'x'},   {"train", 1, NULL, 't'},
        {"beside", 0, NULL, 'b'}, {0}};
    struct topt_error err = {0};
    struct suite u = {.steps = 50};
    const char *seed = NULL, *name = NULL;
    world_begin(&argc, &argv);
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'p')
            u.plans = atoi(optarg);
        else if (c == 's')
            u.steps = atoi(optarg) < MAX_STEPS ? atoi(optarg) : MAX_STEPS;
        else if (c == 'r')
            seed = optarg;
        else if (c == 'm')
            name = optarg;
        else if (c == 't')
            u.train = optarg;
        else if (c == 'b')
            u.beside = 1;
        else if (c != 'x' || sscanf(optarg, "%dx%d", &u.mesh[0], &u.mesh[1]) != 2)
            return 2;
    }
    int needs = u.mesh[0] ? u.mesh[0] * u.mesh[1] : 8;
    if (world_size < needs) {
        MPI_Finalize();
        skip_all(u.mesh[0] ? "needs a rank for each device of --mesh" : "needs 8 ranks");
    }
    u.seed = world_seed(seed);
    u.hw = topt_hw_load("v100-dgx1-2x8", &err);
    if (!u.hw)
        give_up(&err);
    struct dice d = {.stream = u.seed};
    for (size_t k = 0; k < sizeof test_models / sizeof *test_models; k++)
        check_model(&u, (int)k, name, &d);
    u.steps = PLANTED_STEPS;
    for (int kind = 0; !name && !u.train && !u.beside && kind < PLANT_COUNT; kind++)
        check_plant(&u, (enum plant)kind);
    topt_hw_destroy(u.hw);
    return world_end();
}
