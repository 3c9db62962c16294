/* beside.h - communication of tensor parallelism beside products.  See beside.c.  Private to lower/. */
#ifndef TOPT_BESIDE_H
#define TOPT_BESIDE_H

#include "topt_lower.h"

/* Set an end's beside_ns, of an operator's result ('made') or input. */
void topt_beside_set(const struct topt_costing *k, int op, const struct topt_config *c,
                     int made, struct topt_edge_end *ret);

/* The bytes of Transformer Engine's userbuffers where the operator is one of those that share them; 0: it has none. */
int64_t topt_beside_bytes(const struct topt_costing *k, int op,
                          const struct topt_config *c);

/* The time of an instruction that moves, where it takes 'ns' alone. */
int64_t topt_beside_move(const struct topt_costing *k, const struct topt_program *p,
                         const struct topt_instr *i, int64_t ns);

#endif
