/* papers.c - the papers' models have the sizes that the papers print. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "tap.h"
#include "topt_json.h"
#include "topt_model.h"

/* GiB at a batch of 256 on one device, as printed. */
static const struct {
    const char *name;
    double parameters, memory;
} printed[] = {{"paper:rnn", 108, 126},
               {"paper:wideresnet", 7.3, 83},
               {"paper:transformer", 9.7, 74},
               {"paper:vgg16", 0.52, 30},
               {"paper:transformer-s", 4.8, 50.7}};

static double elements(const struct topt_op *op, int operand)
{
    double n = 1;
    for (int i = 0; i < topt_operand_rank(op, operand); i++)
        n *= (double)(op->operand[operand].dim[i].count *
                      op->operand[operand].dim[i].unit);
    return n;
}

/* Output and what is made inside, of an operator that is counted. */
static double activations(const struct topt_op *op)
{
    int last = topt_operand_rank(op, op->output) - 1;
    double unit = (double)op->operand[op->output].dim[last].unit;
    return op->attrs.fused
               ? 0
               : elements(op, op->output) * (1 + (double)op->attrs.inside / unit);
}

static void check_sizes(int k)
{
    struct topt_error err = {0};
    struct topt_model *m = topt_model_load(printed[k].name, NULL, &err);
    ok(m != NULL, "%s is made %s", printed[k].name, m ? "" : err.text);
    if (!m)
        return;
    double parameters = 0, memory = 0;
    for (int i = 0; i < m->nops; i++) {
        const struct topt_op *op = &m->op[i];
        for (int o = 0; o < op->spec->noperands; o++)
            if (op->operand[o].role == TOPT_PARAM && op->operand[o].present)
                parameters += elements(op, o);
        memory += activations(op);
    }
    parameters *= 4.0 / (1 << 30);
    memory = parameters + 2 * 4 * memory / (1 << 30);
    ok(fabs(parameters / printed[k].parameters - 1) < 0.01, "%.3f GiB of parameters",
       parameters);
    ok(fabs(memory / printed[k].memory - 1) < 0.02, "%.2f GiB in the papers' accounting",
       memory);
    json_t *doc = topt_model_to_json(m), *again = NULL;
    struct topt_model *back = topt_model_from_json(doc, &err);
    if (back)
        again = topt_model_to_json(back);
    ok(again && json_equal(doc, again), "the document is read back to the same model");
    json_decref(doc);
    json_decref(again);
    topt_model_destroy(back);
    topt_model_destroy(m);
}

static void check_options(void)
{
    struct topt_error err = {0};
    struct topt_import_options o = {.batch = 4, .seq = 16};
    struct topt_model *m = topt_model_load("paper:transformer-s", &o, &err);
    ok(m && m->batch == 4 && m->seq == 16, "batch and sequence as asked for");
    topt_model_destroy(m);
    ok(!topt_model_load("paper:vgg16", &o, &err) && strstr(err.text, "no sequence"),
       "images have no sequence: %s", err.text);
    ok(!topt_model_load("paper:vgg", NULL, &err) && strstr(err.text, "vgg16"),
       "an unknown name is told the known ones: %s", err.text);
}

int main(void)
{
    for (int k = 0; k < (int)(sizeof printed / sizeof *printed); k++)
        check_sizes(k);
    check_options();
    return done_testing();
}
