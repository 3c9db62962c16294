/* survey.h - what all measurements of a profile share: those that were kept of a run that
 * was stopped, and how far this one is.
 *
 * Each measurement has words ("vm: products in f32") and a size, and is looked up before
 * it is made. Rank 0 appends each to a file beside the profile, a line of JSON, so that
 * whatever stops the run, only the last line may be lost, and sizes whose rounds were not
 * over yet.  All ranks hold the same, since they have to decide alike what is measured next.  Thread safety: one thread. */
#ifndef TOPT_SURVEY_H
#define TOPT_SURVEY_H

#include "topt_comm.h"

struct topt_survey;

/* Reads what is kept in 'path'; NULL: nothing is kept.  The rank that 'writes' appends to
 * the file and shows progress on standard error, unless it is 'quiet'. */
int topt_survey_open(const char *path, int writes, int quiet, struct topt_survey **ret,
                     struct topt_error *err) TOPT_MUST_CHECK;
/* Rank 0's measurements on every rank; all call it. */
int topt_survey_share(struct topt_survey *s, struct topt_comm *comm,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* 'done': the profile is written, and the file goes. */
void topt_survey_close(struct topt_survey *s, int done);

/* So many more measurements are to come, as far as is known. */
void topt_survey_expect(struct topt_survey *s, int64_t n);
/* Is it known?  Then it counts as done. */
int topt_survey_known(struct topt_survey *s, const char *what, int64_t at, double *ret);
int topt_survey_keep(struct topt_survey *s, const char *what, int64_t at, double value,
                     struct topt_error *err) TOPT_MUST_CHECK;
/* How many were taken from the file. */
int64_t topt_survey_kept(const struct topt_survey *s);

#endif
