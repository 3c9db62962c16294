/* Hugging Face configs: parameter counts are the public ones, and what can't be built is
 * refused by the name of its key. */
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
    ",\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"llama3\"}";

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

static void counts(void)
{
    is_int(parameters(gpt2(768, 12, 12, ""), "gpt2"), 124439808, "gpt2");
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
    ok(w >= 0 && m->tensor[m->op[w].operand[m->op[w].output].tensor].nconsumers == 2,
       "the table is read by the embedding and by the head");
    int qkv = find(m, "h11.qkv");
    ok(qkv >= 0 && m->op[qkv].count[3] == 12 && m->op[qkv].attrs.features_unit == 3 * 64,
       "query, key and value of a head stay together");
    topt_model_destroy(m);
    m = import(llama(4096, 2, 32, 8, 14336, rope_scaling), 2, 4096, &err);
    if (!ok(m != NULL, "llama %s", err.text))
        return;
    ok(m->batch == 2 && m->seq == 4096, "batch and seq as told");
    const struct topt_op *a = &m->op[find(m, "h1.attention")];
    ok(a->attrs.kv_heads == 8 && a->attrs.heads == 32 && a->attrs.rope_theta > 499999 &&
           a->attrs.causal,
       "grouped heads and rotary base");
    is_int(m->op[find(m, "h0.qkv")].attrs.features_unit, (4 + 2) * 128, "unit of qkv");
    is_int(m->op[find(m, "h0.gate_up")].attrs.features_unit, 2, "gate and up in pairs");
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
            if (s->kind == TOPT_STEP_KERNEL && topt_kernel_work(s->kernel) == work)
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
}

/* The language model of several towers is taken, and named so; a window shows in attention. */
static void nested(void)
{
    struct topt_error err = {0};
    struct topt_model *m =
        import("{\"model_type\":\"gemma3\",\"architectures\":["
               "\"Gemma3ForConditionalGeneration\"],"
               "\"vision_config\":{},\"text_config\":{\"model_type\":\"gemma3_text\","
               "\"hidden_size\":64,\"num_hidden_layers\":6,\"num_attention_heads\":2,"
               "\"num_key_value_heads\":1,\"head_dim\":32,\"vocab_size\":100,"
               "\"sliding_window\":16}}",
               2, 64, &err);
    if (!ok(m != NULL, "text_config %s", err.text))
        return;
    ok(!strcmp(m->name + strlen(m->name) - 5, "-text"), "named '%s'", m->name);
    is_int(m->op[find(m, "h4.attend")].attrs.window, 16,
           "five layers of six see a window");
    is_int(m->op[find(m, "h5.attend")].attrs.window, 0, "the sixth sees all");
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
    refuses("{\"model_type\":\"mamba\"}", 0, "\"mamba\"");
    refuses("{\"model_type\":\"t5\"}", 0, "relative position bias");
    refuses("{\"model_type\":\"x\",\"text_config\":{\"model_type\":\"y\"}}", 0,
            "text_config");
    refuses("{\"text_config\":7,\"model_type\":\"x\"}", 0, "text_config");
    refuses("{\"model_type\":7}", 0, "model_type");
    refuses("{\"architectures\":[\"T5Model\"]}", 0, "\"T5Model\"");
    refuses("{\"architectures\":\"T5Model\"}", 0, "architectures");
    refuses(
        "{\"model_type\":\"gpt2\",\"architectures\":[\"GPT2ForSequenceClassification\"]}",
        0, "GPT2ForSequenceClassification");
    refuses("{\"model_type\":\"gemma2\"}", 0, "cap on attention");
    refuses("{\"model_type\":\"gpt2\"}", 0, "n_embd is missing");
    refuses("{\"model_type\":\"gpt2\",\"n_embd\":768}", 0, "n_layer is missing");
    refuses("{\"model_type\":\"llama\",\"hidden_size\":64}", 0, "num_hidden_layers");
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
            "longrope");
    refuses(llama(4096, 2, 32, 8, 64, ",\"head_dim\":0"), 0, "head_dim");
    refuses("{\"model_type\":\"llama\",\n\"hidden_size\":", 0, "line 2");
}

int main(void)
{
    counts();
    structure();
    flops();
    nested();
    errors();
    return done_testing();
}
