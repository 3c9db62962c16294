/* orbit_count.c - how large the space is that a problem with orbits stands for.
 *
 *     full          b n0    b n1    b n0,n1  ...     thousands of an operator
 *                     |       |        |
 *     with orbits     `- b n -'     b n,n    ...     hundreds: which of alike axes they
 *                                                    take is left open
 *
 * A problem with orbits has for each strategy of the full space one that costs no more,
 * so that what it says of the fastest strategy holds there. */
#include "orbit_count.h"
#include "problem_data.h"

/* Orders of some axes of which so many of each kind do the same: each is the next of its
 * kind or another. */
static int64_t orders(const int *what, int n)
{
    int64_t all = 1;
    for (int i = 0; i < n; i++) {
        int same = 0;
        for (int k = 0; k <= i; k++)
            same += what[k] == what[i];
        all = all * (i + 1) / same;
    }
    return all;
}

/* In how many ways alike axes can do what they do together. */
static int64_t renamings(const struct topt_mesh *m, const int what[TOPT_MAX_AXES])
{
    int64_t all = 1;
    for (int end, first = 0; first < m->naxes; first = end) {
        end = first + 1;
        while (end < m->naxes && topt_mesh_alike(m, end - 1, end))
            end++;
        all *= orders(what + first, end - first);
    }
    return all;
}

static int64_t configs_of(const struct topt_problem *p, const struct family *f)
{
    int64_t n = 0;
    for (int i = 0; i < f->n; i++) {
        int what[TOPT_MAX_AXES] = {0};
        for (int a = 0; a < p->k.mesh->naxes; a++)
            what[a] = f->config[i].dim[a];
        n += renamings(p->k.mesh, what);
    }
    return n;
}

static int64_t classes_of(const struct topt_problem *p, const struct topt_edge_end *end,
                          int nends)
{
    int64_t n = 0;
    for (int i = 0; i < nends; i++) {
        int what[TOPT_MAX_AXES] = {0};
        for (int a = 0; a < p->k.mesh->naxes; a++)
            what[a] = end[i].value.at[a] * (TOPT_MAX_RANK + 2) + end[i].grad.at[a];
        n += renamings(p->k.mesh, what);
    }
    return n;
}

void topt_orbit_count(struct topt_problem *p)
{
    struct topt_problem_stats *all = &p->listed;
    for (int i = 0; i < p->nvariables - p->nmirrors; i++) {
        const struct domain *c = &p->domain[p->variable[i].domain];
        all->configs += configs_of(p, &p->family[c->part[0].family]);
    }
    for (int i = 0; i < p->nfamilies; i++) {
        int64_t n = classes_of(p, p->family[i].from_end, p->family[i].nfrom);
        all->layouts = n > all->layouts ? n : all->layouts;
    }
    for (int i = 0; i < p->nterms; i++) {
        const struct edge_table *t =
            &p->table[p->multiplicity[p->term[i].multiplicity].table];
        const struct family *from = &p->family[t->from], *to = &p->family[t->to];
        all->edge_entries += classes_of(p, from->from_end, from->nfrom) *
                             classes_of(p, to->to_end[t->input], to->nto[t->input]);
    }
}
