/* safetensors.c - do the weights that lie beside a config belong to the model made of
 * it?
 *
 * Where the names of the family's tensors are known (hf_names.c), each must be there
 * in its shape and no other may be; where only an index lies there, names alone are
 * compared.  Of other families the number of parameters must be the same. */
#include <stdlib.h>
#include <string.h>

#include "safetensors_read.h"
#include "topt_text.h"
#include "weights.h"

/* ---- against the model ------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct topt_weight *p = a, *q = b;
    return strcmp(p->name, q->name);
}

static int starts_with(const char *s, const char *start)
{
    return !strncmp(s, start, strlen(start));
}

/* Of a checkpoint of several towers the language model's tensors alone:
 * "language_model." is before their names, or behind the first part of them. */
static void keep_own(struct topt_weights *w)
{
    static const char inner[] = "language_model.", behind[] = "model.language_model.";
    int nested = 0, n = 0;
    for (int i = 0; i < w->n; i++)
        nested |= starts_with(w->at[i].name, inner) || starts_with(w->at[i].name, behind);
    for (int i = 0; i < w->n && nested; i++) {
        struct topt_weight t = w->at[i];
        int own = starts_with(t.name, "lm_head.");
        if (starts_with(t.name, inner) || starts_with(t.name, behind)) {
            t.name += starts_with(t.name, inner) ? sizeof inner - 1 : sizeof behind - 1;
            own = 1;
        }
        if (own)
            w->at[n++] = t;
    }
    w->n = nested ? n : w->n;
}

static int is_in(const struct topt_weights *sorted, const char *name)
{
    struct topt_weight key = {.name = name};
    return bsearch(&key, sorted->at, (size_t)sorted->n, sizeof key, by_name) != NULL;
}

/* Where 'base' before a name gives one of the model's, it was left out: a bare model's
 * are. */
static int add_base(struct topt_weights *w, const char *base,
                    const struct topt_weights *want, struct topt_error *err)
{
    for (int i = 0; i < w->n && *base; i++) {
        size_t size = strlen(base) + strlen(w->at[i].name) + 1;
        char *full = TOPT_NEW(w->arena, size, char);
        if (!full)
            return topt_nomem(err, "a name");
        snprintf(full, size, "%s%s", base, w->at[i].name);
        if (!is_in(want, w->at[i].name) && is_in(want, full))
            w->at[i].name = full;
    }
    return 0;
}

struct expecting {
    struct topt_weights *w;
    double elements;
    struct topt_error *err;
};

/* As it is compared: without dimensions of 1. */
static int expect(void *ctx, const struct topt_weight *t)
{
    struct expecting *x = ctx;
    struct topt_weight lean = {.name = t->name};
    x->elements += topt_weight_elements(t);
    for (int i = 0; i < t->ndim; i++)
        if (t->dim[i] != 1)
            lean.dim[lean.ndim++] = t->dim[i];
    return topt_weights_add(x->w, &lean, x->err);
}

/* Parts of one tensor, sorted beside each other, become it. */
static void join_parts(struct topt_weights *w)
{
    int n = 0;
    for (int i = 0; i < w->n; i++)
        if (n && !strcmp(w->at[n - 1].name, w->at[i].name))
            w->at[n - 1].dim[0] += w->at[i].dim[0];
        else
            w->at[n++] = w->at[i];
    w->n = n;
}

static int same_shape(const struct topt_weight *a, const struct topt_weight *b)
{
    int same = a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->dim[i] == b->dim[i];
    return same || a->ndim < 0 || b->ndim < 0;
}

/* How many differ in which way, and the first of each. */
struct difference {
    int missing, unexpected, reshaped;
    const struct topt_weight *first_missing, *first_unexpected, *first[2];
};

static void note_first(int *count, const struct topt_weight **first,
                       const struct topt_weight *t)
{
    if (!(*count)++)
        *first = t;
}

/* Both are sorted by name. */
static void difference_of(const struct topt_model *m, const struct topt_weights *have,
                          const struct topt_weights *want, struct difference *ret)
{
    *ret = (struct difference){0};
    for (int i = 0, j = 0; i < have->n || j < want->n;) {
        int order = i == have->n   ? 1
                    : j == want->n ? -1
                                   : strcmp(have->at[i].name, want->at[j].name);
        if (order > 0) {
            note_first(&ret->missing, &ret->first_missing, &want->at[j++]);
        } else if (order < 0) {
            if (!topt_weights_may_be_there(m, have->at[i].name))
                note_first(&ret->unexpected, &ret->first_unexpected, &have->at[i]);
            i++;
        } else {
            if (!same_shape(&have->at[i], &want->at[j]) && !ret->reshaped++) {
                ret->first[0] = &have->at[i];
                ret->first[1] = &want->at[j];
            }
            i++, j++;
        }
    }
}

static void show_shape(struct topt_text *t, const struct topt_weight *w)
{
    for (int i = 0; i < w->ndim; i++)
        topt_text_add(t, "%s%lld", i ? ", " : "[", (long long)w->dim[i]);
    topt_text_add(t, "%s", w->ndim ? "]" : "one number");
}

static int refuse(const struct difference *d, struct topt_error *err)
{
    struct topt_text t = {0};
    if (d->missing)
        topt_text_add(&t, "; %d missing, '%s'%s", d->missing, d->first_missing->name,
                      d->missing > 1 ? " first" : "");
    if (d->unexpected)
        topt_text_add(&t, "; %d not of this model, '%s'%s", d->unexpected,
                      d->first_unexpected->name, d->unexpected > 1 ? " first" : "");
    if (d->reshaped) {
        topt_text_add(&t, "; %d of another shape, '%s' ", d->reshaped, d->first[0]->name);
        show_shape(&t, d->first[0]);
        topt_text_add(&t, " for ");
        show_shape(&t, d->first[1]);
    }
    topt_fail(err, TOPT_ERR_INVAL, "the tensors beside it are not the model's: %s",
              t.s ? t.s + 2 : "no memory to say why");
    topt_text_fini(&t);
    return -1;
}

/* By name; '*ret_known' says whether all names of the family are known. */
static int compare_names(struct topt_weights *have, const struct topt_model *m,
                         int64_t parameters, int *ret_known, struct topt_error *err)
{
    struct topt_weights want = {.arena = have->arena};
    struct expecting x = {&want, 0, err};
    struct difference d;
    int rc = topt_model_weights(m, expect, &x);
    *ret_known = !rc && x.elements > (double)parameters - 0.5 &&
                 x.elements < (double)parameters + 0.5;
    if (*ret_known) {
        qsort(want.at, (size_t)want.n, sizeof *want.at, by_name);
        join_parts(&want);
        keep_own(have);
        rc = add_base(have, topt_weights_base(m), &want, err);
    }
    if (*ret_known && !rc) {
        qsort(have->at, (size_t)have->n, sizeof *have->at, by_name);
        difference_of(m, have, &want, &d);
        if (d.missing || d.unexpected || d.reshaped)
            rc = refuse(&d, err);
    }
    free(want.at);
    return rc;
}

/* The names of the family's tensors are not known, so that nobody can say which of them
 * are not parameters of this model: told, not refused. */
static int compare_counts(const struct topt_weights *w, struct topt_model *m,
                          int64_t parameters, struct topt_error *err)
{
    double elements = 0, wanted = (double)parameters;
    struct topt_text t = {0};
    for (int i = 0; i < w->n; i++) {
        if (w->at[i].ndim < 0)
            return 0; /* names alone */
        if (!topt_weights_may_be_there(m, w->at[i].name))
            elements += topt_weight_elements(&w->at[i]);
    }
    if (elements > wanted - 0.5 && elements < wanted + 0.5)
        return 0;
    topt_text_add(&t,
                  "%s%sthe weights beside it have %.0f numbers, the model of this "
                  "config %.0f",
                  m->note ? m->note : "", m->note ? "; " : "", elements, wanted);
    int rc = t.oom ? topt_nomem(err, "a note") : topt_model_note(m, t.s, err);
    topt_text_fini(&t);
    return rc;
}

static int compare(struct topt_weights *w, struct topt_model *m, struct topt_error *err)
{
    struct topt_model_stats stats;
    int known;
    topt_model_stats(m, &stats);
    int rc = compare_names(w, m, stats.parameters, &known, err);
    return rc || known ? rc : compare_counts(w, m, stats.parameters, err);
}

int topt_safetensors_check(const char *dir, struct topt_model *m, struct topt_error *err)
{
    struct topt_weights w = {.arena = topt_arena_create(0)};
    if (!w.arena)
        return topt_nomem(err, "the names of tensors");
    int rc = topt_weights_read(dir, &w, err);
    rc = rc || !w.n ? rc : compare(&w, m, err);
    free(w.at);
    topt_arena_destroy(w.arena);
    return rc;
}
