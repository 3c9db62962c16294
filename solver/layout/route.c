/* route.c - the cheapest path from one layout to another.
 *
 * What a path may pass through: dimensions that the source or the target splits;
 * partial sums only where the source has them.
 *
 * Times depend on sizes, not on names (shortest_paths.h).  So a pair of layouts
 * becomes a question that pairs alike have in common: axes of one level and one size,
 * and dimensions of one count, are brought into an order of their own; on many axes
 * neighbours that behave alike in source and target are merged into one, and axes
 * whose dimension does not change at all stand still, and are left out; dimensions
 * that all splits divide count by their bytes alone.  The answer is renamed back.
 *
 * Merged axes move as one.  So on more than FREE_AXES axes a path that parts them on
 * its path (two go over to another dimension together, one of them comes back alone)
 * is not found: of random layouts there one route in a thousand takes longer than two
 * others by way of a third layout, up to 1.4 times in what was seen.  Paths are real
 * and so are their times; bounds and tables see the same ones.  Where every axis may
 * move by itself the triangle inequality holds. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "path_pool.h"
#include "topt_array.h"

/* On so many axes every one may move by itself. */
enum { FREE_AXES = 4 };

/* The head of every entry of a table. */
struct entry {
    struct entry *next;
    uint64_t hash;
};

struct table {
    struct entry **at; /* a power of two of buckets */
    size_t n, nbuckets;
};

/* A question, answered or not. */
struct route {
    struct entry entry;
    struct topt_path_question question;
    struct topt_route pub;
    int open; /* listed among those to be answered */
};

struct topt_router {
    struct topt_mesh mesh;
    uint32_t alike; /* axes that are like the one before, as bits */
    struct topt_arena *arena;
    struct topt_path_pool *pool;
    struct table routes, paths;
    struct topt_path_question **open; /* not answered yet */
    int nopen, open_cap;
};

struct topt_router *topt_router_create(const struct topt_hw *hw,
                                       const struct topt_mesh *mesh)
{
    struct topt_router *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->mesh = *mesh;
    for (int a = 1; a < mesh->naxes; a++)
        r->alike |= topt_mesh_alike(mesh, a - 1, a) ? 1u << a : 0;
    r->arena = topt_arena_create(0);
    r->pool = topt_path_pool_create(hw, mesh);
    if (r->arena && r->pool)
        return r;
    topt_router_destroy(r);
    return NULL;
}

void topt_router_destroy(struct topt_router *r)
{
    if (!r)
        return;
    topt_arena_destroy(r->arena);
    topt_path_pool_destroy(r->pool);
    free(r->open);
    free(r->routes.at);
    free(r->paths.at);
    free(r);
}

struct topt_time topt_router_time(struct topt_router *r, enum topt_collective c,
                                  uint32_t axes, int64_t bytes)
{
    struct topt_group g = topt_mesh_group(&r->mesh, axes);
    return topt_paths_time(topt_path_pool_first(r->pool), c, g.nodes, g.per_node, bytes);
}

int64_t topt_router_routes(const struct topt_router *r)
{
    return (int64_t)r->routes.n;
}

/* ---- tables ------------------------------------------------------------------------ */

static int table_grow(struct table *t)
{
    size_t n = t->nbuckets ? 4 * t->nbuckets : 256;
    struct entry **at = calloc(n, sizeof *at);
    if (!at)
        return -1;
    for (size_t b = 0; b < t->nbuckets; b++)
        for (struct entry *x = t->at[b], *next; x; x = next) {
            next = x->next;
            x->next = at[x->hash & (n - 1)];
            at[x->hash & (n - 1)] = x;
        }
    free(t->at);
    t->at = at;
    t->nbuckets = n;
    return 0;
}

/* Keep an entry for the next question; where memory is short chains grow longer
 * instead. */
static int table_add(struct table *t, struct entry *e)
{
    if (t->n >= t->nbuckets && table_grow(t) && !t->nbuckets)
        return -1;
    e->next = t->at[e->hash & (t->nbuckets - 1)];
    t->at[e->hash & (t->nbuckets - 1)] = e;
    t->n++;
    return 0;
}

static struct entry *table_find(const struct table *t, uint64_t hash)
{
    return t->nbuckets ? t->at[hash & (t->nbuckets - 1)] : NULL;
}

/* ---- a pair of layouts as a question ----------------------------------------------- */

/* Axes that move together, in the order of the pair. */
struct group {
    uint32_t mask;
    int size, node;
    int8_t at[2], pos[2]; /* in source and target; 'pos' that of its first axis */
};

/* The question with the names that it leaves out. */
struct asked {
    struct topt_path_question question;
    int8_t order[TOPT_MAX_AXES];      /* the axis that comes to place i */
    struct topt_layout from, to;      /* with axes in that order */
    uint32_t mask[TOPT_STATE_GROUPS]; /* places of each group */
    int8_t dim[TOPT_MAX_RANK];        /* dimension of each of the question's */
    uint32_t still;                   /* places that are left out */
};

/* A question with names, and its answer once it is wanted. */
struct found {
    struct entry entry;
    struct topt_shape shape;
    int element_bytes;
    struct topt_layout from, to;
    struct asked asked;
    struct route *route;
    struct topt_path path; /* without moves: not wanted yet */
};

/* Where an axis is in a pair, as a number: dimension and place of the source, then of
 * the target, four bits each. */
static uint32_t axis_key(const struct topt_layout *from, const struct topt_layout *to,
                         int a)
{
    return (uint32_t)((from->at[a] + 2) << 12 | from->pos[a] << 8 | (to->at[a] + 2) << 4 |
                      to->pos[a]);
}

/* Like axes, which are neighbours in a mesh, by these numbers. */
static void order_axes(const struct topt_router *r, const struct topt_layout *from,
                       const struct topt_layout *to, struct asked *q)
{
    uint32_t key[TOPT_MAX_AXES];
    for (int a = 0; a < r->mesh.naxes; a++) {
        uint32_t own = axis_key(from, to, a);
        int i = a;
        for (; r->alike >> i & 1 && own < key[i - 1]; i--) {
            key[i] = key[i - 1];
            q->order[i] = q->order[i - 1];
        }
        key[i] = own;
        q->order[i] = (int8_t)a;
    }
    q->from = q->to = topt_layout_replicated();
    for (int i = 0; i < r->mesh.naxes; i++) {
        int a = q->order[i];
        q->from.at[i] = from->at[a];
        q->from.pos[i] = from->pos[a];
        q->to.at[i] = to->at[a];
        q->to.pos[i] = to->pos[a];
    }
}

/* Dimensions that are split otherwise in the target, as bits. */
static uint32_t changed_dims(const struct asked *q, int naxes)
{
    uint32_t dims = 0;
    for (int a = 0; a < naxes; a++) {
        if (q->from.at[a] == q->to.at[a] && q->from.pos[a] == q->to.pos[a])
            continue;
        dims |= q->from.at[a] >= 0 ? 1u << q->from.at[a] : 0;
        dims |= q->to.at[a] >= 0 ? 1u << q->to.at[a] : 0;
    }
    return dims;
}

static void leave_out(const struct topt_mesh *m, struct asked *q)
{
    uint32_t changed = changed_dims(q, m->naxes);
    for (int a = 0; a < m->naxes; a++)
        if (q->from.at[a] == q->to.at[a] && q->from.at[a] != TOPT_PARTIAL &&
            (q->from.at[a] == TOPT_REPLICATE || !(changed >> q->from.at[a] & 1)))
            q->still |= 1u << a;
}

/* May place a+1 move together with place a in this layout? */
static int follows(const struct topt_layout *l, int a)
{
    return l->at[a] == l->at[a + 1] && (l->at[a] < 0 || l->pos[a] + 1 == l->pos[a + 1]);
}

/* Groups of the places that move; returns how many. */
static int make_groups(const struct topt_mesh *m, const struct asked *q, int merge,
                       struct group group[TOPT_MAX_AXES])
{
    int n = 0;
    for (int a = 0; a < m->naxes; a++) {
        if (q->still >> a & 1)
            continue;
        int joins = merge && a > 0 && a != m->node_axes && !(q->still >> (a - 1) & 1) &&
                    follows(&q->from, a - 1) && follows(&q->to, a - 1);
        if (!joins)
            group[n++] = (struct group){.size = 1,
                                        .node = a < m->node_axes,
                                        .at = {q->from.at[a], q->to.at[a]},
                                        .pos = {q->from.pos[a], q->to.pos[a]}};
        group[n - 1].mask |= 1u << a;
        group[n - 1].size *= m->size[a];
    }
    return n;
}

static uint32_t split_dims(const struct topt_mesh *m, const struct asked *q)
{
    uint32_t dims = 0;
    for (int a = 0; a < m->naxes; a++) {
        dims |= q->from.at[a] >= 0 ? 1u << q->from.at[a] : 0;
        dims |= q->to.at[a] >= 0 ? 1u << q->to.at[a] : 0;
    }
    return dims;
}

/* Bytes, and the dimensions that may be passed through. */
static void set_shape(const struct topt_mesh *m, const struct topt_shape *s,
                      int element_bytes, struct asked *q)
{
    struct topt_path_source *w = &q->question.source;
    uint32_t dims = split_dims(m, q);
    int64_t all = 1;
    for (int g = 0; g < w->ngroups; g++)
        all *= w->size[g];
    w->bytes = element_bytes;
    for (int d = 0; d < s->ndim; d++) {
        int64_t still = 1, count = s->dim[d].count;
        w->bytes *= s->dim[d].unit;
        for (uint32_t rest = q->still; rest; rest &= rest - 1)
            if (q->from.at[__builtin_ctz(rest)] == d)
                still *= m->size[__builtin_ctz(rest)];
        int uneven = count % still != 0;
        count = (count + still - 1) / still;
        if (!(dims >> d & 1) || (!uneven && count % all == 0)) {
            w->bytes *= count;
            count = 0;
        }
        if (!(dims >> d & 1))
            continue;
        q->dim[w->ndims] = (int8_t)d;
        w->count[w->ndims++] = uneven ? -count : count;
    }
}

/* By what they are in the question's dimensions. */
static int group_before(const struct group *x, const struct group *y)
{
    if (x->node != y->node)
        return x->node;
    for (int i = 0; i < 2; i++) {
        if (x->at[i] != y->at[i])
            return x->at[i] < y->at[i];
        if (x->pos[i] != y->pos[i])
            return x->pos[i] < y->pos[i];
    }
    return x->size > y->size;
}

/* The axes at each dimension, without names: in the source, by which trees of paths are
 * shared, and beside it in the target. */
static void look(const struct group *group, int n, uint64_t ret[TOPT_MAX_RANK])
{
    uint32_t from[TOPT_MAX_RANK] = {0}, to[TOPT_MAX_RANK] = {0};
    for (int g = 0; g < n; g++) {
        const struct group *x = &group[g];
        uint64_t what = (uint64_t)(x->size * 2 + x->node);
        if (x->at[0] >= 0)
            from[x->at[0]] += (uint32_t)(topt_mix(what, (uint64_t)x->pos[0]) >> 32);
        if (x->at[1] >= 0)
            to[x->at[1]] +=
                (uint32_t)(topt_mix(what, (uint64_t)(x->pos[1] * 64 + x->pos[0])) >> 32);
    }
    for (int d = 0; d < TOPT_MAX_RANK; d++)
        ret[d] = (uint64_t)from[d] << 32 | to[d];
}

/* Dimensions of one count are interchangeable where nothing is partial (sums are
 * scattered in the order of groups): put them in an order that does not depend on
 * their names, and rename. */
static void order_dims(struct asked *q, struct group *group, int n)
{
    struct topt_path_source *w = &q->question.source;
    uint64_t seen[TOPT_MAX_RANK], here_of[TOPT_MAX_RANK] = {0};
    int8_t number[TOPT_MAX_RANK] = {0};
    int partial = 0;
    for (int g = 0; g < n; g++)
        partial |= group[g].at[0] == TOPT_PARTIAL;
    if (!partial)
        look(group, n, here_of);
    for (int d = 0; d < w->ndims; d++) {
        uint64_t here = here_of[q->dim[d]];
        int64_t count = w->count[d];
        int8_t dim = q->dim[d];
        int k = d;
        for (; k > 0 && ((!partial && w->count[k - 1] > count) ||
                         (w->count[k - 1] == count && seen[k - 1] > here));
             k--) {
            w->count[k] = w->count[k - 1];
            seen[k] = seen[k - 1];
            q->dim[k] = q->dim[k - 1];
        }
        w->count[k] = count;
        seen[k] = here;
        q->dim[k] = dim;
    }
    for (int d = 0; d < w->ndims; d++)
        number[q->dim[d]] = (int8_t)d;
    for (int g = 0; g < n; g++)
        for (int i = 0; i < 2; i++)
            if (group[g].at[i] >= 0)
                group[g].at[i] = number[group[g].at[i]];
}

static void order_groups(struct group *group, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && group_before(&group[k], &group[k - 1]); k--) {
            struct group x = group[k];
            group[k] = group[k - 1];
            group[k - 1] = x;
        }
}

/* How many groups are outside of one in its dimension: of single axes, as many as
 * places. */
static int groups_outside(const struct group *group, int n, int i, int g)
{
    int pos = 0;
    for (int k = 0; k < n; k++)
        pos += group[k].at[i] == group[g].at[i] && group[k].pos[i] < group[g].pos[i];
    return pos;
}

/* The state of side 'i'; 'merged': groups may be of several axes, or some axes in
 * none. */
static uint64_t state_of(const struct group *group, int n, int i, int merged)
{
    uint64_t s = 0;
    for (int g = 0; g < n; g++) {
        int at = group[g].at[i], pos = at >= 0 ? group[g].pos[i] : 0;
        if (merged && at >= 0)
            pos = groups_outside(group, n, i, g);
        s = topt_state_put(s, g,
                           at == TOPT_REPLICATE ? TOPT_STATE_R
                           : at == TOPT_PARTIAL ? TOPT_STATE_P
                                                : at,
                           pos);
    }
    return s;
}

static int ask(const struct topt_router *r, const struct topt_shape *s, int element_bytes,
               const struct topt_layout *from, const struct topt_layout *to,
               struct asked *q, struct topt_error *err)
{
    const struct topt_mesh *m = &r->mesh;
    struct topt_path_source *w = &q->question.source;
    struct group group[TOPT_MAX_AXES];
    int merge = m->naxes > FREE_AXES;
    memset(&q->question, 0, sizeof q->question);
    q->still = 0;
    order_axes(r, from, to, q);
    if (merge)
        leave_out(m, q);
    int n = make_groups(m, q, merge, group);
    if (n > TOPT_STATE_GROUPS)
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "a redistribution over more than %d groups of axes",
                         TOPT_STATE_GROUPS);
    w->ngroups = (uint16_t)n;
    for (int g = 0; g < n; g++)
        w->size[g] = (uint16_t)group[g].size;
    set_shape(m, s, element_bytes, q);
    order_dims(q, group, n);
    order_groups(group, n);
    for (int g = 0; g < n; g++) {
        q->mask[g] = group[g].mask;
        w->size[g] = (uint16_t)group[g].size;
        w->node_groups = (uint16_t)(w->node_groups + group[g].node);
    }
    w->from = state_of(group, n, 0, merge);
    q->question.to = state_of(group, n, 1, merge);
    q->question.costs_hash = topt_path_costs_hash(w);
    return 0;
}

/* ---- its answer -------------------------------------------------------------------- */

static int add_open(struct topt_router *r, struct route *x)
{
    if (TOPT_ROOM(r->open, r->nopen, r->open_cap, 16))
        return -1;
    r->open[r->nopen++] = &x->question;
    x->open = 1;
    return 0;
}

static int same_question(const struct topt_path_question *a,
                         const struct topt_path_question *b)
{
    return a->to == b->to && !memcmp(&a->source, &b->source, sizeof a->source);
}

static struct route *find_route(const struct topt_router *r, uint64_t hash,
                                const struct topt_path_question *q)
{
    for (struct entry *e = table_find(&r->routes, hash); e; e = e->next) {
        struct route *x = (struct route *)e;
        if (e->hash == hash && same_question(&x->question, q))
            return x;
    }
    return NULL;
}

static struct route *add_route(struct topt_router *r, uint64_t hash,
                               const struct topt_path_question *q)
{
    struct route *x = TOPT_NEW(r->arena, 1, struct route);
    if (!x)
        return NULL;
    x->entry.hash = hash;
    x->question = *q;
    return table_add(&r->routes, &x->entry) ? NULL : x;
}

/* The route of a question, which has no steps where it has no answer. */
static struct route *route_of(struct topt_router *r, const struct topt_path_question *q,
                              struct topt_error *err)
{
    uint64_t hash = topt_mix(topt_mix(q->costs_hash, q->source.from), q->to);
    struct route *x = find_route(r, hash, q);
    x = x ? x : add_route(r, hash, q);
    if (!x)
        topt_nomem(err, "a redistribution");
    return x;
}

static int64_t round_up(int64_t bytes, int64_t granule)
{
    return (bytes + granule - 1) / granule * granule;
}

/* The time of a step between blocks of so many bytes. */
static struct topt_time step_time(struct topt_router *r, const struct topt_path_source *w,
                                  const struct topt_path_step *s, int64_t from,
                                  int64_t to)
{
    int nodes = 1, per_node = 1;
    if (s->kind == TOPT_MOVE_SLICE)
        return (struct topt_time){0, TOPT_BASIS_MEASURED};
    for (int g = 0; g < w->ngroups; g++)
        if (s->groups >> g & 1)
            *(g < w->node_groups ? &nodes : &per_node) *= w->size[g];
    return topt_paths_time(topt_path_pool_first(r->pool), topt_move_collective(s->kind),
                           nodes, per_node, s->kind == TOPT_MOVE_ALL_GATHER ? to : from);
}

/* The bytes of a path as lower/ writes it: the source stays, each step makes a buffer and
 * stages beside it, then the buffer that it was made from is freed.  (plan_check.c compares
 * this with the program.) */
static void price(struct topt_router *r, struct route *x, int64_t granule)
{
    const struct topt_path_source *w = &x->question.source;
    int64_t at = topt_state_bytes(w, w->from), source = round_up(at, granule), held = 0;
    x->pub.granule = granule;
    x->pub.transient_bytes = source;
    memset(x->pub.basis_ns, 0, sizeof x->pub.basis_ns);
    for (int i = 0; i < x->question.path.nsteps; i++) {
        const struct topt_path_step *s = &x->question.path.step[i];
        int64_t to = topt_state_bytes(w, s->to), next = round_up(to, granule);
        int64_t live =
            source + held + next + round_up(topt_move_staging(s->kind, at, to), granule);
        struct topt_time t = step_time(r, w, s, at, to);
        x->pub.basis_ns[t.basis] += t.ns;
        if (live > x->pub.transient_bytes)
            x->pub.transient_bytes = live;
        at = to;
        held = next;
    }
}

static struct route *route_between(struct topt_router *r, const struct topt_shape *s,
                                   int element_bytes, const struct topt_layout *from,
                                   const struct topt_layout *to, struct asked *q,
                                   struct topt_error *err)
{
    return ask(r, s, element_bytes, from, to, q, err) ? NULL
                                                      : route_of(r, &q->question, err);
}

static struct route *route_of_open(const struct topt_router *r, int i)
{
    char *question = (char *)r->open[i];
    return (struct route *)(void *)(question - offsetof(struct route, question));
}

/* Drop the questions that were answered alone meanwhile, or for another batch that came to
 * nothing. */
static void leave_unanswered(struct topt_router *r)
{
    int n = 0;
    for (int i = 0; i < r->nopen; i++) {
        route_of_open(r, i)->open = !r->open[i]->path.step;
        r->open[n] = r->open[i];
        n += !r->open[i]->path.step;
    }
    r->nopen = n;
}

static void take_answer(struct topt_router *r, struct route *x)
{
    x->pub.time_ns = x->question.path.ns;
    if (x->pub.granule) /* else its cost was not asked for */
        price(r, x, x->pub.granule);
}

int topt_router_answer(struct topt_router *r, int threads, const atomic_bool *cancel,
                       struct topt_error *err)
{
    leave_unanswered(r);
    int rc = topt_path_pool_answer(r->pool, r->open, r->nopen, threads, cancel, err);
    for (int i = 0; i < r->nopen; i++)
        if (r->open[i]->path.step)
            take_answer(r, route_of_open(r, i));
    leave_unanswered(r);
    return rc;
}

static int answer_one(struct topt_router *r, struct route *x, struct topt_error *err)
{
    struct topt_path_question *question = &x->question;
    if (question->path.step)
        return 0;
    if (topt_path_pool_answer(r->pool, &question, 1, 1, NULL, err))
        return -1;
    take_answer(r, x);
    return 0;
}

int topt_router_ask(struct topt_router *r, const struct topt_shape *s, int element_bytes,
                    int64_t granule, const struct topt_layout *from,
                    const struct topt_layout *to, const struct topt_route **ret,
                    struct topt_error *err)
{
    struct asked q;
    struct route *x = route_between(r, s, element_bytes, from, to, &q, err);
    if (!x)
        return -1;
    if (x->question.path.step && x->pub.granule != granule)
        price(r, x, granule);
    x->pub.granule = granule;
    *ret = &x->pub;
    if (!x->question.path.step && !x->open && add_open(r, x))
        return topt_nomem(err, "a redistribution");
    return 0;
}

int topt_router_route(struct topt_router *r, const struct topt_shape *s,
                      int element_bytes, int64_t granule, const struct topt_layout *from,
                      const struct topt_layout *to, const struct topt_route **ret,
                      struct topt_error *err)
{
    struct asked q;
    struct route *x = route_between(r, s, element_bytes, from, to, &q, err);
    if (!x || answer_one(r, x, err))
        return -1;
    if (x->pub.granule != granule)
        price(r, x, granule);
    *ret = &x->pub;
    return 0;
}

/* ---- with names -------------------------------------------------------------------- */

/* Give the axes of a group, in order, to a dimension. */
static void name_group(const struct asked *q, int g, int dim, int8_t *depth,
                       struct topt_layout *l)
{
    for (uint32_t m = q->mask[g]; m; m &= m - 1) {
        int axis = q->order[__builtin_ctz(m)];
        l->at[axis] = (int8_t)dim;
        l->pos[axis] = (int8_t)(dim >= 0 ? (*depth)++ : 0);
    }
}

/* A state's layout: what stands still is outermost in its dimensions. */
static struct topt_layout name_state(const struct topt_mesh *m, const struct asked *q,
                                     uint64_t s)
{
    struct topt_layout l = topt_layout_replicated();
    int8_t depth[TOPT_MAX_RANK] = {0}, none = 0;
    int n = q->question.source.ngroups;
    for (int i = 0; i < m->naxes; i++)
        if (q->still >> i & 1 && q->from.at[i] >= 0) {
            l.at[q->order[i]] = q->from.at[i];
            l.pos[q->order[i]] = q->from.pos[i];
            depth[q->from.at[i]]++;
        }
    for (int g = 0; g < n; g++)
        if (topt_state_at(s, g) == TOPT_STATE_P)
            name_group(q, g, TOPT_PARTIAL, &none, &l);
    for (int d = 0; d < q->question.source.ndims; d++)
        for (int pos = 0; pos < n; pos++)
            for (int g = 0; g < n; g++)
                if (topt_state_at(s, g) == d && topt_state_pos(s, g) == pos)
                    name_group(q, g, q->dim[d], &depth[q->dim[d]], &l);
    return l;
}

/* Where the axis with shares changes its place, parts within it are cut elsewhere: all axes of
 * the dimension take part. */
static uint32_t with_shares(const struct topt_mesh *m, const struct topt_move *v)
{
    uint32_t axes = v->axes;
    if (!(m->share[0] || m->state_share[0]) || v->kind != TOPT_MOVE_PERMUTE ||
        !(axes & 1))
        return axes;
    for (int a = 0; a < m->naxes; a++)
        axes |= v->to.at[a] == v->to.at[0] ? 1u << a : 0;
    return axes;
}

static int name_path(struct topt_router *r, const struct asked *q, const struct route *x,
                     struct topt_path *ret, struct topt_error *err)
{
    const struct topt_step_path *path = &x->question.path;
    struct topt_move *move = TOPT_NEW(r->arena, path->nsteps, struct topt_move);
    if (!move)
        return topt_nomem(err, "a redistribution");
    struct topt_layout at = name_state(&r->mesh, q, q->question.source.from);
    for (int i = 0; i < path->nsteps; i++) {
        struct topt_layout next = name_state(&r->mesh, q, path->step[i].to);
        move[i] = (struct topt_move){.kind = path->step[i].kind, .from = at, .to = next};
        for (uint32_t g = path->step[i].groups; g; g &= g - 1)
            for (uint32_t m = q->mask[__builtin_ctz(g)]; m; m &= m - 1)
                move[i].axes |= 1u << q->order[__builtin_ctz(m)];
        move[i].axes = with_shares(&r->mesh, &move[i]);
        at = next;
    }
    *ret = (struct topt_path){path->nsteps, move, path->ns};
    return 0;
}

static int same_shape(const struct topt_shape *a, const struct topt_shape *b)
{
    return a->ndim == b->ndim &&
           !memcmp(a->dim, b->dim, sizeof a->dim[0] * (size_t)a->ndim);
}

static uint64_t hash_pair(const struct topt_shape *s, int element_bytes,
                          const struct topt_layout *from, const struct topt_layout *to)
{
    uint64_t h = topt_mix_bytes((uint64_t)element_bytes, s->dim,
                                sizeof s->dim[0] * (size_t)s->ndim);
    h = topt_mix_bytes(h, from, sizeof *from);
    return topt_mix_bytes(h, to, sizeof *to);
}

static struct found *found_of(struct topt_router *r, const struct topt_shape *s,
                              int element_bytes, const struct topt_layout *from,
                              const struct topt_layout *to, struct topt_error *err)
{
    uint64_t hash = hash_pair(s, element_bytes, from, to);
    for (struct entry *e = table_find(&r->paths, hash); e; e = e->next) {
        struct found *f = (struct found *)e;
        if (e->hash == hash && f->element_bytes == element_bytes &&
            topt_layout_equal(&f->from, from) && topt_layout_equal(&f->to, to) &&
            same_shape(&f->shape, s))
            return f;
    }
    struct found *f = TOPT_NEW(r->arena, 1, struct found);
    if (!f) {
        topt_nomem(err, "a redistribution");
        return NULL;
    }
    *f = (struct found){.entry.hash = hash,
                        .shape = *s,
                        .element_bytes = element_bytes,
                        .from = *from,
                        .to = *to};
    f->route = route_between(r, s, element_bytes, from, to, &f->asked, err);
    if (!f->route)
        return NULL;
    if (!table_add(&r->paths, &f->entry))
        return f;
    topt_nomem(err, "a redistribution");
    return NULL;
}

int topt_router_seek(struct topt_router *r, const struct topt_shape *s, int element_bytes,
                     const struct topt_layout *from, const struct topt_layout *to,
                     struct topt_error *err)
{
    const struct found *f = found_of(r, s, element_bytes, from, to, err);
    if (!f)
        return -1;
    if (f->route->question.path.step)
        return 1;
    return f->route->open || !add_open(r, f->route) ? 0
                                                    : topt_nomem(err, "a redistribution");
}

int topt_router_path(struct topt_router *r, const struct topt_shape *s, int element_bytes,
                     const struct topt_layout *from, const struct topt_layout *to,
                     const struct topt_path **ret, struct topt_error *err)
{
    struct found *f = found_of(r, s, element_bytes, from, to, err);
    if (!f || answer_one(r, f->route, err) ||
        (!f->path.move && name_path(r, &f->asked, f->route, &f->path, err)))
        return -1;
    *ret = &f->path;
    return 0;
}
