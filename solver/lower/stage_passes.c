/* stage_passes.c - the time and the bytes of the passes of each chunk of a cut.
 *
 * A pass of one micro-batch through a chunk is costed by the schedule of a step (topt_step.h) over the chunk's pieces alone.
 * Equal chunks side by side are costed once.  Sends between stages, and the end of a step behind the last pass, are the
 * collectives of a stage's devices with those of the next. */
#include "fragment.h"
#include "low.h"
#include "stage_passes.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

enum {
    FORWARD = 1 << TOPT_DURING_FORWARD,
    BACKWARD = 1 << TOPT_DURING_BACKWARD,
    ENDS = 1 << TOPT_DURING_BEGIN | 1 << TOPT_DURING_END,
    NO_WEIGHTS = 1 << TOPT_DURING_COUNT /* without gradients of parameters */
};

/* In each round of as many micro-batches as there are stages, a stage meets each of its chunks in a run of forward passes and
 * in one of backward passes.  A chunk is gathered for a run unless it is there, as those of six runs are in each round but
 * one, and those with which the backward passes of a single round begin. */
double topt_chunk_gathers(const struct topt_settings *s)
{
    double rounds = (double)topt_max(s->micro_batches / s->stages, 1);
    double there = TOPT_ACTIVE_CHUNKS * (rounds > 1 ? 2 * (rounds - 1) : 1);
    return s->stage_chunks > TOPT_ACTIVE_CHUNKS
               ? 2 * rounds - there / (double)s->stage_chunks
               : 1;
}

/* Leaves the gathers that there are of those of all passes: of few chunks one, which the first pass waits for. */
static void take_gathers(const struct topt_stage_state *x,
                         const struct topt_piece_time *of, struct topt_piece_time *ret)
{
    const struct topt_settings *s = x->t->settings;
    const struct topt_part_time *first = &of->at[TOPT_DURING_FORWARD];
    double passes = 2 * (double)s->micro_batches;
    double share =
        s->stage_chunks > TOPT_ACTIVE_CHUNKS ? topt_chunk_gathers(s) / passes : 0;
    for (int d = TOPT_DURING_FORWARD; d <= TOPT_DURING_BACKWARD; d++)
        ret->at[d].gather_ns = (int64_t)((double)ret->at[d].gather_ns * share);
    if (share > 0)
        return;
    ret->at[TOPT_DURING_END].waited_ns += first->gather_ns / s->micro_batches;
    ret->at[TOPT_DURING_END].waited_links |= first->gather_links;
}

/* Gradients that were accumulated whole are reduced after the last pass of their chunk, beside passes of the stage's other
 * chunks; but nothing hides those of its first chunk, which goes backward last. */
static void expose_reduction(const struct topt_stage_state *x, int chunk,
                             struct topt_part_time *end)
{
    if (!x->t->settings->unsharded_sums || chunk >= x->shape.stages)
        return;
    end->waited_ns += end->reduce_ns;
    end->waited_links |= end->reduce_links;
    end->reduce_ns = 0;
}

/* The pieces of a chunk in some parts of a step (bits), in one micro-batch; returns how many pieces there are. */
static int pieces_of(const struct topt_stage_state *x, int chunk, int parts,
                     struct topt_piece_time *ret)
{
    const struct topt_piece_time *spent = topt_chunk_layers(x, chunk)->spent;
    int n = 0;
    for (int p = topt_first_piece(x, chunk); p < topt_first_piece(x, chunk + 1);
         p++, n++) {
        ret[n] = spent[p];
        if (x->t->settings->unsharded_sums)
            take_gathers(x, &spent[p], &ret[n]);
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
        expose_reduction(x, chunk, &ret[n].at[TOPT_DURING_END]);
    }
    return n;
}

/* The time of a chunk in some parts of a step, and how much of it the device waits for the host to start kernels.  Copies of
 * activations to the host go on beside the next pass, and those of the last group come back during the pass before
 * (pre_reload_last_layer of Megatron-LM's offloading). */
static int parts_ns(struct topt_stage_state *x, int chunk, int parts, int64_t *ret,
                    int64_t *late)
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
    /* One task follows the other, and the host is far ahead. */
    if (!aside && !copies && 2 * host < sum)
        return 0;
    struct topt_training_step step = {x->time, NULL, n, 1};
    if (topt_step_run(topt_chunk_layers(x, chunk)->schedule, &step, ret, late, NULL,
                      x->err))
        return -1;
    *ret = topt_max(*ret, copies);
    x->waited_ns += copies ? *ret - sum - *late : 0;
    return 0;
}

/* The bytes of a chunk's passes: forward the most that its pieces hold beside what they keep, backward the most that the
 * chunk's own step holds.  Parameters that stay gathered from forward to backward are left to add_stays (stage_cost.c). */
static int find_bytes(struct topt_stage_state *x, int chunk, struct topt_chunk *c)
{
    const struct topt_layers *t = topt_chunk_layers(x, chunk);
    int64_t held[TOPT_HELD_COUNT], grown = 0, most = 0, ns, late;
    int n = 0, saves = 0;
    for (int p = topt_first_piece(x, chunk); p < topt_first_piece(x, chunk + 1);
         p++, n++) {
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

/* The bytes of an operator with parameters that wait until their gradients are made: the gradient of its output and, where
 * products alone are made later, its operands, in few bits where products are. */
static int64_t waiting_bytes(const struct topt_stage_state *x, int i)
{
    const struct topt_settings *s = x->t->settings;
    const struct topt_model *m = x->t->model;
    const struct topt_op *o = &m->op[i];
    const struct topt_config *c = &x->strategy->config[i];
    int64_t of_logits = i >= m->head && i < m->loss, bytes = 0;
    int waits = topt_op_parameters(o) > 0 && (o->spec->low || !s->operands_wait);
    for (int k = 0; waits && k < o->spec->noperands; k++) {
        if (k != o->output && !(s->operands_wait && o->operand[k].role == TOPT_INPUT))
            continue;
        struct topt_shape shape = topt_operand_shape(o, k);
        struct topt_layout l = k == o->output ? topt_grad_layout(o, k, c, x->t->mesh)
                                              : topt_value_layout(o, k, c, x->t->mesh);
        bytes += topt_block_bytes(x->t->mesh, s, &shape, &l, TOPT_ELEM_REAL);
    }
    return topt_low_runs(s, m, i) && !s->low_apart
               ? topt_permille(bytes, topt_low_cast_permille(s))
               : bytes / (of_logits ? topt_loss_chunks(s->loss) : 1);
}

/* The bytes that a chunk holds more, or less, from the first part of its backward pass to the second, which makes the
 * gradients of parameters, than it has kept until then. */
static int64_t weights_bytes(const struct topt_stage_state *x, int chunk, int64_t kept)
{
    const struct topt_stage_units *u = &x->t->units;
    int64_t bytes = 0;
    for (int i = u->at[x->cut[chunk]].op; i < u->at[x->cut[chunk + 1]].op; i++)
        bytes += waiting_bytes(x, i);
    bytes = topt_with_allocator(x->t->settings, bytes);
    return x->t->settings->operands_wait ? bytes - kept : bytes;
}

/* The second part of a backward pass, which makes the gradients of parameters. */
static int find_weights(struct topt_stage_state *x, int chunk, struct topt_chunk *c)
{
    int64_t inputs, late;
    if (parts_ns(x, chunk, BACKWARD | NO_WEIGHTS, &inputs, &late))
        return -1;
    c->weights_ns = topt_max(c->ns[1] - inputs, (int64_t)0);
    c->weights_kept = weights_bytes(x, chunk, c->kept);
    return 0;
}

/* Are the passes of two chunks equal? */
static int chunks_alike(const struct topt_stage_state *x, int before, int c)
{
    const struct topt_layers *t = topt_chunk_layers(x, c);
    int a = topt_first_piece(x, before), b = topt_first_piece(x, c);
    int n = topt_first_piece(x, c + 1) - b;
    if (x->cut[c + 1] - x->cut[c] != x->cut[before + 1] - x->cut[before] ||
        t != topt_chunk_layers(x, before) || n != topt_first_piece(x, before + 1) - a)
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

/* The first chunk whose passes are equal to those of a chunk. */
static int first_alike(const struct topt_stage_state *x, int c)
{
    for (int before = c - 1; before >= 0; before--)
        if (x->like[before] == before && chunks_alike(x, before, c))
            return before;
    return c;
}

/* Where passes run in pairs: the time, in all micro-batches, in which a chunk's tokens move, less the computing that moving
 * takes away. */
static int64_t hidden_ns(const struct topt_stage_state *x, int c)
{
    const struct topt_layers *t = topt_chunk_layers(x, c);
    int64_t ns = 0;
    for (int u = x->cut[c]; u < x->cut[c + 1] && x->order->pairs; u++)
        ns += topt_chunk_layers(x, c)->unit[u].exchange_ns;
    return (int64_t)((1 - topt_dispatch_share(t->settings, t->hw)) * (double)ns);
}

static int find_chunks(struct topt_stage_state *x)
{
    for (int c = 0; c < x->nchunks; c++) {
        struct topt_chunk *chunk = &x->chunk[c];
        int64_t late[2];
        int like = x->like[c] = first_alike(x, c);
        x->hidden_ns[c] = hidden_ns(x, c);
        if (like != c) {
            *chunk = x->chunk[like];
            x->late_ns[c] = x->late_ns[like];
            x->copies_ns[c] = x->copies_ns[like];
            continue;
        }
        x->waited_ns = 0;
        if (parts_ns(x, c, FORWARD, &chunk->ns[0], &late[0]) ||
            parts_ns(x, c, BACKWARD, &chunk->ns[1], &late[1]) ||
            find_bytes(x, c, chunk) || (x->order->splits && find_weights(x, c, chunk)))
            return -1;
        x->late_ns[c] = late[0] + late[1];
        x->copies_ns[c] = x->waited_ns;
    }
    return 0;
}

/* Sets the communication that pairs of a forward and a backward pass hide in a stage, shared evenly by its chunks:
 * each pair hides at most 'most' nanoseconds. */
static void hide_in_pairs(struct topt_stage_state *x, int stage, int64_t most)
{
    struct topt_order_plan plan;
    topt_order_plan(x->order, &x->shape, stage, &plan);
    for (int own = 0; own < x->shape.chunks; own++)
        x->hidden_ns[topt_chunk_of(x, stage, own)] =
            topt_order_count_pairs(&plan) * most / x->shape.chunks;
}

/* A pair of passes hides no more than tokens take in one micro-batch through one chunk, and leaves the time of each link.
 * 'link': by chunk, those of a pass forward and backward. */
static void bound_pairs(struct topt_stage_state *x, int64_t (*link)[2][TOPT_LINK_COUNT])
{
    for (int s = 0; s < x->shape.stages; s++) {
        int64_t tokens = 0, most = 0;
        for (int own = 0; own < x->shape.chunks; own++)
            tokens = topt_max(
                tokens,
                hidden_ns(x, topt_chunk_of(x, s, own)) / x->shape.micro_batches + 1);
        for (int i = 0; i < x->shape.chunks * x->shape.chunks; i++) {
            int f = topt_chunk_of(x, s, i / x->shape.chunks);
            int b = topt_chunk_of(x, s, i % x->shape.chunks);
            int64_t ns = 0;
            for (int k = 0; k < TOPT_LINK_COUNT; k++)
                ns = topt_max(ns, link[f][0][k] + link[b][1][k]);
            most = topt_max(most, x->chunk[f].ns[0] + x->chunk[b].ns[1] - ns);
        }
        hide_in_pairs(x, s, topt_min(most, tokens));
    }
}

/* The time of each link in a pass, and that beside computing; and of computing and waiting. */
struct pass_sums {
    int64_t link[TOPT_LINK_COUNT], aside[TOPT_LINK_COUNT], all;
};

static struct pass_sums sum_pass(const struct topt_stage_state *x, int c, int back)
{
    struct pass_sums ret = {{0}, {0}, 0};
    for (int u = x->cut[c]; u < x->cut[c + 1]; u++) {
        const struct topt_unit_sums *of = &topt_chunk_layers(x, c)->unit[u];
        for (int k = 0; k < TOPT_LINK_COUNT; k++) {
            ret.link[k] += of->ns[back][k];
            ret.aside[k] += of->aside_ns[back][k];
        }
        ret.all += of->ns[back][TOPT_LINK_COUNT];
    }
    return ret;
}

/* A lower bound of the pass: no link is done sooner, and communication beside computing takes its share, unless it is beside
 * what computing waits for on other links. */
static int64_t least_pass_ns(const struct pass_sums *x, double share)
{
    int64_t most = x->all, waits = 0;
    for (int k = 0; k < TOPT_LINK_COUNT; k++)
        waits += x->link[k] - x->aside[k];
    for (int k = 0; k < TOPT_LINK_COUNT; k++) {
        int64_t beside = x->aside[k] - (waits - (x->link[k] - x->aside[k]));
        int64_t slowed = x->all + (int64_t)(share * (double)topt_max(beside, 0));
        most = topt_max(most, topt_max(x->link[k], slowed));
    }
    return most;
}

void topt_stages_bound_passes(struct topt_stage_state *x)
{
    int64_t link[TOPT_MAX_CHUNKS][2][TOPT_LINK_COUNT];
    for (int c = 0; c < x->nchunks; c++)
        for (int d = 0; d < 2; d++) {
            struct pass_sums sums = sum_pass(x, c, d);
            memcpy(link[c][d], sums.link, sizeof sums.link);
            x->chunk[c].ns[d] = least_pass_ns(
                &sums, topt_hw_collective_share(topt_chunk_layers(x, c)->hw));
        }
    if (x->order->pairs)
        bound_pairs(x, link);
}

/* The time of a pass forward and one backward that run as one; known already where equal chunks met before. */
static int find_pair(struct topt_stage_state *x, int f, int b, int64_t *ret)
{
    struct topt_chunk_pair *p = x->pairs;
    f = x->like[f];
    b = x->like[b];
    while (p->ns && (p->forward != f || p->backward != b))
        p++;
    if (!p->ns) {
        struct topt_pass_pieces forward = {.time = x->time}, backward;
        forward.n = pieces_of(x, f, FORWARD, x->time);
        backward.time = x->time + forward.n;
        backward.n = pieces_of(x, b, BACKWARD, x->time + forward.n);
        *p = (struct topt_chunk_pair){f, b, 0};
        if (topt_step_pair(
                x->t->schedule, forward, backward,
                topt_dispatch_share(x->t->settings, topt_chunk_layers(x, f)->hw), &p->ns,
                x->err))
            return -1;
    }
    *ret = p->ns;
    return 0;
}

int topt_stages_find_pairs(struct topt_stage_state *x)
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
            int s = topt_stage_of(x, f), b = topt_chunk_of(x, s, own);
            int64_t *ns = &x->pair_ns[f * v + own];
            if (find_pair(x, f, b, ns))
                return -1;
            int64_t saved = x->chunk[f].ns[0] + x->chunk[b].ns[1] - *ns;
            x->saved_ns[s] += saved / (v * v);
            most[s] = topt_max(most[s], saved);
        }
    for (int s = 0; s < x->shape.stages; s++)
        hide_in_pairs(x, s, most[s]);
    return 0;
}

/* ---- between stages ------------------------------------------------------------------ */

/* The bytes that one device of a stage sends to its counterpart in the next, at most. */
static int64_t sent_bytes(const struct topt_stage_state *x)
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

/* The time in which each device of a stage and its counterpart in another run one collective of the two.  They are inside a
 * node where all stages of a group fit into one; else the devices of a node share its network.  Between groups of unlike
 * devices, all devices of a stage share the link. */
static int64_t between_ns(const struct topt_stage_state *x, int a, int b,
                          enum topt_collective how, int64_t bytes)
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

/* The time after each stage's last pass.  Gradients of a table that the first and the last stage share are summed there. */
static int find_ends(struct topt_stage_state *x)
{
    /* By the first chunk with such passes; apart for chunks whose reductions others hide. */
    int64_t more[2][TOPT_MAX_CHUNKS], sent = sent_bytes(x);
    memset(more, 0xff, sizeof more);
    for (int c = 0; c < x->nchunks; c++) {
        int64_t with, late, without = x->chunk[c].ns[1];
        int hidden = x->t->settings->unsharded_sums && c >= x->shape.stages;
        int64_t *ends = &more[hidden][x->like[c]];
        if (c && !topt_stages_unlike(x))
            x->send_ns[c] = x->send_ns[0];
        else if (c + 1 < x->nchunks)
            x->send_ns[c] = between_ns(x, topt_stage_of(x, c), topt_stage_of(x, c + 1),
                                       TOPT_PERMUTE, sent);
        if (*ends < 0) {
            if (parts_ns(x, c, BACKWARD | ENDS, &with, &late))
                return -1;
            *ends = topt_max(with - without, (int64_t)0);
        }
        x->end_ns[topt_stage_of(x, c)] += *ends;
    }
    if (topt_stages_share(x)) {
        int64_t bytes = x->t->stays[0][TOPT_CLASS_GRAD];
        int last = x->shape.stages - 1;
        int64_t ns = between_ns(x, 0, last, TOPT_ALL_REDUCE, bytes);
        x->end_ns[0] += ns;
        x->end_ns[last] += ns;
    }
    return 0;
}

int topt_stages_find_passes(struct topt_stage_state *x)
{
    return find_chunks(x) || find_ends(x) ? -1 : 0;
}
