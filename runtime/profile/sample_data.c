/* sample_data.c - see sample_data.h. */
#include "sample_data.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LETTERS = 20, TEXT_BYTES = 1 << 16, PICTURES = 64, CLASSES = 10 };

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static void put_count(FILE *f, int n)
{
    fputc(0, f);
    fputc(0, f);
    fputc(n >> 8, f);
    fputc(n & 255, f);
}

static void put_text(FILE *f, int rows)
{
    uint32_t state = 1;
    (void)rows;
    for (int i = 0; i < TEXT_BYTES; i++)
        fputc(i % 7 == 6 ? ' ' : 'a' + (int)(next(&state) % LETTERS), f);
}

/* A dimension of bytes for each: type 8. */
static void put_pictures(FILE *f, int rows)
{
    uint32_t state = 2;
    fwrite("\0\0\10\3", 1, 4, f);
    put_count(f, PICTURES);
    put_count(f, rows);
    put_count(f, rows);
    for (int i = 0; i < PICTURES * rows * rows; i++)
        fputc((int)(next(&state) & 255), f);
}

static void put_labels(FILE *f, int rows)
{
    (void)rows;
    fwrite("\0\0\10\1", 1, 4, f);
    put_count(f, PICTURES);
    for (int i = 0; i < PICTURES; i++)
        fputc(i % CLASSES, f);
}

static int write_file(const char *path, void (*put)(FILE *f, int rows), int rows,
                      struct topt_error *err)
{
    FILE *f = fopen(path, "wbe");
    if (f)
        put(f, rows);
    return f && !ferror(f) && !fclose(f)
               ? 0
               : topt_fail(err, TOPT_ERR_IO, "write '%.200s': %s", path, strerror(errno));
}

int topt_sample_data_make(int rows, struct topt_sample_data *ret, struct topt_error *err)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(ret->dir, sizeof ret->dir, "%.200s/topt-profile-XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(ret->dir)) {
        int code = errno;
        topt_fail(err, TOPT_ERR_IO, "make a folder '%.200s': %s", ret->dir,
                  strerror(code));
        ret->dir[0] = '\0';
        return -1;
    }
    snprintf(ret->text, sizeof ret->text, "%s/text", ret->dir);
    snprintf(ret->pictures, sizeof ret->pictures, "%s/train-images-idx3-ubyte", ret->dir);
    snprintf(ret->labels, sizeof ret->labels, "%s/train-labels-idx1-ubyte", ret->dir);
    return write_file(ret->text, put_text, rows, err) ||
                   write_file(ret->pictures, put_pictures, rows, err) ||
                   write_file(ret->labels, put_labels, rows, err)
               ? -1
               : 0;
}

void topt_sample_data_remove(const struct topt_sample_data *d)
{
    if (!d->dir[0])
        return;
    unlink(d->text);
    unlink(d->pictures);
    unlink(d->labels);
    rmdir(d->dir);
}
