/* job_submit_topt.c - job_submit/topt, for the controller: a site's policy, and requests
 * that carry a plan but passed no sbatch, as those of slurmrestd.
 *
 * It runs under the controller's locks, so it asks nobody: it looks at the request, and
 * at topt_submit.conf beside slurm.conf, which is read again where it has changed.  A
 * mistake in that file, or without it, lets all jobs pass. */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy.h"
#include "shape.h"
#include "topt_text.h"

/* Of Slurm, which exports them and has no header for plugins of others. */
extern char *slurm_xstrdup(const char *text);
extern void slurm_xfree(void **item);
extern void slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

const char plugin_name[] = "topt: policy and plans";
const char plugin_type[] = "job_submit/topt";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

int init(void);
int fini(void);
int job_submit(struct job_descriptor *job, uint32_t uid, char **err_msg);
int job_modify(struct job_descriptor *job, void *old, uint32_t uid);

enum { FILE_MOST = 1 << 16 };

static struct policy policy;
static struct timespec read_at;

static void policy_path(char path[4096])
{
    const char *conf = getenv("SLURM_CONF"), *slash = conf ? strrchr(conf, '/') : NULL;
    snprintf(path, 4096, "%.*s/topt_submit.conf", slash ? (int)(slash - conf) : 10,
             slash ? conf : "/etc/slurm");
}

/* The policy as its file says it now. */
static void refresh(void)
{
    char path[4096];
    struct stat st;
    struct topt_error err = {0};
    size_t len;
    policy_path(path);
    if (stat(path, &st)) {
        policy.n = 0;
        return;
    }
    if (st.st_mtim.tv_sec == read_at.tv_sec && st.st_mtim.tv_nsec == read_at.tv_nsec)
        return;
    read_at = st.st_mtim;
    char *text = topt_read_file(path, FILE_MOST, &len, &err);
    if (!text || policy_read(text, &policy, &err)) {
        slurm_info("job_submit/topt: %s: %s; all jobs pass", path, err.text);
        policy.n = 0;
    }
    free(text);
}

int init(void)
{
    refresh();
    return SLURM_SUCCESS;
}

int fini(void)
{
    return SLURM_SUCCESS;
}

/* GPUs in a text of TRES, whose entries have commas or semicolons between, and their
 * type.  From 23.11 on an entry may be "gres/gpu:a100=2", as --tres-per-task has it. */
static int64_t gpus_in(const char *tres, char type[64])
{
    int64_t gpus = 0;
    char plain[1024], kind[64];
    struct topt_text others = {0};
    if (!tres)
        return 0;
    snprintf(plain, sizeof plain, "%s", tres);
    for (char *p = plain; *p; p++)
        *p = *p == ';' ? ',' : *p;
    if (topt_shape_tres(plain, &gpus, kind, &others, NULL))
        gpus = 0;
    else if (*kind)
        memcpy(type, kind, sizeof kind);
    topt_text_fini(&others);
    return gpus;
}

static int64_t said(uint32_t n)
{
    return n == NO_VAL ? 0 : n;
}

static int64_t said_short(uint16_t n)
{
    return n == NO_VAL16 ? 0 : n;
}

static void look(const struct job_descriptor *job, struct policy_job *ret, char type[64])
{
    int64_t nodes = said(job->min_nodes), tasks = said(job->num_tasks);
    type[0] = '\0';
    *ret = (struct policy_job){.partition = job->partition ? job->partition : "",
                               .nodes = nodes,
                               .tasks = tasks,
                               .gpus_per_node = gpus_in(job->tres_per_node, type)};
    int64_t by_node = ret->gpus_per_node * (nodes ? nodes : 1);
    int64_t by_task = gpus_in(job->tres_per_task, type) * (tasks ? tasks : 1);
    int64_t sockets = said_short(job->sockets_per_node);
    int64_t by_socket = gpus_in(job->tres_per_socket, type) * (sockets ? sockets : 1) *
                        (nodes ? nodes : 1);
    ret->gpus = gpus_in(job->tres_per_job, type);
    ret->gpus = by_node > ret->gpus ? by_node : ret->gpus;
    ret->gpus = by_task > ret->gpus ? by_task : ret->gpus;
    ret->gpus = by_socket > ret->gpus ? by_socket : ret->gpus;
}

/* Take the GPUs out of a text of TRES. */
static void drop_gpus(char **tres)
{
    struct topt_text others = {0};
    int64_t gpus = 0;
    char type[64];
    int rc = *tres ? topt_shape_tres(*tres, &gpus, type, &others, NULL) : 0;
    if (!rc && gpus) {
        slurm_xfree((void **)tres);
        if (others.len)
            *tres = slurm_xstrdup(others.s);
    }
    topt_text_fini(&others);
}

/* The plan's shape, all of it; other generic resources of a node stay. */
static void resize(struct job_descriptor *job, const struct policy_plan *plan,
                   const char *type)
{
    struct topt_text tres = {0}, others = {0};
    int64_t old = 0;
    char kind[64];
    if (job->tres_per_node &&
        topt_shape_gres(job->tres_per_node, &old, kind, &others, NULL))
        others.len = 0;
    topt_text_add(&tres, "gres%cgpu:%s%s%lld",
                  SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0) ? ':' : '/', type,
                  *type ? ":" : "", (long long)plan->gpus_per_node);
    if (others.len)
        topt_text_add(&tres, ",%s", others.s);
    if (!tres.oom) {
        slurm_xfree((void **)&job->tres_per_node);
        job->tres_per_node = slurm_xstrdup(tres.s);
        drop_gpus(&job->tres_per_job);
        drop_gpus(&job->tres_per_task);
        drop_gpus(&job->tres_per_socket);
        job->min_nodes = job->max_nodes = (uint32_t)plan->nodes;
        job->num_tasks = (uint32_t)plan->tasks;
        job->ntasks_per_node = (uint16_t)(plan->tasks / plan->nodes);
        uint32_t each = job->cpus_per_task == NO_VAL16 ? 1 : job->cpus_per_task;
        job->min_cpus = (uint32_t)plan->tasks * (each ? each : 1);
    }
    topt_text_fini(&tres);
    topt_text_fini(&others);
}

int job_submit(struct job_descriptor *job, uint32_t uid, char **err_msg)
{
    struct topt_error err = {0};
    struct policy_job asked;
    struct policy_plan plan;
    char type[64];
    refresh();
    look(job, &asked, type);
    int has_plan = policy_plan(job->environment, job->env_size, &plan, &err);
    if (has_plan > 0 && !policy_is_shaped(&asked, &plan))
        resize(job, &plan, type);
    if (has_plan > 0 || (has_plan == 0 && !policy_allows(&policy, &asked, &err)))
        return SLURM_SUCCESS;
    if (err_msg)
        *err_msg = slurm_xstrdup(err.text);
    slurm_info("job_submit/topt: of user %u refused: %s", (unsigned)uid, err.text);
    return ESLURM_INVALID_GRES;
}

/* Slurm's own user and root are the site.  'old' is the controller's, of no layout that a header
 * tells. */
int job_modify(struct job_descriptor *job, void *old, uint32_t uid)
{
    struct topt_error err = {0};
    struct policy_change c;
    char type[64];
    (void)old;
    if (uid == 0 || uid == geteuid())
        return SLURM_SUCCESS;
    refresh();
    look(job, &c.job, type);
    c.job.partition = job->partition;
    c.says_nodes = said(job->min_nodes) > 0;
    c.says_gpus = job->tres_per_node || job->tres_per_job || job->tres_per_task ||
                  job->tres_per_socket;
    if (!policy_allows_change(&policy, &c, &err))
        return SLURM_SUCCESS;
    slurm_info("job_submit/topt: change by user %u refused: %s", (unsigned)uid, err.text);
    return ESLURM_INVALID_GRES;
}
