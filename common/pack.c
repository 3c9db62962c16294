/* pack.c - see topt_pack.h. */
#include "topt_pack.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

enum { FIRST_GUESS = 8 }; /* times as long as what is packed */

int topt_pack(const void *data, size_t len, void **ret, size_t *ret_len,
              struct topt_error *err)
{
    uLongf n = compressBound((uLong)len);
    unsigned char *out = malloc(n);
    if (!out)
        return topt_nomem(err, NULL);
    if (compress2(out, &n, data, (uLong)len, Z_DEFAULT_COMPRESSION) != Z_OK) {
        free(out);
        return topt_nomem(err, NULL);
    }
    *ret = out;
    *ret_len = n;
    return 0;
}

int topt_gzip(const void *data, size_t len, void **ret, size_t *ret_len,
              struct topt_error *err)
{
    enum { LEVEL = 3, GZIP = 15 + 16 /* of the window, and zlib's word for gzip */ };
    z_stream s = {.next_in = (unsigned char *)(size_t)data, .avail_in = (uInt)len};
    if (len > UINT_MAX ||
        deflateInit2(&s, LEVEL, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return topt_nomem(err, NULL);
    uLong most = deflateBound(&s, (uLong)len);
    unsigned char *out = most <= UINT_MAX ? malloc(most) : NULL;
    s.next_out = out;
    s.avail_out = (uInt)most;
    int rc = out ? deflate(&s, Z_FINISH) : Z_MEM_ERROR;
    size_t n = s.total_out;
    deflateEnd(&s);
    if (rc != Z_STREAM_END) {
        free(out);
        return topt_nomem(err, NULL);
    }
    *ret = out;
    *ret_len = n;
    return 0;
}

/* Inflate all of 's' into '*out', which grows to at most 'most' bytes and one more, by
 * which too much is noticed; zlib's verdict. */
static int inflate_all(z_stream *s, char **out, size_t cap, size_t most)
{
    for (;;) {
        char *more = realloc(*out, cap + 2);
        if (!more)
            return Z_MEM_ERROR;
        *out = more;
        s->next_out = (unsigned char *)*out + s->total_out;
        s->avail_out = (uInt)(cap + 1 - s->total_out);
        int rc = inflate(s, Z_FINISH);
        if (rc != Z_BUF_ERROR || s->avail_out || cap == most)
            return rc;
        cap = cap > most / 2 ? most : 2 * cap;
    }
}

int topt_unpack(const void *data, size_t len, size_t most, char **ret, size_t *ret_len,
                struct topt_error *err)
{
    z_stream s = {.next_in = (unsigned char *)(size_t)data, .avail_in = (uInt)len};
    char *out = NULL;
    size_t cap = len > most / FIRST_GUESS ? most : FIRST_GUESS * len;
    if (inflateInit(&s) != Z_OK)
        return topt_nomem(err, NULL);
    int rc = inflate_all(&s, &out, cap ? cap : 1, most);
    size_t n = s.total_out;
    inflateEnd(&s);
    if (rc == Z_STREAM_END && !s.avail_in && n <= most) {
        out[n] = '\0';
        *ret = out;
        *ret_len = n;
        return 0;
    }
    free(out);
    return rc == Z_MEM_ERROR
               ? topt_nomem(err, NULL)
               : topt_fail(err, TOPT_ERR_INVAL,
                           "what is packed is damaged, or longer than %zu bytes", most);
}
