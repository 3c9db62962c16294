/* lifetimes.c - memory of uniform strategies of another framework that is never in
 * use at once. */
#include "lifetimes.h"
#include "grid_data.h"
#include "planning.h"
#include "request.h"
#include "free.h"
#include "topt_choices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that one device recomputes of a model at most, by the strategy that keeps fewest
 * copies. */
static int recomputed_on_one(const struct topt_planning *m, struct topt_micro *t,
                             struct topt_error *err)
{
    struct topt_mesh one;
    struct topt_strategy *all = topt_strategy_create(t->model);
    struct topt_router *router = NULL;
    struct topt_evaluator *costs = NULL; /* layers are alike, so each is costed once */
    uint8_t *may = NULL;
    int rc = !all || topt_mesh_init(&one, 1, 1, err) ||
             topt_recomputable(t->model, &t->settings, &may, err) ||
             !(router = topt_router_create(m->request->hw, &one));
    struct topt_costing k = {t->model, m->request->hw, &one, &t->settings, router, NULL};
    if (!rc)
        rc = !(costs = topt_evaluator_create(&k, 0, err));
    int64_t least = INT64_MAX, of_all = 0;
    for (int keep = TOPT_HUB_DROP; keep <= TOPT_HUB_RECOMPUTE && !rc; keep++) {
        struct topt_strategy_cost cost;
        for (int i = 0; i < t->model->nops; i++)
            all->config[i].recompute = may[i];
        for (int i = 0; i < t->model->ntensors; i++)
            all->hub[i].keep =
                keep == TOPT_HUB_RECOMPUTE && !may[t->model->tensor[i].producer]
                    ? TOPT_HUB_DROP
                    : keep;
        if (keep == TOPT_HUB_KEEP)
            continue;
        rc = topt_evaluate_strategy(costs, all, &cost, NULL, err);
        if (!rc && cost.recomputed_bytes < least) {
            least = cost.recomputed_bytes;
            of_all = cost.sum.class_bytes[TOPT_CLASS_RECOMPUTED];
        }
    }
    topt_evaluator_destroy(costs);
    topt_router_destroy(router);
    topt_strategy_destroy(all);
    free(may);
    t->recomputed = least;
    t->recomputed_all = of_all;
    t->recomputed_known = !rc;
    return rc ? topt_wrap(err, "what is recomputed") : 0;
}

/* Sums over parameters. */
struct parameter_counts {
    double other;  /* bytes of the values of the smaller of the two largest units ... */
    double values; /* and of both */
    double one,    /* numbers that are trained: of the larger one, ... */
        units,     /* of all units, of what is in none */
        outside;
};

static struct parameter_counts count_parameters(const struct topt_model *m, double value)
{
    struct parameter_counts n = {0, 0, 0, 0, 0};
    for (int i = 0; i < m->nops; i++) {
        const struct topt_attrs *a = &m->op[i].attrs;
        const struct topt_share *s = &m->share[i];
        double own = topt_op_parameters(&m->op[i]), trained = a->frozen ? 0 : own;
        double bytes = own * (a->bits ? (double)a->bits / 8 : value), of = (double)s->of;
        if (m->unit[i] < 0) {
            n.outside += trained;
            continue;
        }
        n.other += bytes * (double)s->other / of;
        n.values += bytes * (double)(s->one + s->other) / of;
        n.one += trained * (double)s->one / of;
        n.units += trained;
    }
    return n;
}

/* Inputs of units, which are kept where everything else in a unit is recomputed. */
static double input_bytes(const struct topt_micro *t)
{
    double bytes = 0;
    for (int i = 0; i < t->model->nops; i++) {
        const struct topt_op *o = &t->model->op[i];
        double n = topt_dtype_bytes(t->settings.dtype);
        if (t->model->unit[i] != i || !o->ninputs)
            continue;
        struct topt_shape s =
            topt_tensor_shape(&t->model->tensor[o->operand[o->input[0]].tensor]);
        for (int d = 0; d < s.ndim; d++)
            n *= (double)s.dim[d].count * (double)s.dim[d].unit;
        bytes += n;
    }
    return bytes;
}

/* What a uniform strategy in units is charged for on a device at least, in bytes. */
struct units {
    double made;      /* gradients of one unit as backward makes them */
    double units;     /* what is gathered and on its way of units: BUFFERS */
    double absent;    /* of BUFFERS in all, what is not there while the loss runs */
    double gradients; /* of parameters in units, which stay: GRAD */
    double outside;   /* the same of what is outside of units */
};

static struct units units_of(const struct topt_settings *x, const struct topt_degrees *v,
                             const struct topt_model *m, double all, double tensor)
{
    double value = topt_dtype_bytes(x->dtype);
    struct parameter_counts n = count_parameters(m, value);
    double each = x->gradient_f32 ? 4 : value;
    double reduced = value + (x->gradient_f32 ? 4 : 0);
    double ranks = v->level >= TOPT_ZERO_GRADIENT ? all : tensor;
    struct units u = {.gradients = n.units * each / ranks,
                      .outside = n.outside * each / ranks};
    if (v->level < TOPT_ZERO_GRADIENT)
        return u;
    u.made = n.one * value / tensor;
    u.units = n.one * reduced / tensor;
    u.absent = u.units + n.outside * value / tensor;
    if (v->level == TOPT_ZERO_PARAM) {
        u.units += n.values / tensor;
        u.absent += n.other / tensor; /* one of two is there */
    }
    return u;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Two things come as fast as others go, so that the larger of both is the most: a unit's
 * gradients as what was recomputed of it ('recomputed'); and, in a step of one micro-batch,
 * the gradients of all units as what these kept. */
static double late_bytes(const struct topt_grid_search *s, const struct topt_degrees *v,
                         const struct topt_micro *t, const struct units *u,
                         double recomputed)
{
    double kept = v->recompute ? input_bytes(t) : (double)t->recomputed_all;
    double late = v->recompute ? smaller(recomputed, u->made) : 0;
    return v->micro_batches > 1 ? late
                                : late + smaller(kept / s->mesh.devices, u->gradients);
}

static int know_recomputed(struct topt_planning *m, struct topt_micro *t,
                           struct topt_error *err)
{
    pthread_mutex_lock(&m->lock);
    int rc = t->recomputed_known ? 0 : recomputed_on_one(m, t, err);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

/* Floors of all, less a hundredth, as bytes are weighed by thousandths. */
int topt_uniform_lifetimes(struct topt_grid_search *s, struct topt_degrees *v,
                           struct topt_error *err)
{
    double all = s->mesh.devices, tensor = v->tensor;
    if (s->space != TOPT_SPACE_UNIFORM || !topt_request_even(s->request) ||
        v->apart_bytes || v->late_permille)
        return 0;
    struct topt_micro *t = topt_planning_at(s->planning, v->micro_batches, err);
    if (!t || know_recomputed(s->planning, t, err))
        return -1;
    const struct topt_settings *x = &t->settings;
    double recomputed = v->recompute ? 0.9 * (double)t->recomputed / all : 0,
           bytes = recomputed;
    if (x->gather == TOPT_GATHER_UNIT) {
        struct units u = units_of(x, v, t->model, all, tensor);
        double late = 0, of = u.gradients + u.units;
        if (tensor == 1 && of > 0)
            late = late_bytes(s, v, t, &u, recomputed) / of;
        v->late_permille = (int)(1000 * smaller(late, 1));
        bytes += u.absent - of * v->late_permille / 1000;
        if (v->micro_batches == 1)
            bytes += u.gradients + u.outside;
    }
    v->apart_bytes = bytes > 0 ? (int64_t)(0.99 * bytes) : 0;
    return 0;
}
