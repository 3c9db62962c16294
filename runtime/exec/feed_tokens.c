/* feed_tokens.c - text as numbers of tokens, in one file or in shards.
 *
 * Two kinds of "*.bin" are known: 16-bit numbers and nothing else (nanoGPT), and 256 32-bit
 * words of header, then 16-bit or 32-bit numbers (llm.c: magic 20240520 or 20240801, version,
 * number of tokens).  Files are mapped, so that a rank's memory is what it reads.  A text that
 * is tokenised here is one shard of 32-bit numbers in memory.  A sample is
 * a window of seq + 1 tokens of one shard, whose place is a function of the seed and of its
 * number among all samples. */
#include "feed_tokens.h"
#include "feed_file.h"
#include "feed_model.h"
#include "feed_texts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER = 1024, MAGIC_16 = 20240520, MAGIC_32 = 20240801, MOST_SHARDS = 1 << 16 };

struct shard {
    const unsigned char *map;
    size_t bytes, at;       /* 'at': where tokens begin */
    int wide;               /* 4 bytes a token, else 2 */
    int64_t tokens, places; /* windows before and in this shard */
};

struct tokens {
    struct shard *shard;
    int n;
    struct topt_ids made; /* here, not mapped */
    int64_t seq, batch, vocab;
    struct topt_windows windows;
    uint64_t seed, digest;
};

static int ends_in_bin(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && !strcmp(name + n - 4, ".bin");
}

static int is_shard(const struct dirent *e)
{
    return e->d_name[0] != '.' && ends_in_bin(e->d_name);
}

int topt_feed_is_tokens(const char *path)
{
    struct stat st;
    struct dirent **e;
    if (stat(path, &st))
        return 0;
    if (!S_ISDIR(st.st_mode))
        return S_ISREG(st.st_mode) && ends_in_bin(path);
    int n = scandir(path, &e, is_shard, alphasort);
    for (int i = 0; i < n; i++)
        free(e[i]);
    if (n >= 0)
        free(e);
    return n > 0;
}

static int64_t word_at(const struct shard *s, size_t i)
{
    uint32_t w = 0;
    for (int k = 3; k >= 0; k--)
        w = w << 8 | s->map[4 * i + (size_t)k];
    return w;
}

static int64_t token_at(const struct shard *s, int64_t i)
{
    const unsigned char *p = s->map + s->at + (size_t)i * (s->wide ? 4 : 2);
    return s->wide ? (int64_t)p[0] | (int64_t)p[1] << 8 | (int64_t)p[2] << 16 |
                         (int64_t)p[3] << 24
                   : p[0] | p[1] << 8;
}

static int read_header(struct shard *s, struct topt_error *err)
{
    int64_t magic = s->bytes >= HEADER ? word_at(s, 0) : 0;
    if (magic == MAGIC_16 || magic == MAGIC_32) {
        s->at = HEADER;
        s->wide = magic == MAGIC_32;
    }
    size_t size = s->wide ? 4 : 2;
    s->tokens = (int64_t)((s->bytes - s->at) / size);
    if (s->at && word_at(s, 2) != s->tokens)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "its header says %lld tokens, %lld follow: cut short?",
                         (long long)word_at(s, 2), (long long)s->tokens);
    return (s->bytes - s->at) % size
               ? topt_fail(err, TOPT_ERR_INVAL,
                           "is no whole number of tokens of %zu bytes", size)
               : 0;
}

static int open_shard(struct tokens *f, const char *path, struct topt_error *err)
{
    struct shard *s = &f->shard[f->n];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        topt_fail(err, TOPT_ERR_IO, "open '%s': %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    void *map = st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0)
                           : MAP_FAILED;
    close(fd);
    if (map == MAP_FAILED)
        return topt_fail(err, TOPT_ERR_IO, "map '%s': %s", path,
                         st.st_size ? strerror(errno) : "it is empty");
    *s = (struct shard){.map = map, .bytes = (size_t)st.st_size};
    f->n++;
    if (read_header(s, err))
        return topt_wrap(err, "%s", path);
    int64_t before = f->n > 1 ? s[-1].places : 0;
    s->places = before + topt_windows_in(&f->windows, s->tokens);
    size_t ends =
        s->bytes < 4096 ? s->bytes : 4096; /* files are too long to be read whole */
    f->digest = topt_mix(f->digest ^ topt_feed_digest(s->map, ends)) ^
                topt_feed_digest(s->map + s->bytes - ends, ends) ^ (uint64_t)s->bytes;
    return 0;
}

static void close_tokens(void *ctx)
{
    struct tokens *f = ctx;
    for (int i = 0; i < f->n && !f->made.id; i++)
        munmap((void *)(uintptr_t)f->shard[i].map, f->shard[i].bytes);
    topt_ids_fini(&f->made);
    free(f->shard);
    free(f);
}

static int open_shards(struct tokens *f, const char *path, struct topt_error *err)
{
    struct dirent **e;
    struct stat st;
    char name[4096];
    if (stat(path, &st))
        return topt_fail(err, TOPT_ERR_IO, "open '%s': %s", path, strerror(errno));
    int folder = S_ISDIR(st.st_mode), rc = 0;
    int n = folder ? scandir(path, &e, is_shard, alphasort) : 1;
    if (n < 0)
        return topt_fail(err, TOPT_ERR_IO, "read directory '%s': %s", path,
                         strerror(errno));
    f->shard = n <= MOST_SHARDS ? calloc((size_t)n + 1, sizeof *f->shard) : NULL;
    if (!f->shard)
        rc = topt_nomem(err, NULL);
    if (!folder)
        return rc ? rc : open_shard(f, path, err);
    for (int i = 0; i < n; i++) {
        if (!rc &&
            snprintf(name, sizeof name, "%s/%s", path, e[i]->d_name) >= (int)sizeof name)
            rc = topt_fail(err, TOPT_ERR_INVAL, "a path in '%s' is too long", path);
        if (!rc)
            rc = open_shard(f, name, err);
        free(e[i]);
    }
    free(e);
    return rc;
}

/* Shard and place of a sample's window. */
static const struct shard *find(const struct tokens *f, uint64_t sample, int64_t *ret_at)
{
    int64_t place =
        topt_window_of(&f->windows, f->seed, sample, f->shard[f->n - 1].places);
    int low = 0, high = f->n - 1;
    while (low < high) {
        int mid = (low + high) / 2;
        if (f->shard[mid].places > place)
            high = mid;
        else
            low = mid + 1;
    }
    *ret_at = (place - (low ? f->shard[low - 1].places : 0)) * f->windows.stride;
    return &f->shard[low];
}

static int load(void *ctx, const struct topt_op *op, int operand, int64_t step,
                const struct topt_box *box, int32_t *ret, struct topt_error *err)
{
    const struct tokens *f = ctx;
    int64_t at, next = op->spec->loss;
    if (topt_feed_check(op, box, f->batch, err))
        return -1;
    if (topt_feed_is_kinds(op))
        return topt_feed_zeros(op, operand, box, ret);
    for (int64_t b = 0; b < box->len[0]; b++) {
        const struct shard *s =
            find(f, (uint64_t)(step * f->batch + box->off[0] + b), &at);
        at += box->off[1] + next;
        for (int64_t i = 0; i < box->len[1]; i++) {
            int64_t token = token_at(s, at + i);
            if (token >= f->vocab)
                return topt_fail(err, TOPT_ERR_INVAL,
                                 "the data have token %lld, the model's vocabulary ends "
                                 "at %lld; was it made by another tokenizer?",
                                 (long long)token, (long long)f->vocab - 1);
            *ret++ = (int32_t)token;
        }
    }
    return 0;
}

static int check(struct tokens *f, const struct topt_model *m, struct topt_error *err)
{
    struct topt_feed_needs n = topt_feed_needs_of(m);
    f->vocab = n.tokens && n.vocab < n.classes ? n.vocab : n.classes;
    if (n.features || !n.classes || n.answers != m->seq)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "tokens are for models of text, '%.80s' is none", m->name);
    return 0;
}

/* The shard that a text becomes. */
static int tokenise(struct tokens *f, const char *path, const char *tokenizer,
                    struct topt_error *err)
{
    struct topt_tokenizer *t;
    if (topt_tokenizer_load(tokenizer, &t, err))
        return topt_wrap(err, "--tokenizer");
    int rc = topt_feed_is_records(path)
                 ? topt_feed_records_texts(path, t, &f->made, err)
                 : topt_tokenizer_encode_files(t, path, &f->made, err);
    if (!rc && topt_tokenizer_vocab(t) > f->vocab)
        for (int64_t i = 0; i < f->made.n && !rc; i++)
            if (f->made.id[i] >= f->vocab)
                rc = topt_fail(err, TOPT_ERR_INVAL,
                               "the tokenizer gives token %d, the model's vocabulary "
                               "ends at %lld",
                               (int)f->made.id[i], (long long)f->vocab - 1);
    topt_tokenizer_destroy(t);
    f->shard = rc ? NULL : calloc(1, sizeof *f->shard);
    if (!f->shard)
        return rc ? rc : topt_nomem(err, NULL);
    f->shard[0] = (struct shard){.map = (const unsigned char *)f->made.id,
                                 .bytes = (size_t)f->made.n * sizeof *f->made.id,
                                 .wide = 1,
                                 .tokens = f->made.n,
                                 .places = topt_windows_in(&f->windows, f->made.n)};
    f->digest = topt_feed_digest(f->shard->map, f->shard->bytes);
    f->n = 1;
    return 0;
}

int topt_feed_tokens(const char *path, const char *tokenizer,
                     const struct topt_windows *windows, const struct topt_model *m,
                     uint64_t seed, struct topt_feed *ret, struct topt_error *err)
{
    struct tokens *f = calloc(1, sizeof *f);
    if (!f)
        return topt_nomem(err, NULL);
    f->windows = *windows;
    f->seq = m->seq;
    f->batch = m->batch;
    f->seed = topt_mix(seed ^ 0x746f6b656e73u);
    int rc = check(f, m, err) ||
             (tokenizer ? tokenise(f, path, tokenizer, err) : open_shards(f, path, err));
    if (!rc && f->shard[f->n - 1].places < 1)
        rc = topt_fail(err, TOPT_ERR_INVAL,
                       "'%s' has no %lld tokens in a row, which a sample needs%s", path,
                       (long long)windows->length,
                       windows->length == f->seq + 1 ? " (sequence + 1)" : "");
    if (rc) {
        close_tokens(f);
        return -1;
    }
    *ret = (struct topt_feed){.load = load,
                              .close = close_tokens,
                              .ctx = f,
                              .kind = "tokens",
                              .digest = f->digest};
    return 0;
}
