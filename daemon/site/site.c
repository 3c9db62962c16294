/* site.c - see site.h. */
#include "site.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "topt_log.h"
#include "topt_text.h"

enum {
    OUTPUT_LIMIT = 64 << 20,
    USED_MS = 65 * 60 * 1000, /* answers are kept ready for an hour, and are of limits */
};

extern char **environ;

struct site {
    pthread_mutex_t lock;
    char *scontrol; /* NULL: not asked */
    struct site_map map;
    struct site_slurm slurm; /* what was said last */
    int is_known, is_told;   /* there is such; a failure is in the log */
    int has_changed;         /* since the last tick */
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

/* All that comes from 'fd' until 'deadline'. */
static int drain(int fd, int64_t deadline, struct topt_text *out, struct topt_error *err)
{
    char block[16384];
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = deadline - now_ms();
        int n = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return topt_fail(err, TOPT_ERR_CANCELED, "it does not answer in time");
        ssize_t got = read(fd, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got ? topt_fail(err, TOPT_ERR_IO, "read: %s", strerror(errno)) : 0;
        topt_text_put(out, block, (size_t)got);
        if (out->oom || out->len > OUTPUT_LIMIT)
            return topt_fail(err, TOPT_ERR_LIMIT, "it says too much");
    }
}

static int spawn(const char *program, const char *what, int out, pid_t *ret)
{
    char *const args[] = {(char *)program, (char *)"-o", (char *)"show", (char *)what,
                          NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    int rc = posix_spawn_file_actions_init(&files);
    if (rc)
        return rc;
    rc = posix_spawnattr_init(&attributes);
    if (!rc) {
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        rc = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
        if (!rc)
            rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null",
                                                  O_RDONLY, 0);
        if (!rc)
            rc = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null",
                                                  O_WRONLY, 0);
        if (!rc)
            rc = posix_spawnp(ret, program, &files, &attributes, args, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

/* What 'scontrol -o show WHAT' says.  NOTFOUND: there is no such program. */
static int show(const char *program, const char *what, int64_t deadline,
                struct topt_text *out, struct topt_error *err)
{
    int pipes[2], status = 0;
    pid_t child;
    if (pipe2(pipes, O_CLOEXEC))
        return topt_fail(err, TOPT_ERR_IO, "pipe: %s", strerror(errno));
    int rc = spawn(program, what, pipes[1], &child);
    close(pipes[1]);
    if (rc) {
        close(pipes[0]);
        return topt_fail(err, rc == ENOENT ? TOPT_ERR_NOTFOUND : TOPT_ERR_IO, "%s: %s",
                         program, strerror(rc));
    }
    rc = drain(pipes[0], deadline, out, err);
    close(pipes[0]);
    if (rc)
        kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (!rc && (!WIFEXITED(status) || WEXITSTATUS(status)))
        rc = topt_fail(err, TOPT_ERR_IO, "it fails");
    return rc ? topt_wrap(err, "%s -o show %s", program, what) : 0;
}

static int ask(const char *program, struct site_slurm *ret, struct topt_error *err)
{
    struct topt_text partitions = {0}, nodes = {0};
    int64_t deadline = now_ms() + SITE_ASK_MS;
    int rc = show(program, "partition", deadline, &partitions, err);
    if (!rc)
        rc = show(program, "node", deadline, &nodes, err);
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

/* Ask where what is known is older than that.  What can't be asked stays as it was; the lock is held. */
static void refresh(struct site *s, int64_t age_ms)
{
    struct topt_error err = {0};
    struct site_slurm fresh;
    int64_t now = now_ms();
    if (!s->scontrol || now - s->asked_ms < age_ms)
        return;
    s->asked_ms = now;
    if (ask(s->scontrol, &fresh, &err)) {
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
