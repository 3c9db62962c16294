/* variants.c - what is chosen for the whole model on a grid: number of micro-batches,
 * recomputation, device meshes, and in the uniform space the data axes and the level of
 * sharding. */
#include "variants.h"
#include "grid_data.h"
#include "request.h"
#include "free.h"
#include "topt_array.h"
#include "topt_choices.h"
#include "topt_framework.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct lister {
    struct topt_grid_search *s;
    int cap;
};

static int add_variant(struct lister *l, const struct topt_degrees *v)
{
    struct topt_grid_search *s = l->s;
    if (TOPT_ROOM(s->degrees, s->ndegrees, l->cap, 16))
        return -1;
    s->degrees[s->ndegrees++] = *v;
    return 0;
}

/* Device meshes: the axes in order, some of them taken together as one dimension. */
static int add_meshes(struct lister *l, struct topt_degrees v)
{
    if (!l->s->algorithm || !l->s->algorithm->one_mesh)
        return add_variant(l, &v);
    uint32_t last = l->s->mesh.naxes ? 1u << l->s->mesh.naxes : 2;
    for (v.mesh_starts = 1; v.mesh_starts < last; v.mesh_starts += 2)
        if (add_variant(l, &v))
            return -1;
    return 0;
}

/* Variants that recompute are listed only where some operator can be recomputed, as none can
 * in blocks of one operator: they would be charged for room that they never use. */
static int add_recompute(struct lister *l, struct topt_degrees v)
{
    int last = l->s->factors & TOPT_FACTOR_RECOMPUTE && l->s->planning->recomputes;
    for (v.recompute = 0; v.recompute <= last; v.recompute++)
        if (add_meshes(l, v))
            return -1;
    return 0;
}

int topt_variants_levels(const struct topt_grid_search *s)
{
    int all = s->factors & TOPT_FACTOR_ZERO ? (1 << TOPT_ZERO_LEVELS) - 1 : 1;
    const struct topt_framework *f = s->request->framework;
    if (s->algorithm && s->algorithm->zero && all > 1)
        all = s->algorithm->zero;
    return f ? all & f->zero : all;
}

int topt_variants_tables(const struct topt_grid_search *s)
{
    const int all = 1 << TOPT_ZERO_SPARSE | 1 << TOPT_ZERO_OWNER;
    const struct topt_framework *f = s->request->framework;
    if (!topt_model_has_tables(s->request->model))
        return 0;
    if (s->algorithm && s->algorithm->restriction)
        return s->algorithm->tables;
    return f ? all & f->zero : all;
}

/* Attention is split by heads, those of keys and values too: no framework leaves it whole
 * beside split products. */
static int heads_fit(const struct topt_grid_search *s, const struct topt_degrees *v)
{
    return !topt_request_even(s->request) || s->planning->heads % v->tensor == 0;
}

/* May the framework split the model's operators over so many, and with this level of sharding
 * between its data ranks? */
static int tensor_fits(const struct topt_grid_search *s, const struct topt_degrees *v)
{
    const struct topt_tensor_map *map = topt_planning_tensor(s->planning);
    int dim;
    if (!map || v->tensor == 1)
        return 1;
    return !map->refused[0] &&
           topt_tensor_uneven(map, s->request->model, v->tensor, &dim) < 0;
}

static int level_fits(const struct topt_grid_search *s, const struct topt_degrees *v)
{
    const struct topt_tensor_map *map = topt_planning_tensor(s->planning);
    return !map || !map->rules->levels || v->tensor == 1 ||
           map->rules->levels >> v->level & 1;
}

/* Frameworks with equal parts need a batch of data parallel ranks x micro-batch x
 * accumulation steps; unlike devices have unequal rows. */
static int batch_fits(const struct topt_grid_search *s, const struct topt_degrees *v)
{
    int64_t samples = s->request->model->batch / v->micro_batches;
    return !topt_request_even(s->request) || s->request->unlike.parts ||
           samples % v->data == 0;
}

static int add_uniform(struct lister *l, struct topt_degrees v)
{
    int all = topt_variants_levels(l->s);
    const struct topt_mesh *mesh = &l->s->mesh;
    const struct topt_settings *x = &l->s->request->settings;
    v.by_schedule = x->by_unit || x->overlap != TOPT_OVERLAP_NONE;
    for (int axes = topt_tensor_from(mesh, l->s->planning->tensor); axes <= mesh->naxes;
         axes++) {
        v.data = (int)topt_data_ranks(mesh, axes);
        v.tensor = mesh->devices / v.data;
        if (!batch_fits(l->s, &v) || !heads_fit(l->s, &v) || !tensor_fits(l->s, &v))
            continue;
        for (v.level = 0; v.level < TOPT_ZERO_LEVELS; v.level++)
            if ((v.data > 1 ? all >> v.level & 1 && level_fits(l->s, &v)
                            : v.level == 0) &&
                add_recompute(l, v))
                return -1;
    }
    return 0;
}

/* Numbers of micro-batches are at hand that are searched only where nothing fits without. */
static int searched(const struct topt_grid_search *s, const struct topt_degrees *v)
{
    return s->factors & TOPT_FACTOR_MICRO || s->planning->n == 1 || v->micro_batches == 1;
}

int topt_variants_list(struct topt_grid_search *s, struct topt_error *err)
{
    struct lister l = {s, 0};
    for (int i = 0; i < s->planning->n; i++) {
        struct topt_degrees v = topt_degrees_none();
        v.micro_batches = s->planning->at[i].batches;
        if (searched(s, &v) &&
            (s->space == TOPT_SPACE_UNIFORM ? add_uniform(&l, v) : add_recompute(&l, v)))
            return topt_nomem(err, "the search");
    }
    return 0;
}
