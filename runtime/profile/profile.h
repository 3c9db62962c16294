/* profile.h - measuring the machines under these ranks as a hardware profile. */
#ifndef TOPT_PROFILE_H
#define TOPT_PROFILE_H

#include <jansson.h>

#include "kernels.h"
#include "nodes.h"
#include "points.h"
#include "survey.h"
#include "topt_comm.h"
#include "topt_device.h"
#include "topt_module.h"

/* Whose kernels are measured: the host's, or those of device 'index' of a module; products
 * of 'most' rows and less. */
struct topt_rated {
    const struct topt_module *module; /* NULL: the host */
    int index;
    int64_t most;
};

enum { TOPT_RATED_TYPES = TOPT_BF16 + 1 };

/* Rates of a rank while all compute, by type; none of a type that is not computed in. */
struct topt_rates {
    struct topt_points product[TOPT_RATED_TYPES]; /* time against operations */
    struct topt_points attention[TOPT_RATED_TYPES];
    double elementwise; /* flops of the operators' rows per second, f32 */
    double memory_bandwidth;
    double launch_ns;                   /* what an instruction takes by itself */
    struct topt_kernel_samples kernels; /* of the host; the caller ends them */
};
/* Every rank calls it and gets the same rates, the slowest rank's; 'where': the nodes, in words.
 * 'ret_alone': operations a second that this rank itself reached, 0 where all was known. */
int topt_measure_rates(struct topt_comm *comm, struct topt_survey *survey,
                       const char *where, const struct topt_rated *on,
                       struct topt_rates *ret, double *ret_alone,
                       struct topt_error *err) TOPT_MUST_CHECK;
double topt_points_rate(const struct topt_points *p); /* the highest, per second */

/* Times of one collective for one geometry of group, all groups of the mesh at once. */
struct topt_curve {
    enum topt_collective kind;
    uint32_t axes;
    struct topt_group group;
    struct topt_points points;
};

/* Every kind over every geometry the communicator's mesh has, powers of two from 1 KiB to
 * 'max_bytes' and more where these disagree; owned by the caller.  Every rank calls it and gets
 * the same numbers.  'where': the nodes, in words. */
int topt_measure_curves(struct topt_comm *comm, struct topt_device *dev,
                        struct topt_survey *survey, const char *where, int64_t max_bytes,
                        struct topt_curve **ret, int *ret_n,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* All that a profile is made of. */
struct topt_measured {
    const char *name;
    const struct topt_mesh *mesh;
    const struct topt_nodes *nodes; /* that really run the mesh */
    const struct topt_rates *rates;
    const struct topt_curve *curves;
    int ncurves;
    int64_t runtime_low, runtime_high; /* bytes of a rank beside its buffers */
    const char *device;                /* what a GPU is called; NULL: ranks of CPUs */
    int64_t device_memory;             /* bytes of a GPU */
};
/* The document "topt-hw/1"; new reference. */
json_t *topt_profile_json(const struct topt_measured *m);

#endif
