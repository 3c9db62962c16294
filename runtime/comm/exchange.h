/* exchange.h - one move between two layouts, carried out.
 * Thread safety: one thread a communicator. */
#ifndef TOPT_EXCHANGE_H
#define TOPT_EXCHANGE_H

#include "topt_comm.h"
#include "topt_device.h"

/* This rank's block of a tensor, and where it is to go.  'staging' has at least
 * topt_move_staging_bytes (may be NULL where that is 0); 'counts' has room for 2 *
 * ranks. */
struct topt_exchange {
    struct topt_comm *comm;
    struct topt_device *device;
    const struct topt_shape *shape;
    enum topt_comm_number number; /* of an element: TOPT_COMM_F32, _F64 or _32 */
    const struct topt_move *move;
    const void *src;
    void *dst; /* == src only for an all-reduce */
    void *staging;
    int64_t *counts;
};

/* Every rank of the mesh calls it. */
int topt_exchange(const struct topt_exchange *x, struct topt_error *err) TOPT_MUST_CHECK;

/* The windows of an operand filled from the blocks of their neighbours; or, 'add',
 * windows of its gradient added up into blocks, which are zero before.  'staging' has
 * at least topt_window_staging elements. */
struct topt_halo {
    struct topt_comm *comm;
    struct topt_device *device;
    const struct topt_op *op;
    int window; /* operand */
    const struct topt_config *config;
    enum topt_comm_number number;
    uint32_t axes;
    int add;
    const void *src;
    void *dst, *staging;
    int64_t *counts;
};
int topt_exchange_halo(const struct topt_halo *x, struct topt_error *err) TOPT_MUST_CHECK;

/* What of box 'a' is also in 'b'; empty in every dimension where nothing is. */
struct topt_box topt_box_meet(int ndim, const struct topt_box *a,
                              const struct topt_box *b);

#endif
