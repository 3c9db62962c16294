/* answer.c - one answer written down: the best plan checked, with why it is the one, or
 * why there is none. */
#include "best.h"
#include "plan_check.h"
#include "document.h"
#include "grid.h"
#include "memo.h"
#include "planning.h"
#include "free.h"
#include "request.h"
#include "topt_plan_doc.h"
#include "topt_question.h"
#include "topt_simulate.h"
#include "topt_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ----------------------------------------------------------------------- */

/* "left_out": factors that were not searched, why where that is known, and how to ask for them. */
static void put_left_out(const struct topt_request *r, const struct topt_best *b,
                         json_t *answer)
{
    static const char *const names[] = {"sharding over replicas (ZeRO, FSDP)",
                                        "recomputation", "micro-batches"};
    int missing = TOPT_FACTORS_ALL & ~b->factors,
        widest = topt_request_widest(r, b->space);
    int spared = b->found && !b->stopped && widest == TOPT_FACTORS_ALL;
    struct topt_text t = {0};
    if (r->micro_batches)
        missing &= ~TOPT_FACTOR_MICRO;
    for (int i = 0; i < 3 && !r->algorithm; i++)
        if (missing >> i & 1)
            topt_text_add(&t, "%s%s", t.len ? ", " : "", names[i]);
    if (t.len)
        topt_text_add(&t, "%s (--factors all searches them)",
                      spared ? ", because the fastest plan without them fits" : "");
    if (t.s)
        json_object_set_new(answer, "left_out", json_string(t.s));
    topt_text_fini(&t);
}

void topt_answer_put_stopped(json_t *answer, const struct topt_planning *m)
{
    json_object_set_new(answer, "stopped", json_true());
    if (*m->too_large)
        json_object_set_new(answer, "too_large", json_string(m->too_large));
}

static json_t *answer_json(const struct topt_plan_facts *f, const struct topt_best *b,
                           json_t *plan)
{
    const struct topt_problem_stats *stats = &b->stats;
    const struct topt_strategy_cost *c = f->cost;
    const struct topt_mesh *mesh = f->whole;
    char space[48];
    json_t *a = json_pack(
        "{s:b, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:O, s:s}", "feasible",
        1, "gpus", mesh->devices, "nodes", mesh->nodes, "gpus_per_node", mesh->per_node,
        "memory_bytes", (json_int_t)c->memory_bytes, "peak_bytes",
        (json_int_t)f->peak_bytes, "memory_limit", (json_int_t)f->memory_limit, "time_ns",
        (json_int_t)c->time_ns, "compute_ns", (json_int_t)c->sum.compute_ns, "network_ns",
        (json_int_t)c->sum.network_ns, "why", f->why, "strategy",
        json_object_get(plan, "strategy"), "space",
        topt_space_words(f->space, f->alike, space, sizeof space));
    topt_certificate_write(a, f->model, f->certificate);
    if (b->stopped && b->uniform)
        json_object_set_new(a, "found_in", json_string("uniform"));
    json_object_set_new(a, "micro_batches", json_integer(f->k->settings->micro_batches));
    json_t *predicted = json_object_get(plan, "predicted");
    json_object_set(a, "memory_parts", json_object_get(predicted, "memory_parts"));
    json_object_set(a, "memory", json_object_get(predicted, "memory"));
    json_object_set(a, "band", json_object_get(predicted, "band"));
    json_object_set(a, "verdict", json_object_get(predicted, "verdict"));
    /* Nothing is put where there is none. */
    json_object_set(a, "simulated_ns", json_object_get(predicted, "simulated_ns"));
    json_object_set(a, "stages", json_object_get(predicted, "stages"));
    json_object_set(a, "host", json_object_get(predicted, "host"));
    if (c->stage.stages)
        json_object_set_new(a, "idle_ns", json_integer(c->stage.idle_ns));
    json_object_set(a, "uniform", json_object_get(plan, "uniform"));
    json_object_set(a, "pins", f->pins);
    json_object_set_new(a, "configs", json_integer(stats->configs));
    json_object_set_new(a, "layouts", json_integer(stats->layouts));
    json_object_set_new(a, "edge_entries", json_integer(stats->edge_entries));
    json_object_set_new(a, "stats", topt_work_json(&b->certificate.stats));
    json_object_set_new(a, "pricing", topt_pricing_json(stats));
    json_object_set_new(a, "plan_id", json_incref(json_object_get(plan, "id")));
    json_object_set_new(a, "plan", plan);
    return a;
}

/* The step's time for a system that packs gradients into buckets (Horovod). */
static int put_fused(const struct topt_costing *k, const struct topt_strategy *s,
                     json_t *answer, struct topt_error *err)
{
    struct topt_simulation x;
    if (topt_simulate(k, s, &topt_simulate_horovod, &x, err))
        return -1;
    json_object_set_new(answer, "fused",
                        json_pack("{s:I, s:I, s:I, s:i}", "time_ns",
                                  (json_int_t)x.time_ns, "idle_ns", (json_int_t)x.idle_ns,
                                  "reduce_ns", (json_int_t)x.bucket_ns, "buckets",
                                  x.buckets));
    topt_simulation_fini(&x);
    return 0;
}

/* The best on as many devices without pins; null where it was not found. */
static int without_pins(struct topt_planning *m, int64_t gpus, json_t **ret,
                        struct topt_error *err)
{
    struct topt_request r = *m->request;
    struct topt_beside own;
    struct topt_best b;
    r.pin = NULL;
    *ret = NULL;
    if (topt_beside_init(&own, r, err))
        return -1;
    own.planning.tensor = m->tensor;
    int rc = topt_count_solve(&own.planning, gpus, topt_request_limit(&r), 0,
                              TOPT_GOAL_FASTEST, &b, err);
    if (!rc) {
        *ret = b.found
                   ? json_pack("{s:I, s:I}", "time_ns", (json_int_t)b.solution.time_ns,
                               "memory_bytes", (json_int_t)b.solution.memory_bytes)
                   : json_null();
        topt_best_fini(&b);
    }
    topt_beside_fini(&own);
    return rc;
}

/* The pinned splits, and the best plan without them; NULL in '*ret' where nothing was
 * pinned. */
static int pins_json(struct topt_planning *m, int64_t gpus, int alike, json_t **ret,
                     struct topt_error *err)
{
    const struct topt_request *r = m->request;
    json_t *without;
    int n = 0;
    *ret = NULL;
    if (!r->pin)
        return 0;
    if (without_pins(m, gpus, &without, err))
        return -1;
    for (int i = 0; i < r->model->nops; i++)
        n += topt_pins_at(&m->pins, alike, i) >= 0;
    *ret =
        json_pack("{s:s, s:i, s:o}", "text", r->pin, "operators", n, "without", without);
    return *ret ? 0 : topt_nomem(err, "the plan");
}

/* Check the plan and write it with everything that is said about it. */
static int write_checked(struct topt_grid_search *s, const struct topt_best *b,
                         const char *why, json_t *pins, json_t **ret,
                         struct topt_error *err)
{
    const struct topt_request *r = s->request;
    const struct topt_solution *best = &b->solution;
    struct topt_strategy_cost cost;
    struct topt_costing k;
    struct topt_plan_facts f = {.k = &k,
                                .whole = &s->mesh,
                                .positions = topt_request_positions(s->request),
                                .model = topt_planning_model(s->planning, &best->degrees),
                                .strategy = best->strategy,
                                .cost = &cost,
                                .space = b->space,
                                .alike = b->alike,
                                .degrees = &best->degrees,
                                .framework = r->framework,
                                .algorithm = r->algorithm,
                                .mode = topt_mode_name(r->mode),
                                .why = why,
                                .memory_limit = topt_request_limit(r),
                                .certificate = &b->certificate,
                                .pins = pins};
    if (topt_grid_costing(s, &best->degrees, &k, err) ||
        topt_plan_check(&k, best->strategy, best->memory_bytes, best->time_ns, &cost,
                        &f.peak_bytes, err))
        return -1;
    if (r->unlike.groups) { /* that of the stage's device */
        int group = cost.stage.group[cost.stage.most];
        f.memory_limit = topt_hw_memory_bytes(topt_hw_group(k.hw, group));
    }
    json_t *plan = topt_plan_write(&f, err);
    if (!plan)
        return -1;
    *ret = answer_json(&f, b, plan);
    if (!*ret)
        return topt_nomem(err, "the plan");
    if (b->stopped)
        topt_answer_put_stopped(*ret, s->planning);
    put_left_out(r, b, *ret);
    return s->algorithm && s->algorithm->fused ? put_fused(&k, best->strategy, *ret, err)
                                               : 0;
}

static int write_answer(struct topt_planning *m, const struct topt_best *b,
                        const char *why, json_t **ret, struct topt_error *err)
{
    struct topt_grid_search s;
    json_t *pins;
    if (pins_json(m, b->mesh.devices, b->alike, &pins, err))
        return -1;
    int rc =
        topt_grid_open(&s, m, b->mesh.nodes, b->mesh.per_node, TOPT_GOAL_FASTEST, err) ||
        write_checked(&s, b, why, pins, ret, err);
    topt_grid_close(&s);
    json_decref(pins);
    return rc ? -1 : 0;
}

/* Say why tensor parallelism crosses nodes where the question did not ask for it, and which features
 * of the framework, used instead in practice, were not searched. */
static void add_across_nodes(const struct topt_planning *m, const struct topt_best *b,
                             struct topt_text *why)
{
    const struct topt_request *r = m->request;
    int ranks = b->solution.degrees.tensor;
    if (b->space != TOPT_SPACE_UNIFORM || !topt_request_even(r) || r->tensor_parallel ||
        ranks <= b->mesh.per_node)
        return;
    char *lacks = topt_framework_not_searched(r->framework, topt_request_stages(r),
                                              m->apart != NULL);
    topt_text_add(why,
                  "; tensor parallel over %d GPUs, across nodes, because nothing else "
                  "that was searched fits%s",
                  ranks,
                  r->mode == TOPT_MINI_TIME ? " on as many" : " on any number of GPUs");
    if (lacks)
        topt_text_add(why, " (%s, was not searched)", lacks);
    why->oom |= r->framework->lacks && !m->apart && !lacks;
    free(lacks);
}

static void add_room(const struct topt_planning *m, const struct topt_best *b,
                     struct topt_text *why)
{
    double faster = 100 * (1 - (double)b->tight_ns / (double)b->solution.time_ns);
    if (b->tight_ns)
        topt_text_add(
            why,
            "; 5 %% of the memory stays free, which costs %.1f %% of the time (--memory "
            "%.2fGiB uses it up)",
            faster, (double)topt_request_limit(m->request) / (double)(1 << 30));
}

int topt_answer_write(struct topt_planning *m, const struct topt_best *b, const char *why,
                      json_t **ret, struct topt_error *err)
{
    struct topt_text whole = {0};
    topt_text_add(&whole, "%s", why);
    add_across_nodes(m, b, &whole);
    add_room(m, b, &whole);
    int rc =
        whole.oom ? topt_nomem(err, "the answer") : write_answer(m, b, whole.s, ret, err);
    topt_text_fini(&whole);
    return rc;
}

/* ---- when nothing fits ------------------------------------------------------------- */

/* An answer without a plan. */
static int no_plan(const struct topt_request *r, enum topt_fits fits, const char *why,
                   json_t **ret, struct topt_error *err)
{
    *ret = json_pack("{s:o, s:s, s:I}", "feasible", topt_fits_json(fits), "why", why,
                     "memory_limit", (json_int_t)topt_request_limit(r));
    return *ret ? 0 : topt_nomem(err, "the answer");
}

int topt_answer_unfinished(const struct topt_planning *m, int64_t gpus, json_t **ret,
                           struct topt_error *err)
{
    char why[200];
    snprintf(why, sizeof why,
             "stopped before a plan was found that fits on %lld GPUs; raise --seconds or "
             "--max-work, or choose a smaller space (--space uniform)",
             (long long)gpus);
    if (no_plan(m->request, TOPT_FITS_UNKNOWN, why, ret, err))
        return -1;
    topt_answer_put_stopped(*ret, m);
    return 0;
}

int topt_answer_indivisible(const struct topt_planning *m, int64_t gpus,
                            const int64_t nearest[2], json_t **ret,
                            struct topt_error *err)
{
    char why[200], less[48] = "";
    if (nearest[0])
        snprintf(less, sizeof less, "%lld or ", (long long)nearest[0]);
    snprintf(why, sizeof why,
             "a batch of %lld does not divide evenly over %lld GPUs; use --batch %s%lld",
             (long long)m->request->model->batch, (long long)gpus, less,
             (long long)nearest[1]);
    if (topt_no_degrees(m, gpus, err) ||
        no_plan(m->request, TOPT_FITS_NOT, why, ret, err))
        return -1;
    json_t *batches = json_array();
    for (int i = 0; i < 2; i++)
        if (nearest[i])
            json_array_append_new(batches, json_integer(nearest[i]));
    json_object_set_new(*ret, "batches", batches);
    return 0;
}

/* Does what is to rest on the host not even fit there where each device has an equal part, or with activations no
 * strategy's?  That is an error. */
static int host_is_full(const struct topt_planning *m, int64_t gpus,
                        struct topt_error *err)
{
    const struct topt_hw *hw = m->request->hw;
    const struct topt_least_parameters *p = &m->away;
    int64_t has = topt_hw_host(hw)->memory_bytes, n = topt_hw_gpus_per_node(hw);
    double need = (p->value + p->gradient + p->state) / (double)gpus;
    int kept = need <= (double)has && m->memo && m->memo->host_bytes;
    char x[32], y[32], z[32];
    need = kept ? (double)m->memo->host_bytes : need;
    if (!m->request->settings.offload || need <= (double)has)
        return 0;
    return topt_fail(
        err, TOPT_ERR_INFEASIBLE,
        "what --offload leaves on the host needs at least %s per GPU, whose share of the "
        "host's %s is %s; take more than %lld GPU%s%s",
        topt_show_bytes((int64_t)need, x, sizeof x),
        topt_show_bytes(n * has, y, sizeof y), topt_show_bytes(has, z, sizeof z),
        (long long)gpus, gpus == 1 ? "" : "s",
        kept ? ", or leave activations on the GPUs"
        : m->request->framework->offers[TOPT_OFFER_OPTIMIZER].part
            ? ", or a smaller --offload-fraction"
            : "");
}

/* Not even what is lightest was found. */
static int none_at_all(const struct topt_planning *m, const struct topt_best *b,
                       int64_t gpus, json_t **ret, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    char why[120];
    if (host_is_full(m, gpus, err))
        return -1;
    if (topt_best_fits(b) == TOPT_FITS_NOT && topt_no_degrees(m, gpus, err))
        return -1;
    if (topt_best_fits(b) == TOPT_FITS_NOT)
        return topt_fail(
            err, TOPT_ERR_INFEASIBLE,
            r->pin ? "no plan for %lld GPUs in this space satisfies --pin%s%s"
            : r->fixed.any
                ? "no plan for %lld GPUs has these --degrees: the model, the "
                  "batch or the nodes can't be split so%s%s"
                : "no plan for %lld GPUs in this space: the model can't be split over "
                  "that many%s%s",
            (long long)gpus, m->split.refused[0] ? "; " : "", m->split.refused);
    snprintf(why, sizeof why,
             "no plan was found for %lld GPUs, because operators were fixed by "
             "heuristic; raise --max-entries",
             (long long)gpus);
    return no_plan(r, TOPT_FITS_UNKNOWN, why, ret, err);
}

/* The lightest that was found takes more than there is.  That nothing fits is not proven
 * where operators were decided by heuristic, for it or on a smaller number of GPUs
 * ('doubt'), or something may need as much less. */
static int too_heavy(const struct topt_request *r, const struct topt_best *b,
                     int64_t gpus, int doubt, json_t **ret, struct topt_error *err)
{
    int64_t floor = topt_best_bound(b), limit = topt_request_limit(r);
    int open = b->certificate.decided || floor <= limit;
    char have[32], need[32], why[240];
    double over = 100.0 * ((double)floor / (double)limit - 1);
    topt_show_bytes(limit, have, sizeof have);
    topt_show_bytes(open ? b->solution.memory_bytes : floor, need, sizeof need);
    snprintf(
        why, sizeof why,
        b->certificate.decided
            ? "no plan was found that fits in %s per GPU: %lld GPU%s %s with operators "
              "fixed by heuristic, perhaps less with a larger --max-entries"
        : open  ? "no plan was found that fits in %s per GPU: %lld GPU%s %s, perhaps less"
        : doubt ? "no plan was found that fits in %s per GPU: %lld GPU%s at least %s; "
                  "fewer GPUs were not settled"
                : "nothing fits in %s per GPU: %lld GPU%s at least %s, %.*f %% more",
        have, (long long)gpus, gpus == 1 ? " needs" : "s need", need,
        over < 0.1 ? 4 : over < 10, over);
    if (no_plan(r, open || doubt ? TOPT_FITS_UNKNOWN : TOPT_FITS_NOT, why, ret, err))
        return -1;
    json_object_set_new(*ret, "nearest",
                        json_pack("{s:i, s:i, s:I, s:I}", "gpus", b->mesh.devices,
                                  "nodes", b->mesh.nodes, "memory_bytes",
                                  (json_int_t)b->solution.memory_bytes, "time_ns",
                                  (json_int_t)b->solution.time_ns));
    if (!open && !doubt)
        json_object_set_new(*ret, "verdict", json_string("does not fit"));
    return 0;
}

/* Nothing fits as it is pinned; does it without? */
static int say_without_pins(struct topt_planning *m, int64_t gpus, json_t *answer,
                            struct topt_error *err)
{
    struct topt_text t = {0};
    json_t *without;
    char need[32];
    if (without_pins(m, gpus, &without, err))
        return -1;
    topt_text_add(&t, "%s", json_string_value(json_object_get(answer, "why")));
    if (json_is_object(without))
        topt_text_add(
            &t, "; without --pin it fits in %s",
            topt_show_bytes(json_integer_value(json_object_get(without, "memory_bytes")),
                            need, sizeof need));
    if (t.s)
        json_object_set_new(answer, "why", json_string(t.s));
    topt_text_fini(&t);
    json_decref(without);
    return 0;
}

int topt_answer_infeasible(struct topt_planning *m, int64_t gpus, int doubt, json_t **ret,
                           struct topt_error *err)
{
    const struct topt_request *r = m->request;
    struct topt_best b;
    if (topt_count_solve(m, gpus, 0, 0, TOPT_GOAL_LEAST, &b, err))
        return topt_planning_gave_up(m, err) ? topt_answer_unfinished(m, gpus, ret, err)
                                             : -1;
    int rc = b.found ? too_heavy(r, &b, gpus, doubt, ret, err)
                     : none_at_all(m, &b, gpus, ret, err);
    if (!rc)
        put_left_out(r, &b, *ret);
    if (!rc && r->pin)
        rc = say_without_pins(m, gpus, *ret, err);
    if (!rc && b.certificate.decided) {
        b.certificate.epsilon = INFINITY; /* of times */
        topt_certificate_write(*ret, r->model, &b.certificate);
    }
    topt_best_fini(&b);
    return rc;
}
