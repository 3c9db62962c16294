/* no_degrees.c - why no plan for a number of GPUs has the degrees that a question fixes.
 *
 * The rules are those by which degrees are listed (grid.c, planning.c); they are read here once more, one at a
 * time, after nothing was found, so that the answer names the degree and the number that do not go together. */
#include "best.h"
#include "planning.h"
#include "request.h"
#include "topt_question.h"

#include <stdio.h>

/* Degrees with what follows from them: 0 where it stays open. */
struct degrees {
    int64_t gpus, tensor, stages, context, data, micro_batches;
};

static struct degrees degrees_of(const struct topt_request *r, int64_t gpus)
{
    const struct topt_fixed *f = &r->fixed;
    struct degrees d = {.gpus = gpus, .tensor = f->tensor, .data = f->data};
    d.stages = topt_request_stages(r) ? r->pipeline : 1;
    d.context = r->framework->context ? r->context : 1;
    int64_t all = d.tensor * d.stages * d.context;
    if (all && gpus % all == 0)
        d.data = gpus / all;
    if (d.data && f->micro_batch && r->model->batch % (d.data * f->micro_batch) == 0)
        d.micro_batches = r->model->batch / (d.data * f->micro_batch);
    return d;
}

static int refuse_tensor(const struct topt_planning *m, const struct degrees *d,
                         struct topt_error *err)
{
    const struct topt_model *model = m->request->model;
    int64_t node = topt_hw_gpus_per_node(m->request->hw);
    int op = -1, dim = 0;
    node = d->gpus < node ? d->gpus : node;
    if (d->tensor < 2)
        return 0;
    if (m->heads % d->tensor) {
        topt_fail(err, TOPT_ERR_INFEASIBLE,
                  "--degrees: tp=%lld does not divide the %lld heads of attention (of "
                  "queries, or of keys and values where these are fewer); take a tp that "
                  "does",
                  (long long)d->tensor, (long long)m->heads);
        return 1;
    }
    if (node % d->tensor && d->tensor % node) {
        topt_fail(
            err, TOPT_ERR_INFEASIBLE,
            "--degrees: tp=%lld neither divides a node's %lld GPUs nor is it a multiple "
            "of them; take a tp that does",
            (long long)d->tensor, (long long)node);
        return 1;
    }
    if (m->split.op && !m->split.refused[0])
        op = topt_tensor_uneven(&m->split, model, d->tensor, &dim);
    if (op >= 0) {
        topt_fail(
            err, TOPT_ERR_INFEASIBLE,
            "--degrees: tp=%lld does not divide dimension %s of '%.60s', which is %lld; "
            "take a tp that does",
            (long long)d->tensor, model->op[op].spec->dim[dim].name, model->op[op].name,
            (long long)model->op[op].count[dim]);
        return 1;
    }
    return 0;
}

static int refuse_experts(const struct topt_request *r, const struct degrees *d,
                          struct topt_error *err)
{
    int64_t split = r->expert_tensor ? r->expert_tensor : 1;
    int64_t ranks = d->stages ? d->gpus / d->stages : 0;
    if (r->expert < 2)
        return 0;
    if (d->tensor && split > d->tensor) {
        topt_fail(err, TOPT_ERR_INFEASIBLE,
                  "--degrees: etp=%lld is more than tp=%lld; experts are planned to be "
                  "split over ranks of tensor parallelism, at most over all of them",
                  (long long)split, (long long)d->tensor);
        return 1;
    }
    if (!ranks || ranks % (r->expert * split) == 0)
        return 0;
    topt_fail(err, TOPT_ERR_INFEASIBLE,
              "--degrees: ep=%lld x etp=%lld does not divide the %lld GPUs of a pipeline "
              "stage; take a smaller ep, or fewer stages",
              (long long)r->expert, (long long)split, (long long)ranks);
    return 1;
}

/* "64 GPUs / (tp=2 x pp=4) = 8 data parallel ranks" */
static void put_ranks(const struct degrees *d, char *buf, size_t size)
{
    size_t n = (size_t)snprintf(buf, size, "%lld GPUs / (tp=%lld", (long long)d->gpus,
                                (long long)d->tensor);
    if (d->stages > 1)
        n += (size_t)snprintf(buf + n, size - n, " x pp=%lld", (long long)d->stages);
    if (d->context > 1)
        n += (size_t)snprintf(buf + n, size - n, " x cp=%lld", (long long)d->context);
    snprintf(buf + n, size - n, ") = %lld data parallel ranks", (long long)d->data);
}

static int refuse_batch(const struct topt_request *r, const struct degrees *d,
                        struct topt_error *err)
{
    int64_t each = r->fixed.micro_batch ? r->fixed.micro_batch : 1;
    char ranks[120];
    if (!d->data || !d->tensor || r->model->batch % (d->data * each) == 0)
        return 0;
    put_ranks(d, ranks, sizeof ranks);
    topt_fail(
        err, TOPT_ERR_INFEASIBLE,
        "--degrees: %s with mbs=%lld do not divide the batch of %lld; take a --batch "
        "that is a multiple of %lld, or change a degree",
        ranks, (long long)each, (long long)r->model->batch, (long long)(d->data * each));
    return 1;
}

/* Micro-batches that no schedule takes. */
static int refuse_schedule(const struct topt_planning *m, const struct degrees *d,
                           struct topt_error *err)
{
    const struct topt_request *r = m->request;
    struct topt_degrees shape = topt_degrees_none();
    if (d->stages < 2 || !d->micro_batches)
        return 0;
    if (d->micro_batches == 1) {
        topt_fail(
            err, TOPT_ERR_INFEASIBLE,
            "--degrees: the batch of %lld is one micro-batch of mbs=%lld for each of "
            "%lld data parallel ranks, and pipeline stages need several to work side "
            "by side; take a larger --batch, or fewer ranks",
            (long long)r->model->batch, (long long)r->fixed.micro_batch,
            (long long)d->data);
        return 1;
    }
    shape.stages = (int)d->stages;
    shape.virtual_stages = (int)r->virtual_stages;
    shape.micro_batches = d->micro_batches;
    shape.expert = m->experts ? 2 : 1; /* some schedules are of expert parallelism */
    if (!shape.virtual_stages || topt_planning_orders(m, &shape) > 0)
        return 0;
    topt_fail(
        err, TOPT_ERR_INFEASIBLE,
        "--degrees: no schedule takes %lld micro-batches a step with pp=%lld and "
        "vp=%lld: interleaved ones are planned for multiples of pp; change --batch, "
        "mbs or dp",
        (long long)d->micro_batches, (long long)d->stages, (long long)r->virtual_stages);
    return 1;
}

int topt_no_degrees(const struct topt_planning *m, int64_t gpus, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    if (!r->fixed.any || !r->framework || r->unlike.parts || r->unlike.groups)
        return 0;
    struct degrees d = degrees_of(r, gpus);
    return refuse_tensor(m, &d, err) || refuse_experts(r, &d, err) ||
           refuse_batch(r, &d, err) || refuse_schedule(m, &d, err);
}
