/* correction.h - how finished jobs correct what plans say: a factor on time and one on
 * memory, for a model and a profile.
 *
 * The jobs of one user count as their median, and users as the median of these, so that
 * nobody moves a factor further than the others' jobs allow; it is shrunk towards 1 while
 * there are few jobs, and bounded:
 *
 *     l_j = ln(measured / said), cut to ln 1/2 .. ln 2        of a job
 *     m   = median over users of the median over their jobs of l_j
 *     f   = exp(m n / (n + 5)), n jobs                        to three decimals
 *     memory: at least 1, at most 3/2
 *
 * For everybody it counts from five jobs of three users on, which Slurm has confirmed;
 * until then a user's own reports, confirmed or not, correct that user's answers. Thread
 * safety: reentrant. */
#ifndef TOPTD_CORRECTION_H
#define TOPTD_CORRECTION_H

#include <jansson.h>
#include <stdint.h>

#include "store.h"

enum { CORRECTION_JOBS = 5, CORRECTION_USERS = 3, CORRECTION_SHRINK = 5 };

struct correction_part {
    double factor; /* 1: none */
    int jobs, users;
    int is_own; /* of the asker's own reports, else of the site's */
};
struct correction {
    struct correction_part time, memory; /* jobs 0: there is none */
};

/* Of what was measured; 'uid' is the asker. */
void correction_of(const struct store_measured *rows, int n, int64_t uid,
                   struct correction *ret);

/* The same of the store; none where it can't be read. */
void correction_find(struct store *s, const char *model, const char *hw, int64_t uid,
                     struct correction *ret);

static inline int correction_is_there(const struct correction *c)
{
    return c->time.jobs || c->memory.jobs;
}

/* Thousandths by which the memory of a plan counts for more: 1000 or above. */
int64_t correction_memory(const struct correction *c);

/* {"time":{"factor","jobs","users","of"},"memory":{...}}, and what comes of an answer's
 * time_ns and memory_bytes; a new reference.  'answer' may be NULL. */
json_t *correction_json(const struct correction *c, const json_t *answer);
/* In a line: "on 7 jobs of 3 users steps took 1.12 times the predicted time, ..."; 'size'
 * is cut at. */
void correction_words(const struct correction *c, char *ret, size_t size);

#endif
