/* confine.h - what a worker may do, which parses what strangers sent: compute, and talk over the
 * socket that it has.
 *
 * Each call holds for the calling thread and those that it starts, for good, so it comes before
 * there are others.  Both do nothing, and say so, in a build with a sanitizer. */
#ifndef TOPTD_CONFINE_H
#define TOPTD_CONFINE_H

#include "topt_error.h"

enum confined { CONFINED_NOT, CONFINED };

/* Landlock: no file can be opened, made or removed, nor a TCP port used.  '*ret' is CONFINED_NOT
 * where the kernel has no Landlock. */
int confine_files(enum confined *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* seccomp: of the system's calls those alone that memory, threads, clocks and open descriptors
 * take; the others fail with EPERM.  '*ret' is CONFINED_NOT where the kernel has no seccomp, or
 * where this was built without libseccomp. */
int confine_calls(enum confined *ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
