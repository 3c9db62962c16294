/* feed_file.c - whole files of samples, unpacked where they are compressed. */
#include "feed_file.h"
#include "topt_text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#if TOPT_HAVE_ZLIB
#define ZLIB_CONST /* inflate() reads what it is given */
#include <zlib.h>
#endif

uint64_t topt_feed_digest(const void *bytes, size_t len)
{
    uint64_t d = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        d = (d ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return d;
}

#if TOPT_HAVE_ZLIB
/* All of a stream into 'all'; a member after another continues it. */
static int inflate_into(struct topt_text *all, const char *packed, size_t len,
                        struct topt_error *err)
{
    char part[1 << 16];
    z_stream z = {.next_in = (const Bytef *)packed, .avail_in = (uInt)len};
    if (inflateInit2(&z, 15 + 16) != Z_OK)
        return topt_nomem(err, NULL);
    int rc = Z_OK;
    while ((rc == Z_OK || (rc == Z_STREAM_END && z.avail_in)) &&
           all->len <= TOPT_FEED_MAX_BYTES && !all->oom) {
        if (rc == Z_STREAM_END)
            inflateReset(&z);
        z.next_out = (Bytef *)part;
        z.avail_out = sizeof part;
        rc = inflate(&z, Z_NO_FLUSH);
        topt_text_put(all, part, sizeof part - z.avail_out);
    }
    inflateEnd(&z);
    if (all->oom)
        return topt_nomem(err, NULL);
    if (all->len > TOPT_FEED_MAX_BYTES)
        return topt_fail(err, TOPT_ERR_LIMIT, "unpacks to more than 1 GiB");
    return rc == Z_STREAM_END
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "its compressed data is damaged");
}
#else
static int inflate_into(struct topt_text *all, const char *packed, size_t len,
                        struct topt_error *err)
{
    (void)all, (void)packed, (void)len;
    return topt_fail(err, TOPT_ERR_INVAL,
                     "is compressed, and topt was built without zlib; unpack it first");
}
#endif

char *topt_feed_read(const char *path, size_t *ret_len, struct topt_error *err)
{
    struct topt_text all = {0};
    char *bytes = topt_read_file(path, TOPT_FEED_MAX_BYTES, ret_len, err);
    if (!bytes || *ret_len < 3 || memcmp(bytes, "\x1f\x8b\x08", 3))
        return bytes;
    topt_text_put(&all, "", 0);
    if (inflate_into(&all, bytes, *ret_len, err)) {
        topt_wrap(err, "%s", path);
        topt_text_fini(&all);
    }
    free(bytes);
    *ret_len = all.len;
    return all.s;
}

typedef int visit(void *ctx, const char *path, const char *bytes, size_t len,
                  struct topt_error *err);

static int visit_file(const char *path, visit *f, void *ctx, struct topt_error *err)
{
    size_t len;
    char *bytes = topt_feed_read(path, &len, err);
    int rc = bytes ? f(ctx, path, bytes, len, err) : -1;
    free(bytes);
    return rc;
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

int topt_feed_each_file(const char *path, visit *f, void *ctx, struct topt_error *err)
{
    struct dirent **e;
    struct stat st;
    char name[4096];
    int rc = 0;
    if (stat(path, &st) || !S_ISDIR(st.st_mode))
        return visit_file(path, f, ctx, err);
    int n = scandir(path, &e, visible, alphasort);
    if (n < 0)
        return topt_fail(err, TOPT_ERR_IO, "read directory '%s': %s", path,
                         strerror(errno));
    for (int i = 0; i < n; i++) {
        if (!rc &&
            snprintf(name, sizeof name, "%s/%s", path, e[i]->d_name) >= (int)sizeof name)
            rc = topt_fail(err, TOPT_ERR_INVAL, "a path in '%s' is too long", path);
        if (!rc && !stat(name, &st) && S_ISREG(st.st_mode))
            rc = visit_file(name, f, ctx, err);
        free(e[i]);
    }
    free(e);
    return rc;
}
