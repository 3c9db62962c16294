/* test_rows.c - every row of the operator table under every configuration, sharding over
 * replicas included, in one micro-batch and in two.
 *
 * The first operator of a row in the runtime tests' models is the instance; the rest of its
 * model stays replicated.  A row without an instance fails. */
#include "evaluated.h"
#include "models.h"
#include "tap.h"
#include "walk.h"

#include <stdio.h>

static struct topt_hw *hw;

enum { MODELS = 1 + sizeof test_models / sizeof *test_models };

struct instance {
    const struct topt_model *model; /* of a micro-batch */
    int op;
    struct topt_mesh mesh;
    struct topt_settings settings;
    struct topt_router *router;
    struct topt_evaluator *evaluator;
};

struct counts {
    int configs, lowered, formed, bounded, priced, sharded, reduced, evaluated;
};

/* ---- what zero says, seen in the program ------------------------------------------- */

static int is_sharded(const struct instance *x, const struct topt_config *c, int operand,
                      int from)
{
    if (c->zero == TOPT_ZERO_SPARSE)
        return 0;
    return c->zero >= from &&
           topt_replica_axes(&x->model->op[x->op], operand, c, &x->mesh);
}

/* A parameter's own buffers are in the layouts that its level gives them. */
static int check_sharded(const struct instance *x, const struct topt_config *c,
                         const struct topt_program *p)
{
    static const struct {
        enum topt_class cls;
        int from;
    } part[] = {{TOPT_CLASS_PARAM, TOPT_ZERO_PARAM},
                {TOPT_CLASS_GRAD, TOPT_ZERO_GRADIENT},
                {TOPT_CLASS_STATE, TOPT_ZERO_STATE}};
    const struct topt_op *op = &x->model->op[x->op];
    for (int i = 0; i < p->init_end; i++) {
        const struct topt_buffer *b = &p->buffer[p->instr[i].a];
        for (int k = 0; p->instr[i].kind == TOPT_I_ALLOC && k < 3; k++) {
            if (b->op != x->op || b->cls != part[k].cls)
                continue;
            struct topt_layout l = is_sharded(x, c, b->operand, part[k].from)
                                       ? topt_sharded_layout(op, b->operand, c, &x->mesh)
                                       : topt_value_layout(op, b->operand, c, &x->mesh);
            if (topt_layout_elements(&p->mesh, &b->shape, &b->layout) !=
                topt_layout_elements(&p->mesh, &b->shape, &l))
                return 0;
        }
    }
    return 1;
}

/* Collectives on a parameter or its gradient in instructions [from, to). */
static int collectives(const struct topt_program *p, int op, int operand, int from,
                       int to, enum topt_move_kind kind)
{
    int n = 0;
    for (int i = from; i < to; i++) {
        const struct topt_instr *in = &p->instr[i];
        n += in->kind == TOPT_I_MOVE && in->move.kind == kind &&
             p->buffer[in->a].op == op && p->buffer[in->a].operand == operand;
    }
    return n;
}

/* Where gradients are reduced, and how often a step gathers the parameter. */
static int check_reduced(const struct instance *x, const struct topt_config *c,
                         const struct topt_program *p)
{
    const struct topt_op *op = &x->model->op[x->op];
    for (int o = 0; o < op->spec->noperands; o++) {
        if (!topt_replica_axes(op, o, c, &x->mesh))
            continue;
        int once =
            collectives(p, x->op, o, p->micro_end, p->ninstr, TOPT_MOVE_ALL_REDUCE);
        int gathered_once =
            collectives(p, x->op, o, p->micro_end, p->ninstr, TOPT_MOVE_ALL_GATHER);
        int gathered =
            collectives(p, x->op, o, p->micro_begin, p->micro_end, TOPT_MOVE_ALL_GATHER);
        int scattered =
            collectives(p, x->op, o, p->micro_begin, p->micro_end,
                        TOPT_MOVE_REDUCE_SCATTER) +
            collectives(p, x->op, o, p->micro_begin, p->micro_end, TOPT_MOVE_ALL_REDUCE);
        if (c->zero >= TOPT_ZERO_SPARSE) {
            if (once || gathered_once || gathered || scattered)
                return 0;
            continue;
        }
        if (once != (c->zero == TOPT_ZERO_NONE) && c->zero != TOPT_ZERO_STATE)
            return 0;
        if ((scattered > 0) != (c->zero >= TOPT_ZERO_GRADIENT) ||
            (gathered > 0) != (c->zero == TOPT_ZERO_PARAM) ||
            (gathered_once > 0) !=
                (c->zero == TOPT_ZERO_STATE || c->zero == TOPT_ZERO_GRADIENT))
            return 0;
    }
    return 1;
}

/* ---- all configurations ------------------------------------------------------------ */

static void check_config(const struct instance *x, const struct topt_config *c,
                         struct counts *n)
{
    struct topt_costing k = {.model = x->model,
                             .hw = hw,
                             .mesh = &x->mesh,
                             .settings = &x->settings,
                             .router = x->router};
    struct topt_strategy *s = topt_strategy_create(x->model);
    struct topt_strategy_cost cost;
    struct topt_program *p;
    struct topt_error err = {0};
    s->config[x->op] = *c;
    n->configs++;
    if (topt_cost_strategy(&k, s, &cost, &err) ||
        topt_lower(x->model, &x->mesh, &x->settings, s, x->router, 0, &p, &err)) {
        printf("# %s\n", err.text);
    } else {
        n->lowered++;
        n->formed += well_formed(p) && layouts_agree(p);
        n->bounded += p->peak_bytes <= cost.memory_bytes;
        n->priced += program_network(p, hw) == cost.sum.network_ns;
        n->sharded += check_sharded(x, c, p);
        n->reduced += check_reduced(x, c, p);
        n->evaluated += evaluated(x->evaluator, s, &cost, p->peak_bytes);
        topt_program_destroy(p);
    }
    topt_strategy_destroy(s);
}

static void check_all(struct instance *x, struct topt_config *c, int axis,
                      struct counts *n)
{
    const struct topt_op *op = &x->model->op[x->op];
    for (int d = -1; axis < x->mesh.naxes && d < op->spec->ndims; d++) {
        c->dim[axis] = (int8_t)d;
        check_all(x, c, axis + 1, n);
    }
    for (int z = 0; axis == x->mesh.naxes && z < TOPT_ZERO_COUNT; z++) {
        c->zero = (uint8_t)z;
        if (topt_config_valid(op, c, &x->mesh))
            check_config(x, c, n);
    }
}

static void check_row(const struct topt_model *m, int op, int nodes, int per_node,
                      int micro_batches)
{
    struct topt_error err = {0};
    struct counts n = {0};
    struct topt_config c = topt_config_none();
    struct instance x = {.op = op, .settings = topt_settings_default()};
    struct topt_model *micro = topt_model_rebatch(m, m->batch / micro_batches, &err);
    x.model = micro;
    x.settings.micro_batches = micro_batches;
    x.settings.optimizer = TOPT_ADAM;
    if (!micro || topt_settings_fit(micro, &x.settings, &err) ||
        topt_mesh_init(&x.mesh, nodes, per_node, &err)) {
        /* a model that mixes samples takes one micro-batch only */
        ok(micro && micro_batches > 1, "%s: %s", m->name, err.text);
        topt_model_destroy(micro);
        return;
    }
    x.router = topt_router_create(hw, &x.mesh);
    struct topt_costing k = {micro, hw, &x.mesh, &x.settings, x.router, NULL};
    x.evaluator = topt_evaluator_create(&k, 1, NULL);
    check_all(&x, &c, 0, &n);
    ok(n.configs && n.lowered == n.configs && n.formed == n.configs &&
           n.bounded == n.configs && n.priced == n.configs && n.sharded == n.configs &&
           n.reduced == n.configs && n.evaluated == n.configs,
       "%s of %s on %dx%d, %d micro-batches: of %d configurations %d lower, %d are well "
       "formed, %d bounded, %d priced, %d are sharded and %d reduce as they should, %d "
       "are "
       "the same where evaluated",
       m->op[op].spec->name, m->name, nodes, per_node, micro_batches, n.configs,
       n.lowered, n.formed, n.bounded, n.priced, n.sharded, n.reduced, n.evaluated);
    topt_evaluator_destroy(x.evaluator);
    topt_router_destroy(x.router);
    topt_model_destroy(micro);
}

/* ---- whole strategies -------------------------------------------------------------- */

static int evaluated_alone(const struct topt_costing *k, struct topt_evaluator *a,
                           const struct topt_strategy *s)
{
    struct topt_strategy_cost cost;
    struct topt_program *p;
    struct topt_error err = {0};
    if (topt_cost_strategy(k, s, &cost, &err) ||
        topt_lower(k->model, k->mesh, k->settings, s, k->router, 0, &p, &err)) {
        printf("# %s\n", err.text);
        return 0;
    }
    int same = evaluated(a, s, &cost, p->peak_bytes);
    topt_program_destroy(p);
    return same;
}

/* Blocks of uneven sizes, windows that are largest in the middle, one thing and another. */
static void check_evaluator(const struct topt_model *m, int nodes, int per_node)
{
    enum { STRATEGIES = 30 };
    struct topt_settings settings = topt_settings_default();
    struct topt_mesh mesh;
    struct dice d = {7, 0};
    int good = 0;
    if (topt_mesh_init(&mesh, nodes, per_node, NULL))
        return;
    settings.granule_bytes = 1;
    struct topt_router *r = topt_router_create(hw, &mesh);
    struct topt_costing k = {m, hw, &mesh, &settings, r, NULL};
    struct topt_evaluator *a = topt_evaluator_create(&k, 1, NULL);
    for (int i = 0; i < STRATEGIES; i++) {
        struct topt_strategy *s = roll_strategy(&d, m, &mesh);
        good += evaluated_alone(&k, a, s);
        topt_strategy_destroy(s);
    }
    is_int(good, STRATEGIES, "%s on %dx%d: evaluated, strategies are what each is alone",
           m->name, nodes, per_node);
    topt_evaluator_destroy(a);
    topt_router_destroy(r);
}

static const struct topt_model *find_row(struct topt_model *const *model,
                                         const struct topt_op_spec *row, int *ret_op)
{
    for (int k = 0; k < MODELS; k++)
        for (int i = 0; i < model[k]->nops; i++)
            if (model[k]->op[i].spec == row) {
                *ret_op = i;
                return model[k];
            }
    return NULL;
}

int main(void)
{
    struct topt_model *model[MODELS];
    const struct topt_op_spec *row;
    hw = topt_hw_load("v100-dgx1-2x8", NULL);
    if (!ok(hw != NULL, "the profile loads"))
        return done_testing();
    for (int k = 0; k < MODELS; k++)
        model[k] = k + 1 < MODELS ? test_models[k].build() : build_own();
    for (int i = 0; (row = topt_op_spec_at(i)); i++) {
        int op = 0;
        if (row->plan_only) /* no model that runs has it */
            continue;
        const struct topt_model *m = find_row(model, row, &op);
        if (!ok(m != NULL, "a model of the tests has '%s'", row->name))
            continue;
        check_row(m, op, 1, 2, 1);
        check_row(m, op, 2, 1, 2);
        check_row(m, op, 1, 3, 1);
        check_row(m, op, 2, 2, 1);
    }
    for (int k = 0; k < MODELS; k++) {
        check_evaluator(model[k], 1, 4);
        check_evaluator(model[k], 2, 3);
        topt_model_destroy(model[k]);
    }
    topt_hw_destroy(hw);
    return done_testing();
}
