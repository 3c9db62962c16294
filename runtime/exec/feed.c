/* feed.c - where samples come from: told apart by what is there and what the model
 * takes.
 *
 * All kinds share one rule: the sample at a place of the global batch is a function of
 * (seed, step, place), so each rank makes just the numbers of its box and every plan
 * sees the same batches, however a batch is split over ranks or time. */
#include "feed_file.h"
#include "feed_model.h"
#include "feed_table.h"
#include "feed_text.h"
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
                      const struct topt_model *m, uint64_t seed, struct topt_feed *ret,
                      struct topt_error *err)
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
        rc = topt_feed_text_as(bytes, len, preprocessing_of(like, "text"), m, seed, ret,
                               err);
    free(bytes);
    return rc ? topt_wrap(err, "%s", data) : 0;
}

static int open_feed(const struct topt_feed *like, const char *data,
                     const struct topt_model *m, uint64_t seed, struct topt_feed *ret,
                     struct topt_error *err)
{
    if (!data && topt_feed_needs_of(m).tokens)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--data is missing: a text to train on, or 'synthetic'");
    if (!data || !strcmp(data, "synthetic"))
        return topt_feed_synthetic(m, seed, ret, err);
    if (topt_feed_is_tokens(data))
        return topt_feed_tokens(data, m, seed, ret, err);
    return open_files(like, data, m, seed, ret, err);
}

int topt_feed_open(const char *data, const struct topt_model *m, uint64_t seed,
                   struct topt_feed *ret, struct topt_error *err)
{
    return open_feed(NULL, data, m, seed, ret, err);
}

int topt_feed_like(const struct topt_feed *first, const char *data,
                   const struct topt_model *m, uint64_t seed, struct topt_feed *ret,
                   struct topt_error *err)
{
    struct topt_feed feed = {0};
    if (open_feed(first, data, m, seed, &feed, err))
        return -1;
    if (strcmp(feed.kind, first->kind) != 0) {
        topt_fail(err, TOPT_ERR_INVAL, "'%.200s' is %s, the data to train on are %s",
                  data ? data : "what there is", feed.kind, first->kind);
        topt_feed_close(&feed);
        return -1;
    }
    *ret = feed;
    return 0;
}

void topt_feed_close(struct topt_feed *f)
{
    if (f->close)
        f->close(f->ctx);
    *f = (struct topt_feed){0};
}
