/* accounts.c - see accounts.h.  A line is fields with '|' between; TRES are as
 * "cpu=8,gres/gpu=4,node=2". */
#include "accounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"

enum { FIELDS_MOST = 8, FIELD = 256, DEPTH = 16 };

/* The fields of a line; those that are not there are "". */
static void fields_of(const char *line, size_t len, char ret[FIELDS_MOST][FIELD])
{
    for (int i = 0; i < FIELDS_MOST; i++) {
        const char *bar = memchr(line, '|', len);
        size_t n = bar ? (size_t)(bar - line) : len;
        snprintf(ret[i], FIELD, "%.*s", n < FIELD ? (int)n : 0, line);
        line += bar ? n + 1 : n;
        len -= bar ? n + 1 : n;
    }
}

static void lower(int64_t *limit, int64_t to)
{
    if (to > 0 && (!*limit || to < *limit))
        *limit = to;
}

/* "a100=4": of that type. */
static void take_typed(const char *word, struct site_limits *ret)
{
    const char *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : 0;
    int i = 0;
    if (!n || n >= SITE_ACCOUNT)
        return;
    while (i < ret->ntyped &&
           (strncmp(ret->typed[i].type, word, n) || ret->typed[i].type[n]))
        i++;
    if (i == SITE_TYPED)
        return;
    if (i == ret->ntyped)
        snprintf(ret->typed[ret->ntyped++].type, SITE_ACCOUNT, "%.*s", (int)n, word);
    lower(&ret->typed[i].gpus, strtoll(equals + 1, NULL, 10));
}

/* Take what a text of TRES limits. */
static void take_tres(const char *text, struct site_limits *ret)
{
    static const char gpus[] = "gres/gpu=", typed[] = "gres/gpu:", nodes[] = "node=";
    char words[FIELD], *save = NULL;
    snprintf(words, sizeof words, "%s", text);
    for (char *w = strtok_r(words, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (!strncmp(w, gpus, sizeof gpus - 1))
            lower(&ret->gpus, strtoll(w + sizeof gpus - 1, NULL, 10));
        else if (!strncmp(w, typed, sizeof typed - 1))
            take_typed(w + sizeof typed - 1, ret);
        else if (!strncmp(w, nodes, sizeof nodes - 1))
            lower(&ret->nodes, strtoll(w + sizeof nodes - 1, NULL, 10));
    }
}

static void take_time(const char *text, struct site_limits *ret)
{
    lower(&ret->time_s, *text ? site_seconds(text) : 0);
}

static size_t lines_of(const char *text)
{
    size_t n = 1;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void name_to(char to[SITE_ACCOUNT], const char *name)
{
    snprintf(to, SITE_ACCOUNT, "%.*s", SITE_ACCOUNT - 1, name);
}

static void take_qos(char f[FIELDS_MOST][FIELD], struct site_accounts *ret)
{
    struct site_qos *q = &ret->qos[ret->nqos];
    if (!*f[0])
        return;
    name_to(q->name, f[0]);
    for (int i = 1; i < 4; i++)
        take_tres(f[i], &q->most);
    take_time(f[4], &q->most);
    ret->nqos++;
}

static void take_assoc(char f[FIELDS_MOST][FIELD], struct site_accounts *ret)
{
    struct site_assoc *a = &ret->assoc[ret->nassocs];
    if (!*f[0])
        return;
    name_to(a->account, f[0]);
    name_to(a->user, f[1]);
    name_to(a->partition, f[2]);
    name_to(a->parent, f[3]);
    name_to(a->default_qos, f[4]);
    take_tres(f[5], &a->most);
    take_tres(f[6], &a->most);
    take_time(f[7], &a->most);
    ret->nassocs++;
}

static void take_user(char f[FIELDS_MOST][FIELD], struct site_accounts *ret)
{
    struct site_user *u = &ret->user[ret->nusers];
    if (!*f[0])
        return;
    name_to(u->name, f[0]);
    name_to(u->account, f[1]);
    ret->nusers++;
}

static void each_line(const char *text,
                      void (*take)(char f[FIELDS_MOST][FIELD], struct site_accounts *ret),
                      struct site_accounts *ret)
{
    char f[FIELDS_MOST][FIELD];
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        fields_of(p, strcspn(p, "\n"), f);
        take(f, ret);
    }
}

int site_accounts_read(const char *qos, const char *assocs, const char *users,
                       struct site_accounts *ret, struct topt_error *err)
{
    *ret = (struct site_accounts){0};
    ret->qos = calloc(lines_of(qos), sizeof *ret->qos);
    ret->assoc = calloc(lines_of(assocs), sizeof *ret->assoc);
    ret->user = calloc(lines_of(users), sizeof *ret->user);
    if (!ret->qos || !ret->assoc || !ret->user) {
        site_accounts_fini(ret);
        return topt_nomem(err, NULL);
    }
    each_line(qos, take_qos, ret);
    each_line(assocs, take_assoc, ret);
    each_line(users, take_user, ret);
    return 0;
}

int site_accounts_copy(const struct site_accounts *a, struct site_accounts *ret,
                       struct topt_error *err)
{
    *ret = *a;
    ret->qos = calloc(a->nqos + 1, sizeof *ret->qos);
    ret->assoc = calloc(a->nassocs + 1, sizeof *ret->assoc);
    ret->user = calloc(a->nusers + 1, sizeof *ret->user);
    if (!ret->qos || !ret->assoc || !ret->user) {
        site_accounts_fini(ret);
        return topt_nomem(err, NULL);
    }
    if (a->nqos)
        memcpy(ret->qos, a->qos, a->nqos * sizeof *a->qos);
    if (a->nassocs)
        memcpy(ret->assoc, a->assoc, a->nassocs * sizeof *a->assoc);
    if (a->nusers)
        memcpy(ret->user, a->user, a->nusers * sizeof *a->user);
    return 0;
}

void site_accounts_fini(struct site_accounts *a)
{
    free(a->qos);
    free(a->assoc);
    free(a->user);
    *a = (struct site_accounts){0};
}

int site_accounts_are_same(const struct site_accounts *a, const struct site_accounts *b)
{
    return a->nqos == b->nqos && a->nassocs == b->nassocs && a->nusers == b->nusers &&
           (!a->nqos || !memcmp(a->qos, b->qos, a->nqos * sizeof *a->qos)) &&
           (!a->nassocs || !memcmp(a->assoc, b->assoc, a->nassocs * sizeof *a->assoc)) &&
           (!a->nusers || !memcmp(a->user, b->user, a->nusers * sizeof *a->user));
}

const char *site_account_of(const struct site_accounts *a, const char *user,
                            const char *named)
{
    for (size_t i = 0; !*named && i < a->nusers; i++)
        if (!strcmp(a->user[i].name, user))
            return a->user[i].account;
    return named;
}

static int64_t of_type(const struct site_limits *most, const char *type)
{
    for (int i = 0; i < most->ntyped; i++)
        if (!strcmp(most->typed[i].type, type))
            return most->typed[i].gpus;
    return 0;
}

/* Take the limits that are less than those so far, and say whose they are. */
static void take(const struct site_limits *most, const char *kind, const char *name,
                 const char *type, struct site_account_bound *ret)
{
    const struct {
        int64_t limit, *to;
        char *words;
        int64_t shown;
        const char *unit, *of;
    } rows[] = {
        {most->gpus, &ret->most.gpus, ret->of_gpus, most->gpus, "GPU", ""},
        {of_type(most, type), &ret->most.gpus, ret->of_gpus, of_type(most, type), "GPU",
         type},
        {most->nodes, &ret->most.nodes, ret->of_nodes, most->nodes, "node", ""},
        {most->time_s, &ret->most.time_s, ret->of_time, most->time_s / 60, "minute", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].limit <= 0 || (*rows[i].to && *rows[i].to <= rows[i].limit))
            continue;
        *rows[i].to = rows[i].limit;
        snprintf(rows[i].words, sizeof ret->of_gpus, "%s '%.40s' (%lld %s%s%s%.30s)",
                 kind, name, (long long)rows[i].shown, rows[i].unit,
                 rows[i].shown == 1 ? "" : "s", *rows[i].of ? " of type " : "",
                 rows[i].of);
    }
}

/* The association of a user, of its partition where there is one of that; of an account
 * with user "". */
static const struct site_assoc *find_assoc(const struct site_accounts *a,
                                           const char *account, const char *user,
                                           const char *partition)
{
    const struct site_assoc *found = NULL;
    for (size_t i = 0; i < a->nassocs; i++) {
        const struct site_assoc *x = &a->assoc[i];
        if (strcmp(x->account, account) || strcmp(x->user, user))
            continue;
        if (*x->partition && !strcmp(x->partition, partition))
            return x;
        if (!*x->partition)
            found = x;
    }
    return found;
}

static void take_qos_of(const struct site_accounts *a, const char *name, const char *type,
                        struct site_account_bound *ret)
{
    for (size_t i = 0; *name && i < a->nqos; i++)
        if (!strcmp(a->qos[i].name, name))
            take(&a->qos[i].most, "QOS", name, type, ret);
}

const char *site_qos_of(const struct site_accounts *a, const char *user,
                        const char *account, const char *partition, const char *named)
{
    const struct site_assoc *own = find_assoc(a, account, user, partition);
    if (*named)
        return named;
    return own && *own->default_qos ? own->default_qos : a->nqos ? "normal" : "";
}

void site_accounts_bound(const struct site_accounts *a, const char *user,
                         const char *account, const char *qos, const char *partition,
                         const char *partition_qos, const char *type,
                         struct site_account_bound *ret)
{
    *ret = (struct site_account_bound){0};
    const struct site_assoc *own = find_assoc(a, account, user, partition);
    if (own)
        take(&own->most, "user", user, type, ret);
    const char *above = account;
    for (int i = 0; i < DEPTH && *above; i++) {
        const struct site_assoc *x = find_assoc(a, above, "", partition);
        if (!x)
            break;
        take(&x->most, "account", x->account, type, ret);
        above = x->parent;
    }
    take_qos_of(a, site_qos_of(a, user, account, partition, qos), type, ret);
    take_qos_of(a, partition_qos, type, ret);
}
