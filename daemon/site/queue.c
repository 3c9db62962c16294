/* queue.c - see queue.h.
 *
 * A job's name, its comment and, of newer Slurms, its command line stand in the same line
 * as what Slurm says of it, and are its owner's to choose.  So a line that says a thing
 * twice is believed nothing: such a job is not plain. */
#include "queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_text.h"

struct line {
    const char *s;
    size_t len;
    int is_odd;
};

/* The value of a key; "" where it isn't there, is "(null)", or is there twice. */
static void take(struct line *l, const char *key, char *ret, size_t size)
{
    char other[8];
    int is_there = site_value_of(l->s, l->len, key, 0, other, sizeof other);
    if (is_there && !site_value_of(l->s, l->len, key, 1, ret, size))
        l->is_odd = 1;
    if (!is_there || !strcmp(ret, "(null)") || !strcmp(ret, "N/A"))
        ret[0] = '\0';
}

static int64_t take_number(struct line *l, const char *key)
{
    char text[64];
    int64_t n = 0;
    take(l, key, text, sizeof text);
    return topt_parse_int(text, 0, INT64_MAX / 2, &n, NULL) ? 0 : n;
}

/* "cpu=4,mem=8000M,node=1,billing=4": the nodes; 0: they are not said. */
static int64_t nodes_of(struct line *l, const char *key)
{
    static const char name[] = "node=";
    char text[SITE_WORDS];
    take(l, key, text, sizeof text);
    for (const char *p = text; *p; p += strcspn(p, ","), p += *p == ',')
        if (!strncmp(p, name, sizeof name - 1))
            return strtoll(p + sizeof name - 1, NULL, 10);
    return 0;
}

/* "1-2" or "2".  A job that waits again has the nodes there that it ran on, until Slurm looks at it: then what
 * it asks for counts, which 24.11 calls ReqTRES. */
static void take_nodes(struct line *l, struct site_queued *j)
{
    char text[64];
    take(l, "NumNodes", text, sizeof text);
    char *dash = strchr(text, '-');
    j->nodes = strtoll(text, NULL, 10);
    j->most_nodes = dash ? strtoll(dash + 1, NULL, 10) : j->nodes;
    if (!j->restarts || !site_is_pending(j))
        return;
    int64_t asked = nodes_of(l, "ReqTRES");
    asked = asked ? asked : nodes_of(l, "TRES");
    if (asked)
        j->nodes = j->most_nodes = asked;
}

/* An entry of TRES, "gres:gpu:a100:4" or "gres/gpu:a100:4", whose GPUs are added up;
 * others are appended to 'others'. */
static int64_t take_entry(char *e, char type[SITE_NAME], char *others)
{
    e += !strncmp(e, "gres:", 5) || !strncmp(e, "gres/", 5) ? 5 : 0;
    size_t used = strlen(others);
    char *last = strrchr(e, ':');
    if (strncmp(e, "gpu", 3) || (e[3] && e[3] != ':')) {
        snprintf(others + used, SITE_GRES - used, "%s%s", used ? "," : "", e);
        return 0;
    }
    int64_t n = last ? strtoll(last + 1, NULL, 10) : 1;
    if (n < 1) /* "gpu:a100" */
        return 1;
    if (last > e + 3)
        snprintf(type, SITE_NAME, "%.*s", (int)(last - e - 4), e + 4);
    return n;
}

static int64_t take_gpus(struct line *l, const char *key, char type[SITE_NAME],
                         char *others)
{
    char text[SITE_WORDS], *save = NULL;
    int64_t n = 0;
    take(l, key, text, sizeof text);
    for (char *e = strtok_r(text, ",", &save); e; e = strtok_r(NULL, ",", &save))
        n += take_entry(e, type, others);
    return n;
}

static void take_user(struct line *l, struct site_queued *j)
{
    char text[160];
    take(l, "UserId", text, sizeof text);
    char *open = strrchr(text, '(');
    j->uid = open ? strtoll(open + 1, NULL, 10) : -1;
    if (open)
        *open = '\0';
    snprintf(j->user, sizeof j->user, "%.63s", text);
}

/* All that is between " Comment=" and what Slurm says next. */
static void take_comment(struct line *l, struct site_queued *j)
{
    static const char key[] = " Comment=";
    char text[SITE_COMMENT];
    take(l, "Comment", text, sizeof text); /* is it there once? */
    const char *at = memmem(l->s, l->len, key, sizeof key - 1);
    if (!at)
        return;
    at += sizeof key - 1;
    size_t rest = l->len - (size_t)(at - l->s);
    const char *end = memmem(at, rest, " StdErr=", 8);
    snprintf(text, sizeof text, "%.*s", (int)(end ? end - at : (ptrdiff_t)rest), at);
    j->is_elastic = topt_elastic_read(text, &j->elastic);
}

/* "gres:gpu:1024" or "gres/gpu:1G", in MiB. */
static void take_memory(struct line *l, struct site_queued *j)
{
    char text[SITE_WORDS];
    take(l, "MinMemoryNode", text, sizeof text);
    int64_t of_node = site_mebibytes(text);
    take(l, "MinMemoryCPU", text, sizeof text);
    int64_t of_cpu = site_mebibytes(text);
    take(l, "MemPerTres", text, sizeof text);
    char *last = strrchr(text, ':');
    int64_t of_gpu = last ? site_mebibytes(last + 1) : 0;
    j->memory_mib = of_node > 0 ? of_node : 0;
    j->memory_per_cpu_mib = of_cpu > 0 ? of_cpu : 0;
    j->memory_per_gpu_mib = of_gpu > 0 ? of_gpu : 0;
}

static void take_shape(struct line *l, struct site_queued *j)
{
    char text[64], none[SITE_GRES] = "";
    take_nodes(l, j);
    j->gpus_per_node = take_gpus(l, "TresPerNode", j->gpu_type, j->gres);
    j->gpus = take_gpus(l, "TresPerJob", j->gpu_type, none);
    j->tasks = take_number(l, "NumTasks");
    if (!j->gpus)
        j->gpus = j->tasks * take_gpus(l, "TresPerTask", j->gpu_type, none);
    take(l, "NtasksPerN:B:S:C", text, sizeof text);
    j->tasks_per_node = strtoll(text, NULL, 10);
    j->cpus_per_task = take_number(l, "CPUs/Task");
    take(l, "NumCPUs", text, sizeof text); /* or a range */
    j->cpus = strtoll(text, NULL, 10);
    j->cpus_per_node = take_number(l, "MinCPUsNode");
    take(l, "TimeLimit", text, sizeof text);
    int64_t limit = site_seconds(text);
    j->time_s = limit > 0 ? limit : 0;
}

/* "3", "1-9:2,12%4": no tasks where the list is too long for Slurm to say it all. */
static void take_array(struct line *l, struct site_queued *j)
{
    char text[SITE_WORDS];
    int64_t first, last, step, n = 0;
    j->array = take_number(l, "ArrayJobId");
    take(l, "ArrayTaskId", text, sizeof text);
    char *at = text;
    for (; *at >= '0' && *at <= '9'; at += *at == ',') {
        first = last = strtoll(at, &at, 10);
        step = 1;
        if (*at == '-')
            last = strtoll(at + 1, &at, 10);
        if (*at == ':')
            step = strtoll(at + 1, &at, 10);
        if (last < first || step < 1)
            return;
        n += (last - first) / step + 1;
    }
    j->array_most = *at == '%' ? strtoll(at + 1, &at, 10) : 0;
    j->array_tasks = *at ? 0 : n;
}

/* All of the list, which may be long. */
static char *take_list(struct line *l)
{
    static const char key[] = " NodeList=";
    char text[8];
    take(l, "NodeList", text, sizeof text);
    const char *at = *text ? memmem(l->s, l->len, key, sizeof key - 1) : NULL;
    if (!at)
        return NULL;
    at += sizeof key - 1;
    const char *end = memchr(at, ' ', l->len - (size_t)(at - l->s));
    return strndup(at, (size_t)(end ? end - at : l->s + (ptrdiff_t)l->len - at));
}

/* Words that tie a job to nodes, or make it more than one. */
static int is_plain(struct line *l)
{
    static const char *const not [] = {"HetJobId", "ReqNodeList", "ExcNodeList",
                                       "Reservation"};
    char text[SITE_NAME];
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++) {
        take(l, not [i], text, sizeof text);
        if (*text)
            return 0;
    }
    return !l->is_odd;
}

static int read_job(const char *s, size_t len, struct site_queued *ret)
{
    struct line l = {.s = s, .len = len};
    *ret = (struct site_queued){0};
    ret->id = take_number(&l, "JobId");
    take(&l, "JobState", ret->state, sizeof ret->state);
    take_array(&l, ret);
    if (!ret->id || (strcmp(ret->state, "PENDING") && strcmp(ret->state, "RUNNING")))
        return 0;
    take_user(&l, ret);
    ret->priority = take_number(&l, "Priority");
    take(&l, "Reason", ret->reason, sizeof ret->reason);
    take(&l, "Partition", ret->partition, sizeof ret->partition);
    take(&l, "Account", ret->account, sizeof ret->account);
    take(&l, "QOS", ret->qos, sizeof ret->qos);
    take(&l, "Features", ret->constraint, sizeof ret->constraint);
    take(&l, "SubmitTime", ret->submitted, sizeof ret->submitted);
    ret->is_batch = take_number(&l, "BatchFlag") > 0;
    ret->can_requeue = take_number(&l, "Requeue") > 0;
    ret->restarts = take_number(&l, "Restarts");
    ret->submit_s = site_time_of(s, len, "SubmitTime");
    take_shape(&l, ret);
    take_memory(&l, ret);
    take_comment(&l, ret);
    if (!site_is_pending(ret)) {
        ret->start_s = site_time_of(s, len, "StartTime");
        ret->end_s = site_time_of(s, len, "EndTime");
        ret->on = take_list(&l);
    }
    ret->is_plain = is_plain(&l);
    return 1;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int site_queue_read(const char *jobs, struct site_queue *ret, struct topt_error *err)
{
    size_t lines = 1, nstarted = 0;
    for (const char *p = jobs; *p; p++)
        lines += *p == '\n';
    int64_t *started =
        calloc(lines, sizeof *started); /* arrays with tasks of their own */
    *ret = (struct site_queue){.job = calloc(lines, sizeof *ret->job)};
    if (!ret->job || !started) {
        free(started);
        site_queue_fini(ret);
        return topt_nomem(err, "the queue");
    }
    for (const char *p = jobs; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        struct site_queued *j = &ret->job[ret->n];
        ret->n += (size_t)read_job(p, strcspn(p, "\n"), j);
        if (j->array && (j->array != j->id || !site_is_pending(j)))
            started[nstarted++] = j->array;
    }
    qsort(started, nstarted, sizeof *started, by_number);
    for (size_t i = 0; i < ret->n; i++)
        ret->job[i].has_started = bsearch(&ret->job[i].array, started, nstarted,
                                          sizeof *started, by_number) != NULL;
    free(started);
    return 0;
}

void site_queue_fini(struct site_queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        free(q->job[i].on);
    free(q->job);
    *q = (struct site_queue){0};
}

int site_queued_kind(const struct site_queued *j)
{
    return topt_elastic_kind_of(&j->elastic, j->partition);
}

void site_queued_partitions(const struct site_queued *j, int kind, char ret[SITE_WORDS])
{
    int is_now = kind < 0 || kind >= j->elastic.nkinds;
    snprintf(ret, SITE_WORDS, "%s", is_now ? j->partition : j->elastic.kind[kind]);
    for (char *p = ret; !is_now && *p; p++)
        *p = (char)(*p == '+' ? ',' : *p);
}

int site_queued_shape(const struct site_queued *j)
{
    return j->is_elastic ? topt_elastic_find(&j->elastic, j->nodes, j->gpus_per_node,
                                             site_queued_kind(j))
                         : -1;
}

int site_is_pending(const struct site_queued *j)
{
    return !strcmp(j->state, "PENDING");
}

int site_is_whole_array(const struct site_queued *j)
{
    return j->array == j->id && j->array_tasks > 0 && !j->has_started;
}

int site_waits(const struct site_queued *j)
{
    static const char *const reasons[] = {"", "None", "Resources", "Priority"};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (site_is_pending(j) && !strcmp(j->reason, reasons[i]))
            return 1;
    return 0;
}

void site_queued_as_job(const struct site_queued *j, struct site_job *ret)
{
    *ret = (struct site_job){.cpus_per_task = j->cpus_per_task};
    snprintf(ret->partition, sizeof ret->partition, "%s", j->partition);
    snprintf(ret->constraint, sizeof ret->constraint, "%s", j->constraint);
    snprintf(ret->gpu_type, sizeof ret->gpu_type, "%s", j->gpu_type);
    snprintf(ret->account, sizeof ret->account, "%s", j->account);
    snprintf(ret->qos, sizeof ret->qos, "%s", j->qos);
    snprintf(ret->user, sizeof ret->user, "%s", j->user);
    snprintf(ret->tasks, sizeof ret->tasks, "%s",
             j->tasks == j->nodes && j->gpus_per_node > 1 ? "node" : "gpu");
    if (j->memory_mib)
        snprintf(ret->mem, sizeof ret->mem, "%lld", (long long)j->memory_mib);
    if (j->memory_per_gpu_mib)
        snprintf(ret->mem_per_gpu, sizeof ret->mem_per_gpu, "%lld",
                 (long long)j->memory_per_gpu_mib);
}
