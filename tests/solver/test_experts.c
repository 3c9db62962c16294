/* test_experts.c - expert and context parallelism: the degrees of a grid are those counted by hand, each gives the experts and
 * nothing else other axes, the moves are the all-to-alls counted by hand, and what is least for degrees that differ
 * by where experts are alone is the same from one problem as from the problem of each, and no strategy's units are below
 * the least of units by which degrees are bounded. */
#include "floors.h"
#include "free.h"
#include "grid.h"
#include "planning.h"
#include "request.h"
#include "tap.h"
#include "topt_question.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 32, SEQ = 64, WIDTH = 256, INNER = 512, EXPERTS = 8, TOP_K = 2 };

static struct topt_model *model_of(const char *family, int64_t seq)
{
    char text[400];
    snprintf(text, sizeof text,
             "{\"model_type\":\"%s\",\"hidden_size\":256,\"num_hidden_layers\":3,"
             "\"num_attention_heads\":16,\"num_key_value_heads\":8,"
             "\"intermediate_size\":512,"
             "\"vocab_size\":1024,\"max_position_embeddings\":4096,"
             "\"num_local_experts\":8,\"num_experts_per_tok\":2}",
             family);
    struct topt_import_options o = {.batch = BATCH, .seq = seq, .capacity = 1};
    return topt_model_import(text, strlen(text), "config.json", &o, NULL);
}

static struct topt_model *mixtral_of(int64_t seq)
{
    return model_of("mixtral", seq);
}

static struct topt_model *mixtral(void)
{
    return mixtral_of(SEQ);
}

struct asked {
    int64_t context;  /* set before; 0: not asked for */
    int64_t software; /* the year; 0: today */
    struct topt_request r;
    struct topt_planning m;
    struct topt_grid_search s;
};

static void open_grid(struct asked *a, const struct topt_model *m,
                      const struct topt_hw *hw, const char *framework, int nodes)
{
    struct topt_error err = {0};
    topt_request_init(&a->r);
    a->r.model = m;
    a->r.hw = hw;
    a->r.threads = 1;
    a->r.context = a->context;
    a->r.software = a->software;
    if (topt_framework_find(framework, &a->r.framework, &err) ||
        topt_request_complete(&a->r, &err) || topt_planning_init(&a->m, &a->r, &err) ||
        topt_grid_open(&a->s, &a->m, nodes, 8, TOPT_GOAL_FASTEST, &err))
        printf("# %s\n", err.text);
}

static void close_grid(struct asked *a)
{
    topt_grid_close(&a->s);
    topt_planning_fini(&a->m);
}

/* ---- degrees --------------------------------------------------------------------------- */

static int listed(const struct topt_grid_search *s, int data, int level, int expert,
                  int inside)
{
    int n = 0;
    for (int i = 0; i < s->ndegrees; i++) {
        const struct topt_degrees *d = &s->degrees[i];
        n += d->micro_batches == 1 && !d->recompute && !d->shard && d->data == data &&
             d->level == level && d->expert == expert && d->expert_tensor == inside;
    }
    return n;
}

/* Of 16 GPUs, by the rules that frameworks have: 'inside', tensor parallelism may split each expert. */
static void test_degrees(const struct topt_model *m, const struct topt_hw *hw,
                         const char *framework, int levels, int inside)
{
    struct asked a = {0};
    int bad = 0, shared = 0;
    open_grid(&a, m, hw, framework, 2);
    for (int tensor = 1; tensor <= 8; tensor *= 2)
        for (int level = 0; level < 4; level++)
            for (int in = 1; in <= 16; in *= 2)
                for (int expert = 2; expert <= 16; expert *= 2) {
                    int fits = expert <= EXPERTS && expert * in >= tensor &&
                               expert * in <= 16 && levels >> level & 1 &&
                               (in == 1 || (inside && in == tensor));
                    shared += fits;
                    if (listed(&a.s, 16 / tensor, level, expert, in) != fits) {
                        printf("# tp %d, level %d, experts over %d x %d\n", tensor, level,
                               expert, in);
                        bad = 1;
                    }
                }
    ok(!bad && shared, "%s: all %d degrees with experts shared out", framework, shared);
    close_grid(&a);
}

/* ---- layouts and moves ------------------------------------------------------------------- */

/* The one strategy of some degrees; the caller's. */
static struct topt_strategy *strategy_of(struct asked *a, const struct topt_degrees *d)
{
    struct topt_search_options o = {.threads = 1};
    struct topt_solutions all = {0};
    struct topt_problem *p = NULL;
    struct topt_strategy *s = NULL;
    if (!topt_grid_priced(&a->s, d, &p, NULL) && topt_problem_has_choices(p) &&
        !topt_solve_frontier(p, &o, &all, NULL) && all.n) {
        s = all.at[0].strategy;
        all.at[0].strategy = NULL;
    }
    topt_solutions_fini(&all);
    topt_problem_destroy(p);
    return s;
}

static const struct topt_degrees *degrees_of(const struct asked *a, int tensor,
                                             int expert, int inside, int64_t rounds)
{
    for (int i = 0; i < a->s.ndegrees; i++) {
        const struct topt_degrees *d = &a->s.degrees[i];
        if (d->tensor == tensor && d->expert == expert && d->expert_tensor == inside &&
            d->level == TOPT_ZERO_STATE && !d->recompute && d->micro_batches == rounds)
            return d;
    }
    return NULL;
}

/* Bytes that all-to-alls of a program move in a micro-batch, by direction, and how many there are. */
struct exchanged {
    int64_t bytes[2];
    int n[2];
};

static struct exchanged exchange(struct asked *a, const struct topt_degrees *d)
{
    struct exchanged x = {0};
    struct topt_costing k;
    struct topt_program *p = NULL;
    struct topt_strategy *s = strategy_of(a, d);
    if (!s || topt_grid_costing(&a->s, d, &k, NULL) ||
        topt_lower(k.model, k.mesh, k.settings, s, k.router, 0, &p, NULL)) {
        topt_strategy_destroy(s);
        return x;
    }
    for (int i = p->micro_begin; i < p->micro_end; i++) {
        const struct topt_instr *in = &p->instr[i];
        if (in->kind != TOPT_I_MOVE)
            continue;
        const struct topt_buffer *b = &p->buffer[in->a];
        int all_to_all = in->move.kind == TOPT_MOVE_ALL_TO_ALL;
        x.n[in->backward] += all_to_all;
        if (all_to_all)
            x.bytes[in->backward] +=
                topt_layout_elements(k.mesh, &b->shape, &in->move.from) *
                topt_dtype_bytes(k.settings->dtype);
    }
    topt_program_destroy(p);
    topt_strategy_destroy(s);
    return x;
}

static void test_moves(const struct topt_model *m, const struct topt_hw *hw)
{
    struct asked a = {0};
    open_grid(&a, m, hw, "megatron", 1);
    /* Two samples a rank: each of their tokens goes to two experts, there and back, in each layer. */
    int64_t tokens = BATCH / 8 / 2 * SEQ, slots = tokens * TOP_K * WIDTH * 2;
    for (int expert = 2; expert <= 8; expert *= 2) {
        const struct topt_degrees *d = degrees_of(&a, 1, expert, 1, 2);
        struct exchanged x = d ? exchange(&a, d) : (struct exchanged){0};
        ok(x.n[0] == 2 * 3 && x.n[1] == 2 * 3,
           "experts over %d: all-to-alls to them and back, of values and of gradients",
           expert);
        is_int(x.bytes[0], 2 * 3 * slots, "bytes that a rank has of tokens by expert");
        is_int(x.bytes[1], 2 * 3 * slots, "and of their gradients");
    }
    const struct topt_degrees *whole = degrees_of(&a, 1, 1, 1, 2);
    struct exchanged none = whole ? exchange(&a, whole) : (struct exchanged){.n = {1}};
    ok(none.n[0] + none.n[1] == 0, "where each rank has all experts there are none");
    close_grid(&a);
}

/* Of two experts of eight, a token has some on so many of n places on the mean; groups leave fewer places. */
static void test_sent(const struct topt_model *m)
{
    int e = topt_model_find(m, "h1.experts"), d = topt_model_find(m, "h1.dispatch"),
        o = topt_model_find(m, "h1.out"), r = topt_model_find(m, "h1.route");
    int to = topt_output_tensor(&m->op[d]), back = topt_output_tensor(&m->op[e]),
        none = topt_output_tensor(&m->op[o]);
    double two = topt_tokens_sent(m, to, 2), four = topt_tokens_sent(m, back, 4);
    ok(two == 0.75 && four == 0.875, "once to each place: shares %g, %g", two, four);
    ok(topt_tokens_sent(m, to, 1) == 0.5 && topt_tokens_sent(m, none, 4) == 1,
       "of one place half, of other tensors all");
    struct topt_attrs *route = m->op[r].attrs;
    route->groups = 4;
    route->top_groups = 1;
    ok(topt_tokens_sent(m, to, 4) == 0.5 && topt_tokens_sent(m, to, 8) == 0.75,
       "where a token's experts are of one group, as those of its places");
    route->groups = route->top_groups = 1;
}

static const char *axes_of(const struct topt_mesh *mesh, const struct topt_op *op,
                           const struct topt_config *c, char *buf)
{
    int n = 0;
    for (int i = 0; i < mesh->naxes; i++)
        buf[n++] = c->dim[i] < 0 ? '-' : op->spec->dim[c->dim[i]].name[0];
    buf[n] = 0;
    return buf;
}

static void test_layouts(const struct topt_model *m, const struct topt_hw *hw)
{
    static const struct {
        int tensor, expert, inside;
        const char *experts, *dispatch, *down; /* 'down': of attention's last product */
    } want[] = {
        {1, 1, 1, "bbbb", "bbbb", "bbbb"}, {1, 4, 1, "bbee", "bbbb", "bbbb"},
        {2, 2, 1, "bbbe", "bbbd", "bbbk"}, {2, 4, 1, "bbee", "bbbd", "bbbk"},
        {2, 4, 2, "beef", "bbbd", "bbbk"}, {4, 8, 1, "beee", "bbdd", "bbkk"},
        {4, 2, 4, "beff", "bbdd", "bbkk"},
    };
    struct asked a = {0};
    open_grid(&a, m, hw, "megatron", 2);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct topt_degrees *d =
            degrees_of(&a, want[i].tensor, want[i].expert, want[i].inside, 1);
        struct topt_strategy *s = d ? strategy_of(&a, d) : NULL;
        char experts[16] = "", dispatch[16] = "", down[16] = "";
        int e = topt_model_find(m, "h1.experts"), p = topt_model_find(m, "h1.dispatch"),
            o = topt_model_find(m, "h1.out");
        if (s) {
            axes_of(&a.s.mesh, &m->op[e], &s->config[e], experts);
            axes_of(&a.s.mesh, &m->op[p], &s->config[p], dispatch);
            axes_of(&a.s.mesh, &m->op[o], &s->config[o], down);
        }
        ok(!strcmp(experts, want[i].experts) && !strcmp(dispatch, want[i].dispatch) &&
               !strcmp(down, want[i].down),
           "tensor %d, experts over %d x %d: axes %s, %s, %s", want[i].tensor,
           want[i].expert, want[i].inside, experts, dispatch, down);
        topt_strategy_destroy(s);
    }
    close_grid(&a);
}

/* ---- context --------------------------------------------------------------------------- */

static struct topt_model *llama(int apart, int64_t seq)
{
    static const char text[] =
        "{\"model_type\":\"llama\",\"hidden_size\":256,\"num_hidden_layers\":3,"
        "\"num_attention_heads\":16,\"num_key_value_heads\":8,\"intermediate_size\":512,"
        "\"vocab_size\":1024,\"max_position_embeddings\":4096}";
    struct topt_import_options o = {.batch = BATCH, .seq = seq, .apart = apart};
    return topt_model_import(text, strlen(text), "config.json", &o, NULL);
}

/* Bytes that collectives of a kind move in a micro-batch, forward, and how many there are. */
static int64_t moved(struct asked *a, const struct topt_degrees *d,
                     enum topt_move_kind kind, int backward, int *ret_n)
{
    struct topt_costing k;
    struct topt_program *p = NULL;
    struct topt_strategy *s = strategy_of(a, d);
    int64_t bytes = 0;
    *ret_n = 0;
    if (s && !topt_grid_costing(&a->s, d, &k, NULL))
        (void)!topt_lower(k.model, k.mesh, k.settings, s, k.router, 0, &p, NULL);
    for (int i = p ? p->micro_begin : 0; p && i < p->micro_end; i++) {
        const struct topt_instr *in = &p->instr[i];
        if (in->kind != TOPT_I_MOVE || in->move.kind != kind || in->backward != backward)
            continue;
        ++*ret_n;
        bytes += topt_layout_elements(k.mesh, &p->buffer[in->a].shape, &in->move.to) *
                 topt_dtype_bytes(k.settings->dtype);
    }
    topt_program_destroy(p);
    topt_strategy_destroy(s);
    return bytes;
}

static const struct topt_degrees *with_context(const struct asked *a, int tensor,
                                               int context)
{
    for (int i = 0; i < a->s.ndegrees; i++) {
        const struct topt_degrees *d = &a->s.degrees[i];
        if (d->tensor == tensor && d->context == context &&
            (d->level == TOPT_ZERO_STATE || d->level == TOPT_ZERO_PARAM) &&
            !d->recompute && d->micro_batches == 2)
            return d;
    }
    return NULL;
}

static void test_context(const struct topt_hw *hw, int apart)
{
    struct topt_model *m = llama(apart, SEQ);
    struct asked a = {0};
    char axes[16] = "";
    int n = 0, only = 1;
    a.context = 4;
    open_grid(&a, m, hw, "megatron", 1);
    for (int i = 0; i < a.s.ndegrees; i++)
        only &= a.s.degrees[i].context == 4 &&
                a.s.degrees[i].data * a.s.degrees[i].tensor * 4 == 8;
    ok(a.s.ndegrees > 0 && only, "all degrees have the context ranks that are asked for");
    const struct topt_degrees *d = with_context(&a, 1, 4);
    struct topt_strategy *s = d ? strategy_of(&a, d) : NULL;
    static const struct {
        const char *name, *axes[2];
    } want[] = {{"h1.norm1", {"bss", "bss"}},    {"h1.out", {"bss", "bss"}},
                {"embedding", {"bss", "bss"}},   {"loss", {"bss", "bss"}},
                {"h1.attention", {"bhh", NULL}}, {"h1.attend", {NULL, "bss"}}};
    for (size_t i = 0; s && i < sizeof want / sizeof *want; i++) {
        int op = topt_model_find(m, want[i].name);
        if (!want[i].axes[apart])
            continue;
        ok(op >= 0 && !strcmp(axes_of(&a.s.mesh, &m->op[op], &s->config[op], axes),
                              want[i].axes[apart]),
           "%s over context ranks: axes %s", want[i].name, axes);
    }
    topt_strategy_destroy(s);
    /* Of 16 samples of a micro-batch a data rank has 8; keys and values of 8 heads of 16 numbers each. */
    int64_t tokens = BATCH / 2 / 2 * SEQ, kv = tokens * 2 * 8 * 16 * 2;
    if (apart) {
        int64_t bytes = d ? moved(&a, d, TOPT_MOVE_ALL_GATHER, 0, &n) : 0;
        ok(n == 3 && bytes == 3 * kv, "each layer gathers keys and values: %lld bytes",
           (long long)bytes);
        bytes = d ? moved(&a, d, TOPT_MOVE_REDUCE_SCATTER, 1, &n) : 0;
        ok(n == 3 && bytes == 3 * kv / 4, "and scatters their gradients: %lld bytes",
           (long long)bytes);
    } else {
        int64_t all = (kv + tokens * 16 * 16 * 2) / 4, y = tokens * WIDTH * 2 / 4;
        int64_t bytes = d ? moved(&a, d, TOPT_MOVE_ALL_TO_ALL, 0, &n) : 0;
        ok(n == 6 && bytes == 3 * (all + y),
           "each layer exchanges positions for heads and back: %lld bytes",
           (long long)bytes);
    }
    close_grid(&a);
    topt_model_destroy(m);
}

static int64_t at_least_0(int64_t n)
{
    return n > 0 ? n : 0;
}

/* Over 4 ranks keys and values go around in 3 hops forward; backward they do so again with their gradients, which take
 * a fourth: computing waits for what three quarters of the attention do not hide. */
static void test_ring(const struct topt_hw *hw, int64_t seq)
{
    struct topt_model *m = llama(1, seq);
    struct asked a = {.context = 4};
    struct topt_fragment_cost attends = {.compute_ns = 0};
    struct topt_edge_cost plain = {.nalts = 0}, ring = {.nalts = 0};
    struct topt_costing k;
    int op = topt_model_find(m, "h1.attend");
    open_grid(&a, m, hw, "megatron", 1);
    const struct topt_degrees *d = with_context(&a, 1, 4);
    struct topt_strategy *s = d ? strategy_of(&a, d) : NULL;
    const struct topt_op *o = &m->op[op];
    int tensor = topt_input_tensor(o, o->ninputs - 1);
    int kv = m->tensor[tensor].producer;
    if (s && !topt_grid_costing(&a.s, d, &k, NULL) &&
        !topt_cost_op(&k, op, &s->config[op], &attends, NULL)) {
        struct topt_edge_end from = topt_edge_producer(&k, kv, &s->config[kv]);
        struct topt_edge_end to =
            topt_edge_consumer(&k, op, o->ninputs - 1, &s->config[op], 0);
        (void)!topt_cost_edge(&k, tensor, &from, &to, &ring, NULL);
        to.ring = 0;
        (void)!topt_cost_edge(&k, tensor, &from, &to, &plain, NULL);
    }
    int64_t want[2], got[2], gather = 0, scatter = 0;
    gather = plain.alt[0].spent.at[TOPT_DURING_FORWARD].waited_ns;
    scatter = plain.alt[0].spent.at[TOPT_DURING_BACKWARD].waited_ns;
    want[0] = gather - attends.spent.at[TOPT_DURING_FORWARD].compute_ns * 3 / 4;
    want[1] =
        gather + scatter - attends.spent.at[TOPT_DURING_BACKWARD].compute_ns * 3 / 4;
    want[0] = at_least_0(want[0]);
    want[1] = at_least_0(want[1]) + scatter / 3;
    for (int i = 0; i < 2; i++)
        got[i] = ring.alt[0].spent.at[TOPT_DURING_FORWARD + i].waited_ns;
    ok(gather > 0 && llabs(got[0] - want[0]) < 5 && llabs(got[1] - want[1]) < 5,
       "keys and values of %lld positions go around: %lld and %lld ns are waited for, "
       "not "
       "%lld and %lld",
       (long long)seq, (long long)want[0], (long long)want[1], (long long)got[0],
       (long long)got[1]);
    int64_t whole = plain.alt[0].class_bytes[TOPT_CLASS_KEPT];
    int64_t part = ring.alt[0].class_bytes[TOPT_CLASS_KEPT];
    ok(part > 0 && llabs(4 * part - whole) < 1024,
       "each rank keeps its part, %lld of %lld", (long long)part, (long long)whole);
    topt_strategy_destroy(s);
    close_grid(&a);
    topt_model_destroy(m);
}

/* What attention over 4 ranks takes longer than without merging, in one direction. */
static int64_t merging_ns(const struct topt_costing *k, const struct topt_config *c,
                          int op, int backward)
{
    struct topt_settings bare = *k->settings;
    struct topt_costing without = *k;
    struct topt_fragment_cost cost[2] = {{.compute_ns = 0}, {.compute_ns = 0}};
    bare.merge = TOPT_MERGE_NONE;
    without.settings = &bare;
    if (topt_cost_op(k, op, c, &cost[1], NULL) ||
        topt_cost_op(&without, op, c, &cost[0], NULL))
        return -1;
    int part = TOPT_DURING_FORWARD + backward;
    return cost[1].spent.at[part].compute_ns - cost[0].spent.at[part].compute_ns;
}

/* Each of three steps merges its output with what there is, of 4,096 / 4 positions of 256 numbers; keys and values are as
 * many.  'bytes' for each such number, forward and backward; 0: one kernel meets all keys. */
static void test_merging(const struct topt_hw *hw, const char *framework, int software,
                         int forward, int backward)
{
    const int64_t bytes[2] = {forward, backward};
    struct topt_model *m = llama(1, 4096);
    struct asked a = {.context = 4, .software = software};
    struct topt_costing k;
    int op = topt_model_find(m, "h1.attend");
    open_grid(&a, m, hw, framework, 1);
    const struct topt_degrees *d = with_context(&a, 1, 4);
    struct topt_strategy *s = d ? strategy_of(&a, d) : NULL;
    int there = s && !topt_grid_costing(&a.s, d, &k, NULL);
    for (int i = 0; i < 2; i++) {
        int64_t rounds = there ? k.settings->micro_batches : 1;
        int64_t numbers = BATCH / 2 / rounds * (4096 / 4) * WIDTH;
        int64_t want = topt_hw_compute(hw, TOPT_BF16, TOPT_WORK_ELEMENTWISE, 0,
                                       numbers * bytes[i], 8)
                           .ns *
                       rounds;
        int64_t got = there ? merging_ns(&k, &s->config[op], op, i) : -1;
        ok(got == (bytes[i] ? want : 0), "%s of %d merges in %lld ns, not %lld",
           framework, software, (long long)(bytes[i] ? want : 0), (long long)got);
    }
    topt_strategy_destroy(s);
    close_grid(&a);
    topt_model_destroy(m);
}

/* ---- what is least ----------------------------------------------------------------------- */

static int alike(const struct topt_degrees *a, struct topt_degrees b)
{
    b.expert = a->expert;
    b.expert_tensor = a->expert_tensor;
    return !topt_degrees_order(a, &b);
}

static void test_least(const struct topt_model *m, const struct topt_hw *hw,
                       const char *framework)
{
    struct asked a = {0};
    int same = 0, n = 0;
    open_grid(&a, m, hw, framework, 2);
    for (int i = 0; i < a.s.ndegrees; i += 7) {
        struct topt_problem *p = NULL;
        if (topt_grid_problem(&a.s, &a.s.degrees[i], &p, NULL))
            continue;
        for (int k = 0; k < a.s.ndegrees; k++) {
            const struct topt_degrees *d = &a.s.degrees[k];
            struct topt_problem *q = NULL;
            struct topt_floor floor = {0}, own = {0};
            struct topt_expert_axes axes = topt_degrees_expert_axes(&a.s.mesh, d);
            if (!alike(d, a.s.degrees[i]) || topt_grid_problem(&a.s, d, &q, NULL) ||
                topt_problem_floor(p, &a.m.units, axes, &floor, NULL) ||
                topt_problem_floor(q, &a.m.units, axes, &own, NULL))
                continue;
            n++;
            same += own.pass[1].ns == floor.pass[1].ns &&
                    own.kept_bytes == floor.kept_bytes &&
                    own.pass[0].layer_ns == floor.pass[0].layer_ns &&
                    floor.some == topt_problem_has_choices(q) &&
                    floor.pass[1].ns <= topt_problem_lower_bound(q).time;
            topt_problem_destroy(q);
            free(floor.unit);
            free(own.unit);
        }
        topt_problem_destroy(p);
    }
    ok(n > 10 && same == n,
       "%s: of %d degrees what passes take at least is the same from another's, and a "
       "bound",
       framework, n);
    close_grid(&a);
}

/* How many units of a strategy are below what is least; numbers are cut off, and the same move may take a little less beside
 * fewer data ranks, for which candidates have a margin of one percent. */
static int below(const struct topt_unit_sums *least, const struct topt_unit_sums *of,
                 int n)
{
    enum { CUT = 64 };
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        int64_t ns[2][2] = {{0}};
        for (int k = 0; k < 2 * (TOPT_LINK_COUNT + 1); k++) {
            int back = k / (TOPT_LINK_COUNT + 1), link = k % (TOPT_LINK_COUNT + 1);
            if (least[i].ns[back][link] > ns[back][0])
                ns[back][0] = least[i].ns[back][link];
            if (of[i].ns[back][link] > ns[back][1])
                ns[back][1] = of[i].ns[back][link];
        }
        wrong += ns[0][0] > ns[0][1] / 100 * 101 + CUT ||
                 ns[1][0] > ns[1][1] / 100 * 101 + CUT ||
                 least[i].stays > of[i].stays + CUT || least[i].kept > of[i].kept + CUT ||
                 least[i].exchange_ns + CUT < of[i].exchange_ns;
    }
    return wrong;
}

/* The strategies of all degrees of a grid, as stages would have them. */
static void test_units(const struct topt_model *m, const struct topt_hw *hw,
                       const char *framework)
{
    struct asked a = {0};
    struct topt_memo *memo = topt_memo_create();
    int n = 0, wrong = 0;
    open_grid(&a, m, hw, framework, 2);
    struct topt_unit_sums *least = calloc((size_t)a.m.units.n + 1, sizeof *least),
                          *of = calloc((size_t)a.m.units.n + 1, sizeof *of);
    for (int i = 0; i < a.s.ndegrees; i++) {
        struct topt_degrees *d = &a.s.degrees[i];
        struct topt_problem *p = NULL;
        struct topt_search_options o = topt_request_searches(&a.r);
        struct topt_solutions found = {0};
        struct topt_costing k;
        const struct topt_memo_entry *floor = topt_floor_find(memo, &a.s, d, NULL);
        if (!a.m.layers || d->micro_batches < 2 || !floor ||
            topt_grid_costing(&a.s, d, &k, NULL) || topt_grid_problem(&a.s, d, &p, NULL))
            continue;
        struct topt_settings settings = *k.settings;
        settings.stages = 2;
        k.settings = &settings;
        struct topt_evaluator *e = topt_evaluator_create(&k, 0, NULL);
        if (e && !topt_solve_fastest(p, &o, &found, NULL) && found.n &&
            !topt_evaluate_units(e, found.at[0].strategy, of, NULL)) {
            topt_floor_units(floor, &a.s, d, least);
            n++;
            wrong += below(least, of, a.m.units.n) > 0;
        }
        topt_solutions_fini(&found);
        topt_evaluator_destroy(e);
        topt_problem_destroy(p);
    }
    ok(n > 5 && !wrong,
       "%s: no unit of the fastest strategies of %d degrees is below the least (%d are)",
       framework, n, wrong);
    free(least);
    free(of);
    topt_memo_destroy(memo);
    close_grid(&a);
}

/* ---- what experts cost ------------------------------------------------------------------- */

/* The cost of a model's first operator of a kind, with experts over so many GPUs; takes the model. */
static struct topt_fragment_cost cost_of(struct topt_model *m, const char *kind,
                                         const struct topt_hw *hw, int expert,
                                         enum topt_low low, int apart)
{
    struct asked a = {0};
    struct topt_fragment_cost c = {0};
    struct topt_costing k;
    open_grid(&a, m, hw, "megatron", 2);
    const struct topt_degrees *d = degrees_of(&a, 1, expert, 1, 1);
    struct topt_strategy *s = d ? strategy_of(&a, d) : NULL;
    if (s && !topt_grid_costing(&a.s, d, &k, NULL)) {
        struct topt_settings x = *k.settings;
        int i = 0;
        x.low = low;
        x.experts_apart = apart;
        k.settings = &x;
        while (strcmp(k.model->op[i].spec->name, kind) != 0)
            i++;
        if (topt_cost_op(&k, i, &s->config[i], &c, NULL))
            c.compute_ns = 0;
    }
    topt_strategy_destroy(s);
    close_grid(&a);
    topt_model_destroy(m);
    return c;
}

/* That of a layer's experts, where each sample has so many tokens. */
static struct topt_fragment_cost experts_cost(const struct topt_hw *hw, int64_t seq,
                                              int expert, enum topt_low low, int apart)
{
    return cost_of(mixtral_of(seq), "experts", hw, expert, low, apart);
}

/* gpt-oss's experts, which are biased and clamped, as Megatron-LM has them: of each token's row of 256 numbers 6 are read
 * or written forward and 8 backward, and of what the first product makes, 2 x 512, 4 and 5.5, with a byte of masks for
 * 4; in bf16.  A device has the tokens of two samples for each of 8, of 16 its 2 experts' over 4. */
static void test_biases(const struct topt_hw *hw)
{
    enum { ROWS = BATCH * 4096 * TOP_K / 16, FIRST = 2 * INNER, HOST_NS = 8000 };
    static const int64_t bytes[2] = {(int64_t)ROWS * 2 * (6 * WIDTH + 4 * FIRST),
                                     (int64_t)ROWS *
                                         (2 * 8 * WIDTH + 11 * FIRST + 4 * FIRST)};
    struct topt_fragment_cost apart = cost_of(model_of("gpt_oss", 4096), "beside_experts",
                                              hw, 4, TOPT_LOW_NONE, 1),
                              fused = cost_of(model_of("gpt_oss", 4096), "beside_experts",
                                              hw, 4, TOPT_LOW_NONE, 0);
    const struct topt_part_time *at = apart.spent.at;
    int64_t ns[2];
    for (int i = 0; i < 2; i++)
        ns[i] = topt_hw_compute(hw, TOPT_BF16, TOPT_WORK_ELEMENTWISE, 0, bytes[i], 16).ns;
    ok(at[TOPT_DURING_FORWARD].compute_ns == ns[0] &&
           at[TOPT_DURING_BACKWARD].compute_ns == ns[1],
       "biases and clamps of experts are passes of their own in Megatron-LM");
    ok(at[TOPT_DURING_FORWARD].host_ns == (2 * 2 + 4) * HOST_NS &&
           at[TOPT_DURING_BACKWARD].host_ns == (4 * 2 + 8) * HOST_NS,
       "which the host starts for each of a device's 2 experts");
    ok(fused.compute_ns > 0 && fused.compute_ns < apart.compute_ns / 2,
       "elsewhere they are one pass");
}

/* More tokens never take less.  Tokens of several experts that are shared out are sorted, those of products in few
 * bits padded, and the host starts products of each expert. */
static void test_costs(const struct topt_hw *hw)
{
    int64_t before = 0;
    int rises = 1;
    for (int64_t seq = 16; seq <= 4096; seq *= 2) {
        int64_t ns = experts_cost(hw, seq, 4, TOPT_LOW_BLOCKWISE, 1).compute_ns;
        rises = rises && ns > before;
        before = ns;
    }
    ok(rises, "experts in FP8 take longer with more tokens");
    struct topt_fragment_cost one = experts_cost(hw, 4096, 4, TOPT_LOW_BLOCKWISE, 0),
                              each = experts_cost(hw, 4096, 4, TOPT_LOW_BLOCKWISE, 1),
                              sorted = experts_cost(hw, 4096, 4, TOPT_LOW_NONE, 1),
                              single = experts_cost(hw, 4096, 8, TOPT_LOW_NONE, 1);
    ok(each.compute_ns > one.compute_ns, "those that are padded take longer");
    ok(sorted.compute_ns > single.compute_ns, "and those that are sorted");
    const struct topt_part_time *f = &each.spent.at[TOPT_DURING_FORWARD],
                                *g = &one.spent.at[TOPT_DURING_FORWARD];
    ok(f->host_ns > g->host_ns && f->asks && g->asks,
       "the host starts more kernels, and asks for counts in forward");
}

int main(void)
{
    struct topt_hw *hw = topt_hw_load("a100-40-dgx", NULL);
    struct topt_model *m = mixtral();
    test_degrees(m, hw, "megatron", 1 << TOPT_ZERO_NONE | 1 << TOPT_ZERO_STATE, 1);
    test_layouts(m, hw);
    test_moves(m, hw);
    test_sent(m);
    test_least(m, hw, "megatron");
    test_least(m, hw, "torchtitan");
    test_units(m, hw, "megatron");
    test_units(m, hw, "torchtitan");
    struct topt_model *dense = model_of("llama", SEQ);
    test_units(dense, hw, "torchtitan");
    topt_model_destroy(dense);
    test_costs(hw);
    test_biases(hw);
    test_context(hw, 0);
    test_context(hw, 1);
    test_ring(hw, SEQ);
    test_ring(hw, 4096);
    test_merging(hw, "megatron", 0, 4 + 3 * 6 + 4, 4 + 3 * 6 + 6 + 3 * 3);
    test_merging(hw, "torchtitan", 2025, 12 + 3 * 46, 76 + 3 * 60);
    test_merging(hw, "torchtitan", 0, 0, 0);
    topt_model_destroy(m);
    topt_hw_destroy(hw);
    return done_testing();
}
