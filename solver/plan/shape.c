/* shape.c - a request on nodes x devices: its variants, each a problem, and their union.
 *
 * A variant that can't matter is left out as early as possible: by bytes that every strategy
 * of it needs, before operators are priced; by the sums of what is least for each choice,
 * before anything is searched; by the best found so far, within the search. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "algorithm.h"
#include "answer.h"
#include "topt_orbits.h"

/* ---- micro-batches ------------------------------------------------------------------------ */

static int may_split_batch(const struct topt_request *r)
{
    struct topt_settings s = r->settings;
    s.micro_batches = 2;
    if (s.granule_bytes == 0)
        s.granule_bytes = 1;
    return !topt_settings_fit(r->model, &s, NULL);
}

/* The space that `auto` comes to searches no micro-batches. */
static int searches_micro(const struct topt_request *r)
{
    return topt_request_factors(r, r->space) & TOPT_FACTOR_MICRO && may_split_batch(r);
}

/* The number that splits of attention have to divide: of each operator's heads, or groups of them. */
static int64_t heads_of(const struct topt_model *m)
{
    int64_t all = 0;
    for (int i = 0; i < m->nops; i++)
        for (int d = 0; d < m->op[i].spec->ndims; d++) {
            const struct topt_opdim_spec *dim = &m->op[i].spec->dim[d];
            if (dim->split != TOPT_SPLIT_FEATURE || strcmp(dim->name, "h"))
                continue;
            int64_t n = topt_fewest_counts(&m->op[i], d);
            while (n) {
                int64_t rest = all % n;
                all = n;
                n = rest;
            }
        }
    return all;
}

int topt_micros_init(struct topt_micros *m, const struct topt_request *r,
                     struct topt_error *err)
{
    int64_t batch = r->model->batch, given = r->micro_batches ? r->micro_batches : 1;
    int all = searches_micro(r), n = 0;
    int papers = r->settings.accounting == TOPT_ACCOUNTING_PAPER;
    struct topt_model_stats stats;
    topt_model_stats(r->model, &stats);
    *m = (struct topt_micros){.request = r,
                              .tensor = (enum topt_tensor_where)topt_request_tensor(r, 0),
                              .heads = heads_of(r->model),
                              .parameters = topt_parameter_floor(r->model, &r->settings),
                              .activation_bytes =
                                  papers ? 0
                                         : (double)stats.activation_bytes_per_sample / 4 *
                                               topt_dtype_bytes(r->settings.dtype) *
                                               (double)r->model->batch};
    for (int64_t u = 1; u <= batch; u++)
        n += all ? batch % u == 0 : u == given;
    if (given < 1 || n == 0 || batch % given)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "%lld micro-batches do not divide the batch of %lld",
                         (long long)given, (long long)batch);
    if (topt_model_blocks(r->model, &m->blocks, err))
        return -1;
    m->at = calloc((size_t)n, sizeof *m->at);
    if (!m->at) {
        topt_blocks_fini(&m->blocks);
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for micro-batches");
    }
    for (int64_t u = 1; u <= batch; u++)
        if (all ? batch % u == 0 : u == given)
            m->at[m->n++].batches = u;
    return 0;
}

void topt_micros_fini(struct topt_micros *m)
{
    for (int i = 0; i < m->n; i++)
        topt_model_destroy(m->at[i].owned);
    free(m->at);
    topt_blocks_fini(&m->blocks);
    *m = (struct topt_micros){0};
}

static int make_micro(const struct topt_request *r, struct topt_micro *t,
                      struct topt_error *err)
{
    t->model = r->model;
    if (t->batches > 1) {
        t->owned = topt_model_rebatch(r->model, r->model->batch / t->batches, err);
        if (!t->owned)
            return -1;
        t->model = t->owned;
    }
    t->settings = topt_request_settings(r);
    t->settings.micro_batches = t->batches;
    return topt_settings_fit(t->model, &t->settings, err);
}

/* The micro-batches of a variant, with the model made. */
static struct topt_micro *micro_of(struct topt_micros *m, int64_t batches,
                                   struct topt_error *err)
{
    int i = 0;
    while (m->at[i].batches != batches)
        i++;
    struct topt_micro *t = &m->at[i];
    return t->model || !make_micro(m->request, t, err) ? t : NULL;
}

/* ---- variants ------------------------------------------------------------------------------ */

struct lister {
    struct topt_shape_search *s;
    int cap;
};

static int add_variant(struct lister *l, const struct topt_variant *v)
{
    struct topt_shape_search *s = l->s;
    if (s->nvariants == l->cap) {
        int cap = l->cap ? 2 * l->cap : 16;
        struct topt_variant *grown = realloc(s->variant, (size_t)cap * sizeof *grown);
        if (!grown)
            return -1;
        s->variant = grown;
        l->cap = cap;
    }
    s->variant[s->nvariants++] = *v;
    return 0;
}

/* Device meshes: the axes in order, some of them taken together as one dimension. */
static int add_meshes(struct lister *l, struct topt_variant v)
{
    if (!l->s->algorithm || !l->s->algorithm->one_mesh)
        return add_variant(l, &v);
    uint32_t last = l->s->mesh.naxes ? 1u << l->s->mesh.naxes : 2;
    for (v.mesh_starts = 1; v.mesh_starts < last; v.mesh_starts += 2)
        if (add_variant(l, &v))
            return -1;
    return 0;
}

static int add_recompute(struct lister *l, struct topt_variant v)
{
    int last = l->s->factors & TOPT_FACTOR_RECOMPUTE ? 1 : 0;
    for (v.recompute = 0; v.recompute <= last; v.recompute++)
        if (add_meshes(l, v))
            return -1;
    return 0;
}

/* The levels of sharding that there are, as bits. */
static int levels(const struct topt_shape_search *s)
{
    int all = s->factors & TOPT_FACTOR_ZERO ? (1 << TOPT_ZERO_COUNT) - 1 : 1;
    const struct topt_framework *f = s->request->framework;
    if (s->algorithm && s->algorithm->zero && all > 1)
        all = s->algorithm->zero;
    return f ? all & f->zero : all;
}

/* Attention is split by heads, those of keys and values too: no framework leaves it whole beside split products. */
static int heads_fit(const struct topt_shape_search *s, const struct topt_variant *v)
{
    int64_t tensor = s->mesh.devices / topt_data_ranks(&s->mesh, v->cut);
    return !topt_request_even(s->request) || s->micros->heads % tensor == 0;
}

/* Where parts are equal the batch is data parallel ranks x micro-batch x accumulation. */
static int batch_fits(const struct topt_shape_search *s, const struct topt_variant *v)
{
    int64_t samples = s->request->model->batch / v->micro_batches;
    return !topt_request_even(s->request) ||
           samples % topt_data_ranks(&s->mesh, v->cut) == 0;
}

static int add_uniform(struct lister *l, struct topt_variant v)
{
    int all = levels(l->s);
    for (v.cut = topt_tensor_from(&l->s->mesh, l->s->micros->tensor);
         v.cut <= l->s->mesh.naxes; v.cut++) {
        if (!batch_fits(l->s, &v) || !heads_fit(l->s, &v))
            continue;
        for (v.zero = 0; v.zero < TOPT_ZERO_COUNT; v.zero++)
            if ((v.cut ? all >> v.zero & 1 : v.zero == 0) && add_recompute(l, v))
                return -1;
    }
    return 0;
}

static int list_variants(struct topt_shape_search *s, struct topt_error *err)
{
    struct lister l = {s, 0};
    for (int i = 0; i < s->micros->n; i++) {
        struct topt_variant v = {.micro_batches = s->micros->at[i].batches};
        if (s->space == TOPT_SPACE_UNIFORM ? add_uniform(&l, v) : add_recompute(&l, v))
            return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the search");
    }
    return 0;
}

/* ---- the shape ----------------------------------------------------------------------------- */

static int by_ft(const struct topt_shape_search *s)
{
    const char *search = topt_algorithm_search(s->request->algorithm);
    return !search || !strcmp(search, "ft");
}

/* With recomputation the cost of free blocks is known to a little less than it is (problem_impl.h), which serves
 * who asks for the fastest within a tolerance; frontiers, the least memory and exact answers are of blocks alike. */
static int resolve_blocks(struct topt_shape_search *s, enum topt_goal goal,
                          struct topt_error *err)
{
    enum topt_block_choice asked = s->request->blocks;
    int remake = s->factors & TOPT_FACTOR_RECOMPUTE;
    int whole = goal == TOPT_GOAL_FRONTIER || !by_ft(s);
    s->alike = asked == TOPT_BLOCKS_ALIKE;
    if (asked == TOPT_BLOCKS_AUTO)
        s->alike =
            s->space == TOPT_SPACE_UNIFORM || (s->algorithm && s->algorithm->alike) ||
            (remake && (whole || goal == TOPT_GOAL_LEAST || s->request->epsilon <= 0));
    return remake && whole && !s->alike
               ? topt_fail(err, TOPT_ERR_INVAL,
                           "a frontier with recomputation is searched only where blocks "
                           "choose alike; take blocks alike, or factors without "
                           "recompute")
               : 0;
}

int topt_shape_open(struct topt_shape_search *s, struct topt_micros *m, int nodes,
                    int per_node, enum topt_goal goal, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    memset(s, 0, sizeof *s);
    s->request = r;
    s->micros = m;
    if (topt_mesh_init(&s->mesh, nodes, per_node, err))
        return -1;
    s->algorithm = topt_algorithm_find(r->algorithm);
    s->space = topt_space_resolve(r->space, s->mesh.devices);
    s->factors = topt_request_factors(r, s->space);
    if (resolve_blocks(s, goal, err) || list_variants(s, err))
        return -1;
    s->router = topt_router_create(r->hw, &s->mesh);
    return s->router ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for the search");
}

void topt_shape_close(struct topt_shape_search *s)
{
    while (s->settings) {
        struct topt_variant_settings *next = s->settings->next;
        free(s->settings);
        s->settings = next;
    }
    topt_router_destroy(s->router);
    free(s->variant);
    free(s->known);
    s->known = NULL;
    s->router = NULL;
    s->variant = NULL;
}

/* ---- what is never in memory together -------------------------------------------------------- */

/* Bytes that one device makes again of a model at most, by the strategy that keeps fewest copies. */
static int remade_on_one(const struct topt_micros *m, struct topt_micro *t,
                         struct topt_error *err)
{
    struct topt_mesh one;
    struct topt_strategy *all = topt_strategy_create(t->model);
    struct topt_router *router = NULL;
    uint8_t *may = NULL;
    int rc = !all || topt_mesh_init(&one, 1, 1, err) ||
             topt_recomputable(t->model, &m->blocks, &may, err) ||
             !(router = topt_router_create(m->request->hw, &one));
    int64_t least = INT64_MAX, of_all = 0;
    for (int keep = TOPT_HUB_DROP; keep <= TOPT_HUB_REMAKE && !rc; keep++) {
        struct topt_costing k = {t->model,     m->request->hw, &one,
                                 &t->settings, router,         NULL};
        struct topt_strategy_cost cost;
        for (int i = 0; i < t->model->nops; i++)
            all->config[i].recompute = may[i];
        for (int i = 0; i < t->model->ntensors; i++)
            all->hub[i].keep =
                keep == TOPT_HUB_REMAKE && !may[t->model->tensor[i].producer]
                    ? TOPT_HUB_DROP
                    : keep;
        if (keep == TOPT_HUB_KEEP)
            continue;
        rc = topt_cost_strategy(&k, all, &cost, err);
        if (!rc && cost.remade_bytes < least) {
            least = cost.remade_bytes;
            of_all = cost.sum.class_bytes[TOPT_CLASS_REMADE];
        }
    }
    topt_router_destroy(router);
    topt_strategy_destroy(all);
    free(may);
    t->remade = least;
    t->remade_all = of_all;
    t->remade_known = !rc;
    return rc ? topt_wrap(err, "what is made again") : 0;
}

/* Of parameters. */
struct numbers {
    double block_bytes; /* values of one block of each kind */
    double block, blocks,
        outside; /* numbers that are trained: of these, of all blocks, of what is in none */
};

static struct numbers numbers_of(const struct topt_model *m, double value)
{
    struct numbers n = {0, 0, 0, 0};
    for (int i = 0; i < m->nops; i++) {
        const struct topt_attrs *a = &m->op[i].attrs;
        double own = topt_op_parameters(&m->op[i]), trained = a->frozen ? 0 : own;
        if (!m->repeats[i]) {
            n.outside += trained;
            continue;
        }
        n.block_bytes += own * (a->bits ? (double)a->bits / 8 : value) / m->repeats[i];
        n.block += trained / m->repeats[i];
        n.blocks += trained;
    }
    return n;
}

/* What blocks begin with, which is kept where all else of them is made again. */
static double input_bytes(const struct topt_micros *m, const struct topt_micro *t)
{
    double bytes = 0;
    for (int i = 0; i < m->blocks.nkinds; i++) {
        const struct topt_block_kind *b = &m->blocks.of[i];
        const struct topt_op *o = &t->model->op[b->first];
        double n = topt_dtype_bytes(t->settings.dtype);
        if (!o->ninputs)
            continue;
        struct topt_shape s =
            topt_tensor_shape(&t->model->tensor[o->operand[o->input[0]].tensor]);
        for (int d = 0; d < s.ndim; d++)
            n *= (double)s.dim[d].count * (double)s.dim[d].unit;
        bytes += n * b->count;
    }
    return bytes;
}

/* What a uniform strategy in units is charged for on a device at least, in bytes. */
struct units {
    double made;      /* gradients of one block as backward makes them */
    double block;     /* what is gathered and on its way of blocks: BUFFERS */
    double aside;     /* of BUFFERS in all, what is not there while the loss runs */
    double gradients; /* of parameters in blocks, which stay: GRAD */
    double outside;   /* the same of what is outside of blocks */
};

static struct units units_of(const struct topt_settings *x, const struct topt_variant *v,
                             const struct topt_model *m, double all, double tensor)
{
    double value = topt_dtype_bytes(x->dtype);
    struct numbers n = numbers_of(m, value);
    double each = x->gradient_f32 ? 4 : value;
    double reduced = value + (x->gradient_f32 ? 4 : 0);
    double ranks = v->zero >= TOPT_ZERO_GRADIENT ? all : tensor;
    struct units u = {.gradients = n.blocks * each / ranks,
                      .outside = n.outside * each / ranks};
    if (v->zero < TOPT_ZERO_GRADIENT)
        return u;
    u.made = n.block * value / tensor;
    u.block = n.block * reduced / tensor;
    u.aside = u.block + n.outside * value / tensor;
    if (v->zero == TOPT_ZERO_PARAM) {
        u.block += 2 * n.block_bytes / tensor;
        u.aside += n.block_bytes / tensor; /* one of two is there */
    }
    return u;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Two things come as fast as others go, so that the larger of both is the most: a block's gradients as what was made again
 * of it ('remade'); and, in a step of one micro-batch, the gradients of all blocks as what these kept. */
static double late_bytes(const struct topt_shape_search *s, const struct topt_variant *v,
                         const struct topt_micro *t, const struct units *u, double remade)
{
    double kept = v->recompute ? input_bytes(s->micros, t) : (double)t->remade_all;
    double late = v->recompute ? smaller(remade, u->made) : 0;
    return v->micro_batches > 1 ? late
                                : late + smaller(kept / s->mesh.devices, u->gradients);
}

/* Floors of all, less a hundredth, as bytes are weighed by thousandths. */
int topt_shape_apart(struct topt_shape_search *s, struct topt_variant *v,
                     struct topt_error *err)
{
    double all = s->mesh.devices,
           tensor = all / (double)topt_data_ranks(&s->mesh, v->cut);
    if (s->space != TOPT_SPACE_UNIFORM || !topt_request_even(s->request) ||
        v->apart_bytes || v->late_permille)
        return 0;
    struct topt_micro *t = micro_of(s->micros, v->micro_batches, err);
    if (!t || (!t->remade_known && remade_on_one(s->micros, t, err)))
        return -1;
    const struct topt_settings *x = &t->settings;
    double remade = v->recompute ? 0.9 * (double)t->remade / all : 0, bytes = remade;
    if (x->gather == TOPT_GATHER_UNIT) {
        struct units u = units_of(x, v, t->model, all, tensor);
        double late = 0, of = u.gradients + u.block;
        if (tensor == 1 && of > 0)
            late = late_bytes(s, v, t, &u, remade) / of;
        v->late_permille = (int)(1000 * smaller(late, 1));
        bytes += u.aside - of * v->late_permille / 1000;
        if (v->micro_batches == 1)
            bytes += u.gradients + u.outside;
    }
    v->apart_bytes = bytes > 0 ? (int64_t)(0.99 * bytes) : 0;
    return 0;
}

/* The settings of a variant, which stay where they are until the shape is closed: costings borrow them. */
static struct topt_variant_settings *settings_of(struct topt_shape_search *s,
                                                 const struct topt_variant *v,
                                                 struct topt_micro *t,
                                                 struct topt_error *err)
{
    struct topt_variant_settings *at = s->settings;
    while (at && (at->settings.micro_batches != v->micro_batches ||
                  at->settings.apart_bytes != v->apart_bytes ||
                  at->settings.late_permille != v->late_permille))
        at = at->next;
    if (at)
        return at;
    at = calloc(1, sizeof *at);
    if (!at) {
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for the search");
        return NULL;
    }
    *at = (struct topt_variant_settings){t->settings, s->settings};
    at->settings.apart_bytes = v->apart_bytes;
    at->settings.late_permille = v->late_permille;
    s->settings = at;
    return at;
}

int topt_shape_costing(struct topt_shape_search *s, const struct topt_variant *v,
                       struct topt_costing *ret, struct topt_error *err)
{
    struct topt_micro *t = micro_of(s->micros, v->micro_batches, err);
    const struct topt_variant_settings *x = t ? settings_of(s, v, t, err) : NULL;
    if (!x)
        return -1;
    *ret = (struct topt_costing){t->model,     s->request->hw, &s->mesh,
                                 &x->settings, s->router,      s->request->cancel};
    return 0;
}

static int zero_levels(const struct topt_shape_search *s, const struct topt_variant *v)
{
    return s->space == TOPT_SPACE_UNIFORM ? 1 << v->zero : levels(s);
}

static enum topt_recompute recompute_of(const struct topt_shape_search *s,
                                        const struct topt_variant *v)
{
    if (!v->recompute)
        return TOPT_RECOMPUTE_NONE;
    return s->space == TOPT_SPACE_UNIFORM ? TOPT_RECOMPUTE_ALL : TOPT_RECOMPUTE_FREE;
}

/* From so many axes on finding ways between layouts takes longer than all else. */
enum { MANY_AXES = 5, PRICED_FIRST = 2048 };

static int wants_floors(const struct topt_shape_search *s)
{
    return s->space != TOPT_SPACE_UNIFORM && s->mesh.naxes >= MANY_AXES && by_ft(s);
}

/* Of the full space a hundredth tells all but what axes are called. */
static int wants_orbits(const struct topt_shape_search *s)
{
    return s->fastest && s->space == TOPT_SPACE_FULL && !s->algorithm &&
           wants_floors(s) && topt_orbits_few(&s->mesh);
}

static int make_problem(struct topt_shape_search *s, const struct topt_variant *v,
                        int floors, struct topt_problem **ret, struct topt_error *err)
{
    const struct topt_request *r = s->request;
    struct topt_costing k;
    struct topt_space_options o = {.space = s->space,
                                   .cut = v->cut,
                                   .even = topt_request_even(r),
                                   .vocab = r->model->vocab,
                                   .sequence = r->sequence_splits,
                                   .blocks = &s->micros->blocks,
                                   .alike = s->alike,
                                   .zero = zero_levels(s, v),
                                   .recompute = recompute_of(s, v),
                                   .mesh_starts = v->mesh_starts,
                                   .floors = floors,
                                   .orbits = floors && wants_orbits(s),
                                   .threads = r->threads,
                                   .max_bytes = r->max_table_bytes,
                                   .progress = r->progress};
    if (s->algorithm)
        o.restriction = s->algorithm->restriction;
    if (topt_shape_costing(s, v, &k, err))
        return -1;
    /* Prices are of no use before they are complete. */
    k.cancel = r->stop ? r->stop : r->cancel;
    return topt_problem_create(&k, &o, ret, err);
}

int topt_shape_problem(struct topt_shape_search *s, const struct topt_variant *v,
                       struct topt_problem **ret, struct topt_error *err)
{
    return make_problem(s, v, wants_floors(s) ? PRICED_FIRST : 0, ret, err);
}

int topt_shape_priced(struct topt_shape_search *s, const struct topt_variant *v,
                      struct topt_problem **ret, struct topt_error *err)
{
    return make_problem(s, v, 0, ret, err);
}

int topt_shape_holds(const struct topt_shape_search *s, const struct topt_strategy *st)
{
    struct topt_space_options o = {.space = s->space,
                                   .even = topt_request_even(s->request),
                                   .vocab = s->request->model->vocab,
                                   .zero = levels(s),
                                   .sequence = s->request->sequence_splits};
    return topt_space_holds(s->request->model, &s->mesh, &o, st);
}

/* ---- what every strategy of a variant needs ------------------------------------------------ */

/* Devices over which a variant can spread a parameter's value, gradient and state at most. */
struct spread {
    double value, gradient, state;
};

static struct spread spread_of(const struct topt_shape_search *s,
                               const struct topt_variant *v)
{
    double all = s->mesh.devices, tensor = 1;
    if (s->space != TOPT_SPACE_UNIFORM)
        return (struct spread){all, all, all};
    for (int a = v->cut; a < s->mesh.naxes; a++)
        tensor *= s->mesh.size[a];
    return (struct spread){v->zero >= TOPT_ZERO_PARAM ? all : tensor,
                           v->zero >= TOPT_ZERO_GRADIENT ? all : tensor,
                           v->zero >= TOPT_ZERO_STATE ? all : tensor};
}

/* Parameters, gradients, states, and what backward reads, each once and spread evenly; of gradients that come late
 * and what backward reads, no more than may be charged. */
int64_t topt_shape_least_bytes(struct topt_shape_search *s, const struct topt_variant *v)
{
    const struct topt_parameter_floor *p = &s->micros->parameters;
    struct spread n = spread_of(s, v);
    double bytes = p->value / n.value + p->gradient / n.gradient + p->state / n.state;
    double kept =
        s->micros->activation_bytes / (double)v->micro_batches / s->mesh.devices;
    if (s->request->settings.gather == TOPT_GATHER_UNIT && v->micro_batches == 1)
        kept -= p->gradient / n.gradient; /* late_bytes */
    if (!v->recompute && kept > 0)
        bytes += kept;
    return (int64_t)(bytes * (1 - 1e-9));
}

/* ---- solving ------------------------------------------------------------------------------- */

static void add_stats(struct topt_shape_search *s, const struct topt_problem *p)
{
    struct topt_problem_stats stats;
    topt_problem_stats(p, &stats);
    topt_problem_stats_add(&s->stats, &stats);
    s->stats.routes = topt_router_routes(s->router); /* of all problems so far */
}

struct solver {
    struct topt_shape_search *s;
    enum topt_goal goal;
    struct topt_search_options o;
    struct topt_cost *known; /* of other shapes and variants before */
    struct topt_solutions *ret;
    struct topt_error *err;
};

static int beyond(int64_t value, int64_t limit)
{
    return limit && value > limit;
}

/* Limits as they are now: nothing slower than the fastest, or hungrier than the least. */
static int64_t time_limit(const struct solver *v)
{
    return v->goal == TOPT_GOAL_FASTEST && v->ret->n ? v->ret->at[0].time_ns
                                                     : v->o.time_limit;
}

static int64_t memory_limit(const struct solver *v)
{
    return v->goal == TOPT_GOAL_LEAST && v->ret->n ? v->ret->at[0].memory_bytes
                                                   : v->o.memory_limit;
}

/* Points of a whole frontier that are had already. */
static int know(struct solver *v, struct topt_search_options *o)
{
    size_t n = 0, most = (size_t)v->s->nknown + (size_t)v->ret->n + 1;
    if (v->goal != TOPT_GOAL_FRONTIER)
        return 0;
    struct topt_cost *known = realloc(v->known, most * sizeof *known);
    if (!known)
        return topt_fail(v->err, TOPT_ERR_NOMEM, "no memory for the frontier");
    v->known = known;
    for (int i = 0; i < v->s->nknown; i++)
        known[n++] = v->s->known[i];
    for (int i = 0; i < v->ret->n; i++)
        known[n++] =
            (struct topt_cost){v->ret->at[i].memory_bytes, v->ret->at[i].time_ns};
    o->known = known;
    o->nknown = (int)topt_reduce(known, n);
    return 0;
}

static int search_variant(struct solver *v, struct topt_problem *p,
                          const struct topt_search_options *options,
                          struct topt_solutions *ret)
{
    struct topt_search_options o = *options;
    struct topt_cost least = topt_problem_bound(p);
    if (!topt_problem_some(p))
        return 0;
    if (beyond(least.memory, o.memory_limit) || beyond(least.time, o.time_limit))
        return 0;
    if (v->goal == TOPT_GOAL_LEAST)
        return topt_problem_least(p, &v->o, o.memory_limit, ret, v->err);
    return v->goal == TOPT_GOAL_FASTEST ? topt_problem_fastest(p, &o, ret, v->err)
                                        : topt_problem_frontier(p, &o, ret, v->err);
}

/* Of what was found, only the best by the goal. */
static void keep_best(struct solver *v)
{
    struct topt_solutions *s = v->ret;
    if (v->goal == TOPT_GOAL_FRONTIER || s->n < 2)
        return;
    int best = v->goal == TOPT_GOAL_FASTEST ? s->n - 1 : 0;
    struct topt_solution keep = s->at[best];
    s->at[best] = s->at[0];
    s->at[0] = keep;
    while (s->n > 1)
        topt_strategy_destroy(s->at[--s->n].strategy);
}

/* Is the best so far to be the answer?  Of the least, only the least is one. */
static int stopping(const struct solver *v)
{
    const struct topt_request *r = v->s->request;
    if (v->goal == TOPT_GOAL_LEAST)
        return 0;
    return topt_request_stopped(r) || (r->max_work && v->s->micros->work >= r->max_work);
}

/* Nothing is known of what is left. */
static void give_up(struct solver *v)
{
    struct topt_claim none = {.epsilon = INFINITY, .floor_bytes = INT64_MAX};
    if (!topt_claim_merge(&v->ret->claim, &none, NULL))
        v->ret->stopped = 1;
}

/* Work of this request that is left. */
static int64_t work_left(const struct solver *v)
{
    int64_t most = v->s->request->max_work, done = v->s->micros->work;
    return most && v->goal != TOPT_GOAL_LEAST ? most - done : 0;
}

static int pose(struct solver *v, const struct topt_variant *variant,
                struct topt_problem **ret)
{
    v->s->fastest = v->goal == TOPT_GOAL_FASTEST;
    int rc = topt_shape_problem(v->s, variant, ret, v->err);
    v->s->fastest = 0;
    return rc;
}

static int price_and_search(struct solver *v, const struct topt_variant *variant,
                            struct topt_problem **p, struct topt_solutions *part)
{
    v->o.max_work = work_left(v);
    struct topt_search_options o = v->o;
    if (know(v, &o))
        return -1;
    o.time_limit = time_limit(v);
    o.memory_limit = memory_limit(v);
    if (pose(v, variant, p) || search_variant(v, *p, &o, part)) {
        if (!stopping(v))
            return -1;
        give_up(v);
        return 0;
    }
    v->s->micros->work += part->claim.stats.products;
    add_stats(v->s, *p);
    return 0;
}

/* What makes nothing again costs less than a problem says that is free to: without a tolerance another variant has
 * that for less, with one it may have left it out. */
static int charge_what_it_costs(struct solver *v, const struct topt_variant *variant,
                                const struct topt_problem *p, struct topt_solutions *part)
{
    struct topt_costing k;
    struct topt_audit *audit = NULL;
    int rc = 0;
    for (int i = 0; i < part->n && !rc; i++) {
        struct topt_strategy_cost cost;
        int64_t peak;
        if (topt_problem_charges(p, part->at[i].strategy))
            continue;
        if (!audit && (topt_shape_costing(v->s, variant, &k, v->err) ||
                       !(audit = topt_audit_create(&k, v->err))))
            return -1;
        rc = topt_audit_strategy(audit, part->at[i].strategy, &cost, &peak, v->err);
        if (!rc)
            part->at[i].memory_bytes = cost.memory_bytes;
    }
    topt_audit_destroy(audit);
    return rc;
}

static void tell_progress(const struct solver *v, const struct topt_variant *variant)
{
    struct topt_progress *p = v->s->request->progress;
    TOPT_PROGRESS(p, gpus, v->s->mesh.devices);
    TOPT_PROGRESS(p, nodes, v->s->mesh.nodes);
    TOPT_PROGRESS(p, variant, variant - v->s->variant + 1);
    TOPT_PROGRESS(p, variants, v->s->nvariants);
    TOPT_PROGRESS(p, priced, 0);
    TOPT_PROGRESS(p, phase, TOPT_PHASE_PRICING);
}

static int solve_variant(struct solver *v, struct topt_variant *variant)
{
    const atomic_bool *cancel = v->s->request->cancel;
    struct topt_problem *p = NULL;
    struct topt_solutions part = {.claim = topt_claim_exact()};
    if (cancel && atomic_load(cancel))
        return topt_fail(v->err, TOPT_ERR_CANCELED, "the search was canceled");
    if (beyond(topt_shape_least_bytes(v->s, variant), memory_limit(v)))
        return 0;
    if (topt_shape_apart(v->s, variant, v->err))
        return -1;
    tell_progress(v, variant);
    int rc = price_and_search(v, variant, &p, &part) ||
             charge_what_it_costs(v, variant, p, &part);
    if (!rc) {
        for (int i = 0; i < part.n; i++)
            part.at[i].variant = *variant;
        rc = topt_solutions_merge(v->ret, &part, v->err);
        keep_best(v);
    }
    topt_solutions_fini(&part);
    topt_problem_destroy(p);
    return rc ? -1 : 0;
}

/* Strategies of another space that lie in the shape's own, as its own. */
static void adopt(const struct topt_shape_search *s, struct topt_solutions *all)
{
    int n = 0;
    for (int i = 0; i < all->n; i++) {
        if (!topt_shape_holds(s, all->at[i].strategy)) {
            topt_strategy_destroy(all->at[i].strategy);
            continue;
        }
        all->at[i].variant.cut = all->at[i].variant.zero = 0;
        all->at[n++] = all->at[i];
    }
    all->n = n;
    topt_claim_fini(&all->claim);
    all->claim = topt_claim_exact();
    all->stopped = all->ncaps = 0;
}

/* What the uniform space has, as far as it lies in the shape's own. */
static int solve_uniform(struct topt_shape_search *s, enum topt_goal goal, int64_t limit,
                         const atomic_bool *stop, struct topt_solutions *ret,
                         struct topt_error *err)
{
    struct topt_request r = topt_request_uniform(s->request, s->factors);
    struct topt_shape_search other = {0};
    struct topt_micros micros;
    r.stop = stop;
    if (topt_micros_init(&micros, &r, err))
        return -1;
    micros.work = s->micros->work;
    int rc = topt_shape_open(&other, &micros, s->mesh.nodes, s->mesh.per_node, goal, err);
    if (!rc) { /* ways are the same */
        topt_router_destroy(other.router);
        other.router = s->router;
        rc = topt_shape_solve(&other, goal, limit, 0, ret, err);
        other.router = NULL;
    }
    s->micros->work = micros.work;
    topt_shape_close(&other);
    topt_micros_fini(&micros);
    if (!rc)
        adopt(s, ret);
    return rc ? -1 : 0;
}

/* A frontier whose search was stopped before it had anything has at least the fastest of the uniform space. */
static int stand_in(struct topt_shape_search *s, int64_t limit,
                    struct topt_solutions *ret, struct topt_error *err)
{
    struct topt_solutions uniform = {.claim = topt_claim_exact()};
    if (ret->n || !ret->stopped || s->nknown || s->algorithm ||
        s->space == TOPT_SPACE_UNIFORM)
        return 0;
    int rc = solve_uniform(s, TOPT_GOAL_FASTEST, limit, NULL, &uniform, err) ||
             topt_solutions_merge(ret, &uniform, err);
    topt_solutions_fini(&uniform);
    return rc ? -1 : 0;
}

int topt_shape_solve(struct topt_shape_search *s, enum topt_goal goal, int64_t limit,
                     int64_t time_limit, struct topt_solutions *ret,
                     struct topt_error *err)
{
    const struct topt_request *r = s->request;
    struct solver v = {.s = s,
                       .goal = goal,
                       .o = {.algorithm = topt_algorithm_search(r->algorithm),
                             .memory_limit = limit,
                             .time_limit = time_limit,
                             .epsilon = r->epsilon,
                             .threads = r->threads,
                             .cancel = r->cancel,
                             .stop = r->stop,
                             .progress = r->progress,
                             .max_entries = r->max_entries},
                       .ret = ret,
                       .err = err};
    int rc = 0;
    *ret = (struct topt_solutions){.claim = topt_claim_exact()};
    /* What needs least comes last among the variants, what is fastest first. */
    for (int i = 0; i < s->nvariants && !rc; i++) {
        int at = goal == TOPT_GOAL_LEAST ? s->nvariants - 1 - i : i;
        if (stopping(&v)) {
            give_up(&v);
            break;
        }
        rc = solve_variant(&v, &s->variant[at]);
    }
    free(v.known);
    if (!rc && goal == TOPT_GOAL_FRONTIER)
        rc = stand_in(s, limit, ret, err);
    if (rc)
        topt_solutions_fini(ret);
    return rc;
}
