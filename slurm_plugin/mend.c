/* mend.c - the environment of a job that topt sized.
 *
 * Slurm's sbatch writes SLURM_NTASKS and friends from the command line before plugins see
 * the options; srun in the script reads them as options.  So a job that was asked with -n1
 * and sized to 8 would start one task, or leave a node without GPUs.  What is true after
 * allocation is SLURM_TASKS_PER_NODE and SLURM_GPUS_ON_NODE, which slurmstepd derives from
 * the allocation itself; the rest is recomputed from these, or unset where srun then takes
 * the job's own values.
 *
 * A job that has its nodes for itself (--exclusive, OverSubscribe=EXCLUSIVE) has all of
 * their GPUs, however few it asked for; so has one that was given more while it waited.
 * Its plan holds there, and srun starts the plan's ranks with the plan's GPUs. */
#include "mend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_rendezvous.h"
#include "topt_text.h"

enum { VALUE_SIZE = 512, LIST_SIZE = 8192 };

/* Where the planner is and whom to believe: a job's own words for that stay. */
static int is_of_site(const char *name)
{
    return !strcmp(name, "URL") || !strcmp(name, "DAEMON_UID") ||
           !strcmp(name, "MUNGE_SOCKET");
}

/* "TOPT_<name>" in the job, "SLURM_TOPT_<name>" on the way.  PLAN is what a job hands to
 * `topt run`; PLAN_ID is the same id under its own name. */
static const char *const names[] = {"PLAN_ID",      "PLAN",      "GPUS",
                                    "NODES",        "URL",       "GPUS_PER_NODE",
                                    "MEMORY_BYTES", "TIME_NS",   "DP",
                                    "TP",           "PP",        "VP",
                                    "FSDP",         "RECOMPUTE", "MICRO_BATCH",
                                    "ACCUMULATION", "TORCHRUN",  "DAEMON_UID",
                                    "NTASKS",       "SRUN",      "MUNGE_SOCKET",
                                    "SHARD",        "CP",        "EP",
                                    "ETP"};
enum { NAMES = sizeof names / sizeof *names };

static void set_both(const struct topt_env *env, const char *name, const char *value)
{
    char full[48];
    snprintf(full, sizeof full, "SLURM_TOPT_%s", name);
    env->set(env->ctx, full, value);
    env->set(env->ctx, full + strlen("SLURM_"), value);
}

static void unset_both(const struct topt_env *env, const char *name)
{
    char full[48];
    snprintf(full, sizeof full, "SLURM_TOPT_%s", name);
    env->unset(env->ctx, full);
    env->unset(env->ctx, full + strlen("SLURM_"));
}

/* A number of the environment, or 0. */
static int64_t number_of(const struct topt_env *env, const char *name)
{
    char value[VALUE_SIZE];
    int64_t n = 0;
    if (env->get(env->ctx, name, value, sizeof value) ||
        topt_parse_int(value, 0, 1 << 30, &n, NULL))
        return 0;
    return n;
}

/* The arguments of torchrun, and of srun for one launcher a node; 'list': the job's nodes, NULL
 * before it has any. */
static void set_launchers(const struct topt_env *env, int64_t nodes,
                          int64_t gpus_per_node, const char *list)
{
    char text[TOPT_RENDEZVOUS_SIZE];
    topt_rendezvous_torchrun(nodes, gpus_per_node, list, number_of(env, "SLURM_JOB_ID"),
                             text);
    set_both(env, "TORCHRUN", text);
    topt_rendezvous_srun(nodes, 1, text);
    set_both(env, "SRUN", text);
}

/* In a job its nodes are known, and so is where they meet. */
static void meet(const struct topt_env *env)
{
    char list[LIST_SIZE];
    if (!env->get(env->ctx, "SLURM_TOPT_TORCHRUN", list, sizeof list) &&
        !env->get(env->ctx, "SLURM_JOB_NODELIST", list, sizeof list))
        set_launchers(env, number_of(env, "SLURM_TOPT_NODES"),
                      number_of(env, "SLURM_TOPT_GPUS_PER_NODE"), list);
}

/* What is said of a plan itself, as "NAME=VALUE NAME=VALUE"; none of the values holds a blank. */
static void words_of(const struct topt_answer *plan, int64_t tasks, char *buf,
                     size_t size)
{
    const struct {
        const char *name;
        int64_t value;
        int is_said;
    } rows[] = {
        {"NTASKS", tasks, 1},
        {"GPUS", plan->gpus, 1},
        {"NODES", plan->nodes, 1},
        {"GPUS_PER_NODE", plan->gpus_per_node, 1},
        {"MEMORY_BYTES", plan->memory_bytes, 1},
        {"TIME_NS", plan->time_ns, 1},
        {"DP", plan->dp, plan->dp > 0},
        {"TP", plan->tp, plan->dp > 0},
        {"PP", plan->pp, plan->pp > 0},
        {"VP", plan->vp, plan->pp > 0},
        {"CP", plan->cp, plan->cp > 1},
        {"EP", plan->ep, plan->ep > 1},
        {"ETP", plan->etp, plan->ep > 1},
        {"FSDP", plan->fsdp, plan->dp > 0},
        {"SHARD", plan->shard, plan->shard > 0},
        {"RECOMPUTE", plan->recompute, plan->dp > 0},
        {"MICRO_BATCH", plan->micro_batch, plan->dp > 0},
        {"ACCUMULATION", plan->accumulation, plan->dp > 0 && plan->accumulation > 0}};
    int used = snprintf(buf, size, "PLAN_ID=%s PLAN=%s", plan->plan_id, plan->plan_id);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_said && used > 0 && (size_t)used < size)
            used += snprintf(buf + used, size - (size_t)used, " %s=%lld", rows[i].name,
                             (long long)rows[i].value);
}

/* Each of these words as variables of its own. */
static void set_words(const struct topt_env *env, const char *words)
{
    char copy[VALUE_SIZE], *save = NULL;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(w, '=');
        if (!equals)
            continue;
        *equals = '\0';
        for (int i = 0; i < NAMES; i++)
            if (!strcmp(names[i], w))
                set_both(env, w, equals + 1);
    }
}

static void set_plan(const struct topt_env *env, const char *words, int is_uniform,
                     int64_t nodes, int64_t gpus_per_node)
{
    set_words(env, words);
    if (is_uniform)
        set_launchers(env, nodes, gpus_per_node, NULL);
}

void topt_mend_plan(const struct topt_env *env, const struct topt_answer *plan,
                    int64_t tasks, const char *url, const struct topt_trust *trust)
{
    char words[VALUE_SIZE];
    set_both(env, "URL", url);
    if (*plan->plan_doc)
        env->set(env->ctx, TOPT_CARRY_VARIABLE, plan->plan_doc);
    else
        env->unset(env->ctx, TOPT_CARRY_VARIABLE);
    if (trust->uid >= 0) {
        char uid[24];
        snprintf(uid, sizeof uid, "%lld", (long long)trust->uid);
        set_both(env, "DAEMON_UID", uid);
    }
    if (trust->socket)
        set_both(env, "MUNGE_SOCKET", trust->socket);
    words_of(plan, tasks, words, sizeof words);
    set_plan(env, words, plan->dp > 0, plan->nodes, plan->gpus_per_node);
}

void topt_mend_further(const struct topt_env *env, const struct topt_answer *plan,
                       int64_t tasks, int kind)
{
    char tag[TOPT_ELASTIC_NAME], name[TOPT_ELASTIC_NAME], words[VALUE_SIZE];
    words_of(plan, tasks, words, sizeof words);
    topt_elastic_tag(plan->nodes, plan->gpus_per_node, kind, tag);
    topt_elastic_plan_name(tag, name);
    env->set(env->ctx, name, words);
    topt_elastic_document_name(tag, name);
    env->set(env->ctx, name, plan->plan_doc);
}

void topt_mend_shapes(const struct topt_env *env, const struct topt_elastic *e)
{
    struct topt_text list = {0}, kinds = {0};
    char tag[TOPT_ELASTIC_NAME];
    for (int i = 0; i < e->n; i++)
        if (i != e->submitted) {
            topt_elastic_tag(e->shape[i].nodes, e->shape[i].gpus_per_node,
                             e->shape[i].kind, tag);
            topt_text_add(&list, "%s%s", list.len ? " " : "", tag);
        }
    topt_elastic_kinds(e, &kinds);
    env->set(env->ctx, TOPT_ELASTIC_VARIABLE, list.len ? list.s : "");
    if (kinds.len)
        env->set(env->ctx, TOPT_ELASTIC_KINDS_VARIABLE, kinds.s);
    topt_text_fini(&list);
    topt_text_fini(&kinds);
}

void topt_mend_drop_further(const struct topt_env *env)
{
    char list[VALUE_SIZE], name[TOPT_ELASTIC_NAME], *save = NULL;
    env->unset(env->ctx, TOPT_ELASTIC_KINDS_VARIABLE);
    if (env->get(env->ctx, TOPT_ELASTIC_VARIABLE, list, sizeof list))
        return;
    env->unset(env->ctx, TOPT_ELASTIC_VARIABLE);
    for (char *w = strtok_r(list, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        topt_elastic_plan_name(w, name);
        env->unset(env->ctx, name);
        topt_elastic_document_name(w, name);
        env->unset(env->ctx, name);
    }
}

void topt_mend_forget(const struct topt_env *env)
{
    char full[48], value[VALUE_SIZE];
    if (env->get(env->ctx, "SLURM_TOPT_PLAN", value, sizeof value))
        return;
    topt_mend_drop_further(env);
    env->unset(env->ctx, TOPT_CARRY_VARIABLE);
    for (int i = 0; i < NAMES; i++) {
        snprintf(full, sizeof full, "SLURM_TOPT_%s", names[i]);
        env->unset(env->ctx, full);
        if (!is_of_site(names[i]))
            env->unset(env->ctx, full + strlen("SLURM_"));
    }
}

int topt_mend_step(const struct topt_env *env)
{
    char full[48], value[VALUE_SIZE];
    if (env->get(env->ctx, "SLURM_TOPT_PLAN", value, sizeof value))
        return 0;
    for (int i = 0; i < NAMES; i++) {
        snprintf(full, sizeof full, "SLURM_TOPT_%s", names[i]);
        if (!env->get(env->ctx, full, value, sizeof value))
            env->set(env->ctx, full + strlen("SLURM_"), value);
    }
    meet(env);
    return 1;
}

int64_t topt_mend_tasks(const char *tasks_per_node)
{
    int64_t total = 0;
    const char *p = tasks_per_node;
    for (;;) {
        char *end;
        long long tasks = strtoll(p, &end, 10), times = 1;
        if (end == p || tasks < 0 || tasks > 1 << 20)
            return -1;
        p = end;
        if (p[0] == '(' && p[1] == 'x') {
            times = strtoll(p + 2, &end, 10);
            if (end == p + 2 || *end != ')' || times < 1 || times > 1 << 20)
                return -1;
            p = end + 1;
        }
        total += tasks * times;
        if (*p == '\0')
            return total;
        if (*p++ != ',' || total > INT64_C(1) << 40)
            return -1;
    }
}

static int64_t tasks_of(const struct topt_env *env)
{
    char value[VALUE_SIZE];
    return env->get(env->ctx, "SLURM_TASKS_PER_NODE", value, sizeof value)
               ? 0
               : topt_mend_tasks(value);
}

/* The document of the plan of that shape becomes the job's. */
static int adopt_document(const struct topt_env *env, const char *tag)
{
    char name[TOPT_ELASTIC_NAME], *word = malloc(TOPT_CARRY_MOST + 1);
    topt_elastic_document_name(tag, name);
    int rc = !word || env->get(env->ctx, name, word, TOPT_CARRY_MOST + 1);
    if (!rc)
        env->set(env->ctx, TOPT_CARRY_VARIABLE, word);
    free(word);
    return rc ? -1 : 0;
}

/* Which of the kinds that it agreed to the job runs on, and where; -1: on none of them. */
static int kind_of(const struct topt_env *env, char partition[VALUE_SIZE])
{
    char kinds[VALUE_SIZE];
    if (env->get(env->ctx, TOPT_ELASTIC_KINDS_VARIABLE, kinds, sizeof kinds) ||
        env->get(env->ctx, "SLURM_JOB_PARTITION", partition, VALUE_SIZE))
        return 0;
    return topt_elastic_kind_in(kinds, partition);
}

int topt_mend_adopt(const struct topt_env *env, char *said, size_t size)
{
    char tag[TOPT_ELASTIC_NAME], name[TOPT_ELASTIC_NAME];
    char words[VALUE_SIZE], id[VALUE_SIZE], partition[VALUE_SIZE];
    int kind = kind_of(env, partition);
    int64_t nodes = number_of(env, "SLURM_JOB_NUM_NODES");
    int64_t gpus = number_of(env, "SLURM_GPUS_ON_NODE");
    if (nodes < 1 || gpus < 1 || kind < 0 ||
        (!kind && nodes == number_of(env, "SLURM_TOPT_NODES") &&
         gpus == number_of(env, "SLURM_TOPT_GPUS_PER_NODE")))
        return 0;
    topt_elastic_tag(nodes, gpus, kind, tag);
    topt_elastic_plan_name(tag, name);
    if (env->get(env->ctx, name, words, sizeof words) || adopt_document(env, tag))
        return 0;
    for (int i = 0; i < NAMES; i++)
        if (!is_of_site(names[i]))
            unset_both(env, names[i]);
    set_plan(env, words, strstr(words, " DP=") != NULL, nodes, gpus);
    env->get(env->ctx, "SLURM_TOPT_PLAN", id, sizeof id);
    snprintf(said, size,
             "the job has %lld node%s of %lld GPU%s%s%.60s: it runs by plan %.80s, which "
             "travels with it",
             (long long)nodes, nodes == 1 ? "" : "s", (long long)gpus,
             gpus == 1 ? "" : "s", kind ? " in partition " : "", kind ? partition : "",
             id);
    return 1;
}

int topt_mend_stale(const struct topt_env *env, int is_batch, char *why, size_t size)
{
    const struct {
        const char *what;
        int64_t plan, has; /* 0: not known */
    } rows[] = {
        {"nodes", number_of(env, "SLURM_TOPT_NODES"),
         number_of(env, "SLURM_JOB_NUM_NODES")},
        {"GPUs per node", number_of(env, "SLURM_TOPT_GPUS_PER_NODE"),
         is_batch ? number_of(env, "SLURM_GPUS_ON_NODE") : 0},
        {"tasks", number_of(env, "SLURM_TOPT_NTASKS"), is_batch ? tasks_of(env) : 0},
    };
    char id[VALUE_SIZE] = "";
    env->get(env->ctx, "SLURM_TOPT_PLAN", id, sizeof id);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].has <= 0 || rows[i].has >= rows[i].plan)
            continue;
        snprintf(why, size,
                 "plan %.80s is for %lld %s, and the job has %lld: it was resized", id,
                 (long long)rows[i].plan, rows[i].what, (long long)rows[i].has);
        topt_mend_forget(env);
        env->set(env->ctx, "TOPT_STALE", why);
        return 1;
    }
    return 0;
}

int topt_mend_spare(const struct topt_env *env, char *said, size_t size)
{
    char id[VALUE_SIZE] = "";
    int64_t nodes = number_of(env, "SLURM_TOPT_NODES");
    int64_t each = number_of(env, "SLURM_TOPT_GPUS_PER_NODE");
    int64_t has_nodes = number_of(env, "SLURM_JOB_NUM_NODES");
    int64_t has = number_of(env, "SLURM_GPUS_ON_NODE");
    has_nodes = has_nodes ? has_nodes : nodes;
    has = has ? has : each;
    if (nodes < 1 || each < 1 || (has_nodes <= nodes && has <= each))
        return 0;
    env->get(env->ctx, "SLURM_TOPT_PLAN", id, sizeof id);
    snprintf(
        said, size,
        "the job has %lld node%s of %lld GPU%s, and plan %.80s uses %lld of %lld GPUs: "
        "the others are idle",
        (long long)has_nodes, has_nodes == 1 ? "" : "s", (long long)has,
        has == 1 ? "" : "s", id, (long long)(nodes * each), (long long)(has_nodes * has));
    return 1;
}

/* The number becomes the value of both. */
static void set_numbers(const struct topt_env *env, const char *a, const char *b,
                        int64_t n)
{
    char value[24];
    snprintf(value, sizeof value, "%lld", (long long)n);
    env->set(env->ctx, a, value);
    if (b)
        env->set(env->ctx, b, value);
}

void topt_mend_batch(const struct topt_env *env)
{
    static const char *const stale[] = {"SLURM_GPUS", "SLURM_GPUS_PER_TASK",
                                        "SLURM_NTASKS_PER_NODE", "SLURM_NTASKS_PER_GPU",
                                        "SLURM_GPUS_PER_SOCKET"};
    char value[VALUE_SIZE];
    for (size_t i = 0; i < sizeof stale / sizeof *stale; i++)
        env->unset(env->ctx, stale[i]);
    if (!env->get(env->ctx, "SLURM_TRES_PER_TASK", value, sizeof value) &&
        strstr(value, "gpu"))
        env->unset(env->ctx, "SLURM_TRES_PER_TASK");
    int64_t nodes = number_of(env, "SLURM_TOPT_NODES");
    int64_t tasks = number_of(env, "SLURM_TOPT_NTASKS");
    int64_t each = number_of(env, "SLURM_TOPT_GPUS_PER_NODE");
    tasks = tasks ? tasks : tasks_of(env);
    each = each ? each : number_of(env, "SLURM_GPUS_ON_NODE");
    if (tasks > 0)
        set_numbers(env, "SLURM_NTASKS", "SLURM_NPROCS", tasks);
    if (each > 0)
        set_numbers(env, "SLURM_GPUS_PER_NODE", NULL, each);
    if (nodes && number_of(env, "SLURM_JOB_NUM_NODES") > nodes)
        set_numbers(env, "SLURM_JOB_NUM_NODES", "SLURM_NNODES", nodes);
}
