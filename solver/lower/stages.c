/* stages.c - the cost of a step over pipeline stages.
 *
 * Costs of a micro-batch on the mesh of one stage are given by piece.  Units are cut into chunks, of which the first
 * and the last may have no layer.  The step's own schedule (topt_step.h) gives the length of a chunk's pass and the
 * memory that it holds, the pipeline's (topt_pipeline.h) when passes happen.
 *
 *     units     | embedding | layer 0 | layer 1 | ...            | layer n | norm, head, loss |
 *     chunks    |        chunk 0         |    chunk 1    | ...   |          the last          |
 *
 * Modules that predict further tokens belong to the last unit, as Megatron-LM has them beside the loss.
 * If stages run on groups of unlike devices, each stage has the time and the memory limit of its own group, and the cut
 * minimises the time of the slowest stage among the cuts whose stages all fit.
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
    int last = m->mtp - 1;
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

/* Modules that predict further tokens are not recomputed then (Megatron-LM, core/transformer/multi_token_prediction.py at
 * d98e8a6). */
void topt_recompute_first(const struct topt_model *m, const int16_t *layers, int64_t n,
                          struct topt_strategy *s)
{
    int in_chunk = -1, chunk = 0; /* the layer's number in its chunk */
    for (int i = 0; i < m->nops; i++) {
        int t = m->op[i].operand[m->op[i].output].tensor;
        if (i < m->mtp && begins_layer(m, i))
            for (in_chunk++; in_chunk == layers[chunk]; in_chunk = 0)
                chunk++;
        if (in_chunk < n && i < m->mtp)
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

void topt_layers_join(struct topt_layers *t, const struct topt_hw *whole,
                      struct topt_layers *next)
{
    t->whole = whole;
    t->next = next;
}

/* The passes of two chunks as one. */
struct pair {
    int f, b;
    int64_t ns; /* 0: none */
};

struct stages {
    struct topt_layers
        *t; /* of the first stage: what is the same for all stages is read from here */
    const struct topt_layers
        *of[TOPT_MAX_STAGES]; /* by stage: its pieces, on its own devices */
    const struct topt_strategy *strategy;
    struct topt_error *err;
    const struct topt_order *order;
    struct topt_order_shape shape;
    int nunits, nchunks, lean;
    const struct topt_unit_sums
        *unit[TOPT_MAX_STAGES]; /* by stage; stages alike have one */
    int64_t room
        [TOPT_MAX_STAGES]; /* of unlike stages: bytes that units may add up to; 0: any */
    int cut[TOPT_MAX_CHUNKS + 1];   /* by chunk: its first unit */
    int64_t ahead[TOPT_MAX_CHUNKS]; /* by chunk: passes before its stage goes backward */
    struct topt_chunk *chunk;
    struct topt_piece_time *time; /* of the pieces of a chunk, in one micro-batch */
    struct topt_piece_bytes *bytes;
    int like[TOPT_MAX_CHUNKS]; /* the first chunk whose passes are as this one's */
    /* How long a chunk's passes wait for the host to start kernels, and for copies to the host and back. */
    int64_t late_ns[TOPT_MAX_CHUNKS], copies_ns[TOPT_MAX_CHUNKS];
    int64_t end_ns[TOPT_MAX_STAGES];
    int64_t send_ns[TOPT_MAX_CHUNKS]; /* from a chunk to the next, and back */
    int64_t waited_ns;                /* for copies, of the parts that were timed last */
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

static const struct topt_layers *layers_of(const struct stages *x, int chunk)
{
    return x->of[stage_of(x, chunk)];
}

/* Do stages lie on groups of unlike devices? */
static int is_unlike(const struct stages *x)
{
    return x->t->next != NULL;
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

/* A lower bound of the bytes that a unit adds to its stage: parameters and states, and the activations of the micro-batches
 * in flight. */
static int64_t unit_bytes(const struct stages *x, int unit, int chunk)
{
    const struct topt_unit_sums *u = &x->unit[stage_of(x, chunk)][unit];
    return u->stays + x->ahead[chunk] * u->kept;
}

/* Can the units be cut into chunks of no more than 'most', from the last one on, of which no stage holds more than 'room'
 * bytes (0: any), and no unlike stage more than its own?  'cut' has them; 'spread': each takes about an equal share of
 * what is left, else all that it can. */
static int cut_by(struct stages *x, int64_t most, int64_t room, int spread)
{
    int at = x->nunits;
    int64_t left = 0, held[TOPT_MAX_STAGES] = {0};
    for (int i = 0; i < at; i++)
        left += x->unit[0][i].passes_ns;
    x->cut[x->nchunks] = at;
    for (int c = x->nchunks - 1; c >= 0; c--) {
        const struct topt_unit_sums *unit = x->unit[stage_of(x, c)];
        int64_t sum = 0, more = 0, *bytes = &held[stage_of(x, c)];
        room = is_unlike(x) ? x->room[c] : room;
        int least = at - 1; /* each of the chunks before has a unit, too */
        int64_t share = spread ? left / (c + 1) : most;
        while (at > c && (at > least || (sum + unit[at - 1].passes_ns <= most &&
                                         sum + unit[at - 1].passes_ns / 2 <= share))) {
            more = room ? unit_bytes(x, at - 1, c) : 0;
            if (at <= least && *bytes + more > room)
                break;
            *bytes += more;
            sum += unit[--at].passes_ns;
        }
        if (sum > most || *bytes > room)
            return 0;
        left -= sum;
        x->cut[c] = at;
    }
    return at == 0;
}

/* Can the units be cut so that the chunks of a stage take no more than 'most' together?  From the last chunk on, each has
 * an equal share of what the later ones of its stage left. */
static int cut_by_stages(struct stages *x, int64_t most)
{
    int64_t held[TOPT_MAX_STAGES] = {0};
    int at = x->nunits, taken[TOPT_MAX_STAGES] = {0};
    x->cut[x->nchunks] = at;
    for (int c = x->nchunks - 1; c >= 0; c--) {
        int least = at - 1, stage = stage_of(x, c);
        int64_t *sum = &held[stage];
        int64_t until =
            *sum + (most - *sum) / (x->nchunks / x->shape.stages - taken[stage]++);
        const struct topt_unit_sums *unit = x->unit[stage];
        while (at > c && (at > least || *sum + unit[at - 1].passes_ns <= until))
            *sum += unit[--at].passes_ns;
        if (*sum > most)
            return 0;
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
            sum += x->unit[stage_of(x, c)][i].passes_ns;
        most = topt_max(most, sum);
    }
    return most;
}

/* The least 'most' for which units are cut (BY_STAGES: that of stages), or with that one the least 'room'. */
enum { BY_STAGES = -1 };
static int64_t least_cut(struct stages *x, int64_t low, int64_t high, int64_t most)
{
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (most == BY_STAGES ? cut_by_stages(x, mid)
            : most            ? cut_by(x, most, mid, 0)
                              : cut_by(x, mid, 0, 0))
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
        held[x->shape.stages - 1] += x->unit[x->shape.stages - 1][x->nunits].stays;
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
 * before the last have nothing.  Where no cut leaves unlike stages their room, the one without.  A last unit that
 * alone takes longer than any chunk need (it has the loss, and modules that predict further tokens) leaves fewer layers
 * to the other chunks of its stage. */
static void cut_units(struct stages *x)
{
    int64_t all = 0, high, low = 0, even = cut_evenly(x);
    const int16_t *given = x->t->given;
    for (int c = 1; c < x->nchunks && given; c++)
        x->cut[c] = (c > 1 ? x->cut[c - 1] : x->t->units.first) + given[c - 1];
    if (given)
        return;
    if (even && x->t->settings->even_stages)
        return;
    for (int c = 0; c <= x->nchunks && x->nchunks > x->nunits; c++)
        x->cut[c] = c < x->nunits ? c : x->nunits - (c < x->nchunks);
    if (x->nchunks > x->nunits)
        return;
    for (int i = 0; i < x->nunits; i++) {
        int64_t least = INT64_MAX, most = 0;
        for (int s = 0; s < x->shape.stages; s++) {
            least = topt_min(least, x->unit[s][i].passes_ns);
            most = topt_max(most, x->unit[s][i].passes_ns);
        }
        low = topt_max(low, least);
        all += most;
    }
    high = least_cut(x, low, all, 0);
    if (even && even <= high + high / 100 && !x->room[0])
        (void)cut_evenly(x);
    else if (high == x->unit[0][x->nunits - 1].passes_ns &&
             x->nchunks > x->shape.stages) {
        (void)cut_by_stages(x, least_cut(x, low, all, BY_STAGES));
        return;
    } else if (is_unlike(x) || !cut_by(x, high, 0, 1)) {
        if (!cut_by(x, high, 0, 0)) {
            memset(x->room, 0, sizeof x->room);
            (void)cut_by(x, high, 0, 0);
        }
    }
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

/* Some parts of a step (bits) of a chunk's pieces, in one micro-batch; how many pieces. */
static int pieces_of(const struct stages *x, int chunk, int parts,
                     struct topt_piece_time *ret)
{
    const struct topt_piece_time *spent = layers_of(x, chunk)->spent;
    int n = 0;
    for (int p = from(x, x->cut[chunk]); p < from(x, x->cut[chunk + 1]); p++, n++) {
        ret[n] = spent[p];
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
static int part_ns(struct stages *x, int chunk, int parts, int64_t *ret, int64_t *late)
{
    int64_t sum = 0, aside = 0, host = 0, copies = 0;
    int last_saved = -1, n = pieces_of(x, chunk, parts, x->time);
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
    if (topt_step_run(layers_of(x, chunk)->schedule, &step, ret, late, NULL, x->err))
        return -1;
    *ret = topt_max(*ret, copies);
    x->waited_ns += copies ? *ret - sum - *late : 0;
    return 0;
}

/* Bytes of a pass: forward the most that its pieces hold beside what they keep, backward the most that
 * the chunk's own step holds.  Parameters that are whole from forward to backward stay so. */
static int find_bytes(struct stages *x, int chunk, struct topt_chunk *c)
{
    const struct topt_layers *t = layers_of(x, chunk);
    int64_t held[TOPT_HELD_COUNT], grown = 0, most = 0, ns, late;
    int n = 0, saves = 0;
    for (int p = from(x, x->cut[chunk]); p < from(x, x->cut[chunk + 1]); p++, n++) {
        struct topt_piece_bytes *b = &x->bytes[n];
        *b = t->bytes[p];
        b->whole = b->gradient = 0;
        x->time[n] = (struct topt_piece_time){.unit = t->spent[p].unit};
        saves |= b->saved > 0;
        grown += b->kept - b->saved;
        most = topt_max(most, grown + b->saved + b->work[0] + b->waiting[0]);
    }
    if (saves) /* copies take their time */
        (void)pieces_of(x, chunk, FORWARD | BACKWARD, x->time);
    struct topt_training_step step = {x->time, x->bytes, n, 1};
    if (topt_step_run(t->schedule, &step, &ns, &late, held, x->err))
        return -1;
    c->kept = grown;
    c->during[0][TOPT_HELD_WORK] = topt_max(most - grown, (int64_t)0);
    memcpy(c->during[1], held, sizeof held);
    c->during[1][TOPT_HELD_KEPT] -= grown;
    return 0;
}

/* Gradients of what operators with parameters made, from which those of parameters follow; of products in few bits as
 * these were cast. */
static int64_t weights_bytes(const struct stages *x, int chunk)
{
    int first = x->cut[chunk], last = x->cut[chunk + 1];
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
static int split(struct stages *x, int chunk, struct topt_chunk *c)
{
    int64_t inputs, late;
    if (part_ns(x, chunk, BACKWARD | NO_WEIGHTS, &inputs, &late))
        return -1;
    c->weights_ns = topt_max(c->ns[1] - inputs, (int64_t)0);
    c->weights_kept = weights_bytes(x, chunk);
    return 0;
}

/* Is a chunk like the one before it, so that its passes are? */
static int like_before(const struct stages *x, int c)
{
    if (!c || x->cut[c + 1] - x->cut[c] != x->cut[c] - x->cut[c - 1] ||
        layers_of(x, c) != layers_of(x, c - 1))
        return 0;
    const struct topt_layers *t = layers_of(x, c);
    int a = from(x, x->cut[c - 1]), b = from(x, x->cut[c]);
    int n = from(x, x->cut[c + 1]) - b;
    if (n != b - a)
        return 0;
    for (int i = 0; i < n; i++) {
        struct topt_piece_bytes held = t->bytes[b + i];
        held.layer = t->bytes[a + i].layer;
        if (memcmp(t->spent[a + i].at, t->spent[b + i].at, sizeof t->spent[a].at) ||
            memcmp(&held, &t->bytes[a + i], sizeof held))
            return 0;
    }
    return 1;
}

/* Of all micro-batches, where passes run as one: less what moving takes of computing. */
static int64_t hidden_ns(const struct stages *x, int c)
{
    const struct topt_layers *t = layers_of(x, c);
    int64_t ns = 0;
    for (int u = x->cut[c]; u < x->cut[c + 1] && x->order->pairs; u++)
        ns += x->unit[stage_of(x, c)][u].exchange_ns;
    return (int64_t)((1 - topt_dispatch_share(t->settings, t->hw)) * (double)ns);
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
        if (part_ns(x, c, FORWARD, &chunk->ns[0], &late[0]) ||
            part_ns(x, c, BACKWARD, &chunk->ns[1], &late[1]) || find_bytes(x, c, chunk) ||
            (x->order->splits && split(x, c, chunk)))
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
                    sum += x->unit[stage_of(x, c)][u].ns[d][i];
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
        forward.n = pieces_of(x, f, FORWARD, x->time);
        backward.time = x->time + forward.n;
        backward.n = pieces_of(x, b, BACKWARD, x->time + forward.n);
        *p = (struct pair){f, b, 0};
        if (topt_step_pair(x->t->schedule, forward, backward,
                           topt_dispatch_share(x->t->settings, layers_of(x, f)->hw),
                           &p->ns, x->err))
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
    int64_t most[TOPT_MAX_STAGES] = {0};
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
            int64_t saved = x->chunk[f].ns[0] + x->chunk[b].ns[1] - *ns;
            x->saved_ns[s] += saved / (v * v);
            most[s] = topt_max(most[s], saved);
        }
    for (int c = 0; c < x->nchunks; c++) { /* all that pairs may save, known now */
        struct topt_order_plan plan;
        int s = stage_of(x, c);
        topt_order_plan(x->order, &x->shape, s, &plan);
        x->hidden_ns[c] = topt_order_count_pairs(&plan) * most[s] / v;
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

/* What each device of a stage and its counterpart in another exchange, by one collective of the two.  Stages that share
 * a node talk inside of it, where all of a group do; else devices of a node share its way out.  Between groups of unlike
 * devices all of a stage's share the link. */
static int64_t between_ns(const struct stages *x, int a, int b, enum topt_collective how,
                          int64_t bytes)
{
    const struct topt_mesh *mesh = x->t->mesh;
    const struct topt_hw *hw = x->of[a]->hw;
    int stages = 0, steps = how == TOPT_ALL_REDUCE ? 2 : 1; /* the two send half, twice */
    if (x->of[a] != x->of[b])
        return topt_hw_between_ns(x->t->whole, bytes * mesh->devices, steps);
    for (int s = 0; s < x->shape.stages; s++)
        stages += x->of[s] == x->of[a];
    int inside = mesh->nodes == 1 && mesh->per_node * stages <= topt_hw_gpus_per_node(hw);
    struct topt_group pair = inside ? (struct topt_group){1, 2, mesh->per_node}
                                    : (struct topt_group){2, 1, mesh->per_node};
    return topt_hw_collective_ns(hw, how, pair, bytes);
}

/* The time after a stage's last pass; tables that both ends share have their gradients added up. */
static int find_ends(struct stages *x)
{
    int64_t more = 0, sent = sent_bytes(x);
    for (int c = 0; c < x->nchunks; c++) {
        int64_t with, late, without = x->chunk[c].ns[1];
        if (c && !is_unlike(x))
            x->send_ns[c] = x->send_ns[0];
        else if (c + 1 < x->nchunks)
            x->send_ns[c] =
                between_ns(x, stage_of(x, c), stage_of(x, c + 1), TOPT_PERMUTE, sent);
        if (!like_before(x, c)) {
            if (part_ns(x, c, BACKWARD | ENDS, &with, &late))
                return -1;
            more = topt_max(with - without, (int64_t)0);
        }
        x->end_ns[stage_of(x, c)] += more;
    }
    if (shares(x)) {
        int64_t bytes = x->t->stays[0][TOPT_CLASS_GRAD];
        int last = x->shape.stages - 1;
        int64_t ns = between_ns(x, 0, last, TOPT_ALL_REDUCE, bytes);
        x->end_ns[0] += ns;
        x->end_ns[last] += ns;
    }
    return 0;
}

/* ---- the whole ----------------------------------------------------------------------- */

static void add_stays(const struct stages *x, int stage, int64_t ret[TOPT_CLASS_COUNT])
{
    const struct topt_layers *t = x->of[stage];
    for (int own = 0; own < x->shape.chunks; own++) {
        int c = topt_order_chunk(x->order, &x->shape, stage, own);
        for (int p = from(x, x->cut[c]); p < from(x, x->cut[c + 1]); p++) {
            for (int i = 0; i < TOPT_CLASS_COUNT; i++)
                ret[i] += t->stays[p][i];
            ret[TOPT_CLASS_BUFFERS] += t->bytes[p].whole;
        }
    }
    for (int i = 0; shares(x) && stage == x->shape.stages - 1 && i < TOPT_CLASS_COUNT;
         i++)
        ret[i] += t->stays[0][i];
}

/* The most that a stage holds at least: when its first pass goes backward. */
static int64_t bytes_at_first(const struct stages *x, int64_t beside)
{
    int64_t most = 0;
    for (int s = 0; s < x->shape.stages; s++) {
        int64_t stays[TOPT_CLASS_COUNT] = {0}, bytes = beside, least = INT64_MAX;
        add_stays(x, s, stays);
        for (int i = 0; i < TOPT_CLASS_COUNT; i++)
            bytes += stays[i];
        for (int own = 0; own < x->shape.chunks; own++) {
            int c = topt_order_chunk(x->order, &x->shape, s, own);
            int64_t pass = 0;
            for (int i = 0; i < TOPT_HELD_COUNT; i++)
                pass += x->chunk[c].during[1][i];
            least = topt_min(least, pass);
            bytes += x->ahead[c] * x->chunk[c].kept;
        }
        most = topt_max(most, bytes + least);
    }
    return most;
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
        before += x->chunk[s].ns[0] + x->send_ns[s];
        back += x->chunk[s].ns[1] + x->send_ns[s];
    }
    return most;
}

/* The same of unlike stages, by what their units compute and wait for alone. */
static int64_t weights_ns(const struct stages *x)
{
    int64_t most = 0, before = 0;
    for (int s = 0; s < x->shape.stages; s++) {
        int64_t ns = 0;
        for (int u = x->cut[s]; u < x->cut[s + 1]; u++)
            ns += x->unit[s][u].passes_ns;
        most = topt_max(most, ns + before);
        before += x->order->splits ? 0 : ns / x->shape.micro_batches;
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
            bytes += x->ahead[c] * x->of[stage]->bytes[p].saved;
    }
    return bytes;
}

/* The bytes of the stage that holds most, as a share of what its device has, are the strategy's. */
static void put_bytes(struct stages *x, const struct topt_pipeline_held *held,
                      struct topt_strategy_cost *cost)
{
    double most = -1;
    for (int s = 0; s < x->shape.stages; s++) {
        int64_t stays[TOPT_CLASS_COUNT] = {[TOPT_CLASS_BUFFERS] = cost->sum.beside_bytes};
        add_stays(x, s, stays);
        for (int i = 0; i < TOPT_CLASS_COUNT; i++)
            x->ret->bytes[s] += stays[i];
        for (int i = 0; i < TOPT_HELD_COUNT; i++)
            x->ret->bytes[s] += held[s].bytes[i];
        if (x->t->settings->offload & TOPT_OFFLOAD_MODULES)
            cost->host_bytes = topt_max(cost->host_bytes, host_bytes(x, s));
        double share =
            (double)x->ret->bytes[s] / (double)topt_hw_memory_bytes(x->of[s]->hw);
        if (share <= most)
            continue;
        most = share;
        x->ret->most = s;
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

/* The sums of all pieces on devices of the first group become those of each unit on its own stage's devices, by the
 * time of its passes. */
static void sum_unlike(const struct stages *x, struct topt_fragment_cost *sum)
{
    struct topt_fragment_cost all = {.compute_ns = 0};
    for (int s = 0; s < x->shape.stages; s++) {
        const struct topt_fragment_cost *of = &x->of[s]->summed;
        double own = 0, whole = 0;
        for (int i = 0; i < x->nunits; i++) {
            whole += (double)x->unit[s][i].passes_ns;
            own +=
                i >= x->cut[s] && i < x->cut[s + 1] ? (double)x->unit[s][i].passes_ns : 0;
        }
        all.compute_ns += (int64_t)(own / whole * (double)of->compute_ns);
        for (int b = 0; b < TOPT_BASIS_COUNT; b++)
            all.basis_ns[b] += (int64_t)(own / whole * (double)of->basis_ns[b]);
    }
    sum->compute_ns = all.compute_ns;
    memcpy(sum->basis_ns, all.basis_ns, sizeof sum->basis_ns);
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
    if (is_unlike(x))
        sum_unlike(x, &cost->sum);
    put_time(x, ns, cost);
    return 0;
}

/* Groups of unlike devices have whole stages, one after the other in the order of the profile. */
static int place(struct stages *x)
{
    int stage = 0, group = 0, devices = is_unlike(x) ? x->t->mesh->devices : 1;
    for (struct topt_layers *t = x->t; t; t = t->next, group++) {
        int stages = is_unlike(x) ? topt_hw_group_devices(x->t->whole, group) / devices
                                  : x->shape.stages;
        for (int s = 0; s < stages && stage < x->shape.stages; s++, stage++) {
            x->of[stage] = t;
            x->ret->group[stage] = (int8_t)group;
            x->unit[stage] = t->unit;
        }
    }
    return !is_unlike(x) || (stage == x->shape.stages &&
                             topt_hw_groups_made_of(x->t->whole, devices))
               ? 0
               : topt_fail(
                     x->err, TOPT_ERR_INVAL,
                     "the groups of %s are not made of %d stages of %d devices each",
                     topt_hw_name(x->t->whole), x->shape.stages, devices);
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
    if (x->t->memory_limit && cost->memory_bytes > x->t->memory_limit && !is_unlike(x))
        return 0;
    if (is_unlike(x) && x->t->time_limit && weights_ns(x) > x->t->time_limit)
        return 0;
    if (!x->strategy)
        sum_chunks(x);
    else if (find_chunks(x) || find_ends(x))
        return -1;
    cost->time_ns = least_ns(x);
    if (x->t->time_limit && cost->time_ns > x->t->time_limit)
        return 0;
    if (!x->strategy) {
        x->ret->stages = x->shape.stages;
        return 0;
    }
    if (x->order->pairs && find_pairs(x))
        return -1;
    cost->time_ns = least_ns(x);
    if (x->t->time_limit && cost->time_ns > x->t->time_limit)
        return 0;
    int64_t bytes = bytes_at_first(x, cost->sum.beside_bytes);
    if (x->t->memory_limit && !is_unlike(x) &&
        bytes > topt_max(x->t->memory_limit, topt_hw_memory_bytes(x->t->hw))) {
        cost->memory_bytes = bytes;
        return 0;
    }
    x->ret->stages = x->shape.stages;
    return run(x, cost);
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

/* Unlike stages get as much room for units as their devices leave them; 0: all fit. */
static int make_room(const struct stages *x, int64_t *room)
{
    int over = 0;
    for (int s = 0; s < x->shape.stages; s++) {
        room[s] = topt_hw_memory_bytes(x->of[s]->hw) - x->ret->bytes[s];
        over |= room[s] < 0;
        for (int u = x->cut[s]; u < x->cut[s + 1]; u++)
            room[s] += unit_bytes(x, u, s);
        room[s] = topt_max(room[s], (int64_t)1);
    }
    return over;
}

/* 'room': of unlike stages, what they have, and then what they should have, where '*ret_more'; NULL: they are alike. */
static int cost_by(struct topt_layers *t, const struct topt_strategy *s, int lean,
                   int64_t *room, int *ret_more, struct topt_strategy_cost *cost,
                   struct topt_error *err)
{
    const struct topt_settings *o = t->settings;
    size_t pieces = (size_t)t->npieces + 1;
    struct stages x = {.t = t,
                       .strategy = s,
                       .err = err,
                       .order = &topt_orders[o->order],
                       .shape = {(int)o->stages, (int)o->stage_chunks, o->micro_batches},
                       .nunits = t->units.n,
                       .lean = lean,
                       .nchunks = (int)(o->stages * o->stage_chunks),
                       .ret = &cost->stage};
    *cost = (struct topt_strategy_cost){.sum = t->summed};
    if (check(&x))
        return -1;
    for (int i = 0; room && i < x.shape.stages; i++)
        x.room[i] = room[i];
    x.chunk = calloc((size_t)x.nchunks, sizeof *x.chunk);
    /* Each is set as a whole before it is read. */
    x.time = malloc(2 * pieces * sizeof *x.time); /* of two chunks at once */
    x.bytes = malloc(pieces * sizeof *x.bytes);
    int rc = x.chunk && x.time && x.bytes ? place(&x) || find_all(&x, cost)
                                          : topt_nomem(err, "pipeline stages");
    if (room && !rc)
        *ret_more = cost->stage.stages && (!room[0] || x.room[0]) && make_room(&x, room);
    free(x.chunk);
    free(x.time);
    free(x.bytes);
    free(x.pairs);
    free(x.pair_ns);
    return rc;
}

/* By how large a part of its device's memory the stage that has most is over that; 0: all fit. */
static double over(const struct topt_layers *t, const struct topt_stage_costs *c)
{
    const struct topt_hw *hw = topt_hw_group(t->whole, c->group[c->most]);
    double share = (double)c->bytes[c->most] / (double)topt_hw_memory_bytes(hw);
    return share > 1 ? share - 1 : 0;
}

/* Some layers of a stage go to another where that fits better, or takes less time: 1 where it does.  '*runs': how many
 * schedules may still be run for that. */
static int move_layers(struct topt_layers *t, const struct topt_strategy *s, int from,
                       int to, int layers, struct topt_strategy_cost *best, int *runs,
                       struct topt_error *err)
{
    int last = best->stage.stages - 1, ends = t->units.first + t->units.layers;
    int may_have_none =
        (from == 0 && t->units.first) || (from == last && t->units.n > ends);
    struct topt_strategy_cost cost;
    int16_t given[TOPT_MAX_CHUNKS];
    memcpy(given, best->stage.layers, sizeof given);
    if (from == to || given[from] - layers < !may_have_none)
        return 0;
    given[from] = (int16_t)(given[from] - layers);
    given[to] = (int16_t)(given[to] + layers);
    double now = over(t, &best->stage);
    t->given = given;
    t->time_limit = now > 0 ? 0 : best->time_ns;
    int rc = cost_by(t, s, 0, NULL, NULL, &cost, err);
    t->given = NULL;
    t->time_limit = 0;
    if (rc || !cost.stage.stages) /* it takes longer in any case */
        return rc;
    --*runs;
    double then = over(t, &cost.stage);
    if (then > now || (then == now && cost.time_ns >= best->time_ns))
        return 0;
    *best = cost;
    return 1;
}

/* ... of groups of unlike devices by the slowest stage's time and for their memory, and then by the whole step's time,
 * which the first pass of each stage and its end are part of. */
static int cost_unlike(struct topt_layers *t, const struct topt_strategy *s,
                       struct topt_strategy_cost *cost, struct topt_error *err)
{
    enum {
        TIMES = 3,
        MOST = 8,
        PASSES = 256
    }; /* of stages that are run, by which a schedule's time goes */
    int64_t room[TOPT_MAX_STAGES] = {0}, time_limit = t->time_limit;
    int more = 1, rc = 0;
    if (t->settings->stage_chunks > 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "stages of unlike devices have one chunk each");
    t->time_limit += time_limit / 4; /* what moves may save */
    for (int i = 0; i < TIMES && more && !rc; i++)
        rc = cost_by(t, s, 0, room, &more, cost, err);
    t->time_limit = 0;
    int fixed = rc || t->given || t->settings->even_stages;
    int n = cost->stage.stages, runs = n ? PASSES / n : 0;
    for (int layers = fixed || rc ? 0 : MOST; layers; layers /= 2)
        for (int i = 0, left = n * n; left > 0 && runs > 0 && !rc;
             i = (i + 1) % (n * n), left--) {
            int moved = move_layers(t, s, i / n, i % n, layers, cost, &runs, err);
            rc = moved < 0;
            left = moved > 0 ? n * n : left;
        }
    t->time_limit = time_limit;
    if (!rc && t->passes && !fixed) { /* those of the cut that was found */
        struct topt_strategy_cost found = *cost;
        t->given = found.stage.layers;
        rc = cost_by(t, s, 0, NULL, NULL, cost, err);
        t->given = NULL;
    }
    return rc;
}

/* What a device can't hold is cut for memory, which does not depend on what is asked. */
int topt_stages_cost(struct topt_layers *t, const struct topt_strategy *s,
                     struct topt_strategy_cost *cost, struct topt_error *err)
{
    struct topt_strategy_cost lean;
    if (t->next)
        return cost_unlike(t, s, cost, err);
    int rc = cost_by(t, s, 0, NULL, NULL, cost, err);
    if (rc || cost->memory_bytes <= topt_hw_memory_bytes(t->hw))
        return rc;
    rc = cost_by(t, s, 1, NULL, NULL, &lean, err);
    if (!rc && lean.memory_bytes < cost->memory_bytes)
        *cost = lean;
    else if (!rc && t->passes) /* those of the strategy's own cut */
        rc = cost_by(t, s, 0, NULL, NULL, cost, err);
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
