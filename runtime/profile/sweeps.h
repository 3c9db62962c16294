/* sweeps.h - times of updating, clearing and adding up, by size.  See sweeps.c. */
#ifndef TOPT_PROFILE_SWEEPS_H
#define TOPT_PROFILE_SWEEPS_H

#include "topt_hw_sweep.h"

/* 'bytes' that are read and written together; 'of': an optimizer, or "". */
struct topt_sweep_sample {
    enum topt_sweep sweep;
    const char *of;
    int64_t bytes;
    double ns;
};
enum { TOPT_SWEEP_SAMPLES = 64 };

/* All that are to be clocked, without times: of blocks of up to 64 'most' numbers.  Returns how many. */
int topt_sweep_samples(int64_t most, struct topt_sweep_sample ret[TOPT_SWEEP_SAMPLES]);
/* Clock 'n' of them on the host, in f32. */
int topt_clock_sweeps(struct topt_sweep_sample *s, int n,
                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
