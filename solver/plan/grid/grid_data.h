/* grid_data.h - a request on one grid of nodes x devices, as types alone.  Private to
 * plan/ and its tests. */
#ifndef TOPT_GRID_DATA_H
#define TOPT_GRID_DATA_H

#include "algorithm.h"
#include "planning.h"
#include "free.h"

enum topt_goal {
    TOPT_GOAL_FRONTIER,
    TOPT_GOAL_FASTEST, /* only the fastest within the limits */
    TOPT_GOAL_LEAST    /* only the one with the least memory */
};

/* A request on one nodes x devices-per-node shape. */
struct topt_grid_search {
    const struct topt_request *request;
    struct topt_planning *planning; /* borrowed */
    struct topt_mesh mesh;
    struct topt_router *router;
    const struct topt_algorithm *algorithm; /* of another system, or NULL */
    enum topt_space space;
    int alike, factors;
    /* By number of micro-batches, those of variants that were costed: as they are, and those that
     * problems of them are priced by.  Owned. */
    struct topt_grid_settings {
        struct topt_settings settings, searched;
        struct topt_grid_settings *next;
    } * settings;
    int ndegrees;
    struct topt_degrees *degrees;    /* all variants; owned */
    struct topt_problem_stats stats; /* routes: -1 where they were not counted */
    /* Points of other shapes (owned), a frontier: of this one's, those that they are as
     * good as need not be found. */
    struct topt_cost *known;
    int nknown;
    int fastest; /* only the fastest of them is asked for */
};

#endif
