/* papers_claim.h - the rows of docs/PAPERS.md: a claim, the band in which it counts as the same, what
 * came out, and the verdict, by one rule for all papers.
 *
 * Thread safety: none; a program prints one document. */
#ifndef PAPERS_CLAIM_H
#define PAPERS_CLAIM_H

#include "topt_error.h"

/* What speaks for a claim.  Only the first is counted. */
enum papers_kind {
    PAPERS_COUNTED,   /* the paper prints the number, and nothing here was fitted to it */
    PAPERS_ONE_SIDED, /* it prints words or a bound: how far is ours to say */
    PAPERS_REWRITTEN, /* it follows from what is printed, and the sentence is ours */
    PAPERS_BUILT,     /* by construction: it can't come out otherwise */
    PAPERS_CALIBRATED, /* numbers that it rests on were fitted to the paper's figures */
    PAPERS_MOOT,       /* what it explains does not come out here: no verdict */
    PAPERS_KINDS
};

/* Of a printed time, more or less, what counts as the same; and what words of times mean: a time is
 * long, or longer, from here on. */
static const double PAPERS_TIMES = 0.25;

struct papers_row {
    enum papers_kind kind;
    const char *where,
        *says; /* the model or cluster; what the paper says, with its number */
};

/* The title of the next table. */
void papers_head(const char *title);

/* The row of papers_index that the next claims belong to, as "T9". */
void papers_id(const char *id);

/* Why the next claim does not hold, where it does not: said beside its verdict. */
void papers_why(const char *why);
/* How many claims did not hold and had no reason: such a document is not done. */
int papers_unexplained(void);

/* The value and its band; the verdict is yes only inside it.  'fmt': what came out. */
void papers_number(struct papers_row row, double value, double low, double high,
                   const char *fmt, ...) TOPT_PRINTF(5, 6);
/* The band is the printed number, a share of it more or less. */
void papers_near(struct papers_row row, double value, double printed, double share,
                 const char *fmt, ...) TOPT_PRINTF(5, 6);
/* Times as fast, or as long: the same band, cut at 1, so that what the paper has faster is not slower. */
void papers_ratio(struct papers_row row, double value, double printed, const char *fmt,
                  ...) TOPT_PRINTF(4, 5);
/* A claim without a number, which is never counted; 'band': what we take it to mean. */
void papers_words(struct papers_row row, int holds, const char *band, const char *fmt,
                  ...) TOPT_PRINTF(4, 5);
/* A claim that explains what does not come out here; its kind is not looked at. */
void papers_moot(struct papers_row row, const char *band, const char *fmt, ...)
    TOPT_PRINTF(3, 4);

/* "3 of 5 counted hold, 6 of 7 others": of the claims of a row of papers_index. */
void papers_counts(const char *id);
/* The legend of verdicts, and how many claims there are of each kind. */
void papers_kinds_said(void);

#endif
