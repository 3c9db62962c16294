/* calibrate_parts.h - what the files of this room share.  Private to calibrate/. */
#ifndef TOPT_CALIBRATE_PARTS_H
#define TOPT_CALIBRATE_PARTS_H

#include "topt_calibrate.h"
#include "topt_plan_doc.h"

struct report {
    char *name; /* of its file, or file and job */
    struct topt_plan_doc *plan;
    double step_ns;
    double reserved_bytes; /* by the framework's allocator; 0: not measured */
};

struct topt_reports {
    struct report *at;
    int n;
    /* Plans by id, for reports that name them. */
    json_t *plans;
};

/* A figure of a profile that measurements may correct, by a factor of its own. */
enum { FACTORS = 5 };
struct factor {
    const char *name, *what;
    double low, high;
    /* Put it into a profile's document, whose figures it multiplies (or, of times of kernels, what
     * they cost). */
    void (*apply)(json_t *profile, double factor);
};
extern const struct factor factors[FACTORS];

/* The document with each factor applied; a new reference, NULL without memory. */
json_t *factors_apply(const json_t *profile, const double by[FACTORS]);

/* What a report's step takes under a profile and settings, by the planner's own costing. */
int report_cost(const struct report *r, const struct topt_hw *hw,
                const struct topt_settings *settings, struct topt_strategy_cost *ret,
                struct topt_error *err) TOPT_MUST_CHECK;

/* What was found about factors from some of the reports. */
struct fit {
    double value[FACTORS]; /* 1 where it was left alone */
    double share[FACTORS]; /* the most that a step's time follows it, by logarithms */
    int fitted[FACTORS];
    char why[FACTORS][120]; /* why it was left alone, or that it is at its bound */
};
/* Fit factors of 'profile' to all reports but 'left_out' (-1: all). */
int fit_factors(const json_t *profile, const struct topt_reports *r, int left_out,
                struct fit *ret, struct topt_error *err) TOPT_MUST_CHECK;
/* What each report is predicted to take with these factors, 'n' of them. */
int predict(const json_t *profile, const struct topt_reports *r, const double by[FACTORS],
            double *ret_ns, struct topt_error *err) TOPT_MUST_CHECK;

/* The allocator's share, in thousandths of what comes and goes. */
enum { MEMORY_PERMILLE_MOST = 300 };
struct memory_fit {
    int permille, was, fitted;
    int reports;                    /* that say what was reserved */
    int least, most;                /* with each of several reports left out */
    double share;                   /* by how much memory follows it, by logarithms */
    double before, after, left_out; /* mean errors of these reports */
    const char *why;                /* as of a factor; NULL: nothing */
};
int fit_memory(const struct topt_hw *hw, const struct topt_reports *r,
               struct memory_fit *ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
