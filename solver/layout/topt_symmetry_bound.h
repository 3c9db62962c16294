/* topt_symmetry_bound.h - layouts whose axes have no names, and what moves between those take
 * at least.
 *
 * Axes of one level and one size are alike (topt_mesh_alike).  Layouts that differ
 * only by which of such axes do what are one orbit: it says of what kinds the axes are
 * that split a dimension, in their order, and how many of each kind are partial, or
 * replicated.  On 64 devices thousands of layouts have a few hundred orbits.
 *
 * Thread safety: one owner. */
#ifndef TOPT_SYMMETRY_BOUND_H
#define TOPT_SYMMETRY_BOUND_H

#include "topt_layout.h"

/* The layout that stands for all of its orbit, in its place. */
void topt_orbit_first(const struct topt_mesh *mesh, struct topt_layout *l);

/* The orbits of layouts of tensors of one shape that split some of its dimensions
 * ('dims', as bits); borrows the profile.  NULL: no memory. */
struct topt_symmetry_bound;
struct topt_symmetry_bound *topt_symmetry_bound_create(const struct topt_hw *hw,
                                                       const struct topt_mesh *mesh,
                                                       const struct topt_shape *s,
                                                       uint32_t dims, int element_bytes);
void topt_symmetry_bound_destroy(struct topt_symmetry_bound *o);
/* Are there so few that paths between all of them are soon found? */
int topt_orbits_few(const struct topt_mesh *mesh);
int topt_symmetry_bound_orbit(const struct topt_symmetry_bound *o,
                              const struct topt_layout *l);
/* Nanoseconds, never more than topt_router_route finds between any of a layout's orbit
 * and any of another's; TOPT_ROUTE_FAR where there is no way.  -1: no memory. */
int64_t topt_symmetry_bound_ns(struct topt_symmetry_bound *o, int from, int to);

/* The orbits of all shapes that are asked for, made when they are; borrows the
 * profile.  NULL: no memory. */
struct topt_symmetry_bounds;
struct topt_symmetry_bounds *topt_symmetry_bounds_create(const struct topt_hw *hw,
                                                         const struct topt_mesh *mesh);
void topt_symmetry_bounds_destroy(struct topt_symmetry_bounds *s);
/* The bounds of layouts that split no other dimensions; borrowed. */
struct topt_symmetry_bound *topt_symmetry_bounds_of(struct topt_symmetry_bounds *s,
                                                    const struct topt_shape *shape,
                                                    uint32_t dims, int element_bytes);
/* The dimensions that a layout splits, as bits. */
uint32_t topt_orbit_dims(const struct topt_mesh *mesh, const struct topt_layout *l);

#endif
