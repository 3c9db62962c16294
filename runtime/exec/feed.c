/* feed.c - character-level text as samples.
 *
 * A sample is a window of the text, its place a function of (seed, step, number in the global
 * batch), so each rank reads just the windows and positions of its box and all plans see the
 * same batches.  An operand called "labels" holds the next byte, any other the byte itself. */
#include "exec.h"
#include "random.h"
#include "topt_text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_TEXT_BYTES = 1 << 30 };

struct topt_text_feed {
    unsigned char *text; /* already numbered */
    int64_t len, seq, batch;
    int vocab;
    uint64_t seed, digest;
};

/* The least vocabulary of the operators that take samples, and whose it is. */
static int64_t model_vocab(const struct topt_model *m, const char **ret_name)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < m->nops; i++) {
        const struct topt_op_spec *spec = m->op[i].spec;
        int takes_data = 0;
        for (int o = 0; o < spec->noperands; o++)
            takes_data |= spec->operand[o].role == TOPT_DATA;
        for (int d = 0; d < spec->ndims && takes_data; d++)
            if (!strcmp(spec->dim[d].name, "v") && m->op[i].count[d] < least) {
                least = m->op[i].count[d];
                *ret_name = m->op[i].name;
            }
    }
    return least;
}

/* Number the byte values that occur from 0, in order. */
static int number_bytes(struct topt_text_feed *f, const struct topt_model *m,
                        struct topt_error *err)
{
    int number[256] = {0};
    const char *name = "";
    f->digest = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < f->len; i++) {
        number[f->text[i]] = 1;
        f->digest = (f->digest ^ f->text[i]) * 0x100000001b3u;
    }
    for (int b = 0; b < 256; b++)
        number[b] = number[b] ? f->vocab++ : -1;
    int64_t vocab = model_vocab(m, &name);
    if (f->vocab > vocab)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "the text has %d different characters, '%s' of the model takes %lld",
            f->vocab, name, (long long)vocab);
    for (int64_t i = 0; i < f->len; i++)
        f->text[i] = (unsigned char)number[f->text[i]];
    return 0;
}

/* Takes 'text'. */
static int make(char *text, size_t len, const struct topt_model *m, uint64_t seed,
                struct topt_text_feed **ret, struct topt_error *err)
{
    struct topt_text_feed *f = calloc(1, sizeof *f);
    if (!f) {
        free(text);
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    }
    f->text = (unsigned char *)text;
    f->len = (int64_t)len;
    f->seq = m->seq;
    f->batch = m->batch;
    f->seed = topt_mix(seed ^ 0x7465787466656564u);
    int rc = 0;
    if (f->len < f->seq + 1)
        rc = topt_fail(err, TOPT_ERR_INVAL,
                       "the text has %lld bytes, a sample needs %lld (sequence + 1)",
                       (long long)f->len, (long long)f->seq + 1);
    if (rc || number_bytes(f, m, err)) {
        topt_text_feed_close(f);
        return -1;
    }
    *ret = f;
    return 0;
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int append_file(struct topt_text *all, const char *dir, const char *name,
                       struct topt_error *err)
{
    char path[4096];
    struct stat st;
    size_t len;
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return topt_fail(err, TOPT_ERR_INVAL, "path of '%s' in '%s' is too long", name,
                         dir);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return 0;
    char *s = topt_read_file(path, MAX_TEXT_BYTES, &len, err);
    if (!s)
        return -1;
    topt_text_put(all, s, len);
    free(s);
    return all->oom || all->len > MAX_TEXT_BYTES
               ? topt_fail(err, TOPT_ERR_LIMIT, "'%s' holds more than 1 GiB", dir)
               : 0;
}

static char *read_directory(const char *path, size_t *ret_len, struct topt_error *err)
{
    struct dirent **entry;
    struct topt_text all = {0};
    int n = scandir(path, &entry, visible, alphasort), rc = 0;
    if (n < 0) {
        topt_fail(err, TOPT_ERR_IO, "read directory '%s': %s", path, strerror(errno));
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        if (!rc)
            rc = append_file(&all, path, entry[i]->d_name, err);
        free(entry[i]);
    }
    free(entry);
    if (!rc && !all.len)
        rc = topt_fail(err, TOPT_ERR_NOTFOUND, "no text in directory '%s'", path);
    if (rc) {
        topt_text_fini(&all);
        return NULL;
    }
    *ret_len = all.len;
    return all.s;
}

int topt_text_feed_open(const char *path, const struct topt_model *m, uint64_t seed,
                        struct topt_text_feed **ret, struct topt_error *err)
{
    struct stat st;
    size_t len;
    int is_dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    char *text = is_dir ? read_directory(path, &len, err)
                        : topt_read_file(path, MAX_TEXT_BYTES, &len, err);
    if (!text)
        return -1;
    return make(text, len, m, seed, ret, err) ? topt_wrap(err, "%s", path) : 0;
}

int topt_text_feed_from(const char *bytes, size_t len, const struct topt_model *m,
                        uint64_t seed, struct topt_text_feed **ret,
                        struct topt_error *err)
{
    char *copy = malloc(len + 1);
    if (!copy)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    memcpy(copy, bytes, len);
    return make(copy, len, m, seed, ret, err);
}

static int load_text(void *ctx, const struct topt_op *op, int operand, int64_t step,
                     const struct topt_box *box, int32_t *ret, struct topt_error *err)
{
    const struct topt_text_feed *f = ctx;
    int64_t next = !strcmp(op->spec->operand[operand].name, "labels");
    if (box->off[0] + box->len[0] > f->batch || box->off[1] + box->len[1] > f->seq)
        return topt_fail(err, TOPT_ERR_INTERNAL,
                         "'%s' asks for more samples than a batch has", op->name);
    for (int64_t b = 0; b < box->len[0]; b++) {
        uint64_t sample = (uint64_t)(step * f->batch + box->off[0] + b);
        uint64_t places = (uint64_t)(f->len - f->seq);
        int64_t at =
            (int64_t)(topt_random(f->seed, sample) % places) + box->off[1] + next;
        for (int64_t i = 0; i < box->len[1]; i++)
            *ret++ = f->text[at + i];
    }
    return 0;
}

struct topt_feed topt_text_feed_use(struct topt_text_feed *f)
{
    return (struct topt_feed){.load = load_text, .ctx = f};
}

uint64_t topt_text_feed_digest(const struct topt_text_feed *f)
{
    return f->digest;
}

int64_t topt_text_feed_bytes(const struct topt_text_feed *f)
{
    return f->len;
}

int topt_text_feed_vocab(const struct topt_text_feed *f)
{
    return f->vocab;
}

void topt_text_feed_close(struct topt_text_feed *f)
{
    if (!f)
        return;
    free(f->text);
    free(f);
}
