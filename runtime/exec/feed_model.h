/* feed_model.h - inside the feeds: what of a model takes samples, and where a number
 * of a box stands in its sample. */
#ifndef TOPT_FEED_MODEL_H
#define TOPT_FEED_MODEL_H

#include "topt_runtime.h"

/* What a model takes.  Labels and targets are the data of its loss; tokens and
 * features are that of all else. */
struct topt_feed_needs {
    const struct topt_op *tokens, *features; /* the first that takes them, or NULL */
    int nfeatures;                           /* operators that take features */
    const struct topt_op *encoder;           /* of an encoder beside 'tokens', or NULL */
    int64_t vocab;                           /* least of those that take tokens */
    const struct topt_op *loss;
    int64_t classes; /* of the labels; 0: the loss takes targets */
    int64_t sample;  /* numbers of a sample's features */
    int64_t answers; /* labels or targets of a sample */
};
struct topt_feed_needs topt_feed_needs_of(const struct topt_model *m);
/* Is it the table of kinds of tokens ("types"), of which a text has one?  Its numbers of a
 * box: zeros; returns 0. */
int topt_feed_is_kinds(const struct topt_op *op);
int topt_feed_zeros(const struct topt_op *op, int operand, const struct topt_box *box,
                    int32_t *ret);
/* Whole numbers that an operator takes are below this: the extent of its dimension
 * "v", or the rows of its smallest table; and those of an element of a sample. */
int64_t topt_feed_below(const struct topt_op *op, int operand, int64_t element);

/* Element 'i' of a box, row-major: its sample in the global batch and its number in
 * it. */
struct topt_feed_place {
    int64_t sample, element;
};
struct topt_feed_place topt_feed_place(const struct topt_op *op, int operand,
                                       const struct topt_box *box, int64_t i);
int64_t topt_feed_elements(const struct topt_op *op, int operand,
                           const struct topt_box *box);
/* So many elements of a box lie one after the other in a sample, from each multiple on. */
int64_t topt_feed_run(const struct topt_op *op, int operand, const struct topt_box *box);
/* -1 where a box reaches beyond the global batch, which is our bug. */
int topt_feed_check(const struct topt_op *op, const struct topt_box *box, int64_t batch,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
