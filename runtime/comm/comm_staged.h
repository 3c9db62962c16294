/* comm_staged.h - a communicator between devices that goes by way of the hosts'
 * memory: device to host, a host's communicator, host to device.  Any number of ranks
 * may share a device. */
#ifndef TOPT_COMM_STAGED_H
#define TOPT_COMM_STAGED_H

#include "topt_comm.h"
#include "topt_device.h"

/* Borrows both, for its whole life. */
int topt_comm_staged(struct topt_comm *host, struct topt_device *d,
                     struct topt_comm **ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
