/* scontrol.c - see scontrol.h. */
#include "scontrol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum { SITE_PATH = 4096 };

/* The command of Slurm called 'name', beside scontrol where that is a path. */
static void beside(const char *scontrol, const char *name, char ret[SITE_PATH])
{
    const char *slash = strrchr(scontrol, '/');
    snprintf(ret, SITE_PATH, "%.*s%s", slash ? (int)(slash - scontrol) + 1 : 0, scontrol,
             name);
}

static int show(const char *program, const char *what, int64_t deadline,
                struct topt_text *out, struct topt_error *err)
{
    const char *const args[] = {program, "-o", "show", what, NULL};
    return site_run(args, deadline, out, err);
}

static int list(const char *program, const char *what, const char *format,
                int64_t deadline, struct topt_text *out, struct topt_error *err)
{
    const char *const args[] = {program, "-nP", "show", what, format, NULL};
    return site_run(args, deadline, out, err);
}

int site_ask_accounts(const char *scontrol, int64_t ms, struct site_accounts *ret,
                      struct topt_error *err)
{
    struct topt_text config = {0}, qos = {0}, assocs = {0}, users = {0};
    int64_t deadline = site_now_ms() + ms;
    char sacctmgr[SITE_PATH];
    beside(scontrol, "sacctmgr", sacctmgr);
    *ret = (struct site_accounts){0};
    int rc = show(scontrol, "config", deadline, &config, err);
    if (!rc && config.s && site_enforces_limits(config.s)) {
        rc = list(sacctmgr, "qos", SITE_QOS_FORMAT, deadline, &qos, err) ||
             list(sacctmgr, "assoc", SITE_ASSOC_FORMAT, deadline, &assocs, err) ||
             list(sacctmgr, "user", SITE_USER_FORMAT, deadline, &users, err);
        if (!rc)
            rc = site_accounts_read(qos.s ? qos.s : "", assocs.s ? assocs.s : "",
                                    users.s ? users.s : "", ret, err);
    }
    topt_text_fini(&config);
    topt_text_fini(&qos);
    topt_text_fini(&assocs);
    topt_text_fini(&users);
    return rc ? -1 : 0;
}

/* Partitions and nodes, by what 'flag' shows of them. */
static int ask(const char *program, const char *flag, int64_t ms, struct site_slurm *ret,
               struct topt_error *err)
{
    const char *const node[] = {program, flag, "show", "node", NULL};
    struct topt_text partitions = {0}, nodes = {0};
    int64_t deadline = site_now_ms() + ms;
    int rc = show(program, "partition", deadline, &partitions, err);
    if (!rc)
        rc = site_run(node, deadline, &nodes, err);
    topt_text_put(&partitions, "", 0);
    topt_text_put(&nodes, "", 0);
    if (!rc && (partitions.oom || nodes.oom))
        rc = topt_nomem(err, NULL);
    if (!rc)
        rc = site_slurm_read(partitions.s, nodes.s, ret, err);
    topt_text_fini(&partitions);
    topt_text_fini(&nodes);
    return rc;
}

int site_ask_slurm(const char *scontrol, int64_t ms, struct site_slurm *ret,
                   struct topt_error *err)
{
    return ask(scontrol, "-o", ms, ret, err);
}

int site_ask_use(const char *scontrol, int64_t ms, struct site_slurm *ret,
                 struct topt_error *err)
{
    return ask(scontrol, "-od", ms, ret, err);
}

static int ask_jobs(const char *program, const char *what, int64_t ms,
                    struct topt_text *ret, struct topt_error *err)
{
    int rc = show(program, what, site_now_ms() + ms, ret, err);
    topt_text_put(ret, "", 0);
    return !rc && ret->oom ? topt_nomem(err, NULL) : rc;
}

int site_ask_job(const char *scontrol, int64_t job, int64_t ms, struct topt_text *ret,
                 struct topt_error *err)
{
    char what[40];
    snprintf(what, sizeof what, "job=%lld", (long long)job);
    return ask_jobs(scontrol, what, ms, ret, err);
}

int site_ask_jobs(const char *scontrol, int64_t ms, struct topt_text *ret,
                  struct topt_error *err)
{
    return ask_jobs(scontrol, "job", ms, ret, err);
}
