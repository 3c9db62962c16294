/* test_lower.c - programs: every buffer is made before use and freed once, layouts agree at
 * each move, and what a program needs at its peak never exceeds what its plan says. */
#include <stdlib.h>
#include <string.h>

#include "free.h"
#include "grid.h"
#include "planning.h"
#include "topt_plan.h"
#include "topt_choices.h"
#include "topt_runtime.h"
#include "evaluated.h"
#include "factors.h"
#include "flow.h"
#include "random_model.h"
#include "tap.h"
#include "walk.h"

static struct topt_hw *hw;

/* ---- random strategies ------------------------------------------------------------------- */

/* Alike blocks of random operators, so that there is something to recompute. */
static struct topt_model *blocky_model(uint64_t seed)
{
    struct topt_model *m = topt_model_create("blocky", 4 + 4 * random_below(&seed, 2),
                                             1 + random_below(&seed, 4), NULL);
    int width = 4 + random_below(&seed, 9), steps = 2 + random_below(&seed, 5);
    struct topt_attrs a = {.vocab = 8, .features = width};
    int x = topt_model_add(m, "embedding", "embedding", 0, NULL, &a, NULL);
    for (int block = 0; block < 3; block++) {
        uint64_t same = seed;
        int first = x, kept = x;
        for (int i = 0; i < steps; i++) {
            int before = x;
            x = random_step(m, &same, x, kept, width);
            if (random_below(&same, 3) == 0)
                kept = before;
        }
        int two[2] = {x, first};
        char name[24];
        snprintf(name, sizeof name, "join%d", block);
        x = topt_model_add(m, "add", name, 2, two, NULL, NULL);
    }
    a = (struct topt_attrs){.features = 8};
    x = topt_model_add(m, "linear", "head", 1, &x, &a, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    if (x >= 0 && !topt_model_finish(m, NULL))
        return m;
    topt_model_destroy(m);
    return NULL;
}

static int roll(void *seed, int sides)
{
    return random_below(seed, sides);
}

struct counts {
    int strategies, flagged, lowered, formed, agree, bounded, priced, evaluated;
    int in_place, fewer, joined; /* programs in place; what these have less, and joined */
};

static int count_allocs(const struct topt_program *p)
{
    int n = 0;
    for (int i = 0; i < p->ninstr; i++)
        n += p->instr[i].kind == TOPT_I_ALLOC;
    return n;
}

/* Buffers are shared, and all that is computed is what it was. */
static void check_in_place(struct topt_program *p, struct counts *n)
{
    struct topt_error err = {0};
    int64_t peak = p->peak_bytes;
    int allocs = count_allocs(p);
    uint64_t flow = flow_of(p);
    int rc = topt_program_in_place(p, 1, &err);
    int64_t saved = topt_in_place_saves_ns(p, hw);
    n->in_place += !rc && flow_of(p) == flow && well_formed(p) && layouts_agree(p) &&
                   p->peak_bytes <= peak && saved >= 0;
    n->fewer += allocs - count_allocs(p);
    for (int i = 0; i < p->ninstr; i++)
        n->joined += p->instr[i].joined;
}

static void check_strategy(const struct topt_costing *k, struct topt_strategy *st,
                           int flagged, struct topt_evaluator *evaluator,
                           struct counts *n)
{
    struct topt_strategy_cost cost;
    struct topt_program *program;
    struct topt_error err = {0};
    n->strategies++;
    if (topt_cost_strategy(k, st, &cost, &err) ||
        topt_lower(k->model, k->mesh, k->settings, st, k->router, 0, &program, &err)) {
        printf("# %s\n", err.text);
        return;
    }
    n->lowered++;
    n->formed += well_formed(program);
    n->agree += layouts_agree(program);
    n->evaluated += evaluated(evaluator, st, &cost, program->peak_bytes);
    n->bounded += program->peak_bytes <= cost.memory_bytes;
    /* An operator that could recompute need not be asked to: it is charged all the same. */
    int64_t network = program_network(program, hw);
    n->priced +=
        flagged ? network <= cost.sum.network_ns : network == cost.sum.network_ns;
    if (program->peak_bytes > cost.memory_bytes)
        printf("# peak %lld, bound %lld\n", (long long)program->peak_bytes,
               (long long)cost.memory_bytes);
    check_in_place(program, n);
    topt_program_destroy(program);
}

/* 'factors': sharded over replicas, recomputed; 'm' is the model of a micro-batch. */
static int check_model(struct topt_model *m, struct topt_request *r, int nodes,
                       int per_node, uint64_t seed, int factors, int64_t micro_batches,
                       struct counts *n)
{
    struct topt_planning micros;
    struct topt_grid_search s;
    struct topt_problem *p;
    struct topt_costing costing;
    r->model = m;
    if (!m || topt_planning_init(&micros, r, NULL) ||
        topt_grid_open(&s, &micros, nodes, per_node, TOPT_GOAL_FRONTIER, NULL) ||
        topt_grid_costing(&s, &s.degrees[0], &costing, NULL) ||
        topt_grid_problem(&s, &s.degrees[0], &p, NULL))
        return -1;
    struct topt_settings settings = *costing.settings;
    settings.micro_batches = micro_batches;
    costing.settings = &settings;
    struct topt_evaluator *evaluator = topt_evaluator_create(&costing, 1, NULL);
    for (int k = 0; k < 12; k++) {
        struct topt_strategy *st = topt_problem_random(p, &seed);
        int flagged = factors ? roll_factors(st, m, &s.mesh, &settings, roll, &seed) : 0;
        n->flagged += flagged > 0;
        check_strategy(&costing, st, flagged > 0, evaluator, n);
        topt_strategy_destroy(st);
    }
    topt_evaluator_destroy(evaluator);
    topt_problem_destroy(p);
    topt_grid_close(&s);
    topt_planning_fini(&micros);
    return 0;
}

static void check_random(int nodes, int per_node, int sequence, enum topt_space space)
{
    struct counts n = {0};
    int opened = 1;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct topt_request r;
        topt_request_init(&r);
        r.hw = hw;
        r.space = space;
        r.sequence_splits = sequence;
        r.settings.granule_bytes = seed % 2 ? 64 : 1;
        r.settings.optimizer = (enum topt_optimizer)(seed % 3);
        r.factors = 0;
        struct topt_model *m = seed % 3 ? blocky_model(seed * 77)
                                        : random_model(seed * 77, 2 + (int)(seed % 9));
        opened &= !check_model(m, &r, nodes, per_node, seed, seed % 6 > 0,
                               seed % 4 == 1 ? 3 : 1, &n);
        topt_model_destroy(m);
    }
    ok(opened && n.flagged > 20, "%dx%d, space %s: %d random strategies, %d recompute",
       nodes, per_node, topt_space_name(space), n.strategies, n.flagged);
    is_int(n.lowered, n.strategies, "%dx%d: all lower", nodes, per_node);
    is_int(n.formed, n.lowered,
           "%dx%d: no use outside a buffer's life, nothing left after a section", nodes,
           per_node);
    is_int(n.agree, n.lowered, "%dx%d: kernels see the layouts of their configuration",
           nodes, per_node);
    is_int(n.evaluated, n.lowered, "%dx%d: evaluated they cost and need the same", nodes,
           per_node);
    is_int(n.priced, n.lowered, "%dx%d: the program's collectives are the cost's", nodes,
           per_node);
    is_int(n.bounded, n.lowered, "%dx%d: the program's peak is within the plan's memory",
           nodes, per_node);
    is_int(n.in_place, n.lowered, "%dx%d: in place they compute the same in no more",
           nodes, per_node);
    ok(n.fewer > n.lowered && n.joined > n.lowered / 4,
       "%dx%d: %d buffers less, %d kernels joined", nodes, per_node, n.fewer, n.joined);
}

static void test_derivation(void)
{
    struct topt_mesh mesh;
    struct topt_model *m = topt_model_create("m", 4, 2, NULL);
    struct topt_attrs a = {.vocab = 8, .features = 8};
    int x = topt_model_add(m, "embedding", "e", 0, NULL, &a, NULL);
    x = topt_model_add(m, "linear", "l", 1, &x, &a, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    ok(x >= 0 && !topt_model_finish(m, NULL), "a three operator model");
    if (topt_mesh_init(&mesh, 1, 8, NULL))
        return;
    const struct topt_op *l = &m->op[1];
    enum { B, S, K, N };
    struct topt_config c;
    c = topt_config_none();
    c.dim[0] = B;
    c.dim[1] = K;
    c.dim[2] = N;
    struct topt_layout xv = topt_value_layout(l, 0, &c, &mesh);
    struct topt_layout xg = topt_grad_layout(l, 0, &c, &mesh);
    struct topt_layout wg = topt_grad_layout(l, 1, &c, &mesh);
    struct topt_layout yv = topt_value_layout(l, 2, &c, &mesh);
    struct topt_layout yg = topt_grad_layout(l, 2, &c, &mesh);
    ok(xv.at[0] == 0 && xv.at[1] == 2 && xv.at[2] == TOPT_REPLICATE,
       "x: b, k sharded, n whole");
    ok(xg.at[2] == TOPT_PARTIAL, "dx is partial along n");
    ok(wg.at[0] == TOPT_PARTIAL && wg.at[1] == 1 && wg.at[2] == 0,
       "dw is partial along b");
    ok(yv.at[1] == TOPT_PARTIAL && yv.at[2] == 2, "y is partial along k");
    ok(yg.at[1] == TOPT_REPLICATE, "dy is needed whole along k");
    const struct topt_op *loss = &m->op[2];
    c = topt_config_none();
    c.dim[0] = 2;
    struct topt_layout lv = topt_value_layout(loss, 2, &c, &mesh);
    ok(lv.at[0] == TOPT_REPLICATE, "a split of statistics leaves the loss whole");
    c.dim[0] = c.dim[1] = c.dim[2] = B;
    ok(!topt_config_valid(l, &c, &mesh), "a batch of 4 is not split 8 ways");
    topt_model_destroy(m);
}

/* ---- what settings decide, worked out by hand ------------------------------------------------ */

static int64_t all_bases(const struct topt_strategy_cost *c)
{
    int64_t ns = 0;
    for (int b = 0; b < TOPT_BASIS_COUNT; b++)
        ns += c->sum.basis_ns[b];
    return ns;
}

/* Two matrices of 8 x 8 and a vector of 8; 'mesh' splits the batch. */
static struct topt_strategy_cost cost_small(const struct topt_settings *s, int devices,
                                            enum topt_zero zero)
{
    struct topt_model *m = topt_model_create("small", 4, 2, NULL);
    struct topt_attrs a = {.vocab = 8, .features = 8}, fused = {.fused = 1};
    struct topt_strategy_cost c = {.memory_bytes = -1};
    struct topt_mesh mesh;
    int x = topt_model_add(m, "embedding", "e", 0, NULL, &a, NULL);
    x = topt_model_add(m, "linear", "l", 1, &x, &a, NULL);
    x = topt_model_add(m, "bias", "b", 1, &x, &fused, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    if (x < 0 || topt_model_finish(m, NULL) || topt_mesh_init(&mesh, 1, devices, NULL))
        return c;
    struct topt_strategy *st = topt_strategy_create(m);
    struct topt_router *r = topt_router_create(hw, &mesh);
    struct topt_costing k = {m, hw, &mesh, s, r, NULL};
    for (int i = 0; i < m->nops && devices > 1; i++) {
        st->config[i].dim[0] = 0;
        st->config[i].zero = (uint8_t)(i < 3 ? zero : TOPT_ZERO_NONE);
    }
    if (topt_cost_strategy(&k, st, &c, NULL))
        c.memory_bytes = -1;
    topt_router_destroy(r);
    topt_strategy_destroy(st);
    topt_model_destroy(m);
    return c;
}

static void test_settings(void)
{
    enum { NUMBERS = 64 + 64 + 8 };
    struct topt_settings s = topt_settings_default();
    s.granule_bytes = 1;
    s.optimizer = TOPT_ADAFACTOR;
    struct topt_strategy_cost c = cost_small(&s, 1, TOPT_ZERO_NONE);
    is_int(c.sum.class_bytes[TOPT_CLASS_STATE], 4 * (16 + 16 + 8),
           "adafactor keeps rows and columns, of a vector all");
    c = cost_small(&s, 2, TOPT_ZERO_STATE);
    is_int(c.sum.class_bytes[TOPT_CLASS_STATE], 4 * (12 + 12 + 4),
           "... of half of the rows where two share");
    s.optimizer = TOPT_ADAM8;
    c = cost_small(&s, 1, TOPT_ZERO_NONE);
    is_int(c.sum.class_bytes[TOPT_CLASS_STATE], 2 * (NUMBERS + 3 * 4),
           "adam8 keeps two bytes each and a scale a block");
    s.optimizer = TOPT_ADAMW_BF16;
    c = cost_small(&s, 1, TOPT_ZERO_NONE);
    is_int(c.sum.class_bytes[TOPT_CLASS_STATE], 4 * NUMBERS,
           "adamw_bf16 keeps two moments of two bytes");
    s.dtype = TOPT_BF16;
    is_int(topt_parameter_bytes(&s), 12, "... in bf16 twelve bytes a number in all");
    s.dtype = TOPT_F32;
    s.optimizer = TOPT_MUON; /* of no layer, so that AdamW updates all */
    c = cost_small(&s, 1, TOPT_ZERO_NONE);
    is_int(c.sum.class_bytes[TOPT_CLASS_STATE], 8 * NUMBERS,
           "muon leaves what is in no layer to AdamW");
    s.optimizer = TOPT_PAGED_ADAMW8;
    c = cost_small(&s, 1, TOPT_ZERO_NONE);
    is_int(c.sum.class_bytes[TOPT_CLASS_STATE], 0, "states that are paged need not stay");
    s.optimizer = TOPT_ADAM;
    s.dtype = TOPT_BF16;
    c = cost_small(&s, 1, TOPT_ZERO_NONE);
    is_int(c.sum.class_bytes[TOPT_CLASS_GRAD], 2 * NUMBERS, "bf16: gradients of 2 bytes");
    is_int(c.sum.class_bytes[TOPT_CLASS_STATE], 12 * NUMBERS,
           "bf16: two states and the master copy of 4 bytes");
    is_int(topt_parameter_bytes(&s), 16, "16 bytes a number in all");
    s.gradient_f32 = 1;
    c = cost_small(&s, 1, TOPT_ZERO_NONE);
    is_int(c.sum.class_bytes[TOPT_CLASS_GRAD], 4 * NUMBERS, "gradients in f32");
    is_int(topt_parameter_bytes(&s), 18, "18 bytes a number then");
    c = cost_small(&s, 2, TOPT_ZERO_GRADIENT);
    is_int(c.sum.class_bytes[TOPT_CLASS_GRAD], 2 * NUMBERS,
           "... and half where two share");
    c = cost_small(&s, 2, TOPT_ZERO_PARAM);
    is_int(c.sum.class_bytes[TOPT_CLASS_PARAM], NUMBERS, "half of the parameters too");
    s.accounting = TOPT_ACCOUNTING_PAPER;
    is_int(cost_small(&s, 1, TOPT_ZERO_NONE).memory_bytes, -1,
           "the papers count in f32 alone");
    s.dtype = TOPT_F32;
    c = cost_small(&s, 1, TOPT_ZERO_NONE);
    is_int(c.memory_bytes, 4 * NUMBERS + 2 * 4 * (64 + 64 + 8),
           "the papers: parameters, and twice the outputs that are not fused");
    is_int(all_bases(&c), c.time_ns, "each time rests on something");
}

/* Of each operator's moves of parameters what its own computation covers is not counted. */
static void test_overlap(void)
{
    static const struct {
        enum topt_zero zero;
        int gathers;
    } of[] = {{TOPT_ZERO_NONE, 0}, {TOPT_ZERO_GRADIENT, 0}, {TOPT_ZERO_PARAM, 1}};
    for (int i = 0; i < 3; i++) {
        struct topt_settings s = topt_settings_default();
        int64_t network[TOPT_OVERLAP_COUNT], compute = 0;
        for (int o = 0; o < TOPT_OVERLAP_COUNT; o++) {
            s.overlap = (enum topt_overlap)o;
            struct topt_strategy_cost c = cost_small(&s, 2, of[i].zero);
            network[o] = c.sum.network_ns;
            compute = o ? compute : c.sum.compute_ns;
            is_int(c.sum.compute_ns, compute, "zero %d, overlap %s: all is computed",
                   of[i].zero, topt_overlap_name(s.overlap));
            is_int(all_bases(&c), c.sum.compute_ns + c.sum.network_ns,
                   "... and parts add up");
        }
        ok(network[TOPT_OVERLAP_DDP] < network[TOPT_OVERLAP_NONE],
           "reductions hide behind backward");
        ok((network[TOPT_OVERLAP_FSDP] < network[TOPT_OVERLAP_DDP]) == of[i].gathers,
           "gathers hide where there are any");
        ok(network[TOPT_OVERLAP_NONE] - network[TOPT_OVERLAP_FSDP] <= compute,
           "no more is hidden than is computed");
    }
}

/* A framework's kernels: logits' log-softmax is in f32, a bias is an epilogue. */
static void test_kernels(void)
{
    enum { LOGITS = 4 * 2 * 8 };
    struct topt_settings s = topt_settings_default();
    s.granule_bytes = 1;
    s.dtype = TOPT_BF16;
    struct topt_strategy_cost own = cost_small(&s, 1, TOPT_ZERO_NONE);
    s.eager = TOPT_EAGER_OPERATORS;
    s.loss = TOPT_LOSS_WRITTEN;
    struct topt_strategy_cost eager = cost_small(&s, 1, TOPT_ZERO_NONE);
    is_int(eager.sum.class_bytes[TOPT_CLASS_KEPT],
           own.sum.class_bytes[TOPT_CLASS_KEPT] - 2 * LOGITS,
           "logits are not kept beyond their log-softmax");
    ok(topt_transient_code(eager.transient_cap) >= topt_transient_code(12 * LOGITS),
       "... which is in f32 as two gradients are");
    ok(eager.transient_cap > own.transient_cap, "... and more is alive at once");
    is_int(eager.sum.class_bytes[TOPT_CLASS_PARAM], own.sum.class_bytes[TOPT_CLASS_PARAM],
           "parameters are what they are");
    s.eager = 0;
    struct topt_strategy_cost compiled = cost_small(&s, 1, TOPT_ZERO_NONE);
    is_int(compiled.sum.class_bytes[TOPT_CLASS_KEPT],
           eager.sum.class_bytes[TOPT_CLASS_KEPT], "so it is where blocks are compiled");
}

/* An embedding, a product and the loss of its classes; '*ret_mesh' has one device.  NULL: failed. */
static struct topt_model *embedding_and_loss(const struct topt_attrs *table,
                                             const struct topt_attrs *classes,
                                             struct topt_mesh *ret_mesh)
{
    struct topt_model *m = topt_model_create("one", 2, 16, NULL);
    int x = topt_model_add(m, "embedding", "e", 0, NULL, table, NULL);
    x = topt_model_add(m, "linear", "head", 1, &x, classes, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    if (x >= 0 && !topt_model_finish(m, NULL) && !topt_mesh_init(ret_mesh, 1, 1, NULL))
        return m;
    topt_model_destroy(m);
    return NULL;
}

/* The most bytes in flight of an operator by itself, with this kernel of the loss. */
static int64_t in_flight(const char *name, enum topt_loss_kernel loss, int eager,
                         int64_t *ret_kept)
{
    struct topt_attrs table = {.vocab = 8, .features = 4}, classes = {.features = 40};
    struct topt_settings s = topt_settings_default();
    struct topt_fragment_cost c = {.transient_bytes = -1};
    struct topt_config whole = topt_config_none();
    struct topt_mesh mesh;
    struct topt_model *m = embedding_and_loss(&table, &classes, &mesh);
    s.dtype = TOPT_BF16;
    s.granule_bytes = 1;
    s.loss = loss;
    s.eager = eager ? TOPT_EAGER_OPERATORS : 0;
    if (m) {
        struct topt_router *r = topt_router_create(hw, &mesh);
        struct topt_costing k = {m, hw, &mesh, &s, r, NULL};
        struct topt_edge_end from = topt_edge_producer(&k, 1, &whole), to;
        struct topt_edge_cost e = {.nalts = 0};
        int op = topt_model_find(m, name);
        to = topt_edge_consumer(&k, 2, 0, &whole, 0);
        if (topt_cost_op(&k, op, &whole, &c, NULL) ||
            topt_cost_edge(&k, m->op[2].tensor[0], &from, &to, &e, NULL))
            c.transient_bytes = -1;
        *ret_kept = e.alt[0].class_bytes[TOPT_CLASS_KEPT];
        topt_router_destroy(r);
    }
    topt_model_destroy(m);
    return c.transient_bytes;
}

/* By hand, bytes for each of 2 x 16 x 40 logits in bf16, eighths. */
static void test_loss_kernels(void)
{
    enum { LOGITS = 2 * 16 * 40 };
    static const struct {
        enum topt_loss_kernel kernel;
        int eager;
        int64_t alive, kept, head; /* in the loss; kept for it; logits at the head */
        const char *why;
    } rows[] = {
        {TOPT_LOSS_WRITTEN, 1, 8 * 12, 0, 8 * 2, "log-softmax and two gradients in f32"},
        {TOPT_LOSS_IN_PLACE, 1, 8 * 6, 0, 8 * 2, "bf16 and one copy in f32"},
        {TOPT_LOSS_SAVED, 1, 8 * 4 + 8, 0, 2,
         "all log-softmax, two gradients of an eighth"},
        {TOPT_LOSS_SAVED, 0, 8 * 2 + 2, 0, 2,
         "all logits, compiled, one gradient of an eighth"},
        {TOPT_LOSS_FUSED, 1, 8 * 2, 8 * 2, 8 * 2, "logits and their gradient in bf16"},
        {TOPT_LOSS_CHUNKED, 1, 12, 0, 2, "an eighth of what is written"},
    };
    int64_t kept, small = in_flight("loss", TOPT_LOSS_FUSED, 1, &kept) - 2 * LOGITS;
    int64_t beside = in_flight("head", TOPT_LOSS_FUSED, 1, &kept) - 2 * LOGITS;
    is_int(small, 0, "a fused kernel's gradient is the most in flight");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name = topt_loss_kernel_name(rows[i].kernel);
        is_int(8 * (in_flight("loss", rows[i].kernel, rows[i].eager, &kept) - small),
               rows[i].alive * LOGITS, "%s: %s", name, rows[i].why);
        is_int(8 * kept, rows[i].kept * LOGITS, "... kept of the logits");
        is_int(8 * (in_flight("head", rows[i].kernel, rows[i].eager, &kept) - beside),
               rows[i].head * LOGITS, "... made at once by the head");
    }
}

/* By hand, of 2 x 16 x 40 logits: words over two ranks, and a log's metrics. */
static void test_loss_shares(void)
{
    enum { SPLIT = 2 * 16 * 20, WHOLE = 2 * 16 * 40 };
    static const int64_t half[] = {2, 16, 20}, whole[] = {2, 16, 40};
    struct topt_model *m = topt_model_create("one", 2, 16, NULL);
    struct topt_attrs table = {.vocab = 8, .features = 4}, classes = {.features = 40};
    struct topt_eager e, logged;
    int x = topt_model_add(m, "embedding", "e", 0, NULL, &table, NULL);
    x = topt_model_add(m, "linear", "head", 1, &x, &classes, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    if (x < 0 || topt_model_finish(m, NULL))
        exit(1);
    const struct topt_op *op = &m->op[m->loss];
    op->spec->eager(op, half, TOPT_LOSS_WRITTEN, &e);
    is_int(e.work[0].f32, 3 * SPLIT, "split words: three f32 copies forward");
    is_int(e.work[1].f32, 4 * SPLIT, "... and four backward");
    op->spec->eager(op, half, TOPT_LOSS_CHUNKED, &e);
    is_int(e.work[1].f32, 4 * SPLIT / 8, "... an eighth of them in chunks");
    op->spec->eager(op, half, TOPT_LOSS_IN_PLACE, &e);
    is_int(e.work[1].f32, SPLIT, "Megatron-LM's kernel holds one, split or not");
    is_int(op->spec->eager(op, whole, TOPT_LOSS_FUSED + TOPT_LOSS_AND_METRICS, &logged),
           TOPT_EAGER_BESIDE, "metrics come beside a fused loss");
    is_int(logged.moved[0].f32, 2 * 5 * WHOLE, "... each moves what a written one does");
    ok(!logged.work[0].f32 && !logged.work[1].f32 && !logged.moved[1].f32,
       "... and after backward, so that the most held is as it was");
    op->spec->eager(op, whole, TOPT_LOSS_WRITTEN, &e);
    op->spec->eager(op, whole, TOPT_LOSS_WRITTEN + TOPT_LOSS_AND_METRICS, &logged);
    is_int(logged.moved[0].f32 - e.moved[0].f32, 2 * 5 * WHOLE, "... or beside another");
    is_int(logged.work[1].f32, e.work[1].f32, "... which holds what it held");
    topt_model_destroy(m);
}

/* Of two losses the first keeps its softmax until the last one's backward. */
static void test_waiting_loss(void)
{
    enum { WHOLE = 2 * 16 * 40 };
    static const int64_t whole[] = {2, 16, 40};
    struct topt_model *m = topt_model_create("two", 2, 16, NULL);
    struct topt_attrs table = {.vocab = 8, .features = 4}, classes = {.features = 40};
    struct topt_eager first, last;
    int e = topt_model_add(m, "embedding", "e", 0, NULL, &table, NULL);
    int x = topt_model_add(m, "linear", "further", 1, &e, &classes, NULL);
    x = topt_model_add(m, "cross_entropy", "further.loss", 1, &x, NULL, NULL);
    x = topt_model_add(m, "linear", "head", 1, &e, &classes, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    if (x < 0 || topt_model_finish(m, NULL))
        exit(1);
    const struct topt_op *op = &m->op[m->loss], *before = op - 2;
    op->spec->eager(op, whole, TOPT_LOSS_IN_PLACE, &last);
    op->spec->eager(before, whole, TOPT_LOSS_IN_PLACE, &first);
    ok(m->mtp == 1 && !topt_op_waits_for_loss(op) && topt_op_waits_for_loss(before),
       "two losses, of which the first waits");
    is_int(first.kept.f32, WHOLE, "... and keeps a softmax in f32");
    ok(!last.kept.f32 && first.work[0].f32 + first.kept.f32 == last.work[0].f32,
       "... of what the last one holds while it runs");
    topt_model_destroy(m);
    m = topt_model_create("unlike", 2, 16, NULL);
    e = topt_model_add(m, "embedding", "e", 0, NULL, &table, NULL);
    x = topt_model_add(m, "mse", "other", 1, &e, NULL, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &e, NULL, NULL);
    struct topt_error err = {0};
    ok(x >= 0 && topt_model_finish(m, &err) && strstr(err.text, "two losses"),
       "losses of unlike kinds are refused: %s", err.text);
    topt_model_destroy(m);
}

/* The time of an embedding of so many words, with a framework's own kernels. */
static int64_t embedding_ns(int64_t vocab, enum topt_gather gather)
{
    struct topt_attrs table = {.vocab = vocab, .features = 64}, classes = {.features = 8};
    struct topt_settings s = topt_settings_default();
    struct topt_fragment_cost c = {.compute_ns = -1};
    struct topt_config whole = topt_config_none();
    struct topt_mesh mesh;
    struct topt_model *m = embedding_and_loss(&table, &classes, &mesh);
    s.dtype = TOPT_BF16;
    s.by_unit = 1;
    s.gather = gather;
    s.micro_batches = 2;
    if (m) {
        struct topt_router *r = topt_router_create(hw, &mesh);
        struct topt_costing k = {m, hw, &mesh, &s, r, NULL};
        if (topt_cost_op(&k, 0, &whole, &c, NULL))
            c.spent.at[TOPT_DURING_BACKWARD].compute_ns = -1;
        topt_router_destroy(r);
    }
    topt_model_destroy(m);
    return c.spent.at[TOPT_DURING_BACKWARD].compute_ns;
}

/* Each micro-batch's gradient of a table is as large as the table. */
static void test_dense_gradients(void)
{
    int64_t small = embedding_ns(1000, TOPT_GATHER_OPERATOR),
            large = embedding_ns(1000000, TOPT_GATHER_OPERATOR);
    ok(small > 0 && large > 2 * small,
       "a larger table's gradient takes longer: %lld ns, %lld", (long long)small,
       (long long)large);
}

/* Bytes kept by an operator of its own, over 'own' of the same. */
static int64_t kept_more(const char *kind, int64_t unit, const struct topt_attrs *a,
                         int parts)
{
    struct topt_model *m = topt_model_create("one", 2, 16, NULL);
    struct topt_attrs table = {.vocab = 8, .features = 4};
    struct topt_attrs into = {.features = 4, .features_unit = unit};
    struct topt_attrs classes = {.features = 8};
    struct topt_settings s = topt_settings_default();
    struct topt_fragment_cost own, other;
    struct topt_config whole = topt_config_none();
    struct topt_mesh mesh;
    int x = topt_model_add(m, "embedding", "e", 0, NULL, &table, NULL);
    x = topt_model_add(m, "linear", "in", 1, &x, &into, NULL);
    x = topt_model_add(m, kind, "it", 1, &x, a, NULL);
    x = topt_model_add(m, "linear", "out", 1, &x, &classes, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    int64_t ret = -1;
    if (x >= 0 && !topt_model_finish(m, NULL) && !topt_mesh_init(&mesh, 1, 1, NULL)) {
        struct topt_router *r = topt_router_create(hw, &mesh);
        struct topt_costing k = {m, hw, &mesh, &s, r, NULL};
        int it = topt_model_find(m, "it"), bad = topt_cost_op(&k, it, &whole, &own, NULL);
        s.eager = parts;
        bad |= topt_cost_op(&k, it, &whole, &other, NULL);
        ret = bad ? -1
                  : other.class_bytes[TOPT_CLASS_KEPT] - own.class_bytes[TOPT_CLASS_KEPT];
        topt_router_destroy(r);
    }
    topt_model_destroy(m);
    return ret;
}

/* Bytes that a linear map of 2 samples of 16 positions with 4 features keeps in bf16, by what is dropped of its input. */
static int64_t kept_of_adapter(int masked, int copy)
{
    struct topt_model *m = topt_model_create("one", 2, 16, NULL);
    struct topt_attrs table = {.vocab = 8, .features = 4}, classes = {.features = 8};
    struct topt_attrs down = {.features = 2, .masked = masked, .written = copy};
    struct topt_settings s = topt_settings_default();
    struct topt_fragment_cost cost;
    struct topt_config whole = topt_config_none();
    struct topt_mesh mesh;
    int x = topt_model_add(m, "embedding", "e", 0, NULL, &table, NULL);
    x = topt_model_add(m, "linear", "it", 1, &x, &down, NULL);
    x = topt_model_add(m, "linear", "out", 1, &x, &classes, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    int64_t ret = -1;
    s.dtype = TOPT_BF16;
    s.by_unit = 1;
    if (x >= 0 && !topt_model_finish(m, NULL) && !topt_mesh_init(&mesh, 1, 1, NULL)) {
        struct topt_router *r = topt_router_create(hw, &mesh);
        struct topt_costing k = {m, hw, &mesh, &s, r, NULL};
        ret = topt_cost_op(&k, topt_model_find(m, "it"), &whole, &cost, NULL)
                  ? -1
                  : cost.class_bytes[TOPT_CLASS_KEPT];
        topt_router_destroy(r);
    }
    topt_model_destroy(m);
    return ret;
}

/* As PyTorch's saved_tensors_hooks count of x of bf16 with native_dropout before a linear map (torch 2.14.1): what is left of x, 2 bytes
 * a number, and a mask of one; x itself is kept for no map with frozen weights. */
static void test_adapter(void)
{
    int64_t plain = kept_of_adapter(0, 0);
    ok(plain >= 0, "a linear map keeps what it keeps");
    is_int(kept_of_adapter(1, 0) - plain, 2 * 16 * 4,
           "dropout before it: a byte a number");
    is_int(kept_of_adapter(1, 1) - plain, 3 * 2 * 16 * 4,
           "... and two for a copy, where its input is kept besides");
}

/* By hand, of 2 samples of 16 positions. */
static void test_kept(void)
{
    struct topt_attrs rms = {.rms = 1}, layer = {.rms = 0};
    struct topt_attrs act = {.activation = TOPT_ACT_SILU}, drop = {.rate = 0.5};
    struct topt_attrs heads = {.heads = 4, .head_dim = 2}, undropped = heads;
    int parts = TOPT_EAGER_OPERATORS, scores = parts | TOPT_EAGER_SCORES;
    is_int(kept_more("norm", 1, &rms, parts | TOPT_EAGER_NORMS), 4 * 2 * 16 * 4,
           "RMS norm written out keeps its input in f32 too");
    is_int(kept_more("norm", 1, &rms, parts), 0, "... and in one kernel nothing more");
    is_int(kept_more("norm", 1, &layer, parts), 0, "layer norm keeps what ours does");
    is_int(kept_more("glu", 2, &act, parts), 4 * 2 * 16 * 4,
           "a gate's activation is kept");
    is_int(kept_more("dropout", 1, &drop, parts), 2 * 16 * 4,
           "a byte of what is dropped");
    is_int(kept_more("attention", 6, &heads, parts), 0, "attention is one kernel");
    is_int(kept_more("attention", 6, &heads, scores), (2 * 4 + 1) * 2 * 4 * 16 * 16,
           "... or keeps two numbers and a byte of each pair");
    undropped.undropped = 1;
    is_int(kept_more("attention", 6, &undropped, scores), 4 * 2 * 4 * 16 * 16,
           "... one number where nothing is dropped");
}

/* An operator reads what the one before it makes as both of its inputs: while the second
 * gradient is gathered into the hub the first one waits there, whole. */
static void test_two_uses(void)
{
    enum { DEVICES = 12 };
    struct topt_model *m = topt_model_create("twice", 24, 6, NULL);
    struct topt_attrs a = {.vocab = 8, .features = 64};
    int x = topt_model_add(m, "embedding", "e", 0, NULL, &a, NULL), two[2] = {x, x};
    x = topt_model_add(m, "add", "twice", 2, two, NULL, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    struct topt_settings settings = topt_settings_default();
    struct topt_strategy_cost cost;
    struct topt_program *p = NULL;
    struct topt_mesh mesh;
    if (x < 0 || topt_model_finish(m, NULL) || topt_mesh_init(&mesh, 1, DEVICES, NULL))
        return;
    struct topt_router *r = topt_router_create(hw, &mesh);
    struct topt_strategy *s = topt_strategy_create(m);
    struct topt_costing k = {m, hw, &mesh, &settings, r, NULL};
    for (int i = 1; i < m->nops; i++)
        for (int axis = 0; axis < mesh.naxes; axis++)
            s->config[i].dim[axis] = 0; /* the batch */
    s->hub[two[0]].keep = TOPT_HUB_DROP;
    int rc = topt_cost_strategy(&k, s, &cost, NULL) ||
             topt_lower(m, &mesh, &settings, s, r, 0, &p, NULL);
    ok(!rc && p->peak_bytes <= cost.memory_bytes,
       "two uses by one operator: %lld bytes at the peak, at most %lld",
       (long long)(p ? p->peak_bytes : -1), (long long)cost.memory_bytes);
    topt_program_destroy(p);
    topt_strategy_destroy(s);
    topt_router_destroy(r);
    topt_model_destroy(m);
}

/* An operator on data alone has no backward: what it would save for that must not stay. */
static void test_without_backward(void)
{
    struct topt_model *m = topt_model_create("data", 4, 6, NULL);
    struct topt_attrs a = {.features = 8};
    struct topt_settings settings = topt_settings_default();
    struct topt_strategy_cost cost;
    struct topt_program *p = NULL;
    struct topt_mesh mesh;
    int x = topt_model_add(m, "input", "x", 0, NULL, &a, NULL);
    x = topt_model_add(m, "softmax", "softmax", 1, &x, NULL, NULL);
    x = topt_model_add(m, "linear", "linear", 1, &x, &a, NULL);
    x = topt_model_add(m, "mse", "loss", 1, &x, NULL, NULL);
    if (x < 0 || topt_model_finish(m, NULL) || topt_mesh_init(&mesh, 1, 2, NULL))
        return;
    struct topt_router *r = topt_router_create(hw, &mesh);
    struct topt_strategy *s = topt_strategy_create(m);
    struct topt_costing k = {m, hw, &mesh, &settings, r, NULL};
    struct topt_evaluator *evaluator = topt_evaluator_create(&k, 1, NULL);
    int rc = topt_cost_strategy(&k, s, &cost, NULL) ||
             topt_lower(m, &mesh, &settings, s, r, 0, &p, NULL);
    ok(!rc && well_formed(p) && p->peak_bytes <= cost.memory_bytes &&
           evaluated(evaluator, s, &cost, p->peak_bytes),
       "an operator without backward leaves nothing");
    topt_evaluator_destroy(evaluator);
    topt_program_destroy(p);
    topt_strategy_destroy(s);
    topt_router_destroy(r);
    topt_model_destroy(m);
}

int main(void)
{
    hw = topt_hw_load("lab-cpu", NULL);
    if (!ok(hw != NULL, "the profile loads"))
        return done_testing();
    test_derivation();
    test_two_uses();
    test_without_backward();
    test_settings();
    test_overlap();
    test_kernels();
    test_loss_kernels();
    test_loss_shares();
    test_waiting_loss();
    test_dense_gradients();
    test_kept();
    test_adapter();
    check_random(1, 1, 0, TOPT_SPACE_FULL);
    check_random(1, 2, 1, TOPT_SPACE_FULL);
    check_random(1, 3, 0, TOPT_SPACE_FULL);
    check_random(2, 2, 1, TOPT_SPACE_FULL);
    check_random(2, 4, 0, TOPT_SPACE_CANONICAL);
    topt_hw_destroy(hw);
    return done_testing();
}
