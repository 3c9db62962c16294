/* strategy_words.h - what a strategy splits, in a line.  Private to plan/. */
#ifndef TOPT_STRATEGY_WORDS_H
#define TOPT_STRATEGY_WORDS_H

#include "free.h"
#include "topt_framework.h"
#include "topt_text.h"

/* "data 2 x tensor 4", what a strategy splits; freed by the caller, NULL when
 * out of memory. */
char *topt_strategy_words(const struct topt_model *m, const struct topt_mesh *mesh,
                          const struct topt_strategy *s, int64_t micro_batches);

/* The same, and where 'f' is not NULL, of a uniform strategy as that framework calls it: "FSDP2 over
 * 8 GPUs, checkpointing, micro-batch size 1, 4 accumulation steps". */
char *topt_solution_words(const struct topt_framework *f, const struct topt_model *m,
                          const struct topt_mesh *mesh, const struct topt_strategy *s,
                          const struct topt_degrees *v);

/* "data 2 x tensor 4 with ZeRO-1" of one operator. */
void topt_config_words(struct topt_text *t, const struct topt_op *op,
                       const struct topt_mesh *mesh, const struct topt_config *c);

#endif
