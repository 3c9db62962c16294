/* family.c - configurations of alike operators, and of alike hubs, made once: which operators are
 * alike, which configurations they have, what these cost, and how they look from edges.
 *
 * Listed are those of the space, each with the levels of sharding and with or without
 * recomputation that the options allow; of a hub, each layout with what may become of the copy.  Or
 * those of another problem's family, and on request all that differ from these only by which of
 * alike axes do what.
 *
 * A configuration's fragment is priced once for all that differ from it only by names of
 * axes.  Moves inside it (of a recurrence, of a halo) take ways that are found together,
 * by threads.
 *
 * An edge costs what it does by the layouts of the tensor there and what is live beside
 * it, not by the configuration as such, of which there are many more.  So a table of an
 * edge is between classes of ends. */
#include "price.h"
#include "pins.h"
#include "configs.h"
#include "topt_array.h"
#include "topt_hash.h"
#include "topt_index.h"
#include "topt_tensor.h"

#include <stdlib.h>
#include <string.h>

/* ---- which operators are alike ----------------------------------------------------- */

static int wants_gradient(const struct topt_model *m, const struct topt_op *op, int input)
{
    return m->tensor[topt_input_tensor(op, input)].needs_gradient;
}

static int op_waits(const struct topt_problem *p, int op)
{
    const struct topt_op *o = &p->k.model->op[op];
    int t = topt_output_tensor(o);
    return p->k.model->tensor[t].nconsumers > 1 ? TOPT_SPAN_NEXT : p->spans.span[t];
}

/* Of two operators, or hubs. */
static int mapped_alike(const struct topt_tensor_map *map, int hubs, int a, int b)
{
    return !map || (hubs ? map->hub[a] == map->hub[b] : map->op[a] == map->op[b]);
}

/* Are two operators, alike by topt_model.h, alike in the problem too? */
static int alike_ops(const struct topt_problem *p, int a, int b)
{
    const struct topt_model *m = p->k.model;
    const struct topt_op *x = &m->op[a], *y = &m->op[b];
    if (op_waits(p, a) != op_waits(p, b) ||
        topt_problem_may_recompute(p, a) != topt_problem_may_recompute(p, b) ||
        topt_pins_at(p->options.pins, p->options.alike, a) !=
            topt_pins_at(p->options.pins, p->options.alike, b))
        return 0;
    if (!mapped_alike(p->options.tensor, 0, a, b) ||
        !mapped_alike(p->options.context, 0, a, b))
        return 0;
    for (int k = 0; k < x->ninputs; k++)
        if (wants_gradient(m, x, k) != wants_gradient(m, y, k))
            return 0;
    return m->tensor[topt_output_tensor(x)].needs_gradient ==
           m->tensor[topt_output_tensor(y)].needs_gradient;
}

static int alike_hubs(const struct topt_problem *p, int a, int b)
{
    const struct topt_model *m = p->k.model;
    const struct topt_tensor *x = &m->tensor[a], *y = &m->tensor[b];
    if (x->ndim != y->ndim || memcmp(x->dim, y->dim, sizeof x->dim) ||
        x->nconsumers != y->nconsumers || x->needs_gradient != y->needs_gradient ||
        p->spans.span[a] != p->spans.span[b] || p->reread[a] != p->reread[b] ||
        topt_problem_may_recompute(p, x->producer) !=
            topt_problem_may_recompute(p, y->producer) ||
        !mapped_alike(p->options.tensor, 1, a, b) ||
        !mapped_alike(p->options.context, 1, a, b))
        return 0;
    if (m->alike[x->producer] == m->alike[y->producer])
        return 1;
    struct topt_splits s = topt_splits_of_tensor(m, a), t = topt_splits_of_tensor(m, b);
    return !memcmp(&s, &t, sizeof s);
}

/* ---- which configurations: the space's ------------------------------------------------------------------- */

/* The choices of a hub for its copy; the producer's flag decides between keeping and
 * recomputing it, and a table allows only what fits.  A framework that recomputes whole
 * units keeps nothing inside of them. */
static int hub_keeps(const struct topt_problem *p, int tensor, uint8_t ret[3])
{
    int n = 0, again = topt_problem_may_recompute(
                           p, p->k.model->tensor[tensor].producer) == TOPT_AGAIN_ALL;
    if (again && p->reread[tensor] && p->k.settings->by_unit &&
        p->options.recompute == TOPT_RECOMPUTE_ALL) {
        ret[0] = TOPT_HUB_RECOMPUTE;
        return 1;
    }
    if (p->reread[tensor]) {
        ret[n++] = TOPT_HUB_KEEP;
        if (again)
            ret[n++] = TOPT_HUB_RECOMPUTE;
    }
    ret[n++] = TOPT_HUB_DROP;
    return n;
}

static int list_hub(const struct topt_problem *p, struct family *f,
                    const struct topt_splits *splits, const struct topt_config_list *list)
{
    uint8_t keep[3];
    int keeps = hub_keeps(p, f->tensor, keep), n = 0;
    for (int i = 0; i < keeps * list->n; i++) {
        struct topt_hub h = {list->config[i / keeps], keep[i % keeps]};
        if (!topt_allows_hub(&p->options, p->k.mesh, f->tensor, splits, &h))
            continue;
        f->at[n].config = h.layout;
        f->at[n++].hub_keep = (uint8_t)h.keep;
    }
    return n;
}

static void set_level(const struct topt_problem *p, struct topt_config *c, int level)
{
    int whole = level && level <= TOPT_ZERO_PARAM;
    c->zero = (uint8_t)level;
    c->whole_axes = whole ? (uint8_t)p->options.whole_axes : 0;
}

/* Levels of sharding that a configuration takes, as bits: those asked for that mean
 * something, else none. */
static int levels_of(const struct topt_problem *p, const struct topt_op *op,
                     struct topt_config c)
{
    int levels = 0;
    for (int z = 0; z < TOPT_ZERO_COUNT; z++) {
        set_level(p, &c, z);
        if (p->options.zero >> z & 1 && topt_config_valid(op, &c, p->k.mesh))
            levels |= 1 << z;
    }
    return levels ? levels : 1;
}

static int list_op(const struct topt_problem *p, struct family *f,
                   const struct topt_config_list *list)
{
    const struct topt_op *op = &p->k.model->op[f->op];
    int last = topt_problem_may_recompute(p, f->op), n = 0;
    int first = p->options.recompute == TOPT_RECOMPUTE_ALL ? last : 0;
    for (int i = 0; i < list->n; i++) {
        int levels = levels_of(p, op, list->config[i]);
        for (int z = 0; z < TOPT_ZERO_COUNT; z++)
            for (int r = first; r <= last && levels >> z & 1; r++) {
                struct topt_config *c = &f->at[n].config;
                *c = list->config[i];
                set_level(p, c, z);
                c->recompute = (uint8_t)r;
                n += topt_pins_allow(p->options.pins, p->options.alike, f->op, op,
                                     p->k.mesh, c) &&
                     topt_allows_op(&p->options, p->k.mesh, op, c);
            }
    }
    return n;
}

/* ---- another problem's ------------------------------------------------------------- */

static void swap(int8_t *a, int8_t *b)
{
    int8_t x = *a;
    *a = *b;
    *b = x;
}

/* With axes that are alike in an order that does not depend on their names: what a
 * configuration costs follows from that alone, since within a dimension axes keep their
 * order. */
static struct topt_config nameless(const struct topt_mesh *m, struct topt_config c)
{
    for (int a = 1; a < m->naxes; a++)
        for (int i = a; i > 0 && topt_mesh_alike(m, i - 1, i) && c.dim[i] < c.dim[i - 1];
             i--)
            swap(&c.dim[i], &c.dim[i - 1]);
    return c;
}

/* The next order of some dimensions, where they were in ascending order first; they are
 * again after the last. */
static int next_order(int8_t *dim, int n)
{
    int i = n - 2, last = n - 1;
    while (i >= 0 && dim[i] >= dim[i + 1])
        i--;
    while (i >= 0 && dim[last] <= dim[i])
        last--;
    if (i >= 0)
        swap(&dim[i], &dim[last]);
    for (int a = i + 1, b = n - 1; a < b; a++, b--)
        swap(&dim[a], &dim[b]);
    return i >= 0;
}

/* The next configuration that differs only by which of alike axes do what; 0 after the
 * last, which is followed by the nameless. */
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

/* Configurations of a family, and where 'every' is asked for those which they stand for;
 * listed where 'f' has room. */
static int list_among(const struct topt_problem *p, const struct family *of,
                      struct family *f)
{
    const struct topt_mesh *m = p->k.mesh;
    int n = 0;
    for (int i = 0; i < of->n; i++) {
        struct topt_config c =
            p->options.every ? nameless(m, of->at[i].config) : of->at[i].config;
        do {
            if (f) {
                f->at[n].config = c;
                f->at[n].hub_keep = of->at[i].hub_keep;
            }
            n++;
        } while (p->options.every && next_names(m, &c));
    }
    return n;
}

static int list_family(struct topt_problem *p, struct family *f, struct topt_error *err)
{
    const struct topt_problem *among = p->options.among;
    const struct family *of = among ? &among->family[f - p->family] : NULL;
    struct topt_splits splits = f->op >= 0 ? topt_splits_of_op(&p->k.model->op[f->op])
                                           : topt_splits_of_tensor(p->k.model, f->tensor);
    struct topt_config_list list = {0};
    if (!of && topt_space_configs(p->k.mesh, &splits, &p->options, &list, err))
        return -1;
    int most = of ? list_among(p, of, NULL) : 2 * TOPT_ZERO_COUNT * list.n;
    f->at = calloc((size_t)most + 1, sizeof *f->at);
    if (f->at)
        f->n = of           ? list_among(p, of, f)
               : f->op >= 0 ? list_op(p, f, &list)
                            : list_hub(p, f, &splits, &list);
    free(list.config);
    if (!f->at)
        return topt_nomem(err, "configurations");
    (void)TOPT_RESIZE(f->at, f->n + 1); /* most have fewer than there was room for */
    return 0;
}

/* ---- what configurations of operators cost ----------------------------------------- */

/* For each configuration the first that costs the same. */
static int find_same(const struct topt_mesh *m, const struct family *f, int32_t *ret)
{
    struct topt_config *form = malloc(((size_t)f->n + 1) * sizeof *form);
    struct topt_index index = {0};
    int bad = !form;
    for (int i = 0; i < f->n && !bad; i++) {
        form[i] = nameless(m, f->at[i].config);
        uint64_t hash = topt_hash(&form[i], sizeof form[i], 1);
        int k = topt_index_first(&index, hash);
        while (k >= 0 && memcmp(&form[k], &form[i], sizeof form[i]) != 0)
            k = topt_index_next(&index, k);
        ret[i] = k >= 0 ? ret[k] : i;
        bad = topt_index_add(&index, hash) < 0;
    }
    free(form);
    topt_index_fini(&index);
    return bad ? -1 : 0;
}

static void keep_cost(struct choice *x, const struct topt_fragment_cost *c)
{
    const struct topt_part_time *begin = &c->spent.at[TOPT_DURING_BEGIN],
                                *end = &c->spent.at[TOPT_DURING_END];
    x->cost = (struct topt_cost){0, c->compute_ns + c->network_ns};
    for (int k = 0; k < TOPT_CLASS_COUNT; k++)
        x->cost.memory += k == TOPT_CLASS_RECOMPUTED ? 0 : c->class_bytes[k];
    x->ends = (struct topt_cost){x->cost.memory - c->class_bytes[TOPT_CLASS_KEPT],
                                 begin->compute_ns + begin->waited_ns + end->compute_ns +
                                     end->waited_ns};
    x->forward_ns = c->spent.at[TOPT_DURING_FORWARD].compute_ns +
                    c->spent.at[TOPT_DURING_FORWARD].waited_ns;
    x->added_ns = c->spent.at[TOPT_DURING_BACKWARD].added_ns;
    x->recomputed = c->class_bytes[TOPT_CLASS_RECOMPUTED];
    x->transient = c->transient_bytes;
}

/* Price the first of each kind.  Ways are found together, and then what waits for them is priced
 * once more. */
static int price_firsts(const struct topt_problem *p, struct family *f,
                        const int32_t *same, uint8_t *waits, struct topt_error *err)
{
    struct topt_fragment_cost c;
    int any = 0;
    for (int i = 0; i < f->n; i++) {
        int later;
        if (same[i] != i)
            continue;
        if (topt_problem_canceled(p, err) ||
            topt_cost_op_ask(&p->k, f->op, &f->at[i].config, &c, &later, err))
            return -1;
        any |= waits[i] = later != 0;
        keep_cost(&f->at[i], &c);
    }
    if (any && topt_router_answer(p->k.router, p->options.threads, p->k.cancel, err))
        return -1;
    for (int i = 0; any && i < f->n; i++) {
        if (!waits[i])
            continue;
        if (topt_cost_op(&p->k, f->op, &f->at[i].config, &c, err))
            return -1;
        keep_cost(&f->at[i], &c);
    }
    return 0;
}

static int cost_ops(const struct topt_problem *p, struct family *f,
                    struct topt_error *err)
{
    int32_t *same = malloc(((size_t)f->n + 1) * sizeof *same);
    uint8_t *waits = calloc((size_t)f->n + 1, 1);
    int rc = !same || !waits || find_same(p->k.mesh, f, same)
                 ? topt_nomem(err, "configurations")
                 : price_firsts(p, f, same, waits, err);
    for (int i = 0; !rc && i < f->n; i++) {
        f->at[i].cost = f->at[same[i]].cost;
        f->at[i].ends = f->at[same[i]].ends;
        f->at[i].forward_ns = f->at[same[i]].forward_ns;
        f->at[i].added_ns = f->at[same[i]].added_ns;
        f->at[i].recomputed = f->at[same[i]].recomputed;
        f->at[i].transient = f->at[same[i]].transient;
    }
    free(same);
    free(waits);
    return rc;
}

/* ---- classes ----------------------------------------------------------------------- */

/* The different ends found so far from one side. */
struct classes {
    struct side *side;
    int cap;
    struct topt_index index;
};

static int same_end(const struct topt_edge_end *a, const struct topt_edge_end *b)
{
    return topt_layout_equal(&a->value, &b->value) &&
           topt_layout_equal(&a->grad, &b->grad) && a->hub == b->hub &&
           a->hub_keep == b->hub_keep && a->recompute == b->recompute &&
           a->needed == b->needed && a->others_bytes == b->others_bytes &&
           a->op_bytes == b->op_bytes && a->out_bytes == b->out_bytes &&
           a->ring == b->ring && !memcmp(a->ring_ns, b->ring_ns, sizeof a->ring_ns) &&
           !memcmp(a->beside_ns, b->beside_ns, sizeof a->beside_ns);
}

/* Give an end its class, a new one where it is the first such. */
static int classify(struct classes *c, const struct topt_edge_end *e, int32_t *ret)
{
    struct side *side = c->side;
    int64_t rest[] = {e->hub,          e->hub_keep, e->recompute, e->needed,
                      e->others_bytes, e->op_bytes, e->out_bytes};
    uint64_t h = topt_hash(&e->value, sizeof e->value, 1);
    h = topt_hash(rest, sizeof rest, topt_hash(&e->grad, sizeof e->grad, h));
    int i = topt_index_first(&c->index, h);
    while (i >= 0 && !same_end(&side->end[i], e))
        i = topt_index_next(&c->index, i);
    if (i < 0) {
        if (TOPT_ROOM(side->end, side->n, c->cap, 2) ||
            (i = topt_index_add(&c->index, h)) < 0)
            return -1;
        side->end[side->n++] = *e;
    }
    *ret = i;
    return 0;
}

/* ---- families ---------------------------------------------------------------------- */

/* Bytes of a tensor where it waits past other operators: those that wait for long stay,
 * of others a cap counts. */
static void charge_waiting(const struct topt_problem *p, struct choice *x, int tensor,
                           int span, const struct topt_layout *where)
{
    int64_t bytes = span == TOPT_SPAN_NEXT ? 0 : topt_span_bytes(&p->k, tensor, where);
    if (span == TOPT_SPAN_LONG)
        x->cost.memory += bytes;
    else
        x->waiting = bytes;
}

/* Find out the rest of an operator's configuration once it has a price. */
static int finish_op(const struct topt_problem *p, const struct family *f,
                     struct choice *x, struct classes *side, struct topt_error *err)
{
    const struct topt_op *o = &p->k.model->op[f->op];
    struct topt_layout l = topt_value_layout(o, o->output, &x->config, p->k.mesh);
    charge_waiting(p, x, f->tensor, op_waits(p, f->op), &l);
    struct topt_edge_end e = topt_edge_producer(&p->k, f->op, &x->config);
    int bad = classify(&side[AS_PRODUCER], &e, &x->class[AS_PRODUCER]);
    for (int k = 0; k < f->ninputs && !bad; k++) {
        e = topt_edge_consumer(&p->k, f->op, k, &x->config, x->transient);
        bad = classify(&side[AS_CONSUMER + k], &e, &x->class[AS_CONSUMER + k]);
    }
    x->transient = topt_round_transient(x->transient);
    return bad ? topt_nomem(err, "configurations") : 0;
}

static int price_hub(const struct topt_problem *p, const struct family *f,
                     struct choice *x, struct classes *side, struct topt_error *err)
{
    struct topt_hub h = {x->config, x->hub_keep};
    struct topt_fragment_cost c;
    if (topt_problem_canceled(p, err) || topt_cost_hub(&p->k, f->tensor, &h, &c, err))
        return -1;
    x->cost.time = c.compute_ns + c.network_ns;
    struct topt_edge_end e = topt_edge_hub(&p->k, &h);
    charge_waiting(p, x, f->tensor, p->spans.span[f->tensor], &e.value);
    return classify(&side[AS_PRODUCER], &e, &x->class[AS_PRODUCER]) ||
                   classify(&side[AS_CONSUMER], &e, &x->class[AS_CONSUMER])
               ? topt_nomem(err, "configurations")
               : 0;
}

int topt_make_family(struct topt_problem *p, struct family *f, struct topt_error *err)
{
    struct classes side[SIDES] = {0};
    f->ninputs = f->op >= 0 ? p->k.model->op[f->op].ninputs : 1;
    for (int i = 0; i < SIDES; i++)
        side[i].side = &f->side[i];
    int rc = list_family(p, f, err) || (f->op >= 0 && cost_ops(p, f, err)) ? -1 : 0;
    for (int i = 0; i < f->n && !rc; i++)
        rc = f->op < 0 ? price_hub(p, f, &f->at[i], side, err)
                       : finish_op(p, f, &f->at[i], side, err);
    for (int i = 0; i < SIDES; i++)
        topt_index_fini(&side[i].index);
    f->first = p->nchoices;
    p->nchoices += f->n;
    return rc;
}

/* Operators of a family are alike as such, hubs mostly have producers that are: those
 * families are chained, the latest first. */
static int find_family(const struct topt_problem *p, int op, int tensor)
{
    const struct topt_model *m = p->k.model;
    int i = (op >= 0 ? p->of_op : p->of_hub)[m->alike[m->tensor[tensor].producer]];
    while (i >= 0 && !(op >= 0 ? alike_ops(p, p->family[i].op, op)
                               : alike_hubs(p, p->family[i].tensor, tensor)))
        i = p->family[i].next;
    for (int k = 0; i < 0 && op < 0 && k < p->nfamilies; k++)
        if (p->family[k].op < 0 && alike_hubs(p, p->family[k].tensor, tensor))
            i = k;
    return i;
}

/* The blocks that pay for what is recomputed of an operator, or the hub of its tensor. */
static int paying_blocks(const struct topt_problem *p, int tensor)
{
    int apart = p->options.alike || p->k.settings->by_unit;
    const struct topt_blocks *b = apart ? NULL : p->options.blocks;
    int kind = b ? b->kind[p->k.model->tensor[tensor].producer] : -1;
    return kind >= 0 ? b->of[kind].count : 1;
}

void topt_family_fini(struct family *f)
{
    free(f->at);
    for (int k = 0; k < SIDES; k++)
        free(f->side[k].end);
}

int topt_problem_family(struct topt_problem *p, int op, int tensor,
                        struct topt_error *err)
{
    const struct topt_model *m = p->k.model;
    int found = find_family(p, op, tensor), among = paying_blocks(p, tensor);
    if (found >= 0) { /* of several kinds, that with most blocks: none pays too much */
        if (among > p->family[found].among)
            p->family[found].among = among;
        return found;
    }
    int *head = &(op >= 0 ? p->of_op : p->of_hub)[m->alike[m->tensor[tensor].producer]];
    struct family *f = &p->family[p->nfamilies];
    *f = (struct family){.op = op, .tensor = tensor, .next = *head, .among = among};
    *head = p->nfamilies++;
    return topt_make_family(p, f, err) ? -1 : p->nfamilies - 1;
}
