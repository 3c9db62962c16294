/* load.c - going on from a checkpoint, under whatever plan.
 *
 * Each rank maps the files that hold parts of its blocks and copies what its boxes meet.
 * Before that the files are shared out among the ranks, which read them whole once: what was
 * cut short or changed is found before anything of it is used, and an older checkpoint is
 * taken. */
#include "host.h"
#include "memory.h"
#include "number.h"
#include "packed.h"
#include "tensor_file.h"
#include "tensors.h"
#include "topt_checkpoint.h"
#include "topt_json.h"
#include "topt_text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4096, MOST_INDEX = 512 << 20, MOST_FILES = 1 << 16 };

struct index {
    char path[PATH]; /* the folder */
    json_t *doc;
    const json_t *files, *tensors;
    struct topt_checkpoint_facts facts;
    int nfiles;
    struct topt_tensor_file *file; /* mapped as they are needed */
    int values;                    /* of the parameters, and nothing else, are wanted */
};

/* ---- which there are --------------------------------------------------------------- */

static int is_step(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return !strncmp(e->d_name, "step-", 5) && n > 5 && n < 24 &&
           strspn(e->d_name + 5, "0123456789") == n - 5;
}

int64_t topt_checkpoint_newest(const char *dir)
{
    struct dirent **e;
    int n = scandir(dir, &e, is_step, alphasort);
    long long newest = -1;
    for (int i = 0; i < n; i++) {
        long long step = strtoll(e[i]->d_name + 5, NULL, 10);
        newest = step > newest ? step : newest;
        free(e[i]);
    }
    if (n >= 0)
        free(e);
    return newest;
}

static int newest_first(const struct dirent **a, const struct dirent **b)
{
    long long x = strtoll((*a)->d_name + 5, NULL, 10);
    long long y = strtoll((*b)->d_name + 5, NULL, 10);
    return (x < y) - (x > y);
}

/* Names of the checkpoints, newest first, a line each; rank 0.  No folder: none. */
static int list_names(const char *dir, struct topt_text *out, struct topt_error *err)
{
    struct dirent **e;
    int n = scandir(dir, &e, is_step, newest_first);
    if (n < 0 && errno != ENOENT)
        return topt_fail(err, TOPT_ERR_IO, "read '%s': %s", dir, strerror(errno));
    topt_text_put(out, "", 0);
    for (int i = 0; i < n; i++) {
        topt_text_add(out, "%s\n", e[i]->d_name);
        free(e[i]);
    }
    if (n >= 0)
        free(e);
    return out->oom ? topt_nomem(err, NULL) : 0;
}

/* ---- an index ---------------------------------------------------------------------- */

static void index_close(struct index *x)
{
    for (int i = 0; x->file && i < x->nfiles; i++)
        topt_tensor_file_close(&x->file[i]);
    free(x->file);
    json_decref(x->doc);
    *x = (struct index){.doc = NULL};
}

static int read_facts(struct index *x, const struct topt_session *s,
                      struct topt_error *err)
{
    struct topt_checkpoint_facts *f = &x->facts;
    const char *optimizer, *data;
    int64_t seed;
    const char *mine = topt_optimizer_name(s->p->settings.optimizer);
    f->schedule_last = -1;
    if (topt_json_format(x->doc, "checkpoint", err) ||
        topt_json_string(x->doc, "", "optimizer", &optimizer, err) ||
        topt_json_int(x->doc, "", "step", 0, INT64_MAX, &f->step, err) ||
        topt_json_int(x->doc, "", "batch", 1, INT64_MAX, &f->batch, err) ||
        topt_json_int(x->doc, "", "seq", 1, INT64_MAX, &f->seq, err) ||
        topt_json_int(x->doc, "", "seed", 0, INT64_MAX, &seed, err) ||
        topt_json_string(x->doc, "", "data", &data, err) ||
        topt_json_int_or(x->doc, "", "schedule_last", 0, INT64_MAX, &f->schedule_last,
                         err) ||
        topt_json_array(x->doc, "", "files", &x->files, err))
        return -1;
    f->seed = (uint64_t)seed;
    f->data = strtoull(data, NULL, 16);
    return strcmp(optimizer, mine) && !x->values
               ? topt_fail(err, TOPT_ERR_INVAL, "was trained by %.20s, not by %s",
                           optimizer, mine)
               : 0;
}

static const json_t *entry_of(const struct index *x, const char *name)
{
    return json_object_get(x->tensors, name);
}

static int check_tensor(const struct index *x, const struct topt_session *s,
                        const struct topt_stay *t, struct topt_error *err)
{
    const json_t *e = entry_of(x, t->name), *shape = json_object_get(e, "shape");
    struct topt_shape want = topt_stay_shape(s->p, t->buffer);
    const struct topt_buffer *b = &s->p->buffer[t->buffer];
    if (!e && b->cls == TOPT_CLASS_STATE && b->index == 2)
        return 0; /* the master copy starts as the parameter is */
    int same = e && json_array_size(shape) == (size_t)want.ndim;
    for (int d = 0; d < want.ndim && same; d++)
        same = json_integer_value(json_array_get(shape, (size_t)d)) == want.dim[d].count;
    return same
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "is of another model: it has %s '%.100s'",
                           e ? "another shape of" : "no", t->name);
}

/* Does the checkpoint have the session's tensors, and no others? */
static int check_tensors(struct index *x, const struct topt_session *s,
                         struct topt_error *err)
{
    struct topt_stay *stay = NULL;
    int n = 0;
    size_t known = 0;
    x->tensors = json_object_get(x->doc, "tensors");
    int rc = topt_stays(s->p, &stay, &n, err);
    for (int t = 0; t < n && !rc; t++) {
        rc = check_tensor(x, s, &stay[t], err);
        known += entry_of(x, stay[t].name) != NULL;
    }
    free(stay);
    const char *name;
    json_t *value;
    size_t masters = 0;
    json_object_foreach((json_t *)(uintptr_t)x->tensors, name, value)
    {
        size_t len = strlen(name);
        masters += len > 7 && !strcmp(name + len - 7, ".state2");
    }
    size_t has = json_object_size(x->tensors);
    if (!rc && !x->values && has != known && has != known + masters)
        rc = topt_fail(err, TOPT_ERR_INVAL,
                       "is of another model: it has %zu tensors more than '%.80s'",
                       has - known, s->p->model->name);
    return rc;
}

static int parse_index(struct index *x, const struct topt_session *s, const char *text,
                       size_t len, struct topt_error *err)
{
    x->doc = topt_json_parse(text, len, "index.json", err);
    if (!x->doc || read_facts(x, s, err) || check_tensors(x, s, err))
        return -1;
    size_t n = json_array_size(x->files);
    if (!n || n > MOST_FILES)
        return topt_fail(err, TOPT_ERR_INVAL, "index.json: files: 1 to %d", MOST_FILES);
    x->nfiles = (int)n;
    x->file = calloc(n, sizeof *x->file);
    return x->file ? 0 : topt_nomem(err, NULL);
}

/* ---- files ------------------------------------------------------------------------- */

static int file_path(const struct index *x, int i, char *buf, struct topt_error *err)
{
    const char *name;
    if (topt_json_string(json_array_get(x->files, (size_t)i), "files", "name", &name,
                         err))
        return -1;
    if (strchr(name, '/'))
        return topt_fail(err, TOPT_ERR_INVAL, "index.json: '%.80s' is no file of it",
                         name);
    return snprintf(buf, PATH, "%s/%s", x->path, name) < PATH
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "its path is too long");
}

static int open_file(struct index *x, int i, struct topt_error *err)
{
    char path[PATH];
    if (i < 0 || i >= x->nfiles)
        return topt_fail(err, TOPT_ERR_INVAL, "index.json: a block is in file %d of %d",
                         i, x->nfiles);
    if (x->file[i].map)
        return 0;
    return file_path(x, i, path, err) || topt_tensor_file_open(path, &x->file[i], err)
               ? -1
               : 0;
}

/* Is a file as it was written? */
static int check_file(struct index *x, int i, struct topt_error *err)
{
    const json_t *f = json_array_get(x->files, (size_t)i);
    struct topt_sum sum = {0};
    const char *want, *name;
    int64_t bytes;
    char have[32];
    if (topt_json_string(f, "files", "name", &name, err) ||
        topt_json_int(f, "files", "bytes", 0, INT64_MAX, &bytes, err) ||
        topt_json_string(f, "files", "sum", &want, err) || open_file(x, i, err))
        return -1;
    if ((int64_t)x->file[i].bytes != bytes)
        return topt_fail(err, TOPT_ERR_INVAL, "%.60s has %lld bytes, %lld were written",
                         name, (long long)x->file[i].bytes, (long long)bytes);
    topt_sum_add(&sum, x->file[i].map, x->file[i].bytes);
    snprintf(have, sizeof have, "%016llx", (unsigned long long)topt_sum_end(&sum));
    return strcmp(have, want)
               ? topt_fail(err, TOPT_ERR_INVAL, "%.60s is not as it was written", name)
               : 0;
}

static int check_files(struct index *x, const struct topt_comm *c, struct topt_error *err)
{
    for (int i = c->rank; i < x->nfiles; i += c->size)
        if (check_file(x, i, err))
            return -1;
    return 0;
}

/* ---- blocks ------------------------------------------------------------------------ */

static int read_numbers(const json_t *a, int n, int64_t *ret)
{
    for (int i = 0; i < n; i++) {
        const json_t *v = json_array_get(a, (size_t)i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return -1;
        ret[i] = json_integer_value(v);
    }
    return json_array_size(a) == (size_t)n ? 0 : -1;
}

static struct topt_box meet(int ndim, const struct topt_box *a, const struct topt_box *b)
{
    struct topt_box r = {0};
    for (int d = 0; d < ndim; d++) {
        int64_t end_a = a->off[d] + a->len[d], end_b = b->off[d] + b->len[d];
        int64_t end = end_a < end_b ? end_a : end_b;
        r.off[d] = a->off[d] > b->off[d] ? a->off[d] : b->off[d];
        r.len[d] = end > r.off[d] ? end - r.off[d] : 0;
    }
    return r;
}

/* A block of this rank's that is filled from a checkpoint. */
struct fill {
    const char *name;
    struct topt_shape shape;
    struct topt_box box;
    char *host; /* in the file's type */
    int element_bytes;
    int64_t filled;
};

/* The part of one block of a file that lies in ours. */
static int take_block(struct index *x, const json_t *block, struct fill *f,
                      struct topt_error *err)
{
    int i = (int)json_integer_value(json_array_get(block, 0)), ndim;
    int64_t len[TOPT_MAX_RANK];
    struct topt_box there = {0};
    const char *data, *dtype;
    if (read_numbers(json_array_get(block, 1), f->shape.ndim, there.off) ||
        read_numbers(json_array_get(block, 2), f->shape.ndim, there.len))
        return topt_fail(err, TOPT_ERR_INVAL, "index.json: a block of '%.80s'", f->name);
    struct topt_box part = meet(f->shape.ndim, &there, &f->box);
    int64_t n = topt_box_elements(&f->shape, &part);
    if (!n)
        return 0;
    if (open_file(x, i, err) ||
        topt_tensor_find(&x->file[i], f->name, &data, &dtype, &ndim, len, err))
        return -1;
    int64_t want[TOPT_MAX_RANK];
    int same = ndim == topt_stay_extents(&f->shape, &there, want) &&
               topt_tensor_bytes(dtype) == f->element_bytes;
    for (int d = 0; d < ndim && same; d++)
        same = len[d] == want[d];
    if (!same)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%.80s' is another block there than index.json says", f->name);
    struct topt_box_copy c = {.shape = &f->shape,
                              .element_bytes = f->element_bytes,
                              .src = data,
                              .dst = f->host,
                              .src_box = there,
                              .dst_box = f->box,
                              .region = part};
    topt_host_copy_box(&c);
    f->filled += n;
    return 0;
}

/* All of it from the blocks that there are; the type that it has there in '*ret'. */
static int take_tensor(struct index *x, struct fill *f, enum topt_dtype *ret,
                       struct topt_error *err)
{
    const json_t *e = entry_of(x, f->name), *blocks, *block;
    const char *dtype;
    size_t i;
    if (topt_json_string(e, f->name, "dtype", &dtype, err) ||
        topt_json_array(e, f->name, "blocks", &blocks, err))
        return -1;
    f->element_bytes = topt_tensor_bytes(dtype);
    int64_t n = topt_box_elements(&f->shape, &f->box);
    f->host = f->element_bytes ? malloc((size_t)(n * f->element_bytes) + 1) : NULL;
    if (!f->host)
        return f->element_bytes
                   ? topt_nomem(err, NULL)
                   : topt_fail(err, TOPT_ERR_INVAL, "numbers of the type %.20s", dtype);
    *ret = topt_tensor_dtype(dtype);
    json_array_foreach(blocks, i, block)
    {
        if (take_block(x, block, f, err))
            return -1;
    }
    return f->filled == n
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "'%.80s' is not whole: blocks are missing", f->name);
}

static int deliver(struct topt_session *s, int buffer, const struct fill *f,
                   enum topt_dtype from, struct topt_error *err)
{
    int64_t n = topt_box_elements(&f->shape, &f->box),
            bytes = topt_buffer_bytes(s, buffer);
    int bits = topt_packed_bits(s->p, buffer);
    if (bits && from == TOPT_F32) {
        topt_packed_put(s, buffer, (const float *)(const void *)f->host);
        return 0;
    }
    if (bits)
        return topt_fail(err, TOPT_ERR_INVAL, "it is in another type than f32");
    int mine = topt_session_element_bytes(s, s->p->buffer[buffer].elem);
    enum topt_dtype to = mine == 8 ? TOPT_F64 : mine == 2 ? TOPT_BF16 : TOPT_F32;
    if (to == from)
        return s->dev->ops->write(s->dev, s->ptr[buffer], f->host, bytes, err);
    void *host = topt_scratch(s, bytes);
    if (!host)
        return topt_nomem(err, NULL);
    for (int64_t i = 0; i < n; i++)
        topt_number_put(to, host, i, topt_number_get(from, f->host, i));
    return s->dev->ops->write(s->dev, s->ptr[buffer], host, bytes, err);
}

/* Where a buffer's numbers are best taken from: of a parameter that was kept in few bits the
 * master copy, and the other way round. */
static void source_of(const struct index *x, const struct topt_session *s,
                      const struct topt_stay *t, char *buf, size_t size)
{
    const struct topt_buffer *b = &s->p->buffer[t->buffer];
    size_t len = strlen(t->name);
    snprintf(buf, size, "%s", t->name);
    if (b->cls == TOPT_CLASS_PARAM && s->dev->dtype != TOPT_BF16) {
        snprintf(buf, size, "%s.state2", t->name);
        if (!entry_of(x, buf))
            snprintf(buf, size, "%s", t->name);
    } else if (b->cls == TOPT_CLASS_STATE && b->index == 2 && !entry_of(x, buf)) {
        buf[len - 7] = '\0';
    }
}

static int load_tensor(struct index *x, struct topt_session *s, const struct topt_stay *t,
                       struct topt_error *err)
{
    char name[256];
    enum topt_dtype from = TOPT_F32;
    struct fill f = {.name = name,
                     .shape = topt_stay_shape(s->p, t->buffer),
                     .box = topt_stay_box(s->p, t->buffer, s->comm->rank)};
    source_of(x, s, t, name, sizeof name);
    int rc = take_tensor(x, &f, &from, err) || deliver(s, t->buffer, &f, from, err);
    free(f.host);
    return rc ? topt_wrap(err, "tensor '%.80s'", name) : 0;
}

static int load_tensors(struct index *x, struct topt_session *s, struct topt_error *err)
{
    struct topt_stay *stay = NULL;
    int n = 0;
    int rc = topt_stays(s->p, &stay, &n, err);
    for (int t = 0; t < n && !rc; t++)
        rc = load_tensor(x, s, &stay[t], err);
    free(stay);
    return rc;
}

/* ---- the last good one ------------------------------------------------------------- */

/* Whether any rank failed; -1 where that can't be found out. */
static int agree(struct topt_comm *c, int failed, int *ret_failed, struct topt_error *err)
{
    struct topt_error none = {0};
    if (!failed)
        *err = none;
    *ret_failed = topt_comm_agree(c, failed, err) != 0;
    return *ret_failed && err->code == TOPT_ERR_DEVICE ? -1 : 0;
}

/* One checkpoint: 0, or '*ret_failed' with the reason on rank 0. */
static int try(struct topt_session *s, const char *path, struct index *x, int *ret_failed,
               struct topt_error *err)
{
    struct topt_comm *c = s->comm;
    struct topt_error why = {0};
    char *text = NULL, index[PATH];
    size_t len = 0;
    int failed = 0;
    snprintf(x->path, sizeof x->path, "%s", path);
    snprintf(index, sizeof index, "%.4000s/index.json", path);
    if (!c->rank) {
        text = topt_read_file(index, MOST_INDEX, &len, &why);
        failed = !text;
    }
    if (agree(c, failed, ret_failed, &why))
        return -1;
    if (!*ret_failed && topt_comm_share_text(c, 0, &text, &len, err))
        return -1;
    if (!*ret_failed) {
        failed = parse_index(x, s, text, len, &why) || check_files(x, c, &why);
        if (agree(c, failed, ret_failed, &why))
            return -1;
    }
    if (!*ret_failed && agree(c, load_tensors(x, s, &why), ret_failed, &why))
        return -1;
    free(text);
    if (*ret_failed)
        *err = why;
    return 0;
}

static int load_last(struct topt_session *s, const char *dir, int values,
                     void (*note)(void *ctx, const char *text), void *ctx,
                     struct topt_checkpoint_facts *ret, struct topt_error *err)
{
    struct topt_comm *c = s->comm;
    struct topt_text names = {0};
    char path[PATH], said[512] = "";
    int failed = !c->rank && list_names(dir, &names, err), tried = 0;
    *ret = (struct topt_checkpoint_facts){.step = -1};
    if (topt_comm_share_text(c, failed, &names.s, &names.len, err)) {
        topt_text_fini(&names);
        return -1;
    }
    int rc = 0, found = 0;
    for (char *at = names.s, *end; at && (end = strchr(at, '\n')) && !rc && !found;
         at = end + 1) {
        struct index x = {.values = values};
        struct topt_error why = {0};
        *end = '\0';
        snprintf(path, sizeof path, "%.4000s/%s", dir, at);
        rc = try(s, path, &x, &failed, &why);
        if (!rc && !failed) {
            *ret = x.facts;
            s->step = x.facts.step;
            found = 1;
        }
        snprintf(said, sizeof said, "%.200s can't be used: %s", path, why.text);
        if (!rc && failed && note && !c->rank)
            note(ctx, said);
        tried++;
        if (rc)
            *err = why;
        index_close(&x);
    }
    topt_text_fini(&names);
    if (rc || found || !tried)
        return rc;
    /* all ranks fail alike; the reason is rank 0's */
    return topt_comm_agree(
        c,
        c->rank ? 0
                : topt_fail(err, TOPT_ERR_INVAL,
                            "none of the %d checkpoints can be used: %s", tried, said),
        err);
}

int topt_checkpoint_load(struct topt_session *s, const char *dir,
                         void (*note)(void *ctx, const char *text), void *ctx,
                         struct topt_checkpoint_facts *ret, struct topt_error *err)
{
    return load_last(s, dir, 0, note, ctx, ret, err);
}

int topt_checkpoint_load_values(struct topt_session *s, const char *dir,
                                void (*note)(void *ctx, const char *text), void *ctx,
                                struct topt_checkpoint_facts *ret, struct topt_error *err)
{
    return load_last(s, dir, 1, note, ctx, ret, err);
}
