/* Keys of configs that are read in silence: each is told of, or the config is refused, and
 * another family is suggested only where it reads all of them. */
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_json.h"
#include "topt_model.h"

/* Braces around, quotes for apostrophes. */
static const char *config(const char *members)
{
    static char text[4096];
    snprintf(text, sizeof text, "{%s}", members);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    return text;
}

static struct topt_model *import(const char *members, struct topt_error *err)
{
    const char *text = config(members);
    struct topt_import_options o = {.batch = 1};
    return topt_model_import(text, strlen(text), "config.json", &o, err);
}

static void refuses(const char *members, const char *names)
{
    struct topt_error err = {0};
    struct topt_model *m = import(members, &err);
    ok(!m && strstr(err.text, names) && !strchr(err.text, '\n'), "names \"%s\": %s",
       names, m ? "(imported)" : err.text);
    topt_model_destroy(m);
}

/* The note has, or has not, the words. */
static void notes(const char *members, const char *words, int has)
{
    struct topt_error err = {0};
    struct topt_model *m = import(members, &err);
    ok(m && (m->note && strstr(m->note, words) ? has : !has), "%s\"%s\": %s",
       has ? "" : "nothing of ", words,
       !m        ? err.text
       : m->note ? m->note
                 : "no note");
    topt_model_destroy(m);
}

static int64_t parameters(const char *members)
{
    struct topt_error err = {0};
    struct topt_model_stats stats = {0};
    struct topt_model *m = import(members, &err);
    if (ok(m != NULL, "imported %s", err.text))
        topt_model_stats(m, &stats);
    topt_model_destroy(m);
    return stats.parameters;
}

#define TINY                                                                             \
    "'hidden_size':32,'num_hidden_layers':2,'num_attention_heads':4,"                    \
    "'intermediate_size':64,'vocab_size':50,'max_position_embeddings':64"
#define LLAMA "'model_type':'llama'," TINY

static void unread_keys(void)
{
    notes(LLAMA ",'memory_layers':3",
          "not read, so that the count may be off: memory_layers", 1);
    notes(LLAMA ",'num_experts':8,'use_cache':true,'pad_token_id':0", "off: num_experts",
          1);
    notes(LLAMA ",'use_cache':true,'pad_token_id':0,'torch_dtype':'bfloat16',"
                "'transformers_version':'4.40','_name_or_path':'x','memory_layers':null,"
                "'memory_gate':false,'attention_dropout':0.1",
          "not read", 0);
    notes("'model_type':'llava','text_config':{" LLAMA ",'memory_layers':3}",
          "off: memory_layers", 1);
    notes("'_class_name':'DiTTransformer2DModel','num_layers':2,'num_attention_heads':2,"
          "'attention_head_dim':8,'sample_size':8,'memory_layers':3",
          "off: memory_layers", 1);
}

static void no_size_at_all(void)
{
    refuses("'model_type':'gpt2'",
            "it says none of its sizes; give the whole config.json");
    refuses(
        "'model_type':'gpt2','torch_dtype':'float16','architectures':['GPT2LMHeadModel']",
        "none of its sizes");
    notes("'model_type':'gpt2','n_layer':2",
          "the config leaves out, and its class has: vocab_size 50257, n_embd 768, "
          "n_head 12",
          1);
}

static void drafts(void)
{
    static const char says[] =
        "is no model alone: give the config.json of the model that it "
        "drafts for";
    refuses(LLAMA ",'architectures':['LlamaForCausalLMEagle3'],'draft_vocab_size':50",
            says);
    refuses(LLAMA ",'architectures':['Eagle3LlamaForCausalLM']", says);
    refuses(LLAMA ",'architectures':['EagleLlamaForCausalLM']", says);
    refuses(LLAMA ",'architectures':['LlamaForCausalLM'],'draft_vocab_size':20", says);
    refuses("'architectures':['MedusaModel'],'medusa_num_heads':5", says);
    refuses("'model_type':'qwen3'," TINY ",'architectures':['DFlashDraftModel']", says);
    refuses("'model_type':'deepseek_v3'," TINY
            ",'architectures':['DeepseekV3ForCausalLMNextN']",
            says);
}

/* NVIDIA-Nemotron-3-Super-120B-A12B as its configuration says: 40 layers of Mamba, 40 of
 * experts that read and give 1,024 numbers a token, 8 of attention.  NVIDIA's report on
 * Nemotron 3 Super (2026) has 120.6 billion parameters. */
static void latent_experts(void)
{
    int64_t n = parameters(
        "'model_type':'nemotron_h','architectures':['NemotronHForCausalLM'],"
        "'hidden_size':4096,'vocab_size':131072,'num_attention_heads':32,"
        "'num_key_value_heads':2,'head_dim':128,'mamba_num_heads':128,'mamba_head_dim':"
        "64,"
        "'ssm_state_size':128,'n_groups':8,'conv_kernel':4,'n_routed_experts':512,"
        "'num_experts_per_tok':22,'n_shared_experts':1,'moe_intermediate_size':2688,"
        "'moe_shared_expert_intermediate_size':5376,'moe_latent_size':1024,"
        "'hybrid_override_pattern':'MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*"
        "EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME'");
    ok(n / 100000000 == 1206, "experts of a latent width: %lld parameters", (long long)n);
}

static void heads_of_mamba2(void)
{
#define MAMBA2                                                                           \
    "'model_type':'mamba2','hidden_size':64,'num_hidden_layers':2,'head_dim':16,"        \
    "'state_size':8,'n_groups':1,'expand':2,'vocab_size':50"
    ok(parameters(MAMBA2) == parameters(MAMBA2 ",'num_heads':8"),
       "mamba2: without a number of heads it follows from the width");
    refuses(MAMBA2 ",'num_heads':12", "num_heads 12 of head_dim 16 are not expand times");
}

#define UNET                                                                             \
    "'_class_name':'UNet2DConditionModel','block_out_channels':[32,64],"                 \
    "'down_block_types':['CrossAttnDownBlock2D','DownBlock2D'],"                         \
    "'up_block_types':['UpBlock2D','CrossAttnUpBlock2D'],'layers_per_block':1,"          \
    "'cross_attention_dim':16,'attention_head_dim':8,'sample_size':8"

static void unets(void)
{
    int64_t plain = parameters(UNET);
    ok(parameters(UNET ",'num_class_embeds':10") == plain + 10 * 4 * 32,
       "a UNet's classes are counted");
    ok(parameters(UNET ",'time_cond_proj_dim':10") == plain + 10 * 32,
       "... and what guides it");
    ok(parameters(UNET ",'only_cross_attention':[true,false]") !=
           parameters(UNET ",'only_cross_attention':[false,false]"),
       "blocks that see the text alone have other maps");
    ok(parameters(UNET ",'encoder_hid_dim':24,'encoder_hid_dim_type':'text_proj'") ==
           parameters(UNET) + 25 * 16,
       "a map before the text");
    refuses(UNET ",'encoder_hid_dim':24,'encoder_hid_dim_type':'image_proj'",
            "encoder_hid_dim_type is set");
    notes(UNET ",'only_cross_attention':false,'num_class_embeds':null,'conv_in_kernel':3,"
               "'act_fn':'silu','norm_num_groups':32",
          "not read", 0);
    notes(UNET ",'conv_in_kernel':5", "off: conv_in_kernel", 1);
}

#define VISION_2                                                                         \
    "'vision_config':{'depth':32,'embed_dim':1280,'mlp_ratio':4,'num_heads':16,"         \
    "'in_chans':3,'hidden_size':3584,'patch_size':14,'spatial_merge_size':2,"            \
    "'spatial_patch_size':14,'temporal_patch_size':2}"
#define QWEN_7B                                                                          \
    "'attention_dropout':0.0,'hidden_act':'silu','hidden_size':3584,"                    \
    "'initializer_range':0.02,'intermediate_size':18944,"                                \
    "'max_position_embeddings':32768,'max_window_layers':28,'num_attention_heads':28,"   \
    "'num_hidden_layers':28,'num_key_value_heads':4,'rms_norm_eps':1e-06,"               \
    "'rope_theta':1000000.0,'sliding_window':32768,'tie_word_embeddings':false,"         \
    "'torch_dtype':'bfloat16','use_cache':true,'use_sliding_window':false,"              \
    "'image_token_id':151655,'video_token_id':151656,'vision_token_id':151654,"          \
    "'vision_start_token_id':151652,'vision_end_token_id':151653,"                       \
    "'rope_scaling':{'type':'mrope','mrope_section':[16,24,24]},'vocab_size':152064,"

/* As their config.json on the hub; the totals of the safetensors on the models' pages. */
static void qwen_vl(void)
{
    const char *two = "'model_type':'qwen2_vl','architectures':["
                      "'Qwen2VLForConditionalGeneration']," QWEN_7B VISION_2;
    ok(parameters(two) == 8291375616, "Qwen2-VL-7B-Instruct, as it is on the hub");
    notes(two, "not read", 0);
    const char *half =
        "'model_type':'qwen2_5_vl','architectures':['Qwen2_5_VLForConditionalGeneration']"
        "," QWEN_7B "'vision_config':{'depth':32,'hidden_act':'silu','hidden_size':1280,"
        "'intermediate_size':3420,'num_heads':16,'in_chans':3,'out_hidden_size':3584,"
        "'patch_size':14,'spatial_merge_size':2,'spatial_patch_size':14,'window_size':"
        "112,"
        "'fullatt_block_indexes':[7,15,23,31],'tokens_per_second':2,"
        "'temporal_patch_size':2}";
    ok(parameters(half) == 8292166656, "Qwen2.5-VL-7B-Instruct, as it is on the hub");
    notes(half, "not read", 0);
}

#define LING(w, l, h, inner, each)                                                       \
    "'model_type':'bailing_moe','architectures':['BailingMoeV2ForCausalLM'],"            \
    "'hidden_size':" #w ",'num_hidden_layers':" #l ",'num_attention_heads':" #h          \
    ",'num_key_value_heads':4,'head_dim':128,'intermediate_size':" #inner                \
    ",'moe_intermediate_size':" #each ",'moe_shared_expert_intermediate_size':" #each    \
    ",'num_experts':256,'num_experts_per_tok':8,'num_shared_experts':1,"                 \
    "'first_k_dense_replace':1,'n_group':8,'topk_group':4,'norm_topk_prob':true,"        \
    "'routed_scaling_factor':2.5,'score_function':'sigmoid','router_dtype':'fp32',"      \
    "'moe_router_enable_expert_bias':true,'use_qk_norm':true,'use_qkv_bias':false,"      \
    "'use_bias':false,'use_rmsnorm':true,'partial_rotary_factor':0.5,"                   \
    "'rope_theta':600000,'max_position_embeddings':32768,'max_window_layers':20,"        \
    "'hidden_act':'silu','rms_norm_eps':1e-06,'tie_word_embeddings':false,"              \
    "'num_nextn_predict_layers':0,'vocab_size':157184"

static void names(void)
{
    refuses(LLAMA ",'rope_scaling':{'type':'spiral'}",
            "read are default, dynamic, linear");
    ok(parameters("'model_type':'gemma3','head_dim':8,'num_key_value_heads':2," TINY) ==
           parameters(
               "'model_type':'gemma3_text','head_dim':8,'num_key_value_heads':2," TINY),
       "gemma3 with the text's keys alone is that text");
    /* Ling-mini-2.0 and Ling-flash-2.0, which inclusionAI's cards call 16 and 100 billion; by
     * the shapes of modeling_bailing_moe_v2.py */
    ok(parameters(LING(2048, 20, 16, 5120, 512)) == 16255643392,
       "a second version under the type of the first");
    ok(parameters(LING(4096, 32, 32, 9216, 1024)) == 102889705216,
       "... and a larger one");
    notes(LING(2048, 20, 16, 5120, 512), "not read", 0);
    /* Yi-6B by its first config, 6.06 billion on its page; Orion-14B-Base, 14.5 */
    ok(parameters(
           "'model_type':'Yi','architectures':['YiForCausalLM'],'hidden_size':4096,"
           "'num_hidden_layers':32,'num_attention_heads':32,'num_key_value_heads':4,"
           "'intermediate_size':11008,'vocab_size':64000,"
           "'max_position_embeddings':4096,'tie_word_embeddings':false") == 6061035520,
       "Yi, which is a Llama");
    ok(parameters("'model_type':'orion','architectures':['OrionForCausalLM'],"
                  "'hidden_size':5120,'num_hidden_layers':40,'num_attention_heads':40,"
                  "'num_key_value_heads':40,'intermediate_size':15360,'vocab_size':84608,"
                  "'max_position_embeddings':4096,'tie_word_embeddings':false") ==
           14498703360,
       "Orion, whose norms have biases");
    struct topt_error err = {0};
    struct topt_model *m = import("'model_type':'qwen4'," TINY, &err);
    ok(!m && !strstr(err.text, "did you mean"), "another version is no slip: %s",
       err.text);
    topt_model_destroy(m);
    m = import("'model_type':'phi3_w'," TINY, &err);
    ok(!m && !strstr(err.text, "did you mean"), "... nor is another part: %s", err.text);
    topt_model_destroy(m);
    refuses("'model_type':'lama'," TINY, "did you mean llama?");
    m = import("'model_type':'plamo3'," TINY, &err);
    ok(!m && !strstr(err.text, "did you mean"), "nor are two letters of a short name: %s",
       err.text);
    topt_model_destroy(m);
    refuses(
        "'model_type':'step3p5','num_hidden_layers':4,'hidden_size':64,'vocab_size':8,"
        "'num_attention_heads':4,'moe_num_experts':4,'moe_layers_enum':'2,x'",
        "moe_layers_enum has \"x\", which is no layer's number");
    refuses("'model_type':'kimi_linear','num_hidden_layers':2",
            "linear_attn_config is missing");
    refuses("'model_type':'t5','architectures':['T5EncoderModel']," TINY,
            "it is a text encoder alone");
    refuses("'model_type':'qwen3','architectures':['JinaForRanking']," TINY,
            "it is a model that ranks texts");
    refuses("'model_type':'gemma4_assistant','backbone_hidden_size':64," TINY,
            "drafts tokens for another model");
    refuses("'model_type':'some_vl','text_config':{'hidden_size':64}",
            "names no model_type and no architecture");
    ok(parameters(
           "'model_type':'of_their_own','architectures':['LlamaForCausalLM']," TINY) ==
           parameters("'model_type':'llama'," TINY),
       "a type of its own for a known class is that class");
}

/* Language models among towers that no reader takes, and parts of models. */
static void texts(void)
{
    ok(parameters("'model_type':'video_llava','text_config':{" TINY "}") ==
           parameters("'model_type':'llama'," TINY),
       "a text that names no type has that of the class around it");
    notes("'model_type':'phi3_v'," TINY, "the text model alone", 1);
    ok(parameters("'model_type':'phi3_v'," TINY) ==
           parameters("'model_type':'phi3'," TINY),
       "a text beside its towers");
    ok(parameters(
           "'model_type':'deepseek_vl_v2','language_config':{'model_type':'llama'," TINY
           "}") == parameters("'model_type':'llama'," TINY),
       "a text under another key");
    notes("'model_type':'qwen3_asr','thinker_config':{'text_config':{" TINY
          ",'num_key_value_heads':4}}",
          "the thinker alone: what speaks is left out", 1);
    refuses("'model_type':'qwen3_omni_moe_talker_text'," TINY,
            "it is a part of another model, and no model alone");
    refuses("'model_type':'clap_text_model'," TINY,
            "it is a part of another model, and no model alone");
}

/* Sizes that differ from layer to layer. */
static void layers_apart(void)
{
#define APART                                                                            \
    "'model_type':'exaone','num_hidden_layers':2,'hidden_size':64,'vocab_size':100,"     \
    "'num_attention_heads':4,'head_dim':16,'tie_word_embeddings':true,"
    int64_t whole =
        parameters(APART "'num_key_value_heads':[4,2],'intermediate_size':128");
    int64_t four = parameters(APART "'num_key_value_heads':4,'intermediate_size':128");
    ok(four - whole == 2 * 2 * 16 * 64, "a layer of two key-value heads, one of four");
    refuses(APART "'num_key_value_heads':[4],'intermediate_size':128",
            "num_key_value_heads must have a number for each of 2 layers");
    refuses(APART "'num_key_value_heads':[4,3],'intermediate_size':128",
            "layer 1 has 4 heads, which are no multiple of its 3 key-value heads");
    refuses(APART "'num_key_value_heads':4,'intermediate_size':[128,0]",
            "intermediate_size[1] must be 1..");
#define PUZZLE                                                                           \
    "'model_type':'nemotron-nas','num_hidden_layers':1,'hidden_size':256,'vocab_size':"  \
    "100,"                                                                               \
    "'num_attention_heads':4,'block_configs':"
    int64_t bare =
        parameters(PUZZLE "[{'attention':{'no_op':true},'ffn':{'no_op':true}}]");
    ok(bare == 2 * 100 * 256 + 256, "a block that does nothing has nothing");
    ok(parameters(PUZZLE
                  "[{'attention':{'replace_with_linear':true},'ffn':{'no_op':true}}]") -
               bare ==
           256 * 256 + 256,
       "a map in place of attention, and its norm");
    ok(parameters(PUZZLE "[{'attention':{'no_op':true},'ffn':{'ffn_mult':1.5}}]") -
               bare ==
           3 * 256 * 256 + 256,
       "a feed-forward of so many widths");
    refuses(PUZZLE "[]", "block_configs must be an array of 1 blocks");
    refuses(PUZZLE "[{'ffn':{}}]", "block_configs[0] must have attention and ffn");
    refuses(PUZZLE "[{'attention':{'n_heads_in_group':3},'ffn':{}}]", "block_configs[0]");
    refuses("'model_type':'openelm','model_dim':64", "ffn_multipliers must be an array");
}

#define FRESH                                                                            \
    "'model_type':'fresh'," TINY ",'rms_norm_eps':1e-6,'hidden_act':'silu','rope_theta'" \
    ":10000,'initializer_range':0.02"

static void suggestions(void)
{
    refuses(FRESH, "those of llama, as which it has 0.0");
    struct topt_error err = {0};
    struct topt_model *m = import(FRESH ",'memory_layers':3,'memory_size':1024", &err);
    ok(!m && !strstr(err.text, "--as"),
       "no family is suggested that leaves out a size: %s", err.text);
    topt_model_destroy(m);
    m = import("'model_type':'own_moe','hidden_size':64,'intermediate_size':128,"
               "'moe_intermediate_size':32,'num_hidden_layers':4,'num_attention_heads':4,"
               "'num_key_value_heads':4,'vocab_size':100,'n_routed_experts':16",
               &err);
    ok(!m && !strstr(err.text, "--as glm_moe_dsa") && !strstr(err.text, "--as youtu"),
       "nor one that has latent attention of its class's ranks: %s", err.text);
    topt_model_destroy(m);
}

int main(void)
{
    unread_keys();
    no_size_at_all();
    drafts();
    latent_experts();
    heads_of_mamba2();
    unets();
    qwen_vl();
    names();
    texts();
    layers_apart();
    suggestions();
    return done_testing();
}
