/* Megatron-LM's arguments: parameter counts are the published ones, models are those of the
 * Hugging Face configs of the same models, and what can't be read is refused by its name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "topt_json.h"
#include "topt_model.h"

static struct topt_model *import(const char *text, struct topt_error *err)
{
    return topt_model_import(text, strlen(text), "'train.sh'", NULL, err);
}

#define UNDROPPED "--hidden-dropout 0 --attention-dropout 0\n"
#define SMALL     "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "

/* examples/gpt3/train_gpt3_175b_distributed.sh. */
static const char gpt3[] =
    "#!/bin/bash\n"
    "# Runs the \"175B\" parameter model\n"
    "GPUS_PER_NODE=8\n"
    "CHECKPOINT_PATH=$1 #<Specify path>\n"
    "GPT_MODEL_ARGS=(\n"
    "    --num-layers 96 \n    --hidden-size 12288 \n    --num-attention-heads 96 \n"
    "    --seq-length 2048 \n    --max-position-embeddings 2048 \n"
    "    --attention-backend auto # Can use (flash/fused/unfused/local)\n)\n"
    "TRAINING_ARGS=(\n    --micro-batch-size 1 \n    --global-batch-size 1536 \n"
    "    --rampup-batch-size 16 16 5859375 \n    --clip-grad 1.0\n)\n"
    "MODEL_PARALLEL_ARGS=(\n\t--tensor-model-parallel-size 8 \n"
    "\t--pipeline-model-parallel-size 16 \n)\n"
    "DATA_ARGS=(\n    --data-path $DATA_PATH \n    --vocab-file $VOCAB_FILE \n"
    "    --tokenizer-type GPT2BPETokenizer\n    --split 949,50,1\n)\n"
    "torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \\\n    ${GPT_MODEL_ARGS[@]} \\\n"
    "    ${TRAINING_ARGS[@]}\n";

/* Drops no attention of the model's any weight? */
static int is_undropped(const struct topt_model *m)
{
    int found = 0;
    for (int i = 0; i < m->nops; i++)
        if (!strcmp(m->op[i].spec->name, "attention")) {
            found = 1;
            if (!m->op[i].attrs->undropped)
                return 0;
        }
    return found;
}

/* Narayanan et al. (2021): 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)), and the last norm. */
static void test_gpt3(void)
{
    const int64_t l = 96, h = 12288, v = 51200, s = 2048;
    struct topt_error err = {0};
    struct topt_model_stats n = {0};
    struct topt_model *m = import(gpt3, &err);
    if (!ok(m != NULL, "GPT-3 %s", err.text))
        return;
    topt_model_stats(m, &n);
    is_int(n.parameters, 12 * l * h * h + 13 * l * h + (v + s) * h + 2 * h,
           "174.6 billion parameters, the vocabulary padded for 8 parts");
    ok(m->batch == 1536 && m->seq == 2048 && !strcmp(m->name, "train"),
       "a step's samples and positions, the file's name");
    ok(m->note && strstr(m->note, "dropout") &&
           m->op[topt_model_find(m, "h0.add1")].attrs->masked,
       "what dropout leaves of a sum has a mask: %s", m->note);
    ok(!is_undropped(m), "a tenth of attention's weights is dropped by default");
    topt_model_destroy(m);
    m = import(SMALL "--position-embedding-type rope --vocab-size 100 " UNDROPPED, &err);
    ok(m && is_undropped(m), "... and none with --attention-dropout 0 %s", err.text);
    topt_model_destroy(m);
}

/* ---- the same as Hugging Face's ---------------------------------------------------- */

/* Without what a config of Hugging Face does not say: which numbers attention keeps where it drops nothing. */
static json_t *document(const char *text)
{
    size_t i;
    json_t *op;
    struct topt_error err = {0};
    struct topt_import_options o = {.batch = 8, .seq = 512};
    struct topt_model *m = topt_model_import(text, strlen(text), "same", &o, &err);
    if (!m)
        printf("# %s\n", err.text);
    json_t *doc = m ? topt_model_to_json(m) : NULL;
    json_object_del(doc, "note");
    json_array_foreach(json_object_get(doc, "ops"), i, op)
        json_object_del(op, "undropped");
    topt_model_destroy(m);
    return doc;
}

static void test_same(const char *what, const char *megatron, const char *config)
{
    json_t *a = document(megatron), *b = document(config);
    ok(a && b && json_equal(a, b), "%s is the model of its Hugging Face config", what);
    json_decref(a);
    json_decref(b);
}

static void test_alike(void)
{
    test_same(
        "Llama-3.1-8B",
        "HID=4096\n"
        "ARGS=\"--num-layers ${LAYERS:-32} --hidden-size $HID \\\n"
        "  --ffn-hidden-size=14336 --num-attention-heads 32 --group-query-attention \\\n"
        "  --num-query-groups 8 --max-position-embeddings 131072\"\n"
        "python pretrain_gpt.py $ARGS --position-embedding-type rope \\\n"
        "  --rotary-base 500000 --use-rope-scaling --swiglu --normalization RMSNorm \\\n"
        "  --disable-bias-linear --untie-embeddings-and-output-weights \\\n"
        "  --tokenizer-type HuggingFaceTokenizer --vocab-size 128256 \\\n"
        "  --hidden-dropout 0 --attention-dropout 0\n",
        "{\"model_type\":\"llama\",\"hidden_size\":4096,\"intermediate_size\":14336,"
        "\"num_hidden_layers\":32,\"num_attention_heads\":32,"
        "\"num_key_value_heads\":8,\"vocab_size\":128256,"
        "\"max_position_embeddings\":131072,\"rms_norm_eps\":1e-5,"
        "\"rope_theta\":500000.0,\"rope_scaling\":{\"factor\":8.0,"
        "\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,"
        "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},"
        "\"tie_word_embeddings\":false}");
    test_same("Qwen3-30B-A3B",
              "--disable-bias-linear --qk-layernorm --group-query-attention\n"
              "--num-attention-heads 32 --num-query-groups 4 --kv-channels 128\n"
              "--num-layers 48 --hidden-size 2048 --ffn-hidden-size 6144\n"
              "--normalization RMSNorm --position-embedding-type rope\n"
              "--norm-epsilon 1e-6 --rotary-percent 1.0 --swiglu\n"
              "--untie-embeddings-and-output-weights --vocab-size 151936\n"
              "--rotary-base 1000000\n# moe\n--moe-ffn-hidden-size 768\n"
              "--moe-router-score-function softmax --moe-router-topk 8\n"
              "--moe-layer-freq \"'([1]*48)'\" --num-experts 128 " UNDROPPED,
              "{\"model_type\":\"qwen3_moe\",\"hidden_size\":2048,"
              "\"intermediate_size\":6144,\"num_hidden_layers\":48,"
              "\"num_attention_heads\":32,\"num_key_value_heads\":4,\"head_dim\":128,"
              "\"vocab_size\":151936,\"max_position_embeddings\":40960,"
              "\"rms_norm_eps\":1e-6,\"rope_theta\":1000000.0,\"num_experts\":128,"
              "\"num_experts_per_tok\":8,\"moe_intermediate_size\":768,"
              "\"norm_topk_prob\":true,\"tie_word_embeddings\":false}");
    test_same("Qwen2.5-1.5B",
              "--swiglu --num-layers 28 --hidden-size 1536 --ffn-hidden-size 8960\n"
              "--num-attention-heads 12 --use-rotary-position-embeddings\n"
              "--disable-bias-linear --add-qkv-bias --normalization \"RMSNorm\"\n"
              "--norm-epsilon 1e-6 --rotary-base 1000000 --group-query-attention\n"
              "--num-query-groups 2 --vocab-size 151936 " UNDROPPED,
              "{\"model_type\":\"qwen2\",\"hidden_size\":1536,\"intermediate_size\":8960,"
              "\"num_hidden_layers\":28,\"num_attention_heads\":12,"
              "\"num_key_value_heads\":2,\"vocab_size\":151936,"
              "\"max_position_embeddings\":32768,\"rms_norm_eps\":1e-6,"
              "\"rope_theta\":1000000.0,\"tie_word_embeddings\":true}");
    test_same("GPT-2",
              "--num-layers 12 --hidden-size 768 --num-attention-heads 12\n"
              "--max-position-embeddings 1024 --padded-vocab-size 50257 " UNDROPPED,
              "{\"model_type\":\"gpt2\",\"n_embd\":768,\"n_layer\":12,\"n_head\":12,"
              "\"activation_function\":\"gelu_pytorch_tanh\","
              "\"n_positions\":1024,\"vocab_size\":50257}");
}

/* ---- details ----------------------------------------------------------------------- */

#define ROPE SMALL "--position-embedding-type rope --vocab-size 100 "
#define MOE  ROPE "--disable-bias-linear --swiglu --num-experts 8 "

static void test_vocab(void)
{
    static const struct {
        const char *text;
        int vocab;
    } of[] = {
        {ROPE, 128},
        {ROPE "--make-vocab-size-divisible-by 32", 128},
        {ROPE "--make-vocab-size-divisible-by 50", 100},
        {ROPE "--make-vocab-size-divisible-by 32 --tensor-model-parallel-size 2", 128},
        {ROPE "--tensor-model-parallel-size 4", 512},
        {ROPE "--padded-vocab-size 101", 101},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct topt_error err = {0};
        struct topt_model *m = import(of[i].text, &err);
        is_int(m ? m->vocab : 0, of[i].vocab, "%s: the vocabulary %s",
               of[i].text + sizeof SMALL - 1, err.text);
        topt_model_destroy(m);
    }
}

/* Which of four layers have experts, as bits. */
static void test_layers(void)
{
    static const struct {
        const char *text;
        int layers;
    } of[] = {
        {MOE, 15},
        {MOE "--moe-layer-freq 2", 5},
        {MOE "--moe-layer-freq '([0]*1+[1]*3)*1'", 14},
        {MOE "--moe-layer-freq ([0]*3+[1])", 8},
        {MOE "--moe-layer-freq [0]*1+[1]*3", 14},
        {MOE "--moe-layer-freq \"([1,0])*2\"", 5},
        {"F=\"([0]*2+[1]*2)\"\n" MOE "--moe-layer-freq \"$F\"", 12},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct topt_error err = {0};
        struct topt_model *m = import(of[i].text, &err);
        int layers = 0;
        for (int k = 0; m && k < 4; k++) {
            char name[20];
            snprintf(name, sizeof name, "h%d.experts", k);
            layers |= (topt_model_find(m, name) >= 0) << k;
        }
        is_int(layers, of[i].layers, "layers with experts %s", err.text);
        topt_model_destroy(m);
    }
}

static void test_refused(void)
{
    static const char *const of[][2] = {
        {ROPE "--quick-geglu", "--quick-geglu makes another model"},
        {ROPE "--multi-latent-attention", "latent attention without norms"},
        {"#!/bin/bash\nsource ./model.sh\ntorchrun pretrain_gpt.py $ARGS\n",
         "it sources model.sh: put the text"},
        {"#!/bin/bash\n. \"${DIR}/sizes.sh\"\n" ROPE "--ffn-hidden-size $FFN",
         "does not set $FFN: write the value (sizes.sh, which it sources, is not read"},
        {"#!/bin/bash\ntorchrun pretrain_t5.py --encoder-num-layers 12\n",
         "pretrain_t5.py trains another model"},
        {SMALL "--mtp-num-layers 1", "--mtp-num-layers with --position-embedding-type "
                                     "learned_absolute"},
        {ROPE "--mtp-num-layers 17", "--mtp-num-layers 17 is above 16"},
        {ROPE "--softmax-type learnable", "--softmax-type learnable"},
        {ROPE "--normalization BatchNorm", "--normalization BatchNorm is not known"},
        {SMALL "--position-embedding-type mrope --vocab-size 9", "mrope: no reader"},
        {SMALL "--position-embedding-type rope", "--vocab-size is missing"},
        {SMALL "--vocab-size 9", "--max-position-embeddings is missing"},
        {ROPE "--num-layers 5", "--num-layers: it is given twice, as '4' and '5'"},
        {ROPE "--ffn-hidden-size x", "--ffn-hidden-size: "},
        {ROPE "--ffn-hidden-size", "--ffn-hidden-size: its value is missing"},
        {ROPE "--ffn-hidden-size $FFN", "the file does not set $FFN"},
        {"FFN=1\nFFN=2\n" ROPE "--ffn-hidden-size $FFN", "sets $FFN to '1' and to '2'"},
        {"FFN=$FFN\n" ROPE "--ffn-hidden-size $FFN", "'$FFN' is not worked out"},
        {ROPE "--ffn-hidden-size $((4 ** 64))", "is not worked out here"},
        {ROPE "--ffn-hidden-size $((64 / 0))", "is not worked out here"},
        {ROPE "--global-batch-size many", "--global-batch-size: "},
        {ROPE "--num-experts 8", "without --disable-bias-linear"},
        {MOE "--moe-layer-freq '([1]*3)'", "is no pattern of 4 layers"},
        {MOE "--moe-layer-freq '([2]*4)'", "is no pattern of 4 layers"},
        {MOE "--moe-layer-freq '([1]*4'", "is no pattern of 4 layers"},
        {"torchrun pretrain_bert.py " ROPE, "pretrain_bert.py trains another model"},
        {ROPE "--group-query-attention --num-query-groups 3", "is not a multiple"},
        {"import torch\nclass Model(torch.nn.Module): pass\n",
         "torch.onnx.export(model, (x,), \"model.onnx\")"},
        {"PK\3\4 some zip", "torch.onnx.export(model, (x,), \"model.onnx\")"},
        {"--num-layers 4", "a script or file of Megatron-LM's arguments"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct topt_error err = {0};
        struct topt_model *m = import(of[i][0], &err);
        ok(!m && strstr(err.text, of[i][1]), "refused: %s", err.text);
        topt_model_destroy(m);
    }
}

/* Scripts as they are written: arithmetic, defaults of their own, and what they leave to
 * whoever starts them. */
static void test_scripts(void)
{
#define LEFT                                                                             \
    "A=${A:-2}\nB=${B:-\"4\"}\nFFN=$((A * 32 * (B - 1)))\n"                              \
    "--num-layers $B --hidden-size 64 --num-attention-heads $(( ${A} + 2 )) "            \
    "--max-position-embeddings 32 --ffn-hidden-size $FFN "
    struct topt_error err = {0};
    struct topt_model_stats s = {0}, t = {0};
    struct topt_model *m = import(LEFT "--vocab-size 128 --global-batch-size $5 "
                                       "--seq-length ${SEQ} --hidden-dropout $HD",
                                  &err);
    if (ok(m != NULL, "variables of a script %s", err.text))
        topt_model_stats(m, &s);
    ok(m && m->nlayers == 4 && m->note &&
           strstr(m->note, "left to whoever starts the script: --global-batch-size, "
                           "--seq-length, --hidden-dropout"),
       "what is left open is told of: %s", m && m->note ? m->note : "");
    topt_model_destroy(m);
    m = import("--num-layers 4 --hidden-size 64 --num-attention-heads 4 "
               "--max-position-embeddings 32 --ffn-hidden-size 192 --vocab-size 128",
               &err);
    if (m)
        topt_model_stats(m, &t);
    is_int(s.parameters, t.parameters, "... and the sizes are worked out");
    topt_model_destroy(m);
    m = import(LEFT "--vocab-file $3 --merge-file $4", &err);
    ok(m && m->note && strstr(m->note, "GPT-2's, 50257"), "the merges are GPT-2's: %s",
       m && m->note ? m->note : err.text);
    topt_model_destroy(m);
}

/* examples/post_training/modelopt/conf/deepseek-ai/DeepSeek-V2-Lite.sh, of 15.7 billion
 * parameters; a tokenizer that a variable names. */
static void test_latent(void)
{
    struct topt_error err = {0};
    struct topt_model_stats s = {0};
    struct topt_model *m = import(
        "TOKENIZER_MODEL=\"deepseek-ai/DeepSeek-V2-Lite\"\n"
        "--disable-bias-linear --untie-embeddings-and-output-weights --swiglu "
        "--position-embedding-type rope --normalization RMSNorm --num-layers 27 "
        "--hidden-size 2048 --ffn-hidden-size 10944 --num-attention-heads 16 "
        "--kv-channels 16 --multi-latent-attention --kv-lora-rank 512 --v-head-dim 128 "
        "--qk-head-dim 128 --qk-layernorm --qk-pos-emb-head-dim 64 --num-experts 64 "
        "--moe-layer-freq ([0]+[1]*26) --moe-ffn-hidden-size 1408 --moe-router-topk 6 "
        "--moe-router-pre-softmax --moe-shared-expert-intermediate-size 2816 "
        "--seq-length 1024 --make-vocab-size-divisible-by 3200",
        &err);
    if (ok(m != NULL, "latent attention is read %s", err.text))
        topt_model_stats(m, &s);
    ok(s.parameters == 15706484224, "... %lld parameters", (long long)s.parameters);
    topt_model_destroy(m);
    m = import(ROPE "--mtp-num-layers 2 --mtp-loss-scaling-factor 0.3", &err);
    ok(m && m->nlayers == 6 && m->mtp < m->nops, "two further tokens %s", err.text);
    topt_model_destroy(m);
    m = import(ROPE "--squared-relu", &err);
    ok(m != NULL, "squares of what is above 0 %s", err.text);
    topt_model_destroy(m);
}

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

/* A script with files beside it. */
static void test_sources(void)
{
    char dir[] = "/tmp/topt-megatron-XXXXXX", name[3][60];
    struct topt_error err = {0};
    struct topt_model *m = NULL;
    if (!ok(mkdtemp(dir) != NULL, "a folder"))
        return;
    for (int i = 0; i < 3; i++)
        snprintf(name[i], sizeof name[i], "%s/%d.sh", dir, i);
    write_text(name[0], "#!/bin/bash\nsource $(dirname $0)/1.sh\ntorchrun $ARGS\n");
    write_text(name[1], "FFN=192\n. `pwd`/2.sh\n");
    write_text(name[2], ROPE "--ffn-hidden-size $FFN\n");
    m = topt_model_load(name[0], NULL, &err);
    ok(m && m->nlayers == 4, "files that a script sources are read %s", err.text);
    topt_model_destroy(m);
    for (int i = 0; i < 3; i++)
        unlink(name[i]);
    rmdir(dir);
}

int main(void)
{
    test_scripts();
    test_latent();
    test_sources();
    test_gpt3();
    test_alike();
    test_vocab();
    test_layers();
    test_refused();
    return done_testing();
}
