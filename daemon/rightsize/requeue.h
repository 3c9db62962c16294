/* requeue.h - running jobs stopped, made smaller and let wait again.
 *
 *     a reservation for root keeps the nodes, so that nobody starts on a part of what is freed
 *     scontrol requeuehold    each job stops, and is held: it can't start half changed
 *     scontrol update         its shape, once it has stopped
 *     scontrol release        and its priority as it was: it keeps its place
 *     the reservation is deleted, and Slurm gives what is free by priority
 *
 * Where a run is ended in between, the next one goes on from wherever a job is: one that still runs is left
 * alone, one that is held by its requeue is changed and released.  The reservation ends by itself after
 * REQUEUE_KEPT_MIN minutes.  Thread safety: reentrant. */
#ifndef TOPT_RIGHTSIZE_REQUEUE_H
#define TOPT_RIGHTSIZE_REQUEUE_H

#include "change.h"
#include "journal.h"

enum { REQUEUE_KEPT_MIN = 3, REQUEUE_WAIT_MS = 90000 };

/* The nodes of jobs that stop, as Slurm lists them, are kept, or given back: an error says that they could not be. */
int requeue_keep_nodes(const char *scontrol, const char *nodes,
                       struct topt_error *err) TOPT_MUST_CHECK;
void requeue_give_nodes(const char *scontrol);

/* Tell a job to stop: RIGHTSIZE_BEGUN, or what became of it. */
enum rightsize_result requeue_stop(const char *scontrol, struct rightsize_entry *e);
/* Go on with what was begun, waiting until 'deadline' (ms of the monotonic clock) for it to stop:
 * RIGHTSIZE_BEGUN where it hasn't. */
enum rightsize_result requeue_finish(const char *scontrol, int64_t deadline,
                                     struct rightsize_entry *e);

#endif
