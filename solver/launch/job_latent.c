/* job_latent.c - the shape of DeepSeek-V3 and its kin: latent attention in every layer, experts in all but the first
 * few, recognised by the names that importers give their operators.
 *
 * Modules that predict further tokens are such layers behind a product.  A model whose sizes differ from layer to layer, or that
 * has another form of attention, is not recognised. */
#include "job_latent.h"

#include <math.h>
#include <string.h>

#include "topt_json.h"

static int64_t whole(const json_t *o, const char *key)
{
    return topt_json_whole_at(o, key);
}

static double real(const json_t *o, const char *key, double absent)
{
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : absent;
}

static int is_on(const json_t *o, const char *key)
{
    return json_is_true(json_object_get(o, key));
}

/* Notes a size that all layers must share; returns 0 where this layer's is not the one noted before. */
static int same(int64_t *size, int64_t value)
{
    int ok = value > 0 && (!*size || *size == value);
    *size = value;
    return ok;
}

/* Angles by pairs, plain or YaRN's as Megatron-LM has them: of 4,096 positions, between 1 and 32 turns. */
static int read_angles(struct job_latent *l, const json_t *o)
{
    l->theta = real(o, "rope_theta", 0);
    l->factor = real(o, "rope_factor", 0);
    int yarn = whole(o, "rope_context") == 4096 && real(o, "rope_slow", 0) == 1 &&
               real(o, "rope_fast", 0) == 32;
    return l->theta > 0 && is_on(o, "rope_by_pair") && real(o, "scale", 1) == 1 &&
           same(&l->turned, whole(o, "rope_dim")) && (yarn || l->factor <= 0);
}

/* The scale of scores is (0.1 m ln factor + 1)^2 / sqrt(features of a query), with YaRN's m. */
static int read_scores(struct job_latent *l, const json_t *o)
{
    int64_t query = whole(o, "head_dim");
    double by = real(o, "scale", 0) * sqrt((double)query);
    if (l->factor > 1 && by > 0)
        l->mscale = (sqrt(by) - 1) / (0.1 * log(l->factor));
    return same(&l->value, whole(o, "v_head_dim")) &&
           same(&l->plain, query - l->turned) && is_on(o, "causal") &&
           l->mscale > -1e-9 && (l->factor > 1 || by <= 0 || fabs(by - 1) < 1e-9) &&
           whole(o, "heads") == whole(o, "kv_heads");
}

static int read_route(struct job_latent *l, const json_t *o)
{
    l->corrected = is_on(o, "corrected");
    l->scaling = real(o, "factor", 1);
    l->groups = whole(o, "groups");
    l->top_groups = whole(o, "top_groups");
    return is_on(o, "sigmoid") && !is_on(o, "unnormalized") && whole(o, "top_k") > 1;
}

/* One operator of a layer, by its name behind the layer's. */
static int read_op(struct job_latent *l, const json_t *o, const char *name)
{
    static const char *const plain[] = {
        "norm1",       "q_norm", "kv_norm",    "k_shared", "add1",    "norm2",
        "glu",         "add2",   "router",     "dispatch", "combine", "shared.glu",
        "shared.down", "down",   "add_shared", "q.rotary", "out",     "enorm",
        "hnorm",       "both",   "mtp",        "norm",     NULL};
    int64_t features = whole(o, "features");
    int i = 0;
    if (!strcmp(name, "q_down"))
        return same(&l->query_rank, features);
    if (!strcmp(name, "kv_down"))
        return same(&l->rank, features);
    if (!strcmp(name, "k_shared.rotary"))
        return read_angles(l, o);
    if (!strcmp(name, "attend"))
        return read_scores(l, o);
    if (!strcmp(name, "gate_up"))
        return same(&l->inner, features);
    if (!strcmp(name, "shared.gate_up"))
        return same(&l->shared_inner, features);
    if (!strcmp(name, "experts"))
        return same(&l->expert_inner, features) && is_on(o, "gated");
    if (!strcmp(name, "route"))
        return read_route(l, o);
    if (!strcmp(name, "q") || !strcmp(name, "kv"))
        return 1;
    while (plain[i] && strcmp(plain[i], name))
        i++;
    return plain[i] != NULL;
}

int job_latent_read(const json_t *ops, struct job_latent *ret)
{
    struct job_latent l = {0};
    const json_t *o;
    int64_t experts = 0, dense = 0;
    size_t i;
    json_array_foreach(ops, i, o)
    {
        const char *name = topt_json_words_at(o, "name"), *dot = strchr(name, '.');
        if (!json_object_get(o, "layer"))
            continue;
        int further = !strncmp(name, "mtp", 3); /* predicts one token more */
        if ((*name != 'h' && !further) || !dot || !read_op(&l, o, dot + 1))
            return 0;
        experts += !strcmp(dot + 1, "experts");
        if (!strcmp(dot + 1, "gate_up") && (experts || whole(o, "layer") != dense++))
            return 0;
    }
    l.dense = dense;
    if (!l.rank || !experts || (dense && !l.inner))
        return 0;
    *ret = l;
    return 1;
}
