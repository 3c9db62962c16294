/* peak.c - what a documented plan takes by the row of its framework, with the planner's own settings
 * of its degrees. */
#include "grid.h"
#include "free.h"
#include "peak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noreturn)) static void give_up(const char *what,
                                              const struct topt_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    exit(1);
}

static void cost(const char *what, const struct topt_costing *k,
                 const struct topt_strategy *s, struct peak *ret)
{
    struct topt_error err = {0};
    struct topt_evaluator *evaluator = topt_evaluator_create(k, 1, &err);
    if (!evaluator ||
        topt_evaluate_strategy(evaluator, s, &ret->cost, &ret->program, &err))
        give_up(what, &err);
    topt_evaluator_destroy(evaluator);
}

static int read_in_backward(const struct topt_model *m, int tensor)
{
    for (int i = 0; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++) {
            int x = m->op[i].input[k];
            if (m->op[i].operand[x].tensor == tensor && m->op[i].reads_back >> x & 1)
                return 1;
        }
    return 0;
}

/* PyTorch's selective checkpointing keeps the output of an operator that is not to run again, also
 * where no gradient needs it: that of a block's last product, which is only added. */
static int64_t unread(const struct topt_costing *k, const struct topt_strategy *s)
{
    const struct topt_model *m = k->model;
    int64_t bytes = 0;
    for (int i = 0; i < m->nops; i++) {
        const struct topt_op *op = &m->op[i];
        int tensor = op->operand[op->output].tensor;
        if (m->unit[i] < 0 || s->config[i].recompute ||
            strcmp(op->spec->name, "linear") || read_in_backward(m, tensor))
            continue;
        struct topt_layout l = topt_value_layout(op, op->output, &s->config[i], k->mesh);
        bytes += topt_cost_block(k, tensor, &l);
    }
    return bytes;
}

void peak_of(const char *what, struct topt_grid_search *shape,
             const struct topt_degrees *v, const struct topt_strategy *s,
             enum peak_again again, struct peak *ret)
{
    struct topt_error err = {0};
    struct topt_costing k;
    if (topt_grid_costing(shape, v, &k, &err))
        give_up(what, &err);
    cost(what, &k, s, ret);
    int64_t more = again == PEAK_PRODUCTS ? unread(&k, s) : 0;
    if (again == PEAK_STAYING) { /* those that are not there yet at the peak */
        struct topt_settings sums = *k.settings;
        struct peak all;
        sums.by_schedule = 0;
        k.settings = &sums;
        cost(what, &k, s, &all);
        more = all.cost.sum.class_bytes[TOPT_CLASS_GRAD] -
               ret->cost.sum.class_bytes[TOPT_CLASS_GRAD];
    }
    ret->cost.sum
        .class_bytes[again == PEAK_STAYING ? TOPT_CLASS_GRAD : TOPT_CLASS_KEPT] += more;
    ret->cost.memory_bytes += more;
}
