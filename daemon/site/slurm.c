/* slurm.c - see slurm.h.  A line is KEY=VALUE with blanks between; values of interest hold
 * none.  Lists of nodes may be of any length, so a reservation's is not kept: each node
 * keeps the names of its reservations. */
#include "slurm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "topt_text.h"

/* Where the value of 'key' in a line of 'len' bytes begins, and its length; NULL where it
 * isn't there. */
static const char *span_of(const char *line, size_t len, const char *key, size_t *ret)
{
    size_t n = strlen(key);
    for (const char *p = line, *end = line + len; p < end;) {
        const char *blank = memchr(p, ' ', (size_t)(end - p));
        const char *stop = blank ? blank : end;
        if ((size_t)(stop - p) > n && p[n] == '=' && memcmp(p, key, n) == 0) {
            *ret = (size_t)(stop - p) - n - 1;
            return p + n + 1;
        }
        p = stop + 1;
    }
    return NULL;
}

/* The value of 'key': 1 and cut to fit, 0 where it isn't there. */
static int value_of(const char *line, size_t len, const char *key, char *ret, size_t size)
{
    size_t n = 0;
    const char *value = span_of(line, len, key, &n);
    n = n < size ? n : size - 1;
    if (value)
        memcpy(ret, value, n);
    ret[value ? n : 0] = '\0';
    return value != NULL;
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

/* The number behind 'key' in a list as "DefCpuPerGPU=2,DefMemPerGPU=2000" or
 * "cpu=8,gres/gpu=4"; 0 where it isn't there. */
static int64_t number_in(const char *list, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (!strncmp(p, key, n) && p[n] == '=')
            return strtoll(p + n + 1, NULL, 10);
    return 0;
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

/* The value of a line "Key    = value" of the configuration; "" where it isn't there. */
static void setting_of(const char *config, const char *key, char ret[SITE_WORDS])
{
    size_t n = strlen(key);
    ret[0] = '\0';
    for (const char *p = config; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        const char *value = p + n + (strncmp(p, key, n) ? 0 : strspn(p + n, " "));
        if (strncmp(p, key, n) || *value != '=')
            continue;
        value += 1 + strspn(value + 1, " ");
        snprintf(ret, SITE_WORDS, "%.*s", (int)strcspn(value, "\n"), value);
        return;
    }
}

int site_enforces_limits(const char *config)
{
    char value[SITE_WORDS];
    setting_of(config, "AccountingStorageEnforce", value);
    return strstr(value, "limits") || strstr(value, "qos");
}

static int read_partition(const char *line, size_t len, struct site_partition *ret)
{
    char text[64], defaults[SITE_WORDS];
    *ret = (struct site_partition){0};
    if (!value_of(line, len, "PartitionName", ret->name, sizeof ret->name))
        return 0;
    value_of(line, len, "Default", text, sizeof text);
    ret->is_default = strcmp(text, "YES") == 0;
    value_of(line, len, "State", text, sizeof text);
    ret->is_up = strcmp(text, "UP") == 0;
    value_of(line, len, "RootOnly", text, sizeof text);
    ret->is_root_only = strcmp(text, "YES") == 0;
    value_of(line, len, "OverSubscribe", text, sizeof text);
    ret->is_whole = strcmp(text, "EXCLUSIVE") == 0;
    ret->max_nodes = number_of(line, len, "MaxNodes");
    list_of(line, len, "AllowAccounts", ret->allow_accounts);
    list_of(line, len, "DenyAccounts", ret->deny_accounts);
    list_of(line, len, "AllowQos", ret->allow_qos);
    list_of(line, len, "DenyQos", ret->deny_qos);
    list_of(line, len, "AllowGroups", ret->allow_groups);
    ret->max_cpus = number_of(line, len, "MaxCPUsPerNode");
    ret->max_mem_mib = number_of(line, len, "MaxMemPerNode");
    ret->def_mem_per_cpu = number_of(line, len, "DefMemPerCPU");
    value_of(line, len, "JobDefaults", defaults, sizeof defaults);
    ret->def_cpus_per_gpu = number_in(defaults, "DefCpuPerGPU");
    ret->def_mem_per_gpu = number_in(defaults, "DefMemPerGPU");
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
    if (!value_of(line, len, "NodeName", ret->name, sizeof ret->name))
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
        value_of(line, len, "State", text, sizeof text);
        ret->is_reserved = strstr(text, "RESERVED") != NULL;
    }
    return 1;
}

/* A number of the range "lo-hi" or "lo" at the begin of 'name', written with as many
 * digits as 'lo' where that begins with a zero.  Its length, or 0. */
static size_t in_range(const char *lo, const char *end, const char *name)
{
    char *dash = NULL;
    unsigned long long first = strtoull(lo, &dash, 10);
    unsigned long long last =
        *dash == '-' && dash < end ? strtoull(dash + 1, NULL, 10) : first;
    size_t width = *lo == '0' ? (size_t)(dash - lo) : 0,
           digits = strspn(name, "0123456789");
    char *stop = NULL;
    if (!digits || digits > 18 || (width ? digits < width : digits > 1 && *name == '0'))
        return 0;
    unsigned long long n = strtoull(name, &stop, 10);
    return n >= first && n <= last ? digits : 0;
}

/* One entry of a list against a name: letters as they are, "[1-3,07]" a number of these. */
static int host_fits(const char *p, const char *end, const char *name)
{
    for (; p < end; p++, name++) {
        const char *close = *p == '[' ? memchr(p, ']', (size_t)(end - p)) : NULL;
        if (!close && *p != *name)
            return 0;
        if (!close)
            continue;
        for (const char *range = p + 1, *next; range < close; range = next + 1) {
            const char *comma = memchr(range, ',', (size_t)(close - range));
            next = comma ? comma : close;
            size_t digits = in_range(range, next, name);
            if (digits && host_fits(close + 1, end, name + digits))
                return 1;
        }
        return 0;
    }
    return *name == '\0';
}

int site_host_is_in(const char *list, size_t len, const char *name)
{
    int depth = 0;
    for (const char *p = list, *begin = list, *end = list + len; p <= end; p++) {
        if (p < end && (*p == '[' || *p == ']'))
            depth += *p == '[' ? 1 : -1;
        if (p < end && (*p != ',' || depth))
            continue;
        if (host_fits(begin, p, name))
            return 1;
        begin = p + 1;
    }
    return 0;
}

int64_t site_time_of(const char *line, size_t len, const char *key)
{
    char text[64];
    struct tm t = {.tm_isdst = -1};
    value_of(line, len, key, text, sizeof text);
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &t);
    return end && !*end ? (int64_t)mktime(&t) : 0;
}

/* One more name in a list; none that would not fit, since a part of a name is another's. */
static void add_word(char list[SITE_WORDS], const char *word)
{
    size_t n = strlen(list);
    if (n + strlen(word) + 2 <= SITE_WORDS)
        snprintf(list + n, SITE_WORDS - n, "%s%s", n ? "," : "", word);
}

/* A reservation, and on each of its nodes its name. */
static int read_reservation(const char *line, size_t len, struct site_slurm *s,
                            struct site_reservation *ret)
{
    char text[SITE_WORDS];
    size_t listed = 0;
    *ret = (struct site_reservation){0};
    if (!value_of(line, len, "ReservationName", ret->name, sizeof ret->name))
        return 0;
    value_of(line, len, "PartitionName", ret->partition, sizeof ret->partition);
    if (!strcmp(ret->partition, "(null)"))
        ret->partition[0] = '\0';
    list_of(line, len, "Users", ret->users);
    list_of(line, len, "Accounts", ret->accounts);
    list_of(line, len, "Groups", ret->groups);
    ret->start_s = site_time_of(line, len, "StartTime");
    ret->end_s = site_time_of(line, len, "EndTime");
    value_of(line, len, "Flags", text, sizeof text);
    ret->is_flexible = site_has_word(text, "FLEX");
    value_of(line, len, "TRES", text, sizeof text);
    ret->gpus = number_in(text, "gres/gpu");
    const char *list = span_of(line, len, "Nodes", &listed);
    for (size_t i = 0; list && i < s->nnodes; i++)
        if (site_host_is_in(list, listed, s->node[i].name))
            add_word(s->node[i].reservations, ret->name);
    return 1;
}

/* What the configuration says where a partition doesn't. */
static void take_config(const char *config, struct site_slurm *s)
{
    char select[SITE_WORDS], defaults[SITE_WORDS], most[SITE_WORDS], each[SITE_WORDS];
    setting_of(config, "SelectTypeParameters", select);
    setting_of(config, "JobDefaults", defaults);
    setting_of(config, "MaxMemPerNode", most);
    setting_of(config, "DefMemPerCPU", each);
    s->counts_memory = strstr(select, "MEMORY") != NULL;
    for (size_t i = 0; i < s->npartitions; i++) {
        struct site_partition *p = &s->partition[i];
        if (!p->def_cpus_per_gpu)
            p->def_cpus_per_gpu = number_in(defaults, "DefCpuPerGPU");
        if (!p->def_mem_per_gpu)
            p->def_mem_per_gpu = number_in(defaults, "DefMemPerGPU");
        if (!p->max_mem_mib)
            p->max_mem_mib = strtoll(most, NULL, 10);
        if (!p->def_mem_per_cpu)
            p->def_mem_per_cpu = strtoll(each, NULL, 10);
    }
}

static size_t lines_of(const char *text)
{
    size_t n = 1;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

int site_slurm_read(const struct site_said *said, struct site_slurm *ret,
                    struct topt_error *err)
{
    *ret = (struct site_slurm){0};
    ret->partition = calloc(lines_of(said->partitions), sizeof *ret->partition);
    ret->node = calloc(lines_of(said->nodes), sizeof *ret->node);
    ret->reservation = calloc(lines_of(said->reservations), sizeof *ret->reservation);
    if (!ret->partition || !ret->node || !ret->reservation) {
        site_slurm_fini(ret);
        return topt_nomem(err, NULL);
    }
    for (const char *p = said->partitions; *p; p += strcspn(p, "\n"), p += *p == '\n')
        ret->npartitions += (size_t)read_partition(p, strcspn(p, "\n"),
                                                   &ret->partition[ret->npartitions]);
    for (const char *p = said->nodes; *p; p += strcspn(p, "\n"), p += *p == '\n')
        ret->nnodes += (size_t)read_node(p, strcspn(p, "\n"), &ret->node[ret->nnodes]);
    for (const char *p = said->reservations; *p; p += strcspn(p, "\n"), p += *p == '\n')
        ret->nreservations += (size_t)read_reservation(
            p, strcspn(p, "\n"), ret, &ret->reservation[ret->nreservations]);
    take_config(said->config, ret);
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
    free(s->reservation);
    *s = (struct site_slurm){0};
}

int site_slurm_is_same(const struct site_slurm *a, const struct site_slurm *b)
{
    return a->npartitions == b->npartitions && a->nnodes == b->nnodes &&
           a->nreservations == b->nreservations && a->counts_memory == b->counts_memory &&
           (!a->nreservations || !memcmp(a->reservation, b->reservation,
                                         a->nreservations * sizeof *a->reservation)) &&
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
