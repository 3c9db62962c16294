/* strategy_code.h - uniform strategies as short texts that depend on no grid.  Private to
 * plan/.
 *
 * In the uniform space an operator gives the data axes to one dimension and the tensor
 * axes to one, or to none.  So what it does is a symbol: both dimensions, its level of
 * sharding, and whether it recomputes; a tensor that waits has both dimensions and what
 * is kept of it. A strategy is a word, a letter for each operator, for each tensor that
 * several read, and for what each input keeps.  Alike variants of all grids and
 * micro-batches have the same words. */
#ifndef TOPT_STRATEGY_CODE_H
#define TOPT_STRATEGY_CODE_H

#include <jansson.h>

#include "topt_lower.h"

enum { TOPT_STRATEGY_SYMBOLS = 62 }; /* letters and digits */

struct topt_strategy_symbol {
    int8_t data, tensor; /* dimensions, -1: none */
    uint8_t how;         /* sharding of an operator, what is kept of a tensor */
    uint8_t recompute;
};

struct topt_strategy_codes {
    int nsymbols;
    struct topt_strategy_symbol symbol[TOPT_STRATEGY_SYMBOLS];
    int n;
    char **word;
};

void topt_strategy_codes_fini(struct topt_strategy_codes *s);

/* The number of a strategy's word, added where it is new; -1 where it is not uniform with
 * this many data axes, or has no word for other reasons. */
int topt_strategy_code_add(struct topt_strategy_codes *s, const struct topt_model *m,
                           const struct topt_mesh *mesh, int cut,
                           const struct topt_strategy *st);

/* The strategy of a word (new); NULL where the word is not of such a model, or without
 * memory. */
struct topt_strategy *topt_strategy_code_read(const struct topt_strategy_codes *s,
                                              int word, const struct topt_model *m,
                                              const struct topt_mesh *mesh, int cut);

/* Into a document, words folded: what repeats is written once, "(abc)31". */
void topt_strategy_codes_write(const struct topt_strategy_codes *s, json_t *doc);
int topt_strategy_codes_read(const json_t *doc, struct topt_strategy_codes *ret,
                             struct topt_error *err) TOPT_MUST_CHECK;

#endif
