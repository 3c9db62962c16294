/* model_graph.h - what importers and the files of this folder share of building a model.
 * Private to model/. */
#ifndef TOPT_MODEL_GRAPH_H
#define TOPT_MODEL_GRAPH_H

#include <stdarg.h>

#include "topt_model.h"

/* Samples of a step and most positions of one where neither model nor user says. */
enum { TOPT_DEFAULT_BATCH = 8, TOPT_DEFAULT_SEQ = 1024 };

/* blocks.c: fill m->alike, m->repeats and m->blocks; or take them from the same model
 * of another batch, on which they do not depend. */
int topt_model_find_repeats(struct topt_model *m, struct topt_error *err) TOPT_MUST_CHECK;
int topt_model_copy_repeats(struct topt_model *to, const struct topt_model *from,
                            struct topt_error *err) TOPT_MUST_CHECK;
void topt_model_free_blocks(struct topt_model *m);
/* units.c: fill m->unit, which tells alike operators apart; then m->share, which they have in
 * common; or take both from the same model of another batch. */
int topt_model_find_units(struct topt_model *m, struct topt_error *err) TOPT_MUST_CHECK;
int topt_model_find_shares(struct topt_model *m, struct topt_error *err) TOPT_MUST_CHECK;
int topt_model_copy_units(struct topt_model *to, const struct topt_model *from,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* Fills what an operator's backward does, once its inputs are known (backward.c). */
void topt_op_find_backward(struct topt_op *op);

/* Append an operator on up to two tensors (negative ones are left out), named with a prefix
 * and a format.  Does nothing and gives -1 where '*failed' is set, and sets it where it fails. */
__attribute__((format(printf, 9, 0))) int
topt_model_append(struct topt_model *m, int *failed, const char *prefix, const char *kind,
                  int x, int y, const struct topt_attrs *attrs, struct topt_error *err,
                  const char *fmt, va_list ap);

/* The attributes of a square window that moves by 'stride', over an image with a border of
 * 'pad' on each side. */
struct topt_attrs topt_attrs_window(int64_t size, int64_t stride, int64_t pad);

/* Set 'train' of a model to a copy of 'spec'. */
int topt_model_say_trained(struct topt_model *m, const char *spec,
                           struct topt_error *err) TOPT_MUST_CHECK;

#endif
