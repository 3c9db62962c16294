/* stages.c - the cost of a step over pipeline stages.
 *
 * Costs of a micro-batch on the mesh of one stage are given by piece.  Units are cut into chunks, of which the first
 * and the last may have no layer.  The step's own schedule (topt_step.h) gives the length of a chunk's pass and the
 * memory that it holds, the pipeline's (topt_pipeline.h) when passes happen.
 *
 *     units     | embedding | layer 0 | layer 1 | ...            | layer n | norm, head, loss |
 *     chunks    |        chunk 0         |    chunk 1    | ...   |          the last          |
 *
 * The memory of a strategy is that of the stage which holds most: parameters, gradients and states of its
 * chunks, and the most that its passes hold at one time. */
#include "fragment.h"
#include "low.h"
#include "stages.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

/* Samples cross stages; parameters that both ends share, and what every stage can load, do not. */
static int is_of_samples(const struct topt_model *m, int tensor)
{
    const struct topt_op *o = &m->op[m->tensor[tensor].producer];
    const struct topt_operand_spec *out = &o->spec->operand[o->output];
    for (int i = 0; i < m->tensor[tensor].ndim; i++)
        if (o->spec->dim[out->dim[i]].split == TOPT_SPLIT_BATCH)
            return 1;
    return 0;
}

static int begins_layer(const struct topt_model *m, int op)
{
    return m->unit[op] >= 0 && (op == 0 || m->unit[op - 1] != m->unit[op]);
}

/* By operator: how many tensors of samples, or (parameters) tensors of parameters, of earlier operators
 * it and later ones read; of those of samples one, and how many look tables up, which every stage can do.  NULL without
 * memory. */
struct crossing {
    int samples, tables, parameters, tensor;
};

static struct crossing *crossings(const struct topt_model *m)
{
    int *last = topt_model_last_uses(m);
    struct crossing *c = calloc((size_t)m->nops + 1, sizeof *c);
    for (int t = 0; last && c && t < m->ntensors; t++) {
        const struct topt_op *o = &m->op[m->tensor[t].producer];
        int of_samples = is_of_samples(m, t), gradient = m->tensor[t].needs_gradient;
        int shared = gradient && (!of_samples || !o->ninputs);
        of_samples &= gradient || o->ninputs;
        for (int i = m->tensor[t].producer + 1; i <= last[t]; i++) {
            c[i].samples += of_samples;
            c[i].tables += of_samples && !o->ninputs;
            c[i].parameters += shared;
            if (of_samples && (o->ninputs || c[i].samples == 1))
                c[i].tensor = t;
        }
    }
    free(last);
    return c;
}

/* A unit begins at an operator; the first one, at the model's first. */
static void add_unit(struct topt_stage_units *u, const struct crossing *c, int op)
{
    u->at[u->n] = (struct topt_stage_unit){u->n ? op : 0, c[op].tensor};
    u->n++;
}

static void find_units(const struct topt_model *m, const struct crossing *c,
                       struct topt_stage_units *u)
{
    int last = m->nops - 1;
    while (last >= 0 && m->unit[last] < 0)
        last--;
    for (int i = 0; i <= last && u->fault < 0; i++) {
        if (!begins_layer(m, i))
            continue;
        if (u->layers && c[i].samples - c[i].tables != 1)
            u->fault = i;
        if (!u->layers && i && c[i].samples == 1)
            add_unit(u, c, 0);
        u->first = u->layers ? u->first : u->n;
        u->layers++;
        add_unit(u, c, i);
    }
    if (u->fault >= 0)
        u->layers = 0;
    if (u->layers && last + 1 < m->nops && c[last + 1].samples == 1)
        add_unit(u, c, last + 1);
    u->at[u->n].op = m->nops;
}

int topt_stage_units_find(const struct topt_model *m, struct topt_stage_units *ret,
                          struct topt_error *err)
{
    struct crossing *c = crossings(m);
    *ret = (struct topt_stage_units){.fault = -1};
    ret->at = calloc((size_t)m->nops + 2, sizeof *ret->at);
    if (c && ret->at)
        find_units(m, c, ret);
    int rc = c && ret->at ? 0 : topt_nomem(err, "the model's layers");
    free(c);
    return rc;
}

void topt_stage_units_fini(struct topt_stage_units *u)
{
    free(u->at);
    u->at = NULL;
}

int topt_stage_units_layers(const struct topt_stage_units *u, int from, int until)
{
    from = from > u->first ? from : u->first;
    until = (int)topt_min(until, u->first + u->layers);
    return until > from ? until - from : 0;
}

void topt_recompute_first(const struct topt_model *m, const int16_t *layers, int64_t n,
                          struct topt_strategy *s)
{
    int in_chunk = -1, chunk = 0; /* the layer's number in its chunk */
    for (int i = 0; i < m->nops; i++) {
        int t = m->op[i].operand[m->op[i].output].tensor;
        if (begins_layer(m, i))
            for (in_chunk++; in_chunk == layers[chunk]; in_chunk = 0)
                chunk++;
        if (in_chunk < n)
            continue;
        s->config[i].recompute = 0;
        if (m->tensor[t].nconsumers > 1 && s->hub[t].keep == TOPT_HUB_RECOMPUTE)
            s->hub[t].keep = TOPT_HUB_KEEP;
    }
}

int topt_layers_init(struct topt_layers *t, struct topt_error *err)
{
    const struct topt_model *m = t->model;
    struct crossing *c = crossings(m);
    t->stays = calloc((size_t)t->npieces + 1, sizeof *t->stays);
    t->from = calloc((size_t)m->nops + 2, sizeof *t->from);
    int rc = c && t->stays && t->from ? topt_stage_units_find(m, &t->units, err)
                                      : topt_nomem(err, "pipeline stages");
    t->unit = rc ? NULL : calloc((size_t)t->units.n + 1, sizeof *t->unit);
    if (!rc && !t->unit)
        rc = topt_nomem(err, "pipeline stages");
    for (int i = 0; !rc && i <= t->units.n; i++) {
        int op = t->units.at[i].op;
        t->from[i] = op < m->nops ? t->piece[op] : t->npieces;
        t->shared |= i > t->units.first && op < m->nops && c[op].parameters;
    }
    free(c);
    return rc;
}

void topt_layers_fini(struct topt_layers *t)
{
    free(t->stays);
    free(t->from);
    free(t->unit);
    topt_stage_units_fini(&t->units);
    *t = (struct topt_layers){.model = NULL};
}

/* The passes of two chunks as one. */
struct pair {
    int f, b;
    int64_t ns; /* 0: none */
};

struct stages {
    struct topt_layers *t;
    const struct topt_strategy *strategy;
    struct topt_error *err;
    const struct topt_order *order;
    struct topt_order_shape shape;
    int nunits, nchunks, lean;
    const struct topt_unit_sums *unit;
    int cut[TOPT_MAX_CHUNKS + 1];   /* by chunk: its first unit */
    int64_t ahead[TOPT_MAX_CHUNKS]; /* by chunk: passes before its stage goes backward */
    struct topt_chunk *chunk;
    struct topt_piece_time *time; /* of the pieces of a chunk, in one micro-batch */
    struct topt_piece_bytes *bytes;
    int like[TOPT_MAX_CHUNKS]; /* the first chunk whose passes are as this one's */
    /* How long a chunk's passes wait for the host to start kernels, and for copies to the host and back. */
    int64_t late_ns[TOPT_MAX_CHUNKS], copies_ns[TOPT_MAX_CHUNKS];
    int64_t end_ns[TOPT_MAX_STAGES];
    int64_t send_ns, waited_ns; /* ... for copies, of the parts that were timed last */
    struct pair *pairs; /* those that are known, and one more; NULL: passes stand alone */
    int64_t *pair_ns;   /* topt_pipeline.h */
    int64_t saved_ns[TOPT_MAX_STAGES]; /* by a pair, in the mean */
    int64_t hidden_ns
        [TOPT_MAX_CHUNKS]; /* in which tokens of a chunk's passes move, where that may be hidden */
    struct topt_stage_costs *ret;
};

static int stage_of(const struct stages *x, int chunk)
{
    return topt_order_stage(x->order, &x->shape, chunk);
}

/* Have two stages the one table of the first and the last layer? */
static int shares(const struct stages *x)
{
    return x->t->shared && stage_of(x, x->nchunks - 1) > 0;
}

/* The first piece of a unit. */
static int from(const struct stages *x, int unit)
{
    return x->t->from[unit];
}

/* ---- units and chunks ---------------------------------------------------------------- */

static void add_pass(struct topt_unit_sums *u, int backward,
                     const struct topt_part_time *t, int64_t rounds)
{
    int64_t *ns = u->ns[backward];
    u->passes_ns += t->compute_ns + t->waited_ns;
    ns[TOPT_LINK_COUNT] += t->compute_ns / rounds + t->waited_ns / rounds;
    for (int i = 0; i < TOPT_LINK_COUNT; i++)
        ns[i] += (t->gather_links >> i & 1) * (t->gather_ns / rounds) +
                 (t->reduce_links >> i & 1) * (t->reduce_ns / rounds) +
                 (t->waited_links >> i & 1) * (t->waited_ns / rounds);
}

static int64_t stays_of(const struct topt_layers *t, int piece)
{
    int64_t bytes = 0;
    for (int i = 0; i < TOPT_CLASS_COUNT; i++)
        bytes += t->stays[piece][i];
    return bytes;
}

void topt_layers_sum(struct topt_layers *t)
{
    int64_t rounds = t->settings->micro_batches;
    for (int u = 0; u < t->units.n; u++) {
        struct topt_unit_sums *x = &t->unit[u];
        *x = (struct topt_unit_sums){0};
        for (int p = t->from[u]; p < t->from[u + 1]; p++) {
            const struct topt_piece_bytes *b = &t->bytes[p];
            x->stays += stays_of(t, p) + b->whole;
            x->kept += b->kept - b->saved;
            for (int d = 0; d < TOPT_DURING_COUNT; d++)
                x->exchange_ns += t->spent[p].at[d].exchange_ns;
            add_pass(x, 0, &t->spent[p].at[TOPT_DURING_FORWARD], rounds);
            add_pass(x, 1, &t->spent[p].at[TOPT_DURING_BACKWARD], rounds);
        }
    }
    t->unit[t->units.n] =
        (struct topt_unit_sums){.stays = t->shared ? stays_of(t, 0) : 0};
}

/* What a unit adds to the bytes of a chunk's stage at least: what stays, and what the passes keep that are under way. */
static int64_t unit_bytes(const struct stages *x, int unit, int chunk)
{
    return x->unit[unit].stays + x->ahead[chunk] * x->unit[unit].kept;
}

/* Can the units be cut into chunks of no more than 'most', from the last one on, of which no stage holds more than 'room'
 * bytes (0: any)?  'cut' has them; 'spread': each takes about an equal share of what is left, else all that it can. */
static int cut_by(struct stages *x, int64_t most, int64_t room, int spread)
{
    int at = x->nunits;
    int64_t left = 0, held[TOPT_MAX_STAGES] = {0};
    for (int i = 0; i < at; i++)
        left += x->unit[i].passes_ns;
    x->cut[x->nchunks] = at;
    for (int c = x->nchunks - 1; c >= 0; c--) {
        int64_t sum = 0, more = 0, *bytes = &held[stage_of(x, c)];
        int least = at - 1; /* each of the chunks before has a unit, too */
        int64_t share = spread ? left / (c + 1) : most;
        while (at > c && (at > least || (sum + x->unit[at - 1].passes_ns <= most &&
                                         sum + x->unit[at - 1].passes_ns / 2 <= share))) {
            more = room ? unit_bytes(x, at - 1, c) : 0;
            if (at <= least && *bytes + more > room)
                break;
            *bytes += more;
            sum += x->unit[--at].passes_ns;
        }
        if (sum > most || *bytes > room)
            return 0;
        left -= sum;
        x->cut[c] = at;
    }
    return at == 0;
}

/* The slowest chunk where each has as many layers as the others; 0: they do not divide so.  'cut' has them. */
static int64_t cut_evenly(struct stages *x)
{
    const struct topt_stage_units *u = &x->t->units;
    int each = u->layers / x->nchunks;
    int64_t most = 0;
    for (int c = 0; c <= x->nchunks; c++)
        x->cut[c] = c == 0 ? 0 : c < x->nchunks ? u->first + c * each : u->n;
    for (int c = 0; c < x->nchunks && each * x->nchunks == u->layers; c++) {
        int64_t sum = 0;
        for (int i = x->cut[c]; i < x->cut[c + 1]; i++)
            sum += x->unit[i].passes_ns;
        most = topt_max(most, sum);
    }
    return most;
}

/* The least 'most' for which units are cut, or with that one the least 'room'. */
static int64_t least_cut(struct stages *x, int64_t low, int64_t high, int64_t most)
{
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (most ? cut_by(x, most, mid, 0) : cut_by(x, mid, 0, 0))
            high = mid;
        else
            low = mid + 1;
    }
    return high;
}

/* The most that a stage holds at least: what stays, and what its passes keep until the first goes backward. */
static int64_t least_bytes(const struct stages *x)
{
    int64_t held[TOPT_MAX_STAGES] = {0}, most = 0;
    if (shares(x))
        held[x->shape.stages - 1] += x->unit[x->nunits].stays;
    for (int c = 0; c < x->nchunks; c++) {
        int64_t *bytes = &held[stage_of(x, c)];
        for (int u = x->cut[c]; u < x->cut[c + 1]; u++)
            *bytes += unit_bytes(x, u, c);
        most = topt_max(most, *bytes);
    }
    return most;
}

/* Chunks of equally many layers where that is about as good as any cut; else those whose slowest is
 * fastest, and if 'lean' of such the ones whose stages hold least.  Of more chunks than units those
 * before the last have nothing. */
static void cut_units(struct stages *x)
{
    int64_t high = 0, low = 0, even = cut_evenly(x);
    if (even && x->t->settings->even_stages)
        return;
    for (int c = 0; c <= x->nchunks && x->nchunks > x->nunits; c++)
        x->cut[c] = c < x->nunits ? c : x->nunits - (c < x->nchunks);
    if (x->nchunks > x->nunits)
        return;
    for (int i = 0; i < x->nunits; i++) {
        low = topt_max(low, x->unit[i].passes_ns);
        high += x->unit[i].passes_ns;
    }
    high = least_cut(x, low, high, 0);
    if (even && even <= high + high / 100)
        (void)cut_evenly(x);
    else if (!cut_by(x, high, 0, 1))
        (void)cut_by(x, high, 0, 0);
    if (x->lean && !cut_by(x, high, least_cut(x, 1, least_bytes(x), high), 0))
        (void)cut_by(x, high, 0, 0);
}

/* ---- passes -------------------------------------------------------------------------- */

enum {
    FORWARD = 1 << TOPT_DURING_FORWARD,
    BACKWARD = 1 << TOPT_DURING_BACKWARD,
    ENDS = 1 << TOPT_DURING_BEGIN | 1 << TOPT_DURING_END,
    NO_WEIGHTS = 1 << TOPT_DURING_COUNT /* without gradients of parameters */
};

/* Some parts of a step (bits) of the pieces between two units, in one micro-batch; how many pieces. */
static int pieces_of(const struct stages *x, int first, int last, int parts,
                     struct topt_piece_time *ret)
{
    int n = 0;
    for (int p = from(x, first); p < from(x, last); p++, n++) {
        ret[n] = x->t->spent[p];
        for (int d = 0; d < TOPT_DURING_COUNT; d++) {
            struct topt_part_time *t = &ret[n].at[d];
            int64_t rounds = d == TOPT_DURING_FORWARD || d == TOPT_DURING_BACKWARD
                                 ? x->shape.micro_batches
                                 : 1;
            if (!(parts >> d & 1))
                *t = (struct topt_part_time){0};
            if (parts & NO_WEIGHTS) {
                t->compute_ns -= t->weights_ns;
                t->reduce_ns = 0;
            }
#define SHARE(name) t->name /= rounds;
            TOPT_PART_TIMES(SHARE)
            SHARE(ahead_ns)
        }
    }
    return n;
}

/* The time of such parts, and how much of it the device waits for the host to start kernels.  Copies of activations to
 * the host go on beside the next pass, and those of the last group come back during the one before
 * (pre_reload_last_layer of Megatron-LM's offloading). */
static int part_ns(struct stages *x, int first, int last, int parts, int64_t *ret,
                   int64_t *late)
{
    int64_t sum = 0, aside = 0, host = 0, copies = 0;
    int last_saved = -1, n = pieces_of(x, first, last, parts, x->time);
    for (int i = 0; i < n; i++)
        for (int d = 0; d < TOPT_DURING_COUNT; d++) {
            const struct topt_part_time *t = &x->time[i].at[d];
            host += t->host_ns;
            sum += t->compute_ns + t->waited_ns;
            aside += t->gather_ns + t->reduce_ns + t->update_ns;
            copies += t->save_ns;
            last_saved = t->save_ns ? i : last_saved;
        }
    for (int i = 0; i <= last_saved; i++) {
        x->time[i].at[TOPT_DURING_FORWARD].save_ns = 0;
        x->time[i].at[TOPT_DURING_BACKWARD].save_ns *= i < last_saved;
    }
    *ret = sum;
    *late = 0;
    /* one task after the other, and the host far ahead */
    if (!aside && !copies && 2 * host < sum)
        return 0;
    struct topt_training_step step = {x->time, NULL, n, 1};
    if (topt_step_run(x->t->schedule, &step, ret, late, NULL, x->err))
        return -1;
    *ret = topt_max(*ret, copies);
    x->waited_ns += copies ? *ret - sum - *late : 0;
    return 0;
}

/* Bytes of a pass: forward the most that its pieces hold beside what they keep, backward the most that
 * the chunk's own step holds.  Parameters that are whole from forward to backward stay so. */
static int find_bytes(struct stages *x, int first, int last, struct topt_chunk *c)
{
    int64_t held[TOPT_HELD_COUNT], grown = 0, most = 0, ns, late;
    int n = 0, saves = 0;
    for (int p = from(x, first); p < from(x, last); p++, n++) {
        struct topt_piece_bytes *b = &x->bytes[n];
        *b = x->t->bytes[p];
        b->whole = b->gradient = 0;
        x->time[n] = (struct topt_piece_time){.unit = x->t->spent[p].unit};
        saves |= b->saved > 0;
        grown += b->kept - b->saved;
        most = topt_max(most, grown + b->saved + b->work[0] + b->waiting[0]);
    }
    if (saves) /* copies take their time */
        (void)pieces_of(x, first, last, FORWARD | BACKWARD, x->time);
    struct topt_training_step step = {x->time, x->bytes, n, 1};
    if (topt_step_run(x->t->schedule, &step, &ns, &late, held, x->err))
        return -1;
    c->kept = grown;
    c->during[0][TOPT_HELD_WORK] = topt_max(most - grown, (int64_t)0);
    memcpy(c->during[1], held, sizeof held);
    c->during[1][TOPT_HELD_KEPT] -= grown;
    return 0;
}

/* Gradients of what operators with parameters made, from which those of parameters follow; of products in few bits as
 * these were cast. */
static int64_t weights_bytes(const struct stages *x, int first, int last)
{
    const struct topt_model *m = x->t->model;
    const struct topt_settings *s = x->t->settings;
    int64_t bytes = 0;
    for (int i = x->t->units.at[first].op; i < x->t->units.at[last].op; i++) {
        const struct topt_op *o = &m->op[i];
        if (!(topt_op_parameters(o) > 0))
            continue;
        struct topt_shape shape = topt_operand_shape(o, o->output);
        struct topt_layout l =
            topt_grad_layout(o, o->output, &x->strategy->config[i], x->t->mesh);
        int64_t of_logits = i >= m->head && i < m->loss;
        int64_t of = topt_block_bytes(x->t->mesh, s, &shape, &l, TOPT_ELEM_REAL);
        bytes += topt_low_runs(s, m, i) && !s->low_apart
                     ? topt_permille(of, topt_low_cast_permille(s))
                     : of / (of_logits ? topt_loss_chunks(s->loss) : 1);
    }
    return topt_with_allocator(s, bytes);
}

/* A backward pass in two parts. */
static int split(struct stages *x, int first, int last, struct topt_chunk *c)
{
    int64_t inputs, late;
    if (part_ns(x, first, last, BACKWARD | NO_WEIGHTS, &inputs, &late))
        return -1;
    c->weights_ns = topt_max(c->ns[1] - inputs, (int64_t)0);
    c->weights_kept = weights_bytes(x, first, last);
    return 0;
}

/* Is a chunk like the one before it, so that its passes are? */
static int like_before(const struct stages *x, int c)
{
    if (!c || x->cut[c + 1] - x->cut[c] != x->cut[c] - x->cut[c - 1])
        return 0;
    int a = from(x, x->cut[c - 1]), b = from(x, x->cut[c]);
    int n = from(x, x->cut[c + 1]) - b;
    if (n != b - a)
        return 0;
    for (int i = 0; i < n; i++) {
        struct topt_piece_bytes held = x->t->bytes[b + i];
        held.layer = x->t->bytes[a + i].layer;
        if (memcmp(x->t->spent[a + i].at, x->t->spent[b + i].at,
                   sizeof x->t->spent[a].at) ||
            memcmp(&held, &x->t->bytes[a + i], sizeof held))
            return 0;
    }
    return 1;
}

/* Of all micro-batches, where passes run as one: less what moving takes of computing. */
static int64_t hidden_ns(const struct stages *x, int c)
{
    int64_t ns = 0;
    for (int u = x->cut[c]; u < x->cut[c + 1] && x->order->pairs; u++)
        ns += x->unit[u].exchange_ns;
    return (int64_t)((1 - topt_dispatch_share(x->t->settings, x->t->hw)) * (double)ns);
}

static int find_chunks(struct stages *x)
{
    for (int c = 0; c < x->nchunks; c++) {
        struct topt_chunk *chunk = &x->chunk[c];
        int64_t late[2];
        x->like[c] = c;
        x->hidden_ns[c] = hidden_ns(x, c);
        if (like_before(x, c)) {
            *chunk = chunk[-1];
            x->like[c] = x->like[c - 1];
            x->late_ns[c] = x->late_ns[c - 1];
            x->copies_ns[c] = x->copies_ns[c - 1];
            continue;
        }
        x->waited_ns = 0;
        if (part_ns(x, x->cut[c], x->cut[c + 1], FORWARD, &chunk->ns[0], &late[0]) ||
            part_ns(x, x->cut[c], x->cut[c + 1], BACKWARD, &chunk->ns[1], &late[1]) ||
            find_bytes(x, x->cut[c], x->cut[c + 1], chunk) ||
            (x->order->splits && split(x, x->cut[c], x->cut[c + 1], chunk)))
            return -1;
        x->late_ns[c] = late[0] + late[1];
        x->copies_ns[c] = x->waited_ns;
    }
    return 0;
}

/* The least that passes take, where units alone are known: a chain of what computes and what that waits for, and all
 * that takes one link. */
static void sum_chunks(struct stages *x)
{
    for (int c = 0; c < x->nchunks; c++) {
        x->hidden_ns[c] = hidden_ns(x, c);
        for (int d = 0; d < 2; d++) {
            for (int i = 0; i <= TOPT_LINK_COUNT; i++) {
                int64_t sum = 0;
                for (int u = x->cut[c]; u < x->cut[c + 1]; u++)
                    sum += x->unit[u].ns[d][i];
                x->chunk[c].ns[d] = topt_max(x->chunk[c].ns[d], sum);
            }
        }
    }
}

/* Passes of two chunks as one, unless that was seen for chunks like them. */
static int find_pair(struct stages *x, int f, int b, int64_t *ret)
{
    struct pair *p = x->pairs;
    f = x->like[f];
    b = x->like[b];
    while (p->ns && (p->f != f || p->b != b))
        p++;
    if (!p->ns) {
        struct topt_pass_pieces forward = {.time = x->time}, backward;
        forward.n = pieces_of(x, x->cut[f], x->cut[f + 1], FORWARD, x->time);
        backward.time = x->time + forward.n;
        backward.n =
            pieces_of(x, x->cut[b], x->cut[b + 1], BACKWARD, x->time + forward.n);
        *p = (struct pair){f, b, 0};
        if (topt_step_pair(x->t->schedule, forward, backward,
                           topt_dispatch_share(x->t->settings, x->t->hw), &p->ns, x->err))
            return -1;
    }
    *ret = p->ns;
    return 0;
}

/* All that stages may have, and by stage how much shorter than one after the other they are. */
static int find_pairs(struct stages *x)
{
    int v = x->shape.chunks;
    size_t n = (size_t)x->nchunks * (size_t)v;
    x->pair_ns = calloc(n, sizeof *x->pair_ns);
    x->pairs = calloc(n + 1, sizeof *x->pairs);
    if (!x->pair_ns || !x->pairs)
        return topt_nomem(x->err, "pipeline stages");
    for (int f = 0; f < x->nchunks; f++)
        for (int own = 0; own < v; own++) {
            int s = stage_of(x, f), b = topt_order_chunk(x->order, &x->shape, s, own);
            int64_t *ns = &x->pair_ns[f * v + own];
            if (find_pair(x, f, b, ns))
                return -1;
            x->saved_ns[s] += (x->chunk[f].ns[0] + x->chunk[b].ns[1] - *ns) / (v * v);
        }
    return 0;
}

/* ---- between stages ------------------------------------------------------------------ */

/* What one device of a stage gives to one of the next. */
static int64_t sent_bytes(const struct stages *x)
{
    const struct topt_model *m = x->t->model;
    int64_t most = 0;
    for (int c = 1; c < x->nchunks; c++) {
        int t = x->t->units.at[x->cut[c]].tensor, op = m->tensor[t].producer;
        struct topt_shape shape = topt_tensor_shape(&m->tensor[t]);
        struct topt_layout l =
            m->tensor[t].nconsumers > 1
                ? topt_hub_layout(&x->strategy->hub[t], x->t->mesh)
                : topt_value_layout(&m->op[op], m->op[op].output,
                                    &x->strategy->config[op], x->t->mesh);
        most = topt_max(most, topt_block_bytes(x->t->mesh, x->t->settings, &shape, &l,
                                               TOPT_ELEM_REAL));
    }
    return most;
}

/* Stages that share a node talk inside of it, where all do; else devices of a node share its way out. */
static struct topt_group between(const struct stages *x)
{
    const struct topt_mesh *mesh = x->t->mesh;
    int inside = mesh->nodes == 1 &&
                 mesh->per_node * x->shape.stages <= topt_hw_gpus_per_node(x->t->hw);
    return inside ? (struct topt_group){1, 2, mesh->per_node}
                  : (struct topt_group){2, 1, mesh->per_node};
}

/* The time after a stage's last pass; tables that both ends share have their gradients added up. */
static int find_ends(struct stages *x)
{
    struct topt_group pair = between(x);
    x->send_ns = topt_hw_collective_ns(x->t->hw, TOPT_PERMUTE, pair, sent_bytes(x));
    int64_t more = 0;
    for (int c = 0; c < x->nchunks; c++) {
        int64_t with, late, without = x->chunk[c].ns[1];
        if (!like_before(x, c)) {
            if (part_ns(x, x->cut[c], x->cut[c + 1], BACKWARD | ENDS, &with, &late))
                return -1;
            more = topt_max(with - without, (int64_t)0);
        }
        x->end_ns[stage_of(x, c)] += more;
    }
    if (shares(x)) {
        int64_t bytes = x->t->stays[0][TOPT_CLASS_GRAD];
        int64_t ns = topt_hw_collective_ns(x->t->hw, TOPT_ALL_REDUCE, pair, bytes);
        x->end_ns[0] += ns;
        x->end_ns[x->shape.stages - 1] += ns;
    }
    return 0;
}

/* ---- the whole ----------------------------------------------------------------------- */

static void add_stays(const struct stages *x, int stage, int64_t ret[TOPT_CLASS_COUNT])
{
    for (int own = 0; own < x->shape.chunks; own++) {
        int c = topt_order_chunk(x->order, &x->shape, stage, own);
        for (int p = from(x, x->cut[c]); p < from(x, x->cut[c + 1]); p++) {
            for (int i = 0; i < TOPT_CLASS_COUNT; i++)
                ret[i] += x->t->stays[p][i];
            ret[TOPT_CLASS_BUFFERS] += x->t->bytes[p].whole;
        }
    }
    for (int i = 0; shares(x) && stage == x->shape.stages - 1 && i < TOPT_CLASS_COUNT;
         i++)
        ret[i] += x->t->stays[0][i];
}

/* A stage begins when the first micro-batch has come through the chunks before its own, works through all, and then
 * ends its step while the last one goes back through these, of which the first ends its own; beside that it may make
 * gradients of parameters. */
static int64_t least_ns(const struct stages *x)
{
    int64_t most = 0, before = 0, back = 0;
    for (int s = 0; s < x->shape.stages; s++) {
        int64_t ns = before;
        for (int own = 0; own < x->shape.chunks; own++) {
            const struct topt_chunk *c =
                &x->chunk[topt_order_chunk(x->order, &x->shape, s, own)];
            ns += x->shape.micro_batches * (c->ns[0] + c->ns[1]) -
                  x->hidden_ns[topt_order_chunk(x->order, &x->shape, s, own)];
        }
        int64_t last = x->order->splits ? 0 : back + x->end_ns[0];
        most = topt_max(most, ns + topt_max(x->end_ns[s], last));
        before += x->chunk[s].ns[0] + x->send_ns;
        back += x->chunk[s].ns[1] + x->send_ns;
    }
    return most;
}

/* The bytes that a stage's passes have on the host until the first goes backward. */
static int64_t host_bytes(const struct stages *x, int stage)
{
    int64_t bytes = 0;
    for (int own = 0; own < x->shape.chunks; own++) {
        int c = topt_order_chunk(x->order, &x->shape, stage, own);
        for (int p = from(x, x->cut[c]); p < from(x, x->cut[c + 1]); p++)
            bytes += x->ahead[c] * x->t->bytes[p].saved;
    }
    return bytes;
}

/* The bytes of the stage that holds most are the strategy's. */
static void put_bytes(struct stages *x, const struct topt_pipeline_held *held,
                      struct topt_strategy_cost *cost)
{
    cost->memory_bytes = -1;
    for (int s = 0; s < x->shape.stages; s++) {
        int64_t stays[TOPT_CLASS_COUNT] = {0};
        add_stays(x, s, stays);
        for (int i = 0; i < TOPT_CLASS_COUNT; i++)
            x->ret->bytes[s] += stays[i];
        for (int i = 0; i < TOPT_HELD_COUNT; i++)
            x->ret->bytes[s] += held[s].bytes[i];
        if (x->t->settings->offload & TOPT_OFFLOAD_MODULES)
            cost->host_bytes = topt_max(cost->host_bytes, host_bytes(x, s));
        if (x->ret->bytes[s] <= cost->memory_bytes)
            continue;
        cost->memory_bytes = x->ret->bytes[s];
        memcpy(cost->sum.class_bytes, stays, sizeof stays);
        cost->sum.class_bytes[TOPT_CLASS_KEPT] += held[s].bytes[TOPT_HELD_KEPT];
        cost->sum.class_bytes[TOPT_CLASS_GRAD] += held[s].bytes[TOPT_HELD_GRADIENT];
        cost->sum.class_bytes[TOPT_CLASS_BUFFERS] += held[s].bytes[TOPT_HELD_BUFFERS];
        cost->recomputed_bytes = held[s].bytes[TOPT_HELD_RECOMPUTED];
        cost->transient_cap = held[s].bytes[TOPT_HELD_WORK];
        cost->crossing_cap = held[s].bytes[TOPT_HELD_WAITING];
    }
    cost->crossing = 1;
    cost->sum.transient_bytes = 0;
}

/* The busy time of each stage.  Of its mean over stages, what is neither computation nor waiting for the host is
 * exposed communication. */
static void put_busy(struct stages *x, struct topt_strategy_cost *cost)
{
    struct topt_fragment_cost *sum = &cost->sum;
    int64_t busy = 0, late = 0, rounds = x->shape.micro_batches;
    for (int c = 0; c < x->nchunks; c++) {
        x->ret->busy_ns[stage_of(x, c)] +=
            rounds * (x->chunk[c].ns[0] + x->chunk[c].ns[1]);
        late += rounds * x->late_ns[c];
        cost->host_wait_ns += rounds * x->copies_ns[c] / x->shape.stages;
    }
    for (int s = 0; s < x->shape.stages; s++) {
        struct topt_order_plan plan;
        topt_order_plan(x->order, &x->shape, s, &plan);
        x->ret->busy_ns[s] +=
            x->end_ns[s] - topt_order_count_pairs(&plan) * x->saved_ns[s];
        busy += x->ret->busy_ns[s];
    }
    busy /= x->shape.stages;
    sum->compute_ns = topt_min((sum->compute_ns + late) / x->shape.stages, busy);
    sum->network_ns = busy - sum->compute_ns;
}

/* Sums over all layers become means of stages; what they rest on is so of the whole time. */
static void put_time(struct stages *x, int64_t ns, struct topt_strategy_cost *cost)
{
    struct topt_fragment_cost *sum = &cost->sum;
    int64_t all = 0, left = ns;
    int last = 0;
    put_busy(x, cost);
    x->ret->idle_ns = ns - sum->compute_ns - sum->network_ns;
    cost->time_ns = ns;
    for (int b = 0; b < TOPT_BASIS_COUNT; b++) {
        all += sum->basis_ns[b];
        last = sum->basis_ns[b] ? b : last;
    }
    for (int b = 0; b < TOPT_BASIS_COUNT; b++) {
        sum->basis_ns[b] = (int64_t)((double)ns * (double)sum->basis_ns[b] /
                                     (double)topt_max(all, (int64_t)1));
        left -= sum->basis_ns[b];
    }
    sum->basis_ns[last] += left;
}

static int run(struct stages *x, struct topt_strategy_cost *cost)
{
    struct topt_pipeline_held held[TOPT_MAX_STAGES];
    struct topt_pipeline p = {.order = x->t->settings->order,
                              .shape = x->shape,
                              .chunk = x->chunk,
                              .end_ns = x->end_ns,
                              .send_ns = x->send_ns,
                              .pair_ns = x->pair_ns,
                              .passes = x->t->passes};
    int64_t ns;
    int rc = topt_pipeline_run(x->t->schedule, &p, &ns, held, x->err);
    if (rc)
        return -1;
    put_bytes(x, held, cost);
    put_time(x, ns, cost);
    return 0;
}

static int find_all(struct stages *x, struct topt_strategy_cost *cost)
{
    for (int s = 0; s < x->shape.stages; s++) {
        struct topt_order_plan plan;
        topt_order_plan(x->order, &x->shape, s, &plan);
        for (int own = 0; own < x->shape.chunks; own++)
            x->ahead[topt_order_chunk(x->order, &x->shape, s, own)] =
                topt_order_ahead(&plan, own);
    }
    cut_units(x);
    x->ret->chunks = x->nchunks;
    for (int c = 0; c < x->nchunks; c++)
        x->ret->layers[c] =
            (int16_t)topt_stage_units_layers(&x->t->units, x->cut[c], x->cut[c + 1]);
    cost->memory_bytes = least_bytes(x);
    if (x->t->memory_limit && cost->memory_bytes > x->t->memory_limit)
        return 0;
    if (!x->strategy)
        sum_chunks(x);
    else if (find_chunks(x) || find_ends(x))
        return -1;
    cost->time_ns = least_ns(x);
    if (x->t->time_limit && cost->time_ns > x->t->time_limit)
        return 0;
    x->ret->stages = x->shape.stages;
    if (!x->strategy)
        return 0;
    return x->order->pairs && find_pairs(x) ? -1 : run(x, cost);
}

static int check(const struct stages *x)
{
    const struct topt_settings *o = x->t->settings;
    if (o->stages > TOPT_MAX_STAGES || o->stage_chunks > TOPT_MAX_CHUNKS / o->stages)
        return topt_fail(x->err, TOPT_ERR_LIMIT,
                         "at most %d stages and %d chunks are costed", TOPT_MAX_STAGES,
                         TOPT_MAX_CHUNKS);
    return x->nunits + TOPT_MAX_EMPTY < x->nchunks
               ? topt_fail(x->err, TOPT_ERR_INVAL,
                           "%d layers are not enough for %d stages of %d chunks",
                           x->t->units.layers, x->shape.stages, x->shape.chunks)
               : 0;
}

static int cost_by(struct topt_layers *t, const struct topt_strategy *s, int lean,
                   struct topt_strategy_cost *cost, struct topt_error *err)
{
    const struct topt_settings *o = t->settings;
    size_t pieces = (size_t)t->npieces + 1;
    struct stages x = {.t = t,
                       .strategy = s,
                       .err = err,
                       .order = &topt_orders[o->order],
                       .shape = {(int)o->stages, (int)o->stage_chunks, o->micro_batches},
                       .nunits = t->units.n,
                       .unit = t->unit,
                       .lean = lean,
                       .nchunks = (int)(o->stages * o->stage_chunks),
                       .ret = &cost->stage};
    *cost = (struct topt_strategy_cost){.sum = t->summed};
    if (check(&x))
        return -1;
    x.chunk = calloc((size_t)x.nchunks, sizeof *x.chunk);
    /* Each is set as a whole before it is read. */
    x.time = malloc(2 * pieces * sizeof *x.time); /* of two chunks at once */
    x.bytes = malloc(pieces * sizeof *x.bytes);
    int rc = x.chunk && x.time && x.bytes ? find_all(&x, cost)
                                          : topt_nomem(err, "pipeline stages");
    free(x.chunk);
    free(x.time);
    free(x.bytes);
    free(x.pairs);
    free(x.pair_ns);
    return rc;
}

/* What a device can't hold is cut for memory, which does not depend on what is asked. */
int topt_stages_cost(struct topt_layers *t, const struct topt_strategy *s,
                     struct topt_strategy_cost *cost, struct topt_error *err)
{
    struct topt_strategy_cost lean;
    int rc = cost_by(t, s, 0, cost, err);
    if (rc || cost->memory_bytes <= topt_hw_memory_bytes(t->hw))
        return rc;
    rc = cost_by(t, s, 1, &lean, err);
    if (!rc && lean.memory_bytes < cost->memory_bytes)
        *cost = lean;
    else if (!rc && t->passes) /* those of the strategy's own cut */
        rc = cost_by(t, s, 0, cost, err);
    return rc;
}

int topt_stages_exceed(const struct topt_costing *k, const struct topt_stage_units *u,
                       struct topt_unit_sums *of, int64_t memory_limit,
                       int64_t time_limit, struct topt_strategy_cost *ret,
                       struct topt_error *err)
{
    struct topt_layers t = {.settings = k->settings,
                            .hw = k->hw,
                            .units = *u,
                            .unit = of,
                            .shared = of[u->n].stays > 0,
                            .memory_limit = memory_limit,
                            .time_limit = time_limit};
    return topt_stages_cost(&t, NULL, ret, err) ? -1 : !ret->stage.stages;
}
