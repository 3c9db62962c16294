/* elastic.c - see topt_elastic.h. */
#include "topt_elastic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_carry.h"

static const char mark[] = "topt-elastic=";
static const int64_t most = INT64_C(1) << 20; /* nodes, and GPUs of a node */

int64_t topt_elastic_gpus(const struct topt_elastic_shape *s)
{
    return s->nodes * s->gpus_per_node;
}

int topt_elastic_find(const struct topt_elastic *e, int64_t nodes, int64_t gpus_per_node,
                      int kind)
{
    for (int i = 0; i < e->n; i++)
        if (e->shape[i].nodes == nodes && e->shape[i].gpus_per_node == gpus_per_node &&
            e->shape[i].kind == kind)
            return i;
    return -1;
}

/* Is the word of 'n' letters one of the list? */
static int is_among(const char *list, const char *word, size_t n)
{
    for (const char *p = list; *p; p += strcspn(p, "+"), p += *p != '\0')
        if (strcspn(p, "+") == n && !memcmp(p, word, n))
            return 1;
    return 0;
}

int topt_elastic_kind_of(const struct topt_elastic *e, const char *partitions)
{
    for (int i = 0; i < e->nkinds; i++) {
        int is_it = *partitions != '\0';
        for (const char *p = partitions; *p; p += strcspn(p, ","), p += *p == ',')
            is_it &= is_among(e->kind[i], p, strcspn(p, ","));
        if (is_it)
            return i;
    }
    return e->nkinds ? -1 : 0;
}

/* Letters of names; others, as blanks, would end the word. */
static size_t name_length(const char *p)
{
    return strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
}

static int take_kind(struct topt_elastic *e, const char *partitions, size_t n,
                     char between)
{
    if (e->nkinds == TOPT_ELASTIC_KINDS || !n || n >= TOPT_ELASTIC_PARTITIONS)
        return -1;
    char *to = e->kind[e->nkinds];
    snprintf(to, TOPT_ELASTIC_PARTITIONS, "%.*s", (int)n, partitions);
    for (char *p = to;; p++) {
        size_t len = name_length(p);
        p += len;
        if (len && !*p)
            return e->nkinds++;
        if (!len || *p != between)
            return -1;
        *p = '+';
    }
}

int topt_elastic_add_kind(struct topt_elastic *e, const char *partitions)
{
    return take_kind(e, partitions, strlen(partitions), ',');
}

void topt_elastic_tag(int64_t nodes, int64_t gpus_per_node, int kind,
                      char ret[TOPT_ELASTIC_NAME])
{
    int n = snprintf(ret, TOPT_ELASTIC_NAME, "%lldx%lld", (long long)nodes,
                     (long long)gpus_per_node);
    if (kind > 0)
        snprintf(ret + n, TOPT_ELASTIC_NAME - (size_t)n, "_%d", kind);
}

void topt_elastic_plan_name(const char *tag, char ret[TOPT_ELASTIC_NAME])
{
    snprintf(ret, TOPT_ELASTIC_NAME, "SLURM_TOPT_PLAN_%.40s", tag);
}

void topt_elastic_document_name(const char *tag, char ret[TOPT_ELASTIC_NAME])
{
    snprintf(ret, TOPT_ELASTIC_NAME, TOPT_CARRY_VARIABLE "_%.40s", tag);
}

void topt_elastic_kinds(const struct topt_elastic *e, struct topt_text *out)
{
    for (int i = 0; i < e->nkinds; i++)
        topt_text_add(out, "%s%s", i ? "," : "", e->kind[i]);
}

int topt_elastic_kind_in(const char *kinds, const char *partition)
{
    char one[TOPT_ELASTIC_PARTITIONS];
    int i = 0;
    for (const char *p = kinds; *p; p += strcspn(p, ","), p += *p == ',', i++) {
        snprintf(one, sizeof one, "%.*s", (int)strcspn(p, ","), p);
        if (is_among(one, partition, strlen(partition)))
            return i;
    }
    return *kinds ? -1 : 0;
}

void topt_elastic_word(const struct topt_elastic *e, struct topt_text *out)
{
    topt_text_add(out, "%s", mark);
    for (int i = 0; i < e->n; i++) {
        topt_text_add(out, "%s%lldx%lld:%lld%s", i ? "," : "",
                      (long long)e->shape[i].nodes, (long long)e->shape[i].gpus_per_node,
                      (long long)e->shape[i].time_ns, i == e->submitted ? "*" : "");
        if (e->shape[i].kind)
            topt_text_add(out, "@%d", e->shape[i].kind);
    }
    if (e->min_efficiency > 0)
        topt_text_add(out, ";min-efficiency=%.3g", e->min_efficiency);
    if (e->by_node)
        topt_text_add(out, ";tasks=node");
    if (e->steps > 0)
        topt_text_add(out, ";steps=%lld", (long long)e->steps);
    if (e->requeues)
        topt_text_add(out, ";requeue");
    if (e->nkinds)
        topt_text_add(out, ";kinds=");
    topt_elastic_kinds(e, out);
}

/* A number from 1 on and the letter behind it; NULL where there are none. */
static const char *take_number(const char *p, int64_t limit, char behind, int64_t *ret)
{
    char *end;
    if (*p < '0' || *p > '9')
        return NULL;
    *ret = strtoll(p, &end, 10);
    if (*ret < 1 || *ret > limit || (behind && *end != behind))
        return NULL;
    return end + (behind != '\0');
}

static const char *take_shape(const char *p, struct topt_elastic *e)
{
    struct topt_elastic_shape s = {.kind = 0};
    int64_t kind;
    int is_submitted = 0;
    if (e->n == TOPT_ELASTIC_MOST || !(p = take_number(p, most, 'x', &s.nodes)) ||
        !(p = take_number(p, most, ':', &s.gpus_per_node)) ||
        !(p = take_number(p, INT64_MAX - 1, '\0', &s.time_ns)))
        return NULL;
    if (*p == '*') {
        is_submitted = 1;
        p++;
    } else if (*p == '@') {
        if (!(p = take_number(p + 1, TOPT_ELASTIC_KINDS - 1, '\0', &kind)))
            return NULL;
        s.kind = (int)kind;
    }
    if ((is_submitted && e->submitted >= 0) ||
        topt_elastic_find(e, s.nodes, s.gpus_per_node, s.kind) >= 0)
        return NULL;
    if (is_submitted)
        e->submitted = e->n;
    e->shape[e->n++] = s;
    return p;
}

/* "fast+also,slow" */
static const char *take_kinds(const char *p, struct topt_elastic *e)
{
    do {
        size_t n = strcspn(p, ",; ");
        if (take_kind(e, p, n, '+') < 0)
            return NULL;
        p += n;
    } while (*p == ',' && p++);
    return p;
}

/* What follows the shapes, each behind ';'. */
static const char *take_rest(const char *p, struct topt_elastic *e)
{
    static const char efficiency[] = ";min-efficiency=", tasks[] = ";tasks=node";
    static const char steps[] = ";steps=", kinds[] = ";kinds=", requeue[] = ";requeue";
    while (*p == ';') {
        if (!strncmp(p, efficiency, sizeof efficiency - 1)) {
            char *end;
            e->min_efficiency = strtod(p + sizeof efficiency - 1, &end);
            if (!(e->min_efficiency > 0 && e->min_efficiency <= 1))
                return NULL;
            p = end;
        } else if (!strncmp(p, tasks, sizeof tasks - 1)) {
            e->by_node = 1;
            p += sizeof tasks - 1;
        } else if (!strncmp(p, requeue, sizeof requeue - 1)) {
            e->requeues = 1;
            p += sizeof requeue - 1;
        } else if (!strncmp(p, kinds, sizeof kinds - 1)) {
            if (e->nkinds || !(p = take_kinds(p + sizeof kinds - 1, e)))
                return NULL;
        } else if (strncmp(p, steps, sizeof steps - 1) != 0 ||
                   !(p = take_number(p + sizeof steps - 1, INT64_MAX - 1, '\0',
                                     &e->steps))) {
            return NULL;
        }
    }
    return p;
}

/* The word at 'p', whose end is a blank or the comment's. */
static int read_word(const char *p, struct topt_elastic *ret)
{
    struct topt_elastic e = {.submitted = -1};
    p += sizeof mark - 1;
    do {
        p = take_shape(p, &e);
    } while (p && *p == ',' && p++);
    p = p ? take_rest(p, &e) : NULL;
    for (int i = 0; p && i < e.n; i++)
        if (e.shape[i].kind && e.shape[i].kind >= e.nkinds)
            return 0;
    if (!p || (*p && *p != ' ') || e.submitted < 0)
        return 0;
    *ret = e;
    return 1;
}

static int is_ours(const char *word)
{
    return !strncmp(word, mark, sizeof mark - 1);
}

int topt_elastic_read(const char *comment, struct topt_elastic *ret)
{
    for (const char *p = comment; *p; p += strcspn(p, " "), p += *p == ' ')
        if (is_ours(p) && read_word(p, ret))
            return 1;
    return 0;
}

void topt_elastic_strip(const char *comment, struct topt_text *out)
{
    for (const char *p = comment; *p;) {
        size_t n = strcspn(p, " ");
        if (n && !is_ours(p)) {
            topt_text_add(out, out->len ? " " : "");
            topt_text_put(out, p, n);
        }
        p += n + (p[n] == ' ');
    }
}
