/* notation.c - a plan as papers write it: the devices as a list of mesh dimensions, and
 * for every tensor a map from its dimensions to those, -1 where a dimension is whole. */
#include "notation.h"
#include "explain_split.h"
#include "topt_plan_doc.h"

/* Mesh dimensions: runs of axes that every layout treats alike.  'of' by axis. */
struct runs {
    int n, of[TOPT_MAX_AXES], size[TOPT_MAX_AXES];
};

static int has_map(const struct topt_op *op, int operand)
{
    enum topt_role role = op->operand[operand].role;
    return op->operand[operand].present && (role == TOPT_OUTPUT || role == TOPT_PARAM);
}

static void find_runs(const struct topt_plan_doc *p, struct runs *r)
{
    uint8_t apart[TOPT_MAX_AXES] = {0};
    for (int i = 0; i < p->model->nops; i++)
        for (int o = 0; o < p->model->op[i].spec->noperands; o++) {
            const struct topt_op *op = &p->model->op[i];
            if (!has_map(op, o))
                continue;
            struct topt_layout l =
                topt_value_layout(op, o, &p->strategy->config[i], &p->mesh);
            for (int a = 1; a < p->mesh.naxes; a++)
                apart[a] |= l.at[a] != l.at[a - 1];
        }
    *r = (struct runs){0};
    for (int a = 0; a < p->mesh.naxes; a++) {
        if (a == 0 || apart[a] || a == p->mesh.node_axes)
            r->size[r->n++] = 1;
        r->of[a] = r->n - 1;
        r->size[r->n - 1] *= p->mesh.size[a];
    }
}

/* "[0,-1,1]"; "0+2" where two mesh dimensions split one. */
static void put_map(struct topt_text *t, const struct topt_op *op, int operand,
                    const struct topt_plan_doc *p, const struct topt_config *c,
                    const struct runs *r)
{
    struct topt_layout l = topt_value_layout(op, operand, c, &p->mesh);
    topt_text_add(t, " %s [", op->spec->operand[operand].name);
    for (int d = 0; d < op->spec->operand[operand].ndim; d++) {
        int last = -1, any = 0;
        for (int a = 0; a < p->mesh.naxes; a++)
            if (l.at[a] == d && r->of[a] != last) {
                last = r->of[a];
                topt_text_add(t, "%s%d", any++ ? "+" : d ? "," : "", last);
            }
        if (!any)
            topt_text_add(t, "%s-1", d ? "," : "");
    }
    topt_text_add(t, "]%s", topt_layout_partial_mask(&l) ? " (parts of a sum)" : "");
}

void topt_explain_notation(struct topt_text *t, const struct topt_plan_doc *p,
                           const struct topt_blocks *b)
{
    struct runs r;
    find_runs(p, &r);
    topt_text_add(t, "Device mesh [");
    for (int i = 0; i < r.n; i++)
        topt_text_add(t, "%s%d", i ? "," : "", r.size[i]);
    topt_text_add(t, "], devices row-major; tensor maps of outputs and parameters:\n");
    for (int i = 0; i < p->model->nops; i++) {
        const struct topt_op *op = &p->model->op[i];
        if (b->kind[i] >= 0 && topt_explain_first_like(p, b, i) != i)
            continue;
        topt_text_add(t, "  %-22s", op->name);
        for (int o = 0; o < op->spec->noperands; o++)
            if (has_map(op, o))
                put_map(t, op, o, p, &p->strategy->config[i], &r);
        topt_text_add(t, "\n");
    }
}
