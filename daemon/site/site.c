/* site.c - see site.h. */
#include "site.h"

#include "command.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "topt_log.h"
#include "topt_text.h"

enum {
    SITE_PATH = 4096,
    USED_MS = 65 * 60 * 1000, /* answers are kept ready for an hour, and are of limits */
};

struct site {
    pthread_mutex_t lock;
    char *scontrol; /* NULL: not asked */
    struct site_map map;
    struct site_slurm slurm; /* what was said last */
    int is_known, is_told;   /* there is such; a failure is in the log */
    int is_told_accounts;
    int has_changed; /* since the last tick */
    int64_t asked_ms, used_ms;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int site_create(const char *scontrol, const char *map, struct site **ret,
                struct topt_error *err)
{
    struct site *s = calloc(1, sizeof *s);
    if (!s)
        return topt_nomem(err, NULL);
    pthread_mutex_init(&s->lock, NULL);
    s->asked_ms = s->used_ms = INT64_MIN / 2;
    if ((*scontrol && !(s->scontrol = strdup(scontrol)) && topt_nomem(err, NULL)) ||
        (map && site_map_read(map, &s->map, err))) {
        site_destroy(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void site_destroy(struct site *s)
{
    if (!s)
        return;
    site_slurm_fini(&s->slurm);
    site_map_fini(&s->map);
    free(s->scontrol);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

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

/* Limits of accounting, where Slurm enforces them. */
static int ask_accounts(const char *scontrol, const char *config,
                        struct site_accounts *ret, struct topt_error *err)
{
    struct topt_text qos = {0}, assocs = {0}, users = {0};
    int64_t deadline = now_ms() + SITE_ASK_MS;
    char sacctmgr[SITE_PATH];
    beside(scontrol, "sacctmgr", sacctmgr);
    *ret = (struct site_accounts){0};
    if (!site_enforces_limits(config))
        return 0;
    int rc = list(sacctmgr, "qos", SITE_QOS_FORMAT, deadline, &qos, err) ||
             list(sacctmgr, "assoc", SITE_ASSOC_FORMAT, deadline, &assocs, err) ||
             list(sacctmgr, "user", SITE_USER_FORMAT, deadline, &users, err);
    if (!rc)
        rc = site_accounts_read(qos.s ? qos.s : "", assocs.s ? assocs.s : "",
                                users.s ? users.s : "", ret, err);
    topt_text_fini(&qos);
    topt_text_fini(&assocs);
    topt_text_fini(&users);
    return rc ? -1 : 0;
}

/* What can't be asked stays as it was. */
static void refresh_accounts(struct site *s, const char *config, struct site_slurm *fresh)
{
    struct topt_error err = {0};
    if (!ask_accounts(s->scontrol, config, &fresh->accounts, &err))
        return;
    if (!s->is_told_accounts++)
        topt_log(TOPT_LOG_WARN, "site: limits of accounting are not known: %s", err.text);
    if (site_accounts_copy(&s->slurm.accounts, &fresh->accounts, NULL))
        fresh->accounts = (struct site_accounts){0};
}

/* All that is asked: partitions, nodes, reservations, the configuration, and accounting. */
static int ask(struct site *s, struct site_slurm *ret, struct topt_error *err)
{
    static const char *const what[] = {"partition", "node", "reservation", "config"};
    enum { WHAT = sizeof what / sizeof *what };
    struct topt_text text[WHAT] = {{0}};
    int64_t deadline = now_ms() + SITE_ASK_MS;
    int rc = 0;
    for (int i = 0; !rc && i < WHAT; i++) {
        rc = show(s->scontrol, what[i], deadline, &text[i], err);
        topt_text_put(&text[i], "", 0);
        if (!rc && text[i].oom)
            rc = topt_nomem(err, NULL);
    }
    const struct site_said said = {text[0].s, text[1].s, text[2].s, text[3].s};
    if (!rc)
        rc = site_slurm_read(&said, ret, err);
    if (!rc)
        refresh_accounts(s, said.config, ret);
    for (int i = 0; i < WHAT; i++)
        topt_text_fini(&text[i]);
    return rc;
}

/* Ask where what is known is older than that.  What can't be asked stays as it was; the lock is held. */
static void refresh(struct site *s, int64_t age_ms)
{
    struct topt_error err = {0};
    struct site_slurm fresh;
    int64_t now = now_ms();
    if (!s->scontrol || now - s->asked_ms < age_ms)
        return;
    s->asked_ms = now;
    if (ask(s, &fresh, &err)) {
        if (!s->is_told++)
            topt_log(TOPT_LOG_INFO, "site: Slurm's limits are not known: %s", err.text);
        if (err.code == TOPT_ERR_NOTFOUND) {
            free(s->scontrol);
            s->scontrol = NULL;
        }
        return;
    }
    if (s->is_known && site_slurm_is_same(&s->slurm, &fresh)) {
        site_slurm_fini(&fresh);
        return;
    }
    site_slurm_fini(&s->slurm);
    s->slurm = fresh;
    s->is_known = s->has_changed = 1;
    s->is_told = 0;
    topt_log(TOPT_LOG_INFO, "site: %zu partitions and %zu nodes, of scontrol",
             fresh.npartitions, fresh.nnodes);
}

int site_look(struct site *s, const struct site_job *job, const char *hw,
              struct site_bound *ret, struct topt_error *err)
{
    pthread_mutex_lock(&s->lock);
    s->used_ms = now_ms();
    refresh(s, SITE_KEEP_MS + 2 * SITE_ASK_MS); /* a tick comes before */
    int rc = site_bound(s->is_known ? &s->slurm : NULL, &s->map, job, hw, ret, err);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int site_look_elsewhere(struct site *s, const struct site_job *job, const char *hw,
                        int64_t gpus, char ret[SITE_NAME])
{
    pthread_mutex_lock(&s->lock);
    const char *name = s->is_known ? site_other(&s->slurm, &s->map, job, hw, gpus) : NULL;
    if (name)
        memcpy(ret, name, SITE_NAME);
    pthread_mutex_unlock(&s->lock);
    return name != NULL;
}

int site_tick(struct site *s)
{
    pthread_mutex_lock(&s->lock);
    if (now_ms() - s->used_ms < USED_MS)
        refresh(s, SITE_KEEP_MS);
    int changed = s->has_changed;
    s->has_changed = 0;
    pthread_mutex_unlock(&s->lock);
    return changed;
}

int site_job_is_of(struct site *s, int64_t job, int64_t uid, struct topt_error *err)
{
    char what[40];
    struct topt_text said = {0};
    pthread_mutex_lock(&s->lock);
    char *program = s->scontrol ? strdup(s->scontrol) : NULL;
    pthread_mutex_unlock(&s->lock);
    if (!program)
        return topt_fail(err, TOPT_ERR_NOTFOUND, "there is no scontrol");
    snprintf(what, sizeof what, "job=%lld", (long long)job);
    int rc = show(program, what, now_ms() + SITE_ASK_MS, &said, err);
    free(program);
    topt_text_put(&said, "", 0);
    if (!rc && said.oom)
        rc = topt_nomem(err, NULL);
    if (!rc)
        rc = site_slurm_job_is_of(said.s, job, uid);
    topt_text_fini(&said);
    return rc;
}
