/* host.c - see host.h.
 *
 * A shape is set whole: --gpus alone would give one task and leave the split over nodes to
 * Slurm (6 GPUs came as 4 + 2), so nodes, GPUs per node, tasks and tasks per node are set
 * together, after every option that says the same in other words was reset.  --gres is
 * rewritten rather than reset: it may hold other things than GPUs.
 *
 * Texts from 'get' are of Slurm's allocator, so they are kept in one list, and freed
 * together when the job is sized. */
#include "host.h"

#include <stdio.h>
#include <string.h>

int topt_host_is_step(const struct topt_host *h)
{
    return h->isset(h->opt, "jobid");
}

/* The option's text when the user gave it, else NULL. */
static const char *given(const struct topt_host *h, const char *name)
{
    char *text = h->isset(h->opt, name) ? h->get(h->opt, name) : NULL;
    if (text && h->texts && h->release && h->texts->n < TOPT_HOST_TEXTS)
        h->texts->text[h->texts->n++] = text;
    return text && *text ? text : NULL;
}

void topt_host_drop(const struct topt_host *h)
{
    while (h->texts && h->release && h->texts->n > 0) {
        void *text = h->texts->text[--h->texts->n];
        h->release(&text);
    }
}

static int read_count(const struct topt_host *h, const char *name, int64_t *ret,
                      struct topt_error *err)
{
    const char *text = given(h, name);
    if (text && topt_parse_int(text, 0, 1 << 30, ret, err))
        return topt_wrap(err, "--%s", name);
    return 0;
}

static void keep_type(const char type[64], struct topt_bounds *ret)
{
    if (*type)
        memcpy(ret->gpu_type, type, sizeof ret->gpu_type);
}

int topt_host_bounds(const struct topt_host *h, struct topt_bounds *ret,
                     struct topt_error *err)
{
    struct topt_text others = {0};
    char type[64] = "";
    const char *text;
    int rc = -1;
    *ret = (struct topt_bounds){0};
    if ((text = given(h, "nodes")) && topt_shape_nodes(text, &ret->nodes, err))
        goto out;
    if ((text = given(h, "gres")) &&
        topt_shape_gres(text, &ret->gpus_per_node, ret->gpu_type, &others, err))
        goto out;
    if ((text = given(h, "tres-per-task")) &&
        topt_shape_tres(text, &ret->gpus_per_task, type, &others, err))
        goto out;
    keep_type(type, ret);
    if ((text = given(h, "gpus-per-task")) &&
        topt_shape_gpus(text, &ret->gpus_per_task, type, err))
        goto out;
    keep_type(type, ret);
    if ((text = given(h, "gpus-per-node")) &&
        topt_shape_gpus(text, &ret->gpus_per_node, type, err))
        goto out;
    keep_type(type, ret);
    if ((text = given(h, "gpus")) && topt_shape_gpus(text, &ret->gpus, type, err))
        goto out;
    keep_type(type, ret);
    if (read_count(h, "ntasks", &ret->tasks, err) ||
        read_count(h, "ntasks-per-node", &ret->tasks_per_node, err) ||
        read_count(h, "ntasks-per-gpu", &ret->tasks_per_gpu, err))
        goto out;
    rc = 0;
out:
    topt_text_fini(&others);
    return rc;
}

static void add_about(const char *key, const char *value, struct topt_text *out)
{
    topt_text_add(out, "&slurm_%s=", key);
    topt_ask_escape(value, out);
}

void topt_host_about(const struct topt_host *h, const struct topt_bounds *bounds,
                     struct topt_text *out)
{
    static const char *const options[][2] = {
#define X(name, KIND, MOST, OPTION, ...) {OPTION, #name},
        TOPT_SLURM_FIELDS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *value = options[i][0] ? given(h, options[i][0]) : NULL;
        if (*bounds->partition && !strcmp(options[i][1], "partition"))
            value = bounds->partition;
        if (value && strcmp(value, "unset") != 0)
            add_about(options[i][1], value, out);
    }
    if (*bounds->gpu_type)
        add_about("gpu_type", bounds->gpu_type, out);
    if (bounds->nodes > 0)
        topt_text_add(out, "&slurm_nodes=%lld", (long long)bounds->nodes);
    int64_t each = bounds->gpus_per_node,
            tasks = bounds->by_node ? 0 : bounds->tasks_per_node;
    if (tasks > 0 && (!each || tasks < each)) /* a task for each GPU */
        each = tasks;
    if (each > 0)
        topt_text_add(out, "&slurm_gpus_per_node=%lld", (long long)each);
    topt_text_add(out, "&slurm_tasks=%s", bounds->by_node ? "node" : "gpu");
}

const char *topt_host_partitions(const struct topt_host *h)
{
    const char *named = given(h, "partition");
    return named ? named : "";
}

typedef int splitter(const char *text, int64_t *ret_gpus, char type[64],
                     struct topt_text *others, struct topt_error *err);

/* --gres or --tres-per-task without its GPUs. */
static int strip(const struct topt_host *h, const char *option, splitter *split,
                 struct topt_error *err)
{
    struct topt_text others = {0};
    const char *text = given(h, option);
    int64_t gpus;
    char type[64];
    int rc = text ? split(text, &gpus, type, &others, err) : 0;
    if (text && !rc && others.len == 0)
        h->reset(h->opt, option);
    else if (text && !rc && h->set(h->opt, option, others.s, false))
        rc = topt_fail(err, TOPT_ERR_INTERNAL, "Slurm refuses --%s=%s", option, others.s);
    topt_text_fini(&others);
    return rc;
}

static const char *const touched[] = {TOPT_HOST_TOUCHED};
enum { TOUCHED = sizeof touched / sizeof *touched };

int topt_host_touches(const char *name)
{
    for (int i = 0; i < TOUCHED; i++)
        if (strcmp(touched[i], name) == 0)
            return 1;
    return 0;
}

/* The partitions of an answer where the job names several and these are among them; else
 * "", which changes nothing. */
static const char *narrowed(const struct topt_host *h, const char *partitions)
{
    const char *named = given(h, "partition");
    for (const char *p = partitions; named && *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        const char *at = named;
        while (*at && (strcspn(at, ",") != n || memcmp(at, p, n)))
            at += strcspn(at, ","), at += *at == ',';
        if (!*at)
            return "";
        p += n;
    }
    return named && strchr(named, ',') ? partitions : "";
}

/* The comment with what is said of other shapes in place of what was said before; nothing
 * where nothing was or is. */
static int add_comment(const struct topt_host *h, const char *word, struct topt_text *out,
                       struct topt_error *err)
{
    const char *own = given(h, "comment");
    struct topt_elastic e;
    if (!*word && !(own && topt_elastic_read(own, &e)))
        return 0;
    topt_elastic_strip(own ? own : "", out);
    topt_text_add(out, "%s%s", out->len && *word ? " " : "", word);
    return out->oom ? topt_nomem(err, "--comment") : 0;
}

static int set_all(const struct topt_host *h, const char *const (*set)[2], size_t n,
                   struct topt_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (*set[i][1] && h->set(h->opt, set[i][0], set[i][1], false))
            return topt_fail(err, TOPT_ERR_INTERNAL, "Slurm refuses --%s=%s", set[i][0],
                             set[i][1]);
    return 0;
}

static int set_shape(const struct topt_host *h, const struct topt_answer *plan,
                     const struct topt_bounds *bounds,
                     const struct topt_host_elastic *elastic, struct topt_error *err)
{
    char nodes[24], gpus[96], tasks[24], per_node[24];
    const char *gpu_type = *bounds->gpu_type ? bounds->gpu_type : plan->gpu_type;
    static const char *const same[] = {"gpus", "gpus-per-task", "gpus-per-socket",
                                       "ntasks-per-gpu"};
    int is_list = elastic && *elastic->nodes;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        if (h->isset(h->opt, same[i]))
            h->reset(h->opt, same[i]);
    }
    /* Of a list of nodes tasks follow from those of each. */
    if (is_list && h->isset(h->opt, "ntasks"))
        h->reset(h->opt, "ntasks");
    struct topt_text comment = {0};
    if (strip(h, "gres", topt_shape_gres, err) ||
        strip(h, "tres-per-task", topt_shape_tres, err) ||
        add_comment(h, elastic ? elastic->word : "", &comment, err)) {
        topt_text_fini(&comment);
        return -1;
    }
    snprintf(nodes, sizeof nodes, "%lld", (long long)plan->nodes);
    snprintf(gpus, sizeof gpus, "%s%s%lld", gpu_type, *gpu_type ? ":" : "",
             (long long)plan->gpus_per_node);
    snprintf(tasks, sizeof tasks, "%lld", (long long)topt_shape_tasks(bounds, plan));
    snprintf(per_node, sizeof per_node, "%lld",
             (long long)topt_shape_tasks_per_node(bounds, plan));
    const char *const set[][2] = {{"nodes", is_list ? elastic->nodes : nodes},
                                  {"gpus-per-node", gpus},
                                  {"ntasks", is_list ? "" : tasks},
                                  {"ntasks-per-node", per_node},
                                  {"partition", narrowed(h, plan->partition)},
                                  {"comment", comment.len ? comment.s : ""}};
    int rc = set_all(h, set, sizeof set / sizeof *set, err);
    topt_text_fini(&comment);
    return rc;
}

int topt_host_resize(const struct topt_host *h, const struct topt_answer *plan,
                     const struct topt_bounds *bounds,
                     const struct topt_host_elastic *elastic, struct topt_error *err)
{
    const char *before[TOUCHED];
    for (int i = 0; i < TOUCHED; i++)
        before[i] = given(h, touched[i]);
    if (!set_shape(h, plan, bounds, elastic, err))
        return 0;
    for (int i = 0; i < TOUCHED; i++) {
        if (before[i])
            h->set(h->opt, touched[i], before[i], false);
        else if (h->isset(h->opt, touched[i]))
            h->reset(h->opt, touched[i]);
    }
    return -1;
}
