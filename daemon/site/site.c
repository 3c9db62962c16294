/* site.c - see site.h. */
#include "site.h"
#include "topt_clock.h"

#include "topt_command.h"
#include "scontrol.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_log.h"
#include "topt_text.h"

enum {
    USED_MS = 65 * 60 * 1000
}; /* answers are kept ready for an hour, and are of limits */

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

int site_read_map(struct site *s, const char *map, struct topt_error *err)
{
    struct site_map fresh = {0};
    if (map && site_map_read(map, &fresh, err))
        return -1;
    pthread_mutex_lock(&s->lock);
    struct site_map old = s->map;
    s->map = fresh;
    pthread_mutex_unlock(&s->lock);
    site_map_fini(&old);
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

/* What can't be asked stays as it was. */
static void refresh_accounts(struct site *s, struct site_slurm *fresh)
{
    struct topt_error err = {0};
    if (!site_ask_accounts(s->scontrol, SITE_ASK_MS, &fresh->accounts, &err))
        return;
    if (!s->is_told_accounts++)
        topt_log(TOPT_LOG_WARN, "site: limits of accounting are not known: %s", err.text);
    if (site_accounts_copy(&s->slurm.accounts, &fresh->accounts, NULL))
        fresh->accounts = (struct site_accounts){0};
}

/* Ask where what is known is older than that.  What can't be asked stays as it was; the
 * lock is held. */
static void refresh(struct site *s, int64_t age_ms)
{
    struct topt_error err = {0};
    struct site_slurm fresh;
    int64_t now = topt_clock_ms();
    if (!s->scontrol || now - s->asked_ms < age_ms)
        return;
    s->asked_ms = now;
    if (site_ask_slurm(s->scontrol, SITE_ASK_MS, &fresh, &err)) {
        if (!s->is_told++)
            topt_log(TOPT_LOG_INFO, "site: Slurm's limits are not known: %s", err.text);
        if (err.code == TOPT_ERR_NOTFOUND) {
            free(s->scontrol);
            s->scontrol = NULL;
        }
        return;
    }
    refresh_accounts(s, &fresh);
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
    s->used_ms = topt_clock_ms();
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
    if (topt_clock_ms() - s->used_ms < USED_MS)
        refresh(s, SITE_KEEP_MS);
    int changed = s->has_changed;
    s->has_changed = 0;
    pthread_mutex_unlock(&s->lock);
    return changed;
}

int site_job_is_of(struct site *s, int64_t job, int64_t uid, struct topt_error *err)
{
    struct topt_text said = {0};
    pthread_mutex_lock(&s->lock);
    char *program = s->scontrol ? strdup(s->scontrol) : NULL;
    pthread_mutex_unlock(&s->lock);
    if (!program)
        return topt_fail(err, TOPT_ERR_NOTFOUND, "there is no scontrol");
    int rc = site_ask_job(program, job, SITE_ASK_MS, &said, err);
    free(program);
    if (!rc)
        rc = site_slurm_job_is_of(said.s, job, uid);
    topt_text_fini(&said);
    return rc;
}
