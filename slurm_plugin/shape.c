/* shape.c - the user's own -N, -n and --gpus as upper bounds.
 *
 * A job of topt has one task for each GPU and as many GPUs on each node, so every one of
 * these options bounds the GPUs: -n directly, -N together with GPUs (or tasks) per node.
 * -N alone can't be said to the planner as a number of GPUs; the plan is held against it.
 * -n 1 is in scripts out of habit and bounds nothing.  Where a task is for a node (torchrun
 * starts one process for each of its GPUs), tasks bound the nodes. */
#include "shape.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_text.h"

enum { NUMBER_LIMIT = 1 << 30 };

int topt_shape_nodes(const char *text, int64_t *ret, struct topt_error *err)
{
    int64_t most = 0;
    const char *p = text;
    while (*p) {
        char *end;
        long long n = strtoll(p, &end, 10);
        if (end == p || n < 1 || n > NUMBER_LIMIT)
            break;
        if (n > most)
            most = n;
        if (*end == '\0' || (*end == '-' && end[1] == '\0')) {
            *ret = most;
            return 0;
        }
        if (*end != '-' && *end != ',')
            break;
        p = end + 1;
    }
    return topt_fail(err, TOPT_ERR_INVAL, "-N %s isn't understood", text);
}

/* The part before a colon, when it is exactly 'word'. */
static const char *skip_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    if (strncmp(text, word, len) != 0)
        return NULL;
    return text[len] == ':' ? text + len + 1 : text[len] == '\0' ? text + len : NULL;
}

int topt_shape_gpus(const char *text, int64_t *ret, char type[64], struct topt_error *err)
{
    const char *p = text, *rest;
    if (strncmp(p, "gres:", 5) == 0 || strncmp(p, "gres/", 5) == 0)
        p += 5;
    if ((rest = skip_word(p, "gpu")))
        p = rest;
    const char *colon = strrchr(p, ':');
    const char *number = colon ? colon + 1 : p;
    size_t type_len = colon ? (size_t)(colon - p) : 0;
    type[0] = '\0';
    *ret = 1;
    if (!colon && isalpha((unsigned char)*number)) {
        type_len = strlen(p); /* "gpu:a100": one of them */
        number = "";
    }
    if (strchr(p, ',') || type_len >= 64 || strcspn(p, ":") < type_len)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "GPUs asked for as '%s': topt sizes jobs of one GPU type", text);
    if (*number && topt_parse_int(number, 0, NUMBER_LIMIT, ret, NULL))
        return topt_fail(err, TOPT_ERR_INVAL, "GPUs asked for as '%s' aren't understood",
                         text);
    memcpy(type, p, type_len);
    type[type_len] = '\0';
    return 0;
}

/* "gres/gpu=2", "gres/gpu:a100=2". */
static int is_gpu_entry_of_tres(const char *entry)
{
    return strncmp(entry, "gres/gpu", 8) == 0 && strchr(":=", entry[8]);
}

static int is_gpu_entry(const char *entry)
{
    if (strncmp(entry, "gres:", 5) == 0 || strncmp(entry, "gres/", 5) == 0)
        entry += 5;
    return skip_word(entry, "gpu") != NULL;
}

int topt_shape_gres(const char *text, int64_t *ret_gpus, char type[64],
                    struct topt_text *others, struct topt_error *err)
{
    int rc = -1, found = 0;
    char *copy = strdup(text), *save = NULL;
    *ret_gpus = 0;
    type[0] = '\0';
    if (!copy)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for --gres=%s", text);
    for (char *e = strtok_r(copy, ",", &save); e; e = strtok_r(NULL, ",", &save)) {
        if (!is_gpu_entry(e)) {
            topt_text_add(others, "%s%s", others->len ? "," : "", e);
            continue;
        }
        if (found++) {
            topt_fail(err, TOPT_ERR_INVAL, "--gres=%s: topt sizes jobs of one GPU type",
                      text);
            goto out;
        }
        if (topt_shape_gpus(e, ret_gpus, type, err))
            goto out;
    }
    rc =
        others->oom ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for --gres=%s", text) : 0;
out:
    free(copy);
    return rc;
}

/* An entry of --tres-per-task as --gres has it: "gres/gpu:a100=2" is "gpu:a100:2". */
static void as_gres(char *entry)
{
    char *equals = strchr(entry, '=');
    if (equals && is_gpu_entry_of_tres(entry))
        *equals = ':';
}

int topt_shape_tres(const char *text, int64_t *ret_gpus, char type[64],
                    struct topt_text *others, struct topt_error *err)
{
    char *copy = strdup(text);
    if (!copy)
        return topt_nomem(err, "--tres-per-task");
    struct topt_text gres = {0};
    char *save = NULL;
    for (char *e = strtok_r(copy, ",", &save); e; e = strtok_r(NULL, ",", &save)) {
        as_gres(e);
        topt_text_add(&gres, "%s%s", gres.len ? "," : "", e);
    }
    free(copy);
    int rc = gres.oom
                 ? topt_nomem(err, "--tres-per-task")
                 : topt_shape_gres(gres.s ? gres.s : "", ret_gpus, type, others, err);
    topt_text_fini(&gres);
    return rc;
}

/* Is the job's script one that starts a process for each GPU of a node itself, as those of all
 * frameworks but our own runtime, and do no options of the job's say how many tasks it has? */
static int has_launcher(const struct topt_ask *ask, const struct topt_bounds *b)
{
    const char *framework = ask->value[TOPT_ASK_FRAMEWORK];
    int says_tasks = b->tasks > 1 || b->tasks_per_node > 1 || b->tasks_per_gpu > 0 ||
                     b->gpus_per_task > 0;
    return !says_tasks && !(framework && !strcmp(framework, "topt"));
}

void topt_shape_settle(const struct topt_ask *ask, struct topt_bounds *b)
{
    const char *wish = ask->value[TOPT_ASK_TASKS];
    int as_many = b->tasks > 1 && b->tasks == b->nodes &&
                  (b->gpus_per_node > 1 || b->gpus > b->tasks);
    b->by_node = wish ? strcmp(wish, "node") == 0
                      : b->tasks_per_node == 1 || b->gpus_per_task > 1 || as_many ||
                            has_launcher(ask, b);
}

int64_t topt_shape_tasks(const struct topt_bounds *b, const struct topt_answer *plan)
{
    return b->by_node ? plan->nodes : plan->gpus;
}

int64_t topt_shape_tasks_per_node(const struct topt_bounds *b,
                                  const struct topt_answer *plan)
{
    return b->by_node ? 1 : plan->gpus_per_node;
}

/* GPUs that -n allows, nodes where a task is for a node; 0: any. */
static int64_t gpus_of_tasks(const struct topt_bounds *b)
{
    int64_t of_task = b->gpus_per_task ? b->gpus_per_task : 1;
    if (b->by_node)
        return b->gpus_per_task ? b->tasks * of_task : 0;
    if (b->tasks <= 1 && of_task == 1)
        return 0;
    int64_t gpus = b->tasks / (b->tasks_per_gpu ? b->tasks_per_gpu : 1);
    return (gpus ? gpus : 1) * of_task;
}

static int64_t nodes_of_tasks(const struct topt_bounds *b)
{
    return b->by_node && !b->gpus_per_task && b->tasks > 1 ? b->tasks : 0;
}

static void lower(int64_t *bound, int64_t to)
{
    if (to > 0 && (*bound == 0 || to < *bound))
        *bound = to;
}

int topt_shape_bound(const struct topt_ask *ask, const struct topt_bounds *b,
                     int64_t *ret_bound, struct topt_error *err)
{
    int64_t bound = 0, n = 0;
    char words[160];
    int64_t nodes = b->nodes;
    lower(&nodes, nodes_of_tasks(b));
    lower(&bound, b->gpus);
    lower(&bound, gpus_of_tasks(b));
    lower(&bound, nodes * b->gpus_per_node);
    if (!b->by_node)
        lower(&bound, nodes * b->tasks_per_node);
    if (ask->value[TOPT_ASK_GPUS] && !topt_ask_profiling(ask) &&
        topt_parse_int(ask->value[TOPT_ASK_GPUS], 1, INT64_MAX, &n, err))
        return -1;
    if (bound > 0 && n > bound)
        return topt_fail(err, TOPT_ERR_INVAL, "--topt-gpus=%lld is more than %s allows",
                         (long long)n, topt_shape_words(b, words, sizeof words));
    int64_t most = 0;
    if (ask->value[TOPT_ASK_MAX_GPUS] &&
        topt_parse_int(ask->value[TOPT_ASK_MAX_GPUS], 1, INT64_MAX, &most, err))
        return -1;
    if (most > 0 && n > most)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--topt-gpus=%lld is more than --topt-max-gpus=%lld",
                         (long long)n, (long long)most);
    lower(&bound, most);
    if (topt_ask_mini_time(ask) && !n && !bound)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "mini-time needs --topt-gpus=N (or --gpus=N)");
    *ret_bound = bound;
    return 0;
}

int topt_shape_fits(const struct topt_bounds *b, const struct topt_answer *plan,
                    struct topt_error *err)
{
    const struct {
        const char *option, *what;
        int64_t allowed, needed;
    } rows[] = {
        {"-N", "nodes", b->nodes, plan->nodes},
        {"--gpus", "GPUs", b->gpus, plan->gpus},
        {"--gpus-per-node", "GPUs on a node", b->gpus_per_node, plan->gpus_per_node},
        {"-n", "tasks, one for each node,", nodes_of_tasks(b), plan->nodes},
        {b->gpus_per_task ? "--gpus-per-task for" : "-n",
         b->gpus_per_task ? "GPUs" : "tasks, one for each GPU,", gpus_of_tasks(b),
         plan->gpus},
        {"--ntasks-per-node", "tasks on a node", b->by_node ? 0 : b->tasks_per_node,
         plan->gpus_per_node},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].allowed > 0 && rows[i].needed > rows[i].allowed)
            return topt_fail(
                err, TOPT_ERR_INFEASIBLE,
                "the plan needs %lld %s but the job has %s %lld: leave that option "
                "out or raise it",
                (long long)rows[i].needed, rows[i].what, rows[i].option,
                (long long)rows[i].allowed);
    }
    return 0;
}

int topt_shape_asks_gpus(const struct topt_bounds *b)
{
    return b->gpus > 0 || b->gpus_per_node > 0 || b->gpus_per_task > 0;
}

char *topt_shape_words(const struct topt_bounds *b, char *buf, size_t size)
{
    const struct {
        const char *option;
        int64_t value;
    } rows[] = {
        {"-N ", b->nodes},
        {"--gpus=", b->gpus},
        {"--gpus-per-node=", b->gpus_per_node},
        {"-n ", gpus_of_tasks(b) || nodes_of_tasks(b) ? b->tasks : 0},
        {"--gpus-per-task=", gpus_of_tasks(b) ? b->gpus_per_task : 0},
        {"--ntasks-per-gpu=", gpus_of_tasks(b) ? b->tasks_per_gpu : 0},
        {"--ntasks-per-node=", b->by_node ? 0 : b->tasks_per_node},
    };
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].value <= 0 || used >= size)
            continue;
        int n = snprintf(buf + used, size - used, "%s%s%lld", used ? ", " : "",
                         rows[i].option, (long long)rows[i].value);
        used += n > 0 ? (size_t)n : 0;
    }
    return buf;
}
