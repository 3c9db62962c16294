/* Recomputation by module: which operators each module's name means, against lists written by hand, and what of bytes
 * and time it changes, against sums over these operators. */
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_lower.h"
#include "topt_text.h"

#define SIZES                                                                            \
    "'hidden_size':64,'num_attention_heads':4,'num_key_value_heads':2,"                  \
    "'intermediate_size':96,'vocab_size':128,'max_position_embeddings':256,"             \
    "'tie_word_embeddings':false,'hidden_act':'silu',"
static const char dense[] = "{'model_type':'llama'," SIZES "'num_hidden_layers':3}";
static const char latent[] =
    "{'model_type':'deepseek_v3'," SIZES "'num_hidden_layers':3,'kv_lora_rank':16,"
    "'q_lora_rank':24,'qk_nope_head_dim':16,'qk_rope_head_dim':8,'v_head_dim':16,"
    "'n_routed_experts':8,'n_shared_experts':1,'num_experts_per_tok':2,"
    "'moe_intermediate_size':32,'first_k_dense_replace':1,'n_group':2,'topk_group':1}";

/* In the first layer of experts, else in layer 1: operators of which all runs again, those whose output stays (+),
 * and those that run not again and whose output stays though nothing reads it (=). */
static const struct {
    const char *text, *modules, *again;
} cases[] = {
    {dense, "core_attn", "attention+"},
    {dense, "mlp", "norm2 gate_up glu down+"},
    {dense, "core_attn+mlp", "attention+ norm2 gate_up glu down+"},
    {dense, "layernorm", ""}, /* a part of the products behind */
    {dense, "moe", ""},
    {dense, "full", "norm1 qkv attention out add1 norm2 gate_up glu down"},
    {dense, "op", "norm1 out add1 norm2 activation up glu down="},
    {latent, "mla_up_proj", "q_norm q q.rotary kv_norm kv k_shared.rotary"},
    {latent, "layernorm", "norm1 norm2"},
    {latent, "mlp", ""},
    {latent, "moe",
     "router route dispatch experts combine shared.gate_up shared.glu shared.down "
     "add_shared+"},
    {latent, "shared_experts", "shared.gate_up shared.glu shared.down+"},
    {latent, "moe_act", ""}, /* experts make their activation again in any case */
};
enum { CASES = sizeof cases / sizeof *cases };

static struct topt_model *import(const char *quoted, int apart)
{
    struct topt_import_options o = {.batch = 2, .seq = 32, .apart = apart};
    struct topt_error err = {0};
    char *text = strdup(quoted);
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    struct topt_model *m = topt_model_import(text, strlen(text), "config.json", &o, &err);
    if (!m)
        printf("# %s\n", err.text);
    free(text);
    return m;
}

static struct topt_settings by_layer(void)
{
    struct topt_settings s = topt_settings_default();
    s.by_unit = 1;
    s.granule_bytes = 1;
    return s;
}

static void test_names(int i)
{
    static const char ends[] = {[TOPT_AGAIN_SAVED] = '+', [TOPT_AGAIN_KEPT] = '='};
    struct topt_settings settings = by_layer();
    struct topt_text got = {0};
    struct topt_error err = {0};
    int64_t modules = 0;
    uint8_t *again = NULL;
    char words[TOPT_MODULES_SIZE];
    int rc = topt_modules_parse(cases[i].modules, &modules, &err);
    struct topt_model *m =
        import(cases[i].text, modules == TOPT_MODULE_OP ? TOPT_APART_GATES : 0);
    rc = rc || !m || topt_modules_again(m, &settings, (int)modules, &again, NULL, &err);
    for (int o = 0; !rc && o < m->nops; o++)
        if (m->op[o].layer == 1 && again[o]) {
            topt_text_add(&got, "%s%s", got.len ? " " : "",
                          strchr(m->op[o].name, '.') + 1);
            if (ends[again[o]])
                topt_text_add(&got, "%c", ends[again[o]]);
        }
    ok(!rc && !strcmp(got.s ? got.s : "", cases[i].again), "%s of %s: %s %s",
       cases[i].modules, m ? m->family : "a model", got.s ? got.s : "nothing", err.text);
    ok(!strcmp(topt_modules_words((int)modules, words), cases[i].modules),
       "... and its words");
    topt_text_fini(&got);
    free(again);
    topt_model_destroy(m);
}

static void set_again(const struct topt_model *m, const uint8_t *again,
                      struct topt_strategy *s)
{
    for (int i = 0; i < m->nops; i++) {
        s->config[i].recompute = again[i];
        s->hub[topt_output_tensor(&m->op[i])].keep =
            again[i] == TOPT_AGAIN_ALL ? TOPT_HUB_RECOMPUTE : TOPT_HUB_KEEP;
    }
}

static int is_read_back(const struct topt_model *m, int tensor)
{
    int reads = 0;
    for (int c = 0; c < m->nops; c++)
        for (int k = 0; k < m->op[c].ninputs; k++)
            reads |= topt_input_tensor(&m->op[c], k) == tensor &&
                     m->op[c].reads_back >> m->op[c].input[k] & 1;
    return reads;
}

/* Is it kept for what runs again, though backward does not read it? */
static int is_needed(const struct topt_model *m, const uint8_t *again, int tensor)
{
    int needed = 0;
    for (int c = 0; c < m->nops; c++)
        for (int k = 0; k < m->op[c].ninputs; k++)
            needed |= again[c] && again[c] != TOPT_AGAIN_KEPT &&
                      topt_input_tensor(&m->op[c], k) == tensor;
    return needed && again[m->tensor[tensor].producer] != TOPT_AGAIN_ALL &&
           !is_read_back(m, tensor);
}

/* Bytes that one device no longer keeps: what operators save, and their outputs where backward reads these; less what
 * it keeps for these to run again. */
static int64_t given_up(const struct topt_model *m, const uint8_t *again)
{
    int64_t numbers = 0;
    for (int i = 0; i < m->nops; i++) {
        const struct topt_op *o = &m->op[i];
        int tensor = topt_output_tensor(o);
        int64_t made = topt_operand_numbers(o, o->output);
        for (int x = 0; again[i] && again[i] != TOPT_AGAIN_KEPT && x < o->spec->noperands;
             x++)
            if (o->operand[x].role == TOPT_SAVED && o->operand[x].present)
                numbers += topt_operand_numbers(o, x);
        numbers += again[i] == TOPT_AGAIN_ALL && is_read_back(m, tensor) ? made : 0;
        numbers -= again[i] == TOPT_AGAIN_KEPT || is_needed(m, again, tensor) ? made : 0;
    }
    return 4 * numbers;
}

/* The forward kernels of operators that run again, each by itself. */
static int64_t forward_ns(const struct topt_costing *k, const struct topt_strategy *s,
                          const uint8_t *again)
{
    int64_t ns = 0;
    for (int i = 0; i < k->model->nops; i++) {
        struct topt_fragment_cost c;
        struct topt_config plain = s->config[i];
        plain.recompute = TOPT_AGAIN_NOTHING;
        if (!again[i] || again[i] == TOPT_AGAIN_KEPT)
            continue;
        if (topt_cost_op(k, i, &plain, &c, NULL))
            return -1;
        ns += c.spent.at[TOPT_DURING_FORWARD].compute_ns;
    }
    return ns;
}

static void test_cost(const struct topt_hw *hw, const char *text, const char *modules)
{
    struct topt_settings settings = by_layer();
    struct topt_error err = {0};
    struct topt_mesh mesh;
    struct topt_strategy_cost none = {.memory_bytes = 0}, with = none;
    int64_t bits = 0;
    uint8_t *again = NULL;
    int rc =
        topt_modules_parse(modules, &bits, &err) || topt_mesh_init(&mesh, 1, 1, &err);
    struct topt_model *m = import(text, bits == TOPT_MODULE_OP ? TOPT_APART_GATES : 0);
    struct topt_router *router = topt_router_create(hw, &mesh);
    struct topt_costing k = {m, hw, &mesh, &settings, router, NULL};
    struct topt_strategy *s = topt_strategy_create(m);
    uint8_t *nothing = calloc((size_t)m->nops + 1, 1);
    rc = rc || topt_modules_again(m, &settings, (int)bits, &again, NULL, &err);
    set_again(m, nothing, s);
    rc = rc || topt_cost_strategy(&k, s, &none, &err);
    if (!rc)
        set_again(m, again, s);
    rc = rc || topt_cost_strategy(&k, s, &with, &err);
    is_int(none.sum.class_bytes[TOPT_CLASS_KEPT] - with.sum.class_bytes[TOPT_CLASS_KEPT],
           rc ? -1 : given_up(m, again), "%s: the bytes that are not kept %s", modules,
           err.text);
    is_int(with.sum.compute_ns - none.sum.compute_ns, rc ? -1 : forward_ns(&k, s, again),
           "... and the time of what runs again");
    topt_strategy_destroy(s);
    topt_router_destroy(router);
    topt_model_destroy(m);
    free(nothing);
    free(again);
}

int main(void)
{
    static const char *const wrong[] = {"full+mlp", "op+core_attn", "attn", "",
                                        "mlp++moe"};
    struct topt_hw *hw = topt_hw_load("a100-80-dgx", NULL);
    struct topt_error err = {0};
    int64_t modules;
    if (!hw)
        return 1;
    for (int i = 0; i < CASES; i++)
        test_names(i);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ok(topt_modules_parse(wrong[i], &modules, &err), "'%s' is refused: %s", wrong[i],
           err.text);
    test_cost(hw, dense, "mlp");
    test_cost(hw, dense, "core_attn");
    test_cost(hw, dense, "op");
    test_cost(hw, latent, "mla_up_proj");
    test_cost(hw, latent, "layernorm");
    test_cost(hw, latent, "shared_experts");
    topt_hw_destroy(hw);
    return done_testing();
}
