/* site.h - the site's table and what Slurm says now, asked by `scontrol -o` and kept for
 * half a minute.
 *
 * Nobody asks scontrol before a job has come that says its partition.  From then on
 * site_tick keeps what it says fresh for as long as such jobs come, so that few of them
 * wait for it. Thread safety: any thread; one lock, under which scontrol may run for
 * SITE_ASK_MS. */
#ifndef TOPTD_SITE_H
#define TOPTD_SITE_H

#include "bound.h"

enum { SITE_KEEP_MS = 30000, SITE_ASK_MS = 1000 };

struct site;

/* 'scontrol' is a program's path, or a name that is looked for in PATH; "" or one that
 * isn't there: Slurm is not asked. 'map' is the table's file, or NULL. */
int site_create(const char *scontrol, const char *map, struct site **ret,
                struct topt_error *err) TOPT_MUST_CHECK;
void site_destroy(struct site *s);

/* Read the table again; the old one stays where the file can't be read. */
int site_read_map(struct site *s, const char *map,
                  struct topt_error *err) TOPT_MUST_CHECK;

/* As site_bound, of what is known.  Where the job can't run: -1. */
int site_look(struct site *s, const struct site_job *job, const char *hw,
              struct site_bound *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* Where the job would have more than 'gpus' GPUs: 1 and the partition's name, or 0. */
int site_look_elsewhere(struct site *s, const struct site_job *job, const char *hw,
                        int64_t gpus, char ret[SITE_NAME]);

/* Is the job one of that user's that has started?  1 yes, 0 no, or Slurm no longer knows
 * it; -1 where it can't be asked. May wait for SITE_ASK_MS. */
int site_job_is_of(struct site *s, int64_t job, int64_t uid,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* About once a second.  1 where what Slurm says has changed, else 0. */
int site_tick(struct site *s);

#endif
