/* batches.h - one question for several batches, and the batch that fills a GPU.  Private to cli/.
 */
#ifndef TOPT_BATCHES_H
#define TOPT_BATCHES_H

#include "ask.h"

/* --batch N,N...: the question for each, as {"batches": [row, ...]}; a row is an answer without
 * its plan, with speeds.
 */
int topt_batches_compare(struct topt_question *q, json_t **ret,
                         struct topt_error *err) TOPT_MUST_CHECK;
/* --batch auto: the smallest batch that keeps nearly the best speed on --gpus N (else on the fewest
 * that keep nearly the best speed a GPU), accumulation included, trying one sample a GPU, two, four...  The
 * question's batch is that one from now on, and '*ret' its answer with "tried".
 */
int topt_batches_fill(struct topt_question *q, json_t **ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
