/* fewest.c - mini-parallelism: the fewest GPUs that fit, why not fewer, and what more
 * would buy.
 *
 * Counts are tried upwards until one fits.  In the uniform space of a framework, where a
 * count takes milliseconds, others that may matter are tried too, so that the user sees beside the
 * fewest the knee and the fastest, and can ask for an efficiency instead
 * (alternatives.c). */
#include "best.h"
#include "algorithm.h"
#include "memo.h"
#include "planning.h"
#include "request.h"
#include "topt_choices.h"
#include "topt_framework.h"
#include "topt_named_points.h"
#include "topt_question.h"
#include "topt_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts tried for the fewest. */
struct fewest {
    struct topt_best best;
    int64_t gpus;  /* where that is, or the search was stopped */
    int64_t fewer; /* the count before; 0: none */
    int64_t
        /* the first count of which it is not known whether anything fits; 0: none */
        doubt;
};

/* Why the count before was not enough: the least that anything needs there. */
static int why_least(struct topt_planning *m, const struct fewest *f, const char *limit,
                     char *why, size_t size, struct topt_error *err)
{
    struct topt_best b;
    char need[32];
    int n = snprintf(why, size, "fewest GPUs that fit in %s each", limit);
    if (topt_count_solve(m, f->fewer, 0, 0, TOPT_GOAL_LEAST, &b, err))
        return topt_planning_gave_up(m, err) ? 0 : -1;
    int64_t least = topt_best_bound(&b);
    int open = b.certificate.decided || least <= topt_request_limit(m->request);
    topt_show_bytes(open ? b.solution.memory_bytes : least, need, sizeof need);
    if (b.found && n > 0 && (size_t)n < size)
        snprintf(why + n, size - (size_t)n,
                 b.certificate.decided
                     ? " found so far: %lld need %s with operators fixed by heuristic"
                 : open ? " found so far: %lld need %s, perhaps less"
                        : ": %lld would need at least %s",
                 (long long)f->fewer, need);
    topt_best_fini(&b);
    return 0;
}

/* ... without a search where one may take long. */
static int why_not_fewer(struct topt_planning *m, const struct fewest *f, char *why,
                         size_t size, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    int64_t bound = f->fewer ? topt_count_least_bytes(m, f->fewer) : 0;
    int each = topt_hw_gpus_per_node(r->hw);
    char limit[32], need[32];
    topt_show_bytes(topt_request_limit(r), limit, sizeof limit);
    if (!f->fewer && r->counts == TOPT_COUNTS_NODES)
        snprintf(why, size, "fits on %lld node%s, %s per GPU", (long long)f->gpus / each,
                 f->gpus == each ? "" : "s", limit);
    else if (!f->fewer)
        snprintf(why, size, "fits on one GPU (%s usable)", limit);
    else if (f->doubt && f->doubt != f->fewer)
        snprintf(why, size,
                 "fewest GPUs found to fit in %s each; on %lld, operators were fixed by "
                 "heuristic",
                 limit, (long long)f->doubt);
    else if (bound > topt_request_limit(r) && r->space != TOPT_SPACE_UNIFORM)
        snprintf(why, size,
                 "fewest GPUs that fit in %s each: %lld would need more than %s (a lower "
                 "bound)",
                 limit, (long long)f->fewer, topt_show_bytes(bound, need, sizeof need));
    else
        return why_least(m, f, limit, why, size, err);
    return 0;
}

/* The first count that something fits on, or where the search was stopped; counts that
 * can't take equal shares of the batch are passed over. */
static int first_fit(struct topt_planning *m, const int64_t *count, int n,
                     struct fewest *ret, struct topt_error *err)
{
    int64_t limit = topt_request_limit(m->request);
    for (int i = 0; i < n && !ret->best.found && !ret->best.stopped; i++) {
        if (!topt_count_divides_batch(m, count[i], NULL))
            continue;
        ret->fewer = ret->gpus;
        ret->gpus = count[i];
        if (topt_count_least_bytes(m, count[i]) > limit)
            continue;
        topt_best_fini(&ret->best);
        if (topt_count_solve(m, count[i], limit, 0, TOPT_GOAL_FASTEST, &ret->best, err))
            return -1;
        if (topt_best_fits(&ret->best) == TOPT_FITS_UNKNOWN && !ret->doubt)
            ret->doubt = count[i];
    }
    return 0;
}

static int answer_in_uniform(struct topt_planning *uniform, int64_t gpus,
                             struct fewest *f, json_t **ret, struct topt_error *err)
{
    char why[200], limit[32];
    if (!f->best.found)
        return topt_answer_unfinished(uniform, gpus, ret, err);
    f->best.stopped = 1;
    topt_certificate_withdraw(&f->best.certificate);
    snprintf(
        why, sizeof why,
        "fits in %s each; fewer GPUs may suffice, because the search stopped at %lld",
        topt_show_bytes(topt_request_limit(uniform->request), limit, sizeof limit),
        (long long)gpus);
    return topt_answer_write(uniform, &f->best, why, ret, err);
}

/* Stopped at a count before anything was found: what the uniform space has on the next
 * powers of two, which is cheap, is better than nothing. */
static int fall_back_to_uniform(const struct topt_request *asked, int64_t gpus,
                                json_t **ret, struct topt_error *err)
{
    enum topt_space space = topt_space_resolve(asked->space, (int)gpus);
    struct topt_request r =
        topt_request_uniform(asked, topt_request_widest(asked, space));
    struct topt_beside uniform;
    struct fewest f = {.best = {0}};
    int64_t *count;
    int n, from = 0, rc = -1;
    r.counts = r.counts == TOPT_COUNTS_NODES ? TOPT_COUNTS_NODES : TOPT_COUNTS_POW2;
    if (topt_request_counts(&r, &count, &n, err))
        return -1;
    while (from < n && count[from] < gpus)
        from++;
    n -= from;
    if (!topt_beside_init(&uniform, r, err)) {
        if (!first_fit(&uniform.planning, count + from, n, &f, err))
            rc = answer_in_uniform(&uniform.planning, gpus, &f, ret, err);
        topt_best_fini(&f.best);
        topt_beside_fini(&uniform);
    }
    free(count);
    return rc;
}

/* ---- what was left out of the question --------------------------------------------- */

/* Something that the request excluded, knowingly or not, and how to have it. */
struct relaxation {
    const char *ask; /* NULL: the number of GPUs */
    int (*excluded)(const struct topt_planning *m);
    void (*allow)(struct topt_request *r); /* NULL: as it is */
    const char *train;                     /* what is trained instead; NULL: the same */
    int offer; /* what rests on the host instead: of enum topt_offer one more; 0: nothing */
    int other_costs; /* strategies cost something else: tried where nothing fits, without a memo */
};

static int excludes_tensor(const struct topt_planning *m)
{
    const struct topt_framework *f = m->request->framework;
    return f && !m->request->tensor_parallel && !m->split.refused[0] &&
           m->tensor == TOPT_TENSOR_NEVER && f->tensor_most > TOPT_TENSOR_NEVER;
}

static void allow_tensor(struct topt_request *r)
{
    r->tensor_parallel = 1;
}

static int excludes_factors(const struct topt_planning *m)
{
    const struct topt_request *r = m->request;
    int all = TOPT_FACTORS_ALL & ~(r->micro_batches ? TOPT_FACTOR_MICRO : 0);
    return r->space == TOPT_SPACE_UNIFORM && topt_request_factors(r, r->space) != all;
}

static void allow_factors(struct topt_request *r)
{
    r->factors = TOPT_FACTORS_ALL;
}

static int trains_all(const struct topt_planning *m)
{
    return !m->request->model->train;
}

static int excludes_micro(const struct topt_planning *m)
{
    return m->request->micro_batches > 0;
}

static void allow_micro(struct topt_request *r)
{
    r->micro_batches = 0;
}

/* The framework's kernel of the loss that takes the least memory. */
static enum topt_loss_kernel leanest_loss(const struct topt_request *r)
{
    return (enum topt_loss_kernel)(31 - __builtin_clz((unsigned)r->framework->losses));
}

static int leaves_loss(const struct topt_planning *m)
{
    const struct topt_request *r = m->request;
    return r->framework && topt_loss_has_kernels(r->model) &&
           r->settings.loss < leanest_loss(r);
}

static void allow_loss(struct topt_request *r)
{
    r->settings.loss = leanest_loss(r);
}

static const struct relaxation relaxations[] = {
    {"--tensor-parallel", excludes_tensor, allow_tensor, NULL, 0, 0},
    {"--factors all", excludes_factors, allow_factors, NULL, 0, 0},
    {"other --micro-batches", excludes_micro, allow_micro, NULL, 0, 0},
    {"--train lora", trains_all, NULL, "lora", 0, 0},
    {"--loss-kernel ", leaves_loss, allow_loss, NULL, 0, 1},
    {.ask = "--offload optimizer", .other_costs = 1, .offer = 1 + TOPT_OFFER_OPTIMIZER},
    {.ask = "--offload parameters", .other_costs = 1, .offer = 1 + TOPT_OFFER_PARAMETERS},
    {.ask = "--offload activations",
     .other_costs = 1,
     .offer = 1 + TOPT_OFFER_ACTIVATIONS},
};
enum { RELAXATIONS = sizeof relaxations / sizeof *relaxations };

static int is_excluded(const struct topt_planning *m, const struct relaxation *x)
{
    const struct topt_request *r = m->request;
    if (!x->offer)
        return x->excluded(m);
    return r->framework && r->framework->offers[x->offer - 1].away &&
           !r->settings.offload && topt_hw_host(r->hw)->link > 0;
}

/* The request with it, and what is kept of that; its model is 'ret_other' (owned) where it is
 * another one.  1, 0 where it is not of this model, or -1. */
static int relax(const struct topt_planning *m, const struct relaxation *x,
                 struct topt_request *ret, struct topt_memo **ret_memo,
                 struct topt_model **ret_other, struct topt_error *err)
{
    *ret = *m->request;
    *ret_memo = x->other_costs ? NULL : m->memo;
    *ret_other = NULL;
    if (x->allow)
        x->allow(ret);
    if (x->offer) {
        ret->offload = 1 << (x->offer - 1);
        return !topt_request_offload(ret, NULL); /* else not with what else is asked */
    }
    if (!x->train)
        return 1;
    if (m->memo && !(*ret_memo = topt_memo_lora(m->memo)))
        return topt_nomem(err, "the answer");
    struct topt_model *other = topt_model_rebatch(ret->model, ret->model->batch, err);
    if (!other)
        return -1;
    int of_this_model = !topt_model_train(&other, x->train, NULL);
    *ret_other = other;
    ret->model = other;
    ret->apart = NULL; /* it is made of the model that trains all */
    return of_this_model;
}

/* The fewest of these counts that fit with it, into 'with' where there are any. */
static int try_relaxed(const struct topt_planning *asked, const struct relaxation *x,
                       const int64_t *count, int n, json_t *with, struct topt_error *err)
{
    struct topt_request r;
    struct topt_memo *memo;
    struct topt_model *other;
    struct topt_planning m;
    struct fewest f = {.best = {0}};
    char ask[64];
    int rc = relax(asked, x, &r, &memo, &other, err);
    if (rc > 0 && !(rc = topt_planning_init(&m, &r, err))) {
        m.memo = memo;
        rc = first_fit(&m, count, n, &f, err);
        snprintf(ask, sizeof ask, "%s%s", x->ask ? x->ask : "",
                 x->allow == allow_loss ? topt_loss_kernel_name(r.settings.loss) : "");
        if (!rc && f.best.found)
            json_array_append_new(
                with, json_pack("{s:o, s:I, s:I}", "ask",
                                x->ask ? json_string(ask)
                                       : json_sprintf("--gpus %lld", (long long)f.gpus),
                                "gpus", (json_int_t)f.gpus, "memory_bytes",
                                (json_int_t)f.best.solution.memory_bytes));
        topt_best_fini(&f.best);
        topt_planning_fini(&m);
    }
    topt_model_destroy(other);
    return rc;
}

/* "with": what would fit on fewer than 'below' GPUs if it had been asked for.  Of spaces
 * that take long nothing is tried. */
static int put_relaxed(struct topt_planning *m, const int64_t *count, int n,
                       int64_t below, json_t *answer, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    json_t *with = json_object_get(answer, "with");
    int rc = 0;
    if (!with)
        json_object_set_new(answer, "with", with = json_array());
    while (n > 0 && count[n - 1] >= below)
        n--;
    for (int i = 0; i < RELAXATIONS && !rc && r->space == TOPT_SPACE_UNIFORM; i++)
        if (!topt_request_brief(r) && is_excluded(m, &relaxations[i]) &&
            (below == INT64_MAX || !relaxations[i].other_costs))
            rc = try_relaxed(m, &relaxations[i], count, n, with, err);
    if (!json_array_size(with))
        json_object_del(answer, "with");
    return rc;
}

/* ---- the whole --------------------------------------------------------------------- */

struct counts {
    int64_t *at;
    int n;
};

/* The answer for the count that an efficiency asks for instead of the fewest. */
static int answer_efficient(struct topt_planning *m, int64_t gpus, json_t **ret,
                            struct topt_error *err)
{
    struct topt_best b;
    char why[160];
    if (topt_count_solve(m, gpus, topt_request_limit(m->request), 0, TOPT_GOAL_FASTEST,
                         &b, err))
        return -1;
    snprintf(why, sizeof why, "the most GPUs that keep %.3g %% of the best speed per GPU",
             100 * m->request->min_efficiency);
    int rc = topt_answer_write(m, &b, why, ret, err);
    topt_best_fini(&b);
    return rc;
}

/* Alternatives where a count of the asked space may take minutes: they are of the uniform space,
 * which has a plan for each in milliseconds, and each has at least twice the GPUs of the one before.
 * --gpus finds what may be faster there. */
static int alternatives_in_uniform(struct topt_planning *m, const struct counts *c,
                                   const struct fewest *f, const char *why,
                                   struct topt_alternatives *ret, struct topt_error *err)
{
    int factors = topt_request_widest(m->request, TOPT_SPACE_UNIFORM);
    struct topt_beside uniform;
    json_t *fewest = NULL;
    int64_t *count = calloc((size_t)c->n, sizeof *count), last = f->gpus;
    int n = 0, rc = -1;
    if (!count)
        return topt_nomem(err, "the numbers of GPUs");
    for (int i = 0; i < c->n; i++)
        if (c->at[i] >= 2 * last)
            last = count[n++] = c->at[i];
    if (!topt_beside_init(&uniform, topt_request_uniform(m->request, factors), err)) {
        uniform.planning.tensor = m->tensor;
        rc = topt_best_point(m, &f->best, f->gpus, &fewest, err) ||
             topt_alternatives_find(
                 &uniform.planning, fewest, count, n, why,
                 "of the counts tried (each at least twice the previous one) with one "
                 "strategy for all layers; --gpus N may find a faster plan",
                 ret, err);
        topt_beside_fini(&uniform);
    }
    free(count);
    return rc ? -1 : 0;
}

/* The answers that people book beside the fewest. */
static int find_alternatives(struct topt_planning *m, const struct counts *c,
                             const struct fewest *f, const char *why,
                             struct topt_alternatives *ret, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    int first = 0;
    json_t *fewest;
    if (!r->framework || r->algorithm ||
        topt_accounting_is_papers(r->settings.accounting))
        return 0;
    if (!topt_request_even(r) ||
        topt_space_resolve(r->space, (int)f->gpus) != TOPT_SPACE_UNIFORM)
        return alternatives_in_uniform(m, c, f, why, ret, err);
    while (first < c->n && c->at[first] <= f->gpus)
        first++;
    if (topt_best_point(m, &f->best, f->gpus, &fewest, err))
        return -1;
    return topt_alternatives_find(m, fewest, c->at + first, c->n - first, why,
                                  "no GPU count that divides the batch is faster", ret,
                                  err);
}

static int answer_found(struct topt_planning *m, const struct counts *c,
                        const struct fewest *f, json_t **ret, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    struct topt_alternatives all = {0};
    char why[200];
    int rc = why_not_fewer(m, f, why, sizeof why, err) ||
             find_alternatives(m, c, f, why, &all, err);
    int64_t efficient = topt_points_efficient(all.points, r->min_efficiency);
    if (!rc)
        rc = efficient > f->gpus ? answer_efficient(m, efficient, ret, err)
                                 : topt_answer_write(m, &f->best, why, ret, err);
    if (!rc && json_array_size(all.named))
        json_object_set(*ret, "alternatives", all.named);
    if (!rc)
        rc = put_relaxed(m, c->at, c->n, f->gpus, *ret, err);
    if (!rc && topt_request_brief(r))
        json_object_set_new(*ret, "brief", json_true());
    topt_alternatives_fini(&all);
    return rc;
}

static int answer_not_found(struct topt_planning *m, const struct counts *c,
                            const struct fewest *f, json_t **ret, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    int64_t nearest[2];
    if (f->best.stopped)
        return topt_algorithm_find(r->algorithm)
                   ? topt_answer_unfinished(m, f->gpus, ret, err)
                   : fall_back_to_uniform(r, f->gpus, ret, err);
    if (!f->gpus && !topt_count_divides_batch(m, c->at[0], nearest))
        return topt_answer_indivisible(m, c->at[0], nearest, ret, err);
    if (topt_answer_infeasible(m, f->gpus, f->doubt && f->doubt != f->gpus, ret, err))
        return -1;
    return put_relaxed(m, c->at, c->n, INT64_MAX, *ret, err);
}

/* A last resort, such as tensor parallelism over nodes, is tried only after every number of
 * GPUs was tried without. */
static int widen_until_it_fits(struct topt_planning *m, const struct counts *c,
                               struct fewest *f, struct topt_error *err)
{
    for (int i = 0; !f->best.found && !f->best.stopped && topt_planning_resort(m, &i);) {
        topt_best_fini(&f->best);
        *f = (struct fewest){.best = {0}};
        if (first_fit(m, c->at, c->n, f, err))
            return -1;
    }
    return 0;
}

int topt_answer_put_ways(struct topt_planning *m, int64_t gpus, json_t *answer,
                         struct topt_error *err)
{
    static const struct relaxation more_gpus = {.ask = NULL};
    struct topt_request r = *m->request;
    struct counts c;
    int first = 0;
    if (!r.ngpu_list || r.space != TOPT_SPACE_UNIFORM || r.pin || topt_request_brief(&r))
        return 0;
    r.ngpu_list = 0;
    if (topt_request_counts(&r, &c.at, &c.n, err))
        return -1;
    while (first < c.n && c.at[first] <= gpus)
        first++;
    json_t *with = json_array();
    json_object_set_new(answer, "with", with);
    int rc = try_relaxed(m, &more_gpus, c.at + first, c.n - first, with, err);
    free(c.at);
    return rc ? -1 : put_relaxed(m, &gpus, 1, INT64_MAX, answer, err);
}

int topt_answer_fewest(struct topt_planning *m, json_t **ret, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    struct counts c;
    struct fewest f = {.best = {0}};
    int rc = -1;
    if (topt_request_counts(r, &c.at, &c.n, err))
        return -1;
    if (c.n == 0 && r->counts == TOPT_COUNTS_NODES)
        topt_fail(
            err, TOPT_ERR_USAGE, "a node of '%s' has %d GPUs, more than --max-gpus %lld",
            topt_hw_name(r->hw), topt_hw_gpus_per_node(r->hw), (long long)r->max_gpus);
    else if (c.n == 0 && r->pipeline > 1)
        topt_no_grid(r, r->max_gpus ? r->max_gpus : 1, err);
    else if (c.n == 0)
        topt_fail(err, TOPT_ERR_USAGE, "'%s' has no GPUs to plan for",
                  topt_hw_name(r->hw));
    else if (!widen_until_it_fits(m, &c, &f, err))
        rc = f.best.found ? answer_found(m, &c, &f, ret, err)
                          : answer_not_found(m, &c, &f, ret, err);
    topt_best_fini(&f.best);
    free(c.at);
    return rc ? -1 : 0;
}
