/* safetensors.c - do the weights that lie beside a config belong to the model made of it?
 *
 * A safetensors file starts with 8 bytes of length (little endian) and as much JSON: for each
 * tensor its type, shape and place.  Weights themselves are never read.  Names differ from
 * operators', and operators fuse what is stored apart, so it is the number of parameters that
 * must be the same; where it is not, the tensors that make the difference are looked for. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model_impl.h"
#include "topt_json.h"
#include "topt_text.h"

enum { MAX_HEADER = 100000000, MAX_TENSORS = 1 << 20 };

/* Tensors whose names differ in numbers alone. */
struct group {
    char *pattern;
    int64_t elements;
    int tensors;
};

struct weights {
    struct group *group;
    int ngroups;
    int64_t elements;
    int tensors;
};

/* ---- one file -------------------------------------------------------------------------- */

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

/* "model.layers.17.mlp.weight" -> "model.layers.N.mlp.weight" */
static char *pattern_of(const char *name)
{
    char *p = calloc(strlen(name) + 1, 1);
    for (size_t n = 0; p && *name;) {
        int digit = *name >= '0' && *name <= '9';
        p[n++] = digit ? 'N' : *name;
        do
            name++;
        while (digit && *name >= '0' && *name <= '9');
    }
    return p;
}

/* Buffers that are saved with weights and are none. */
static int is_buffer(const char *pattern)
{
    static const char *const ends[] = {".attn.bias",   ".attn.masked_bias", ".inv_freq",
                                       "position_ids", ".attention.bias",   NULL};
    size_t n = strlen(pattern);
    for (int i = 0; ends[i]; i++) {
        size_t m = strlen(ends[i]);
        if (n >= m && !strcmp(pattern + n - m, ends[i]))
            return 1;
    }
    return 0;
}

static int add_tensor(struct weights *w, const char *name, int64_t elements,
                      struct topt_error *err)
{
    char *pattern = pattern_of(name);
    int i = 0;
    while (pattern && i < w->ngroups && strcmp(w->group[i].pattern, pattern))
        i++;
    if (pattern && i == w->ngroups) {
        struct group *more = realloc(w->group, ((size_t)i + 1) * sizeof *more);
        if (more) {
            w->group = more;
            w->group[w->ngroups++] = (struct group){pattern, 0, 0};
            pattern = NULL;
        }
    }
    int known = i < w->ngroups;
    free(pattern);
    if (!known)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the names of tensors");
    w->group[i].elements += elements;
    w->group[i].tensors++;
    if (!is_buffer(w->group[i].pattern))
        w->elements += elements;
    w->tensors++;
    return 0;
}

struct span {
    int64_t from, to;
};

/* One entry of a header; its place into 'ret'. */
static int read_tensor(struct weights *w, const char *name, const json_t *t,
                       struct span *ret, struct topt_error *err)
{
    const char *type = NULL;
    const json_t *shape = json_object_get(t, "shape"),
                 *at = json_object_get(t, "data_offsets");
    double elements = 1;
    if (topt_json_string(t, name, "dtype", &type, err))
        return -1;
    for (size_t i = 0; i < json_array_size(shape); i++) {
        const json_t *d = json_array_get(shape, i);
        elements *= json_is_integer(d) ? (double)json_integer_value(d) : -1;
    }
    if (!json_is_array(shape) || !(elements >= 0 && elements < 0x1p46))
        return topt_fail(err, TOPT_ERR_INVAL, "tensor '%.60s' has no shape below 2^46",
                         name);
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
    return add_tensor(w, name, (int64_t)elements, err);
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
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for a header");
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
    if (len > MAX_HEADER || (int64_t)len + 8 > (int64_t)st.st_size)
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

/* ---- a directory ----------------------------------------------------------------------- */

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

/* The index names every tensor; where it says other than the files, one of them is not of this
 * model.  Files that are not there leave what the index says of them all. */
static int check_index(const char *dir, const struct weights *w, struct topt_error *err)
{
    char path[4096 + 64];
    snprintf(path, sizeof path, "%.4000s/model.safetensors.index.json", dir);
    struct stat st;
    if (stat(path, &st))
        return 0;
    json_t *doc = topt_json_load(path, MAX_HEADER, err);
    const json_t *map = json_object_get(doc, "weight_map");
    int rc = 0;
    if (doc && !json_is_object(map))
        rc = topt_fail(err, TOPT_ERR_INVAL, "the index of weights has no weight_map");
    else if (doc && w->tensors && json_object_size(map) != (size_t)w->tensors)
        rc = topt_fail(err, TOPT_ERR_INVAL,
                       "the index of weights names %zu tensors, the files have %d",
                       json_object_size(map), w->tensors);
    json_decref(doc);
    return doc ? rc : -1;
}

/* Names the tensors whose elements are the difference, where one group's are. */
static int compare(const struct weights *w, const struct topt_model *m,
                   struct topt_error *err)
{
    struct topt_model_stats stats;
    topt_model_stats(m, &stats);
    int64_t more = w->elements - stats.parameters;
    const char *why = "";
    for (int i = 0; i < w->ngroups && more; i++) {
        if (is_buffer(w->group[i].pattern) || w->group[i].elements != more)
            continue;
        if (!strcmp(w->group[i].pattern, "lm_head.weight") ||
            !strcmp(w->group[i].pattern, "proj_out.weight"))
            return 0; /* the tied table, stored twice */
        why = w->group[i].pattern;
    }
    if (!more)
        return 0;
    return topt_fail(
        err, TOPT_ERR_INVAL,
        "the weights beside it have %lld parameters, the model of this config "
        "%lld, %lld %s%s%.80s",
        (long long)w->elements, (long long)stats.parameters,
        (long long)(more < 0 ? -more : more), more < 0 ? "more" : "fewer",
        *why ? ": as many as are in " : "", why);
}

int topt_safetensors_check(const char *dir, const struct topt_model *m,
                           struct topt_error *err)
{
    struct weights w = {0};
    int rc = read_directory(&w, dir, err);
    rc = rc ? rc : check_index(dir, &w, err);
    rc = rc || !w.tensors ? rc : compare(&w, m, err);
    for (int i = 0; i < w.ngroups; i++)
        free(w.group[i].pattern);
    free(w.group);
    return rc;
}
