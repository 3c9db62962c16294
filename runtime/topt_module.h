/* topt_module.h - backends that are loaded when they are asked for.
 *
 * A backend that needs a vendor's libraries is a shared object, libtopt_rt_NAME.so,
 * with one symbol: 'topt_module', a table of this type.  So no program needs those
 * libraries to start, and a machine without them gets one clear line.  It is looked
 * for in $TOPT_MODULE_PATH (a folder, or several with colons between), else beside the
 * program.  A module that was loaded stays loaded.  Thread safety: any number of
 * threads may load; a device belongs to one at a time. */
#ifndef TOPT_MODULE_H
#define TOPT_MODULE_H

#include "topt_comm.h"
#include "topt_device.h"

struct topt_module {
    int abi; /* TOPT_DEVICE_ABI that it was built with; the first field in every version */
    const char *name;
    /* How many devices this process sees; fails where there are none, saying why. */
    int (*count)(int *ret, struct topt_error *err);
    /* Open device 'index' modulo their number.  'ret_identity': the same number for
     * the same hardware, in whatever process. */
    int (*open)(enum topt_dtype dtype, int index, struct topt_device *ret,
                uint64_t *ret_identity, struct topt_error *err);
    /* A communicator over the vendor's library between the devices of all ranks.
     * 'control' (borrowed, as is 'd') carries what is small and the hosts': ids, sums,
     * failures.  Every rank calls it, each with a device of its own.  NULL where the
     * module has none. */
    int (*communicator)(struct topt_comm *control, struct topt_device *d,
                        struct topt_comm **ret, struct topt_error *err);
};

/* NOTFOUND where there is no such file, DEVICE where it can't be used. */
int topt_module_load(const char *name, const struct topt_module **ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
