/* moves.c - what it costs to move tensors of one shape between layouts, each pair once.
 *
 * Tables of edges ask for the same pairs again and again: layouts are numbered, and a row
 * of costs is kept for each that something moves from.  What a table needs is asked for
 * first, and then found together: ways from one source share work, and threads share the
 * sources.
 *
 * On many devices ways are what making a problem costs, and few of them matter.  There a
 * move first costs what the bytes say that have to travel (layout/byte_bound.c), in parts
 * of the problem also what a way between orbits takes (layout/symmetry_bound.c), which
 * knows that a byte may have to travel twice, and its exact price only where that is
 * asked for (lazy_pricing.c). */
#include "price.h"
#include "topt_array.h"
#include "topt_hash.h"
#include "topt_index.h"
#include "topt_minmax.h"
#include "topt_symmetry_bound.h"

#include <stdlib.h>
#include <string.h>

/* From one layout to each; there are many. */
struct row {
    int64_t *ns;
    uint8_t *price;     /* enum price */
    int64_t *transient; /* of what is EXACT; NULL: nothing yet, but in place */
    int n;
};
enum price { UNPRICED, BYTE_BOUND, SYMMETRY_BOUND, ASKED, EXACT };

/* A move that was asked for and has no price yet. */
struct asked {
    int from, to;
    const struct topt_route *by;
};

struct topt_moves {
    int tensor; /* of that shape */
    struct topt_shape shape;
    struct asked *asked;
    int nasked, asked_cap;
    int n, cap;
    struct topt_layout *layout;
    int64_t *bytes;                     /* of the largest block */
    struct topt_byte_bound_end *end;    /* where bounds are asked for */
    struct topt_symmetry_bound *orbits; /* of the layouts so far; NULL: not asked for */
    int32_t *orbit;                     /* where these are */
    uint32_t dims;                      /* that layouts split, as bits */
    struct row *row;
    struct topt_index index; /* of layouts */
};

void topt_moves_fini(struct topt_problem *p)
{
    for (int i = 0; !p->of && i < p->nmoves; i++) {
        struct topt_moves *m = p->moves[i];
        for (int k = 0; k < m->n; k++) {
            free(m->row[k].ns);
            free(m->row[k].price);
            free(m->row[k].transient);
        }
        free(m->asked);
        free(m->layout);
        free(m->bytes);
        free(m->end);
        free(m->orbit);
        free(m->row);
        topt_index_fini(&m->index);
        free(m);
    }
    free(p->moves);
    p->moves = NULL;
    p->nmoves = 0;
}

struct topt_moves *topt_moves_of(struct topt_problem *p, int tensor,
                                 struct topt_error *err)
{
    const struct topt_tensor *t = p->k.model->tensor;
    if (p->of)
        p = p->of;
    for (int i = 0; i < p->nmoves; i++) {
        const struct topt_tensor *of = &t[p->moves[i]->tensor];
        if (of->ndim == t[tensor].ndim &&
            !memcmp(of->dim, t[tensor].dim, sizeof of->dim[0] * (size_t)of->ndim))
            return p->moves[i];
    }
    struct topt_moves *m = calloc(1, sizeof *m);
    if (!m || TOPT_RESIZE(p->moves, p->nmoves + 1)) {
        free(m);
        topt_nomem(err, "edges");
        return NULL;
    }
    m->tensor = tensor;
    m->shape = topt_tensor_shape(&t[tensor]);
    return p->moves[p->nmoves++] = m;
}

static int moves_grow(const struct topt_problem *p, struct topt_moves *m)
{
    int cap = m->cap ? 2 * m->cap : 64;
    if (TOPT_RESIZE(m->layout, cap) || TOPT_RESIZE(m->bytes, cap) ||
        (p->byte_bounds && TOPT_RESIZE(m->end, cap)) ||
        (p->symmetry_bounds && TOPT_RESIZE(m->orbit, cap)) || TOPT_RESIZE(m->row, cap))
        return -1;
    m->cap = cap;
    return 0;
}

/* Record what bounds need.  A layout that splits further dimensions makes the orbits
 * invalid. */
static void set_end(const struct topt_problem *p, struct topt_moves *m,
                    const struct topt_layout *l)
{
    uint32_t dims = m->dims;
    if (p->byte_bounds)
        topt_byte_bound_end_of(p->k.mesh, &m->shape, l, &m->end[m->n]);
    m->dims |= topt_orbit_dims(p->k.mesh, l);
    if (m->dims != dims)
        m->orbits = NULL;
    if (m->orbits)
        m->orbit[m->n] = topt_symmetry_bound_orbit(m->orbits, l);
}

int topt_moves_number(const struct topt_problem *p, struct topt_moves *m,
                      const struct topt_layout *l)
{
    struct topt_layout first = *l;
    if (p->options.orbits) {
        topt_orbit_first(p->k.mesh, &first);
        l = &first;
    }
    uint64_t hash = topt_hash(l, sizeof *l, 1);
    int i = topt_index_first(&m->index, hash);
    while (i >= 0 && !topt_layout_equal(&m->layout[i], l))
        i = topt_index_next(&m->index, i);
    if (i >= 0)
        return i;
    if ((m->n == m->cap && moves_grow(p, m)) || topt_index_add(&m->index, hash) < 0)
        return -1;
    m->layout[m->n] = *l;
    m->bytes[m->n] = topt_cost_block(&p->k, m->tensor, l);
    set_end(p, m, l);
    m->row[m->n] = (struct row){0};
    return m->n++;
}

static int find_orbits(const struct topt_problem *p, struct topt_moves *m)
{
    m->orbits = topt_symmetry_bounds_of(p->symmetry_bounds, &m->shape, m->dims,
                                        topt_dtype_bytes(p->k.settings->dtype));
    for (int i = 0; m->orbits && i < m->n; i++)
        m->orbit[i] = topt_symmetry_bound_orbit(m->orbits, &m->layout[i]);
    return m->orbits ? 0 : -1;
}

/* A lower bound of a move's time by either method; -1: no memory. */
static int64_t bound_ns(const struct topt_problem *p, struct topt_moves *m, int from,
                        int to, enum price by)
{
    if (by == BYTE_BOUND)
        return topt_byte_bound_between(p->byte_bounds, &m->shape,
                                       topt_dtype_bytes(p->k.settings->dtype),
                                       &m->end[from], &m->end[to]);
    return m->orbits || !find_orbits(p, m)
               ? topt_symmetry_bound_ns(m->orbits, m->orbit[from], m->orbit[to])
               : -1;
}

/* Without looking for a way.  In place nothing has to be found. */
static int set_bound(const struct topt_problem *p, struct topt_moves *m, int from, int to,
                     enum price by, struct topt_error *err)
{
    struct row *r = &m->row[from];
    int64_t ns = from == to ? 0 : bound_ns(p, m, from, to, by);
    if (ns < 0)
        return topt_nomem(err, "edges");
    if (__builtin_mul_overflow(ns, p->k.settings->micro_batches, &ns))
        return topt_fail(err, TOPT_ERR_LIMIT, "the time of a step overflows");
    r->ns[to] = r->price[to] ? topt_max(r->ns[to], ns) : ns;
    r->price[to] = (uint8_t)(from == to ? EXACT : by);
    return 0;
}

/* The least exact price that a pair needs once it was asked for: its last bound, where there
 * are bounds. */
static enum price enough(const struct topt_problem *p)
{
    return p->by_orbits ? SYMMETRY_BOUND : p->byte_bounds ? BYTE_BOUND : ASKED;
}

/* Apart, so that what is asked for most often needs no more than a look. */
__attribute__((noinline)) static int ask_first(struct topt_problem *p,
                                               struct topt_moves *m, int from, int to,
                                               struct topt_error *err)
{
    struct row *r = &m->row[from];
    if (to >= r->n) {
        if (TOPT_RESIZE(r->ns, m->cap) || TOPT_RESIZE(r->price, m->cap) ||
            (r->transient && TOPT_RESIZE(r->transient, m->cap)))
            return topt_nomem(err, "edges");
        memset(r->price + r->n, 0, (size_t)(m->cap - r->n));
        r->n = m->cap;
    }
    if (enough(p) == ASKED)
        return topt_moves_ask_exact(p, m, from, to, err);
    /* Bytes know axes by their names. */
    for (enum price by = p->byte_bounds && !p->options.orbits ? BYTE_BOUND
                                                              : SYMMETRY_BOUND;
         by <= enough(p); by++)
        if (r->price[to] < by && set_bound(p, m, from, to, by, err))
            return -1;
    return 0;
}

int topt_moves_ask(struct topt_problem *p, struct topt_moves *m, int from, int to,
                   struct topt_error *err)
{
    const struct row *r = &m->row[from];
    return to < r->n && r->price[to] >= enough(p) ? 0 : ask_first(p, m, from, to, err);
}

int topt_moves_ask_exact(struct topt_problem *p, struct topt_moves *m, int from, int to,
                         struct topt_error *err)
{
    struct row *r = &m->row[from];
    if (r->price[to] >= ASKED)
        return 0;
    if (TOPT_ROOM(m->asked, m->nasked, m->asked_cap, 64))
        return topt_nomem(err, "edges");
    struct asked *x = &m->asked[m->nasked++];
    r->price[to] = ASKED;
    *x = (struct asked){.from = from, .to = to};
    (p->of ? p->of : p)->moves_priced++;
    return topt_router_ask(p->k.router, &m->shape, topt_dtype_bytes(p->k.settings->dtype),
                           p->k.settings->granule_bytes, &m->layout[from], &m->layout[to],
                           &x->by, err);
}

static int set_exact(struct topt_moves *m, int from, int to,
                     const struct topt_move_cost *c)
{
    struct row *r = &m->row[from];
    if (!r->transient) {
        r->transient = malloc((size_t)r->n * sizeof *r->transient);
        if (!r->transient)
            return -1;
        r->transient[from] = m->bytes[from];
    }
    r->ns[to] = c->network_ns;
    r->transient[to] = c->transient_bytes;
    r->price[to] = EXACT;
    return 0;
}

int topt_moves_answer(struct topt_problem *p, struct topt_moves *m,
                      struct topt_error *err)
{
    if (m->nasked &&
        topt_router_answer(p->k.router, p->options.threads, p->k.cancel, err))
        return -1;
    for (int i = 0; i < m->nasked; i++) {
        const struct asked *x = &m->asked[i];
        struct topt_move_cost c;
        uint32_t axes = topt_layout_changed_mask(&m->layout[x->from], &m->layout[x->to]);
        if (topt_cost_move_by(&p->k, m->tensor, axes, x->by, m->bytes[x->from],
                              m->bytes[x->to], &c, err))
            return -1;
        if (set_exact(m, x->from, x->to, &c))
            return topt_nomem(err, "edges");
    }
    m->nasked = 0;
    return 0;
}

struct topt_move_cost topt_moves_at(const struct topt_moves *m, int from, int to)
{
    const struct row *r = &m->row[from];
    int64_t least = m->bytes[from] + (from == to ? 0 : m->bytes[to]);
    int exact = r->transient && r->price[to] == EXACT;
    return (struct topt_move_cost){.network_ns = r->ns[to],
                                   .transient_bytes = exact ? r->transient[to] : least,
                                   .from_bytes = m->bytes[from],
                                   .to_bytes = m->bytes[to]};
}
