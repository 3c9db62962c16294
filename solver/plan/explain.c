/* explain.c - a plan in the words a researcher uses: memory by part, and what each operator
 * splits, shards and makes again.
 *
 * Blocks that all do the same are told once.  Asked for layouts, the plan is also written as the
 * papers do: the devices as a list of mesh dimensions, and for every tensor a map from its
 * dimensions to those, -1 where a dimension is whole. */
#include <stdlib.h>
#include <string.h>

#include "document.h"
#include "topt_json.h"
#include "topt_text.h"

/* ---- operators ----------------------------------------------------------------------------- */

static void put_split(struct topt_text *t, const struct topt_op *op,
                      const struct topt_mesh *mesh, const struct topt_config *c)
{
    static const char *const zero[] = {
        "", "; optimizer state over the replicas (ZeRO-1)",
        "; gradients and optimizer state over the replicas (ZeRO-2)",
        "; parameters over the replicas, gathered before use (FSDP)"};
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
    topt_text_add(t, "%s%s", zero[c->zero],
                  c->recompute ? "; made again in backward" : "");
}

static void put_op(struct topt_text *t, const struct topt_plan_doc *p, int i)
{
    const struct topt_op *op = &p->model->op[i];
    topt_text_add(t, "  %-22s %-13s ", op->name, op->spec->name);
    put_split(t, op, &p->mesh, &p->strategy->config[i]);
    for (int k = 0; k < op->ninputs; k++)
        if (p->strategy->keep[i * TOPT_MAX_INPUTS + k] == TOPT_KEEP_BEFORE)
            topt_text_add(t, "; fetches %s again in backward",
                          p->model->tensor[op->operand[op->input[k]].tensor].name);
    topt_text_add(t, "\n");
}

/* Do all blocks of a kind do the same? */
static int blocks_agree(const struct topt_plan_doc *p, const struct topt_block_kind *k)
{
    const struct topt_strategy *s = p->strategy;
    for (int i = k->length; i < k->length * k->count; i++) {
        int op = k->first + i, like = k->first + i % k->length;
        if (memcmp(&s->config[op], &s->config[like], sizeof s->config[op]) ||
            memcmp(&s->keep[op * TOPT_MAX_INPUTS], &s->keep[like * TOPT_MAX_INPUTS],
                   TOPT_MAX_INPUTS))
            return 0;
    }
    return 1;
}

static void put_ops(struct topt_text *t, const struct topt_plan_doc *p,
                    const struct topt_blocks *b)
{
    for (int i = 0; i < p->model->nops; i++) {
        const struct topt_block_kind *k = b->kind[i] >= 0 ? &b->of[b->kind[i]] : NULL;
        int once = k && blocks_agree(p, k);
        if (once && b->block[i] > 0)
            continue;
        if (once && b->position[i] == 0)
            topt_text_add(t, "  %d times the %d operators to %s:\n", k->count, k->length,
                          p->model->op[i + k->length - 1].name);
        put_op(t, p, i);
        if (once && b->position[i] == k->length - 1)
            topt_text_add(t, "  and then:\n");
    }
}

/* ---- layouts ------------------------------------------------------------------------------- */

/* Mesh dimensions: runs of axes that no layout tells apart.  'of' by axis. */
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

static void put_layouts(struct topt_text *t, const struct topt_plan_doc *p,
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
        if (b->kind[i] >= 0 && b->block[i] > 0 && blocks_agree(p, &b->of[b->kind[i]]))
            continue;
        topt_text_add(t, "  %-22s", op->name);
        for (int o = 0; o < op->spec->noperands; o++)
            if (has_map(op, o))
                put_map(t, op, o, p, &p->strategy->config[i], &r);
        topt_text_add(t, "\n");
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void put_head(struct topt_text *t, const struct topt_plan_doc *p,
                     const json_t *doc)
{
    char a[32], b[32], c[32];
    char *words = topt_plan_strategy_words(p);
    topt_text_add(t, "%s on %d GPU%s (%d node%s of %d): %s\n", p->model->name,
                  p->mesh.devices, p->mesh.devices > 1 ? "s" : "", p->mesh.nodes,
                  p->mesh.nodes > 1 ? "s" : "", p->mesh.per_node, words ? words : "");
    free(words);
    const char *why = json_string_value(json_object_get(doc, "why"));
    if (why)
        topt_text_add(t, "Why: %s.\n", why);
    topt_text_add(
        t, "A GPU needs at most %s (%s at the peak of the program); a step takes %s.\n",
        topt_show_bytes(p->memory_bytes, a, sizeof a),
        topt_show_bytes(p->program->peak_bytes, b, sizeof b),
        topt_show_ns(p->time_ns, c, sizeof c));
    if (p->settings.micro_batches > 1)
        topt_text_add(t,
                      "A step runs %lld micro-batches of %lld samples and adds their "
                      "gradients up.\n",
                      (long long)p->settings.micro_batches, (long long)p->micro->batch);
}

static void put_parts(struct topt_text *t, const json_t *doc)
{
    char a[32];
    const char *key;
    json_t *value;
    topt_text_add(t, "Memory of one GPU by part:\n");
    json_object_foreach(
        json_object_get(json_object_get(doc, "predicted"), "memory_parts"), key, value)
    {
        topt_text_add(t, "  %-22s %s\n", key,
                      topt_show_bytes(json_integer_value(value), a, sizeof a));
    }
}

char *topt_plan_explain(const json_t *plan, int layouts, struct topt_error *err)
{
    struct topt_plan_doc *p;
    struct topt_blocks b = {0};
    struct topt_text t = {0};
    const json_t *inner = json_object_get(plan, "plan");
    const json_t *doc = inner ? inner : plan;
    if (topt_plan_read(doc, &p, err))
        return NULL;
    if (!topt_model_blocks(p->model, &b, err)) {
        put_head(&t, p, doc);
        put_parts(&t, doc);
        topt_text_add(&t, "What is split (dimension/parts):\n");
        put_ops(&t, p, &b);
        if (layouts)
            put_layouts(&t, p, &b);
        if (t.oom)
            topt_fail(err, TOPT_ERR_NOMEM, "no memory to explain the plan");
    }
    topt_blocks_fini(&b);
    topt_plan_doc_destroy(p);
    if (t.oom)
        topt_text_fini(&t);
    return t.s;
}
