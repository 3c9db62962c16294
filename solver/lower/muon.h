/* muon.h - what the optimizer Muon takes.  See muon.c.  Private to lower/. */
#ifndef TOPT_MUON_H
#define TOPT_MUON_H

#include "topt_lower.h"

/* Is the operand a matrix of a layer, or of each of its experts?  AdamW updates embeddings, the head and vectors. */
int topt_muon_updates(const struct topt_settings *s, const struct topt_model *m, int op,
                      int operand);

/* The time of making a device's part of an operand orthogonal: 'len' is the operator's local box, 'numbers' the part's. */
int64_t topt_muon_ns(const struct topt_costing *k, int op, int operand,
                     const int64_t *len, int64_t numbers);

#endif
