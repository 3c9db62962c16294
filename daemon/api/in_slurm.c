/* in_slurm.c - see in_slurm.h. */
#include "in_slurm.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_fields.h"
#include "topt_text.h"

enum kind { ABOUT_TEXT, ABOUT_INT, ABOUT_WORD };
static const struct field {
    const char *name;
    enum kind kind;
    size_t offset, size;
    int64_t most;
    const char *values; /* of a WORD */
} fields[] = {
#define X(name, KIND, MOST, OPTION, VALUES, HELP)                                        \
    {"slurm_" #name,                                                                     \
     ABOUT_##KIND,                                                                       \
     offsetof(struct site_job, name),                                                    \
     sizeof((struct site_job *)0)->name,                                                 \
     MOST,                                                                               \
     VALUES},
    TOPT_SLURM_FIELDS(X)
#undef X
};
enum { FIELDS = sizeof fields / sizeof *fields };

static int store(const struct field *f, const char *value, struct site_job *ret,
                 struct topt_error *err)
{
    char *to = (char *)ret + f->offset;
    if (f->kind == ABOUT_INT)
        return topt_parse_int(value, 0, f->most, (int64_t *)(void *)to, err);
    if (f->kind == ABOUT_WORD && !site_has_word(f->values, value))
        return topt_fail(err, TOPT_ERR_INVAL, "'%.20s' is not one of %s", value,
                         f->values);
    if (strlen(value) >= f->size)
        return topt_fail(err, TOPT_ERR_INVAL, "it is longer than %zu bytes", f->size - 1);
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            return topt_fail(err, TOPT_ERR_INVAL, "it holds control characters");
    strcpy(to, value);
    return 0;
}

static int take(const struct topt_pair *pair, struct site_job *ret,
                struct topt_error *err)
{
    for (int i = 0; i < FIELDS; i++)
        if (!strcmp(pair->key, fields[i].name))
            return store(&fields[i], pair->value ? pair->value : "", ret, err);
    return topt_fail(err, TOPT_ERR_INVAL, "there is no such parameter");
}

int in_slurm_take(struct request *q, struct site_job *ret, struct reply *refusal)
{
    struct topt_error err = {0};
    int kept = 0, taken = 0;
    *ret = (struct site_job){0};
    for (int i = 0; i < q->npairs; i++) {
        if (strncmp(q->pair[i].key, "slurm_", 6)) {
            q->pair[kept++] = q->pair[i];
            continue;
        }
        taken++;
        if (take(&q->pair[i], ret, &err)) {
            *refusal = reply_fail(q, q->pair[i].key, &err);
            return -1;
        }
    }
    q->npairs = kept;
    login_name(q->caller.uid, ret->user, sizeof ret->user);
    q->shows = !*ret->show         ? TOPT_LINES_ALONE
               : *ret->show == 't' ? TOPT_LINES_TABLE
                                   : TOPT_LINES_ALL;
    return taken ? 0 : 1;
}

/* The profile's GPUs of a node (0: unknown), and whether plans for it take
 * more than one node of a cluster, as those of a profile without a network don't. */
struct of_profile {
    int64_t gpus;
    int is_one_node, has_groups;
};

static struct of_profile profile_of(struct server *s, const char *hw)
{
    struct topt_error err = {0};
    struct of_profile ret = {0};
    char *id = NULL, *doc = NULL;
    if (find_hw(s, hw, &id, &doc, &err) < 0)
        return ret;
    json_t *profile = json_loads(doc, 0, NULL);
    ret.gpus = json_integer_value(json_object_get(profile, "gpus_per_node"));
    ret.is_one_node = json_integer_value(json_object_get(profile, "nodes")) == 1;
    ret.has_groups = json_object_get(profile, "groups") != NULL;
    json_decref(profile);
    free(id);
    free(doc);
    return ret;
}

/* The less of two, of which 0 is not known. */
static int64_t less(int64_t a, int64_t b)
{
    return !a || (b && b < a) ? b : a;
}

/* The most GPUs on so many nodes; 0: any. */
static int64_t most_gpus(const struct site_bound *b, int64_t nodes, int64_t each)
{
    int64_t most = nodes * each;
    return b->gpus && (!most || b->gpus < most) ? b->gpus : most;
}

/* Nodes as they are planned for: GPUs of the profile's nodes, made smaller where the
 * partition's have fewer, and the most that are taken of one; 0: not known. */
struct nodes {
    int64_t gpus, most;
};

/* Where a job needs so many CPUs or so much memory for each GPU that a node has room for
 * fewer, a single node is bounded; of several each gives an equal part of its GPUs, or what
 * the number that is asked for makes of it. */
static struct nodes nodes_of(const struct site_bound *b, const struct site_job *job,
                             int64_t of_profile, const struct topt_query *asked)
{
    int64_t node = less(of_profile, b->of_node ? b->of_node : job->gpus_per_node);
    int64_t room = less(node, b->gpus_per_node);
    if (room == node || (b->all_nodes == 1 && !*b->whole))
        return (struct nodes){node, room};
    if (!*b->whole && !(asked->ngpus == 1 && asked->gpus[0] % room == 0))
        while (node % room)
            room--;
    return (struct nodes){room, room};
}

/* Does nothing but -N and the site bound it?  Then it is searched among all of the
 * partition's nodes, and the answer says what more than -N would give. */
static int asks_fewest(const struct topt_query *asked)
{
    return asked->kind == TOPT_QUERY_PLAN && !strcmp(asked->mode, "mini-parallelism") &&
           !asked->ngpus && !asked->max_gpus && !(asked->min_efficiency > 0);
}

static int refuse_number(struct request *q, const struct site_job *job,
                         const struct topt_query *asked, struct reply *refusal)
{
    struct topt_error err = {0};
    char other[SITE_NAME];
    topt_fail(&err, TOPT_ERR_INFEASIBLE, "%lld GPUs are more than %s allows",
              (long long)asked->gpus[0], q->limit);
    struct topt_error was = err;
    if (!strcmp(asked->groups,
                "one")) /* other partitions may have GPUs of other groups */
        topt_fail(&err, was.code,
                  "%s; GPUs of several groups are planned by topt client plan, which "
                  "prints the job to book",
                  was.text);
    else if (site_look_elsewhere(q->server->site, job, asked->hw, asked->gpus[0] - 1,
                                 other))
        topt_fail(&err, was.code, "%s; partition '%s' would do", was.text, other);
    *refusal = reply_fail(q, NULL, &err);
    return -1;
}

/* Say after the limit where there is more. */
static void name_larger(struct request *q, const struct site_job *job,
                        const struct topt_query *asked, int64_t most)
{
    char other[SITE_NAME];
    size_t n = strlen(q->limit);
    if (site_look_elsewhere(q->server->site, job, asked->hw, most, other))
        snprintf(q->limit + n, sizeof q->limit - n, " (partition '%.40s' has more)",
                 other);
}

/* No more GPUs than 'most', or 'all' where -N alone makes it fewer (0: any). */
static int bound_counts(struct request *q, const struct site_job *job,
                        const struct site_bound *b, int64_t most, int64_t all,
                        struct topt_query *asked, struct reply *refusal)
{
    memcpy(q->limit, b->words, sizeof b->words);
    if ((!all || all > most) && asks_fewest(asked)) {
        memcpy(q->within, b->words, sizeof b->words);
        memcpy(q->limit, b->all_words, sizeof b->all_words);
        q->most = most;
        most = all;
    }
    if (asked->ngpus == 1 && asked->gpus[0] > most)
        return refuse_number(q, job, asked, refusal);
    if (!most) {
        asked->max_gpus = 0;
    } else if (!asked->ngpus && (!asked->max_gpus || asked->max_gpus > most)) {
        asked->max_gpus = most;
        name_larger(q, job, asked, most);
    } else {
        *q->limit = '\0';
    }
    return 0;
}

/* Numbers of GPUs of a job that has its nodes for itself: whole nodes, unless it names
 * another number, or a bound below a node.  The user is told what that means. */
static void plan_nodes(struct request *q, const struct site_bound *b, int64_t each,
                       struct topt_query *asked)
{
    int64_t gpus = asked->ngpus ? asked->gpus[0] : asked->max_gpus;
    if (!*b->whole || each < 2 || asked->ngpus > 1 || *asked->counts)
        return;
    int is_nodes = asked->ngpus ? gpus % each == 0 : !gpus || gpus >= each;
    if (is_nodes)
        snprintf(asked->counts, sizeof asked->counts, "nodes");
    if (!is_nodes)
        snprintf(
            q->note, sizeof q->note,
            "%s gives whole nodes of %lld GPUs: what the plan leaves of them is idle",
            b->whole, (long long)each);
    else if (!asked->ngpus)
        snprintf(q->note, sizeof q->note,
                 "%s gives whole nodes: planned in multiples of %lld GPUs", b->whole,
                 (long long)each);
}

/* Plans for the profile take one node, and that is said. */
static void keep_one_node(struct site_bound *b, const char *hw)
{
    char *const words[] = {b->words, b->all_words};
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(words[i]);
        snprintf(words[i] + n, sizeof b->words - n, ", one of them by profile '%.79s',",
                 hw);
    }
    b->nodes = b->all_nodes = 1;
}

/* Parts of a heterogeneous job can't be added to one that is being submitted, and each is a job of its
 * own to who sizes it. */
static int one_kind(struct request *q, struct topt_query *asked, struct reply *refusal)
{
    struct topt_error err = {0};
    if (!*asked->groups)
        strcpy(asked->groups, "one");
    if (strcmp(asked->groups, "all") && !strchr(asked->groups, ','))
        return 0;
    topt_fail(&err, TOPT_ERR_INVAL,
              "--topt-groups=%.60s: a job that sbatch sizes has GPUs of one kind: ask "
              "`topt client plan` with "
              "the same options, which prints the heterogeneous job to book",
              asked->groups);
    *refusal = reply_fail(q, "groups", &err);
    return -1;
}

int in_slurm_apply(struct request *q, const struct site_job *job,
                   struct topt_query *asked, struct reply *refusal)
{
    struct topt_error err = {0};
    struct site_bound b;
    if (site_look(q->server->site, job, asked->hw, &b, &err)) {
        *refusal = reply_fail(q, NULL, &err);
        return -1;
    }
    if (!*asked->hw && *b.profile)
        memcpy(asked->hw, b.profile, sizeof b.profile);
    memcpy(q->gpu_type, b.gpu_type, sizeof b.gpu_type);
    memcpy(q->place, b.place, sizeof b.place);
    q->nplaces = b.nplaces;
    q->named = b.named;
    struct of_profile p = profile_of(q->server, asked->hw);
    if (p.has_groups && one_kind(q, asked, refusal))
        return -1;
    if (p.is_one_node && b.nodes > 1)
        keep_one_node(&b, asked->hw);
    struct nodes n = nodes_of(&b, job, p.gpus, asked);
    if (n.gpus < p.gpus && p.has_groups) /* whose nodes can't be made smaller */
        keep_one_node(&b, asked->hw);
    else if (n.gpus < p.gpus && !asked->gpus_per_node)
        asked->gpus_per_node = n.gpus;
    int64_t most = most_gpus(&b, b.nodes, n.most);
    int64_t all = b.all_nodes  ? most_gpus(&b, b.all_nodes, n.most)
                  : job->nodes ? 0 /* it isn't known what the partition has: any */
                               : most;
    if (most > 0 && bound_counts(q, job, &b, most, all, asked, refusal))
        return -1;
    plan_nodes(q, &b, n.most, asked);
    return 0;
}
