/* safetensors_read.c - what the headers of weights say: names, types, shapes and bytes of
 * tensors.
 *
 * A safetensors file starts with 8 bytes of length (little endian) and as much JSON:
 * for each tensor its type, shape and place.  Weights themselves are never read. */
#include "safetensors_read.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "topt_array.h"
#include "topt_json.h"
#include "topt_text.h"

enum { MAX_HEADER = 32 << 20, MAX_TENSORS = 1 << 20 };

/* ---- one file ---------------------------------------------------------------------- */

static const struct {
    const char *name;
    int bits;
} types[TOPT_WEIGHT_TYPES] = {
    {"F64", 64}, {"I64", 64}, {"U64", 64},    {"C64", 64},    {"F32", 32},
    {"I32", 32}, {"U32", 32}, {"BF16", 16},   {"F16", 16},    {"I16", 16},
    {"U16", 16}, {"I8", 8},   {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
    {"U8", 8},   {"BOOL", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
};

const char *topt_weight_type(int i)
{
    return i < TOPT_WEIGHT_TYPES ? types[i].name : NULL;
}

static int find_type(const char *name)
{
    for (int i = 0; types[i].name; i++)
        if (!strcmp(types[i].name, name))
            return i;
    return -1;
}

int topt_weights_add(struct topt_weights *w, const struct topt_weight *t,
                     struct topt_error *err)
{
    if (TOPT_ROOM(w->at, w->n, w->cap, 64))
        return topt_nomem(err, "the names of tensors");
    struct topt_weight copy = *t;
    copy.name = topt_arena_strdup(w->arena, t->name);
    if (!copy.name)
        return topt_nomem(err, "the names of tensors");
    w->at[w->n++] = copy;
    return 0;
}

double topt_weight_elements(const struct topt_weight *t)
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
    return json_is_array(shape) && topt_weight_elements(ret) < 0x1p46
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "tensor '%.60s' has no shape below 2^46",
                           name);
}

struct span {
    int64_t from, to;
};

/* One entry of a header; its place into 'ret'. */
static int read_tensor(struct topt_weights *w, const char *name, const json_t *t,
                       struct span *ret, struct topt_error *err)
{
    const char *type = NULL;
    const json_t *at = json_object_get(t, "data_offsets");
    struct topt_weight tensor;
    if (topt_json_string(t, name, "dtype", &type, err) ||
        read_shape(name, json_object_get(t, "shape"), &tensor, err))
        return -1;
    double elements = topt_weight_elements(&tensor);
    if (json_array_size(at) != 2 || !json_is_integer(json_array_get(at, 0)) ||
        !json_is_integer(json_array_get(at, 1)))
        return topt_fail(err, TOPT_ERR_INVAL, "tensor '%.60s' has no two data_offsets",
                         name);
    *ret = (struct span){json_integer_value(json_array_get(at, 0)),
                         json_integer_value(json_array_get(at, 1))};
    int kind = find_type(type);
    if (kind < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "tensor '%.60s' has the unknown type %.20s",
                         name, type);
    double bytes = elements * types[kind].bits / 8, have = (double)(ret->to - ret->from);
    if (ret->from < 0 || ret->to < ret->from || have < bytes || have >= bytes + 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "tensor '%.60s' has %.0f elements and another number of bytes",
                         name, elements);
    w->bytes[kind] += ret->to - ret->from;
    return topt_weights_add(w, &tensor, err);
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

static int read_entries(struct topt_weights *w, const json_t *doc, int64_t bytes,
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

/* What Git LFS leaves in a file's place begins with this. */
static int is_pointer(const unsigned char head[8])
{
    return !memcmp(head, "version ", 8);
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
    if (is_pointer(head)) {
        fclose(f);
        topt_fail(err, TOPT_ERR_INVAL,
                  "a pointer of Git LFS, not the file; get it by git lfs pull");
        return NULL;
    }
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

int topt_weights_read_file(const char *dir, const char *leaf, struct topt_weights *ret,
                           struct topt_error *err)
{
    char path[4096 + 300];
    size_t len;
    int64_t bytes;
    snprintf(path, sizeof path, "%.4000s/%.255s", dir, leaf);
    char *text = read_header(path, &len, &bytes, err);
    json_t *doc = text ? topt_json_parse(text, len, "its header", err) : NULL;
    int rc = doc ? read_entries(ret, doc, bytes, err) : -1;
    json_decref(doc);
    free(text);
    ret->files++;
    return rc ? topt_wrap(err, "'%.100s'", leaf) : 0;
}

/* ---- a directory ------------------------------------------------------------------- */

static int is_weights(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 12 && !strcmp(e->d_name + n - 12, ".safetensors");
}

static int is_there(const char *dir, const char *leaf)
{
    char path[4096 + 300];
    struct stat st;
    snprintf(path, sizeof path, "%.4000s/%.255s", dir, leaf);
    return !stat(path, &st);
}

static int refuse_missing(const char *leaf, int missing, int named,
                          struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOTFOUND,
                     "%d of %d files of weights %s missing, '%.100s'%s: the download is "
                     "not complete",
                     missing, named, missing > 1 ? "are" : "is", leaf,
                     missing > 1 ? " first" : "");
}

/* "model-00002-of-00004.safetensors" says how many there are; the others must be here,
 * too.  1: it says nothing. */
static int check_numbered(const char *dir, const char *leaf, struct topt_error *err)
{
    const char *of = strstr(leaf, "-of-");
    long n = of ? strtol(of + 4, NULL, 10) : 0;
    char other[300], first[300] = "";
    int missing = 0;
    enum { DIGITS = 5, MOST = 99999 };
    if (!of || of - leaf < DIGITS + 1 || n < 1 || n > MOST)
        return 1;
    for (long i = 1; i <= n; i++) {
        snprintf(other, sizeof other, "%.*s%05ld%s", (int)(of - leaf - DIGITS), leaf, i,
                 of);
        if (!is_there(dir, other) && !missing++)
            snprintf(first, sizeof first, "%s", other);
    }
    return missing ? refuse_missing(first, missing, (int)n, err) : 0;
}

static int is_pointer_file(const char *dir, const char *leaf)
{
    char path[4096 + 300];
    unsigned char head[8];
    snprintf(path, sizeof path, "%.4000s/%.255s", dir, leaf);
    FILE *f = fopen(path, "rb");
    int is = f && fread(head, 1, 8, f) == 8 && is_pointer(head);
    if (f)
        fclose(f);
    return is;
}

/* Every file that ends in .safetensors, but those that were not fetched. */
static int read_directory(struct topt_weights *w, const char *dir, struct topt_error *err)
{
    struct dirent **entry;
    int n = scandir(dir, &entry, is_weights, alphasort), rc = 0;
    for (int i = 0; i < n; i++) {
        if (!rc && (!i || strncmp(entry[i]->d_name, entry[i - 1]->d_name, 5)))
            rc = check_numbered(dir, entry[i]->d_name, err) < 0 ? -1 : 0;
        if (!rc && !is_pointer_file(dir, entry[i]->d_name))
            rc = topt_weights_read_file(dir, entry[i]->d_name, w, err);
    }
    for (int i = 0; i < n; i++)
        free(entry[i]);
    if (n >= 0)
        free(entry);
    return rc;
}

/* Are all files here that an index names?  Where none is, it stands alone. */
static int check_named(const char *dir, const json_t *map, struct topt_error *err)
{
    const char *name, *first = NULL;
    json_t *file, *seen = json_object();
    int missing = 0;
    json_object_foreach((json_t *)map, name, file)
    {
        const char *leaf = json_string_value(file);
        if (!leaf || json_object_get(seen, leaf))
            continue;
        json_object_set_new(seen, leaf, json_true());
        if (!is_there(dir, leaf) && !missing++)
            first = leaf;
    }
    int named = (int)json_object_size(seen);
    json_decref(seen);
    return missing ? refuse_missing(first, missing, named, err) : 0;
}

static int read_map(const char *dir, const json_t *doc, struct topt_weights *w,
                    struct topt_error *err)
{
    const json_t *map = json_object_get(doc, "weight_map");
    const char *name;
    json_t *file;
    if (!json_is_object(map))
        return topt_fail(err, TOPT_ERR_INVAL, "the index of weights has no weight_map");
    if (json_object_size(map) > MAX_TENSORS)
        return topt_fail(err, TOPT_ERR_LIMIT, "more than %d tensors", MAX_TENSORS);
    if (w->n && json_object_size(map) != (size_t)w->n)
        return check_named(dir, map, err)
                   ? -1
                   : topt_fail(err, TOPT_ERR_INVAL,
                               "the index of weights names %zu tensors, the files have "
                               "%d",
                               json_object_size(map), w->n);
    if (w->n)
        return 0;
    w->total = json_integer_value(
        json_object_get(json_object_get(doc, "metadata"), "total_size"));
    json_object_foreach(
        (json_t *)map, name,
        file) if (topt_weights_add(w, &(struct topt_weight){.name = name, .ndim = -1},
                                   err)) return -1;
    return 0;
}

/* The index names every tensor; where it says other than the files, one of them is not
 * of this model, or not here.  Where there are no files its names are what there is. */
static int read_index(const char *dir, struct topt_weights *w, struct topt_error *err)
{
    char path[4096 + 64];
    snprintf(path, sizeof path, "%.4000s/model.safetensors.index.json", dir);
    struct stat st;
    if (stat(path, &st))
        return 0;
    json_t *doc = topt_json_load(path, MAX_HEADER, err);
    int rc = doc ? read_map(dir, doc, w, err) : -1;
    json_decref(doc);
    return rc;
}

int topt_weights_read(const char *dir, struct topt_weights *ret, struct topt_error *err)
{
    return read_directory(ret, dir, err) || read_index(dir, ret, err) ? -1 : 0;
}
