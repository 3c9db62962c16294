/* safetensors.c - do the weights that lie beside a config belong to the model made of
 * it?
 *
 * A safetensors file starts with 8 bytes of length (little endian) and as much JSON:
 * for each tensor its type, shape and place.  Weights themselves are never read.
 * Where the names of the family's tensors are known (hf_names.c), each must be there
 * in its shape and no other may be; where only an index lies there, names alone are
 * compared.  Of other families the number of parameters must be the same. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model_impl.h"
#include "topt_json.h"
#include "topt_text.h"
#include "weights.h"

enum { MAX_HEADER = 32 << 20, MAX_TENSORS = 1 << 20 };

/* Tensors by name; the arena holds the names. */
struct weights {
    struct topt_arena *arena;
    struct topt_weight *at;
    int n, cap;
};

/* ---- one file ---------------------------------------------------------------------- */

static int type_bytes(const char *type)
{
    static const struct {
        const char *name;
        int bytes;
    } known[] = {{"F64", 8}, {"I64", 8},     {"U64", 8},     {"F32", 4}, {"I32", 4},
                 {"U32", 4}, {"BF16", 2},    {"F16", 2},     {"I16", 2}, {"U16", 2},
                 {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"U8", 1},  {"BOOL", 1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, type))
            return known[i].bytes;
    return 0;
}

static int add_tensor(struct weights *w, const struct topt_weight *t,
                      struct topt_error *err)
{
    if (w->n == w->cap) {
        int cap = w->cap ? 2 * w->cap : 64;
        struct topt_weight *more = realloc(w->at, (size_t)cap * sizeof *more);
        if (!more)
            return topt_nomem(err, "the names of tensors");
        w->at = more;
        w->cap = cap;
    }
    struct topt_weight copy = *t;
    copy.name = topt_arena_strdup(w->arena, t->name);
    if (!copy.name)
        return topt_nomem(err, "the names of tensors");
    w->at[w->n++] = copy;
    return 0;
}

static double elements_of(const struct topt_weight *t)
{
    double n = t->ndim < 0 ? 0 : 1;
    for (int i = 0; i < t->ndim; i++)
        n *= (double)t->dim[i];
    return n;
}

/* Dimensions of 1 say nothing. */
static int read_shape(const char *name, const json_t *shape, struct topt_weight *ret,
                      struct topt_error *err)
{
    *ret = (struct topt_weight){.name = name};
    for (size_t i = 0; i < json_array_size(shape); i++) {
        const json_t *d = json_array_get(shape, i);
        int64_t n = json_is_integer(d) ? json_integer_value(d) : -1;
        if (n < 0 || n >= (int64_t)1 << 46 || (n != 1 && ret->ndim == TOPT_WEIGHT_RANK))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "tensor '%.60s' has no shape below 2^46", name);
        if (n != 1)
            ret->dim[ret->ndim++] = n;
    }
    return json_is_array(shape) && elements_of(ret) < 0x1p46
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "tensor '%.60s' has no shape below 2^46",
                           name);
}

struct span {
    int64_t from, to;
};

/* One entry of a header; its place into 'ret'. */
static int read_tensor(struct weights *w, const char *name, const json_t *t,
                       struct span *ret, struct topt_error *err)
{
    const char *type = NULL;
    const json_t *at = json_object_get(t, "data_offsets");
    struct topt_weight tensor;
    if (topt_json_string(t, name, "dtype", &type, err) ||
        read_shape(name, json_object_get(t, "shape"), &tensor, err))
        return -1;
    double elements = elements_of(&tensor);
    if (json_array_size(at) != 2 || !json_is_integer(json_array_get(at, 0)) ||
        !json_is_integer(json_array_get(at, 1)))
        return topt_fail(err, TOPT_ERR_INVAL, "tensor '%.60s' has no two data_offsets",
                         name);
    *ret = (struct span){json_integer_value(json_array_get(at, 0)),
                         json_integer_value(json_array_get(at, 1))};
    int bytes = type_bytes(type);
    if (!bytes)
        return topt_fail(err, TOPT_ERR_INVAL, "tensor '%.60s' has the unknown type %.20s",
                         name, type);
    if (ret->from < 0 || ret->to < ret->from ||
        (double)(ret->to - ret->from) < elements * bytes ||
        (double)(ret->to - ret->from) > elements * bytes)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "tensor '%.60s' has %.0f elements and another number of bytes",
                         name, elements);
    return add_tensor(w, &tensor, err);
}

static int by_place(const void *a, const void *b)
{
    const struct span *p = a, *q = b;
    return p->from < q->from   ? -1
           : p->from > q->from ? 1
           : p->to < q->to     ? -1
                               : p->to > q->to;
}

/* Tensors fill the file: no byte is in two or in none. */
static int check_places(struct span *span, int n, int64_t bytes, struct topt_error *err)
{
    int64_t at = 0;
    qsort(span, (size_t)n, sizeof *span, by_place);
    for (int i = 0; i < n; i++) {
        if (span[i].from != at)
            return topt_fail(err, TOPT_ERR_INVAL, "bytes %lld to %lld are in %s",
                             (long long)at, (long long)span[i].from,
                             span[i].from < at ? "two tensors" : "no tensor");
        at = span[i].to;
    }
    return at == bytes ? 0
                       : topt_fail(err, TOPT_ERR_INVAL,
                                   "its tensors have %lld bytes, the file %lld",
                                   (long long)at, (long long)bytes);
}

static int read_entries(struct weights *w, const json_t *doc, int64_t bytes,
                        struct topt_error *err)
{
    const char *name;
    json_t *t;
    int n = 0, rc = 0;
    struct span *span = calloc(json_object_size(doc) + 1, sizeof *span);
    if (!span)
        return topt_nomem(err, "a header");
    if (json_object_size(doc) > MAX_TENSORS)
        rc = topt_fail(err, TOPT_ERR_LIMIT, "more than %d tensors", MAX_TENSORS);
    json_object_foreach((json_t *)doc, name, t) if (!rc && strcmp(name, "__metadata__"))
        rc = read_tensor(w, name, t, &span[n++], err);
    rc = rc ? rc : check_places(span, n, bytes, err);
    free(span);
    return rc;
}

/* The header's text, to be freed; the bytes behind it into 'ret'. */
static char *read_header(const char *path, size_t *ret_len, int64_t *ret_bytes,
                         struct topt_error *err)
{
    unsigned char head[8];
    struct stat st;
    uint64_t len = 0;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) || fread(head, 1, 8, f) != 8) {
        if (f)
            fclose(f);
        topt_fail(err, TOPT_ERR_INVAL, "its first 8 bytes, a length, can't be read");
        return NULL;
    }
    for (int i = 7; i >= 0; i--)
        len = len << 8 | head[i];
    char *text = NULL;
    if (len > MAX_HEADER && len <= (uint64_t)st.st_size)
        topt_fail(err, TOPT_ERR_LIMIT, "its header has %llu bytes, more than %d",
                  (unsigned long long)len, MAX_HEADER);
    else if (len > MAX_HEADER || (int64_t)len + 8 > (int64_t)st.st_size)
        topt_fail(err, TOPT_ERR_INVAL, "a header of %llu bytes in a file of %lld",
                  (unsigned long long)len, (long long)st.st_size);
    else if (!(text = malloc(len + 1)) || fread(text, 1, len, f) != len)
        topt_fail(err, TOPT_ERR_IO, "its header can't be read");
    else {
        text[len] = '\0';
        *ret_len = len;
        *ret_bytes = (int64_t)st.st_size - 8 - (int64_t)len;
        fclose(f);
        return text;
    }
    free(text);
    fclose(f);
    return NULL;
}

static int read_file(struct weights *w, const char *dir, const char *leaf,
                     struct topt_error *err)
{
    char path[4096 + 300];
    size_t len;
    int64_t bytes;
    snprintf(path, sizeof path, "%.4000s/%.255s", dir, leaf);
    char *text = read_header(path, &len, &bytes, err);
    json_t *doc = text ? topt_json_parse(text, len, "its header", err) : NULL;
    int rc = doc ? read_entries(w, doc, bytes, err) : -1;
    json_decref(doc);
    free(text);
    return rc ? topt_wrap(err, "'%.100s'", leaf) : 0;
}

/* ---- a directory ------------------------------------------------------------------- */

static int is_weights(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 12 && !strcmp(e->d_name + n - 12, ".safetensors");
}

/* Every file that ends in .safetensors. */
static int read_directory(struct weights *w, const char *dir, struct topt_error *err)
{
    struct dirent **entry;
    int n = scandir(dir, &entry, is_weights, alphasort), rc = 0;
    for (int i = 0; i < n; i++) {
        rc = rc ? rc : read_file(w, dir, entry[i]->d_name, err);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    return rc;
}

/* The index names every tensor; where it says other than the files, one of them is not
 * of this model.  Where there are no files its names are what there is. */
static int read_index(const char *dir, struct weights *w, struct topt_error *err)
{
    char path[4096 + 64];
    snprintf(path, sizeof path, "%.4000s/model.safetensors.index.json", dir);
    struct stat st;
    if (stat(path, &st))
        return 0;
    json_t *doc = topt_json_load(path, MAX_HEADER, err);
    const json_t *map = json_object_get(doc, "weight_map");
    const char *name;
    json_t *file;
    int rc = 0, alone = w->n == 0;
    if (doc && !json_is_object(map))
        rc = topt_fail(err, TOPT_ERR_INVAL, "the index of weights has no weight_map");
    else if (doc && json_object_size(map) > MAX_TENSORS)
        rc = topt_fail(err, TOPT_ERR_LIMIT, "more than %d tensors", MAX_TENSORS);
    else if (doc && !alone && json_object_size(map) != (size_t)w->n)
        rc = topt_fail(err, TOPT_ERR_INVAL,
                       "the index of weights names %zu tensors, the files have %d",
                       json_object_size(map), w->n);
    if (alone)
        json_object_foreach((json_t *)map, name, file) rc =
            rc ? rc : add_tensor(w, &(struct topt_weight){.name = name, .ndim = -1}, err);
    json_decref(doc);
    return doc ? rc : -1;
}

/* ---- against the model ------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct topt_weight *p = a, *q = b;
    return strcmp(p->name, q->name);
}

static int starts_with(const char *s, const char *start)
{
    return !strncmp(s, start, strlen(start));
}

/* Of a checkpoint of several towers the language model's tensors alone:
 * "language_model." is before their names, or behind the first part of them. */
static void keep_own(struct weights *w)
{
    static const char inner[] = "language_model.", behind[] = "model.language_model.";
    int nested = 0, n = 0;
    for (int i = 0; i < w->n; i++)
        nested |= starts_with(w->at[i].name, inner) || starts_with(w->at[i].name, behind);
    for (int i = 0; i < w->n && nested; i++) {
        struct topt_weight t = w->at[i];
        int own = starts_with(t.name, "lm_head.");
        if (starts_with(t.name, inner) || starts_with(t.name, behind)) {
            t.name += starts_with(t.name, inner) ? sizeof inner - 1 : sizeof behind - 1;
            own = 1;
        }
        if (own)
            w->at[n++] = t;
    }
    w->n = nested ? n : w->n;
}

static int is_in(const struct weights *sorted, const char *name)
{
    struct topt_weight key = {.name = name};
    return bsearch(&key, sorted->at, (size_t)sorted->n, sizeof key, by_name) != NULL;
}

/* Where 'base' before a name gives one of the model's, it was left out: a bare model's
 * are. */
static int add_base(struct weights *w, const char *base, const struct weights *want,
                    struct topt_error *err)
{
    for (int i = 0; i < w->n && *base; i++) {
        size_t size = strlen(base) + strlen(w->at[i].name) + 1;
        char *full = TOPT_NEW(w->arena, size, char);
        if (!full)
            return topt_nomem(err, "a name");
        snprintf(full, size, "%s%s", base, w->at[i].name);
        if (!is_in(want, w->at[i].name) && is_in(want, full))
            w->at[i].name = full;
    }
    return 0;
}

struct expecting {
    struct weights *w;
    double elements;
    struct topt_error *err;
};

/* As it is compared: without dimensions of 1. */
static int expect(void *ctx, const struct topt_weight *t)
{
    struct expecting *x = ctx;
    struct topt_weight lean = {.name = t->name};
    x->elements += elements_of(t);
    for (int i = 0; i < t->ndim; i++)
        if (t->dim[i] != 1)
            lean.dim[lean.ndim++] = t->dim[i];
    return add_tensor(x->w, &lean, x->err);
}

/* Parts of one tensor, sorted beside each other, become it. */
static void join_parts(struct weights *w)
{
    int n = 0;
    for (int i = 0; i < w->n; i++)
        if (n && !strcmp(w->at[n - 1].name, w->at[i].name))
            w->at[n - 1].dim[0] += w->at[i].dim[0];
        else
            w->at[n++] = w->at[i];
    w->n = n;
}

static int same_shape(const struct topt_weight *a, const struct topt_weight *b)
{
    int same = a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->dim[i] == b->dim[i];
    return same || a->ndim < 0 || b->ndim < 0;
}

/* How many differ in which way, and the first of each. */
struct difference {
    int missing, unexpected, reshaped;
    const struct topt_weight *first_missing, *first_unexpected, *first[2];
};

static void note_first(int *count, const struct topt_weight **first,
                       const struct topt_weight *t)
{
    if (!(*count)++)
        *first = t;
}

/* Both are sorted by name. */
static void difference_of(const struct topt_model *m, const struct weights *have,
                          const struct weights *want, struct difference *ret)
{
    *ret = (struct difference){0};
    for (int i = 0, j = 0; i < have->n || j < want->n;) {
        int order = i == have->n   ? 1
                    : j == want->n ? -1
                                   : strcmp(have->at[i].name, want->at[j].name);
        if (order > 0) {
            note_first(&ret->missing, &ret->first_missing, &want->at[j++]);
        } else if (order < 0) {
            if (!topt_weights_may_be_there(m, have->at[i].name))
                note_first(&ret->unexpected, &ret->first_unexpected, &have->at[i]);
            i++;
        } else {
            if (!same_shape(&have->at[i], &want->at[j]) && !ret->reshaped++) {
                ret->first[0] = &have->at[i];
                ret->first[1] = &want->at[j];
            }
            i++, j++;
        }
    }
}

static void show_shape(struct topt_text *t, const struct topt_weight *w)
{
    for (int i = 0; i < w->ndim; i++)
        topt_text_add(t, "%s%lld", i ? ", " : "[", (long long)w->dim[i]);
    topt_text_add(t, "%s", w->ndim ? "]" : "one number");
}

static int refuse(const struct difference *d, struct topt_error *err)
{
    struct topt_text t = {0};
    if (d->missing)
        topt_text_add(&t, "; %d missing, '%s'%s", d->missing, d->first_missing->name,
                      d->missing > 1 ? " first" : "");
    if (d->unexpected)
        topt_text_add(&t, "; %d not of this model, '%s'%s", d->unexpected,
                      d->first_unexpected->name, d->unexpected > 1 ? " first" : "");
    if (d->reshaped) {
        topt_text_add(&t, "; %d of another shape, '%s' ", d->reshaped, d->first[0]->name);
        show_shape(&t, d->first[0]);
        topt_text_add(&t, " for ");
        show_shape(&t, d->first[1]);
    }
    topt_fail(err, TOPT_ERR_INVAL, "the tensors beside it are not the model's: %s",
              t.s ? t.s + 2 : "no memory to say why");
    topt_text_fini(&t);
    return -1;
}

/* By name; '*ret_known' says whether all names of the family are known. */
static int compare_names(struct weights *have, const struct topt_model *m,
                         int64_t parameters, int *ret_known, struct topt_error *err)
{
    struct weights want = {.arena = have->arena};
    struct expecting x = {&want, 0, err};
    struct difference d;
    int rc = topt_model_weights(m, expect, &x);
    *ret_known = !rc && x.elements > (double)parameters - 0.5 &&
                 x.elements < (double)parameters + 0.5;
    if (*ret_known) {
        qsort(want.at, (size_t)want.n, sizeof *want.at, by_name);
        join_parts(&want);
        keep_own(have);
        rc = add_base(have, topt_weights_base(m), &want, err);
    }
    if (*ret_known && !rc) {
        qsort(have->at, (size_t)have->n, sizeof *have->at, by_name);
        difference_of(m, have, &want, &d);
        if (d.missing || d.unexpected || d.reshaped)
            rc = refuse(&d, err);
    }
    free(want.at);
    return rc;
}

/* The names of the family's tensors are not known, so that nobody can say which of them
 * are not parameters of this model: told, not refused. */
static int compare_counts(const struct weights *w, struct topt_model *m,
                          int64_t parameters, struct topt_error *err)
{
    double elements = 0, wanted = (double)parameters;
    struct topt_text t = {0};
    for (int i = 0; i < w->n; i++) {
        if (w->at[i].ndim < 0)
            return 0; /* names alone */
        if (!topt_weights_may_be_there(m, w->at[i].name))
            elements += elements_of(&w->at[i]);
    }
    if (elements > wanted - 0.5 && elements < wanted + 0.5)
        return 0;
    topt_text_add(&t,
                  "%s%sthe weights beside it have %.0f numbers, the model of this "
                  "config %.0f",
                  m->note ? m->note : "", m->note ? "; " : "", elements, wanted);
    int rc = t.oom ? topt_nomem(err, "a note") : topt_model_note(m, t.s, err);
    topt_text_fini(&t);
    return rc;
}

static int compare(struct weights *w, struct topt_model *m, struct topt_error *err)
{
    struct topt_model_stats stats;
    int known;
    topt_model_stats(m, &stats);
    int rc = compare_names(w, m, stats.parameters, &known, err);
    return rc || known ? rc : compare_counts(w, m, stats.parameters, err);
}

int topt_safetensors_check(const char *dir, struct topt_model *m, struct topt_error *err)
{
    struct weights w = {.arena = topt_arena_create(0)};
    if (!w.arena)
        return topt_nomem(err, "the names of tensors");
    int rc = read_directory(&w, dir, err);
    rc = rc ? rc : read_index(dir, &w, err);
    rc = rc || !w.n ? rc : compare(&w, m, err);
    free(w.at);
    topt_arena_destroy(w.arena);
    return rc;
}
