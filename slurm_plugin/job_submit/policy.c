/* policy.c - see policy.h. */
#include "policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_elastic.h"
#include "topt_text.h"

static int read_line(char *line, int number, struct policy *ret, struct topt_error *err)
{
    char word[16], partition[POLICY_NAME], count[16], more;
    int64_t gpus = 0;
    line[strcspn(line, "#")] = '\0';
    int n = sscanf(line, " %15s %63s %15s %c", word, partition, count, &more);
    if (n <= 0)
        return 0;
    int is_cap =
        !strcmp(word, "cap") && n == 3 && !topt_parse_int(count, 0, 1 << 30, &gpus, NULL);
    if (!is_cap && !(!strcmp(word, "require") && n == 2))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "line %d is neither 'cap PARTITION GPUS' nor 'require "
                         "PARTITION'",
                         number);
    if (ret->n == POLICY_ROWS)
        return topt_fail(err, TOPT_ERR_LIMIT, "more than %d lines", POLICY_ROWS);
    struct policy_row *r = &ret->row[ret->n++];
    memcpy(r->partition, partition, sizeof r->partition);
    r->most = is_cap ? gpus : 1;
    r->is_cap = is_cap;
    return 0;
}

int policy_read(const char *text, struct policy *ret, struct topt_error *err)
{
    char *copy = strdup(text), *save = NULL;
    int number = 0, rc = copy ? 0 : topt_nomem(err, "the policy");
    *ret = (struct policy){0};
    for (char *line = copy; !rc && line && *line; line = save) {
        save = strchr(line, '\n');
        if (save)
            *save++ = '\0';
        rc = read_line(line, ++number, ret, err);
    }
    free(copy);
    return rc;
}

static const char *value_of(char *const *environment, uint32_t n, const char *name)
{
    size_t len = strlen(name);
    for (uint32_t i = 0; environment && i < n; i++)
        if (environment[i] && !strncmp(environment[i], name, len) &&
            environment[i][len] == '=')
            return environment[i] + len + 1;
    return NULL;
}

int policy_plan(char *const *environment, uint32_t n, struct policy_plan *ret,
                struct topt_error *err)
{
    const struct {
        const char *name;
        int64_t *to;
    } rows[] = {{"SLURM_TOPT_NODES", &ret->nodes},
                {"SLURM_TOPT_GPUS_PER_NODE", &ret->gpus_per_node},
                {"SLURM_TOPT_NTASKS", &ret->tasks}};
    const char *id = value_of(environment, n, "SLURM_TOPT_PLAN");
    const char *others = value_of(environment, n, TOPT_ELASTIC_VARIABLE);
    *ret = (struct policy_plan){.others = others ? others : ""};
    if (!id || !*id)
        return 0;
    snprintf(ret->id, sizeof ret->id, "%s", id);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *value = value_of(environment, n, rows[i].name);
        if (!value || topt_parse_int(value, 1, 1 << 20, rows[i].to, NULL))
            return topt_fail(err, TOPT_ERR_INVAL, "plan %.70s comes without %s", ret->id,
                             rows[i].name);
    }
    return ret->tasks % ret->nodes
               ? topt_fail(err, TOPT_ERR_INVAL,
                           "plan %.70s has %lld tasks for %lld nodes", ret->id,
                           (long long)ret->tasks, (long long)ret->nodes)
               : 1;
}

/* Is the partition one of those that the job names? */
static int is_named(const char *names, const char *partition)
{
    size_t len = strlen(partition);
    if (!strcmp(partition, "*"))
        return 1;
    if (!*names)
        return !strcmp(partition, "-");
    for (const char *p = names; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == len && !memcmp(p, partition, len))
            return 1;
    return 0;
}

int policy_allows(const struct policy *p, const struct policy_job *job,
                  struct topt_error *err)
{
    for (int i = 0; i < p->n; i++) {
        const struct policy_row *r = &p->row[i];
        if (job->gpus <= r->most || !is_named(job->partition, r->partition))
            continue;
        if (r->is_cap)
            return topt_fail(err, TOPT_ERR_LIMIT,
                             "topt: %lld GPUs without a plan are more than the %lld that "
                             "the site allows: ask with --topt-model",
                             (long long)job->gpus, (long long)r->most);
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "topt: a job of several GPUs needs a plan here: ask with "
                         "--topt-model");
    }
    return 0;
}

int policy_allows_change(const struct policy *p, const struct policy_change *c,
                         struct topt_error *err)
{
    const struct policy_job *job = &c->job;
    int fewest = c->says_nodes && job->nodes == 1; /* no more than it has */
    if (!c->says_gpus && (!c->says_nodes || fewest))
        return 0;
    for (int i = 0; i < p->n; i++) {
        const struct policy_row *r = &p->row[i];
        if (job->partition && !is_named(job->partition, r->partition))
            continue;
        if (!c->says_gpus)
            return topt_fail(
                err, TOPT_ERR_LIMIT,
                "topt: a change of NumNodes says TresPerNode, too, where the "
                "site has a policy for GPUs");
        if (job->gpus && !c->says_nodes)
            return topt_fail(err, TOPT_ERR_LIMIT,
                             "topt: a change of GPUs says NumNodes, too, where the site "
                             "has a policy for them");
        if (job->gpus > r->most)
            return topt_fail(
                err, TOPT_ERR_LIMIT,
                "topt: a waiting job can't be changed to %lld GPUs, more than "
                "the %lld that the site allows: submit it again",
                (long long)job->gpus, (long long)r->most);
    }
    return 0;
}

/* Is a word of the list this shape? */
static int is_among(const char *list, int64_t nodes, int64_t gpus_per_node)
{
    char shape[48];
    snprintf(shape, sizeof shape, "%lldx%lld", (long long)nodes,
             (long long)gpus_per_node);
    size_t len = strlen(shape);
    for (const char *p = list; *p; p += strcspn(p, " "), p += *p == ' ')
        if (strcspn(p, " ") == len && !memcmp(p, shape, len))
            return 1;
    return 0;
}

int policy_is_shaped(const struct policy_job *job, const struct policy_plan *plan)
{
    int is_least = plan->others && is_among(plan->others, job->nodes, job->gpus_per_node);
    if (job->gpus_per_node != plan->gpus_per_node ||
        (job->nodes != plan->nodes && !is_least))
        return 0;
    return job->tasks == job->nodes * (plan->tasks / plan->nodes) ||
           (is_least && !job->tasks);
}
