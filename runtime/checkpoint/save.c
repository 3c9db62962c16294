/* save.c - checkpoints, written while training goes on. */
#include "memory.h"
#include "packed.h"
#include "tensor_file.h"
#include "tensors.h"
#include "topt_checkpoint.h"
#include "topt_json.h"
#include "topt_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDLE, WRITING, WRITTEN, PATH = 4096, PART = 4 << 20 };

struct topt_saver {
    const struct topt_program *p;
    int rank;
    struct topt_session *s;
    char dir[PATH];
    int64_t keep;
    struct topt_stay *stay;
    int nstays;
    int *writer; /* by tensor and rank */
    char *header, *copy;
    size_t header_bytes;
    int64_t copy_bytes;
    /* what is being written; the thread's until 'state' is WRITTEN */
    struct topt_checkpoint_facts facts;
    char path[PATH];
    pthread_t thread;
    atomic_int state;
    int failed;
    struct topt_error error;
    uint64_t sum;
};

static int writes(const struct topt_saver *v, int tensor, int rank)
{
    return v->writer[tensor * v->p->mesh.devices + rank] == rank;
}

static int path_into(char *buf, struct topt_error *err, const char *fmt, ...)
    TOPT_PRINTF(3, 4);
static int path_into(char *buf, struct topt_error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(buf, PATH, fmt, ap);
    va_end(ap);
    return n >= 0 && n < PATH ? 0
                              : topt_fail(err, TOPT_ERR_INVAL,
                                          "the path of the checkpoints is too long");
}

static int fail_at(const char *what, const char *path, struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_IO, "%s '%s': %s", what, path, strerror(errno));
}

/* ---- opening ----------------------------------------------------------------------- */

static int list_tensors(struct topt_saver *v, struct topt_error *err)
{
    int ranks = v->p->mesh.devices;
    if (topt_stays(v->p, &v->stay, &v->nstays, err))
        return -1;
    v->writer = calloc((size_t)v->nstays * (size_t)ranks + 1, sizeof *v->writer);
    if (!v->writer)
        return topt_nomem(err, NULL);
    for (int t = 0; t < v->nstays; t++)
        if (topt_stay_writers(v->p, v->stay[t].buffer, v->writer + t * ranks, err))
            return -1;
    return 0;
}

static int make_header(struct topt_saver *v, struct topt_error *err)
{
    char rank[16];
    snprintf(rank, sizeof rank, "%d", v->rank);
    json_t *header = json_pack("{s:{s:s, s:s}}", "__metadata__", "format",
                               "topt-checkpoint/1", "rank", rank);
    int rc = header ? 0 : topt_nomem(err, NULL);
    v->copy_bytes = 0;
    for (int t = 0; t < v->nstays && !rc; t++) {
        if (!writes(v, t, v->rank))
            continue;
        struct topt_box box = topt_stay_box(v->p, v->stay[t].buffer, v->rank);
        struct topt_shape shape = topt_stay_shape(v->p, v->stay[t].buffer);
        int64_t len[TOPT_MAX_RANK];
        int ndim = topt_stay_extents(&shape, &box, len);
        rc = topt_tensor_entry(header, v->stay[t].name,
                               topt_stay_dtype(v->p, v->stay[t].buffer), ndim, len,
                               &v->copy_bytes, err);
    }
    if (!rc)
        v->header = topt_tensor_header(header, &v->header_bytes, err);
    json_decref(header);
    return rc || !v->header ? -1 : 0;
}

int64_t topt_saver_bytes(const struct topt_program *p, int rank)
{
    struct topt_saver v = {.p = p, .rank = rank};
    struct topt_error err;
    int64_t bytes = list_tensors(&v, &err) || make_header(&v, &err)
                        ? 0
                        : v.copy_bytes + (int64_t)v.header_bytes;
    free(v.stay);
    free(v.writer);
    free(v.header);
    return bytes;
}

/* All files of a folder, and the folder. */
static void remove_folder(const char *path)
{
    char file[PATH];
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.' &&
            snprintf(file, sizeof file, "%s/%s", path, e->d_name) < PATH)
            unlink(file);
    if (d)
        closedir(d);
    rmdir(path);
}

static int is_unfinished(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return !strncmp(e->d_name, "step-", 5) && n > 9 &&
           strspn(e->d_name + 5, "0123456789") == n - 9 &&
           !strcmp(e->d_name + n - 4, ".tmp");
}

/* What a run that was killed had begun to write would take the room of what comes. */
static void remove_unfinished(const char *dir)
{
    struct dirent **e;
    char path[PATH];
    int n = scandir(dir, &e, is_unfinished, alphasort);
    for (int i = 0; i < n; i++) {
        if (snprintf(path, sizeof path, "%s/%s", dir, e[i]->d_name) < PATH)
            remove_folder(path);
        free(e[i]);
    }
    if (n >= 0)
        free(e);
}

/* Has this rank's file room, beside those of all others?  They stay until all have one. */
static int probe(struct topt_saver *v, struct topt_error *err)
{
    char path[PATH];
    int fd = -1, bad = 0;
    if (!path_into(path, err, "%s/room-%d.tmp", v->dir, v->rank))
        fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0)
        fail_at("--checkpoint: create", path, err);
    else
        bad = posix_fallocate(fd, 0, v->copy_bytes + (int64_t)v->header_bytes);
    if (bad && bad != EOPNOTSUPP && bad != EINVAL) {
        errno = bad;
        fail_at("--checkpoint: no room for a checkpoint in", v->dir, err);
    } else {
        bad = 0;
    }
    int rc = topt_comm_agree(v->s->comm, fd < 0 || bad, err);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    return rc;
}

static struct topt_saver *create(struct topt_session *s, const char *dir, int64_t keep,
                                 struct topt_error *err)
{
    struct topt_saver *v = calloc(1, sizeof *v);
    if (!v) {
        topt_nomem(err, NULL);
        return NULL;
    }
    v->p = s->p;
    v->rank = s->comm->rank;
    v->s = s;
    v->keep = keep;
    if (path_into(v->dir, err, "%s", dir) || list_tensors(v, err) ||
        make_header(v, err)) {
        topt_saver_close(v);
        return NULL;
    }
    v->copy = malloc((size_t)v->copy_bytes + 1);
    if (!v->copy) {
        topt_nomem(err, "the copy that checkpoints are written from");
        topt_saver_close(v);
        return NULL;
    }
    return v;
}

int topt_saver_open(struct topt_session *s, const char *dir, int64_t keep,
                    struct topt_saver **ret, struct topt_error *err)
{
    struct topt_saver *v = create(s, dir, keep, err);
    int failed = !v;
    if (v && !s->comm->rank && mkdir(dir, 0777) && errno != EEXIST)
        failed = fail_at("--checkpoint: create", dir, err);
    if (!failed && !s->comm->rank)
        remove_unfinished(dir);
    if (topt_comm_agree(s->comm, failed, err) || probe(v, err)) {
        topt_saver_close(v);
        return -1;
    }
    *ret = v;
    return 0;
}

void topt_saver_close(struct topt_saver *v)
{
    if (!v)
        return;
    if (atomic_load(&v->state) != IDLE)
        pthread_join(v->thread, NULL);
    free(v->stay);
    free(v->writer);
    free(v->header);
    free(v->copy);
    free(v);
}

/* ---- writing ----------------------------------------------------------------------- */

static int put(struct topt_saver *v, int fd, const char *path, struct topt_sum *sum,
               const char *data, size_t n)
{
    topt_sum_add(sum, data, n);
    while (n) {
        ssize_t k = write(fd, data, n < PART ? n : PART);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return fail_at("write", path, &v->error);
        data += k;
        n -= (size_t)k;
    }
    return 0;
}

static int write_file(struct topt_saver *v)
{
    char path[PATH];
    struct topt_sum sum = {0};
    if (path_into(path, &v->error, "%s/rank-%05d.safetensors", v->path, v->rank))
        return -1;
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0)
        return fail_at("create", path, &v->error);
    int rc = put(v, fd, path, &sum, v->header, v->header_bytes) ||
             put(v, fd, path, &sum, v->copy, (size_t)v->copy_bytes);
    if (!rc && fsync(fd))
        rc = fail_at("write", path, &v->error);
    if (close(fd) && !rc)
        rc = fail_at("write", path, &v->error);
    v->sum = topt_sum_end(&sum);
    return rc;
}

static void *run(void *arg)
{
    struct topt_saver *v = arg;
    v->failed = write_file(v);
    atomic_store(&v->state, WRITTEN);
    return NULL;
}

static int start_thread(struct topt_saver *v, struct topt_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&v->state, WRITING);
    int rc = pthread_create(&v->thread, NULL, run, v);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!rc)
        return 0;
    atomic_store(&v->state, IDLE);
    return topt_fail(err, TOPT_ERR_NOMEM, "start a thread: %s", strerror(rc));
}

static int copy_blocks(struct topt_saver *v, struct topt_error *err)
{
    struct topt_session *s = v->s;
    char *at = v->copy;
    for (int t = 0; t < v->nstays; t++) {
        if (!writes(v, t, v->rank))
            continue;
        int buffer = v->stay[t].buffer;
        int64_t bytes = topt_buffer_bytes(s, buffer);
        if (topt_packed_bits(s->p, buffer)) {
            bytes = topt_buffer_elements(s, buffer) * (int64_t)sizeof(float);
            topt_packed_get(s, buffer, (float *)(void *)at);
        } else if (s->dev->ops->read(s->dev, at, s->ptr[buffer], bytes, err)) {
            return -1;
        }
        at += bytes;
    }
    return 0;
}

int topt_saver_begin(struct topt_saver *v, const struct topt_checkpoint_facts *facts,
                     struct topt_error *err)
{
    int failed = 0;
    v->facts = *facts;
    v->failed = 0;
    if (path_into(v->path, err, "%s/step-%09lld.tmp", v->dir, (long long)facts->step))
        failed = -1;
    if (!failed && !v->rank) {
        remove_folder(v->path);
        if (mkdir(v->path, 0777))
            failed = fail_at("create", v->path, err);
    }
    if (!failed)
        failed = copy_blocks(v, err);
    if (topt_comm_agree(v->s->comm, failed, err))
        return -1;
    return topt_comm_agree(v->s->comm, start_thread(v, err), err);
}

int topt_saver_state(struct topt_saver *v)
{
    return atomic_load(&v->state);
}

/* ---- committing -------------------------------------------------------------------- */

static json_t *numbers(const int64_t *n, int count)
{
    json_t *a = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(a, json_integer(n[i]));
    return a;
}

/* Where a whole tensor's blocks are: file, first elements, extents. */
static json_t *index_tensor(const struct topt_saver *v, int t)
{
    const struct topt_program *p = v->p;
    struct topt_shape shape = topt_stay_shape(p, v->stay[t].buffer);
    int64_t whole[TOPT_MAX_RANK];
    json_t *blocks = json_array();
    for (int d = 0; d < shape.ndim; d++)
        whole[d] = shape.dim[d].count;
    for (int r = 0; r < v->p->mesh.devices; r++) {
        struct topt_box box = topt_stay_box(p, v->stay[t].buffer, r);
        if (writes(v, t, r))
            json_array_append_new(blocks,
                                  json_pack("[i, o, o]", r, numbers(box.off, shape.ndim),
                                            numbers(box.len, shape.ndim)));
    }
    return json_pack("{s:s, s:o, s:o}", "dtype", topt_stay_dtype(v->p, v->stay[t].buffer),
                     "shape", numbers(whole, shape.ndim), "blocks", blocks);
}

struct wrote {
    int64_t bytes;
    uint64_t sum;
};

static json_t *make_index(const struct topt_saver *v, const struct wrote *w)
{
    const struct topt_checkpoint_facts *f = &v->facts;
    json_t *files = json_array(), *tensors = json_object();
    char name[64], sum[32], data[32];
    for (int r = 0; r < v->p->mesh.devices; r++) {
        snprintf(name, sizeof name, "rank-%05d.safetensors", r);
        snprintf(sum, sizeof sum, "%016llx", (unsigned long long)w[r].sum);
        json_array_append_new(files, json_pack("{s:s, s:I, s:s}", "name", name, "bytes",
                                               (json_int_t)w[r].bytes, "sum", sum));
    }
    for (int t = 0; t < v->nstays; t++)
        json_object_set_new(tensors, v->stay[t].name, index_tensor(v, t));
    snprintf(data, sizeof data, "%016llx", (unsigned long long)f->data);
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:I, s:o, s:o}",
                     "format", "topt-checkpoint/1", "model", v->p->model->name,
                     "optimizer", topt_optimizer_name(v->p->settings.optimizer), "dtype",
                     topt_dtype_name(v->p->settings.dtype), "step", (json_int_t)f->step,
                     "batch", (json_int_t)f->batch, "seq", (json_int_t)f->seq, "seed",
                     (json_int_t)f->seed, "data", data, "schedule_last",
                     (json_int_t)f->schedule_last, "files", files, "tensors", tensors);
}

static int write_index(const struct topt_saver *v, const struct wrote *w,
                       struct topt_error *err)
{
    char path[PATH];
    json_t *doc = make_index(v, w);
    char *text = doc ? topt_json_text(doc, 0) : NULL;
    int rc = text ? path_into(path, err, "%s/index.json", v->path)
                  : topt_nomem(err, "the index of a checkpoint");
    if (!rc)
        rc = topt_write_file(path, text, strlen(text), err);
    free(text);
    json_decref(doc);
    return rc;
}

static int sync_folder(const char *path, struct topt_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || (fsync(fd) && errno != EINVAL) ? fail_at("sync", path, err) : 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

static int is_step(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return !strncmp(e->d_name, "step-", 5) && n > 5 &&
           strspn(e->d_name + 5, "0123456789") == n - 5;
}

/* What is older than the last 'keep'; it is no failure where that can't be removed. */
static void remove_old(const struct topt_saver *v)
{
    struct dirent **e;
    char path[PATH];
    int n = scandir(v->dir, &e, is_step, alphasort);
    for (int i = 0; i < n; i++) {
        if (i + v->keep < n && strtoll(e[i]->d_name + 5, NULL, 10) != v->facts.step &&
            snprintf(path, sizeof path, "%s/%s", v->dir, e[i]->d_name) < PATH)
            remove_folder(path);
        free(e[i]);
    }
    if (n >= 0)
        free(e);
}

/* The name that says that it is whole. */
static int name_it(const struct topt_saver *v, const struct wrote *w,
                   struct topt_error *err)
{
    char path[PATH];
    if (write_index(v, w, err) || sync_folder(v->path, err) ||
        path_into(path, err, "%s/step-%09lld", v->dir, (long long)v->facts.step))
        return -1;
    remove_folder(path); /* of a run that went on from an older one */
    if (rename(v->path, path))
        return fail_at("name a checkpoint", path, err);
    if (sync_folder(v->dir, err))
        return -1;
    remove_old(v);
    return 0;
}

/* What all wrote, on rank 0. */
static int collect(struct topt_saver *v, struct wrote *w, struct topt_error *err)
{
    struct topt_comm *c = v->s->comm;
    w[c->rank] =
        (struct wrote){.bytes = v->copy_bytes + (int64_t)v->header_bytes, .sum = v->sum};
    if (c->rank)
        return c->ops->send(c, 0, &w[c->rank], sizeof *w, err);
    for (int r = 1; r < c->size; r++)
        if (c->ops->receive(c, r, &w[r], sizeof *w, err))
            return -1;
    return 0;
}

int topt_saver_commit(struct topt_saver *v, struct topt_error *err)
{
    struct topt_comm *c = v->s->comm;
    struct wrote *w = calloc((size_t)c->size, sizeof *w);
    pthread_join(v->thread, NULL);
    atomic_store(&v->state, IDLE);
    int failed = w ? 0 : topt_nomem(err, NULL);
    if (!failed && v->failed) {
        *err = v->error;
        failed = -1;
    }
    int rc = topt_comm_agree(c, failed, err) || collect(v, w, err);
    if (!rc)
        rc = topt_comm_agree(c, !c->rank && name_it(v, w, err), err);
    if (rc && !c->rank)
        remove_folder(v->path); /* what is there of it would fill the disk */
    free(w);
    return rc ? -1 : 0;
}
