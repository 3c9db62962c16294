/* derive.c - what follows from a configuration: layouts of values and gradients, local boxes.
 *
 * A configuration gives each axis to one dimension of the operator or to none.  For an
 * operand that has the dimension, the axis shards it.  One that lacks it is replicated -
 * except that an output which sums over the dimension is partial, and so is the gradient of
 * an input or parameter (each device saw only its part of the batch, or of the outputs). */
#include "topt_lower.h"

#include <stdlib.h>
#include <string.h>

/* Place of operator dimension 'd' in the operand, or -1. */
static int place(const struct topt_op *op, int operand, int d)
{
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    for (int i = 0; i < spec->ndim; i++)
        if (spec->dim[i] == d)
            return i;
    return -1;
}

static struct topt_layout derive(const struct topt_op *op, int operand,
                                 const struct topt_config *c,
                                 const struct topt_mesh *mesh, int lacking_is_partial)
{
    struct topt_layout l = topt_layout_replicated();
    int8_t used[TOPT_MAX_RANK] = {0};
    for (int a = 0; a < mesh->naxes; a++) {
        int d = c->dim[a];
        if (d < 0)
            continue;
        int i = place(op, operand, d);
        if (i >= 0) {
            l.at[a] = (int8_t)i;
            l.pos[a] = used[i]++;
        } else if (lacking_is_partial && op->spec->dim[d].split != TOPT_SPLIT_STAT) {
            l.at[a] = TOPT_PARTIAL;
        }
    }
    return l;
}

struct topt_layout topt_value_layout(const struct topt_op *op, int operand,
                                     const struct topt_config *c,
                                     const struct topt_mesh *mesh)
{
    return derive(op, operand, c, mesh, op->operand[operand].role == TOPT_OUTPUT);
}

struct topt_layout topt_grad_layout(const struct topt_op *op, int operand,
                                    const struct topt_config *c,
                                    const struct topt_mesh *mesh)
{
    enum topt_role role = op->operand[operand].role;
    return derive(op, operand, c, mesh, role == TOPT_INPUT || role == TOPT_PARAM);
}

struct topt_layout topt_hub_layout(const struct topt_hub *h, const struct topt_mesh *mesh)
{
    struct topt_layout l = topt_layout_replicated();
    int8_t used[TOPT_MAX_RANK] = {0};
    for (int a = 0; a < mesh->naxes; a++) {
        int d = h->layout.dim[a];
        if (d < 0)
            continue;
        l.at[a] = (int8_t)d;
        l.pos[a] = used[d]++;
    }
    return l;
}

int topt_config_valid(const struct topt_op *op, const struct topt_config *c,
                      const struct topt_mesh *mesh)
{
    int64_t split[TOPT_MAX_OPDIMS] = {1, 1, 1, 1, 1, 1};
    for (int a = 0; a < mesh->naxes; a++) {
        int d = c->dim[a];
        if (d < -1 || d >= op->spec->ndims)
            return 0;
        if (d < 0)
            continue;
        split[d] *= mesh->size[a];
        if (op->spec->dim[d].split == TOPT_SPLIT_NEVER || split[d] > op->count[d])
            return 0;
    }
    return 1;
}

void topt_op_box(const struct topt_op *op, const struct topt_config *c,
                 const struct topt_mesh *mesh, int device,
                 int64_t ret_off[TOPT_MAX_OPDIMS], int64_t ret_len[TOPT_MAX_OPDIMS])
{
    for (int d = 0; d < op->spec->ndims; d++) {
        int8_t axes[TOPT_MAX_AXES];
        int n = 0;
        for (int a = 0; a < mesh->naxes; a++)
            if (c->dim[a] == d)
                axes[n++] = (int8_t)a;
        topt_split_block(mesh, op->count[d], axes, n, device, &ret_off[d], &ret_len[d]);
    }
}

struct topt_strategy *topt_strategy_create(const struct topt_model *m)
{
    struct topt_strategy *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->nops = m->nops;
    s->ntensors = m->ntensors;
    s->config = malloc((size_t)m->nops * sizeof *s->config);
    s->hub = malloc((size_t)m->ntensors * sizeof *s->hub);
    s->keep = calloc((size_t)m->nops * TOPT_MAX_INPUTS, sizeof *s->keep);
    if (!s->config || !s->hub || !s->keep) {
        topt_strategy_destroy(s);
        return NULL;
    }
    memset(s->config, -1, (size_t)m->nops * sizeof *s->config);
    memset(s->hub, -1, (size_t)m->ntensors * sizeof *s->hub);
    for (int t = 0; t < m->ntensors; t++)
        s->hub[t].keep = 1;
    return s;
}

void topt_strategy_destroy(struct topt_strategy *s)
{
    if (!s)
        return;
    free(s->config);
    free(s->hub);
    free(s->keep);
    free(s);
}

/* ---- names ------------------------------------------------------------------------------ */

const char *topt_optimizer_name(enum topt_optimizer o)
{
    static const char *const name[] = {"sgd", "momentum", "adam"};
    return (unsigned)o < TOPT_OPTIMIZER_COUNT ? name[o] : "unknown";
}

const char *topt_class_name(enum topt_class c)
{
    static const char *const name[] = {"parameters",  "gradients", "optimizer",    "data",
                                       "activations", "transient", "communication"};
    return (unsigned)c < TOPT_CLASS_COUNT ? name[c] : "unknown";
}

struct topt_settings topt_settings_default(void)
{
    return (struct topt_settings){TOPT_F32, TOPT_ADAM, 64};
}
