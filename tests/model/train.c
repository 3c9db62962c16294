/* What is trained of a model: by name, by adapters, and what that leaves of backward. */
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_json.h"
#include "topt_model.h"

static struct topt_model *import(const char *quoted, const char *train,
                                 struct topt_error *err)
{
    struct topt_import_options o = {.train = train};
    char *text = strdup(quoted);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    struct topt_model *m = topt_model_import(text, strlen(text), "test", &o, err);
    free(text);
    return m;
}

/* Llama-3.1-8B. */
static const char llama[] =
    "{'architectures':['LlamaForCausalLM'],'model_type':'llama','hidden_size':4096,"
    "'intermediate_size':14336,'num_hidden_layers':32,'num_attention_heads':32,"
    "'num_key_value_heads':8,'vocab_size':128256,'max_position_embeddings':131072,"
    "'rms_norm_eps':1e-5,'rope_theta':500000.0,'tie_word_embeddings':false}";

/* PEFT's counts for this model: 16 (in + out) of each module, 32 layers. */
static void test_adapters(void)
{
    static const struct {
        const char *train;
        int64_t trained;
        int operators; /* of a block more */
    } of[] = {
        {"lora", 41943040, 20},
        {"lora:8", 20971520, 20},
        {"lora:16:all-linear", 41943040, 20},
        {"lora:8:q_proj,v_proj", 3407872, 10},
        {"lora:16:q_proj,k_proj,v_proj,o_proj", 13631488, 11},
        {"lora:16:*.gate_proj,down_proj", 32 * 16 * (2 * (4096 + 14336)), 9},
        {"lora:4:lm_head", 4 * (4096 + 128256), 0},
        {"lora:4:h0.out", 4 * 2 * 4096, 0},
        {"lora:16+4bit", 41943040, 20},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct topt_error err = {0};
        struct topt_model_stats all, s = {0};
        struct topt_model *m = import(llama, NULL, &err), *t = m;
        topt_model_stats(m, &all);
        topt_model_destroy(m);
        t = import(llama, of[i].train, &err);
        if (ok(t != NULL, "%s %s", of[i].train, err.text))
            topt_model_stats(t, &s);
        is_int(s.trained, of[i].trained, "%s: trained", of[i].train);
        is_int(s.parameters, all.parameters + of[i].trained, "... beside all others");
        if (of[i].operators)
            is_int(s.operators, all.operators + 32 * of[i].operators, "... operators");
        ok(t && t->train && !strcmp(t->train, of[i].train), "... and it says so");
        int apart = 0; /* adapters in another layer than what they adapt, h#.* */
        for (int k = 0; t && k < t->nops; k++) {
            const char *name = t->op[k].name;
            apart +=
                t->op[k].layer !=
                (*name == 'h' && name[1] >= '0' && name[1] <= '9' ? atoi(name + 1) : -1);
        }
        ok(t && t->nlayers == 32 && !apart, "... adapters stand in layers");
        int adapter = t ? topt_model_find(t, "h0.down.lora_a") : -1;
        ok(t && t->op[topt_model_find(t, "h0.down")].role == TOPT_ROLE_DOWN &&
               (adapter < 0 || t->op[adapter].role == TOPT_ROLE_NONE),
           "... what they adapt has its role, they have none");
        topt_model_destroy(t);
    }
}

static void test_names(void)
{
    static const struct {
        const char *train;
        int64_t trained;
    } of[] = {
        {"lm_head", (int64_t)4096 * 128256},
        {"norm,lm_head", (int64_t)4096 * 128256 + 4096},
        {"model.norm.weight", 4096},
        {"input_layernorm", 32 * 4096},
        {"h3?.norm1", 2 * 4096},
        {"model.layers.31.*", 218112000},
        {"h31.*", 218112000},
        {"down_proj", (int64_t)32 * 4096 * 14336},
        {"*", 8030261248},
        {"all", 8030261248},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct topt_error err = {0};
        struct topt_model_stats s = {0};
        struct topt_model *t = import(llama, of[i].train, &err);
        if (ok(t != NULL, "%s %s", of[i].train, err.text))
            topt_model_stats(t, &s);
        is_int(s.trained, of[i].trained, "%s: trained", of[i].train);
        is_int(s.parameters, 8030261248, "... of all");
        topt_model_destroy(t);
    }
}

static void test_refused(void)
{
    static const char *const of[][2] = {
        {"", "1 to 1000 bytes"},
        {",", "no name is given"},
        {"lora:0", "the rank: 0"},
        {"lora:x", "the rank"},
        {"lora:16:xx", "no linear operator is named 'xx'; names are like h0.qkv or "
                       "model.layers.0.self_attn.q_proj.weight"},
        {"lm_head,nothing",
         "no parameter is named 'nothing'; names are like embedding or"},
        {"q_proj",
         "a part of operator 'h0.qkv', which is trained as a whole: name all of"},
        {"lora+3bit", "'+3bit' is not +4bit or +8bit"},
        {"all+4bit", "parameters of 4 bits are not trained"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct topt_error err = {0};
        struct topt_model *t = import(llama, of[i][0], &err);
        ok(!t && strstr(err.text, of[i][1]), "'%s' is refused: %s", of[i][0], err.text);
        topt_model_destroy(t);
    }
}

/* A folder whose weights are stored in few bits is the base of adapters as it is. */
static void test_stored(void)
{
    static const struct {
        const char *config, *train, *is;
    } of[] = {
        {"'quant_method':'awq','bits':4", "lora", "lora+4bit"},
        {"'quant_method':'gptq','bits':8", "lora:8", "lora:8+8bit"},
        {"'quant_method':'bitsandbytes','load_in_4bit':true", "lora", "lora+4bit"},
        {"'quant_method':'bitsandbytes','load_in_4bit':true", "lora+8bit", "lora+8bit"},
        {"'quant_method':'compressed-tensors','config_groups':{'group_0':{'weights':"
         "{'type':'int','num_bits':4}}}",
         "lora", "lora+4bit"},
        {"'quant_method':'compressed-tensors','config_groups':{'group_0':{'weights':"
         "{'type':'float','num_bits':8}}}",
         "lora", "lora"},
        {"'quant_method':'fp8'", "lora", "lora"},
        {"'quant_method':'gptq','bits':3", "lora", "lora"},
        {"'quant_method':'awq','bits':4", "qlora:4", "lora:4+4bit"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct topt_error err = {0};
        char config[1000];
        snprintf(config, sizeof config,
                 "{'model_type':'llama','hidden_size':64,'num_hidden_layers':2,"
                 "'num_attention_heads':4,'intermediate_size':128,'vocab_size':96,"
                 "'quantization_config':{%s}}",
                 of[i].config);
        struct topt_model *m = import(config, of[i].train, &err);
        struct topt_model *again = m ? topt_model_rebatch(m, 1, &err) : NULL;
        ok(again && again->train && !strcmp(again->train, of[i].is) &&
               again->stored_bits == m->stored_bits,
           "%s beside %s: %s %s", of[i].train, of[i].config, of[i].is, err.text);
        topt_model_destroy(again);
        topt_model_destroy(m);
    }
}

/* ---- what backward does ------------------------------------------------------------ */

static const char small[] =
    "{'format':'topt-model/1','name':'m','batch':1,'seq':4,'ops':["
    "{'name':'e','kind':'embedding','vocab':32,'features':8},"
    "{'name':'a','kind':'linear','inputs':['e'],'features':16},"
    "{'name':'b','kind':'linear','inputs':['a'],'features':32},"
    "{'name':'c','kind':'bias','inputs':['b']},"
    "{'name':'l','kind':'cross_entropy','inputs':['c']}]}";

/* Products of a and b: 2 b k n each. */
enum { A = 2 * 4 * 8 * 16, B = 2 * 4 * 16 * 32 };

static void test_backward(void)
{
    static const struct {
        const char *train;
        int64_t flops;
        int kept; /* numbers: inputs of a and b, logits; the loss keeps its own */
    } of[] = {
        {"all", 3 * A + 3 * B, 4 * 8 + 4 * 16},
        {"e", 2 * A + 2 * B, 0},     /* gradients pass through both */
        {"a", 2 * A + 2 * B, 4 * 8}, /* weight of a; through b */
        {"b", A + 2 * B, 4 * 16},    /* nothing upstream of b is trained */
        {"c", A + B, 0},             /* forward alone */
        {"e,b", 2 * A + 3 * B, 4 * 16},
        {"lora:2:a", A + 2 * B + 2 * (2 * 4 * 8 * 2) + 3 * (2 * 4 * 2 * 16),
         4 * 8 + 4 * 2},
    };
    int64_t loss = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct topt_error err = {0};
        struct topt_model_stats s, l;
        struct topt_model *m = import(small, of[i].train, &err);
        if (!ok(m != NULL, "%s %s", of[i].train, err.text))
            continue;
        topt_model_kind_stats(m, "linear", &s);
        is_int(s.flops_per_sample, of[i].flops, "%s: products", of[i].train);
        is_int(s.activation_bytes_per_sample, 4 * of[i].kept, "... what they read again");
        topt_model_kind_stats(m, "cross_entropy", &l);
        loss = i ? loss : l.activation_bytes_per_sample;
        is_int(l.activation_bytes_per_sample, loss,
               "... the loss keeps what it always does");
        topt_model_destroy(m);
    }
}

/* ---- documents --------------------------------------------------------------------- */

static void test_document(void)
{
    struct topt_error err = {0};
    struct topt_model *m = import(small, "lora:2+4bit", &err);
    json_t *doc = topt_model_to_json(m), *again;
    struct topt_model *r = topt_model_from_json(doc, &err);
    if (!ok(r != NULL, "what is trained is read back %s", err.text))
        return;
    again = topt_model_to_json(r);
    ok(json_equal(doc, again) && r->train && !strcmp(r->train, "lora:2+4bit"),
       "... to the same document");
    struct topt_model *known = import(small, "qlora:2", &err);
    ok(known && known->train && !strcmp(known->train, "lora:2+4bit"),
       "qlora is lora with 4 bits %s", err.text);
    topt_model_destroy(known);
    int a = topt_model_find(r, "a"), down = topt_model_find(r, "a.lora_a"),
        up = topt_model_find(r, "a.lora_b"), head = topt_model_find(r, "b");
    ok(r->op[a].attrs->frozen && r->op[a].attrs->bits == 4 && r->op[head].attrs->frozen &&
           !r->op[head].attrs->bits,
       "few bits are not for the head");
    ok(!r->op[down].attrs->frozen && !r->op[down].attrs->zero && r->op[up].attrs->zero,
       "the second map of an adapter starts as zeros");
    ok(!topt_model_check_run(r, &err), "few bits run, too");
    ok(topt_model_train(&r, "lora", &err) && strstr(err.text, "has adapters already"),
       "adapters are put once: %s", err.text);
    struct topt_model *micro = topt_model_rebatch(r, 1, &err);
    ok(micro && micro->train && micro->op[a].attrs->frozen, "micro-batches are the same");
    ok(!topt_model_train(&r, "e", &err) &&
           !r->op[topt_model_find(r, "e")].attrs->frozen &&
           r->op[topt_model_find(r, "a.lora_a")].attrs->frozen,
       "a model may be trained in another way after %s", err.text);
    topt_model_destroy(micro);
    topt_model_destroy(r);
    topt_model_destroy(m);
    json_decref(doc);
    json_decref(again);
}

static void test_attributes(void)
{
    static const char *const of[][2] = {
        {"'bits':4", "need frozen"},
        {"'bits':3,'frozen':true", "bits are 4 or 8, not 3"},
    };
    for (int i = 0; i < 2; i++) {
        struct topt_error err = {0};
        char text[600];
        snprintf(text, sizeof text,
                 "{'format':'topt-model/1','name':'m','batch':1,'seq':4,'ops':["
                 "{'name':'e','kind':'embedding','vocab':32,'features':32,%s},"
                 "{'name':'l','kind':'cross_entropy','inputs':['e']}]}",
                 of[i][0]);
        struct topt_model *m = import(text, NULL, &err);
        ok(!m && strstr(err.text, of[i][1]), "%s: %s", of[i][0], err.text);
        topt_model_destroy(m);
    }
    struct topt_error err = {0};
    struct topt_model *m =
        import("{'format':'topt-model/1','name':'m','batch':1,'seq':4,'ops':["
               "{'name':'e','kind':'embedding','vocab':32,'features':32},"
               "{'name':'l','kind':'cross_entropy','inputs':['e'],"
               "'frozen':true}]}",
               NULL, &err);
    ok(!m && strstr(err.text, "frozen"), "what has no parameters is not frozen: %s",
       err.text);
    topt_model_destroy(m);
}

/* Falcon-7B with adapters of rank 16 on its projections: 32 layers of 16 (4544 + 4672), which
 * PEFT prints as 4,718,592. */
static void test_falcon(void)
{
    static const char falcon[] =
        "{'architectures':['FalconForCausalLM'],'model_type':'falcon','hidden_size':4544,"
        "'num_hidden_layers':32,'num_attention_heads':71,'vocab_size':65024,"
        "'multi_query':true,'parallel_attn':true,'alibi':false,'bias':false,"
        "'new_decoder_architecture':false}";
    struct topt_error err = {0};
    struct topt_model_stats s = {0};
    struct topt_model *m = import(falcon, "lora:16:query_key_value", &err);
    if (ok(m != NULL, "query_key_value of Falcon %s", err.text))
        topt_model_stats(m, &s);
    is_int(s.trained, 4718592, "... has 4718592 numbers in adapters of rank 16");
    topt_model_destroy(m);
}

/* GPT-2, whose head is its table of tokens and whose projections are one module each. */
static void test_tied(void)
{
    static const char gpt2[] =
        "{'architectures':['GPT2LMHeadModel'],'model_type':'gpt2','n_ctx':1024,"
        "'n_embd':768,'n_head':12,'n_layer':12,'n_positions':1024,'vocab_size':50257}";
    struct topt_error err = {0};
    struct topt_model_stats s = {0};
    struct topt_model *m = import(gpt2, "lora:8:c_attn", &err);
    if (ok(m != NULL, "c_attn of GPT-2 %s", err.text))
        topt_model_stats(m, &s);
    is_int(s.trained, 294912, "... has 294912 numbers in adapters of rank 8");
    topt_model_destroy(m);
    m = import(gpt2, "wte", &err);
    if (ok(m != NULL, "a table that the head shares %s", err.text))
        topt_model_stats(m, &s);
    is_int(s.trained, (int64_t)50257 * 768, "... is trained");
    topt_model_destroy(m);
}

/* Where parts of a projection have no adapter the others' come to the right numbers. */
static void test_parts(void)
{
    struct topt_error err = {0};
    struct topt_model *m = import(llama, "lora:8:q_proj,v_proj", &err);
    int joined = m ? topt_model_find(m, "h5.qkv.lora_parts") : -1;
    if (!ok(joined >= 0, "two of three parts %s", err.text))
        return;
    const struct topt_op *o = &m->op[joined];
    static const char *const from[] = {"h5.qkv.q_proj.lora", "h5.qkv.k_proj.part",
                                       "h5.qkv.v_proj.lora"};
    static const int unit[] = {512, 128, 128};
    for (int k = 0; k < 3; k++) {
        const struct topt_operand *x = &o->operand[o->input[k]];
        ok(!strcmp(m->tensor[topt_input_tensor(o, k)].name, from[k]) &&
               x->dim[2].unit == unit[k] && x->dim[2].count == 8,
           "%s", from[k]);
    }
    int part = topt_model_find(m, "h5.qkv.v_proj.part");
    is_int(m->op[part].attrs->offset, 640, "value after four queries and a key");
    is_int(o->operand[o->output].dim[2].unit, 768, "joined as it was");
    topt_model_destroy(m);
}

int main(void)
{
    test_adapters();
    test_stored();
    test_names();
    test_refused();
    test_backward();
    test_document();
    test_attributes();
    test_parts();
    test_tied();
    test_falcon();
    return done_testing();
}
