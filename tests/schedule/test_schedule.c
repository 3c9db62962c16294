/* test_schedule.c - schedules: what streams and links do, pipelines whose time a formula gives,
 * and folded schedules, which must equal those laid out whole. */
#include "sizes.h"
#include "tap.h"
#include "topt_pipeline.h"
#include "topt_schedule.h"
#include "topt_step.h"

#include <stdlib.h>
#include <string.h>

enum { NODE = 1 << TOPT_LINK_NODE, NETWORK = 1 << TOPT_LINK_NETWORK };

static uint64_t seed = 1;

static int draw(int below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)below);
}

/* A task of owner 0 after 'before'; a failure shows as times that are wrong. */
static int add(struct topt_schedule *s, int64_t ns, int links, int async, int before)
{
    struct topt_task t = {.ns = ns, .links = (uint8_t)links, .async = (uint8_t)async};
    int task = topt_schedule_add(s, &t, NULL);
    return task < 0 || topt_schedule_after(s, task, before, NULL) ? -1 : task;
}

static int64_t time_of(struct topt_schedule *s)
{
    struct topt_error err = {0};
    int rc = topt_schedule_run(s, &err);
    if (rc)
        printf("# %s\n", err.text);
    return rc ? -1 : s->time_ns;
}

/* ---- streams and links -------------------------------------------------------------- */

static void test_links(void)
{
    struct topt_schedule s;
    topt_schedule_init(&s, 1, 0);
    int a = add(&s, 10, 0, 0, -1), gather = add(&s, 30, NETWORK, 1, -1);
    int b = add(&s, 5, 0, 0, gather);
    is_int(time_of(&s), 35, "computing waits for what it needs");
    is_int(s.task[gather].exposed_ns, 20, "... while nothing is computed");
    is_int(s.task[a].exposed_ns + s.task[b].exposed_ns, 0, "computing is not exposed");

    topt_schedule_clear(&s);
    add(&s, 20, NODE, 1, -1);
    add(&s, 7, NETWORK, 1, -1);
    is_int(time_of(&s), 20, "links work side by side");
    topt_schedule_clear(&s);
    add(&s, 20, NODE | NETWORK, 1, -1);
    add(&s, 7, NETWORK, 1, -1);
    is_int(time_of(&s), 27, "a collective over several levels takes all their links");

    topt_schedule_clear(&s);
    int slow = add(&s, 100, NETWORK, 1, -1);
    int first = add(&s, 10, 0, 0, -1), asked = add(&s, 5, NETWORK, 0, first);
    add(&s, 10, 0, 0, asked);
    is_int(time_of(&s), 105, "asynchronous communication gives way");
    is_int(s.task[asked].end_ns, 15, "... to what computing waits for");
    is_int(s.task[slow].end_ns, 105, "... and goes on after it");
    topt_schedule_fini(&s);
}

static void test_share(void)
{
    struct topt_schedule s;
    topt_schedule_init(&s, 1, 0.25);
    add(&s, 60, 0, 0, -1);
    add(&s, 40, NETWORK, 1, -1);
    is_int(time_of(&s), 70, "beside a move the device computes at less than its rate");
    topt_schedule_clear(&s);
    add(&s, 60, 0, 0, -1);
    add(&s, 40, 1 << TOPT_LINK_HOST, 1, -1);
    is_int(time_of(&s), 60, "... but not beside the host's work");
    topt_schedule_fini(&s);
}

static void test_circle(void)
{
    struct topt_schedule s;
    struct topt_error err = {0};
    topt_schedule_init(&s, 1, 0);
    int a = add(&s, 1, 0, 0, -1), b = add(&s, 1, 0, 0, a);
    ok(!topt_schedule_after(&s, a, b, NULL) && topt_schedule_run(&s, &err) &&
           err.code == TOPT_ERR_INTERNAL && strstr(err.text, "2 of 2 tasks"),
       "tasks in a circle are refused: %s", err.text);
    topt_schedule_fini(&s);
}

/* ---- pipelines ----------------------------------------------------------------------- */

enum { STAGES = 4, MICROS = 12, FORWARD_NS = 60, BACKWARD_NS = 120, MOST_CHUNKS = 32 };

/* A pipeline of equal chunks that share the time of a stage; every chunk keeps a byte. */
struct pipeline {
    struct topt_chunk chunk[MOST_CHUNKS];
    int64_t end_ns[MOST_CHUNKS], send_ns[MOST_CHUNKS];
    struct topt_pipeline p;
};

static void fill(struct pipeline *p, enum topt_order_row row, int stages, int chunks,
                 int64_t micro_batches)
{
    memset(p, 0, sizeof *p);
    p->p = (struct topt_pipeline){.order = row,
                                  .shape = {stages, chunks, micro_batches},
                                  .chunk = p->chunk,
                                  .end_ns = p->end_ns,
                                  .send_ns = p->send_ns};
    for (int i = 0; i < stages * chunks; i++)
        p->chunk[i] = (struct topt_chunk){
            .ns = {FORWARD_NS / chunks, BACKWARD_NS / chunks}, .kept = 1};
}

static int64_t run_pipeline(const struct pipeline *p, struct topt_pipeline_held *held)
{
    struct topt_schedule s;
    int64_t ns;
    topt_schedule_init(&s, 1, 0);
    if (topt_pipeline_run(&s, &p->p, &ns, held, NULL))
        ns = -1;
    topt_schedule_fini(&s);
    return ns;
}

static int chunks_from(int row)
{
    return topt_orders[row].least_chunks;
}

/* Rows of one chunk take (m + p - 1) (f + b), of v chunks (m + (p - 1) / v) (f + b), where gradients of
 * parameters are not made apart; and a rank with all layers sends each micro-batch forward and back before
 * the next. */
static void test_orders(void)
{
    const struct topt_order_shape alone = {1, 1, MICROS};
    struct topt_order_plan plan;
    int single = 0;
    for (int row = 0; row < TOPT_ORDERS; row++)
        for (int chunks = chunks_from(row); !topt_orders[row].splits && chunks <= 4 &&
                                            chunks <= topt_orders[row].most_chunks;
             chunks++)
            for (int64_t micros = MICROS; micros <= 300 * MICROS; micros *= 300) {
                struct pipeline p;
                fill(&p, (enum topt_order_row)row, STAGES, chunks, micros);
                is_int(run_pipeline(&p, NULL),
                       (micros * chunks + STAGES - 1) * (FORWARD_NS + BACKWARD_NS) /
                           chunks,
                       "%d stages of %d chunks, %lld micro-batches, %s", STAGES, chunks,
                       (long long)micros, topt_orders[row].name);
            }
    topt_order_plan(&topt_orders[TOPT_ORDER_1F1B], &alone, 0, &plan);
    for (int i = 0; i < 2 * MICROS; i++) {
        struct topt_turn t = topt_order_turn(&plan, i);
        single += t.backward == i % 2 && t.micro_batch == i / 2;
    }
    ok(single == 2 * MICROS,
       "one stage goes forward and back, micro-batch by micro-batch");
}

/* How many passes each chunk makes before its stage first goes backward, counted one by one. */
static void test_ahead(void)
{
    int same = 0, all = 0;
    for (int row = 0; row < TOPT_ORDERS; row++)
        for (int stages = 2; stages <= 8; stages += 3)
            for (int chunks = chunks_from(row);
                 chunks <= 3 && chunks <= topt_orders[row].most_chunks; chunks++)
                for (int64_t micros = 2; micros <= 96; micros++) {
                    struct topt_order_shape shape = {stages, chunks, micros};
                    struct topt_order_plan plan;
                    if (!topt_order_takes(&topt_orders[row], &shape))
                        continue;
                    for (int s = 0; s < stages; s++) {
                        int64_t of[3] = {0};
                        topt_order_plan(&topt_orders[row], &shape, s, &plan);
                        for (int64_t i = 0; i < plan.ahead; i++)
                            of[topt_order_turn(&plan, i).chunk]++;
                        for (int own = 0; own < chunks; own++, all++)
                            same += topt_order_ahead(&plan, own) == of[own];
                    }
                }
    ok(same == all && all > 1000, "%d of %d chunks are as far ahead as counted", same,
       all);
}

/* The time that ranks wait, by formulas (Qi et al. 2023; deepseek-ai/DualPipe's README, where a pair of
 * passes takes what both take): of ZB-H1 (p - 1) (F + B - W), of ZBV none but the first chunks' way, where
 * all three take the same, of DualPipeV at most (p - 1) (F&B + B - 3 W), B being whole, since what goes on
 * from the first pass of a pair does not wait for the second. */
static void test_bubbles(void)
{
    static const int of[][3] = {{10, 10, 10}, {10, 15, 5}, {12, 16, 12}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int64_t micros = 16; micros <= 4800; micros *= 300) {
            int64_t f = of[i][0], b = of[i][1], w = of[i][2];
            struct pipeline p;
            fill(&p, TOPT_ORDER_ZB_H1, STAGES, 1, micros);
            for (int c = 0; c < 2 * STAGES; c++)
                p.chunk[c] =
                    (struct topt_chunk){.ns = {f, b + w}, .weights_ns = w, .kept = 1};
            is_int(run_pipeline(&p, NULL),
                   micros * (f + b + w) + (STAGES - 1) * (f + b - w),
                   "ZB-H1 of %lld micro-batches, passes of %d, %d and %d",
                   (long long)micros, (int)f, (int)b, (int)w);
            p.p.order = TOPT_ORDER_DUALPIPE_V;
            p.p.shape.chunks = 2;
            int64_t all = 2 * micros * (f + b + w), none = (STAGES - 1) * f;
            int64_t ns = run_pipeline(&p, NULL);
            ok(ns > all && ns <= all + (STAGES - 1) * (f + (b + w) + (b + w) - 3 * w),
               "DualPipeV of %lld micro-batches takes %lld ns", (long long)micros,
               (long long)ns);
            p.p.order = TOPT_ORDER_ZBV;
            if (f == b && b == w)
                is_int(run_pipeline(&p, NULL), all + none, "ZBV");
            else
                ok(run_pipeline(&p, NULL) > all, "ZBV waits where passes are unlike");
        }
}

/* Of 1F1B a stage holds as many micro-batches as there are stages from it to the last one, of GPipe
 * all of them, interleaved what Megatron-LM's warm-up says and one chunk more; where gradients of parameters
 * are made apart, as many as there are stages of each of its chunks, which is one stage's p micro-batches,
 * with DualPipeV one more, which where its passes run as one is there during these alone. */
static int64_t held_chunks(int row, int stage)
{
    switch (row) {
    case TOPT_ORDER_GPIPE:
        return MICROS;
    case TOPT_ORDER_1F1B:
        return STAGES - stage;
    case TOPT_ORDER_INTERLEAVED:
    case TOPT_ORDER_COMBINED:
        return 2 * (STAGES - stage - 1) + STAGES + 1;
    case TOPT_ORDER_ZB_H1:
        return STAGES;
    case TOPT_ORDER_INTERLEAVED_ZB:
        return 2 * STAGES;
    case TOPT_ORDER_ZBV:
    case TOPT_ORDER_COMBINED_V:
        return 2 * STAGES;
    default:
        return 2 * STAGES + 1;
    }
}

static void test_in_flight(void)
{
    for (int row = 0; row < TOPT_ORDERS; row++) {
        struct topt_pipeline_held held[STAGES];
        struct pipeline p;
        fill(&p, (enum topt_order_row)row, STAGES, chunks_from(row), MICROS);
        if (run_pipeline(&p, held) < 0)
            abort(); /* a pipeline does not run */
        for (int s = 0; s < STAGES; s++)
            is_int(held[s].bytes[TOPT_HELD_KEPT], held_chunks(row, s),
                   "chunks that stage %d of %s holds", s, topt_orders[row].name);
    }
}

/* Where a pair of DualPipeV takes what its longer pass does, the bubble is at most (p - 1) (F&B + B - 3 W)
 * (deepseek-ai/DualPipe's README), and one chunk more is held. */
static void test_combined_v(void)
{
    enum { F = 12, B = 28, W = 12, MANY = 160 };
    int64_t pairs[MOST_CHUNKS * 2];
    struct topt_pipeline_held held[STAGES];
    struct topt_order_plan plan;
    struct pipeline p;
    fill(&p, TOPT_ORDER_COMBINED_V, STAGES, 2, MANY);
    for (int c = 0; c < 2 * STAGES; c++)
        p.chunk[c] = (struct topt_chunk){.ns = {F, B}, .weights_ns = W, .kept = 1};
    for (int i = 0; i < MOST_CHUNKS * 2; i++)
        pairs[i] = B;
    p.p.pair_ns = pairs;
    int64_t ns = run_pipeline(&p, held);
    for (int s = 0; s < STAGES; s++) {
        topt_order_plan(&topt_orders[TOPT_ORDER_COMBINED_V], &p.p.shape, s, &plan);
        int64_t n = topt_order_count_pairs(&plan), busy = 2 * MANY * (F + B) - n * F;
        ok(n > 2 * (MANY - 2 * STAGES) && ns >= busy &&
               ns <= busy + (STAGES - 1) * (B + B) + 2 * STAGES * F,
           "stage %d: %lld pairs, %lld ns of %lld busy", s, (long long)n, (long long)ns,
           (long long)busy);
        is_int(held[s].bytes[TOPT_HELD_KEPT], 2 * STAGES + 1,
               "... a pair holds one more");
    }
}

/* A replay that knows nothing of tasks: each stage's next pass starts when the stage is free and what it
 * reads has come; '*ret_kept' is the most that the first stage keeps at once. */
struct replay {
    const struct topt_pipeline *p;
    struct topt_order_plan plan[MOST_CHUNKS];
    int64_t turn[MOST_CHUNKS], now[MOST_CHUNKS];
    int64_t kept, most;
    int64_t *come; /* by micro-batch, direction and chunk */
};

/* A pass that a stage has next: the chunk, and when what it reads has come; -1: not yet. */
struct replayed {
    struct topt_turn t;
    int own;
    int64_t given;
};

static struct replayed look(const struct replay *x, int s, int64_t i)
{
    const struct topt_order_shape *q = &x->p->shape;
    int n = q->stages * q->chunks;
    struct replayed r = {topt_order_turn(&x->plan[s], i), 0, 0};
    r.own =
        topt_orders[x->p->order].v && r.t.chunk ? n - 1 - s : r.t.chunk * q->stages + s;
    int from = r.t.backward ? r.own + 1 : r.own - 1;
    int alone = r.t.part == TOPT_TURN_WEIGHTS || from < 0 || from == n;
    r.given = alone ? 0 : x->come[(2 * r.t.micro_batch + r.t.backward) * n + from];
    return r;
}

static void make(struct replay *x, int s, const struct replayed *r, int64_t ends)
{
    const struct topt_order_shape *q = &x->p->shape;
    const struct topt_order *o = &topt_orders[x->p->order];
    const struct topt_chunk *c = &x->p->chunk[r->own];
    int n = q->stages * q->chunks, to = r->t.backward ? r->own - 1 : r->own + 1;
    int weights = r->t.part == TOPT_TURN_WEIGHTS;
    int64_t *row = &x->come[(2 * r->t.micro_batch + r->t.backward) * n];
    int sends = !weights && to >= 0 && to < n &&
                !(o->v && r->own + to == n - 1 && abs(r->own - to) == 1);
    if (!weights)
        row[r->own] = ends + (sends ? x->p->send_ns[to < r->own ? to : r->own] : 0);
    x->now[s] = sends && (o->sends_wait || x->p->sends_wait) ? row[r->own] : ends;
    if (s == 0)
        x->kept += !r->t.backward                   ? c->kept
                   : r->t.part == TOPT_TURN_INPUTS  ? c->weights_kept
                   : r->t.part == TOPT_TURN_WEIGHTS ? -c->kept - c->weights_kept
                                                    : -c->kept;
}

/* Of a pair what goes forward is kept before what goes backward is freed. */
static int replay_pass(struct replay *x, int s)
{
    int64_t i = x->turn[s], start = x->now[s], ns;
    if (i == x->plan[s].turns)
        return 0;
    struct replayed r[2];
    int n = 1 + (x->p->pair_ns && topt_order_pairs(&x->plan[s], i));
    for (int k = 0; k < n; k++) {
        r[k] = look(x, s, i + k);
        if (r[k].given < 0)
            return 0;
        start = r[k].given > start ? r[k].given : start;
    }
    const struct topt_chunk *c = &x->p->chunk[r[0].own];
    ns = n > 1 ? x->p->pair_ns[r[1].own * x->p->shape.chunks + r[0].t.chunk]
         : r[0].t.part == TOPT_TURN_WEIGHTS ? c->weights_ns
         : r[0].t.part == TOPT_TURN_INPUTS  ? c->ns[1] - c->weights_ns
                                            : c->ns[r[0].t.backward];
    for (int k = n - 1; k >= 0; k--) {
        make(x, s, &r[k], start + ns);
        x->most = x->kept > x->most ? x->kept : x->most;
    }
    x->turn[s] += n;
    return 1;
}

static int64_t by_passes(const struct topt_pipeline *p, int64_t *ret_kept)
{
    const struct topt_order_shape *q = &p->shape;
    int n = q->stages * q->chunks;
    struct replay x = {.p = p};
    int64_t last = 0;
    x.come = malloc(2 * (size_t)n * (size_t)q->micro_batches * sizeof *x.come);
    if (!x.come)
        abort(); /* no memory */
    for (int64_t i = 0; i < 2 * n * q->micro_batches; i++)
        x.come[i] = -1;
    for (int s = 0; s < q->stages; s++)
        topt_order_plan(&topt_orders[p->order], q, s, &x.plan[s]);
    for (int more = 1; more;) {
        more = 0;
        for (int s = 0; s < q->stages; s++)
            more |= replay_pass(&x, s);
    }
    for (int s = 0; s < q->stages; s++) {
        if (x.turn[s] < x.plan[s].turns)
            abort(); /* stage %d waits for ever */
        last = x.now[s] + p->end_ns[s] > last ? x.now[s] + p->end_ns[s] : last;
    }
    free(x.come);
    *ret_kept = x.most;
    return last;
}

/* Chunks of unlike times, sends, ends and pairs: folded, a step takes what its passes take. */
static void test_uneven(void)
{
    enum { RANDOM = TOPT_TEST_SIZE(300) };
    int same = 0;
    for (int i = 0; i < RANDOM; i++) {
        int row = draw(TOPT_ORDERS);
        int stages = 2 + draw(5);
        int chunks = chunks_from(row), v = topt_orders[row].v;
        if (chunks > 1 && !v)
            chunks += draw(3);
        struct pipeline p;
        int grows = topt_orders[row].grows;
        fill(&p, (enum topt_order_row)row, stages, chunks,
             v       ? 2 * stages + draw(200)
             : grows ? stages + draw(200)
                     : stages * (1 + draw(40)));
        int64_t pairs[MOST_CHUNKS * MOST_CHUNKS];
        for (int k = 0; k < stages * chunks * chunks; k++)
            pairs[k] = 1 + draw(90);
        p.p.pair_ns = topt_orders[row].pairs ? pairs : NULL;
        p.p.sends_wait = i % 3 == 0 && !topt_orders[row].pairs;
        for (int c = 0; c < stages * chunks; c++) {
            for (int k = 0; k < 2; k++)
                p.chunk[c].ns[k] = 1 + draw(50);
            p.chunk[c].weights_ns = draw((int)p.chunk[c].ns[1] + 1);
            p.chunk[c].kept = draw(20);
            p.chunk[c].weights_kept = draw(9 + (int)p.chunk[c].kept) - p.chunk[c].kept;
        }
        for (int s = 0; s < stages; s++)
            p.end_ns[s] = draw(100);
        for (int c = 0; c < stages * chunks; c++)
            p.send_ns[c] = draw(9);
        struct topt_pipeline_held held[MOST_CHUNKS];
        int64_t kept, ns = run_pipeline(&p, held), want = by_passes(&p.p, &kept);
        int alike = ns == want && held[0].bytes[TOPT_HELD_KEPT] == kept;
        same += alike;
        if (!alike)
            printf("# %s, %d stages of %d chunks, %lld micro-batches: %lld, by passes "
                   "%lld\n",
                   topt_orders[row].name, stages, chunks,
                   (long long)p.p.shape.micro_batches, (long long)ns, (long long)want);
    }
    is_int(same, RANDOM,
           "steps of uneven stages, folded, that take what their passes take");
}

/* ---- folds --------------------------------------------------------------------------- */

enum { PROBLEMS = TOPT_TEST_SIZE(4000), PERIODS = 40, MOST = 12, EDGES = 20 };

/* A period's tasks; edges from a task of the same period, or of the one before. */
struct random {
    int n, nedges, last[MOST], now[MOST];
    struct topt_task task[MOST];
    struct {
        int from, to, across;
    } edge[EDGES];
    int64_t first_ns, end_ns;
};

static int begin(void *of, struct topt_schedule *s, struct topt_error *err)
{
    struct random *r = of;
    struct topt_task t = {.ns = r->first_ns};
    int task = topt_schedule_add(s, &t, err);
    for (int i = 0; i < r->n; i++)
        r->now[i] = task;
    return task < 0 ? -1 : 0;
}

static int period(void *of, struct topt_schedule *s, int64_t k, struct topt_error *err)
{
    struct random *r = of;
    (void)k;
    memcpy(r->last, r->now, sizeof r->last);
    for (int i = 0; i < r->n; i++)
        if ((r->now[i] = topt_schedule_add(s, &r->task[i], err)) < 0)
            return -1;
    for (int i = 0; i < r->nedges; i++)
        if (topt_schedule_after(s, r->now[r->edge[i].to],
                                (r->edge[i].across ? r->last : r->now)[r->edge[i].from],
                                err))
            return -1;
    return 0;
}

static int end(void *of, struct topt_schedule *s, struct topt_error *err)
{
    struct random *r = of;
    struct topt_task t = {.ns = r->end_ns, .links = NODE, .async = 1};
    int task = topt_schedule_add(s, &t, err);
    return task < 0 || topt_schedule_after(s, task, r->now[r->n - 1], err) ? -1 : 0;
}

static void put_edge(struct random *r, int from, int to, int across)
{
    r->edge[r->nedges].from = from;
    r->edge[r->nedges].to = to;
    r->edge[r->nedges++].across = across;
}

static void draw_random(struct random *r, int owners)
{
    memset(r, 0, sizeof *r);
    r->n = 2 + draw(MOST - 1);
    r->first_ns = draw(50);
    r->end_ns = draw(50);
    for (int i = 0; i < r->n; i++) {
        struct topt_task *t = &r->task[i];
        t->ns = draw(4) ? 1 + draw(draw(2) ? 1000 : 10) : 0;
        t->owner = draw(owners);
        t->links = (uint8_t)(draw(2) ? draw(8) : 0);
        t->async = t->links & 1 << TOPT_LINK_HOST || (t->links && draw(3));
    }
    /* Every task follows an earlier one, the first one that of the period before. */
    put_edge(r, 0, 0, 1);
    for (int i = 1; i < r->n; i++)
        put_edge(r, draw(i), i, 0);
    while (draw(4) && r->nedges < EDGES) {
        int a = draw(r->n), b = draw(r->n);
        put_edge(r, a, b, a >= b);
    }
}

static int64_t unrolled(struct random *r, int owners, double share)
{
    struct topt_schedule s;
    topt_schedule_init(&s, owners, share);
    int rc = begin(r, &s, NULL);
    for (int k = 0; k < PERIODS && !rc; k++)
        rc = period(r, &s, k, NULL);
    rc = rc || end(r, &s, NULL);
    int64_t ns = rc ? -1 : time_of(&s);
    topt_schedule_fini(&s);
    return ns;
}

static void test_folds(void)
{
    int wrong = 0, folded = 0, counts = 0;
    for (int i = 0; i < PROBLEMS; i++) {
        struct random r;
        struct topt_periodic p = {&r, PERIODS, begin, period, end, 0};
        struct topt_folded f = {0};
        struct topt_schedule s;
        int owners = 1 + draw(3);
        double share = draw(2) ? 0 : 0.01 * draw(40);
        draw_random(&r, owners);
        topt_schedule_init(&s, owners, share);
        int rc = topt_schedule_fold(&s, &p, 1 << 20, &f, NULL);
        int64_t want = unrolled(&r, owners, share);
        if (rc || s.time_ns != want) {
            wrong++;
            printf("# problem %d: folded %lld, laid out %lld\n", i, (long long)s.time_ns,
                   (long long)want);
        }
        int64_t all = 0;
        for (int t = 0; t < s.n; t++)
            all += t >= f.from && t < f.to ? 1 + p.periods - f.laid_out : 1;
        counts += all == 2 + (int64_t)PERIODS * r.n;
        folded += f.laid_out < PERIODS;
        topt_schedule_fini(&s);
    }
    ok(!wrong, "%d schedules of %d periods take as long folded as laid out", PROBLEMS,
       PERIODS);
    ok(folded > PROBLEMS / 5, "... of which %d were folded", folded);
    is_int(counts, PROBLEMS, "every task is counted as often as it happens");
}

/* Reductions fall behind further in every period: no two periods are alike. */
static void test_drift(void)
{
    struct random r = {.n = 2,
                       .task = {{.ns = 10}, {.ns = 30, .links = NODE, .async = 1}}};
    struct topt_periodic p = {&r, 1000, begin, period, end, 0};
    struct topt_folded f;
    struct topt_schedule s;
    r.nedges = 2;
    r.edge[0].from = r.edge[0].to = 0;
    r.edge[0].across = 1;
    r.edge[1].to = 1;
    topt_schedule_init(&s, 1, 0);
    int rc = topt_schedule_fold(&s, &p, 100, &f, NULL);
    ok(!rc && f.laid_out < 1000, "%lld periods that never repeat are laid out",
       (long long)f.laid_out);
    is_int(s.time_ns, 10 + 30 * 1000, "... and the others take as long as the last one");
    topt_schedule_fini(&s);
}

/* ---- steps by units ------------------------------------------------------------------ */

enum { UNITS = 3 };

/* The time of a step of units that compute 10 forward, 20 backward and 1 at the end, and move
 * what is asked, in each of 'micros' micro-batches; with 'split', each in two pieces. */
static int64_t step_of(int64_t micros, int split, int64_t gather, int64_t reduce,
                       int64_t at_end)
{
    struct topt_piece_time p[2 * UNITS];
    struct topt_schedule s;
    int64_t ns = -1, late;
    int n = split ? 2 * UNITS : UNITS, of = split ? 2 : 1;
    memset(p, 0, sizeof p);
    for (int i = 0; i < n; i++) {
        p[i].unit = i / of;
        p[i].at[TOPT_DURING_FORWARD] =
            (struct topt_part_time){.compute_ns = micros * 10 / of,
                                    .gather_ns = micros * gather / of,
                                    .gather_links = NETWORK};
        p[i].at[TOPT_DURING_BACKWARD] =
            (struct topt_part_time){.compute_ns = micros * 20 / of,
                                    .reduce_ns = micros * reduce / of,
                                    .reduce_links = NETWORK};
        p[i].at[TOPT_DURING_END] = (struct topt_part_time){.compute_ns = i % of ? 0 : 1,
                                                           .reduce_ns = at_end / of,
                                                           .reduce_links = NETWORK};
    }
    topt_schedule_init(&s, 1, 0);
    struct topt_training_step step = {p, NULL, n, micros};
    if (topt_step_run(&s, &step, &ns, &late, NULL, NULL))
        ns = -1;
    topt_schedule_fini(&s);
    return ns;
}

/* The same step without moves, whose kernels the host starts in 'host' ns a unit and pass. */
static int64_t hosted(int64_t micros, int64_t host, int64_t *ret_late)
{
    struct topt_piece_time p[UNITS];
    struct topt_schedule s;
    int64_t ns = -1;
    memset(p, 0, sizeof p);
    for (int i = 0; i < UNITS; i++) {
        p[i].unit = i;
        p[i].at[TOPT_DURING_FORWARD] =
            (struct topt_part_time){.compute_ns = micros * 10, .host_ns = micros * host};
        p[i].at[TOPT_DURING_BACKWARD] =
            (struct topt_part_time){.compute_ns = micros * 20, .host_ns = micros * host};
        p[i].at[TOPT_DURING_END].compute_ns = 1;
    }
    topt_schedule_init(&s, 1, 0);
    struct topt_training_step step = {p, NULL, UNITS, micros};
    if (topt_step_run(&s, &step, &ns, ret_late, NULL, NULL))
        ns = -1;
    topt_schedule_fini(&s);
    return ns;
}

static void test_host(void)
{
    int64_t late;
    is_int(hosted(1, 10, &late), 93, "a host that is in time costs nothing");
    is_int(late, 0, "... and nothing waits for it");
    is_int(hosted(1, 15, &late), 108,
           "forward waits for a slower one, backward catches up");
    is_int(late, 15, "... by 5 before each of three passes");
    is_int(hosted(1, 100, &late), 603, "a slow host is the step, and then the update");
    is_int(hosted(40, 100, &late), 40 * 600 + 3, "in each micro-batch");
    is_int(late, 40 * 600 + 3 - 40 * 90 - 3,
           "the device waits for what it does not compute");
    is_int(hosted(40, 15, &late), 40 * 90 + 3 + 15,
           "a host that is late in forward alone is late once: it runs ahead");
}

/* A step of so many layers, each of which may rest on the host in the four ways, 'half': half of what it keeps, as a
 * module's; what it keeps at most is put in '*ret_kept'. */
static int64_t step_away(int n, int64_t fetch, int64_t put, int64_t save, int64_t update,
                         int half, int64_t *ret_kept)
{
    enum { PIECES = 16 };
    struct topt_piece_time p[PIECES];
    struct topt_piece_bytes b[PIECES];
    struct topt_schedule s;
    int64_t ns = -1, late, held[TOPT_HELD_COUNT];
    memset(p, 0, sizeof p);
    memset(b, 0, sizeof b);
    for (int i = 0; i < n; i++) {
        int64_t saved = i + 1 < n ? save : 0;
        p[i].unit = b[i].layer = i;
        p[i].group = half ? ~i : i;
        b[i].kept = 100;
        b[i].saved = saved ? 100 / (1 + half) : 0;
        p[i].at[TOPT_DURING_FORWARD] = (struct topt_part_time){
            .compute_ns = 10, .fetch_ns = fetch, .save_ns = saved};
        p[i].at[TOPT_DURING_BACKWARD] = (struct topt_part_time){
            .compute_ns = 20, .fetch_ns = fetch, .put_ns = put, .save_ns = saved};
        p[i].at[TOPT_DURING_END] =
            (struct topt_part_time){.update_ns = update, .fetch_ns = update / 10};
    }
    topt_schedule_init(&s, 1, 0.5);
    struct topt_training_step step = {p, b, n, 1};
    if (topt_step_run(&s, &step, &ns, &late, held, NULL))
        ns = -1;
    topt_schedule_fini(&s);
    *ret_kept = held[TOPT_HELD_KEPT];
    return ns;
}

static int64_t away(int n, int64_t fetch, int64_t put, int64_t save, int64_t update,
                    int64_t *ret_kept)
{
    return step_away(n, fetch, put, save, update, 0, ret_kept);
}

static void test_away(void)
{
    enum { N = 8 };
    int64_t kept, no_update = N * 30;
    is_int(away(N, 0, 0, 0, 0, &kept), no_update, "nothing on the host costs nothing");
    is_int(kept, N * 100, "... and all that layers keep is on the device");
    is_int(
        away(N, 8, 0, 0, 0, &kept), no_update + 8,
        "parameters that come while the layer before works cost the first copy, and no "
        "share of the device");
    is_int(away(N, 0, 15, 0, 0, &kept), no_update + 15,
           "gradients that go, the last one");
    is_int(away(N, 0, 25, 0, 0, &kept), N * 10 + 20 + N * 25,
           "... or, where the link is slower than backward, all of them");
    is_int(away(N, 0, 0, 5, 0, &kept), no_update, "activations that go and come in time");
    is_int(kept, 200, "... leave those of two layers at most on the device");
    ok(away(N, 0, 0, 40, 0, &kept) > no_update + (N - 3) * 30,
       "a slow link makes forward wait");
    is_int(kept, 300, "... so that no more are there");
    is_int(step_away(N, 0, 0, 5, 0, 1, &kept), no_update, "so do those of modules");
    is_int(kept, N * 50 + 100, "... which are a part of what layers keep");
    int64_t slow = step_away(N, 0, 0, 40, 0, 1, &kept);
    ok(slow < away(N, 0, 0, 40, 0, &kept),
       "on a slow link modules do not make forward wait");
    (void)step_away(N, 0, 0, 40, 0, 1, &kept);
    ok(kept > N * 50 + 100, "... so that more are there");
    is_int(away(N, 0, 0, 0, 50, &kept), no_update + N * 50 + 5,
           "the host's optimizer comes after, and the last parameters after it");
    is_int(away(N, 0, 15, 0, 50, &kept), no_update + 15 + N * 50 + 5,
           "... when all gradients are there");
}

static void test_steps(void)
{
    is_int(step_of(1, 0, 0, 0, 0), 93,
           "a step that moves nothing takes what it computes");
    is_int(step_of(1000, 0, 0, 0, 0), 90003, "... in each micro-batch");
    is_int(step_of(1, 0, 8, 0, 0), 101, "all gathers but the first are hidden");
    is_int(step_of(1, 1, 8, 0, 0), 97, "... of which a piece needs its own part alone");
    is_int(step_of(1, 0, 0, 0, 15), 108, "all reductions but the last are hidden");
    is_int(step_of(1, 1, 0, 0, 14), 100, "... of pieces the last one's");
    is_int(step_of(10, 0, 0, 0, 15), 10 * 90 + 15 + 3,
           "gradients that are added up go after the last micro-batch");
    is_int(step_of(10, 0, 0, 60, 0), 30 + 20 + 10 * UNITS * 60 + 3,
           "where the link is busy throughout, it says how long a step takes");
}

/* ---- bytes --------------------------------------------------------------------------- */

/* The time of two passes at once, of layers that compute for so long forward and backward and whose tokens
 * take 'exchange' to their experts and back. */
static int64_t paired(int layers, int64_t forward, int64_t backward, int64_t exchange,
                      int64_t other, double share)
{
    enum { LAYERS = 8 };
    struct topt_piece_time piece[LAYERS] = {{0}};
    struct topt_schedule s;
    int64_t ns = -1;
    for (int i = 0; i < layers; i++)
        for (int d = 0; d < 2; d++)
            piece[i].at[d ? TOPT_DURING_BACKWARD : TOPT_DURING_FORWARD] =
                (struct topt_part_time){.compute_ns = d ? backward : forward,
                                        .waited_ns = exchange + other,
                                        .exchange_ns = exchange,
                                        .exchange_links = 1 << TOPT_LINK_NETWORK};
    topt_schedule_init(&s, 1, 0.9);
    struct topt_pass_pieces all = {piece, layers};
    if (topt_step_pair(&s, all, all, share, &ns, NULL))
        ns = -1;
    ok(s.share > 0.89, "the schedule has its own share again");
    topt_schedule_fini(&s);
    return ns;
}

/* Of one layer the tokens of each pass move beside the other's computing: max(b, e) + max(f, e).  Of several that
 * compute longer than they move all is hidden, the last exchange beside the other pass's last layer; where moving is
 * longer, links never rest.  While tokens move, computing has what is left of the device. */
static void test_pairs(void)
{
    is_int(paired(1, 10, 20, 6, 0, 0), 20 + 10, "an exchange beside longer computing");
    is_int(paired(1, 10, 20, 15, 0, 0), 20 + 15, "one beside shorter computing");
    is_int(paired(1, 10, 20, 30, 0, 0), 30 + 30, "one longer than both");
    is_int(paired(1, 10, 20, 6, 3, 0), 23 + 13, "other communication keeps the stream");
    is_int(paired(8, 10, 20, 0, 0, 0), 8 * 30, "without experts");
    is_int(paired(8, 10, 20, 6, 0, 0), 8 * 30, "all is hidden");
    is_int(paired(8, 10, 20, 100, 0, 0), 16 * 100, "links are busy throughout");
    is_int(paired(1, 10, 20, 10, 0, 0.5), (10 + 15) + (10 + 5),
           "half of the device while tokens move");
}

static int64_t peak_of(const struct topt_schedule *s, int owner, int64_t ret[2])
{
    int64_t all[4] = {0};
    if (topt_schedule_peak(s, 2, all, NULL))
        return -1;
    memcpy(ret, &all[2 * owner], 2 * sizeof *ret);
    return ret[0] + ret[1];
}

static void hold(struct topt_schedule *s, int component, int64_t bytes, int from, int to)
{
    struct topt_hold h = {from, to, component, bytes};
    if (topt_schedule_hold(s, &h, NULL))
        exit(1);
}

static void test_holds(void)
{
    struct topt_schedule s;
    int64_t of[2];
    topt_schedule_init(&s, 2, 0);
    int a = add(&s, 5, 0, 0, -1), b = add(&s, 5, 0, 0, a);
    int move = add(&s, 7, NETWORK, 1, a), nothing = add(&s, 0, 0, 0, b);
    hold(&s, 0, 3, a, b);
    hold(&s, 1, 10, a, a);
    hold(&s, 1, 8, b, b);
    is_int(topt_schedule_run(&s, NULL), 0, "a schedule that holds bytes runs");
    is_int(peak_of(&s, 0, of), 13, "what ends is free before what follows begins");
    is_int(of[1], 10, "... by component");
    hold(&s, 1, 4, move, -1);
    is_int(peak_of(&s, 0, of), 15, "what moves beside a task holds beside it");
    hold(&s, 0, 100, nothing, nothing);
    is_int(peak_of(&s, 0, of), 104, "a task that takes no time holds, too");
    is_int(peak_of(&s, 1, of), 0, "another owner holds nothing");
    topt_schedule_clear(&s);
    is_int(peak_of(&s, 0, of), 0, "a schedule that was cleared holds nothing");
    topt_schedule_fini(&s);
}

/* The most that a step of 'n' layers and a head holds, each of which has these bytes. */
static int64_t held_by(int n, int64_t micros, const struct topt_piece_bytes *layer,
                       const struct topt_piece_bytes *head, int64_t ret[TOPT_HELD_COUNT])
{
    enum { PIECES = 16 };
    struct topt_piece_time time[PIECES];
    struct topt_piece_bytes bytes[PIECES];
    struct topt_schedule s;
    int64_t ns, late, sum = 0;
    memset(time, 0, sizeof time);
    memset(bytes, 0, sizeof bytes);
    for (int i = 0; i <= n; i++) {
        time[i].unit = i;
        time[i].at[TOPT_DURING_FORWARD].compute_ns = 10 * micros;
        time[i].at[TOPT_DURING_BACKWARD].compute_ns = 20 * micros;
        bytes[i] = i < n ? *layer : *head;
        bytes[i].layer = i < n ? i : -1;
        bytes[i].outside = i == n;
    }
    struct topt_training_step step = {time, bytes, n + 1, micros};
    topt_schedule_init(&s, 1, 0);
    int rc = topt_step_run(&s, &step, &ns, &late, ret, NULL);
    topt_schedule_fini(&s);
    for (int c = 0; c < TOPT_HELD_COUNT; c++)
        sum += ret[c];
    return rc ? -1 : sum;
}

static void test_held(void)
{
    struct topt_piece_bytes layer = {.kept = 100, .work = {5, 7}},
                            head = {.work = {30, 40}};
    int64_t of[TOPT_HELD_COUNT];
    is_int(held_by(8, 1, &layer, &head, of), 840,
           "between forward and backward a step holds all that it keeps");
    is_int(of[TOPT_HELD_WORK], 40, "... and what the head has in flight");
    is_int(held_by(8, 9, &layer, &head, of), 840, "... in each micro-batch");
    layer.kept = 10;
    layer.recomputed = 90;
    is_int(held_by(8, 1, &layer, &head, of), 8 * 10 + 90 + 7,
           "recomputed activations are there for one layer");
    head.work[1] = 1000;
    is_int(held_by(8, 1, &layer, &head, of), 8 * 10 + 1000,
           "... and not beside the head's");
    head.work[1] = 0;
    layer = (struct topt_piece_bytes){.gathered = 10, .made = 10, .reduced = 20};
    is_int(
        held_by(8, 1, &layer, &head, of), 2 * 10 + 10 + 20,
        "two layers are gathered beside one layer's gradients and the copy of another's");
    is_int(of[TOPT_HELD_BUFFERS], 50, "... all of them buffers");
    is_int(held_by(1, 1, &layer, &head, of), 40,
           "a single layer is gathered and made once");
    head.work[1] = 100;
    is_int(held_by(8, 1, &layer, &head, of), 100 + 10,
           "beside the head one layer is gathered, ahead of its backward");
    head = (struct topt_piece_bytes){.gathered = 200, .made = 200, .reduced = 400};
    is_int(held_by(8, 1, &layer, &head, of), 600,
           "gradients outside of layers are reduced when nothing is gathered any more");
    layer = (struct topt_piece_bytes){.gradient = 5, .kept = 4};
    head = (struct topt_piece_bytes){.gradient = 3};
    is_int(held_by(8, 1, &layer, &head, of), 8 * 5 + 3 + 4,
           "gradients come one by one, as activations go");
    layer = (struct topt_piece_bytes){.whole = 5};
    is_int(held_by(8, 1, &layer, &head, of), 8 * 5 + 3,
           "parameters that are gathered once stay from forward to backward");
}

/* Reductions that all wait for one link, while few go by the other: a step that looked at all of
 * them would take minutes here. */
static void test_many_waiting(void)
{
    enum { MANY = 400000, OTHERS = 1000 };
    struct topt_schedule s;
    topt_schedule_init(&s, 1, 0);
    for (int i = 0; i < MANY; i++)
        add(&s, 2, i % (MANY / OTHERS) ? NODE : NETWORK, 1, -1);
    is_int(time_of(&s), 2 * (int64_t)(MANY - OTHERS), "each link takes its own in turn");
    is_int(s.task[MANY - 1].ended, 2 * MANY - 1, "... in the order in which they came");
    topt_schedule_fini(&s);
}

int main(void)
{
    test_many_waiting();
    test_holds();
    test_in_flight();
    test_uneven();
    test_links();
    test_share();
    test_circle();
    test_orders();
    test_ahead();
    test_bubbles();
    test_held();
    test_folds();
    test_drift();
    test_host();
    test_away();
    test_steps();
    test_pairs();
    test_combined_v();
    return done_testing();
}
