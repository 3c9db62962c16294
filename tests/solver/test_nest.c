/* test_nest.c - spaces nest: uniform lies in canonical, canonical in full.
 *
 * Of one framework, with the same factors and the same numbers of devices, and without a
 * tolerance, a larger space never needs more devices and never takes longer.  Random small
 * models, clusters and limits, for a framework that obeys everything and for one that
 * splits into equal parts alone; asked as people ask, so that what is held to this is the
 * answer with all that it leaves out, bounds from one space for another included. */
#include <stdlib.h>
#include <string.h>

#include "random_hw.h"
#include "random_model.h"
#include "sizes.h"
#include "tap.h"
#include "topt_framework.h"
#include "topt_plan.h"

enum { ROUNDS = TOPT_TEST_SIZE_FROM(40, 4), SPACES = 3, COUNTS = 8 };
/* From here on operators that are decided by heuristic and tensor parallelism as a last
 * resort are met early. */
enum { FIRST = 140 };
/* Tables that several operators share, sharded over the outer axes of a level: rare, and first. */
static const uint64_t shared[] = {863, 981};

static const enum topt_space spaces[SPACES] = {TOPT_SPACE_UNIFORM, TOPT_SPACE_CANONICAL,
                                               TOPT_SPACE_FULL};

static struct topt_hw *random_cluster(uint64_t *seed)
{
    static const int sizes[][2] = {{1, 4}, {2, 2}, {2, 4}, {2, 3}, {3, 2}, {1, 6}};
    const int *size = sizes[random_below(seed, 6)];
    struct made_up c = {.nodes = size[0], .per_node = size[1], .cluster_ns = 5000};
    c.cluster_mb = 10 + random_below(seed, 500);
    c.node_ns = random_below(seed, 2000);
    c.node_mb = 100 + random_below(seed, 5000);
    return made_up_cluster(&c);
}

/* A question about a random model; whoever asks destroys model and cluster. */
static int random_request(uint64_t seed, struct topt_request *r)
{
    uint64_t s = seed * 104729;
    struct topt_query words = {.factors = "all", .counts = "whole"};
    strcpy(words.framework, random_below(&s, 2) ? "pytorch" : "topt");
    words.tensor_parallel = random_below(&s, 2);
    topt_request_init(r);
    r->settings.granule_bytes = 1;
    r->max_entries = random_below(&s, 3) ? 0 : 1 + random_below(&s, 200);
    r->hw = random_cluster(&s);
    r->model = random_below(&s, 2) ? block_model(seed, 2, 1 + random_below(&s, 3))
                                   : random_model(seed, 1 + random_below(&s, 4));
    if (!r->hw || !r->model || topt_request_read(&words, r, NULL, NULL))
        return 0;
    r->space = TOPT_SPACE_UNIFORM;
    if (topt_request_complete(r, NULL))
        return 0;
    r->settings.by_unit = 0; /* what adds up, in all spaces */
    r->settings.overlap = TOPT_OVERLAP_NONE;
    r->tensor_parallel =
        r->tensor_parallel && !r->framework->rules; /* these want roles */
    return 1;
}

/* What a space answers. */
struct answers {
    int64_t fewest; /* INT64_MAX: nothing fits */
    int64_t time[COUNTS];
};

static int64_t take(const struct topt_request *r, const char *field)
{
    struct topt_error err = {0};
    json_t *a = NULL;
    if (topt_plan(r, &a, &err)) {
        if (err.code == TOPT_ERR_INFEASIBLE)
            return INT64_MAX;
        printf("# %s\n", err.text);
        return -1;
    }
    const json_t *fits = json_object_get(a, "feasible");
    int64_t x = json_is_null(fits)    ? -1
                : json_is_false(fits) ? INT64_MAX
                                      : json_integer_value(json_object_get(a, field));
    json_decref(a);
    return x;
}

static void ask_all(struct topt_request r, const int64_t *count, int n,
                    struct answers *ret)
{
    r.mode = TOPT_MINI_PARALLELISM;
    ret->fewest = take(&r, "gpus");
    r.mode = TOPT_MINI_TIME;
    for (int i = 0; i < n; i++) {
        r.gpus = count[i];
        ret->time[i] = take(&r, "time_ns");
    }
}

/* Numbers of devices that are booked: divisors of a node, then whole nodes. */
static int booked(const struct topt_hw *hw, int64_t count[COUNTS])
{
    int per_node = topt_hw_gpus_per_node(hw), n = 0;
    for (int c = 1; c <= per_node; c++)
        if (per_node % c == 0)
            count[n++] = c;
    for (int nodes = 2; nodes <= topt_hw_max_nodes(hw); nodes++)
        count[n++] = (int64_t)nodes * per_node;
    return n;
}

/* A larger space need not know whether anything fits where a smaller one has nothing. */
static int no_more(int64_t larger, int64_t smaller)
{
    return smaller < 0 || smaller == INT64_MAX || (larger >= 0 && larger <= smaller);
}

/* How many answers of a larger space are worse than those of a smaller one. */
static int hold(const struct topt_request *asked, int64_t limit, uint64_t seed,
                int *ret_better)
{
    struct answers of[SPACES];
    struct topt_request r = *asked;
    int64_t count[COUNTS];
    int n = booked(r.hw, count), bad = 0;
    r.memory_limit = limit;
    for (int i = 0; i < SPACES; i++) {
        r.space = spaces[i];
        ask_all(r, count, n, &of[i]);
    }
    for (int i = 1; i < SPACES; i++) {
        const char *larger = topt_space_name(spaces[i]),
                   *smaller = topt_space_name(spaces[i - 1]);
        if (!no_more(of[i].fewest, of[i - 1].fewest)) {
            bad++;
            printf("# seed %d, %s, limit %lld: %s needs %lld devices, %s %lld\n",
                   (int)seed, r.framework->name, (long long)limit, larger,
                   (long long)of[i].fewest, smaller, (long long)of[i - 1].fewest);
        }
        *ret_better += of[i].fewest < of[i - 1].fewest;
        for (int k = 0; k < n; k++) {
            *ret_better += of[i].time[k] < of[i - 1].time[k];
            if (no_more(of[i].time[k], of[i - 1].time[k]))
                continue;
            bad++;
            printf("# seed %d, %s, limit %lld, %lld devices: %s takes %lld ns, %s %lld\n",
                   (int)seed, r.framework->name, (long long)limit, (long long)count[k],
                   larger, (long long)of[i].time[k], smaller,
                   (long long)of[i - 1].time[k]);
        }
    }
    return bad;
}

/* Limits around what one device needs without one. */
static int hold_round(uint64_t seed, int *ret_better)
{
    struct topt_request r;
    int bad = -1;
    if (random_request(seed, &r)) {
        uint64_t s = seed;
        struct topt_request one = r;
        one.mode = TOPT_MINI_TIME;
        one.gpus = 1;
        int64_t whole = take(&one, "memory_bytes");
        bad = whole <= 0 || whole == INT64_MAX;
        for (int i = 0; i < 2 && !bad; i++)
            bad = hold(&r, whole * (15 + random_below(&s, 100)) / 100, seed, ret_better);
    }
    topt_model_destroy((struct topt_model *)r.model);
    topt_hw_destroy((struct topt_hw *)r.hw);
    return bad;
}

int main(void)
{
    int bad = 0, failed = 0, better = 0;
    for (int i = 0; i < 2 + ROUNDS; i++) {
        uint64_t seed = i < 2 ? shared[i] : (uint64_t)(FIRST + i - 2);
        int found = hold_round(seed, &better);
        failed += found < 0;
        bad += found > 0;
    }
    is_int(failed, 0, "all questions can be asked");
    is_int(bad, 0, "no answer of %d questions is worse in a larger space",
           2 + (int)ROUNDS);
    ok(better > ROUNDS, "and %d are better", better);
    return done_testing();
}
