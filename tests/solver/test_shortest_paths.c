/* test_shortest_paths.c - shortest paths between layouts without names, held against
 * the definition.
 *
 * The definition, as plainly as it can be written: layouts are nodes, collectives and
 * slices edges; Dijkstra's algorithm settles them by nanoseconds, then moves, then
 * number, and a layout keeps who came to it first.  No tables, no classes, no bounds,
 * one source at a time. */
#include <stdlib.h>
#include <string.h>

#include "multi_source.h"
#include "random_model.h"
#include "sizes.h"
#include "tap.h"
#include "path_pool.h"

enum { MOST = 20000 };

struct node {
    uint64_t state;
    int64_t ns;
    int moves, done, prev;
    struct topt_path_step step; /* that leads here */
};

static struct node node[MOST];
static int nnodes;
static int32_t slot[4 * MOST];
static const struct topt_path_source *source;
static struct topt_paths *clock_of;

static int number(uint64_t s)
{
    uint64_t h = s * 0x9e3779b97f4a7c15u >> 40;
    int i = (int)(h % (4 * MOST));
    while (slot[i] >= 0 && node[slot[i]].state != s)
        i = (i + 1) % (4 * MOST);
    if (slot[i] < 0) {
        slot[i] = nnodes;
        node[nnodes++] = (struct node){.state = s, .ns = INT64_MAX};
    }
    return slot[i];
}

static int64_t time_of(enum topt_move_kind kind, uint32_t set, uint64_t from, uint64_t to)
{
    int nodes = 1, per_node = 1;
    if (kind == TOPT_MOVE_SLICE)
        return 0;
    for (int g = 0; g < source->ngroups; g++)
        if (set >> g & 1)
            *(g < source->node_groups ? &nodes : &per_node) *= source->size[g];
    return topt_paths_time(
               clock_of, topt_move_collective(kind), nodes, per_node,
               topt_state_bytes(source, kind == TOPT_MOVE_ALL_GATHER ? to : from))
        .ns;
}

static void relax(int at, enum topt_move_kind kind, uint32_t set, uint64_t to)
{
    int n = number(to);
    int64_t ns = node[at].ns + time_of(kind, set, node[at].state, to);
    int moves = node[at].moves + 1;
    if (node[n].done || ns > node[n].ns || (ns == node[n].ns && moves >= node[n].moves))
        return;
    node[n].ns = ns;
    node[n].moves = moves;
    node[n].prev = at;
    node[n].step = (struct topt_path_step){kind, set, to};
}

static int depth(uint64_t s, int d)
{
    int n = 0;
    for (int g = 0; g < source->ngroups; g++)
        n += topt_state_at(s, g) == d;
    return n;
}

/* The groups of 'set', in group order, innermost in 'd'. */
static uint64_t into(uint64_t s, uint32_t set, int d)
{
    int pos = depth(s, d);
    for (int g = 0; g < source->ngroups; g++)
        if (set >> g & 1)
            s = topt_state_put(s, g, d, pos++);
    return s;
}

static uint32_t all_at(uint64_t s, int at)
{
    uint32_t set = 0;
    for (int g = 0; g < source->ngroups; g++)
        set |= (uint32_t)(topt_state_at(s, g) == at) << g;
    return set;
}

static uint64_t put_all(uint64_t s, uint32_t set, int at)
{
    for (int g = 0; g < source->ngroups; g++)
        if (set >> g & 1)
            s = topt_state_put(s, g, at, 0);
    return s;
}

/* Groups of 'd' from place 'first' on. */
static uint32_t inner(uint64_t s, int d, int first)
{
    uint32_t set = 0;
    for (int g = 0; g < source->ngroups; g++)
        set |= (uint32_t)(topt_state_at(s, g) == d && topt_state_pos(s, g) >= first) << g;
    return set;
}

static uint64_t hand_over(uint64_t s, int d, int first, int e)
{
    int n = depth(s, e);
    uint64_t to = s;
    for (int g = 0; g < source->ngroups; g++)
        if (topt_state_at(s, g) == d && topt_state_pos(s, g) >= first)
            to = topt_state_put(to, g, e, n + topt_state_pos(s, g) - first);
    return to;
}

static int even(uint64_t s, int d)
{
    int64_t parts = 1;
    for (int g = 0; g < source->ngroups; g++)
        parts *= topt_state_at(s, g) == d ? source->size[g] : 1;
    return source->count[d] >= 0 && source->count[d] % parts == 0;
}

/* Devices next to each other along 'group' of dimension 'd' have parts so far from
 * each other. */
static int64_t stride(uint64_t s, int d, int group)
{
    int64_t n = 1;
    for (int g = 0; g < source->ngroups; g++)
        if (topt_state_at(s, g) == d && topt_state_pos(s, g) > topt_state_pos(s, group))
            n *= source->size[g];
    return n;
}

static void orders(int at, int d, uint32_t left, int pos, uint64_t made)
{
    uint64_t s = node[at].state;
    uint32_t set = 0;
    if (!left) {
        for (int g = 0; g < source->ngroups; g++)
            if (topt_state_pos(made, g) != topt_state_pos(s, g) ||
                (topt_state_at(s, g) == d && stride(s, d, g) != stride(made, d, g)))
                set |= 1u << g;
        if (set)
            relax(at, TOPT_MOVE_PERMUTE, set, made);
    }
    for (int g = 0; g < source->ngroups; g++)
        if (left >> g & 1)
            orders(at, d, left & ~(1u << g), pos + 1, topt_state_put(made, g, d, pos));
}

static void settle(int at)
{
    uint64_t s = node[at].state;
    uint32_t partial = all_at(s, TOPT_STATE_P), whole = all_at(s, TOPT_STATE_R);
    node[at].done = 1;
    for (uint32_t set = partial; set; set = (set - 1) & partial) {
        relax(at, TOPT_MOVE_ALL_REDUCE, set, put_all(s, set, TOPT_STATE_R));
        for (int d = 0; d < source->ndims; d++)
            relax(at, TOPT_MOVE_REDUCE_SCATTER, set, into(s, set, d));
    }
    for (int d = 0; d < source->ndims; d++) {
        for (int g = 0; g < source->ngroups; g++)
            if (whole >> g & 1)
                relax(at, TOPT_MOVE_SLICE, 1u << g, into(s, 1u << g, d));
        for (int k = 0; k < depth(s, d); k++) {
            uint32_t set = inner(s, d, k);
            relax(at, TOPT_MOVE_ALL_GATHER, set, put_all(s, set, TOPT_STATE_R));
            for (int e = 0; e < source->ndims; e++)
                if (e != d)
                    relax(at, TOPT_MOVE_ALL_TO_ALL, set, hand_over(s, d, k, e));
        }
        if (depth(s, d) <= 4 && even(s, d))
            orders(at, d, all_at(s, d), 0, s);
    }
}

static int comes_first(const struct node *a, const struct node *b)
{
    if (a->ns != b->ns)
        return a->ns < b->ns;
    return a->moves != b->moves ? a->moves < b->moves : a->state < b->state;
}

/* Everything that can be come to. */
static void settle_all(void)
{
    memset(slot, 0xff, sizeof slot);
    nnodes = 0;
    node[number(source->from)].ns = 0;
    for (int next = 0; next >= 0;) {
        settle(next);
        next = -1;
        for (int i = 0; i < nnodes; i++)
            if (!node[i].done && node[i].ns < INT64_MAX &&
                (next < 0 || comes_first(&node[i], &node[next])))
                next = i;
    }
}

/* The same steps, the slices in a row being one? */
static int is_path_to(int n, const struct topt_step_path *path)
{
    int64_t ns = node[n].ns;
    int left = path->nsteps;
    while (node[n].moves > 0) {
        struct topt_path_step want = node[n].step;
        for (n = node[n].prev; want.kind == TOPT_MOVE_SLICE && node[n].moves > 0 &&
                               node[n].step.kind == TOPT_MOVE_SLICE;
             n = node[n].prev)
            want.groups |= node[n].step.groups;
        if (--left < 0 || path->step[left].kind != want.kind ||
            path->step[left].groups != want.groups || path->step[left].to != want.to)
            return 0;
    }
    return !left && path->ns == ns;
}

static uint64_t random_state(uint64_t *seed, int partial)
{
    int used[TOPT_MAX_RANK] = {0}, order[TOPT_STATE_GROUPS] = {0};
    uint64_t s = 0;
    for (int g = 0; g < source->ngroups; g++) {
        int k = random_below(seed, g + 1);
        order[g] = order[k];
        order[k] = g;
    }
    for (int i = 0; i < source->ngroups; i++) {
        int at = random_below(seed, source->ndims + 1 + partial);
        int pos = at < source->ndims ? used[at]++ : 0;
        at = at < source->ndims ? at : at - source->ndims ? TOPT_STATE_P : TOPT_STATE_R;
        s = topt_state_put(s, order[i], at, pos);
    }
    return s;
}

static void random_source(uint64_t *seed, int ngroups, int ndims, int partial,
                          struct topt_path_source *w)
{
    static const int size[] = {2, 2, 2, 4, 3};
    int64_t all = 1;
    memset(w, 0, sizeof *w);
    w->ngroups = (uint16_t)ngroups;
    w->ndims = (uint16_t)ndims;
    w->node_groups = (uint16_t)random_below(seed, ngroups + 1);
    for (int g = 0; g < ngroups; g++)
        all *= w->size[g] = (uint16_t)(g < 4 ? size[random_below(seed, 5)] : 2);
    w->bytes = 1 + random_below(seed, 1 << 14);
    for (int d = 0; d < ndims; d++) {
        int kind = random_below(seed, 3);
        w->count[d] = kind ? 1 + random_below(seed, 200) : 0;
        w->count[d] *= kind == 2 && !random_below(seed, 3) ? -1 : 1;
        w->bytes *= kind ? 1 : all;
    }
    source = w;
    w->from = random_state(seed, partial);
}

/* So many sources, each with targets in any order; and alone. */
static void test_definition(const struct topt_hw *hw, const struct topt_mesh *mesh,
                            const char *what, int sources, int ngroups, int ndims,
                            int partial)
{
    enum { TARGETS = 8 };
    struct topt_paths *ways = topt_paths_create(hw, mesh);
    uint64_t seed = (uint64_t)(ngroups * 100 + ndims * 10 + partial);
    int same = 1, alone = 1;
    sources = TOPT_TEST_SIZE(sources);
    for (int i = 0; i < sources; i++) {
        struct topt_path_source w;
        struct topt_path_question q[TARGETS], *all[TARGETS];
        random_source(&seed, ngroups, ndims, partial, &w);
        settle_all();
        for (int k = 0; k < TARGETS; k++) {
            q[k] = (struct topt_path_question){.source = w, .to = random_state(&seed, 0)};
            all[k] = &q[k];
        }
        same &= !topt_paths_answer(ways, all, TARGETS);
        for (int k = 0; k < TARGETS && same; k++)
            same &= is_path_to(number(q[k].to), &q[k].path);
        for (int k = 0; k < 2; k++) {
            alone &= !topt_paths_answer(ways, &all[k], 1);
            alone = alone && is_path_to(number(q[k].to), &q[k].path);
        }
    }
    ok(same,
       "%s, %d groups, %d dimensions%s: steps and times of %d sources are as defined",
       what, ngroups, ndims, partial ? ", sums" : "", sources);
    ok(alone, "the same asked alone");
    topt_paths_destroy(ways);
}

/* Many sources under one tariff, each with many targets: searched from together.  Of
 * so many 'bytes' that some ways take hours: these are found one by one. */
static void test_together(const struct topt_hw *hw, const struct topt_mesh *mesh,
                          const char *what, int ngroups, int ndims, int targets,
                          int64_t bytes)
{
    enum { SOURCES = 18, MANY = SOURCES * 36 };
    static struct topt_path_question q[MANY], *all[MANY];
    struct topt_paths *ways = topt_paths_create(hw, mesh);
    struct topt_path_source w;
    uint64_t seed = (uint64_t)(ngroups * 10 + ndims);
    int same = 1, n = SOURCES * targets;
    random_source(&seed, ngroups, ndims, 1, &w);
    if (bytes) {
        memset(w.count, 0, sizeof w.count);
        w.bytes = bytes;
    }
    for (int i = 0; i < n; i++) {
        if (i % targets == 0)
            w.from = random_state(&seed, 1);
        q[i] = (struct topt_path_question){.source = w, .to = random_state(&seed, 0)};
        all[i] = &q[i];
    }
    same &= !topt_paths_answer(ways, all, n);
    for (int i = 0; i < n && same; i++) {
        w.from = q[i].source.from;
        if (i % targets == 0)
            settle_all();
        same &= is_path_to(number(q[i].to), &q[i].path);
    }
    ok(same, "%s, %d groups, %d dimensions: %d sources together%s", what, ngroups, ndims,
       SOURCES, bytes ? ", hours" : "");
    topt_paths_destroy(ways);
}

/* On more groups than can be searched plainly: what is left of a way is the way from
 * there. */
static void test_rest(const struct topt_hw *hw, const struct topt_mesh *mesh,
                      const char *what, int ngroups)
{
    enum { WAYS = TOPT_TEST_SIZE_FROM(6, 2) };
    struct topt_paths *ways = topt_paths_create(hw, mesh);
    uint64_t seed = 5;
    int same = 1, longest = 0;
    for (int i = 0; i < WAYS; i++) {
        struct topt_path_source w;
        random_source(&seed, ngroups, 2, 1, &w);
        struct topt_path_question q = {.source = w, .to = random_state(&seed, 0)},
                                  *one = &q;
        same &= !topt_paths_answer(ways, &one, 1);
        int64_t ns = q.path.ns;
        uint64_t at = w.from;
        longest = same && q.path.nsteps > longest ? q.path.nsteps : longest;
        for (int k = 0; k < q.path.nsteps && same; k++) {
            const struct topt_path_step *step = &q.path.step[k];
            struct topt_path_question rest = {.source = w, .to = q.to}, *left = &rest;
            ns -= time_of(step->kind, step->groups, at, step->to);
            rest.source.from = at = step->to;
            same &= !topt_paths_answer(ways, &left, 1) && rest.path.ns == ns &&
                    rest.path.nsteps <= q.path.nsteps - k - 1;
        }
        same &= ns == 0 && at == q.to;
    }
    ok(same && longest > 2, "%s, %d groups: the rest of a path is the path from there",
       what, ngroups);
    topt_paths_destroy(ways);
}

/* A team answers as one does, whatever the number of threads and the order of
 * questions. */
static void test_team(const struct topt_hw *hw, const struct topt_mesh *mesh)
{
    enum { N = 400 };
    static struct topt_path_question q[3][N], *all[N];
    uint64_t seed = 77;
    int same = 1;
    struct topt_path_source w;
    for (int i = 0; i < N; i++) {
        if (i % 5 == 0)
            random_source(&seed, 3 + random_below(&seed, 3), 2, i % 2, &w);
        q[0][i] = (struct topt_path_question){.source = w, .to = random_state(&seed, 0)};
        q[1][i] = q[2][i] = q[0][i];
    }
    for (int t = 0; t < 3; t++) {
        struct topt_path_pool *team = topt_path_pool_create(hw, mesh);
        for (int i = 0; i < N; i++)
            all[i] = &q[t][t == 1 ? N - 1 - i : i];
        same &= !topt_path_pool_answer(team, all, N, t == 2 ? 3 : 1, NULL, NULL);
        for (int i = 0; i < N && same; i++) {
            const struct topt_step_path *a = &q[0][i].path, *b = &q[t][i].path;
            if (t == 0) {
                struct topt_path_step *copy = calloc((size_t)a->nsteps + 1, sizeof *copy);
                memcpy(copy, a->step, (size_t)a->nsteps * sizeof *copy);
                q[0][i].path.step = copy;
                continue;
            }
            same &= a->ns == b->ns && a->nsteps == b->nsteps;
            for (int k = 0; k < a->nsteps && same; k++)
                same &= a->step[k].kind == b->step[k].kind &&
                        a->step[k].groups == b->step[k].groups &&
                        a->step[k].to == b->step[k].to;
        }
        topt_path_pool_destroy(team);
    }
    for (int i = 0; i < N; i++)
        free(q[0][i].path.step);
    ok(same, "1 thread, backward, 3 threads: the same paths");
    struct topt_path_pool *team = topt_path_pool_create(hw, mesh);
    struct topt_error err = {0};
    atomic_bool cancel = 1;
    for (int i = 0; i < N; i++)
        all[i] = &q[1][i];
    ok(topt_path_pool_answer(team, all, N, 1, &cancel, &err) &&
           err.code == TOPT_ERR_CANCELED,
       "canceled");
    topt_path_pool_destroy(team);
}

int main(void)
{
    static const char *const profile[] = {"a100-80-dgx", "v100-dgx1-2x8"};
    for (int p = 0; p < 2; p++) {
        struct topt_hw *hw = topt_hw_load(profile[p], NULL);
        struct topt_mesh mesh;
        if (!ok(hw && !topt_mesh_init(&mesh, 64, 256, NULL), "%s loads", profile[p]))
            continue;
        clock_of = topt_paths_create(hw, &mesh);
        for (int partial = 0; partial < 2; partial++) {
            test_definition(hw, &mesh, profile[p], 40, 3, 2, partial);
            test_definition(hw, &mesh, profile[p], 12, 4, 2, partial);
            test_definition(hw, &mesh, profile[p], 3, 4, 3, partial);
            test_definition(hw, &mesh, profile[p], 3, 5, 2, partial);
        }
        test_definition(hw, &mesh, profile[p], 20, 6, 1, 1);
        if (p)
            test_definition(hw, &mesh, profile[p], 1, 6, 2, 1);
        for (int hours = 0; hours < 2; hours++) {
            int64_t bytes = hours ? (int64_t)1 << (p ? 47 : 52) : 0;
            test_together(hw, &mesh, profile[p], 3, 2, 36, bytes);
            test_together(hw, &mesh, profile[p], 3, 4, 36, bytes);
            test_together(hw, &mesh, profile[p], 4, 1, 36, bytes);
            test_together(hw, &mesh, profile[p], 4, 2, 36, bytes);
        }
        test_rest(hw, &mesh, profile[p], 7);
        test_team(hw, &mesh);
        topt_paths_destroy(clock_of);
        topt_hw_destroy(hw);
    }
    return done_testing();
}
