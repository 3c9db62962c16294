/* validation_rows.c - published runs as data.
 *
 * All figures are those of the sources, none is a prediction's.  Where a source leaves something
 * open its group says what is assumed.  Nothing was left out for being far off: of a table are
 * here all rows that can be expressed, or those of one length of sequence. */
#include "validation_rows.h"

#include <stddef.h>

enum {
    OPERATORS = TOPT_EAGER_OPERATORS,
    OPTIMIZER = TOPT_EAGER_OPTIMIZER,
    EAGER = TOPT_EAGER_OPERATORS | TOPT_EAGER_LOSS | TOPT_EAGER_OPTIMIZER,
    COMPILED = TOPT_EAGER_LOSS | TOPT_EAGER_OPTIMIZER,
    APEX = TOPT_EAGER_OPERATORS | TOPT_EAGER_SCORES | TOPT_EAGER_LOSS
};

#define FEED(width) 4 * (width)
#define GPT_OF(title, width, layers, heads, vocab, count, drop)                          \
    {                                                                                    \
        title, GPT, width, layers, heads, heads, FEED(width), vocab, count, drop         \
    }

/* ---- Megatron-LM and Korthikanti et al. ---------------------------------------------------- */

static const struct sizes gpt1b = GPT_OF("GPT 1.7B", 2304, 24, 24, 51200, 0, 1),
                          gpt7b = GPT_OF("GPT 7.5B", 4096, 36, 32, 51200, 0, 1),
                          gpt22b = GPT_OF("GPT 22B", 6144, 48, 64, 51200, 0, 1);

#define MEGATRON                                                                         \
    .hw = "a100-80-dgx", .per_node = 8, .seq = 2048, .dtype = TOPT_BF16,                 \
    .optimizer = TOPT_ADAM, .overlap = TOPT_OVERLAP_DDP, .eager = APEX

static const struct run narayanan[] = {
    {MEGATRON, .model = &gpt1b, .gpus = 32, .tensor = 1, .again = AGAIN_WHOLE,
     .batch = 512, .micro_batches = 1, .tflops = 137},
    {MEGATRON, .model = &gpt7b, .gpus = 128, .tensor = 4, .again = AGAIN_WHOLE,
     .batch = 512, .micro_batches = 1, .tflops = 142},
};

static const struct run korthikanti[] = {
    {MEGATRON, .model = &gpt22b, .gpus = 8, .tensor = 8, .again = AGAIN_WHOLE, .batch = 4,
     .micro_batches = 1, .seconds = 1.42, .job = "GPT 22B on 8 GPUs"},
    {MEGATRON, .model = &gpt22b, .gpus = 8, .tensor = 8, .positions = 1,
     .again = AGAIN_ATTENTION, .batch = 4, .micro_batches = 1, .seconds = 1.10,
     .job = "GPT 22B on 8 GPUs"},
};

/* ---- llm-foundry --------------------------------------------------------------------------- */

static const struct sizes mpt125m = GPT_OF("MPT 125M", 768, 12, 12, 50368, 125311488, 0),
                          mpt350m = GPT_OF("MPT 350M", 1024, 24, 16, 50368, 355985408, 0),
                          mpt760m = GPT_OF("MPT 760M", 1536, 24, 12, 50368, 760470528, 0),
                          mpt1b = GPT_OF("MPT 1B", 2048, 24, 16, 50368, 1315950592, 0),
                          mpt3b = GPT_OF("MPT 3B", 2560, 32, 20, 50368, 2651837440, 0),
                          mpt7b = GPT_OF("MPT 7B", 4096, 32, 32, 50368, 6658859008, 0),
                          mpt13b = GPT_OF("MPT 13B", 5120, 40, 40, 50368, 12853954560, 0),
                          mpt30b = GPT_OF("MPT 30B", 7168, 48, 56, 50368, 29975214080, 0),
                          mpt70b = GPT_OF("MPT 70B", 8192, 80, 64, 50368, 64862437376, 0);

/* Devices, samples a micro-batch of one, samples a step, tokens a second of one. */
#define FOUNDRY_FIELDS(cluster, sizes, n, micro, global, makes, rate)                    \
    .model = &(sizes), .hw = cluster, .gpus = n, .per_node = 8, .tensor = 1,             \
    .zero = TOPT_ZERO_PARAM, .again = makes, .seq = 2048, .batch = global,               \
    .micro_batches = ((global) + (n) * (micro)-1) / ((n) * (micro)), .dtype = TOPT_BF16, \
    .optimizer = TOPT_ADAMW, .overlap = TOPT_OVERLAP_FSDP,                               \
    .eager = OPERATORS | OPTIMIZER, .tokens = rate
#define FOUNDRY(...)                                                                     \
    {                                                                                    \
        FOUNDRY_FIELDS(__VA_ARGS__)                                                      \
    }
#define ALL  AGAIN_WHOLE
#define NONE AGAIN_NOTHING

#define A80(...) FOUNDRY("a100-80-dgx", __VA_ARGS__)
static const struct run foundry_a80[] = {
    A80(mpt70b, 64, 8, 2048, ALL, 410),     A80(mpt70b, 32, 2, 1024, ALL, 373),
    A80(mpt30b, 8, 3, 504, ALL, 916),       A80(mpt13b, 8, 2, 48, NONE, 2262),
    A80(mpt7b, 8, 6, 96, NONE, 4641),       A80(mpt3b, 8, 10, 160, NONE, 10811),
    A80(mpt1b, 8, 14, 448, NONE, 20513),    A80(mpt760m, 8, 24, 384, NONE, 32434),
    A80(mpt350m, 8, 32, 512, NONE, 58782),  A80(mpt125m, 8, 40, 640, NONE, 142830),
    A80(mpt125m, 8, 32, 512, NONE, 141737),
};

#define A40(...) FOUNDRY("a100-40-dgx", __VA_ARGS__)
static const struct run foundry_a40[] = {
    A40(mpt70b, 128, 4, 512, ALL, 376),        A40(mpt70b, 64, 2, 128, ALL, 276),
    A40(mpt30b, 128, 6, 768, ALL, 865),        A40(mpt30b, 32, 4, 128, ALL, 857),
    A40(mpt13b, 128, 16, 2048, ALL, 1972),     A40(mpt13b, 64, 16, 1024, ALL, 1976),
    A40(mpt13b, 32, 14, 448, ALL, 1998),       A40(mpt13b, 16, 10, 160, ALL, 1993),
    A40(mpt13b, 8, 4, 512, ALL, 1668),         A40(mpt7b, 128, 18, 2304, ALL, 3623),
    A40(mpt7b, 64, 18, 1152, ALL, 3665),       A40(mpt7b, 32, 18, 576, ALL, 3725),
    A40(mpt7b, 16, 16, 256, ALL, 3645),        A40(mpt7b, 8, 12, 384, ALL, 3679),
    A40(mpt3b, 128, 6, 768, NONE, 9538),       A40(mpt3b, 64, 6, 384, NONE, 9736),
    A40(mpt3b, 32, 6, 192, NONE, 9914),        A40(mpt3b, 16, 5, 80, NONE, 9750),
    A40(mpt3b, 8, 5, 320, NONE, 10065),        A40(mpt1b, 128, 10, 1280, NONE, 18647),
    A40(mpt1b, 64, 10, 640, NONE, 19001),      A40(mpt1b, 32, 10, 320, NONE, 15555),
    A40(mpt1b, 16, 8, 128, NONE, 19085),       A40(mpt1b, 8, 8, 512, NONE, 19271),
    A40(mpt760m, 128, 12, 1536, NONE, 28940),  A40(mpt760m, 64, 12, 768, NONE, 29344),
    A40(mpt760m, 32, 12, 384, NONE, 29648),    A40(mpt760m, 16, 12, 192, NONE, 29607),
    A40(mpt760m, 8, 12, 384, NONE, 30173),     A40(mpt350m, 128, 18, 2304, NONE, 51934),
    A40(mpt350m, 64, 18, 1152, NONE, 52689),   A40(mpt350m, 32, 18, 576, NONE, 53811),
    A40(mpt350m, 16, 18, 288, NONE, 55413),    A40(mpt350m, 8, 16, 512, NONE, 55995),
    A40(mpt125m, 128, 26, 3328, NONE, 123936), A40(mpt125m, 64, 26, 1664, NONE, 125234),
    A40(mpt125m, 32, 26, 832, NONE, 127122),   A40(mpt125m, 16, 26, 416, NONE, 130535),
    A40(mpt125m, 8, 26, 624, NONE, 136334),
};

/* Steps of two micro-batches of one sample and more. */
#define BY_MICRO(title, sizes, micro, rate)                                              \
    {                                                                                    \
        FOUNDRY_FIELDS("a100-80-dgx", sizes, 8, micro, 16 * (micro), NONE, rate),        \
            .job = title " on 8 GPUs"                                                    \
    }
static const struct run foundry_micro[] = {
    BY_MICRO("MPT 7B", mpt7b, 1, 3366),   BY_MICRO("MPT 7B", mpt7b, 2, 4044),
    BY_MICRO("MPT 7B", mpt7b, 4, 4513),   BY_MICRO("MPT 7B", mpt7b, 6, 4715),
    BY_MICRO("MPT 13B", mpt13b, 1, 1867), BY_MICRO("MPT 13B", mpt13b, 2, 2228),
};

#define H80(...) FOUNDRY("h100-80-dgx", __VA_ARGS__)
static const struct run foundry_h80[] = {
    H80(mpt70b, 128, 8, 1024, ALL, 1058),   H80(mpt70b, 64, 8, 2048, ALL, 1039),
    H80(mpt70b, 32, 2, 1024, ALL, 882),     H80(mpt30b, 32, 14, 1344, ALL, 2308),
    H80(mpt30b, 16, 10, 480, ALL, 2263),    H80(mpt30b, 8, 3, 504, ALL, 2002),
    H80(mpt13b, 64, 2, 128, NONE, 4800),    H80(mpt13b, 32, 2, 64, NONE, 4811),
    H80(mpt13b, 16, 2, 32, NONE, 4767),     H80(mpt13b, 8, 2, 16, NONE, 4792),
    H80(mpt7b, 8, 6, 48, NONE, 10643),      H80(mpt3b, 64, 6, 1152, NONE, 22525),
    H80(mpt3b, 32, 6, 576, NONE, 23021),    H80(mpt3b, 16, 10, 480, NONE, 24142),
    H80(mpt1b, 64, 20, 1280, NONE, 44402),  H80(mpt1b, 32, 20, 640, NONE, 45130),
    H80(mpt1b, 16, 20, 320, NONE, 46037),   H80(mpt1b, 8, 14, 112, NONE, 45455),
    H80(mpt760m, 32, 24, 768, NONE, 67971), H80(mpt760m, 16, 24, 384, NONE, 68551),
    H80(mpt760m, 8, 24, 384, NONE, 63147),
};

/* ---- torchtitan ---------------------------------------------------------------------------- */

static const struct sizes llama8b = {"Llama 3 8B", LLAMA,  4096,       32, 32, 8,
                                     14336,        128256, 8030261248, 0},
                          llama70b = {"Llama 3 70B", LLAMA,  8192, 80, 64, 8,
                                      28672,         128256, 0,    0},
                          llama2_13b = {"Llama 2 13B", LLAMA, 5120, 40, 40, 40,
                                        13824,         32000, 0,    0},
                          llama2_70b = {"Llama 2 70B", LLAMA, 8192, 80, 64, 8,
                                        28672,         32000, 0,    0};

#define TITAN(cluster, sizes, n, local, length, makes, rate)                             \
    .model = &(sizes), .hw = cluster, .gpus = n, .per_node = 8, .tensor = 1,             \
    .zero = TOPT_ZERO_PARAM, .again = makes, .seq = length, .batch = (n) * (local),      \
    .micro_batches = 1, .dtype = TOPT_BF16, .optimizer = TOPT_ADAMW,                     \
    .overlap = TOPT_OVERLAP_FSDP, .tokens = rate, .framework = "torchtitan"

static const struct run titan_h96[] = {
    {TITAN("h100-96-500w", llama8b, 8, 2, 8192, AGAIN_PRODUCTS, 5762), .eager = EAGER,
     .mib = 82.4 * 1024},
    {TITAN("h100-96-500w", llama8b, 8, 2, 8192, AGAIN_PRODUCTS, 6667), .eager = COMPILED,
     .mib = 77.0 * 1024},
    {TITAN("h100-96-500w", llama8b, 128, 2, 8192, AGAIN_PRODUCTS, 5605), .eager = EAGER,
     .mib = 67.0 * 1024},
    {TITAN("h100-96-500w", llama8b, 128, 2, 8192, AGAIN_PRODUCTS, 6514),
     .eager = COMPILED, .mib = 62.0 * 1024},
};

static const struct run titan_a80[] = {
    {TITAN("a100-80-dgx", llama8b, 64, 1, 8192, AGAIN_SECOND, 2904), .eager = EAGER,
     .job = "Llama 3 8B on 64 GPUs"},
    {TITAN("a100-80-dgx", llama8b, 64, 1, 8192, AGAIN_PRODUCTS, 2973), .eager = EAGER,
     .job = "Llama 3 8B on 64 GPUs"},
    {TITAN("a100-80-dgx", llama70b, 64, 1, 8192, AGAIN_ASKED, 331), .eager = EAGER},
    {TITAN("a100-80-dgx", llama2_13b, 64, 2, 4096, AGAIN_NOTHING, 2162), .eager = EAGER,
     .job = "Llama 2 13B on 64 GPUs"},
    {TITAN("a100-80-dgx", llama2_13b, 64, 2, 4096, AGAIN_SECOND, 1914), .eager = EAGER,
     .job = "Llama 2 13B on 64 GPUs"},
    {TITAN("a100-80-dgx", llama2_13b, 64, 2, 4096, AGAIN_PRODUCTS, 1904), .eager = EAGER,
     .job = "Llama 2 13B on 64 GPUs"},
    {TITAN("a100-80-dgx", llama2_70b, 64, 1, 4096, AGAIN_PRODUCTS, 355), .eager = EAGER,
     .job = "Llama 2 70B on 64 GPUs"},
    {TITAN("a100-80-dgx", llama2_70b, 64, 2, 4096, AGAIN_ASKED, 353), .eager = EAGER,
     .job = "Llama 2 70B on 64 GPUs"},
};

/* ---- Hugging Face -------------------------------------------------------------------------- */

static const struct sizes bert = {"BERT large", BERT, 1024,  24,        16,
                                  16,           4096, 30522, 335143938, 1};

/* 512 samples took so many seconds, in steps of 4. */
#define TRAINER(micro, makes, optim, all, memory)                                        \
    .model = &bert, .hw = "v100-pcie-1x8", .gpus = 1, .per_node = 1, .tensor = 1,        \
    .again = makes, .seq = 512, .batch = 4, .micro_batches = micro, .dtype = TOPT_F32,   \
    .optimizer = optim, .eager = EAGER | TOPT_EAGER_SCORES, .seconds = (all)*4 / 512,    \
    .mib = memory, .framework = "pytorch", .staying = 1

static const struct run trainer[] = {
    {TRAINER(1, NONE, TOPT_ADAMW, 57.82, 14949), .job = "BERT large on one GPU, AdamW"},
    {TRAINER(4, NONE, TOPT_ADAMW, 66.03, 8681), .job = "BERT large on one GPU, AdamW"},
    {TRAINER(4, ALL, TOPT_ADAMW, 85.47, 6775), .job = "BERT large on one GPU, AdamW"},
    {TRAINER(1, NONE, TOPT_ADAFACTOR, 64.31, 12295)},
    {TRAINER(1, NONE, TOPT_ADAM8, 55.95, 13085)},
};

/* ---- groups -------------------------------------------------------------------------------- */

#define RUNS(of) .run = of, .n = (int)(sizeof of / sizeof *of)

const struct group validation_groups[] = {
    {.name = "Megatron-LM, A100 80 GB",
     .source =
         "Narayanan et al., SC 2021, table 1; micro-batches of 16 samples, PyTorch's "
         "DDP and recomputation as its examples/sc21/run_table_1.sh has them; dropout "
         "0.1, the program's default",
     .residual = "products have one rate here whatever their shape and direction; loss "
                 "scaling, the loader and logging are not priced",
     RUNS(narayanan)},
    {.name = "Korthikanti et al., A100 80 GB",
     .source =
         "Korthikanti et al. 2022, table 5: all recomputed; and attention alone, with "
         "norms and dropout split by positions",
     .residual = "the second row is low as Megatron-LM's are: with less made again "
                 "backward's products weigh more, which have forward's rate here",
     RUNS(korthikanti)},
    {.name = "llm-foundry, A100 80 GB",
     .source = "github.com/mosaicml/llm-foundry, scripts/train/benchmarking: all rows of "
               "2048 positions; heads as in scripts/train/yamls; the loss is its fused "
               "one, attention Triton's",
     .residual = "as the group by micro-batch shows, what is missing is about what the "
                 "network takes, of which little was hidden then. It is most for small "
                 "models, where logits are the larger share: each micro-batch also "
                 "computes two metrics of them for the log, which is not priced. Nor "
                 "are FSDP's copies between flat parameters and weights",
     RUNS(foundry_a80)},
    {.name = "llm-foundry, A100 40 GB",
     .source = "as above",
     .residual = "as above. 70B on 64 GPUs and 13B on 8 were measured far slower than "
                 "their neighbours on more GPUs, as runs are whose allocator has "
                 "hardly any room; 1B on 32 was measured 18 % slower than on 16 and on "
                 "64, which no model of ours explains",
     RUNS(foundry_a40)},
    {.name = "llm-foundry, A100 80 GB, by micro-batch",
     .source =
         "github.com/mosaicml/llm-foundry, scripts/train/benchmarking/larger_mb_1.md "
         "of 2023: all rows without offloading on 80 GB",
     .residual = "a sample more takes 0.80 s for two micro-batches of the 7B and 0.78 "
                 "s by prediction, so products and attention are right within 3 %; "
                 "what is missing is the same for any number of samples, 0.17 s a "
                 "step, about what the network takes: less of it was hidden than one "
                 "product beside one all-gather says",
     RUNS(foundry_micro)},
    {.name = "llm-foundry, H100 80 GB",
     .source = "as above, and the row of 70B on 128 GPUs of an earlier version",
     .residual = "the runs are of 2023, with the Triton kernel of the A100 for "
                 "attention and the first libraries for this GPU; the profile has what "
                 "was measured later. Errors are largest where GPUs are few and "
                 "samples too, where much is moved inside a node while products run, "
                 "as for the A100",
     RUNS(foundry_h80)},
    {.name = "torchtitan, H100 96 GB at 500 W",
     .source =
         "github.com/pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, "
         "tables 1 and 3; of compiled runs the blocks were compiled, not the loss",
     .residual = "of the limit of 500 W the profile knows the peak of the H100 NVL "
                 "alone, the lower one that the source names; what the clock is under "
                 "full load is not public. The memory is what the allocator reserved, "
                 "gaps included",
     RUNS(titan_h96)},
    {.name = "torchtitan, A100 80 GB",
     .source = "github.com/pytorch/torchtitan, performance.md of its documentation, as "
               "of 2024; that nothing "
               "is compiled is assumed",
     .residual = "attention over 8192 positions has the rate of 2048 here, too slow, "
                 "which makes up for what is low as in the groups above",
     RUNS(titan_a80)},
    {.name = "Hugging Face Trainer, one V100 16 GB",
     .source =
         "github.com/huggingface/transformers, perf_train_gpu_one.mdx of its "
         "documentation; "
         "the memory is nvidia-smi's, of which 1343 MiB were taken before the model",
     .beside_mib = 1343,
     .residual = "starting a dozen kernels for each of 390 parameters, the loader and "
                 "logging are not priced, and products of one sample have the rate of "
                 "large ones. The memory is what nvidia-smi shows, so what the "
                 "allocator reserved: the difference grows by about 17 MiB a layer and "
                 "sample, one matrix of scores more than is counted",
     RUNS(trainer)},
};
const int validation_ngroups =
    (int)(sizeof validation_groups / sizeof *validation_groups);
