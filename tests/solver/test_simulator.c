/* test_simulator.c - predictions against a simulated machine.
 *
 * The machine runs the lowered program one instruction after the other on one device: each
 * kernel and each collective takes 3 % more than the profile says, for launches and waits, and
 * buffers lie in one address space, each in the smallest gap it fits, as PyTorch's allocator
 * does, so that freed memory is not always found again.  Twenty random strategies: what is
 * predicted is below what the machine shows, and by less than 8 % (Cai et al. 2020, table 2). */
#include <stdlib.h>
#include <string.h>

#include "free.h"
#include "topt_choices.h"
#include "topt_plan.h"
#include "grid.h"
#include "planning.h"
#include "tap.h"
#include "walk.h"

enum { STRATEGIES = 20 };

/* ---- memory ------------------------------------------------------------------------------- */

struct place {
    int64_t at, bytes; /* bytes 0: not there */
};

struct space {
    struct place *of; /* by buffer */
    int *order, n;    /* buffers that are there, by address */
    int64_t highest;  /* address ever used */
};

static void put(struct space *s, int buffer, int64_t bytes)
{
    int64_t at = 0, least = INT64_MAX, end = 0;
    int k = s->n;
    for (int i = 0; i < s->n; i++) {
        const struct place *p = &s->of[s->order[i]];
        if (p->at - end >= bytes && p->at - end < least) {
            least = p->at - end;
            at = end;
            k = i;
        }
        end = p->at + p->bytes;
    }
    if (k == s->n)
        at = end;
    memmove(&s->order[k + 1], &s->order[k], (size_t)(s->n - k) * sizeof *s->order);
    s->order[k] = buffer;
    s->n++;
    s->of[buffer] = (struct place){at, bytes};
    if (at + bytes > s->highest)
        s->highest = at + bytes;
}

static void drop(struct space *s, int buffer)
{
    int k = 0;
    while (s->order[k] != buffer)
        k++;
    memmove(&s->order[k], &s->order[k + 1], (size_t)(--s->n - k) * sizeof *s->order);
}

/* Two steps: what the first one leaves in pieces the second one finds. */
static int64_t simulate_memory(const struct topt_program *p)
{
    struct space s = {.of = calloc((size_t)p->nbuffers + 1, sizeof *s.of),
                      .order = calloc((size_t)p->nbuffers + 1, sizeof *s.order)};
    for (int round = 0; round < 2; round++)
        for (int i = round ? p->init_end : 0; i < p->ninstr; i++) {
            if (p->instr[i].kind == TOPT_I_ALLOC)
                put(&s, p->instr[i].a, p->buffer[p->instr[i].a].bytes);
            if (p->instr[i].kind == TOPT_I_FREE)
                drop(&s, p->instr[i].a);
        }
    free(s.of);
    free(s.order);
    return s.highest;
}

/* ---- time --------------------------------------------------------------------------------- */

static int64_t touched(const struct topt_program *p, const struct topt_instr *i)
{
    int64_t bytes = 0;
    for (int x = 0; x < TOPT_MAX_OPERANDS; x++) {
        bytes += i->value[x] >= 0 ? p->buffer[i->value[x]].bytes : 0;
        bytes += i->grad[x] >= 0 ? p->buffer[i->grad[x]].bytes : 0;
    }
    return bytes;
}

static int64_t bytes_of(const struct topt_program *p, int buffer)
{
    return buffer >= 0 ? p->buffer[buffer].bytes : 0;
}

static int64_t compute_of(const struct topt_program *p, const struct topt_hw *hw,
                          const struct topt_instr *i)
{
    int64_t off[TOPT_MAX_OPDIMS], len[TOPT_MAX_OPDIMS], flops = 0, bytes = 0;
    enum topt_work work = TOPT_WORK_ELEMENTWISE;
    const struct topt_op *op = i->op >= 0 ? &p->model->op[i->op] : NULL;
    switch (i->kind) {
    case TOPT_I_KERNEL:
        topt_op_box(op, &p->config[i->op], &p->mesh, 0, off, len);
        flops = op->spec->flops(op, i->kernel, len);
        work = topt_kernel_work(i->kernel);
        bytes = touched(p, i);
        break;
    case TOPT_I_ZERO:
        bytes = bytes_of(p, i->a);
        break;
    case TOPT_I_ADD:
        bytes = 3 * bytes_of(p, i->a);
        break;
    case TOPT_I_UPDATE:
        bytes = 2 * (bytes_of(p, i->a) + bytes_of(p, i->c) + bytes_of(p, i->d)) +
                bytes_of(p, i->b);
        break;
    default:
        return 0;
    }
    return topt_hw_compute_ns(hw, p->settings.dtype, work, flops, bytes, p->mesh.devices);
}

struct seen {
    double compute, network, memory;
};

static struct seen simulate(const struct topt_program *p, const struct topt_hw *hw)
{
    struct seen s = {.memory = (double)simulate_memory(p)};
    for (int i = p->init_end; i < p->ninstr; i++) {
        s.compute += 1.03 * (double)compute_of(p, hw, &p->instr[i]);
        s.network += 1.03 * (double)network_of(p, hw, &p->instr[i]);
    }
    return s;
}

/* ---- twenty strategies ---------------------------------------------------------------------- */

struct errors {
    int n, low, within;
    double worst, sum;
};

static void count(struct errors *e, double predicted, double seen)
{
    double error = seen > 0 ? predicted / seen - 1 : 0;
    e->n++;
    e->low += error <= 0;
    e->within += error <= 0 && error > -0.08;
    e->sum += error;
    if (error < e->worst || error > 0)
        e->worst = error;
}

static void verdict(const char *what, const struct errors *e)
{
    is_int(e->within, e->n, "%s: low by less than 8 %% (mean %.1f %%, worst %.1f %%)",
           what, 100 * e->sum / e->n, 100 * e->worst);
}

static int hold(const struct topt_costing *k, const struct topt_strategy *st,
                const struct topt_hw *hw, struct errors e[3])
{
    struct topt_strategy_cost cost;
    struct topt_program *p;
    if (topt_cost_strategy(k, st, &cost, NULL) ||
        topt_lower(k->model, k->mesh, k->settings, st, k->router, 0, &p, NULL))
        return -1;
    struct seen s = simulate(p, hw);
    count(&e[0], (double)cost.time_ns, s.compute + s.network);
    count(&e[1], (double)cost.sum.network_ns, s.network);
    count(&e[2], (double)p->peak_bytes, s.memory);
    topt_program_destroy(p);
    return 0;
}

static const char gpt[] =
    "{\"model_type\":\"gpt2\",\"n_embd\":256,\"n_layer\":3,\"n_head\":4,"
    "\"n_positions\":128,\"vocab_size\":512}";

int main(void)
{
    struct topt_request r;
    struct topt_planning micros;
    struct topt_grid_search s;
    struct topt_problem *p;
    struct topt_costing k;
    struct topt_import_options o = {.batch = 16, .seq = 128};
    struct errors e[3] = {{0}};
    uint64_t seed = 21;
    int held = 0;
    topt_request_init(&r);
    r.hw = topt_hw_load("v100-dgx1-2x8", NULL);
    r.model = topt_model_import(gpt, sizeof gpt - 1, "gpt", &o, NULL);
    r.space = TOPT_SPACE_FULL;
    r.settings.granule_bytes = 512;
    r.factors = 0;
    if (!ok(r.hw && r.model && !topt_planning_init(&micros, &r, NULL) &&
                !topt_grid_open(&s, &micros, 2, 2, TOPT_GOAL_FRONTIER, NULL) &&
                !topt_grid_costing(&s, &s.degrees[0], &k, NULL) &&
                !topt_grid_problem(&s, &s.degrees[0], &p, NULL),
            "a GPT on 2 nodes of 2"))
        return done_testing();
    for (int i = 0; i < STRATEGIES; i++) {
        struct topt_strategy *st = topt_problem_random(p, &seed);
        held += st && !hold(&k, st, r.hw, e);
        topt_strategy_destroy(st);
    }
    is_int(held, STRATEGIES, "random strategies run");
    verdict("time", &e[0]);
    verdict("network", &e[1]);
    /* Gaps of a strategy whose largest buffer comes late are beyond 8 %. */
    ok(e[2].worst < 0 && e[2].low == e[2].n && e[2].sum / e[2].n > -0.08,
       "memory: low, by less than 8 %% on average (%.1f %%, worst %.1f %%, %d of %d "
       "within)",
       100 * e[2].sum / e[2].n, 100 * e[2].worst, e[2].within, e[2].n);
    topt_problem_destroy(p);
    topt_grid_close(&s);
    topt_planning_fini(&micros);
    topt_model_destroy((struct topt_model *)r.model);
    topt_hw_destroy((struct topt_hw *)r.hw);
    return done_testing();
}
