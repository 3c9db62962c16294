/* topt_calibrate.h - a hardware profile held against measured steps: which of its figures explain them
 * better, within bounds, and which the measurements say nothing of.
 *
 * Thread safety: reentrant; reports have one owner. */
#ifndef TOPT_CALIBRATE_H
#define TOPT_CALIBRATE_H

#include <jansson.h>

#include "topt_error.h"
#include "topt_hw.h"

/* Measured steps, each with the plan that it ran. */
struct topt_reports;

/* Read files: measurements (topt-measured/1, topt-report/1, topt-observations/1), and the plans
 * (topt-plan/1, or answers that hold one) that reports and observations name by id.  Runs that are given by
 * their degrees are planned on 'hw'.  The caller destroys them.  Fails with the file at fault, and
 * where the profile has groups of unlike devices. */
int topt_reports_read(const char *const *paths, int n, const struct topt_hw *hw,
                      struct topt_reports **ret, struct topt_error *err) TOPT_MUST_CHECK;
void topt_reports_destroy(struct topt_reports *r);

/* Fit the factors of a profile (factors.c) to the reports: a new reference to
 *
 *     {"hw", "reports": [{"name", "measured_ns", "before_ns", "after_ns", "left_out_ns"}, ...],
 *      "factors": [{"name", "what", "value", "low", "high", "share", "fitted", "why",
 *                   "least", "most"}, ...],
 *      "error_before", "error_after", "left_out_before", "left_out_after", "better", "profile"}
 *
 * errors are means of |predicted / measured - 1|; "left_out_ns" is predicted by factors that were fitted
 * to the other reports (from two reports on), between whose least and most values a factor lay; "profile"
 * is the calibrated topt-hw/1 document. */
int topt_calibrate(const struct topt_hw *hw, const struct topt_reports *reports,
                   json_t **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* This as text.  The caller frees it; NULL without memory. */
char *topt_calibrate_text(const json_t *result);

#endif
