/* feed_images.c - image folders: a folder of pictures for each class, in order of name.
 *
 * All pictures are read at once, cut and scaled to what the model takes, as bytes.  Another
 * folder for the same model has the same classes: its folders have numbers by the names that the
 * first one's have. */
#include "feed_images.h"
#include "feed_file.h"
#include "feed_model.h"
#include "feed_table.h"
#include "picture.h"
#include "topt_text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct images {
    int64_t channels, height, width, classes;
    struct topt_text names; /* of classes, each on a line */
    unsigned char *pixel;
    float *answer;
    int64_t rows, pixel_cap, answer_cap, class;
    uint64_t digest;
};

static int is_folder(const char *dir, const char *name)
{
    struct stat st;
    char path[4096];
    return name[0] != '.' &&
           snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path &&
           !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Names of the folders in a folder, in order; freed as scandir's. */
static int folders_in(const char *dir, struct dirent ***ret)
{
    struct dirent **e = NULL;
    int n = scandir(dir, &e, NULL, alphasort), kept = 0;
    for (int i = 0; i < n; i++)
        if (is_folder(dir, e[i]->d_name))
            e[kept++] = e[i];
        else
            free(e[i]);
    *ret = e;
    return kept;
}

static void free_names(struct dirent **e, int n)
{
    for (int i = 0; i < n; i++)
        free(e[i]);
    free(e);
}

int topt_feed_is_image_folder(const char *path)
{
    struct dirent **e;
    int n = folders_in(path, &e);
    free_names(e, n);
    return n > 0;
}

static int take_picture(void *ctx, const char *path, const char *bytes, size_t len,
                        struct topt_error *err)
{
    struct images *x = ctx;
    struct topt_picture p;
    int64_t n = x->channels * x->height * x->width;
    if (x->rows >= TOPT_FEED_MAX_BYTES / n)
        return topt_fail(err, TOPT_ERR_LIMIT, "the pictures take more than 1 GiB");
    if (topt_picture_read(bytes, len, &p, err))
        return topt_wrap(err, "%s", path);
    unsigned char *to = x->pixel;
    int bad = 0;
    if ((x->rows + 1) * n > x->pixel_cap) {
        x->pixel_cap = 2 * (x->rows + 32) * n;
        to = realloc(x->pixel, (size_t)x->pixel_cap);
        x->pixel = to ? to : x->pixel;
        float *y = realloc(x->answer, (size_t)(x->pixel_cap / n) * sizeof *y);
        x->answer = y ? y : x->answer;
        bad = !to || !y;
    }
    if (!bad) {
        topt_picture_fit(&p, (int)x->channels, x->height, x->width, to + x->rows * n);
        x->answer[x->rows++] = (float)x->class;
        x->digest = topt_feed_digest(bytes, len) ^ (x->digest << 1 | x->digest >> 63);
    }
    free(p.pixel);
    return bad ? topt_nomem(err, NULL) : 0;
}

/* The line of a name among others; -1: none. */
static int64_t line_of(const char *names, const char *name)
{
    size_t len = strlen(name);
    int64_t line = 0;
    for (const char *s = names; *s; s = strchr(s, '\n') + 1, line++)
        if (!strncmp(s, name, len) && s[len] == '\n')
            return line;
    return -1;
}

static int take_folder(struct images *x, const char *dir, const char *name,
                       const char *like, struct topt_error *err)
{
    char path[4096];
    x->class = like ? line_of(like, name) : x->class + 1;
    topt_text_add(&x->names, "%s\n", name);
    if (x->class < 0)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "there is no class '%.80s' in the data to train on", name);
    if (x->class >= x->classes)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "has more folders than the model has classes, %lld",
                         (long long)x->classes);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return topt_feed_each_file(path, take_picture, x, err);
}

/* A sample as an image, or as a row of numbers that is a square of grey. */
static int shape_of(struct images *x, const struct topt_feed_needs *n,
                    struct topt_error *err)
{
    const struct topt_op *op = n->features;
    x->classes = n->classes;
    if (!op || n->tokens || n->nfeatures != 1 || !n->classes || n->answers != 1)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "a folder of pictures by class is for models that tell classes of "
            "pictures");
    const struct topt_dim *d = op->operand[op->output].dim;
    int64_t side = 1;
    while ((side + 1) * (side + 1) <= n->sample)
        side++;
    int is_image = op->spec->operand[op->output].ndim == 4;
    x->channels = is_image ? d[1].count * d[1].unit : 1;
    x->height = is_image ? d[2].count * d[2].unit : side;
    x->width = is_image ? d[3].count * d[3].unit : side;
    return x->channels * x->height * x->width == n->sample &&
                   (x->channels == 1 || x->channels == 3)
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "the model takes %lld numbers a sample, which are no picture",
                           (long long)n->sample);
}

int topt_feed_images(const char *dir, const void *like, const struct topt_model *m,
                     uint64_t seed, struct topt_feed *ret, struct topt_error *err)
{
    struct topt_feed_needs needs = topt_feed_needs_of(m);
    struct images x = {.class = -1};
    struct dirent **e;
    int n = folders_in(dir, &e), rc = shape_of(&x, &needs, err);
    for (int i = 0; i < n && !rc; i++)
        rc = take_folder(&x, dir, e[i]->d_name, like, err);
    free_names(e, n);
    if (!rc && x.names.oom)
        rc = topt_nomem(err, NULL);
    if (!rc && !x.rows)
        rc = topt_fail(err, TOPT_ERR_NOTFOUND, "has folders without pictures");
    if (rc) {
        free(x.pixel);
        free(x.answer);
        topt_text_fini(&x.names);
        return topt_wrap(err, "%s", dir);
    }
    struct topt_pictures p = {.pixel = x.pixel,
                              .answer = x.answer,
                              .rows = x.rows,
                              .names = x.names.s,
                              .digest = x.digest};
    return topt_feed_of_pictures(&p, m, seed, ret, err);
}
