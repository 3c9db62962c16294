/* ahead.c - what can't be part of anything new is left out before edges are priced.
 *
 * Where strategies are known already (of a smaller space, which take a hundredth of the time), most
 * configurations of a large space can't be part of any that is better in memory or time: what all strategies
 * with them weigh at least, memory and time counted together, is more than any such may. To see that
 * takes no tables: an edge's weight follows from the layouts at its ends and from what moves between them take at
 * least (layout/orbit.c), and is worked out where it is looked at; operators have such floors for the moves inside of
 * them, too.
 *
 *     known  o                  the corners between known points are all that is left for new ones;
 *            |___ corner        for a group of neighbouring corners, and a weighing that suits it, a
 *                o              configuration goes whose lightest strategy weighs more than the heaviest
 *                |___           of these; what stays for some group stays
 *                    o
 *
 * The bounds are in messages.c. */
#include "messages.h"
#include "run.h"

#include <stdlib.h>
#include <string.h>

enum {
    GROUPS = 16,            /* of corners, at most */
    MOST_ENTRIES = 1 << 25, /* looked at one by one, left by places alone */
    HALVINGS = 8 /* of how much memory counts, in looking for the balance of one corner */
};

struct ahead {
    struct topt_problem *p;
    struct topt_error *err;
    const struct topt_aim *aim;
    struct messages m;
    int ncorners;
    struct topt_cost *corner; /* INT64_MAX: unbounded */
    uint8_t **stays;          /* by place and configuration: for some group */
};

static int no_memory(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the problem");
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- corners ------------------------------------------------------------------------------- */

/* What every strategy has in flight. */
static int64_t least_charge(const struct ahead *h)
{
    struct topt_caps all = {0, 0};
    for (int i = 0; i < h->p->nplaces; i++) {
        const struct spot *s = &h->m.spot[i];
        int64_t t = INT64_MAX, w = INT64_MAX;
        for (int c = 0; c < s->n; c++) {
            t = s->transient[c] < t ? s->transient[c] : t;
            w = s->waiting[c] < w ? s->waiting[c] : w;
        }
        all.transient = s->n ? larger(all.transient, t) : all.transient;
        all.crossing = s->n ? larger(all.crossing, w) : all.crossing;
    }
    return all.transient + topt_problem_crossing(h->p) * all.crossing;
}

static void add_corner(struct ahead *h, int64_t memory, int64_t time, int64_t charge)
{
    if (memory != INT64_MAX)
        memory -= charge;
    h->corner[h->ncorners++] = (struct topt_cost){memory, time};
}

/* Between known points, before the first and after the last; of the fastest, the limits. */
static int make_corners(struct ahead *h)
{
    const struct topt_aim *a = h->aim;
    int64_t charge = least_charge(h), time = a->time_limit ? a->time_limit : INT64_MAX;
    h->corner = calloc((size_t)a->nknown + 1, sizeof *h->corner);
    if (!h->corner)
        return no_memory(h->err);
    for (int i = 0; i < a->nknown; i++) {
        add_corner(h, a->known[i].memory - 1, time, charge);
        time = topt_search_missed(a->known[i].time, a->epsilon);
    }
    add_corner(h, a->memory_limit ? a->memory_limit : INT64_MAX, time, charge);
    return 0;
}

/* ---- groups of corners --------------------------------------------------------------------- */

/* One corner in both: the bound is best at some balance, which is looked for from where memory counts most. */
static int weigh_corner(struct ahead *h, const struct topt_cost *corner, int sweeps)
{
    double best = 0, part,
           memory = (double)corner->time / (double)larger(corner->memory, 1);
    if (topt_messages_weigh(&h->m, 0, 1, corner, 1, sweeps, &part))
        return -1;
    for (int i = 0; i < HALVINGS; i++, memory /= 2) {
        if (topt_messages_weigh(&h->m, memory, 1, corner, 1, sweeps, &part))
            return -1;
        if (part < best || part > 1)
            break;
        best = part;
    }
    return 0;
}

static int weigh_group(struct ahead *h, const struct topt_cost *corner, int n, int sweeps)
{
    struct topt_cost first = corner[0], last = corner[n - 1];
    double part;
    topt_messages_clear(&h->m);
    if (first.time == INT64_MAX && last.memory == INT64_MAX)
        return 0;
    if (first.time == INT64_MAX)
        return topt_messages_weigh(&h->m, 1, 0, corner, n, sweeps, &part);
    if (last.memory == INT64_MAX)
        return topt_messages_weigh(&h->m, 0, 1, corner, n, sweeps, &part);
    if (n == 1)
        return weigh_corner(h, corner, sweeps);
    return topt_messages_weigh(&h->m, (double)(first.time - last.time),
                               (double)(last.memory - first.memory), corner, n, sweeps,
                               &part);
}

/* What stays for some group.  Corners at the ends, which are unbounded, are groups of their own. */
static int weigh_groups(struct ahead *h, int sweeps)
{
    int n = h->ncorners, middle = n > 2 ? n - 2 : 0;
    int groups = middle < GROUPS ? middle : GROUPS, ends = n < 2 ? n : 2;
    for (int i = 0; i < h->p->nplaces; i++)
        memset(h->stays[i], 0, (size_t)h->m.spot[i].n);
    for (int g = 0; g < groups + ends; g++) {
        int from = g < groups ? 1 + middle * g / groups : g == groups ? 0 : n - 1;
        int to = g < groups ? 1 + middle * (g + 1) / groups : from + 1;
        if (weigh_group(h, &h->corner[from], to - from, sweeps))
            return -1;
        for (int i = 0; i < h->p->nplaces; i++) {
            const struct spot *s = &h->m.spot[i];
            const struct spot *of = sweeps ? s : &h->m.spot[s->like];
            for (int c = 0; c < s->n; c++)
                h->stays[i][c] |= !of->out[c];
        }
    }
    return 0;
}

/* ---- what is left -------------------------------------------------------------------------- */

/* Families of one place have the same configurations left; of one family, those of all its places. */
static void share(struct ahead *h, uint8_t **keep)
{
    int changed = 1;
    for (int i = 0; i < h->p->nplaces; i++)
        for (int c = 0; c < h->m.spot[i].n; c++)
            keep[h->m.spot[i].part[0].family][c] |= h->stays[i][c];
    while (changed) {
        changed = 0;
        for (int i = 0; i < h->p->nplaces; i++)
            for (int k = 1; k < h->m.spot[i].nparts; k++) {
                uint8_t *a = keep[h->m.spot[i].part[0].family],
                        *b = keep[h->m.spot[i].part[k].family];
                for (int c = 0; c < h->m.spot[i].n; c++) {
                    changed |= a[c] != b[c];
                    a[c] = b[c] = a[c] | b[c];
                }
            }
    }
}

static int keep_of_family(struct family *f, const uint8_t *keep)
{
    int *list = malloc(((size_t)f->n + 1) * sizeof *list), n = 0;
    struct family part;
    if (!list)
        return -1;
    for (int c = 0; c < f->n; c++)
        if (keep[c])
            list[n++] = c;
    int bad = topt_family_pick(f, list, n, &part);
    topt_family_fini(bad ? &part : f);
    if (!bad)
        *f = part;
    free(list);
    return bad;
}

static int keep_stays(struct ahead *h)
{
    struct topt_problem *p = h->p;
    uint8_t **keep = calloc((size_t)p->nfamilies + 1, sizeof *keep);
    int bad = !keep;
    for (int i = 0; !bad && i < p->nfamilies; i++)
        bad = !(keep[i] = calloc((size_t)p->family[i].n + 1, 1));
    if (!bad)
        share(h, keep);
    for (int i = 0; !bad && i < p->nfamilies; i++)
        bad = keep_of_family(&p->family[i], keep[i]);
    for (int i = 0; keep && i < p->nfamilies; i++)
        free(keep[i]);
    free(keep);
    return bad ? no_memory(h->err) : 0;
}

/* What is searched is all of it, however little is left to look at. */
static void count_space(const struct ahead *h, struct topt_problem_stats *ret)
{
    ret->edge_entries = topt_messages_entries(&h->m, NULL);
    for (int i = 0; i < h->p->nplaces; i++)
        ret->configs += h->m.spot[i].n;
    for (int i = 0; i < h->p->nfamilies; i++)
        if (h->p->family[i].nfrom > ret->layouts)
            ret->layouts = h->p->family[i].nfrom;
}

/* Where places alone tell nothing, edges would tell little; of more entries than that, sweeps take many seconds. */
static int pays(const struct ahead *h)
{
    int64_t left = topt_messages_entries(&h->m, h->stays);
    return left <= topt_messages_entries(&h->m, NULL) / 4 * 3 && left <= MOST_ENTRIES;
}

/* Places alone; where floors tell too little of them, with exact prices. */
static int look_at_places(struct ahead *h, int *ret_pays)
{
    *ret_pays = 1;
    if (weigh_groups(h, 0))
        return -1;
    if (h->aim->thorough || pays(h))
        return 0;
    *ret_pays = topt_families_open(h->p);
    if (!*ret_pays)
        return 0;
    topt_messages_clear(&h->m);
    if (topt_messages_settle(&h->m) || weigh_groups(h, 0))
        return -1;
    *ret_pays = pays(h);
    return 0;
}

static int narrow(struct ahead *h)
{
    int worth;
    if (make_corners(h) || look_at_places(h, &worth))
        return -1;
    if (!worth)
        return 0;
    int exact = !h->p->options.floors || topt_families_open(h->p);
    count_space(h, &h->p->listed);
    return weigh_groups(h, exact ? MESSAGES_SWEEPS : MESSAGES_FLOOR_SWEEPS) ||
                   keep_stays(h)
               ? -1
               : 0;
}

static int stays_init(struct ahead *h)
{
    h->stays = calloc((size_t)h->p->nplaces + 1, sizeof(uint8_t *));
    int bad = !h->stays;
    for (int i = 0; !bad && i < h->p->nplaces; i++)
        bad = !(h->stays[i] = calloc((size_t)h->m.spot[i].n + 1, 1));
    return bad ? no_memory(h->err) : 0;
}

static void ahead_fini(struct ahead *h)
{
    for (int i = 0; h->stays && i < h->p->nplaces; i++)
        free(h->stays[i]);
    free(h->stays);
    free(h->corner);
    topt_messages_fini(&h->m);
}

int topt_problem_looks_ahead(const struct topt_problem *p)
{
    const struct topt_aim *a = p->options.aim;
    return a && !p->options.restriction && (a->nknown || a->time_limit) &&
           topt_orbits_few(p->k.mesh);
}

static int look(struct topt_problem *p, struct topt_error *err)
{
    struct ahead h = {.p = p, .err = err, .aim = p->options.aim};
    p->by_orbits = !p->floors; /* on meshes without other floors they are few */
    int rc = topt_messages_init(&h.m, p, err) || stays_init(&h) || narrow(&h) ? -1 : 0;
    p->by_orbits = 0;
    ahead_fini(&h);
    topt_moves_fini(p);
    return rc;
}

int topt_problem_narrow(struct topt_problem *p, struct topt_error *err)
{
    if (!topt_problem_looks_ahead(p))
        return 0;
    if (topt_problem_places(p, err) || look(p, err))
        return -1;
    p->options.aim = NULL; /* the caller's */
    if (!p->floors) {      /* they are of this alone */
        topt_orbit_set_destroy(p->orbits);
        p->orbits = NULL;
    }
    for (int i = 0; i < p->nfamilies; i++)
        if (topt_family_finish(p, &p->family[i], err))
            return -1;
    return 0;
}
