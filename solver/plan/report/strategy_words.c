/* strategy_words.c - what a strategy splits, in a line.
 *
 * Operators are grouped by what they split: "data" counts devices over the batch,
 * "spatial" over an image, "tensor" over features, "expert" over the experts of a layer, "same" devices that
 * repeat the same computation. */
#include "strategy_words.h"
#include "free.h"
#include "topt_framework.h"

#include <stdlib.h>
#include <string.h>

enum kind { DATA, SPATIAL, SEQUENCE, TENSOR, EXPERT, SAME, KINDS };

struct way {
    int devices[KINDS], zero;
    double weight; /* parameters */
};

static struct way way_of(const struct topt_op *op, const struct topt_mesh *mesh,
                         const struct topt_config *c)
{
    struct way w = {{1, 1, 1, 1, 1, 1}, c->zero, 0};
    for (int a = 0; a < mesh->naxes; a++) {
        int d = c->dim[a];
        enum topt_split s = d >= 0 ? op->spec->dim[d].split : TOPT_SPLIT_NEVER;
        enum kind kind = d < 0                      ? SAME
                         : d == topt_op_experts(op) ? EXPERT
                         : s == TOPT_SPLIT_BATCH    ? DATA
                         : s == TOPT_SPLIT_SPATIAL  ? SPATIAL
                         : s == TOPT_SPLIT_SEQUENCE ? SEQUENCE
                                                    : TENSOR;
        w.devices[kind] *= mesh->size[a];
    }
    w.weight = topt_op_parameters(op);
    return w;
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
        while (k < n && (ways[k].zero != w.zero ||
                         memcmp(ways[k].devices, w.devices, sizeof w.devices)))
            k++;
        if (w.weight <= 0 || k == MAX_WAYS)
            continue;
        if (k == n)
            ways[n++] = w;
        else
            ways[k].weight += w.weight;
    }
    qsort(ways, (size_t)n, sizeof *ways, heavier);
    return n;
}

static void put_way(struct topt_text *t, const struct way *w)
{
    static const char *const name[] = {"data",   "spatial", "sequence",
                                       "tensor", "expert",  "same"};
    int any = 0;
    for (int i = 0; i < KINDS; i++)
        if (w->devices[i] > 1)
            topt_text_add(t, "%s%s %d", any++ ? " x " : "", name[i], w->devices[i]);
    if (!any)
        topt_text_add(t, "one device");
    static const char *const zero[] = {
        "",           " with ZeRO-1",           " with ZeRO-2",
        " with FSDP", " with sparse gradients", " with owners of rows"};
    topt_text_add(t, "%s", zero[w->zero]);
}

void topt_config_words(struct topt_text *t, const struct topt_op *op,
                       const struct topt_mesh *mesh, const struct topt_config *c)
{
    struct way w = way_of(op, mesh, c);
    put_way(t, &w);
}

static void put_rest(struct topt_text *t, const struct topt_strategy *s,
                     int64_t micro_batches)
{
    int again = 0;
    for (int i = 0; i < s->nops; i++)
        again += topt_runs_again(&s->config[i]);
    if (again)
        topt_text_add(t, ", %d of %d operators recomputed", again, s->nops);
    if (micro_batches > 1)
        topt_text_add(t, ", %lld micro-batches", (long long)micro_batches);
}

char *topt_strategy_words(const struct topt_model *m, const struct topt_mesh *mesh,
                          const struct topt_strategy *s, int64_t micro_batches)
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
    put_rest(&t, s, micro_batches);
    return topt_text_take(&t);
}

static char *uniform_words(const struct topt_framework *f, const struct topt_degrees *v,
                           int64_t micro_batch)
{
    struct topt_text t = {0};
    char words[TOPT_MODULES_SIZE];
    /* what context ranks share, with data ranks where there are any */
    static const char *const shared[TOPT_ZERO_LEVELS] = {
        [TOPT_ZERO_STATE] = "the optimizer state",
        [TOPT_ZERO_GRADIENT] = "gradients and optimizer state",
        [TOPT_ZERO_PARAM] = "parameters"};
    const char *level = f->level[v->level] ? f->level[v->level] : "data parallel";
    if (v->data > 1)
        topt_text_add(&t, "%s over %d GPUs", level, topt_degrees_shard(v));
    if (v->shard)
        topt_text_add(&t, " x %d replicas", v->data / v->shard);
    if (v->tensor > 1)
        topt_text_add(&t, "%stensor parallel over %d", t.len ? ", " : "", v->tensor);
    if (v->context > 1)
        topt_text_add(&t, "%scontext parallel over %d", t.len ? ", " : "", v->context);
    if (v->context > 1 && shared[v->level])
        topt_text_add(&t, " with %s sharded over %s", shared[v->level],
                      v->data > 1 ? "both" : "it");
    if (v->expert > 1)
        topt_text_add(&t, "%sexpert parallel over %d", t.len ? ", " : "", v->expert);
    if (v->expert > 1 && v->expert_tensor != v->tensor && v->expert_tensor > 1)
        topt_text_add(&t, " (each split over %d)", v->expert_tensor);
    else if (v->expert > 1 && v->expert_tensor != v->tensor)
        topt_text_add(&t, " (each whole)");
    if (v->stages > 1)
        topt_text_add(&t, "%s%d pipeline stages", t.len ? ", " : "", v->stages);
    if (v->virtual_stages > 1)
        topt_text_add(&t, " of %d chunks", v->virtual_stages);
    if (topt_orders[v->order].splits || topt_orders[v->order].pairs)
        topt_text_add(&t, ", schedule %s", topt_order_name(v->order));
    if (!t.len)
        topt_text_add(&t, "one GPU");
    if (v->recompute)
        topt_text_add(&t, ", checkpointing");
    if (v->recompute & ~TOPT_MODULE_WHOLE)
        topt_text_add(&t, " of %s",
                      v->recompute == TOPT_MODULE_OP
                          ? "all but every second product"
                          : topt_modules_words(v->recompute, words));
    if (v->recompute_layers)
        topt_text_add(&t, " of %d layer%s per %s", v->recompute_layers,
                      v->recompute_layers > 1 ? "s" : "",
                      v->virtual_stages > 1 ? "chunk" : "stage");
    topt_text_add(&t, ", micro-batch size %lld", (long long)micro_batch);
    if (v->micro_batches > 1)
        topt_text_add(&t,
                      v->stages > 1 ? ", %lld micro-batches per step"
                                    : ", %lld accumulation steps",
                      (long long)v->micro_batches);
    return t.s;
}

char *topt_solution_words(const struct topt_framework *f, const struct topt_model *m,
                          const struct topt_mesh *mesh, const struct topt_strategy *s,
                          const struct topt_degrees *v)
{
    int64_t samples = m->batch / v->micro_batches;
    return f ? uniform_words(f, v, (samples + v->data - 1) / v->data)
             : topt_strategy_words(m, mesh, s, v->micro_batches);
}
