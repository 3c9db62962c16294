/* test_layout.c - meshes, blocks and routes. */
#include <string.h>

#include "move_ns.h"
#include "random_model.h"
#include "sizes.h"
#include "tap.h"
#include "topt_layout.h"

static struct topt_hw *hw;

static void random_layout(uint64_t *seed, const struct topt_mesh *mesh, int ndim,
                          int partial, struct topt_layout *l)
{
    int8_t used[TOPT_MAX_RANK] = {0};
    *l = topt_layout_replicated();
    for (int a = 0; a < mesh->naxes; a++) {
        int at = random_below(seed, ndim + 1 + partial) - 1 - partial;
        l->at[a] = (int8_t)at;
        if (at >= 0)
            l->pos[a] = used[at]++;
    }
}

/* Most axes split the one dimension, in any order. */
static void random_order(uint64_t *seed, const struct topt_mesh *mesh,
                         struct topt_layout *l)
{
    int order[TOPT_MAX_AXES] = {0};
    int8_t used = 0;
    *l = topt_layout_replicated();
    for (int a = 0; a < mesh->naxes; a++) {
        int k = random_below(seed, a + 1);
        order[a] = order[k];
        order[k] = a;
    }
    for (int a = 0; a < mesh->naxes; a++)
        if (random_below(seed, 4)) {
            l->at[order[a]] = 0;
            l->pos[order[a]] = used++;
        }
}

static void test_mesh(void)
{
    struct topt_mesh m;
    struct topt_error err = {0};
    ok(!topt_mesh_init(&m, 2, 6, &err), "2 nodes of 6");
    is_int(m.naxes, 3, "three axes");
    is_int(m.node_axes, 1, "one of them chooses the node");
    is_int(m.size[1], 3, "large factors first");
    is_int(topt_mesh_coord(&m, 7, 0), 1, "device 7 is on node 1");
    is_int(topt_mesh_coord(&m, 11, 2), 1, "the last device has the last coordinate");
    struct topt_group g = topt_mesh_group(&m, 1u | 2u);
    ok(g.nodes == 2 && g.per_node == 3 && g.siblings == 2,
       "a group over nodes and one axis");
    ok(topt_mesh_init(&m, 0, 4, &err) == -1, "no nodes: refused");
    ok(topt_mesh_init(&m, 1 << 14, 4, &err) == -1, "too many axes: refused");
}

/* Every element is held by exactly the devices that replicate it. */
static int covers(const struct topt_mesh *m, const struct topt_shape *s,
                  const struct topt_layout *l)
{
    int64_t copies = 1, sum = 0, all = 1;
    for (int a = 0; a < m->naxes; a++)
        if (l->at[a] < 0)
            copies *= m->size[a];
    for (int64_t k = 0; s->rows && k < s->dim[0].count; k++)
        all += s->rows[k] - !k;
    for (int d = s->rows ? 2 : 0; d < s->ndim; d++)
        all *= s->dim[d].count * s->dim[d].unit;
    int64_t largest = topt_layout_elements(m, s, l);
    for (int i = 0; i < m->devices; i++) {
        struct topt_box b = topt_layout_box(m, s, l, i);
        int64_t n = topt_box_elements(s, &b);
        sum += n;
        if (n > largest)
            return 0;
        for (int d = 0; d < s->ndim; d++)
            if (b.off[d] < 0 || b.len[d] < 0 || b.off[d] + b.len[d] > s->dim[d].count)
                return 0;
    }
    return sum == all * copies;
}

static void test_blocks(void)
{
    uint64_t seed = 11;
    int good = 1, tables = 1;
    for (int i = 0; i < TOPT_TEST_SIZE(3000); i++) {
        static const int shape[][2] = {{1, 4}, {2, 4}, {2, 3}, {3, 2}, {1, 8}};
        enum { MOST = 9 };
        int64_t rows[MOST] = {0};
        struct topt_mesh m;
        struct topt_layout l;
        const int *s = shape[random_below(&seed, 5)];
        if (topt_mesh_init(&m, s[0], s[1], NULL))
            return;
        struct topt_shape t = {
            .ndim = 2,
            .dim = {{1 + random_below(&seed, 13), 1 + random_below(&seed, 3)},
                    {1 + random_below(&seed, 13), 1}}};
        random_layout(&seed, &m, 2, 0, &l);
        good &= covers(&m, &t, &l);
        struct topt_shape many = {
            .ndim = 3,
            .dim = {{1 + random_below(&seed, MOST), 1}, {1, 1}, {3, 2}},
            .rows = rows};
        for (int64_t k = 0; k < many.dim[0].count; k++) {
            rows[k] = 1 + random_below(&seed, 40);
            if (rows[k] > many.dim[1].count)
                many.dim[1].count = rows[k];
        }
        random_layout(&seed, &m, 3, 0, &l);
        tables &= covers(&m, &many, &l);
    }
    ok(good, "blocks cover a tensor, uneven splits included; device 0 holds the largest");
    ok(tables, "blocks cover tables of unlike lengths, and none is larger than said");
}

static int path_holds(const struct topt_path *p, const struct topt_layout *from,
                      const struct topt_layout *to)
{
    const struct topt_layout *at = from;
    for (int i = 0; i < p->nmoves; i++) {
        if (!topt_layout_equal(&p->move[i].from, at))
            return 0;
        at = &p->move[i].to;
    }
    return topt_layout_equal(at, to);
}

/* Of a tensor of one dimension: does every device find all that it is to have in the
 * blocks of its group? */
static int is_within_reach(const struct topt_mesh *m, const struct topt_shape *s,
                           const struct topt_move *v)
{
    uint32_t axes = v->kind == TOPT_MOVE_SLICE ? 0 : v->axes;
    for (int i = 0; i < m->devices; i++) {
        struct topt_box want = topt_layout_box(m, s, &v->to, i);
        for (int64_t at = want.off[0]; at < want.off[0] + want.len[0]; at++) {
            int found = 0;
            for (int k = 0; k < m->devices && !found; k++) {
                struct topt_box have = topt_layout_box(m, s, &v->from, k);
                found = at >= have.off[0] && at < have.off[0] + have.len[0];
                for (int a = 0; a < m->naxes; a++)
                    found &= axes >> a & 1 ||
                             topt_mesh_coord(m, i, a) == topt_mesh_coord(m, k, a);
            }
            if (!found)
                return 0;
        }
    }
    return 1;
}

/* Axes of several sizes, or so many that equal ones go together: where two of them change
 * places, those between them may have to move, too. */
static void test_reach(const char *profile, int nodes, int per_node, int shares)
{
    const int64_t share[] = {5, 2, 2, 2, 2, 2, 1, 1};
    struct topt_hw *near = topt_hw_load(profile, NULL);
    struct topt_mesh m;
    uint64_t seed = 23;
    int moves = 0, permuted = 0, within = 1;
    if (topt_mesh_init(&m, nodes, per_node, NULL) ||
        (shares && topt_mesh_shares(&m, share, m.size[0], NULL)))
        return;
    struct topt_router *r = topt_router_create(near, &m);
    struct topt_shape s = {.ndim = 1, .dim = {{(int64_t)m.devices * 2, 512}}};
    for (int i = 0; i < TOPT_TEST_SIZE(200); i++) {
        struct topt_layout end[2];
        const struct topt_path *p;
        for (int k = 0; k < 2; k++)
            random_order(&seed, &m, &end[k]);
        if (topt_router_path(r, &s, 4, &end[0], &end[1], &p, NULL)) {
            within = 0;
            break;
        }
        for (int k = 0; k < p->nmoves; k++, moves++) {
            permuted += p->move[k].kind == TOPT_MOVE_PERMUTE;
            within &= is_within_reach(&m, &s, &p->move[k]);
        }
    }
    ok(within && permuted,
       "%dx%d%s: %d moves, %d of them permutations, bring what groups have", nodes,
       per_node, shares ? " with shares" : "", moves, permuted);
    topt_router_destroy(r);
    topt_hw_destroy(near);
}

static uint32_t dims_split(const struct topt_layout *a, const struct topt_layout *b)
{
    uint32_t dims = 0;
    for (int i = 0; i < TOPT_MAX_AXES; i++) {
        dims |= a->at[i] >= 0 ? 1u << a->at[i] : 0;
        dims |= b->at[i] >= 0 ? 1u << b->at[i] : 0;
    }
    return dims;
}

/* No way from a layout on a path to its end is cheaper than the path's own. */
static int is_shortest(struct topt_router *r, const struct topt_hw *profile,
                       const struct topt_mesh *m, const struct topt_shape *s,
                       const struct topt_path *p)
{
    int64_t left = p->time_ns;
    for (int k = 0; k + 1 < p->nmoves; k++) {
        const struct topt_path *rest;
        const struct topt_layout *from = &p->move[k].to, *to = &p->move[p->nmoves - 1].to;
        left -= move_ns(profile, m, s, &p->move[k], 4);
        if (topt_router_path(r, s, 4, from, to, &rest, NULL))
            return 0;
        if (rest->time_ns < left)
            return 0;
    }
    return 1;
}

/* Paths over 2 nodes of 8, where many ways are close to each other. */
static void test_shortest(const char *profile)
{
    struct topt_hw *near = topt_hw_load(profile, NULL);
    struct topt_mesh m;
    uint64_t seed = 9;
    int shortest = 1, consistent = 1;
    if (topt_mesh_init(&m, 2, 8, NULL))
        return;
    struct topt_router *r = topt_router_create(near, &m);
    struct topt_shape s = {.ndim = 3, .dim = {{64, 1}, {8192, 1}, {4096, 1}}};
    for (int i = 0; i < TOPT_TEST_SIZE(6000); i++) {
        struct topt_layout a, b;
        const struct topt_path *p;
        random_layout(&seed, &m, 3, 1, &a);
        random_layout(&seed, &m, 3, 0, &b);
        if (topt_router_path(r, &s, 4, &a, &b, &p, NULL)) {
            consistent = 0;
            break;
        }
        shortest &= is_shortest(r, near, &m, &s, p);
    }
    ok(consistent && shortest, "%s: the rest of a shortest path is a shortest one",
       profile);
    topt_router_destroy(r);
    topt_hw_destroy(near);
}

static void test_routes(const char *profile, int nodes, int per_node)
{
    struct topt_hw *routed = topt_hw_load(profile, NULL);
    struct topt_mesh m;
    uint64_t seed = 5;
    int joined = 1, triangle = 1, sums = 1, same_free = 1;
    if (topt_mesh_init(&m, nodes, per_node, NULL))
        return;
    struct topt_router *r = topt_router_create(routed, &m);
    struct topt_shape s = {.ndim = 3, .dim = {{64, 1}, {4096, 1}, {32, 128}}};
    for (int i = 0; i < TOPT_TEST_SIZE_FROM(400, 40); i++) {
        struct topt_layout a, b, c;
        const struct topt_path *ab, *bc, *ac, *aa;
        random_layout(&seed, &m, 3, 1, &a);
        random_layout(&seed, &m, 3, 0, &b);
        random_layout(&seed, &m, 3, 0, &c);
        if (topt_router_path(r, &s, 4, &a, &b, &ab, NULL) ||
            topt_router_path(r, &s, 4, &b, &c, &bc, NULL) ||
            topt_router_path(r, &s, 4, &a, &c, &ac, NULL) ||
            topt_router_path(r, &s, 4, &b, &b, &aa, NULL)) {
            joined = 0;
            break;
        }
        joined &=
            path_holds(ab, &a, &b) && path_holds(bc, &b, &c) && path_holds(ac, &a, &c);
        same_free &= aa->nmoves == 0 && aa->time_ns == 0;
        int64_t time = 0;
        for (int k = 0; k < ab->nmoves; k++)
            time += move_ns(routed, &m, &s, &ab->move[k], 4);
        sums &= time == ab->time_ns;
        /* The direct way may pass through fewer dimensions only where that is enough. */
        uint32_t dims = dims_split(&a, &c), via = dims_split(&b, &b);
        if (!(via & ~dims))
            triangle &= ac->time_ns <= ab->time_ns + bc->time_ns;
    }
    ok(joined, "%dx%d: a path leads from its source to its target", nodes, per_node);
    ok(sums, "%dx%d: its time is the sum of its moves", nodes, per_node);
    ok(same_free, "%dx%d: staying is free", nodes, per_node);
    ok(triangle, "%dx%d: the triangle inequality holds", nodes, per_node);
    topt_router_destroy(r);
    topt_hw_destroy(routed);
}

static void test_moves(void)
{
    struct topt_mesh m;
    const struct topt_path *p;
    if (topt_mesh_init(&m, 1, 4, NULL))
        return;
    struct topt_router *r = topt_router_create(hw, &m);
    struct topt_shape s = {.ndim = 2, .dim = {{1024, 1}, {1024, 1}}};
    struct topt_layout whole = topt_layout_replicated(), rows = whole, cols = whole,
                       partial = whole;
    for (int a = 0; a < 2; a++) {
        rows.at[a] = 0;
        cols.at[a] = 1;
        partial.at[a] = TOPT_PARTIAL;
        rows.pos[a] = cols.pos[a] = (int8_t)a;
    }
    ok(!topt_router_path(r, &s, 4, &whole, &rows, &p, NULL) && p->time_ns == 0 &&
           p->nmoves == 1 && p->move[0].kind == TOPT_MOVE_SLICE,
       "replicated -> sharded is one free slice");
    ok(!topt_router_path(r, &s, 4, &rows, &cols, &p, NULL) && p->nmoves == 1 &&
           p->move[0].kind == TOPT_MOVE_ALL_TO_ALL,
       "rows -> columns is one all-to-all");
    ok(!topt_router_path(r, &s, 4, &rows, &whole, &p, NULL) && p->nmoves == 1 &&
           p->move[0].kind == TOPT_MOVE_ALL_GATHER,
       "rows -> whole is one all-gather");
    ok(!topt_router_path(r, &s, 4, &partial, &rows, &p, NULL) && p->nmoves == 1 &&
           p->move[0].kind == TOPT_MOVE_REDUCE_SCATTER,
       "partial -> rows is one reduce-scatter, not an all-reduce and a slice");
    ok(!topt_router_path(r, &s, 4, &partial, &whole, &p, NULL) && p->time_ns > 0,
       "partial -> whole costs");
    struct topt_layout inner = whole;
    inner.at[1] = 0;
    ok(!topt_router_path(r, &s, 4, &rows, &inner, &p, NULL) && p->nmoves == 2 &&
           p->move[0].kind == TOPT_MOVE_PERMUTE,
       "the outer axis of a dimension is not gathered before it is the inner one");
    topt_router_destroy(r);
}

static struct topt_layout swapped(const struct topt_layout *l, int a, int b)
{
    struct topt_layout x = *l;
    x.at[a] = l->at[b];
    x.at[b] = l->at[a];
    x.pos[a] = l->pos[b];
    x.pos[b] = l->pos[a];
    return x;
}

/* Axes of one level and size may change places: the same ways, by other names. */
static void test_interchange(const char *profile, int nodes, int per_node)
{
    struct topt_hw *near = topt_hw_load(profile, NULL);
    struct topt_mesh m;
    uint64_t seed = 21;
    int same = 1, holds = 1;
    if (topt_mesh_init(&m, nodes, per_node, NULL))
        return;
    struct topt_router *r = topt_router_create(near, &m);
    struct topt_shape s = {.ndim = 3, .dim = {{64, 1}, {100, 3}, {4096, 1}}};
    for (int i = 0; i < TOPT_TEST_SIZE_FROM(300, 30); i++) {
        struct topt_layout a, b;
        const struct topt_path *p, *q;
        random_layout(&seed, &m, 3, 1, &a);
        random_layout(&seed, &m, 3, 0, &b);
        struct topt_layout x = swapped(&a, m.naxes - 1, m.node_axes);
        struct topt_layout y = swapped(&b, m.naxes - 1, m.node_axes);
        if (topt_router_path(r, &s, 4, &a, &b, &p, NULL) ||
            topt_router_path(r, &s, 4, &x, &y, &q, NULL)) {
            holds = 0;
            break;
        }
        same &= p->time_ns == q->time_ns && p->nmoves == q->nmoves;
        holds &= path_holds(p, &a, &b) && path_holds(q, &x, &y);
    }
    ok(holds && same, "%dx%d: pairs that differ by names of axes cost the same", nodes,
       per_node);
    topt_router_destroy(r);
    topt_hw_destroy(near);
}

/* Dimensions that all splits divide may change places, and one be longer where another is
 * shorter: what a way takes depends on bytes alone, as long as nothing is summed up on it. */
static void test_dimensions(const char *profile, int nodes, int per_node)
{
    struct topt_hw *near = topt_hw_load(profile, NULL);
    struct topt_mesh m;
    uint64_t seed = 33;
    int same = 1, holds = 1;
    if (topt_mesh_init(&m, nodes, per_node, NULL))
        return;
    struct topt_router *r = topt_router_create(near, &m);
    struct topt_shape s = {.ndim = 2, .dim = {{1024, 1}, {4096, 3}}},
                      t = {.ndim = 2, .dim = {{2048, 3}, {2048, 1}}};
    for (int i = 0; i < TOPT_TEST_SIZE_FROM(300, 30); i++) {
        struct topt_layout end[2], swap[2];
        const struct topt_path *p, *q;
        for (int k = 0; k < 2; k++) {
            random_layout(&seed, &m, 2, 0, &end[k]);
            swap[k] = end[k];
            for (int a = 0; a < m.naxes; a++)
                if (end[k].at[a] >= 0)
                    swap[k].at[a] = (int8_t)!end[k].at[a];
        }
        if (topt_router_path(r, &s, 4, &end[0], &end[1], &p, NULL) ||
            topt_router_path(r, &t, 4, &swap[0], &swap[1], &q, NULL)) {
            holds = 0;
            break;
        }
        int64_t sum = 0;
        for (int k = 0; k < q->nmoves; k++)
            sum += move_ns(near, &m, &t, &q->move[k], 4);
        same &= p->time_ns == q->time_ns && sum == q->time_ns;
        holds &= path_holds(p, &end[0], &end[1]) && path_holds(q, &swap[0], &swap[1]);
    }
    ok(holds && same, "%dx%d: pairs that differ by names of dimensions cost the same",
       nodes, per_node);
    topt_router_destroy(r);
    topt_hw_destroy(near);
}

/* Unequal shares of the first axis. */
static void test_shares(void)
{
    static const int64_t shares[][3] = {{3, 1}, {5, 2}, {7, 7}, {3, 2, 1}, {9, 1, 1}};
    uint64_t seed = 5;
    int good = 1, near = 1;
    struct topt_error err = {0};
    struct topt_mesh m;
    for (int i = 0; i < TOPT_TEST_SIZE(2000); i++) {
        const int64_t *share = shares[i % 5];
        int n = share[2] ? 3 : 2;
        struct topt_layout l;
        if (topt_mesh_init(&m, n, 4, &err) || topt_mesh_shares(&m, share, n, &err))
            return;
        struct topt_shape t = {
            .ndim = 2,
            .dim = {{1 + random_below(&seed, 40), 1 + random_below(&seed, 3)},
                    {1 + random_below(&seed, 13), 1}}};
        random_layout(&seed, &m, 2, 0, &l);
        good &= covers(&m, &t, &l);
        /* The axis alone: within a count of its share. */
        int8_t first = 0;
        for (int k = 0; k < n; k++) {
            int64_t off, len, sum = share[0] + share[1] + share[2];
            topt_split_block(&m, t.dim[0].count, &first, 1, k * 4, &off, &len);
            int64_t apart = len * sum - t.dim[0].count * share[k];
            near &= apart < sum && apart > -sum;
        }
    }
    ok(good, "blocks of unequal shares cover a tensor; device 0 holds the largest");
    ok(near, "a part is its share, to a count");
    const int64_t rising[] = {1, 2}, none[] = {2, 0};
    ok(!topt_mesh_init(&m, 2, 2, &err) && topt_mesh_shares(&m, rising, 2, &err) &&
           topt_mesh_shares(&m, none, 2, &err) &&
           topt_mesh_shares(&m, shares[3], 3, &err),
       "others are refused");
    ok(!topt_mesh_shares(&m, shares[0], 2, &err) && topt_mesh_parts(&m, 0) == 4 &&
           topt_mesh_parts(&m, 1) == 2 && !topt_mesh_alike(&m, 0, 1) &&
           topt_mesh_alike(&m, 1, 1),
       "an axis with shares is like no other");
}

int main(void)
{
    hw = topt_hw_load("lab-cpu", NULL);
    if (!ok(hw != NULL, "the profile loads"))
        return done_testing();
    test_mesh();
    test_blocks();
    test_shares();
    test_moves();
    test_shortest("a100-80-dgx");
    test_shortest("h100-80-dgx");
    test_interchange("a100-80-dgx", 1, 8);
    test_interchange("a100-80-dgx", 4, 8);
    test_dimensions("a100-80-dgx", 2, 8);
    test_dimensions("a100-80-dgx", 16, 8);
    test_reach("a100-80-dgx", 2, 6, 0);
    test_reach("a100-80-dgx", 3, 4, 0);
    test_reach("v100-dgx1-2x8", 8, 8, 0);
    test_reach("a100-80-dgx", 2, 6, 1);
    test_reach("a100-80-dgx", 3, 4, 1);
    test_routes("lab-cpu", 1, 4);
    test_routes("lab-cpu", 2, 3);
    test_routes("v100-dgx1-2x8", 2, 4);
    test_routes("h100-80-dgx", 2, 8);
    topt_hw_destroy(hw);
    return done_testing();
}
