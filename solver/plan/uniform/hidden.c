/* hidden.c - how much of the asynchronous communication of a uniform strategy
 * computation hides.
 *
 * Without tensor parallelism an operator has one configuration, and with a framework's own; where it
 * is free, the fastest of its few stands for whichever the search will take, since asynchronous
 * communication and what is computed hardly differ between them. */
#include "hidden.h"
#include "grid.h"
#include "grid_data.h"
#include "planning.h"
#include "request.h"
#include "restrict.h"
#include "solutions.h"
#include "space.h"
#include "topt_choices.h"
#include "topt_tensor.h"

#include <stdlib.h>
#include <string.h>

struct chooser {
    struct topt_costing k;
    struct topt_space_options o;
    const struct topt_degrees *v;
    uint8_t *may_recompute;
    struct topt_config *config; /* by operator */
    struct topt_error *err;
};

static struct topt_config with_factors(const struct chooser *c, int op,
                                       struct topt_config x)
{
    x.zero = (uint8_t)c->v->level;
    x.recompute = c->v->recompute && c->may_recompute[op];
    if (!topt_config_valid(&c->k.model->op[op], &x, c->k.mesh))
        x.zero = TOPT_ZERO_NONE;
    return x;
}

/* Choose the fastest configuration of the space; where there is none, nothing is split. */
static int choose(struct chooser *c, int op)
{
    struct topt_splits splits = topt_splits_of_op(&c->k.model->op[op]);
    struct topt_config_list list;
    int64_t best = INT64_MAX;
    int rc = 0;
    c->config[op] = topt_config_none();
    if (topt_space_configs(c->k.mesh, &splits, &c->o, &list, c->err))
        return -1;
    for (int i = 0; i < list.n && !rc; i++) {
        if (!topt_tensor_allows_op(&c->o, c->k.mesh, &c->k.model->op[op],
                                   &list.config[i]))
            continue;
        struct topt_config x = with_factors(c, op, list.config[i]);
        struct topt_fragment_cost cost = {.compute_ns = 0};
        rc = list.n > 1 && topt_cost_op(&c->k, op, &x, &cost, c->err);
        if (!rc && cost.compute_ns + cost.network_ns < best) {
            best = cost.compute_ns + cost.network_ns;
            c->config[op] = x;
        }
    }
    free(list.config);
    return rc ? -1 : 0;
}

static int choose_all(struct chooser *c)
{
    const struct topt_model *m = c->k.model;
    for (int i = 0; i < m->nops; i++) {
        int first = m->alike[i];
        const struct topt_tensor_map *t = c->o.tensor;
        if (first >= 0 && first < i && (!t || t->op[first] == t->op[i]))
            c->config[i] = c->config[first];
        else if (choose(c, i))
            return -1;
    }
    return 0;
}

int topt_uniform_hidden(struct topt_grid_search *s, struct topt_degrees *v,
                        struct topt_error *err)
{
    const struct topt_request *r = s->request;
    struct chooser c = {.v = v, .err = err};
    if (s->space != TOPT_SPACE_UNIFORM || v->hidden_ppm ||
        r->settings.overlap == TOPT_OVERLAP_NONE)
        return 0;
    c.o = (struct topt_space_options){.space = s->space,
                                      .cut = topt_degrees_data_axes(&s->mesh, v),
                                      .even = topt_request_even(r),
                                      .vocab = r->model->vocab,
                                      .sequence = topt_planning_positions(s->planning),
                                      .tensor = topt_planning_tensor(s->planning),
                                      .zero = 1 << v->level};
    if (topt_grid_costing(s, v, &c.k, err))
        return -1;
    c.config = calloc((size_t)c.k.model->nops + 1, sizeof *c.config);
    int rc = c.config ? topt_recomputable(c.k.model, c.k.settings, &c.may_recompute, err)
                      : topt_fail(err, TOPT_ERR_NOMEM, "no memory for the search");
    rc = rc || choose_all(&c) || topt_hidden_share(&c.k, c.config, &v->hidden_ppm, err);
    free(c.may_recompute);
    free(c.config);
    return rc ? -1 : 0;
}
