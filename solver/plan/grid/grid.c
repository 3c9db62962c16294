/* grid.c - a request on a grid of nodes x devices, and each of its variants as a problem.
 *
 * A variant is what is chosen for the whole model: the number of micro-batches, recomputation,
 * device meshes, and in the uniform space the data axes and the level of sharding. */
#include "grid.h"
#include "request.h"
#include "topt_array.h"
#include "topt_choices.h"
#include "topt_framework.h"
#include "topt_minmax.h"
#include "topt_question.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- variants ---------------------------------------------------------------------- */

/* Does the choice have the fixed degrees that no field of its own asks for?  One data parallel rank shards
 * nothing, whatever was said. */
static int is_fixed(const struct topt_request *r, const struct topt_degrees *v)
{
    const struct topt_fixed *f = &r->fixed;
    int64_t samples = r->model->batch / v->micro_batches;
    return (!f->data || v->data == f->data) && (!f->tensor || v->tensor == f->tensor) &&
           (!f->micro_batch || samples == f->micro_batch * v->data) &&
           (f->zero < 0 || v->data == 1 || v->level == f->zero) &&
           (f->recompute < 0 || v->recompute == f->recompute);
}

static int add_variant(struct topt_grid_search *s, const struct topt_degrees *v)
{
    if (s->request->settings.offload &&
        topt_grid_host_bytes(s, v) > topt_hw_host(s->request->hw)->memory_bytes)
        return 0;
    if (s->request->fixed.any && !is_fixed(s->request, v))
        return 0;
    if (TOPT_ROOM(s->degrees, s->ndegrees, s->degrees_cap, 64))
        return -1;
    s->degrees[s->ndegrees++] = *v;
    return 0;
}

/* Device meshes: the axes in order, some of them taken together as one dimension. */
static int add_meshes(struct topt_grid_search *s, struct topt_degrees v)
{
    if (!s->algorithm || !s->algorithm->one_mesh)
        return add_variant(s, &v);
    uint32_t last = s->mesh.naxes ? 1u << s->mesh.naxes : 2;
    for (v.mesh_starts = 1; v.mesh_starts < last; v.mesh_starts += 2)
        if (add_variant(s, &v))
            return -1;
    return 0;
}

/* Experts shared out over the ranks before axis 'last': innermost first, tensor parallel ones before data ranks. */
static int share_experts(struct topt_grid_search *s, struct topt_degrees v, int last)
{
    int64_t asked = s->request->expert;
    v.expert = 1;
    for (int a = last - 1; a >= 0; a--) {
        v.expert *= s->mesh.size[a];
        if (v.expert * v.expert_tensor >= v.tensor * v.context &&
            s->planning->experts % v.expert == 0 && (!asked || v.expert == asked) &&
            add_variant(s, &v))
            return -1;
    }
    return 0;
}

/* Each rank has all experts; or they are shared out, and all or none of tensor parallelism splits each, or as many
 * ranks as are asked for. */
static int add_experts(struct topt_grid_search *s, struct topt_degrees v)
{
    const struct topt_request *r = s->request;
    int cut = topt_degrees_first_tensor_axis(&s->mesh, &v), last = s->mesh.naxes;
    if (r->expert < 2 && (v.context == 1 || !topt_model_experts(r->model)) &&
        add_meshes(s, v))
        return -1;
    if (!s->planning->experts || !(r->framework->expert_levels >> v.level & 1))
        return 0;
    for (v.expert_tensor = 1; last >= cut; v.expert_tensor *= s->mesh.size[--last]) {
        int may = r->expert_tensor ? v.expert_tensor == r->expert_tensor
                                   : last == s->mesh.naxes ||
                                         (last == cut && r->framework->expert_tensor);
        if (may && share_experts(s, v, last))
            return -1;
        if (last == cut)
            return 0;
    }
    return 0;
}

/* Variants that recompute are listed only where some operator can be recomputed, as none can
 * in blocks of one operator: they would be charged for room that they never use. */
static int add_recompute(struct topt_grid_search *s, struct topt_degrees v)
{
    const struct topt_planning *m = s->planning;
    int modules = s->space == TOPT_SPACE_UNIFORM ? m->modules : TOPT_MODULE_WHOLE;
    int levels = s->factors & TOPT_FACTOR_RECOMPUTE && m->recomputes &&
                 s->request->offload_keeps <= 2 * (modules != TOPT_MODULE_WHOLE);
    for (int i = 0; i <= levels; i++) {
        v.recompute = i ? modules : 0;
        if (add_experts(s, v))
            return -1;
    }
    return 0;
}

/* The levels of sharding that there are, as bits. */
static int zero_levels(const struct topt_grid_search *s)
{
    int all = s->factors & TOPT_FACTOR_ZERO ? (1 << TOPT_ZERO_LEVELS) - 1 : 1;
    const struct topt_framework *f = s->request->framework;
    if (s->algorithm && s->algorithm->zero && all > 1)
        all = s->algorithm->zero;
    if (s->request->levels)
        all &= s->request->levels;
    return f ? all & f->zero : all;
}

/* The levels of sharding of sparse tables, beside those of the other parameters. */
static int table_levels(const struct topt_grid_search *s)
{
    const int all = 1 << TOPT_ZERO_SPARSE | 1 << TOPT_ZERO_OWNER;
    const struct topt_framework *f = s->request->framework;
    if (!s->planning->sparse)
        return 0;
    if (s->algorithm && s->algorithm->restriction)
        return s->algorithm->tables;
    return f ? all & f->zero : all;
}

/* May the framework split the model's operators over so many, and with this level of sharding
 * between its data ranks? */
static int tensor_fits(struct topt_grid_search *s, const struct topt_degrees *v)
{
    const struct topt_tensor_map *map = topt_planning_tensor(s->planning, v);
    const struct topt_model *m = topt_planning_model(s->planning, v);
    int cut = topt_degrees_first_tensor_axis(&s->mesh, v), dim;
    int8_t *known = &s->divides[cut][v->context > 1];
    if (!map || v->tensor == 1)
        return 1;
    if (!*known)
        *known = topt_tensor_uneven(map, m, v->tensor, &dim) < 0 ? 1 : -1;
    return !map->refused[0] && *known > 0;
}

static int level_fits(const struct topt_grid_search *s, const struct topt_degrees *v)
{
    const struct topt_tensor_map *map = topt_planning_tensor(s->planning, v);
    return !map || !map->rules->levels || v->tensor == 1 ||
           map->rules->levels >> v->level & 1;
}

/* Groups of data ranks that a level shards over, of which each axis of nodes may make replicas: those that
 * are asked for; else all, and where the framework has it searched those of a node. */
static int add_shards(struct topt_grid_search *s, struct topt_degrees v)
{
    const struct topt_framework *f = s->request->framework;
    const struct topt_mesh *mesh = &s->mesh;
    int64_t asked = s->request->shard_ranks, ranks = 1;
    int has = f && f->replica_levels >> v.level & 1;
    if ((!asked || !has || asked >= v.data) && add_recompute(s, v))
        return -1;
    for (int a = 0; a < mesh->naxes && has; a++) {
        ranks *= mesh->size[a];
        v.shard = (int)(v.data / ranks);
        int in_node = a + 1 == mesh->node_axes && f->replicas_searched;
        if (v.data % ranks == 0 && v.shard > 1 && (asked ? v.shard == asked : in_node) &&
            add_recompute(s, v))
            return -1;
    }
    return 0;
}

/* Has each context rank as many positions, and as many heads, as the others?  Ranks that are not asked for take one sample
 * at a time, as all 22 layouts that NVIDIA recommends with them do (TOPT_LEAST_POSITIONS): no proof, as more samples may
 * take less. */
static int context_fits(const struct topt_grid_search *s, const struct topt_degrees *v)
{
    const struct topt_tensor_map *of = &s->planning->context,
                                 *tensor = topt_planning_tensor(s->planning, v);
    const struct topt_model *m = topt_planning_model(s->planning, v);
    int64_t samples = s->request->model->batch / v->micro_batches / v->data;
    if (!topt_planning_contexts(s->planning, v->context) ||
        (v->context > 1 && !s->request->context && samples != 1))
        return 0;
    if (v->context == 1)
        return 1;
    for (int i = 0; i < m->nops; i++) {
        int d = of->op[i], parts = v->context;
        if (d >= 0 && tensor && tensor->op[i] == d)
            parts *= v->tensor;
        if (d >= 0 && topt_fewest_counts(&m->op[i], d) % parts)
            return 0;
    }
    return m->seq % ((int64_t)2 * v->context) ==
           0; /* one part from the front and one from the back */
}

static int add_cut(struct topt_grid_search *s, struct topt_degrees v)
{
    int all = zero_levels(s);
    /* Attention is split by heads, those of keys and values too: no framework leaves it whole
     * beside split products. */
    int even = topt_request_even(s->request);
    int heads_fit = !even || !(s->planning->heads % v.tensor);
    int batch_fits = !even || s->request->unlike.parts ||
                     s->request->model->batch / v.micro_batches % v.data == 0;
    if (!heads_fit || !batch_fits || !context_fits(s, &v) || !tensor_fits(s, &v))
        return 0;
    for (v.level = 0; v.level < TOPT_ZERO_LEVELS; v.level++)
        if ((v.data * v.context > 1 ? all >> v.level & 1 && level_fits(s, &v)
                                    : v.level == 0) &&
            add_shards(s, v))
            return -1;
    return 0;
}

static int add_uniform(struct topt_grid_search *s, struct topt_degrees v)
{
    const struct topt_mesh *mesh = &s->mesh;
    const struct topt_settings *x = &s->request->settings;
    v.by_schedule = x->by_unit || x->overlap != TOPT_OVERLAP_NONE;
    for (int axes = topt_tensor_from(mesh, s->planning->tensor); axes <= mesh->naxes;
         axes++) {
        int ranks = (int)topt_data_ranks(mesh, axes);
        v.tensor = v.expert_tensor = mesh->devices / ranks;
        for (int of = axes; of >= 0; of--) {
            v.data = (int)topt_data_ranks(mesh, of);
            v.context = ranks / v.data;
            if (add_cut(s, v))
                return -1;
        }
    }
    return 0;
}

/* Numbers of micro-batches are at hand that are searched only where nothing fits without. */
static int searched(const struct topt_grid_search *s, const struct topt_degrees *v)
{
    return s->factors & TOPT_FACTOR_MICRO || s->planning->n == 1 || v->micro_batches == 1;
}

static int list_variants(struct topt_grid_search *s, struct topt_error *err)
{
    for (int i = 0; i < s->planning->n; i++) {
        struct topt_degrees v = topt_degrees_none();
        v.micro_batches = s->planning->at[i].batches;
        if (searched(s, &v) &&
            (s->space == TOPT_SPACE_UNIFORM ? add_uniform(s, v) : add_recompute(s, v)))
            return topt_nomem(err, "the search");
    }
    return 0;
}

/* ---- a grid ------------------------------------------------------------------------ */

static int by_ft(const struct topt_grid_search *s)
{
    const char *search = topt_algorithm_solver_name(s->request->algorithm);
    return !search || !strcmp(search, "ft");
}

/* Does ft search recomputation here?  Blocks of other systems are no freer than ours. */
static int ours_recomputes(const struct topt_grid_search *s)
{
    struct topt_request r = *s->request;
    if (s->algorithm)
        r.algorithm = NULL;
    return topt_request_factors(&r, s->space) & TOPT_FACTOR_RECOMPUTE;
}

/* With recomputation the cost of free blocks is known to a little less than it is
 * (price.h), which serves requests for the fastest within a tolerance; frontiers,
 * the least memory and exact answers are of blocks alike. */
static int resolve_blocks(struct topt_grid_search *s, enum topt_goal goal,
                          struct topt_error *err)
{
    enum topt_block_choice asked = s->request->blocks;
    int recompute = s->factors & TOPT_FACTOR_RECOMPUTE;
    int whole = goal == TOPT_GOAL_FRONTIER || !by_ft(s);
    int often = whole || goal == TOPT_GOAL_LEAST || s->request->epsilon <= 0;
    s->alike = asked == TOPT_BLOCKS_ALIKE;
    if (asked == TOPT_BLOCKS_AUTO)
        s->alike = s->space == TOPT_SPACE_UNIFORM ||
                   (s->algorithm && s->algorithm->alike) || (ours_recomputes(s) && often);
    return recompute && whole && !s->alike
               ? topt_fail(err, TOPT_ERR_INVAL,
                           "a frontier with recomputation is searched only where blocks "
                           "choose alike; take blocks alike, or factors without "
                           "recompute")
               : 0;
}

static int open_mesh(struct topt_grid_search *s, int nodes, int per_node,
                     struct topt_error *err)
{
    const struct topt_unlike *u = &s->request->unlike;
    if (!u->parts)
        return topt_mesh_init(&s->mesh, nodes, per_node, err);
    if (topt_mesh_init_parts(&s->mesh, u->parts, nodes, per_node, err) ||
        topt_mesh_costed_shares(&s->mesh, u->share, u->parts, err))
        return -1;
    s->mesh.costed = 1 + u->seen;
    return 0;
}

static int open_grid(struct topt_grid_search *s, struct topt_planning *m, int nodes,
                     int per_node, int stages, enum topt_goal goal,
                     struct topt_error *err)
{
    const struct topt_request *r = m->request;
    memset(s, 0, sizeof *s);
    s->request = r;
    s->planning = m;
    s->stages = stages;
    if (open_mesh(s, nodes, per_node, err))
        return -1;
    s->algorithm = topt_algorithm_find(r->algorithm);
    s->space = topt_space_resolve(r->space, s->mesh.devices);
    s->factors = topt_request_factors(r, s->space);
    if (resolve_blocks(s, goal, err) || list_variants(s, err))
        return -1;
    s->router = topt_router_create(r->hw, &s->mesh);
    return s->router ? 0 : topt_nomem(err, "the search");
}

static void close_parts(struct topt_planning *m)
{
    while (m->parts) {
        struct topt_grid_search *next = m->parts->next;
        topt_grid_close(m->parts);
        free(m->parts);
        m->parts = next;
    }
}

int topt_grid_part(struct topt_planning *m, int nodes, int per_node, int stages,
                   struct topt_grid_search **ret, struct topt_error *err)
{
    struct topt_grid_search *g = m->parts;
    if (!m->request->settings.offload) /* else a host's memory decides what is listed */
        stages = 0;
    while (g && (g->mesh.nodes != nodes || g->mesh.per_node != per_node ||
                 g->tensor != m->tensor || g->stages != stages))
        g = g->next;
    *ret = g;
    if (g)
        return 0;
    g = calloc(1, sizeof *g);
    if (!g)
        return topt_nomem(err, "the search");
    if (open_grid(g, m, nodes, per_node, stages, TOPT_GOAL_FASTEST, err)) {
        topt_grid_close(g);
        free(g);
        return -1;
    }
    g->tensor = m->tensor;
    g->next = m->parts;
    *ret = m->parts = g;
    m->close_parts = close_parts;
    return 0;
}

int topt_grid_stage(struct topt_grid_search *s, int stages, struct topt_grid_search **ret,
                    struct topt_error *err)
{
    int nodes = s->mesh.nodes, per_node = s->mesh.per_node;
    *ret = NULL;
    return topt_stage_grid(stages, &nodes, &per_node)
               ? topt_grid_part(s->planning, nodes, per_node, stages, ret, err)
               : 0;
}

int topt_grid_open(struct topt_grid_search *s, struct topt_planning *m, int nodes,
                   int per_node, enum topt_goal goal, struct topt_error *err)
{
    return open_grid(s, m, nodes, per_node, 0, goal, err);
}

void topt_grid_close(struct topt_grid_search *s)
{
    while (s->settings) {
        struct topt_grid_settings *next = s->settings->next;
        free(s->settings);
        s->settings = next;
    }
    while (s->passes) {
        struct topt_grid_passes *next = s->passes->next;
        topt_problem_destroy(s->passes->problem);
        topt_stage_units_fini(&s->passes->units);
        free(s->passes);
        s->passes = next;
    }
    topt_router_destroy(s->router);
    free(s->degrees);
    free(s->known);
    s->known = NULL;
    s->router = NULL;
    s->degrees = NULL;
}

int topt_grid_accumulates_unsharded(const struct topt_grid_search *s,
                                    const struct topt_degrees *v)
{
    const struct topt_framework *f = s->request->framework;
    return v->stages > 1 && v->level == TOPT_ZERO_GRADIENT && f && f->unsharded_sums;
}

/* Sets the fields of settings that describe a pipeline. */
static void add_stages(const struct topt_grid_search *s, const struct topt_degrees *v,
                       struct topt_settings *ret)
{
    ret->by_schedule = v->by_schedule;
    ret->stages = v->stages;
    ret->stage_chunks = v->virtual_stages;
    ret->even_stages = topt_request_even_stages(s->request);
    ret->unsharded_sums = topt_grid_accumulates_unsharded(s, v);
    ret->unlike_stages = v->stages > 1 && s->request->unlike.groups;
    ret->order = v->order;
    if (ret->operands_wait && topt_orders[v->order].splits)
        ret->overlap = TOPT_OVERLAP_NONE;
}

struct topt_settings topt_grid_stage_settings(const struct topt_grid_search *s,
                                              const struct topt_degrees *v)
{
    struct topt_settings ret = topt_request_settings(s->request);
    ret.micro_batches = v->micro_batches;
    add_stages(s, v, &ret);
    return ret;
}

/* The settings of a variant, which stay where they are until the shape is closed: costings borrow
 * them.  A framework's uniform strategy takes the time and the memory of its schedule, so its
 * problem counts only bytes that no schedule gets by without. */
static struct topt_grid_settings *settings_of(struct topt_grid_search *s,
                                              const struct topt_degrees *v,
                                              const struct topt_micro *t,
                                              struct topt_error *err)
{
    struct topt_grid_settings **link = &s->settings, *at;
    int rest_f32 = t->settings.rest_f32 && v->level < TOPT_ZERO_PARAM;
    int tables = t->tables ? v->level : TOPT_ZERO_NONE;
    int ring = v->context > 1 && s->request->framework->context & TOPT_CONTEXT_RING;
    enum topt_merge merge = v->context > 1 ? t->settings.merge : TOPT_MERGE_NONE;
    int64_t shards = tables ? (int64_t)topt_degrees_shard(v) * v->context : 0;
    while ((at = *link) &&
           (at->settings.micro_batches != v->micro_batches ||
            at->settings.rest_f32 != rest_f32 || at->settings.tables != tables ||
            at->settings.ring != ring || at->settings.merge != merge ||
            at->settings.table_shards != shards ||
            at->settings.by_schedule != v->by_schedule ||
            at->settings.stages != v->stages ||
            at->settings.unsharded_sums != topt_grid_accumulates_unsharded(s, v) ||
            at->settings.stage_chunks != v->virtual_stages ||
            at->settings.order != v->order))
        link = &at->next;
    if (at) { /* those that were asked for last are asked for next: they stand first */
        *link = at->next;
        at->next = s->settings;
        return s->settings = at;
    }
    at = calloc(1, sizeof *at);
    if (!at) {
        topt_nomem(err, "the search");
        return NULL;
    }
    *at = (struct topt_grid_settings){t->settings, t->settings, s->settings};
    add_stages(s, v, &at->settings);
    at->searched.by_schedule = v->by_schedule;
    at->settings.ring = at->searched.ring = ring;
    at->settings.merge = at->searched.merge = merge;
    at->settings.rest_f32 = at->searched.rest_f32 = rest_f32;
    at->settings.tables = at->searched.tables = tables;
    at->settings.table_shards = at->searched.table_shards = shards;
    if (topt_settings_scheduled(&at->settings))
        at->searched.accounting = TOPT_ACCOUNTING_LEAST;
    return s->settings = at;
}

static int costing_by(struct topt_grid_search *s, const struct topt_degrees *v,
                      int searched, struct topt_costing *ret, struct topt_error *err)
{
    struct topt_micro *t = topt_planning_at(s->planning, v, err);
    const struct topt_grid_settings *x = t ? settings_of(s, v, t, err) : NULL;
    struct topt_grid_search *g = s;
    if (!x || (v->stages > 1 && topt_grid_stage(s, v->stages, &g, err)))
        return -1;
    if (!g)
        return topt_fail(err, TOPT_ERR_INTERNAL, "%d devices are not cut into %d stages",
                         s->mesh.devices, v->stages);
    const struct topt_hw *hw = s->request->hw;
    hw = x->settings.unlike_stages ? s->request->unlike.groups : hw;
    *ret = (struct topt_costing){t->model,     hw,        &g->mesh,
                                 &x->settings, g->router, s->request->cancel};
    if (searched)
        ret->settings = &x->searched;
    return 0;
}

int topt_grid_costing(struct topt_grid_search *s, const struct topt_degrees *v,
                      struct topt_costing *ret, struct topt_error *err)
{
    return costing_by(s, v, 0, ret, err);
}

/* Layouts of a tensor of three dimensions: of each kind of axis so many go to each
 * dimension or to none; in the full space it matters which. */
static int64_t count_layouts(const struct topt_mesh *m, int full)
{
    int64_t all = 1;
    for (int end, first = 0; first < m->naxes; first = end) {
        end = first + 1;
        while (!full && end < m->naxes && topt_mesh_alike(m, end - 1, end))
            end++;
        int64_t n = end - first;
        all *= (n + 1) * (n + 2) * (n + 3) / 6;
    }
    return all;
}

static int prices_lazily(const struct topt_grid_search *s)
{
    int full = s->space == TOPT_SPACE_FULL;
    return s->space != TOPT_SPACE_UNIFORM && by_ft(s) &&
           count_layouts(&s->mesh, full) >= (full ? MANY_FULL_LAYOUTS : MANY_LAYOUTS);
}

static int make_problem(struct topt_grid_search *s, const struct topt_degrees *v,
                        int lazy_entries, int passes, struct topt_problem **ret,
                        struct topt_error *err)
{
    const struct topt_request *r = s->request;
    int uniform = s->space == TOPT_SPACE_UNIFORM;
    int levels = uniform ? 1 << v->level : zero_levels(s);
    enum topt_recompute recompute = uniform ? TOPT_RECOMPUTE_ALL : TOPT_RECOMPUTE_FREE;
    struct topt_costing k;
    struct topt_space_options o = {
        .space = s->space,
        .cut = topt_degrees_first_tensor_axis(&s->mesh, v),
        .context_axes = topt_degrees_first_tensor_axis(&s->mesh, v) -
                        topt_degrees_data_axes(&s->mesh, v),
        .context = v->context > 1 ? &s->planning->context : NULL,
        .expert = topt_degrees_expert_axes(&s->mesh, v),
        .even = topt_request_even(r),
        .vocab = r->model->vocab,
        .sequence = v->context > 1 || topt_planning_positions(s->planning),
        .tensor = topt_planning_tensor(s->planning, v),
        .blocks = topt_planning_model(s->planning, v)->blocks,
        .alike = s->alike,
        .zero = levels | table_levels(s),
        .whole_axes = topt_degrees_whole_axes(&s->mesh, v),
        .recompute = v->recompute ? recompute : TOPT_RECOMPUTE_NONE,
        .modules = v->recompute,
        .mesh_starts = v->mesh_starts,
        .pins = r->pin ? &s->planning->pins : NULL,
        .sums_stay = topt_accounting_is_papers(r->settings.accounting),
        .lazy_entries = lazy_entries,
        .orbits = lazy_entries && s->fastest && s->space == TOPT_SPACE_FULL &&
                  !s->algorithm && prices_lazily(s) && topt_orbits_few(&s->mesh),
        .passes = passes,
        .threads = r->threads,
        .max_bytes = r->max_table_bytes,
        .progress = r->progress};
    if (!uniform) { /* which takes a hundredth of the others' time */
        o.work = &s->planning->work;
        o.max_work = r->max_work;
    }
    if (s->algorithm)
        o.restriction = s->algorithm->restriction;
    if (costing_by(s, v, 1, &k, err))
        return -1;
    /* Prices are of no use before they are complete. */
    k.cancel = r->stop ? r->stop : r->cancel;
    return topt_problem_create(&k, &o, ret, err);
}

void topt_grid_tell_progress(const struct topt_grid_search *s,
                             const struct topt_degrees *v)
{
    struct topt_progress *p = s->request->progress;
    TOPT_PROGRESS(p, gpus, s->mesh.devices);
    TOPT_PROGRESS(p, nodes, s->mesh.nodes);
    TOPT_PROGRESS(p, variant, v - s->degrees + 1);
    TOPT_PROGRESS(p, variants, s->ndegrees);
    TOPT_PROGRESS(p, priced, 0);
    TOPT_PROGRESS(p, phase, TOPT_PHASE_PRICING);
}

int topt_grid_problem(struct topt_grid_search *s, const struct topt_degrees *v,
                      struct topt_problem **ret, struct topt_error *err)
{
    return make_problem(s, v, prices_lazily(s) ? PRICED_FIRST : 0, 0, ret, err);
}

int topt_grid_passes(struct topt_grid_search *s, const struct topt_degrees *v,
                     struct topt_problem **ret, struct topt_error *err)
{
    return make_problem(s, v, 0, 1, ret, err);
}

int topt_grid_priced(struct topt_grid_search *s, const struct topt_degrees *v,
                     struct topt_problem **ret, struct topt_error *err)
{
    return make_problem(s, v, 0, 0, ret, err);
}

int topt_grid_holds(const struct topt_grid_search *s, const struct topt_strategy *st)
{
    struct topt_space_options o = {.space = s->space,
                                   .even = topt_request_even(s->request),
                                   .vocab = s->request->model->vocab,
                                   .zero = zero_levels(s) | table_levels(s),
                                   .sequence = s->request->sequence_splits};
    return topt_space_holds(s->request->model, &s->mesh, &o, st);
}

/* ---- what every strategy of a variant needs ---------------------------------------- */

/* Devices over which a variant can spread a parameter's value, gradient and state at
 * most. */
struct spread {
    double value, gradient, state;
};

/* Of parameters that 'ranks' split into so many parts, and that replicas on these and on the ranks which shard share out. */
static struct spread spread_of(const struct topt_grid_search *s,
                               const struct topt_degrees *v, double ranks, double parts)
{
    double all = s->mesh.devices;
    if (s->space != TOPT_SPACE_UNIFORM)
        return (struct spread){all, all, all};
    all = fmin(all, ranks * topt_degrees_shard(v) * v->context);
    int unsharded = topt_grid_accumulates_unsharded(s, v);
    double chunks =
        (double)v->virtual_stages / TOPT_ACTIVE_CHUNKS; /* of one that is there */
    return (struct spread){v->level >= TOPT_ZERO_PARAM ? all
                           : unsharded                 ? parts * fmax(chunks, 1)
                                                       : parts,
                           v->level >= TOPT_ZERO_GRADIENT && !unsharded ? all : parts,
                           v->level >= TOPT_ZERO_STATE ? all : parts};
}

static void add_spread(const struct topt_least_parameters *p, struct spread n,
                       double sign, struct topt_least_parameters *ret)
{
    ret->value += sign * p->value / n.value;
    ret->gradient += sign * p->gradient / n.gradient;
    ret->state += sign * p->state / n.state;
}

/* The parameters' bytes on a device. */
static struct topt_least_parameters spread_out(const struct topt_grid_search *s,
                                               const struct topt_degrees *v,
                                               const struct topt_parameter_sums *p)
{
    struct topt_least_parameters ret = {0};
    double tensor = v->tensor, experts = v->expert * v->expert_tensor;
    struct spread n = spread_of(s, v, tensor, tensor);
    add_spread(&p->all, n, 1, &ret);
    add_spread(&p->of_experts, n, -1, &ret);
    add_spread(&p->of_experts, spread_of(s, v, experts, experts), 1, &ret);
    add_spread(&p->replicated, n, -1, &ret);
    add_spread(&p->replicated, spread_of(s, v, tensor, 1), 1, &ret);
    return ret;
}

static struct topt_least_parameters least_on_each(const struct topt_grid_search *s,
                                                  const struct topt_degrees *v)
{
    return spread_out(s, v, &s->planning->parameters);
}

int64_t topt_grid_host_bytes(const struct topt_grid_search *s,
                             const struct topt_degrees *v)
{
    struct topt_parameter_sums away = {.all = s->planning->away,
                                       .of_experts = s->planning->away_of_experts};
    struct topt_least_parameters p = spread_out(s, v, &away);
    return (int64_t)((p.value + p.gradient + p.state) / (s->stages ? s->stages : 1));
}

/* Does backward allocate the gradients one by one (topt_gradients_come)? */
static int gradients_come(const struct topt_grid_search *s, const struct topt_degrees *v)
{
    struct topt_settings x = s->request->settings;
    x.micro_batches = v->micro_batches;
    return topt_gradients_come(&x);
}

/* Parameters, gradients, states, and what backward reads, each once and spread evenly.  Gradients
 * that backward makes one by one are not there yet when all that it reads is; and parameters that
 * are gathered from forward to backward alone are not there any more when all gradients are. */
int64_t topt_grid_least_bytes(struct topt_grid_search *s, const struct topt_degrees *v)
{
    struct topt_least_parameters p = least_on_each(s, v);
    double before = p.value, after = p.value + p.gradient;
    before +=
        topt_planning_kept(s->planning, v) / (double)v->micro_batches / s->mesh.devices;
    if (!gradients_come(s, v))
        before += p.gradient;
    else if (v->level == TOPT_ZERO_GRADIENT)
        after -= p.value;
    return (int64_t)((p.state + (before > after ? before : after)) * (1 - 1e-9));
}

/* The bytes of the stage that holds most, where layers alike keep all that is kept; parameters by their mean, as most may
 * be those of the ends, which have chunks of their own.  With q = ceil(layers / chunks), at most q chunks - layers
 * chunks have fewer than q layers unless others have more.  So among the first stages, one more than that number, there
 * is one all of whose chunks have q layers or more. */
static double of_most_layers(const struct topt_grid_search *s,
                             const struct topt_degrees *v, double stays, double kept)
{
    int layers = s->planning->layers, chunks = v->stages * v->virtual_stages;
    int q = (layers + chunks - 1) / chunks;
    int64_t last = topt_max(q * chunks - layers, 1), ahead = INT64_MAX;
    struct topt_order_shape shape = {v->stages, v->virtual_stages, v->micro_batches};
    struct topt_order_plan plan;
    if (last >= v->stages)
        return 0;
    /* But in a V, later stages are ahead by no more passes than earlier ones. */
    for (int i = topt_orders[v->order].v ? 0 : (int)last; i <= last; i++) {
        topt_order_plan(&topt_orders[v->order], &shape, i, &plan);
        ahead = topt_min(ahead, plan.ahead);
    }
    return stays / v->stages + (double)q / layers * kept * (double)ahead;
}

/* Each stage holds its part of parameters and states, and what micro-batches in flight keep, in the mean of 1F1B
 * (stages + 1) / 2 of them.  A fifth is left for uneven cuts. */
int64_t topt_grid_least_stage_bytes(const struct topt_grid_search *s,
                                    const struct topt_degrees *v, int64_t stays_bytes,
                                    int64_t kept_bytes, int64_t enough)
{
    double kept = (double)kept_bytes, stays = (double)stays_bytes;
    double even = (stays + kept * (v->stages + 1) / 2) / v->stages;
    return (int64_t)(0.8 * (0.8 * even > (double)enough
                                ? even
                                : fmax(even, of_most_layers(s, v, stays, kept))));
}

int64_t topt_grid_stays_bytes(const struct topt_grid_search *s,
                              const struct topt_degrees *v)
{
    struct topt_least_parameters p = least_on_each(s, v);
    return (int64_t)(p.value + p.gradient + p.state);
}

int64_t topt_grid_unit_stays_bytes(const struct topt_grid_search *s,
                                   const struct topt_degrees *v, int unit)
{
    const struct topt_parameter_sums *all = &s->planning->in_unit[unit];
    struct topt_least_parameters p = spread_out(s, v, all);
    const struct topt_settings *x = &s->request->settings;
    const struct topt_stage_unit *u = &s->planning->units.at[unit];
    int loss = s->request->model->loss;
    int64_t buffers = loss >= u[0].op && loss < u[1].op ? x->workspace_bytes : 0;
    /* When most is kept, such gradients are not there yet. */
    double gradient = gradients_come(s, v) ? 0 : p.gradient;
    return (int64_t)(p.value + gradient + p.state) +
           (x->accounting == TOPT_ACCOUNTING_RUN ? topt_with_allocator(x, buffers) : 0);
}

/* Adds the time of a collective of so many bytes along axes, by link: a twentieth less, as several smaller ones may take
 * less than one by a measured curve. */
static void add_collective(const struct topt_grid_search *s, enum topt_collective how,
                           uint32_t axes, double bytes, int64_t ret[TOPT_LINK_COUNT])
{
    if (!axes || bytes < 1)
        return;
    int64_t ns = topt_router_time(s->router, how, axes, (int64_t)bytes).ns / 20 * 19;
    for (int k = 0; k < TOPT_LINK_COUNT; k++)
        ret[k] += (topt_group_links(&s->mesh, axes) >> k & 1) * ns;
}

/* Adds the time to gather and reduce parameters that ranks along 'axes' shard, except for the outermost 'whole', along
 * which they are replicated.  Replicas then all-reduce their shards of gradients; else the step's end reduces gradients. */
static void add_shared(const struct topt_grid_search *s, uint32_t axes, uint32_t whole,
                       const struct topt_least_parameters *p, struct topt_shared_ns *ret)
{
    double ranks = 1;
    for (int a = 0; a < s->mesh.naxes; a++)
        ranks *= (axes & ~whole) >> a & 1 ? s->mesh.size[a] : 1;
    add_collective(s, TOPT_ALL_GATHER, axes & ~whole, p->value, ret->gather);
    add_collective(s, TOPT_ALL_GATHER, axes & ~whole, p->reread, ret->again);
    add_collective(s, TOPT_REDUCE_SCATTER, axes & ~whole, p->gradient, ret->reduce);
    if (axes & ~whole)
        add_collective(s, TOPT_ALL_REDUCE, axes & whole, p->gradient / ranks,
                       ret->reduce);
}

/* What one of so many ranks has: its part of what they split, and all that each has whole. */
static struct topt_least_parameters on_rank(const struct topt_parameter_sums *p,
                                            double ranks)
{
    const struct topt_least_parameters *a = &p->all, *e = &p->of_experts,
                                       *w = &p->replicated;
    return (struct topt_least_parameters){
        .value = (a->value - e->value - w->value) / ranks + w->value,
        .gradient = (a->gradient - e->gradient - w->gradient) / ranks + w->gradient,
        .reread = (a->reread - e->reread - w->reread) / ranks + w->reread};
}

void topt_grid_shared_ns(const struct topt_grid_search *s, const struct topt_degrees *v,
                         int unit, struct topt_shared_ns *ret)
{
    const struct topt_parameter_sums *p = &s->planning->in_unit[unit];
    int cut = topt_degrees_first_tensor_axis(&s->mesh, v);
    struct topt_expert_axes of = topt_degrees_expert_axes(&s->mesh, v);
    uint32_t replicas = (1u << topt_degrees_whole_axes(&s->mesh, v)) - 1;
    *ret = (struct topt_shared_ns){{0}, {0}, {0}};
    if (v->level < TOPT_ZERO_GRADIENT || topt_grid_accumulates_unsharded(s, v) ||
        s->request->settings.low)
        return;
    struct topt_parameter_sums experts = {.all = p->of_experts};
    struct topt_least_parameters each = on_rank(p, v->tensor);
    add_shared(s, (1u << cut) - 1, replicas, &each, ret);
    each = on_rank(&experts, (double)v->expert * v->expert_tensor);
    add_shared(s, (1u << (cut - of.data)) - 1, replicas, &each, ret);
}
