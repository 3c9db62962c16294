/* slurm.c - see slurm.h.  A line is KEY=VALUE with blanks between; values of interest hold none. */
#include "slurm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topt_text.h"

/* The value of 'key' in a line of 'len' bytes: 1 and cut to fit, 0 where it isn't there. */
static int value_of(const char *line, size_t len, const char *key, char *ret, size_t size)
{
    size_t n = strlen(key);
    ret[0] = '\0';
    for (const char *p = line, *end = line + len; p < end;) {
        const char *blank = memchr(p, ' ', (size_t)(end - p));
        const char *stop = blank ? blank : end;
        if ((size_t)(stop - p) > n && p[n] == '=' && memcmp(p, key, n) == 0) {
            size_t room = (size_t)(stop - p) - n - 1;
            if (room >= size)
                room = size - 1;
            memcpy(ret, p + n + 1, room);
            ret[room] = '\0';
            return 1;
        }
        p = stop + 1;
    }
    return 0;
}

static int64_t number_of(const char *line, size_t len, const char *key)
{
    char text[32];
    int64_t n = 0;
    if (!value_of(line, len, key, text, sizeof text) ||
        topt_parse_int(text, 0, INT64_MAX, &n, NULL))
        return 0;
    return n;
}

/* The row of a type, a new one where there is room; NULL. */
static int64_t *gpus_to(struct site_node *node, const char *type, int is_use)
{
    int i = 0;
    while (i < node->ntypes && strcmp(node->gpu[i].type, type))
        i++;
    if (i == node->ntypes && (is_use || i == SITE_TYPES))
        return NULL;
    if (i == node->ntypes)
        snprintf(node->gpu[node->ntypes++].type, SITE_NAME, "%.63s", type);
    return is_use ? &node->gpu[i].used : &node->gpu[i].count;
}

/* "gpu:a100:4(S:0-1),nic:1": its GPUs, or those that are used. */
static void read_gres(const char *text, int is_use, struct site_node *node)
{
    char plain[SITE_WORDS];
    size_t n = 0;
    int depth = 0;
    for (; *text && n < sizeof plain - 1; text++) {
        depth += (*text == '(') - (*text == ')');
        if (!depth && *text != ')')
            plain[n++] = *text;
    }
    plain[n] = '\0';
    char *save = NULL;
    for (char *e = strtok_r(plain, ",", &save); e; e = strtok_r(NULL, ",", &save)) {
        char *colon = strrchr(e, ':');
        int64_t count = 0;
        if (strncmp(e, "gpu:", 4) || !colon ||
            topt_parse_int(colon + 1, 1, 1 << 20, &count, NULL))
            continue;
        *colon = '\0';
        int64_t *to = gpus_to(node, colon > e + 3 ? e + 4 : "", is_use);
        if (to)
            *to += count;
    }
}

/* Words of a state in which a node takes no job, for now or at all. */
static int state_is_up(const char *state)
{
    static const char *const down[] = {"DOWN",   "DRAIN",   "FAIL", "MAINT",
                                       "FUTURE", "UNKNOWN", "*",    NULL};
    for (int i = 0; down[i]; i++)
        if (strstr(state, down[i]))
            return 0;
    return 1;
}

/* Names with commas between; "" for all of them, and where they are too many to be kept. */
static void list_of(const char *line, size_t len, const char *key, char ret[SITE_LIST])
{
    value_of(line, len, key, ret, SITE_LIST);
    if (!strcmp(ret, "ALL") || !strcmp(ret, "(null)") || strlen(ret) == SITE_LIST - 1)
        ret[0] = '\0';
}

int site_enforces_limits(const char *config)
{
    static const char key[] = "AccountingStorageEnforce";
    const char *at = strstr(config, key);
    size_t n = at ? strcspn(at, "\n") : 0;
    char line[SITE_WORDS];
    snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : 0), at ? at : "");
    return strstr(line, "limits") || strstr(line, "qos");
}

static int read_partition(const char *line, size_t len, struct site_partition *ret)
{
    char text[64];
    *ret = (struct site_partition){0};
    if (!value_of(line, len, "PartitionName", ret->name, sizeof ret->name))
        return 0;
    value_of(line, len, "Default", text, sizeof text);
    ret->is_default = strcmp(text, "YES") == 0;
    value_of(line, len, "State", text, sizeof text);
    ret->is_up = strcmp(text, "UP") == 0;
    ret->max_nodes = number_of(line, len, "MaxNodes");
    list_of(line, len, "AllowAccounts", ret->allow_accounts);
    list_of(line, len, "DenyAccounts", ret->deny_accounts);
    list_of(line, len, "AllowQos", ret->allow_qos);
    list_of(line, len, "DenyQos", ret->deny_qos);
    value_of(line, len, "QoS", ret->qos, sizeof ret->qos);
    if (!strcmp(ret->qos, "N/A"))
        ret->qos[0] = '\0';
    value_of(line, len, "MaxTime", text, sizeof text);
    int64_t seconds = site_seconds(text);
    ret->max_time_s = seconds > 0 ? seconds : 0;
    return 1;
}

static int read_node(const char *line, size_t len, struct site_node *ret)
{
    char text[SITE_WORDS];
    *ret = (struct site_node){0};
    if (!value_of(line, len, "NodeName", text, sizeof text))
        return 0;
    value_of(line, len, "Partitions", ret->partitions, sizeof ret->partitions);
    value_of(line, len, "AvailableFeatures", ret->features, sizeof ret->features);
    value_of(line, len, "State", text, sizeof text);
    ret->is_up = state_is_up(text);
    ret->cpus = number_of(line, len, "CPUEfctv");
    if (!ret->cpus)
        ret->cpus = number_of(line, len, "CPUTot");
    ret->memory_mib = number_of(line, len, "RealMemory");
    if (value_of(line, len, "Gres", text, sizeof text))
        read_gres(text, 0, ret);
    if (value_of(line, len, "GresUsed", text, sizeof text)) {
        read_gres(text, 1, ret);
        ret->cpus_used = number_of(line, len, "CPUAlloc");
        ret->memory_used_mib = number_of(line, len, "AllocMem");
    }
    return 1;
}

static size_t lines_of(const char *text)
{
    size_t n = 1;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

int site_slurm_read(const char *partitions, const char *nodes, struct site_slurm *ret,
                    struct topt_error *err)
{
    *ret = (struct site_slurm){0};
    ret->partition = calloc(lines_of(partitions), sizeof *ret->partition);
    ret->node = calloc(lines_of(nodes), sizeof *ret->node);
    if (!ret->partition || !ret->node) {
        site_slurm_fini(ret);
        return topt_nomem(err, NULL);
    }
    for (const char *p = partitions; *p; p += strcspn(p, "\n"), p += *p == '\n')
        ret->npartitions += (size_t)read_partition(p, strcspn(p, "\n"),
                                                   &ret->partition[ret->npartitions]);
    for (const char *p = nodes; *p; p += strcspn(p, "\n"), p += *p == '\n')
        ret->nnodes += (size_t)read_node(p, strcspn(p, "\n"), &ret->node[ret->nnodes]);
    if (ret->npartitions)
        return 0;
    site_slurm_fini(ret);
    return topt_fail(err, TOPT_ERR_NOTFOUND, "scontrol names no partition");
}

void site_slurm_fini(struct site_slurm *s)
{
    site_accounts_fini(&s->accounts);
    free(s->partition);
    free(s->node);
    *s = (struct site_slurm){0};
}

int site_slurm_is_same(const struct site_slurm *a, const struct site_slurm *b)
{
    return a->npartitions == b->npartitions && a->nnodes == b->nnodes &&
           !memcmp(a->partition, b->partition, a->npartitions * sizeof *a->partition) &&
           !memcmp(a->node, b->node, a->nnodes * sizeof *a->node) &&
           site_accounts_are_same(&a->accounts, &b->accounts);
}

int site_value_of(const char *line, size_t len, const char *key, int once, char *ret,
                  size_t size)
{
    char with_blank[32];
    snprintf(with_blank, sizeof with_blank, " %s=", key);
    const char *at = memmem(line, len, with_blank, strlen(with_blank));
    size_t rest = at ? len - (size_t)(at + 1 - line) : 0;
    ret[0] = '\0';
    if (once && at && memmem(at + 1, rest, with_blank, strlen(with_blank)))
        return 0;
    return value_of(line, len, key, ret, size);
}

int site_slurm_job_is_of(const char *said, int64_t job, int64_t uid)
{
    size_t len = strcspn(said, "\n");
    char user[160], state[64], *open;
    if (number_of(said, len, "JobId") != job ||
        !site_value_of(said, len, "UserId", 1, user, sizeof user) ||
        !site_value_of(said, len, "JobState", 1, state, sizeof state))
        return 0;
    open = strrchr(user, '(');
    return open && strtoll(open + 1, NULL, 10) == uid && strcmp(state, "PENDING") != 0;
}
