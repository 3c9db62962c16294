/* Whatever bytes come, importing gives a model or one line of error, and a model that came
 * out can be written and read again. */
#include <stdlib.h>
#include <string.h>

#include "mutate.h"
#include "sizes.h"
#include "tap.h"
#include "topt_json.h"
#include "topt_model.h"

enum { ROUNDS = TOPT_TEST_SIZE_FROM(1500, 400), CAP = 4096, WIDE = 1 << 16 };

static const char *const seeds[] = {
    "{\"model_type\":\"gpt2\",\"n_embd\":32,\"n_head\":4,\"n_layer\":2,\"n_positions\":"
    "64,"
    "\"vocab_size\":50,\"activation_function\":\"gelu_new\",\"layer_norm_epsilon\":1e-"
    "05}",
    "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_act\":\"silu\",\"hidden_size\":"
    "32,"
    "\"intermediate_size\":64,\"max_position_embeddings\":128,\"num_attention_heads\":4,"
    "\"num_hidden_layers\":2,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-05,"
    "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0},\"rope_theta\":10000.0,"
    "\"tie_word_embeddings\":true,\"vocab_size\":50}",
    "{\"model_type\":\"x\",\"text_config\":{\"model_type\":\"gemma3_text\",\"hidden_"
    "size\":32,"
    "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_"
    "dim\":8,"
    "\"vocab_size\":50,\"sliding_window\":16,\"sliding_window_pattern\":2}}",
    "{\"model_type\":\"deepseek_v3\",\"hidden_size\":32,\"num_hidden_layers\":2,"
    "\"num_attention_heads\":2,\"intermediate_size\":48,\"vocab_size\":50,"
    "\"max_position_embeddings\":64,\"n_routed_experts\":4,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":8,\"kv_lora_rank\":8,\"q_lora_rank\":8,\"qk_nope_head_"
    "dim\":8,"
    "\"qk_rope_head_dim\":4,\"v_head_dim\":8,\"first_k_dense_replace\":1}",
    "{\"model_type\":\"whisper\",\"d_model\":16,\"encoder_layers\":1,\"decoder_layers\":"
    "1,"
    "\"encoder_attention_heads\":2,\"decoder_attention_heads\":2,\"encoder_ffn_dim\":32,"
    "\"decoder_ffn_dim\":32,\"vocab_size\":50,\"num_mel_bins\":4,\"max_source_"
    "positions\":16,"
    "\"max_target_positions\":8}",
    "{\"model_type\":\"vit\",\"hidden_size\":16,\"num_hidden_layers\":1,"
    "\"num_attention_heads\":2,\"intermediate_size\":32,\"image_size\":8,\"patch_size\":"
    "4,"
    "\"id2label\":{\"0\":\"a\",\"1\":\"b\"}}",
    "{'model_type':'t5','d_model':16,'d_kv':4,'d_ff':24,'num_layers':1,'num_heads':2,"
    "'num_decoder_layers':2,'feed_forward_proj':'gated-gelu','vocab_size':50,"
    "'relative_attention_num_buckets':8,'relative_attention_max_distance':20}",
    "{'model_type':'gemma2','hidden_size':16,'num_hidden_layers':2,'num_attention_heads':"
    "2,"
    "'num_key_value_heads':1,'head_dim':8,'intermediate_size':24,'vocab_size':50,"
    "'max_position_embeddings':64,'sliding_window':16,'attn_logit_softcapping':50.0,"
    "'layer_types':['sliding_attention','full_attention'],'query_pre_attn_scalar':8}",
    "{'model_type':'gemma4_text','hidden_size':16,'num_hidden_layers':3,"
    "'num_attention_heads':2,'num_key_value_heads':2,'num_global_key_value_heads':1,"
    "'head_dim':4,'global_head_dim':8,'attention_k_eq_v':true,'intermediate_size':24,"
    "'hidden_size_per_layer_input':0,'enable_moe_block':true,'num_experts':4,"
    "'top_k_experts':2,'moe_intermediate_size':8,'vocab_size':50,'sliding_window':16,"
    "'layer_types':['sliding_attention','full_attention','full_attention'],"
    "'rope_parameters':{'full_attention':{'partial_rotary_factor':0.5,'rope_theta':1e6,"
    "'rope_type':'proportional'},'sliding_attention':{'rope_type':'default'}}}",
    "{'model_type':'llama4_text','num_local_experts':4,'intermediate_size_mlp':40,"
    "'head_dim':8,'hidden_size':32,'num_hidden_layers':4,'num_attention_heads':4,"
    "'num_key_value_heads':2,'intermediate_size':24,'vocab_size':50,"
    "'max_position_embeddings':512,'attention_chunk_size':16,'moe_layers':[1,3],"
    "'no_rope_layers':[1,1,1,0],'floor_scale':64}",
    "{'model_type':'deepseek_v3','hidden_size':32,'num_hidden_layers':2,"
    "'num_attention_heads':2,'intermediate_size':48,'vocab_size':50,"
    "'max_position_embeddings':64,'n_routed_experts':8,'num_experts_per_tok':2,"
    "'moe_intermediate_size':8,'kv_lora_rank':8,'qk_nope_head_dim':8,"
    "'qk_rope_head_dim':4,'v_head_dim':8,'n_group':4,'topk_group':2,'rope_scaling':{"
    "'type':'yarn','factor':40,'original_max_position_embeddings':16,'mscale_all_dim':1}"
    "}",
    "{'model_type':'phi3','hidden_size':32,'num_hidden_layers':2,'num_attention_heads':4,"
    "'intermediate_size':48,'vocab_size':50,'max_position_embeddings':64,"
    "'original_max_position_embeddings':16,'rope_scaling':{'type':'longrope',"
    "'short_factor':[1,1,1,1],'long_factor':[1,1.5,2,4]}}",
    "{'model_type':'qwen3_moe','hidden_size':32,'num_hidden_layers':4,"
    "'num_attention_heads':4,'intermediate_size':48,'vocab_size':50,"
    "'max_position_embeddings':64,'num_experts':4,'num_experts_per_tok':2,"
    "'moe_intermediate_size':8,'decoder_sparse_step':2,'mlp_only_layers':[3],"
    "'use_sliding_window':true,'sliding_window':16,'max_window_layers':2}",
    "{'model_type':'bert','architectures':['BertForSequenceClassification'],"
    "'hidden_size':16,'num_hidden_layers':1,'num_attention_heads':2,'intermediate_size':"
    "24,'vocab_size':50,'max_position_embeddings':64,'id2label':{'0':'a','1':'b'}}",
    "{'format':'topt-model/1','name':'m','batch':4,'seq':8,'note':'n','plan_only':'p',"
    "'ops':[{'name':'e','kind':'embedding','vocab':9,'features':6},"
    "{'name':'t','kind':'variable','vocab':8,'features':2},"
    "{'name':'q','kind':'linear','inputs':['e'],'features':2,'features_unit':4},"
    "{'name':'kv','kind':'linear','inputs':['e'],'features':2,'features_unit':8},"
    "{'name':'r','kind':'rotary','inputs':['q'],'rope_factor':8,'rope_context':64,"
    "'rope_slow':1,'rope_fast':4,'rope_by_pair':true,'scale':1.1},"
    "{'name':'a','kind':'attention','inputs':['r','kv','t'],'heads':2,'head_dim':4,"
    "'causal':true,'window':4,'chunk':4,'distance':20},"
    "{'name':'g','kind':'linear','inputs':['a'],'features':6},"
    "{'name':'w','kind':'route','inputs':['g'],'top_k':2,'sigmoid':true,'corrected':true,"
    "'groups':3,'top_groups':2,'factor':2},"
    "{'name':'n','kind':'norm','inputs':['w'],'plain':true},"
    "{'name':'l','kind':'cross_entropy','inputs':['n']}]}",
    "{\"format\":\"topt-model/"
    "1\",\"name\":\"m\",\"batch\":4,\"seq\":8,\"vocab\":9,\"ops\":["
    "{\"name\":\"w\",\"kind\":\"variable\",\"vocab\":9,\"features\":6},"
    "{\"name\":\"e\",\"kind\":\"embedding\",\"inputs\":[\"w\"]},"
    "{\"name\":\"q\",\"kind\":\"linear\",\"inputs\":[\"e\"],\"features\":2,"
    "\"features_unit\":9},"
    "{\"name\":\"a\",\"kind\":\"attention\",\"inputs\":[\"q\"],\"heads\":2,\"head_dim\":"
    "3,"
    "\"causal\":true},"
    "{\"name\":\"r\",\"kind\":\"add\",\"inputs\":[\"a\",\"e\"]},"
    "{\"name\":\"y\",\"kind\":\"linear\",\"inputs\":[\"r\",\"w\"]},"
    "{\"name\":\"l\",\"kind\":\"cross_entropy\",\"inputs\":[\"y\"]}]}",
    "{'format':'topt-model/1','name':'m','batch':2,'seq':4,'train':'lora:1+4bit','ops':["
    "{'name':'e','kind':'embedding','vocab':9,'features':6,'frozen':true},"
    "{'name':'q','kind':'linear','inputs':['e'],'features':6,'frozen':true,'bits':4},"
    "{'name':'u','kind':'linear','inputs':['e'],'features':1},"
    "{'name':'d','kind':'linear','inputs':['u'],'features':6,'zero':true},"
    "{'name':'s','kind':'add','inputs':['q','d']},"
    "{'name':'l','kind':'cross_entropy','inputs':['s']}]}",
    "W=64 # width\nA=\"--hidden-size $W --num-layers ${L:-2} \\\n --swiglu\"\n"
    "B=(--num-attention-heads 4 --seq-length 16 --disable-bias-linear)\n"
    "python pretrain_gpt.py $A --position-embedding-type rope --vocab-size=50 "
    "--num-experts 4 --moe-layer-freq \"([0]*1+[1]*1)*1\" --norm-epsilon 1e-6\n",
    "\x08\x07\x12\x07pytorch\x1a\x03:\x10\x12\x04main"};

enum { SEEDS = sizeof seeds / sizeof *seeds };

static int imported, refused, wrong;

static int count(void *ctx, const struct topt_weight *w)
{
    *(int64_t *)ctx += w->name[0] != '\0';
    return 0;
}

static void again(struct topt_model *m)
{
    int64_t named = 0;
    struct topt_error err;
    struct topt_model_stats stats;
    json_t *doc = topt_model_to_json(m);
    struct topt_model *n = topt_model_from_json(doc, &err);
    if (m->nops < 1000)
        topt_model_stats(m, &stats);
    if (m->nops < 1000)
        wrong += topt_model_weights(m, count, &named) != 0;
    wrong += !n || n->nops != m->nops || !m->plan_only != !n->plan_only;
    topt_model_destroy(n);
    json_decref(doc);
}

/* What is trained of it may be anything too. */
static void trained(struct topt_model *m)
{
    static const char *const specs[] = {"lora:2", "lora:1:q*,*_proj+4bit", "*",
                                        "e,q",    "*norm*+8bit",           "lora:"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct topt_error err = {0};
        struct topt_model *t = topt_model_rebatch(m, 1, &err);
        if (t)
            t->family = m->family;
        if (t && topt_model_train(&t, specs[i], &err))
            wrong += !err.text[0];
        else if (t)
            again(t);
        topt_model_destroy(t);
    }
}

static void try(const char *text, size_t len)
{
    /* A copy of the exact size, so that reading past the end shows. */
    char *exact = malloc(len ? len : 1);
    struct topt_error err = {0};
    memcpy(exact, text, len);
    struct topt_model *m = topt_model_import(exact, len, "fuzz", NULL, &err);
    free(exact);
    if (m) {
        imported++;
        if (m->nops < 100 || imported % 64 == 0) /* a class's defaults make large ones */
            again(m);
        if (m->nops < 200 && imported % 64 == 0)
            trained(m);
    } else {
        refused++;
        wrong += !err.text[0] || err.code == TOPT_OK || strchr(err.text, '\n') != NULL;
    }
    topt_model_destroy(m);
}

/* Configs of a file like oracle/counts.json, each damaged in 'rounds' ways. */
static void try_configs(const char *path, int rounds)
{
    static char text[WIDE];
    struct topt_error err = {0};
    size_t i;
    json_t *doc = topt_json_load(path, 8 << 20, &err), *row;
    ok(doc != NULL, "%s is read %s", path, err.text);
    json_array_foreach(json_object_get(doc, "models"), i, row)
    {
        char *seed = json_dumps(json_object_get(row, "config"), JSON_COMPACT);
        for (int k = 0; seed && strlen(seed) < WIDE / 2 && k < rounds; k++)
            try(text, mutate(seed, text, WIDE));
        free(seed);
    }
    json_decref(doc);
}

/* usage: model_fuzz [ROUNDS [CONFIGS]] */
int main(int argc, char **argv)
{
    char text[CAP], seed[CAP];
    int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    if (argc > 2)
        try_configs(argv[2], rounds);
    for (int s = 0; s < SEEDS; s++) {
        size_t len = strlen(seeds[s]);
        for (size_t i = 0; i <= len; i++)
            seed[i] = seeds[s][i] == '\'' ? '"' : seeds[s][i];
        for (size_t cut = 0; cut <= len; cut++)
            try(seed, cut);
        for (int i = 0; i < rounds; i++)
            try(text, mutate(seed, text, CAP));
    }
    printf("# %d imported, %d refused\n", imported, refused);
    is_int(wrong, 0, "every answer is a model or one line");
    ok(imported > rounds / 10 && refused > rounds, "both were seen often");
    return done_testing();
}
