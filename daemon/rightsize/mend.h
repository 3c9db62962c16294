/* mend.h - changes that a run had begun when it was ended.  Thread safety: none. */
#ifndef TOPT_RIGHTSIZE_MEND_H
#define TOPT_RIGHTSIZE_MEND_H

#include "journal.h"

/* Each of them that is half done is put back, and the log says what became of all.  '*ret_n':
 * jobs that were put back, so that 'q' is old. */
int rightsize_mend(struct journal *j, const struct site_queue *q, const char *scontrol,
                   size_t *ret_n, struct topt_error *err) TOPT_MUST_CHECK;

#endif
