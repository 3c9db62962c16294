/* Cost files: written and read again they are the same problem; malformed ones are refused
 * with one line that names the place. */
#include "random_problem.h"
#include "costs_text.h"
#include "tap.h"
#include "topt_text.h"

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
    {DOC("{\"name\":7,\"configs\":[[1,2]]}", ""), "ops[0].name must be a string"},
    {DOC("{\"configs\":[[1,2]],\"name\":null}", ""), "ops[0].name must be a string"},
    {"{\"format\":1,\"ops\":[],\"edges\":[]}", "format must be a string"},
    {DOC("", "{\"costs\":[[[[1,2]]]],\"to\":[]}"), "edges[0].to must be a string"},
    {"{\"ops\":[],\"ops\":[]}", "ops stands there twice"},
    {DOC("", "{\"from\":\"a\",\"from\":\"a\"}"), "edges[0].from stands there twice"},
    {DOC("{\"name\":\"\",\"configs\":[[1,2]]}", ""), "ops[0].name"},
    {DOC("{\"name\":\"a\",\"configs\":[]}", ""), "ops[0].configs is empty"},
    {DOC("{\"name\":\"a\",\"configs\":[[1]]}", ""), "ops[0].configs[0]"},
    {DOC("{\"name\":\"a\",\"configs\":[[1,2],[1,-2]]}", ""),
     "ops[0].configs[1]: time is neg"},
    {DOC("{\"name\":\"a\",\"configs\":[[1.5,2]]}", ""),
     "ops[0].configs[0]: memory must be"},
    {DOC("{\"name\":\"a\",\"configs\":[[\"1\",2]]}", ""), "ops[0].configs[0]"},
    {DOC("{\"name\":\"a\",\"configs\":[[1,9223372036854775808]]}", ""),
     "ops[0].configs[0]: time is more"},
    {DOC("{\"name\":\"a\",\"configs\":[[1,2],[1,1e3]]}", ""),
     "ops[0].configs[1]: time must be"},
    {DOC("{\"name\":\"a\",\"name\":\"b\",\"configs\":[[1,2]]}", ""),
     "ops[0].name stands there twice"},
    {DOC("{\"name\":\"a\",\"configs\":[[1,2],]}", ""), "JSON"},
    {DOC("{\"name\":\"a\",\"configs\":[[01,2]]}", ""), "ops[0].configs[0]"},
    {DOC("{\"name\":\"\\ud800\",\"configs\":[[1,2]]}", ""), "JSON"},
    {DOC("{\"name\":\"\xff\",\"configs\":[[1,2]]}", ""), "UTF-8"},
    {DOC("", "") "x", "the end of the document"},
    {"{\"format\":\"topt-costs/1\",\"ops\":{},\"edges\":[]}", "ops must be a list"},
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
        int rc = read_costs(bad[i].text, strlen(bad[i].text), &f, &err);
        if (!ok(rc && strstr(err.text, bad[i].says) && !strchr(err.text, '\n'),
                "refused: %s", err.text))
            printf("#   '%s' should say '%s'\n", bad[i].text, bad[i].says);
        if (!rc)
            topt_costs_destroy(f);
    }
}

/* Which operator of b has the name of a's operator i. */
static int namesake(const struct topt_search_problem *a,
                    const struct topt_search_problem *b, int i)
{
    for (int k = 0; k < b->nops; k++)
        if (!strcmp(a->op[i].name, b->op[k].name))
            return k;
    return -1;
}

/* A witness of one costs the same in the other: numbers kept their meaning. */
static int equal_frontiers(const struct topt_search_problem *a,
                           const struct topt_costs_file *read)
{
    const struct topt_search_problem *b = topt_costs_problem(read);
    struct topt_frontier *f = NULL, *g = NULL;
    int32_t config[16], alt[64];
    int same = a->nops <= 16 && a->nedges <= 64 && !topt_search(a, NULL, &f, NULL) &&
               !topt_search(b, NULL, &g, NULL) && f->npoints == g->npoints;
    struct topt_frontier_reader *r = same ? topt_frontier_reader(f, NULL) : NULL;
    for (int i = 0; same && i < f->npoints; i++) {
        const struct topt_search_point *x = topt_frontier_read(r, i);
        struct topt_cost c;
        for (int k = 0; k < a->nops; k++)
            config[namesake(a, b, k)] = x->config[k];
        for (int k = 0; k < a->nedges; k++)
            alt[k] = x->alt[topt_costs_edges(read)[k]];
        same = !topt_search_cost(b, config, alt, &c, NULL) &&
               c.memory == g->cost[i].memory && c.time == g->cost[i].time;
    }
    topt_frontier_reader_destroy(r);
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

static struct topt_costs_file *reread(const struct topt_search_problem *p,
                                      char **ret_text)
{
    struct topt_costs_file *f = NULL;
    struct topt_error err = {0};
    if (topt_costs_write(p, ret_text, &err) ||
        read_costs(*ret_text, strlen(*ret_text), &f, &err))
        printf("# %s\n", err.text);
    return f;
}

/* The problem with its operators and edges in another order. */
static void shuffle(struct random_problem *g)
{
    int n = g->p.nops, place[16];
    struct topt_search_op *op = TOPT_NEW(g->a, n, struct topt_search_op);
    struct topt_search_edge *edge = (struct topt_search_edge *)g->p.edge;
    for (int i = 0; i < n; i++)
        place[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = rng_below(g->rng, i + 1), swap = place[i];
        place[i] = place[k];
        place[k] = swap;
    }
    for (int i = 0; op && i < n; i++)
        op[place[i]] = g->p.op[i];
    for (int i = 0; i < g->p.nedges; i++) {
        edge[i].from = place[edge[i].from];
        edge[i].to = place[edge[i].to];
    }
    g->p.op = op;
    for (int i = g->p.nedges - 1; i > 0; i--) {
        int k = rng_below(g->rng, i + 1);
        struct topt_search_edge swap = edge[i];
        edge[i] = edge[k];
        edge[k] = swap;
    }
}

static int smaller_tables(const struct topt_search_problem *a,
                          const struct topt_costs_file *read)
{
    int good = 1;
    for (int i = 0; i < a->nedges; i++) {
        const struct topt_table *before = a->edge[topt_costs_edges(read)[i]].table;
        const struct topt_table *after = topt_costs_problem(read)->edge[i].table;
        good = good && after->from_classes <= before->from_classes &&
               after->to_classes <= before->to_classes;
    }
    return good;
}

/* Written and read it is the same problem; in whatever order it was written, it is read as
 * the same bytes. */
static int round_trip(struct random_problem *g)
{
    char *text[3] = {0};
    struct topt_costs_file *f[3] = {reread(&g->p, &text[0])};
    int good = f[0] && equal_frontiers(&g->p, f[0]) && smaller_tables(&g->p, f[0]);
    shuffle(g);
    f[1] = reread(&g->p, &text[1]);
    for (int i = 0; good && i < 2; i++) {
        char *again = NULL;
        f[2] = f[i] ? reread(topt_costs_problem(f[i]), &text[2]) : NULL;
        good = f[2] && !topt_costs_write(topt_costs_problem(f[2]), &again, NULL) &&
               !strcmp(again, text[2]) && (!i || !strcmp(again, text[1]));
        free(text[1]);
        text[1] = again;
        free(text[2]);
        text[2] = NULL;
        topt_costs_destroy(f[2]);
    }
    for (int i = 0; i < 2; i++) {
        topt_costs_destroy(f[i]);
        free(text[i]);
    }
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
    is_int(wrong, 0, "200 problems, in any order: written, read, written again, solved");
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

/* As a stream, through many buffers: blanks, then a document with its fields turned round. */
static void test_stream(void)
{
    static const char text[] =
        "{\"edges\":[{\"costs\":[[[[1,2]],[[3,4]]]],\"to\":\"b\",\"from\":\"\\u0061\"}],"
        "\"ops\":[{\"configs\":[[5,6],[7,8]],\"name\":\"b\"},{\"name\":\"a\","
        "\"configs\":[[9,9]]}],\"format\":\"topt-costs/1\"}";
    FILE *file = tmpfile();
    struct topt_costs_file *f = NULL;
    struct topt_error err = {0};
    for (int i = 0; file && i < 200000; i++)
        putc(i % 80 ? ' ' : '\n', file);
    if (file) {
        fputs(text, file);
        rewind(file);
    }
    if (ok(file && !topt_costs_load(file, &f, &err), "a stream is read %s", err.text)) {
        const struct topt_search_problem *p = topt_costs_problem(f);
        ok(p->nops == 2 && !strcmp(p->op[0].name, "a") && p->op[1].nconfigs == 2 &&
               p->nedges == 1 && p->edge[0].from == 0,
           "producers come first");
        topt_costs_destroy(f);
    }
    if (file)
        fclose(file);
}

/* A name may have 4,096 bytes, whatever its characters take, and no more. */
static void test_long_names(void)
{
    static const char *const character[] = {"x", "\xc3\xa9", "\\u00e9",
                                            "\xf0\x9f\x90\xb3"};
    static const int bytes[] = {1, 2, 2, 4};
    for (int i = 0; i < 8; i++) {
        struct topt_text t = {0};
        struct topt_costs_file *f = NULL;
        struct topt_error err = {0};
        topt_text_add(&t,
                      "{\"format\":\"topt-costs/1\",\"edges\":[],\"ops\":["
                      "{\"configs\":[[1,1]],\"name\":\"%s",
                      i & 1 ? "x" : "");
        for (int n = 0; n < 4096; n += bytes[i / 2])
            topt_text_add(&t, "%s", character[i / 2]);
        topt_text_add(&t, "\"}]}");
        int rc = read_costs(t.s, t.len, &f, &err);
        if (i & 1)
            ok(rc && strstr(err.text, "more than 4096 bytes"), "4,097 bytes: %s",
               err.text);
        else
            ok(!rc && strlen(topt_costs_problem(f)->op->name) == 4096,
               "a name of 4,096 bytes, %d a character %s", bytes[i / 2], err.text);
        topt_costs_destroy(f);
        free(t.s);
    }
}

/* ---- files without end ---- */

/* 'head', then 'again' for ever; how much was asked for. */
struct endless {
    const char *head, *again;
    size_t read;
};

static ssize_t endless_read(void *cookie, char *buf, size_t size)
{
    struct endless *e = cookie;
    size_t head = strlen(e->head), again = strlen(e->again);
    for (size_t i = 0; i < size; i++, e->read++)
        buf[i] = e->read < head ? e->head[e->read] : e->again[(e->read - head) % again];
    return (ssize_t)size;
}

/* A billion of anything is refused soon, whatever follows: by a limit or as no JSON. */
static void test_endless(void)
{
#define OPS "{\"format\":\"topt-costs/1\",\"ops\":["
#define EDGE                                                                             \
    "{\"format\":\"topt-costs/1\",\"edges\":[{\"from\":\"a\",\"to\":\"b\",\"costs\":["
    static const struct {
        const char *head, *again, *says;
        size_t soon;
    } cases[] = {
        {OPS "{\"name\":\"a\",\"configs\":[", "[1,1],", "configurations", 8 << 20},
        {OPS, "{\"name\":\"a\",\"configs\":[[1,1]]},", "second operator", 1 << 16},
        {OPS "{\"name\":\"", "a", "a string of more than", 1 << 16},
        {OPS, "[", "ops[0]", 1 << 16},
        {OPS "{\"name\":\"a\",\"configs\":[[", "9", "configs[0]", 1 << 16},
        {EDGE "[", "[[1,1]],", "a row of more than", 10 << 20},
        {EDGE, "[[[1,1]]],", "rows", 12 << 20},
        {"{\"format\":\"topt-costs/1\",\"junk\":", "{\"a\":", "junk", 1 << 16},
        {"", "junk", "JSON", 1 << 16},
        {"\x7f"
         "ELF",
         "\x01\x02", "JSON", 1 << 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct endless e = {cases[i].head, cases[i].again, 0};
        struct topt_costs_file *f = NULL;
        struct topt_error err = {0};
        FILE *from = fopencookie(&e, "r", (cookie_io_functions_t){.read = endless_read});
        int rc = from ? topt_costs_load(from, &f, &err) : 0;
        ok(rc && strstr(err.text, cases[i].says) && !strchr(err.text, '\n') &&
               e.read <= cases[i].soon,
           "a list, a name or junk without end: after %zu bytes, %.100s", e.read,
           err.text);
        if (from)
            fclose(from);
    }
}

int main(void)
{
    test_stream();
    test_endless();
    test_long_names();
    test_malformed();
    test_round_trips();
    test_refuses_to_write();
    return done_testing();
}
