/* frontier_json.c - a frontier as JSON, as fast as it can be found.
 *
 * An answer can be larger than all the search needs: 41,815 strategies of 959 choices are
 * 250 MB.  It is written point after point, and of a point's line only what is behind the
 * first choice that differs from the point before:
 *
 *     "conv1":3,"conv2":7,"conv3":12,...       at[0], at[1], ...: where numbers begin
 *             ^         ^
 *     "conv1":3,"conv2":4,"conv3":12,...
 */
#include "frontier_json.h"

#include "topt_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 11 }; /* of a number, at most */

struct line {
    const struct topt_search_problem *p;
    char **key; /* by operator: its name as JSON, with what stands around it */
    char *text;
    size_t *at; /* by choice: where its number begins; then where the last one ends */
    int32_t *value;
    size_t n;         /* choices */
    const int *place; /* by edge: where its alternative is written */
    int32_t *next;    /* of the point at hand, in the order of the text */
};

/* ---- names ------------------------------------------------------------------------- */

static char *make_key(const char *name, int first)
{
    struct topt_text t = {0};
    json_t *v = json_string(name);
    char *text = v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;
    json_decref(v);
    if (text)
        topt_text_add(&t, "%s%s:", first ? "" : ",", text);
    free(text);
    return t.s;
}

static int make_keys(struct line *l, size_t *ret_bytes)
{
    int nops = l->p->nops;
    l->key = calloc((size_t)nops + 1, sizeof(*l->key));
    for (int i = 0; l->key && i < nops; i++) {
        if (!(l->key[i] = make_key(l->p->op[i].name, i == 0)))
            return -1;
        *ret_bytes += strlen(l->key[i]);
    }
    return l->key ? 0 : -1;
}

static void line_fini(struct line *l)
{
    for (int i = 0; l->key && i < l->p->nops; i++)
        free(l->key[i]);
    free(l->key);
    free(l->text);
    free(l->at);
    free(l->value);
    free(l->next);
}

/* ---- a line ------------------------------------------------------------------------ */

static const char before_edges[] = "},\"edges\":[";

static size_t put(char *text, size_t at, const char *what)
{
    size_t n = strlen(what);
    memcpy(text + at, what, n);
    return at + n;
}

static size_t put_int(char *text, size_t at, int32_t value)
{
    char digit[DIGITS];
    int n = 0;
    do
        digit[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n)
        text[at++] = digit[--n];
    return at;
}

/* Choices from number 'from' on. */
static void put_choices(struct line *l, size_t from)
{
    size_t nops = (size_t)l->p->nops, at = from ? l->at[from - 1] : 0;
    if (from)
        at = put_int(l->text, at, l->value[from - 1]);
    for (size_t i = from; i < l->n; i++) {
        at = put(l->text, at, i < nops ? l->key[i] : i == nops ? before_edges : ",");
        l->at[i] = at;
        at = put_int(l->text, at, l->value[i]);
    }
    if (l->n == nops)
        at = put(l->text, at, before_edges);
    l->at[l->n] = put(l->text, at, "]}");
}

static int line_init(struct line *l, const struct topt_search_problem *p,
                     const int *edges)
{
    size_t bytes = 0;
    *l = (struct line){.p = p, .n = (size_t)p->nops + (size_t)p->nedges, .place = edges};
    if (make_keys(l, &bytes))
        return -1;
    l->text = malloc(bytes + l->n * (DIGITS + 1) + sizeof before_edges + 8);
    l->at = calloc(l->n + 1, sizeof *l->at);
    l->value = calloc(l->n + 1, sizeof *l->value);
    l->next = calloc(l->n + 1, sizeof *l->next);
    if (!l->text || !l->at || !l->value || !l->next)
        return -1;
    put_choices(l, 0);
    return 0;
}

static void print_point(FILE *to, struct line *l, const struct topt_search_point *x)
{
    size_t nops = (size_t)l->p->nops, same = 0;
    memcpy(l->next, x->config, nops * sizeof *l->next);
    for (size_t i = 0; i < l->n - nops; i++)
        l->next[nops + (l->place ? (size_t)l->place[i] : i)] = x->alt[i];
    while (same < l->n && l->next[same] == l->value[same])
        same++;
    memcpy(l->value + same, l->next + same, (l->n - same) * sizeof *l->value);
    if (same < l->n)
        put_choices(l, same);
    fprintf(to, "{\"memory\":%" PRId64 ",\"time\":%" PRId64 ",\"configs\":{",
            x->cost.memory, x->cost.time);
    fwrite(l->text, 1, l->at[l->n], to);
}

/* ---- all of it --------------------------------------------------------------------- */

/* The names of operators decided by heuristic. */
static void print_decided(FILE *to, const struct line *l, const struct topt_frontier *f)
{
    fputs(",\"heuristic\":[", to);
    for (int i = 0; i < f->nheuristic; i++) {
        const char *key = l->key[f->heuristic[i]];
        key += *key == ',';
        fprintf(to, "%s%.*s", i ? "," : "", (int)strlen(key) - 1, key);
    }
    fputs("]", to);
}

static void print_frontier(FILE *to, struct line *l, struct topt_frontier_reader *reader,
                           const struct topt_frontier *f)
{
    const struct topt_search_stats *s = &f->stats;
    fprintf(to, "{\"exact\":%s,\"epsilon\":", f->exact ? "true" : "false");
    fprintf(to, isfinite(f->epsilon) ? "%.17g" : "null", f->epsilon);
    if (f->nheuristic)
        print_decided(to, l, f);
    fputs(",\"frontier\":[", to);
    for (int i = 0; i < f->npoints; i++) {
        fputs(i ? ",\n" : "\n", to);
        print_point(to, l, topt_frontier_read(reader, i));
    }
    fprintf(to,
            "],\"stats\":{\"products\":%" PRId64 ",\"points\":%" PRId64
            ",\"tables\":%" PRId64 ",\"shared\":%" PRId64 ",\"bands\":%" PRId64
            ",\"peak_bytes\":%" PRId64 ",\"max_frontier\":%d}}\n",
            s->products, s->points, s->tables, s->shared, s->bands, s->peak_bytes,
            s->max_frontier);
}

int topt_frontier_print(FILE *to, const struct topt_search_problem *problem,
                        const int *edges, const struct topt_frontier *f,
                        struct topt_error *err)
{
    struct line l;
    struct topt_frontier_reader *reader = topt_frontier_reader(f, NULL);
    int rc = line_init(&l, problem, edges) || !reader ? -1 : 0;
    if (rc)
        topt_fail(err, TOPT_ERR_NOMEM, "no memory to print the frontier");
    else
        print_frontier(to, &l, reader, f);
    topt_frontier_reader_destroy(reader);
    line_fini(&l);
    return rc;
}
