/* strategy_total.c - the cost of a strategy: a plain sum, and caps on what is in flight.
 *
 *     memory = what stays + R + T + W * U
 *         R  what backward recomputes at once: of the largest unit, or block of each kind
 *         T  most transient bytes of any fragment
 *         W  tensors that wait past other operators, at once, at most
 *         U  bytes of the largest of them
 *
 * One unit's recomputed activations are alive in the forward pass, too, and R covers them.
 *
 * If a framework's schedule decides memory (topt_settings_scheduled), it is the bytes that stay, and the most that the
 * step's tasks hold at one time beside these. */
#include "stages.h"
#include "tally.h"
#include "strategy_total.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

int topt_spans_init(struct topt_spans *s, const struct topt_model *m,
                    struct topt_error *err)
{
    int *last = topt_model_last_uses(m);
    int *open = calloc((size_t)m->nops + 2, sizeof *open);
    *s = (struct topt_spans){.span = calloc((size_t)m->ntensors + 1, 1)};
    if (!last || !open || !s->span) {
        free(last);
        free(open);
        topt_spans_fini(s);
        return topt_nomem(err, "the model's spans");
    }
    for (int t = 0; t < m->ntensors; t++) {
        int length = last[t] - m->tensor[t].producer, uses = m->tensor[t].nconsumers;
        /* Of a tensor that the next operator reads twice, one gradient waits in the hub for the other's move. */
        if (uses == 0 || (length <= 1 && uses == 1))
            continue;
        /* A residual crosses a block, a tied weight the whole model. */
        int is_long = length > 16 && 2 * length > m->nops;
        s->span[t] = is_long ? TOPT_SPAN_LONG : TOPT_SPAN_CROSSING;
        if (is_long)
            continue;
        open[m->tensor[t].producer + 1]++;
        open[last[t] + 1]--;
    }
    for (int i = 0, now = 0; i <= m->nops; i++) {
        now += open[i];
        if (now > s->crossing)
            s->crossing = now;
    }
    free(last);
    free(open);
    return 0;
}

void topt_spans_recompute(struct topt_spans *s, const struct topt_model *m,
                          const struct topt_settings *settings)
{
    for (int t = 0; t < m->ntensors; t++)
        if (s->span[t] == TOPT_SPAN_NEXT &&
            topt_recomputed_with(m, settings, m->tensor[t].producer) >= 0)
            s->span[t] = TOPT_SPAN_CROSSING;
    s->crossing++;
}

void topt_spans_fini(struct topt_spans *s)
{
    free(s->span);
    s->span = NULL;
}

int64_t topt_span_bytes(const struct topt_costing *k, int tensor,
                        const struct topt_layout *where)
{
    struct topt_shape shape = topt_tensor_shape(&k->model->tensor[tensor]);
    if (topt_is_table(k->model, k->settings, k->model->tensor[tensor].producer))
        return 0; /* kept by the operator that reads it back */
    return topt_in_flight(k,
                          topt_held_bytes(k, tensor,
                                          topt_block_bytes(k->mesh, k->settings, &shape,
                                                           where, TOPT_ELEM_REAL)));
}

int64_t topt_round_transient(int64_t bytes)
{
    return topt_transient_of(topt_transient_code(bytes));
}

/* ---- units ------------------------------------------------------------------------- */

int topt_gathered_units(const struct topt_model *m, const struct topt_settings *s,
                        int *ret_unit)
{
    int n = 0, at = -1;
    for (int i = 0; i < m->nops; i++) {
        int by_operator = m->unit[i] < 0 || s->gather == TOPT_GATHER_OPERATOR;
        int unit = by_operator ? i : m->unit[i];
        if (!i || (unit != at && (!by_operator || topt_op_parameters(&m->op[i]) > 0))) {
            at = unit;
            n++;
        }
        ret_unit[i] = n - 1;
    }
    return n;
}

/* ---- sums -------------------------------------------------------------------------- */

/* Cuts units into pieces, about 128 in a model if it has as many operators with parameters.  A piece begins with such
 * an operator, or with its unit.  The loss, which holds more than any other operator, is a piece by itself.  Where there
 * are stages, no piece spans two layers. */
static int find_pieces(const struct topt_model *m, const int *unit, int64_t stages,
                       int *ret_piece)
{
    enum { PIECES = 128 };
    int n = 0, of_unit = 0, together;
    for (int i = 0; i < m->nops; i++)
        n += topt_op_parameters(&m->op[i]) > 0;
    together = 1 + n / PIECES;
    n = 0;
    for (int i = 0; i < m->nops; i++) {
        int first =
            !i || unit[i] != unit[i - 1] || (stages > 1 && m->unit[i] != m->unit[i - 1]);
        of_unit = first ? 0 : of_unit + (topt_op_parameters(&m->op[i]) > 0);
        n += first || m->op[i].spec->loss ||
             (topt_op_parameters(&m->op[i]) > 0 && of_unit % together == 0);
        ret_piece[i] = n - 1;
    }
    return n;
}

/* The twin of a piece is the nearest earlier one with as many operators whose first is alike; -1: none. */
static void find_twins(struct topt_totals *t)
{
    for (int p = 0; p < t->npieces; p++) {
        int q = p - 1, at = t->first[p], n = t->first[p + 1] - at;
        while (q >= 0 && (t->first[q + 1] - t->first[q] != n ||
                          t->model->alike[t->first[q]] != t->model->alike[at]))
            q--;
        t->twin[p] = q;
    }
}

static int open_pieces(struct topt_totals *t)
{
    size_t n = (size_t)t->npieces + 1;
    t->first = calloc(n, sizeof *t->first);
    t->twin = calloc(n, sizeof *t->twin);
    t->as = calloc(n, sizeof *t->as);
    t->sum = malloc(n * sizeof *t->sum); /* each is set as a whole */
    if (!t->first || !t->twin || !t->as || !t->sum)
        return -1;
    for (int i = 0; i < t->model->nops; i++)
        t->first[(t->piece ? t->piece[i] : 0) + 1] = i + 1;
    find_twins(t);
    return 0;
}

static int open_units(struct topt_totals *t)
{
    size_t n = (size_t)t->model->nops + 1;
    t->unit = calloc(n, sizeof *t->unit);
    t->piece = calloc(n, sizeof *t->piece);
    if (!t->unit || !t->piece)
        return -1;
    topt_gathered_units(t->model, t->settings, t->unit);
    t->npieces = find_pieces(t->model, t->unit, t->settings->stages, t->piece);
    n = (size_t)t->npieces + 1;
    t->spent = calloc(n, sizeof *t->spent);
    return t->spent ? 0 : -1;
}

static int open_bytes(struct topt_totals *t)
{
    size_t n = (size_t)t->npieces + 1;
    t->bytes = calloc(n, sizeof *t->bytes);
    t->held = calloc((size_t)t->model->nops + 1, sizeof *t->held);
    t->until = topt_model_last_uses(t->model);
    return t->bytes && t->held && t->until ? 0 : -1;
}

/* Allocate the times and bytes of pieces of the strategy that was scheduled last. */
static int open_last(struct topt_totals *t)
{
    size_t n = (size_t)t->npieces + 1;
    t->last = calloc(n, sizeof *t->last);
    t->last_bytes = calloc(n, sizeof *t->last_bytes);
    return t->last && t->last_bytes ? 0 : -1;
}

int topt_totals_init(struct topt_totals *t, const struct topt_costing *k,
                     struct topt_error *err)
{
    *t = (struct topt_totals){
        .model = k->model, .settings = k->settings, .npieces = 1, .last_ns = -1};
    t->host_rate = topt_hw_host(k->hw)->link;
    topt_schedule_init(&t->schedule, 1, topt_hw_collective_share(k->hw));
    t->recomputed = calloc((size_t)k->model->nops + 1, sizeof *t->recomputed);
    if (!t->recomputed || (k->settings->by_schedule && open_units(t)) || open_pieces(t) ||
        (topt_settings_scheduled(k->settings) && open_bytes(t)))
        return topt_nomem(err, "a strategy's cost");
    if (k->settings->stages > 1 && t->bytes) {
        t->layers = (struct topt_layers){.model = k->model,
                                         .settings = k->settings,
                                         .hw = k->hw,
                                         .mesh = k->mesh,
                                         .schedule = &t->schedule,
                                         .piece = t->piece,
                                         .npieces = t->npieces,
                                         .spent = t->spent,
                                         .bytes = t->bytes};
        if (topt_layers_init(&t->layers, err))
            return -1;
    } else if (t->spent && open_last(t)) {
        return topt_nomem(err, "a strategy's cost");
    }
    return topt_spans_init(&t->spans, k->model, err);
}

void topt_totals_fini(struct topt_totals *t)
{
    free(t->recomputed);
    free(t->unit);
    free(t->piece);
    free(t->first);
    free(t->twin);
    free(t->as);
    free(t->sum);
    free(t->spent);
    free(t->last);
    free(t->bytes);
    free(t->last_bytes);
    free(t->held);
    topt_layers_fini(&t->layers);
    free(t->until);
    topt_schedule_fini(&t->schedule);
    topt_recomputation_fini(&t->recomputation);
    topt_spans_fini(&t->spans);
    topt_spans_fini(&t->spans_recomputing);
}

/* Adds all sums except the time by part of a step, which is kept by piece. */
static int join_sums(struct topt_fragment_cost *sum, const struct topt_fragment_cost *c,
                     struct topt_error *err)
{
    int bad = __builtin_add_overflow(sum->compute_ns, c->compute_ns, &sum->compute_ns);
    bad |= __builtin_add_overflow(sum->network_ns, c->network_ns, &sum->network_ns);
    for (int i = 0; i < TOPT_BASIS_COUNT; i++) {
        sum->basis_ns[i] += c->basis_ns[i]; /* parts of the two above */
        bad |=
            __builtin_add_overflow(sum->async_ns[i], c->async_ns[i], &sum->async_ns[i]);
    }
    if (bad)
        return topt_fail(err, TOPT_ERR_LIMIT, "the cost of the strategy overflows");
    sum->gathered_bytes += c->gathered_bytes; /* of one operator at most */
    sum->whole_bytes += c->whole_bytes;
    sum->made_bytes += c->made_bytes;
    sum->reduced_bytes += c->reduced_bytes;
    sum->host_bytes += c->host_bytes;
    sum->beside_bytes = topt_max(sum->beside_bytes, c->beside_bytes);
    for (int i = 0; i < TOPT_CLASS_COUNT; i++)
        bad |= __builtin_add_overflow(sum->class_bytes[i], c->class_bytes[i],
                                      &sum->class_bytes[i]);
    sum->transient_bytes = topt_max(sum->transient_bytes, c->transient_bytes);
    return bad ? topt_fail(err, TOPT_ERR_LIMIT, "the cost of the strategy overflows") : 0;
}

int topt_cost_join(struct topt_fragment_cost *sum, const struct topt_fragment_cost *c,
                   struct topt_error *err)
{
    topt_piece_time_add(&sum->spent, &c->spent);
    return join_sums(sum, c, err);
}

const struct topt_fragment_cost *topt_edge_choice(const struct topt_edge_cost *e,
                                                  enum topt_keep keep)
{
    return &e->alt[keep == TOPT_KEEP_BEFORE && e->nalts == 2];
}

/* Sums of a strategy, and the largest caps seen. */
struct total {
    struct topt_totals *t;
    const struct topt_pieces *pieces;
    const struct topt_spans *spans;
    struct topt_strategy_cost *cost;
    struct topt_error *err;
};

/* Sums a piece up.  Backward, moves between its later operators come before the computing of its first operator, which
 * has the parameters. */
static int sum_piece(struct total *s, int piece)
{
    const struct topt_model *m = s->t->model;
    struct topt_fragment_cost *sum = &s->t->sum[piece];
    *sum = (struct topt_fragment_cost){0};
    for (int i = s->t->first[piece]; i < s->t->first[piece + 1]; i++) {
        const struct topt_fragment_cost *of[] = {
            s->pieces->op[i], s->pieces->hub[topt_output_tensor(&m->op[i])]};
        for (int k = 0; k < 2 && of[k]; k++) {
            if ((s->t->spent ? topt_cost_join : join_sums)(sum, of[k], s->err))
                return -1;
            if (i > s->t->first[piece])
                sum->spent.at[TOPT_DURING_BACKWARD].ahead_ns +=
                    of[k]->spent.at[TOPT_DURING_BACKWARD].waited_ns;
            if (!s->t->held)
                continue;
            struct topt_op_bytes *b = &s->t->held[i];
            b->kept += of[k]->class_bytes[TOPT_CLASS_KEPT];
            b->recomputed += of[k]->class_bytes[TOPT_CLASS_RECOMPUTED];
            b->work = topt_max(b->work, of[k]->transient_bytes);
        }
    }
    return 0;
}

/* Are the costs of a piece its twin's? */
static int is_as_twin(const struct total *s, int piece)
{
    const struct topt_model *m = s->t->model;
    int twin = s->t->twin[piece], back;
    if (twin < 0)
        return 0;
    back = s->t->first[piece] - s->t->first[twin];
    for (int i = s->t->first[piece]; i < s->t->first[piece + 1]; i++) {
        const struct topt_op *a = &m->op[i], *b = &m->op[i - back];
        if (s->pieces->op[i] != s->pieces->op[i - back] ||
            s->pieces->hub[topt_output_tensor(a)] !=
                s->pieces->hub[topt_output_tensor(b)])
            return 0;
    }
    return 1;
}

/* The bytes that a piece keeps on the host. */
static int64_t saved_of(const struct total *s, int piece)
{
    const struct topt_model *m = s->t->model;
    int64_t bytes = 0;
    for (int i = s->t->first[piece]; i < s->t->first[piece + 1]; i++) {
        const struct topt_fragment_cost *of[] = {
            s->pieces->op[i], s->pieces->hub[topt_output_tensor(&m->op[i])]};
        for (int k = 0; k < 2 && of[k]; k++)
            bytes += (int64_t)(topt_offload_share(m, s->t->settings, i, k) *
                               (double)of[k]->class_bytes[TOPT_CLASS_KEPT]);
    }
    return bytes;
}

/* Adds a piece, with the sum of its twin where costs are equal. */
static int add(struct total *s, int piece)
{
    struct topt_totals *t = s->t;
    int twin = is_as_twin(s, piece) ? t->twin[piece] : -1, at = t->first[piece];
    if (twin < 0 && sum_piece(s, piece))
        return -1;
    if (twin >= 0 && t->held)
        memcpy(&t->held[at], &t->held[t->first[twin]],
               (size_t)(t->first[piece + 1] - at) * sizeof *t->held);
    t->as[piece] = twin < 0 ? piece : t->as[twin];
    const struct topt_fragment_cost *sum = &t->sum[t->as[piece]];
    if (t->spent) {
        t->spent[piece] = sum->spent;
        t->spent[piece].unit = t->unit[at];
        t->spent[piece].group = t->settings->offload & TOPT_OFFLOAD_MODULES
                                    ? ~piece
                                    : t->model->unit[t->first[piece + 1] - 1];
    }
    if (t->bytes)
        t->bytes[piece] = (struct topt_piece_bytes){
            .gathered = sum->gathered_bytes,
            .whole = sum->whole_bytes,
            .made = sum->made_bytes,
            .reduced = sum->reduced_bytes,
            .saved = t->settings->offload & TOPT_OFFLOAD_KEPT ? saved_of(s, piece) : 0,
            .gradient =
                topt_gradients_come(t->settings) ? sum->class_bytes[TOPT_CLASS_GRAD] : 0};
    for (int i = 0; t->layers.stays && i < TOPT_CLASS_KEPT; i++)
        t->layers.stays[piece][i] = sum->class_bytes[i];
    return join_sums(&s->cost->sum, sum, s->err);
}

/* Adds the bytes that an operator, with the hub of its output, recomputes. */
static void add_recomputed(struct total *s, int op)
{
    const struct topt_model *m = s->t->model;
    const struct topt_fragment_cost *hub = s->pieces->hub[topt_output_tensor(&m->op[op])];
    int with = topt_recomputed_with(m, s->t->settings, op);
    if (with >= 0)
        s->t->recomputed[with] += s->pieces->op[op]->class_bytes[TOPT_CLASS_RECOMPUTED] +
                                  (hub ? hub->class_bytes[TOPT_CLASS_RECOMPUTED] : 0);
}

/* A tensor that waits: bounded by the crossing cap, or charged by itself. */
static void add_waiting(struct total *s, int tensor)
{
    if (s->spans->span[tensor] == TOPT_SPAN_NEXT)
        return;
    int64_t bytes = s->pieces->waiting[tensor];
    if (s->spans->span[tensor] == TOPT_SPAN_LONG)
        s->cost->sum.class_bytes[TOPT_CLASS_KEPT] += bytes;
    else
        s->cost->crossing_cap = topt_max(s->cost->crossing_cap, bytes);
    if (s->t->held && s->spans->span[tensor] == TOPT_SPAN_CROSSING) {
        /* Changes from one operator to the next; summed up by fold_bytes. */
        s->t->held[s->t->model->tensor[tensor].producer + 1].waiting += bytes;
        s->t->held[s->t->until[tensor]].waiting -= bytes;
    }
}

/* The spans of a model where some operator recomputes, made when they are first asked for. */
static int find_spans(struct total *s)
{
    struct topt_totals *t = s->t;
    s->spans = &t->spans;
    if (!t->recomputation.any)
        return 0;
    s->spans = &t->spans_recomputing;
    if (s->spans->span)
        return 0;
    if (topt_spans_init(&t->spans_recomputing, t->model, s->err))
        return -1;
    topt_spans_recompute(&t->spans_recomputing, t->model, t->settings);
    return 0;
}

static int add_all(struct total *s)
{
    const struct topt_model *m = s->t->model;
    memset(s->t->recomputed, 0, (size_t)m->nops * sizeof *s->t->recomputed);
    if (s->t->held)
        memset(s->t->held, 0, (size_t)m->nops * sizeof *s->t->held);
    for (int p = 0; p < s->t->npieces; p++)
        if (add(s, p))
            return -1;
    for (int i = 0; i < m->nops && s->t->recomputation.any; i++)
        add_recomputed(s, i);
    for (int t = 0; t < m->ntensors; t++)
        add_waiting(s, t);
    return 0;
}

/* The most that a piece holds beside what it keeps ('again': and what it recomputes), while its
 * operators run one after the other and each adds what it keeps. */
static void find_work(const struct topt_totals *t, int from, int to, int again,
                      struct topt_piece_bytes *p)
{
    int64_t grown = 0, most = 0, waiting = 0;
    for (int i = from; i < to; i++) {
        const struct topt_op_bytes *b = &t->held[i];
        grown += b->kept + (again ? b->recomputed : 0);
        if (grown + b->work + b->waiting <= most)
            continue;
        most = grown + b->work + b->waiting;
        waiting = b->waiting;
    }
    p->work[again] = most - grown;
    p->waiting[again] = topt_min(waiting, p->work[again]);
    p->work[again] -= p->waiting[again];
}

/* Activations that layers keep for backward are copied to the host and fetched again, but for the last layer's
 * (Megatron-LM's should_bulk_offload of pipeline_parallel/fine_grained_activation_offload.py, d98e8a6). */
static void save(struct topt_totals *t)
{
    int last = t->npieces - 1;
    while (last >= 0 && t->bytes[last].layer < 0)
        last--;
    t->saved_bytes = 0;
    for (int i = 0; i < t->npieces; i++) {
        struct topt_piece_bytes *b = &t->bytes[i];
        if (b->layer < 0 || b->layer == t->bytes[last].layer)
            b->saved = 0;
        int64_t ns = (int64_t)(1e9 * (double)b->saved *
                               (double)t->settings->micro_batches / t->host_rate);
        t->spent[i].at[TOPT_DURING_FORWARD].save_ns = ns;
        t->spent[i].at[TOPT_DURING_BACKWARD].save_ns = ns;
        t->saved_bytes += b->saved;
    }
}

/* The bytes of pieces, from those of their operators. */
static void fold_bytes(struct topt_totals *t)
{
    int64_t waiting = 0;
    for (int i = 0; i < t->model->nops; i++) {
        struct topt_piece_bytes *p = &t->bytes[t->piece[i]];
        waiting += t->held[i].waiting;
        t->held[i].waiting = waiting;
        p->kept += t->held[i].kept;
        p->recomputed += t->held[i].recomputed;
    }
    for (int from = 0, to; from < t->model->nops; from = to) {
        struct topt_piece_bytes *p = &t->bytes[t->piece[from]];
        for (to = from + 1; to < t->model->nops && t->piece[to] == t->piece[from];)
            to++;
        p->layer = topt_recomputed_with(t->model, t->settings, from);
        p->outside = t->model->unit[from] < 0;
        find_work(t, from, to, 0, p);
        find_work(t, from, to, 1, p);
    }
    if (t->settings->offload & TOPT_OFFLOAD_KEPT)
        save(t);
}

/* The time and bytes of the step's schedule, once for strategies that take the same. */
static int schedule(struct topt_totals *t, int64_t *ret_ns, struct topt_error *err)
{
    size_t n = (size_t)t->npieces;
    struct topt_training_step step = {t->spent, t->bytes, t->npieces,
                                      t->settings->micro_batches};
    if (t->bytes)
        fold_bytes(t);
    if (t->last_ns < 0 || memcmp(t->last, t->spent, n * sizeof *t->spent) ||
        (t->bytes && memcmp(t->last_bytes, t->bytes, n * sizeof *t->bytes))) {
        t->last_ns = -1;
        if (topt_step_run(&t->schedule, &step, ret_ns, &t->last_late_ns, t->last_held,
                          err))
            return -1;
        memcpy(t->last, t->spent, n * sizeof *t->spent);
        if (t->bytes)
            memcpy(t->last_bytes, t->bytes, n * sizeof *t->bytes);
        t->last_ns = *ret_ns;
    }
    *ret_ns = t->last_ns;
    return 0;
}

/* The bytes of a strategy when its schedule holds most.  Tensors that live through most of a step
 * are kept throughout: they are what is kept and belongs to no operator. */
static void put_held(const struct topt_totals *t, struct topt_strategy_cost *cost)
{
    int64_t *bytes = cost->sum.class_bytes, long_lived = bytes[TOPT_CLASS_KEPT];
    for (int i = 0; i < t->npieces; i++)
        long_lived -= t->bytes[i].kept;
    if (topt_gradients_come(t->settings))
        bytes[TOPT_CLASS_GRAD] = t->last_held[TOPT_HELD_GRADIENT];
    bytes[TOPT_CLASS_KEPT] = long_lived + t->last_held[TOPT_HELD_KEPT];
    bytes[TOPT_CLASS_BUFFERS] += t->last_held[TOPT_HELD_BUFFERS] + cost->sum.beside_bytes;
    cost->recomputed_bytes = t->last_held[TOPT_HELD_RECOMPUTED];
    const int64_t *loss = t->bytes[t->piece[t->model->loss]].work;
    cost->transient_cap = t->last_held[TOPT_HELD_WORK];
    cost->at_loss = topt_max(loss[0], loss[1]) == cost->transient_cap;
    cost->crossing = 1;
    cost->crossing_cap = t->last_held[TOPT_HELD_WAITING];
}

/* The time by which offloading to the host makes the step longer: that of the schedule less that of one without it. */
static int find_host_wait(struct total *s, int64_t ns)
{
    struct topt_totals *t = s->t;
    struct topt_strategy_cost *cost = s->cost;
    struct topt_training_step step = {t->last, NULL, t->npieces,
                                      t->settings->micro_batches};
    int64_t without, late;
    for (int i = 0; i < t->npieces; i++)
        for (int d = 0; d < TOPT_DURING_COUNT; d++) {
            struct topt_part_time *at = &t->last[i].at[d];
            cost->host_update_ns += at->update_ns;
            at->fetch_ns = at->put_ns = at->save_ns = at->update_ns = 0;
        }
    t->last_ns = -1; /* 'last' is no strategy's any more */
    if (topt_step_run(&t->schedule, &step, &without, &late, NULL, s->err))
        return -1;
    cost->host_wait_ns = topt_max(ns - without, (int64_t)0);
    return 0;
}

/* The host's part in a cost over stages: means over stages, except that activations on the host are those of the stage
 * with most.  After its last backward pass, a stage waits for the host's optimizer. */
static void put_host_of_stages(const struct topt_totals *t,
                               struct topt_strategy_cost *cost)
{
    int64_t stages = t->settings->stages;
    for (int i = 0; i < t->npieces; i++)
        cost->host_update_ns += t->spent[i].at[TOPT_DURING_END].update_ns / stages;
    cost->host_bytes += t->layers.summed.host_bytes / stages;
    cost->host_wait_ns =
        topt_min(cost->host_wait_ns + cost->host_update_ns, cost->sum.network_ns);
    cost->sum.network_ns -= cost->host_wait_ns;
}

/* Adds the part of asynchronous communication that the schedule exposes. */
static int add_exposed(struct total *s)
{
    struct topt_fragment_cost *sum = &s->cost->sum;
    int64_t all = 0, left, ns;
    int bad = __builtin_add_overflow(sum->compute_ns, sum->network_ns, &left);
    for (int b = 0; b < TOPT_BASIS_COUNT; b++)
        bad |= __builtin_add_overflow(all, sum->async_ns[b], &all);
    /* Beside a move a device may take a hundred times as long. */
    if (bad || left > INT64_MAX / 256 || all > INT64_MAX / 256)
        return topt_fail(s->err, TOPT_ERR_LIMIT, "the time of a step overflows");
    if (schedule(s->t, &ns, s->err))
        return -1;
    sum->compute_ns += s->t->last_late_ns;
    sum->basis_ns[TOPT_BASIS_ANALYTIC] += s->t->last_late_ns;
    if (s->t->settings->offload && find_host_wait(s, ns))
        return -1;
    left = ns - sum->compute_ns - sum->network_ns - s->cost->host_wait_ns;
    sum->basis_ns[TOPT_BASIS_ANALYTIC] += s->cost->host_wait_ns;
    sum->network_ns += left;
    for (int b = 0; b < TOPT_BASIS_COUNT; b++) {
        int64_t part =
            all ? (int64_t)((double)left * (double)sum->async_ns[b] / (double)all) : 0;
        sum->basis_ns[b] += part;
        left -= part;
        all -= sum->async_ns[b];
    }
    return 0;
}

int topt_totals_sum(struct topt_totals *t, const struct topt_strategy *st,
                    const struct topt_pieces *p, struct topt_strategy_cost *ret,
                    struct topt_error *err)
{
    struct topt_strategy_cost cost = {.time_ns = 0};
    struct total s = {.t = t, .pieces = p, .cost = &cost, .err = err};
    if (topt_recompute_check(t->model, t->settings, st, &t->recomputation, err) ||
        find_spans(&s) || add_all(&s) ||
        (t->spent && !t->layers.stays && add_exposed(&s)))
        return -1;
    cost.transient_cap = topt_round_transient(cost.sum.transient_bytes);
    cost.at_loss = p->op[t->model->loss]->transient_bytes == cost.sum.transient_bytes;
    cost.sum.transient_bytes = 0; /* that is no sum */
    cost.crossing = s.spans->crossing;
    cost.recomputed_bytes = topt_recomputed_at_once(t->model, t->settings, t->recomputed);
    if (t->layers.stays) {
        fold_bytes(t);
        topt_layers_sum(&t->layers);
        t->layers.summed = cost.sum;
        *ret = cost;
        /* Other groups must be filled first, or units alone are asked for. */
        if (t->layers.whole || t->layers.units_only)
            return 0;
        if (topt_stages_cost(&t->layers, st, ret, err))
            return -1;
        put_host_of_stages(t, ret);
        return 0;
    }
    if (t->bytes)
        put_held(t, &cost);
    cost.time_ns = cost.sum.compute_ns + cost.sum.network_ns + cost.host_wait_ns;
    cost.host_bytes = cost.sum.host_bytes + t->saved_bytes;
    cost.memory_bytes =
        cost.recomputed_bytes + cost.transient_cap + cost.crossing * cost.crossing_cap;
    for (int i = 0; i <= TOPT_CLASS_KEPT; i++)
        cost.memory_bytes += cost.sum.class_bytes[i];
    *ret = cost;
    return 0;
}

/* ---- what costs the same ----------------------------------------------------------- */

/* In frameworks (by_unit) a table costs other bytes than a tensor between operators. */
static int from_table(const struct topt_model *m, const struct topt_tensor *t)
{
    static const struct topt_settings framework = {.by_unit = 1};
    return topt_is_table(m, &framework, t->producer);
}

int topt_same_tensor(const struct topt_model *m, int a, int b)
{
    const struct topt_tensor *x, *y;
    if (a == TOPT_NO_TENSOR || b == TOPT_NO_TENSOR)
        return a == b;
    x = &m->tensor[a];
    y = &m->tensor[b];
    return x->ndim == y->ndim && x->needs_gradient == y->needs_gradient &&
           from_table(m, x) == from_table(m, y) && !memcmp(x->dim, y->dim, sizeof x->dim);
}

int topt_same_op(const struct topt_model *m, int a, int b)
{
    const struct topt_op *x = &m->op[a], *y = &m->op[b];
    if (m->alike[a] != m->alike[b])
        return 0;
    for (int o = 0; o < x->spec->noperands; o++)
        if (!topt_same_tensor(m, x->tensor[o], y->tensor[o]))
            return 0;
    return 1;
}

/* ---- pieces one by one ------------------------------------------------------------- */

int topt_pieces_init(struct topt_pieces *p, const struct topt_model *m)
{
    p->op = calloc((size_t)m->nops + 1, sizeof *p->op);
    p->hub = calloc((size_t)m->ntensors + 1, sizeof *p->hub);
    p->waiting = calloc((size_t)m->ntensors + 1, sizeof *p->waiting);
    return p->op && p->hub && p->waiting ? 0 : -1;
}

void topt_pieces_fini(struct topt_pieces *p)
{
    free(p->op);
    free(p->hub);
    free(p->waiting);
}

/* The plainest source of pieces: each fragment is written by itself, except that alike operators with equal
 * configurations share the first one's. */
struct plain {
    const struct topt_costing *k;
    const struct topt_strategy *st;
    struct topt_pieces pieces;
    struct topt_fragment_cost *op, *hub; /* which they point into; owned */
    struct topt_error *err;
};

static int cost_own(struct plain *x, int op)
{
    const struct topt_config *c = x->st->config;
    int first = x->k->model->alike[op];
    x->pieces.op[op] = &x->op[op];
    if (first == op || !topt_same_op(x->k->model, first, op) ||
        memcmp(&c[first], &c[op], sizeof *c))
        return topt_cost_op(x->k, op, &c[op], &x->op[op], x->err);
    x->op[op] = x->op[first];
    return 0;
}

static struct topt_edge_end end_of_producer(const struct plain *x, int tensor)
{
    int op = x->k->model->tensor[tensor].producer;
    return topt_edge_producer(x->k, op, &x->st->config[op]);
}

/* The end at which consumers find the tensor: its hub, or its producer. */
static struct topt_edge_end end_of_tensor(const struct plain *x, int tensor)
{
    return x->k->model->tensor[tensor].nconsumers > 1
               ? topt_edge_hub(x->k, &x->st->hub[tensor])
               : end_of_producer(x, tensor);
}

static int join_edge(const struct plain *x, int tensor, const struct topt_edge_end *from,
                     const struct topt_edge_end *to, enum topt_keep keep,
                     struct topt_fragment_cost *sum)
{
    struct topt_edge_cost e;
    return topt_cost_edge(x->k, tensor, from, to, &e, x->err) ||
                   topt_cost_join(sum, topt_edge_choice(&e, keep), x->err)
               ? -1
               : 0;
}

static int join_inputs(const struct plain *x, int op)
{
    const struct topt_op *o = &x->k->model->op[op];
    int64_t transient = x->op[op].transient_bytes;
    for (int i = 0; i < o->ninputs; i++) {
        int tensor = topt_input_tensor(o, i);
        struct topt_edge_end from = end_of_tensor(x, tensor);
        struct topt_edge_end to =
            topt_edge_consumer(x->k, op, i, &x->st->config[op], transient);
        if (join_edge(x, tensor, &from, &to,
                      (enum topt_keep)x->st->keep[op * TOPT_MAX_INPUTS + i], &x->op[op]))
            return -1;
    }
    return 0;
}

static int cost_tensor(const struct plain *x, int tensor)
{
    int has_hub = x->k->model->tensor[tensor].nconsumers > 1;
    struct topt_fragment_cost *hub = &x->hub[tensor];
    struct topt_edge_end from = end_of_producer(x, tensor);
    struct topt_edge_end to = end_of_tensor(x, tensor);
    x->pieces.waiting[tensor] = topt_span_bytes(x->k, tensor, &to.value);
    x->pieces.hub[tensor] = has_hub ? hub : NULL;
    return has_hub && (topt_cost_hub(x->k, tensor, &x->st->hub[tensor], hub, x->err) ||
                       join_edge(x, tensor, &from, &to, TOPT_KEEP_AFTER, hub))
               ? -1
               : 0;
}

static int cost_pieces(struct plain *x)
{
    for (int i = 0; i < x->k->model->nops; i++)
        if (cost_own(x, i))
            return -1;
    for (int i = 0; i < x->k->model->nops; i++)
        if (join_inputs(x, i))
            return -1;
    for (int t = 0; t < x->k->model->ntensors; t++)
        if (cost_tensor(x, t))
            return -1;
    return 0;
}

static int cost_plain(const struct topt_costing *k, const struct topt_strategy *st,
                      struct topt_totals *t, struct topt_strategy_cost *ret,
                      struct topt_error *err)
{
    struct plain x = {.k = k, .st = st, .err = err};
    x.op = calloc((size_t)k->model->nops + 1, sizeof *x.op);
    x.hub = calloc((size_t)k->model->ntensors + 1, sizeof *x.hub);
    int rc = ((topt_pieces_init(&x.pieces, k->model) || !x.op || !x.hub) &&
              topt_nomem(err, "a strategy's cost")) ||
             cost_pieces(&x) || topt_totals_sum(t, st, &x.pieces, ret, err);
    topt_pieces_fini(&x.pieces);
    free(x.op);
    free(x.hub);
    return rc ? -1 : 0;
}

int topt_cost_strategy(const struct topt_costing *k, const struct topt_strategy *st,
                       struct topt_strategy_cost *ret, struct topt_error *err)
{
    struct topt_group_costings g;
    struct topt_totals *t = calloc(TOPT_HW_GROUPS, sizeof *t);
    int rc =
        t ? topt_group_costings_init(&g, k, err) : topt_nomem(err, "a strategy's cost");
    if (rc) {
        free(t);
        return -1;
    }
    rc = topt_settings_fit(k->model, k->settings, err);
    for (int i = 0; i < g.n && !rc; i++) {
        rc = topt_totals_init(&t[i], &g.of[i], err);
        if (g.n > 1)
            topt_layers_join(&t[i].layers, k->hw, i + 1 < g.n ? &t[i + 1].layers : NULL);
        rc = rc || cost_plain(&g.of[i], st, &t[i], ret, err);
    }
    if (!rc && g.n > 1)
        rc = topt_stages_cost(&t[0].layers, st, ret, err);
    for (int i = 0; i < g.n; i++)
        topt_totals_fini(&t[i]);
    topt_group_costings_fini(&g);
    free(t);
    return rc ? -1 : 0;
}
