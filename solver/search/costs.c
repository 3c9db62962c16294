/* costs.c - "topt-costs/1": the bare problem as a document that other programs can write.
 *
 * A file gives each edge a full matrix over pairs of configurations.  Reading finds the
 * classes again: equal rows are one class of the producer, equal columns (of the distinct
 * rows) one class of the consumer.  Then what is equal is shared by pointer: tables, class
 * maps, cost lists; a written and re-read problem is as small as the one it came from.
 *
 *     matrix (configs x configs)  --rows-->  (classes x configs)  --columns-->  table
 *
 * The order of alternatives inside an entry is the file's, so that a witness's numbers mean
 * the file's. */
#include "search_impl.h"
#include "table.h"

#include "topt_json.h"
#include "topt_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPS = 1000000, PLACE = 120 };

/* Something that was interned: equal bytes are kept once. */
struct kept {
    uint64_t hash;
    size_t len;
    const void *bytes;
    const struct topt_table *table;
    struct kept *next;
};

enum { KEPT_BUCKETS = 1024 };

struct topt_costs_file {
    struct topt_search_problem problem;
    struct topt_arena *arena;
    struct kept *kept[KEPT_BUCKETS];
};

/* An edge's matrix as it stands in the file. */
struct matrix {
    int rows, cols;
    int32_t *first; /* rows * cols + 1 */
    struct topt_cost *alt;
    size_t nalts, cap;
};

struct reader {
    struct topt_costs_file *file;
    struct topt_error *err;
    json_t *names;   /* name -> operator */
    struct matrix m; /* of the edge at hand */
};

static int no_memory(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the cost file");
}

/* ---- interning ---- */

static struct kept *find_kept(struct reader *r, const void *bytes, size_t len,
                              uint64_t hash)
{
    struct kept *k = r->file->kept[hash % KEPT_BUCKETS];
    while (k &&
           (k->hash != hash || k->len != len || (len && memcmp(k->bytes, bytes, len))))
        k = k->next;
    return k;
}

/* The one copy of these bytes; NULL: memory. */
static const void *keep(struct reader *r, const void *bytes, size_t len)
{
    uint64_t hash = topt_hash(bytes, len, len);
    struct kept *k = find_kept(r, bytes, len, hash);
    if (k)
        return k->bytes;
    void *copy = topt_arena_alloc(r->file->arena, len, 1);
    k = TOPT_NEW(r->file->arena, 1, struct kept);
    if (!copy || !k) {
        no_memory(r->err);
        return NULL;
    }
    if (len)
        memcpy(copy, bytes, len);
    *k = (struct kept){hash, len, copy, NULL, r->file->kept[hash % KEPT_BUCKETS]};
    r->file->kept[hash % KEPT_BUCKETS] = k;
    return copy;
}

/* Tables are the same where shape, offsets and costs are; the parts are interned already, so
 * that their pointers say so. */
static const struct topt_table *keep_table(struct reader *r, struct topt_table t)
{
    struct {
        int32_t from, to;
        const void *first, *alt;
    } key;
    memset(&key, 0, sizeof key);
    key.from = t.from_classes;
    key.to = t.to_classes;
    key.first = t.first;
    key.alt = t.alt;
    const void *bytes = keep(r, &key, sizeof key);
    if (!bytes)
        return NULL;
    struct kept *k =
        find_kept(r, &key, sizeof key, topt_hash(&key, sizeof key, sizeof key));
    if (!k->table) {
        struct topt_table *copy = TOPT_NEW(r->file->arena, 1, struct topt_table);
        if (!copy) {
            no_memory(r->err);
            return NULL;
        }
        *copy = t;
        k->table = copy;
    }
    return k->table;
}

/* ---- costs ---- */

static int read_number(const json_t *v, const char *place, const char *what, int64_t *ret,
                       struct topt_error *err)
{
    if (!json_is_integer(v))
        return topt_fail(err, TOPT_ERR_INVAL, "%s: %s must be a whole number", place,
                         what);
    *ret = json_integer_value(v);
    if (*ret < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "%s: %s is negative", place, what);
    return 0;
}

static int read_cost(const json_t *v, const char *place, struct topt_cost *ret,
                     struct topt_error *err)
{
    if (!json_is_array(v) || json_array_size(v) != 2)
        return topt_fail(err, TOPT_ERR_INVAL, "%s: a cost is [memory, time]", place);
    if (read_number(json_array_get(v, 0), place, "memory", &ret->memory, err))
        return -1;
    return read_number(json_array_get(v, 1), place, "time", &ret->time, err);
}

/* ---- operators ---- */

static int read_configs(struct reader *r, const json_t *configs, size_t op,
                        struct topt_search_op *ret)
{
    size_t n = json_array_size(configs);
    char place[PLACE];
    if (n == 0)
        return topt_fail(r->err, TOPT_ERR_INVAL, "ops[%zu].configs is empty", op);
    if (n > TOPT_SEARCH_MAX_ENTRIES)
        return topt_fail(r->err, TOPT_ERR_LIMIT,
                         "ops[%zu]: %zu configurations; at most %d", op, n,
                         TOPT_SEARCH_MAX_ENTRIES);
    struct topt_cost *c = malloc(n * sizeof *c);
    if (!c)
        return no_memory(r->err);
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        snprintf(place, sizeof place, "ops[%zu].configs[%zu]", op, i);
        rc = read_cost(json_array_get(configs, i), place, &c[i], r->err);
    }
    if (!rc) {
        ret->nconfigs = (int)n;
        ret->cost = keep(r, c, n * sizeof *c);
        rc = ret->cost ? 0 : -1;
    }
    free(c);
    return rc;
}

static int read_op(struct reader *r, const json_t *v, size_t i,
                   struct topt_search_op *ret)
{
    static const char *const fields[] = {"name", "configs", NULL};
    const json_t *configs;
    const char *name;
    char place[PLACE];
    snprintf(place, sizeof place, "ops[%zu]", i);
    if (topt_json_only(v, place, fields, r->err) ||
        topt_json_string(v, place, "name", &name, r->err) ||
        topt_json_array(v, place, "configs", &configs, r->err))
        return -1;
    if (!*name)
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s.name is empty", place);
    if (json_object_get(r->names, name))
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s: a second operator named '%.60s'",
                         place, name);
    if (json_object_set_new(r->names, name, json_integer((json_int_t)i)))
        return no_memory(r->err);
    ret->name = topt_arena_strdup(r->file->arena, name);
    if (!ret->name)
        return no_memory(r->err);
    return read_configs(r, configs, i, ret);
}

static int read_ops(struct reader *r, const json_t *ops)
{
    size_t n = json_array_size(ops);
    if (n > MAX_OPS)
        return topt_fail(r->err, TOPT_ERR_LIMIT, "%zu operators; at most %d", n, MAX_OPS);
    struct topt_search_op *op = TOPT_NEW(r->file->arena, n, struct topt_search_op);
    if (!op)
        return no_memory(r->err);
    for (size_t i = 0; i < n; i++)
        if (read_op(r, json_array_get(ops, i), i, &op[i]))
            return -1;
    r->file->problem.op = op;
    r->file->problem.nops = (int)n;
    return 0;
}

/* ---- edges ---- */

static int add_alternative(struct reader *r, struct topt_cost c)
{
    struct matrix *m = &r->m;
    if (m->nalts == INT32_MAX)
        return topt_fail(r->err, TOPT_ERR_LIMIT, "an edge with 2^31 alternatives");
    if (m->nalts == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 1024;
        struct topt_cost *alt = realloc(m->alt, cap * sizeof *alt);
        if (!alt)
            return no_memory(r->err);
        m->alt = alt;
        m->cap = cap;
    }
    m->alt[m->nalts++] = c;
    return 0;
}

static int read_entry(struct reader *r, const json_t *entry, const char *place)
{
    char at[PLACE + 24];
    size_t n = json_array_size(entry);
    if (!json_is_array(entry) || n == 0)
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "%s must be a list of at least one [memory, time]", place);
    for (size_t k = 0; k < n; k++) {
        struct topt_cost c;
        snprintf(at, sizeof at, "%s[%zu]", place, k);
        if (read_cost(json_array_get(entry, k), at, &c, r->err) || add_alternative(r, c))
            return -1;
    }
    return 0;
}

static int check_length(const json_t *list, int want, const char *place, const char *op,
                        struct topt_error *err)
{
    if (!json_is_array(list))
        return topt_fail(err, TOPT_ERR_INVAL, "%s must be an array", place);
    if (json_array_size(list) != (size_t)want)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s has %zu elements; '%.60s' has %d configurations", place,
                         json_array_size(list), op, want);
    return 0;
}

static int read_matrix(struct reader *r, const json_t *costs, size_t edge,
                       const struct topt_search_op *from, const struct topt_search_op *to)
{
    struct matrix *m = &r->m;
    char place[PLACE];
    snprintf(place, sizeof place, "edges[%zu].costs", edge);
    int64_t entries = (int64_t)from->nconfigs * to->nconfigs;
    if (check_length(costs, from->nconfigs, place, from->name, r->err))
        return -1;
    if (entries > TOPT_SEARCH_MAX_ENTRIES)
        return topt_fail(r->err, TOPT_ERR_LIMIT, "%s: %" PRId64 " entries; at most %d",
                         place, entries, TOPT_SEARCH_MAX_ENTRIES);
    free(m->first);
    m->rows = from->nconfigs;
    m->cols = to->nconfigs;
    m->nalts = 0;
    m->first = NULL;
    for (int i = 0; i < m->rows; i++) {
        const json_t *row = json_array_get(costs, (size_t)i);
        snprintf(place, sizeof place, "edges[%zu].costs[%d]", edge, i);
        if (check_length(row, m->cols, place, to->name, r->err))
            return -1;
        /* Only now is the size more than announced. */
        if (!m->first && !(m->first = calloc((size_t)entries + 1, sizeof *m->first)))
            return no_memory(r->err);
        for (int j = 0; j < m->cols; j++) {
            snprintf(place, sizeof place, "edges[%zu].costs[%d][%d]", edge, i, j);
            if (read_entry(r, json_array_get(row, (size_t)j), place))
                return -1;
            m->first[i * m->cols + j + 1] = (int32_t)m->nalts;
        }
    }
    return 0;
}

/* Rows or columns of the matrix as lines of cells, to find the equal ones. */
struct lines {
    const struct matrix *m;
    int n, ncells;          /* lines, and cells in each */
    int columns;            /* lines are columns */
    const int32_t *row_rep; /* for columns: the rows that stand for classes */
};

static int cell(const struct lines *l, int line, int c)
{
    return l->columns ? l->row_rep[c] * l->m->cols + line : line * l->m->cols + c;
}

static int cells_equal(const struct matrix *m, int x, int y)
{
    int32_t n = m->first[x + 1] - m->first[x];
    return n == m->first[y + 1] - m->first[y] &&
           !memcmp(m->alt + m->first[x], m->alt + m->first[y],
                   (size_t)n * sizeof *m->alt);
}

static int lines_equal(const struct lines *l, int x, int y)
{
    for (int c = 0; c < l->ncells; c++)
        if (!cells_equal(l->m, cell(l, x, c), cell(l, y, c)))
            return 0;
    return 1;
}

static uint64_t line_hash(const struct lines *l, int line)
{
    uint64_t h = 1;
    for (int c = 0; c < l->ncells; c++) {
        int x = cell(l, line, c);
        size_t n = (size_t)(l->m->first[x + 1] - l->m->first[x]);
        h = topt_hash(l->m->alt + l->m->first[x], n * sizeof *l->m->alt, h + n);
    }
    return h;
}

/* Number equal lines alike, by first occurrence; 'rep' gets the first line of each class.
 * Returns the number of classes, or -1 (memory). */
static int classify(const struct lines *l, int32_t *class_of, int32_t *rep)
{
    size_t cap = 16;
    while (cap < 2 * (size_t)l->n)
        cap *= 2;
    int32_t *slot = calloc(cap, sizeof *slot); /* class + 1 */
    uint64_t *hash = malloc(((size_t)l->n + 1) * sizeof *hash);
    int n = 0;
    for (int i = 0; slot && hash && i < l->n; i++) {
        uint64_t h = line_hash(l, i);
        size_t s = h & (cap - 1);
        while (slot[s] &&
               (hash[slot[s] - 1] != h || !lines_equal(l, rep[slot[s] - 1], i)))
            s = (s + 1) & (cap - 1);
        if (!slot[s]) {
            hash[n] = h;
            rep[n] = i;
            slot[s] = ++n;
        }
        class_of[i] = slot[s] - 1;
    }
    int good = slot && hash;
    free(slot);
    free(hash);
    return good ? n : -1;
}

/* The table over classes, from the entries of each class's first line. */
static const struct topt_table *
make_table(struct reader *r, int nrows, const int32_t *row, int ncols, const int32_t *col)
{
    const struct matrix *m = &r->m;
    size_t n = (size_t)nrows * (size_t)ncols, at = 0;
    int32_t *first = calloc(n + 1, sizeof *first);
    struct topt_cost *alt = malloc((m->nalts + 1) * sizeof *alt);
    const struct topt_table *t = NULL;
    if (!first || !alt) {
        no_memory(r->err);
        goto out;
    }
    for (int i = 0; i < nrows; i++)
        for (int j = 0; j < ncols; j++) {
            int x = row[i] * m->cols + col[j];
            int32_t start = first[at], len = m->first[x + 1] - m->first[x];
            memcpy(alt + start, m->alt + m->first[x], (size_t)len * sizeof *alt);
            first[++at] = start + len;
        }
    struct topt_table made = {nrows, ncols, keep(r, first, (n + 1) * sizeof *first),
                              keep(r, alt, (size_t)first[n] * sizeof *alt)};
    if (made.first && made.alt)
        t = keep_table(r, made);
out:
    free(first);
    free(alt);
    return t;
}

static int make_edge(struct reader *r, struct topt_search_edge *e)
{
    const struct matrix *m = &r->m;
    size_t nr = (size_t)m->rows, nc = (size_t)m->cols;
    int32_t *scratch = calloc(2 * (nr + nc), sizeof *scratch);
    int rc = -1;
    if (!scratch)
        return no_memory(r->err);
    int32_t *row_class = scratch, *row = scratch + nr, *col_class = row + nr,
            *col = col_class + nc;
    struct lines rows = {m, m->rows, m->cols, 0, NULL};
    int nrows = classify(&rows, row_class, row);
    struct lines cols = {m, m->cols, nrows, 1, row};
    int ncols = nrows < 0 ? -1 : classify(&cols, col_class, col);
    if (ncols < 0) {
        no_memory(r->err);
        goto out;
    }
    e->table = make_table(r, nrows, row, ncols, col);
    e->from_class = keep(r, row_class, nr * sizeof *row_class);
    e->to_class = keep(r, col_class, nc * sizeof *col_class);
    rc = e->table && e->from_class && e->to_class ? 0 : -1;
out:
    free(scratch);
    return rc;
}

static int read_end(struct reader *r, const json_t *v, const char *place, const char *key,
                    int *ret)
{
    const char *name;
    if (topt_json_string(v, place, key, &name, r->err))
        return -1;
    const json_t *op = json_object_get(r->names, name);
    if (!op)
        return topt_fail(r->err, TOPT_ERR_INVAL, "%s.%s: no operator is named '%.60s'",
                         place, key, name);
    *ret = (int)json_integer_value(op);
    return 0;
}

static int read_edge(struct reader *r, const json_t *v, size_t i,
                     struct topt_search_edge *e)
{
    static const char *const fields[] = {"from", "to", "costs", NULL};
    const struct topt_search_op *op = r->file->problem.op;
    const json_t *costs;
    char place[PLACE];
    snprintf(place, sizeof place, "edges[%zu]", i);
    if (topt_json_only(v, place, fields, r->err) ||
        read_end(r, v, place, "from", &e->from) || read_end(r, v, place, "to", &e->to) ||
        topt_json_array(v, place, "costs", &costs, r->err) ||
        read_matrix(r, costs, i, &op[e->from], &op[e->to]))
        return -1;
    return make_edge(r, e);
}

static int read_edges(struct reader *r, const json_t *edges)
{
    size_t n = json_array_size(edges);
    if (n > MAX_OPS)
        return topt_fail(r->err, TOPT_ERR_LIMIT, "%zu edges; at most %d", n, MAX_OPS);
    struct topt_search_edge *e = TOPT_NEW(r->file->arena, n, struct topt_search_edge);
    if (!e)
        return no_memory(r->err);
    for (size_t i = 0; i < n; i++)
        if (read_edge(r, json_array_get(edges, i), i, &e[i]))
            return -1;
    r->file->problem.edge = e;
    r->file->problem.nedges = (int)n;
    return topt_search_check(&r->file->problem, r->err);
}

static int read_document(struct reader *r, const json_t *doc)
{
    static const char *const fields[] = {"format", "ops", "edges", NULL};
    const json_t *ops, *edges;
    if (!json_is_object(doc))
        return topt_fail(r->err, TOPT_ERR_INVAL, "a cost file is a JSON object");
    if (topt_json_format(doc, "costs", r->err) ||
        topt_json_only(doc, "", fields, r->err) ||
        topt_json_array(doc, "", "ops", &ops, r->err) ||
        topt_json_array(doc, "", "edges", &edges, r->err) || read_ops(r, ops))
        return -1;
    return read_edges(r, edges);
}

int topt_costs_read(const char *text, size_t len, struct topt_costs_file **ret,
                    struct topt_error *err)
{
    struct topt_costs_file *file = calloc(1, sizeof *file);
    struct reader r = {.file = file, .err = err, .names = json_object()};
    json_t *doc = NULL;
    int rc = -1;
    *ret = NULL;
    if (file)
        file->arena = topt_arena_create(0);
    if (!file || !file->arena || !r.names) {
        no_memory(err);
        goto out;
    }
    doc = topt_json_parse(text, len, "the cost file", err);
    if (doc)
        rc = read_document(&r, doc);
out:
    json_decref(doc);
    json_decref(r.names);
    free(r.m.first);
    free(r.m.alt);
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

void topt_costs_destroy(struct topt_costs_file *f)
{
    if (!f)
        return;
    topt_arena_destroy(f->arena);
    free(f);
}

/* ---- writing ---- */

static void write_cost(struct topt_text *t, const char *before, struct topt_cost c)
{
    topt_text_add(t, "%s[%" PRId64 ",%" PRId64 "]", before, c.memory, c.time);
}

static int write_name(struct topt_text *t, const char *before, const char *name,
                      struct topt_error *err)
{
    json_t *v = name && *name ? json_string(name) : NULL;
    char *text = v ? topt_json_text(v, 0) : NULL;
    if (text)
        topt_text_add(t, "%s%s", before, text);
    else
        topt_fail(err, TOPT_ERR_INVAL,
                  "an operator has no name, or one that is not UTF-8");
    json_decref(v);
    free(text);
    return text ? 0 : -1;
}

static int write_op(struct topt_text *t, const struct topt_search_op *op,
                    struct topt_error *err)
{
    if (op->nconfigs == 0)
        return topt_fail(err, TOPT_ERR_INVAL, "operator '%.60s' has no configuration",
                         op->name ? op->name : "");
    if (write_name(t, "{\"name\":", op->name, err))
        return -1;
    topt_text_add(t, ",\"configs\":[");
    for (int i = 0; i < op->nconfigs; i++)
        write_cost(t, i ? "," : "", op->cost[i]);
    topt_text_add(t, "]}");
    return 0;
}

static int write_entry(struct topt_text *t, const struct topt_search_edge *e, int edge,
                       int i, int j, struct topt_error *err)
{
    int64_t at = (int64_t)e->from_class[i] * e->table->to_classes + e->to_class[j];
    int32_t first = e->table->first[at], end = e->table->first[at + 1];
    if (first == end)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "edge %d: configurations %d and %d have no alternative", edge, i,
                         j);
    topt_text_add(t, j ? ",[" : "[");
    for (int32_t k = first; k < end; k++)
        write_cost(t, k > first ? "," : "", e->table->alt[k]);
    topt_text_add(t, "]");
    return 0;
}

static int write_edge(struct topt_text *t, const struct topt_search_problem *p, int edge,
                      struct topt_error *err)
{
    const struct topt_search_edge *e = &p->edge[edge];
    if (write_name(t, "{\"from\":", p->op[e->from].name, err) ||
        write_name(t, ",\"to\":", p->op[e->to].name, err))
        return -1;
    topt_text_add(t, ",\"costs\":[");
    for (int i = 0; i < p->op[e->from].nconfigs; i++) {
        topt_text_add(t, i ? ",[" : "[");
        for (int j = 0; j < p->op[e->to].nconfigs; j++)
            if (write_entry(t, e, edge, i, j, err))
                return -1;
        topt_text_add(t, "]");
    }
    topt_text_add(t, "]}");
    return 0;
}

static int check_names(const struct topt_search_problem *p, struct topt_error *err)
{
    json_t *seen = json_object();
    int rc = seen ? 0 : no_memory(err);
    for (int i = 0; i < p->nops && !rc; i++) {
        const char *name = p->op[i].name;
        if (!name)
            rc = topt_fail(err, TOPT_ERR_INVAL, "operator %d has no name", i);
        else if (json_object_get(seen, name))
            rc = topt_fail(err, TOPT_ERR_INVAL, "two operators are named '%.60s'", name);
        else if (json_object_set_new(seen, name, json_true()))
            rc = topt_fail(err, TOPT_ERR_INVAL, "operator %d: its name is not UTF-8", i);
    }
    json_decref(seen);
    return rc;
}

int topt_costs_write(const struct topt_search_problem *problem, char **ret_text,
                     struct topt_error *err)
{
    struct topt_text t = {0};
    *ret_text = NULL;
    if (topt_search_check(problem, err) || check_names(problem, err))
        return -1;
    topt_text_add(&t, "{\"format\":\"topt-costs/1\",\n\"ops\":[");
    for (int i = 0; i < problem->nops; i++) {
        topt_text_add(&t, i ? ",\n" : "\n");
        if (write_op(&t, &problem->op[i], err))
            goto fail;
    }
    topt_text_add(&t, "],\n\"edges\":[");
    for (int i = 0; i < problem->nedges; i++) {
        topt_text_add(&t, i ? ",\n" : "\n");
        if (write_edge(&t, problem, i, err))
            goto fail;
    }
    topt_text_add(&t, "]}\n");
    if (t.oom) {
        no_memory(err);
        goto fail;
    }
    *ret_text = t.s;
    return 0;
fail:
    topt_text_fini(&t);
    return -1;
}
