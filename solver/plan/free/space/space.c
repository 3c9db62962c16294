/* space.c - the named spaces: which configurations of an operator are searched.
 *
 *   full       each axis takes one dimension or none (or of those that are alike but for names
 *              of axes, one)
 *   canonical  each level of the cluster gives a number of axes to each dimension; batch-like
 *              dimensions take them from the outside, feature-like ones from the inside
 *   uniform    the axes are cut once for the whole model: data axes take the batch, tensor
 *              axes take together one feature dimension, or none
 *
 * A configuration of `full` is a number in base (dimensions + 1), counted up. */
#include "configs.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CONFIGS = 1 << 20 };

struct lister {
    const struct topt_mesh *mesh;
    const struct topt_splits *splits;
    const struct topt_space_options *options;
    struct topt_config_list *list;
    int cap, batch; /* 'batch': the dimension that is, or -1 */
    int new_only;   /* what is listed already is not added */
    struct topt_error *err;
};

struct topt_splits topt_splits_of_op(const struct topt_op *op)
{
    struct topt_splits s = {.ndims = op->spec->ndims, .expert = topt_op_experts(op)};
    for (int d = 0; d < s.ndims; d++) {
        s.split[d] = topt_op_split(op, d);
        s.count[d] = topt_fewest_counts(op, d);
        s.even[d] = op->spec->even >> d & 1;
    }
    return s;
}

/* A tensor that waits may be split in any of its dimensions, positions too. */
struct topt_splits topt_splits_of_tensor(const struct topt_model *m, int tensor)
{
    const struct topt_tensor *t = &m->tensor[tensor];
    const struct topt_op *op = &m->op[t->producer];
    struct topt_splits s = {.ndims = t->ndim, .expert = -1};
    for (int d = 0; d < t->ndim; d++) {
        s.split[d] = topt_op_split(op, op->spec->operand[op->output].dim[d]);
        s.count[d] = t->dim[d].count;
        if (s.split[d] == TOPT_SPLIT_NEVER)
            s.split[d] = TOPT_SPLIT_SEQUENCE;
    }
    return s;
}

static int may_split(const struct lister *l, int d)
{
    enum topt_split split = l->splits->split[d];
    if (l->splits->count[d] < 2 || split == TOPT_SPLIT_NEVER)
        return 0;
    return split != TOPT_SPLIT_SEQUENCE || l->options->sequence;
}

static int batch_like(enum topt_split s)
{
    return s == TOPT_SPLIT_BATCH || s == TOPT_SPLIT_SPATIAL || s == TOPT_SPLIT_SEQUENCE;
}

/* Must all parts of a dimension be equal?  Tables without samples rest in parts as
 * parameters do, which are padded. */
static int equal_parts(const struct lister *l, int d)
{
    if (l->splits->even[d] || !l->options->even)
        return l->splits->even[d];
    return l->batch >= 0 && l->splits->count[d] != l->options->vocab;
}

/* Has every dimension work for all its parts? */
static int has_work(const struct lister *l, const struct topt_config *c)
{
    int64_t parts[TOPT_MAX_OPDIMS];
    for (int d = 0; d < TOPT_MAX_OPDIMS; d++)
        parts[d] = 1;
    for (int a = 0; a < l->mesh->naxes; a++)
        if (c->dim[a] >= 0) {
            int d = c->dim[a];
            parts[d] *= l->mesh->size[a];
            if (parts[d] > l->splits->count[d] ||
                (equal_parts(l, d) && l->splits->count[d] % parts[d]))
                return 0;
        }
    return 1;
}

static int listed(const struct topt_config_list *list, const struct topt_config *c)
{
    for (int i = 0; i < list->n; i++)
        if (!memcmp(list->config[i].dim, c->dim, sizeof c->dim))
            return 1;
    return 0;
}

/* Add a configuration that has. */
static int add(struct lister *l, const struct topt_config *c)
{
    if (!has_work(l, c) || (l->new_only && listed(l->list, c)))
        return 0;
    if (l->list->n == MAX_CONFIGS)
        return topt_fail(l->err, TOPT_ERR_LIMIT,
                         "more than %d configurations of one operator; choose a smaller "
                         "space",
                         MAX_CONFIGS);
    if (TOPT_ROOM(l->list->config, l->list->n, l->cap, 64))
        return topt_fail(l->err, TOPT_ERR_NOMEM, "no memory for configurations");
    l->list->config[l->list->n++] = *c;
    return 0;
}

/* From the outside: batch-like dimensions, nothing, feature-like ones backward.  In this
 * order alike axes do what they do in the canonical space. */
static int place_of(const struct lister *l, int d)
{
    if (d < 0)
        return TOPT_MAX_OPDIMS;
    return batch_like(l->splits->split[d]) ? d : 2 * TOPT_MAX_OPDIMS - d;
}

static int list_full(struct lister *l, struct topt_config *c, int axis)
{
    if (axis == l->mesh->naxes)
        return add(l, c);
    for (int i = 0; i <= l->splits->ndims; i++) {
        int d = i < l->splits->ndims ? i : -1;
        c->dim[axis] = (int8_t)d;
        int in_order = !l->options->orbits || !axis ||
                       !topt_mesh_alike(l->mesh, axis - 1, axis) ||
                       place_of(l, c->dim[axis - 1]) <= place_of(l, d);
        if ((d < 0 || may_split(l, d)) && in_order && list_full(l, c, axis + 1))
            return -1;
    }
    return 0;
}

/* Give axes [lo, hi) of a level: dimension 'd' takes some, the rest goes to later
 * ones. */
static int list_level(struct lister *l, struct topt_config *c, int level, int d, int lo,
                      int hi)
{
    const struct topt_mesh *m = l->mesh;
    if (d == l->splits->ndims) {
        if (level == 1)
            return add(l, c);
        return list_level(l, c, 1, 0, m->node_axes, m->naxes);
    }
    if (list_level(l, c, level, d + 1, lo, hi))
        return -1;
    if (!may_split(l, d))
        return 0;
    int rc = 0, outside = batch_like(l->splits->split[d]);
    for (int n = 1; n <= hi - lo && !rc; n++) {
        int first = outside ? lo : hi - n;
        for (int a = first; a < first + n; a++)
            c->dim[a] = (int8_t)d;
        rc = outside ? list_level(l, c, level, d + 1, lo + n, hi)
                     : list_level(l, c, level, d + 1, lo, hi - n);
    }
    for (int a = lo; a < hi; a++)
        c->dim[a] = -1;
    return rc;
}

/* The tensor axes take nothing, or together one feature dimension; the data axes stay. */
static int list_tensor_axes(struct lister *l, struct topt_config c)
{
    int first = topt_first_tensor_axis(l->options, l->splits->expert);
    if (add(l, &c))
        return -1;
    if (first == l->mesh->naxes)
        return 0;
    for (int d = 0; d < l->splits->ndims; d++) {
        if (l->splits->split[d] == TOPT_SPLIT_BATCH || !may_split(l, d))
            continue;
        for (int a = first; a < l->mesh->naxes; a++)
            c.dim[a] = (int8_t)d;
        if (add(l, &c))
            return -1;
    }
    return 0;
}

int topt_splits_batch(const struct topt_splits *s)
{
    int batch = -1;
    for (int d = 0; d < s->ndims; d++)
        if (s->split[d] == TOPT_SPLIT_BATCH)
            batch = d;
    return batch;
}

int topt_first_tensor_axis(const struct topt_space_options *o, int expert)
{
    return o->cut + (expert < 0 ? 0 : o->expert.tensor);
}

/* Dimension 'd' takes the data axes from axis 'a' on, but for those that share out experts. */
static void give_data_axes(const struct lister *l, struct topt_config *c, int a, int d)
{
    const struct topt_space_options *o = l->options;
    int expert = l->splits->expert, last = topt_first_tensor_axis(o, expert);
    for (; a < last; a++) /* context axes too, as long as nothing else takes them */
        c->dim[a] = (int8_t)(expert >= 0 && a >= o->cut - o->expert.data ? expert : d);
}

/* The context axes take nothing, or together one dimension, beside what tensor axes take. */
static int list_context_axes(struct lister *l, struct topt_config c)
{
    const struct topt_space_options *o = l->options;
    for (int d = -1; d < l->splits->ndims; d++) {
        if (d >= 0 && (d == l->batch || !may_split(l, d)))
            continue;
        for (int a = o->cut - o->context_axes; a < o->cut; a++)
            c.dim[a] = (int8_t)d;
        if (list_tensor_axes(l, c))
            return -1;
    }
    return 0;
}

/* A tensor without a batch, such as a table that several operators share, is sharded where
 * the parameters are: the data axes take one of its dimensions. */
static int list_uniform(struct lister *l)
{
    struct topt_config c = topt_config_none();
    int batch = l->batch, sharded = l->options->zero >> TOPT_ZERO_PARAM & 1;
    give_data_axes(l, &c, 0, batch);
    if (batch >= 0 && l->splits->expert < 0 && l->options->context_axes
            ? list_context_axes(l, c)
            : list_tensor_axes(l, c))
        return -1;
    for (int d = 0; batch < 0 && sharded && l->options->cut && d < l->splits->ndims;
         d++) {
        give_data_axes(l, &c, l->options->whole_axes, d);
        if (may_split(l, d) && list_tensor_axes(l, c))
            return -1;
    }
    return 0;
}

/* The canonical space takes features from the inside alone.  Where a table without
 * samples is sharded over the data axes, that is not so: what the uniform space lists of
 * it, whatever the cut, belongs to it too. */
static int list_tables(struct lister *l)
{
    struct topt_space_options o = *l->options;
    struct lister uniform = *l;
    int rc = 0;
    if (l->batch >= 0 || !(o.zero >> TOPT_ZERO_PARAM & 1))
        return 0;
    uniform.options = &o;
    uniform.new_only = 1;
    for (o.cut = 0; o.cut <= l->mesh->naxes && !rc; o.cut++)
        rc = list_uniform(&uniform);
    l->cap = uniform.cap;
    return rc;
}

static struct lister lister_of(const struct topt_mesh *mesh,
                               const struct topt_splits *splits,
                               const struct topt_space_options *options,
                               struct topt_config_list *list, struct topt_error *err)
{
    *list = (struct topt_config_list){0};
    return (struct lister){.mesh = mesh,
                           .splits = splits,
                           .options = options,
                           .list = list,
                           .batch = topt_splits_batch(splits),
                           .err = err};
}

int topt_space_configs(const struct topt_mesh *mesh, const struct topt_splits *splits,
                       const struct topt_space_options *options,
                       struct topt_config_list *ret, struct topt_error *err)
{
    struct lister l = lister_of(mesh, splits, options, ret, err);
    struct topt_config c = topt_config_none();
    int rc = options->space == TOPT_SPACE_UNIFORM           ? list_uniform(&l)
             : options->space == TOPT_SPACE_FULL            ? list_full(&l, &c, 0)
             : list_level(&l, &c, 0, 0, 0, mesh->node_axes) ? -1
                                                            : list_tables(&l);
    if (rc) {
        free(ret->config);
        *ret = (struct topt_config_list){0};
    }
    return rc;
}

/* Would list_full, or list_level, list the configuration? */
static int is_listed(const struct lister *l, const struct topt_config *c)
{
    int canonical = l->options->space == TOPT_SPACE_CANONICAL;
    for (int a = 0; a < l->mesh->naxes; a++) {
        int inside = a && a != l->mesh->node_axes; /* of a level, not its first axis */
        if ((c->dim[a] >= 0 && !may_split(l, c->dim[a])) ||
            (canonical && inside && place_of(l, c->dim[a - 1]) > place_of(l, c->dim[a])))
            return 0;
    }
    return has_work(l, c);
}

static int holds(const struct topt_mesh *mesh, const struct topt_space_options *options,
                 struct topt_splits splits, const struct topt_config *c)
{
    struct topt_config_list list;
    struct lister l = lister_of(mesh, &splits, options, &list, NULL);
    int uniform = options->space == TOPT_SPACE_UNIFORM;
    if (!uniform && is_listed(&l, c))
        return 1;
    int found = options->space != TOPT_SPACE_FULL &&
                !(uniform ? list_uniform(&l) : list_tables(&l)) && listed(&list, c);
    free(list.config);
    return found;
}

int topt_space_holds(const struct topt_model *m, const struct topt_mesh *mesh,
                     const struct topt_space_options *options,
                     const struct topt_strategy *s)
{
    for (int i = 0; i < m->nops; i++)
        if (!holds(mesh, options, topt_splits_of_op(&m->op[i]), &s->config[i]))
            return 0;
    for (int t = 0; t < m->ntensors; t++)
        if (m->tensor[t].nconsumers > 1 &&
            !holds(mesh, options, topt_splits_of_tensor(m, t), &s->hub[t].layout))
            return 0;
    return 1;
}
