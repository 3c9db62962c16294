/* admit.h - two ranks that meet on a connection show each other that they know a secret. */
#ifndef TOPT_ADMIT_H
#define TOPT_ADMIT_H

#include "proof.h"

/* Both wait until 'until' on the monotonic clock, in milliseconds; -1 where the other side
 * does not know the secret or says nothing in time. */

/* Rank 0's side: the rank, 1 to size - 1, that is at the other end. */
int topt_admit(int fd, const struct topt_secret *s, int size, int64_t until);
/* The other side, which says that it is 'rank'. */
int topt_present(int fd, const struct topt_secret *s, int rank, int64_t until);

#endif
