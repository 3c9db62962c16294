/* flexflow_study.h - FlexFlow's walk and our plan by the same simulation, under several rules. */
#ifndef FLEXFLOW_STUDY_H
#define FLEXFLOW_STUDY_H

#include "papers_study.h"
#include "topt_flexflow.h"

/* A walk: milliseconds of a step and MiB that it moves, of data parallelism and of the best. */
struct walked {
    double data_ms, best_ms, data_mib, best_mib;
    double compute_ms; /* of data parallelism, the busiest device's */
    int placed;        /* operators on part of the devices */
    long long proposals;
    unsigned long long seeds; /* from the first on */
};

/* Each ends the program with a line where anything fails. */
struct walked flexflow_walked(const struct study *s,
                              const struct topt_flexflow_rules *rules, int64_t proposals,
                              uint64_t seed);
/* Our fastest plan, whatever memory it takes; milliseconds under each of 'n' rules. */
void flexflow_ours(struct study *s, const struct topt_flexflow_rules *const *rules, int n,
                   double *ret_ms);

/* The rules by which causes are switched off, one at a time. */
struct flexflow_cause {
    const char *name;
    struct topt_flexflow_rules rules;
};
enum { FLEXFLOW_CAUSES = 4 };
extern const struct flexflow_cause flexflow_causes[FLEXFLOW_CAUSES];

#endif
