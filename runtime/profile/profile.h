/* profile.h - measuring this machine as a hardware profile. */
#ifndef TOPT_PROFILE_H
#define TOPT_PROFILE_H

#include <jansson.h>

#include "topt_comm.h"
#include "topt_device.h"

/* Rates of one rank that computes alone. */
struct topt_rates {
    double flops[2];               /* f32, f64: matrix products */
    double attention, elementwise; /* flops of the operators' rows per second, f32 */
    double memory_bandwidth;
    double launch_ns;
};
int topt_measure_rates(struct topt_rates *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* Times of one collective for one geometry of group, all groups of the mesh at once. */
enum { TOPT_CURVE_POINTS = 40 };
struct topt_curve {
    enum topt_collective kind;
    uint32_t axes;
    struct topt_group group;
    int n;
    int64_t bytes[TOPT_CURVE_POINTS], ns[TOPT_CURVE_POINTS];
};

/* Every kind over every geometry the communicator's mesh has, powers of two from 1 KiB to
 * 'max_bytes'; owned by the caller.  Every rank calls it and gets the same numbers. */
int topt_measure_curves(struct topt_comm *comm, struct topt_device *dev,
                        int64_t max_bytes, struct topt_curve **ret, int *ret_n,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* The document "topt-hw/1"; new reference.  'machines' really run the mesh's nodes:
 * cores and memory are theirs. */
json_t *topt_profile_json(const char *name, const struct topt_mesh *mesh, int machines,
                          const struct topt_rates *rates, const struct topt_curve *curves,
                          int ncurves);

int64_t topt_clock_ns(void);

#endif
