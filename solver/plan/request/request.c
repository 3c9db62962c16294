/* request.c - what a request allows: numbers of devices and their grids, factors, where
 * tensor parallelism may lie, and whether it can be answered at all. */
#include "fixed.h"
#include "request.h"
#include "algorithm.h"
#include "degrees.h"
#include "pins.h"
#include "free.h"
#include "topt_minmax.h"
#include "topt_tensor.h"
#include "topt_text.h"

#include <stdlib.h>

enum { MAX_DEVICES = 1 << 14 };

static int is_nodes(const struct topt_hw *hw, int64_t gpus)
{
    int per_node = topt_hw_gpus_per_node(hw);
    return gpus % per_node == 0 && gpus / per_node <= topt_hw_max_nodes(hw);
}

/* Is the number one that is tried: divisors of a node and whole nodes, or these alone?  Jobs on racks
 * of 72 take 64 of them, so that nodes of more than 8 are also taken in powers of two. */
static int is_booked(const struct topt_request *r, int64_t gpus)
{
    int per_node = topt_hw_gpus_per_node(r->hw);
    int part = gpus <= per_node && per_node % gpus == 0;
    return is_nodes(r->hw, gpus) ||
           (r->counts == TOPT_COUNTS_WHOLE &&
            (part || (per_node > 8 && (gpus & (gpus - 1)) == 0)));
}

/* Are the devices cut into as many pipeline stages as are asked for, and can they have fixed degrees? */
static int is_cut(const struct topt_request *r, int nodes, int per_node)
{
    if (r->fixed.any && !topt_fixed_fit(r, (int64_t)nodes * per_node))
        return 0;
    return r->pipeline < 2 || topt_stage_grid((int)r->pipeline, &nodes, &per_node);
}

static int next_booked(const struct topt_request *r, int64_t gpus, int *nodes,
                       int *per_node)
{
    int dense = r->counts != TOPT_COUNTS_ANY;
    if (!dense || (r->counts == TOPT_COUNTS_WHOLE && !is_booked(r, gpus)))
        return topt_next_grid(r->hw, gpus, nodes, per_node);
    /* the fewest nodes that have them */
    if (*nodes || (r->counts == TOPT_COUNTS_NODES && !is_nodes(r->hw, gpus)))
        return 0;
    return topt_next_grid(r->hw, gpus, nodes, per_node);
}

int topt_request_grid(const struct topt_request *r, int64_t gpus, int *nodes,
                      int *per_node)
{
    while (next_booked(r, gpus, nodes, per_node))
        if (is_cut(r, *nodes, *per_node))
            return 1;
    return 0;
}

int topt_next_grid(const struct topt_hw *hw, int64_t gpus, int *nodes, int *per_node)
{
    int64_t most = topt_hw_gpus_per_node(hw), fewest = (gpus + most - 1) / most;
    for (int64_t n = topt_max(*nodes + 1, fewest);
         n <= topt_hw_max_nodes(hw) && n <= gpus; n++)
        if (gpus % n == 0) {
            *nodes = (int)n;
            *per_node = (int)(gpus / n);
            return 1;
        }
    return 0;
}

int topt_no_grid(const struct topt_request *r, int64_t gpus, struct topt_error *err)
{
    if (r->counts == TOPT_COUNTS_NODES && gpus % topt_hw_gpus_per_node(r->hw))
        return topt_fail(
            err, TOPT_ERR_USAGE, "%lld GPUs are not whole nodes of '%s' (%d GPUs each)",
            (long long)gpus, topt_hw_name(r->hw), topt_hw_gpus_per_node(r->hw));
    if (r->pipeline > 1 &&
        gpus <= (int64_t)topt_hw_max_nodes(r->hw) * topt_hw_gpus_per_node(r->hw))
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "%lld GPU%s not cut into %lld equal pipeline stages; ask for whole nodes, or "
            "parts of one, that --pipeline divides",
            (long long)gpus, gpus == 1 ? " is" : "s are", (long long)r->pipeline);
    return topt_fail(err, TOPT_ERR_USAGE,
                     "%lld GPUs are more than '%s' has: %d nodes x %d GPUs",
                     (long long)gpus, topt_hw_name(r->hw), topt_hw_max_nodes(r->hw),
                     topt_hw_gpus_per_node(r->hw));
}

int topt_request_factors(const struct topt_request *r, enum topt_space space)
{
    int factors = r->factors;
    if (factors == TOPT_FACTORS_AUTO)
        factors = topt_accounting_is_papers(r->settings.accounting) ? 0
                  : space == TOPT_SPACE_UNIFORM                     ? TOPT_FACTORS_ALL
                                                                    : TOPT_FACTOR_ZERO;
    const struct topt_algorithm *a = topt_algorithm_find(r->algorithm);
    if (a)
        factors = (factors & a->factors) | a->always;
    return r->micro_batches ? factors & ~TOPT_FACTOR_MICRO : factors;
}

int topt_request_widest(const struct topt_request *r, enum topt_space space)
{
    struct topt_request all = *r;
    if (r->factors == TOPT_FACTORS_AUTO && r->blocks != TOPT_BLOCKS_FREE &&
        !r->algorithm && !topt_accounting_is_papers(r->settings.accounting))
        all.factors = TOPT_FACTORS_ALL;
    return topt_request_factors(&all, space);
}

int topt_request_even(const struct topt_request *r)
{
    return r->framework && r->framework->uniform_only;
}

const struct topt_tensor_rules *topt_request_tensor_rules(const struct topt_request *r)
{
    return r->framework && r->space == TOPT_SPACE_UNIFORM ? r->framework->rules : NULL;
}

int topt_request_positions(const struct topt_request *r)
{
    const struct topt_tensor_rules *rules = topt_request_tensor_rules(r);
    return rules && rules->positions && r->sequence_parallel != TOPT_POSITIONS_OFF;
}

int topt_request_stages(const struct topt_request *r)
{
    const struct topt_framework *f = r->framework;
    if (!f || !f->pipeline_orders || r->space != TOPT_SPACE_UNIFORM || r->unlike.parts ||
        r->algorithm || r->pin || r->pipeline == 1 || !r->settings.by_unit)
        return 0;
    return r->pipeline || r->schedule || f->pipeline == TOPT_PIPELINE_SEARCHED;
}

int topt_request_orders(const struct topt_request *r)
{
    /* 1F1B takes the time of GPipe and less memory. */
    int never = r->framework ? r->framework->fork_orders | 1 << TOPT_ORDER_GPIPE : 0;
    int asked = r->schedule ? 1 << (r->schedule - 1) : ~never;
    return r->framework ? r->framework->pipeline_orders & asked : 0;
}

int topt_request_only_stages(const struct topt_request *r)
{
    return r->pipeline > 1 || r->virtual_stages > 1 || r->schedule || r->unlike.groups ||
           r->fixed.recompute_layers;
}

int topt_request_experts(const struct topt_request *r)
{
    const struct topt_framework *f = r->framework;
    if (!f || !f->expert_levels || r->space != TOPT_SPACE_UNIFORM || r->unlike.parts ||
        r->algorithm || r->pin || r->expert == 1)
        return 0;
    return r->expert || f->expert == TOPT_EXPERT_SEARCHED;
}

int topt_request_places(const struct topt_request *r, int stages)
{
    const struct topt_hw *hw = r->unlike.groups;
    int devices = hw ? topt_hw_max_nodes(hw) * topt_hw_gpus_per_node(hw) : 0;
    return !hw || (devices % stages == 0 && stages >= topt_hw_groups(hw) &&
                   topt_hw_groups_made_of(hw, devices / stages));
}

int topt_request_even_stages(const struct topt_request *r)
{
    return (r->framework && r->framework->even_stages) || r->fixed.even;
}

int topt_request_most_chunks(const struct topt_request *r,
                             const struct topt_stage_units *u)
{
    int empty = r->framework && r->framework->empty_chunks ? TOPT_MAX_EMPTY : 0;
    return !u->layers || topt_request_even_stages(r) ? u->layers : u->n + empty;
}

/* Nowhere, inside a node, anywhere: from what the row or the request wants first to the most
 * that it takes. */
int topt_request_tensor_at(const struct topt_request *r, int n)
{
    const struct topt_framework *f = r->framework;
    int first = TOPT_TENSOR_ANYWHERE, most = TOPT_TENSOR_ANYWHERE;
    if (f) {
        first = f->tensor == TOPT_TENSOR_LAST ? TOPT_TENSOR_NEVER : (int)f->tensor;
        most = f->tensor == TOPT_TENSOR_NEVER ? TOPT_TENSOR_NEVER : (int)f->tensor_most;
    }
    if (f && r->tensor_parallel) {
        most = (int)f->tensor_most;
        first = most < TOPT_TENSOR_NODE || first >= TOPT_TENSOR_NODE ? most
                                                                     : TOPT_TENSOR_NODE;
    }
    int at = first == TOPT_TENSOR_NEVER && n > 0 ? TOPT_TENSOR_NODE + n - 1 : first + n;
    return at <= most ? at : -1;
}

struct topt_search_options topt_request_searches(const struct topt_request *r)
{
    return (struct topt_search_options){.algorithm =
                                            topt_algorithm_solver_name(r->algorithm),
                                        .threads = r->threads,
                                        .cancel = r->cancel,
                                        .stop = r->stop,
                                        .progress = r->progress,
                                        .max_entries = r->max_entries};
}

int64_t topt_request_limit(const struct topt_request *r)
{
    return r->memory_limit ? r->memory_limit : topt_hw_memory_bytes(r->hw);
}

struct topt_request topt_request_uniform(const struct topt_request *r, int factors)
{
    struct topt_request uniform = *r;
    uniform.space = TOPT_SPACE_UNIFORM;
    uniform.blocks = TOPT_BLOCKS_ALIKE;
    uniform.factors = factors;
    uniform.stop = NULL;
    uniform.max_work = 0;
    return uniform;
}

struct topt_request topt_request_canonical(const struct topt_request *r, int factors)
{
    struct topt_request canonical = *r;
    canonical.space = TOPT_SPACE_CANONICAL;
    canonical.factors = factors;
    return canonical;
}

int topt_request_stopped(const struct topt_request *r)
{
    return r->stop && atomic_load(r->stop);
}

int topt_request_brief(const struct topt_request *r)
{
    return r->brief && atomic_load(r->brief) && r->min_efficiency <= 0;
}

int topt_request_counts(const struct topt_request *r, int64_t **ret, int *ret_n,
                        struct topt_error *err)
{
    int64_t all = (int64_t)topt_hw_max_nodes(r->hw) * topt_hw_gpus_per_node(r->hw);
    int64_t max = r->max_gpus && r->max_gpus < all ? r->max_gpus : all;
    int64_t *list = malloc(((size_t)max + (size_t)r->ngpu_list + 1) * sizeof *list);
    int n = 0;
    if (!list)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the counts");
    for (int i = 0; i < r->ngpu_list; i++)
        list[n++] = r->gpu_list[i];
    int pow2 = r->counts == TOPT_COUNTS_POW2,
        some = r->counts == TOPT_COUNTS_WHOLE || r->counts == TOPT_COUNTS_NODES, whole;
    (void)topt_fixed_gpus(r, &whole);
    if (whole && r->fixed.any) /* one number, booked or not */
        pow2 = some = 0;
    for (int64_t c = 1; !r->ngpu_list && c <= max; c = pow2 ? 2 * c : c + 1) {
        int nodes = 0, per_node = 0;
        if ((!some || is_booked(r, c)) && topt_next_grid(r->hw, c, &nodes, &per_node) &&
            is_cut(r, nodes, per_node))
            list[n++] = c;
    }
    *ret = list;
    *ret_n = n;
    return 0;
}

int64_t topt_data_ranks(const struct topt_mesh *mesh, int cut)
{
    int64_t n = 1;
    for (int a = 0; a < cut; a++)
        n *= mesh->size[a];
    return n;
}

int topt_tensor_from(const struct topt_mesh *mesh, enum topt_tensor_where where)
{
    return where == TOPT_TENSOR_ANYWHERE ? 0
           : where == TOPT_TENSOR_NODE   ? mesh->node_axes
                                         : mesh->naxes;
}

/* ---- pins -------------------------------------------------------------------------- */

static int see_grids(const struct topt_request *r, const struct topt_pins *pins,
                     int64_t gpus, uint8_t *seen, struct topt_mesh *last,
                     struct topt_space_options *o, struct topt_error *err)
{
    int nodes = 0, per_node = 0;
    while (topt_request_grid(r, gpus, &nodes, &per_node)) {
        if (topt_mesh_init(last, nodes, per_node, err))
            return -1;
        *o = (struct topt_space_options){.space =
                                             topt_space_resolve(r->space, last->devices),
                                         .even = topt_request_even(r),
                                         .vocab = r->model->vocab,
                                         .zero = (1 << TOPT_ZERO_COUNT) - 1,
                                         .sequence = r->sequence_splits};
        if (topt_pins_see(pins, r->model, last, o, seen, err))
            return -1;
    }
    return 0;
}

/* Each pin has to be possible on one of the numbers of GPUs that may be tried. */
static int see_pins(const struct topt_request *r, const struct topt_pins *pins,
                    struct topt_error *err)
{
    uint8_t *seen = calloc((size_t)r->model->nops + 1, 1);
    int64_t one = r->gpus, *count = NULL;
    int n = 1, rc = seen ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for pins");
    struct topt_space_options o = {0};
    struct topt_mesh last = {0};
    if (!rc && !one)
        rc = topt_request_counts(r, &count, &n, err);
    for (int i = n - 1; i >= 0 && !rc; i--)
        rc = see_grids(r, pins, count ? count[i] : one, seen, &last, &o, err);
    if (!rc && last.devices)
        rc = topt_pins_fail(pins, r->model, &last, &o, seen, err);
    free(count);
    free(seen);
    return rc;
}

static int check_pins(const struct topt_request *r, struct topt_error *err)
{
    struct topt_pins pins;
    if (!r->pin)
        return 0;
    if (topt_pins_init(&pins, r->pin, r->model, err))
        return -1;
    int rc = see_pins(r, &pins, err);
    topt_pins_fini(&pins);
    return rc;
}

/* ---- tensor parallelism ------------------------------------------------------------ */

/* A feature that is asked for by name must be one that the framework has for this model. */
static int check_tensor(const struct topt_request *r, struct topt_error *err)
{
    const struct topt_tensor_rules *rules = topt_request_tensor_rules(r);
    struct topt_tensor_map map;
    if (r->sequence_parallel == TOPT_POSITIONS_ON && !(rules && rules->positions))
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "'%s' has no sequence parallelism; leave out --sequence-parallel",
            r->framework ? r->framework->name : "topt");
    if (!r->tensor_parallel)
        return 0;
    if (topt_tensor_map_init(&map, r->model, rules, topt_request_positions(r), err))
        return -1;
    int rc = map.refused[0]
                 ? topt_fail(err, TOPT_ERR_INVAL, "--tensor-parallel: %s", map.refused)
                 : 0;
    topt_tensor_map_fini(&map);
    return rc;
}

/* ---- pipeline stages ---------------------------------------------------------------- */

static int check_schedule(const struct topt_request *r, struct topt_error *err)
{
    const struct topt_order *o = &topt_orders[r->schedule - 1];
    int64_t chunks = r->virtual_stages ? r->virtual_stages : o->least_chunks;
    if (r->pipeline == 1)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--schedule %s is of pipeline stages; leave out --pipeline 1",
                         o->name);
    if (chunks < o->least_chunks || chunks > o->most_chunks)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--schedule %s has %s%d chunk%s a stage; leave out "
                         "--virtual-stages %lld",
                         o->name, o->most_chunks > o->least_chunks ? "at least " : "",
                         o->least_chunks, o->least_chunks > 1 ? "s" : "",
                         (long long)r->virtual_stages);
    if (o->pairs && !topt_model_experts(r->model))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--schedule %s hides the all-to-all of experts, and the model "
                         "has none; leave it out",
                         o->name);
    if (topt_request_orders(r))
        return 0;
    char has[TOPT_NAMED_BITS];
    int orders = r->framework->pipeline_orders;
    return topt_fail(err, TOPT_ERR_USAGE, "--schedule: %s has no %s; it has %s",
                     r->framework->name, o->name,
                     orders ? topt_named_bits(orders, topt_order_name, has) : "none");
}

/* Chunks of equally many layers that the model's layers do not divide into. */
static int refuse_uneven(const struct topt_request *r, int layers, int64_t chunks,
                         struct topt_error *err)
{
    char split[64];
    int n = snprintf(split, sizeof split, "pp=%lld", (long long)r->pipeline);
    if (r->virtual_stages)
        snprintf(split + n, sizeof split - (size_t)n, " x vp=%lld",
                 (long long)r->virtual_stages);
    if (!r->fixed.even)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "%s: stages of %s have equally many layers, and %lld does not "
                         "divide the model's %d; ask for a number of stages that does",
                         split, r->framework->title, (long long)chunks, layers);
    return topt_fail(
        err, TOPT_ERR_USAGE,
        "even=1 (equally many layers in each chunk, as in a script that lays "
        "out no stages): %s is %lld chunks, which do not divide the model's "
        "%d layers; take others, or leave out even=1",
        split, (long long)chunks, layers);
}

static int check_stages(const struct topt_request *r, struct topt_error *err)
{
    const struct topt_framework *f = r->framework;
    struct topt_stage_units units;
    int most;
    if (!topt_request_only_stages(r))
        return 0;
    if (!f || !f->pipeline_orders || r->space != TOPT_SPACE_UNIFORM)
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "--pipeline: %s has no pipeline stages; take --framework megatron, "
            "torchtitan, deepspeed or pytorch",
            f ? f->name : "topt");
    if (r->schedule && check_schedule(r, err))
        return -1;
    if (f->stages_alone && r->fixed.tensor > 1)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "tp=%lld: %s splits no layer of pipeline stages; leave out pp "
                         "(--pipeline), or tp",
                         (long long)r->fixed.tensor, f->title);
    if (f->stages_alone && r->tensor_parallel && r->pipeline > 1)
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "--tensor-parallel: %s splits no layer of pipeline stages; leave "
            "out --pipeline, or --tensor-parallel",
            f->title);
    if (r->virtual_stages > 1 && r->pipeline == 1)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--virtual-stages: chunks are of pipeline stages; ask for "
                         "--pipeline 2 at least");
    if (r->micro_batches == 1)
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "--pipeline: stages need several micro-batches to work side by side; "
            "leave out --micro-batches 1");
    if (topt_stage_units_find(r->model, &units, err))
        return -1;
    most = topt_request_most_chunks(r, &units);
    topt_stage_units_fini(&units);
    if (units.fault >= 0)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "--pipeline: before '%.60s' more than one tensor goes on to later "
            "layers, so that no stage ends there; leave it out",
            r->model->op[units.fault].name);
    if (most < r->pipeline)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "--pipeline %lld: the model has %d layer%s to cut between; ask for "
            "fewer stages",
            (long long)r->pipeline, units.layers, units.layers == 1 ? "" : "s");
    int64_t chunks = r->pipeline * (r->virtual_stages ? r->virtual_stages : 1);
    if (r->pipeline > 1 && most < chunks)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "vp=%lld (--virtual-stages): %lld stages of %lld chunks are "
                         "%lld chunks, more than the model's %d layers; ask for fewer",
                         (long long)r->virtual_stages, (long long)r->pipeline,
                         (long long)r->virtual_stages, (long long)chunks, units.layers);
    if (r->pipeline > 1 && topt_request_even_stages(r) && units.layers % chunks)
        return refuse_uneven(r, units.layers, chunks, err);
    return 0;
}

/* ---- context ranks -------------------------------------------------------------------- */

/* The first attention that exchanges positions for heads; -1: each gathers keys and values, or there is none. */
static int by_heads(const struct topt_model *m, const struct topt_tensor_map *map)
{
    for (int i = 0; i < m->nops; i++)
        if (topt_kernel_work(m->op[i].spec->forward[0].kernel) == TOPT_WORK_ATTENTION &&
            topt_op_split(&m->op[i], map->op[i]) == TOPT_SPLIT_FEATURE)
            return i;
    return -1;
}

/* Are context ranks asked for, or searched? */
static int has_contexts(const struct topt_request *r)
{
    const struct topt_framework *f = r->framework;
    return f && f->context && !r->pin && !r->algorithm && !r->unlike.parts &&
           (r->context ? r->context > 1 : r->model->seq >= 2 * TOPT_LEAST_POSITIONS);
}

int topt_request_wants_apart(const struct topt_request *r)
{
    struct topt_tensor_map map;
    if (!has_contexts(r) ||
        topt_tensor_map_init(&map, r->model, &topt_tensor_context, 1, NULL))
        return 0;
    int ret = by_heads(r->model, &map) >= 0;
    topt_tensor_map_fini(&map);
    return ret;
}

int topt_request_contexts(const struct topt_request *r, const struct topt_model **ret,
                          struct topt_tensor_map *ret_map, struct topt_error *err)
{
    const struct topt_framework *f = r->framework;
    const struct topt_model *m = r->apart ? r->apart : r->model;
    *ret = NULL;
    *ret_map = (struct topt_tensor_map){.rules = NULL};
    if (!has_contexts(r) || r->space != TOPT_SPACE_UNIFORM)
        return 0;
    if (topt_tensor_map_init(ret_map, m, &topt_tensor_context, 1, err))
        return -1;
    if (!ret_map->refused[0] &&
        (f->context & TOPT_CONTEXT_HEADS || by_heads(m, ret_map) < 0))
        *ret = m;
    else
        topt_tensor_map_fini(ret_map);
    return 0;
}

static int check_context(const struct topt_request *r, struct topt_error *err)
{
    const struct topt_framework *f = r->framework;
    const struct topt_model *m = r->apart ? r->apart : r->model;
    struct topt_tensor_map map;
    if (r->context < 2)
        return 0;
    if (!f || !f->context || r->space != TOPT_SPACE_UNIFORM || r->pin || r->algorithm)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--context: topt knows no context parallelism of %s; take "
                         "--framework megatron or torchtitan",
                         f ? f->name : "topt");
    if (topt_tensor_map_init(&map, m, &topt_tensor_context, 1, err))
        return -1;
    int rc = 0, op = map.refused[0] ? -1 : by_heads(m, &map);
    if (map.refused[0])
        rc = topt_fail(err, TOPT_ERR_INVAL, "--context: %s", map.refused);
    else if (op >= 0 && !(f->context & TOPT_CONTEXT_HEADS))
        rc = topt_fail(err, TOPT_ERR_INVAL,
                       "--context: '%.60s' has queries, keys and values in one tensor, "
                       "whose context parallelism of %s is not planned; take "
                       "--framework megatron",
                       m->op[op].name, f->title);
    else if (m->seq % (2 * r->context))
        rc = topt_fail(
            err, TOPT_ERR_INVAL,
            "--context %lld: a sequence of %lld is not cut into %lld equal parts",
            (long long)r->context, (long long)m->seq, (long long)(2 * r->context));
    topt_tensor_map_fini(&map);
    return rc;
}

/* ---- experts -------------------------------------------------------------------------- */

static int check_experts(const struct topt_request *r, struct topt_error *err)
{
    const struct topt_framework *f = r->framework;
    int64_t experts = topt_model_experts(r->model);
    if (r->settings.dispatch == TOPT_DISPATCH_DEEPEP && (!f || !f->deepep))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--dispatch deepep: topt does not know it of %s; take "
                         "--framework megatron",
                         f ? f->name : "topt");
    if (r->expert < 2 && r->expert_tensor < 2)
        return 0;
    if (!f || !f->expert_levels || r->space != TOPT_SPACE_UNIFORM)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--expert: topt knows no expert parallelism of %s; take "
                         "--framework megatron or torchtitan",
                         f ? f->name : "topt");
    if (!experts)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--expert: the model has no experts; leave it out");
    if (r->expert > 1 && experts % r->expert)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--expert %lld does not divide the %lld experts of a layer",
                         (long long)r->expert, (long long)experts);
    if (r->expert_tensor > 1 && !f->expert_tensor)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--expert-tensor: %s does not split experts that are shared "
                         "out; leave it out",
                         f->name);
    return 0;
}

/* ---- the whole ------------------------------------------------------------------- */

int topt_request_check(const struct topt_request *r, struct topt_error *err)
{
    if (topt_algorithm_check(r->algorithm, err))
        return -1;
    if (!topt_hw_has_dtype(r->hw, r->settings.dtype))
        return topt_fail(err, TOPT_ERR_USAGE, "'%s' has no rate for %s; use another type",
                         topt_hw_name(r->hw), topt_dtype_name(r->settings.dtype));
    if (r->gpus < 0 || r->gpus > MAX_DEVICES || r->max_gpus < 0 || r->memory_limit < 0)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--gpus must be 1 to %d, and --memory positive", MAX_DEVICES);
    for (int i = 0; i < (r->ngpu_list ? r->ngpu_list : 1) && r->max_gpus; i++) {
        int64_t asked = r->ngpu_list ? r->gpu_list[i] : r->gpus;
        if (asked > r->max_gpus)
            return topt_fail(
                err, TOPT_ERR_USAGE,
                "--gpus %lld is more than --max-gpus %lld; give one of the two",
                (long long)asked, (long long)r->max_gpus);
    }
    if (r->mode == TOPT_MINI_TIME && r->gpus == 0)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "mini-time needs a number of GPUs (at least 1)");
    return topt_fixed_check(r, err) || check_tensor(r, err) || check_stages(r, err) ||
                   check_context(r, err) || check_experts(r, err) || check_pins(r, err)
               ? -1
               : 0;
}
