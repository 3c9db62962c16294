/* costs_read.c - "topt-costs/1" read as a stream: the problem is all that is kept.
 *
 * Each edge's matrix is read into one that is used again, and becomes a table at once
 * (costs_table.c).  The document's fields may stand in any order, so edges name operators
 * that may come later; names are resolved, and shapes compared, at the end.  Then the
 * operators are put in an order that does not depend on the file's (costs_order.c). */
#include "costs.h"
#include "check_problem.h"
#include "json_stream.h"
#include "topt_array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A list that is longer announces more than anybody can mean. */
enum { MAX_OPS = 1000000, MAX_CONFIGS = 1 << 20, PLACE = 120 };

struct topt_costs_file {
    struct topt_search_problem problem;
    const int *edges; /* by edge: its place in the file */
    struct topt_arena *arena;
};

/* Where the reader is: "edges[3].costs[1][2][0]" with four numbers. */
struct where {
    const char *list, *field; /* "ops" and "configs", or "edges" and "costs" */
    int64_t at[4];
    int n;
};

/* An edge whose ends are still names. */
struct named_edge {
    const char *from, *to;
    int rows, cols;
};

/* Operators by name: open addressing over their numbers. */
struct names {
    int32_t *slot; /* number + 1; 0: free */
    size_t cap;
};

struct reader {
    struct topt_costs_file *file;
    struct topt_error *err;
    struct json_stream json;
    struct costs_store store;
    struct matrix m;
    struct topt_search_op *op;
    struct topt_search_edge *edge;
    struct named_edge *named;
    size_t nops, cap_ops, nedges, cap_edges, cap_named;
    struct topt_cost *configs; /* of the operator at hand */
    size_t cap_configs;
    struct names names;
    struct where where;
};

static const char *place(const struct reader *r, char *buf)
{
    const struct where *w = &r->where;
    int n = snprintf(buf, PLACE, "%s[%" PRId64 "]", w->list, w->at[0]);
    if (w->n > 1)
        n += snprintf(buf + n, (size_t)(PLACE - n), ".%s", w->field);
    for (int i = 1; i < w->n; i++)
        n += snprintf(buf + n, (size_t)(PLACE - n), "[%" PRId64 "]", w->at[i]);
    return buf;
}

#define ROOM(r, p, n, cap) (TOPT_ROOM(p, n, cap, 64) ? topt_costs_nomem((r)->err) : 0)

/* ---- fields of objects ------------------------------------------------------------- */

struct field {
    const char *name;
    int (*read)(struct reader *r);
};

/* Read an object of just these fields, each once, in any order; 'prefix' names it. */
static int read_object(struct reader *r, const struct field *fields, const char *prefix)
{
    struct json_stream *j = &r->json;
    unsigned seen = 0;
    int first = 1, more, i;
    if (topt_json_take(j, '{'))
        return -1;
    for (; (more = topt_json_next(j, first, '}')) > 0; first = 0) {
        if (topt_json_take_key(j))
            return -1;
        for (i = 0; fields[i].name && strcmp(fields[i].name, j->string); i++)
            ;
        if (!fields[i].name)
            return topt_fail(r->err, TOPT_ERR_INVAL, "%s%.60s is not a field here",
                             prefix, j->string);
        if (seen & 1u << i)
            return topt_fail(r->err, TOPT_ERR_INVAL, "%s%s stands there twice", prefix,
                             fields[i].name);
        seen |= 1u << i;
        if (fields[i].read(r))
            return -1;
    }
    for (i = 0; !more && fields[i].name; i++)
        if (!(seen & 1u << i))
            return topt_fail(r->err, TOPT_ERR_INVAL, "%s%s is missing", prefix,
                             fields[i].name);
    return more;
}

/* ---- costs ------------------------------------------------------------------------- */

static int read_number(struct reader *r, const char *what, int64_t *ret)
{
    char buf[PLACE];
    switch (topt_json_take_whole(&r->json, ret)) {
    case JSON_WHOLE:
        return 0;
    case JSON_NEGATIVE:
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s: %s is negative", place(r, buf),
                         what);
    case JSON_TOO_LARGE:
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s: %s is more than 2^63 - 1",
                         place(r, buf), what);
    case JSON_FRACTION:
    case JSON_OTHER:
        break;
    }
    return topt_fail(r->err, TOPT_ERR_INVAL, "%s: %s must be a whole number",
                     place(r, buf), what);
}

static int not_a_cost(struct reader *r)
{
    char buf[PLACE];
    if (!topt_json_peek(&r->json))
        return topt_json_expected(&r->json, "a cost");
    return topt_fail(r->err, TOPT_ERR_INVAL, "%s: a cost is [memory, time]",
                     place(r, buf));
}

static int read_cost(struct reader *r, struct topt_cost *ret)
{
    struct json_stream *j = &r->json;
    if (topt_json_peek(j) != '[' || topt_json_take(j, '['))
        return not_a_cost(r);
    if (topt_json_peek(j) == ']')
        return not_a_cost(r);
    if (read_number(r, "memory", &ret->memory))
        return -1;
    if (topt_json_peek(j) != ',' || topt_json_take(j, ','))
        return not_a_cost(r);
    if (read_number(r, "time", &ret->time))
        return -1;
    if (topt_json_peek(j) != ']')
        return not_a_cost(r);
    return topt_json_take(j, ']');
}

/* Go into the array that stands at the reader's place. */
static int into_array(struct reader *r, const char *of_what)
{
    char buf[PLACE];
    int c = topt_json_peek(&r->json);
    if (c && c != '[')
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s must be a list of %s", place(r, buf),
                         of_what);
    return topt_json_take(&r->json, '[');
}

/* ---- operators --------------------------------------------------------------------- */

static uint64_t hash_name(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h ^ h >> 29;
}

/* Where the name stands, or would. */
static size_t name_slot(const struct reader *r, const char *name)
{
    size_t i = hash_name(name) & (r->names.cap - 1);
    while (r->names.slot[i] && strcmp(r->op[r->names.slot[i] - 1].name, name))
        i = (i + 1) & (r->names.cap - 1);
    return i;
}

static int find_op(const struct reader *r, const char *name)
{
    return r->names.cap ? r->names.slot[name_slot(r, name)] - 1 : -1;
}

static int add_name(struct reader *r, int op)
{
    if (2 * ((size_t)op + 1) > r->names.cap) {
        size_t cap = r->names.cap ? 2 * r->names.cap : 64;
        int32_t *slot = calloc(cap, sizeof *slot);
        if (!slot)
            return topt_costs_nomem(r->err);
        free(r->names.slot);
        r->names = (struct names){slot, cap};
        for (int i = 0; i < op; i++)
            slot[name_slot(r, r->op[i].name)] = i + 1;
    }
    r->names.slot[name_slot(r, r->op[op].name)] = op + 1;
    return 0;
}

/* The string that is a field of the operator or edge at hand. */
static int take_string(struct reader *r, const char *field)
{
    char buf[PLACE];
    int c = topt_json_peek(&r->json);
    r->where.n = 1;
    if (c && c != '"')
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s.%s must be a string", place(r, buf),
                         field);
    return topt_json_take_string(&r->json);
}

static int read_name(struct reader *r)
{
    struct topt_search_op *op = &r->op[r->nops];
    char buf[PLACE];
    if (take_string(r, "name"))
        return -1;
    if (!*r->json.string)
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s.name is empty", place(r, buf));
    if (find_op(r, r->json.string) >= 0)
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s: a second operator named '%.60s'",
                         place(r, buf), r->json.string);
    op->name = topt_arena_strdup(r->file->arena, r->json.string);
    return op->name ? 0 : topt_costs_nomem(r->err);
}

static int read_configs(struct reader *r)
{
    struct topt_search_op *op = &r->op[r->nops];
    size_t n = 0;
    int more;
    r->where.n = 2;
    r->where.field = "configs";
    if (topt_json_peek(&r->json) != '[')
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "ops[%" PRId64 "].configs must be a list", r->where.at[0]);
    if (topt_json_take(&r->json, '['))
        return -1;
    for (; (more = topt_json_next(&r->json, n == 0, ']')) > 0; n++) {
        r->where.at[1] = (int64_t)n;
        if (n == MAX_CONFIGS)
            return topt_fail(r->err, TOPT_ERR_LIMIT,
                             "ops[%" PRId64 "]: more than %d configurations",
                             r->where.at[0], MAX_CONFIGS);
        if (ROOM(r, r->configs, n, r->cap_configs) || read_cost(r, &r->configs[n]))
            return -1;
    }
    r->where.n = 1;
    if (more < 0)
        return -1;
    if (n == 0)
        return topt_fail(r->err, TOPT_ERR_INVAL, "ops[%" PRId64 "].configs is empty",
                         r->where.at[0]);
    op->nconfigs = (int)n;
    op->cost = topt_costs_keep(&r->store, r->configs, n * sizeof *op->cost);
    return op->cost ? 0 : -1;
}

static int read_op(struct reader *r)
{
    static const struct field fields[] = {
        {"name", read_name}, {"configs", read_configs}, {0}};
    char prefix[PLACE];
    if (ROOM(r, r->op, r->nops, r->cap_ops))
        return -1;
    r->op[r->nops] = (struct topt_search_op){0};
    snprintf(prefix, sizeof prefix, "ops[%zu].", r->nops);
    if (read_object(r, fields, prefix) || add_name(r, (int)r->nops))
        return -1;
    r->nops++;
    return 0;
}

/* ---- edges ------------------------------------------------------------------------- */

static int read_end(struct reader *r, const char *field, const char **ret)
{
    if (take_string(r, field))
        return -1;
    *ret = topt_costs_keep(&r->store, r->json.string, strlen(r->json.string) + 1);
    return *ret ? 0 : -1;
}

static int read_from(struct reader *r)
{
    return read_end(r, "from", &r->named[r->nedges].from);
}

static int read_to(struct reader *r)
{
    return read_end(r, "to", &r->named[r->nedges].to);
}

/* An entry: a list of at least one alternative. */
static int read_entry(struct reader *r)
{
    struct matrix *m = &r->m;
    char buf[PLACE];
    int more, k = 0;
    r->where.n = 3;
    if (into_array(r, "at least one [memory, time]"))
        return -1;
    for (; (more = topt_json_next(&r->json, k == 0, ']')) > 0; k++) {
        r->where.n = 4;
        r->where.at[3] = k;
        if (m->nalts == INT32_MAX)
            return topt_fail(r->err, TOPT_ERR_LIMIT, "an edge with 2^31 alternatives");
        if (ROOM(r, m->alt, m->nalts, m->cap_alts) || read_cost(r, &m->alt[m->nalts]))
            return -1;
        m->nalts++;
    }
    r->where.n = 3;
    if (!more && k == 0)
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "%s must be a list of at least one [memory, time]",
                         place(r, buf));
    return more;
}

static int read_row(struct reader *r, size_t *entries)
{
    struct matrix *m = &r->m;
    char buf[PLACE];
    int more, n = 0;
    r->where.n = 2;
    if (into_array(r, "entries, one for each configuration of the consumer"))
        return -1;
    for (; (more = topt_json_next(&r->json, n == 0, ']')) > 0; n++) {
        r->where.at[2] = n;
        if (n == MAX_CONFIGS)
            return topt_fail(r->err, TOPT_ERR_LIMIT, "%s: a row of more than %d entries",
                             place(r, buf), MAX_CONFIGS);
        if (*entries == TOPT_SEARCH_MAX_ENTRIES)
            return topt_fail(r->err, TOPT_ERR_LIMIT, "%s: more than %d entries",
                             place(r, buf), TOPT_SEARCH_MAX_ENTRIES);
        if (ROOM(r, m->first, *entries + 1, m->cap_first) || read_entry(r))
            return -1;
        m->first[++*entries] = (int32_t)m->nalts;
    }
    r->where.n = 2;
    if (!more && m->rows && n != m->cols)
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "%s has %d elements; the row before has %d", place(r, buf), n,
                         m->cols);
    m->cols = n;
    return more;
}

static int read_costs(struct reader *r)
{
    struct matrix *m = &r->m;
    size_t entries = 0;
    int more;
    m->rows = m->cols = 0;
    m->nalts = 0;
    r->where.field = "costs";
    if (ROOM(r, m->first, 0, m->cap_first))
        return -1;
    m->first[0] = 0;
    if (topt_json_peek(&r->json) != '[')
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "edges[%" PRId64 "].costs must be a list", r->where.at[0]);
    if (topt_json_take(&r->json, '['))
        return -1;
    for (; (more = topt_json_next(&r->json, m->rows == 0, ']')) > 0; m->rows++) {
        r->where.at[1] = m->rows;
        if (m->rows == MAX_CONFIGS)
            return topt_fail(r->err, TOPT_ERR_LIMIT,
                             "edges[%" PRId64 "]: more than %d rows", r->where.at[0],
                             MAX_CONFIGS);
        if (read_row(r, &entries))
            return -1;
    }
    r->where.n = 1;
    if (more)
        return -1;
    r->named[r->nedges].rows = m->rows;
    r->named[r->nedges].cols = m->cols;
    return topt_costs_table(&r->store, m, &r->edge[r->nedges]);
}

static int read_edge(struct reader *r)
{
    static const struct field fields[] = {
        {"from", read_from}, {"to", read_to}, {"costs", read_costs}, {0}};
    char prefix[PLACE];
    if (ROOM(r, r->edge, r->nedges, r->cap_edges) ||
        ROOM(r, r->named, r->nedges, r->cap_named))
        return -1;
    r->edge[r->nedges] = (struct topt_search_edge){0};
    r->named[r->nedges] = (struct named_edge){0};
    snprintf(prefix, sizeof prefix, "edges[%zu].", r->nedges);
    if (read_object(r, fields, prefix))
        return -1;
    r->nedges++;
    return 0;
}

/* ---- the document ------------------------------------------------------------------ */

static int read_list(struct reader *r, const char *name, int (*read)(struct reader *r),
                     const size_t *n)
{
    struct json_stream *j = &r->json;
    int more;
    if (topt_json_peek(j) && topt_json_peek(j) != '[')
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s must be a list", name);
    if (topt_json_take(j, '['))
        return -1;
    while ((more = topt_json_next(j, *n == 0, ']')) > 0) {
        r->where = (struct where){.list = name, .at = {(int64_t)*n}, .n = 1};
        if (*n == MAX_OPS)
            return topt_fail(r->err, TOPT_ERR_LIMIT, "more than %d %s", MAX_OPS, name);
        if (topt_json_peek(j) && topt_json_peek(j) != '{')
            return topt_fail(r->err, TOPT_ERR_INVAL, "%s[%zu] must be an object", name,
                             *n);
        if (read(r))
            return -1;
    }
    return more;
}

static int read_ops(struct reader *r)
{
    return read_list(r, "ops", read_op, &r->nops);
}

static int read_edges(struct reader *r)
{
    return read_list(r, "edges", read_edge, &r->nedges);
}

static int read_format(struct reader *r)
{
    int c = topt_json_peek(&r->json);
    if (c && c != '"')
        return topt_fail(r->err, TOPT_ERR_INVAL, "format must be a string");
    if (topt_json_take_string(&r->json))
        return -1;
    if (strcmp(r->json.string, "topt-costs/1"))
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "format is \"%.40s\", \"topt-costs/1\" is needed",
                         r->json.string);
    return 0;
}

static int resolve(struct reader *r, size_t edge, const char *key, const char *name,
                   int *ret)
{
    *ret = find_op(r, name);
    if (*ret < 0)
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "edges[%zu].%s: no operator is named '%.60s'", edge, key, name);
    return 0;
}

static int check_shape(struct reader *r, size_t edge)
{
    const struct named_edge *n = &r->named[edge];
    const struct topt_search_op *from = &r->op[r->edge[edge].from];
    const struct topt_search_op *to = &r->op[r->edge[edge].to];
    if (n->rows != from->nconfigs)
        return topt_fail(
            r->err, TOPT_ERR_INVAL,
            "edges[%zu].costs has %d elements; '%.60s' has %d configurations", edge,
            n->rows, from->name, from->nconfigs);
    if (n->cols != to->nconfigs)
        return topt_fail(
            r->err, TOPT_ERR_INVAL,
            "edges[%zu].costs[0] has %d elements; '%.60s' has %d configurations", edge,
            n->cols, to->name, to->nconfigs);
    return 0;
}

static int resolve_edges(struct reader *r)
{
    for (size_t i = 0; i < r->nedges; i++)
        if (resolve(r, i, "from", r->named[i].from, &r->edge[i].from) ||
            resolve(r, i, "to", r->named[i].to, &r->edge[i].to) || check_shape(r, i))
            return -1;
    return 0;
}

/* ---- reading ----------------------------------------------------------------------- */

static int read_document(struct reader *r)
{
    static const struct field fields[] = {
        {"format", read_format}, {"ops", read_ops}, {"edges", read_edges}, {0}};
    int c = topt_json_peek(&r->json);
    if (c && c != '{')
        return topt_fail(r->err, TOPT_ERR_INVAL, "a cost file is a JSON object");
    if (read_object(r, fields, "") || topt_json_take_end(&r->json) || resolve_edges(r))
        return -1;
    struct topt_search_problem as_read = {(int)r->nops, r->op, (int)r->nedges, r->edge};
    if (topt_costs_order(&as_read, r->file->arena, &r->file->problem, &r->file->edges,
                         r->err))
        return -1;
    return topt_search_check(&r->file->problem, r->err);
}

static void reader_fini(struct reader *r)
{
    topt_json_stream_fini(&r->json);
    topt_costs_store_fini(&r->store);
    free(r->m.first);
    free(r->m.alt);
    free(r->op);
    free(r->edge);
    free(r->named);
    free(r->configs);
    free(r->names.slot);
}

static int read_costs_file(const char *text, size_t len, FILE *from,
                           struct topt_costs_file **ret, struct topt_error *err)
{
    struct topt_costs_file *file = calloc(1, sizeof *file);
    struct reader *r = calloc(1, sizeof *r);
    int rc = -1;
    *ret = NULL;
    if (file)
        file->arena = topt_arena_create(0);
    if (!file || !file->arena || !r) {
        topt_costs_nomem(err);
        goto out;
    }
    r->file = file;
    r->err = err;
    if (!topt_json_stream_init(&r->json, text, len, from, err) &&
        !topt_costs_store_init(&r->store, file->arena, err))
        rc = read_document(r);
out:
    if (r)
        reader_fini(r);
    free(r);
    if (rc)
        topt_costs_destroy(file);
    else
        *ret = file;
    return rc;
}

int topt_costs_read(const char *text, size_t len, struct topt_costs_file **ret,
                    struct topt_error *err)
{
    return read_costs_file(text, len, NULL, ret, err);
}

int topt_costs_load(FILE *from, struct topt_costs_file **ret, struct topt_error *err)
{
    return read_costs_file(NULL, 0, from, ret, err);
}

const struct topt_search_problem *topt_costs_problem(const struct topt_costs_file *f)
{
    return &f->problem;
}

const int *topt_costs_edges(const struct topt_costs_file *f)
{
    return f->edges;
}

void topt_costs_destroy(struct topt_costs_file *f)
{
    if (!f)
        return;
    topt_arena_destroy(f->arena);
    free(f);
}
