/* tensor_file.h - files of tensors (safetensors): 8 bytes of length, as much JSON, data. */
#ifndef TOPT_TENSOR_FILE_H
#define TOPT_TENSOR_FILE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "topt_layout.h"
#include "topt_error.h"

/* A running sum of bytes, for files that were cut or changed by accident. */
struct topt_sum {
    uint64_t h, part; /* 'part': fewer than 8 bytes so far */
    int nparts;
};
void topt_sum_add(struct topt_sum *s, const void *data, size_t len);
uint64_t topt_sum_end(struct topt_sum *s);

/* Bytes of an element of that type as files name it, F64, F32 or BF16; 0: another. */
int topt_tensor_bytes(const char *dtype);
enum topt_dtype topt_tensor_dtype(const char *dtype);

/* One tensor more in a header that is made: "dtype", "shape", "data_offsets" behind '*at',
 * which grows. */
int topt_tensor_entry(json_t *header, const char *name, const char *dtype, int ndim,
                      const int64_t *len, int64_t *at,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* The file's first bytes, with the length and blanks up to a multiple of 8; owned by the
 * caller. */
char *topt_tensor_header(const json_t *header, size_t *ret_len, struct topt_error *err);

/* A file to read, mapped. */
struct topt_tensor_file {
    const char *map;
    size_t bytes, data; /* where tensors begin */
    json_t *header;
};
int topt_tensor_file_open(const char *path, struct topt_tensor_file *ret,
                          struct topt_error *err) TOPT_MUST_CHECK;
void topt_tensor_file_close(struct topt_tensor_file *f);
/* A tensor of it: its numbers in the map, type and shape ('*ret_ndim' at most
 * TOPT_MAX_RANK).  NOTFOUND where there is none of that name. */
int topt_tensor_find(const struct topt_tensor_file *f, const char *name,
                     const char **ret_data, const char **ret_dtype, int *ret_ndim,
                     int64_t ret_len[TOPT_MAX_RANK],
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
