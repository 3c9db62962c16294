/* test_flexflow.c - FlexFlow's search.
 *
 * A thousand random changes of single operators: what the delta simulation says is what a
 * simulation from nothing says, to the nanosecond.  The walk takes worse strategies as often
 * as the rule says, and its strategies are as frequent as exp(-beta cost).  What it finds is
 * never worse than data parallel, nor better than the busiest device and the longest path
 * allow; on a chain that is small enough to try everything, close to the best.
 *
 * FlexFlow has a simulation of its own, since its walk changes tasks one at a time.  Random chains
 * of operators hold it to solver/schedule: the data parallel tasks of a chain, with the same
 * nanoseconds and dependencies, end at the same time in both, to the nanosecond.  A device is an
 * owner that computes, and a channel of sums is the link of an owner that does nothing else.  Only
 * this is comparable: chains have no branches, each operator has a part on every device, so nothing
 * moves, and asynchronous communication takes no share of a device, which FlexFlow does not know.
 * Tasks that become ready at one time run in FlexFlow by their keys and in a schedule in the order
 * in which they were added, so they are added by their keys. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ff_data.h"
#include "models.h"
#include "sizes.h"
#include "tap.h"
#include "topt_flexflow.h"
#include "topt_plan.h"
#include "topt_schedule.h"

enum { CHANGES = TOPT_TEST_SIZE(1000) };

struct world {
    struct topt_model *m;
    struct topt_mesh mesh;
    struct topt_settings settings;
    struct topt_router *router;
    struct topt_costing k;
    struct topt_flexflow *f;
};

static void open_world(struct world *w, struct topt_model *m, const struct topt_hw *hw,
                       int nodes, int per_node)
{
    struct topt_error err = {0};
    *w = (struct world){.m = m, .settings = topt_settings_default()};
    if (topt_mesh_init(&w->mesh, nodes, per_node, &err))
        abort();
    w->router = topt_router_create(hw, &w->mesh);
    w->k = (struct topt_costing){m, hw, &w->mesh, &w->settings, w->router, NULL};
    if (topt_flexflow_create(&w->k, &(struct topt_flexflow_rules){0}, &w->f, &err)) {
        printf("Bail out! %s\n", err.text);
        abort();
    }
}

static void close_world(struct world *w)
{
    topt_flexflow_destroy(w->f);
    topt_router_destroy(w->router);
    topt_model_destroy(w->m);
}

/* Any list of devices, not only those that proposals have. */
static struct topt_soap anywhere(struct dice *d, const struct world *w, int op)
{
    int n = (int)topt_flexflow_choices(w->f, op);
    struct topt_soap s = topt_flexflow_choice(w->f, op, roll(d, n));
    for (int p = 0; p < s.nparts && roll(d, 2); p++)
        s.device[p] = (uint8_t)roll(d, w->mesh.devices);
    return s;
}

static void test_delta(const struct topt_hw *hw)
{
    struct dice d = {.stream = 7};
    int changes = 0, equal = 0;
    int64_t touched = 0, moved = 0, tasks = 0;
    struct topt_model *(*const build[])(void) = {build_mlp, build_gpt, build_lstm,
                                                 build_cnn, build_moe};
    for (int i = 0; i < 5; i++) {
        struct world w;
        open_world(&w, build[i](), hw, 2, 4);
        for (int n = 0; n < CHANGES / 5; n++) {
            struct topt_flexflow_facts facts;
            int op = roll(&d, w.m->nops);
            struct topt_soap s = anywhere(&d, &w, op);
            int64_t full = -1;
            changes++;
            if (topt_flexflow_set(w.f, op, &s, NULL) ||
                topt_flexflow_full(w.f, 0, 0, &full, NULL))
                continue;
            equal += full == topt_flexflow_time(w.f);
            topt_flexflow_facts(w.f, &facts);
            touched += facts.touched;
            moved += facts.moved;
            tasks += facts.tasks;
        }
        close_world(&w);
    }
    is_int(equal, changes, "delta simulation is the full one");
    ok(touched < tasks && (double)touched <= 1.1 * (double)moved,
       "%.0f %% of the tasks are new or end at another time, and %.2f times as many run "
       "again",
       100 * (double)moved / (double)tasks, (double)touched / (double)moved);
}

static int same_as_full(const struct topt_flexflow *f)
{
    int64_t full = -1;
    return !topt_flexflow_full(f, 0, 0, &full, NULL) && full == topt_flexflow_time(f);
}

/* A change that is taken back leaves every task as it was, simulated or not. */
static void test_undo(const struct topt_hw *hw)
{
    enum { TRIES = 60 };
    struct dice d = {.stream = 9};
    struct topt_model *(*const build[])(void) = {build_gpt, build_lstm, build_cnn};
    int same = 0, goes_on = 0;
    for (int i = 0; i < 3; i++) {
        struct world w;
        open_world(&w, build[i](), hw, 2, 4);
        for (int n = 0; n < TRIES; n++) {
            int op = roll(&d, w.m->nops), back = 0;
            struct topt_soap s = anywhere(&d, &w, op), was = *topt_flexflow_get(w.f, op);
            int64_t ns = topt_flexflow_time(w.f);
            ff_replace(w.f, op, &s);
            if (n % 3 && ff_settle(w.f, NULL))
                abort();
            ff_undo(w.f, op, &was, ns);
            back = topt_flexflow_time(w.f) == ns && same_as_full(w.f);
            for (int t = 0; t < w.f->ntasks; t++) {
                const struct ff_task *x = &w.f->task[t];
                for (int e = x->live ? x->in : -1; e >= 0; e = w.f->edge[e].in_next)
                    back &= ff_done(&w.f->task[w.f->edge[e].from]) <= x->ready;
                back &= !x->live || (!x->fresh && x->end >= x->ready + x->ns);
            }
            same += back;
            op = roll(&d, w.m->nops);
            s = anywhere(&d, &w, op);
            goes_on += !topt_flexflow_set(w.f, op, &s, NULL) && same_as_full(w.f);
        }
        close_world(&w);
    }
    is_int(same, 3 * TRIES, "a change that is taken back leaves all as it was");
    is_int(goes_on, 3 * TRIES, "and the next one is simulated from there");
}

/* ---- beside the schedule ---------------------------------------------------------------- */

/* Operators one after the other, of a batch that each device has a part of. */
static struct topt_model *random_chain(struct dice *d, int devices)
{
    struct topt_model *m =
        topt_model_create("chain", devices * (1 + roll(d, 3)), 1 + roll(d, 5), NULL);
    int x = topt_model_add(
        m, "embedding", "words", 0, NULL,
        &(struct topt_attrs){.vocab = 50 + roll(d, 900), .features = 1 + roll(d, 900)},
        NULL);
    for (int i = 2 + roll(d, 6); i > 0; i--) {
        static const char *const kind[] = {"linear", "bias", "norm", "unary"};
        int at = roll(d, 4);
        char name[16];
        struct topt_attrs a = {0};
        if (at == 0)
            a.features = 1 + roll(d, 900);
        if (at == 3)
            a.activation = TOPT_ACT_GELU;
        snprintf(name, sizeof name, "op%d", i);
        x = topt_model_add(m, kind[at], name, 1, &x, &a, NULL);
    }
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    return x >= 0 && !topt_model_finish(m, NULL) ? m : NULL;
}

struct keyed {
    uint64_t key;
    int task;
};

static int by_key(const void *x, const void *y)
{
    const struct keyed *a = x, *b = y;
    return (a->key > b->key) - (a->key < b->key);
}

/* The tasks in a schedule, by their keys; '*ret_moves': how many move what a device made. */
static int64_t scheduled_ns(const struct topt_flexflow *f, int *ret_moves)
{
    struct topt_schedule s;
    struct keyed *at = calloc((size_t)f->ntasks, sizeof *at);
    int *number = calloc((size_t)f->ntasks, sizeof *number), n = 0, bad = 0;
    topt_schedule_init(&s, f->nresources, 0);
    for (int t = 0; t < f->ntasks; t++)
        if (f->task[t].live)
            at[n++] = (struct keyed){f->task[t].key, t};
    qsort(at, (size_t)n, sizeof *at, by_key);
    for (int i = 0; i < n; i++) {
        const struct ff_task *x = &f->task[at[i].task];
        int resource = f->slot[x->slot].resource;
        int sum = x->kind == FF_SUM, near = resource < f->nresources - 1;
        *ret_moves += x->kind == FF_MOVE || x->kind == FF_MOVE_BACK;
        struct topt_task t = {
            .ns = x->ns,
            .owner = resource,
            .links =
                (uint8_t)(sum ? near ? 1 << TOPT_LINK_NODE : 1 << TOPT_LINK_NETWORK : 0),
            .async = (uint8_t)sum};
        number[at[i].task] = topt_schedule_add(&s, &t, NULL);
    }
    for (int i = 0; i < n; i++)
        for (int e = f->task[at[i].task].in; e >= 0; e = f->edge[e].in_next)
            bad |= topt_schedule_after(&s, number[at[i].task], number[f->edge[e].from],
                                       NULL);
    bad |= topt_schedule_run(&s, NULL);
    int64_t ns = bad ? -1 : s.time_ns;
    topt_schedule_fini(&s);
    free(number);
    free(at);
    return ns;
}

static void test_beside_schedule(const struct topt_hw *hw)
{
    enum { CHAINS = 48, SEED = 40 };
    struct dice d = {.stream = SEED};
    int equal = 0, moves = 0, sums_last = 0;
    for (int i = 0; i < CHAINS; i++) {
        struct world w;
        int nodes = 1 + i % 2, per_node = 1 << roll(&d, 4);
        int64_t full = 0;
        open_world(&w, random_chain(&d, nodes * per_node), hw, nodes, per_node);
        if (topt_flexflow_full(w.f, 0, 0, &full, NULL))
            abort();
        equal += scheduled_ns(w.f, &moves) == full && full == topt_flexflow_time(w.f);
        struct topt_flexflow_facts facts;
        topt_flexflow_facts(w.f, &facts);
        sums_last += full > facts.compute_ns;
        close_world(&w);
    }
    is_int(moves, 0, "random chains (seed %d) move nothing", SEED);
    is_int(equal, CHAINS, "and take in FlexFlow what their tasks take in a schedule");
    ok(sums_last > CHAINS / 4, "devices wait for sums in %d of them", sums_last);
}

/* ---- the rule ---------------------------------------------------------------------------- */

static struct topt_model *toy(void)
{
    struct topt_model *m = topt_model_create("toy", 4, 1, NULL);
    int x = topt_model_add(m, "embedding", "words", 0, NULL,
                           &(struct topt_attrs){.vocab = 64, .features = 4096}, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    return x >= 0 && !topt_model_finish(m, NULL) ? m : NULL;
}

enum { STATES = 512 };
struct tally_of {
    double beta;
    int64_t wanted; /* of which difference acceptance is counted */
    int64_t offered, taken;
    int64_t cost[STATES];
    double weight[STATES]; /* expected */
    int64_t seen[STATES];
    int n, each, at;
};

static int bin_of(struct tally_of *t, int64_t cost)
{
    int i = 0;
    while (i < t->n && t->cost[i] != cost)
        i++;
    if (i == t->n && t->n < STATES)
        t->cost[t->n++] = cost;
    return i;
}

static void told(void *ctx, const struct topt_flexflow *f, int64_t more, int taken)
{
    struct tally_of *t = ctx;
    if (more == t->wanted) {
        t->offered++;
        t->taken += taken;
    }
    if (++t->at % t->each == 0)
        t->seen[bin_of(t, topt_flexflow_time(f))]++;
}

/* Costs of all strategies, and how often each is met. */
static double enumerate(struct world *w, struct tally_of *t)
{
    double all = 0;
    int64_t n0 = topt_flexflow_choices(w->f, 0), n1 = topt_flexflow_choices(w->f, 1);
    int64_t least = INT64_MAX;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < n0; i++) {
            struct topt_soap a = topt_flexflow_choice(w->f, 0, i);
            if (topt_flexflow_set(w->f, 0, &a, NULL))
                return 0;
            for (int64_t k = 0; k < n1; k++) {
                struct topt_soap b = topt_flexflow_choice(w->f, 1, k);
                if (topt_flexflow_set(w->f, 1, &b, NULL))
                    return 0;
                int64_t ns = topt_flexflow_time(w->f);
                least = ns < least ? ns : least;
                if (pass) {
                    double x = exp(-t->beta * (double)(ns - least));
                    t->weight[bin_of(t, ns)] += x;
                    all += x;
                }
            }
        }
    return all;
}

static void test_rule(const struct topt_hw *hw)
{
    enum { SAMPLES = TOPT_TEST_SIZE_FROM(8000, 2000), EACH = 16 };
    struct world w;
    static struct tally_of t;
    open_world(&w, toy(), hw, 1, 2);
    t = (struct tally_of){.beta = 1, .each = EACH};
    /* the difference between data parallel and all on one device */
    int64_t start = topt_flexflow_time(w.f);
    struct topt_soap one = topt_flexflow_choice(w.f, 0, 0);
    if (topt_flexflow_set(w.f, 0, &one, NULL))
        abort();
    t.wanted = topt_flexflow_time(w.f) - start;
    t.wanted = t.wanted < 0 ? -t.wanted : t.wanted;
    t.beta = log(2) / (double)t.wanted;
    ok(fabs(topt_flexflow_accepts(t.beta, t.wanted) - 0.5) < 1e-12 &&
           topt_flexflow_accepts(t.beta, 0) == 1 &&
           topt_flexflow_accepts(t.beta, -t.wanted) == 1,
       "what takes ln 2 / beta more is taken half of the time, what is as good always");
    double all = enumerate(&w, &t);
    struct topt_flexflow_search o = {.seed = 3,
                                     .proposals = (int64_t)SAMPLES * EACH,
                                     .beta = t.beta,
                                     .never_stalls = 1,
                                     .told = told,
                                     .ctx = &t};
    struct topt_flexflow_found found;
    int rc = topt_flexflow_search(w.f, &o, &found, NULL);
    ok(all > 0 && !rc && found.tried == o.proposals,
       "a walk of %lld steps through %d costs", (long long)found.tried, t.n);
    double p = (double)t.taken / (double)t.offered,
           error = sqrt(0.25 / (double)t.offered);
    ok(t.offered > 100 && fabs(p - 0.5) < 3 * error,
       "taken %lld of %lld times: %.3f, within 3 standard errors of %.3f",
       (long long)t.taken, (long long)t.offered, p, error);
    double chi = 0;
    int bins = 0;
    for (int i = 0; i < t.n; i++) {
        double expected = SAMPLES * t.weight[i] / all;
        if (expected < 5)
            continue;
        bins++;
        chi += ((double)t.seen[i] - expected) * ((double)t.seen[i] - expected) / expected;
    }
    double limit =
        bins - 1 + 3.1 * sqrt(2.0 * (bins - 1)) + 4; /* beyond one in a thousand */
    ok(bins > 2 && chi < limit,
       "strategies are as frequent as exp(-beta cost): chi-square %.1f of %d bins", chi,
       bins);
    close_world(&w);
}

/* ---- what it finds ------------------------------------------------------------------------ */

static void test_found(const struct topt_hw *hw)
{
    struct topt_model *(*const build[])(void) = {build_mlp, build_gpt, build_lstm,
                                                 build_cnn};
    int better = 0, bounded = 0, same = 0;
    for (int i = 0; i < 4; i++) {
        struct world w;
        struct topt_flexflow_facts facts;
        struct topt_flexflow_found found, again;
        struct topt_flexflow_search o = {.seed = 11, .proposals = 400};
        open_world(&w, build[i](), hw, 2, 2);
        int64_t dp = topt_flexflow_time(w.f), full = -1;
        if (topt_flexflow_search(w.f, &o, &found, NULL) ||
            topt_flexflow_full(w.f, 0, 0, &full, NULL))
            continue;
        topt_flexflow_facts(w.f, &facts);
        better += found.start_ns == dp && found.best_ns <= dp && full == found.best_ns &&
                  facts.time_ns == full;
        bounded += full >= facts.critical_ns && full >= facts.compute_ns;
        topt_flexflow_destroy(w.f);
        w.f = NULL;
        same +=
            !topt_flexflow_create(&w.k, &(struct topt_flexflow_rules){0}, &w.f, NULL) &&
            !topt_flexflow_search(w.f, &o, &again, NULL) &&
            again.best_ns == found.best_ns && again.best_at == found.best_at;
        close_world(&w);
    }
    is_int(better, 4, "never worse than data parallel, where it starts");
    is_int(bounded, 4, "never better than the busiest device and the longest path");
    is_int(same, 4, "the same for the same seed");
}

/* Sets the flag after so many proposals. */
struct stopping {
    atomic_bool stop;
    int left;
};

static void count_down(void *ctx, const struct topt_flexflow *f, int64_t more, int taken)
{
    struct stopping *s = ctx;
    (void)f, (void)more, (void)taken;
    if (--s->left == 0)
        atomic_store(&s->stop, 1);
}

/* A walk ends with the proposal that it is at, whichever half that is in, at its best; one that may
 * try none is data parallel. */
static void test_stopped(const struct topt_hw *hw)
{
    static const int after[] = {0, 5, 250, 1200};
    int ended = 0, best = 0;
    for (int i = 0; i < 4; i++) {
        struct world w;
        struct stopping s = {.stop = !after[i], .left = after[i]};
        struct topt_flexflow_walks walks;
        struct topt_flexflow_search o = {.seed = 2,
                                         .proposals = 2000,
                                         .never_stalls = 1,
                                         .stop = &s.stop,
                                         .told = count_down,
                                         .ctx = &s};
        open_world(&w, build_mlp(), hw, 2, 2);
        int64_t start = topt_flexflow_time(w.f);
        if (topt_flexflow_walk(w.f, &o, &walks, NULL))
            abort();
        ended += walks.tried == after[i];
        best += same_as_full(w.f) && topt_flexflow_time(w.f) <= start &&
                (!after[i] || topt_flexflow_time(w.f) == walks.best_ns);
        close_world(&w);
    }
    is_int(ended, 4, "a walk that is stopped tries no more");
    is_int(best, 4, "and ends at its best");
}

/* ---- what prices miss ---------------------------------------------------------------------- */

/* Pairs of strategies that the prices order as the machine does, less those that they do not, over
 * all (Kendall's tau). */
static double tau(const int64_t *a, const int64_t *b, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            sum += (a[i] < a[k]) == (b[i] < b[k]) ? 1 : -1;
    return 2.0 * sum / (n * (n - 1));
}

static void test_disturbed(const struct topt_hw *hw)
{
    enum { STRATEGIES = 10 };
    struct topt_model *(*const build[])(void) = {build_mlp, build_gpt, build_lstm,
                                                 build_cnn};
    double worst = 0, least = 1;
    for (int i = 0; i < 4; i++) {
        struct dice d = {.stream = 20 + (uint64_t)i};
        struct world w;
        int64_t said[STRATEGIES], seen[STRATEGIES];
        open_world(&w, build[i](), hw, 2, 4);
        for (int n = 0; n < STRATEGIES; n++) {
            for (int op = 0; op < w.m->nops; op++) {
                struct topt_soap s = topt_flexflow_choice(
                    w.f, op, roll(&d, (int)topt_flexflow_choices(w.f, op)));
                if (topt_flexflow_set(w.f, op, &s, NULL))
                    abort();
            }
            said[n] = topt_flexflow_time(w.f);
            if (topt_flexflow_full(w.f, (uint64_t)n, 0.15, &seen[n], NULL))
                abort();
            double off = fabs((double)said[n] / (double)seen[n] - 1);
            worst = off > worst ? off : worst;
        }
        double t = tau(said, seen, STRATEGIES);
        least = t < least ? t : least;
        close_world(&w);
    }
    ok(worst > 0 && worst <= 0.3,
       "tasks that take 15 %% more or less: within 30 %% (%.1f %%)", 100 * worst);
    ok(least >= 0.8, "and ten strategies keep their order: tau %.2f at least", least);
}

static struct topt_model *chain(void)
{
    struct topt_model *m = topt_model_create("chain", 16, 1, NULL);
    int x = topt_model_add(m, "embedding", "words", 0, NULL,
                           &(struct topt_attrs){.vocab = 4096, .features = 1024}, NULL);
    x = topt_model_add(m, "linear", "wide", 1, &x, &(struct topt_attrs){.features = 8192},
                       NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    return x >= 0 && !topt_model_finish(m, NULL) ? m : NULL;
}

/* Everything is tried: 3 operators on 4 devices. */
static int64_t best_of_all(struct world *w)
{
    int64_t best = INT64_MAX, n[3];
    for (int i = 0; i < 3; i++)
        n[i] = topt_flexflow_choices(w->f, i);
    for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
        int64_t at[3] = {i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]};
        for (int op = 0; op < 3; op++) {
            struct topt_soap s = topt_flexflow_choice(w->f, op, at[op]);
            if (memcmp(&s, topt_flexflow_get(w->f, op), sizeof s) != 0 &&
                topt_flexflow_set(w->f, op, &s, NULL))
                return -1;
        }
        if (topt_flexflow_time(w->f) < best)
            best = topt_flexflow_time(w->f);
    }
    return best;
}

static void test_chain(const struct topt_hw *hw)
{
    struct world w;
    struct topt_flexflow_found found;
    struct topt_flexflow_search o = {
        .seed = 1, .proposals = 4000, .random_start = 1, .never_stalls = 1};
    open_world(&w, chain(), hw, 1, 2);
    ok(!topt_flexflow_search(w.f, &o, &found, NULL) && found.best_ns <= found.start_ns,
       "a chain from a random start");
    int64_t best = best_of_all(&w);
    ok(found.best_ns >= best && (double)found.best_ns <= 1.1 * (double)best,
       "%lld ns, the best of all %lld", (long long)found.best_ns, (long long)best);
    struct topt_flexflow_walks walks;
    o.random_start = o.never_stalls = 0;
    int rc = topt_flexflow_walk(w.f, &o, &walks, NULL);
    ok(!rc && walks.tried < o.proposals && walks.best_ns == best &&
           topt_flexflow_time(w.f) == best,
       "walks that improve nothing for half of it end: after %lld proposals of %lld",
       (long long)walks.tried, (long long)o.proposals);
    close_world(&w);
}

/* FlexFlow's space holds what splits outputs alone, so the walk is not much worse than the best
 * of these that our search proves, though that waits for what moves. */
static void test_beside_ours(const struct topt_hw *hw)
{
    struct topt_model *(*const build[])(void) = {chain, build_mlp, build_lstm};
    int held = 0;
    double most = 0;
    for (int i = 0; i < 3; i++) {
        struct world w;
        struct topt_request r;
        struct topt_error err = {0};
        struct topt_flexflow_found found;
        struct topt_flexflow_search o = {.seed = 5, .proposals = 4000, .never_stalls = 1};
        json_t *a = NULL;
        open_world(&w, build[i](), hw, 1, 4);
        topt_request_init(&r);
        r.model = w.m;
        r.hw = hw;
        r.gpus = 4;
        r.space = TOPT_SPACE_FULL;
        r.algorithm = "optcnn";
        if (topt_flexflow_search(w.f, &o, &found, &err) || topt_plan(&r, &a, &err)) {
            printf("# %s\n", err.text);
        } else {
            double ratio = (double)found.best_ns /
                           (double)json_integer_value(json_object_get(a, "time_ns"));
            most = ratio > most ? ratio : most;
            held += ratio <= 1.1;
        }
        json_decref(a);
        close_world(&w);
    }
    is_int(held, 3, "chains: at most 1.1 times the best that splits outputs");
    ok(most > 0, "the worst takes %.2f of it", most);
}

static void test_refused(const struct topt_hw *hw)
{
    struct world w;
    struct topt_error err = {0};
    open_world(&w, toy(), hw, 1, 2);
    struct topt_soap s = topt_flexflow_choice(w.f, 0, 0);
    s.device[0] = 2;
    ok(topt_flexflow_set(w.f, 0, &s, &err) && err.code == TOPT_ERR_INVAL,
       "a device that there is not");
    s.device[0] = 0;
    s.degree[0] = 3;
    ok(topt_flexflow_set(w.f, 0, &s, &err), "parts that the devices do not have");
    close_world(&w);
}

/* Where nothing is placed the walk starts at data parallelism all the same. */
static void test_all_devices(const struct topt_hw *hw)
{
    struct world w;
    struct topt_flexflow *f;
    open_world(&w, toy(), hw, 1, 4);
    if (!topt_flexflow_create(&w.k, &(struct topt_flexflow_rules){.all_devices = 1}, &f,
                              NULL)) {
        int same = topt_flexflow_time(f) == topt_flexflow_time(w.f);
        for (int i = 0; i < w.k.model->nops; i++)
            same &= !memcmp(topt_flexflow_get(f, i), topt_flexflow_get(w.f, i),
                            sizeof(struct topt_soap));
        ok(same, "nothing placed: it starts data parallel");
        topt_flexflow_destroy(f);
    }
    close_world(&w);
}

int main(void)
{
    struct topt_hw *hw = topt_hw_load("v100-dgx1-2x8", NULL);
    test_delta(hw);
    test_undo(hw);
    test_beside_schedule(hw);
    test_rule(hw);
    test_found(hw);
    test_stopped(hw);
    test_disturbed(hw);
    test_chain(hw);
    test_beside_ours(hw);
    test_refused(hw);
    test_all_devices(hw);
    topt_hw_destroy(hw);
    return done_testing();
}
