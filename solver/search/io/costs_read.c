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

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A list that is longer announces more than anybody can mean. */
enum { MAX_OPS = 1000000, MAX_CONFIGS = 1 << 20, PLACE = 120 };

struct topt_costs_file {
    struct topt_search_problem problem;
    const int *edges; /* by edge: its place in the file */
    struct topt_arena *arena;
};

/* Where the reader is: "edges[3].costs[1][2][0]" with four numbers, "edges[3]" with one and
 * no field. */
struct where {
    const char *list, *field;
    int at[4];
    int n;
};

/* An edge whose ends are still names. */
struct named_edge {
    const char *from, *to;
    int rows, cols;
};

struct reader {
    struct topt_costs_file *file;
    struct topt_error *err;
    struct json_stream json;
    struct costs_store store;
    struct topt_interning names; /* of operators, by their numbers */
    struct matrix m;
    struct topt_search_op *op;
    struct topt_search_edge *edge;
    struct named_edge *named;
    size_t nops, cap_ops, nedges, cap_edges, cap_named;
    struct topt_cost *configs; /* of the operator at hand */
    size_t nconfigs, cap_configs;
    struct where where;
};

static const char *place(const struct reader *r, char *buf)
{
    const struct where *w = &r->where;
    int n = snprintf(buf, PLACE, "%s", w->list);
    for (int i = 0; i < w->n; i++) {
        n += snprintf(buf + n, (size_t)(PLACE - n), "[%d]", w->at[i]);
        if (i == 0 && w->field)
            n += snprintf(buf + n, (size_t)(PLACE - n), ".%s", w->field);
    }
    return buf;
}

#define ROOM(r, p, n, cap) (TOPT_ROOM(p, n, cap, 64) ? topt_costs_nomem((r)->err) : 0)

/* ---- objects and lists ------------------------------------------------------------- */

struct field {
    const char *name;
    int (*read)(struct reader *r);
};

/* A field of the object that the reader is in. */
static int wrong_field(struct reader *r, const char *field, const char *says)
{
    char buf[PLACE];
    r->where.field = NULL;
    return topt_fail(r->err, TOPT_ERR_INVAL, "%s%s%.60s %s",
                     r->where.n ? place(r, buf) : "", r->where.n ? "." : "", field, says);
}

/* Read an object of just these fields, each once, in any order. */
static int read_object(struct reader *r, const struct field *fields)
{
    struct json_stream *j = &r->json;
    unsigned seen = 0;
    int more, i;
    if (topt_json_take(j, '{'))
        return -1;
    while ((more = topt_json_next(j, !seen, '}')) > 0) {
        if (topt_json_take_string(j) || topt_json_take(j, ':'))
            return -1;
        for (i = 0; fields[i].name && strcmp(fields[i].name, j->string); i++)
            ;
        if (!fields[i].name)
            return wrong_field(r, j->string, "is not a field here");
        if (seen & 1u << i)
            return wrong_field(r, fields[i].name, "stands there twice");
        seen |= 1u << i;
        *(r->where.n ? &r->where.field : &r->where.list) = fields[i].name;
        if (fields[i].read(r))
            return -1;
    }
    for (i = 0; !more && fields[i].name; i++)
        if (!(seen & 1u << i))
            return wrong_field(r, fields[i].name, "is missing");
    return more;
}

struct list {
    const char *name, *of; /* "a row", "entries" */
    int most;
    int (*read)(struct reader *r);
};

/* Read the list that stands at the reader's place.  Returns how many there are, or -1. */
static int read_list(struct reader *r, const struct list *l)
{
    int level = r->where.n, n = 0, more;
    char buf[PLACE];
    if (topt_json_peek(&r->json) && topt_json_peek(&r->json) != '[')
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s must be %s of %s", place(r, buf),
                         l->name, l->of);
    if (topt_json_take(&r->json, '['))
        return -1;
    for (; (more = topt_json_next(&r->json, n == 0, ']')) > 0; n++) {
        if (n == l->most)
            return topt_fail(r->err, TOPT_ERR_LIMIT, "%s: %s of more than %d %s",
                             place(r, buf), l->name, l->most, l->of);
        r->where.n = level + 1;
        r->where.at[level] = n;
        if (l->read(r))
            return -1;
        r->where.n = level;
    }
    return more ? -1 : n;
}

/* The string that stands at the reader's place. */
static int take_string(struct reader *r)
{
    char buf[PLACE];
    int c = topt_json_peek(&r->json);
    if (c && c != '"')
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s must be a string", place(r, buf));
    return topt_json_take_string(&r->json);
}

/* ---- costs ------------------------------------------------------------------------- */

static int read_number(struct reader *r, const char *what, int64_t *ret)
{
    struct json_stream *j = &r->json;
    const char *wrong = topt_json_peek(j) == '-' ? "is negative" : NULL;
    char buf[PLACE];
    int digits = 0;
    *ret = 0;
    for (; !wrong && j->c >= '0' && j->c <= '9'; digits++, topt_json_advance(j))
        if (digits && !*ret)
            wrong = "must be a whole number"; /* 07 */
        else if (__builtin_mul_overflow(*ret, 10, ret) ||
                 __builtin_add_overflow(*ret, j->c - '0', ret))
            wrong = "is more than 2^63 - 1";
    if (!wrong && (!digits || j->c == '.' || j->c == 'e' || j->c == 'E'))
        wrong = "must be a whole number";
    if (wrong)
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s: %s %s", place(r, buf), what, wrong);
    return 0;
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
    if (!topt_json_skip(j, '[') || topt_json_peek(j) == ']')
        return not_a_cost(r);
    if (read_number(r, "memory", &ret->memory))
        return -1;
    if (!topt_json_skip(j, ','))
        return not_a_cost(r);
    if (read_number(r, "time", &ret->time))
        return -1;
    return topt_json_skip(j, ']') ? 0 : not_a_cost(r);
}

/* ---- operators --------------------------------------------------------------------- */

static int read_name(struct reader *r)
{
    struct topt_search_op *op = &r->op[r->nops];
    char buf[PLACE];
    if (take_string(r))
        return -1;
    if (!*r->json.string)
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s is empty", place(r, buf));
    int number = topt_intern(&r->names, r->json.string, strlen(r->json.string) + 1,
                             (const void **)&op->name);
    r->where.field = NULL;
    if (number >= 0 && number < (int)r->nops)
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s: a second operator named '%.60s'",
                         place(r, buf), r->json.string);
    return number < 0 ? topt_costs_nomem(r->err) : 0;
}

static int read_config(struct reader *r)
{
    if (ROOM(r, r->configs, r->nconfigs, r->cap_configs))
        return -1;
    return read_cost(r, &r->configs[r->nconfigs++]);
}

static int read_configs(struct reader *r)
{
    static const struct list configs = {"a list", "configurations", MAX_CONFIGS,
                                        read_config};
    struct topt_search_op *op = &r->op[r->nops];
    char buf[PLACE];
    r->nconfigs = 0;
    op->nconfigs = read_list(r, &configs);
    if (op->nconfigs < 0)
        return -1;
    if (op->nconfigs == 0)
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s is empty", place(r, buf));
    op->cost = topt_costs_keep(&r->store, r->configs, r->nconfigs * sizeof *op->cost);
    return op->cost ? 0 : -1;
}

/* Read an element of a list of objects. */
static int read_element(struct reader *r, const struct field *fields)
{
    char buf[PLACE];
    int c = topt_json_peek(&r->json);
    r->where.field = NULL;
    if (c && c != '{')
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s must be an object", place(r, buf));
    return read_object(r, fields);
}

static int read_op(struct reader *r)
{
    static const struct field fields[] = {
        {"name", read_name}, {"configs", read_configs}, {0}};
    if (ROOM(r, r->op, r->nops, r->cap_ops))
        return -1;
    r->op[r->nops] = (struct topt_search_op){0};
    if (read_element(r, fields))
        return -1;
    r->nops++;
    return 0;
}

/* ---- edges ------------------------------------------------------------------------- */

static int read_end(struct reader *r, const char **ret)
{
    if (take_string(r))
        return -1;
    *ret = topt_costs_keep(&r->store, r->json.string, strlen(r->json.string) + 1);
    return *ret ? 0 : -1;
}

static int read_from(struct reader *r)
{
    return read_end(r, &r->named[r->nedges].from);
}

static int read_to(struct reader *r)
{
    return read_end(r, &r->named[r->nedges].to);
}

static int read_alternative(struct reader *r)
{
    struct matrix *m = &r->m;
    if (m->nalts == INT32_MAX)
        return topt_fail(r->err, TOPT_ERR_LIMIT, "an edge with 2^31 alternatives");
    if (ROOM(r, m->alt, m->nalts, m->cap_alts))
        return -1;
    return read_cost(r, &m->alt[m->nalts++]);
}

static int read_entry(struct reader *r)
{
    static const struct list alternatives = {"a list", "at least one [memory, time]",
                                             INT_MAX, read_alternative};
    struct matrix *m = &r->m;
    char buf[PLACE];
    if (m->nentries == TOPT_SEARCH_MAX_ENTRIES)
        return topt_fail(r->err, TOPT_ERR_LIMIT, "%s: more than %d entries",
                         place(r, buf), TOPT_SEARCH_MAX_ENTRIES);
    int n = read_list(r, &alternatives);
    if (n == 0)
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s must be %s of %s", place(r, buf),
                         alternatives.name, alternatives.of);
    if (n < 0 || ROOM(r, m->first, m->nentries + 1, m->cap_first))
        return -1;
    m->first[++m->nentries] = (int32_t)m->nalts;
    return 0;
}

static int read_row(struct reader *r)
{
    static const struct list entries = {"a row", "entries", MAX_CONFIGS, read_entry};
    struct matrix *m = &r->m;
    char buf[PLACE];
    int n = read_list(r, &entries);
    if (n >= 0 && m->rows && n != m->cols)
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "%s has %d elements; the row before has %d", place(r, buf), n,
                         m->cols);
    m->cols = n;
    m->rows++;
    return n < 0 ? -1 : 0;
}

static int read_costs(struct reader *r)
{
    static const struct list rows = {"a list", "rows", MAX_CONFIGS, read_row};
    struct matrix *m = &r->m;
    m->rows = m->cols = 0;
    m->nalts = m->nentries = 0;
    if (ROOM(r, m->first, 0, m->cap_first))
        return -1;
    m->first[0] = 0;
    if (read_list(r, &rows) < 0)
        return -1;
    r->named[r->nedges].rows = m->rows;
    r->named[r->nedges].cols = m->cols;
    return topt_costs_table(&r->store, m, &r->edge[r->nedges]);
}

static int read_edge(struct reader *r)
{
    static const struct field fields[] = {
        {"from", read_from}, {"to", read_to}, {"costs", read_costs}, {0}};
    if (ROOM(r, r->edge, r->nedges, r->cap_edges) ||
        ROOM(r, r->named, r->nedges, r->cap_named))
        return -1;
    r->edge[r->nedges] = (struct topt_search_edge){0};
    r->named[r->nedges] = (struct named_edge){0};
    if (read_element(r, fields))
        return -1;
    r->nedges++;
    return 0;
}

/* ---- the document ------------------------------------------------------------------ */

static int read_ops(struct reader *r)
{
    static const struct list ops = {"a list", "operators", MAX_OPS, read_op};
    return read_list(r, &ops) < 0 ? -1 : 0;
}

static int read_edges(struct reader *r)
{
    static const struct list edges = {"a list", "edges", MAX_OPS, read_edge};
    return read_list(r, &edges) < 0 ? -1 : 0;
}

static int read_format(struct reader *r)
{
    if (take_string(r))
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
    *ret = topt_intern(&r->names, name, strlen(name) + 1, NULL);
    if (*ret < 0)
        return topt_costs_nomem(r->err);
    if (*ret >= (int)r->nops)
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
    topt_json_advance(&r->json);
    int c = topt_json_peek(&r->json);
    if (c && c != '{')
        return topt_fail(r->err, TOPT_ERR_INVAL, "a cost file is a JSON object");
    if (read_object(r, fields))
        return -1;
    if (topt_json_peek(&r->json) || r->json.c >= 0 || ferror(r->json.file))
        return topt_json_expected(&r->json, "the end of the document");
    if (resolve_edges(r))
        return -1;
    struct topt_search_problem as_read = {(int)r->nops, r->op, (int)r->nedges, r->edge};
    if (topt_costs_order(&as_read, r->file->arena, &r->file->problem, &r->file->edges,
                         r->err))
        return -1;
    return topt_search_check(&r->file->problem, r->err);
}

static void reader_fini(struct reader *r)
{
    free(r->m.first);
    free(r->m.alt);
    free(r->op);
    free(r->edge);
    free(r->named);
    free(r->configs);
}

int topt_costs_load(FILE *from, struct topt_costs_file **ret, struct topt_error *err)
{
    struct topt_costs_file *file = calloc(1, sizeof *file);
    struct topt_arena *arena = topt_arena_create(0);
    struct reader r = {.file = file,
                       .err = err,
                       .json = {.file = from, .line = 1, .err = err},
                       .store = {{.arena = arena}, err},
                       .names = {.arena = arena}};
    int rc = -1;
    *ret = NULL;
    if (file && arena) {
        file->arena = arena;
        rc = read_document(&r);
        reader_fini(&r);
    } else {
        topt_arena_destroy(arena);
        topt_costs_nomem(err);
    }
    if (rc)
        topt_costs_destroy(file);
    else
        *ret = file;
    return rc;
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
