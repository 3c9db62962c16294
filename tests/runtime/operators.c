/* operators.c - every operator under every configuration, on real ranks.
 *
 * usage: mpirun -n 8 runtime_operators [--most N] [--seed S]
 *
 * The rows of the operator table are walked; of each, the first operator in the tests' models is
 * the instance.  It takes every configuration in turn, sharding over replicas included, while
 * the rest of the model stays replicated, and trains two steps in f64: losses and gradients must
 * be those of one rank.  On more than two ranks at most N configurations of an operator are
 * tried, drawn by the seed. */
#include "program_text.h"
#include "models.h"
#include "topt_lower.h"
#include "trace.h"

#include <getopt.h>

enum { STEPS = 2, MOST_CONFIGS = 1 << 16 };

struct suite {
    int most;
    uint64_t seed;
    struct topt_hw *hw;
};

/* One operator of one model, and what one rank makes of the model. */
struct instance {
    const struct topt_model *model;
    int op;
    struct training how;
    struct topt_settings settings;
    struct trace ref;
};

static struct topt_program *lower(const struct suite *u, const struct instance *x,
                                  const struct topt_mesh *mesh,
                                  const struct topt_config *c)
{
    struct topt_error err = {0};
    struct topt_program *p;
    struct topt_strategy *s = topt_strategy_create(x->model);
    struct topt_router *r = topt_router_create(u->hw, mesh);
    if (!s || !r)
        give_up(&err);
    s->config[x->op] = *c;
    if (topt_lower(x->model, mesh, &x->settings, s, r, 0, &p, &err))
        give_up(&err);
    topt_router_destroy(r);
    topt_strategy_destroy(s);
    return p;
}

/* All configurations: axes count up in base dimensions + 1, above them what is sharded, and along how many
 * axes it is not. */
static int config_at(const struct topt_op *op, const struct topt_mesh *mesh, int number,
                     struct topt_config *ret)
{
    int base = op->spec->ndims + 1;
    *ret = topt_config_none();
    for (int a = 0; a < mesh->naxes; a++, number /= base)
        ret->dim[a] = (int8_t)(number % base - 1);
    ret->zero = (uint8_t)(number % TOPT_ZERO_COUNT);
    ret->whole_axes = (uint8_t)(number / TOPT_ZERO_COUNT);
    return topt_config_valid(op, ret, mesh);
}

static int count_configs(const struct topt_op *op, const struct topt_mesh *mesh)
{
    int all = TOPT_ZERO_COUNT * (mesh->naxes + 1);
    for (int a = 0; a < mesh->naxes && all < MOST_CONFIGS; a++)
        all *= op->spec->ndims + 1;
    return all;
}

/* The number of those to be tried, in a random order where not all are. */
static int list_configs(const struct suite *u, const struct instance *x,
                        const struct topt_mesh *mesh, int most, int *list)
{
    const struct topt_op *op = &x->model->op[x->op];
    int all = count_configs(op, mesh), n = 0;
    struct topt_config c;
    for (int k = 0; k < all; k++)
        if (config_at(op, mesh, k, &c))
            list[n++] = k;
    for (int i = 0; i < n && n > most; i++) {
        uint64_t stream = topt_mix(u->seed + (uint64_t)x->op * 100 + (uint64_t)all);
        int j = i + (int)(topt_random(stream, (uint64_t)i) % (uint64_t)(n - i));
        int keep = list[i];
        list[i] = list[j];
        list[j] = keep;
    }
    return n < most ? n : most;
}

static void try_config(const struct suite *u, const struct instance *x,
                       struct topt_comm *comm, const struct topt_config *c,
                       double worst[2])
{
    struct trace t;
    struct topt_program *p = lower(u, x, &comm->mesh, c);
    train(&x->how, comm, p, &t);
    double off = worst_loss(&t, &x->ref);
    double grad = comm->rank ? 0 : worst_gradient(&t, &x->ref);
    if (!comm->rank && (off > 1e-10 || grad > 1e-9)) {
        char *text = program_text(p);
        printf("# losses off by %.1e, gradients by %.1e:\n%s", off, grad,
               text ? text : "");
        free(text);
    }
    worst[0] = fmax(worst[0], off);
    worst[1] = fmax(worst[1], grad);
    trace_fini(&t);
    topt_program_destroy(p);
}

static void check_mesh(const struct suite *u, const struct instance *x, int nodes,
                       int per_node)
{
    struct topt_error err = {0};
    const struct topt_op *op = &x->model->op[x->op];
    struct topt_mesh mesh;
    double worst[2] = {0};
    if (topt_mesh_init(&mesh, nodes, per_node, &err))
        give_up(&err);
    int *list = malloc((size_t)count_configs(op, &mesh) * sizeof *list);
    int n = list_configs(u, x, &mesh, mesh.devices > 2 ? u->most : MOST_CONFIGS, list);
    struct topt_comm *comm = sub_world(mesh.devices);
    if (comm && topt_comm_bind(comm, &mesh, &err))
        give_up(&err);
    for (int k = 0; k < n && comm; k++) {
        struct topt_config c;
        config_at(op, &mesh, list[k], &c);
        try_config(u, x, comm, &c, worst);
    }
    topt_comm_destroy(comm);
    quiet_barrier();
    free(list);
    ok0(worst[0] <= 1e-10 && worst[1] <= 1e-9,
        "%s of %s on %dx%d: %d configurations agree (losses off by %.1e, gradients %.1e)",
        op->spec->name, x->model->name, nodes, per_node, n, worst[0], worst[1]);
}

static void check_instance(const struct suite *u, const struct topt_model *m, int op)
{
    struct topt_error err = {0};
    struct instance x = {.model = m,
                         .op = op,
                         .settings = topt_settings_default(),
                         .how = {.lr = 0.05, .steps = STEPS}};
    struct topt_config none = topt_config_none();
    struct topt_mesh one;
    struct topt_comm *single;
    x.settings.dtype = TOPT_F64;
    x.settings.optimizer = TOPT_MOMENTUM;
    if (topt_feed_synthetic(m, 3, &x.how.feed, &err) ||
        topt_mesh_init(&one, 1, 1, &err) || topt_comm_single(&single, &err))
        give_up(&err);
    struct topt_program *p = lower(u, &x, &one, &none);
    train(&x.how, single, p, &x.ref);
    check_mesh(u, &x, 1, 2);
    check_mesh(u, &x, 2, 2);
    check_mesh(u, &x, 2, 4);
    trace_fini(&x.ref);
    topt_program_destroy(p);
    topt_comm_destroy(single);
    topt_feed_close(&x.how.feed);
}

/* The first operator of a row in the models; NULL where none has one. */
static const struct topt_model *find_instance(struct topt_model *const *model, int n,
                                              const struct topt_op_spec *row, int *ret_op)
{
    for (int k = 0; k < n; k++)
        for (int i = 0; i < model[k]->nops; i++)
            if (model[k]->op[i].spec == row) {
                *ret_op = i;
                return model[k];
            }
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"most", 1, NULL, 'm'}, {"seed", 1, NULL, 'r'}, {0}};
    enum { N = 1 + sizeof test_models / sizeof *test_models };
    struct topt_error err = {0};
    struct suite u = {.most = MOST_CONFIGS};
    struct topt_model *model[N];
    const struct topt_op_spec *row;
    const char *seed = NULL;
    world_begin(&argc, &argv);
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'm')
            u.most = atoi(optarg);
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
    for (int k = 0; k < N; k++)
        model[k] = k + 1 < N ? test_models[k].build() : build_own();
    for (int i = 0; (row = topt_op_spec_at(i)); i++) {
        int op = 0;
        if (row->plan_only)
            continue;
        const struct topt_model *m = find_instance(model, N, row, &op);
        ok0(m != NULL, "a model of the tests has '%s' of %d dimensions", row->name,
            row->ndims);
        if (m)
            check_instance(&u, m, op);
    }
    for (int k = 0; k < N; k++)
        topt_model_destroy(model[k]);
    topt_hw_destroy(u.hw);
    return world_end();
}
