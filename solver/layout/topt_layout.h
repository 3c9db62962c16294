/* topt_layout.h - where the pieces of a tensor are.
 *
 * Devices are numbered row-major over a list of axes, outermost first: 2 nodes of 8
 * GPUs is [n:2 | g:2 g:2 g:2].  A layout says for each axis whether the tensor is
 * Replicated along it, Sharded in one of its dimensions, or Partial (the values along
 * the axis must be summed).  A dimension sharded by several axes carries their
 * order, outermost first, and splits one axis after the other: at each, a block of c
 * counts becomes pieces of ceil(c / size), the last ones short or empty.  So gathering
 * over the innermost axis undoes exactly the last split, and every layout has an
 * offset and a length for each device.  Where devices along the first axis are unlike,
 * pieces along it are in proportion to the axis's shares, and those of sharded
 * parameters and states in proportion to other shares, as memory differs from speed.
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
    /* ... of parameters, gradients and states that it shards (ZeRO); all 0: as 'share' */
    int state_share[TOPT_MAX_SHARES];
    int costed; /* 1 + the part of the first axis whose blocks are costed; 0: the largest */
};

int topt_mesh_init(struct topt_mesh *mesh, int nodes, int per_node,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* A mesh whose first axis has 'parts' parts, prime or not, of the nodes, or of one node's devices.
 * INVAL where 'parts' does not divide them. */
int topt_mesh_init_parts(struct topt_mesh *mesh, int parts, int nodes, int per_node,
                         struct topt_error *err) TOPT_MUST_CHECK;
/* Sets unequal shares of the first axis, one for each of its devices.  The largest must come first
 * (INVAL), so that no block is larger than that of device 0. */
int topt_mesh_shares(struct topt_mesh *mesh, const int64_t *share, int n,
                     struct topt_error *err) TOPT_MUST_CHECK;
/* The same in any order, for the costs of one part alone. */
int topt_mesh_costed_shares(struct topt_mesh *mesh, const int64_t *share, int n,
                            struct topt_error *err) TOPT_MUST_CHECK;
/* Sets the shares of parameters, gradients and states that the first axis shards, in any order. */
int topt_mesh_state_shares(struct topt_mesh *mesh, const int64_t *share, int n,
                           struct topt_error *err) TOPT_MUST_CHECK;
/* The parts that an axis splits a dimension into, of which devices take one each, or their shares. */
int64_t topt_mesh_parts(const struct topt_mesh *mesh, int axis);
/* The device whose blocks are costed: the first of the part that is 'costed', or device 0. */
int topt_mesh_costed_device(const struct topt_mesh *mesh);
/* Coordinate of 'device' on 'axis'. */
int topt_mesh_coord(const struct topt_mesh *mesh, int device, int axis);
/* How the groups that vary along 'axes' (bit mask) lie on the cluster. */
struct topt_group topt_mesh_group(const struct topt_mesh *mesh, uint32_t axes);
/* Are two axes of one level and one size?  Such axes are neighbours, and costs stay the same when
 * they change places. */
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
/* The same where 'to' only gathers axes of 'from'; else 0. */
uint32_t topt_layout_gathered_mask(const struct topt_layout *from,
                                   const struct topt_layout *to);

/* A tensor's shape.  'of_state': the first axis splits it by state_share.
 *
 * 'rows' (borrowed): the tensor is a sequence of tables with so many rows each; dimension 0 counts
 * tables, and dimension 1 counts C equal shares of each table's rows.  Of a table of R rows, shares
 * [o, o+n) are rows from ceil(o R / C) to below ceil((o+n) R / C).  So every table is split into like
 * parts, and a block has the rows of its tables, one table after the other. */
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
/* A block's part of one of its tables: rows [first, first + rows) of the table, behind 'before' rows
 * of other tables in the block.  A shape without 'rows' is one table, whose rows are dimension 0. */
struct topt_piece {
    int64_t first, rows, before;
};
struct topt_piece topt_box_piece(const struct topt_shape *s, const struct topt_box *b,
                                 int64_t table);
/* The first of a block's tables, and their number; 0 and 1 of a shape without 'rows'. */
int64_t topt_box_tables(const struct topt_shape *s, const struct topt_box *b,
                        int64_t *ret_n);
/* Is a device's block costed, and the largest of the blocks with the same part of dimension 'dim'?
 * Where devices are alike, it is so for the first device along each axis that does not split 'dim'. */
int topt_layout_leads(const struct topt_mesh *mesh, const struct topt_layout *l, int dim,
                      int device);
/* Elements of the largest block among those that are costed; except of tables it is device 0's. */
int64_t topt_layout_elements(const struct topt_mesh *mesh, const struct topt_shape *s,
                             const struct topt_layout *l);
/* A device's first count, and number of counts, of a dimension of 'count' that these axes split. */
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

/* Bytes that a move stages between blocks of 'from' and 'to' bytes. */
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
/* The time of a collective along 'axes', memoised. */
struct topt_time topt_router_time(struct topt_router *r, enum topt_collective c,
                                  uint32_t axes, int64_t bytes);
/* The time of a route that takes more than three months, or of none. */
#define TOPT_ROUTE_FAR (INT64_MAX / 2)
/* The cost of a redistribution.  It is the same for redistributions that differ only in the names of
 * axes of one level, of dimensions that all splits divide, or of axes that stay as they are.
 * 'transient_bytes': the most that is alive at one time, with source and result, if every buffer is
 * rounded up to 'granule'. */
struct topt_route {
    int64_t time_ns, basis_ns[TOPT_BASIS_COUNT];
    int64_t granule, transient_bytes;
};
/* The result is borrowed until a route is asked for with another granule. */
int topt_router_route(struct topt_router *r, const struct topt_shape *s,
                      int element_bytes, int64_t granule, const struct topt_layout *from,
                      const struct topt_layout *to, const struct topt_route **ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* The costs of many redistributions: all are asked for first, and then found together by 'threads'
 * threads; the result does not depend on how many.  The object that '*ret' points to is filled when
 * topt_router_answer() has returned 0.  Fails with TOPT_ERR_CANCELED where 'cancel' (may be NULL) is set
 * meanwhile. */
int topt_router_ask(struct topt_router *r, const struct topt_shape *s, int element_bytes,
                    int64_t granule, const struct topt_layout *from,
                    const struct topt_layout *to, const struct topt_route **ret,
                    struct topt_error *err) TOPT_MUST_CHECK;
int topt_router_answer(struct topt_router *r, int threads, const atomic_bool *cancel,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Is a path known, so that topt_router_path() need not search for it?  Returns 1; else it is asked
 * for, to be found beside others by topt_router_answer(), and this returns 0. */
int topt_router_seek(struct topt_router *r, const struct topt_shape *s, int element_bytes,
                     const struct topt_layout *from, const struct topt_layout *to,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Lower bounds of routes' times, by the bytes that must travel, without a search for routes
 * (byte_bound.c).  Constant once made; borrows nothing.  NULL: no memory. */
struct topt_byte_bounds;
struct topt_byte_bounds *topt_byte_bounds_create(const struct topt_hw *hw,
                                                 const struct topt_mesh *mesh);
void topt_byte_bounds_destroy(struct topt_byte_bounds *f);
/* The facts about a layout that bounds need, found once for many bounds. */
struct topt_byte_bound_end {
    /* that split the dimension, outermost first, four bits each */
    uint64_t axes[TOPT_MAX_RANK];
    int64_t parts[TOPT_MAX_RANK]; /* into which they split it */
    uint8_t naxes[TOPT_MAX_RANK];
    double elements;     /* of the tensor */
    double device, node; /* the shares of it on a device, and on a node */
    uint32_t partial;    /* axes */
    uint32_t odd;        /* dimensions that some axis splits by more than two */
    uint32_t uneven;     /* dimensions that are split into unequal parts */
};
void topt_byte_bound_end_of(const struct topt_mesh *m, const struct topt_shape *s,
                            const struct topt_layout *l, struct topt_byte_bound_end *ret);
/* Nanoseconds between two layouts that differ; never more than topt_router_route finds. */
int64_t topt_byte_bound_between(const struct topt_byte_bounds *f,
                                const struct topt_shape *s, int element_bytes,
                                const struct topt_byte_bound_end *from,
                                const struct topt_byte_bound_end *to);

/* How many different routes were asked for.  (The work of finding them depends on which thread
 * remembers which of them, and is not counted.) */
int64_t topt_router_routes(const struct topt_router *r);

/* The cheapest path of 's' from one layout to another; 'to' must not be partial where 'from' is not.
 * The result is borrowed until the router is destroyed. */
int topt_router_path(struct topt_router *r, const struct topt_shape *s, int element_bytes,
                     const struct topt_layout *from, const struct topt_layout *to,
                     const struct topt_path **ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
