/* feed.c - where samples come from: told apart by what is there and what the model takes.
 *
 * All kinds share one rule: the sample at a place of the global batch is a function of (seed,
 * step, place), so each rank makes just the numbers of its box and every plan sees the same
 * batches, however a batch is split over ranks or time. */
#include "feed.h"
#include "random.h"
#include "topt_text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#if TOPT_HAVE_ZLIB
#define ZLIB_CONST /* inflate() reads what it is given */
#include <zlib.h>
#endif

/* ---- what a model takes -------------------------------------------------------------------- */

/* Samples are DATA operands, and the output of an operator that is a source of them. */
static int takes_samples(const struct topt_op_spec *spec, int operand)
{
    for (const struct topt_step *s = spec->forward;
         s < spec->forward + TOPT_MAX_STEPS && s->kind; s++)
        if (s->kind == TOPT_STEP_KERNEL && s->kernel == TOPT_K_LOAD &&
            s->writes >> operand & 1)
            return 1;
    return 0;
}

static int64_t of_a_sample(const struct topt_op *op, int operand)
{
    int64_t n = 1;
    for (int i = 1; i < op->spec->operand[operand].ndim; i++)
        n *= op->operand[operand].dim[i].count * op->operand[operand].dim[i].unit;
    return n;
}

int64_t topt_feed_classes(const struct topt_op *op)
{
    for (int d = 0; d < op->spec->ndims; d++)
        if (!strcmp(op->spec->dim[d].name, "v"))
            return op->count[d];
    return 1;
}

static void need(struct topt_feed_needs *n, const struct topt_op *op, int operand)
{
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    int real = spec->role != TOPT_DATA || spec->real;
    if (op->spec->loss) {
        n->loss = op;
        n->classes = real ? 0 : topt_feed_classes(op);
        n->answers = of_a_sample(op, operand);
    } else if (real) {
        n->features = n->features ? n->features : op;
        n->nfeatures++;
        n->sample = of_a_sample(op, operand);
    } else if (!n->tokens || topt_feed_classes(op) < n->vocab) {
        n->tokens = op;
        n->vocab = topt_feed_classes(op);
    }
}

struct topt_feed_needs topt_feed_needs_of(const struct topt_model *m)
{
    struct topt_feed_needs n = {.loss = &m->op[m->loss]};
    for (int i = 0; i < m->nops; i++)
        for (int o = 0; o < m->op[i].spec->noperands; o++)
            if (takes_samples(m->op[i].spec, o))
                need(&n, &m->op[i], o);
    return n;
}

struct topt_feed_place topt_feed_place(const struct topt_op *op, int operand,
                                       const struct topt_box *box, int64_t i)
{
    const struct topt_dim *dim = op->operand[operand].dim;
    struct topt_feed_place p = {0, 0};
    int64_t stride = 1;
    for (int d = op->spec->operand[operand].ndim - 1; d > 0; d--) {
        int64_t n = box->len[d] * dim[d].unit;
        p.element += (box->off[d] * dim[d].unit + i % n) * stride;
        stride *= dim[d].count * dim[d].unit;
        i /= n;
    }
    p.sample = box->off[0] + i;
    return p;
}

int64_t topt_feed_elements(const struct topt_op *op, int operand,
                           const struct topt_box *box)
{
    int64_t n = box->len[0];
    for (int d = 1; d < op->spec->operand[operand].ndim; d++)
        n *= box->len[d] * op->operand[operand].dim[d].unit;
    return n;
}

int topt_feed_check(const struct topt_op *op, const struct topt_box *box, int64_t batch,
                    struct topt_error *err)
{
    return box->off[0] + box->len[0] <= batch
               ? 0
               : topt_fail(err, TOPT_ERR_INTERNAL,
                           "'%s' asks for more samples than a batch has", op->name);
}

uint64_t topt_feed_digest(const void *bytes, size_t len)
{
    uint64_t d = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        d = (d ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return d;
}

/* ---- files --------------------------------------------------------------------------------- */

#if TOPT_HAVE_ZLIB
/* All of a stream into 'all'; a member after another continues it. */
static int inflate_into(struct topt_text *all, const char *packed, size_t len,
                        struct topt_error *err)
{
    char part[1 << 16];
    z_stream z = {.next_in = (const Bytef *)packed, .avail_in = (uInt)len};
    if (inflateInit2(&z, 15 + 16) != Z_OK)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
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
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
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

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int join_path(char *ret, size_t size, const char *dir, const char *name,
                     struct topt_error *err)
{
    return snprintf(ret, size, "%s/%s", dir, name) < (int)size
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "path of '%s' in '%s' is too long", name,
                           dir);
}

static int append_file(struct topt_text *all, const char *dir, const char *name,
                       struct topt_error *err)
{
    char path[4096];
    struct stat st;
    size_t len;
    if (join_path(path, sizeof path, dir, name, err))
        return -1;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return 0;
    char *s = topt_feed_read(path, &len, err);
    if (!s)
        return -1;
    topt_text_put(all, s, len);
    free(s);
    return all->oom || all->len > TOPT_FEED_MAX_BYTES
               ? topt_fail(err, TOPT_ERR_LIMIT, "'%s' holds more than 1 GiB", dir)
               : 0;
}

/* The images to train on among a directory's files: idx files are named so by custom. */
static const char *images_among(struct dirent **entry, int n)
{
    const char *found = NULL;
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;
        if (strstr(name, "images-idx") && (!found || !strncmp(name, "train", 5)))
            found = name;
    }
    return found;
}

/* The images, or all files together as one text; 'ret_path' is the images' or the directory's. */
static char *read_directory(const char *dir, char *ret_path, size_t size, size_t *ret_len,
                            struct topt_error *err)
{
    struct dirent **entry;
    struct topt_text all = {0};
    int n = scandir(dir, &entry, visible, alphasort), rc = 0;
    if (n < 0) {
        topt_fail(err, TOPT_ERR_IO, "read directory '%s': %s", dir, strerror(errno));
        return NULL;
    }
    const char *images = images_among(entry, n);
    if (images)
        rc = join_path(ret_path, size, dir, images, err) ||
             append_file(&all, dir, images, err);
    for (int i = 0; i < n; i++) {
        if (!rc && !images)
            rc = append_file(&all, dir, entry[i]->d_name, err);
        free(entry[i]);
    }
    free(entry);
    if (!rc && !all.len)
        rc = topt_fail(err, TOPT_ERR_NOTFOUND, "nothing to read in directory '%s'", dir);
    if (rc) {
        topt_text_fini(&all);
        return NULL;
    }
    *ret_len = all.len;
    return all.s;
}

static int open_files(const char *data, const struct topt_model *m, uint64_t seed,
                      struct topt_feed *ret, struct topt_error *err)
{
    char path[4096];
    size_t len;
    if (snprintf(path, sizeof path, "%s", data) >= (int)sizeof path)
        return topt_fail(err, TOPT_ERR_INVAL, "the path of the data is too long");
    char *bytes = is_directory(data) ? read_directory(data, path, sizeof path, &len, err)
                                     : topt_feed_read(data, &len, err);
    if (!bytes)
        return -1;
    int rc;
    if (topt_feed_is_idx(bytes, len))
        rc = topt_feed_idx(bytes, len, path, m, seed, ret, err);
    else if (topt_feed_needs_of(m).features)
        rc = topt_feed_csv(bytes, len, m, seed, ret, err);
    else
        rc = topt_feed_text(bytes, len, m, seed, ret, err);
    free(bytes);
    return rc ? topt_wrap(err, "%s", data) : 0;
}

int topt_feed_open(const char *data, const struct topt_model *m, uint64_t seed,
                   struct topt_feed *ret, struct topt_error *err)
{
    if (!data && topt_feed_needs_of(m).tokens)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--data is missing: a text to train on, or 'synthetic'");
    if (!data || !strcmp(data, "synthetic"))
        return topt_feed_synthetic(m, seed, ret, err);
    return open_files(data, m, seed, ret, err);
}

void topt_feed_close(struct topt_feed *f)
{
    if (f->close)
        f->close(f->ctx);
    *f = (struct topt_feed){0};
}
