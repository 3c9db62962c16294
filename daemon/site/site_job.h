/* site_job.h - the job that a question is about, by its own options.  Thread safety: plain
 * values. */
#ifndef TOPTD_SITE_JOB_H
#define TOPTD_SITE_JOB_H

#include "slurm.h"
#include "topt_fields.h"

/* What goes with a question (topt_fields.h): the job's own options as texts, "" and 0
 * where they say nothing. */
#define SITE_TEXT(name, most)                               char name[(most) + 1];
#define SITE_WORD(name, most)                               SITE_TEXT(name, most)
#define SITE_INT(name, most)                                int64_t name;
#define SITE_MEMBER(name, KIND, MOST, OPTION, VALUES, HELP) SITE_##KIND(name, MOST)
struct site_job {
    TOPT_SLURM_FIELDS(SITE_MEMBER)
    char user[SITE_NAME]; /* who submits it; "": not known */
};

#endif
