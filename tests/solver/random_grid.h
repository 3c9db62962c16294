/* random_grid.h - a small random model on some devices of a cluster, up to the point where its problem can be made. */
#ifndef TOPT_RANDOM_GRID_H
#define TOPT_RANDOM_GRID_H

#include "free.h"
#include "grid.h"
#include "planning.h"
#include "random_model.h"

/* Devices, and the space of strategies on them. */
struct shape {
    int nodes, per_node;
    enum topt_space space;
};

struct random_grid {
    struct topt_model *model; /* owned */
    struct topt_request request;
    struct topt_planning planning;
    struct topt_grid_search search;
    struct topt_costing costing;
    struct topt_space_options options; /* of a problem; for the caller to change */
};

static void random_grid_close(struct random_grid *g)
{
    topt_grid_close(&g->search);
    topt_planning_fini(&g->planning);
    topt_model_destroy(g->model);
}

/* Takes 'm', which may be NULL.  0: there is no problem; else the caller closes it. */
static int random_grid_open(struct random_grid *g, struct topt_model *m,
                            const struct topt_hw *hw, const struct shape *k, int alike,
                            int64_t granule)
{
    g->model = m;
    topt_request_init(&g->request);
    g->request.model = m;
    g->request.hw = hw;
    g->request.space = k->space;
    g->request.blocks = alike ? TOPT_BLOCKS_ALIKE : TOPT_BLOCKS_FREE;
    g->request.factors = 0;
    g->request.settings.granule_bytes = granule;
    if (!m || topt_planning_init(&g->planning, &g->request, NULL)) {
        topt_model_destroy(m);
        return 0;
    }
    g->options = (struct topt_space_options){
        .space = k->space, .blocks = m->blocks, .alike = alike};
    if (!topt_grid_open(&g->search, &g->planning, k->nodes, k->per_node,
                        TOPT_GOAL_FRONTIER, NULL) &&
        !topt_grid_costing(&g->search, &g->search.degrees[0], &g->costing, NULL))
        return 1;
    random_grid_close(g);
    return 0;
}

#endif
