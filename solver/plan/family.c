/* family.c - configurations of alike operators, priced once.
 *
 * Configurations that look the same from an edge (layouts of the tensor there, and what is live
 * beside it) share a class, so that a table of an edge is small. */
#include "algorithm.h"
#include "problem_impl.h"
#include "topt_hash.h"

#include <stdlib.h>
#include <string.h>

/* ---- who is alike ------------------------------------------------------------------------ */

static int multi(const struct topt_model *m, int tensor)
{
    return m->tensor[tensor].nconsumers > 1;
}

static int wants_gradient(const struct topt_model *m, const struct topt_op *op, int input)
{
    return m->tensor[op->operand[op->input[input]].tensor].needs_gradient;
}

static int op_waits(const struct topt_problem *p, int op)
{
    const struct topt_op *o = &p->k.model->op[op];
    int t = o->operand[o->output].tensor;
    return multi(p->k.model, t) ? TOPT_SPAN_NEXT : p->spans.span[t];
}

/* Of two operators that are alike as such (topt_model.h). */
static int alike_ops(const struct topt_problem *p, int a, int b)
{
    const struct topt_model *m = p->k.model;
    const struct topt_op *x = &m->op[a], *y = &m->op[b];
    if ((a == m->loss) != (b == m->loss) || op_waits(p, a) != op_waits(p, b) ||
        topt_problem_remakes(p, a) != topt_problem_remakes(p, b))
        return 0;
    for (int k = 0; k < x->ninputs; k++)
        if (wants_gradient(m, x, k) != wants_gradient(m, y, k))
            return 0;
    return m->tensor[x->operand[x->output].tensor].needs_gradient ==
           m->tensor[y->operand[y->output].tensor].needs_gradient;
}

static int alike_hubs(const struct topt_problem *p, int a, int b)
{
    const struct topt_model *m = p->k.model;
    const struct topt_tensor *x = &m->tensor[a], *y = &m->tensor[b];
    if (x->ndim != y->ndim || memcmp(x->dim, y->dim, sizeof x->dim) ||
        x->nconsumers != y->nconsumers || x->needs_gradient != y->needs_gradient ||
        p->spans.span[a] != p->spans.span[b] || p->reread[a] != p->reread[b] ||
        topt_problem_remakes(p, x->producer) != topt_problem_remakes(p, y->producer))
        return 0;
    if (m->alike[x->producer] == m->alike[y->producer])
        return 1;
    struct topt_splits s = topt_splits_of_tensor(m, a), t = topt_splits_of_tensor(m, b);
    return !memcmp(&s, &t, sizeof s);
}

/* ---- families ---------------------------------------------------------------------------- */

static int family_alloc(struct family *f, int n)
{
    size_t z = (size_t)(n > 0 ? n : 1);
    f->n = n;
    f->cost = calloc(z, sizeof *f->cost);
    f->remade = calloc(z, sizeof *f->remade);
    f->transient = calloc(z, sizeof *f->transient);
    f->waiting = calloc(z, sizeof *f->waiting);
    f->from_class = calloc(z, sizeof *f->from_class);
    int ok = f->cost && f->remade && f->transient && f->waiting && f->from_class;
    for (int i = 0; i < f->ninputs; i++) {
        f->to_class[i] = calloc(z, sizeof *f->to_class[i]);
        ok = ok && f->to_class[i];
    }
    return ok ? 0 : -1;
}

void topt_family_fini(struct family *f)
{
    free(f->config);
    free(f->hub_keep);
    free(f->cost);
    free(f->remade);
    free(f->transient);
    free(f->waiting);
    free(f->open);
    free(f->from_class);
    free(f->from_end);
    for (int i = 0; i < TOPT_MAX_INPUTS; i++) {
        free(f->to_class[i]);
        free(f->to_end[i]);
    }
}

static int same_end(const struct topt_edge_end *a, const struct topt_edge_end *b)
{
    return topt_layout_equal(&a->value, &b->value) &&
           topt_layout_equal(&a->grad, &b->grad) && a->hub == b->hub &&
           a->hub_keep == b->hub_keep && a->recompute == b->recompute &&
           a->needed == b->needed && a->others_bytes == b->others_bytes &&
           a->op_bytes == b->op_bytes && a->out_bytes == b->out_bytes;
}

/* ---- classes ----------------------------------------------------------------------------- */

/* The ends of a family at one edge that were told apart so far: a hash finds them. */
struct classes {
    struct topt_edge_end **end; /* the family's, and how many */
    int *n;
    int cap;
    int32_t *slot; /* 2 * cap; -1: free */
};

static int32_t *slot_of(const struct classes *c, const struct topt_edge_end *e)
{
    int64_t rest[] = {e->hub,          e->hub_keep, e->recompute, e->needed,
                      e->others_bytes, e->op_bytes, e->out_bytes};
    uint64_t h = topt_hash(&e->value, sizeof e->value, 1);
    h = topt_hash(&e->grad, sizeof e->grad, h);
    uint32_t mask = (uint32_t)(2 * c->cap - 1),
             at = (uint32_t)topt_hash(rest, sizeof rest, h) & mask;
    while (c->slot[at] >= 0 && !same_end(&(*c->end)[c->slot[at]], e))
        at = (at + 1) & mask;
    return &c->slot[at];
}

static int classes_grow(struct classes *c)
{
    int cap = c->cap ? 2 * c->cap : 32;
    struct topt_edge_end *end = realloc(*c->end, (size_t)cap * sizeof *end);
    if (end)
        *c->end = end;
    int32_t *slot = realloc(c->slot, 2 * (size_t)cap * sizeof *slot);
    if (slot)
        c->slot = slot;
    if (!end || !slot)
        return -1;
    c->cap = cap;
    memset(slot, 0xff, 2 * (size_t)cap * sizeof *slot);
    for (int i = 0; i < *c->n; i++)
        *slot_of(c, &end[i]) = i;
    return 0;
}

/* -1: no memory. */
static int32_t class_of(struct classes *c, const struct topt_edge_end *e)
{
    if (*c->n == c->cap && classes_grow(c))
        return -1;
    int32_t *slot = slot_of(c, e);
    if (*slot < 0) {
        *slot = (*c->n)++;
        (*c->end)[*slot] = *e;
    }
    return *slot;
}

/* ---- prices ------------------------------------------------------------------------------ */

/* A family while it is priced. */
struct listing {
    struct topt_problem *p;
    struct family *f;
    struct classes from, to[TOPT_MAX_INPUTS];
};

static int no_memory(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOMEM, "no memory for configurations");
}

/* With axes that are alike in an order that does not depend on their names: what a configuration costs follows from
 * that alone, since within a dimension axes keep their order. */
static struct topt_config nameless(const struct topt_mesh *m, struct topt_config c)
{
    for (int a = 1; a < m->naxes; a++)
        for (int i = a; i > 0 && topt_mesh_alike(m, i - 1, i) && c.dim[i] < c.dim[i - 1];
             i--) {
            int8_t dim = c.dim[i];
            c.dim[i] = c.dim[i - 1];
            c.dim[i - 1] = dim;
        }
    return c;
}

/* Of each configuration the first that costs the same. */
static int find_same(const struct topt_mesh *m, const struct family *f, int32_t *ret)
{
    uint32_t nslots = 2;
    while (nslots < 2 * (uint32_t)f->n)
        nslots *= 2;
    struct topt_config *form = malloc(((size_t)f->n + 1) * sizeof *form);
    int32_t *slot = malloc(nslots * sizeof *slot);
    if (slot)
        memset(slot, 0xff, nslots * sizeof *slot);
    for (int i = 0; form && slot && i < f->n; i++) {
        form[i] = nameless(m, f->config[i]);
        uint32_t at = (uint32_t)topt_hash(&form[i], sizeof form[i], 1) & (nslots - 1);
        while (slot[at] >= 0 && memcmp(&form[slot[at]], &form[i], sizeof form[i]) != 0)
            at = (at + 1) & (nslots - 1);
        slot[at] = slot[at] < 0 ? i : slot[at];
        ret[i] = slot[at];
    }
    int bad = !form || !slot;
    free(form);
    free(slot);
    return bad ? -1 : 0;
}

static void keep_time(struct family *f, int i, const struct topt_fragment_cost *c)
{
    f->cost[i].time = c->compute_ns + c->network_ns;
    f->transient[i] = c->transient_bytes;
}

static void keep_cost(struct family *f, int i, const struct topt_fragment_cost *c)
{
    keep_time(f, i, c);
    f->cost[i].memory = 0;
    for (int k = 0; k < TOPT_CLASS_COUNT; k++)
        f->cost[i].memory += k == TOPT_CLASS_REMADE ? 0 : c->class_bytes[k];
    f->remade[i] = c->class_bytes[TOPT_CLASS_REMADE];
}

/* On the way to the price of a configuration. */
enum state { LEFT, WANTED, WAITING /* for ways */, SETTLED };

/* What the fragments of the first of each kind cost, as far as ways are known; or, of a problem that looks ahead, at
 * least. */
static int cost_firsts(const struct topt_problem *p, struct family *f,
                       const int32_t *same, uint8_t *state, struct topt_error *err)
{
    struct topt_orbit_set *floors = topt_problem_looks_ahead(p) ? p->orbits : NULL;
    struct topt_fragment_cost c;
    int waits;
    for (int i = 0; i < f->n; i++) {
        if (same[i] != i)
            continue;
        if (topt_problem_canceled(p, err) ||
            (floors ? topt_cost_op_least(&p->k, f->op, &f->config[i], floors, &c, &waits,
                                         err)
                    : topt_cost_op_ask(&p->k, f->op, &f->config[i], &c, &waits, err)))
            return -1;
        state[i] = waits ? WAITING : SETTLED;
        keep_cost(f, i, &c);
    }
    return 0;
}

/* Ask for the ways of what is WANTED. */
static int ask_wanted(const struct topt_problem *p, struct family *f, uint8_t *state,
                      struct topt_error *err)
{
    struct topt_fragment_cost c;
    int waits;
    for (int i = 0; i < f->n; i++) {
        if (state[i] != WANTED)
            continue;
        if (topt_problem_canceled(p, err) ||
            topt_cost_op_ask(&p->k, f->op, &f->config[i], &c, &waits, err))
            return -1;
        state[i] = waits ? WAITING : SETTLED;
        keep_time(f, i, &c);
    }
    return 0;
}

/* Ways are found together, and then what waits for them is written once more. */
static int settle_waiting(const struct topt_problem *p, struct family *f, uint8_t *state,
                          struct topt_error *err)
{
    struct topt_fragment_cost c;
    int any = memchr(state, WAITING, (size_t)f->n) != NULL;
    if (any && topt_router_answer(p->k.router, p->options.threads, p->k.cancel, err))
        return -1;
    for (int i = 0; any && i < f->n; i++) {
        if (state[i] != WAITING)
            continue;
        if (topt_cost_op(&p->k, f->op, &f->config[i], &c, err))
            return -1;
        state[i] = SETTLED;
        keep_time(f, i, &c);
    }
    return 0;
}

/* Prices that wait stay floors. */
static int leave_open(struct family *f, const int32_t *same, const uint8_t *state)
{
    if (!memchr(state, WAITING, (size_t)f->n))
        return 0;
    f->open = malloc((size_t)f->n);
    for (int i = 0; f->open && i < f->n; i++)
        f->open[i] = state[same[i]] == WAITING;
    return f->open ? 0 : -1;
}

static int cost_ops(const struct topt_problem *p, struct family *f,
                    struct topt_error *err)
{
    int32_t *same = malloc(((size_t)f->n + 1) * sizeof *same);
    uint8_t *state = calloc((size_t)f->n + 1, 1);
    int rc = !same || !state || find_same(p->k.mesh, f, same)
                 ? no_memory(err)
                 : cost_firsts(p, f, same, state, err);
    if (!rc && !topt_problem_looks_ahead(p))
        rc = settle_waiting(p, f, state, err);
    else if (!rc && leave_open(f, same, state))
        rc = no_memory(err);
    for (int i = 0; !rc && i < f->n; i++) {
        f->cost[i] = f->cost[same[i]];
        f->remade[i] = f->remade[same[i]];
        f->transient[i] = f->transient[same[i]];
    }
    free(same);
    free(state);
    return rc;
}

int topt_family_settle(const struct topt_problem *p, struct family *f,
                       const uint8_t *want, struct topt_error *err)
{
    if (!f->open)
        return 0;
    int32_t *same = malloc(((size_t)f->n + 1) * sizeof *same);
    uint8_t *state = calloc((size_t)f->n + 1, 1);
    int rc = !same || !state || find_same(p->k.mesh, f, same) ? no_memory(err) : 0;
    for (int i = 0; !rc && i < f->n; i++)
        if (want[i] && f->open[i])
            state[same[i]] = WANTED;
    if (!rc)
        rc = ask_wanted(p, f, state, err) || settle_waiting(p, f, state, err) ? -1 : 0;
    for (int i = 0; !rc && i < f->n; i++) {
        f->open[i] &= state[same[i]] != SETTLED;
        f->cost[i].time = f->cost[same[i]].time;
        f->transient[i] = f->transient[same[i]];
    }
    free(same);
    free(state);
    return rc;
}

int topt_families_open(const struct topt_problem *p)
{
    int any = 0;
    for (int i = 0; i < p->nfamilies; i++)
        any |= p->family[i].open != NULL;
    return any;
}

/* Bytes of the output, where it waits. */
static void wait_op(const struct topt_problem *p, struct family *f, int i)
{
    const struct topt_op *o = &p->k.model->op[f->op];
    int t = o->operand[o->output].tensor, span = op_waits(p, f->op);
    struct topt_layout l = topt_value_layout(o, o->output, &f->config[i], p->k.mesh);
    int64_t bytes = span == TOPT_SPAN_NEXT ? 0 : topt_span_bytes(&p->k, t, &l);
    if (span == TOPT_SPAN_LONG)
        f->cost[i].memory += bytes;
    else
        f->waiting[i] = bytes;
}

static int classify_op(struct listing *l, int i, struct topt_error *err)
{
    const struct topt_problem *p = l->p;
    struct family *f = l->f;
    struct topt_edge_end e = topt_edge_producer(&p->k, f->op, &f->config[i]);
    f->from_class[i] = class_of(&l->from, &e);
    if (f->from_class[i] < 0)
        return no_memory(err);
    for (int k = 0; k < f->ninputs; k++) {
        e = topt_edge_consumer(&p->k, f->op, k, &f->config[i], f->transient[i]);
        f->to_class[k][i] = class_of(&l->to[k], &e);
        if (f->to_class[k][i] < 0)
            return no_memory(err);
    }
    return 0;
}

static int classify_ops(struct listing *l, struct topt_error *err)
{
    struct family *f = l->f;
    for (int i = 0; i < f->n; i++)
        if (classify_op(l, i, err))
            return -1;
    for (int i = 0; i < f->n && !f->open; i++)
        f->transient[i] = topt_round_transient(f->transient[i]);
    return 0;
}

static int price_ops(struct listing *l, struct topt_error *err)
{
    if (cost_ops(l->p, l->f, err))
        return -1;
    for (int i = 0; i < l->f->n; i++)
        wait_op(l->p, l->f, i);
    return classify_ops(l, err);
}

static int price_hub(struct listing *l, int i, struct topt_error *err)
{
    struct topt_problem *p = l->p;
    struct family *f = l->f;
    struct topt_hub h = {f->config[i], f->hub_keep[i]};
    struct topt_fragment_cost c;
    if (topt_cost_hub(&p->k, f->tensor, &h, &c, err))
        return -1;
    f->cost[i].time = c.compute_ns + c.network_ns;
    struct topt_edge_end e = topt_edge_hub(&p->k, &h);
    f->from_class[i] = class_of(&l->from, &e);
    f->to_class[0][i] = class_of(&l->to[0], &e);
    if (f->from_class[i] < 0 || f->to_class[0][i] < 0)
        return no_memory(err);
    int span = p->spans.span[f->tensor];
    int64_t bytes =
        span == TOPT_SPAN_NEXT ? 0 : topt_span_bytes(&p->k, f->tensor, &e.value);
    if (span == TOPT_SPAN_LONG)
        f->cost[i].memory = bytes;
    else
        f->waiting[i] = bytes;
    return 0;
}

/* What a hub may do with its copy; the producer's flag decides between keeping it and making
 * it again, and a table allows only what fits. */
static int hub_keeps(const struct topt_problem *p, int tensor, uint8_t ret[3])
{
    int n = 0;
    if (p->reread[tensor]) {
        ret[n++] = TOPT_HUB_KEEP;
        if (topt_problem_remakes(p, p->k.model->tensor[tensor].producer))
            ret[n++] = TOPT_HUB_REMAKE;
    }
    ret[n++] = TOPT_HUB_DROP;
    return n;
}

static int list_hub(struct topt_problem *p, struct family *f,
                    const struct topt_splits *splits, const struct topt_config_list *list)
{
    uint8_t keep[3];
    int keeps = hub_keeps(p, f->tensor, keep), n = 0;
    f->config = calloc((size_t)(keeps * list->n + 1), sizeof *f->config);
    f->hub_keep = calloc((size_t)(keeps * list->n + 1), 1);
    if (!f->config || !f->hub_keep)
        return -1;
    for (int i = 0; i < keeps * list->n; i++) {
        struct topt_hub h = {list->config[i / keeps], keep[i % keeps]};
        if (!topt_allows_hub(&p->options, p->k.mesh, splits, &h))
            continue;
        f->config[n] = h.layout;
        f->hub_keep[n++] = (uint8_t)h.keep;
    }
    return family_alloc(f, n);
}

/* Levels of sharding that a configuration takes, as bits: those asked for that mean something,
 * else none. */
static int levels_of(const struct topt_problem *p, const struct topt_op *op,
                     struct topt_config c)
{
    int levels = 0;
    for (int z = 0; z < TOPT_ZERO_COUNT; z++) {
        c.zero = (uint8_t)z;
        if (p->options.zero >> z & 1 && topt_config_valid(op, &c, p->k.mesh))
            levels |= 1 << z;
    }
    return levels ? levels : 1;
}

static int list_op(struct topt_problem *p, struct family *f,
                   const struct topt_config_list *list)
{
    int most = 2 * TOPT_ZERO_COUNT * list->n, n = 0;
    int flag = topt_problem_remakes(p, f->op);
    int last = flag ? 1 : 0, first = p->options.recompute == TOPT_RECOMPUTE_ALL && flag;
    f->config = calloc((size_t)most + 1, sizeof *f->config);
    f->hub_keep = calloc((size_t)most + 1, 1);
    if (!f->config || !f->hub_keep)
        return -1;
    for (int i = 0; i < list->n; i++) {
        int levels = levels_of(p, &p->k.model->op[f->op], list->config[i]);
        for (int z = 0; z < TOPT_ZERO_COUNT; z++)
            for (int r = first; r <= last && levels >> z & 1; r++) {
                f->config[n] = list->config[i];
                f->config[n].zero = (uint8_t)z;
                f->config[n].recompute = (uint8_t)r;
                n += topt_allows_op(&p->options, p->k.mesh, &p->k.model->op[f->op],
                                    &f->config[n]);
            }
    }
    return family_alloc(f, n);
}

/* The next order of some dimensions, where they were in ascending order first; they are again after the last. */
static int next_order(int8_t *dim, int n)
{
    int i = n - 2, last = n - 1;
    while (i >= 0 && dim[i] >= dim[i + 1])
        i--;
    while (i >= 0 && dim[last] <= dim[i])
        last--;
    if (i >= 0) {
        int8_t x = dim[i];
        dim[i] = dim[last];
        dim[last] = x;
    }
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        int8_t x = dim[a];
        dim[a] = dim[b];
        dim[b] = x;
    }
    return i >= 0;
}

/* The next configuration that differs only by which of alike axes do what; 0 after the last, which is followed by the
 * nameless. */
static int next_names(const struct topt_mesh *m, struct topt_config *c)
{
    for (int first, end = m->naxes; end > 0; end = first) {
        first = end - 1;
        while (first > 0 && topt_mesh_alike(m, first - 1, first))
            first--;
        if (next_order(c->dim + first, end - first))
            return 1;
    }
    return 0;
}

/* Configurations of a family, and where 'every' is asked for those which they stand for; listed where 'f' has room. */
static int list_among(const struct topt_problem *p, const struct family *of,
                      struct family *f)
{
    const struct topt_mesh *m = p->k.mesh;
    int n = 0;
    for (int i = 0; i < of->n; i++) {
        struct topt_config c =
            p->options.every ? nameless(m, of->config[i]) : of->config[i];
        do {
            if (f) {
                f->config[n] = c;
                f->hub_keep[n] = of->hub_keep[i];
            }
            n++;
        } while (p->options.every && next_names(m, &c));
    }
    return n;
}

static int relist(struct topt_problem *p, struct family *f, struct topt_error *err)
{
    const struct family *of = &p->options.among->family[f - p->family];
    size_t n = (size_t)list_among(p, of, NULL);
    f->config = malloc((n + 1) * sizeof *f->config);
    f->hub_keep = malloc(n + 1);
    if (!f->config || !f->hub_keep)
        return no_memory(err);
    return family_alloc(f, list_among(p, of, f)) ? no_memory(err) : 0;
}

static int list_configs(struct topt_problem *p, struct family *f, struct topt_error *err)
{
    if (p->options.among)
        return relist(p, f, err);
    struct topt_splits splits = f->op >= 0 ? topt_splits_of_op(&p->k.model->op[f->op])
                                           : topt_splits_of_tensor(p->k.model, f->tensor);
    struct topt_config_list list;
    if (topt_space_configs(p->k.mesh, &splits, &p->options, &list, err))
        return -1;
    int bad = f->op >= 0 ? list_op(p, f, &list) : list_hub(p, f, &splits, &list);
    free(list.config);
    return bad ? no_memory(err) : 0;
}

static struct listing listing_of(struct topt_problem *p, struct family *f)
{
    struct listing l = {.p = p, .f = f};
    l.from = (struct classes){.end = &f->from_end, .n = &f->nfrom};
    for (int k = 0; k < f->ninputs; k++)
        l.to[k] = (struct classes){.end = &f->to_end[k], .n = &f->nto[k]};
    return l;
}

static void listing_fini(struct listing *l)
{
    free(l->from.slot);
    for (int k = 0; k < l->f->ninputs; k++)
        free(l->to[k].slot);
}

static int price_family(struct listing *l, struct topt_error *err)
{
    struct family *f = l->f;
    if (f->op >= 0)
        return price_ops(l, err);
    for (int i = 0; i < f->n; i++)
        if (topt_problem_canceled(l->p, err) || price_hub(l, i, err))
            return -1;
    return 0;
}

static int make_family(struct topt_problem *p, struct family *f, struct topt_error *err)
{
    f->ninputs = f->op >= 0 ? p->k.model->op[f->op].ninputs : 1;
    struct listing l = listing_of(p, f);
    int rc = list_configs(p, f, err) || price_family(&l, err) ? -1 : 0;
    listing_fini(&l);
    return rc;
}

/* Classes begin anew, since what is in flight of an operator tells them apart. */
int topt_family_finish(struct topt_problem *p, struct family *f, struct topt_error *err)
{
    if (!f->open)
        return 0;
    if (topt_family_settle(p, f, f->open, err))
        return -1;
    free(f->open);
    f->open = NULL;
    f->nfrom = 0;
    for (int k = 0; k < f->ninputs; k++)
        f->nto[k] = 0;
    struct listing l = listing_of(p, f);
    int rc = classify_ops(&l, err);
    listing_fini(&l);
    return rc;
}

/* Operators of a family are alike as such, hubs mostly have producers that are: those families
 * are chained, the latest first. */
static int find_chained(const struct topt_problem *p, int op, int tensor)
{
    const struct topt_model *m = p->k.model;
    int i = op >= 0 ? p->of_op[m->alike[op]]
                    : p->of_hub[m->alike[m->tensor[tensor].producer]];
    while (i >= 0 && !(op >= 0 ? alike_ops(p, p->family[i].op, op)
                               : alike_hubs(p, p->family[i].tensor, tensor)))
        i = p->family[i].next;
    return i;
}

static int find_hub(const struct topt_problem *p, int tensor)
{
    for (int i = 0; i < p->nfamilies; i++)
        if (p->family[i].op < 0 && alike_hubs(p, p->family[i].tensor, tensor))
            return i;
    return -1;
}

/* The blocks that pay for what is made again of an operator, or the hub of its tensor. */
static int paying_blocks(const struct topt_problem *p, int op, int tensor)
{
    const struct topt_blocks *b = p->options.alike ? NULL : p->options.blocks;
    int kind = b ? b->kind[op >= 0 ? op : p->k.model->tensor[tensor].producer] : -1;
    return kind >= 0 ? b->of[kind].count : 1;
}

int topt_problem_family(struct topt_problem *p, int op, int tensor,
                        struct topt_error *err)
{
    const struct topt_model *m = p->k.model;
    int found = find_chained(p, op, tensor), among = paying_blocks(p, op, tensor);
    if (found < 0 && op < 0)
        found = find_hub(p, tensor);
    if (found >= 0) { /* of several kinds, that with most blocks: nobody pays too much */
        if (among > p->family[found].among)
            p->family[found].among = among;
        return found;
    }
    int *head = op >= 0 ? &p->of_op[m->alike[op]]
                        : &p->of_hub[m->alike[m->tensor[tensor].producer]];
    struct family *f = &p->family[p->nfamilies];
    *f = (struct family){.op = op, .tensor = tensor, .next = *head, .among = among};
    *head = p->nfamilies++;
    return make_family(p, f, err) ? -1 : p->nfamilies - 1;
}
