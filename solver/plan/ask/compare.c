/* compare.c - all systems asked the same question, in one table.
 *
 * A system is a row: of algorithm.c, where it searches a part of the space, or of whoever asks,
 * where it searches by itself (struct topt_system) or only chooses splits, which are pinned then.
 * Each answers with its fastest strategy within the limit, or, where it has none, with the one
 * that needs least.  Every strategy is costed again by the checker.
 *
 * What a part of the space has, the whole has: where operators of ours were decided by
 * heuristic, ours is the best of what any row found there. */
#include "algorithm.h"
#include "best.h"
#include "free.h"
#include "compare_words.h"
#include "plan_check.h"
#include "document.h"
#include "grid.h"
#include "planning.h"
#include "request.h"
#include "strategy_words.h"
#include "topt_clock.h"
#include "topt_json.h"
#include "topt_minmax.h"
#include "topt_plan.h"
#include "topt_question.h"
#include "topt_simulate.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

static const char OURS[] = "ft";

/* ---- asking ------------------------------------------------------------------------ */

/* A system of algorithm.c, one that chooses splits by itself, or ours, and what it found. */
struct entry {
    const struct topt_algorithm *algorithm; /* NULL: ours */
    const struct topt_system *system;       /* whose splits are pinned; NULL: none */
    struct topt_chosen chosen;              /* these, and what it says of them */
    int by_groups; /* with shares, by which 'groups' is its cost */
    struct topt_group_costs groups;
    int none; /* it has no plan here */
    int again; /* where nothing fits, more is asked for: the least with this is of no use */
    struct topt_request own;
    struct topt_planning micros; /* of it */
    struct topt_best best, least;
    int64_t search_ns; /* that the best took */
    struct topt_strategy_cost
        cost; /* of the plan that the row shows, and its program's peak */
    int64_t peak_bytes;
    int64_t overlapped_ns; /* a step whose gradients travel in buckets behind backward */
};

static void entry_fini(struct entry *e)
{
    topt_best_fini(&e->best);
    topt_best_fini(&e->least);
    topt_planning_fini(&e->micros);
    free(e->chosen.pins);
    free(e->chosen.why);
}

/* Our search may take half of the counted work, each other system a sixteenth. */
static void take_share(struct entry *e)
{
    if (e->own.max_work)
        e->own.max_work = 1 + e->own.max_work / (e->algorithm ? 16 : 2);
}

/* The fastest of 'own', and the least memory that it can do with, if that is found before the
 * search is stopped; what was stopped or too large for the fastest is not asked for the least,
 * whose work is not counted.  '*e' stays where it is: its numbers of micro-batches point into it. */
static int solve(struct entry *e, int64_t begin, struct topt_error *err)
{
    const struct topt_request *r = &e->own;
    if (topt_planning_init(&e->micros, r, err))
        return -1;
    if (topt_count_solve(&e->micros, r->gpus, topt_request_limit(r), TOPT_GOAL_FASTEST,
                         &e->best, err))
        return -1;
    e->search_ns = topt_clock_ns() - begin;
    if (topt_planning_over(&e->micros) || *e->micros.too_large ||
        (e->again && !e->best.found))
        return 0;
    return topt_count_solve(&e->micros, r->gpus, 0, TOPT_GOAL_LEAST, &e->least, err) &&
                   !topt_planning_gave_up(&e->micros, err)
               ? -1
               : 0;
}

static int ask(struct entry *e, const struct topt_request *r,
               const struct topt_algorithm *algorithm, struct topt_error *err)
{
    e->algorithm = algorithm;
    e->own = *r;
    e->own.algorithm = algorithm ? algorithm->name : NULL;
    take_share(e);
    return solve(e, topt_clock_ns(), err);
}

/* It has no plan where what it chose is none of our space. */
static int refuse(struct entry *e, const struct topt_error *refused,
                  struct topt_error *err)
{
    e->none = 1;
    if (e->chosen.why || !refused->text[0])
        return 0;
    e->chosen.why = strdup(refused->text);
    return e->chosen.why ? 0 : topt_nomem(err, "the comparison");
}

/* With shares, whatever devices like the least of all groups hold. */
static int solve_shares(struct entry *e, int64_t begin, struct topt_error *err)
{
    const struct topt_request *r = &e->own;
    if (topt_planning_init(&e->micros, r, err) ||
        topt_count_solve(&e->micros, r->gpus, 0, TOPT_GOAL_FASTEST, &e->best, err))
        return -1;
    e->search_ns = topt_clock_ns() - begin;
    e->by_groups = e->best.found;
    return 0;
}

/* Splits that a system chooses by itself; what it leaves open is the fastest, whatever memory
 * that takes. */
static int ask_choices(struct entry *e, const struct topt_request *r,
                       const struct topt_system *system, struct topt_error *err)
{
    int64_t begin = topt_clock_ns();
    struct topt_error refused = {0};
    e->system = system;
    e->algorithm = topt_algorithm_find("right-end");
    e->own = *r;
    e->own.algorithm = e->algorithm->name;
    e->own.space = r->space == TOPT_SPACE_UNIFORM ? TOPT_SPACE_CANONICAL : r->space;
    e->own.factors =
        r->factors & TOPT_FACTOR_MICRO; /* none where they are chosen for us */
    take_share(e);
    if (r->pin) {
        topt_fail(&refused, TOPT_ERR_USAGE, "it takes no pins");
        return refuse(e, &refused, err);
    }
    if (system->choices(r, &e->chosen, err))
        return -1;
    e->own.pin = e->chosen.pins;
    if (e->chosen.share[0])
        e->own.space = TOPT_SPACE_FULL; /* it says which axes */
    if (!e->own.pin || topt_request_check(&e->own, &refused))
        return refuse(e, &refused, err);
    return e->chosen.share[0] ? solve_shares(e, begin, err) : solve(e, begin, err);
}

/* The least memory that it can do with tells more than that nothing was found. */
static enum topt_fits fits_of(const struct entry *e)
{
    const struct topt_best *least = &e->least;
    if (e->none)
        return TOPT_FITS_NOT;
    if (e->by_groups)
        return topt_groups_fit(&e->own, &e->groups) ? TOPT_FITS : TOPT_FITS_NOT;
    int proven = least->found && !least->certificate.decided;
    return proven && least->solution.memory_bytes > topt_request_limit(&e->own)
               ? TOPT_FITS_NOT
               : topt_best_fits(&e->best);
}

static const struct topt_best *shown(const struct entry *e)
{
    return e->best.found ? &e->best : e->least.found ? &e->least : NULL;
}

/* ---- ours and the others' ---------------------------------------------------------- */

/* Does a plan that another row found lie in our space?  Of the uniform space it is known of
 * data parallel alone. */
static int is_ours(struct entry *ours, const struct entry *e, const struct topt_best *b,
                   int *ret, struct topt_error *err)
{
    struct topt_grid_search s;
    int rc = topt_grid_open(&s, &ours->micros, b->mesh.nodes, b->mesh.per_node,
                            TOPT_GOAL_FASTEST, err);
    *ret = 0;
    if (!rc && s.space == TOPT_SPACE_UNIFORM)
        *ret = e->algorithm && e->algorithm->restriction == &topt_restrict_batch;
    else if (!rc)
        *ret = !(e->algorithm && e->algorithm->always & ~s.factors) &&
               (e->micros.n <= 1 || ours->micros.n > 1) &&
               topt_grid_holds(&s, b->solution.strategy);
    topt_grid_close(&s);
    return rc;
}

static int adopt(struct entry *ours, struct topt_best *into, const struct entry *e,
                 const struct topt_best *b, int64_t a, int64_t than,
                 struct topt_error *err)
{
    int lies;
    if (!into->certificate.decided || !b->found || e->by_groups ||
        (into->found && a >= than))
        return 0;
    if (is_ours(ours, e, b, &lies, err))
        return -1;
    if (!lies)
        return 0;
    struct topt_strategy *copy = topt_strategy_copy(b->solution.strategy);
    if (!copy)
        return topt_nomem(err, "the comparison");
    topt_strategy_destroy(into->solution.strategy);
    into->solution = b->solution;
    into->solution.strategy = copy;
    into->found = 1;
    into->mesh = b->mesh;
    into->space = b->space;
    into->alike = b->alike;
    into->certificate.epsilon =
        topt_certificate_epsilon(&into->certificate, into->solution.time_ns);
    return 0;
}

static int adopt_better(struct entry *ours, const struct entry *e, struct topt_error *err)
{
    struct topt_best *best = &ours->best, *least = &ours->least;
    return adopt(ours, best, e, &e->best, e->best.solution.time_ns,
                 best->solution.time_ns, err) ||
           adopt(ours, least, e, &e->least, e->least.solution.memory_bytes,
                 least->solution.memory_bytes, err);
}

/* ---- costs of what is shown ---------------------------------------------------------- */

/* The least time of 'st' by any of 'n' ways to reduce its gradients. */
static int simulate(const struct topt_costing *k, const struct topt_strategy *st,
                    const struct topt_simulate_options *o, int n, int64_t *ret,
                    struct topt_error *err)
{
    *ret = INT64_MAX;
    for (int i = 0; i < n; i++) {
        struct topt_simulation s;
        if (topt_simulate(k, st, &o[i], &s, err))
            return -1;
        *ret = topt_min(s.time_ns, *ret);
        topt_simulation_fini(&s);
    }
    return 0;
}

/* The cost of a strategy, found with equal shares, under the shares that the system chose,
 * group by group; the slowest group decides the time. */
static int cost_groups(struct entry *e, const struct topt_best *b, struct topt_costing k,
                       struct topt_error *err)
{
    struct topt_mesh mesh = b->mesh;
    k.mesh = &mesh;
    if (topt_mesh_costed_shares(&mesh, e->chosen.share, topt_hw_groups(e->own.hw), err) ||
        topt_cost_groups(&k, b->solution.strategy, &e->groups, err))
        return -1;
    e->overlapped_ns = e->groups.of[e->groups.slowest].time_ns;
    return 0;
}

/* Check a plan, and simulate it with its gradients reduced one by one, in buckets, and as Horovod
 * does it. */
static int cost_plan(struct entry *e, const struct topt_best *b, struct topt_error *err)
{
    struct topt_grid_search s;
    struct topt_costing k;
    const struct topt_solution *x = &b->solution;
    const struct topt_simulate_options *horovod = &topt_simulate_horovod;
    const struct topt_simulate_options ways[] = {
        *horovod,
        {.overlap = TOPT_OVERLAP_DDP},
        {.overlap = TOPT_OVERLAP_DDP, .bucket_bytes = horovod->bucket_bytes}};
    int nways = e->algorithm && e->algorithm->fused ? 1 : 3;
    int rc =
        topt_grid_open(&s, &e->micros, b->mesh.nodes, b->mesh.per_node, TOPT_GOAL_FASTEST,
                       err) ||
        topt_grid_costing(&s, &x->degrees, &k, err) ||
        topt_plan_check(&k, x->strategy, x->memory_bytes, x->time_ns, &e->cost,
                        &e->peak_bytes, err) ||
        (e->by_groups ? cost_groups(e, b, k, err)
                      : simulate(&k, x->strategy, ways, nways, &e->overlapped_ns, err));
    topt_grid_close(&s);
    return rc ? -1 : 0;
}

/* The costs of every row.  Our time with communication overlapped is the least of all plans that lie
 * in our space. */
static int cost_all(struct entry *e, int n, struct topt_error *err)
{
    struct entry *ours = &e[0];
    for (int i = 0; i < n; i++) {
        const struct topt_best *b = shown(&e[i]);
        int lies = 0;
        if (b && cost_plan(&e[i], b, err))
            return -1;
        if (i && e[i].best.found && !e[i].by_groups &&
            e[i].overlapped_ns < ours->overlapped_ns &&
            is_ours(ours, &e[i], b, &lies, err))
            return -1;
        if (lies)
            ours->overlapped_ns = e[i].overlapped_ns;
    }
    return 0;
}

/* ---- rows -------------------------------------------------------------------------- */

static json_t *head_json(const char *name, const char *searches, const char *leaves_out,
                         int64_t search_ns)
{
    json_t *row = json_pack("{s:s, s:s, s:I}", "algorithm", name, "searches", searches,
                            "search_ns", (json_int_t)search_ns);
    if (row && leaves_out)
        json_object_set_new(row, "leaves_out", json_string(leaves_out));
    return row;
}

static int put_plan(const struct entry *e, const struct topt_best *b, json_t *row,
                    struct topt_error *err)
{
    char space[48];
    int fused = e->algorithm && e->algorithm->fused;
    int64_t time = fused ? e->overlapped_ns : e->cost.time_ns,
            compute = e->cost.sum.compute_ns, memory = b->solution.memory_bytes;
    if (e->by_groups) {
        time = e->groups.of[e->groups.slowest].time_ns;
        compute = e->groups.of[e->groups.slowest].sum.compute_ns;
        memory = e->groups.of[topt_neediest_group(&e->own, &e->groups)].memory_bytes;
    }
    char *words = topt_strategy_words(e->own.model, &b->mesh, b->solution.strategy,
                                      b->solution.degrees.micro_batches);
    json_t *plan = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:i, s:i, s:s, s:s}", "memory_bytes",
        (json_int_t)memory, "peak_bytes", (json_int_t)e->peak_bytes, "time_ns",
        (json_int_t)time, "compute_ns", (json_int_t)compute, "network_ns",
        (json_int_t)(time - compute), "overlapped_ns", (json_int_t)e->overlapped_ns,
        "overlaps", fused, "nodes", b->mesh.nodes, "gpus_per_node", b->mesh.per_node,
        "space", topt_space_words(b->space, b->alike, space, sizeof space), "strategy",
        words ? words : "");
    free(words);
    int rc = plan ? json_object_update(row, plan) : -1;
    json_decref(plan);
    if (rc)
        return topt_nomem(err, "the comparison");
    topt_certificate_write(row, e->own.model, &b->certificate);
    return 0;
}

/* The row's own remarks, and each group's part of a step. */
static int put_why(const struct entry *e, json_t *row, struct topt_error *err)
{
    struct topt_text t = {0};
    char buf[32];
    topt_text_add(&t, "%s", e->chosen.why);
    for (int i = 0; i < e->groups.n; i++)
        topt_text_add(&t, "%s %s %s", i ? "," : "; a step takes",
                      topt_hw_name(topt_hw_group(e->own.hw, i)),
                      topt_show_ns(e->groups.of[i].time_ns, buf, sizeof buf));
    int rc = !t.s || json_object_set_new(row, "why", json_string(t.s))
                 ? topt_nomem(err, "the comparison")
                 : 0;
    topt_text_fini(&t);
    return rc;
}

static int put_row(const struct entry *e, json_t *rows, struct topt_error *err)
{
    const struct topt_algorithm *a = e->algorithm;
    const struct topt_best *b = shown(e);
    const struct topt_system *s = e->system;
    json_t *row = s   ? head_json(s->name, s->searches, s->leaves_out, e->search_ns)
                  : a ? head_json(a->name, a->searches, a->leaves_out, e->search_ns)
                      : head_json(OURS, "the whole space", NULL, e->search_ns);
    if (json_array_append_new(rows, row))
        return topt_nomem(err, "the comparison");
    if (b && put_plan(e, b, row, err))
        return -1;
    json_object_set_new(row, "feasible", topt_fits_json(fits_of(e)));
    if (a && a->time_only)
        json_object_set_new(row, "time_only", json_true());
    if (e->chosen.why && put_why(e, row, err))
        return -1;
    if (e->least.found)
        json_object_set_new(row, "least_bytes",
                            json_integer(e->least.solution.memory_bytes));
    return 0;
}

static int put_systems(const struct topt_request *r,
                       const struct topt_system *const *systems, json_t *rows,
                       struct topt_error *err)
{
    for (int i = 0; systems && systems[i]; i++) {
        const struct topt_system *s = systems[i];
        int64_t begin = topt_clock_ns();
        json_t *answer = NULL;
        if (!s->answer)
            continue;
        if (s->answer(r, topt_request_limit(r), &answer, err))
            return -1;
        json_t *row =
            head_json(s->name, s->searches, s->leaves_out, topt_clock_ns() - begin);
        if (answer)
            json_object_update(row, answer);
        if (row && !json_object_get(row, "feasible"))
            json_object_set_new(row, "feasible", json_boolean(answer != NULL));
        json_decref(answer);
        json_array_append_new(rows, row);
    }
    return 0;
}

/* ---- the whole --------------------------------------------------------------------- */

/* Every system searches sharding beside splits; where our own search finds nothing that
 * fits, every system searches all factors. */
static int ask_ours(struct entry *e, struct topt_request *r, struct topt_error *err)
{
    enum topt_space space = topt_space_resolve(r->space, (int)r->gpus);
    int widest = topt_request_widest(r, space);
    r->factors = topt_request_factors(r, space);
    e->again = r->factors != widest;
    if (ask(e, r, NULL, err))
        return -1;
    if (e->best.found || e->best.stopped || r->factors == widest)
        return 0;
    entry_fini(e);
    *e = (struct entry){0};
    r->factors = widest;
    return ask(e, r, NULL, err);
}

/* A row for each system, into 'rows': the space's own answer first, then what searches a part of the
 * space, then the systems that search by themselves.  '*ret_factors' are the factors that all of
 * them searched beside splits. */
static int ask_all(const struct topt_request *asked_for,
                   const struct topt_system *const *systems, json_t *rows,
                   int *ret_factors, json_t *ret_stopped, struct topt_error *err)
{
    int parts = 0, n = 0, asked = 0;
    struct topt_request question = *asked_for, *r = &question;
    while (topt_algorithm_at(parts))
        parts++;
    while (systems && systems[n])
        n++;
    struct entry *e = calloc((size_t)(1 + parts + n), sizeof *e);
    if (!e)
        return topt_nomem(err, "the comparison");
    int rc = ask_ours(&e[asked++], r, err);
    *ret_factors = r->factors;
    for (int i = 0; i < parts && !rc; i++)
        if (!topt_algorithm_at(i)->tables || topt_model_has_tables(r->model))
            rc = ask(&e[asked++], r, topt_algorithm_at(i), err);
    for (int i = 0; !rc && systems && systems[i]; i++)
        if (systems[i]->choices)
            rc = ask_choices(&e[asked++], r, systems[i], err);
    for (int i = 0; i < asked && !rc; i++) /* the table says which limit ended a search */
        if (!e[i].none && (e[i].best.stopped || topt_planning_over(&e[i].micros) ||
                           *e[i].micros.too_large))
            topt_answer_put_stopped(ret_stopped, &e[i].micros);
    for (int i = 1; i < asked && !rc; i++)
        rc = adopt_better(&e[0], &e[i], err);
    rc = rc || cost_all(e, asked, err);
    for (int i = 0; i < asked && !rc; i++)
        rc = put_row(&e[i], rows, err);
    for (int i = 0; i < asked; i++)
        entry_fini(&e[i]);
    free(e);
    return rc || put_systems(r, systems, rows, err) ? -1 : 0;
}

/* Ours of unlike devices stands first; the search of the space is then that of equal shares. */
static void put_first(json_t *rows, const struct topt_system *const *systems)
{
    const struct topt_system *ours = NULL;
    for (int i = 0; systems && systems[i]; i++)
        ours = systems[i]->ours ? systems[i] : ours;
    for (size_t i = json_array_size(rows) - 1; ours && i > 0; i--) {
        json_t *row = json_array_get(rows, i), *space = json_array_get(rows, 0);
        if (strcmp(json_string_value(json_object_get(row, "searches")), ours->searches))
            continue;
        json_incref(row);
        json_array_remove(rows, i);
        if (topt_compare_has_plan(row)) {
            json_object_set_new(space, "algorithm", json_string("equal-shares"));
            json_object_set_new(space, "leaves_out",
                                json_string("what some devices have more than others"));
            json_array_insert(rows, 0, row);
        }
        json_decref(row);
        return;
    }
}

static int no_plan(const struct topt_request *r, const json_t *ours,
                   struct topt_error *err)
{
    int stopped = topt_request_stopped(r);
    if (!stopped && !json_is_null(json_object_get(ours, "feasible")))
        return topt_fail(err, TOPT_ERR_INFEASIBLE, "no plan for %lld GPUs in this space",
                         (long long)r->gpus);
    return topt_fail(
        err, TOPT_ERR_LIMIT, "no plan was found for %lld GPUs%s", (long long)r->gpus,
        stopped ? " before the search was stopped"
                : ", because operators were fixed by heuristic; raise --max-entries");
}

/* Write the question, and how it differs from that of topt plan without more options: operators
 * choose for themselves here, which no framework but ours obeys. */
static void put_question(json_t *doc, const struct topt_request *r, int factors)
{
    const struct topt_framework *usual = topt_framework_at(0);
    int widest = topt_request_widest(r, topt_space_resolve(r->space, (int)r->gpus));
    json_object_set_new(doc, "job", topt_request_job(r));
    json_object_set_new(doc, "assumed", topt_request_assumed(r));
    if (!(r->given & TOPT_GIVEN_FRAMEWORK) && r->framework && r->framework != usual)
        json_object_set_new(
            doc, "question",
            json_sprintf("the same as topt plan --framework %s%s, where each operator "
                         "may be split differently; topt plan by default plans for %s, "
                         "which takes one strategy for the whole model",
                         r->framework->name,
                         factors == widest ? ""
                         : factors         ? " --factors zero"
                                           : " --factors none",
                         usual->title));
    if (factors != widest)
        json_object_set_new(
            doc, "left_out",
            json_string("recomputation and micro-batches, for every system, because ft "
                        "fits without them (--factors all searches them, as topt plan "
                        "does where they are faster)"));
}

int topt_plan_compare(const struct topt_request *r,
                      const struct topt_system *const *systems, json_t **ret,
                      struct topt_error *err)
{
    json_t *rows = json_array();
    int factors = 0;
    *ret = NULL;
    json_t *stopped = json_object();
    int rc =
        topt_request_check(r, err) || ask_all(r, systems, rows, &factors, stopped, err);
    if (!rc)
        put_first(rows, systems);
    json_t *ours = json_array_get(rows, 0);
    if (!rc && !topt_compare_has_plan(ours))
        rc = no_plan(r, ours, err);
    if (rc) {
        json_decref(rows);
        json_decref(stopped);
        return -1;
    }
    int64_t limit =
        topt_json_whole_at(ours, "memory_limit"); /* of unlike devices: the most */
    if (!limit)
        limit = topt_request_limit(r);
    json_object_del(ours, "memory_limit");
    char *reading = topt_compare_read(rows, limit);
    *ret = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:O, s:s, s:o}", "format",
                     "topt-compare/1", "model", r->model->name, "hw", topt_hw_name(r->hw),
                     "gpus", (json_int_t)r->gpus, "batch", (json_int_t)r->model->batch,
                     "seq", (json_int_t)r->model->seq, "memory_limit", (json_int_t)limit,
                     "feasible", json_object_get(ours, "feasible"), "reading",
                     reading ? reading : "", "systems", rows);
    free(reading);
    if (*ret) {
        put_question(*ret, r, factors);
        topt_totals_put(*ret, &r->totals);
        json_object_update(*ret, stopped);
    }
    json_decref(stopped);
    return *ret ? 0 : topt_nomem(err, "the comparison");
}
