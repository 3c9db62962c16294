/* tasks.c - a strategy as a graph of tasks. */
#include "ff_data.h"

#include <string.h>

/* ---- who runs where ---------------------------------------------------------------- */

static int node_of(const struct topt_flexflow *f, int device)
{
    return device / f->per_node;
}

static void hold(struct ff_held *h, int resource)
{
    h->at[h->n++] = resource;
}

/* Behind the devices, in the paper's network: the link of each pair of devices of a node and of each
 * pair of nodes, each way, and a channel for sums in each node and one between nodes.  In topt's: what
 * each device sends in its node, and each node to the others. */
int ff_links(const struct topt_flexflow *f)
{
    int d = f->devices, n = f->nodes;
    return f->rules.shared_links ? d + n : d * d + n * n + n + 1;
}

static struct ff_held held_by_move(const struct topt_flexflow *f, int from, int to)
{
    int a = node_of(f, from), b = node_of(f, to), d = f->devices;
    struct ff_held h = {0};
    if (f->rules.shared_links)
        hold(&h, d + (a == b ? from : d + a));
    else
        hold(&h, d + (a == b ? from * d + to : d * d + a * f->nodes + b));
    if (f->rules.moves_wait) {
        hold(&h, from);
        hold(&h, to);
    }
    return h;
}

/* Sums within a node take its channel, others that between nodes; or all links of those that take
 * part. */
static struct ff_held held_by_sum(const struct topt_flexflow *f, uint64_t devices,
                                  struct topt_group g, int node)
{
    int d = f->devices, n = f->nodes;
    struct ff_held h = {0};
    if (!f->rules.shared_links)
        hold(&h, d + d * d + n * n + (node < 0 ? n : node));
    for (int i = 0; i < n && f->rules.shared_links && g.nodes > 1; i++)
        if (devices >> (i * f->per_node) & (((uint64_t)1 << f->per_node) - 1))
            hold(&h, d + d + i);
    for (int x = 0; x < d && f->rules.shared_links && g.per_node > 1; x++)
        if (devices >> x & 1)
            hold(&h, d + x);
    return h;
}

static uint64_t key_of(const struct topt_flexflow *f, int op, enum ff_kind kind, int a,
                       int b, int input)
{
    int back = kind == FF_BACKWARD || kind == FF_UPDATE || kind == FF_SUM ||
               kind == FF_MOVE_BACK;
    uint64_t order = (uint64_t)(back ? 2 * f->nops - op : op);
    return order << 36 | (uint64_t)kind << 32 | (uint64_t)(unsigned)a << 20 |
           (uint64_t)(unsigned)b << 8 | (uint64_t)(unsigned)input;
}

int ff_use_group(const struct topt_flexflow *f, int op, int input)
{
    return f->nops + op * TOPT_MAX_INPUTS + input;
}

int ff_groups(const struct topt_flexflow *f)
{
    return f->nops * (1 + TOPT_MAX_INPUTS);
}

static int add(struct topt_flexflow *f, int group, int op, enum ff_kind kind, int a,
               int b, int input, struct ff_held held, int64_t ns, int64_t bytes)
{
    struct ff_task t = {.ns = ns,
                        .kind = (uint8_t)kind,
                        .key = key_of(f, op, kind, a, b, input),
                        .bytes = bytes};
    return ff_task_add(f, group, &t, &held);
}

/* ---- sums of gradients ------------------------------------------------------------- */

/* Parts with the same part of the parameter, and the devices they are on. */
struct replicas {
    uint64_t parts, devices;
};

static int same_part(const struct topt_op *o, const struct topt_soap *s, int operand,
                     int a, int b)
{
    for (int j = 0; j < topt_operand_rank(o, operand); j++) {
        int d = o->spec->operand[operand].dim[j];
        if (ff_coordinate(o, s, a, d) != ff_coordinate(o, s, b, d))
            return 0;
    }
    return 1;
}

static struct replicas replicas_of(const struct topt_flexflow *f, int op, int operand,
                                   int part)
{
    const struct topt_op *o = &f->k.model->op[op];
    const struct topt_soap *s = &f->op[op].soap;
    struct replicas r = {0, 0};
    for (int p = 0; p < s->nparts; p++)
        if (same_part(o, s, operand, part, p)) {
            r.parts |= (uint64_t)1 << p;
            r.devices |= (uint64_t)1 << s->device[p];
        }
    return r;
}

static struct topt_group group_of(const struct topt_flexflow *f, uint64_t devices,
                                  int *ret_node)
{
    struct topt_group g = {0, 0, 1};
    for (int n = 0; n < f->nodes; n++) {
        int here = 0;
        for (int d = n * f->per_node; d < (n + 1) * f->per_node && d < f->devices; d++)
            here += (int)(devices >> d & 1);
        g.nodes += here > 0;
        g.per_node = here > g.per_node ? here : g.per_node;
        *ret_node = here ? n : *ret_node;
    }
    if (g.nodes > 1)
        *ret_node = -1;
    return g;
}

static void add_sum(struct topt_flexflow *f, int op, int operand, int part,
                    struct replicas r)
{
    const struct topt_op *o = &f->k.model->op[op];
    struct ff_op *x = &f->op[op];
    int node = 0, n = __builtin_popcountll(r.devices);
    struct topt_group g = group_of(f, r.devices, &node);
    int64_t bytes = ff_operand_elements(o, &x->soap, operand) *
                    topt_dtype_bytes(f->k.settings->dtype);
    if (n < 2)
        return;
    int t = add(f, op, op, FF_SUM, operand, part, 0, held_by_sum(f, r.devices, g, node),
                topt_hw_collective_ns(f->k.hw, TOPT_ALL_REDUCE, g, bytes),
                2 * (n - 1) * bytes);
    for (int p = 0; p < x->soap.nparts; p++)
        if (r.parts >> p & 1) {
            ff_edge_add(f, x->backward[p], t);
            ff_edge_add(f, t, x->update[p]);
        }
}

static int is_trained(const struct topt_flexflow *f, int op, int operand)
{
    const struct topt_op *o = &f->k.model->op[op];
    return ff_is_param(f, op, operand) &&
           (o->operand[operand].role == TOPT_INPUT || topt_is_trained(o, operand));
}

static void op_tasks(struct topt_flexflow *f, int op)
{
    const struct topt_op *o = &f->k.model->op[op];
    struct ff_op *x = &f->op[op];
    memset(x->forward, -1, sizeof x->forward);
    memset(x->backward, -1, sizeof x->backward);
    memset(x->update, -1, sizeof x->update);
    if (x->virtual)
        return;
    ff_price(f, op, &x->soap, &x->price);
    for (int p = 0; p < x->soap.nparts; p++) {
        struct ff_held device = {1, {x->soap.device[p]}};
        x->forward[p] = add(f, op, op, FF_FORWARD, p, 0, 0, device, x->price.forward, 0);
        if (!x->price.backward)
            continue;
        x->backward[p] =
            add(f, op, op, FF_BACKWARD, p, 0, 0, device, x->price.backward, 0);
        ff_edge_add(f, x->forward[p], x->backward[p]);
        if (x->price.update) {
            x->update[p] = add(f, op, op, FF_UPDATE, p, 0, 0, device, x->price.update, 0);
            ff_edge_add(f, x->backward[p], x->update[p]);
        }
    }
    for (int w = 0; x->price.backward && w < o->spec->noperands; w++)
        for (int p = 0; is_trained(f, op, w) && p < x->soap.nparts; p++) {
            struct replicas r = replicas_of(f, op, w, p);
            if (__builtin_ctzll(r.parts) == p)
                add_sum(f, op, w, p, r);
        }
}

/* ---- moves ------------------------------------------------------------------------- */

/* Of a tensor's bytes, those that part 'a' of who made it has and part 'b' of who reads it
 * needs: along each dimension the overlap of two fractions. */
static int64_t overlap_bytes(const struct topt_flexflow *f, int from, int a, int to,
                             int operand, int b)
{
    const struct topt_op *x = &f->k.model->op[from], *y = &f->k.model->op[to];
    double bytes = topt_dtype_bytes(f->k.settings->dtype);
    for (int j = 0; j < topt_operand_rank(y, operand); j++) {
        const struct topt_dim *dim = &y->operand[operand].dim[j];
        int d = x->spec->operand[x->output].dim[j], e = y->spec->operand[operand].dim[j];
        int g = f->op[from].soap.degree[d], h = f->op[to].soap.degree[e];
        int p = ff_coordinate(x, &f->op[from].soap, a, d),
            q = ff_coordinate(y, &f->op[to].soap, b, e);
        int lo = p * h > q * g ? p * h : q * g; /* in parts of g h */
        int hi = (p + 1) * h < (q + 1) * g ? (p + 1) * h : (q + 1) * g;
        if (hi <= lo)
            return 0;
        bytes *= (double)dim->count * (double)dim->unit * (hi - lo) / (g * h);
    }
    return bytes < 1 ? 1 : (int64_t)bytes;
}

static int64_t move_ns(const struct topt_flexflow *f, int near, int64_t bytes)
{
    struct topt_group g = {near ? 1 : 2, near ? 2 : 1, 1};
    return topt_hw_collective_ns(f->k.hw, TOPT_PERMUTE, g, bytes);
}

/* A link that is shared is held as long as bytes pass; what it takes to begin goes on beside.  Moves
 * of a tensor mostly have the same size. */
static int add_move_task(struct topt_flexflow *f, int op, int input, enum ff_kind kind,
                         int a, int b, int from, int to, int64_t bytes)
{
    int near = node_of(f, from) == node_of(f, to);
    struct ff_move *m = &f->move[near];
    if (m->bytes != bytes)
        *m = (struct ff_move){bytes, move_ns(f, near, bytes),
                              f->rules.shared_links ? move_ns(f, near, 1) : 0};
    int t = add(f, ff_use_group(f, op, input), op, kind, a, b, input,
                held_by_move(f, from, to), m->ns - m->lag, bytes);
    if (t >= 0)
        f->task[t].lag = m->lag;
    return t;
}

static void add_move(struct topt_flexflow *f, int op, int input, int from, int a, int b,
                     int64_t bytes)
{
    struct ff_op *x = &f->op[from], *y = &f->op[op];
    int s = x->soap.device[a], d = y->soap.device[b];
    int back = x->backward[a] >= 0 && y->backward[b] >= 0;
    if (s == d) {
        ff_edge_add(f, x->forward[a], y->forward[b]);
        if (back)
            ff_edge_add(f, y->backward[b], x->backward[a]);
        return;
    }
    int t = add_move_task(f, op, input, FF_MOVE, a, b, s, d, bytes);
    ff_edge_add(f, x->forward[a], t);
    ff_edge_add(f, t, y->forward[b]);
    if (!back)
        return;
    t = add_move_task(f, op, input, FF_MOVE_BACK, a, b, d, s, bytes);
    ff_edge_add(f, y->backward[b], t);
    ff_edge_add(f, t, x->backward[a]);
}

static void use_tasks(struct topt_flexflow *f, int op, int input)
{
    const struct topt_op *o = &f->k.model->op[op];
    int operand = o->input[input], from = f->k.model->tensor[o->tensor[operand]].producer;
    if (f->op[from].virtual || f->op[op].virtual)
        return;
    for (int a = 0; a < f->op[from].soap.nparts; a++)
        for (int b = 0; b < f->op[op].soap.nparts; b++) {
            int64_t bytes = overlap_bytes(f, from, a, op, operand, b);
            if (bytes)
                add_move(f, op, input, from, a, b, bytes);
        }
}

void ff_group_tasks(struct topt_flexflow *f, int group)
{
    int use = group - f->nops, op = use / TOPT_MAX_INPUTS, input = use % TOPT_MAX_INPUTS;
    if (use < 0)
        op_tasks(f, group);
    else if (input < f->k.model->op[op].ninputs)
        use_tasks(f, op, input);
}
