/* host.h - inside the host backend: copies of boxes between blocks. */
#ifndef TOPT_HOST_H
#define TOPT_HOST_H

#include "topt_device.h"

/* Copy a box between two blocks; the CPU's copy_box. */
void topt_host_copy_box(const struct topt_box_copy *c);

#endif
