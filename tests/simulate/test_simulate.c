/* test_simulate.c - steps in time.
 *
 * Random strategies of every kind of model: without overlap a step takes what its costs add
 * up to, to the nanosecond; with overlap never more than that, and never less than what the
 * device computes or a link moves.  Nobody does two things at once, and nothing begins
 * before what it waits for. */
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "sizes.h"
#include "tap.h"
#include "topt_json.h"
#include "topt_simulate.h"

enum {
    TRIES = TOPT_TEST_SIZE_FROM(40, 4),
    MODELS = sizeof test_models / sizeof *test_models
};

/* ---- one simulation -------------------------------------------------------------------------- */

static int computes(const struct topt_task *t)
{
    return !t->links;
}

static int moves_in_turn(const struct topt_task *t)
{
    return t->links && !t->async;
}

static int by_start(const void *a, const void *b)
{
    const struct topt_task *x = *(const struct topt_task *const *)a,
                           *y = *(const struct topt_task *const *)b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x > y) - (x < y);
}

/* Tasks that share a stream come one after the other. */
static int in_turn(const struct topt_simulation *s, int (*of)(const struct topt_task *))
{
    const struct topt_task **all = calloc((size_t)s->schedule.n + 1, sizeof *all);
    int n = 0, fine = 1;
    for (int i = 0; i < s->schedule.n; i++)
        if (s->schedule.task[i].ns && of(&s->schedule.task[i]))
            all[n++] = &s->schedule.task[i];
    qsort(all, (size_t)n, sizeof *all, by_start);
    for (int i = 0; i < n; i++) {
        fine &= all[i]->end_ns - all[i]->start_ns >= all[i]->ns;
        fine &= i == 0 || all[i]->start_ns >= all[i - 1]->end_ns;
        fine &= all[i]->start_ns >= all[i]->ready_ns && all[i]->end_ns <= s->time_ns;
    }
    free(all);
    return fine;
}

struct counts {
    int tried, equal, within, turns, hidden;
};

static void try_overlap(const struct topt_costing *k, const struct topt_strategy *st,
                        const struct topt_strategy_cost *plain, enum topt_overlap overlap,
                        int64_t bucket, struct counts *c)
{
    struct topt_simulate_options o = {.overlap = overlap, .bucket_bytes = bucket};
    struct topt_simulation s;
    struct topt_error err = {0};
    if (topt_simulate(k, st, &o, &s, &err)) {
        printf("# %s\n", err.text);
        return;
    }
    int64_t least = s.compute_ns > s.link_ns[0] ? s.compute_ns : s.link_ns[0];
    least = least > s.link_ns[1] ? least : s.link_ns[1];
    if (s.time_ns > plain->time_ns || s.time_ns < least)
        printf("# %lld, between %lld and %lld\n", (long long)s.time_ns, (long long)least,
               (long long)plain->time_ns);
    c->within += s.time_ns <= plain->time_ns && s.time_ns >= least;
    c->turns += in_turn(&s, computes) && in_turn(&s, moves_in_turn);
    c->hidden += s.time_ns < plain->time_ns;
    topt_simulation_fini(&s);
}

static int recomputes(const struct topt_strategy *s)
{
    for (int i = 0; i < s->nops; i++)
        if (s->config[i].recompute)
            return 1;
    return 0;
}

static int is_plain(const struct topt_costing *k, const struct topt_strategy *st,
                    struct topt_strategy_cost *ret)
{
    struct topt_simulate_options o = {.overlap = TOPT_OVERLAP_NONE};
    struct topt_simulation s;
    struct topt_error err = {0};
    if (topt_cost_strategy(k, st, ret, &err) || topt_simulate(k, st, &o, &s, &err)) {
        printf("# %s\n", err.text);
        return 0;
    }
    int equal = s.time_ns == ret->time_ns && s.compute_ns == ret->sum.compute_ns &&
                s.network_ns == ret->sum.network_ns;
    /* What need not be made again is charged all the same. */
    int less = recomputes(st) && s.compute_ns <= ret->sum.compute_ns &&
               s.network_ns <= ret->sum.network_ns;
    equal = (equal || less) && s.time_ns == s.compute_ns + s.network_ns &&
            s.idle_ns == s.network_ns;
    if (!equal)
        printf("# %s: %lld = %lld + %lld, costs %lld = %lld + %lld\n", k->model->name,
               (long long)s.time_ns, (long long)s.compute_ns, (long long)s.network_ns,
               (long long)ret->time_ns, (long long)ret->sum.compute_ns,
               (long long)ret->sum.network_ns);
    ret->time_ns = s.time_ns;
    topt_simulation_fini(&s);
    return equal;
}

/* ---- random strategies ----------------------------------------------------------------------- */

static void try_strategy(const struct topt_model *m, struct dice *d,
                         const struct topt_hw *hw, struct counts *c)
{
    static const struct {
        int nodes, per_node;
    } grid[] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 8}, {2, 4}};
    struct topt_settings settings = topt_settings_default();
    struct topt_mesh mesh;
    struct topt_strategy_cost plain;
    int g = roll(d, 6);
    if (topt_mesh_init(&mesh, grid[g].nodes, grid[g].per_node, NULL))
        return;
    settings.micro_batches = 1 + roll(d, 3) * roll(d, 3);
    int fused = roll(d, 2);
    settings.eager = fused ? 0 : TOPT_EAGER_OPERATORS;
    settings.loss = fused ? TOPT_LOSS_FUSED : TOPT_LOSS_WRITTEN;
    settings.gather = roll(d, 2) ? TOPT_GATHER_OPERATOR : TOPT_GATHER_UNIT;
    if (topt_settings_fit(m, &settings, NULL))
        settings.micro_batches = 1;
    struct topt_router *router = topt_router_create(hw, &mesh);
    struct topt_costing k = {m, hw, &mesh, &settings, router, NULL};
    struct topt_strategy *st = roll_strategy(d, m, &mesh);
    /* A framework's loss keeps what it reads itself (struct topt_eager). */
    for (int i = 0; settings.eager && i < m->op[m->loss].ninputs; i++)
        st->keep[m->loss * TOPT_MAX_INPUTS + i] = TOPT_KEEP_AFTER;
    c->tried++;
    c->equal += is_plain(&k, st, &plain);
    for (int o = TOPT_OVERLAP_DDP; o <= TOPT_OVERLAP_FSDP; o++)
        try_overlap(&k, st, &plain, (enum topt_overlap)o, 0, c);
    topt_strategy_destroy(st);
    topt_router_destroy(router);
}

static void test_random(const struct topt_hw *hw)
{
    struct dice d = {.stream = 20};
    struct counts all = {0};
    for (int i = 0; i < MODELS; i++) {
        struct topt_model *m = test_models[i].build();
        for (int n = 0; n < TRIES; n++)
            try_strategy(m, &d, hw, &all);
        topt_model_destroy(m);
    }
    is_int(all.equal, all.tried,
           "without overlap a step takes what it costs, in %d models", MODELS);
    is_int(all.within, 2 * all.tried, "with overlap between the busiest stream and that");
    is_int(all.turns, 2 * all.tried, "one thing at a time, after what it waits for");
    ok(all.hidden > all.tried / 4, "something is hidden in %d of %d", all.hidden,
       2 * all.tried);
}

/* ---- data parallel --------------------------------------------------------------------------- */

struct case_of {
    struct topt_model *m;
    struct topt_mesh mesh;
    struct topt_settings settings;
    struct topt_strategy *st;
    struct topt_costing k;
};

static void open_data_parallel(struct case_of *c, const struct topt_hw *hw, int zero)
{
    c->m = build_mlp();
    c->settings = topt_settings_default();
    if (topt_mesh_init(&c->mesh, 2, 2, NULL))
        abort();
    c->st = topt_strategy_create(c->m);
    for (int i = 0; i < c->m->nops; i++) {
        for (int a = 0; a < c->mesh.naxes; a++)
            c->st->config[i].dim[a] = 0;
        c->st->config[i].zero = (uint8_t)zero;
        if (!topt_config_valid(&c->m->op[i], &c->st->config[i], &c->mesh))
            c->st->config[i].zero = 0;
    }
    c->k = (struct topt_costing){
        c->m, hw, &c->mesh, &c->settings, topt_router_create(hw, &c->mesh), NULL};
}

static void close_case(struct case_of *c)
{
    topt_router_destroy(c->k.router);
    topt_strategy_destroy(c->st);
    topt_model_destroy(c->m);
}

static int64_t simulated(const struct case_of *c, enum topt_overlap overlap,
                         int64_t bucket)
{
    struct topt_simulate_options o = {.overlap = overlap, .bucket_bytes = bucket};
    struct topt_simulation s;
    if (topt_simulate(&c->k, c->st, &o, &s, NULL))
        return -1;
    int64_t ns = s.time_ns;
    topt_simulation_fini(&s);
    return ns;
}

/* Gradients one by one behind backward, and all in one bucket. */
static void test_data_parallel(const struct topt_hw *hw)
{
    struct case_of c;
    struct topt_strategy_cost plain;
    open_data_parallel(&c, hw, 0);
    ok(topt_hw_collective_share(hw) == 0 && !topt_cost_strategy(&c.k, c.st, &plain, NULL),
       "data parallel");
    int64_t ns = simulated(&c, TOPT_OVERLAP_DDP, 0),
            none = simulated(&c, TOPT_OVERLAP_NONE, INT64_MAX / 4),
            one = simulated(&c, TOPT_OVERLAP_DDP, INT64_MAX / 4);
    is_int(none, plain.time_ns, "buckets are of what goes behind backward");
    ok(ns < plain.time_ns && one < plain.time_ns &&
           one > plain.time_ns - plain.sum.network_ns,
       "one by one %lld, in one bucket, which nothing hides, %lld, one after the other "
       "%lld",
       (long long)ns, (long long)one, (long long)plain.time_ns);
    close_case(&c);
}

/* Parameters are gathered while the unit before is at work: all but the first. */
static void test_prefetch(const struct topt_hw *hw)
{
    struct case_of c;
    struct topt_strategy_cost plain;
    open_data_parallel(&c, hw, TOPT_ZERO_PARAM);
    ok(!topt_cost_strategy(&c.k, c.st, &plain, NULL), "fully sharded");
    int64_t none = simulated(&c, TOPT_OVERLAP_NONE, 0),
            ddp = simulated(&c, TOPT_OVERLAP_DDP, 0),
            fsdp = simulated(&c, TOPT_OVERLAP_FSDP, 0);
    is_int(none, plain.time_ns, "one after the other");
    ok(ddp < none && fsdp < ddp,
       "asynchronous gradients hide some, parameters more: %lld, %lld, %lld",
       (long long)none, (long long)ddp, (long long)fsdp);
    close_case(&c);
}

/* A step of more tasks than are made repeats its last micro-batch. */
static void test_many_micros(const struct topt_hw *hw)
{
    struct case_of c;
    struct topt_strategy_cost plain;
    struct topt_simulation s = {.micros = 0};
    struct topt_simulate_options o = {.overlap = TOPT_OVERLAP_NONE};
    open_data_parallel(&c, hw, TOPT_ZERO_PARAM);
    c.settings.micro_batches = 100000;
    int rc = topt_cost_strategy(&c.k, c.st, &plain, NULL) ||
             topt_simulate(&c.k, c.st, &o, &s, NULL);
    ok(!rc && s.micros > 0 && s.micros < 100000,
       "of 100000 micro-batches %d are simulated", s.micros);
    is_int(s.time_ns, plain.time_ns, "which tell what all take");
    is_int(s.network_ns, plain.sum.network_ns, "and move");
    topt_simulation_fini(&s);
    close_case(&c);
}

/* ---- what is written ------------------------------------------------------------------------- */

static void test_written(const struct topt_hw *hw)
{
    struct case_of c;
    struct topt_simulation s;
    struct topt_simulate_options o = {.overlap = TOPT_OVERLAP_FSDP};
    struct topt_error err = {0};
    open_data_parallel(&c, hw, TOPT_ZERO_PARAM);
    if (!ok(!topt_simulate(&c.k, c.st, &o, &s, NULL), "a simulation"))
        abort();
    char *trace = topt_simulation_trace(&s), *svg = topt_simulation_svg(&s, "a<b");
    json_t *doc = topt_json_parse(trace, strlen(trace), "trace", &err), *e;
    size_t i;
    int tasks = 0, events = 0, lanes = 0;
    double end = 0;
    json_array_foreach(json_object_get(doc, "traceEvents"), i, e)
    {
        double at = json_number_value(json_object_get(e, "ts")) +
                    json_number_value(json_object_get(e, "dur"));
        events += !strcmp(json_string_value(json_object_get(e, "ph")), "X");
        lanes += !strcmp(json_string_value(json_object_get(e, "name")), "thread_name");
        end = at > end ? at : end;
    }
    for (int t = 0; t < s.schedule.n; t++)
        if (s.schedule.task[t].ns)
            tasks += s.schedule.task[t].links == 3 ? 2 : 1;
    is_int(events, tasks, "the trace has every task, on every link that it takes");
    is_int(lanes, 3, "three threads have names");
    ok((int64_t)(end * 1000 + 0.5) == s.time_ns, "the last one ends with the step");
    ok(svg && !strncmp(svg, "<svg", 4) && strstr(svg, "a&lt;b") && !strstr(svg, "a<b") &&
           strstr(svg, "class=\"g\""),
       "a picture, with its title as text");
    json_decref(doc);
    free(trace);
    free(svg);
    topt_simulation_fini(&s);
    close_case(&c);
}

int main(void)
{
    struct topt_hw *hw = topt_hw_load("v100-dgx1-2x8", NULL);
    test_random(hw);
    test_data_parallel(hw);
    test_prefetch(hw);
    test_many_micros(hw);
    test_written(hw);
    topt_hw_destroy(hw);
    return done_testing();
}
