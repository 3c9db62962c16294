/* planned.c - see planned.h: one document, and a thread that makes it anew when it is told. */
#include "planned.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "topt_clock.h"
#include "topt_command.h"

enum { STOP_S = 1 };

struct planned {
    char *program, *scontrol;
    pthread_t thread;
    pthread_mutex_t lock; /* leaf; guards all below; not held while the program runs */
    pthread_cond_t wake, idle;
    int is_wanted, is_busy, stopping;
    char *doc;             /* the last document that was made; NULL: none yet */
    int64_t at_ms;         /* when 'doc' was made */
    int64_t failed_ms;     /* when a run of the program last failed */
    struct topt_error err; /* of the last run; code 0: it succeeded */
};

/* As execvp would find it. */
static int is_program(const char *name)
{
    char path[4096];
    const char *at = getenv("PATH");
    if (strchr(name, '/'))
        return !access(name, X_OK);
    for (size_t n; at && *at; at += n + (at[n] == ':')) {
        n = strcspn(at, ":");
        if (snprintf(path, sizeof path, "%.*s/%s", (int)n, at, name) < (int)sizeof path &&
            !access(path, X_OK))
            return 1;
    }
    return 0;
}

/* NULL and why, where it fails. */
static char *make(const struct planned *p, struct topt_error *err)
{
    const char *args[] = {p->program, "queue", "--json", "--scontrol", p->scontrol, NULL};
    struct topt_text out = {0};
    if (!topt_command_read(args, topt_clock_ms() + PLANNED_RUN_MS, &out, err) && out.s)
        return out.s;
    topt_text_fini(&out);
    /* What the command says of itself is no news here. */
    static const char name[] = "topt queue: ";
    const char *said = strstr(err->text, name);
    if (said)
        memmove(err->text, said + sizeof name - 1, strlen(said + sizeof name - 1) + 1);
    return NULL;
}

static void *run(void *arg)
{
    struct planned *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stopping) {
        if (!p->is_wanted) {
            pthread_cond_wait(&p->wake, &p->lock);
            continue;
        }
        struct topt_error err = {0};
        p->is_wanted = 0;
        p->is_busy = 1;
        pthread_mutex_unlock(&p->lock);
        char *doc = make(p, &err);
        pthread_mutex_lock(&p->lock);
        p->is_busy = 0;
        p->err = err;
        if (doc) {
            free(p->doc);
            p->doc = doc;
            p->at_ms = topt_clock_ms();
        } else {
            p->failed_ms = topt_clock_ms();
        }
        pthread_cond_signal(&p->idle);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

int planned_look(struct planned *p, char **ret, int64_t *ret_age_ms,
                 struct topt_error *err)
{
    int rc = 0;
    pthread_mutex_lock(&p->lock);
    int64_t now = topt_clock_ms(), age = p->doc ? now - p->at_ms : PLANNED_OLD_MS;
    int has_failed = p->err.code && now - p->failed_ms < PLANNED_FRESH_MS;
    if (age >= PLANNED_FRESH_MS && !has_failed && !p->is_busy) {
        p->is_wanted = 1;
        pthread_cond_signal(&p->wake);
    }
    if (age < PLANNED_OLD_MS) {
        *ret = strdup(p->doc);
        *ret_age_ms = age;
        rc = *ret ? 1 : topt_nomem(err, NULL);
    } else if (has_failed) {
        *err = p->err;
        rc = -1;
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}

static void release(struct planned *p)
{
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->idle);
    pthread_mutex_destroy(&p->lock);
    free(p->program);
    free(p->scontrol);
    free(p->doc);
    free(p);
}

int planned_create(const char *program, const char *scontrol, struct planned **ret,
                   struct topt_error *err)
{
    if (!*scontrol || !is_program(scontrol) || !is_program(program))
        return topt_fail(err, TOPT_ERR_NOTFOUND, "there is no %s",
                         *scontrol && is_program(scontrol) ? program : "scontrol");
    struct planned *p = calloc(1, sizeof *p);
    if (!p)
        return topt_nomem(err, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->idle, NULL);
    p->program = strdup(program);
    p->scontrol = strdup(scontrol);
    int rc =
        p->program && p->scontrol ? pthread_create(&p->thread, NULL, run, p) : ENOMEM;
    if (rc) {
        release(p);
        return topt_fail(err, TOPT_ERR_IO, "can't start a thread: %s", strerror(rc));
    }
    pthread_setname_np(p->thread, "planned");
    *ret = p;
    return 0;
}

void planned_destroy(struct planned *p)
{
    struct timespec until;
    if (!p)
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STOP_S;
    pthread_mutex_lock(&p->lock);
    p->stopping = 1;
    pthread_cond_signal(&p->wake);
    while (p->is_busy && !pthread_cond_timedwait(&p->idle, &p->lock, &until))
        ;
    int is_busy = p->is_busy;
    pthread_mutex_unlock(&p->lock);
    if (is_busy) { /* it only looks at Slurm, and the process ends */
        pthread_detach(p->thread);
        return;
    }
    pthread_join(p->thread, NULL);
    release(p);
}
