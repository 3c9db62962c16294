/* pool.h - a worker process for each slot of jobs, and how it is asked.
 *
 * A slot's thread sends its process a request and waits for the answer, for orders of the
 * job, and for the end of the process.  A process that crashes, takes too much memory or
 * does not end in time costs the job that it was at, and no other: the slot starts a new
 * one.
 *
 * Thread safety: a slot belongs to one thread at a time; different slots are independent. */
#ifndef TOPTD_POOL_H
#define TOPTD_POOL_H

#include "frame.h"
#include "jobs.h"

struct pool;

struct pool_config {
    const char *program; /* toptd-worker; borrowed as long as the pool lives */
    int slots, reserved; /* as of jobs: the first are for the submit lane */
    int64_t memory;      /* bytes that a process may take; 0: no limit */
};

/* Starts no process yet. */
int pool_create(const struct pool_config *config, struct pool **ret,
                struct topt_error *err) TOPT_MUST_CHECK;
void pool_destroy(struct pool *p); /* ends its processes */

/* What is said of a failure beside its text. */
enum { POOL_SOURCE = 96 };

/* Put 'request' (ended by frame_end) to the process of run->slot and receive what it answers, to be
 * read by frame_get.  '*source' is the field at fault, or "".  CANCELED where an order ended it,
 * NOMEM where the process ran out of memory, INTERNAL where it died. */
int pool_ask(struct pool *p, const struct job_run *run, struct frame *request,
             struct frame *reply, char source[POOL_SOURCE],
             struct topt_error *err) TOPT_MUST_CHECK;
/* The same without a job, at the start: slot 0, nothing can be ordered. */
int pool_ask_first(struct pool *p, struct frame *request, struct frame *reply,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* Processes that were lost since the start: crashed, out of memory, killed at the limit. */
long long pool_lost(const struct pool *p);

/* Memory that a process may have if nobody says: three quarters of the machine's, or of what the
 * control group is allowed, shared among 'slots'; at least 1 GiB. */
int64_t pool_usual_memory(int slots);
/* The program beside this one: ../libexec/topt/toptd-worker. */
int pool_usual_program(char *ret, size_t size, struct topt_error *err) TOPT_MUST_CHECK;

#endif
