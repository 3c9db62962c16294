/* bench.h - one operator's kernel, timed on the device of a rank. */
#ifndef TOPT_BENCH_H
#define TOPT_BENCH_H

#include "profile.h"

/* By the clock that times its kernels: of the host the processor's time of this thread, since a
 * profile says apart from this how many cores the ranks share; of a GPU the time
 * of day, until all that was started is done. */
double topt_bench_now_ns(const struct topt_rated *on);

/* The best of a few runs of 'kernel' of 'op' whole, each long enough for the clock: what
 * disturbs only ever adds.  'ret_ops': operations, by the operator's row. */
int topt_bench_kernel(const struct topt_rated *on, const struct topt_op *op,
                      enum topt_kernel kernel, enum topt_dtype dtype, double *ret_ops,
                      double *ret_ns, struct topt_error *err) TOPT_MUST_CHECK;

/* The host, or the module's device; close it afterwards. */
int topt_bench_open(const struct topt_rated *on, enum topt_dtype dtype,
                    struct topt_device *ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
