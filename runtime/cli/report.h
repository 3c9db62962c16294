/* report.h - what a run measured, as a document and for people. */
#ifndef TOPT_RUNTIME_REPORT_H
#define TOPT_RUNTIME_REPORT_H

#include <stdio.h>

#include "topt_plan.h"
#include "topt_runtime.h"

/* Whole of what a run measured. */
struct topt_run_report {
    const struct topt_plan_doc *plan;
    const struct topt_program *program; /* as it ran */
    int64_t predicted_time_ns, predicted_memory_bytes;
    int64_t
        beside_bytes; /* of the largest rank: the copy for checkpoints, and what clipping keeps */
    int64_t saves, save_ns;   /* checkpoints; what the steps waited for them on rank 0 */
    const char *data, *ended; /* why before the last step; NULL: it did not */
    double lr, eval_loss;     /* 0: no evaluation */
    double eval_right;        /* share of its labels that are met; not finite: unknown */
    uint64_t seed;
    int64_t first, steps;                     /* done before this run; in it */
    const double *loss;                       /* by step */
    const int64_t *step_ns;                   /* by step */
    int64_t peak_bytes, process_growth_bytes; /* largest over ranks */
    int64_t arena_bytes;                      /* of each rank */
    struct topt_session_times times;          /* of rank 0 */
    const double *named; /* by operator: rows of its table a step; NULL: not known */
};

/* "topt-report/1"; new reference. */
json_t *topt_report_json(const struct topt_run_report *r);
/* Tables with gradients of rows: how many rows a step named, a line each. */
void topt_report_print_tables(const struct topt_run_report *r, FILE *out);
/* Where rank 0's time went, a line a kernel and collective; the dearest first. */
void topt_report_print_times(const struct topt_run_report *r, FILE *out);
int64_t topt_median_ns(const int64_t *values, int64_t n);

#endif
