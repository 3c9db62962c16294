/* serve.h - a worker's two threads: one listens and tells, one does what is asked.
 * Thread safety: called once. */
#ifndef TOPTD_SERVE_H
#define TOPTD_SERVE_H

#include "topt_error.h"

/* Answer what comes by the socket until its other end is closed: 0, or -1. */
int serve(int fd, struct topt_error *err);

/* What a worker does of itself before it listens: it dies with 'parent', is among the
 * first that the kernel takes when memory is short, keeps no folder busy, and takes at
 * most 'memory' bytes of address space (0: no limit).  With a sanitizer built in there is
 * no limit, as those reserve terabytes. */
int serve_alone(long long parent, long long memory, int nice, struct topt_error *err);

#endif
