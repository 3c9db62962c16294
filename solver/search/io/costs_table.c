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

#include <stdlib.h>
#include <string.h>

int topt_costs_nomem(struct topt_error *err)
{
    return topt_nomem(err, "the cost file");
}

const void *topt_costs_keep(struct costs_store *s, const void *bytes, size_t len)
{
    const void *kept = NULL;
    if (topt_intern(&s->bytes, bytes, len, &kept) < 0)
        topt_costs_nomem(s->err);
    return kept;
}

/* Rows or columns of the matrix as lines of cells, to find the equal ones. */
struct lines {
    const struct matrix *m;
    int n, ncells;          /* lines, and cells in each */
    int columns;            /* lines are columns */
    const int32_t *row_rep; /* for columns: the rows that stand for classes */
};

/* Write the cells of a line one after the other; '*ret': as many bytes. */
static void write_line(const struct lines *l, int line, char *to, size_t *ret)
{
    const struct matrix *m = l->m;
    size_t at = 0;
    for (int c = 0; c < l->ncells; c++) {
        int x = l->columns ? l->row_rep[c] * m->cols + line : line * m->cols + c;
        int32_t n = m->first[x + 1] - m->first[x];
        memcpy(to + at, &n, sizeof n);
        memcpy(to + at + sizeof n, m->alt + m->first[x], (size_t)n * sizeof *m->alt);
        at += sizeof n + (size_t)n * sizeof *m->alt;
    }
    *ret = at;
}

/* Number equal lines alike, by first occurrence; 'rep' gets the first line of each class.
 * Returns the number of classes, or -1 (memory). */
static int classify(const struct lines *l, int32_t *classof, int32_t *rep)
{
    struct topt_interning seen = {.arena = topt_arena_create(0)};
    char *line =
        malloc((size_t)l->ncells * sizeof(int32_t) + l->m->nalts * sizeof *l->m->alt + 1);
    int n = seen.arena && line ? 0 : -1;
    for (int i = 0; i < l->n && n >= 0; i++) {
        size_t len;
        write_line(l, i, line, &len);
        classof[i] = topt_intern(&seen, line, len, NULL);
        if (classof[i] == n)
            rep[n] = i;
        n = classof[i] < 0 ? -1 : seen.n;
    }
    topt_arena_destroy(seen.arena);
    free(line);
    return n;
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
        t = topt_costs_keep(s, &made, sizeof made);
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
