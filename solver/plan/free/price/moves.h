/* moves.h - what it costs to move tensors of one shape between layouts, each pair
 * once.  Private to plan/. */
#ifndef TOPT_MOVES_H
#define TOPT_MOVES_H

#include "free.h"
#include "topt_lower.h"

/* Costs of moving tensors of the shape of 'tensor'.  Layouts are numbered (-1: no
 * memory); what is read at a pair has been asked for, and all that was asked for
 * answered. */
struct topt_moves *topt_moves_of(struct topt_problem *p, int tensor,
                                 struct topt_error *err) TOPT_MUST_CHECK;

int topt_moves_number(const struct topt_problem *p, struct topt_moves *m,
                      const struct topt_layout *l);

int topt_moves_ask(struct topt_problem *p, struct topt_moves *m, int from, int to,
                   struct topt_error *err) TOPT_MUST_CHECK;

int topt_moves_answer(struct topt_problem *p, struct topt_moves *m,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* Where prices are bounds: ask for the exact one. */
int topt_moves_ask_exact(struct topt_problem *p, struct topt_moves *m, int from, int to,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* Without what its time rests on. */
struct topt_move_cost topt_moves_at(const struct topt_moves *m, int from, int to);

void topt_moves_fini(struct topt_problem *p);

#endif
