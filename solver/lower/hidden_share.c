/* hidden_share.c - which share of asynchronous communication is hidden, by a schedule of
 * whole operators.
 *
 * A stream computes, operator after operator, forward and backward; a link does the
 * asynchronous communication, first come, first served.  When a unit begins, the parameters of
 * the next one are gathered; an operator computes when its own are there; its gradient is
 * reduced when its backward ends (at the end of the last micro-batch's, where gradients are
 * added up first); and at the end of the step each parameter is updated when its gradient is
 * there.
 *
 *     computing   | unit 1      | unit 2      | ...
 *     moving      | gather 2 |    gather 3 |
 *
 * solver/simulate does the same by instructions and links; this is for searches, where it
 * takes some operations an operator. */
#include "cost.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

/* Times of one micro-batch in one direction, and of the end of a step. */
struct part {
    int64_t compute, waited, gather, reduce;
};

struct piece {
    struct part at[TOPT_PHASE_COUNT];
    int has_params;
};

struct run {
    const struct topt_costing *k;
    int nops, nunits;
    struct piece *piece; /* by operator */
    int *unit;        /* first operators of runs of one unit, forward; nunits of them */
    int64_t *there;   /* by operator: when its parameters are */
    int64_t *reduced; /* ... its gradient at the end */
    int64_t compute, move; /* when the stream and the link are free */
    double left;           /* of the device beside a move */
};

/* ---- pieces ------------------------------------------------------------------------ */

static int64_t async_of(const struct topt_phase_time *t)
{
    int64_t ns = 0;
    for (int b = 0; b < TOPT_BASIS_COUNT; b++)
        ns += t->async_ns[b];
    return ns;
}

static struct part part_of(const struct topt_tally *t, enum topt_phase phase,
                           int64_t rounds)
{
    const struct topt_phase_time *s = &t->spent[phase];
    return (struct part){s->compute_ns / rounds, s->waited_ns / rounds,
                         s->param_ns / rounds, (async_of(s) - s->param_ns) / rounds};
}

static int has_params(const struct topt_op *o)
{
    for (int x = 0; x < o->spec->noperands; x++)
        if (o->operand[x].present && o->operand[x].role == TOPT_PARAM)
            return 1;
    return 0;
}

/* Gradients of several consumers are added up where the output lies. */
static int add_hub(struct run *r, int op, const struct topt_config *config,
                   struct topt_error *err)
{
    const struct topt_op *o = &r->k->model->op[op];
    int t = o->operand[o->output].tensor;
    struct topt_layout l = topt_value_layout(o, o->output, config, r->k->mesh);
    struct topt_hub hub = {topt_config_none(), TOPT_HUB_DROP};
    struct topt_fragment_cost cost;
    if (r->k->model->tensor[t].nconsumers < 2)
        return 0;
    for (int a = 0; a < r->k->mesh->naxes; a++)
        hub.layout.dim[a] = l.at[a] >= 0 ? l.at[a] : -1;
    if (topt_cost_hub(r->k, t, &hub, &cost, err))
        return -1;
    r->piece[op].at[TOPT_PHASE_BACKWARD].compute +=
        cost.compute_ns / r->k->settings->micro_batches;
    return 0;
}

/* Alike operators with the same configuration are priced once. */
static int find_pieces(struct run *r, const struct topt_config *config,
                       struct topt_error *err)
{
    const struct topt_model *m = r->k->model;
    int64_t rounds = r->k->settings->micro_batches;
    for (int i = 0; i < m->nops; i++) {
        int first = m->alike[i];
        struct topt_tally t;
        if (first >= 0 && first < i &&
            !memcmp(&config[first], &config[i], sizeof *config)) {
            r->piece[i] = r->piece[first];
            continue;
        }
        if (topt_tally_op(&t, r->k, i, &config[i], err))
            return -1;
        r->piece[i] = (struct piece){{part_of(&t, TOPT_PHASE_FORWARD, rounds),
                                      part_of(&t, TOPT_PHASE_BACKWARD, rounds),
                                      part_of(&t, TOPT_PHASE_END, 1)},
                                     has_params(&m->op[i])};
        if (add_hub(r, i, &config[i], err))
            return -1;
    }
    return 0;
}

static int unit_of(const struct run *r, int op)
{
    int unit = r->k->model->unit[op];
    return unit >= 0 && r->k->settings->gather != TOPT_GATHER_OPERATOR ? unit : op;
}

/* An operator without parameters and outside of units belongs to the unit before it. */
static void find_units(struct run *r)
{
    int at = -1;
    for (int i = 0; i < r->nops; i++) {
        int unit = unit_of(r, i);
        if (i && (unit == at || (unit == i && !r->piece[i].has_params)))
            continue;
        at = unit;
        r->unit[r->nunits++] = i;
    }
    r->unit[r->nunits] = r->nops;
}

/* ---- the schedule ------------------------------------------------------------------ */

/* A move that is ready then. */
static int64_t move(struct run *r, int64_t ready, int64_t ns)
{
    if (ns)
        r->move = topt_max(r->move, ready) + ns;
    return r->move;
}

/* Slower while the link moves. */
static void compute(struct run *r, int64_t ns)
{
    int64_t beside = r->move - r->compute;
    if (beside <= 0 || r->left >= 1)
        r->compute += ns;
    else if ((double)ns <= r->left * (double)beside)
        r->compute += (int64_t)((double)ns / r->left);
    else
        r->compute += ns + beside - (int64_t)(r->left * (double)beside);
}

static void wait_for(struct run *r, int64_t ns)
{
    if (r->move > r->compute)
        r->move += ns;
    r->compute += ns;
}

/* Ask for the parameters of a unit; 'u' past the last: those of the next micro-batch, or
 * of backward. */
static void gather(struct run *r, int u, enum topt_phase phase)
{
    int n = r->unit[u + 1] - r->unit[u];
    for (int i = 0; i < n; i++) {
        int op = phase == TOPT_PHASE_FORWARD ? r->unit[u] + i : r->unit[u + 1] - 1 - i;
        int64_t ns = r->piece[op].at[phase].gather;
        r->there[op] = ns ? move(r, r->compute, ns) : 0;
    }
}

static void run_op(struct run *r, int op, enum topt_phase phase, int last)
{
    const struct part *p = &r->piece[op].at[phase];
    r->compute = topt_max(r->compute, r->there[op]);
    wait_for(r, p->waited);
    compute(r, p->compute);
    if (p->reduce)
        r->reduced[op] = move(r, r->compute, p->reduce);
    if (last && r->piece[op].at[TOPT_PHASE_END].reduce)
        r->reduced[op] = move(r, r->compute, r->piece[op].at[TOPT_PHASE_END].reduce);
}

static void run_unit(struct run *r, int u, enum topt_phase phase, int last)
{
    if (phase == TOPT_PHASE_FORWARD)
        for (int i = r->unit[u]; i < r->unit[u + 1]; i++)
            run_op(r, i, phase, 0);
    else
        for (int i = r->unit[u + 1] - 1; i >= r->unit[u]; i--)
            run_op(r, i, phase, last);
}

static void run_micro(struct run *r, int last)
{
    int n = r->nunits;
    for (int u = 0; u < n; u++) {
        if (u + 1 < n)
            gather(r, u + 1, TOPT_PHASE_FORWARD);
        run_unit(r, u, TOPT_PHASE_FORWARD, 0);
    }
    /* the unit at which both passes meet is one */
    gather(r, n - 1, TOPT_PHASE_BACKWARD);
    for (int u = n - 1; u >= 0; u--) {
        if (u)
            gather(r, u - 1, TOPT_PHASE_BACKWARD);
        run_unit(r, u, TOPT_PHASE_BACKWARD, last);
        if (u == 0 && !last)
            gather(r, 0, TOPT_PHASE_FORWARD);
    }
}

static int64_t run_step(struct run *r, int micros)
{
    r->compute = r->move = 0;
    memset(r->reduced, 0, (size_t)r->nops * sizeof *r->reduced);
    gather(r, 0, TOPT_PHASE_FORWARD);
    for (int u = 0; u < micros; u++)
        run_micro(r, u == micros - 1);
    for (int i = 0; i < r->nops; i++) {
        const struct part *p = &r->piece[i].at[TOPT_PHASE_END];
        r->compute = topt_max(r->compute, r->reduced[i]);
        wait_for(r, p->waited);
        r->compute += p->compute;
    }
    return topt_max(r->compute, r->move);
}

/* Many micro-batches repeat the last of few. */
static int64_t step_ns(struct run *r)
{
    enum { FEW = 3 };
    int64_t all = r->k->settings->micro_batches;
    if (all <= FEW)
        return run_step(r, (int)all);
    int64_t few = run_step(r, FEW), fewer = run_step(r, FEW - 1);
    return few + (few - fewer) * (all - FEW);
}

static int share_of(struct run *r)
{
    int64_t async = 0, all = 0, rounds = r->k->settings->micro_batches;
    for (int i = 0; i < r->nops; i++)
        for (int p = 0; p < TOPT_PHASE_COUNT; p++) {
            const struct part *x = &r->piece[i].at[p];
            int64_t times = p == TOPT_PHASE_END ? 1 : rounds;
            async += (x->gather + x->reduce) * times;
            all += (x->gather + x->reduce + x->compute + x->waited) * times;
        }
    double hidden = (double)(all - step_ns(r));
    int ppm = async > 0 ? (int)(1e6 * hidden / (double)async) : 0;
    return ppm < 1 ? 1 : ppm > 1000000 ? 1000000 : ppm;
}

int topt_hidden_share(const struct topt_costing *k, const struct topt_config *config,
                      int *ret_ppm, struct topt_error *err)
{
    size_t n = (size_t)k->model->nops + 1;
    struct run r = {
        .k = k, .nops = k->model->nops, .left = 1 - topt_hw_collective_share(k->hw)};
    r.left = r.left < 0.01 ? 0.01 : r.left;
    r.piece = calloc(n, sizeof *r.piece);
    r.unit = calloc(n + 1, sizeof *r.unit);
    r.there = calloc(n, sizeof *r.there);
    r.reduced = calloc(n, sizeof *r.reduced);
    int rc = r.piece && r.unit && r.there && r.reduced
                 ? find_pieces(&r, config, err)
                 : topt_nomem(err, "what is hidden");
    if (!rc) {
        find_units(&r);
        *ret_ppm = share_of(&r);
    }
    free(r.piece);
    free(r.unit);
    free(r.there);
    free(r.reduced);
    return rc ? -1 : 0;
}
