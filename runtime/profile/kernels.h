/* kernels.h - times of single kernels, of every kind that training runs.  See kernels.c. */
#ifndef TOPT_PROFILE_KERNELS_H
#define TOPT_PROFILE_KERNELS_H

#include <jansson.h>

#include "survey.h"
#include "topt_comm.h"
#include "topt_hw.h"

/* A kernel's numbers (topt_kernel_features), or a sweep's bytes, and its time, the mean of 'of' that were
 * alike. */
struct topt_kernel_sample {
    enum topt_kernel kernel;
    const char *name, *variant; /* of the kernel, or of the sweep */
    double x[4], ns;
    int of;
};

struct topt_kernel_samples {
    int n, cap;
    struct topt_kernel_sample *sample;
};

/* In f32, of models whose layers are at most half of 'most' wide, and of the narrowest always; every rank calls it and gets the
 * slowest rank's times.  'where': the nodes, in words.  'ret' starts empty; the caller ends it. */
int topt_measure_kernels(struct topt_comm *comm, struct topt_survey *survey,
                         const char *where, int64_t most, struct topt_kernel_samples *ret,
                         struct topt_error *err) TOPT_MUST_CHECK;
void topt_kernel_samples_fini(struct topt_kernel_samples *s);
/* Rows of device.kernels; new reference. */
json_t *topt_kernel_samples_json(const struct topt_kernel_samples *all);

#endif
