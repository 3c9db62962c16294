/* costs_table.c - finding again what is equal in a cost file.
 *
 * A file gives each edge a full matrix over pairs of configurations.  Equal rows are one
 * class of the producer, equal columns (of the distinct rows) one class of the consumer:
 *
 *     matrix (configs x configs)  --rows-->  (classes x configs)  --columns-->  table
 *
 * Then what is equal is shared by pointer: tables, class maps, cost lists; a written and
 * re-read problem is as small as the one it came from.  The order of alternatives inside
 * an entry is the file's, so that a witness's numbers mean the file's. */
#include "costs.h"
#include "topt_hash.h"

#include <stdlib.h>
#include <string.h>

/* Something that was interned: equal bytes are kept once. */
struct kept {
    uint64_t hash;
    size_t len;
    const void *bytes;
    const struct topt_table *table;
    struct kept *next;
};

int topt_costs_nomem(struct topt_error *err)
{
    return topt_nomem(err, "the cost file");
}

int topt_costs_store_init(struct costs_store *s, struct topt_arena *arena,
                          struct topt_error *err)
{
    *s = (struct costs_store){.arena = arena, .err = err, .nbuckets = 1024};
    s->bucket = calloc(s->nbuckets, sizeof(*s->bucket));
    return s->bucket ? 0 : topt_costs_nomem(err);
}

void topt_costs_store_fini(struct costs_store *s)
{
    free(s->bucket);
    s->bucket = NULL;
}

/* ---- interning --------------------------------------------------------------------- */

static struct kept *find_kept(const struct costs_store *s, const void *bytes, size_t len,
                              uint64_t hash)
{
    struct kept *k = s->bucket[hash % s->nbuckets];
    while (k &&
           (k->hash != hash || k->len != len || (len && memcmp(k->bytes, bytes, len))))
        k = k->next;
    return k;
}

static int more_buckets(struct costs_store *s)
{
    size_t n = 2 * s->nbuckets;
    struct kept **bucket = calloc(n, sizeof(*bucket));
    if (!bucket)
        return topt_costs_nomem(s->err);
    for (size_t i = 0; i < s->nbuckets; i++)
        for (struct kept *k = s->bucket[i], *next; k; k = next) {
            next = k->next;
            k->next = bucket[k->hash % n];
            bucket[k->hash % n] = k;
        }
    free(s->bucket);
    s->bucket = bucket;
    s->nbuckets = n;
    return 0;
}

const void *topt_costs_keep(struct costs_store *s, const void *bytes, size_t len)
{
    uint64_t hash = topt_hash(bytes, len, len);
    struct kept *k = find_kept(s, bytes, len, hash);
    if (k)
        return k->bytes;
    if (s->nkept >= s->nbuckets && more_buckets(s))
        return NULL;
    void *copy = topt_arena_alloc(s->arena, len, 1);
    k = TOPT_NEW(s->arena, 1, struct kept);
    if (!copy || !k) {
        topt_costs_nomem(s->err);
        return NULL;
    }
    if (len)
        memcpy(copy, bytes, len);
    *k = (struct kept){hash, len, copy, NULL, s->bucket[hash % s->nbuckets]};
    s->bucket[hash % s->nbuckets] = k;
    s->nkept++;
    return copy;
}

/* Tables are the same where shape, offsets and costs are; the parts are interned already,
 * so that their pointers say so. */
static const struct topt_table *keep_table(struct costs_store *s, struct topt_table t)
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
    const void *bytes = topt_costs_keep(s, &key, sizeof key);
    if (!bytes)
        return NULL;
    struct kept *k =
        find_kept(s, &key, sizeof key, topt_hash(&key, sizeof key, sizeof key));
    if (!k->table) {
        struct topt_table *copy = TOPT_NEW(s->arena, 1, struct topt_table);
        if (!copy) {
            topt_costs_nomem(s->err);
            return NULL;
        }
        *copy = t;
        k->table = copy;
    }
    return k->table;
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

static int cellsequal(const struct matrix *m, int x, int y)
{
    int32_t n = m->first[x + 1] - m->first[x];
    return n == m->first[y + 1] - m->first[y] &&
           !memcmp(m->alt + m->first[x], m->alt + m->first[y],
                   (size_t)n * sizeof *m->alt);
}

static int linesequal(const struct lines *l, int x, int y)
{
    for (int c = 0; c < l->ncells; c++)
        if (!cellsequal(l->m, cell(l, x, c), cell(l, y, c)))
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
static int classify(const struct lines *l, int32_t *classof, int32_t *rep)
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
        while (slot[s] && (hash[slot[s] - 1] != h || !linesequal(l, rep[slot[s] - 1], i)))
            s = (s + 1) & (cap - 1);
        if (!slot[s]) {
            hash[n] = h;
            rep[n] = i;
            slot[s] = ++n;
        }
        classof[i] = slot[s] - 1;
    }
    int good = slot && hash;
    free(slot);
    free(hash);
    return good ? n : -1;
}

/* The table over classes, from the entries of each class's first line. */
static const struct topt_table *make_table(struct costs_store *s, const struct matrix *m,
                                           int nrows, const int32_t *row, int ncols,
                                           const int32_t *col)
{
    size_t n = (size_t)nrows * (size_t)ncols, at = 0;
    int32_t *first = calloc(n + 1, sizeof *first);
    struct topt_cost *alt = malloc((m->nalts + 1) * sizeof *alt);
    const struct topt_table *t = NULL;
    if (!first || !alt) {
        topt_costs_nomem(s->err);
        goto out;
    }
    for (int i = 0; i < nrows; i++)
        for (int j = 0; j < ncols; j++) {
            int x = row[i] * m->cols + col[j];
            int32_t start = first[at], len = m->first[x + 1] - m->first[x];
            memcpy(alt + start, m->alt + m->first[x], (size_t)len * sizeof *alt);
            first[++at] = start + len;
        }
    struct topt_table made = {nrows, ncols,
                              topt_costs_keep(s, first, (n + 1) * sizeof *first),
                              topt_costs_keep(s, alt, (size_t)first[n] * sizeof *alt)};
    if (made.first && made.alt)
        t = keep_table(s, made);
out:
    free(first);
    free(alt);
    return t;
}

int topt_costs_table(struct costs_store *s, const struct matrix *m,
                     struct topt_search_edge *e)
{
    size_t nr = (size_t)m->rows, nc = (size_t)m->cols;
    int32_t *scratch = calloc(2 * (nr + nc), sizeof *scratch);
    int rc = -1;
    if (!scratch)
        return topt_costs_nomem(s->err);
    int32_t *row_class = scratch, *row = scratch + nr, *col_class = row + nr,
            *col = col_class + nc;
    struct lines rows = {m, m->rows, m->cols, 0, NULL};
    int nrows = classify(&rows, row_class, row);
    struct lines cols = {m, m->cols, nrows, 1, row};
    int ncols = nrows < 0 ? -1 : classify(&cols, col_class, col);
    if (ncols < 0) {
        topt_costs_nomem(s->err);
        goto out;
    }
    e->table = make_table(s, m, nrows, row, ncols, col);
    e->from_class = topt_costs_keep(s, row_class, nr * sizeof *row_class);
    e->to_class = topt_costs_keep(s, col_class, nc * sizeof *col_class);
    rc = e->table && e->from_class && e->to_class ? 0 : -1;
out:
    free(scratch);
    return rc;
}
