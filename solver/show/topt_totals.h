/* topt_totals.h - a whole training: its tokens or samples, at a price of a GPU-hour, and the days,
 * GPU-hours and cost that follow from the time of a step.
 *
 * Thread safety: reentrant. */
#ifndef TOPT_TOTALS_H
#define TOPT_TOTALS_H

#include <jansson.h>
#include <stdint.h>

#include "topt_query.h"
#include "topt_text.h"

struct topt_totals {
    int64_t tokens, samples; /* at most one of them; both 0: not asked for */
    double price;            /* of a GPU-hour; 0: unknown */
    const char *currency;    /* that of the query, "" where it has none */
};

/* Read the fields of a question, whose text is borrowed.  USAGE where they do not go together, with the
 * field at fault in '*ret_field'. */
int topt_totals_read(const struct topt_query *asked, struct topt_totals *ret,
                     const char **ret_field, struct topt_error *err) TOPT_MUST_CHECK;
/* Fails with USAGE where tokens are asked of a model whose samples have none ('seq' at most 1). */
int topt_totals_check(const struct topt_totals *t, int64_t seq,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* Put "training" ("tokens", "samples", "price", "currency") into 'doc', a document with "batch" and "seq",
 * and the totals of each of its rows ("points" or "systems"), whose "gpus" is the document's where
 * they have none.  Nothing where no training was asked for. */
void topt_totals_put(json_t *doc, const struct topt_totals *t);
/* Put "training_hours", "training_gpu_hours" and, with a price, "training_cost" into a row with
 * "time_ns".  'training' is the member of that name, NULL: nothing. */
void topt_totals_put_row(json_t *row, const json_t *training, double batch, double gpus);

/* "41.2 days, 63,300 GPU-hours, 158,000 EUR" of a row with totals. */
void topt_totals_words(struct topt_text *out, const json_t *row, const json_t *training);
/* "1T tokens: " before them, and the price of a GPU-hour after; nothing where 'job' has no training. */
void topt_totals_text(struct topt_text *out, const json_t *row, const json_t *job);
/* The heads and the cells of the columns of a table of 'rows', each after a blank: time, GPU-hours and, with
 * a price, cost.  Nothing where 'training' is NULL. */
void topt_totals_heads(struct topt_text *out, const json_t *rows, const json_t *training);
void topt_totals_cells(struct topt_text *out, const json_t *row, const json_t *rows,
                       const json_t *training);

#endif
