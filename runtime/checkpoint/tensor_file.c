/* tensor_file.c - reading and writing files of tensors. */
#include "tensor_file.h"
#include "topt_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_HEADER = 128 << 20 };

/* ---- sums -------------------------------------------------------------------------- */

static void take_word(struct topt_sum *s, uint64_t word)
{
    s->h = (s->h ^ word) * 0x9e3779b97f4a7c15u;
    s->h ^= s->h >> 29;
}

void topt_sum_add(struct topt_sum *s, const void *data, size_t len)
{
    const unsigned char *p = data;
    for (; len && s->nparts; p++, len--) {
        s->part |= (uint64_t)*p << 8 * s->nparts;
        s->nparts = (s->nparts + 1) % 8;
        if (!s->nparts) {
            take_word(s, s->part);
            s->part = 0;
        }
    }
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        take_word(s, word);
    }
    for (; len; p++, len--)
        s->part |= (uint64_t)*p << 8 * s->nparts++;
}

uint64_t topt_sum_end(struct topt_sum *s)
{
    take_word(s, s->part);
    take_word(s, (uint64_t)s->nparts);
    return s->h;
}

/* ---- types ------------------------------------------------------------------------- */

int topt_tensor_bytes(const char *dtype)
{
    return !strcmp(dtype, "F64")    ? 8
           : !strcmp(dtype, "F32")  ? 4
           : !strcmp(dtype, "BF16") ? 2
                                    : 0;
}

enum topt_dtype topt_tensor_dtype(const char *dtype)
{
    int bytes = topt_tensor_bytes(dtype);
    return bytes == 8 ? TOPT_F64 : bytes == 2 ? TOPT_BF16 : TOPT_F32;
}

/* ---- writing ----------------------------------------------------------------------- */

int topt_tensor_entry(json_t *header, const char *name, const char *dtype, int ndim,
                      const int64_t *len, int64_t *at, struct topt_error *err)
{
    int64_t bytes = topt_tensor_bytes(dtype);
    json_t *shape = json_array();
    for (int d = 0; d < ndim; d++) {
        bytes *= len[d];
        json_array_append_new(shape, json_integer(len[d]));
    }
    json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape,
                              "data_offsets", (json_int_t)*at, (json_int_t)(*at + bytes));
    *at += bytes;
    return json_object_set_new(header, name, entry) ? topt_nomem(err, NULL) : 0;
}

char *topt_tensor_header(const json_t *header, size_t *ret_len, struct topt_error *err)
{
    char *text = json_dumps(header, JSON_COMPACT), *all = NULL;
    size_t n = text ? strlen(text) : 0, padded = (n + 7) / 8 * 8;
    if (text)
        all = malloc(8 + padded);
    if (!all) {
        free(text);
        topt_nomem(err, NULL);
        return NULL;
    }
    for (int i = 0; i < 8; i++)
        all[i] = (char)(padded >> 8 * i & 0xff);
    memset(all + 8, ' ', padded);
    memcpy(all + 8, text, n);
    free(text);
    *ret_len = 8 + padded;
    return all;
}

/* ---- reading ----------------------------------------------------------------------- */

static int read_header(struct topt_tensor_file *f, struct topt_error *err)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0 && f->bytes >= 8; i--)
        n = n << 8 | (unsigned char)f->map[i];
    if (f->bytes < 8 || n > MOST_HEADER || n > f->bytes - 8)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "is cut short, or no file of tensors (safetensors)");
    f->data = 8 + (size_t)n;
    f->header = topt_json_parse(f->map + 8, (size_t)n, "its header", err);
    return f->header ? 0 : -1;
}

int topt_tensor_file_open(const char *path, struct topt_tensor_file *ret,
                          struct topt_error *err)
{
    struct topt_tensor_file f = {.map = NULL};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        topt_fail(err, TOPT_ERR_IO, "open '%s': %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    f.bytes = (size_t)st.st_size;
    void *map = f.bytes ? mmap(NULL, f.bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    int saved = errno;
    close(fd);
    if (map == MAP_FAILED)
        return topt_fail(err, TOPT_ERR_IO, "read '%s': %s", path,
                         f.bytes ? strerror(saved) : "it is empty");
    f.map = map;
    if (read_header(&f, err)) {
        topt_tensor_file_close(&f);
        return topt_wrap(err, "%s", path);
    }
    *ret = f;
    return 0;
}

void topt_tensor_file_close(struct topt_tensor_file *f)
{
    if (f->map)
        munmap((void *)(uintptr_t)f->map, f->bytes);
    json_decref(f->header);
    *f = (struct topt_tensor_file){.map = NULL};
}

int topt_tensor_find(const struct topt_tensor_file *f, const char *name,
                     const char **ret_data, const char **ret_dtype, int *ret_ndim,
                     int64_t ret_len[TOPT_MAX_RANK], struct topt_error *err)
{
    const json_t *t = json_object_get(f->header, name), *shape, *at;
    const char *dtype = NULL;
    if (!t)
        return topt_fail(err, TOPT_ERR_NOTFOUND, "there is no tensor '%.80s'", name);
    if (topt_json_string(t, name, "dtype", &dtype, err) ||
        topt_json_array(t, name, "shape", &shape, err) ||
        topt_json_array(t, name, "data_offsets", &at, err))
        return -1;
    int64_t bytes = topt_tensor_bytes(dtype), n = (int64_t)json_array_size(shape);
    int64_t from = json_integer_value(json_array_get(at, 0));
    int64_t to = json_integer_value(json_array_get(at, 1));
    int good = bytes > 0 && n <= TOPT_MAX_RANK && json_array_size(at) == 2;
    for (int64_t d = 0; d < n && good; d++) {
        ret_len[d] = json_integer_value(json_array_get(shape, (size_t)d));
        good =
            ret_len[d] >= 0 && (ret_len[d] == 0 || bytes <= INT64_MAX / 2 / ret_len[d]);
        bytes = good ? bytes * ret_len[d] : 0;
    }
    if (!good || from < 0 || to < from || to - from != bytes ||
        (uint64_t)to > f->bytes - f->data)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "tensor '%.80s' has a type or shape that is not known, or lies "
                         "outside of the file",
                         name);
    *ret_data = f->map + f->data + from;
    *ret_dtype = dtype;
    *ret_ndim = (int)n;
    return 0;
}
