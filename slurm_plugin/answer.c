/* answer.c - reading toptd's answer.
 *
 * Lines are KEY=VALUE with the value up to the end of the line, unquoted, so that neither a
 * JSON library (Slurm has its own, with clashing symbols) nor a shell is needed.  The
 * answer comes over a socket and is trusted no further than that: a plan must add up, ids
 * are of few characters since they go into environments and command lines. */
#include "answer.h"

#include <ctype.h>
#include <string.h>

#include "topt_text.h"

enum { GPU_LIMIT = 1 << 20 };

enum field_kind { NUMBER, TEXT, LINES, CARRIED };
struct field {
    const char *key;
    enum field_kind kind;
    size_t offset, size;
};

#define FIELD(key, kind, member)                                                         \
    {                                                                                    \
        key, kind, offsetof(struct topt_answer, member),                                 \
            sizeof(((struct topt_answer *)0)->member)                                    \
    }
static const struct field fields[] = {
    FIELD("TOPT_PLAN_ID", TEXT, plan_id),
    FIELD("TOPT_GPUS", NUMBER, gpus),
    FIELD("TOPT_NODES", NUMBER, nodes),
    FIELD("TOPT_GPUS_PER_NODE", NUMBER, gpus_per_node),
    FIELD("TOPT_MEMORY_BYTES", NUMBER, memory_bytes),
    FIELD("TOPT_TIME_NS", NUMBER, time_ns),
    FIELD("TOPT_DP", NUMBER, dp),
    FIELD("TOPT_TP", NUMBER, tp),
    FIELD("TOPT_PP", NUMBER, pp),
    FIELD("TOPT_VP", NUMBER, vp),
    FIELD("TOPT_CP", NUMBER, cp),
    FIELD("TOPT_EP", NUMBER, ep),
    FIELD("TOPT_ETP", NUMBER, etp),
    FIELD("TOPT_FSDP", NUMBER, fsdp),
    FIELD("TOPT_SHARD", NUMBER, shard),
    FIELD("TOPT_RECOMPUTE", NUMBER, recompute),
    FIELD("TOPT_MICRO_BATCH", NUMBER, micro_batch),
    FIELD("TOPT_ACCUMULATION", NUMBER, accumulation),
    FIELD("TOPT_WHY", TEXT, why),
    FIELD("TOPT_STRATEGY", TEXT, strategy),
    FIELD("TOPT_GPU_TYPE", TEXT, gpu_type),
    FIELD("TOPT_PARTITION", TEXT, partition),
    FIELD("TOPT_NEEDS", TEXT, needs),
    FIELD("TOPT_NOTE", TEXT, note),
    FIELD("TOPT_TRAINING", TEXT, training),
    FIELD("TOPT_HINT", TEXT, hint),
    FIELD("TOPT_SHOWN", LINES, shown),
    FIELD("TOPT_PLAN_DOC", CARRIED, plan_doc),
    FIELD("ERROR", TEXT, error),
    FIELD("DESCRIPTION", TEXT, description),
    FIELD("NEAREST", TEXT, nearest),
};

static void take_text(char *to, size_t size, const char *value, size_t len)
{
    if (len > size - 1)
        len = size - 1;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)value[i];
        to[i] = c < 32 || c == 127 ? ' ' : value[i];
    }
    to[len] = '\0';
}

/* One more line; none that does not fit. */
static void take_more(char *to, size_t size, const char *value, size_t len)
{
    size_t used = strlen(to);
    if (len + 2 > size - used)
        return;
    take_text(to + used, size - used, value, len);
    memcpy(to + used + len, "\n", 2);
}

/* Whole or not at all: a part of a plan is none. */
static void take_carried(char *to, const char *value, size_t len)
{
    to[0] = '\0';
    if (!topt_carry_looks_right(value, len))
        return;
    memcpy(to, value, len);
    to[len] = '\0';
}

static int64_t take_number(const char *value, size_t len)
{
    char digits[24];
    int64_t n;
    if (len >= sizeof digits)
        return 0;
    memcpy(digits, value, len);
    digits[len] = '\0';
    return topt_parse_int(digits, 0, INT64_MAX, &n, NULL) ? 0 : n;
}

static void take_line(const char *line, size_t len, struct topt_answer *ret)
{
    const char *eq = memchr(line, '=', len);
    if (!eq)
        return;
    size_t key_len = (size_t)(eq - line), value_len = len - key_len - 1;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const struct field *f = &fields[i];
        if (strlen(f->key) != key_len || memcmp(f->key, line, key_len) != 0)
            continue;
        char *to = (char *)ret + f->offset;
        if (f->kind == TEXT) {
            take_text(to, f->size, eq + 1, value_len);
        } else if (f->kind == LINES) {
            take_more(to, f->size, eq + 1, value_len);
        } else if (f->kind == CARRIED) {
            take_carried(to, eq + 1, value_len);
        } else {
            int64_t n = take_number(eq + 1, value_len);
            memcpy(to, &n, sizeof n);
        }
    }
}

void topt_answer_parse(const char *body, size_t len, struct topt_answer *ret)
{
    *ret = (struct topt_answer){0};
    while (len > 0) {
        const char *end = memchr(body, '\n', len);
        size_t line = end ? (size_t)(end - body) : len;
        size_t used = end ? line + 1 : line;
        if (line > 0 && body[line - 1] == '\r')
            line--;
        take_line(body, line, ret);
        body += used;
        len -= used;
    }
}

static int good_id(const char *id)
{
    if (!isalnum((unsigned char)*id))
        return 0;
    for (; *id; id++) {
        if (!isalnum((unsigned char)*id) && !strchr("-._", *id))
            return 0;
    }
    return 1;
}

static int whole_plan(const struct topt_answer *a)
{
    return good_id(a->plan_id) && strlen(a->plan_id) <= 64 && a->gpus >= 1 &&
           a->gpus <= GPU_LIMIT && a->nodes >= 1 && a->nodes <= a->gpus &&
           a->gpus_per_node >= 1 && a->gpus_per_node <= a->gpus &&
           a->nodes * a->gpus_per_node == a->gpus &&
           (!*a->gpu_type || good_id(a->gpu_type));
}

/* These say that another question would be answered.  404 is one only when toptd says so:
 * any web server has a 404. */
static int blames_request(int status)
{
    return status == 400 || status == 404 || status == 413 || status == 415 ||
           status == 422;
}

enum topt_verdict topt_answer_judge(int status, const struct topt_answer *a,
                                    struct topt_error *err)
{
    if (status == 200 && whole_plan(a))
        return TOPT_VERDICT_PLAN;
    if (status == 200 && !*a->plan_id && *a->shown)
        return TOPT_VERDICT_CURVE;
    if (status == 422 && !strcmp(a->error, "undecided")) { /* it may fit */
        topt_fail(err, TOPT_ERR_LIMIT, "%s", a->description);
        return TOPT_VERDICT_OUTAGE;
    }
    if (blames_request(status) && (*a->error || *a->description)) {
        topt_fail(err, status == 422 ? TOPT_ERR_INFEASIBLE : TOPT_ERR_INVAL, "%s%s%s",
                  *a->description ? a->description : a->error,
                  *a->nearest ? "; nearest: " : "", a->nearest);
        return TOPT_VERDICT_REFUSED;
    }
    if (status == 200)
        topt_fail(err, TOPT_ERR_IO, "the planner's answer is no whole plan");
    else if (status == 202)
        topt_fail(err, TOPT_ERR_IO, "the planner is still searching");
    else
        topt_fail(err, TOPT_ERR_IO, "the planner answered %d%s%s", status,
                  *a->description ? ": " : "", a->description);
    return TOPT_VERDICT_OUTAGE;
}
