/* no_degrees.c - why no plan for a number of GPUs has the degrees that a question fixes.
 *
 * The rules are those by which degrees are listed (grid.c, planning.c); they are read here once more, one at a
 * time, after nothing was found, so that the answer names the degree and the number that do not go together. */
#include "best.h"
#include "planning.h"
#include "request.h"
#include "topt_minmax.h"
#include "topt_question.h"

#include <stdio.h>

/* Degrees with what follows from them: 0 where it stays open. */
struct degrees {
    long long gpus, tensor, stages, context, data, micro_batches, batch, micro_batch;
};

/* Each refusal is 1, and 0 where there is none. */
#define REFUSE(...) (topt_fail(err, TOPT_ERR_INFEASIBLE, "--degrees: " __VA_ARGS__) != 0)

static struct degrees degrees_of(const struct topt_request *r, int64_t gpus)
{
    const struct topt_fixed *f = &r->fixed;
    struct degrees d = {.gpus = gpus, .tensor = f->tensor, .data = f->data};
    d.stages = topt_request_stages(r) ? r->pipeline : 1;
    d.context = r->framework->context ? r->context : 1;
    d.batch = r->model->batch;
    d.micro_batch = topt_max(f->micro_batch, (int64_t)1);
    int64_t all = d.tensor * d.stages * d.context;
    if (all && gpus % all == 0)
        d.data = gpus / all;
    if (d.data && f->micro_batch && d.batch % (d.data * f->micro_batch) == 0)
        d.micro_batches = d.batch / (d.data * f->micro_batch);
    return d;
}

static int refuse_tensor(const struct topt_planning *m, const struct degrees *d,
                         struct topt_error *err)
{
    const struct topt_op *o = m->request->model->op;
    long long node = topt_min((int64_t)d->gpus, topt_hw_gpus_per_node(m->request->hw));
    int op = -1, dim = 0;
    if (d->tensor < 2)
        return 0;
    if (m->heads % d->tensor)
        return REFUSE(
            "tp=%lld does not divide the %lld heads of attention (of queries, or "
            "of keys and values where these are fewer); take a tp that does",
            d->tensor, (long long)m->heads);
    if (node % d->tensor && d->tensor % node)
        return REFUSE(
            "tp=%lld neither divides a node's %lld GPUs nor is it a multiple of "
            "them; take a tp that does",
            d->tensor, node);
    if (m->split.op && !m->split.refused[0])
        op = topt_tensor_uneven(&m->split, m->request->model, d->tensor, &dim);
    return op >= 0 && REFUSE("tp=%lld does not divide dimension %s of '%.60s', which is "
                             "%lld; take a tp that does",
                             d->tensor, o[op].spec->dim[dim].name, o[op].name,
                             (long long)o[op].count[dim]);
}

static int refuse_experts(const struct topt_request *r, const struct degrees *d,
                          struct topt_error *err)
{
    long long split = topt_max((int64_t)r->expert_tensor, (int64_t)1), expert = r->expert;
    long long ranks = d->stages ? d->gpus / d->stages : 0;
    if (expert < 2)
        return 0;
    if (d->tensor && split > d->tensor)
        return REFUSE(
            "etp=%lld is more than tp=%lld; experts are planned to be split over "
            "ranks of tensor parallelism, at most over all of them",
            split, d->tensor);
    return ranks && ranks % (expert * split) &&
           REFUSE("ep=%lld x etp=%lld does not divide the %lld GPUs of a pipeline stage; "
                  "take a smaller ep, or fewer stages",
                  expert, split, ranks);
}

static int refuse_batch(const struct degrees *d, struct topt_error *err)
{
    char stages[32] = "", context[32] = "";
    if (!d->data || !d->tensor || d->batch % (d->data * d->micro_batch) == 0)
        return 0;
    if (d->stages > 1)
        snprintf(stages, sizeof stages, " x pp=%lld", d->stages);
    if (d->context > 1)
        snprintf(context, sizeof context, " x cp=%lld", d->context);
    return REFUSE(
        "%lld GPUs / (tp=%lld%s%s) = %lld data parallel ranks with mbs=%lld do "
        "not divide the batch of %lld; take a --batch that is a multiple of %lld, "
        "or change a degree",
        d->gpus, d->tensor, stages, context, d->data, d->micro_batch, d->batch,
        d->data * d->micro_batch);
}

/* Micro-batches that no schedule takes. */
static int refuse_schedule(const struct topt_planning *m, const struct degrees *d,
                           struct topt_error *err)
{
    struct topt_degrees shape = topt_degrees_none();
    if (d->stages < 2 || !d->micro_batches)
        return 0;
    if (d->micro_batches == 1)
        return REFUSE(
            "the batch of %lld is one micro-batch of mbs=%lld for each of %lld data "
            "parallel ranks, and pipeline stages need several to work side by "
            "side; take a larger --batch, or fewer ranks",
            d->batch, d->micro_batch, d->data);
    shape.stages = (int)d->stages;
    shape.virtual_stages = (int)m->request->virtual_stages;
    shape.micro_batches = d->micro_batches;
    shape.expert = m->experts ? 2 : 1; /* some schedules are of expert parallelism */
    return shape.virtual_stages && topt_planning_orders(m, &shape) <= 0 &&
           REFUSE(
               "no schedule takes %lld micro-batches a step with pp=%lld and vp=%d: "
               "interleaved ones are planned for multiples of pp; change --batch, mbs or "
               "dp",
               d->micro_batches, d->stages, shape.virtual_stages);
}

int topt_no_degrees(const struct topt_planning *m, int64_t gpus, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    if (!r->fixed.any || !r->framework || r->unlike.parts || r->unlike.groups)
        return 0;
    struct degrees d = degrees_of(r, gpus);
    return refuse_tensor(m, &d, err) || refuse_experts(r, &d, err) ||
           refuse_batch(&d, err) || refuse_schedule(m, &d, err);
}
