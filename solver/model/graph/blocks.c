/* blocks.c - repeated blocks of a model, found from the operators alone.
 *
 * Operator i matches operator i + p where both are alike and each input of the second
 * comes from p operators after where the first one's comes from, or from the very same
 * tensor.  A stretch of matches has period p, and every window of p operators in it is
 * a block as good as the next: taken is the one that most operators are in blocks of,
 * then the one whose blocks hand the fewest tensors on.  The first block may get its
 * inputs from anywhere.
 *
 * The best run is taken out and what is left on both sides is searched again, so long as
 * that takes a fraction of a second: a model of a thousand layers that all differ has
 * runs everywhere that gain nothing. */
#include "model_graph.h"
#include "topt_hash.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PERIOD = 1024, MOST_LOOKS = 1 << 25 };

struct finder {
    const struct topt_model *m;
    struct topt_blocks *b;
    int64_t left; /* operators that may still be looked at */
};

struct run {
    int first, length, count, handed; /* 'handed': tensors that leave a block */
};

/* ---- alike operators --------------------------------------------------------------- */

static int same_operand(const struct topt_operand *a, const struct topt_operand *b)
{
    return a->role == b->role && a->present == b->present &&
           !memcmp(a->dim, b->dim, sizeof a->dim);
}

static int same_op(const struct topt_op *a, const struct topt_op *b)
{
    if (a->spec != b->spec || memcmp(a->attrs, b->attrs, sizeof *a->attrs) ||
        memcmp(a->count, b->count, TOPT_MAX_OPDIMS * sizeof *a->count) ||
        topt_role_split(a->role) != topt_role_split(b->role))
        return 0;
    for (int o = 0; o < a->spec->noperands; o++)
        if (!same_operand(&a->operand[o], &b->operand[o]))
            return 0;
    return 1;
}

/* Both in units, or neither, as far as these are known; of losses the last one is like no other. */
static int same_side(const struct topt_model *m, int a, int b)
{
    return (a == m->loss) != (b == m->loss)
               ? 0
               : !m->unit || (m->unit[a] < 0) == (m->unit[b] < 0);
}

/* A hash of the members that same_op compares, so that alike operators have the same one. */
static uint64_t hash_op(const struct topt_model *m, int i)
{
    const struct topt_op *op = &m->op[i];
    uint64_t h = topt_hash(op->attrs, sizeof *op->attrs, 0);
    h = topt_hash(op->count, TOPT_MAX_OPDIMS * sizeof *op->count, h);
    for (int o = 0; o < op->spec->noperands; o++)
        h = topt_hash(op->operand[o].dim, sizeof op->operand[o].dim, h);
    return topt_hash(&m->repeats[i], sizeof m->repeats[i], h);
}

/* The first of each kind stands in a chain of those of one hash. */
static int find_alike(struct topt_model *m, struct topt_error *err)
{
    size_t n = (size_t)m->nops, size = 1;
    while (size < 2 * n)
        size *= 2;
    int *head = malloc(size * sizeof *head), *next = malloc((n + 1) * sizeof *next);
    if (!head || !next) {
        free(head);
        free(next);
        return topt_nomem(err, "the model");
    }
    memset(head, -1, size * sizeof *head);
    for (int i = 0; i < m->nops; i++) {
        int *chain = &head[hash_op(m, i) & (size - 1)], k = *chain;
        while (k >= 0 && (m->repeats[k] != m->repeats[i] || !same_side(m, k, i) ||
                          !same_op(&m->op[k], &m->op[i])))
            k = next[k];
        m->alike[i] = k < 0 ? i : k;
        if (k < 0) {
            next[i] = *chain;
            *chain = i;
        }
    }
    free(head);
    free(next);
    return 0;
}

/* ---- runs -------------------------------------------------------------------------- */

static int matches(const struct finder *f, int i, int p)
{
    if (f->m->alike[i] != f->m->alike[i + p])
        return 0;
    for (int k = 0; k < f->m->op[i].ninputs; k++) {
        int a = topt_input_producer(f->m, &f->m->op[i], k),
            b = topt_input_producer(f->m, &f->m->op[i + p], k);
        if (a != b && b - a != p)
            return 0;
    }
    return 1;
}

/* May operator 'i', 'p' operators after its like, be in a block of a run that starts at
 * 'first'?  What it reads must not be older than the block before. */
static int fits(const struct finder *f, int i, int p, int first)
{
    int start = first + (i - first) / p * p;
    if (f->m->alike[i] != f->m->alike[i - p])
        return 0;
    for (int k = 0; k < f->m->op[i].ninputs; k++) {
        int a = topt_input_producer(f->m, &f->m->op[i - p], k),
            b = topt_input_producer(f->m, &f->m->op[i], k);
        int ours = b >= start - p && b - a == p;
        int outside = b < first && b == a;
        int head = start == first + p && b >= first && b < start && a < first;
        if (!ours && !outside && !head)
            return 0;
    }
    return 1;
}

/* Does a tensor of the block that starts at 'start' leave it? */
static int leaves(const struct finder *f, const int *last, int op, int start, int p)
{
    const struct topt_op *o = &f->m->op[op];
    return last[topt_output_tensor(o)] >= start + p;
}

static int covered(const struct run *r)
{
    return r->count >= 2 ? r->count * r->length : 0;
}

/* The blocks of period 'p' from 'first' on, before 'end'.  What they hand on is counted
 * where they cover as much as 'best' alone, as most windows don't. */
static struct run measure(const struct finder *f, const int *last, int first, int p,
                          int end, const struct run *best)
{
    struct run r = {first, p, 1, 0};
    int i = first + p;
    while (i < end && fits(f, i, p, first))
        i++;
    r.count = (i - first) / p;
    if (!covered(&r) || covered(&r) < covered(best))
        return r;
    for (int op = first; op < first + p && op < end; op++)
        r.handed += leaves(f, last, op, first, p);
    return r;
}

static int better(const struct run *a, const struct run *b)
{
    if (covered(a) != covered(b))
        return covered(a) > covered(b);
    return covered(a) && a->length == b->length && a->handed < b->handed;
}

/* Several of the best run's blocks at once cover no more than it does. */
static int multiple(const struct run *best, int p, int from)
{
    return best->count >= 2 && p % best->length == 0 &&
           from >= best->first - best->length &&
           from < best->first + best->length * best->count;
}

/* Try every window of a stretch of matches [from, to); the first block may begin
 * before it, since its inputs don't match. */
static void try_stretch(const struct finder *f, const int *last, int lo, int hi, int p,
                        int from, int to, struct run *best)
{
    int first = from - p + 1 > lo ? from - p + 1 : lo;
    if ((to + p - first) / p * p < covered(best) || multiple(best, p, from))
        return;
    for (int s = first; s < from + p && s + 2 * p <= hi; s++) {
        struct run r = measure(f, last, s, p, hi, best);
        if (better(&r, best))
            *best = r;
    }
}

static void try_period(const struct finder *f, const int *last, int lo, int hi, int p,
                       struct run *best)
{
    for (int i = lo; i + p < hi; i++) {
        int from = i;
        while (i + p < hi && matches(f, i, p))
            i++;
        if (i > from)
            try_stretch(f, last, lo, hi, p, from, i, best);
    }
}

static void take(struct finder *f, const struct run *r)
{
    struct topt_blocks *b = f->b;
    for (int i = 0; i < r->length * r->count; i++) {
        b->kind[r->first + i] = b->nkinds;
        b->block[r->first + i] = i / r->length;
        b->position[r->first + i] = i % r->length;
    }
    b->of[b->nkinds++] = (struct topt_block_kind){r->first, r->length, r->count};
}

/* May blocks of 'p' operators cover more of [lo, hi) than 'best'?  Wherever a run of so many begins,
 * it has the middle in it, and from its third block on each operator matches the one before. */
static int may_cover(const struct finder *f, int lo, int hi, int p,
                     const struct run *best)
{
    int most = covered(best);
    if ((hi - lo) / p * p <= most)
        return 0;
    for (int i = hi - most + p; i < lo + most - p; i++)
        if (!matches(f, i, p))
            return 0;
    return 1;
}

/* Operators [lo, hi), of which none is in a block yet.  Recursion is as deep as there
 * are kinds side by side. */
static void search(struct finder *f, const int *last, int lo, int hi)
{
    struct run best = {0};
    for (int p = 1; p <= MAX_PERIOD && 2 * p <= hi - lo && f->left > 0; p++) {
        f->left -= hi - lo;
        if (may_cover(f, lo, hi, p, &best))
            try_period(f, last, lo, hi, p, &best);
    }
    if (best.count < 2)
        return;
    take(f, &best);
    search(f, last, lo, best.first);
    search(f, last, best.first + best.length * best.count, hi);
}

/* ---- the whole --------------------------------------------------------------------- */

int *topt_model_last_uses(const struct topt_model *m)
{
    int *last = calloc((size_t)m->ntensors + 1, sizeof *last);
    for (int i = 0; last && i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++)
            last[topt_input_tensor(&m->op[i], k)] = i;
    return last;
}

static int find_blocks(const struct topt_model *m, struct topt_blocks *ret,
                       struct topt_error *err)
{
    size_t n = (size_t)m->nops + 1;
    struct finder f = {m, ret, MOST_LOOKS};
    int *last = topt_model_last_uses(m);
    *ret = (struct topt_blocks){.of = calloc(n, sizeof *ret->of),
                                .block = calloc(n, sizeof *ret->block),
                                .position = calloc(n, sizeof *ret->position),
                                .kind = calloc(n, sizeof *ret->kind)};
    int bad = !last || !ret->of || !ret->block || !ret->position || !ret->kind;
    if (bad) {
        topt_blocks_fini(ret);
        topt_nomem(err, "the blocks of a model");
    } else {
        for (int i = 0; i < m->nops; i++)
            ret->block[i] = ret->kind[i] = -1;
        search(&f, last, 0, m->nops);
    }
    free(last);
    return bad ? -1 : 0;
}

void topt_blocks_fini(struct topt_blocks *b)
{
    free(b->of);
    free(b->block);
    free(b->position);
    free(b->kind);
    *b = (struct topt_blocks){0};
}

static void *copy_of(const void *from, size_t n, size_t size)
{
    void *to = malloc((n + 1) * size);
    if (to)
        memcpy(to, from, n * size);
    return to;
}

int topt_model_blocks(const struct topt_model *m, struct topt_blocks *ret,
                      struct topt_error *err)
{
    const struct topt_blocks *b = m->blocks;
    size_t n = (size_t)m->nops;
    *ret = (struct topt_blocks){.nkinds = b->nkinds,
                                .of = copy_of(b->of, (size_t)b->nkinds, sizeof *b->of),
                                .block = copy_of(b->block, n, sizeof *b->block),
                                .position = copy_of(b->position, n, sizeof *b->position),
                                .kind = copy_of(b->kind, n, sizeof *b->kind)};
    if (ret->of && ret->block && ret->position && ret->kind)
        return 0;
    topt_blocks_fini(ret);
    return topt_nomem(err, "the blocks of a model");
}

/* Alike operators tell the blocks, and blocks and units tell operators inside of them from
 * others. */
int topt_model_find_repeats(struct topt_model *m, struct topt_error *err)
{
    m->alike = TOPT_NEW(m->arena, m->nops + 1, int);
    m->repeats = TOPT_NEW(m->arena, m->nops + 1, int);
    m->blocks = calloc(1, sizeof *m->blocks);
    if (!m->alike || !m->repeats || !m->blocks)
        return topt_nomem(err, "the model");
    memset(m->repeats, 0, ((size_t)m->nops + 1) * sizeof *m->repeats);
    if (find_alike(m, err) || find_blocks(m, m->blocks, err))
        return -1;
    for (int i = 0; i < m->nops; i++)
        m->repeats[i] =
            m->blocks->kind[i] >= 0 ? m->blocks->of[m->blocks->kind[i]].count : 0;
    return topt_model_find_units(m, err) || find_alike(m, err) ||
                   topt_model_find_shares(m, err)
               ? -1
               : 0;
}

int topt_model_copy_repeats(struct topt_model *to, const struct topt_model *from,
                            struct topt_error *err)
{
    size_t bytes = ((size_t)from->nops + 1) * sizeof *from->alike;
    to->alike = TOPT_NEW(to->arena, from->nops + 1, int);
    to->repeats = TOPT_NEW(to->arena, from->nops + 1, int);
    to->blocks = calloc(1, sizeof *to->blocks);
    if (!to->alike || !to->repeats || !to->blocks)
        return topt_nomem(err, "the model");
    memcpy(to->alike, from->alike, bytes);
    memcpy(to->repeats, from->repeats, bytes);
    if (topt_model_copy_units(to, from, err))
        return -1;
    return topt_model_blocks(from, to->blocks, err);
}

void topt_model_free_blocks(struct topt_model *m)
{
    if (m->blocks)
        topt_blocks_fini(m->blocks);
    free(m->blocks);
    m->blocks = NULL;
}
