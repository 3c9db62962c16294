/* floor.c - what a problem's passes of micro-batches take at least, also where experts lie on other axes.
 *
 * The sums of what is least for each operator and each use of a tensor, without what a device holds or does beside
 * passes.  Degrees of expert parallelism change the configurations of operators with experts and the moves beside
 * them, and nothing else, so that these alone are priced anew. */
#include "price.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

/* The families and tables of operators with experts on other axes come after the problem's own; 'family' and 'table'
 * have what stands for each of these. */
struct floor {
    struct topt_problem *p;
    int nfamilies, ntables, *family, *table;
    struct topt_floor *ret;
    struct topt_error *err;
};

static int make_families(struct floor *x, int anew)
{
    struct topt_problem *p = x->p;
    for (int i = 0; i < x->nfamilies; i++) {
        int op = p->family[x->family[i] = i].op;
        if (anew && op >= 0 && topt_op_experts(&p->k.model->op[op]) >= 0) {
            struct family *f = &p->family[x->family[i] = p->nfamilies++];
            *f = (struct family){.op = op,
                                 .tensor = p->family[i].tensor,
                                 .next = -1,
                                 .among = p->family[i].among};
            if (topt_make_family(p, f, x->err))
                return -1;
        }
        x->ret->some &= p->family[x->family[i]].n > 0;
    }
    return 0;
}

static int price_tables(struct floor *x)
{
    struct topt_problem *p = x->p;
    for (int i = 0; i < x->ntables && x->ret->some; i++) {
        const struct edge_table *t = &p->table[i];
        int from = x->family[t->from], to = x->family[t->to];
        x->table[i] = i;
        if (from == t->from && to == t->to)
            continue;
        struct edge_table *e = &p->table[x->table[i] = p->ntables++];
        *e = (struct edge_table){.from = from, .to = to, .input = t->input};
        if (topt_table_price(p, e, x->err))
            return -1;
    }
    return 0;
}

/* 'out': choices, as bits, that are left out. */
static struct topt_floor_unit least_of(const struct family *f, uint64_t out)
{
    struct topt_floor_unit least = {.kept_bytes = INT64_MAX,
                                    .ns = {INT64_MAX, INT64_MAX},
                                    .pass_ns = {INT64_MAX, INT64_MAX}};
    for (int i = 0; i < f->n; i++) {
        const struct choice *c = &f->at[i];
        int64_t ns = c->cost.time - c->ends.time;
        if (i < 64 && out >> i & 1)
            continue;
        least.kept_bytes = topt_min(least.kept_bytes, c->cost.memory - c->ends.memory);
        least.ns[0] = topt_min(least.ns[0], ns - c->added_ns);
        least.ns[1] = topt_min(least.ns[1], ns);
        least.pass_ns[0] = topt_min(least.pass_ns[0], c->forward_ns);
        least.pass_ns[1] = topt_min(least.pass_ns[1], ns - c->added_ns - c->forward_ns);
    }
    return least;
}

static void add_bytes(struct floor *x, int unit, int64_t bytes)
{
    x->ret->unit[unit].kept_bytes += bytes;
    x->ret->kept_bytes += bytes;
}

static void add(struct floor *x, int unit, const struct topt_floor_unit *c)
{
    struct topt_floor_unit *to = &x->ret->unit[unit];
    add_bytes(x, unit, c->kept_bytes);
    to->most_tokens_ns += c->most_tokens_ns;
    to->most_moves_ns += c->most_moves_ns;
    x->ret->most_tokens_ns += c->most_tokens_ns;
    for (int i = 0; i < 2; i++) {
        x->ret->pass[i].ns += c->ns[i];
        to->ns[i] += c->ns[i];
        to->pass_ns[i] += c->pass_ns[i];
        to->tokens_ns[i] += c->tokens_ns[i];
        to->moves_ns[i] += c->moves_ns[i];
    }
}

/* A layer that is recomputed as a whole keeps what the unit before makes, at best each device a part. */
static void keep_inputs(struct floor *x, const struct topt_stage_units *units)
{
    const struct topt_problem *p = x->p;
    int again = p->options.recompute == TOPT_RECOMPUTE_ALL &&
                p->options.modules == TOPT_MODULE_WHOLE;
    for (int i = units->first; again && i < units->first + units->layers; i++) {
        const struct topt_model *m = p->k.model;
        const struct topt_op *o = &m->op[m->tensor[units->at[i].tensor].producer];
        int64_t bytes = topt_operand_numbers(o, o->output) *
                        topt_dtype_bytes(p->k.settings->dtype) / p->k.mesh->devices;
        bytes = topt_with_allocator(p->k.settings, bytes);
        int64_t *kept = &x->ret->unit[i - (i > 0)].kept_bytes;
        x->ret->kept_bytes += topt_max(bytes - *kept, 0);
        *kept = topt_max(*kept, bytes);
    }
}

/* The layer that takes least. */
static void find_layer(struct floor *x, const struct topt_stage_units *units)
{
    for (int adds = 0; adds < 2; adds++) {
        struct topt_floor_time *t = &x->ret->pass[adds];
        t->layer_ns = x->ret->unit[units->first].ns[adds];
        for (int i = 1; i < units->layers; i++)
            t->layer_ns = topt_min(t->layer_ns, x->ret->unit[units->first + i].ns[adds]);
    }
}

/* Of the first choices of an edge's producer, a family, those, as bits, with which the edge has no alternative. */
static uint64_t excluded_by(const struct topt_problem *p, const struct edge_table *t,
                            const struct family *f)
{
    int32_t cols = topt_cols(p, t)->n;
    uint64_t out = 0;
    for (int i = 0; i < f->n && i < 64; i++) {
        const int32_t *first = &t->first[f->at[i].class[AS_PRODUCER] * cols];
        out |= (uint64_t)(first[0] == first[cols]) << i;
    }
    return out;
}

/* The strategy of the choices that are not left out; NULL where an edge between two of them has no alternative, or without
 * memory. */
static struct topt_strategy *strategy_of(const struct topt_problem *p,
                                         const uint64_t *out)
{
    struct topt_strategy *s = topt_strategy_create(p->k.model);
    const struct choice *ends[2];
    for (int i = 0; i < p->nnodes && s; i++) {
        const struct node *n = &p->node[i];
        const struct choice *c = &p->family[n->family].at[__builtin_ctzll(~out[i])];
        if (n->op >= 0)
            s->config[n->op] = c->config;
        else
            s->hub[n->tensor] = (struct topt_hub){c->config, c->hub_keep};
    }
    for (int i = 0; i < p->nedges && s; i++) {
        const struct edge *e = &p->edge[i];
        const struct edge_table *t = &p->table[e->table];
        for (int k = 0; k < 2; k++) {
            int at = k ? e->to : e->from;
            ends[k] = &p->family[p->node[at].family].at[__builtin_ctzll(~out[at])];
        }
        const int32_t *first =
            &t->first[ends[0]->class[AS_PRODUCER] * topt_cols(p, t) -> n + ends[1]
                      -> class[AS_CONSUMER + t->input]];
        if (first[0] == first[1]) {
            topt_strategy_destroy(s);
            return NULL;
        }
        if (e->op >= 0)
            s->keep[e->op * TOPT_MAX_INPUTS + e->input] = t->fact[first[0]].keep;
    }
    return s;
}

struct topt_strategy *topt_problem_sole(const struct topt_problem *p)
{
    uint64_t *out = calloc((size_t)p->nnodes + 1, sizeof *out);
    int sole = out != NULL;
    for (int i = 0; i < p->ntables && sole; i++) {
        const struct edge_table *t = &p->table[i];
        int64_t entries = topt_table_entries(p, t);
        for (int64_t k = 0; k < entries; k++)
            sole &= t->first[k + 1] - t->first[k] < 2;
    }
    for (int i = 0; i < p->nedges && sole; i++) {
        const struct edge *e = &p->edge[i];
        out[e->from] |=
            excluded_by(p, &p->table[e->table], &p->family[p->node[e->from].family]);
    }
    for (int i = 0; i < p->nnodes && sole; i++) {
        int n = p->family[p->node[i].family].n;
        sole = n < 64 && n - __builtin_popcountll(out[i]) == 1;
    }
    struct topt_strategy *ret = sole ? strategy_of(p, out) : NULL;
    free(out);
    return ret;
}

/* The least bytes that an edge keeps.  'out': choices of its consumer, as bits, that are left out. */
static int64_t least_kept(const struct floor *x, const struct edge *e, uint64_t out)
{
    const struct topt_problem *p = x->p;
    const struct edge_table *t = &p->table[x->table[e->table]];
    const struct family *f = &p->family[x->family[p->node[e->to].family]];
    int32_t rows = topt_rows(p, t)->n, cols = topt_cols(p, t)->n;
    int64_t least = INT64_MAX;
    for (int i = 0; i < f->n && out; i++)
        for (int32_t r = 0; r < rows && !(i < 64 && out >> i & 1); r++) {
            int32_t at = r * cols + f->at[i].class[AS_CONSUMER + t->input];
            for (int32_t a = t->first[at]; a < t->first[at + 1]; a++)
                least = topt_min(least, t->cost[a].memory);
        }
    return least == INT64_MAX ? t->least.memory : least;
}

/* What an edge of a table adds, whatever the configurations. */
static struct topt_floor_unit least_of_table(const struct edge_table *t)
{
    const struct edge_passes *e = &t->passes;
    struct topt_floor_unit c = {.kept_bytes = t->least.memory,
                                .ns = {t->least.time, t->least.time},
                                .pass_ns = {e->least_ns[0], e->least_ns[1]}};
    memcpy(e->of_tokens ? c.tokens_ns : c.moves_ns, e->least_ns, sizeof e->least_ns);
    *(e->of_tokens ? &c.most_tokens_ns : &c.most_moves_ns) =
        e->most_ns[0] + e->most_ns[1];
    return c;
}

/* The least of each family, then of each table, into 'least'. */
static void find_least(const struct floor *x, struct topt_floor_unit *least)
{
    for (int i = 0; i < x->nfamilies; i++)
        least[i] = least_of(&x->p->family[x->family[i]], 0);
    for (int i = 0; i < x->ntables; i++)
        least[x->nfamilies + i] = least_of_table(&x->p->table[x->table[i]]);
}

static void add_all(struct floor *x, const struct topt_stage_units *units,
                    struct topt_floor_unit *least, uint64_t *out, uint64_t *excluded,
                    int *unit)
{
    const struct topt_problem *p = x->p;
    for (int u = 0; u < units->n; u++)
        for (int i = units->at[u].op; i < units->at[u + 1].op; i++)
            unit[i] = u;
    for (int i = 0; i < x->ntables; i++) {
        int from = p->table[i].from; /* those of hubs */
        excluded[i] = p->family[from].op >= 0 ? 0
                                              : excluded_by(p, &p->table[x->table[i]],
                                                            &p->family[x->family[from]]);
    }
    for (int i = 0; i < p->nedges; i++)
        out[p->edge[i].from] |= excluded[p->edge[i].table];
    find_least(x, least);
    for (int i = 0; i < p->nnodes; i++) {
        int of = p->node[i].family;
        struct topt_floor_unit some, *all = &least[of];
        if (out[i])
            some = least_of(&p->family[x->family[of]], out[i]);
        add(x, unit[topt_node_operator(p, &p->node[i])], out[i] ? &some : all);
    }
    for (int i = 0; i < p->nedges; i++) {
        const struct edge *e = &p->edge[i];
        const struct topt_floor_unit *of = &least[x->nfamilies + e->table];
        int at = unit[topt_node_operator(p, &p->node[e->to])];
        int64_t kept = out[e->to] ? least_kept(x, e, out[e->to]) : of->kept_bytes;
        if (of->ns[1] || of->most_moves_ns || of->most_tokens_ns) {
            add(x, at, of);
            kept -= of->kept_bytes;
        }
        add_bytes(x, at, kept);
    }
    keep_inputs(x, units);
    find_layer(x, units);
}

static int find(struct floor *x, const struct topt_stage_units *units, int anew)
{
    size_t n = (size_t)x->p->k.model->nops + 1;
    struct topt_floor_unit *least =
        calloc((size_t)x->nfamilies + (size_t)x->ntables + 1, sizeof *least);
    /* by node, and then by table */
    uint64_t *out = calloc((size_t)x->p->nnodes + (size_t)x->ntables + 1, sizeof *out);
    int *unit = calloc(n, sizeof *unit), rc = -1;
    x->family = calloc((size_t)x->nfamilies + 1, sizeof *x->family);
    x->table = calloc((size_t)x->ntables + 1, sizeof *x->table);
    x->ret->unit = calloc((size_t)units->n + 1, sizeof *x->ret->unit);
    if (!least || !out || !unit || !x->family || !x->table || !x->ret->unit)
        topt_nomem(x->err, "the problem");
    else
        rc = make_families(x, anew) || price_tables(x);
    x->ret->nunits = units->n;
    if (!rc && x->ret->some)
        add_all(x, units, least, out, out + x->p->nnodes, unit);
    free(least);
    free(out);
    free(unit);
    free(x->family);
    free(x->table);
    return rc ? -1 : 0;
}

int topt_problem_floor(struct topt_problem *p, const struct topt_stage_units *units,
                       struct topt_expert_axes axes, struct topt_floor *ret,
                       struct topt_error *err)
{
    struct topt_expert_axes own = p->options.expert;
    int nchoices = p->nchoices;
    struct floor x = {
        .p = p, .nfamilies = p->nfamilies, .ntables = p->ntables, .ret = ret, .err = err};
    *ret = (struct topt_floor){.some = 1};
    p->options.expert = axes;
    int rc = find(&x, units, axes.data != own.data || axes.tensor != own.tensor);
    topt_moves_fini(p);
    while (p->nfamilies > x.nfamilies)
        topt_family_fini(&p->family[--p->nfamilies]);
    while (p->ntables > x.ntables)
        topt_table_fini(&p->table[--p->ntables]);
    p->options.expert = own;
    p->nchoices = nchoices;
    if (rc) {
        free(ret->unit);
        *ret = (struct topt_floor){.some = 0};
    }
    return rc;
}
