/* Hugging Face configs: parameter counts are the public ones, and what can't be built is
 * refused by the name of its key. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_json.h"
#include "topt_model.h"

static struct topt_model *import(const char *text, int64_t batch, int64_t seq,
                                 struct topt_error *err)
{
    struct topt_import_options o = {.batch = batch, .seq = seq};
    return topt_model_import(text, strlen(text), "config.json", &o, err);
}

static int64_t parameters(const char *text, const char *what)
{
    struct topt_error err = {0};
    struct topt_model_stats stats = {0};
    struct topt_model *m = import(text, 0, 0, &err);
    if (ok(m != NULL, "%s is imported %s", what, err.text))
        topt_model_stats(m, &stats);
    topt_model_destroy(m);
    return stats.parameters;
}

static const char *gpt2(int width, int layers, int heads, const char *more)
{
    static char text[1024];
    snprintf(
        text, sizeof text,
        "{\"activation_function\":\"gelu_new\",\"architectures\":[\"GPT2LMHeadModel\"],"
        "\"attn_pdrop\":0.1,\"bos_token_id\":50256,\"layer_norm_epsilon\":1e-05,"
        "\"model_type\":\"gpt2\",\"n_ctx\":1024,\"n_embd\":%d,\"n_head\":%d,"
        "\"n_layer\":%d,\"n_positions\":1024,\"resid_pdrop\":0.1,"
        "\"vocab_size\":50257%s}",
        width, heads, layers, more);
    return text;
}

static const char *llama(int width, int layers, int heads, int kv, int inner,
                         const char *more)
{
    static char text[1024];
    snprintf(text, sizeof text,
             "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\","
             "\"hidden_act\":\"silu\",\"hidden_size\":%d,\"intermediate_size\":%d,"
             "\"max_position_embeddings\":131072,\"num_attention_heads\":%d,"
             "\"num_hidden_layers\":%d,\"num_key_value_heads\":%d,\"rms_norm_eps\":1e-05,"
             "\"rope_theta\":500000.0,\"tie_word_embeddings\":false,\"vocab_size\":128256"
             "%s}",
             width, inner, heads, layers, kv, more);
    return text;
}

static const char *const rope_scaling =
    ",\"rope_scaling\":{\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
    "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"}";

/* Public models: what their configs say, and the number of parameters that their weight files
 * hold (the totals of the safetensors metadata on the models' pages, each shared tensor once;
 * where a page has none, the sum of the published tensors' shapes). */
#define LLAMA(w, l, h, kv, inner, vocab, more)                                           \
    "'model_type':'llama','architectures':['LlamaForCausalLM'],'hidden_act':'silu',"     \
    "'hidden_size':" #w ",'num_hidden_layers':" #l ",'num_attention_heads':" #h          \
    ",'num_key_value_heads':" #kv ",'intermediate_size':" #inner ",'vocab_size':" #vocab \
    ",'max_position_embeddings':4096" more
#define SIZES(type, arch, w, l, h, inner, vocab, context)                                \
    "'model_type':'" type "','architectures':['" arch "'],'hidden_size':" #w             \
    ",'num_hidden_layers':" #l ",'num_attention_heads':" #h                              \
    ",'intermediate_size':" #inner ",'vocab_size':" #vocab                               \
    ",'max_position_embeddings':" #context
#define OPT(w, l, h, inner, more)                                                        \
    "'model_type':'opt','architectures':['OPTForCausalLM'],'hidden_size':" #w            \
    ",'num_hidden_layers':" #l ",'num_attention_heads':" #h ",'ffn_dim':" #inner         \
    ",'vocab_size':50272,'max_position_embeddings':2048,'activation_function':'"         \
    "relu'" more

#define GEMMA2(w, l, h, kv, hd, inner, scalar)                                           \
    "'model_type':'gemma2','architectures':['Gemma2ForCausalLM'],'hidden_size':" #w      \
    ",'num_hidden_layers':" #l ",'num_attention_heads':" #h                              \
    ",'num_key_value_heads':" #kv ",'head_dim':" #hd ",'intermediate_size':" #inner      \
    ",'query_pre_attn_scalar':" #scalar ",'vocab_size':256000"
#define GEMMA4                                                                           \
    "'model_type':'gemma4_text','hidden_size':2816,'num_hidden_layers':30,"              \
    "'num_attention_heads':16,'num_key_value_heads':8,'num_global_key_value_heads':2,"   \
    "'head_dim':256,'global_head_dim':512,'attention_k_eq_v':true,'intermediate_size':"  \
    "2112,'hidden_size_per_layer_input':0,'enable_moe_block':true,'num_experts':128,"    \
    "'top_k_experts':8,'moe_intermediate_size':704,'vocab_size':262144,'sliding_window'" \
    ":"                                                                                  \
    "512,'final_logit_softcapping':30.0,'use_bidirectional_attention':'vision',"         \
    "'rope_parameters':{'full_attention':{'partial_rotary_factor':0.25,'rope_theta':"    \
    "1000000.0,'rope_type':'proportional'},'sliding_attention':{'rope_theta':10000.0,"   \
    "'rope_type':'default'}}"
#define T5(type, arch, w, kv, ff, l, h, act, tied, vocab)                                \
    "'model_type':'" type "','architectures':['" arch "ForConditionalGeneration'],"      \
    "'d_model':" #w ",'d_kv':" #kv ",'d_ff':" #ff ",'num_layers':" #l ",'num_heads':" #h \
    ",'feed_forward_proj':'" act "','tie_word_embeddings':" tied ",'vocab_size':" #vocab

static const struct {
    const char *name;
    int64_t parameters;
    const char *config; /* without braces */
} public_models[] = {
    {"Llama-2-7b", 6738415616, LLAMA(4096, 32, 32, 32, 11008, 32000, "")},
    {"Llama-2-13b", 13015864320, LLAMA(5120, 40, 40, 40, 13824, 32000, "")},
    {"Llama-2-70b", 68976648192, LLAMA(8192, 80, 64, 8, 28672, 32000, "")},
    {"Llama-3.1-405B", 405853388800, LLAMA(16384, 126, 128, 8, 53248, 128256, "")},
    {"Llama-3.2-1B", 1235814400,
     LLAMA(2048, 16, 32, 8, 8192, 128256, ",'tie_word_embeddings':true,'head_dim':64")},
    {"Llama-3.2-3B", 3212749824,
     LLAMA(3072, 28, 24, 8, 8192, 128256, ",'tie_word_embeddings':true,'head_dim':128")},
    {"TinyLlama-1.1B", 1100048384, LLAMA(2048, 22, 32, 4, 5632, 32000, "")},
    {"SmolLM2-135M", 134515008,
     LLAMA(576, 30, 9, 3, 1536, 49152, ",'tie_word_embeddings':true")},
    {"Mistral-7B-v0.1", 7241732096,
     SIZES("mistral", "MistralForCausalLM", 4096, 32, 32, 14336, 32000,
           32768) ",'num_key_value_heads':8,'sliding_window':4096"},
    {"Mistral-7B-v0.3", 7248023552,
     SIZES("mistral", "MistralForCausalLM", 4096, 32, 32, 14336, 32768,
           32768) ",'num_key_value_heads':8,'sliding_window':null"},
    {"Qwen2.5-0.5B", 494032768,
     SIZES("qwen2", "Qwen2ForCausalLM", 896, 24, 14, 4864, 151936,
           32768) ",'num_key_value_heads':2,'sliding_window':32768,'use_sliding_window':"
                  "false,"
                  "'tie_word_embeddings':true"},
    {"Qwen2.5-7B", 7615616512,
     SIZES("qwen2", "Qwen2ForCausalLM", 3584, 28, 28, 18944, 152064,
           131072) ",'num_key_value_heads':4"},
    {"Mixtral-8x7B", 46702792704,
     SIZES(
         "mixtral", "MixtralForCausalLM", 4096, 32, 32, 14336, 32000,
         32768) ",'num_key_value_heads':8,'num_local_experts':8,'num_experts_per_tok':2"},
    {"phi-3-mini-4k", 3821079552,
     SIZES("phi3", "Phi3ForCausalLM", 3072, 32, 32, 8192, 32064,
           4096) ",'num_key_value_heads':32,'sliding_window':2047"},
    {"starcoder2-3b", 3030371328,
     SIZES("starcoder2", "Starcoder2ForCausalLM", 3072, 30, 24, 12288, 49152,
           16384) ",'num_key_value_heads':2,'hidden_act':'gelu_pytorch_tanh','sliding_"
                  "window':4096"},
    {"gemma-2b", 2506172416,
     SIZES("gemma", "GemmaForCausalLM", 2048, 18, 8, 16384, 256000,
           8192) ",'num_key_value_heads':1,'head_dim':256,'hidden_act':'gelu'"},
    {"gemma-7b", 8537680896,
     SIZES("gemma", "GemmaForCausalLM", 3072, 28, 16, 24576, 256000,
           8192) ",'num_key_value_heads':16,'head_dim':256"},
    {"gemma-3-1b", 999885952,
     "'model_type':'gemma3_text','architectures':['Gemma3ForCausalLM'],'hidden_size':"
     "1152,"
     "'num_hidden_layers':26,'num_attention_heads':4,'num_key_value_heads':1,'head_dim':"
     "256,"
     "'intermediate_size':6912,'vocab_size':262144,'max_position_embeddings':32768,"
     "'sliding_window':512,'sliding_window_pattern':6"},
    /* of those that see images the text model alone: the sum of its tensors' shapes */
    {"gemma-3-4b, text", 3880263168,
     "'model_type':'gemma3_text','hidden_size':2560,'num_hidden_layers':34,"
     "'num_attention_heads':8,'num_key_value_heads':4,'head_dim':256,'intermediate_size':"
     "10240,'vocab_size':262208,'sliding_window':1024,'rope_scaling':{'factor':8.0,"
     "'rope_type':'linear'}"},
    {"gemma-3-270m", 268098176,
     "'model_type':'gemma3_text','architectures':['Gemma3ForCausalLM'],'hidden_size':640,"
     "'num_hidden_layers':18,'num_attention_heads':4,'num_key_value_heads':1,'head_dim':"
     "256,'intermediate_size':2048,'vocab_size':262144,'max_position_embeddings':32768,"
     "'sliding_window':512,'_sliding_window_pattern':6"},
    /* its text model: 738197504 + 2816 of the table and the last norm; of each layer 17842176
     * (dense) + 761266176 (experts) + 383104 (norms, router), and of attention 34603008 + 512
     * where heads are 256 wide, 49020928 + 1024 where they are 512 */
    {"gemma-4-26B-A4B, text", 25233141760, GEMMA4},
    {"gemma-2-2b", 2614341888, GEMMA2(2304, 26, 8, 4, 256, 9216, 256)},
    {"gemma-2-9b", 9241705984, GEMMA2(3584, 42, 16, 8, 256, 14336, 256)},
    {"gemma-2-27b", 27227128320, GEMMA2(4608, 46, 32, 16, 128, 36864, 144)},
    {"t5-small", 60506624, T5("t5", "T5", 512, 64, 2048, 6, 8, "relu", "true", 32128)},
    {"t5-base", 222903552, T5("t5", "T5", 768, 64, 3072, 12, 12, "relu", "true", 32128)},
    {"t5-large", 737668096,
     T5("t5", "T5", 1024, 64, 4096, 24, 16, "relu", "true", 32128)},
    {"t5-3b", 2851598336,
     T5("t5", "T5", 1024, 128, 16384, 24, 32, "relu", "true", 32128)},
    {"flan-t5-small", 76961152,
     T5("t5", "T5", 512, 64, 1024, 8, 6, "gated-gelu", "false", 32128)},
    {"flan-t5-base", 247577856,
     T5("t5", "T5", 768, 64, 2048, 12, 12, "gated-gelu", "false", 32128)},
    {"flan-t5-large", 783150080,
     T5("t5", "T5", 1024, 64, 2816, 24, 16, "gated-gelu", "false", 32128)},
    {"flan-t5-xl", 2849757184,
     T5("t5", "T5", 2048, 64, 5120, 24, 32, "gated-gelu", "false", 32128)},
    {"mt5-small", 300176768,
     T5("mt5", "MT5", 512, 64, 1024, 8, 6, "gated-gelu", "false", 250112)},
    {"Llama-4-Scout, text", 107769861120,
     "'model_type':'llama4_text','attention_chunk_size':8192,'head_dim':128,'hidden_act':"
     "'silu','hidden_size':5120,'interleave_moe_layer_step':1,'intermediate_size':8192,"
     "'intermediate_size_mlp':16384,'max_position_embeddings':10485760,"
     "'num_attention_heads':40,'num_experts_per_tok':1,'num_hidden_layers':48,"
     "'num_key_value_heads':8,'num_local_experts':16,'vocab_size':202048"},
    {"bert-base, classes", 109483778,
     "'model_type':'bert','architectures':['BertForSequenceClassification'],'hidden_size'"
     ":768,'num_hidden_layers':12,'num_attention_heads':12,'intermediate_size':3072,"
     "'vocab_size':30522,'max_position_embeddings':512"},
    {"distilbert-base-uncased-finetuned-sst-2-english", 66955010,
     "'model_type':'distilbert','architectures':['DistilBertForSequenceClassification'],"
     "'dim':768,'n_layers':6,'n_heads':12,'hidden_dim':3072,'vocab_size':30522,"
     "'max_position_embeddings':512,'activation':'gelu','id2label':{'0':'NEGATIVE',"
     "'1':'POSITIVE'}"},
    /* 2 wide: 61044 + 1024 + 4 of the embedding, 44 a layer, 6 + 6 of the head */
    {"tiny-distilbert", 62172,
     "'model_type':'distilbert','architectures':['DistilBertForSequenceClassification'],"
     "'activation':'gelu','dim':2,'dropout':0.1,'hidden_dim':2,'id2label':{'0':'NEGATIVE'"
     ","
     "'1':'POSITIVE'},'max_position_embeddings':512,'n_heads':2,'n_layers':2,"
     "'sinusoidal_pos_embds':false,'tie_weights_':true,'vocab_size':30522"},
    {"Qwen3-0.6B", 596049920,
     SIZES("qwen3", "Qwen3ForCausalLM", 1024, 28, 16, 3072, 151936,
           40960) ",'num_key_value_heads':8,'head_dim':128,'tie_word_embeddings':true"},
    {"Qwen3-8B", 8190735360,
     SIZES("qwen3", "Qwen3ForCausalLM", 4096, 36, 32, 12288, 151936,
           40960) ",'num_key_value_heads':8,'head_dim':128"},
    {"Qwen3-30B-A3B", 30532122624,
     SIZES("qwen3_moe", "Qwen3MoeForCausalLM", 2048, 48, 32, 6144, 151936,
           40960) ",'num_key_value_heads':4,'head_dim':128,'num_experts':128,'num_"
                  "experts_per_tok':8,"
                  "'moe_intermediate_size':768,'norm_topk_prob':true,'decoder_sparse_"
                  "step':1,"
                  "'mlp_only_layers':[]"},
    {"Qwen1.5-MoE-A2.7B", 14315784192,
     SIZES("qwen2_moe", "Qwen2MoeForCausalLM", 2048, 24, 16, 5632, 151936,
           8192) ",'num_key_value_heads':16,'num_experts':60,'num_experts_per_tok':4,"
                 "'moe_intermediate_size':1408,'shared_expert_intermediate_size':5632,"
                 "'norm_topk_prob':false,'decoder_sparse_step':1"},
    {"pythia-70m", 70426624,
     SIZES("gpt_neox", "GPTNeoXForCausalLM", 512, 6, 8, 2048, 50304,
           2048) ",'rotary_pct':0.25,'hidden_act':'gelu','use_parallel_residual':true"},
    {"pythia-1.4b", 1414647808,
     SIZES("gpt_neox", "GPTNeoXForCausalLM", 2048, 24, 16, 8192, 50304,
           2048) ",'rotary_pct':0.25,'hidden_act':'gelu'"},
    {"gpt-j-6b", 6050882784,
     "'model_type':'gptj','architectures':['GPTJForCausalLM'],'n_embd':4096,'n_layer':28,"
     "'n_head':16,'n_positions':2048,'rotary_dim':64,'vocab_size':50400,"
     "'activation_function':'gelu_new'"},
    {"phi-2", 2779683840,
     SIZES("phi", "PhiForCausalLM", 2560, 32, 32, 10240, 51200,
           2048) ",'num_key_value_heads':32,'partial_rotary_factor':0.4,'hidden_act':'"
                 "gelu_new'"},
    {"DeepSeek-V3, without its layers for further tokens", 671026419200,
     SIZES("deepseek_v3", "DeepseekV3ForCausalLM", 7168, 61, 128, 18432, 129280,
           163840) ",'num_key_value_heads':128,'n_routed_experts':256,'num_experts_per_"
                   "tok':8,"
                   "'moe_intermediate_size':2048,'kv_lora_rank':512,'q_lora_rank':1536,"
                   "'qk_nope_head_dim':128,'qk_rope_head_dim':64,'v_head_dim':128,"
                   "'first_k_dense_replace':3,'n_shared_experts':1"},
    {"vit-base-patch16-224", 86567656,
     "'model_type':'vit','architectures':['ViTForImageClassification'],'hidden_size':768,"
     "'num_hidden_layers':12,'num_attention_heads':12,'intermediate_size':3072,"
     "'image_size':224,'patch_size':16,'id2label':{%s}"},
    {"whisper-tiny", 37760640,
     "'model_type':'whisper','architectures':['WhisperForConditionalGeneration'],"
     "'d_model':384,'encoder_layers':4,'decoder_layers':4,'encoder_attention_heads':6,"
     "'decoder_attention_heads':6,'encoder_ffn_dim':1536,'decoder_ffn_dim':1536,"
     "'vocab_size':51865,'num_mel_bins':80,'max_source_positions':1500,"
     "'max_target_positions':448"},
    {"opt-125m", 125239296, OPT(768, 12, 12, 3072, ",'word_embed_proj_dim':768")},
    {"opt-350m", 331196416,
     OPT(1024, 24, 16, 4096, ",'word_embed_proj_dim':512,'do_layer_norm_before':false")},
    {"opt-1.3b", 1315758080, OPT(2048, 24, 32, 8192, "")},
    {"opt-6.7b", 6658473984, OPT(4096, 32, 32, 16384, "")},
    {"bert-base-uncased", 109514298,
     SIZES("bert", "BertForMaskedLM", 768, 12, 12, 3072, 30522,
           512) ",'hidden_act':'gelu','type_vocab_size':2"},
    {"bert-large-uncased", 335174458,
     SIZES("bert", "BertForMaskedLM", 1024, 24, 16, 4096, 30522, 512)},
    {"distilbert-base-uncased", 66985530,
     "'model_type':'distilbert','architectures':['DistilBertForMaskedLM'],'dim':768,"
     "'n_layers':6,'n_heads':12,'hidden_dim':3072,'vocab_size':30522,"
     "'max_position_embeddings':512,'activation':'gelu'"},
};

static const char *public_config(const char *name)
{
    for (size_t i = 0; i < sizeof public_models / sizeof *public_models; i++)
        if (!strcmp(public_models[i].name, name))
            return public_models[i].config;
    printf("Bail out! no model '%s'\n", name);
    exit(1);
}

/* 'text' with single quotes made double, in braces; %s is a thousand names of classes. */
static const char *config(const char *text)
{
    static char buf[32768], labels[24000];
    int n = 0;
    for (int i = 0; i < 1000; i++)
        n += snprintf(labels + n, sizeof labels - (size_t)n, "%s'%d':'c%d'", i ? "," : "",
                      i, i);
    const char *names = strstr(text, "%s");
    n = snprintf(buf, sizeof buf, "{%.*s%s%s}",
                 (int)(names ? names - text : (long)strlen(text)), text,
                 names ? labels : "", names ? names + 2 : "");
    for (int i = 0; i < n; i++)
        buf[i] = buf[i] == '\'' ? '"' : buf[i];
    return buf;
}

static int add_up(void *ctx, const struct topt_weight *w)
{
    int64_t n = 1, *sum = ctx;
    for (int i = 0; i < w->ndim; i++)
        n *= w->dim[i];
    *sum += n;
    return 0;
}

/* The tensors that a checkpoint of it has by name are all its parameters. */
static void named(const char *text, const char *what)
{
    struct topt_error err = {0};
    struct topt_model_stats stats;
    int64_t sum = 0;
    struct topt_model *m = import(text, 0, 0, &err);
    if (!m)
        return;
    topt_model_stats(m, &stats);
    topt_model_weights(m, add_up, &sum);
    is_int(sum, stats.parameters, "%s: all parameters have names in checkpoints", what);
    topt_model_destroy(m);
}

/* The same of configs in transformers' own words. */
static void families_named(void)
{
    static const char *const types[] = {
        "ministral3", "seed_oss",      "smollm3",  "granite", "helium",
        "ernie4_5",   "olmo2",         "exaone4",  "cohere",  "olmo",
        "stablelm",   "arcee",         "nemotron", "olmoe",   "glm4_moe_lite",
        "solar_open", "qwen3_vl_text", "mimo"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char text[120];
        snprintf(text, sizeof text, "{\"model_type\":\"%s\",\"num_hidden_layers\":2}",
                 types[i]);
        named(text, types[i]);
    }
}

static void counts(void)
{
    is_int(parameters(gpt2(768, 12, 12, ""), "gpt2"), 124439808, "gpt2");
    named(gpt2(768, 12, 12, ""), "gpt2");
    is_int(parameters(gpt2(1024, 24, 16, ""), "gpt2-medium"), 354823168, "gpt2-medium");
    is_int(parameters(gpt2(1280, 36, 20, ""), "gpt2-large"), 774030080, "gpt2-large");
    is_int(parameters(gpt2(1600, 48, 25, ""), "gpt2-xl"), 1557611200, "gpt2-xl");
    is_int(parameters(llama(4096, 32, 32, 8, 14336, rope_scaling), "Llama-3.1-8B"),
           8030261248, "Llama-3.1-8B");
    is_int(parameters(llama(8192, 80, 64, 8, 28672, rope_scaling), "Llama-3.1-70B"),
           70553706496, "Llama-3.1-70B");
    for (size_t i = 0; i < sizeof public_models / sizeof *public_models; i++) {
        const char *name = public_models[i].name;
        is_int(parameters(config(public_models[i].config), name),
               public_models[i].parameters, "%s", name);
        named(config(public_models[i].config), name);
    }
}

static int find(const struct topt_model *m, const char *name)
{
    for (int i = 0; i < m->nops; i++)
        if (!strcmp(m->op[i].name, name))
            return i;
    return -1;
}

static void structure(void)
{
    struct topt_error err = {0};
    struct topt_model *m = import(gpt2(768, 12, 12, ""), 0, 0, &err);
    if (!ok(m != NULL, "gpt2 %s", err.text))
        return;
    is_int(m->batch, 8, "batch is 8 where nobody says");
    is_int(m->seq, 1024, "seq is the context length");
    is_int(m->vocab, 50257, "vocabulary");
    int w = find(m, "wte");
    ok(w >= 0 && m->tensor[topt_output_tensor(&m->op[w])].nconsumers == 2,
       "the table is read by the embedding and by the head");
    int qkv = find(m, "h11.qkv");
    ok(qkv >= 0 && m->op[qkv].count[3] == 12 && m->op[qkv].attrs->features_unit == 3 * 64,
       "query, key and value of a head stay together");
    topt_model_destroy(m);
    m = import(llama(4096, 2, 32, 8, 14336, rope_scaling), 2, 4096, &err);
    if (!ok(m != NULL, "llama %s", err.text))
        return;
    ok(m->batch == 2 && m->seq == 4096, "batch and seq as told");
    const struct topt_op *a = &m->op[find(m, "h1.attention")];
    ok(a->attrs->kv_heads == 8 && a->attrs->heads == 32 &&
           a->attrs->rope_theta > 499999 && a->attrs->causal,
       "grouped heads and rotary base");
    is_int(m->op[find(m, "h0.qkv")].attrs->features_unit, (4 + 2) * 128, "unit of qkv");
    is_int(m->op[find(m, "h0.gate_up")].attrs->features_unit, 2, "gate and up in pairs");
    ok(find(m, "h0.qkv.bias") < 0, "no bias");
    topt_model_destroy(m);
    m = import(llama(4096, 2, 32, 8, 14336, ""), 0, 0, &err);
    ok(m && m->seq == 1024, "seq is at most 1024 where nobody says");
    json_t *doc = m ? topt_model_to_json(m) : NULL;
    struct topt_model *again = topt_model_from_json(doc, &err);
    ok(again && again->nops == m->nops, "its native form is read back %s", err.text);
    json_decref(doc);
    topt_model_destroy(again);
    topt_model_destroy(m);
}

/* Operations of all kernels of one class of work, forward (0) or backward (1). */
static double flops_of(const struct topt_model *m, enum topt_work work, int backward)
{
    double sum = 0;
    for (int i = 0; i < m->nops; i++) {
        const struct topt_op_spec *row = m->op[i].spec;
        const struct topt_step *s = backward ? row->backward : row->forward;
        for (; s->kind; s++)
            if (s->kind == TOPT_STEP_KERNEL && !s->dims &&
                topt_kernel_work(s->kernel) == work)
                sum += (double)row->flops(&m->op[i], s->kernel, m->op[i].count);
    }
    return sum;
}

/* The terms of the usual formula: a token takes 2 operations a matrix weight forward and 4
 * backward, and 4 s d a layer for scores and weighted sums over s positions of width d, half
 * of it under a causal mask.  Backward of attention makes the scores again: 5 products for 2. */
static void formula(const char *text, double weights, double layers, double d,
                    const char *what)
{
    struct topt_error err = {0};
    struct topt_model *m = import(text, 4, 512, &err);
    if (!ok(m != NULL, "%s %s", what, err.text))
        return;
    double tokens = 4 * 512, pairs = layers * 4 * 512 * d / 2 * tokens;
    is_int(flops_of(m, TOPT_WORK_MATMUL, 0), 2 * weights * tokens, "%s: 2 N", what);
    is_int(flops_of(m, TOPT_WORK_MATMUL, 1), 4 * weights * tokens, "%s: 4 N", what);
    is_int(flops_of(m, TOPT_WORK_ATTENTION, 0), pairs, "%s: attention", what);
    is_int(flops_of(m, TOPT_WORK_ATTENTION, 1), 2.5 * pairs, "%s: its backward", what);
    topt_model_destroy(m);
}

static void flops(void)
{
    double d = 768, v = 50257;
    formula(gpt2(768, 12, 12, ""), 12 * 12 * d * d + v * d, 12, d, "gpt2");
    d = 4096, v = 128256;
    formula(llama(4096, 32, 32, 8, 14336, ""),
            32 * (2 * d * d + 2 * d * 1024 + 3 * d * 14336) + v * d, 32, d,
            "Llama-3.1-8B");
    d = 1600, v = 50257;
    formula(gpt2(1600, 48, 25, ""), 48 * 12 * d * d + v * d, 48, d, "gpt2-xl");
    d = 8192, v = 128256;
    formula(llama(8192, 80, 64, 8, 28672, rope_scaling),
            80 * (2 * d * d + 2 * d * 1024 + 3 * d * 28672) + v * d, 80, d,
            "Llama-3.1-70B");
    /* heads wider together than the model, normalised: projected apart */
    d = 1024, v = 151936;
    formula(config(public_config("Qwen3-0.6B")),
            28 * (2 * d * 2048 + 2 * d * 1024 + 3 * d * 3072) + v * d, 28, 2048,
            "Qwen3-0.6B");
    /* a token goes to two experts, and none is dropped */
    d = 4096, v = 32000;
    formula(config(public_config("Mixtral-8x7B")),
            32 * (2 * d * d + 2 * d * 1024 + 8 * d + 2.0 * 3 * d * 14336) + v * d, 32, d,
            "Mixtral-8x7B");
    /* in units of a causal layer: those that see all, of the encoder and between, are two */
    d = 512, v = 32128;
    formula(config(public_config("t5-small")), 6 * (12 * d * d + 4 * d * 2048) + v * d,
            6 * 2 + 6 + 6 * 2, d, "t5-small");
}

/* The language model of several towers is taken, and named so; a window shows in attention. */
static void nested(void)
{
    static const char text[] =
        "{\"model_type\":\"gemma3\",\"architectures\":["
        "\"Gemma3ForConditionalGeneration\"],"
        "\"vision_config\":{},\"text_config\":{\"model_type\":\"gemma3_text\","
        "\"hidden_size\":64,\"num_hidden_layers\":6,\"num_attention_heads\":2,"
        "\"num_key_value_heads\":1,\"head_dim\":32,\"vocab_size\":100,"
        "\"sliding_window\":16}}";
    struct topt_error err = {0};
    struct topt_import_options o = {.batch = 2, .seq = 64, .part = "text"};
    struct topt_model *m = topt_model_import(text, strlen(text), "config.json", &o, &err);
    if (!ok(m != NULL, "text_config %s", err.text))
        return;
    ok(!strcmp(m->name + strlen(m->name) - 5, "-text"), "named '%s'", m->name);
    is_int(m->op[find(m, "h4.attend")].attrs->window, 16,
           "five layers of six see a window");
    is_int(m->op[find(m, "h5.attend")].attrs->window, 0, "the sixth sees all");
    topt_model_destroy(m);
    o.part = NULL;
    m = topt_model_import(text, strlen(text), "config.json", &o, &err);
    ok(m && find(m, "vision.h11.attention") >= 0 && find(m, "images") >= 0 &&
           topt_model_check_run(m, &err) && strstr(err.text, "image or audio tokens"),
       "with its tower it can be planned, not run: %s", err.text);
    topt_model_destroy(m);
}

/* The operator of that name, which must be there. */
static const struct topt_op *op_of(const struct topt_model *m, const char *name)
{
    int i = find(m, name);
    if (i < 0) {
        printf("Bail out! no operator '%s'\n", name);
        exit(1);
    }
    return &m->op[i];
}

static struct topt_model *imported(const char *text, int64_t seq)
{
    struct topt_error err = {0};
    struct topt_model *m = import(config(text), 2, seq, &err);
    if (!m) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    return m;
}

static int near(double a, double b)
{
    return a - b < 1e-12 && b - a < 1e-12;
}

#define TINY                                                                             \
    "'hidden_size':32,'num_hidden_layers':4,'num_attention_heads':4,'num_key_value_"     \
    "heads':2,'intermediate_size':48,'vocab_size':50,'max_position_embeddings':64"

/* Every second layer sees all, scores are capped and divided by a root of their own. */
static void gemma2(void)
{
    struct topt_model *m =
        imported("'model_type':'gemma2'," TINY
                 ",'head_dim':8,'sliding_window':16,'query_pre_attn_scalar':100",
                 32);
    const struct topt_attrs *a = op_of(m, "h0.attend")->attrs;
    ok(a->window == 16 && near(a->cap, 50) && near(a->scale, 0.1),
       "gemma2: window, cap and scale");
    ok(op_of(m, "h1.attend")->attrs->window == 0, "... every second layer has no window");
    ok(near(op_of(m, "cap.out")->attrs->factor, 30), "... and logits a cap");
    topt_model_destroy(m);
    m = imported(
        "'model_type':'gemma2'," TINY
        ",'head_dim':8,'attn_logit_softcapping':null,'final_logit_softcapping':"
        "null,'layer_types':['full_attention','sliding_attention','full_attention'"
        ",'full_attention'],'sliding_window':16",
        32);
    ok(find(m, "h0.attention") >= 0 && op_of(m, "h1.attend")->attrs->window == 16 &&
           find(m, "cap.out") < 0,
       "... unless the config says that there are none, and which layers are local");
    topt_model_destroy(m);
}

static void t5(void)
{
    struct topt_model *m =
        imported(T5("t5", "T5", 32, 8, 48, 2, 4, "relu", "true", 50), 0);
    const struct topt_op *self = op_of(m, "h1.attend"),
                         *other = op_of(m, "encoder.h0.attend");
    is_int(m->seq, 512, "t5: as many positions as were trained on");
    ok(self->attrs->causal && self->attrs->distance == 128 &&
           near(self->attrs->scale, 1) && self->ninputs == 3 && !other->attrs->causal &&
           other->ninputs == 3,
       "... scores by relative positions, not divided");
    int table = topt_input_tensor(self, 2);
    is_int(m->tensor[table].nconsumers, 2, "... of one table for the layers of a stack");
    ok(op_of(m, "h0.cross.attend")->ninputs == 2 &&
           near(op_of(m, "h0.cross.attend")->attrs->scale, 1),
       "... and none between the stacks");
    ok(near(op_of(m, "head.scale")->attrs->factor, 1 / sqrt(32)), "... a tied head");
    ok(m->note && strstr(m->note, "as many tokens"), "... says that both read as many");
    topt_model_destroy(m);
    m = imported(T5("t5", "T5", 32, 8, 48, 2, 4, "gated-gelu", "false", 50), 2048);
    ok(op_of(m, "h0.glu")->attrs->activation == TOPT_ACT_GELU &&
           find(m, "head.scale") < 0,
       "t5 v1.1: gates by the tanh form, a head of its own, any length");
    topt_model_destroy(m);
}

#define LLAMA4(more)                                                                     \
    "'model_type':'llama4_text','num_local_experts':4,'intermediate_size_mlp':40,"       \
    "'head_dim':8,'hidden_size':32,'num_hidden_layers':4,'num_attention_heads':4,"       \
    "'num_key_value_heads':2,'intermediate_size':24,'vocab_size':50,"                    \
    "'max_position_embeddings':100000" more

static void llama4(void)
{
    struct topt_model *m =
        imported(LLAMA4(",'attention_chunk_size':16,'interleave_moe_layer_step':2"), 32);
    const struct topt_op *a = op_of(m, "h0.attend");
    ok(a->attrs->chunk == 16 && find(m, "h0.q.rotary") >= 0 &&
           op_of(m, "h0.q.norm")->attrs->plain,
       "llama4: chunks of keys, norms of turned heads with nothing trained");
    ok(find(m, "h3.attention") >= 0 && find(m, "h3.q.rotary") < 0,
       "... every fourth layer knows no positions and sees all");
    is_int(op_of(m, "h0.gate_up")->count[3], 40, "... dense layers of their own width");
    ok(op_of(m, "h1.weights")->attrs->sigmoid &&
           !op_of(m, "h1.route")->attrs->unnormalized &&
           op_of(m, "h1.dispatch")->tensor[0] ==
               op_of(m, "h1.weigh")->tensor[op_of(m, "h1.weigh")->output],
       "... experts read tokens times their weights");
    ok(!m->plan_only, "... exact up to the first floor");
    topt_model_destroy(m);
    struct topt_error err = {0};
    m = imported(LLAMA4(",'floor_scale':1024"), 2048);
    ok(m->plan_only && topt_model_check_run(m, &err) && strstr(err.text, "scales by pos"),
       "... beyond it is for planning only: %s", err.text);
    json_t *doc = topt_model_to_json(m);
    struct topt_model *again = topt_model_from_json(doc, &err);
    ok(again && topt_model_check_run(again, &err), "... and so is its native form");
    struct topt_model *half = again ? topt_model_rebatch(again, 1, &err) : NULL;
    ok(half && half->plan_only && half->note, "... and a micro-batch of it");
    json_decref(doc);
    topt_model_destroy(half);
    topt_model_destroy(again);
    topt_model_destroy(m);
}

/* Samples that pack documents of 4 positions: causal attention has chunks of 4 keys where it had none or longer ones. */
static void documents(void)
{
    static const char packed[] = LLAMA4(",'attention_chunk_size':16");
    struct topt_import_options o = {.batch = 1, .seq = 32, .document_length = 4};
    struct topt_error err = {0};
    struct topt_model_stats whole, apart = {0};
    struct topt_model *m = imported(packed, 32);
    topt_model_stats(m, &whole);
    topt_model_destroy(m);
    const char *text = config(packed);
    m = topt_model_import(text, strlen(text), "test", &o, &err);
    if (ok(m != NULL, "documents of 4 positions %s", err.text))
        topt_model_stats(m, &apart);
    ok(m && op_of(m, "h0.attend")->attrs->chunk == 4 &&
           op_of(m, "h3.attention")->attrs->chunk == 4,
       "... attend to themselves, also where there were chunks of 16");
    ok(apart.parameters == whole.parameters &&
           apart.flops_per_sample < whole.flops_per_sample,
       "... with fewer operations of the same model");
    topt_model_destroy(m);
    const char *both = config("'model_type':'bert'," TINY);
    m = topt_model_import(both, strlen(both), "test", &o, &err);
    ok(!m && strstr(err.text, "leave out --document-length"),
       "a model that attends both ways has no such documents: %s", err.text);
    topt_model_destroy(m);
}

#define DEEPSEEK                                                                         \
    "'model_type':'deepseek_v3'," TINY ",'n_routed_experts':16,'num_experts_per_tok':4," \
    "'moe_intermediate_size':8,'kv_lora_rank':8,'q_lora_rank':8,'qk_nope_head_dim':8,"   \
    "'qk_rope_head_dim':8,'v_head_dim':8,'first_k_dense_replace':1,'n_group':4,"         \
    "'topk_group':2,'routed_scaling_factor':2.5"

static void deepseek(void)
{
    struct topt_model *m = imported(
        DEEPSEEK
        ",'scoring_func':'sigmoid','topk_method':'noaux_tc','norm_topk_prob':true,"
        "'num_nextn_predict_layers':1,'quantization_config':{},'rope_scaling':{"
        "'type':'yarn','factor':40,'mscale':1.0,'mscale_all_dim':1.0,"
        "'original_max_position_embeddings':16,'beta_fast':32,'beta_slow':1}",
        32);
    const struct topt_attrs *r = op_of(m, "h1.route")->attrs;
    ok(r->sigmoid && r->corrected && r->groups == 4 && r->top_groups == 2 &&
           near(r->factor, 2.5) && !r->unnormalized,
       "deepseek: sigmoids, a correction, groups, a factor");
    double m40 = 0.1 * log(40) + 1;
    const struct topt_attrs *q = op_of(m, "h0.q.rotary")->attrs;
    ok(near(op_of(m, "h0.attend")->attrs->scale, m40 * m40 / 4) && near(q->scale, 1) &&
           near(q->rope_factor, 40) && q->rope_context == 16 && q->rope_by_pair &&
           q->rope_dim == 8,
       "... angles and scores by YaRN");
    ok(find(m, "h0.route") < 0 && find(m, "h0.gate_up") >= 0, "... a dense layer first");
    ok(strstr(m->note, "further tokens") && strstr(m->note, "quantization"),
       "... and tells what is left out: %s", m->note);
    topt_model_destroy(m);
}

/* Angles of the same length of list for a head of 8: equal factors are linear, others are not. */
/* One module of DeepSeek-V3 for a further token: the norms, the projection and a layer, 11.5 billion parameters beside the
 * embedding and the head, which it shares (the README of its weights, 2024-12). */
static void further_tokens(void)
{
    struct topt_error err = {0};
    struct topt_model_stats s = {0};
    struct topt_import_options o = {.batch = 1, .seq = 64, .mtp = 1};
    const double d = 7168;
    double layer = 0;
    const char *text =
        config(public_config("DeepSeek-V3, without its layers for further tokens"));
    struct topt_model *m = topt_model_import(text, strlen(text), "config.json", &o, &err);
    if (!ok(m != NULL, "a module that predicts a further token %s", err.text))
        return;
    topt_model_stats(m, &s);
    for (int i = 0; i < m->nops; i++)
        layer += strncmp(m->op[i].name, "h60.", 4) ? 0 : topt_op_parameters(&m->op[i]);
    is_int(s.parameters - 671026419200, (int64_t)(layer + 2 * d * d + 3 * d),
           "... has a layer, a projection and three norms of its own");
    ok(m->nlayers == 62 && m->mtp == find(m, "mtp0.embedding") &&
           m->head == find(m, "mtp0.lm_head") && m->loss == m->nops - 1,
       "... stands behind the model's layers, and its head before the model's");
    ok(!strstr(m->note, "further tokens") && strstr(m->plan_only, "multi-token"),
       "... is left out no more, and is planned alone");
    json_t *doc = topt_model_to_json(m);
    struct topt_model *again = topt_model_from_json(doc, &err),
                      *few = topt_model_rebatch(m, 2, &err);
    ok(again && few && again->mtp == m->mtp && few->mtp == m->mtp,
       "... also in a native document, and for another batch %s", err.text);
    json_decref(doc);
    topt_model_destroy(again);
    topt_model_destroy(few);
    topt_model_destroy(m);
    text = config(public_config("opt-125m"));
    m = topt_model_import(text, strlen(text), "config.json", &o, &err);
    ok(!m && strstr(err.text, "--mtp: "), "refused: %s", err.text);
    topt_model_destroy(m);
}

/* Batches as they are trained with: what counts is what a kernel goes over, not the
 * product of all of an operator's dimensions. */
static void large(void)
{
    struct topt_error err = {0};
    const char *text =
        config(public_config("DeepSeek-V3, without its layers for further tokens"));
    struct topt_model *m = import(text, 15360, 4096, &err);
    ok(m != NULL, "a batch of 15,360 samples for 256 experts %s", err.text);
    topt_model_destroy(m);
    m = import(text, 1 << 20, 4096, &err);
    ok(!m && err.code == TOPT_ERR_LIMIT && strstr(err.text, "more than 2^"),
       "not of 1,048,576: %s", err.text);
    topt_model_destroy(m);
}

static void longrope(void)
{
#define LONGROPE(brief, wide)                                                            \
    "'model_type':'llama'," TINY ",'original_max_position_embeddings':16,'rope_scaling'" \
    ":{'type':'longrope','short_factor':" brief ",'long_factor':" wide "}"
    struct topt_model *m = imported(LONGROPE("[1,1,1,1]", "[1,2,3,4]"), 16);
    const struct topt_attrs *a = op_of(m, "h0.attention")->attrs;
    double grown = 1 + log(4) / log(16);
    ok(!m->plan_only && near(a->scale, grown / sqrt(8)) && !(a->rope_factor > 0),
       "longrope: up to the first context what is turned is scaled");
    topt_model_destroy(m);
    m = imported(LONGROPE("[1,1,1,1]", "[1,2,3,4]"), 17);
    ok(m->plan_only && strstr(m->plan_only, "longrope"), "... beyond it can't be run");
    topt_model_destroy(m);
    m = imported(LONGROPE("[2,2,2,2]", "[1,2,3,4]"), 16);
    ok(!m->plan_only && near(op_of(m, "h0.attention")->attrs->rope_factor, 2),
       "... equal factors are linear");
    topt_model_destroy(m);
    m = imported(LONGROPE("[1,1,1,2]", "[1,2,3,4]"), 8);
    ok(m->plan_only != NULL, "... others are not");
    topt_model_destroy(m);
}

/* Heads of two sizes, values that are keys, experts beside the dense feed-forward. */
static void gemma4(void)
{
    struct topt_model *m = imported(GEMMA4, 1024);
    const struct topt_op *local = op_of(m, "h4.attend"), *full = op_of(m, "h5.attend");
    ok(local->attrs->head_dim == 256 && local->attrs->kv_heads == 8 &&
           local->attrs->window == 512 && near(local->attrs->scale, 1),
       "gemma4: local layers");
    ok(full->attrs->head_dim == 512 && full->attrs->kv_heads == 2 &&
           full->attrs->window == 0 && near(full->attrs->scale, 1),
       "... and full ones");
    ok(find(m, "h4.v") >= 0 && find(m, "h5.v") < 0 && op_of(m, "h5.v.norm")->attrs->plain,
       "... whose keys are values");
    const struct topt_attrs *turn = op_of(m, "h5.q.rotary")->attrs;
    struct topt_attrs whole = {.rope_theta = 1e6};
    ok(turn->rope_dim == 128 &&
           near(topt_rope_step(turn, 128, 63), topt_rope_step(&whole, 512, 63)) &&
           op_of(m, "h4.q.rotary")->attrs->rope_dim == 256,
       "... a quarter of them turned by the whole's first angles");
    ok(op_of(m, "h0.dispatch")->tensor[1] == op_of(m, "h0.route.gain")->tensor[2] &&
           near(op_of(m, "h0.router.scale")->attrs->factor, 1 / sqrt(2816)) &&
           find(m, "h0.add_experts") >= 0,
       "... experts beside, weights with a factor each");
    topt_model_destroy(m);
}

/* What single keys of configs change. */
static void settings(void)
{
    struct topt_model *m =
        imported("'model_type':'qwen2'," TINY
                 ",'use_sliding_window':true,'sliding_window':16,'max_window_layers':2",
                 32);
    ok(find(m, "h1.attention") >= 0 && op_of(m, "h2.attend")->attrs->window == 16,
       "qwen2: windows from some layer on");
    topt_model_destroy(m);
    m = imported("'model_type':'qwen3_moe'," TINY
                 ",'num_experts':4,'num_experts_per_tok':2,'moe_intermediate_size':8,"
                 "'decoder_sparse_step':2,'mlp_only_layers':[3]",
                 0);
    ok(find(m, "h0.route") < 0 && find(m, "h1.route") >= 0 && find(m, "h2.route") < 0 &&
           find(m, "h3.route") < 0,
       "qwen3_moe: dense layers among those with experts");
    topt_model_destroy(m);
    m = imported("'model_type':'phi'," TINY ",'qk_layernorm':true", 0);
    ok(op_of(m, "h0.q.norm")->operand[2].present, "phi: norms of heads have biases");
    topt_model_destroy(m);
    m = imported(
        "'model_type':'gpt2','n_embd':32,'n_layer':2,'n_head':4,'n_positions':64,"
        "'vocab_size':50,'scale_attn_by_inverse_layer_idx':true,'resid_pdrop':0.1",
        0);
    ok(near(op_of(m, "h1.attention")->attrs->scale, 1 / sqrt(8) / 2),
       "gpt2: scores by the layer");
    ok(m->note && strstr(m->note, "dropout"), "... and dropout is told of");
    topt_model_destroy(m);
    m = imported(
        "'model_type':'bert'," TINY
        ",'architectures':['BertForSequenceClassification'],'id2label':{'0':'x'},"
        "'problem_type':'regression'",
        0);
    ok(!strcmp(m->op[m->loss].spec->name, "mse"), "bert: one class is a target");
    ok(op_of(m, "h0.activation")->attrs->activation == TOPT_ACT_GELU_ERF,
       "... and its GELU the exact one");
    topt_model_destroy(m);
    m = imported(
        "'model_type':'gemma3_text','hidden_size':32,'num_hidden_layers':6,"
        "'num_attention_heads':4,'num_key_value_heads':2,'head_dim':8,'vocab_size'"
        ":50,'sliding_window':8,'rope_parameters':{'full_attention':{'rope_type':"
        "'linear','factor':8,'rope_theta':5000},'sliding_attention':{'rope_type':"
        "'default','rope_theta':300}}",
        16);
    const struct topt_attrs *full = op_of(m, "h5.q.rotary")->attrs,
                            *local = op_of(m, "h0.q.rotary")->attrs;
    ok(near(full->rope_theta, 5000) && near(full->rope_factor, 8) &&
           near(local->rope_theta, 300) && !(local->rope_factor > 0),
       "gemma3: angles by the kind of layer");
    topt_model_destroy(m);
}

static void refuses(const char *text, int64_t seq, const char *names)
{
    struct topt_error err = {0};
    struct topt_model *m = import(text, 0, seq, &err);
    ok(!m && strstr(err.text, names) && !strchr(err.text, '\n'), "names \"%s\": %s",
       names, m ? "(imported)" : err.text);
    topt_model_destroy(m);
}

static void errors(void)
{
    refuses("{\"model_type\":\"nonesuch\"}", 0, "\"nonesuch\" is not known");
    refuses("{\"model_type\":\"rt_detr\"}", 0, "is not read: it is an object detector");
    refuses("{\"model_type\":\"sam3\",\"text_config\":{\"model_type\":\"y\"}}", 0,
            "is not read: it is a segmentation model");
    refuses("{\"model_type\":\"mistrall\"}", 0, "not known; did you mean mistral?");
    refuses(config("'model_type':'fresh'," TINY
                   ",'rms_norm_eps':1e-6,'hidden_act':'silu',"
                   "'rope_theta':10000,'initializer_range':0.02"),
            0, "say --as ");
    refuses("{\"architectures\":[\"LlamaForCasualLM\"]}", 0,
            "did you mean LlamaForCausalLM?");
    refuses("{\"architectures\":[\"BrownForCausalLM\"]}", 0, "is not known");
    refuses("{\"model_type\":\"t5\",\"d_model\":0}", 0, "d_model");
    refuses("{\"model_type\":\"x\",\"text_config\":{\"model_type\":\"y\"}}", 0,
            "text_config");
    refuses("{\"text_config\":7,\"model_type\":\"x\"}", 0, "text_config");
    refuses("{\"model_type\":7}", 0, "model_type");
    refuses("{\"architectures\":[\"T5Model\"]}", 0, "\"T5Model\"");
    refuses("{\"architectures\":\"T5Model\"}", 0, "architectures");
    refuses("{\"model_type\":\"gpt2\",\"architectures\":[\"GPT2DoubleHeadsModel\"]}", 0,
            "known are GPT2ForCausalLM, GPT2LMHeadModel");
    refuses("{\"model_type\":\"gemma2\",\"num_hidden_layers\":26,\"layer_types\":[]}", 0,
            "array of 26 names");
    refuses("{\"model_type\":\"gemma2\",\"num_hidden_layers\":1,"
            "\"layer_types\":[\"linear_attention\"]}",
            0, "layer_types[0] is \"linear_attention\"");
    refuses(config(DEEPSEEK ",'scoring_func':'softmax'"), 0,
            "scoring_func is \"softmax\"");
    refuses(config(DEEPSEEK ",'topk_method':'greedy'"), 0, "topk_method is \"greedy\"");
    refuses(config(DEEPSEEK ",'n_group':3"), 0, "duplicate");
    refuses(config(LLAMA4(",'num_experts_per_tok':2")), 0, "num_experts_per_tok is 2");
    refuses(config(LLAMA4(",'no_rope_layers':[1]")), 0, "no_rope_layers");
    refuses(config(T5("t5", "T5", 32, 8, 48, 2, 4, "gated-mish", "true", 50)), 0,
            "feed_forward_proj is \"mish\"");
    refuses(config("'model_type':'bert'," TINY
                   ",'architectures':['BertForSequenceClassification'],"
                   "'problem_type':'multi_label_classification'"),
            0, "multi_label");
    refuses(config("'model_type':'llama'," TINY ",'rope_scaling':{'rope_type':'spiral'}"),
            0, "\"spiral\"");
    refuses(config("'model_type':'llama'," TINY ",'rope_scaling':{'rope_type':'linear'}"),
            0, "factor is missing");
    refuses("{\"model_type\":\"llama\",\"num_hidden_layers\":\"6\"}", 0,
            "num_hidden_layers");
    refuses(gpt2(768, 0, 12, ""), 0, "n_layer");
    refuses(gpt2(768, -4, 12, ""), 0, "n_layer");
    refuses(gpt2(768, 1000000000, 12, ""), 0, "n_layer");
    refuses(gpt2(1000000000, 1, 1, ""), 0, "n_embd");
    refuses(gpt2(768, 12, 7, ""), 0, "n_head 7");
    refuses(gpt2(768, 12, 12, ",\"n_inner\":\"wide\""), 0, "n_inner");
    refuses(gpt2(768, 12, 12, ",\"add_cross_attention\":true"), 0, "add_cross_attention");
    refuses(gpt2(768, 12, 12, ",\"n_embd\":1"), 0, "duplicate");
    refuses(gpt2(768, 12, 12, ""), 1025, "n_positions 1024");
    refuses(llama(4096, 2, 32, 5, 64, ""), 0, "num_key_value_heads 5");
    refuses(llama(4096, 2, 30, 30, 64, ""), 0, "num_attention_heads 30");
    refuses(llama(4096, 2, 32, 8, 64, ",\"rope_scaling\":{\"type\":\"longrope\"}"), 0,
            "short_factor");
    refuses(llama(4096, 2, 32, 8, 64, ",\"head_dim\":0"), 0, "head_dim");
    refuses("{\"model_type\":\"llama\",\n\"hidden_size\":", 0, "line 2");
}

/* Copies that PyTorch's own kernels of an operator keep of its output beside what the row says, in the model's type and in
 * f32. */
static void keeps(const struct topt_model *m, const char *name, int real, int f32)
{
    const struct topt_op *op = op_of(m, name);
    int64_t n = topt_operand_numbers(op, op->output);
    struct topt_eager e = {.flops = {0}};
    if (op->spec->eager(op, op->count, TOPT_EAGER_WRITES_NORMS, &e) == TOPT_EAGER_ALIKE)
        e.kept = (struct topt_numbers){0};
    ok(e.kept.real == real * n && e.kept.f32 == f32 * n, "%s: %s keeps %d and %d in f32",
       m->name, name, real, f32);
}

/* As transformers' own code has it: GELU by its power and tangent, norms whose gain multiplies in f32. */
static void written_out(void)
{
    struct topt_model *m =
        imported("'model_type':'gpt2','n_embd':16,'n_layer':1,'n_head':2", 8);
    keeps(m, "h0.activation", 3, 0);
    topt_model_destroy(m);
    m = imported("'model_type':'gpt2','n_embd':16,'n_layer':1,'n_head':2,"
                 "'activation_function':'gelu_pytorch_tanh'",
                 8);
    keeps(m, "h0.activation", 0, 0);
    topt_model_destroy(m);
    m = imported(T5("t5", "T5", 32, 8, 48, 2, 4, "gated-gelu", "false", 50), 8);
    keeps(m, "h0.glu", 4, 0);
    topt_model_destroy(m);
    m = imported("'model_type':'bloom','hidden_size':16,'n_layer':1,'n_head':2", 8);
    const struct topt_op *attend = op_of(m, "h0.attend");
    struct topt_eager e;
    int64_t len[TOPT_MAX_OPDIMS];
    memcpy(len, attend->count, sizeof len);
    ok(attend->attrs->written &&
           attend->spec->eager(attend, len, 0, &e) == TOPT_EAGER_INSTEAD &&
           e.kept.f32 == 2 * 2 * 8 * 8 && e.kept.real == e.kept.f32,
       "bloom's scores are kept in f32 and as read");
    topt_model_destroy(m);
    static const struct {
        const char *family;
        int real, f32;
    } norms[] = {{"llama", 0, 1}, {"olmo2", -1, 2}, {"gemma", -1, 2}, {"cohere", 0, 2}};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "'model_type':'%s','hidden_size':16,'num_hidden_layers':1,"
                 "'num_attention_heads':2,'num_key_value_heads':2,'intermediate_size':32,"
                 "'vocab_size':50",
                 norms[i].family);
        m = imported(text, 8);
        keeps(m, "norm", norms[i].real, norms[i].f32);
        topt_model_destroy(m);
    }
}

int main(void)
{
    written_out();
    counts();
    families_named();
    structure();
    flops();
    nested();
    gemma2();
    gemma4();
    t5();
    llama4();
    documents();
    deepseek();
    further_tokens();
    large();
    longrope();
    settings();
    errors();
    return done_testing();
}
