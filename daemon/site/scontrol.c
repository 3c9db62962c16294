/* scontrol.c - see scontrol.h. */
#include "scontrol.h"
#include "topt_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_command.h"

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
    return topt_command_read(args, deadline, out, err);
}

static int list(const char *program, const char *what, const char *format,
                int64_t deadline, struct topt_text *out, struct topt_error *err)
{
    const char *const args[] = {program, "-nP", "show", what, format, NULL};
    return topt_command_read(args, deadline, out, err);
}

int site_ask_accounts(const char *scontrol, int64_t ms, struct site_accounts *ret,
                      struct topt_error *err)
{
    struct topt_text config = {0}, qos = {0}, assocs = {0}, users = {0};
    int64_t deadline = topt_clock_ms() + ms;
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

/* Partitions, nodes by what 'flag' shows of them, reservations and the configuration. */
static int ask(const char *program, const char *flag, int64_t ms, struct site_slurm *ret,
               struct topt_error *err)
{
    static const char *const what[] = {"partition", "node", "reservation", "config"};
    enum { WHAT = sizeof what / sizeof *what };
    struct topt_text text[WHAT] = {{0}};
    int64_t deadline = topt_clock_ms() + ms;
    int rc = 0;
    for (int i = 0; !rc && i < WHAT; i++) {
        const char *const args[] = {program, i == 1 ? flag : "-o", "show", what[i], NULL};
        rc = topt_command_read(args, deadline, &text[i], err);
        topt_text_put(&text[i], "", 0);
        if (!rc && text[i].oom)
            rc = topt_nomem(err, NULL);
    }
    const struct site_said said = {text[0].s, text[1].s, text[2].s, text[3].s};
    if (!rc)
        rc = site_slurm_read(&said, ret, err);
    for (int i = 0; i < WHAT; i++)
        topt_text_fini(&text[i]);
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
    int rc = show(program, what, topt_clock_ms() + ms, ret, err);
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
