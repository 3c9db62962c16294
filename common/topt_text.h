/* topt_text.h - growing text, whole files, and quantities as people write them.
 * Thread safety: none; one owner at a time. */
#ifndef TOPT_TEXT_H
#define TOPT_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"

/* Text that grows.  Start from {0}; after a failed allocation 'oom' is set, later calls do
 * nothing, and the text so far stays valid. */
struct topt_text {
    char *s; /* NUL-terminated once anything was added; owned */
    size_t len, cap;
    int oom;
};

void topt_text_add(struct topt_text *t, const char *fmt, ...) TOPT_PRINTF(2, 3);
void topt_text_put(struct topt_text *t, const char *bytes, size_t n);
void topt_text_fini(struct topt_text *t);
/* The text, which is the caller's from now on; NULL where an allocation failed or nothing was added. */
char *topt_text_take(struct topt_text *t);
/* 'n' bytes of words from column 'at' on, where the pen is, folded at spaces so that lines end
 * by 'columns' where words allow; lines after the first begin at 'at'.  No newline at the end. */
void topt_text_fold(struct topt_text *t, const char *words, size_t n, size_t at,
                    size_t columns);

/* The whole file as NUL-terminated bytes, to be freed by the caller.  Refuses directories
 * and files above 'max_bytes'.  'path' "-" reads standard input. */
char *topt_read_file(const char *path, size_t max_bytes, size_t *ret_len,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Write beside 'path', sync, rename: the file is whole or as it was.  What is there and no plain
 * file (a device, a pipe, a link) is written to instead.  "-" is stdout. */
int topt_write_file(const char *path, const void *data, size_t len,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* What people write: blanks around a value are passed over, and what is refused is INVAL, whose
 * text says what to write instead.  quantity.c */

/* "16GiB", "14.5 GB", "4096", "512K": bytes.  K/M/G/T and KiB.. are powers of 1024, KB..
 * powers of 1000.  Must be positive and below 2^62. */
int topt_parse_bytes(const char *s, int64_t *ret_bytes,
                     struct topt_error *err) TOPT_MUST_CHECK;
/* The same for the memory of a device or a search: a number below 1 MiB without a unit, which
 * was meant with one, is refused. */
int topt_parse_memory(const char *s, int64_t *ret_bytes,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* A decimal integer within [min, max] and nothing after it. */
int topt_parse_int(const char *s, int64_t min, int64_t max, int64_t *ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* A finite number of at least 0, or above it. */
int topt_parse_real(const char *s, int above_zero, double *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* A whole number above 0 and below 2^62, as people write large ones: "2048", "300B", "1.5T", "2e12".
 * K, M, B and T, in either case, are 10^3, 10^6, 10^9 and 10^12. */
int topt_parse_amount(const char *s, int64_t *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* A share of a whole, from 0 to 1: "0.8", or as a percentage "80%" or "80".  A bare number is a
 * share up to 1 and a percentage from 5 to 100; between them it could be either, and is refused. */
int topt_parse_share(const char *s, double *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* The next item of "a,b,c", without the blanks around it; '*at' is NULL before the first.
 * Returns 1, 0 past the last, or -1 where a place is empty, an item was there before, or it is no
 * shorter than 'size'. */
int topt_list_next(const char *list, const char **at, char *item, size_t size,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* One more of the 'n' counts of a list that takes 'most', each once. */
int topt_count_add(int64_t v, int64_t *list, int most, int *n,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* "1,2,4": at most 'most' counts of 1 to 'max', each once. */
int topt_parse_counts(const char *s, int64_t max, int64_t *ret, int most, int *ret_n,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* Short forms for people: "14.5 GiB", "3.21 ms".  Return 'buf'. */
char *topt_show_bytes(int64_t bytes, char *buf, size_t size);
char *topt_show_ns(int64_t ns, char *buf, size_t size);

/* The names of bits, "a, b or c", in 'buf'; "" of none. */
enum { TOPT_NAMED_BITS = 160 };
const char *topt_named_bits(int bits, const char *(*name)(unsigned),
                            char buf[TOPT_NAMED_BITS]);

#endif
