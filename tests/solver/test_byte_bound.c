/* What moves take at least, against the cheapest ways: never more, and not nothing;
 * random layouts on random meshes of all shipped profiles.  By what has to travel, and by
 * ways between orbits. */
#include <stdlib.h>
#include <string.h>

#include "hw_impl.h"
#include "random_model.h"
#include "sizes.h"
#include "tap.h"
#include "topt_layout.h"
#include "topt_symmetry_bound.h"

enum {
    PAIRS = TOPT_TEST_SIZE_FROM(200, 20),
    EVERY = 4 /* of these, orbits are made for one */
};

static const int shapes[][2] = {{1, 2}, {1, 4}, {2, 2}, {1, 8}, {2, 4},
                                {3, 2}, {2, 6}, {4, 1}, {4, 4}, {8, 8}};

/* Axes go to dimensions in a random order; 'partial': some are sums. */
static struct topt_layout random_layout(const struct topt_mesh *m, uint64_t *seed,
                                        int ndims, int partial)
{
    struct topt_layout l = topt_layout_replicated();
    int order[TOPT_MAX_AXES] = {0}, taken[TOPT_MAX_RANK] = {0};
    for (int i = 0; i < m->naxes; i++) {
        int k = random_below(seed, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (int i = 0; i < m->naxes; i++) {
        int at = random_below(seed, ndims + 1 + partial);
        if (at < ndims) {
            l.at[order[i]] = (int8_t)at;
            l.pos[order[i]] = (int8_t)taken[at]++;
        } else if (at > ndims) {
            l.at[order[i]] = TOPT_PARTIAL;
        }
    }
    return l;
}

struct tally {
    int pairs, above, routes_failed;
    int moving, moving_orbits; /* take time at all */
    double part, orbits;       /* the lazy', and those of orbits, summed */
};

/* Axes that are alike change names. */
static void rename_axes(const struct topt_mesh *m, uint64_t *seed, struct topt_layout *l)
{
    for (int a = 1; a < m->naxes; a++)
        if (topt_mesh_alike(m, a - 1, a) && random_below(seed, 2)) {
            struct topt_layout was = *l;
            l->at[a] = was.at[a - 1];
            l->pos[a] = was.pos[a - 1];
            l->at[a - 1] = was.at[a];
            l->pos[a - 1] = was.pos[a];
        }
}

/* Nanoseconds between the orbits of two layouts, which renamed axes leave as they are; -1
 * where they don't. */
static int64_t between_orbits(const struct topt_hw *hw, const struct topt_mesh *m,
                              const struct topt_shape *s, uint64_t *seed,
                              struct topt_layout from, struct topt_layout to)
{
    struct topt_symmetry_bound *o =
        topt_symmetry_bound_create(hw, m, s, (1u << s->ndim) - 1, 4);
    int a = o ? topt_symmetry_bound_orbit(o, &from) : -1;
    int b = o ? topt_symmetry_bound_orbit(o, &to) : -1;
    int64_t ns = o ? topt_symmetry_bound_ns(o, a, b) : -1;
    rename_axes(m, seed, &from);
    rename_axes(m, seed, &to);
    topt_orbit_first(m, &to);
    if (o && (topt_symmetry_bound_orbit(o, &from) != a ||
              topt_symmetry_bound_orbit(o, &to) != b))
        ns = -1;
    topt_symmetry_bound_destroy(o);
    return ns;
}

static void compare(const struct topt_hw *hw, struct topt_router *r,
                    const struct topt_byte_bounds *f, const struct topt_mesh *m,
                    uint64_t *seed, struct tally *t)
{
    static const int64_t counts[] = {1, 6, 24, 96, 1024, 12288, 50257};
    struct topt_shape s = {.ndim = 1 + random_below(seed, 3)};
    for (int d = 0; d < s.ndim; d++)
        s.dim[d] = (struct topt_dim){counts[random_below(seed, 7)],
                                     d ? 1 : 1 + 63 * random_below(seed, 2)};
    int partial = random_below(seed, 2);
    struct topt_layout from = random_layout(m, seed, s.ndim, partial),
                       to = random_layout(m, seed, s.ndim, 0);
    const struct topt_route *route;
    if (topt_router_route(r, &s, 4, 1, &from, &to, &route, NULL)) {
        t->routes_failed++;
        return;
    }
    struct topt_byte_bound_end a, b;
    topt_byte_bound_end_of(m, &s, &from, &a);
    topt_byte_bound_end_of(m, &s, &to, &b);
    int64_t ns =
        topt_layout_equal(&from, &to) ? 0 : topt_byte_bound_between(f, &s, 4, &a, &b);
    t->pairs++;
    t->above += ns > route->time_ns || ns < 0;
    if (route->time_ns > 0) {
        t->moving++;
        t->part += (double)ns / (double)route->time_ns;
    }
    if (t->pairs % EVERY)
        return;
    ns = between_orbits(hw, m, &s, seed, from, to);
    t->above += ns > route->time_ns || ns < 0;
    if (route->time_ns > 0) {
        t->moving_orbits++;
        t->orbits += (double)ns / (double)route->time_ns;
    }
}

static void test_profile(const char *name)
{
    struct topt_hw *hw = topt_hw_load(name, NULL);
    struct tally t = {0};
    uint64_t seed = 7;
    if (!hw) {
        ok(0, "%s is there", name);
        return;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct topt_mesh m;
        if (topt_mesh_init(&m, shapes[i][0], shapes[i][1], NULL))
            continue;
        struct topt_router *r = topt_router_create(hw, &m);
        struct topt_byte_bounds *f = topt_byte_bounds_create(hw, &m);
        for (int k = 0; r && f && k < PAIRS; k++)
            compare(hw, r, f, &m, &seed, &t);
        topt_router_destroy(r);
        topt_byte_bounds_destroy(f);
    }
    ok(t.pairs > PAIRS && !t.routes_failed && t.above == 0 && t.part > 0.25 * t.moving &&
           t.orbits > 0.5 * t.moving_orbits,
       "%s: %d lazy, %d above the cheapest way, %.0f %% of it in the mean, of orbits "
       "%.0f %%",
       name, t.pairs, t.above, 100 * t.part / t.moving, 100 * t.orbits / t.moving_orbits);
    topt_hw_destroy(hw);
}

int main(void)
{
    static const char *const names[] = {"v100-dgx1-2x8", "v100-pcie-1x8", "a100-80-dgx"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        test_profile(names[i]);
    return done_testing();
}
