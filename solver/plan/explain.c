/* explain.c - a plan in the words a researcher uses: memory by part, and what each operator
 * splits. */
#include <stdlib.h>

#include "document.h"
#include "topt_json.h"
#include "topt_text.h"

static void put_split(struct topt_text *t, const struct topt_op *op,
                      const struct topt_mesh *mesh, const struct topt_config *c)
{
    int any = 0;
    for (int d = 0; d < op->spec->ndims; d++) {
        int parts = 1, nodes = 1;
        for (int a = 0; a < mesh->naxes; a++)
            if (c->dim[a] == d) {
                parts *= mesh->size[a];
                nodes *= a < mesh->node_axes ? mesh->size[a] : 1;
            }
        if (parts == 1)
            continue;
        topt_text_add(t, "%s%s/%d", any++ ? " " : "", op->spec->dim[d].name, parts);
        if (nodes > 1)
            topt_text_add(t, " (%d nodes)", nodes);
    }
    if (!any)
        topt_text_add(t, "whole on every GPU");
}

static void put_ops(struct topt_text *t, const struct topt_plan_doc *p)
{
    for (int i = 0; i < p->model->nops; i++) {
        const struct topt_op *op = &p->model->op[i];
        topt_text_add(t, "  %-22s %-13s ", op->name, op->spec->name);
        put_split(t, op, &p->mesh, &p->strategy->config[i]);
        for (int k = 0; k < op->ninputs; k++)
            if (p->strategy->keep[i * TOPT_MAX_INPUTS + k] == TOPT_KEEP_BEFORE)
                topt_text_add(t, "; fetches %s again in backward",
                              p->model->tensor[op->operand[op->input[k]].tensor].name);
        topt_text_add(t, "\n");
    }
}

char *topt_plan_explain(const json_t *plan, struct topt_error *err)
{
    struct topt_plan_doc *p;
    char a[32], b[32], c[32];
    const json_t *inner = json_object_get(plan, "plan");
    const json_t *doc = inner ? inner : plan;
    if (topt_plan_read(doc, &p, err))
        return NULL;
    struct topt_text t = {0};
    char *words = topt_plan_strategy_words(p);
    topt_text_add(&t, "%s on %d GPU%s (%d node%s of %d): %s\n", p->model->name,
                  p->mesh.devices, p->mesh.devices > 1 ? "s" : "", p->mesh.nodes,
                  p->mesh.nodes > 1 ? "s" : "", p->mesh.per_node, words ? words : "");
    const char *why = json_string_value(json_object_get(doc, "why"));
    if (why)
        topt_text_add(&t, "Why: %s.\n", why);
    topt_text_add(
        &t, "A GPU needs at most %s (%s at the peak of the program); a step takes %s.\n",
        topt_show_bytes(p->memory_bytes, a, sizeof a),
        topt_show_bytes(p->program->peak_bytes, b, sizeof b),
        topt_show_ns(p->time_ns, c, sizeof c));
    topt_text_add(&t, "Memory of one GPU by part:\n");
    const char *key;
    json_t *value;
    json_object_foreach(
        json_object_get(json_object_get(doc, "predicted"), "memory_parts"), key, value)
    {
        topt_text_add(&t, "  %-22s %s\n", key,
                      topt_show_bytes(json_integer_value(value), a, sizeof a));
    }
    topt_text_add(&t, "What is split (dimension/parts):\n");
    put_ops(&t, p);
    free(words);
    topt_plan_doc_destroy(p);
    if (t.oom) {
        topt_text_fini(&t);
        topt_fail(err, TOPT_ERR_NOMEM, "no memory to explain the plan");
        return NULL;
    }
    return t.s;
}
