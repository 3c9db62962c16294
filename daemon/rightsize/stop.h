/* stop.h - which running jobs are stopped and wait again, because others wait for the GPUs that they got
 * beyond what they asked for.
 *
 * A job that waits is late where the plan ends it more than a tenth later (STOP_LATER_PERCENT of the time since it
 * was submitted) than if every running job had no more than it asked for.  Running jobs that have more, and agreed
 * to be requeued (--topt-elastic=requeue), are then stopped as topt_allocate_stops says: those with most beyond
 * what they asked for first, and none in vain.  A stopped job waits with the number that it asked for, before all
 * others, and goes on from its last checkpoint; its own end is held to the same bound.
 *
 * Jobs of arrays, and those whose length nobody knows, run on.  The decision is a pure function of its input.
 * Thread safety: plain values. */
#ifndef TOPT_RIGHTSIZE_STOP_H
#define TOPT_RIGHTSIZE_STOP_H

#include "model.h"

/* Slurm starts no requeued job earlier than a second after the credential of its first run has expired: 121 s
 * after it stopped, with the usual AuthInfo (seen on 22.05). */
enum { STOP_LATER_PERCENT = 10, STOP_DELAY_S = 121 };

struct rightsize_stop {
    const struct site_queued *job; /* borrowed from the queue */
    int to;                        /* of job->elastic */
    int64_t time_s;                /* its limit then; 0: none */
    char why[240];
};

/* 'm' has the waiting jobs with the shapes that they may have.  Who has run for less than 'settle_s' runs on.
 * The caller frees '*ret', of '*ret_n'. */
int stops_choose(const struct site_slurm *s, const struct site_queue *q, int64_t settle_s,
                 struct model *m, struct rightsize_stop **ret, size_t *ret_n,
                 struct topt_error *err) TOPT_MUST_CHECK;

#endif
