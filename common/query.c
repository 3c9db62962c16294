/* query.c - the strict reader and the writer of questions.
 *
 * Fields are rows of one table (topt_fields.h).  Values arrive as JSON or as text; both are
 * stored by one function a kind, so the two ways can't come to differ. */
#include "topt_query.h"
#include "topt_json.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct field {
    const char *name;
    enum topt_field_kind kind;
    int where; /* endpoints that take it */
    enum { KEY_NONE, KEY_ANSWER, KEY_PROBLEM } key;
    const char *option;
    size_t offset, size;
    int64_t min, max;
};

#define AT(name)        offsetof(struct topt_query, name)
#define TEXT(name)      AT(name), sizeof((struct topt_query *)0)->name
#define AT_WORD(name)   TEXT(name)
#define AT_NAME(name)   TEXT(name)
#define AT_LIST(name)   TEXT(name)
#define AT_LABEL(name)  TEXT(name)
#define AT_INT(name)    AT(name), 0
#define AT_BATCH(name)  AT(name), 0
#define AT_BYTES(name)  AT(name), 0
#define AT_AMOUNT(name) AT(name), 0
#define AT_REAL(name)   AT(name), 0
#define AT_PRICE(name)  AT(name), 0
#define AT_SHARE(name)  AT(name), 0
#define AT_BOOL(name)   AT(name), 0
#define AT_COUNTS(name) AT(name), 0
#define AT_MEMORY(name) AT(name##_bytes), 0
static const struct field fields[] = {
#define X(ID, name, KIND, LEAST, MOST, WHERE, KEY, DOORS, OPTION, ...)                   \
    {#name, TOPT_FIELD_##KIND, WHERE, KEY_##KEY, OPTION, AT_##KIND(name), LEAST, MOST},
    TOPT_FIELDS(X)
#undef X
};
enum { NFIELDS = sizeof fields / sizeof *fields };
_Static_assert(NFIELDS <= 64, "fields that were seen are the bits of a word");
_Static_assert((int)TOPT_IN_PLAN == 1 << TOPT_QUERY_PLAN &&
                   (int)TOPT_IN_CURVE == 1 << TOPT_QUERY_CURVE &&
                   (int)TOPT_IN_FRONTIER == 1 << TOPT_QUERY_FRONTIER,
               "an endpoint's bit is its kind's");

static int is_real(const struct field *f)
{
    return f->kind == TOPT_FIELD_REAL || f->kind == TOPT_FIELD_PRICE ||
           f->kind == TOPT_FIELD_SHARE;
}

static void set_defaults(enum topt_query_kind kind, struct topt_query *q)
{
    *q = (struct topt_query){.kind = kind, .wait_ms = -1};
}

static const struct field *find(int where, const char *name)
{
    for (int i = 0; i < NFIELDS; i++)
        if (fields[i].where & where && !strcmp(fields[i].name, name))
            return &fields[i];
    return NULL;
}

int topt_is_name(const char *s, size_t max)
{
    size_t n = strlen(s);
    if (!n || n > max || s[0] == '.' || s[0] == '-')
        return 0;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("._-", *s))
            return 0;
    return 1;
}

/* ---- storing one value ------------------------------------------------------------------- */

static int store_text(const struct field *f, const char *s, struct topt_query *q,
                      struct topt_error *err)
{
    if (strlen(s) >= f->size)
        return topt_fail(err, TOPT_ERR_INVAL, "%s is longer than %zu bytes", f->name,
                         f->size - 1);
    if (f->kind < TOPT_FIELD_LIST && !topt_is_name(s, f->size - 1))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s must be a name of letters, digits and \"._-\""
                         "%s",
                         f->name, strchr(s, '/') ? "; files are never opened here" : "");
    for (const char *p = s; *p; p++)
        if (iscntrl((unsigned char)*p))
            return topt_fail(err, TOPT_ERR_INVAL, "%s holds control characters", f->name);
    strcpy((char *)q + f->offset, s);
    return 0;
}

/* Words with commas between, each once; kept without the blanks around them. */
static int store_list(const struct field *f, const char *s, struct topt_query *q,
                      struct topt_error *err)
{
    char *to = (char *)q + f->offset, word[32];
    const char *at = NULL;
    size_t n = 0;
    int rc;
    if (strlen(s) >= f->size)
        return topt_fail(err, TOPT_ERR_INVAL, "%s is longer than %zu bytes", f->name,
                         f->size - 1);
    while ((rc = topt_list_next(s, &at, word, sizeof word, err)) > 0) {
        if (word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-_")])
            return topt_fail(err, TOPT_ERR_INVAL, "%s must be words with commas between",
                             f->name);
        n += (size_t)snprintf(to + n, f->size - n, "%s%s", n ? "," : "", word);
    }
    return rc ? topt_wrap(err, "%s", f->name) : 0;
}

static int check_range(const struct field *f, int64_t v, struct topt_error *err)
{
    if (v >= f->min && v <= f->max)
        return 0;
    return topt_fail(err, TOPT_ERR_INVAL, "%s: %lld is too %s; give at %s %lld", f->name,
                     (long long)v, v < f->min ? "small" : "large",
                     v < f->min ? "least" : "most",
                     (long long)(v < f->min ? f->min : f->max));
}

static int store_int(const struct field *f, int64_t v, struct topt_query *q,
                     struct topt_error *err)
{
    if (check_range(f, v, err) < 0)
        return -1;
    *(int64_t *)((char *)q + f->offset) = v;
    return 0;
}

static int store_real(const struct field *f, double v, struct topt_query *q,
                      struct topt_error *err)
{
    if (!(v >= (double)f->min && v <= (double)f->max))
        return topt_fail(err, TOPT_ERR_INVAL, "%s is %g, outside %lld..%lld", f->name, v,
                         (long long)f->min, (long long)f->max);
    *(double *)((char *)q + f->offset) = v;
    return 0;
}

/* A size as it is written; only what bears "bytes" in its name takes few of them bare. */
static int parse_size(const struct field *f, const char *s, struct topt_query *q,
                      struct topt_error *err)
{
    int64_t v;
    if (f->kind == TOPT_FIELD_MEMORY ? topt_parse_memory(s, &v, err)
                                     : topt_parse_bytes(s, &v, err))
        return topt_wrap(err, "%s", f->name);
    return store_int(f, v, q, err);
}

static int parse_counts(const struct field *f, const char *s, struct topt_query *q,
                        struct topt_error *err)
{
    return topt_parse_counts(s, f->max, q->gpus, TOPT_FIELD_COUNTS_MOST, &q->ngpus, err)
               ? topt_wrap(err, "%s", f->name)
               : 0;
}

static int parse_bool(const struct field *f, const char *s, struct topt_query *q,
                      struct topt_error *err)
{
    int yes = !strcmp(s, "1") || !strcmp(s, "true");
    if (!yes && strcmp(s, "0") && strcmp(s, "false"))
        return topt_fail(err, TOPT_ERR_INVAL, "%s must be true or false", f->name);
    *(int *)((char *)q + f->offset) = yes;
    return 0;
}

static int parse_real(const struct field *f, const char *s, struct topt_query *q,
                      struct topt_error *err)
{
    char *end;
    double v = strtod(s, &end);
    if (end == s || *end || !isfinite(v))
        return topt_fail(err, TOPT_ERR_INVAL, "%s must be a number", f->name);
    return store_real(f, v, q, err);
}

static int store_string(const struct field *f, const char *s, struct topt_query *q,
                        struct topt_error *err)
{
    int64_t v;
    double share;
    switch (f->kind) {
    case TOPT_FIELD_WORD:
    case TOPT_FIELD_NAME:
    case TOPT_FIELD_LABEL:
        return store_text(f, s, q, err);
    case TOPT_FIELD_LIST:
        return store_list(f, s, q, err);
    case TOPT_FIELD_INT:
    case TOPT_FIELD_BATCH:
        if (topt_parse_int(s, f->min, f->max, &v, err) < 0)
            return topt_wrap(err, "%s", f->name);
        return store_int(f, v, q, err);
    case TOPT_FIELD_BYTES:
    case TOPT_FIELD_MEMORY:
        return parse_size(f, s, q, err);
    case TOPT_FIELD_AMOUNT:
        if (topt_parse_amount(s, &v, err) < 0)
            return topt_wrap(err, "%s", f->name);
        return store_int(f, v, q, err);
    case TOPT_FIELD_REAL:
    case TOPT_FIELD_PRICE:
        return parse_real(f, s, q, err);
    case TOPT_FIELD_SHARE:
        if (topt_parse_share(s, &share, err) < 0)
            return topt_wrap(err, "%s", f->name);
        return store_real(f, share, q, err);
    case TOPT_FIELD_BOOL:
        return parse_bool(f, s, q, err);
    case TOPT_FIELD_COUNTS:
        return parse_counts(f, s, q, err);
    }
    return topt_fail(err, TOPT_ERR_INTERNAL, "field %s has no kind", f->name);
}

/* A count of JSON: one more of the list. */
static int store_count(const struct field *f, int64_t v, struct topt_query *q,
                       struct topt_error *err)
{
    if (check_range(f, v, err) < 0)
        return -1;
    return topt_count_add(v, q->gpus, TOPT_FIELD_COUNTS_MOST, &q->ngpus, err)
               ? topt_wrap(err, "%s", f->name)
               : 0;
}

/* A JSON array of counts. */
static int store_array(const struct field *f, const json_t *array, struct topt_query *q,
                       struct topt_error *err)
{
    size_t i;
    json_t *v;
    json_array_foreach(array, i, v)
    {
        if (!json_is_integer(v))
            return topt_fail(err, TOPT_ERR_INVAL, "%s[%zu] must be a whole number",
                             f->name, i);
        if (store_count(f, json_integer_value(v), q, err) < 0)
            return -1;
    }
    return i ? 0 : topt_fail(err, TOPT_ERR_INVAL, "%s is empty", f->name);
}

/* A JSON number is read as one that is written. */
static int store_memory(const struct field *f, int64_t v, struct topt_query *q,
                        struct topt_error *err)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)v);
    return parse_size(f, digits, q, err);
}

static int store_digits(const struct field *f, double v, struct topt_query *q,
                        struct topt_error *err)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.17g", v);
    return store_string(f, digits, q, err);
}

/* Is a whole number of JSON the value itself? */
static int is_whole(const struct field *f)
{
    return f->kind == TOPT_FIELD_INT || f->kind == TOPT_FIELD_BATCH ||
           f->kind == TOPT_FIELD_BYTES;
}

static int store_json(const struct field *f, const json_t *v, struct topt_query *q,
                      struct topt_error *err)
{
    int text = f->kind <= TOPT_FIELD_LABEL;
    if (json_is_string(v) &&
        (text || f->kind == TOPT_FIELD_BYTES || f->kind == TOPT_FIELD_MEMORY ||
         f->kind == TOPT_FIELD_AMOUNT || f->kind == TOPT_FIELD_SHARE))
        return store_string(f, json_string_value(v), q, err);
    if (json_is_integer(v) && is_whole(f))
        return store_int(f, json_integer_value(v), q, err);
    if (json_is_integer(v) && f->kind == TOPT_FIELD_MEMORY)
        return store_memory(f, json_integer_value(v), q, err);
    if (json_is_integer(v) && f->kind == TOPT_FIELD_COUNTS)
        return store_count(f, json_integer_value(v), q, err);
    if (json_is_array(v) && f->kind == TOPT_FIELD_COUNTS)
        return store_array(f, v, q, err);
    if (json_is_number(v) && is_real(f) && f->kind != TOPT_FIELD_SHARE)
        return store_real(f, json_number_value(v), q, err);
    if (json_is_number(v) &&
        (f->kind == TOPT_FIELD_SHARE || f->kind == TOPT_FIELD_AMOUNT))
        return store_digits(f, json_number_value(v), q, err);
    if (json_is_boolean(v) && f->kind == TOPT_FIELD_BOOL) {
        *(int *)((char *)q + f->offset) = json_is_true(v);
        return 0;
    }
    return topt_fail(err, TOPT_ERR_INVAL, "%s must be a %s", f->name,
                     text                         ? "string"
                     : f->kind == TOPT_FIELD_BOOL ? "boolean"
                     : is_real(f)                 ? "number"
                                                  : "whole number");
}

/* ---- the whole --------------------------------------------------------------------------- */

static int need_count(const struct topt_query *q, const char **ret_source,
                      struct topt_error *err)
{
    *ret_source = "gpus";
    if (!q->ngpus)
        return topt_fail(err, TOPT_ERR_INVAL, "gpus is missing: how many devices?");
    if (q->ngpus > 1)
        return topt_fail(err, TOPT_ERR_INVAL, "gpus must be one count here");
    return 0;
}

/* What fields need of each other.  Turns mode profiling into a curve. */
static int check(struct topt_query *q, const char **ret_source, struct topt_error *err)
{
    if (q->kind == TOPT_QUERY_FRONTIER)
        return need_count(q, ret_source, err);
    if (q->kind == TOPT_QUERY_CURVE)
        strcpy(q->mode, "profiling");
    *ret_source = "mode";
    if (!*q->mode)
        strcpy(q->mode, q->ngpus > 1    ? "profiling"
                        : q->ngpus == 1 ? "mini-time"
                                        : "mini-parallelism");
    if (!strcmp(q->mode, "profiling")) {
        q->kind = TOPT_QUERY_CURVE;
        return 0;
    }
    if (!strcmp(q->mode, "mini-time"))
        return need_count(q, ret_source, err);
    *ret_source = "gpus";
    if (q->ngpus)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "gpus goes with mini-time; mode %s takes max_gpus", q->mode);
    return 0;
}

/* The row of 'key', marked as seen; NULL after an error. */
static const struct field *row_of(int where, const char *key, uint64_t *seen,
                                  struct topt_error *err)
{
    const struct field *f = find(where, key);
    if (!f) {
        topt_fail(err, TOPT_ERR_INVAL, "%.60s: unknown field", key);
        return NULL;
    }
    uint64_t mine = 0;
    for (int i = 0; i < NFIELDS; i++)
        if (fields[i].offset == f->offset)
            mine |= (uint64_t)1 << i;
    if (*seen & mine) {
        topt_fail(err, TOPT_ERR_INVAL, "%s is given twice", f->name);
        return NULL;
    }
    *seen |= mine;
    return f;
}

/* All members but 'other', which the caller reads. */
static int take_members(int where, const json_t *obj, const char *other,
                        struct topt_query *ret, const char **ret_source,
                        struct topt_error *err)
{
    uint64_t seen = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)obj, key, value)
    {
        if (!strcmp(key, other) || json_is_null(value))
            continue;
        *ret_source = key;
        const struct field *f = row_of(where, key, &seen, err);
        if (!f || store_json(f, value, ret, err) < 0)
            return -1;
    }
    return 0;
}

int topt_query_from_json(enum topt_query_kind kind, const json_t *obj,
                         struct topt_query *ret, const char **ret_source,
                         struct topt_error *err)
{
    struct topt_query q;
    set_defaults(kind, &q);
    *ret_source = "body";
    if (!json_is_object(obj))
        return topt_fail(err, TOPT_ERR_INVAL, "the body must be an object");
    if (take_members(1 << kind, obj, "model", &q, ret_source, err) < 0 ||
        check(&q, ret_source, err) < 0)
        return -1;
    *ret = q;
    return 0;
}

int topt_query_from_pairs(enum topt_query_kind kind, const struct topt_pair *pairs,
                          int npairs, struct topt_query *ret, const char **ret_source,
                          struct topt_error *err)
{
    uint64_t seen = 0;
    struct topt_query q;
    set_defaults(kind, &q);
    for (int i = 0; i < npairs; i++) {
        *ret_source = pairs[i].key;
        const struct field *f = row_of(1 << kind, pairs[i].key, &seen, err);
        if (!f)
            return -1;
        if (!pairs[i].value)
            return topt_fail(err, TOPT_ERR_INVAL, "%s has no value", f->name);
        if (store_string(f, pairs[i].value, &q, err) < 0)
            return -1;
    }
    if (check(&q, ret_source, err) < 0)
        return -1;
    *ret = q;
    return 0;
}

int topt_query_option(struct topt_query *asked, const char *option, const char *value,
                      struct topt_error *err)
{
    char name[40];
    for (int i = 0; i < NFIELDS; i++) {
        struct field f = fields[i];
        if (!f.option || strcmp(f.option, option))
            continue;
        snprintf(name, sizeof name, "--%s", option);
        f.name = name;
        return store_string(&f, value, asked, err);
    }
    return topt_fail(err, TOPT_ERR_INTERNAL, "--%s is no field of a question", option);
}

/* ---- writing ------------------------------------------------------------------------------ */

/* NULL: not said, or no UTF-8, or no memory. */
static json_t *field_json(const struct field *f, const struct topt_query *q)
{
    const void *at = (const char *)q + f->offset;
    if (f->kind <= TOPT_FIELD_LABEL)
        return json_string(at);
    if (is_real(f))
        return json_real(*(const double *)at);
    if (f->kind == TOPT_FIELD_BOOL)
        return json_true();
    if (f->kind != TOPT_FIELD_COUNTS)
        return json_integer(*(const int64_t *)at);
    json_t *list = json_array();
    for (int i = 0; i < q->ngpus; i++)
        json_array_append_new(list, json_integer(q->gpus[i]));
    return list;
}

static int is_said(const struct field *f, const struct topt_query *q)
{
    const void *at = (const char *)q + f->offset;
    if (f->kind == TOPT_FIELD_MEMORY) /* it is memory_bytes */
        return 0;
    if (f->kind <= TOPT_FIELD_LABEL)
        return *(const char *)at != 0;
    if (is_real(f))
        return *(const double *)at != 0;
    if (f->kind == TOPT_FIELD_BOOL)
        return *(const int *)at;
    if (f->kind == TOPT_FIELD_COUNTS)
        return q->ngpus > 0;
    return *(const int64_t *)at >= f->min;
}

int topt_query_write(const struct topt_query *asked, enum topt_query_part part,
                     struct topt_text *out, const char **ret_source,
                     struct topt_error *err)
{
    static const int least[] = {KEY_NONE, KEY_ANSWER, KEY_PROBLEM};
    (void)topt_json_lacked();
    json_t *doc = json_object();
    if (part != TOPT_QUERY_PROBLEM)
        json_object_set_new(doc, "kind", json_integer(asked->kind));
    for (int i = 0; i < NFIELDS; i++) {
        const struct field *f = &fields[i];
        if ((int)f->key < least[part] || !is_said(f, asked) ||
            !json_object_set_new(doc, f->name, field_json(f, asked)))
            continue;
        json_decref(doc);
        *ret_source = f->name;
        return topt_json_lacked()
                   ? topt_nomem(err, NULL)
                   : topt_fail(err, TOPT_ERR_INVAL, "%s must be UTF-8", f->name);
    }
    /* Without one of its members it would be another question. */
    char *text = topt_json_lacked() ? NULL : topt_json_text(doc, 0);
    json_decref(doc);
    if (text)
        topt_text_add(out, "%s", text);
    free(text);
    return text && !out->oom ? 0 : topt_nomem(err, NULL);
}

int topt_query_read(const char *text, struct topt_query *ret, const char **ret_source,
                    struct topt_error *err)
{
    json_t *doc = topt_json_parse(text, strlen(text), "the question", err);
    json_int_t kind = json_integer_value(json_object_get(doc, "kind"));
    struct topt_query q;
    *ret_source = "";
    if (!doc)
        return -1;
    set_defaults((enum topt_query_kind)kind, &q);
    int rc = kind < TOPT_QUERY_PLAN || kind > TOPT_QUERY_FRONTIER
                 ? topt_fail(err, TOPT_ERR_INVAL, "a question of no kind")
                 : take_members(TOPT_IN_ANY, doc, "kind", &q, ret_source, err);
    const struct field *at = find(TOPT_IN_ANY, *ret_source);
    *ret_source = at ? at->name : "";
    json_decref(doc);
    if (!rc)
        *ret = q;
    return rc;
}

void topt_query_fill(struct topt_query *q, const struct topt_query *from)
{
    for (int i = 0; i < NFIELDS; i++) {
        const struct field *f = &fields[i];
        size_t size = f->kind <= TOPT_FIELD_LABEL  ? f->size
                      : is_real(f)                 ? sizeof(double)
                      : f->kind == TOPT_FIELD_BOOL ? sizeof(int)
                                                   : sizeof(int64_t);
        if (is_said(f, q) || !is_said(f, from))
            continue;
        if (f->kind == TOPT_FIELD_COUNTS) {
            size = sizeof q->gpus;
            q->ngpus = from->ngpus;
        }
        memcpy((char *)q + f->offset, (const char *)from + f->offset, size);
    }
}

int topt_query_each(const struct topt_query *asked,
                    void (*take)(void *to, const char *name, const char *value), void *to)
{
    for (int i = 0; i < NFIELDS; i++) {
        const struct field *f = &fields[i];
        int is_text = f->kind <= TOPT_FIELD_LABEL, is_list = f->kind == TOPT_FIELD_COUNTS;
        if (!is_said(f, asked))
            continue;
        json_t *value = is_text ? NULL : field_json(f, asked);
        char *text = value ? topt_json_text(value, 0) : NULL;
        json_decref(value);
        if (!is_text && !text)
            return -1;
        if (is_list) /* less its brackets */
            text[strlen(text) - 1] = '\0';
        take(to, f->name, is_text ? (const char *)asked + f->offset : text + is_list);
        free(text);
    }
    return 0;
}
