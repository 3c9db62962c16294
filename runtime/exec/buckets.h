/* buckets.h - gradients that are reduced together, behind backward where that is asked for.
 * Inside the executor. */
#ifndef TOPT_BUCKETS_H
#define TOPT_BUCKETS_H

#include "session.h"

/* After the arena: where each bucket lies; what is between its members is 0. */
int topt_buckets_open(struct topt_session *s, struct topt_error *err) TOPT_MUST_CHECK;
void topt_buckets_close(struct topt_session *s);
/* After instruction 'i' of the last micro-batch: begin what nothing touches any more, and look
 * after what is on its way. */
int topt_buckets_behind(struct topt_session *s, int i,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* The instruction BUCKET. */
int topt_bucket_reduce(struct topt_session *s, int bucket,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
