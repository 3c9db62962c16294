/* explain.c - a plan in the words a researcher uses.
 *
 * Operators are grouped by what they split: "data" counts devices over the batch, "tensor"
 * over features, "same" devices that repeat the same computation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"
#include "topt_json.h"
#include "topt_text.h"

struct way {
    int data, sequence, tensor, same;
    double weight; /* parameters */
    int nops;
};

static struct way way_of(const struct topt_op *op, const struct topt_mesh *mesh,
                         const struct topt_config *c)
{
    struct way w = {1, 1, 1, 1, 0, 1};
    for (int a = 0; a < mesh->naxes; a++) {
        int d = c->dim[a];
        enum topt_split s = d >= 0 ? op->spec->dim[d].split : TOPT_SPLIT_NEVER;
        int *count = d < 0                      ? &w.same
                     : s == TOPT_SPLIT_BATCH    ? &w.data
                     : s == TOPT_SPLIT_SEQUENCE ? &w.sequence
                                                : &w.tensor;
        *count *= mesh->size[a];
    }
    for (int o = 0; o < op->spec->noperands; o++) {
        if (op->operand[o].role != TOPT_PARAM || !op->operand[o].present)
            continue;
        double n = 1;
        for (int i = 0; i < op->spec->operand[o].ndim; i++)
            n *= (double)(op->operand[o].dim[i].count * op->operand[o].dim[i].unit);
        w.weight += n;
    }
    return w;
}

static int same_way(const struct way *a, const struct way *b)
{
    return a->data == b->data && a->sequence == b->sequence && a->tensor == b->tensor &&
           a->same == b->same;
}

enum { MAX_WAYS = 64 };

static int heavier(const void *x, const void *y)
{
    const struct way *a = x, *b = y;
    return a->weight < b->weight ? 1 : a->weight > b->weight ? -1 : 0;
}

/* Ways of the operators that hold parameters, heaviest first. */
static int gather_ways(const struct topt_model *m, const struct topt_mesh *mesh,
                       const struct topt_strategy *s, struct way ways[MAX_WAYS])
{
    int n = 0;
    for (int i = 0; i < m->nops; i++) {
        struct way w = way_of(&m->op[i], mesh, &s->config[i]);
        int k = 0;
        while (k < n && !same_way(&ways[k], &w))
            k++;
        if (w.weight <= 0 || k == MAX_WAYS)
            continue;
        if (k == n) {
            ways[n++] = w;
        } else {
            ways[k].weight += w.weight;
            ways[k].nops++;
        }
    }
    qsort(ways, (size_t)n, sizeof *ways, heavier);
    return n;
}

static void put_way(struct topt_text *t, const struct way *w)
{
    const struct {
        const char *name;
        int n;
    } part[] = {{"data", w->data},
                {"sequence", w->sequence},
                {"tensor", w->tensor},
                {"same", w->same}};
    int any = 0;
    for (int i = 0; i < 4; i++)
        if (part[i].n > 1)
            topt_text_add(t, "%s%s %d", any++ ? " x " : "", part[i].name, part[i].n);
    if (!any)
        topt_text_add(t, "one device");
}

char *topt_strategy_words(const struct topt_model *m, const struct topt_mesh *mesh,
                          const struct topt_strategy *s)
{
    struct way ways[MAX_WAYS];
    struct topt_text t = {0};
    int n = gather_ways(m, mesh, s, ways);
    double total = 0;
    for (int i = 0; i < n; i++)
        total += ways[i].weight;
    for (int i = 0; i < n && i < 2; i++) {
        int percent = total > 0 ? (int)(100 * ways[i].weight / total + 0.5) : 0;
        if (i > 0 && percent == 0)
            break;
        topt_text_add(&t, "%s", i ? ", " : "");
        put_way(&t, &ways[i]);
        if (n > 1 && percent < 100)
            topt_text_add(&t, " (%d %% of parameters)", percent);
    }
    if (n == 0)
        topt_text_add(&t, "no parameters");
    if (t.oom)
        topt_text_fini(&t);
    return t.s;
}

/* ---- explain --------------------------------------------------------------------------------- */

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
