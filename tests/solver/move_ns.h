/* move_ns.h - the time of one move, worked out plainly. */
#ifndef TOPT_TEST_MOVE_NS_H
#define TOPT_TEST_MOVE_NS_H

#include "topt_layout.h"

static inline int64_t move_ns(const struct topt_hw *hw, const struct topt_mesh *mesh,
                              const struct topt_shape *s, const struct topt_move *m,
                              int element_bytes)
{
    if (m->kind == TOPT_MOVE_SLICE)
        return 0;
    return topt_hw_collective_ns(hw, topt_move_collective(m->kind),
                                 topt_mesh_group(mesh, m->axes),
                                 topt_move_bytes(mesh, s, m, element_bytes));
}

#endif
