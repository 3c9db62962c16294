/* change.c - see change.h. */
#include "change.h"
#include "topt_clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "topt_command.h"
#include "scontrol.h"

enum { TELL_MS = 10000, WORDS = 13, BUSY_MOST = 32, BUSY_NS = 250 * 1000 * 1000 };

static void set_kind(const struct site_queued *j, int kind, struct rightsize_shape *ret)
{
    if (j->is_elastic && j->elastic.nkinds)
        site_queued_partitions(j, kind, ret->partition);
}

void rightsize_shape_of(const struct site_queued *j, struct rightsize_shape *ret)
{
    *ret = (struct rightsize_shape){.nodes = j->nodes,
                                    .gpus_per_node = j->gpus_per_node,
                                    .tasks = j->tasks,
                                    .tasks_per_node = j->tasks_per_node,
                                    .cpus = j->cpus,
                                    .cpus_per_node = j->cpus_per_node,
                                    .time_s = j->time_s};
    set_kind(j, site_queued_kind(j), ret);
}

void rightsize_shape_in(const struct site_queued *j, const struct topt_elastic_shape *s,
                        int64_t time_s, struct rightsize_shape *ret)
{
    int64_t each = j->elastic.by_node ? 1 : s->gpus_per_node;
    int64_t cpus = j->cpus_per_task > 0 ? j->cpus_per_task : 1;
    int is_usual = j->cpus_per_node == j->tasks_per_node * cpus; /* and not --mincpus */
    *ret = (struct rightsize_shape){.nodes = s->nodes,
                                    .gpus_per_node = s->gpus_per_node,
                                    .tasks = each * s->nodes,
                                    .tasks_per_node = each,
                                    .cpus = each * s->nodes * cpus,
                                    .cpus_per_node =
                                        is_usual ? each * cpus : j->cpus_per_node,
                                    .time_s = time_s};
    set_kind(j, s->kind, ret);
}

int rightsize_shape_at(const struct site_queued *j, const struct rightsize_shape *s)
{
    int kind = topt_elastic_kind_of(&j->elastic, s->partition);
    return topt_elastic_find(&j->elastic, s->nodes, s->gpus_per_node, kind);
}

int rightsize_shape_is(const struct rightsize_shape *a, const struct rightsize_shape *b)
{
    return a->nodes == b->nodes && a->gpus_per_node == b->gpus_per_node &&
           a->tasks == b->tasks && a->tasks_per_node == b->tasks_per_node &&
           a->cpus == b->cpus && a->cpus_per_node == b->cpus_per_node &&
           a->time_s == b->time_s && !strcmp(a->partition, b->partition);
}

const char *rightsize_result_name(enum rightsize_result r)
{
    static const char *const names[] = {
        [RIGHTSIZE_DONE] = "done",       [RIGHTSIZE_LEFT] = "left alone",
        [RIGHTSIZE_REFUSED] = "refused", [RIGHTSIZE_BACK] = "put back",
        [RIGHTSIZE_HALF] = "half done",  [RIGHTSIZE_DRY] = "dry run",
        [RIGHTSIZE_BEGUN] = "begun"};
    return names[r];
}

int rightsize_tell(const char *scontrol, const struct site_queued *j,
                   const struct rightsize_shape *to, struct topt_error *err)
{
    char id[40], nodes[64], tasks[40], each[40], cpus[40], cpus_each[40], time[40];
    char gres[SITE_GRES + SITE_NAME + 32], partition[SITE_WORDS + 16];
    struct rightsize_shape now;
    rightsize_shape_of(j, &now);
    snprintf(id, sizeof id, "JobId=%lld", (long long)j->id);
    snprintf(nodes, sizeof nodes, "NumNodes=%lld-%lld", (long long)to->nodes,
             (long long)to->nodes);
    snprintf(tasks, sizeof tasks, "NumTasks=%lld", (long long)to->tasks);
    snprintf(each, sizeof each, "TasksPerNode=%lld", (long long)to->tasks_per_node);
    snprintf(gres, sizeof gres, "Gres=gpu:%s%s%lld%s%s", j->gpu_type,
             *j->gpu_type ? ":" : "", (long long)to->gpus_per_node, *j->gres ? "," : "",
             j->gres);
    snprintf(partition, sizeof partition, "Partition=%s", to->partition);
    snprintf(cpus, sizeof cpus, "NumCPUs=%lld", (long long)to->cpus);
    snprintf(cpus_each, sizeof cpus_each, "MinCPUsNode=%lld",
             (long long)to->cpus_per_node);
    snprintf(time, sizeof time, "TimeLimit=%lld:%02lld", (long long)(to->time_s / 60),
             (long long)(to->time_s % 60));
    const char *args[WORDS] = {scontrol, "update", id,   nodes,    tasks,
                               each,     gres,     cpus, cpus_each};
    int n = 9;
    if (j->time_s != to->time_s)
        args[n++] = time;
    if (strcmp(now.partition, to->partition) != 0)
        args[n++] = partition;
    return topt_command_tell(args, topt_clock_ms() + TELL_MS, err);
}

/* The job's line; of an array, which may have several, that of the tasks that wait, else any. */
static const struct site_queued *find(const struct site_queue *q, int64_t id)
{
    const struct site_queued *ret = NULL;
    for (size_t i = 0; i < q->n; i++)
        if (q->job[i].id == id || (!ret && q->job[i].array == id))
            ret = &q->job[i];
    return ret;
}

/* The job as it is now.  -1 where it can't be read, or is gone. */
static int look(const char *scontrol, int64_t id, struct site_queued *ret,
                struct rightsize_shape *ret_shape, struct topt_error *err)
{
    struct topt_text said = {0};
    struct site_queue q = {0};
    int rc = site_ask_job(scontrol, id, TELL_MS, &said, err);
    if (!rc)
        rc = site_queue_read(said.s, &q, err);
    const struct site_queued *j = rc ? NULL : find(&q, id);
    if (!rc && !j)
        rc = topt_fail(err, TOPT_ERR_NOTFOUND, "the job has ended");
    if (!rc) {
        *ret = *j;
        rightsize_shape_of(ret, ret_shape);
    }
    site_queue_fini(&q);
    topt_text_fini(&said);
    return rc;
}

enum rightsize_result rightsize_put_back(const char *scontrol,
                                         const struct rightsize_shape *from, int64_t id,
                                         char detail[240])
{
    struct topt_error err = {0};
    struct site_queued j;
    struct rightsize_shape now;
    for (int call = 0; call < 2; call++) {
        if (look(scontrol, id, &j, &now, &err))
            break;
        if (site_is_pending(&j) && rightsize_tell(scontrol, &j, from, &err))
            continue;
        if (!look(scontrol, id, &j, &now, &err) && rightsize_shape_is(&now, from)) {
            snprintf(detail, 240, "it could not be changed whole");
            return RIGHTSIZE_BACK;
        }
    }
    snprintf(detail, 240, "look at the job: %.200s", *err.text ? err.text : "it started");
    return RIGHTSIZE_HALF;
}

/* What a look after a request means; RIGHTSIZE_DRY: it isn't done yet. */
static enum rightsize_result judge(const struct site_queued *j,
                                   const struct rightsize_shape *now,
                                   const struct rightsize_shape *from,
                                   const struct rightsize_shape *to,
                                   const struct topt_error *said, char detail[240])
{
    if (rightsize_shape_is(now, to) && strcmp(j->reason, "BadConstraints") != 0) {
        if (!site_is_pending(j))
            snprintf(detail, 240, "and it has started");
        return RIGHTSIZE_DONE;
    }
    if (rightsize_shape_is(now, from) && !site_is_pending(j)) {
        snprintf(detail, 240, "it started meanwhile");
        return RIGHTSIZE_LEFT;
    }
    if (rightsize_shape_is(now, from) && *said->text) {
        snprintf(detail, 240, "%.200s", said->text);
        return RIGHTSIZE_REFUSED;
    }
    return RIGHTSIZE_DRY;
}

/* Does Slurm say that it is to be asked again (26.05 does)?  Then a moment later. */
static int is_put_off(const struct topt_error *said, char detail[240])
{
    if (!strstr(said->text, strerror(EAGAIN)))
        return 0;
    nanosleep(&(struct timespec){.tv_nsec = BUSY_NS}, NULL);
    detail[0] = '\0';
    return 1;
}

enum rightsize_result rightsize_change(const char *scontrol, const struct site_queued *j,
                                       const struct rightsize_shape *to, char detail[240])
{
    struct topt_error err = {0};
    struct site_queued is;
    struct rightsize_shape from, now;
    rightsize_shape_of(j, &from);
    detail[0] = '\0';
    if (look(scontrol, j->id, &is, &now, &err)) {
        snprintf(detail, 240, "%.200s", err.text);
        return RIGHTSIZE_LEFT;
    }
    int has_started = !site_is_pending(&is) || is.has_started;
    if (has_started || strcmp(is.submitted, j->submitted) != 0 ||
        !rightsize_shape_is(&now, &from)) {
        snprintf(detail, 240, "%s",
                 has_started ? "it started meanwhile" : "it was changed meanwhile");
        return RIGHTSIZE_LEFT;
    }
    for (int call = 0, busy = 0; call < 2; call++) {
        struct topt_error said = {0};
        enum rightsize_result r;
        if (rightsize_tell(scontrol, &is, to, &said) && !*said.text)
            snprintf(said.text, sizeof said.text, "scontrol fails");
        if (look(scontrol, j->id, &is, &now, &err)) {
            snprintf(detail, 240, "%.200s", err.text);
            return err.code == TOPT_ERR_NOTFOUND ? RIGHTSIZE_LEFT : RIGHTSIZE_HALF;
        }
        r = judge(&is, &now, &from, to, &said, detail);
        if (r == RIGHTSIZE_REFUSED && busy++ < BUSY_MOST && is_put_off(&said, detail)) {
            call--;
            continue;
        }
        if (r != RIGHTSIZE_DRY)
            return r;
    }
    return rightsize_put_back(scontrol, &from, j->id, detail);
}
