/* pins_possible.c - is what the user has pinned possible in a space, and if not, what is? */
#include "pins.h"
#include "configs.h"
#include "topt_array.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

/* The configurations of an operator, of the uniform space those of all cuts. */
static int list(const struct topt_op *op, const struct topt_mesh *mesh,
                const struct topt_space_options *options, struct topt_config_list *ret,
                struct topt_error *err)
{
    struct topt_space_options o = *options;
    struct topt_splits s = topt_splits_of_op(op);
    int last = o.space == TOPT_SPACE_UNIFORM ? mesh->naxes : 0, rc = 0;
    *ret = (struct topt_config_list){0};
    for (o.cut = 0; o.cut <= last && !rc; o.cut++) {
        struct topt_config_list more;
        if (topt_space_configs(mesh, &s, &o, &more, err))
            return -1;
        if (TOPT_RESIZE(ret->config, ret->n + more.n))
            rc = topt_nomem(err, "configurations");
        for (int i = 0; i < more.n && !rc; i++)
            ret->config[ret->n++] = more.config[i];
        free(more.config);
    }
    return rc;
}

/* Operators that are alike and have the same pin are looked at once. */
static int looked_at(const struct topt_pins *p, const struct topt_model *m, int op)
{
    for (int i = 0; i < op; i++)
        if (p->at[i] == p->at[op] && m->alike[i] == m->alike[op])
            return i;
    return -1;
}

int topt_pins_see(const struct topt_pins *p, const struct topt_model *m,
                  const struct topt_mesh *mesh, const struct topt_space_options *o,
                  uint8_t *seen, struct topt_error *err)
{
    for (int i = 0; i < m->nops; i++) {
        struct topt_config_list all;
        int like = p->at[i] >= 0 ? looked_at(p, m, i) : -1;
        if (like >= 0)
            seen[i] |= seen[like];
        if (p->at[i] < 0 || like >= 0 || seen[i])
            continue;
        int bad = list(&m->op[i], mesh, o, &all, err);
        for (int k = 0; k < all.n && !bad && !seen[i]; k++)
            seen[i] = (uint8_t)topt_pin_matches(&p->pin[p->at[i]], &m->op[i], mesh,
                                                &all.config[k]);
        free(all.config);
        if (bad)
            return -1;
    }
    return 0;
}

/* "b:2,n:4" */
static void put_parts(struct topt_text *t, const struct topt_op *op,
                      const struct topt_mesh *mesh, const struct topt_config *c)
{
    int64_t parts[TOPT_MAX_OPDIMS], same;
    int any = 0;
    topt_pin_parts(op, mesh, c, parts, &same);
    for (int d = 0; d < op->spec->ndims; d++)
        if (parts[d] > 1)
            topt_text_add(t, "%s%s:%lld", any++ ? "," : "", op->spec->dim[d].name,
                          (long long)parts[d]);
    if (!any)
        topt_text_add(t, "same %lld", (long long)same);
}

static int same_counts(const struct topt_op *op, const struct topt_mesh *mesh,
                       const struct topt_config *a, const struct topt_config *b)
{
    int64_t x[TOPT_MAX_OPDIMS] = {0}, y[TOPT_MAX_OPDIMS] = {0}, same;
    topt_pin_parts(op, mesh, a, x, &same);
    topt_pin_parts(op, mesh, b, y, &same);
    return !memcmp(x, y, sizeof x);
}

/* A few, those that use most devices first as the space lists them. */
static int put_possible(struct topt_text *t, const struct topt_op *op,
                        const struct topt_mesh *mesh, const struct topt_space_options *o,
                        struct topt_error *err)
{
    enum { SHOWN = 12 };
    struct topt_config told[SHOWN];
    struct topt_config_list all;
    int n = 0, bad = list(op, mesh, o, &all, err);
    for (int k = 0; k < all.n && !bad; k++) {
        int i = 0;
        while (i < n && !same_counts(op, mesh, &told[i], &all.config[k]))
            i++;
        if (i < n)
            continue;
        topt_text_add(t, n ? " | " : "");
        if (n == SHOWN) {
            topt_text_add(t, "...");
            break;
        }
        put_parts(t, op, mesh, &all.config[k]);
        told[n++] = all.config[k];
    }
    free(all.config);
    return bad;
}

int topt_pins_fail(const struct topt_pins *p, const struct topt_model *m,
                   const struct topt_mesh *mesh, const struct topt_space_options *o,
                   const uint8_t *seen, struct topt_error *err)
{
    struct topt_text t = {0};
    int i = 0;
    while (i < m->nops && (p->at[i] < 0 || seen[i]))
        i++;
    if (i == m->nops)
        return 0;
    int rc = put_possible(&t, &m->op[i], mesh, o, err);
    if (!rc)
        topt_fail(err, TOPT_ERR_USAGE,
                  "--pin %s: '%s' can't be split so on %d GPU%s; possible: %s",
                  p->pin[p->at[i]].name, m->op[i].name, mesh->devices,
                  mesh->devices > 1 ? "s" : "", t.s ? t.s : "");
    topt_text_fini(&t);
    return -1;
}
