/* Cost files: written and read again they are the same problem; malformed ones are refused
 * with one line that names the place. */
#include "random_problem.h"
#include "tap.h"

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "JSON"},
    {"[]", "object"},
    {"{}", "format"},
    {"{\"format\":\"topt-costs/2\",\"ops\":[],\"edges\":[]}", "topt-costs/2"},
    {"{\"format\":\"topt-costs/1\",\"edges\":[]}", "ops is missing"},
    {"{\"format\":\"topt-costs/1\",\"ops\":[]}", "edges is missing"},
    {"{\"format\":\"topt-costs/1\",\"ops\":[],\"edges\":[],\"more\":1}", "more"},
#define DOC(ops, edges)                                                                  \
    "{\"format\":\"topt-costs/1\",\"ops\":[" ops "],\"edges\":[" edges "]}"
#define A1 "{\"name\":\"a\",\"configs\":[[1,2]]}"
#define B2 "{\"name\":\"b\",\"configs\":[[1,2],[3,4]]}"
    {DOC("7", ""), "ops[0]"},
    {DOC("{\"name\":\"a\",\"configs\":[[1,2]],\"colour\":1}", ""), "ops[0].colour"},
    {DOC("{\"configs\":[[1,2]]}", ""), "ops[0].name"},
    {DOC("{\"name\":\"\",\"configs\":[[1,2]]}", ""), "ops[0].name"},
    {DOC("{\"name\":\"a\",\"configs\":[]}", ""), "ops[0].configs is empty"},
    {DOC("{\"name\":\"a\",\"configs\":[[1]]}", ""), "ops[0].configs[0]"},
    {DOC("{\"name\":\"a\",\"configs\":[[1,2],[1,-2]]}", ""),
     "ops[0].configs[1]: time is neg"},
    {DOC("{\"name\":\"a\",\"configs\":[[1.5,2]]}", ""),
     "ops[0].configs[0]: memory must be"},
    {DOC("{\"name\":\"a\",\"configs\":[[\"1\",2]]}", ""), "ops[0].configs[0]"},
    {DOC("{\"name\":\"a\",\"configs\":[[1,9223372036854775808]]}", ""), "JSON"},
    {DOC(A1 "," A1, ""), "ops[1]: a second operator named 'a'"},
    {DOC(A1 "," B2, "{\"from\":\"a\",\"to\":\"c\",\"costs\":[]}"), "edges[0].to"},
    {DOC(A1 "," B2, "{\"from\":\"a\",\"costs\":[]}"), "edges[0].to is missing"},
    {DOC(A1 "," B2, "{\"from\":\"a\",\"to\":\"b\"}"), "edges[0].costs is missing"},
    {DOC(A1 "," B2, "{\"from\":\"a\",\"to\":\"b\",\"costs\":[],\"x\":1}"), "edges[0].x"},
    {DOC(A1 "," B2, "{\"from\":\"a\",\"to\":\"b\",\"costs\":[]}"),
     "edges[0].costs has 0"},
    {DOC(A1 "," B2, "{\"from\":\"a\",\"to\":\"b\",\"costs\":[[[[1,2]]]]}"),
     "edges[0].costs[0] has 1 elements; 'b' has 2"},
    {DOC(A1 "," B2, "{\"from\":\"a\",\"to\":\"b\",\"costs\":[[[[1,2]],[]]]}"),
     "edges[0].costs[0][1] must be"},
    {DOC(A1 "," B2, "{\"from\":\"a\",\"to\":\"b\",\"costs\":[[[[1,2]],[[1,2],[0,-1]]]]}"),
     "edges[0].costs[0][1][1]: time is negative"},
    {DOC(A1 "," B2,
         "{\"from\":\"a\",\"to\":\"b\",\"costs\":[[[[1,2]],[[1,2]]],[[[1,2]],[[1,2]]]]}"),
     "edges[0].costs has 2 elements; 'a' has 1"},
    {DOC(A1 "," B2, "{\"from\":\"a\",\"to\":\"a\",\"costs\":[[[[1,2]]]]}"), "cycle"},
    {DOC(A1 ",{\"name\":\"b\",\"configs\":[[1,2]]}",
         "{\"from\":\"a\",\"to\":\"b\",\"costs\":[[[[1,2]]]]},"
         "{\"from\":\"b\",\"to\":\"a\",\"costs\":[[[[1,2]]]]}"),
     "cycle"},
};

static void test_malformed(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct topt_costs_file *f;
        struct topt_error err = {0};
        int rc = topt_costs_read(bad[i].text, strlen(bad[i].text), &f, &err);
        if (!ok(rc && strstr(err.text, bad[i].says) && !strchr(err.text, '\n'),
                "refused: %s", err.text))
            printf("#   '%s' should say '%s'\n", bad[i].text, bad[i].says);
        if (!rc)
            topt_costs_destroy(f);
    }
}

static int equal_frontiers(const struct topt_search_problem *a,
                           const struct topt_search_problem *b)
{
    struct topt_frontier *f = NULL, *g = NULL;
    int same = !topt_search(a, NULL, &f, NULL) && !topt_search(b, NULL, &g, NULL) &&
               f->npoints == g->npoints;
    for (int i = 0; same && i < f->npoints; i++) {
        struct topt_cost c;
        /* A witness of one costs the same in the other: numbers kept their meaning. */
        same = !topt_search_cost(b, f->point[i].config, f->point[i].alt, &c, NULL) &&
               c.memory == g->point[i].cost.memory && c.time == g->point[i].cost.time;
    }
    topt_frontier_destroy(f);
    topt_frontier_destroy(g);
    return same;
}

static void name_all(struct random_problem *g)
{
    struct topt_search_op *op = (struct topt_search_op *)g->p.op;
    for (int i = 0; i < g->p.nops; i++) {
        char name[32];
        snprintf(name, sizeof name, "op \"%d\"\\\n", i);
        op[i].name = topt_arena_strdup(g->a, name);
    }
}

static int round_trip(struct random_problem *g)
{
    struct topt_costs_file *f = NULL;
    char *text = NULL, *again = NULL;
    struct topt_error err = {0};
    int good = !topt_costs_write(&g->p, &text, &err) &&
               !topt_costs_read(text, strlen(text), &f, &err) &&
               !topt_costs_write(topt_costs_problem(f), &again, &err) &&
               !strcmp(text, again) && equal_frontiers(&g->p, topt_costs_problem(f));
    for (int i = 0; good && i < g->p.nedges; i++) {
        const struct topt_table *a = g->p.edge[i].table,
                                *b = topt_costs_problem(f)->edge[i].table;
        good = b->from_classes <= a->from_classes && b->to_classes <= a->to_classes;
    }
    if (!good)
        printf("# %s\n", err.text);
    topt_costs_destroy(f);
    free(text);
    free(again);
    return good;
}

static void test_round_trips(void)
{
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng r = {seed};
        struct random_problem g;
        struct random_spec spec = {.shape = (enum shape)(seed % SHAPES),
                                   .nops = 4,
                                   .max_configs = 5,
                                   .max_alternatives = 3,
                                   .max_cost = 9,
                                   .classes_percent = 70};
        problem_make(&g, &r, spec);
        name_all(&g);
        wrong += !round_trip(&g);
        problem_free(&g);
    }
    is_int(wrong, 0, "200 problems: written, read, written again, solved");
}

static void test_refuses_to_write(void)
{
    struct rng r = {1};
    struct random_problem g;
    struct random_spec spec = {.shape = SHAPE_CHAIN,
                               .nops = 3,
                               .max_configs = 4,
                               .max_alternatives = 1,
                               .max_cost = 9,
                               .empty_percent = 100};
    struct topt_error err = {0};
    char *text;
    problem_make(&g, &r, spec);
    ok(topt_costs_write(&g.p, &text, &err) && err.code == TOPT_ERR_INVAL,
       "same names: %s", err.text);
    name_all(&g);
    ok(topt_costs_write(&g.p, &text, &err) && err.code == TOPT_ERR_INVAL,
       "empty entry: %s", err.text);
    problem_free(&g);
}

int main(void)
{
    test_malformed();
    test_round_trips();
    test_refuses_to_write();
    return done_testing();
}
