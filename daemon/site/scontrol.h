/* scontrol.h - what Slurm says now, asked by `scontrol -o` and, of accounting, by the
 * sacctmgr beside it; each question may take 'ms' milliseconds.  Thread safety: reentrant.
 */
#ifndef TOPTD_SITE_SCONTROL_H
#define TOPTD_SITE_SCONTROL_H

#include "slurm.h"
#include "topt_text.h"

/* Partitions, nodes, reservations and the configuration; no accounts. */
int site_ask_slurm(const char *scontrol, int64_t ms, struct site_slurm *ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* The same, and what jobs use of the nodes. */
int site_ask_use(const char *scontrol, int64_t ms, struct site_slurm *ret,
                 struct topt_error *err) TOPT_MUST_CHECK;

/* Limits of accounting; none where Slurm does not enforce them. */
int site_ask_accounts(const char *scontrol, int64_t ms, struct site_accounts *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* One job, or all of them, as scontrol's lines. */
int site_ask_job(const char *scontrol, int64_t job, int64_t ms, struct topt_text *ret,
                 struct topt_error *err) TOPT_MUST_CHECK;
int site_ask_jobs(const char *scontrol, int64_t ms, struct topt_text *ret,
                  struct topt_error *err) TOPT_MUST_CHECK;

#endif
