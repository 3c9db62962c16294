/* test_allocate.c - plans of a queue held to plain backfill, to what they promise, and to the
 * best of all plans; the MILP's text; sentences.
 *
 * Usage: allocate_plans TOPT-QUEUE [N]: the solver need not be there; N: print so many small queues,
 * a line of JSON each, with the sums of ends found for them, for another oracle (milp.py). */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "oracle.h"
#include "sizes.h"
#include "tap.h"
#include "topt_text.h"

static uint64_t state;

/* xorshift64*, Vigna, ACM TOMS 42(4), 2016. */
static int64_t draw(int64_t least, int64_t most)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return least +
           (int64_t)((state * 2685821657736338717u >> 33) % (uint64_t)(most - least + 1));
}

struct instance {
    struct topt_alloc_problem p;
    struct topt_alloc_node node[NODES];
    struct topt_alloc_held held[NODES];
    struct topt_alloc_job job[JOBS];
    struct topt_alloc_shape shape[JOBS][SHAPES];
    unsigned char serves[3][2];
};

static void make_job(struct instance *x, size_t i, int is_rigid)
{
    struct topt_alloc_job *j = &x->job[i];
    int64_t work = draw(8, 60), cpus = draw(0, 2), share = draw(0, 40);
    j->id = (int64_t)i + 1;
    j->shape = x->shape[i];
    j->nshapes = is_rigid ? 1 : (int)draw(2, SHAPES - 1);
    j->asked = (int)draw(0, j->nshapes - 1);
    j->from_s = draw(0, 9) ? 0 : draw(0, 20);
    for (int k = 0; k < j->nshapes; k++) {
        int64_t gpus = is_rigid ? draw(1, 4) : 1 << k, nodes = gpus > 2 ? draw(1, 2) : 1;
        x->shape[i][k] = (struct topt_alloc_shape){
            .nodes = nodes,
            .each = {gpus / nodes, cpus * gpus / nodes, draw(0, 30)},
            .run_s = 1 + work * share / 100 + work * (100 - share) / 100 / gpus,
            .is_whole = !draw(0, 9),
            .serves = x->serves[draw(0, 5) ? 0 : draw(1, 2)]};
    }
}

static void make(struct instance *x, size_t njobs, int all_rigid)
{
    static const unsigned char serves[3][2] = {{1, 1}, {1, 0}, {0, 1}};
    *x = (struct instance){.p = {.most_permille = 1250,
                                 .least_permille = 1050,
                                 .share_permille = draw(0, 3) ? 1000 : 500}};
    memcpy(x->serves, serves, sizeof serves);
    x->p.nnodes = (size_t)draw(1, 3);
    for (size_t i = 0; i < x->p.nnodes; i++)
        x->node[i] =
            (struct topt_alloc_node){{draw(2, 4), draw(4, 8), 100}, i == x->p.nnodes - 1};
    for (size_t i = 0; i < x->p.nnodes; i++)
        if (draw(0, 1)) {
            int64_t from = draw(0, 3) ? 0 : draw(5, 20);
            x->held[x->p.nheld++] = (struct topt_alloc_held){
                100 + (int64_t)i, i, {draw(1, 2), 1, 10}, from + draw(1, 25), from};
        }
    x->p.njobs = njobs;
    for (size_t i = 0; i < njobs; i++)
        make_job(x, i, all_rigid || !draw(0, 2));
    x->p.node = x->node;
    x->p.held = x->held;
    x->p.job = x->job;
}

/* Plain backfill, and whether anything was said to be free that isn't. */
static int is_backfill(const struct topt_alloc_problem *p,
                       const struct topt_alloc_spot *is)
{
    int64_t start[JOBS];
    backfill(p, start);
    for (size_t i = 0; i < p->njobs; i++)
        if (start[i] != is[i].start_s)
            return 0;
    return 1;
}

static int keeps_promises(const struct topt_alloc_problem *p,
                          const struct topt_alloc_plan *a)
{
    static struct grid g;
    const struct least bound = {.p = p, .permille = a->permille};
    int64_t sum = 0;
    int good = 1;
    grid_init(&g, p);
    for (size_t i = 0; i < p->njobs; i++) {
        const struct topt_alloc_job *j = &p->job[i];
        const struct topt_alloc_spot *s = &a->spot[i], *was = &a->asked[i];
        const struct topt_alloc_shape *shape = &j->shape[s->shape];
        int64_t end = topt_allocate_end(j, s), asked = topt_allocate_end(j, was);
        good &= asked < 0 || (s->start_s >= j->from_s && end <= asked);
        good &= j->nshapes > 1 || s->start_s <= was->start_s;
        good &= may(&bound, i, s->shape);
        sum += asked < 0 ? 0 : end;
        for (int64_t k = 0; s->start_s >= 0 && k < shape->nodes; k++) {
            size_t node = a->node[s->first + (size_t)k];
            good &= shape->serves[p->node[node].set] &&
                    grid_add(&g, node, takes(p, node, shape), s->start_s, end, -1);
            for (int64_t m = 0; m < k; m++)
                good &= a->node[s->first + (size_t)m] != node;
        }
    }
    return good && sum == a->ends_s;
}

/* ---- random queues ----------------------------------------------------------------- */

static void test_rigid(int tries)
{
    struct instance x;
    int bad = 0;
    for (int n = 0; n < tries; n++) {
        struct topt_alloc_plan a;
        make(&x, (size_t)draw(1, JOBS), 1);
        if (topt_allocate(&x.p, NULL, &a, NULL))
            abort();
        bad += !is_backfill(&x.p, a.spot) || !is_backfill(&x.p, a.asked) ||
               a.ends_s != a.as_asked_s || !keeps_promises(&x.p, &a);
        topt_allocate_fini(&a);
    }
    is_int(bad, 0, "%d queues of rigid jobs are plain backfill", tries);
}

static void test_promises(int tries)
{
    struct instance x;
    int bad = 0, better = 0;
    for (int n = 0; n < tries; n++) {
        struct topt_alloc_plan a;
        make(&x, (size_t)draw(1, JOBS), 0);
        if (topt_allocate(&x.p, NULL, &a, NULL))
            abort();
        bad += !is_backfill(&x.p, a.asked) || !keeps_promises(&x.p, &a) ||
               a.ends_s > a.as_asked_s;
        better += a.ends_s < a.as_asked_s;
        topt_allocate_fini(&a);
    }
    is_int(bad, 0, "%d queues keep what is promised", tries);
    ok(better > tries / 4, "%d of them end earlier", better);
}

/* The plan's sum of ends beyond the least one's, as a share of what could be gained. */
static void test_least(int tries, char *queue)
{
    const struct topt_alloc_solver solver = {topt_milp_ask, queue};
    int has_queue = !access(queue, X_OK), bad = 0, asked = 0, of_milp = 0, exact[2] = {0};
    int64_t could = 0, gained[2] = {0};
    struct instance x;
    for (int n = 0; asked < tries; n++) {
        struct topt_alloc_plan a, b;
        int64_t start[JOBS];
        make(&x, (size_t)draw(2, 4), 0);
        backfill(&x.p, start);
        int all_start = 1;
        for (size_t i = 0; i < x.p.njobs; i++)
            all_start &= start[i] >= 0;
        if (!all_start)
            continue;
        if (topt_allocate(&x.p, NULL, &a, NULL) ||
            topt_allocate(&x.p, has_queue && n % 5 == 0 ? &solver : NULL, &b, NULL))
            abort();
        int64_t least = least_sum(&x.p, start, a.permille, a.as_asked_s);
        bad += least > b.ends_s || b.ends_s > a.ends_s || !keeps_promises(&x.p, &b);
        asked++;
        of_milp += b.has_milp;
        could += a.as_asked_s - least;
        gained[0] += a.as_asked_s - a.ends_s;
        gained[1] += b.as_asked_s - b.ends_s;
        exact[0] += a.ends_s == least;
        exact[1] += b.ends_s == least;
        topt_allocate_fini(&a);
        topt_allocate_fini(&b);
    }
    is_int(bad, 0, "of %d queues none is better than the best, and none worse for a MILP",
           asked);
    printf("# greedy: %d of %d are best, %.1f %% of what could be gained\n", exact[0],
           asked, 100.0 * (double)gained[0] / (double)could);
    printf("# with topt-queue%s for every fifth: %d of %d are best, %.1f %%; %d plans "
           "are the MILP's\n",
           has_queue ? "" : " (not there)", exact[1], asked,
           100.0 * (double)gained[1] / (double)could, of_milp);
    ok(gained[0] * 10 >= could * 9, "nine tenths of what could be gained are");
}

/* ---- for another oracle ------------------------------------------------------------ */

static void print_shape(const struct instance *x, const struct topt_alloc_shape *s,
                        int is_first)
{
    printf("%s{\"nodes\":%lld,\"takes\":[%lld,%lld,%lld],\"whole\":%d,\"run\":%lld,"
           "\"serves\":[",
           is_first ? "" : ",", (long long)s->nodes, (long long)s->each.gpus,
           (long long)s->each.cpus, (long long)s->each.memory_mib, s->is_whole,
           (long long)s->run_s);
    for (size_t i = 0; i < x->p.nnodes; i++)
        printf("%s%d", i ? "," : "", s->serves[x->node[i].set]);
    printf("]}");
}

static void print_instance(const struct instance *x, const struct topt_alloc_plan *a)
{
    printf("{\"permille\":%lld,\"share\":%lld,\"nodes\":[", (long long)a->permille,
           (long long)x->p.share_permille);
    for (size_t i = 0; i < x->p.nnodes; i++)
        printf("%s[%lld,%lld,%lld]", i ? "," : "", (long long)x->node[i].has.gpus,
               (long long)x->node[i].has.cpus, (long long)x->node[i].has.memory_mib);
    printf("],\"held\":[");
    for (size_t i = 0; i < x->p.nheld; i++)
        printf("%s[%zu,%lld,%lld,%lld,%lld,%lld]", i ? "," : "", x->held[i].node,
               (long long)x->held[i].takes.gpus, (long long)x->held[i].takes.cpus,
               (long long)x->held[i].takes.memory_mib, (long long)x->held[i].from_s,
               (long long)x->held[i].to_s);
    printf("],\"jobs\":[");
    for (size_t i = 0; i < x->p.njobs; i++) {
        const struct topt_alloc_job *j = &x->job[i];
        printf("%s{\"from\":%lld,\"start\":%lld,\"asked\":%d,\"shapes\":[", i ? "," : "",
               (long long)j->from_s, (long long)a->asked[i].start_s, j->asked);
        for (int k = 0; k < j->nshapes; k++)
            print_shape(x, &j->shape[k], !k);
        printf("]}");
    }
    printf("],");
}

/* Queues in which all jobs start as they asked, and the sums of ends of the greedy plan, of
 * that with the solver and of the best. */
static int print_queues(int n, char *queue)
{
    const struct topt_alloc_solver solver = {topt_milp_ask, queue};
    struct instance x;
    while (n > 0) {
        struct topt_alloc_plan a, b;
        int64_t start[JOBS];
        int all_start = 1;
        make(&x, (size_t)draw(2, 4), 0);
        backfill(&x.p, start);
        for (size_t i = 0; i < x.p.njobs; i++)
            all_start &= start[i] >= 0;
        if (!all_start)
            continue;
        if (topt_allocate(&x.p, NULL, &a, NULL) ||
            topt_allocate(&x.p, access(queue, X_OK) ? NULL : &solver, &b, NULL))
            return 1;
        print_instance(&x, &a);
        printf("\"asked\":%lld,\"greedy\":%lld,\"milp\":%lld,\"best\":%lld}\n",
               (long long)a.as_asked_s, (long long)a.ends_s, (long long)b.ends_s,
               (long long)least_sum(&x.p, start, a.permille, a.as_asked_s));
        topt_allocate_fini(&a);
        topt_allocate_fini(&b);
        n--;
    }
    return 0;
}

/* Queues that are too large for the best of all plans. */
static void test_solver(int tries, char *queue)
{
    const struct topt_alloc_solver solver = {topt_milp_ask, queue};
    int of_milp = 0, bad = 0;
    int64_t gained[2] = {0};
    struct instance x;
    for (int n = 0; n < tries && !access(queue, X_OK); n++) {
        struct topt_alloc_plan a, b;
        make(&x, JOBS, 0);
        if (topt_allocate(&x.p, NULL, &a, NULL) || topt_allocate(&x.p, &solver, &b, NULL))
            abort();
        bad += !keeps_promises(&x.p, &b) || b.ends_s > a.ends_s ||
               b.has_milp != (b.ends_s < a.ends_s);
        of_milp += b.has_milp;
        gained[0] += a.as_asked_s - a.ends_s;
        gained[1] += b.as_asked_s - b.ends_s;
        topt_allocate_fini(&a);
        topt_allocate_fini(&b);
    }
    printf(
        "# %d of %d plans are the MILP's: %lld s gained in the sum, and %lld without\n",
        of_milp, tries, (long long)gained[1], (long long)gained[0]);
    is_int(bad, 0, "the MILP keeps what is promised, and is kept where it gains");
}

/* ---- a large queue ----------------------------------------------------------------- */

/* Of work: what takes about 2 s of a slow processor. */
enum { MANY_NODES = 125, MANY_JOBS = 1000, MANY_SHAPES = 6, MANY_WORK = 300000000 };

static void test_many(void)
{
    static const unsigned char serves[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    static struct topt_alloc_node node[MANY_NODES];
    static struct topt_alloc_held held[MANY_NODES];
    static struct topt_alloc_job job[MANY_JOBS];
    static struct topt_alloc_shape shape[MANY_JOBS][MANY_SHAPES];
    struct topt_alloc_problem p = {node, held, job,  MANY_NODES, MANY_NODES, MANY_JOBS,
                                   0,    1250, 1050, 1000,       0};
    for (size_t i = 0; i < MANY_NODES; i++) {
        node[i] = (struct topt_alloc_node){{8, 64, 1 << 20}, (int)(i % 3)};
        held[i] =
            (struct topt_alloc_held){9000, i, {draw(0, 8), 8, 1000}, draw(600, 86400), 0};
    }
    for (size_t i = 0; i < MANY_JOBS; i++) {
        const unsigned char *of = serves[draw(0, 2)];
        int64_t work = draw(3600, 500000), share = draw(0, 20);
        for (int k = 0; k < MANY_SHAPES; k++) {
            int64_t gpus = 1 << k, each = gpus < 8 ? gpus : 8;
            shape[i][k] = (struct topt_alloc_shape){
                .nodes = gpus / each,
                .each = {each, 4 * each, 1000 * each},
                .run_s = 1 + work * share / 100 + work * (100 - share) / 100 / gpus,
                .serves = of};
        }
        job[i] = (struct topt_alloc_job){
            (int64_t)i + 1, shape[i], draw(0, 3) ? MANY_SHAPES : 1, 0, 0, 0};
        job[i].asked = (int)draw(0, job[i].nshapes - 1);
    }
    struct topt_alloc_plan a;
    clock_t begin = clock();
    ok(!topt_allocate(&p, NULL, &a, NULL), "1,000 jobs on 1,000 GPUs of three kinds");
    printf(
        "# %.2f s of a processor, %.1f million windows of nodes looked at; sum of ends "
        "%.1f %% of as asked\n",
        (double)(clock() - begin) / CLOCKS_PER_SEC, (double)a.work / 1e6,
        100.0 * (double)a.ends_s / (double)a.as_asked_s);
    ok(a.ends_s < a.as_asked_s, "they end earlier");
    ok(a.work > 0 && a.work < MANY_WORK, "a round is %lld windows of nodes",
       (long long)a.work);
    topt_allocate_fini(&a);
}

/* ---- small ones -------------------------------------------------------------------- */

static const unsigned char all[1] = {1};

static struct topt_alloc_shape shape_of(int64_t gpus, int64_t run_s)
{
    return (struct topt_alloc_shape){
        .nodes = 1, .each = {gpus, gpus, 0}, .run_s = run_s, .serves = all};
}

/* A node of 4 GPUs, of which job 100 has 2 for an hour. */
static void test_sentences(void)
{
    const struct topt_alloc_node node = {{4, 8, 100}, 0};
    const struct topt_alloc_held held = {100, 0, {2, 2, 0}, 3600, 0};
    const struct topt_alloc_shape shape[] = {shape_of(2, 4000), shape_of(4, 2000)};
    const struct topt_alloc_shape huge = shape_of(8, 60);
    const struct topt_alloc_job job[] = {{7, shape, 2, 1, 0, 0}, {8, &huge, 1, 0, 0, 0}};
    const struct topt_alloc_problem p = {&node, &held, job,  1,    1, 2,
                                         0,     1250,  1050, 1000, 0};
    struct topt_alloc_plan a;
    char why[240];
    if (topt_allocate(&p, NULL, &a, NULL))
        abort();
    is_int(a.spot[0].shape, 0, "2 GPUs now end earlier than 4 later");
    is_int(a.permille, 1050, "who ask for more than there is are held short");
    ok(!topt_allocate_why(&p, &a, 0, why, sizeof why, NULL) &&
           !strcmp(why, "with 2 GPUs it ends in 1.1 h, 26 min earlier than with the 4 "
                        "that it asked for; 4 would end it 26 min later: job 100 has "
                        "them for 1.0 h"),
       "%s", why);
    ok(!topt_allocate_why(&p, &a, 1, why, sizeof why, NULL) &&
           strstr(why, "large enough"),
       "%s", why);
    is_int(a.spot[1].start_s, -1, "what is nowhere never starts");
    topt_allocate_fini(&a);
}

/* More GPUs than the bound allows are left idle, but for who asked for them. */
static void test_bound(void)
{
    const struct topt_alloc_node node = {{4, 8, 100}, 0};
    const struct topt_alloc_shape shape[] = {shape_of(1, 1000), shape_of(4, 900)};
    struct topt_alloc_job job = {7, shape, 2, 0, 0, 0};
    const struct topt_alloc_problem p = {&node, NULL, &job, 1,    0, 1,
                                         0,     1250, 1050, 1000, 0};
    struct topt_alloc_plan a;
    char why[240];
    for (job.asked = 0; job.asked < 2; job.asked++) {
        if (topt_allocate(&p, NULL, &a, NULL))
            abort();
        is_int(a.spot[0].shape, job.asked, "it stays with what it asked for");
        ok(job.asked || (!topt_allocate_why(&p, &a, 0, why, sizeof why, NULL) &&
                         strstr(why, "1 min earlier and are more than")),
           "%s", job.asked ? "4" : why);
        topt_allocate_fini(&a);
    }
    job.asked = 2;
    struct topt_error err;
    ok(topt_allocate(&p, NULL, &a, &err) == -1 && err.code == TOPT_ERR_INVAL, "%s",
       err.text);
}

static int fail(void *context, const struct topt_milp *m, unsigned char *ret,
                struct topt_error *err)
{
    (void)ret;
    *(size_t *)context = m->ncols;
    return topt_fail(err, TOPT_ERR_INFEASIBLE, "no");
}

static void test_milp(void)
{
    char path[] = "/tmp/topt-test-milp.XXXXXX";
    int64_t cost[] = {-3, 2}, value[] = {1, 5, 1}, most[] = {1, 7};
    size_t begin[] = {0, 2, 3};
    int row[] = {0, 1, 0};
    unsigned char is_equal[] = {1, 0};
    struct topt_milp is, m = {2, 2, 3, cost, begin, row, value, most, is_equal};
    struct topt_error err;
    close(mkstemp(path));
    ok(!topt_milp_write(&m, path, &err) && !topt_milp_read(path, &is, &err), "a problem");
    ok(is.ncols == 2 && is.nrows == 2 && !memcmp(is.cost, cost, sizeof cost) &&
           !memcmp(is.value, value, sizeof value) && !memcmp(is.row, row, sizeof row) &&
           !memcmp(is.most, most, sizeof most) && is.begin[1] == 2 && is.is_equal[0],
       "is read as it was written");
    topt_milp_fini(&is);
    static const char *const bad[] = {
        "", "topt-milp/1 2 2", "topt-milp/1 1 1 1\n1 1\n0 1 1 1",
        "topt-milp/1 1 1 1\n1 1\n0 2 0 1 0 1", "topt-milp/1 1 1 2\n1 1\n0 1 0 1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(!topt_write_file(path, bad[i], strlen(bad[i]), &err) &&
               topt_milp_read(path, &is, &err) == -1 && err.code == TOPT_ERR_INVAL,
           "'%s' is none", bad[i]);
    unlink(path);
    unsigned char one[2];
    ok(topt_milp_ask("/no/such/topt-queue", &m, one, &err) == -1, "%s", err.text);
    struct instance x;
    struct topt_alloc_plan a, b;
    size_t seen = 0;
    const struct topt_alloc_solver failing = {fail, &seen};
    for (int is_best = 1; is_best;) { /* else it isn't asked */
        make(&x, 4, 0);
        if (topt_allocate(&x.p, NULL, &a, NULL))
            abort();
        is_best = a.is_best;
        if (is_best)
            topt_allocate_fini(&a);
    }
    if (topt_allocate(&x.p, &failing, &b, NULL))
        abort();
    ok(seen > 0 && a.ends_s == b.ends_s && !b.has_milp,
       "a solver that fails changes nothing");
    topt_allocate_fini(&a);
    topt_allocate_fini(&b);
}

/* ---- what is kept free, and who stops ---------------------------------------------- */

/* 8 GPUs, of which 3 of a job's remain as it grows to 4 or to 8. */
static void test_reserve(void)
{
    const struct topt_alloc_node node = {{8, 8, 100}, 0};
    const struct topt_alloc_held held = {100, 0, {1, 1, 0}, 3600, 0};
    const struct topt_alloc_shape shape[] = {shape_of(1, 4000), shape_of(2, 2000),
                                             shape_of(4, 1000), shape_of(7, 600)};
    struct topt_alloc_job job = {7, shape, 4, 0, 0, 0};
    struct topt_alloc_problem p = {&node, &held, &job, 1, 1, 1, 0, 1250, 1250, 1000, 0};
    /* It asks for an eighth of the GPUs, so that seven eighths of the reserve hold. */
    static const int64_t reserve[] = {0, 428, 572, 950};
    static const int gets[] = {3, 2, 1, 0};
    struct topt_alloc_plan a;
    for (int i = 0; i < 4; i++) {
        p.reserve_permille = reserve[i];
        if (topt_allocate(&p, NULL, &a, NULL))
            abort();
        is_int(a.spot[0].shape, gets[i], "%lld thousandths stay free",
               (long long)reserve[i]);
        topt_allocate_fini(&a);
    }
    job.asked = 3;
    if (topt_allocate(&p, NULL, &a, NULL))
        abort();
    is_int(a.spot[0].shape, 3, "but for who asked for them");
    topt_allocate_fini(&a);
}

/* Job 100 has grown to all 4 GPUs for an hour; job 7 was to end in 100 s. */
static void test_stops(void)
{
    const struct topt_alloc_node node[] = {{{4, 8, 100}, 0}, {{1, 8, 100}, 0}};
    const struct topt_alloc_held held[] = {{100, 0, {4, 2, 0}, 3600, 0},
                                           {101, 1, {1, 2, 0}, 90, 0}};
    const struct topt_alloc_shape grown[] = {shape_of(2, 7300), shape_of(4, 3700)};
    const struct topt_alloc_shape two = shape_of(2, 90);
    struct topt_alloc_job job = {7, &two, 1, 0, 0, 100};
    struct topt_alloc_job running[] = {{100, grown, 2, 0, 0, 8000},
                                       {101, grown, 2, 0, 0, 8000}};
    struct topt_alloc_problem p = {node, held, &job, 2, 2, 1, 0, 1250, 1250, 1000, 0};
    unsigned char stop[2];
    ok(!topt_allocate_stops(&p, running, 2, stop, NULL) && stop[0] && !stop[1],
       "the job that grew stops");
    job.bound_s = 4000;
    ok(!topt_allocate_stops(&p, running, 2, stop, NULL) && !stop[0] && !stop[1],
       "none does where nobody is late");
    job.bound_s = 100;
    running[0].bound_s = 150;
    ok(!topt_allocate_stops(&p, running, 2, stop, NULL) && !stop[0] && !stop[1],
       "nor where it would be later itself by more");
}

int main(int argc, char **argv)
{
    state = 20261129;
    if (argc > 2)
        return print_queues(atoi(argv[2]), argv[1]);
    printf("# seed %llu\n", (unsigned long long)state);
    if (argc < 2)
        skip_all("usage: allocate_plans TOPT-QUEUE");
    test_sentences();
    test_bound();
    test_reserve();
    test_stops();
    test_milp();
    test_rigid(TOPT_TEST_SIZE_FROM(2000, 200));
    test_promises(TOPT_TEST_SIZE_FROM(2000, 200));
    test_least(TOPT_TEST_SIZE_FROM(500, 60), argv[1]);
    test_solver(TOPT_TEST_SIZE(12), argv[1]);
    test_many();
    return done_testing();
}
