/* feed.h - inside the feeds: what of a model takes samples, where a number of a box stands in
 * its sample, and the ways to open each kind. */
#ifndef TOPT_FEED_H
#define TOPT_FEED_H

#include "topt_runtime.h"

enum { TOPT_FEED_MAX_BYTES = 1 << 30 };

/* What a model takes.  Labels and targets are the data of its loss; tokens and features are
 * that of all else. */
struct topt_feed_needs {
    const struct topt_op *tokens, *features; /* the first that takes them, or NULL */
    int nfeatures;                           /* operators that take features */
    int64_t vocab;                           /* least of those that take tokens */
    const struct topt_op *loss;
    int64_t classes; /* of the labels; 0: the loss takes targets */
    int64_t sample;  /* numbers of a sample's features */
    int64_t answers; /* labels or targets of a sample */
};
struct topt_feed_needs topt_feed_needs_of(const struct topt_model *m);
/* Whole numbers that an operator takes are below this: the extent of its dimension "v". */
int64_t topt_feed_classes(const struct topt_op *op);

/* Element 'i' of a box, row-major: its sample in the global batch and its number in it. */
struct topt_feed_place {
    int64_t sample, element;
};
struct topt_feed_place topt_feed_place(const struct topt_op *op, int operand,
                                       const struct topt_box *box, int64_t i);
int64_t topt_feed_elements(const struct topt_op *op, int operand,
                           const struct topt_box *box);
/* -1 where a box reaches beyond the global batch, which is our bug. */
int topt_feed_check(const struct topt_op *op, const struct topt_box *box, int64_t batch,
                    struct topt_error *err) TOPT_MUST_CHECK;

uint64_t topt_feed_digest(const void *bytes, size_t len);

/* A whole file, unpacked where it is compressed. */
char *topt_feed_read(const char *path, size_t *ret_len,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Is this the start of an idx file? */
int topt_feed_is_idx(const char *bytes, size_t len);
/* 'path' is that of the images; the labels' is made from it. */
int topt_feed_idx(const char *images, size_t len, const char *path,
                  const struct topt_model *m, uint64_t seed, struct topt_feed *ret,
                  struct topt_error *err) TOPT_MUST_CHECK;
int topt_feed_csv(const char *text, size_t len, const struct topt_model *m, uint64_t seed,
                  struct topt_feed *ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
