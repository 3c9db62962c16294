/* reservation.h - a job's reservation: may it run there, and for how long.  Thread safety:
 * reentrant. */
#ifndef TOPTD_SITE_RESERVATION_H
#define TOPTD_SITE_RESERVATION_H

#include "site_job.h"

/* The reservation that the job names; NULL: none, several, or one that Slurm doesn't know
 * and refuses itself. */
const struct site_reservation *site_reservation_of(const struct site_slurm *s,
                                                   const struct site_job *job);

/* INFEASIBLE where the user or the account may not use it, it is of another partition, or
 * the job's time is longer than what is left of it, after which its jobs are ended. */
int site_reservation_check(const struct site_reservation *r, const struct site_job *job,
                           const char *account, const char *partition,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* Is the user in one of these groups (with commas between)?  -1 where the user isn't known here. */
int site_is_in_group(const char *groups, const char *user);

#endif
