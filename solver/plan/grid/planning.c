/* planning.c - the numbers of micro-batches of a request, and the model of each, made when
 * it is asked for. */
#include "planning.h"
#include "request.h"
#include "topt_choices.h"
#include "topt_framework.h"
#include "topt_question.h"

#include <stdlib.h>
#include <string.h>

static int may_split_batch(const struct topt_request *r)
{
    struct topt_settings s = r->settings;
    s.micro_batches = 2;
    if (s.granule_bytes == 0)
        s.granule_bytes = 1;
    return !topt_settings_fit(r->model, &s, NULL);
}

/* The number that splits of attention have to divide: of each operator's heads, or groups
 * of them. */
static int64_t heads_of(const struct topt_model *m)
{
    int64_t all = 0;
    for (int i = 0; i < m->nops; i++)
        for (int d = 0; d < m->op[i].spec->ndims; d++) {
            const struct topt_opdim_spec *dim = &m->op[i].spec->dim[d];
            if (dim->split != TOPT_SPLIT_FEATURE || strcmp(dim->name, "h"))
                continue;
            all = topt_common_divisor(all, topt_fewest_counts(&m->op[i], d));
        }
    return all;
}

/* Find the activations that are saved for backward: of the model without context ranks, or (i = 1) of the one with them;
 * and, if modules to recompute are given, those that are still saved then. */
static int find_kept(struct topt_planning *m, int i, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    const struct topt_model *model = i ? m->apart : r->model;
    uint8_t *again;
    if (!model || topt_accounting_is_papers(r->settings.accounting) ||
        r->settings.offload & TOPT_OFFLOAD_KEPT)
        return 0;
    m->activation_bytes[i] = topt_least_kept_bytes(model, &r->settings, NULL);
    if (!m->recomputes || m->modules == TOPT_MODULE_WHOLE)
        return 0;
    if (topt_modules_again(model, &r->settings, m->modules, &again, NULL, err))
        return -1;
    m->kept_bytes[i] = topt_least_kept_bytes(model, &r->settings, again);
    free(again);
    return 0;
}

/* The bytes that layers read which stages recompute as a whole, each of whose inputs is kept. */
static double inputs_bytes(const struct topt_planning *m)
{
    const struct topt_request *r = m->request;
    const struct topt_stage_units *u = &m->units;
    double bytes = 0;
    for (int i = u->first ? u->first : 1; i < u->first + u->layers; i++) {
        const struct topt_tensor *t = &r->model->tensor[u->at[i].tensor];
        const struct topt_op *o = &r->model->op[t->producer];
        bytes += (double)topt_operand_numbers(o, o->output);
    }
    return bytes * topt_dtype_bytes(r->settings.dtype);
}

double topt_planning_kept(const struct topt_planning *m, const struct topt_degrees *d)
{
    int i = d->context > 1;
    return !d->recompute                                      ? m->activation_bytes[i]
           : m->modules == TOPT_MODULE_WHOLE && d->stages > 1 ? m->input_bytes
                                                              : m->kept_bytes[i];
}

static int find_recomputable(struct topt_planning *m, struct topt_error *err)
{
    const struct topt_model *model = m->request->model;
    uint8_t *may;
    if (topt_recomputable(model, &m->request->settings, &may, err))
        return -1;
    m->recomputes = memchr(may, 1, (size_t)model->nops) != NULL;
    free(may);
    /* What is recomputed where anything is: whole layers, or what was asked for. */
    int64_t asked = m->request->fixed.recompute;
    m->modules = !m->recomputes ? 0 : asked > 0 ? (int)asked : TOPT_MODULE_WHOLE;
    return find_kept(m, 0, err) || find_kept(m, 1, err) ? -1 : 0;
}

/* ---- pipeline stages ----------------------------------------------------------------- */

/* ... of the operators [from, until). */
static struct topt_parameter_sums sum_parameters(const struct topt_planning *m, int from,
                                                 int until)
{
    const struct topt_model *model = m->request->model;
    const struct topt_settings *x = &m->request->settings;
    struct topt_parameter_sums ret = {
        .all = topt_least_parameters_of(model, x, 0, NULL, from, until),
        .of_experts = topt_least_parameters_of(model, x, 1, NULL, from, until)};
    if (m->split.op)
        ret.replicated = topt_least_parameters_of(model, x, 0, m->split.op, from, until);
    return ret;
}

/* Does an operator add up over samples inside of a pass? */
static int sums_samples(const struct topt_op *o)
{
    const struct topt_step *of[] = {o->spec->forward, o->spec->backward};
    uint32_t samples = 0;
    for (int d = 0; d < TOPT_MAX_OPDIMS; d++)
        samples |= (uint32_t)(o->spec->dim[d].split == TOPT_SPLIT_BATCH) << d;
    for (int back = 0; back < 2; back++)
        for (const struct topt_step *t = of[back]; t->kind != TOPT_STEP_END; t++)
            if ((t->kind == TOPT_STEP_SUM || t->kind == TOPT_STEP_MAX) &&
                t->dims & samples)
                return 1;
    return 0;
}

static void find_losses(struct topt_planning *m)
{
    const struct topt_model *model = m->request->model;
    m->loss_unit = -1;
    for (int u = 0; u < m->units.n; u++)
        for (int i = m->units.at[u].op; i < m->units.at[u + 1].op; i++) {
            m->losses += model->op[i].spec->loss != 0;
            m->loss_unit = i == model->loss ? u : m->loss_unit;
        }
}

/* Stages are searched in the uniform space of a framework that has them, for models of layers whose
 * samples go from one to the next. */
static int find_layers(struct topt_planning *m, struct topt_error *err)
{
    if (!topt_request_stages(m->request))
        return 0;
    if (topt_stage_units_find(m->request->model, &m->units, err))
        return -1;
    m->layers = m->units.layers;
    m->in_unit = calloc((size_t)m->units.n + 1, sizeof *m->in_unit);
    if (!m->in_unit)
        return topt_nomem(err, "the model's layers");
    for (int i = 0; i < m->units.n; i++)
        m->in_unit[i] = sum_parameters(m, m->units.at[i].op, m->units.at[i + 1].op);
    find_losses(m);
    if (!topt_accounting_is_papers(m->request->settings.accounting) &&
        !(m->request->settings.offload & TOPT_OFFLOAD_KEPT))
        m->input_bytes = inputs_bytes(m);
    m->most_chunks = topt_request_most_chunks(m->request, &m->units);
    return 0;
}

int topt_planning_most_stages(const struct topt_planning *m)
{
    int64_t asked = m->request->pipeline;
    if (m->request->settings.offload &
        ~(int64_t)(TOPT_OFFLOAD_STATE | TOPT_OFFLOAD_MODULES))
        return 1;
    int most = m->most_chunks < TOPT_MAX_STAGES ? m->most_chunks : TOPT_MAX_STAGES;
    return asked ? (asked <= most ? (int)asked : 0) : most;
}

/* Those that people book: powers of two, three times one, and what divides the layers. */
int topt_planning_stages(const struct topt_planning *m, int stages)
{
    int third = stages % 3 ? stages : stages / 3;
    if (!topt_request_places(m->request, stages))
        return 0;
    if (m->request->pipeline)
        return stages == m->request->pipeline;
    return !(third & (third - 1)) || m->layers % stages == 0;
}

/* Chunks are of equally many layers, but for up to four, whose place the embedding, the loss or other
 * parts outside of layers may take. */
static int chunks_fit(const struct topt_planning *m, const struct topt_degrees *d)
{
    int64_t asked = m->request->unlike.groups ? 1 : m->request->virtual_stages;
    int all = d->stages * d->virtual_stages;
    int short_of = (all - m->layers % all) % all;
    return (!asked || d->virtual_stages == asked) &&
           (topt_request_even_stages(m->request) ? !short_of : short_of <= 4 || asked);
}

/* PyTorch recomputes for each part of a backward pass anew, and holds what it made until the last (issue 136766 of
 * pytorch/pytorch, 2024); its selective checkpointing does not serve a second part (pull 916 of areal-project/AReaL,
 * 2026): schedules that make gradients of parameters apart are not looked at beside recomputation.
 * Megatron-LM refuses passes that run as one beside recomputation of layers or experts, and
 * without expert parallelism (core/transformer/transformer_config.py at d98e8a6). */
int topt_planning_orders(const struct topt_planning *m, const struct topt_degrees *d)
{
    int rows = topt_request_orders(m->request), all = d->stages * d->virtual_stages;
    struct topt_order_shape shape = {d->stages, d->virtual_stages, d->micro_batches};
    int paired = d->expert > 1 && !(d->recompute & (TOPT_MODULE_WHOLE | TOPT_MODULE_MOE));
    int left = 0, ret = 0;
    if (all > m->most_chunks || all > TOPT_MAX_CHUNKS)
        return -1;
    if (!chunks_fit(m, d))
        return 0;
    for (int row = 0; row < TOPT_ORDERS; row++) {
        const struct topt_order *o = &topt_orders[row];
        if (!(rows >> row & 1))
            continue;
        left |= d->virtual_stages <= o->most_chunks;
        if ((o->pairs ? paired : !(d->recompute && o->splits)) &&
            topt_order_takes(o, &shape))
            ret |= 1 << row;
    }
    return left ? ret : -1;
}

/* What rests on the host, at least: what all that a device would have without it has more; gradients in f32. */
static struct topt_least_parameters rests_away(const struct topt_request *r, int experts)
{
    struct topt_settings here = r->settings;
    here.offload = 0;
    struct topt_least_parameters all = topt_least_parameters(r->model, &here, experts),
                                 some = topt_least_parameters(r->model, &r->settings,
                                                              experts);
    int wide = topt_dtype_is_half(here.dtype) && !here.gradient_f32 ? 2 : 1;
    return (struct topt_least_parameters){.value = all.value - some.value,
                                          .gradient =
                                              wide * (all.gradient - some.gradient),
                                          .state = all.state - some.state};
}

int topt_planning_init(struct topt_planning *m, const struct topt_request *r,
                       struct topt_error *err)
{
    int64_t batch = r->model->batch, given = r->micro_batches ? r->micro_batches : 1;
    int searched = topt_request_widest(r, r->space) & TOPT_FACTOR_MICRO;
    int all = searched && may_split_batch(r), n = 0;
    *m = (struct topt_planning){
        .request = r,
        .tensor = (enum topt_tensor_where)topt_request_tensor_at(r, 0),
        .heads = heads_of(r->model),
        .sparse = topt_model_has_tables(r->model),
        .away = rests_away(r, 0),
        .away_of_experts = rests_away(r, 1),
        .experts = topt_request_experts(r) ? topt_model_experts(r->model) : 0};
    for (int64_t u = 1; u <= batch; u++)
        n += all ? batch % u == 0 : u == given;
    if (given < 1 || n == 0 || batch % given)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "%lld micro-batches do not divide the batch of %lld",
                         (long long)given, (long long)batch);
    pthread_mutex_init(&m->lock, NULL);
    m->at = calloc(2 * (size_t)n, sizeof *m->at);
    int rc = m->at ? 0 : topt_nomem(err, "micro-batches");
    if (rc ||
        topt_tensor_map_init(&m->split, r->model, topt_request_tensor_rules(r),
                             topt_request_positions(r), err) ||
        topt_request_contexts(r, &m->apart, &m->context, err) ||
        topt_tensor_map_init(&m->beside, m->apart,
                             m->apart ? topt_request_tensor_rules(r) : NULL,
                             topt_request_positions(r), err) ||
        find_recomputable(m, err) || find_layers(m, err) ||
        topt_pins_init(&m->pins, r->pin, r->model, err)) {
        topt_planning_fini(m);
        return -1;
    }
    m->parameters = sum_parameters(m, 0, r->model->nops);
    for (int i = 0; i < r->model->nops; i++)
        m->batch_sums |= sums_samples(&r->model->op[i]);
    for (int64_t u = 1; u <= batch; u++)
        if (all ? batch % u == 0 : u == given) {
            m->at[n + m->n].batches = u;
            m->at[m->n++].batches = u;
        }
    return 0;
}

void topt_planning_fini(struct topt_planning *m)
{
    if (m->close_parts)
        m->close_parts(m);
    for (int i = 0; i < 2 * m->n; i++)
        topt_model_destroy(m->at[i].owned);
    free(m->at);
    topt_tensor_map_fini(&m->split);
    topt_tensor_map_fini(&m->beside);
    topt_tensor_map_fini(&m->context);
    pthread_mutex_destroy(&m->lock);
    topt_pins_fini(&m->pins);
    topt_stage_units_fini(&m->units);
    free(m->in_unit);
    *m = (struct topt_planning){0};
}

const struct topt_model *topt_planning_model(const struct topt_planning *m,
                                             const struct topt_degrees *d)
{
    return d->context > 1 ? m->apart : m->request->model;
}

const struct topt_tensor_map *topt_planning_tensor(const struct topt_planning *m,
                                                   const struct topt_degrees *d)
{
    return !m->split.rules ? NULL : d->context > 1 ? &m->beside : &m->split;
}

int topt_planning_positions(const struct topt_planning *m)
{
    return m->request->sequence_splits || m->split.positions;
}

static int has_tables(const struct topt_model *m, const struct topt_settings *s)
{
    for (int i = 0; i < m->nops; i++)
        if (topt_is_table(m, s, i))
            return 1;
    return 0;
}

int topt_planning_contexts(const struct topt_planning *m, int64_t ranks)
{
    int64_t asked = m->request->context;
    if (asked || ranks == 1)
        return ranks == (asked ? asked : 1) && (ranks == 1 || m->apart);
    return m->apart && m->apart->seq % (2 * ranks) == 0 &&
           m->apart->seq / ranks >= TOPT_LEAST_POSITIONS;
}

/* All of it, or nothing. */
static int make_micro(const struct topt_request *r, const struct topt_model *whole,
                      struct topt_micro *t, struct topt_error *err)
{
    struct topt_model *owned = NULL;
    if (t->batches > 1) {
        owned = topt_model_rebatch(whole, whole->batch / t->batches, err);
        if (!owned)
            return -1;
    }
    const struct topt_model *model = owned ? owned : whole;
    t->settings = topt_request_settings(r);
    t->settings.micro_batches = t->batches;
    if (topt_settings_fit(model, &t->settings, err)) {
        topt_model_destroy(owned);
        return -1;
    }
    t->owned = owned;
    t->tables = has_tables(model, &t->settings);
    t->model = model;
    return 0;
}

struct topt_micro *topt_planning_at(struct topt_planning *m, const struct topt_degrees *d,
                                    struct topt_error *err)
{
    const struct topt_model *whole = topt_planning_model(m, d);
    int i = whole == m->request->model ? 0 : m->n, end = i + m->n;
    while (i < end && m->at[i].batches != d->micro_batches)
        i++;
    if (i == end) {
        topt_fail(err, TOPT_ERR_INTERNAL, "%lld micro-batches are none of the request's",
                  (long long)d->micro_batches);
        return NULL;
    }
    struct topt_micro *t = &m->at[i];
    pthread_mutex_lock(&m->lock);
    int rc = t->model ? 0 : make_micro(m->request, whole, t, err);
    pthread_mutex_unlock(&m->lock);
    return rc ? NULL : t;
}

int topt_planning_over(const struct topt_planning *m)
{
    const struct topt_request *r = m->request;
    return topt_request_stopped(r) || (r->max_work && m->work >= r->max_work);
}

int topt_planning_gave_up(const struct topt_planning *m, const struct topt_error *err)
{
    return topt_planning_over(m) || (err && err->code == TOPT_ERR_LIMIT && *m->too_large);
}

void topt_planning_resume(struct topt_planning *m, const struct topt_planning *from)
{
    m->work = from->work;
    memcpy(m->too_large, from->too_large, sizeof m->too_large);
}

int topt_planning_resort(struct topt_planning *m, int *stage)
{
    int where = topt_request_tensor_at(m->request, (*stage)++);
    if (where >= 0)
        m->tensor = (enum topt_tensor_where)where;
    return where >= 0;
}

int topt_beside_init(struct topt_beside *b, struct topt_request request,
                     struct topt_error *err)
{
    b->request = request;
    return topt_planning_init(&b->planning, &b->request, err);
}

void topt_beside_fini(struct topt_beside *b)
{
    topt_planning_fini(&b->planning);
}
