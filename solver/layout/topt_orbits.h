/* topt_orbits.h - layouts whose axes have no names, and what moves between those take
 * at least.
 *
 * Axes of one level and one size are alike (topt_mesh_alike).  Layouts that differ
 * only by which of such axes do what are one orbit: it says of what kinds the axes are
 * that split a dimension, in their order, and how many of each kind are partial, or
 * replicated.  On 64 devices thousands of layouts have a few hundred orbits.
 *
 * Thread safety: one owner. */
#ifndef TOPT_ORBITS_H
#define TOPT_ORBITS_H

#include "topt_layout.h"

/* The layout that stands for all of its orbit, in its place. */
void topt_orbit_first(const struct topt_mesh *mesh, struct topt_layout *l);

/* The orbits of layouts of tensors of one shape that split some of its dimensions
 * ('dims', as bits); borrows the profile.  NULL: no memory. */
struct topt_orbits;
struct topt_orbits *topt_orbits_create(const struct topt_hw *hw,
                                       const struct topt_mesh *mesh,
                                       const struct topt_shape *s, uint32_t dims,
                                       int element_bytes);
void topt_orbits_destroy(struct topt_orbits *o);
/* Are there so few that paths between all of them are soon found? */
int topt_orbits_few(const struct topt_mesh *mesh);
int topt_orbits_number(const struct topt_orbits *o, const struct topt_layout *l);
/* Nanoseconds, never more than topt_router_route finds between any of a layout's orbit
 * and any of another's; TOPT_ROUTE_FAR where there is no way.  -1: no memory. */
int64_t topt_orbits_ns(struct topt_orbits *o, int from, int to);

/* The orbits of all shapes that are asked for, made when they are; borrows the
 * profile.  NULL: no memory. */
struct topt_orbit_set;
struct topt_orbit_set *topt_orbit_set_create(const struct topt_hw *hw,
                                             const struct topt_mesh *mesh);
void topt_orbit_set_destroy(struct topt_orbit_set *s);
/* Those of layouts that split no other dimensions; borrowed. */
struct topt_orbits *topt_orbit_set_of(struct topt_orbit_set *s,
                                      const struct topt_shape *shape, uint32_t dims,
                                      int element_bytes);
/* The dimensions that a layout splits, as bits. */
uint32_t topt_orbit_dims(const struct topt_mesh *mesh, const struct topt_layout *l);

#endif
