/* feed.c - where samples come from: told apart by what is there and what the model
 * takes.
 *
 * All kinds share one rule: the sample at a place of the global batch is a function of
 * (seed, step, place), so each rank makes just the numbers of its box and every plan
 * sees the same batches, however a batch is split over ranks or time. */
#include "feed_file.h"
#include "feed_images.h"
#include "feed_model.h"
#include "feed_table.h"
#include "feed_text.h"
#include "feed_texts.h"
#include "feed_tokens.h"
#include "topt_text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

/* The images, or all files together as one text; 'ret_path' is the images' or the
 * directory's. */
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

/* How another feed of that kind reads, NULL where there is none. */
static const void *preprocessing_of(const struct topt_feed *like, const char *kind)
{
    return like && !strcmp(like->kind, kind) ? like->preprocessing : NULL;
}

static int open_files(const struct topt_feed *like, const char *data,
                      const struct topt_windows *windows, const struct topt_model *m,
                      uint64_t seed, struct topt_feed *ret, struct topt_error *err)
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
        rc = topt_feed_csv(bytes, len, preprocessing_of(like, "csv"), m, seed, ret, err);
    else
        rc = topt_feed_text_as(bytes, len, preprocessing_of(like, "text"), windows, m,
                               seed, ret, err);
    free(bytes);
    return rc ? topt_wrap(err, "%s", data) : 0;
}

static int open_feed(const struct topt_feed *like, const char *data,
                     const struct topt_windows *windows, const struct topt_model *m,
                     uint64_t seed, struct topt_feed *ret, struct topt_error *err)
{
    if (!data && topt_feed_needs_of(m).tokens)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--data is missing: a text to train on, or 'synthetic'");
    if (!data || !strcmp(data, "synthetic"))
        return topt_feed_synthetic(m, seed, ret, err);
    if (topt_feed_needs_of(m).features && topt_feed_is_image_folder(data))
        return topt_feed_images(data, preprocessing_of(like, "images"), m, seed, ret,
                                err);
    if (topt_feed_is_tokens(data))
        return topt_feed_tokens(data, NULL, windows, m, seed, ret, err);
    return open_files(like, data, windows, m, seed, ret, err);
}

int topt_feed_open(const char *data, const struct topt_model *m, uint64_t seed,
                   struct topt_feed *ret, struct topt_error *err)
{
    struct topt_windows windows = {m->seq + 1, 1, 0};
    return open_feed(NULL, data, &windows, m, seed, ret, err);
}

/* Is it of the same kind as 'first' (NULL: any)?  Closed where it is not. */
static int check_kind(const struct topt_feed *first, const char *data,
                      struct topt_feed *feed, struct topt_error *err)
{
    if (!first || !strcmp(feed->kind, first->kind))
        return 0;
    topt_fail(err, TOPT_ERR_INVAL, "'%.200s' is %s, the data to train on are %s",
              data ? data : "what there is", feed->kind, first->kind);
    topt_feed_close(feed);
    return -1;
}

int topt_feed_like(const struct topt_feed *first, const char *data,
                   const struct topt_model *m, uint64_t seed, struct topt_feed *ret,
                   struct topt_error *err)
{
    struct topt_feed feed = {0};
    struct topt_windows windows = {m->seq + 1, 1, 0};
    if (open_feed(first, data, &windows, m, seed, &feed, err) ||
        check_kind(first, data, &feed, err))
        return -1;
    *ret = feed;
    return 0;
}

/* ---- objectives -------------------------------------------------------------------- */

static int refuse_objective(enum topt_objective asked, enum topt_objective purpose,
                            const char *data, const struct topt_model *m,
                            struct topt_error *err)
{
    struct topt_feed_needs n = topt_feed_needs_of(m);
    if (purpose == TOPT_LEARN_LABELS)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "'%.200s' has no labels, which '%s' takes: give records (*.jsonl) "
            "with \"text\" and \"label\"",
            data, n.loss->name);
    if (asked == TOPT_LEARN_BY_MODEL)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "nothing is known to learn of texts for '%.80s': '%s' answers "
                         "%lld of %lld classes a sample; train it on 'synthetic'",
                         m->name, n.loss->name, (long long)n.answers,
                         (long long)n.classes);
    return topt_fail(err, TOPT_ERR_INVAL, "'%.80s' cannot learn that of texts: it has %s",
                     m->name,
                     asked == TOPT_LEARN_SPANS ? "no encoder beside a decoder"
                                               : "an encoder beside a decoder");
}

/* What is learnt, of what may be; 'purpose' is that of the model. */
static int choose_objective(const struct topt_feed_request *q,
                            enum topt_objective purpose, const struct topt_model *m,
                            enum topt_objective *ret, struct topt_error *err)
{
    *ret = q->objective == TOPT_LEARN_BY_MODEL ? purpose : q->objective;
    int has_encoder = purpose == TOPT_LEARN_SPANS;
    return purpose == TOPT_LEARN_BY_MODEL || purpose == TOPT_LEARN_LABELS ||
                   has_encoder != (*ret == TOPT_LEARN_SPANS)
               ? refuse_objective(q->objective, purpose, q->data, m, err)
               : 0;
}

/* Tokens of a text that is read by character: what comes behind the characters is free. */
static struct topt_specials specials_of_text(const struct topt_feed *feed)
{
    int n = topt_feed_text_numbers(feed->preprocessing);
    return (struct topt_specials){
        .mask = n, .pad = n, .end = n + 1, .first = -1, .span = -1};
}

static int open_texts(const struct topt_feed_request *q, const struct topt_tokenizer *t,
                      const struct topt_feed *like, enum topt_objective o,
                      const struct topt_model *m, struct topt_feed *ret,
                      struct topt_error *err)
{
    /* of T5's vocabularies, for tokens that came without a tokenizer */
    struct topt_specials s = {.mask = -1, .pad = 0, .end = 1, .first = -1, .span = -1};
    struct topt_feed feed = {0};
    struct topt_windows windows = topt_feed_windows(o, m->seq, q->by_epoch);
    int are_tokens = topt_feed_is_tokens(q->data);
    if (q->tokenizer ? topt_feed_tokens(q->data, are_tokens ? NULL : q->tokenizer,
                                        &windows, m, q->seed, &feed, err)
                     : open_feed(like, q->data, &windows, m, q->seed, &feed, err))
        return -1;
    if (t)
        s = topt_specials_of(t);
    else if (!strcmp(feed.kind, "text"))
        s = specials_of_text(like ? like : &feed);
    s.mask = q->mask >= 0 ? (int32_t)q->mask : s.mask;
    if (check_kind(like, q->data, &feed, err))
        return -1;
    if (o != TOPT_LEARN_NEXT)
        return topt_feed_hidden(&feed, o, &s, m, q->seed, ret, err);
    *ret = feed;
    return 0;
}

static int open_by_purpose(const struct topt_feed_request *q,
                           const struct topt_tokenizer *t, const struct topt_feed *like,
                           const struct topt_model *m, struct topt_feed *ret,
                           struct topt_error *err)
{
    enum topt_objective o, purpose = topt_feed_purpose(m);
    int are_records = topt_feed_is_records(q->data);
    if (are_records && !t)
        return topt_fail(err, TOPT_ERR_USAGE, "records are read by a --tokenizer");
    if (are_records && purpose != TOPT_LEARN_BY_MODEL && purpose != TOPT_LEARN_MASKED &&
        (purpose == TOPT_LEARN_LABELS || !topt_feed_records_are_texts(q->data)))
        return topt_feed_records(q->data, t, like, m, q->seed, ret, err) ||
                       check_kind(like, q->data, ret, err)
                   ? -1
                   : 0;
    return choose_objective(q, purpose, m, &o, err) ||
                   open_texts(q, t, like, o, m, ret, err)
               ? -1
               : 0;
}

int topt_feed_for(const struct topt_feed_request *q, const struct topt_feed *like,
                  const struct topt_model *m, struct topt_feed *ret,
                  struct topt_error *err)
{
    struct topt_feed_needs n = topt_feed_needs_of(m);
    struct topt_tokenizer *t = NULL;
    int reads_tokens = n.tokens && !strcmp(n.tokens->spec->name, "embedding");
    if (!q->data || !strcmp(q->data, "synthetic") || !reads_tokens || n.features ||
        !n.classes)
        return like ? topt_feed_like(like, q->data, m, q->seed, ret, err)
                    : topt_feed_open(q->data, m, q->seed, ret, err);
    if (q->tokenizer && topt_tokenizer_load(q->tokenizer, &t, err))
        return topt_wrap(err, "--tokenizer");
    int rc = open_by_purpose(q, t, like, m, ret, err);
    topt_tokenizer_destroy(t);
    return rc;
}
