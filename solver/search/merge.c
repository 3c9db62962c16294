/* merge.c - the union of many sorted lists of points, reduced while it is formed.
 *
 * One entry of a new table is the union, over the values of the variable that is eliminated,
 * of products of two frontiers.  A product of a long list and a short one is as many copies
 * of the long list as the short one has points, each shifted.  So an entry is the union of
 * sorted lists (memory rises, time falls), and its frontier is a bi-objective merge:
 *
 *     a heap holds the next point of each list, lightest on top; a popped point stays if it
 *     is faster than the last that stayed; if not, its list gallops (doubling steps, then
 *     binary search) to its first point that still would be.
 *
 * Nothing is sorted, and dominated stretches are skipped without being looked at.  Before
 * the heap is built, one pass finds the lightest point; lists that end slower than that
 * never enter.
 *
 * With a tolerance delta a point also goes when the last that stayed (which is no heavier)
 * is at most (1 + delta) times as slow.  Memory is never traded, so what fits a limit in
 * truth has a witness that fits. */
#include "merge.h"

#include <stdlib.h>

void topt_merge_fini(struct merge *m)
{
    free(m->source);
    free(m->heap);
    free(m->cost);
    free(m->back);
}

static int fail(struct merge *m, enum topt_err code)
{
    m->failed = code;
    return -1;
}

static int grow_sources(struct merge *m, size_t need)
{
    size_t cap = m->cap_sources ? m->cap_sources : 256;
    while (cap < need)
        cap *= 2;
    if (cap == m->cap_sources)
        return 0;
    struct merge_source *s = realloc(m->source, cap * sizeof *s);
    if (!s)
        return fail(m, TOPT_ERR_NOMEM);
    m->source = s;
    m->cap_sources = cap;
    return 0;
}

static int grow_heap(struct merge *m)
{
    if (m->cap_heap >= m->cap_sources)
        return 0;
    struct merge_node *h = realloc(m->heap, m->cap_sources * sizeof *h);
    if (!h)
        return fail(m, TOPT_ERR_NOMEM);
    m->heap = h;
    m->cap_heap = m->cap_sources;
    return 0;
}

static int grow_output(struct merge *m)
{
    size_t cap = m->cap ? m->cap * 2 : 4096;
    if ((int64_t)(cap * (sizeof *m->cost + sizeof *m->back)) / 2 > m->max_bytes) {
        m->too_big = 1;
        return fail(m, TOPT_ERR_LIMIT);
    }
    struct topt_cost *c = realloc(m->cost, cap * sizeof *c);
    if (c)
        m->cost = c;
    struct back *b = realloc(m->back, cap * sizeof *b);
    if (b)
        m->back = b;
    if (!c || !b)
        return fail(m, TOPT_ERR_NOMEM);
    m->cap = cap;
    return 0;
}

int topt_merge_add(struct merge *m, struct run a, struct run b)
{
    int list_is_b = b.n > a.n;
    struct run list = list_is_b ? b : a, fixed = list_is_b ? a : b;
    if (!fixed.n)
        return 0;
    if (m->nsources + fixed.n > UINT32_MAX)
        return fail(m, TOPT_ERR_LIMIT);
    if (m->nsources + fixed.n > m->cap_sources && grow_sources(m, m->nsources + fixed.n))
        return -1;
    for (uint32_t i = 0; i < fixed.n; i++)
        m->source[m->nsources++] = (struct merge_source){
            .list = list.cost,
            .memory = fixed.cost[i].memory,
            .time = fixed.cost[i].time,
            .end = list.n,
            .base = list.base,
            .fixed = fixed.base + i,
            .list_is_b = list_is_b,
        };
    return 0;
}

/* A time past 2^63 counts as the slowest there is: where anything lighter stayed it is
 * dominated, whatever it is; where nothing did the merge fails. */
static inline int64_t time_at(const struct merge_source *s, uint32_t pos)
{
    int64_t t;
    return add_overflows(s->list[pos].time, s->time, &t) ? INT64_MAX : t;
}

/* Memory of the source's point into '*ret': 1; 0 where it is past the limit and so are the
 * rest of the list; -1 overflow. */
static inline int memory_at(struct merge *m, const struct merge_source *s, uint32_t pos,
                            int64_t *ret)
{
    if (add_overflows(s->list[pos].memory, s->memory, ret))
        return m->limit != INT64_MAX ? 0 : fail(m, TOPT_ERR_LIMIT);
    return *ret <= m->limit;
}

/* The first position after 'pos' whose time is below 'below', or the end; the time at 'pos'
 * is not.  Doubling steps, then a binary search without branches. */
static uint32_t gallop(const struct merge_source *s, uint32_t pos, int64_t below)
{
    const struct topt_cost *list = s->list;
    int64_t own = below - s->time; /* what the list's own time has to be below */
    uint32_t step = 1, low = pos, rest;
    while (s->end - low > step && list[low + step].time >= own) {
        low += step;
        step *= 2;
    }
    rest =
        s->end - low < step ? s->end - low : step; /* the answer is in low+1..low+rest */
    while (rest > 1) {
        uint32_t half = rest / 2;
        low += list[low + half].time >= own ? half : 0;
        rest -= half;
    }
    return low + 1;
}

/* The time that a later point has to be below, after one of time 't' stayed. */
static int64_t threshold(const struct merge *m, int64_t t)
{
    if (m->shrink >= 1)
        return t;
    double below = (double)t * m->shrink * (1 + 0x1p-48) + 1;
    return below < (double)t ? (int64_t)below : t;
}

static inline int emit(struct merge *m, const struct merge_source *s, uint32_t pos,
                       struct topt_cost cost)
{
    if (m->n == m->cap && grow_output(m))
        return -1;
    uint32_t at = s->base + pos;
    m->cost[m->n] = cost;
    m->back[m->n] =
        s->list_is_b ? (struct back){s->fixed, at} : (struct back){at, s->fixed};
    m->n++;
    return 0;
}

static void sift_down(struct merge_node *heap, size_t n, size_t i)
{
    struct merge_node node = heap[i];
    for (;;) {
        size_t kid = 2 * i + 1;
        if (kid >= n)
            break;
        kid += kid + 1 < n && heap[kid + 1].memory < heap[kid].memory;
        if (heap[kid].memory >= node.memory)
            break;
        heap[i] = heap[kid];
        i = kid;
    }
    heap[i] = node;
}

/* The lightest first point (fastest among equals) gives a time that every list has to get
 * below; lists that do become heap nodes.  Also the least time of all. */
static int open_lists(struct merge *m, size_t *ret_n, int64_t *ret_fastest)
{
    int64_t light = INT64_MAX, time = INT64_MAX, fastest = INT64_MAX;
    for (size_t i = 0; i < m->nsources; i++) {
        const struct merge_source *s = &m->source[i];
        int64_t memory, t = time_at(s, 0), last = time_at(s, s->end - 1);
        int fits = memory_at(m, s, 0, &memory);
        if (fits < 0)
            return -1;
        if (!fits)
            continue;
        if (memory < light || (memory == light && t < time)) {
            light = memory;
            time = t;
        }
        if (last < fastest)
            fastest = last;
    }
    size_t n = 0;
    for (size_t i = 0; i < m->nsources; i++) {
        const struct merge_source *s = &m->source[i];
        int64_t memory;
        if (memory_at(m, s, 0, &memory) <= 0)
            continue;
        uint32_t pos = 0;
        if (memory != light || time_at(s, 0) > time) {
            if (time_at(s, s->end - 1) >= time)
                continue;
            pos = time_at(s, 0) >= time ? gallop(s, 0, time) : 0;
            if (memory_at(m, s, pos, &memory) <= 0) {
                if (m->failed)
                    return -1;
                continue;
            }
        }
        m->heap[n++] = (struct merge_node){memory, (uint32_t)i, pos};
    }
    for (size_t i = n / 2; i-- > 0;)
        sift_down(m->heap, n, i);
    *ret_n = n;
    *ret_fastest = fastest;
    return 0;
}

/* Look at the lightest point; keep it or not; move its list on.  Returns the list's new
 * position. */
static inline int take(struct merge *m, size_t start, int64_t *below, uint32_t *ret_pos)
{
    struct merge_node top = m->heap[0];
    const struct merge_source *s = &m->source[top.source];
    int64_t t = time_at(s, top.pos);
    *ret_pos = top.pos + 1;
    if (t >= *below) {
        if (m->n == start) /* nothing lighter stayed: the time itself overflows */
            return fail(m, TOPT_ERR_LIMIT);
        *ret_pos = gallop(s, top.pos, *below);
        return 0;
    }
    if (m->n > start && m->cost[m->n - 1].memory == top.memory)
        m->n--;
    *below = threshold(m, t);
    return emit(m, s, top.pos, (struct topt_cost){top.memory, t});
}

static int poll(struct merge *m)
{
    if (++m->polls % 4096 == 0 && topt_search_canceled(m->options))
        return fail(m, TOPT_ERR_CANCELED);
    return 0;
}

static int merge_lists(struct merge *m)
{
    size_t n, start = m->n;
    int64_t fastest, below = INT64_MAX;
    if (grow_heap(m) || open_lists(m, &n, &fastest))
        return -1;
    while (n && below > fastest) {
        uint32_t pos;
        m->products++;
        if (poll(m) || take(m, start, &below, &pos))
            return -1;
        const struct merge_source *s = &m->source[m->heap[0].source];
        int more = pos < s->end ? memory_at(m, s, pos, &m->heap[0].memory) : 0;
        if (more < 0)
            return -1;
        m->heap[0].pos = pos;
        if (!more)
            m->heap[0] = m->heap[--n];
        if (n)
            sift_down(m->heap, n, 0);
    }
    return 0;
}

/* One list needs no heap: it is its own frontier. */
static int copy_list(struct merge *m)
{
    const struct merge_source *s = &m->source[0];
    int64_t below = INT64_MAX, memory;
    size_t start = m->n;
    for (uint32_t i = 0; i < s->end; i++) {
        int fits = memory_at(m, s, i, &memory);
        if (fits <= 0)
            return fits;
        int64_t t = time_at(s, i);
        m->products++;
        if (t == INT64_MAX && m->n == start)
            return fail(m, TOPT_ERR_LIMIT);
        if (t >= below)
            continue;
        below = threshold(m, t);
        if (emit(m, s, i, (struct topt_cost){memory, t}))
            return -1;
    }
    return 0;
}

int topt_merge_run(struct merge *m)
{
    int rc = 0;
    if (m->nsources == 1)
        rc = copy_list(m);
    else if (m->nsources)
        rc = merge_lists(m);
    m->nsources = 0;
    return rc;
}
