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

int topt_elastic_find(const struct topt_elastic *e, int64_t nodes, int64_t gpus_per_node)
{
    for (int i = 0; i < e->n; i++)
        if (e->shape[i].nodes == nodes && e->shape[i].gpus_per_node == gpus_per_node)
            return i;
    return -1;
}

void topt_elastic_plan_name(int64_t nodes, int64_t gpus_per_node,
                            char ret[TOPT_ELASTIC_NAME])
{
    snprintf(ret, TOPT_ELASTIC_NAME, "SLURM_TOPT_PLAN_%lldx%lld", (long long)nodes,
             (long long)gpus_per_node);
}

void topt_elastic_document_name(int64_t nodes, int64_t gpus_per_node,
                                char ret[TOPT_ELASTIC_NAME])
{
    snprintf(ret, TOPT_ELASTIC_NAME, TOPT_CARRY_VARIABLE "_%lldx%lld", (long long)nodes,
             (long long)gpus_per_node);
}

void topt_elastic_word(const struct topt_elastic *e, struct topt_text *out)
{
    topt_text_add(out, "%s", mark);
    for (int i = 0; i < e->n; i++)
        topt_text_add(out, "%s%lldx%lld:%lld%s", i ? "," : "",
                      (long long)e->shape[i].nodes, (long long)e->shape[i].gpus_per_node,
                      (long long)e->shape[i].time_ns, i == e->submitted ? "*" : "");
    if (e->min_efficiency > 0)
        topt_text_add(out, ";min-efficiency=%.3g", e->min_efficiency);
    if (e->by_node)
        topt_text_add(out, ";tasks=node");
    if (e->steps > 0)
        topt_text_add(out, ";steps=%lld", (long long)e->steps);
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
    struct topt_elastic_shape s;
    if (e->n == TOPT_ELASTIC_MOST || !(p = take_number(p, most, 'x', &s.nodes)) ||
        !(p = take_number(p, most, ':', &s.gpus_per_node)) ||
        !(p = take_number(p, INT64_MAX - 1, '\0', &s.time_ns)) ||
        topt_elastic_find(e, s.nodes, s.gpus_per_node) >= 0)
        return NULL;
    if (*p == '*') {
        if (e->submitted >= 0)
            return NULL;
        e->submitted = e->n;
        p++;
    }
    e->shape[e->n++] = s;
    return p;
}

/* What follows the shapes, each behind ';'. */
static const char *take_rest(const char *p, struct topt_elastic *e)
{
    static const char efficiency[] = ";min-efficiency=", tasks[] = ";tasks=node";
    static const char steps[] = ";steps=";
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
