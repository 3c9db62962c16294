/* row.c - what AccPar and HyPar choose for a model, as splits that are held fixed.
 *
 * A layer is an operator that makes output features from input features by weights: a dimension
 * of the weights is not its output's, another is.  So are products, convolutions, tables (whose
 * input features are rows), experts (the first product's input, the second's output) and cells of
 * recurrent layers (whose input is their own output of the step before).  Other operators hand on
 * what the layer before them made, and weights that they have of their own (norms, biases, kernels
 * of single channels) lie as that does; where two paths meet, both lie as the later layer's output
 * does, the paper's end of a shortcut. */
#include "topt_accpar_row.h"

#include "topt_accpar.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

/* ---- layers ------------------------------------------------------------------------- */

/* Operands and dimensions of an operator that is a layer. */
struct shape {
    int x, w, y; /* operands; w: of its weights the first with input features */
    int in, out; /* dimensions */
};

static int has(const struct topt_op *o, int operand, int d)
{
    const struct topt_operand_spec *s = &o->spec->operand[operand];
    for (int j = 0; operand >= 0 && j < s->ndim; j++)
        if (s->dim[j] == d)
            return 1;
    return 0;
}

static int batch_of(const struct topt_op *o)
{
    for (int d = 0; d < o->spec->ndims; d++)
        if (o->spec->dim[d].split == TOPT_SPLIT_BATCH)
            return d;
    return -1;
}

static int is_feature(const struct topt_op *o, int d)
{
    enum topt_split s = topt_op_split(o, d);
    return s == TOPT_SPLIT_FEATURE || s == TOPT_SPLIT_STAT;
}

/* Parameters, or a table that several operators read. */
static int is_weight(const struct topt_model *m, const struct topt_op *o, int w)
{
    const struct topt_operand *x = &o->operand[w];
    if (!x->present || (x->role != TOPT_PARAM && x->role != TOPT_INPUT))
        return 0;
    return x->role == TOPT_PARAM ||
           batch_of(&m->op[m->tensor[o->tensor[w]].producer]) < 0;
}

/* What a layer reads: the first input that is no weight, else data. */
static int input_of(const struct topt_model *m, const struct topt_op *o)
{
    for (int i = 0; i < o->ninputs; i++)
        if (!is_weight(m, o, o->input[i]))
            return o->input[i];
    for (int x = 0; x < o->spec->noperands; x++)
        if (o->operand[x].present && o->operand[x].role == TOPT_DATA)
            return x;
    return -1;
}

/* Input features are those of the input, where it has some; output features those that it lacks. */
static int find_layer(const struct topt_model *m, const struct topt_op *o,
                      struct shape *ret)
{
    int in_x = 0, not_in_x = 0;
    *ret = (struct shape){input_of(m, o), -1, o->output, -1, -1};
    if (batch_of(o) < 0 || ret->x < 0)
        return 0;
    for (int w = 0; w < o->spec->noperands; w++)
        for (int d = 0; d < o->spec->ndims && is_weight(m, o, w); d++) {
            int x = has(o, ret->x, d);
            if (!has(o, w, d) || !is_feature(o, d))
                continue;
            if (!has(o, ret->y, d) && (ret->in < 0 || (x && !in_x))) {
                ret->in = d;
                ret->w = w;
                in_x = x;
            } else if (has(o, ret->y, d) && (ret->out < 0 || (!x && !not_in_x))) {
                ret->out = d;
                not_in_x = !x;
            }
        }
    return ret->in >= 0 && ret->out >= 0;
}

/* Numbers along a dimension of an operand. */
static double extent(const struct topt_op *o, int operand, int d)
{
    const struct topt_operand_spec *s = &o->spec->operand[operand];
    for (int j = 0; j < s->ndim; j++)
        if (s->dim[j] == d)
            return (double)o->operand[operand].dim[j].count *
                   (double)o->operand[operand].dim[j].unit;
    return 1;
}

/* Weights side by side, as tables and experts: along what all three have but the batch. */
static double side_by_side(const struct topt_op *o, const struct shape *s)
{
    double n = 1;
    for (int d = 0; d < o->spec->ndims; d++)
        if (d != s->in && d != s->out && has(o, s->x, d) && has(o, s->w, d) &&
            has(o, s->y, d))
            n *= extent(o, s->w, d);
    return n;
}

static struct topt_accpar_layer layer_of(const struct topt_model *m,
                                         const struct topt_op *o, const struct shape *s,
                                         double batch)
{
    int lookup = o->operand[s->x].role == TOPT_DATA && !o->spec->operand[s->x].real;
    int out = has(o, s->w, s->out) ? s->w : s->y;
    struct topt_accpar_layer l = {.in = extent(o, s->w, s->in),
                                  .out = extent(o, out, s->out),
                                  .lookup = lookup,
                                  .recurrent = !lookup && !has(o, s->x, s->in)};
    double beside = side_by_side(o, s), weights = 0;
    for (int w = 0; w < o->spec->noperands; w++)
        weights += is_weight(m, o, w) ? (double)topt_operand_numbers(o, w) : 0;
    l.map_out = (double)topt_operand_numbers(o, s->y) / batch / extent(o, s->y, s->out);
    l.map_in = l.recurrent ? l.map_out
               : lookup    ? (double)topt_operand_numbers(o, s->x) / batch
                           : (double)topt_operand_numbers(o, s->x) / batch / l.in;
    l.kernel = weights / l.in / l.out / beside;
    l.beside = beside - 1;
    snprintf(l.name, sizeof l.name, "%.23s", o->name);
    return l;
}

/* ---- the network -------------------------------------------------------------------- */

struct chosen {
    const struct topt_model *m;
    struct topt_accpar_net net;
    struct shape shape[TOPT_ACCPAR_LAYERS];
    int op[TOPT_ACCPAR_LAYERS]; /* of a layer */
    int *last;                  /* by tensor: the layer that it comes from, or -1 */
    int *follows; /* by operator that is no layer: the layer before it, or -1 */
};

static int add_edge(struct chosen *c, int from, int to, int joins, struct topt_error *err)
{
    struct topt_accpar_net *n = &c->net;
    if (from < 0 || from == to)
        return 0;
    if (n->nedges == TOPT_ACCPAR_EDGES)
        return topt_fail(err, TOPT_ERR_LIMIT, "more than %d edges between layers",
                         TOPT_ACCPAR_EDGES);
    n->edge[n->nedges++] = (struct topt_accpar_edge){from, to, joins};
    return 0;
}

static int add_layer(struct chosen *c, int op, const struct shape *s,
                     struct topt_error *err)
{
    const struct topt_op *o = &c->m->op[op];
    struct topt_accpar_net *n = &c->net;
    if (n->n == TOPT_ACCPAR_LAYERS)
        return topt_fail(err, TOPT_ERR_LIMIT, "more than %d layers", TOPT_ACCPAR_LAYERS);
    c->op[n->n] = op;
    c->shape[n->n] = *s;
    n->layer[n->n] = layer_of(c->m, o, s, n->batch);
    int from = n->layer[n->n].lookup ? -1 : c->last[o->tensor[s->x]];
    /* What a recurrent layer reads is added to the gates that it makes. */
    if (add_edge(c, from, n->n, n->layer[n->n].recurrent, err))
        return -1;
    c->last[topt_output_tensor(o)] = n->n++;
    return 0;
}

/* An operator that is no layer, as an activation or an addition: its inputs and its output are
 * partitioned as those of the last layer that feeds it. */
static int pass_through(struct chosen *c, const struct topt_op *o, struct topt_error *err)
{
    int last = -1;
    for (int i = 0; i < o->ninputs; i++) {
        int from = c->last[topt_input_tensor(o, i)];
        last = from > last ? from : last;
    }
    for (int i = 0; i < o->ninputs; i++)
        if (add_edge(c, c->last[topt_input_tensor(o, i)], last, 1, err))
            return -1;
    c->last[topt_output_tensor(o)] = last;
    c->follows[o - c->m->op] = last;
    return 0;
}

static int read_model(struct chosen *c, const struct topt_model *m,
                      struct topt_error *err)
{
    c->m = m;
    c->net.batch = (double)m->batch;
    c->last = malloc((size_t)(m->ntensors + 1) * sizeof *c->last);
    c->follows = malloc((size_t)(m->nops + 1) * sizeof *c->follows);
    if (!c->last || !c->follows)
        return topt_nomem(err, "AccPar's layers");
    for (int i = 0; i < m->nops; i++) {
        struct shape s;
        if (find_layer(m, &m->op[i], &s) ? add_layer(c, i, &s, err)
                                         : pass_through(c, &m->op[i], err))
            return -1;
    }
    return 0;
}

/* ---- devices ------------------------------------------------------------------------ */

/* Devices of one kind.  A cut between kinds, and one between nodes, goes by what a node has to the
 * others; a profile of one node has no such link. */
static void boards_of(const struct topt_request *r, const struct topt_hw *hw, int count,
                      struct topt_accpar_boards *ret)
{
    int node = topt_hw_gpus_per_node(hw);
    double between = topt_hw_network(r->hw) / node, bus = topt_hw_bus(hw);
    *ret = (struct topt_accpar_boards){.count = count,
                                       .flops = topt_hw_peak(hw, r->settings.dtype),
                                       .bytes_per_second = between > 0 ? between : bus,
                                       .per_node = node,
                                       .node_bytes_per_second = bus};
    snprintf(ret->name, sizeof ret->name, "%.47s", topt_hw_device(hw));
}

/* Groups are the first cut, and one configuration is that of both: so they are as many. */
static const char *find_boards(const struct topt_request *r,
                               struct topt_accpar_boards ret[TOPT_ACCPAR_KINDS],
                               int *ret_kinds)
{
    int groups = topt_hw_groups(r->hw);
    *ret_kinds = groups ? groups : 1;
    if (groups > TOPT_ACCPAR_KINDS)
        return "it cuts between two kinds of devices, and here are more";
    for (int i = 0; i < groups; i++)
        boards_of(r, topt_hw_group(r->hw, i), topt_hw_group_devices(r->hw, i), &ret[i]);
    if (!groups) {
        boards_of(r, r->hw, (int)r->gpus, ret);
        return r->gpus > 0 && !(r->gpus & (r->gpus - 1)) && ret->flops > 0 &&
                       ret->bytes_per_second > 0
                   ? NULL
                   : "it cuts devices in halves, so their number is a power of 2";
    }
    if (ret[0].count != ret[1].count || ret[0].count & (ret[0].count - 1))
        return "it cuts each kind of devices in halves alike, so they are equally many, "
               "a power of 2";
    return r->gpus == ret[0].count + ret[1].count
               ? NULL
               : "it cuts between kinds of devices, and takes all of them";
}

/* ---- splits ------------------------------------------------------------------------- */

/* The cuts, outermost first, a bit each, that a layer has of a type. */
struct cuts {
    uint32_t of[TOPT_ACCPAR_TYPES];
};

static struct cuts cuts_of(const struct topt_accpar_answer *a, int layer)
{
    struct cuts c = {{0}};
    for (int i = 0; i < a->levels; i++)
        c.of[a->cut[i].type[layer]] |= 1u << i;
    return c;
}

static int64_t parts_of(uint32_t cuts)
{
    return (int64_t)1 << __builtin_popcount(cuts);
}

static int fits(const struct topt_request *r, const struct topt_op *o, int d,
                int64_t parts)
{
    int even = (o->spec->even >> d & 1) || (r->framework && r->framework->uniform_only);
    return parts <= o->count[d] && (!even || o->count[d] % parts == 0);
}

static uint32_t innermost(uint32_t cuts)
{
    return 1u << (31 - __builtin_clz(cuts));
}

/* Axes of a dimension by name: the first 'node' cuts are between nodes. */
static void put_axes(struct topt_text *pins, uint32_t cuts, int node)
{
    int any = 0;
    for (int i = 0; cuts >> i; i++)
        if (cuts >> i & 1)
            topt_text_add(pins, "%s%c%d", any++ ? "+" : "", i < node ? 'n' : 'g',
                          i < node ? i : i - node);
}

/* Axes [lo, hi) are alike: the canonical space gives the batch those outside, and features those
 * inside, the first dimension's innermost. */
static struct cuts in_order(struct cuts p, const int dim[TOPT_ACCPAR_TYPES], int lo,
                            int hi)
{
    struct cuts q = {{0}};
    uint32_t level = (1u << hi) - (1u << lo);
    int swap = dim[TOPT_ACCPAR_OUTPUT] < dim[TOPT_ACCPAR_INPUT];
    for (int n = __builtin_popcount(p.of[TOPT_ACCPAR_BATCH] & level); n > 0; n--)
        q.of[TOPT_ACCPAR_BATCH] |= 1u << lo++;
    for (int k = 0; k < 2; k++) {
        int t = k == swap ? TOPT_ACCPAR_INPUT : TOPT_ACCPAR_OUTPUT;
        for (int n = __builtin_popcount(p.of[t] & level); n > 0; n--)
            q.of[t] |= 1u << --hi;
    }
    return q;
}

/* The axes of an operator by the dimension of each type, -1: it has none.  Types are chosen without
 * asking how many there are of what they split; halves that there are not go to the batch, or stay
 * with all.  'node': cuts between nodes. */
static void pin_op(const struct topt_op *o, const struct topt_request *r,
                   const int dim[TOPT_ACCPAR_TYPES], struct cuts p, int node,
                   struct topt_text *pins)
{
    int any = 0;
    for (int t = TOPT_ACCPAR_INPUT; t < TOPT_ACCPAR_TYPES; t++)
        while (p.of[t] && (dim[t] < 0 || !fits(r, o, dim[t], parts_of(p.of[t])))) {
            uint32_t last = innermost(p.of[t]);
            p.of[t] ^= last;
            p.of[TOPT_ACCPAR_BATCH] |= last;
        }
    uint32_t *batch = &p.of[TOPT_ACCPAR_BATCH];
    while (*batch && (dim[TOPT_ACCPAR_BATCH] < 0 ||
                      !fits(r, o, dim[TOPT_ACCPAR_BATCH], parts_of(*batch))))
        *batch ^= innermost(*batch);
    struct cuts outer = in_order(p, dim, 0, node),
                inner = in_order(p, dim, node, __builtin_ctzll((uint64_t)r->gpus));
    for (int t = 0; !topt_hw_groups(r->hw) && t < TOPT_ACCPAR_TYPES; t++)
        p.of[t] = outer.of[t] | inner.of[t];
    topt_text_add(pins, "%s%s=", pins->s && *pins->s ? ";" : "", o->name);
    for (int t = 0; t < TOPT_ACCPAR_TYPES; t++) {
        if (dim[t] < 0)
            continue;
        topt_text_add(pins, "%s%s:", any++ ? "," : "", o->spec->dim[dim[t]].name);
        if (p.of[t])
            put_axes(pins, p.of[t], node);
        else
            topt_text_add(pins, "1");
    }
}

static void pin_layer(const struct chosen *c, const struct topt_request *r, int layer,
                      struct cuts p, int node, struct topt_text *pins)
{
    const struct topt_op *o = &c->m->op[c->op[layer]];
    const struct shape *s = &c->shape[layer];
    pin_op(o, r, (int[]){batch_of(o), s->in, s->out}, p, node, pins);
}

/* A table that several operators read lies as the first of them cuts it. */
static void pin_table(const struct chosen *c, const struct topt_request *r, int op,
                      const struct topt_accpar_answer *a, int node,
                      struct topt_text *pins)
{
    const struct topt_op *o = &c->m->op[op];
    int table = topt_output_tensor(o);
    for (int l = 0; l < c->net.n; l++) {
        const struct topt_op *reader = &c->m->op[c->op[l]];
        const struct shape *s = &c->shape[l];
        int dim[TOPT_ACCPAR_TYPES] = {-1, -1, -1};
        if (reader->tensor[s->w] != table)
            continue;
        for (int j = 0; j < reader->spec->operand[s->w].ndim; j++) {
            int d = reader->spec->operand[s->w].dim[j];
            int type = d == s->in    ? TOPT_ACCPAR_INPUT
                       : d == s->out ? TOPT_ACCPAR_OUTPUT
                                     : TOPT_ACCPAR_BATCH;
            dim[type] = o->spec->operand[o->output].dim[j];
        }
        pin_op(o, r, dim, cuts_of(a, l), node, pins);
        return;
    }
}

/* Weights of an operator that is no layer: they lie as what the layer before makes, by rows (I), whole
 * (II) or by features (III); by rows where there is none. */
static void pin_follower(const struct chosen *c, const struct topt_request *r, int op,
                         enum topt_accpar_system system,
                         const struct topt_accpar_answer *a, int node,
                         struct topt_text *pins)
{
    const struct topt_op *o = &c->m->op[op];
    if (batch_of(o) < 0) {
        pin_table(c, r, op, a, node, pins);
        return;
    }
    int layer = c->follows[op], out = -1, weights = 0;
    struct cuts p = {{(1u << a->levels) - 1, 0, 0}};
    for (int w = 0; w < o->spec->noperands; w++)
        for (int d = 0; d < o->spec->ndims && o->operand[w].role == TOPT_PARAM; d++) {
            weights |= o->operand[w].present;
            if (has(o, w, d) && has(o, o->output, d) && is_feature(o, d))
                out = d;
        }
    if (!weights)
        return;
    if (layer >= 0)
        p = cuts_of(a, layer);
    if (system == TOPT_ACCPAR_TOFU) /* which stores nothing whole */
        p.of[TOPT_ACCPAR_BATCH] |= p.of[TOPT_ACCPAR_INPUT];
    p.of[TOPT_ACCPAR_INPUT] = 0;
    if (out < 0 || !has(o, o->output, out))
        p.of[TOPT_ACCPAR_OUTPUT] = 0;
    pin_op(o, r, (int[]){batch_of(o), -1, out}, p, node, pins);
}

/* ---- shares ------------------------------------------------------------------------- */

/* An axis has one share where AccPar gives each layer its own: their mean by operations, in
 * thousandths, so that each group has some. */
static void find_shares(const struct chosen *c, const struct topt_accpar_cut *cut,
                        struct topt_chosen *ret, struct topt_text *why)
{
    double sum = 0, all = 0, least = 1, most = 0;
    for (int l = 0; l < c->net.n; l++) {
        double flops = topt_accpar_flops(&c->net.layer[l], c->net.batch);
        sum += flops * cut->share[l];
        all += flops;
        least = cut->share[l] < least ? cut->share[l] : least;
        most = cut->share[l] > most ? cut->share[l] : most;
    }
    int64_t first = (int64_t)(1000 * sum / all + 0.5);
    first = first < 1 ? 1 : first > 999 ? 999 : first;
    ret->share[0] = first;
    ret->share[1] = 1000 - first;
    topt_text_add(why, ", by shares of %.1f and %.1f %%", (double)first / 10,
                  (double)(1000 - first) / 10);
    if (most - least > 0.01)
        topt_text_add(why,
                      ", the mean of what it gives layers: %.0f to %.0f %% to the "
                      "first group",
                      100 * least, 100 * most);
}

/* ---- choices ------------------------------------------------------------------------ */

static void put_choices(const struct chosen *c, const struct topt_request *r,
                        enum topt_accpar_system system,
                        const struct topt_accpar_answer *a, int kinds,
                        struct topt_text *pins, struct topt_text *why)
{
    int with[TOPT_ACCPAR_TYPES] = {0}, between = 0, node = 0;
    for (int64_t n = r->gpus; n > topt_hw_gpus_per_node(r->hw); n /= 2)
        node++;
    for (int l = 0; l < c->net.n; l++) {
        struct cuts p = cuts_of(a, l);
        int features = 0;
        for (int t = TOPT_ACCPAR_INPUT; t < TOPT_ACCPAR_TYPES; t++) {
            with[t] += p.of[t] != 0;
            features |= p.of[t] != 0;
        }
        with[TOPT_ACCPAR_BATCH] += !features;
        between += !(p.of[TOPT_ACCPAR_BATCH] & 1);
        pin_layer(c, r, l, p, node, pins);
    }
    for (int i = 0, l = 0; i < c->m->nops; i++)
        if (l < c->net.n && c->op[l] == i)
            l++;
        else
            pin_follower(c, r, i, system, a, node, pins);
    topt_text_add(why,
                  "of %d layers it splits %d by batch only, %d by input features, %d by "
                  "output features",
                  c->net.n, with[TOPT_ACCPAR_BATCH], with[TOPT_ACCPAR_INPUT],
                  with[TOPT_ACCPAR_OUTPUT]);
    if (system == TOPT_ACCPAR_TOFU && with[TOPT_ACCPAR_INPUT] &&
        r->settings.accounting != TOPT_ACCOUNTING_RUN)
        topt_text_add(why,
                      ", and input features are not split where sums that are due count "
                      "as stored (--accounting)");
    if (kinds > 1)
        topt_text_add(why, "; between groups the batch of %d and features of %d",
                      c->net.n - between, between);
}

static void solve(struct chosen *c, const struct topt_request *r,
                  enum topt_accpar_system system, struct topt_accpar_answer *a,
                  struct topt_text *pins, struct topt_text *why, struct topt_chosen *ret)
{
    struct topt_accpar_boards b[TOPT_ACCPAR_KINDS];
    struct topt_error refused = {0};
    int kinds;
    const char *none = find_boards(r, b, &kinds);
    if (none) {
        topt_text_add(why, "%s", none);
    } else if (read_model(c, r->model, &refused) ||
               topt_accpar_solve(&c->net, b, kinds, topt_dtype_bytes(r->settings.dtype),
                                 system, a, &refused)) {
        topt_text_add(why, "%s", refused.text);
    } else if (!c->net.n) {
        topt_text_add(why, "it cuts layers with weights, and here is none");
    } else {
        put_choices(c, r, system, a, kinds, pins, why);
        if (kinds > 1)
            find_shares(c, &a->cut[0], ret, why);
    }
}

static int choose(const struct topt_system *row, const struct topt_request *r,
                  struct topt_chosen *ret, struct topt_error *err)
{
    struct chosen *c = calloc(1, sizeof *c);
    struct topt_accpar_answer *a = calloc(1, sizeof *a);
    struct topt_text pins = {0}, why = {0};
    *ret = (struct topt_chosen){.pins = NULL};
    if (c && a)
        solve(c, r, (enum topt_accpar_system)row->rule, a, &pins, &why, ret);
    int rc = !c || !a || pins.oom || why.oom ? topt_nomem(err, "AccPar's choices") : 0;
    if (rc) {
        topt_text_fini(&pins);
        topt_text_fini(&why);
    }
    ret->pins = rc ? NULL : pins.s;
    ret->why = rc ? NULL : why.s;
    free(c ? c->last : NULL);
    free(c ? c->follows : NULL);
    free(c);
    free(a);
    return rc;
}

const struct topt_system topt_tofu_row = {
    .name = "tofu-recursive",
    .searches =
        "cut by cut, the split of every layer that fetches fewest numbers where every "
        "tensor is stored in halves (Tofu); what has no weights as tofu",
    .leaves_out =
        "replicated parameters and activations, compute time, the cost of later "
        "cuts, memory",
    .within = "tofu",
    .choices = choose,
    .rule = TOPT_ACCPAR_TOFU};
const struct topt_system topt_accpar_row = {
    .name = "accpar",
    .searches = "cut by cut, the type of every layer that takes least time by its own "
                "costs (AccPar); what has no weights follows as is fastest",
    .leaves_out = "replicated layers, the cost of later cuts, memory",
    .choices = choose,
    .rule = TOPT_ACCPAR_ACCPAR};
const struct topt_system topt_hypar_row = {
    .name = "hypar",
    .searches = "the same by numbers exchanged alone, over the batch or input features "
                "(HyPar)",
    .leaves_out = "output feature splits, compute time, the cost of later cuts, memory",
    .choices = choose,
    .rule = TOPT_ACCPAR_HYPAR};
