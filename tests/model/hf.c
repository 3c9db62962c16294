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
    is_int(parameters(
               "{\"architectures\":[\"MistralForCausalLM\"],\"model_type\":\"mistral\","
               "\"hidden_size\":4096,\"intermediate_size\":14336,"
               "\"max_position_embeddings\":32768,\"num_attention_heads\":32,"
               "\"num_hidden_layers\":32,\"num_key_value_heads\":8,"
               "\"sliding_window\":null,\"vocab_size\":32768}",
               "Mistral-7B-v0.3"),
           7248023552, "Mistral-7B-v0.3");
    is_int(
        parameters("{\"architectures\":[\"Qwen2ForCausalLM\"],\"model_type\":\"qwen2\","
                   "\"hidden_size\":896,\"intermediate_size\":4864,"
                   "\"max_position_embeddings\":32768,\"num_attention_heads\":14,"
                   "\"num_hidden_layers\":24,\"num_key_value_heads\":2,"
                   "\"sliding_window\":32768,\"use_sliding_window\":false,"
                   "\"tie_word_embeddings\":true,\"vocab_size\":151936}",
                   "Qwen2.5-0.5B"),
        494032768, "Qwen2.5-0.5B");
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
    refuses("{\"model_type\":\"bert\"}", 0, "\"bert\"");
    refuses("{\"model_type\":7}", 0, "model_type");
    refuses("{\"architectures\":[\"T5Model\"]}", 0, "\"T5Model\"");
    refuses("{\"architectures\":\"T5Model\"}", 0, "architectures");
    refuses(
        "{\"model_type\":\"gpt2\",\"architectures\":[\"GPT2ForSequenceClassification\"]}",
        0, "GPT2ForSequenceClassification");
    refuses("{\"model_type\":\"qwen3\"}", 0, "norm of each head");
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
    errors();
    return done_testing();
}
