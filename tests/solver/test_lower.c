/* test_lower.c - programs: every buffer is made before use and freed once, layouts agree at
 * each move, and what a program needs at its peak never exceeds what its plan says. */
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "random_model.h"
#include "tap.h"

static struct topt_hw *hw;

struct walk {
    const struct topt_program *p;
    char *live;
    int bad;
};

static void touch(struct walk *w, int buffer)
{
    if (buffer >= 0 && !w->live[buffer])
        w->bad++;
}

static void step(struct walk *w, const struct topt_instr *i)
{
    if (i->kind == TOPT_I_ALLOC) {
        w->bad += w->live[i->a];
        w->live[i->a] = 1;
        return;
    }
    touch(w, i->a);
    touch(w, i->b);
    touch(w, i->c);
    touch(w, i->d);
    for (int o = 0; o < TOPT_MAX_OPERANDS; o++) {
        touch(w, i->value[o]);
        touch(w, i->grad[o]);
    }
    if (i->kind == TOPT_I_FREE)
        w->live[i->a] = 0;
    if (i->kind == TOPT_I_MOVE && i->a != i->b) {
        w->bad += !topt_layout_equal(&w->p->buffer[i->a].layout, &i->move.from);
        w->bad += !topt_layout_equal(&w->p->buffer[i->b].layout, &i->move.to);
    }
}

/* Nothing is used before it is made or after it is freed, and a step leaves nothing. */
static int well_formed(const struct topt_program *p)
{
    struct walk w = {p, calloc((size_t)p->nbuffers + 1, 1), 0};
    int before = 0, after = 0;
    for (int i = 0; i < p->ninstr; i++) {
        if (i == p->init_end)
            for (int b = 0; b < p->nbuffers; b++)
                before += w.live[b];
        step(&w, &p->instr[i]);
    }
    for (int b = 0; b < p->nbuffers; b++)
        after += w.live[b];
    free(w.live);
    return w.bad == 0 && before == after;
}

/* Operators read and write values in the layout of their configuration. */
static int layouts_agree(const struct topt_program *p)
{
    for (int k = 0; k < p->ninstr; k++) {
        const struct topt_instr *i = &p->instr[k];
        if (i->kind != TOPT_I_KERNEL)
            continue;
        const struct topt_op *op = &p->model->op[i->op];
        for (int o = 0; o < op->spec->noperands; o++) {
            struct topt_layout v = topt_value_layout(op, o, &p->config[i->op], &p->mesh);
            struct topt_layout g = topt_grad_layout(op, o, &p->config[i->op], &p->mesh);
            if (i->value[o] >= 0 &&
                !topt_layout_equal(&v, &p->buffer[i->value[o]].layout))
                return 0;
            int param = op->operand[o].role == TOPT_PARAM;
            if (i->grad[o] >= 0 && !param &&
                !topt_layout_equal(&g, &p->buffer[i->grad[o]].layout))
                return 0;
        }
    }
    return 1;
}

static void check_random(int nodes, int per_node, int sequence, enum topt_space space)
{
    int formed = 1, agree = 1, bounded = 1, n = 0, lowered = 1;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        struct topt_model *m = random_model(seed * 77, 2 + (int)(seed % 9));
        struct topt_request r;
        struct topt_shape_search s;
        struct topt_problem *p;
        topt_request_init(&r);
        r.model = m;
        r.hw = hw;
        r.space = space;
        r.sequence_splits = sequence;
        if (!m || topt_shape_open(&s, &r, nodes, per_node, NULL) ||
            topt_shape_problem(&s, 0, &p, NULL)) {
            lowered = 0;
            break;
        }
        uint64_t state = seed;
        for (int k = 0; k < 12; k++, n++) {
            struct topt_strategy *st = topt_problem_random(p, &state);
            struct topt_strategy_cost cost;
            struct topt_program *program;
            struct topt_error err = {0};
            if (topt_cost_strategy(&s.costing, st, &cost, &err) ||
                topt_lower(m, &s.mesh, &s.settings, st, s.router, &program, &err)) {
                printf("# seed %d: %s\n", (int)seed, err.text);
                lowered = 0;
            } else {
                formed &= well_formed(program);
                agree &= layouts_agree(program);
                bounded &= program->peak_bytes <= cost.memory_bytes;
                topt_program_destroy(program);
            }
            topt_strategy_destroy(st);
        }
        topt_problem_destroy(p);
        topt_shape_close(&s);
        topt_model_destroy(m);
    }
    ok(lowered, "%dx%d, space %s: %d random strategies lower", nodes, per_node,
       topt_space_name(space), n);
    ok(formed, "%dx%d: no use outside a buffer's life, nothing left after a step", nodes,
       per_node);
    ok(agree, "%dx%d: kernels see the layouts of their configuration", nodes, per_node);
    ok(bounded, "%dx%d: the program's peak is within the plan's memory", nodes, per_node);
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

int main(void)
{
    hw = topt_hw_load("lab-cpu", NULL);
    if (!ok(hw != NULL, "the profile loads"))
        return done_testing();
    test_derivation();
    check_random(1, 1, 0, TOPT_SPACE_FULL);
    check_random(1, 2, 1, TOPT_SPACE_FULL);
    check_random(1, 3, 0, TOPT_SPACE_FULL);
    check_random(2, 2, 1, TOPT_SPACE_FULL);
    check_random(2, 4, 0, TOPT_SPACE_CANONICAL);
    topt_hw_destroy(hw);
    return done_testing();
}
