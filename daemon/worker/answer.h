/* answer.h - what a worker answers to each request of work/frame.h.
 * Thread safety: one thread at a time. */
#ifndef TOPTD_ANSWER_H
#define TOPTD_ANSWER_H

#include <stdatomic.h>

#include "frame.h"
#include "topt_progress.h"

struct planner;

/* What is said to, and seen of, an operation while it runs. */
struct watch {
    atomic_bool stop, cancel, brief;
    struct topt_progress progress;
};

/* Fill 'reply', ended, with DONE or FAIL; without memory for either, 'reply' is left empty. */
void answer(struct planner *planner, struct frame *request, struct watch *w,
            struct frame *reply);

#endif
