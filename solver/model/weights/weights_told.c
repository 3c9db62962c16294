/* weights_told.c - weights that come without a config: how many numbers and bytes.
 *
 * Names and shapes do not tell how many heads there are, nor how many experts a token
 * takes, so that this is no model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "topt_model.h"
#include "model_place.h"
#include "safetensors_read.h"
#include "topt_text.h"
#include "weights.h"

static int is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int ends_in_safetensors(const char *path)
{
    static const char end[] = ".safetensors";
    size_t n = strlen(path), k = sizeof end - 1;
    return n > k && !strcmp(path + n - k, end);
}

int topt_weights_alone(const char *path)
{
    char config[TOPT_PLACE];
    struct stat st;
    if (stat(path, &st))
        return 0;
    return S_ISDIR(st.st_mode) ? topt_model_place_weights(path)
                               : ends_in_safetensors(path) && S_ISREG(st.st_mode) &&
                                     !topt_model_place_beside(path, config);
}

/* The name with each run of digits between dots as '#'. */
static void pattern_of(const char *name, char ret[120])
{
    size_t n = 0;
    for (const char *c = name; *c && n + 2 < 120;) {
        size_t digits = strspn(c, "0123456789");
        int whole = digits && (c == name || c[-1] == '.') && (c[digits] == '.');
        if (whole)
            ret[n++] = '#';
        else if (digits == 0)
            ret[n++] = *c;
        for (size_t i = 0; !whole && i < digits && n + 2 < 120; i++)
            ret[n++] = c[i];
        c += digits ? digits : 1;
    }
    ret[n] = '\0';
}

static int by_name(const void *a, const void *b)
{
    const struct topt_weights_kind *p = a, *q = b;
    return strcmp(p->name, q->name);
}

/* One of each name, with the sums of those that have it. */
static void join_kinds(struct topt_weights_told *told)
{
    int n = 0;
    qsort(told->kind, (size_t)told->nkinds, sizeof *told->kind, by_name);
    for (int i = 0; i < told->nkinds; i++)
        if (n && !strcmp(told->kind[n - 1].name, told->kind[i].name)) {
            told->kind[n - 1].tensors += told->kind[i].tensors;
            told->kind[n - 1].numbers += told->kind[i].numbers;
        } else {
            told->kind[n++] = told->kind[i];
        }
    told->nkinds = n;
}

static int add_up(const struct topt_weights *w, struct topt_weights_told *ret,
                  struct topt_error *err)
{
    ret->files = w->files;
    ret->tensors = ret->nkinds = w->n;
    ret->bytes = w->total;
    ret->kind = calloc((size_t)w->n + 1, sizeof *ret->kind);
    if (!ret->kind)
        return topt_nomem(err, "the names of tensors");
    for (int i = 0; i < w->n; i++) {
        ret->kind[i].tensors = 1;
        ret->kind[i].numbers = (int64_t)topt_weight_elements(&w->at[i]);
        ret->numbers += ret->kind[i].numbers;
        pattern_of(w->at[i].name, ret->kind[i].name);
    }
    for (int i = 0; topt_weight_type(i); i++)
        if (w->bytes[i]) {
            ret->type[ret->ntypes].name = topt_weight_type(i);
            ret->type[ret->ntypes++].bytes = w->bytes[i];
            ret->bytes += w->bytes[i];
        }
    join_kinds(ret);
    return 0;
}

static int read_path(const char *path, struct topt_weights *w, struct topt_error *err)
{
    char dir[TOPT_PLACE] = ".";
    const char *slash = strrchr(path, '/');
    if (is_folder(path))
        return topt_weights_read(path, w, err);
    if (slash)
        snprintf(dir, sizeof dir, "%.*s", (int)(slash - path) + (slash == path), path);
    return topt_weights_read_file(dir, slash ? slash + 1 : path, w, err);
}

int topt_weights_tell(const char *path, struct topt_weights_told *ret,
                      struct topt_error *err)
{
    struct topt_weights w = {.arena = topt_arena_create(0)};
    *ret = (struct topt_weights_told){0};
    if (!w.arena)
        return topt_nomem(err, "the names of tensors");
    int rc = read_path(path, &w, err);
    if (!rc && !w.n)
        rc = topt_fail(err, TOPT_ERR_INVAL, "it has no tensors");
    rc = rc ? topt_wrap(err, "'%.150s'", path) : add_up(&w, ret, err);
    free(w.at);
    topt_arena_destroy(w.arena);
    return rc;
}

void topt_weights_told_fini(struct topt_weights_told *told)
{
    free(told->kind);
    told->kind = NULL;
}

int topt_weights_refuse(const char *path, struct topt_error *err)
{
    struct topt_weights_told told;
    if (topt_weights_tell(path, &told, err))
        return -1;
    topt_fail(err, TOPT_ERR_INVAL,
              "'%.150s' has weights of %lld numbers and no config.json, without which "
              "nobody can plan: shapes do not tell heads, nor the experts that a token "
              "takes; topt inspect counts them",
              path, (long long)told.numbers);
    topt_weights_told_fini(&told);
    return -1;
}
