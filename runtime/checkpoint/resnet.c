/* resnet.c - the tensors of ResNets by the names that transformers gives them.
 *
 * A layer is numbered within its stage there, which rows of names with one number can't say; and
 * running statistics are no parameters.  So the names are made here, from those of the operators: "stem",
 * "s1.h0.window", "s1.h0.window.norm". */
#include "resnet.h"

#include <stdio.h>
#include <string.h>

/* Where a convolution with its norm lies; -1: it is none. */
static int place_of(const char *op, char *ret, size_t size)
{
    static const struct {
        const char *name, *there;
    } of[] = {{"reduce", "layer.0."}, {"first", "layer.0."},  {"window", "layer.1."},
              {"second", "layer.1."}, {"expand", "layer.2."}, {"shortcut", "shortcut."}};
    int stage, layer, n = 0;
    if (!strncmp(op, "stem", 4)) {
        snprintf(ret, size, "resnet.embedder.embedder.");
        return 0;
    }
    if (sscanf(op, "s%d.h%d.%n", &stage, &layer, &n) < 2 || !n)
        return -1;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        size_t len = strlen(of[i].name);
        if (strncmp(op + n, of[i].name, len) != 0 ||
            (op[n + (int)len] && op[n + (int)len] != '.'))
            continue;
        snprintf(ret, size, "resnet.encoder.stages.%d.layers.%d.%s", stage, layer,
                 of[i].there);
        return 0;
    }
    return -1;
}

/* The name of an operand's tensor; -1: it has none. */
static int name_of(const struct topt_op *op, int operand, char *ret, size_t size)
{
    static const char *const norm[] = {
        [1] = "weight", [2] = "bias", [4] = "running_mean", [5] = "running_var"};
    char place[120];
    int is_norm = !strcmp(op->spec->name, "batch_norm");
    if (!strncmp(op->name, "classifier", 10)) {
        snprintf(ret, size, "classifier.1.%s",
                 strstr(op->name, ".bias") ? "bias" : "weight");
        return op->operand[operand].role == TOPT_PARAM ? 0 : -1;
    }
    if ((is_norm ? operand > 5 || !norm[operand]
                 : op->operand[operand].role != TOPT_PARAM) ||
        place_of(op->name, place, sizeof place))
        return -1;
    snprintf(ret, size, "%s%s.%s", place, is_norm ? "normalization" : "convolution",
             is_norm ? norm[operand] : "weight");
    return 0;
}

static int add(struct topt_naming *n, int op, int operand, const char *name)
{
    const struct topt_op *o = &n->model->op[op];
    const struct topt_dim *d = o->operand[operand].dim;
    int64_t kernel = o->attrs->kernel_h;
    struct topt_weight w = {.name = name,
                            .op = op,
                            .operand = operand,
                            .piece = TOPT_WEIGHT_WHOLE,
                            .ndim = o->spec->operand[operand].ndim,
                            .dim = {d[0].count * d[0].unit, d[1].count * d[1].unit}};
    if (w.ndim == 2 && kernel > 0) {
        w.ndim = 4;
        w.dim[1] = d[1].count;
        w.dim[2] = kernel;
        w.dim[3] = d[1].unit / kernel;
    }
    return topt_naming_add(n, &w);
}

int topt_resnet_name(struct topt_naming *n, struct topt_error *err)
{
    char name[200];
    int is_resnet = n->model->family && !strcmp(n->model->family, "resnet");
    for (int k = 0; k < n->model->nops && is_resnet; k++) {
        const struct topt_op *op = &n->model->op[k];
        for (int o = 0; o < op->spec->noperands; o++)
            if (op->operand[o].present && !name_of(op, o, name, sizeof name) &&
                add(n, k, o, name))
                return topt_nomem(err, NULL);
    }
    return 0;
}
