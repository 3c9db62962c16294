/* configs.c - which configurations a family has.
 *
 * Those of the space, each with the levels of sharding and with or without recomputation
 * that the options allow; of a hub, each layout with what may become of the copy.  Or
 * those of another problem's family, and on request all that differ from these only by
 * which of alike axes do what. */
#include "configs.h"
#include "pins.h"
#include "problem_data.h"
#include "restrict.h"
#include "space.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

/* ---- the space's ------------------------------------------------------------------- */

/* The choices of a hub for its copy; the producer's flag decides between keeping and
 * recomputing it, and a table allows only what fits.  A framework that recomputes whole
 * units keeps nothing inside of them. */
static int hub_keeps(const struct topt_problem *p, int tensor, uint8_t ret[3])
{
    int n = 0, again = topt_problem_may_recompute(p, p->k.model->tensor[tensor].producer);
    if (again && p->reread[tensor] && p->k.settings->by_unit &&
        p->options.recompute == TOPT_RECOMPUTE_ALL) {
        ret[0] = TOPT_HUB_RECOMPUTE;
        return 1;
    }
    if (p->reread[tensor]) {
        ret[n++] = TOPT_HUB_KEEP;
        if (again)
            ret[n++] = TOPT_HUB_RECOMPUTE;
    }
    ret[n++] = TOPT_HUB_DROP;
    return n;
}

static int list_hub(struct topt_problem *p, struct family *f,
                    const struct topt_splits *splits, const struct topt_config_list *list)
{
    uint8_t keep[3];
    int keeps = hub_keeps(p, f->tensor, keep), n = 0;
    f->at = calloc((size_t)(keeps * list->n + 1), sizeof *f->at);
    if (!f->at)
        return -1;
    for (int i = 0; i < keeps * list->n; i++) {
        struct topt_hub h = {list->config[i / keeps], keep[i % keeps]};
        if (!topt_allows_hub(&p->options, p->k.mesh, f->tensor, splits, &h))
            continue;
        f->at[n].config = h.layout;
        f->at[n++].hub_keep = (uint8_t)h.keep;
    }
    f->n = n;
    return 0;
}

/* Levels of sharding that a configuration takes, as bits: those asked for that mean
 * something, else none. */
static int levels_of(const struct topt_problem *p, const struct topt_op *op,
                     struct topt_config c)
{
    int levels = 0;
    for (int z = 0; z < TOPT_ZERO_COUNT; z++) {
        c.zero = (uint8_t)z;
        if (p->options.zero >> z & 1 && topt_config_valid(op, &c, p->k.mesh))
            levels |= 1 << z;
    }
    return levels ? levels : 1;
}

static int list_op(struct topt_problem *p, struct family *f,
                   const struct topt_config_list *list)
{
    int most = 2 * TOPT_ZERO_COUNT * list->n, n = 0;
    int flag = topt_problem_may_recompute(p, f->op);
    int last = flag ? 1 : 0, first = p->options.recompute == TOPT_RECOMPUTE_ALL && flag;
    f->at = calloc((size_t)most + 1, sizeof *f->at);
    if (!f->at)
        return -1;
    for (int i = 0; i < list->n; i++) {
        int levels = levels_of(p, &p->k.model->op[f->op], list->config[i]);
        for (int z = 0; z < TOPT_ZERO_COUNT; z++)
            for (int r = first; r <= last && levels >> z & 1; r++) {
                f->at[n].config = list->config[i];
                f->at[n].config.zero = (uint8_t)z;
                f->at[n].config.recompute = (uint8_t)r;
                n += topt_pins_allow(p->options.pins, p->options.alike, f->op,
                                     &p->k.model->op[f->op], p->k.mesh,
                                     &f->at[n].config) &&
                     topt_allows_op(&p->options, p->k.mesh, &p->k.model->op[f->op],
                                    &f->at[n].config);
            }
    }
    f->n = n;
    return 0;
}

/* ---- another problem's ------------------------------------------------------------- */

struct topt_config topt_config_nameless(const struct topt_mesh *m, struct topt_config c)
{
    for (int a = 1; a < m->naxes; a++)
        for (int i = a; i > 0 && topt_mesh_alike(m, i - 1, i) && c.dim[i] < c.dim[i - 1];
             i--) {
            int8_t dim = c.dim[i];
            c.dim[i] = c.dim[i - 1];
            c.dim[i - 1] = dim;
        }
    return c;
}

/* The next order of some dimensions, where they were in ascending order first; they are
 * again after the last. */
static int next_order(int8_t *dim, int n)
{
    int i = n - 2, last = n - 1;
    while (i >= 0 && dim[i] >= dim[i + 1])
        i--;
    while (i >= 0 && dim[last] <= dim[i])
        last--;
    if (i >= 0) {
        int8_t x = dim[i];
        dim[i] = dim[last];
        dim[last] = x;
    }
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        int8_t x = dim[a];
        dim[a] = dim[b];
        dim[b] = x;
    }
    return i >= 0;
}

/* The next configuration that differs only by which of alike axes do what; 0 after the
 * last, which is followed by the nameless. */
static int next_names(const struct topt_mesh *m, struct topt_config *c)
{
    for (int first, end = m->naxes; end > 0; end = first) {
        first = end - 1;
        while (first > 0 && topt_mesh_alike(m, first - 1, first))
            first--;
        if (next_order(c->dim + first, end - first))
            return 1;
    }
    return 0;
}

/* Configurations of a family, and where 'every' is asked for those which they stand for;
 * listed where 'f' has room. */
static int list_among(const struct topt_problem *p, const struct family *of,
                      struct family *f)
{
    const struct topt_mesh *m = p->k.mesh;
    int n = 0;
    for (int i = 0; i < of->n; i++) {
        struct topt_config c = p->options.every
                                   ? topt_config_nameless(m, of->at[i].config)
                                   : of->at[i].config;
        do {
            if (f) {
                f->at[n].config = c;
                f->at[n].hub_keep = of->at[i].hub_keep;
            }
            n++;
        } while (p->options.every && next_names(m, &c));
    }
    return n;
}

static int relist(struct topt_problem *p, struct family *f, struct topt_error *err)
{
    const struct family *of = &p->options.among->family[f - p->family];
    f->at = calloc((size_t)list_among(p, of, NULL) + 1, sizeof *f->at);
    if (!f->at)
        return topt_nomem(err, "configurations");
    f->n = list_among(p, of, f);
    return 0;
}

int topt_family_list(struct topt_problem *p, struct family *f, struct topt_error *err)
{
    if (p->options.among)
        return relist(p, f, err);
    struct topt_splits splits = f->op >= 0 ? topt_splits_of_op(&p->k.model->op[f->op])
                                           : topt_splits_of_tensor(p->k.model, f->tensor);
    struct topt_config_list list;
    if (topt_space_configs(p->k.mesh, &splits, &p->options, &list, err))
        return -1;
    int bad = f->op >= 0 ? list_op(p, f, &list) : list_hub(p, f, &splits, &list);
    free(list.config);
    if (!bad) /* most lists have fewer than they have room for */
        (void)TOPT_RESIZE(f->at, f->n + 1);
    return bad ? topt_nomem(err, "configurations") : 0;
}
