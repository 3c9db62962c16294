/* Lists of strategies: what is read in any order is what was added, renamed or not, and points
 * of several lists become one frontier, each with its own strategy. */
#include "strategies.h"
#include "frontier.h"

#include "random_problem.h"
#include "tap.h"

enum { WIDTH = 37, MANY = 3000, NUMBERS = 5, LISTS = 4 };

/* Strategy after strategy, a few choices changed; now and then none, or nearly all. */
static void next_strategy(struct rng *r, int32_t *choice)
{
    int changes = rng_below(r, 100) ? rng_below(r, 4) : WIDTH;
    for (int i = 0; i < changes; i++)
        choice[rng_below(r, WIDTH)] = rng_below(r, NUMBERS);
}

static int fill(struct rng *r, struct strategies *s, int32_t (*all)[WIDTH], int n)
{
    int32_t choice[WIDTH] = {0};
    int rc = topt_strategies_init(s, WIDTH, NULL);
    for (int i = 0; i < n && !rc; i++) {
        next_strategy(r, choice);
        memcpy(all[i], choice, sizeof choice);
        rc = topt_strategies_add(s, choice, NULL);
    }
    return rc;
}

/* In order, backwards, then anywhere. */
static int reads(struct rng *r, const struct strategies *s, int32_t (*all)[WIDTH], int n)
{
    struct strategy_reader reader;
    int wrong = topt_strategy_reader_init(&reader, s, NULL) != 0;
    for (int i = 0; i < 3 * n && !wrong; i++) {
        int at = i < n ? i : i < 2 * n ? 2 * n - 1 - i : rng_below(r, n);
        wrong =
            memcmp(topt_strategy_read(&reader, (size_t)at), all[at], sizeof all[at]) != 0;
    }
    topt_strategy_reader_fini(&reader);
    return !wrong;
}

static void test_reading(void)
{
    static int32_t all[MANY][WIDTH];
    static const int32_t other[NUMBERS] = {4, 2, 0, 9, 7};
    const int32_t *number[WIDTH] = {NULL};
    struct rng r = {1};
    struct strategies s;
    ok(!fill(&r, &s, all, MANY), "%d strategies", MANY);
    ok(reads(&r, &s, all, MANY), "are read in order, backwards and anywhere");
    ok(topt_strategies_bytes(&s) < (int64_t)sizeof all / 2, "and take less than half");
    for (int i = 0; i < WIDTH; i += 3)
        number[i] = other;
    topt_strategies_rename(&s, number, WIDTH - 1);
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < WIDTH - 1; k += 3)
            all[i][k] = other[all[i][k]];
    ok(reads(&r, &s, all, MANY), "renamed, too");
    topt_strategies_fini(&s);
}

/* Lists whose costs are mixed: what stays has the strategy of its own list. */
static void test_collecting(void)
{
    enum { EACH = 200 };
    static int32_t all[LISTS][EACH][WIDTH];
    static struct pick pick[LISTS * EACH];
    struct strategies s[LISTS];
    const struct strategies *list[LISTS];
    struct topt_search_problem p = {.nops = WIDTH - 7, .nedges = 7};
    struct topt_frontier *f = topt_frontier_create(&p, NULL);
    struct rng r = {2};
    int wrong = 0, n = 0;
    for (int i = 0; i < LISTS; i++) {
        wrong += fill(&r, &s[i], all[i], EACH) != 0;
        list[i] = &s[i];
        for (int k = 0; k < EACH; k++, n++)
            pick[n] = (struct pick){{n + rng_below(&r, 400), 2000 - n - rng_below(&r, 9)},
                                    (uint32_t)i,
                                    (uint32_t)k};
    }
    ok(!topt_frontier_collect(f, list, LISTS, pick, (size_t)n, NULL) && !wrong,
       "%d points of %d lists", n, LISTS);
    struct topt_frontier_reader *reader = topt_frontier_reader(f, NULL);
    for (int i = 0; i < f->npoints; i++) {
        const struct topt_search_point *x = topt_frontier_read(reader, i);
        const int32_t *want = all[pick[i].list][pick[i].at];
        wrong += memcmp(x->config, want, (WIDTH - 7) * sizeof *want) != 0;
        wrong += memcmp(x->alt, want + WIDTH - 7, 7 * sizeof *want) != 0;
        wrong += i && (f->cost[i].memory <= f->cost[i - 1].memory ||
                       f->cost[i].time >= f->cost[i - 1].time);
    }
    ok(f->npoints > 10 && !wrong, "%d stay, with their strategies", f->npoints);
    topt_frontier_reader_destroy(reader);
    topt_frontier_destroy(f);
    for (int i = 0; i < LISTS; i++)
        topt_strategies_fini(&s[i]);
}

int main(void)
{
    test_reading();
    test_collecting();
    return done_testing();
}
