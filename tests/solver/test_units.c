/* Units of models whose layers differ: what FSDP gathers of them and what backward recomputes of
 * them at once, against sums by layer. */
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_lower.h"

enum { RANKS = 4 };

#define SIZES                                                                            \
    "'hidden_size':64,'num_attention_heads':4,'num_key_value_heads':2,"                  \
    "'intermediate_size':96,'vocab_size':128,'max_position_embeddings':256,"             \
    "'tie_word_embeddings':false,'hidden_act':'silu',"

static const struct {
    const char *text;
    int layers;
} model[] = {
    /* attention that sees a window, or all */
    {"{'model_type':'olmo3'," SIZES "'num_hidden_layers':6,'sliding_window':16,"
     "'layer_types':['sliding_attention','sliding_attention','sliding_attention',"
     "'full_attention','sliding_attention','full_attention']}",
     6},
    /* dense layers, then experts */
    {"{'model_type':'deepseek_v3'," SIZES "'num_hidden_layers':5,'kv_lora_rank':16,"
     "'q_lora_rank':24,'qk_nope_head_dim':16,'qk_rope_head_dim':8,'v_head_dim':16,"
     "'n_routed_experts':8,'n_shared_experts':1,'num_experts_per_tok':2,"
     "'moe_intermediate_size':32,'first_k_dense_replace':2,'n_group':2,'topk_group':1}",
     5},
    /* both by turns */
    {"{'model_type':'llama4_text'," SIZES "'num_hidden_layers':4,'head_dim':16,"
     "'intermediate_size_mlp':160,'num_local_experts':4,'num_experts_per_tok':1,"
     "'interleave_moe_layer_step':2}",
     4},
    /* an encoder and a decoder */
    {"{'model_type':'bart','d_model':64,'vocab_size':128,'encoder_layers':3,"
     "'decoder_layers':2,'encoder_attention_heads':4,'decoder_attention_heads':4,"
     "'encoder_ffn_dim':256,'decoder_ffn_dim':128,'max_position_embeddings':256}",
     5},
    /* all alike */
    {"{'model_type':'llama'," SIZES "'num_hidden_layers':4}", 4},
};
enum { MODELS = sizeof model / sizeof *model };

static struct topt_model *import(const char *quoted, struct topt_error *err)
{
    struct topt_import_options o = {.batch = RANKS, .seq = 32};
    char *text = strdup(quoted);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    struct topt_model *m = topt_model_import(text, strlen(text), "config.json", &o, err);
    free(text);
    return m;
}

/* Samples shared out, and parameters sharded: FSDP's strategy. */
static struct topt_strategy *sharded(const struct topt_model *m,
                                     const struct topt_mesh *mesh)
{
    struct topt_strategy *s = topt_strategy_create(m);
    for (int i = 0; s && i < m->nops; i++) {
        struct topt_config split = topt_config_none(), zero;
        for (int a = 0; a < mesh->naxes; a++)
            split.dim[a] = 0;
        if (!topt_config_valid(&m->op[i], &split, mesh))
            continue;
        zero = s->config[i] = split;
        zero.zero = TOPT_ZERO_PARAM;
        if (topt_config_valid(&m->op[i], &zero, mesh))
            s->config[i] = zero;
    }
    return s;
}

/* In f32 values, gradients as they are made and as they are reduced take the same.  Of two
 * neighbours the values are there, and gradients of one. */
static double gathered(const struct topt_model *m, const struct topt_strategy *s)
{
    double *of = calloc((size_t)m->nlayers + 1, sizeof *of), most = 0, outside = 0;
    for (int i = 0; of && i < m->nops; i++) {
        double bytes =
            s->config[i].zero == TOPT_ZERO_PARAM ? 4 * topt_op_parameters(&m->op[i]) : 0;
        if (m->op[i].layer < 0)
            outside += 2 * bytes;
        else
            of[m->op[i].layer] += bytes;
    }
    for (int l = 1; of && l < m->nlayers; l++) {
        double larger = of[l] > of[l - 1] ? of[l] : of[l - 1];
        double both = of[l] + of[l - 1] + larger;
        most = both > most ? both : most;
    }
    free(of);
    return most + outside;
}

/* Bytes recomputed at once of the given layer's operators, or of all (-1). */
static int64_t recomputed(const struct topt_costing *k, struct topt_strategy *s,
                          const uint8_t *may, int layer)
{
    struct topt_strategy_cost cost;
    for (int i = 0; i < s->nops; i++) {
        int again = may[i] && (layer < 0 || k->model->op[i].layer == layer);
        int t = topt_output_tensor(&k->model->op[i]);
        s->config[i].recompute = (uint8_t)again;
        s->hub[t].keep = again ? TOPT_HUB_RECOMPUTE : TOPT_HUB_KEEP;
    }
    return topt_cost_strategy(k, s, &cost, NULL) ? -1 : cost.recomputed_bytes;
}

static void test_units(const struct topt_hw *hw, int which)
{
    struct topt_error err = {0};
    struct topt_mesh mesh;
    struct topt_settings settings = topt_settings_default();
    struct topt_strategy_cost cost;
    struct topt_model *m = import(model[which].text, &err);
    const char *name = m && m->family ? m->family : "a model";
    settings.gather = TOPT_GATHER_UNIT;
    settings.by_unit = 1;
    settings.granule_bytes = 1;
    uint8_t *may = NULL;
    if (!ok(m && m->nlayers == model[which].layers &&
                !topt_mesh_init(&mesh, 1, RANKS, &err) &&
                !topt_recomputable(m, &settings, &may, &err),
            "%s of %d layers %s", name, model[which].layers, err.text)) {
        topt_model_destroy(m);
        return;
    }
    struct topt_router *router = topt_router_create(hw, &mesh);
    struct topt_costing k = {m, hw, &mesh, &settings, router, NULL};
    struct topt_strategy *s = sharded(m, &mesh);
    int rc = topt_cost_strategy(&k, s, &cost, &err);
    double want = gathered(m, s);
    int64_t got = rc ? -1 : cost.sum.class_bytes[TOPT_CLASS_BUFFERS], most = 0, few = 0;
    ok((double)got >= want && (double)got <= want + 2 * m->nops,
       "%s: %lld bytes are gathered, two neighbours have %.0f %s", name, (long long)got,
       want, err.text);
    struct topt_strategy_cost held = {.memory_bytes = 0};
    settings.by_schedule = 1;
    rc = rc || topt_cost_strategy(&k, s, &held, &err);
    settings.by_schedule = 0;
    ok(!rc && held.memory_bytes > 0 && held.memory_bytes <= cost.memory_bytes,
       "%s: its schedule holds %lld bytes, no more than the sum of %lld", name,
       (long long)held.memory_bytes, (long long)cost.memory_bytes);
    for (int l = 0; l < m->nlayers; l++) {
        int64_t one = recomputed(&k, s, may, l);
        most = one > most ? one : most;
        few += one > 0;
    }
    is_int(recomputed(&k, s, may, -1), most, "%s: the largest layer recomputes at once",
           name);
    is_int(few, m->nlayers, "%s: and each recomputes", name);
    topt_strategy_destroy(s);
    topt_router_destroy(router);
    free(may);
    topt_model_destroy(m);
}

/* Where no operator has a layer, blocks that repeat stand in. */
static void test_without(void)
{
    struct topt_error err = {0};
    struct topt_model *with = import(model[MODELS - 1].text, &err);
    json_t *doc = with ? topt_model_to_json(with) : NULL, *op;
    size_t i;
    json_array_foreach(json_object_get(doc, "ops"), i, op) json_object_del(op, "layer");
    struct topt_model *without = doc ? topt_model_from_json(doc, &err) : NULL;
    int same = without && !without->nlayers;
    for (int o = 0; same && o < with->nops; o++)
        same = with->unit[o] == without->unit[o] &&
               !memcmp(&with->share[o], &without->share[o], sizeof *with->share);
    ok(same, "blocks stand in for layers that are not told %s", err.text);
    json_decref(doc);
    topt_model_destroy(with);
    topt_model_destroy(without);
}

int main(void)
{
    struct topt_hw *hw = topt_hw_load("a100-80-dgx", NULL);
    if (!hw)
        return 1;
    for (int i = 0; i < MODELS; i++)
        test_units(hw, i);
    test_without();
    topt_hw_destroy(hw);
    return done_testing();
}
