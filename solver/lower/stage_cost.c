/* stage_cost.c - the cost of a step over stages, for one way to cut its layers.
 *
 * Chunks' passes are found by their own schedules (stage_passes.c), and the pipeline's schedule (topt_pipeline.h) says when
 * they happen.  Lower bounds of memory and time come first, so that a cut beyond the limits is not run.  A strategy's memory
 * is that of the stage which holds most: parameters, gradients and states of its chunks, and the most that its passes hold at
 * one time. */
#include "stage_cost.h"
#include "stage_cut.h"
#include "stage_passes.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

/* ---- lower bounds of the time --------------------------------------------------------- */

/* A stage begins when the first micro-batch has come through the chunks before its own, and works through all micro-batches.
 * Then it ends its step, while the last micro-batch goes back through the chunks before, after which the first stage ends
 * its own; a stage that makes gradients of parameters apart does so meanwhile. */
static int64_t least_ns(const struct topt_stage_state *x)
{
    int64_t most = 0, before = 0, back = 0;
    for (int s = 0; s < x->shape.stages; s++) {
        int64_t ns = before;
        for (int own = 0; own < x->shape.chunks; own++) {
            int c = topt_chunk_of(x, s, own);
            ns += x->shape.micro_batches * (x->chunk[c].ns[0] + x->chunk[c].ns[1]) -
                  x->hidden_ns[c];
        }
        int64_t last = x->order->splits ? 0 : back + x->end_ns[0];
        most = topt_max(most, ns + topt_max(x->end_ns[s], last));
        before += x->chunk[s].ns[0] + x->send_ns[s];
        back += x->chunk[s].ns[1] + x->send_ns[s];
    }
    return most;
}

/* The same of unlike stages, by the computing and waiting of their units alone. */
static int64_t least_unlike_ns(const struct topt_stage_state *x)
{
    int64_t most = 0, before = 0;
    for (int s = 0; s < x->shape.stages; s++) {
        int64_t ns = 0;
        for (int u = x->cut[s]; u < x->cut[s + 1]; u++)
            ns += x->of[s]->unit[u].passes_ns;
        most = topt_max(most, ns + before);
        before += x->order->splits ? 0 : ns / x->shape.micro_batches;
    }
    return most;
}

/* ---- the cost of a schedule that has run ---------------------------------------------- */

/* Adds the bytes that a stage holds throughout, by class. */
static void add_stays(const struct topt_stage_state *x, int stage,
                      int64_t ret[TOPT_CLASS_COUNT])
{
    const struct topt_layers *t = x->of[stage];
    int64_t gathered = 0;
    for (int own = 0; own < x->shape.chunks; own++) {
        int c = topt_chunk_of(x, stage, own);
        for (int p = topt_first_piece(x, c); p < topt_first_piece(x, c + 1); p++) {
            for (int i = 0; i < TOPT_CLASS_COUNT; i++)
                ret[i] += t->stays[p][i];
            gathered += t->bytes[p].whole;
        }
    }
    if (t->settings->unsharded_sums && x->shape.chunks > TOPT_ACTIVE_CHUNKS)
        gathered = gathered / x->shape.chunks * TOPT_ACTIVE_CHUNKS;
    ret[TOPT_CLASS_BUFFERS] += gathered;
    int has_table = stage == x->shape.stages - 1 && topt_stages_share(x);
    for (int i = 0; has_table && i < TOPT_CLASS_COUNT; i++)
        ret[i] += t->stays[0][i];
}

/* A lower bound of the bytes that the fullest stage holds: those at the time when its first pass goes backward.  'beside' are
 * those that are no chunk's. */
static int64_t bytes_at_first(const struct topt_stage_state *x, int64_t beside)
{
    int64_t most = 0;
    for (int s = 0; s < x->shape.stages; s++) {
        int64_t stays[TOPT_CLASS_COUNT] = {0}, bytes = beside, least = INT64_MAX;
        add_stays(x, s, stays);
        for (int i = 0; i < TOPT_CLASS_COUNT; i++)
            bytes += stays[i];
        for (int own = 0; own < x->shape.chunks; own++) {
            int c = topt_chunk_of(x, s, own);
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

/* The bytes of activations that a stage has on the host when its first pass goes backward. */
static int64_t host_bytes(const struct topt_stage_state *x, int stage)
{
    int64_t bytes = 0;
    for (int own = 0; own < x->shape.chunks; own++) {
        int c = topt_chunk_of(x, stage, own);
        for (int p = topt_first_piece(x, c); p < topt_first_piece(x, c + 1); p++)
            bytes += x->ahead[c] * x->of[stage]->bytes[p].saved;
    }
    return bytes;
}

/* The bytes of each stage.  Those of the stage that holds most, as a share of its device's memory, are the strategy's. */
static void put_bytes(struct topt_stage_state *x, const struct topt_pipeline_held *held,
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

/* The busy time of each stage.  In the mean over stages, all of it but computing and waiting for the host is exposed
 * communication. */
static void put_busy(struct topt_stage_state *x, struct topt_strategy_cost *cost)
{
    struct topt_fragment_cost *sum = &cost->sum;
    int64_t busy = 0, late = 0, rounds = x->shape.micro_batches;
    for (int c = 0; c < x->nchunks; c++) {
        x->ret->busy_ns[topt_stage_of(x, c)] +=
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

/* Sums over all layers become means over stages, and the basis of the sums that of the whole time. */
static void put_time(struct topt_stage_state *x, int64_t ns,
                     struct topt_strategy_cost *cost)
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

/* Replaces the sums of all pieces on the first group's devices by sums on each stage's own devices, of which a stage has the
 * share that its units have in the time of all. */
static void sum_unlike(const struct topt_stage_state *x, struct topt_fragment_cost *sum)
{
    struct topt_fragment_cost all = {.compute_ns = 0};
    for (int s = 0; s < x->shape.stages; s++) {
        const struct topt_fragment_cost *of = &x->of[s]->summed;
        double own = 0, whole = 0;
        for (int i = 0; i < x->nunits; i++)
            whole += (double)x->of[s]->unit[i].passes_ns;
        for (int i = x->cut[s]; i < x->cut[s + 1]; i++)
            own += (double)x->of[s]->unit[i].passes_ns;
        all.compute_ns += (int64_t)(own / whole * (double)of->compute_ns);
        for (int b = 0; b < TOPT_BASIS_COUNT; b++)
            all.basis_ns[b] += (int64_t)(own / whole * (double)of->basis_ns[b]);
    }
    sum->compute_ns = all.compute_ns;
    memcpy(sum->basis_ns, all.basis_ns, sizeof sum->basis_ns);
}

static int run(struct topt_stage_state *x, struct topt_strategy_cost *cost)
{
    struct topt_pipeline_held held[TOPT_MAX_STAGES];
    struct topt_pipeline p = {.order = x->t->settings->order,
                              .shape = x->shape,
                              .sends_wait = x->t->settings->sends_wait,
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
    if (topt_stages_unlike(x))
        sum_unlike(x, &cost->sum);
    put_time(x, ns, cost);
    return 0;
}

/* ---- the whole ----------------------------------------------------------------------- */

/* Each group of unlike devices has whole stages, in the order of the profile. */
static int place(struct topt_stage_state *x)
{
    if (!topt_stages_unlike(x)) {
        for (int s = 0; s < x->shape.stages; s++)
            x->of[s] = x->t;
        return 0;
    }
    int stage = 0, group = 0, devices = x->t->mesh->devices;
    for (struct topt_layers *t = x->t; t; t = t->next, group++) {
        int stages = topt_hw_group_devices(x->t->whole, group) / devices;
        for (int s = 0; s < stages && stage < x->shape.stages; s++, stage++) {
            x->of[stage] = t;
            x->ret->group[stage] = (int8_t)group;
        }
    }
    return stage == x->shape.stages && topt_hw_groups_made_of(x->t->whole, devices)
               ? 0
               : topt_fail(
                     x->err, TOPT_ERR_INVAL,
                     "the groups of %s are not made of %d stages of %d devices each",
                     topt_hw_name(x->t->whole), x->shape.stages, devices);
}

/* The layers among the units of a chunk. */
static int layers_in(const struct topt_stage_state *x, int chunk)
{
    const struct topt_stage_units *u = &x->t->units;
    int from = (int)topt_max(x->cut[chunk], u->first);
    int until = (int)topt_min(x->cut[chunk + 1], u->first + u->layers);
    return until > from ? until - from : 0;
}

static int cost(struct topt_stage_state *x, struct topt_strategy_cost *ret)
{
    int64_t time_limit = x->t->time_limit;
    topt_stages_cut(x);
    x->ret->chunks = x->nchunks;
    for (int c = 0; c < x->nchunks; c++)
        x->ret->layers[c] = (int16_t)layers_in(x, c);
    ret->memory_bytes = topt_stages_least_bytes(x);
    if (topt_stages_unlike(x)
            ? time_limit && least_unlike_ns(x) > time_limit
            : x->t->memory_limit && ret->memory_bytes > x->t->memory_limit)
        return 0;
    if (!topt_stages_unlike(x)) {
        topt_stages_bound_passes(x);
        ret->time_ns = least_ns(x);
        if (time_limit && ret->time_ns > time_limit)
            return 0;
    }
    if (!x->strategy) {
        x->ret->stages = x->shape.stages;
        return 0;
    }
    if (topt_stages_find_passes(x))
        return -1;
    ret->time_ns = least_ns(x);
    if (time_limit && ret->time_ns > time_limit)
        return 0;
    if (x->order->pairs && topt_stages_find_pairs(x))
        return -1;
    ret->time_ns = least_ns(x);
    if (time_limit && ret->time_ns > time_limit)
        return 0;
    /* What a device can't hold is cut once more, for memory, so that less than that says nothing. */
    int64_t bytes = bytes_at_first(x, ret->sum.beside_bytes);
    if (x->t->memory_limit && !topt_stages_unlike(x) &&
        bytes > topt_max(x->t->memory_limit, topt_hw_memory_bytes(x->t->hw))) {
        ret->memory_bytes = bytes;
        return 0;
    }
    x->ret->stages = x->shape.stages;
    return run(x, ret);
}

static int check(const struct topt_stage_state *x)
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

int topt_stages_cost_cut(struct topt_layers *t, const struct topt_strategy *s, int lean,
                         int64_t *room, struct topt_strategy_cost *ret,
                         struct topt_error *err)
{
    const struct topt_settings *o = t->settings;
    size_t pieces = (size_t)t->npieces + 1;
    struct topt_stage_state x = {
        .t = t,
        .strategy = s,
        .order = &topt_orders[o->order],
        .shape = {(int)o->stages, (int)o->stage_chunks, o->micro_batches},
        .nunits = t->units.n,
        .nchunks = (int)(o->stages * o->stage_chunks),
        .lean = lean,
        .err = err,
        .ret = &ret->stage};
    *ret = (struct topt_strategy_cost){.sum = t->summed};
    if (check(&x))
        return -1;
    if (room)
        memcpy(x.room, room, (size_t)x.shape.stages * sizeof *room);
    x.chunk = calloc((size_t)x.nchunks, sizeof *x.chunk);
    /* Both are written before they are read. */
    x.time = malloc(2 * pieces * sizeof *x.time);
    x.bytes = malloc(pieces * sizeof *x.bytes);
    int rc = x.chunk && x.time && x.bytes ? place(&x) || cost(&x, ret)
                                          : topt_nomem(err, "pipeline stages");
    int more = room && !rc && ret->stage.stages && (!room[0] || x.room[0]) &&
               topt_stages_room(&x, room);
    free(x.chunk);
    free(x.time);
    free(x.bytes);
    free(x.pairs);
    free(x.pair_ns);
    return rc ? -1 : more;
}
