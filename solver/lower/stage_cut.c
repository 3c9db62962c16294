/* stage_cut.c - how units are cut into the chunks of stages.
 *
 *     units     | embedding | layer 0 | layer 1 | ...            | layer n | norm, head, loss |
 *     chunks    |        chunk 0         |    chunk 1    | ...   |          the last          |
 *
 * The time of the slowest chunk decides, and bisection finds the least such time: for a given time, each chunk from the
 * last one on takes as many units as it can.  Chunks of equally many layers, which frameworks prefer, are taken where they
 * are about as good as any cut.  The first and the last chunk may have no layer. */
#include "stage_cut.h"
#include "topt_minmax.h"

#include <string.h>

/* A lower bound of the bytes that a unit adds to its stage: parameters and states, and the activations of the micro-batches
 * in flight. */
static int64_t unit_bytes(const struct topt_stage_state *x, int unit, int chunk)
{
    const struct topt_unit_sums *u = &topt_chunk_layers(x, chunk)->unit[unit];
    return u->stays + x->ahead[chunk] * u->kept;
}

/* Can units be cut into chunks of which none takes longer than 'most', no stage holds more than 'room' bytes (0: any), and
 * no unlike stage more than its own room?  With 'spread' each chunk takes about an equal share of the time that is left,
 * else all that it can.  x->next becomes the time of the slowest chunk, or, if units can't be cut so, the least time that
 * some chunk would take with one unit more: below that it stays so.  With 'room' it is the same of a stage's bytes. */
static int cut_by(struct topt_stage_state *x, int64_t most, int64_t room, int spread)
{
    int at = x->nunits, unlike = topt_stages_unlike(x), by_bytes = room > 0;
    int64_t left = 0, slowest = 0, next = INT64_MAX, held[TOPT_MAX_STAGES] = {0};
    for (int i = 0; i < at && spread; i++)
        left += x->t->unit[i].passes_ns;
    x->cut[x->nchunks] = at;
    for (int c = x->nchunks - 1; c >= 0; c--) {
        int stage = unlike || by_bytes ? topt_stage_of(x, c) : 0;
        const struct topt_unit_sums *unit = x->of[stage]->unit;
        int64_t sum = 0, more = 0, with = INT64_MAX, *bytes = &held[stage];
        room = unlike ? x->room[c] : room;
        int least = at - 1; /* each of the chunks before has a unit, too */
        int64_t share = spread ? left / (c + 1) : most;
        while (at > c && (at > least || (sum + unit[at - 1].passes_ns <= most &&
                                         sum + unit[at - 1].passes_ns / 2 <= share))) {
            more = room ? unit_bytes(x, at - 1, c) : 0;
            if (at <= least && *bytes + more > room) {
                with = *bytes + more;
                break;
            }
            *bytes += more;
            sum += unit[--at].passes_ns;
        }
        if (by_bytes)
            with = *bytes > room ? *bytes : with;
        else
            with = sum > most ? sum : at > c ? sum + unit[at - 1].passes_ns : INT64_MAX;
        x->next = next = topt_min(next, with);
        if (sum > most || *bytes > room)
            return 0;
        slowest = topt_max(slowest, by_bytes ? *bytes : sum);
        left -= sum;
        x->cut[c] = at;
    }
    x->next = at ? next : slowest;
    return at == 0;
}

/* Can units be cut so that no chunk takes longer than 'most'? */
static int cut_by_time(struct topt_stage_state *x, int64_t most)
{
    return cut_by(x, most, 0, 0);
}

/* ... no longer than the slowest chunk, and that no stage holds more than 'room' bytes? */
static int cut_by_room(struct topt_stage_state *x, int64_t room)
{
    return cut_by(x, x->slowest_ns, room, 0);
}

/* ... so that the chunks of a stage take no longer than 'most' together?  Each has an equal share of the time that later
 * chunks of its stage left. */
static int cut_by_stages(struct topt_stage_state *x, int64_t most)
{
    int64_t held[TOPT_MAX_STAGES] = {0};
    int at = x->nunits, taken[TOPT_MAX_STAGES] = {0};
    x->cut[x->nchunks] = at;
    x->next = most + 1;
    for (int c = x->nchunks - 1; c >= 0; c--) {
        int least = at - 1, stage = topt_stage_of(x, c);
        int64_t *sum = &held[stage];
        int64_t until = *sum + (most - *sum) / (x->shape.chunks - taken[stage]++);
        const struct topt_unit_sums *unit = x->of[stage]->unit;
        while (at > c && (at > least || *sum + unit[at - 1].passes_ns <= until))
            *sum += unit[--at].passes_ns;
        if (*sum > most)
            return 0;
        x->cut[c] = at;
    }
    x->next -= at == 0;
    return at == 0;
}

/* The least value by which units can be cut, between two of which the larger one is such. */
static int64_t least_of(struct topt_stage_state *x, int64_t low, int64_t high,
                        int (*cuts)(struct topt_stage_state *x, int64_t value))
{
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (cuts(x, mid))
            high = x->next;
        else
            low = topt_max(mid + 1, x->next);
    }
    return high;
}

/* Cuts units into chunks of equally many layers; the time of the slowest, or 0 where layers do not divide evenly. */
static int64_t cut_evenly(struct topt_stage_state *x)
{
    const struct topt_stage_units *u = &x->t->units;
    int each = u->layers / x->nchunks;
    int64_t most = 0;
    for (int c = 0; c <= x->nchunks; c++)
        x->cut[c] = c == 0 ? 0 : c < x->nchunks ? u->first + c * each : u->n;
    for (int c = 0; c < x->nchunks && each * x->nchunks == u->layers; c++) {
        int64_t sum = 0;
        for (int i = x->cut[c]; i < x->cut[c + 1]; i++)
            sum += topt_chunk_layers(x, c)->unit[i].passes_ns;
        most = topt_max(most, sum);
    }
    return most;
}

/* Cuts units so that each chunk has the number of layers that is asked for. */
static void cut_as_given(struct topt_stage_state *x, const int16_t *layers)
{
    for (int c = 1; c < x->nchunks; c++)
        x->cut[c] = (c > 1 ? x->cut[c - 1] : x->t->units.first) + layers[c - 1];
}

/* Cuts fewer units than chunks: one for each, and none for those before the last. */
static void cut_singly(struct topt_stage_state *x)
{
    for (int c = 0; c <= x->nchunks; c++)
        x->cut[c] = c < x->nunits ? c : x->nunits - (c < x->nchunks);
}

/* Cuts units so that the slowest chunk is fastest, with an even cut ('even': its slowest chunk) where that takes up to 1 %
 * more.  If no such cut leaves unlike stages their room, the room does not count. */
static void cut_by_slowest(struct topt_stage_state *x, int64_t even)
{
    int64_t all = 0, low = 0, sum = 0;
    int kinds = topt_stages_unlike(x) ? x->shape.stages : 1;
    for (int i = 0; i < x->nunits; i++) {
        int64_t least = INT64_MAX, most = 0;
        for (int s = 0; s < kinds; s++) {
            least = topt_min(least, x->of[s]->unit[i].passes_ns);
            most = topt_max(most, x->of[s]->unit[i].passes_ns);
        }
        low = topt_max(low, least);
        sum += least;
        all += most;
    }
    /* A chunk of equal stages that takes all it can below the mean and one unit more takes more than the mean. */
    int64_t mean = sum / x->nchunks, high = kinds == 1 ? mean + 1 + low : all;
    low = topt_max(low, mean);
    if (even && even <= low + low / 100 && !x->room[0] && !x->lean) {
        (void)cut_evenly(x);
        return;
    }
    int64_t most = x->slowest_ns = least_of(x, low, high, cut_by_time);
    if (even && even <= most + most / 100 && !x->room[0])
        (void)cut_evenly(x);
    else if (most == x->t->unit[x->nunits - 1].passes_ns &&
             x->nchunks > x->shape.stages) {
        /* The last unit (the loss, and modules that predict further tokens) alone takes longer than any other chunk need:
         * its stage's other chunks get fewer layers. */
        (void)cut_by_stages(x, least_of(x, low, all, cut_by_stages));
        return;
    } else if ((topt_stages_unlike(x) || !cut_by(x, most, 0, 1)) &&
               !cut_by_time(x, most)) {
        memset(x->room, 0, sizeof x->room);
        (void)cut_by_time(x, most);
    }
    if (x->lean &&
        !cut_by_room(x, least_of(x, 1, topt_stages_least_bytes(x), cut_by_room)))
        (void)cut_by_time(x, most);
}

void topt_stages_cut(struct topt_stage_state *x)
{
    for (int s = 0; s < x->shape.stages; s++) {
        struct topt_order_plan plan;
        topt_order_plan(x->order, &x->shape, s, &plan);
        for (int own = 0; own < x->shape.chunks; own++)
            x->ahead[topt_chunk_of(x, s, own)] = topt_order_ahead(&plan, own);
    }
    int64_t even = cut_evenly(x);
    if (x->t->given)
        cut_as_given(x, x->t->given);
    else if (even && x->t->settings->even_stages)
        return;
    else if (x->nchunks > x->nunits)
        cut_singly(x);
    else
        cut_by_slowest(x, even);
}

int64_t topt_stages_least_bytes(const struct topt_stage_state *x)
{
    int64_t held[TOPT_MAX_STAGES] = {0}, most = 0;
    int last = x->shape.stages - 1;
    if (topt_stages_share(x))
        held[last] += x->of[last]->unit[x->nunits].stays;
    for (int c = 0; c < x->nchunks; c++) {
        int64_t *bytes = &held[topt_stage_of(x, c)];
        for (int u = x->cut[c]; u < x->cut[c + 1]; u++)
            *bytes += unit_bytes(x, u, c);
        most = topt_max(most, *bytes);
    }
    return most;
}

int topt_stages_room(const struct topt_stage_state *x, int64_t *room)
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
