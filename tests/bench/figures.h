/* figures.h - how far predictions lie from what was measured.  See figures.c. */
#ifndef TOPT_BENCH_FIGURES_H
#define TOPT_BENCH_FIGURES_H

#include "ran.h"

/* What is compared: times of older software or in f32, newer ones in bf16, and memory. */
enum kind { KIND_OLDER, KIND_NEWER, KIND_MEMORY, KINDS };
const char *kind_name(enum kind k);

/* One number that was measured beside its prediction: seconds, or GiB of a GPU. */
struct comparison {
    enum kind kind;
    double measured, predicted, low, high; /* the ends of the band */
};

/* The comparisons that a costed row allows, at most 2; returns how many. */
int comparisons_of(const struct row *r, const struct ran *x, struct comparison *ret);

/* Errors are (predicted - measured) / measured, widths (high - low) / predicted. */
struct figures {
    int n, inside;
    double size, sign; /* sums of errors, without and with their sign */
    double *width;     /* owned */
};
void figures_count(struct figures *f, const struct comparison *c);
double figures_median_width(struct figures *f);
void figures_fini(struct figures *f);

/* Rows that were costed, one after the other. */
struct group {
    const struct row *row;
    struct ran *ran; /* of each row */
    int n;
};

/* What choosing the plan predicted fastest costs over the fastest, a sample, by jobs that several rows
 * are plans for.  Counts from row 'i' on, where its job begins; returns the job's plans, 0 where it
 * does not begin there. */
int regret_of(const struct group *g, int i, double *ret);

#endif
