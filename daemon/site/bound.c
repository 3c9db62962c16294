/* bound.c - see bound.h.
 *
 * Nodes of a partition may differ.  Those with the GPUs that the most nodes together have
 * count: the product of how many GPUs a node has at least and how many such nodes there
 * are. */
#include "bound.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "usable_gpus.h"
#include "reservation.h"
#include "topt_text.h"

enum { MAP_LIMIT = 1 << 20 };

int site_map_read(const char *path, struct site_map *ret, struct topt_error *err)
{
    size_t len = 0, lines = 1;
    char *text = topt_read_file(path, MAP_LIMIT, &len, err), *save = NULL;
    int number = 0, rc = 0;
    *ret = (struct site_map){0};
    if (!text)
        return -1;
    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    ret->row = calloc(lines, sizeof *ret->row);
    if (!ret->row)
        rc = topt_nomem(err, path);
    for (char *line = text; !rc && line && *line; line = save) {
        struct site_row *r = &ret->row[ret->n];
        char whole[8], more;
        number++;
        save = strchr(line, '\n');
        if (save)
            *save++ = '\0';
        line[strcspn(line, "#")] = '\0';
        if (!line[strspn(line, " \t\r")])
            continue;
        int words = sscanf(line, "%63s %63s %79s %7s %c", r->partition, r->type,
                           r->profile, whole, &more);
        r->is_whole = words == 4 && !strcmp(whole, "whole");
        if (words == 3 || r->is_whole)
            ret->n++;
        else
            rc =
                topt_fail(err, TOPT_ERR_INVAL,
                          "%s:%d: a line is PARTITION GPU-TYPE PROFILE, and may end with "
                          "'whole'",
                          path, number);
    }
    free(text);
    if (rc)
        site_map_fini(ret);
    return rc;
}

void site_map_fini(struct site_map *m)
{
    free(m->row);
    *m = (struct site_map){0};
}

static int fits(const char *pattern, const char *word)
{
    return strcmp(pattern, "*") == 0 || strcmp(pattern, word) == 0;
}

/* The partition of that name, or the default one for "".  NULL: not known. */
static const struct site_partition *partition_of(const struct site_slurm *s,
                                                 const char *name)
{
    for (size_t i = 0; s && i < s->npartitions; i++) {
        const struct site_partition *p = &s->partition[i];
        if (*name ? !strcmp(p->name, name) : p->is_default)
            return p;
    }
    return NULL;
}

/* Features are known where the constraint is one word, or several that must all be there. */
static int has_features(const struct site_node *n, const char *constraint)
{
    char words[SITE_WORDS], *save = NULL;
    if (strpbrk(constraint, "|[]*()"))
        return 1;
    snprintf(words, sizeof words, "%s", constraint);
    for (char *w = strtok_r(words, "&,", &save); w; w = strtok_r(NULL, "&,", &save))
        if (!site_has_word(n->features, w))
            return 0;
    return 1;
}

/* Can the job's nodes be of these?  Those of its reservation, where it names one. */
static int is_of(const struct site_node *n, const struct site_partition *p,
                 const struct site_reservation *r, const struct site_job *job)
{
    return n->is_up && site_has_word(n->partitions, p->name) &&
           (!r || r->is_flexible || site_has_word(n->reservations, r->name)) &&
           has_features(n, job->constraint);
}

int site_node_serves(const struct site_node *n, const char *partitions,
                     const char *constraint)
{
    char names[SITE_WORDS], *save = NULL;
    if (!n->is_up || !has_features(n, constraint))
        return 0;
    snprintf(names, sizeof names, "%s", partitions);
    for (char *p = strtok_r(names, ",", &save); p; p = strtok_r(NULL, ",", &save))
        if (site_has_word(n->partitions, p))
            return 1;
    return 0;
}

static int is_named(const struct site_node *n, const struct site_job *job)
{
    return *job->nodelist &&
           site_host_is_in(job->nodelist, strlen(job->nodelist), n->name);
}

/* Has each node that the job names as many GPUs for it? */
static int named_have(const struct site_slurm *s, const struct site_partition *p,
                      const struct site_job *job, const char *type, int but, int64_t gpus)
{
    for (size_t i = 0; i < s->nnodes; i++)
        if (is_named(&s->node[i], job) &&
            site_usable_gpus(s, p, &s->node[i], job, type, but) < gpus)
            return 0;
    return 1;
}

/* The nodes of the partition: the largest product of GPUs a node and nodes with as many,
 * among which are those that the job names.  'but' (usable_gpus.h) is left out. */
static void count_nodes(const struct site_slurm *s, const struct site_partition *p,
                        const struct site_job *job, const char *type, int but,
                        struct site_bound *ret)
{
    const struct site_reservation *r = site_reservation_of(s, job);
    ret->nodes = ret->gpus_per_node = 0;
    for (size_t i = 0; i < s->nnodes; i++) {
        int64_t gpus = site_usable_gpus(s, p, &s->node[i], job, type, but), nodes = 0;
        if (!gpus || !is_of(&s->node[i], p, r, job) ||
            !named_have(s, p, job, type, but, gpus))
            continue;
        for (size_t j = 0; j < s->nnodes; j++)
            nodes += is_of(&s->node[j], p, r, job) &&
                     site_usable_gpus(s, p, &s->node[j], job, type, but) >= gpus;
        if (p->max_nodes && nodes > p->max_nodes)
            nodes = p->max_nodes;
        int64_t more = nodes * gpus - ret->nodes * ret->gpus_per_node;
        if (more > 0 || (!more && gpus > ret->gpus_per_node)) {
            ret->nodes = nodes;
            ret->gpus_per_node = gpus;
        }
    }
}

/* Has the partition nodes with such GPUs and the job's features, up or not, and are all that
 * the job names of them? */
static int has_type(const struct site_slurm *s, const struct site_partition *p,
                    const char *type, const struct site_job *job)
{
    int has = 0;
    for (size_t i = 0; i < s->nnodes; i++) {
        const struct site_node *n = &s->node[i];
        int is_such = site_has_word(n->partitions, p->name) && site_gpus_of(n, type) &&
                      has_features(n, job->constraint);
        if (!is_such && is_named(n, job))
            return 0;
        has |= is_such;
    }
    return has;
}

/* The row of the table, and the type that it takes: the job's, or one that nodes of the
 * partition have, those that 'where' names and with its features. */
static const struct site_row *
row_with(const struct site_slurm *s, const struct site_partition *p,
         const struct site_map *map, const struct site_job *job, const char *name,
         const char *hw, const struct site_job *where, char type[SITE_NAME])
{
    for (size_t i = 0; map && i < map->n; i++) {
        const struct site_row *r = &map->row[i];
        if (!fits(r->partition, name) || (*hw && strcmp(r->profile, hw)))
            continue;
        if (*job->gpu_type && !fits(r->type, job->gpu_type))
            continue;
        snprintf(type, SITE_NAME, "%s",
                 *job->gpu_type         ? job->gpu_type
                 : strcmp(r->type, "*") ? r->type
                                        : "");
        if (p && *type && !*job->gpu_type && !has_type(s, p, type, where))
            continue;
        return r;
    }
    snprintf(type, SITE_NAME, "%s", job->gpu_type);
    return NULL;
}

/* Where no node has the job's features, or one that it names has other GPUs, the row
 * without them: what is refused then is the constraint, or the node. */
static const struct site_row *row_of(const struct site_slurm *s,
                                     const struct site_partition *p,
                                     const struct site_map *map,
                                     const struct site_job *job, const char *name,
                                     const char *hw, char type[SITE_NAME])
{
    static const struct site_job anywhere;
    const struct site_row *r = row_with(s, p, map, job, name, hw, job, type);
    return r ? r : row_with(s, p, map, job, name, hw, &anywhere, type);
}

/* The most that the partition's nodes with GPUs of the type have; where the job names nodes,
 * the least that each of these has. */
static void most_of_nodes(const struct site_slurm *s, const struct site_partition *p,
                          const struct site_job *job, const char *type, int64_t *ret_cpus,
                          int64_t *ret_memory)
{
    const struct site_reservation *r = site_reservation_of(s, job);
    int64_t named = 0;
    *ret_cpus = *ret_memory = 0;
    for (size_t i = 0; i < s->nnodes; i++) {
        const struct site_node *n = &s->node[i];
        if (!is_named(n, job))
            continue;
        *ret_cpus = named && *ret_cpus < n->cpus ? *ret_cpus : n->cpus;
        *ret_memory = named && *ret_memory < n->memory_mib ? *ret_memory : n->memory_mib;
        named++;
    }
    for (size_t i = 0; i < s->nnodes && !named; i++) {
        const struct site_node *n = &s->node[i];
        if (!is_of(n, p, r, job) || !site_gpus_of(n, type))
            continue;
        *ret_cpus = n->cpus > *ret_cpus ? n->cpus : *ret_cpus;
        *ret_memory = n->memory_mib > *ret_memory ? n->memory_mib : *ret_memory;
    }
}

/* Why no node can take the job: the option that is too much, or that there is none. */
static int no_node(const struct site_slurm *s, const struct site_partition *p,
                   const struct site_job *job, const char *type, struct topt_error *err)
{
    const struct site_reservation *r = site_reservation_of(s, job);
    struct site_bound b;
    int64_t cpus, memory;
    char need[160];
    most_of_nodes(s, p, job, type, &cpus, &memory);
    count_nodes(s, p, job, type, SITE_BUT_CPUS | SITE_BUT_MEMORY, &b);
    if (!b.nodes)
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "partition '%s'%s%s%s has no node up with GPUs%s%s%s%s", p->name,
                         r ? " in reservation '" : "", r ? r->name : "", r ? "'" : "",
                         *type ? " of type " : "", type,
                         *job->constraint ? " and --constraint=" : "", job->constraint);
    count_nodes(s, p, job, type, SITE_BUT_MEMORY, &b);
    int is_cpus = !b.nodes;
    if (is_cpus)
        site_need_of_cpus(p, job, need, sizeof need);
    else
        site_need_of_memory(p, job, need, sizeof need);
    int64_t most = is_cpus ? p->max_cpus : p->max_mem_mib;
    int64_t of_node = is_cpus ? cpus : memory;
    if (most && most < of_node)
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "%s is more than partition '%s' allows on a node (%s=%lld)",
                         need, p->name, is_cpus ? "MaxCPUsPerNode" : "MaxMemPerNode",
                         (long long)most);
    return topt_fail(err, TOPT_ERR_INFEASIBLE,
                     "%s is more than the %lld %s of a node in partition '%s'", need,
                     (long long)of_node, is_cpus ? "CPUs" : "MiB", p->name);
}

__attribute__((format(printf, 2, 3))) static void add(struct site_bound *b,
                                                      const char *format, ...)
{
    va_list args;
    size_t n = strlen(b->words);
    va_start(args, format);
    vsnprintf(b->words + n, sizeof b->words - n, format, args);
    va_end(args);
}

/* What leaves fewer GPUs of a node to the job than the node has: CPUs or memory, and the
 * partition's own limit. */
static void say_needs(const struct site_slurm *s, const struct site_partition *p,
                      const struct site_job *job, const char *type, struct site_bound *b)
{
    struct site_bound without;
    char need[160], most[48] = "";
    int64_t cpus, memory;
    most_of_nodes(s, p, job, type, &cpus, &memory);
    count_nodes(s, p, job, type, SITE_BUT_CPUS, &without);
    int is_cpus = without.gpus_per_node > b->gpus_per_node;
    if (is_cpus)
        site_need_of_cpus(p, job, need, sizeof need);
    else
        site_need_of_memory(p, job, need, sizeof need);
    if (is_cpus ? p->max_cpus && p->max_cpus < cpus
                : p->max_mem_mib && p->max_mem_mib < memory)
        snprintf(most, sizeof most, "%s%s=%lld", *need ? " and " : "",
                 is_cpus ? "MaxCPUsPerNode" : "MaxMemPerNode",
                 (long long)(is_cpus ? p->max_cpus : p->max_mem_mib));
    add(b, ", by %s%s", *need || *most ? need : "the CPUs of a node", most);
}

/* The nodes that the job names, where they leave it less than others of the partition. */
static void say_named(const struct site_slurm *s, const struct site_partition *p,
                      const struct site_job *job, const char *type, struct site_bound *b)
{
    struct site_job any = *job;
    struct site_bound all;
    any.nodelist[0] = '\0';
    count_nodes(s, p, &any, type, 0, &all);
    if (all.nodes * all.gpus_per_node > b->nodes * b->gpus_per_node)
        add(b, " and -w %.40s", job->nodelist);
}

static void say(const struct site_slurm *s, const struct site_partition *p,
                const struct site_job *job, const char *type, struct site_bound *b)
{
    const struct site_reservation *r = site_reservation_of(s, job);
    struct site_bound all;
    snprintf(b->words, sizeof b->words,
             "partition '%.40s'%s%.40s%s with %lld node%s of %lld GPU%s", p->name,
             r ? " and reservation '" : "", r ? r->name : "", r ? "'" : "",
             (long long)b->nodes, b->nodes == 1 ? "" : "s", (long long)b->gpus_per_node,
             b->gpus_per_node == 1 ? "" : "s");
    if (b->named)
        say_named(s, p, job, type, b);
    if (p->max_nodes && b->nodes == p->max_nodes)
        add(b, ", MaxNodes=%lld", (long long)p->max_nodes);
    count_nodes(s, p, job, type, SITE_BUT_CPUS | SITE_BUT_MEMORY, &all);
    b->of_node = all.gpus_per_node;
    if (b->gpus_per_node < all.gpus_per_node)
        say_needs(s, p, job, type, b);
}

/* May this user's account, with this QOS, use the partition? */
static int may_use(const struct site_partition *p, const char *user, const char *account,
                   const char *qos, struct topt_error *err)
{
    const struct {
        const char *what, *name, *list, *option;
        int allows;
    } rows[] = {{"account", account, p->allow_accounts, "AllowAccounts", 1},
                {"account", account, p->deny_accounts, "DenyAccounts", 0},
                {"QOS", qos, p->allow_qos, "AllowQos", 1},
                {"QOS", qos, p->deny_qos, "DenyQos", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (*rows[i].name && *rows[i].list &&
            site_has_word(rows[i].list, rows[i].name) != rows[i].allows)
            return topt_fail(err, TOPT_ERR_INFEASIBLE,
                             "%s '%s' may not use partition '%s' (%s=%.100s)",
                             rows[i].what, rows[i].name, p->name, rows[i].option,
                             rows[i].list);
    if (!*p->allow_groups || !*user || !strcmp(user, "root") ||
        site_is_in_group(p->allow_groups, user))
        return 0;
    return topt_fail(err, TOPT_ERR_INFEASIBLE,
                     "user '%s' may not use partition '%s' (AllowGroups=%.100s)", user,
                     p->name, p->allow_groups);
}

static int check_time(const struct site_partition *p, const struct site_job *job,
                      const struct site_account_bound *of, struct topt_error *err)
{
    int64_t time = *job->time ? site_seconds(job->time) : 0;
    if (p->max_time_s && time > p->max_time_s)
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "--time=%s is more than partition '%s' allows (MaxTime=%lld "
                         "minutes)",
                         job->time, p->name, (long long)p->max_time_s / 60);
    if (of->most.time_s && time > of->most.time_s)
        return topt_fail(err, TOPT_ERR_INFEASIBLE, "--time=%s is more than %s allows",
                         job->time, of->of_time);
    return 0;
}

static int64_t most_of(const struct site_bound *b)
{
    int64_t most = b->nodes * b->gpus_per_node;
    return b->gpus && b->gpus < most ? b->gpus : most;
}

/* What a reservation, accounting and -N leave of what the partition has. */
static void lower_to(const struct site_job *job, const struct site_partition *p,
                     const struct site_reservation *r,
                     const struct site_account_bound *of, struct site_bound *ret)
{
    if (of->most.nodes && of->most.nodes < ret->nodes) {
        ret->nodes = of->most.nodes;
        snprintf(ret->words, sizeof ret->words, "%s in partition '%.40s'", of->of_nodes,
                 p->name);
    }
    if (of->most.gpus && of->most.gpus < ret->nodes * ret->gpus_per_node) {
        ret->gpus = of->most.gpus;
        snprintf(ret->words, sizeof ret->words, "%s", of->of_gpus);
    }
    if (r && r->gpus && !r->is_flexible && r->gpus < most_of(ret)) {
        ret->gpus = r->gpus;
        snprintf(ret->words, sizeof ret->words, "reservation '%.40s' (%lld GPU%s)",
                 r->name, (long long)r->gpus, r->gpus == 1 ? "" : "s");
    }
    ret->all_nodes = ret->nodes;
    memcpy(ret->all_words, ret->words, sizeof ret->words);
    if (job->nodes && job->nodes < ret->nodes) {
        ret->nodes = job->nodes;
        if (!ret->gpus || ret->nodes * ret->gpus_per_node < ret->gpus)
            snprintf(ret->words, sizeof ret->words,
                     "-N %lld in partition '%.40s', %lld GPUs per node",
                     (long long)job->nodes, p->name, (long long)ret->gpus_per_node);
    }
}

/* The profile that the table has for the partition's nodes of the job, where it has none of
 * that name for it; NULL where it says nothing of the partition. */
static const char *profile_instead(const struct site_slurm *s,
                                   const struct site_partition *p,
                                   const struct site_map *map, const struct site_job *job,
                                   const char *name)
{
    char type[SITE_NAME];
    const struct site_row *r = row_of(s, p, map, job, name, "", type);
    return r ? r->profile : NULL;
}

/* A node that the job names has other GPUs than the type. */
static int other_gpus(const struct site_slurm *s, const struct site_partition *p,
                      const struct site_map *map, const struct site_job *job,
                      const char *node, const char *type, struct topt_error *err)
{
    char other[SITE_NAME];
    const struct site_row *r = row_with(s, p, map, job, p->name, "", job, other);
    int is_mixed = !r && !*job->gpu_type && map && map->n;
    return topt_fail(err, TOPT_ERR_INFEASIBLE,
                     "-w %.100s: node '%s' has no GPUs%s%s%s%s%s", job->nodelist, node,
                     *type ? " of type " : "", type, r ? ": --topt-hw=" : "",
                     r ? r->profile : "",
                     r          ? " would do"
                     : is_mixed ? ", and no line of the site's table is of all these "
                                  "nodes: name nodes with the same GPUs"
                                : "");
}

/* Each node that the job names must be one that it can have: a job gets all of them.  Names
 * that Slurm didn't tell are left to Slurm. */
static int check_named(const struct site_slurm *s, const struct site_partition *p,
                       const struct site_map *map, const struct site_job *job,
                       struct site_bound *ret, struct topt_error *err)
{
    const struct site_reservation *r = site_reservation_of(s, job);
    for (size_t i = 0; i < s->nnodes; i++) {
        const struct site_node *n = &s->node[i];
        const char *why = NULL, *of = "";
        if (!is_named(n, job))
            continue;
        ret->named++;
        if (!site_has_word(n->partitions, p->name))
            why = "is not in partition", of = p->name;
        else if (r && !r->is_flexible && !site_has_word(n->reservations, r->name))
            why = "is not in reservation", of = r->name;
        else if (!has_features(n, job->constraint))
            why = "lacks the features of --constraint", of = job->constraint;
        else if (!site_gpus_of(n, ret->gpu_type))
            return other_gpus(s, p, map, job, n->name, ret->gpu_type, err);
        else if (!n->is_up)
            why = "is not up";
        if (!why)
            continue;
        ret->profile[0] =
            '\0'; /* the profile follows the nodes, in other partitions too */
        return topt_fail(err, TOPT_ERR_INFEASIBLE, "-w %.100s: node '%s' %s%s%s%s",
                         job->nodelist, n->name, why, *of ? " '" : "", of,
                         *of ? "'" : "");
    }
    return 0;
}

/* The table has no line for the job: since Slurm has no such partition, or since nobody wrote one.
 */
static int no_profile(const struct site_slurm *s, const struct site_partition *p,
                      const char *name, const struct site_job *job,
                      struct topt_error *err)
{
    if (s && s->npartitions && !p)
        return topt_fail(err, TOPT_ERR_INFEASIBLE, "Slurm has no partition '%s'", name);
    return topt_fail(err, TOPT_ERR_INFEASIBLE,
                     "the site's table has no profile for partition '%s'%s%s: name "
                     "one with --topt-hw",
                     name, *job->gpu_type ? " and GPU type " : "", job->gpu_type);
}

/* Has the job its nodes for itself, and why? */
static void say_whole(const struct site_partition *p, const struct site_row *row,
                      const struct site_job *job, const char *name,
                      struct site_bound *ret)
{
    if (!strcmp(job->exclusive, "exclusive"))
        snprintf(ret->whole, sizeof ret->whole, "--exclusive");
    else if (p && p->is_whole)
        snprintf(ret->whole, sizeof ret->whole,
                 "partition '%.40s' (OverSubscribe=EXCLUSIVE)", name);
    else if (row && row->is_whole)
        snprintf(ret->whole, sizeof ret->whole, "the site's table, of partition '%.40s'",
                 name);
}

/* Of one partition, "" the reservation's or the default one, without a word about others. */
static int bound_in(const struct site_slurm *s, const struct site_map *map,
                    const struct site_job *job, const char *partition, const char *hw,
                    struct site_bound *ret, struct topt_error *err)
{
    const struct site_reservation *r = site_reservation_of(s, job);
    const struct site_partition *p =
        partition_of(s, r && !*partition ? r->partition : partition);
    const char *name = p ? p->name : partition;
    struct site_account_bound of;
    *ret = (struct site_bound){0};
    const struct site_row *row = row_of(s, p, map, job, name, hw, ret->gpu_type);
    if (row)
        memcpy(ret->profile, row->profile, sizeof ret->profile);
    else if (map && map->n && !*hw && *name)
        return no_profile(s, p, name, job, err);
    const char *other = !row && *hw ? profile_instead(s, p, map, job, name) : NULL;
    if (other)
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "--topt-hw=%s: by the site's table partition '%s' has other "
                         "GPUs%s%s: --topt-hw=%s would do",
                         hw, name, *job->gpu_type ? " of type " : "", job->gpu_type,
                         other);
    say_whole(p, row, job, name, ret);
    ret->nodes = job->nodes;
    if (job->nodes)
        snprintf(ret->words, sizeof ret->words, "-N %lld", (long long)job->nodes);
    if (!p)
        return 0;
    const char *account = site_account_of(&s->accounts, job->user, job->account);
    const char *qos = site_qos_of(&s->accounts, job->user, account, p->name, job->qos);
    site_accounts_bound(&s->accounts, job->user, account, qos, p->name, p->qos,
                        ret->gpu_type, &of);
    if (may_use(p, job->user, account, qos, err) || check_time(p, job, &of, err) ||
        (r && site_reservation_check(r, job, account, p->name, err)))
        return -1;
    if (check_named(s, p, map, job, ret, err))
        return -1;
    count_nodes(s, p, job, ret->gpu_type, 0, ret);
    if (!ret->nodes)
        return no_node(s, p, job, ret->gpu_type, err);
    say(s, p, job, ret->gpu_type, ret);
    lower_to(job, p, r, &of, ret);
    if (ret->nodes < ret->named)
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "-w %.100s: %lld nodes are more than %s allows", job->nodelist,
                         (long long)ret->named, ret->words);
    return 0;
}

/* One more partition of the job's list: with the profile and the type of the first, it is
 * one of the places, and the largest of them is what counts. */
static void add_place(const struct site_bound *b, const char *name,
                      struct site_bound *ret)
{
    struct site_place place[SITE_PLACES];
    int n = ret->nplaces;
    if (n == SITE_PLACES ||
        (n && (strcmp(b->profile, ret->profile) || strcmp(b->gpu_type, ret->gpu_type))))
        return;
    memcpy(place, ret->place, sizeof place);
    snprintf(place[n].name, sizeof place[n].name, "%s", name);
    place[n].nodes = b->nodes;
    place[n].gpus_per_node = b->gpus_per_node;
    place[n].gpus = b->gpus;
    if (!n || most_of(b) > most_of(ret))
        *ret = *b;
    memcpy(ret->place, place, sizeof place);
    ret->nplaces = n + 1;
}

/* Of all partitions that the job names.  Where it can't go to any of them 'err' is about the first.
 */
static int bound_any(const struct site_slurm *s, const struct site_map *map,
                     const struct site_job *job, const char *hw, struct site_bound *ret,
                     struct topt_error *err)
{
    char names[sizeof job->partition], *save = NULL;
    struct site_bound b;
    int failed = 0;
    if (!strchr(job->partition, ','))
        return bound_in(s, map, job, job->partition, hw, ret, err);
    memcpy(names, job->partition, sizeof names);
    *ret = (struct site_bound){0};
    for (char *p = strtok_r(names, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        if (bound_in(s, map, job, p, hw, &b, failed ? NULL : err))
            failed = 1;
        else
            add_place(&b, p, ret);
    }
    return ret->nplaces ? 0 : -1;
}

const char *site_other(const struct site_slurm *s, const struct site_map *map,
                       const struct site_job *job, const char *hw, int64_t gpus)
{
    const struct site_reservation *r = site_reservation_of(s, job);
    const struct site_partition *own =
        partition_of(s, r && !*job->partition ? r->partition : job->partition);
    for (size_t i = 0; s && i < s->npartitions; i++) {
        const struct site_partition *p = &s->partition[i];
        struct site_bound b;
        if (!p->is_up || p == own || site_has_word(job->partition, p->name))
            continue;
        if (!bound_in(s, map, job, p->name, hw, &b, NULL) &&
            (!map || !map->n || *b.profile) && most_of(&b) > gpus)
            return p->name;
    }
    return NULL;
}

int site_bound(const struct site_slurm *s, const struct site_map *map,
               const struct site_job *job, const char *hw, struct site_bound *ret,
               struct topt_error *err)
{
    if (!bound_any(s, map, job, hw, ret, err))
        return 0;
    const char *other = site_other(s, map, job, *hw ? hw : ret->profile, 0);
    struct topt_error was = *err;
    return other
               ? topt_fail(err, was.code, "%s; partition '%s' would do", was.text, other)
               : -1;
}
