/* topt_queue.h - what of a device's work may run beside what: its queues.
 *
 * Work of one queue runs in the order in which it was put there; between queues there is no
 * order but by events (topt_device.h).  All functions of a device and collectives put their work
 * on the queue of computation; a collective may be put on the queue of communication instead
 * (topt_comm.h), and then runs beside what computes until somebody waits for it. */
#ifndef TOPT_QUEUE_H
#define TOPT_QUEUE_H

#include "topt_error.h"

#include <stdint.h>

enum topt_queue { TOPT_QUEUE_COMPUTE, TOPT_QUEUE_COMMUNICATION };

/* What moves the queue of communication of hosts, which have none of their own: a communicator's
 * (topt_comm.h).  Calls are counted from 1 in the order in which they were put there. */
struct topt_engine {
    int64_t (*last)(void *ctx); /* of the call that was put there last; 0: none */
    /* Until call 'upto' and all before it are done; look after those that are not, and wait for
     * none, where it is 0. */
    int (*advance)(void *ctx, int64_t upto, struct topt_error *err);
    void *ctx;
};

#endif
