/* layout_graph.h - the graph of layouts without names: layouts are its vertices, moves
 * its arcs.  Private to layout/.
 *
 * The graph depends on the number of groups and of dimensions alone, so that all
 * searches on as many share it.  The moves from a layout are listed when a search
 * first settles it.  Moves from a layout that have the same kind and the same groups
 * take the same time: they are one class, and a search that has no use for that time
 * skips all of them. */
#ifndef TOPT_LAYOUT_GRAPH_H
#define TOPT_LAYOUT_GRAPH_H

#include "layout_state.h"

enum { TOPT_GRAPH_NONE = -1, TOPT_GRAPH_REORDERED = 4 };

struct topt_move_class {
    int32_t shape; /* whose blocks are sent, or result from a gather */
    int32_t arc;   /* the first of the layouts there */
    int32_t narcs;
    uint16_t groups;   /* that they vary along */
    uint8_t kind, dim; /* 'dim' of a permutation */
    /* A permutation's groups that keep their place between others, and the axes that come to
     * stand outside of them, or no longer do.  Where these are of different sizes such a
     * group's blocks move, too. */
    uint16_t between, in, out;
};

/* Moves from a layout: classes.  n NONE: not listed yet. */
struct topt_move_classes {
    int32_t first, n;
};

struct topt_layout_vertex {
    uint64_t state;
    int32_t shape; /* which groups split which dimension */
    struct topt_move_classes out;
};

struct topt_layout_graph {
    int ngroups, ndims;
    struct topt_layout_vertex *vertex;
    int nvertices, vertex_cap, nlisted; /* the moves of the first so many are listed */
    int32_t *slot;                      /* hash of states */
    int nslots;
    uint64_t *shape; /* sets by dimension, TOPT_STATE_GROUPS bits each */
    int nshapes, shape_cap;
    int32_t *shape_slot;
    int nshape_slots;
    struct topt_move_class *class;
    int nclasses, class_cap;
    int32_t *arc; /* numbers of layouts */
    int32_t narcs, arc_cap;
    int failed; /* memory was short */
};

void topt_layout_graph_fini(struct topt_layout_graph *a);
int64_t topt_layout_graph_bytes(const struct topt_layout_graph *a);
/* The vertex of a state, which may be new; NONE where memory is short. */
int32_t topt_layout_graph_number(struct topt_layout_graph *a, uint64_t state);
/* List the moves from one layout; from all layouts. */
int topt_layout_graph_list_out(struct topt_layout_graph *a,
                               int32_t vertex) TOPT_MUST_CHECK;
int topt_layout_graph_list_all(struct topt_layout_graph *a) TOPT_MUST_CHECK;

/* The groups that a class of moves varies along, by the groups' sizes. */
uint32_t topt_layout_graph_groups(const struct topt_move_class *c, const uint16_t *size);

/* The steps of a path by its stops, one more than 'len', and the groups' sizes: slices
 * that follow each other are one.  Returns how many. */
int topt_layout_graph_steps(const struct topt_layout_graph *a, const uint16_t *size,
                            const int32_t *stop, int len, struct topt_path_step *step);

static inline uint32_t topt_layout_graph_set(uint64_t shape, int dim)
{
    return (uint32_t)(shape >> (TOPT_STATE_GROUPS * dim)) &
           ((1u << TOPT_STATE_GROUPS) - 1);
}

#endif
