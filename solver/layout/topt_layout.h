/* topt_layout.h - where the pieces of a tensor are.
 *
 * Devices are numbered row-major over a list of axes, outermost first: 2 nodes of 8
 * GPUs is [n:2 | g:2 g:2 g:2].  A layout says for each axis whether the tensor is
 * Replicated along it, Sharded in one of its dimensions, or Partial (the values along
 * the axis must be added up).  A dimension sharded by several axes carries their
 * order, outermost first, and splits one axis after the other: at each, a block of c
 * counts becomes pieces of ceil(c / size), the last ones short or empty.  So gathering
 * over the innermost axis undoes exactly the last split, and every layout has an
 * offset and a length for each device.  The first axis may have shares instead: unlike
 * devices along it take pieces in proportion to them, of whatever it splits; and other shares
 * of sharded parameters and states, as memory is unlike speed.
 *
 * Thread safety: plain values; redistribution caches belong to one thread at a time. */
#ifndef TOPT_LAYOUT_H
#define TOPT_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#include "topt_error.h"
#include "topt_hw.h"
#include "topt_model.h"

enum { TOPT_MAX_AXES = 14, TOPT_MAX_SHARES = 16 };

/* nodes * per_node devices as axes: the node level's prime factors, then the device
 * level's, large factors first. */
struct topt_mesh {
    int naxes, node_axes; /* the first 'node_axes' axes choose the node */
    int size[TOPT_MAX_AXES];
    int nodes, per_node, devices;
    int share[TOPT_MAX_SHARES]; /* of the first axis; all 0: equal parts */
    /* ... of what a parameter is sharded into (ZeRO); all 0: as 'share' */
    int state_share[TOPT_MAX_SHARES];
    int costed; /* 1 + the part of the first axis whose blocks are costed; 0: the largest */
};

int topt_mesh_init(struct topt_mesh *mesh, int nodes, int per_node,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* A mesh with a first axis of 'parts' parts, prime or not, that choose the node, or the
 * device where there is one node.  INVAL where it does not divide them. */
int topt_mesh_init_parts(struct topt_mesh *mesh, int parts, int nodes, int per_node,
                         struct topt_error *err) TOPT_MUST_CHECK;
/* Unequal shares of the first axis, one for each of its devices, the largest first: so that no
 * block is larger than that of device 0.  INVAL where they are not that. */
int topt_mesh_shares(struct topt_mesh *mesh, const int64_t *share, int n,
                     struct topt_error *err) TOPT_MUST_CHECK;
/* Shares in any order, for the costs of one part alone. */
int topt_mesh_costed_shares(struct topt_mesh *mesh, const int64_t *share, int n,
                            struct topt_error *err) TOPT_MUST_CHECK;
/* Shares of parameters, gradients and states where the first axis shards them, in any order. */
int topt_mesh_state_shares(struct topt_mesh *mesh, const int64_t *share, int n,
                           struct topt_error *err) TOPT_MUST_CHECK;
/* Parts of which an axis takes so many each: its size, or the sum of its shares. */
int64_t topt_mesh_parts(const struct topt_mesh *mesh, int axis);
/* The device whose blocks are costed: the first of the part that is 'costed', or device 0. */
int topt_mesh_costed_device(const struct topt_mesh *mesh);
/* Coordinate of 'device' on 'axis'. */
int topt_mesh_coord(const struct topt_mesh *mesh, int device, int axis);
/* How the groups that vary along 'axes' (bit mask) lie on the cluster. */
struct topt_group topt_mesh_group(const struct topt_mesh *mesh, uint32_t axes);
/* Are two axes of one level and one size?  Such axes are neighbours, and nothing that
 * is done along them takes more or less where they change places. */
int topt_mesh_alike(const struct topt_mesh *mesh, int a, int b);
/* "n0 n1 g0 g1": a name of an axis; returns 'buf'. */
const char *topt_mesh_axis_name(const struct topt_mesh *mesh, int axis, char buf[8]);
int topt_mesh_axis_find(const struct topt_mesh *mesh, const char *name); /* or -1 */

/* at[a]: dimension of the tensor (0..), TOPT_REPLICATE or TOPT_PARTIAL.  pos[a]: place
 * among the axes of the same dimension, 0 outermost; 0 for the others.  Unused axes
 * are zero with at = TOPT_REPLICATE, so layouts compare with memcmp. */
enum { TOPT_REPLICATE = -1, TOPT_PARTIAL = -2 };

struct topt_layout {
    int8_t at[TOPT_MAX_AXES];
    int8_t pos[TOPT_MAX_AXES];
};

struct topt_layout topt_layout_replicated(void);
int topt_layout_equal(const struct topt_layout *a, const struct topt_layout *b);
/* Axes of a dimension in order, outermost first; returns how many. */
int topt_layout_axes_of(const struct topt_layout *l, int dim, int8_t ret[TOPT_MAX_AXES]);
/* The product of their sizes. */
int64_t topt_layout_parts(const struct topt_mesh *mesh, const struct topt_layout *l,
                          int dim);
uint32_t topt_layout_partial_mask(const struct topt_layout *l);
/* Axes along which two layouts differ. */
uint32_t topt_layout_changed_mask(const struct topt_layout *a,
                                  const struct topt_layout *b);
/* ... where the way between them gathers and does nothing else; 0: it does, or there is none. */
uint32_t topt_layout_gathered_mask(const struct topt_layout *from,
                                   const struct topt_layout *to);

/* A tensor's shape without its place.  'of_state': a parameter, of which the first axis makes
 * pieces by state_share.  'rows': of tables one after the other, a number of rows each (borrowed):
 * dimension 0 counts tables, dimension 1 shares of their rows.  Of shares [o, o+n) of C a table of
 * R rows has those from ceil(o R / C) to below ceil((o+n) R / C), so that every table is split into
 * like parts; and a block has the rows of its tables, one table after the other. */
struct topt_shape {
    int ndim;
    struct topt_dim dim[TOPT_MAX_RANK];
    int of_state;
    const int64_t *rows;
};

/* A device's block: per dimension the first count and how many (may be 0). */
struct topt_box {
    int64_t off[TOPT_MAX_RANK], len[TOPT_MAX_RANK];
};

struct topt_box topt_layout_box(const struct topt_mesh *mesh, const struct topt_shape *s,
                                const struct topt_layout *l, int device);
int64_t topt_box_elements(const struct topt_shape *s, const struct topt_box *b);
/* A block's part of one of its tables: rows [first, first + rows), after 'before' rows of
 * tables that stand before it in the block.  A shape that is one table has rows of dimension
 * 0. */
struct topt_piece {
    int64_t first, rows, before;
};
struct topt_piece topt_box_piece(const struct topt_shape *s, const struct topt_box *b,
                                 int64_t table);
/* The first of a block's tables, and how many they are; of one table 0 and 1. */
int64_t topt_box_tables(const struct topt_shape *s, const struct topt_box *b,
                        int64_t *ret_n);
/* Is a device's block the largest of those that have the same part of dimension 'dim', and costed?
 * The first is along each axis that does not split it, where devices are alike. */
int topt_layout_leads(const struct topt_mesh *mesh, const struct topt_layout *l, int dim,
                      int device);
/* Elements of the largest block (that of device 0, but of tables), or of those that are costed. */
int64_t topt_layout_elements(const struct topt_mesh *mesh, const struct topt_shape *s,
                             const struct topt_layout *l);
/* First count and number of counts of one dimension of 'count' split by the given
 * axes. */
void topt_split_block(const struct topt_mesh *mesh, int64_t count, const int8_t *axes,
                      int naxes, int device, int64_t *ret_off, int64_t *ret_len);

/* One collective (or free local slice) on the way between two layouts. */
enum topt_move_kind {
    TOPT_MOVE_SLICE,      /* replicated -> sharded, local */
    TOPT_MOVE_ALL_GATHER, /* sharded -> replicated, innermost axes of one dimension */
    TOPT_MOVE_ALL_TO_ALL, /* innermost axes of one dimension -> innermost of another */
    TOPT_MOVE_PERMUTE,    /* another order of a dimension's axes */
    TOPT_MOVE_REDUCE_SCATTER, /* partial -> sharded, innermost */
    TOPT_MOVE_ALL_REDUCE,     /* partial -> replicated */
};
const char *topt_move_name(enum topt_move_kind k);
/* The collective that a move is; not for slices, which are none. */
enum topt_collective topt_move_collective(enum topt_move_kind k);

struct topt_move {
    enum topt_move_kind kind;
    uint32_t axes; /* the group varies along these */
    struct topt_layout from, to;
};

struct topt_path {
    int nmoves;
    const struct topt_move *move;
    int64_t time_ns;
};

/* Bytes a move between blocks of so many stages. */
int64_t topt_move_staging(enum topt_move_kind k, int64_t from, int64_t to);
/* Bytes a move stages beside its source and destination (packing of blocks), for the cost
 * and for the runtime alike: 0 for slices and all-reduces. */
int64_t topt_move_staging_bytes(const struct topt_mesh *mesh, const struct topt_shape *s,
                                const struct topt_move *m, int element_bytes);
/* Bytes of its collective as topt_hw_collective counts them. */
int64_t topt_move_bytes(const struct topt_mesh *mesh, const struct topt_shape *s,
                        const struct topt_move *m, int element_bytes);

/* Cheapest sequences of moves, memoised for one cluster shape. */
struct topt_router;
struct topt_router *topt_router_create(const struct topt_hw *hw,
                                       const struct topt_mesh *mesh);
void topt_router_destroy(struct topt_router *r);
/* Time of a collective along 'axes', remembered. */
struct topt_time topt_router_time(struct topt_router *r, enum topt_collective c,
                                  uint32_t axes, int64_t bytes);
/* The time of what takes more than three months. */
#define TOPT_ROUTE_FAR (INT64_MAX / 2)
/* The cost of a redistribution, which is the same for all that differ by names only: of axes
 * of one level, of dimensions that all splits divide, of axes that stay as they are.
 * 'transient_bytes': alive at once at most, source and result included, where every buffer
 * is rounded up to 'granule'. */
struct topt_route {
    int64_t time_ns, basis_ns[TOPT_BASIS_COUNT];
    int64_t granule, transient_bytes;
};
/* The result is borrowed until a route is asked for with another granule. */
int topt_router_route(struct topt_router *r, const struct topt_shape *s,
                      int element_bytes, int64_t granule, const struct topt_layout *from,
                      const struct topt_layout *to, const struct topt_route **ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* The costs of many: first all are asked for, then they are found together, by 'threads'
 * threads (the result does not depend on how many).  The object that '*ret' points to is
 * filled when topt_router_answer() has returned 0.  'cancel' may be NULL; where it is set
 * meanwhile, TOPT_ERR_CANCELED. */
int topt_router_ask(struct topt_router *r, const struct topt_shape *s, int element_bytes,
                    int64_t granule, const struct topt_layout *from,
                    const struct topt_layout *to, const struct topt_route **ret,
                    struct topt_error *err) TOPT_MUST_CHECK;
int topt_router_answer(struct topt_router *r, int threads, const atomic_bool *cancel,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Is a path known (1), so that topt_router_path() need not look for it?  Else (0) it
 * is asked for, and found beside others by topt_router_answer(). */
int topt_router_seek(struct topt_router *r, const struct topt_shape *s, int element_bytes,
                     const struct topt_layout *from, const struct topt_layout *to,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* A lower bound of any route's time, by the bytes that have to travel: no route is looked
 * for (byte_bound.c).  Read only once made; borrows nothing.  NULL: no memory. */
struct topt_byte_bounds;
struct topt_byte_bounds *topt_byte_bounds_create(const struct topt_hw *hw,
                                                 const struct topt_mesh *mesh);
void topt_byte_bounds_destroy(struct topt_byte_bounds *f);
/* A bound's facts about a layout, worked out once for many bounds. */
struct topt_byte_bound_end {
    uint64_t
        axes[TOPT_MAX_RANK]; /* that split a dimension, outermost first: four bits each */
    int64_t parts[TOPT_MAX_RANK]; /* that come of it */
    uint8_t naxes[TOPT_MAX_RANK];
    double elements;      /* of the tensor */
    double device, node;  /* shares of it that a device has, and a node */
    uint32_t partial;     /* axes */
    uint32_t odd, uneven; /* dimensions: not only halved; into parts that are not equal */
};
void topt_byte_bound_end_of(const struct topt_mesh *m, const struct topt_shape *s,
                            const struct topt_layout *l, struct topt_byte_bound_end *ret);
/* Nanoseconds between two that differ, never more than topt_router_route finds. */
int64_t topt_byte_bound_between(const struct topt_byte_bounds *f,
                                const struct topt_shape *s, int element_bytes,
                                const struct topt_byte_bound_end *from,
                                const struct topt_byte_bound_end *to);

/* How many different routes were asked for.  (What finding them took depends on which
 * thread remembers what, and is not counted.) */
int64_t topt_router_routes(const struct topt_router *r);

/* Cheapest path of 's' from one layout to another ('to' is never partial where 'from' is
 * not).  The result is borrowed until the router is destroyed. */
int topt_router_path(struct topt_router *r, const struct topt_shape *s, int element_bytes,
                     const struct topt_layout *from, const struct topt_layout *to,
                     const struct topt_path **ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
