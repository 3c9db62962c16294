/* compare.c - all systems asked the same question, in one table.
 *
 * A system is a row: of algorithm.c, where it searches a part of the space, or of whoever asks,
 * where it searches by itself (struct topt_system) or only chooses splits, which are pinned then.
 * Each answers with its fastest strategy within the limit, or, where it has none, with the one
 * that needs least.  Every strategy is costed again by the checker.  A limit of work or of time is
 * shared: half is ours; of counted work each other row has a sixteenth, of time an equal part
 * of what is left when it begins.  A row says what it had.
 *
 * What a part of the space has, the whole has: where operators of ours were decided by
 * heuristic, ours is the best of what any row found there. */
#include "algorithm.h"
#include "best.h"
#include "free.h"
#include "plan_check.h"
#include "document.h"
#include "grid.h"
#include "planning.h"
#include "request.h"
#include "strategy_words.h"
#include "topt_clock.h"
#include "topt_compare_words.h"
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
    int none;    /* it has no plan here */
    int stopped; /* its budget ended a search */
    char budget[64];
    const char *found_by; /* ours: the row whose search found it, NULL: our own */
    int again; /* where nothing fits, more is asked for: the least with this is of no use */
    struct topt_request own;
    struct topt_planning micros; /* of it */
    struct topt_best best, least;
    int64_t search_ns; /* that the best took */
    /* of the plan that the row shows, and its program's peak */
    struct topt_strategy_cost cost;
    int64_t peak_bytes;
    int64_t overlapped_ns; /* a step whose gradients travel in buckets behind backward */
    int64_t simulated_ns;  /* ... by the simulation of 'simulates' */
    const struct topt_system *simulates; /* NULL: none has one of its own */
};

static void entry_fini(struct entry *e)
{
    topt_best_fini(&e->best);
    topt_best_fini(&e->least);
    topt_planning_fini(&e->micros);
    free(e->chosen.pins);
    free(e->chosen.why);
}

/* What rows may take together, and how many are still to come. */
struct limits {
    const struct topt_request *r;
    int64_t begin_ns;
    int left;
};

/* Begin a row: its share of time, of counted work where there is no limit of time; in words. */
static void begin_row(struct limits *l, int ours, int64_t *max_work, char *budget,
                      size_t size)
{
    const struct topt_request *r = l->r;
    double left = r->seconds - (double)(topt_clock_ns() - l->begin_ns) / 1e9;
    int of = ours ? 2 : l->left;
    l->left--;
    if (r->arm && r->seconds > 0) {
        left = left > 0.01 ? left / of : 0.01;
        r->arm(left);
        snprintf(budget, size, "%.3g s", left);
    } else if (max_work && *max_work) {
        *max_work = 1 + *max_work / (ours ? 2 : 16);
        snprintf(budget, size, "%.3g pairs of points", (double)*max_work);
    } else {
        snprintf(budget, size, "no limit");
    }
}

/* Where nothing fits: of the plans that need as little, the fastest. */
static int fastest_of_least(struct entry *e, struct topt_error *err)
{
    struct topt_best fast = {.found = 0}, least = e->least;
    if (topt_count_solve(&e->micros, e->own.gpus, least.solution.memory_bytes, 0,
                         TOPT_GOAL_FASTEST, &fast, err) &&
        !topt_planning_gave_up(&e->micros, err))
        return -1;
    e->least = fast.found ? fast : least;
    topt_best_fini(fast.found ? &least : &fast);
    return 0;
}

/* The fastest of 'own', and the least memory that it can do with, if that is found before the
 * search is stopped; what was stopped or too large for the fastest is not asked for the least,
 * whose work is not counted.  '*e' stays where it is: its numbers of micro-batches point into it. */
static int solve(struct entry *e, int64_t begin, struct topt_error *err)
{
    const struct topt_request *r = &e->own;
    if (topt_planning_init(&e->micros, r, err))
        return -1;
    if (topt_count_solve(&e->micros, r->gpus, topt_request_limit(r), 0, TOPT_GOAL_FASTEST,
                         &e->best, err))
        return -1;
    e->search_ns = topt_clock_ns() - begin;
    if (topt_planning_over(&e->micros) || *e->micros.too_large ||
        (e->again && !e->best.found))
        return 0;
    if (topt_count_solve(&e->micros, r->gpus, 0, 0, TOPT_GOAL_LEAST, &e->least, err))
        return topt_planning_gave_up(&e->micros, err) ? 0 : -1;
    return e->best.found || !e->least.found ? 0 : fastest_of_least(e, err);
}

/* The flag of time is the next row's afterwards. */
static int note_stopped(struct entry *e, int rc)
{
    e->stopped = !e->none && (e->best.stopped || topt_planning_over(&e->micros) ||
                              *e->micros.too_large);
    return rc;
}

static int ask(struct entry *e, const struct topt_request *r,
               const struct topt_algorithm *algorithm, struct limits *l,
               struct topt_error *err)
{
    e->algorithm = algorithm;
    e->own = *r;
    e->own.algorithm = algorithm ? algorithm->name : NULL;
    begin_row(l, !algorithm, &e->own.max_work, e->budget, sizeof e->budget);
    return note_stopped(e, solve(e, topt_clock_ns(), err));
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
        topt_count_solve(&e->micros, r->gpus, 0, 0, TOPT_GOAL_FASTEST, &e->best, err))
        return -1;
    e->search_ns = topt_clock_ns() - begin;
    e->by_groups = e->best.found;
    return 0;
}

/* Splits that a system chooses by itself; what it leaves open is the fastest, whatever memory
 * that takes. */
static int ask_choices(struct entry *e, const struct topt_request *r,
                       const struct topt_system *system, struct limits *l,
                       struct topt_error *err)
{
    int64_t begin = topt_clock_ns();
    struct topt_error refused = {0};
    e->system = system;
    e->algorithm = topt_algorithm_find(system->within ? system->within : "right-end");
    e->own = *r;
    e->own.algorithm = e->algorithm->name;
    e->own.space = r->space == TOPT_SPACE_UNIFORM ? TOPT_SPACE_CANONICAL : r->space;
    /* none where they are chosen for us */
    e->own.factors = r->factors & TOPT_FACTOR_MICRO;
    begin_row(l, 0, &e->own.max_work, e->budget, sizeof e->budget);
    if (r->pin) {
        topt_fail(&refused, TOPT_ERR_USAGE, "it takes no pins");
        return refuse(e, &refused, err);
    }
    if (system->choices(system, r, &e->chosen, err))
        return -1;
    e->own.pin = e->chosen.pins;
    if (e->chosen.share[0])
        e->own.space = TOPT_SPACE_FULL; /* it says which axes */
    if (!e->own.pin || topt_request_check(&e->own, &refused))
        return refuse(e, &refused, err);
    return note_stopped(e, e->chosen.share[0] ? solve_shares(e, begin, err)
                                              : solve(e, begin, err));
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
    ours->found_by = e->system ? e->system->name : e->algorithm->name;
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
                      : simulate(&k, x->strategy, ways, nways, &e->overlapped_ns, err)) ||
        (e->simulates && x->degrees.micro_batches <= 1 &&
         e->simulates->simulate(&k, x->strategy, &e->simulated_ns, err));
    topt_grid_close(&s);
    return rc ? -1 : 0;
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
    json_object_set_new(row, "budget", json_string(e->budget));
    if (e->found_by)
        json_object_set_new(row, "found_by", json_string(e->found_by));
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

static int put_system(const struct topt_request *r, const struct topt_system *s,
                      const struct entry *ours, struct limits *l, json_t *rows,
                      struct topt_error *err)
{
    int64_t begin = topt_clock_ns();
    char budget[64];
    json_t *answer = NULL;
    begin_row(l, s->ours, NULL, budget, sizeof budget);
    if (s->answer(r, topt_request_limit(r), &answer, err))
        return -1;
    json_t *row = head_json(s->name, s->searches, s->leaves_out, topt_clock_ns() - begin);
    if (row) {
        json_object_set_new(row, "budget", json_string(budget));
        json_object_set_new(row, "feasible", json_boolean(answer != NULL));
        json_object_update(row, answer);
        if (s->simulate && answer && ours->simulated_ns)
            json_object_set_new(row, "ours_ns", json_integer(ours->simulated_ns));
    }
    json_decref(answer);
    return json_array_append_new(rows, row) ? topt_nomem(err, "the comparison") : 0;
}

/* ---- asking all of them ----------------------------------------------------------- */

/* Every system searches sharding beside splits; where our own search finds nothing that
 * fits, every system searches all factors. */
static int ask_ours(struct entry *e, struct topt_request *r, struct limits *l,
                    struct topt_error *err)
{
    enum topt_space space = topt_space_resolve(r->space, (int)r->gpus);
    int widest = topt_request_widest(r, space);
    r->factors = topt_request_factors(r, space);
    e->again = r->factors != widest;
    if (ask(e, r, NULL, l, err))
        return -1;
    if (e->best.found || e->best.stopped || r->factors == widest)
        return 0;
    entry_fini(e);
    *e = (struct entry){0};
    r->factors = widest;
    return ask(e, r, NULL, l, err);
}

/* ---- which rows -------------------------------------------------------------------- */

/* Is the row one of those that are picked (request.systems)? */
static int picked(const struct topt_request *r, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = r->systems; at && *at; at += strcspn(at, ",")) {
        at += *at == ',';
        if (strcspn(at, ",") == n && !strncmp(at, name, n))
            return 1;
    }
    return !r->systems;
}

static int has_row(const struct topt_request *r, const struct topt_algorithm *a)
{
    return picked(r, a->name) && (!a->tables || topt_model_has_tables(r->model));
}

const char *topt_compare_row(const struct topt_system *const *systems, int i)
{
    int n = 1;
    for (; i && topt_algorithm_at(n - 1); n++)
        if (n == i)
            return topt_algorithm_at(n - 1)->name;
    for (; i && systems && *systems; systems++)
        if (!(*systems)->ours && n++ == i)
            return (*systems)->name;
    return i ? NULL : OURS;
}

/* ---- the whole --------------------------------------------------------------------- */

/* How many; '*ret_simulates': the one that simulates plans by itself, NULL: none. */
static int count_rows(const struct topt_request *r,
                      const struct topt_system *const *systems,
                      const struct topt_system **ret_simulates)
{
    int n = 1;
    for (int i = 0; topt_algorithm_at(i); i++)
        n += has_row(r, topt_algorithm_at(i));
    for (; systems && *systems; systems++) {
        int row = (*systems)->ours || picked(r, (*systems)->name);
        *ret_simulates = row && (*systems)->simulate ? *systems : *ret_simulates;
        n += row;
    }
    return n;
}

/* What has a plan of our space: ours first, then what searches a part of the space, then what chooses
 * splits; '*ret' are asked. */
static int ask_space(struct entry *e, struct topt_request *r,
                     const struct topt_system *const *systems, struct limits *l, int *ret,
                     struct topt_error *err)
{
    int rc = ask_ours(&e[(*ret)++], r, l, err);
    for (int i = 0; topt_algorithm_at(i) && !rc; i++)
        if (has_row(r, topt_algorithm_at(i)))
            rc = ask(&e[(*ret)++], r, topt_algorithm_at(i), l, err);
    for (int i = 0; !rc && systems && systems[i]; i++)
        if (systems[i]->choices && picked(r, systems[i]->name))
            rc = ask_choices(&e[(*ret)++], r, systems[i], l, err);
    return rc;
}

/* A row for each system, into 'rows': the space's own answer first, then what searches a part of the
 * space, then the systems that search by themselves.  '*ret_factors' are the factors that all of
 * them searched beside splits. */
static int ask_all(const struct topt_request *asked_for,
                   const struct topt_system *const *systems, json_t *rows,
                   int *ret_factors, json_t *ret_stopped, struct topt_error *err)
{
    struct topt_request question = *asked_for, *r = &question;
    const struct topt_system *simulates = NULL;
    int n = count_rows(r, systems, &simulates), asked = 0;
    struct limits l = {asked_for, topt_clock_ns(), n};
    struct entry *e = calloc((size_t)n, sizeof *e);
    if (!e)
        return topt_nomem(err, "the comparison");
    int rc = ask_space(e, r, systems, &l, &asked, err);
    e[0].simulates = simulates;
    *ret_factors = r->factors;
    for (int i = 0; i < asked && !rc; i++)
        if (e[i].stopped)
            topt_answer_put_stopped(ret_stopped, &e[i].micros);
    for (int i = 1; i < asked && !rc; i++)
        rc = adopt_better(&e[0], &e[i], err);
    for (int i = 0; i < asked && !rc; i++)
        rc = shown(&e[i]) ? cost_plan(&e[i], shown(&e[i]), err) : 0;
    for (int i = 0; i < asked && !rc; i++)
        rc = put_row(&e[i], rows, err);
    for (int i = 0; !rc && systems && systems[i]; i++)
        if (systems[i]->answer && (systems[i]->ours || picked(r, systems[i]->name)))
            rc = put_system(r, systems[i], &e[0], &l, rows, err);
    for (int i = 0; i < asked; i++)
        entry_fini(&e[i]);
    free(e);
    return rc ? -1 : 0;
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

static int no_plan(const struct topt_request *r, const json_t *ours, int stopped,
                   struct topt_error *err)
{
    if (!stopped && !json_is_null(json_object_get(ours, "feasible")))
        return topt_fail(err, TOPT_ERR_INFEASIBLE, "no plan for %lld GPUs in this space",
                         (long long)r->gpus);
    return topt_fail(
        err, TOPT_ERR_LIMIT, "no plan was found for %lld GPUs%s", (long long)r->gpus,
        stopped ? " before the search was stopped"
                : ", because operators were fixed by heuristic; raise --max-entries");
}

/* Write the question, and by which topt plan ft's row is asked: operators choose for themselves here,
 * which no framework but ours obeys. */
static void put_question(json_t *doc, const struct topt_request *r, int factors)
{
    const struct topt_framework *usual = topt_framework_at(0);
    int widest = topt_request_widest(r, topt_space_resolve(r->space, (int)r->gpus));
    struct topt_text t = {0};
    json_object_set_new(doc, "job", topt_request_job(r));
    json_object_set_new(doc, "assumed", topt_request_assumed(r));
    topt_text_add(&t, "the same as topt plan%s%s%s, and all else as here",
                  r->framework ? " --framework " : "",
                  r->framework ? r->framework->name : "",
                  factors == widest ? ""
                  : factors         ? " --factors zero"
                                    : " --factors none");
    if (!(r->given & TOPT_GIVEN_FRAMEWORK) && r->framework && r->framework != usual)
        topt_text_add(&t,
                      ": each operator may be split differently; topt plan by default "
                      "plans for %s, which takes one strategy for the whole model",
                      usual->title);
    json_object_set_new(doc, "question", json_string(t.s ? t.s : ""));
    topt_text_fini(&t);
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
        rc = no_plan(r, ours, json_object_size(stopped) > 0, err);
    if (rc) {
        json_decref(rows);
        json_decref(stopped);
        return -1;
    }
    /* of unlike devices: the most */
    int64_t limit = topt_json_whole_at(ours, "memory_limit");
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
