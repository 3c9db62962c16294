/* journal.h - what was decided of which job, when and why, and what became of it: a line
 * of JSON each, appended whole.
 *
 * One run at a time has the file.  Thread safety: none; one owner at a time. */
#ifndef TOPT_RIGHTSIZE_JOURNAL_H
#define TOPT_RIGHTSIZE_JOURNAL_H

#include <stdio.h>

#include "change.h"
#include "policy.h"

struct rightsize_entry {
    int64_t at_s; /* of the epoch */
    int64_t job;
    char submitted[32], user[SITE_NAME];
    struct rightsize_shape from, to;
    char reason[240], detail[240];
    enum rightsize_result result;
    int is_undo;
    /* A running job is stopped and waits again ('to' is what it waits with): its priority, and how often it had
     * been requeued before. */
    int is_stop;
    int64_t priority, restarts;
};

struct journal;

/* 'path' NULL: there is none, and nothing is kept.  'writes': entries will be added; the
 * folder is made where the one above it is there.  BUSY where another run has it.  The newest
 * 8 MiB of what is in it are read; lines that can't be are passed over.  A file of more than 16
 * MiB is then PATH.1, instead of the one before, and the new one begins with those 8. */
int journal_open(const char *path, int writes, struct journal **ret,
                 struct topt_error *err) TOPT_MUST_CHECK;
void journal_close(struct journal *j);

/* Append it: whole and on disk, or not at all. */
int journal_add(struct journal *j, const struct rightsize_entry *e,
                struct topt_error *err) TOPT_MUST_CHECK;

/* The newest change of each job that was done, borrowed, and how many; dry runs and
 * failures are none. */
const struct rightsize_entry *journal_last(const struct journal *j, size_t *ret_n);

/* Changes that were begun and of which nothing came after: the run was ended. */
const struct rightsize_entry *journal_begun(const struct journal *j, size_t *ret_n);

#endif
