/* devices.h - the device of a rank, and how devices talk. */
#ifndef TOPT_RUNTIME_DEVICES_H
#define TOPT_RUNTIME_DEVICES_H

#include "topt_comm.h"
#include "topt_device.h"

/* What a rank computes on and how devices talk: 'device' "host" or "cuda", 'comm'
 * "auto", "mpi", "nccl" or "staged"; 'host' between the hosts.  auto: NCCL where each
 * rank has a GPU of its own, staged where they share. */
struct topt_module;
struct topt_run_device {
    const char *device, *comm;
    struct topt_comm *host;
    struct topt_device dev;
    const struct topt_module *module; /* NULL for the host */
    int index;                        /* of the module's devices */
    uint64_t identity;
};

/* Are these names that can go together?  USAGE where not. */
int topt_run_device_check(const struct topt_run_device *d,
                          struct topt_error *err) TOPT_MUST_CHECK;
/* Each rank by itself; close 'dev' afterwards. */
int topt_run_device_open(struct topt_run_device *d, enum topt_dtype dtype,
                         struct topt_error *err) TOPT_MUST_CHECK;
/* All ranks, after all have opened: the communicator of their sessions, which is
 * 'host' itself or borrows it. */
int topt_run_device_connect(struct topt_run_device *d, struct topt_comm **ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

#endif
