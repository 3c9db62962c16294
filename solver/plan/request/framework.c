/* framework.c - the table of frameworks, and that of precisions.
 *
 * What the rows say was read in public source at the versions they name:
 *   PyTorch     torch/distributed/fsdp/_fully_shard (what is gathered at once, the f32 shards),
 *               nn/parallel/distributed.py (buckets), distributed/tensor/parallel; the loss in
 *               f32 is transformers'.
 *   DeepSpeed   runtime/zero/config.py (buckets of 5e8, 1e9 parameters live), runtime/config.py
 *               (the batch).
 *   Megatron-LM core/distributed (one f32 gradient buffer), training/arguments.py,
 *               core/optimizer/distrib_optimizer.py,
 *               core/tensor_parallel/cross_entropy.py (the loss in place, in f32; fused by
 *               --cross-entropy-loss-fusion).
 *               training/arguments.py (f32 gradients of bf16 training alone).
 *   Primus      is Megatron-LM with schedules of its own beside (primus/core/pipeline_parallel/scheduler/algorithms), whose
 *               gradients of weights wait as Transformer Engine delays them, with their operands alone
 *               (backends/megatron/core/extensions/te_wgrad_store.py), and whose gradients are reduced after all passes
 *               (docs_deprecated/tech_blogs/primus_pipeline/primus_pipeline.md).
 *   torchtitan  torchtitan/distributed, config/configs.py (FSDP2 throughout; heads that tensor
 *               parallelism has to divide), components/loss.py (chunks; fused where it is compiled).
 * Kernels by year, of releases:
 *   PyTorch     2.0 (2023-03) runs FlashAttention in scaled_dot_product_attention, 2.2 (2024-01)
 *               FlashAttention-2; cuDNN's is not the default.  transformers, which DeepSpeed trains, calls it
 *               from 4.36 (2023-12) on; its RMS norms are written out.  AdamW in one kernel is its default
 *               with PyTorch 2.8 (2025-08), before it was a dozen over lists of tensors; DeepSpeed and
 *               Megatron-LM have one of their own.
 *   Megatron-LM core 0.7 (2024-06) has Transformer Engine's layers by default, whose attention is cuDNN's
 *               on Hopper and FlashAttention before (get_attention_backend of its attention utilities); before, scores go through its own fused softmax unless --use-flash-attn is said.
 *   torchtitan  nn.RMSNorm, one kernel since PyTorch 2.8 (2025-08); AdamW in one kernel by default
 *               since 2025.
 * Merging over context ranks (ring.c has the bytes): Transformer Engine's p2p in Megatron-LM.  torchtitan ran PyTorch's
 *               ring of scaled_dot_product_attention until FlexAttention was its default (pull 3571, 2026-06), which
 *               meets gathered keys and values in one kernel.
 * The host's time a kernel: 8 us of torch.add on 512 x 512 numbers in a row on an A100
 * (github.com/flagos-ai/Torch-FL pull 27, 2026-07), about 7 us of elementwise operators on small tensors
 * (github.com/flagos-ai/FlagGems issue 4812, 2026-07).  Backward, which C++ starts, is taken to be as slow.
 * CUDA graphs replay forward and backward without the host (Megatron-LM docs/user-guide/features/cuda_graph.md, torchtitan
 * config/configs.py, PyTorch torch/cuda/graphs.py); what their pools of memory hold beside is not published.
 * Offloading to the host: FSDP2's CPUOffloadPolicy has the f32 shards, their gradients and the optimizer there
 * (torch/distributed/fsdp/_fully_shard/_fsdp_param.py, v2.14.1), as torchtitan's training.enable_cpu_offload;
 * DeepSpeed's offload_optimizer the states and gradients (runtime/zero/offload_config.py: a ratio of them with ZeRO-3 alone),
 * and offload_param the shards of ZeRO-3; Megatron-LM's --optimizer-cpu-offload the states, by HybridDeviceOptimizer, beside
 * its distributed optimizer (docs of Megatron Core, optimizer_cpu_offload, 2026), and --cpu-offloading-num-layers what layers but
 * the last keep, where nothing is recomputed and there are no stages (core/transformer/transformer_config.py), or what modules
 * keep that --offload-modules of --fine-grained-activation-offloading names (the same file; lower/modules.c); torchtune's and
 * TRL's OffloadActivations what layers keep, on streams of their own.
 * Attention in 8 bits: Megatron Core's fp8_dot_product_attention, which delayed, tensorwise, MXFP8 and NVFP4 recipes
 * take (core/fp8_utils.py, core/fp4_utils.py at d98e8a6); pretrain_gpt.py has no option for it.
 * torchtitan's Float8LinearConverter has had scales by row alone since 2026 (components/quantization/float8.py at b5bcd76).
 * Workspaces: PyTorch keeps one of cuBLAS for each thread's handle, and backward has a thread of its
 * own (aten/src/ATen/cuda/CublasHandlePool.cpp, v2.14.1: 8.125 MiB, of Hopper and Blackwell 32 MiB, of
 * MI300 128 MiB: profiles' workspace_bytes); Transformer Engine one of 4 MiB, from Hopper on 32 MiB
 * (get_cublas_workspace_size_bytes).  Its caching allocator rounds blocks up to 512 bytes
 * (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize).
 * The allocator's share: published peaks of reserved memory lie 5 to 20 %, 12 % on the
 * mean, above what tensors are predicted to take of what comes and goes (torchtitan's
 * four runs of Llama 3 8B in docs/VALIDATION.md), gaps included that are given back when
 * memory runs out.  Two thirds of the mean are taken to be lost. */
#include "request.h"
#include "topt_named.h"
#include "topt_tensor.h"
#include "topt_text.h"

#include <stddef.h>
#include <string.h>

enum {
    WRITTEN = 1 << TOPT_LOSS_WRITTEN,
    IN_PLACE = 1 << TOPT_LOSS_IN_PLACE,
    SAVED = 1 << TOPT_LOSS_SAVED,
    FUSED = 1 << TOPT_LOSS_FUSED,
    CHUNKED = 1 << TOPT_LOSS_CHUNKED,
    NONE = 1 << TOPT_ZERO_NONE,
    STATE = 1 << TOPT_ZERO_STATE,
    GRADIENT = 1 << TOPT_ZERO_GRADIENT,
    PARAM = 1 << TOPT_ZERO_PARAM,
    ALL = NONE | STATE | GRADIENT | PARAM,
    TABLES = 1 << TOPT_ZERO_SPARSE | 1 << TOPT_ZERO_OWNER,
    UNFUSED = TOPT_EAGER_OPERATORS | TOPT_EAGER_NORMS,
    WITH_GRADIENTS = TOPT_OFFLOAD_STATE | TOPT_OFFLOAD_GRADIENT,
    WITH_PARAMETERS = WITH_GRADIENTS | TOPT_OFFLOAD_PARAM
};
#define ON_HOST_FSDP                                                                     \
    [TOPT_OFFER_PARAMETERS] = {.away = WITH_PARAMETERS, .levels = GRADIENT | PARAM}
enum {
    BF16_MIXED,
    BF16,
    FP16_MIXED,
    FP8_DELAYED,
    FP8_TENSORWISE,
    FP8_ROWWISE,
    FP8_BLOCKWISE,
    MXFP8,
    NVFP4,
    F32,
    F64,
    PRECISIONS
};
enum {
    WIDE = 1 << BF16_MIXED | 1 << BF16 | 1 << F32 | 1 << F64,
    SCALED = WIDE | 1 << FP16_MIXED, /* it scales the loss */
    TORCHAO = 1 << FP8_TENSORWISE | 1 << FP8_ROWWISE | 1 << MXFP8,
    ENGINE = 1 << FP8_DELAYED | 1 << FP8_TENSORWISE | 1 << FP8_BLOCKWISE | 1 << MXFP8 |
             1 << NVFP4 /* Transformer Engine */
};
enum { HOST_NS = 8000 };

/* Traits that rows share: of what PyTorch runs, of its FSDP2 with torchao, of frameworks whose degrees are searched. */
#define PYTORCH                                                                          \
    .uniform_only = 1, .allocator_permille = 80, .host_ns = HOST_NS, .workspaces = 2
#define FSDP2                                                                            \
    .low_apart = 1, .low_params = 1 << TOPT_LOW_TENSORWISE, .gradient_f32 = 1,           \
    .shard_f32 = 1, .unsharded_sums = 1, .overlap = TOPT_OVERLAP_FSDP,                   \
    .gather = TOPT_GATHER_UNIT
#define SEARCHED                                                                         \
    .tensor_most = TOPT_TENSOR_ANYWHERE, .pipeline = TOPT_PIPELINE_SEARCHED,             \
    .replicas_searched = 1, .expert = TOPT_EXPERT_SEARCHED, .tensor_overlap = 1,         \
    .lacks = "context parallelism (--context N)"
#define KEPT_ON_HOST                                                                     \
    [TOPT_OFFER_ACTIVATIONS] = {.away = TOPT_OFFLOAD_ACTIVATIONS, .levels = ALL}
#define MODULE(name, word)                                                               \
    [TOPT_OFFER_##name] = {.away = TOPT_OFFLOAD_OF(name), .levels = ALL, .keeps = 2},
#define ON_HOST_STATES                                                                   \
    [TOPT_OFFER_OPTIMIZER] = {.away = TOPT_OFFLOAD_STATE, .levels = STATE, .part = STATE}
#define MEGATRON_ORDERS                                                                  \
    (1 << TOPT_ORDER_1F1B | 1 << TOPT_ORDER_INTERLEAVED | 1 << TOPT_ORDER_COMBINED)
#define MEGATRON                                                                         \
    .gradient_f16 = 1, .zero = NONE | STATE,                                             \
    .level = {"data parallel", "data parallel with the distributed optimizer"},          \
    .tensor = TOPT_TENSOR_NODE, .rules = &topt_tensor_megatron,                          \
    .pipeline_levels = NONE | STATE, .empty_chunks = 1, .replica_levels = STATE,         \
    .can_modules = TOPT_MODULE_OP - 2, .recompute_first = 1,                             \
    .expert_levels = NONE | STATE, .expert_tensor = 1,                                   \
    .context = TOPT_CONTEXT_RING | TOPT_CONTEXT_HEADS,                                   \
    .regather = TOPT_REGATHER_PRODUCTS, .vocab_multiple = 128, .gradient_f32 = 1,        \
    .overlap = TOPT_OVERLAP_DDP, .losses = IN_PLACE | FUSED, .loss = TOPT_LOSS_IN_PLACE, \
    SEARCHED, PYTORCH, .positions_first = 1, .engine = 1
static const struct topt_framework frameworks[] = {
    {.name = "pytorch",
     .title = "PyTorch (DDP, FSDP2)",
     .source = "github.com/pytorch/pytorch v2.14.1 (2026-10-20)",
     .precisions = SCALED | TORCHAO,
     .zero = ALL,
     .level = {"DDP", "DDP with ZeroRedundancyOptimizer",
               "FSDP2 without resharding after forward", "FSDP2"},
     .tensor = TOPT_TENSOR_LAST,
     .tensor_most = TOPT_TENSOR_ANYWHERE,
     .tensor_needs = "the script must apply tensor parallelism (DTensor's "
                     "parallelize_module); a plain FSDP script does not",
     .rules = &topt_tensor_pytorch,
     .pipeline_orders =
         1 << TOPT_ORDER_GPIPE | 1 << TOPT_ORDER_1F1B | 1 << TOPT_ORDER_INTERLEAVED,
     .pipeline_levels = NONE | GRADIENT,
     .replica_levels = GRADIENT | PARAM,
     .expert_levels = GRADIENT | PARAM,
     .deepep = 1,
     .lacks = "context parallelism",
     .rest_f32 = 1,
     .losses = WRITTEN | SAVED | FUSED | CHUNKED,
     .loss = TOPT_LOSS_WRITTEN,
     .software = {{2026, TOPT_ATTENTION_FLASH2, UNFUSED, 0, 0, TOPT_MERGE_NONE},
                  {2025, TOPT_ATTENTION_FLASH2, UNFUSED, 0, 1, TOPT_MERGE_NONE},
                  {2024, TOPT_ATTENTION_FLASH2, UNFUSED | TOPT_EAGER_OPTIMIZER, 0, 1,
                   TOPT_MERGE_NONE},
                  {2023, TOPT_ATTENTION_FLASH1, UNFUSED | TOPT_EAGER_OPTIMIZER, 0, 0,
                   TOPT_MERGE_NONE},
                  {0, TOPT_ATTENTION_FLASH1,
                   UNFUSED | TOPT_EAGER_SCORES | TOPT_EAGER_OPTIMIZER, 0, 0,
                   TOPT_MERGE_NONE}},
     .cuda_graphs = 1,
     .offers = {ON_HOST_FSDP, KEPT_ON_HOST},
     .muon_levels = NONE,
     FSDP2,
     PYTORCH},
    {.name = "deepspeed",
     .title = "DeepSpeed (ZeRO)",
     .source = "github.com/deepspeedai/DeepSpeed edaa722 (2026-08-22)",
     .precisions = SCALED,
     .zero = ALL,
     .level = {"data parallel", "ZeRO-1", "ZeRO-2", "ZeRO-3"},
     .tensor = TOPT_TENSOR_NEVER,
     .tensor_most = TOPT_TENSOR_NODE,
     .tensor_needs = "DeepSpeed's AutoTP supports models of transformers only",
     .pipeline_orders = 1 << TOPT_ORDER_1F1B,
     .pipeline_levels = NONE | STATE,
     .stages_alone = 1, /* AutoTP takes no PipelineModule */
     .even_stages = 1,
     .lacks = "expert parallelism",
     .overlap = TOPT_OVERLAP_FSDP,
     .gather = TOPT_GATHER_POOL,
     .rest_f32 = 1,
     .losses = WRITTEN | FUSED | CHUNKED,
     .loss = TOPT_LOSS_WRITTEN,
     .software = {{2024, TOPT_ATTENTION_FLASH2, UNFUSED, 0, 0, TOPT_MERGE_NONE},
                  {0, TOPT_ATTENTION_FLASH1, UNFUSED | TOPT_EAGER_SCORES, 0, 0,
                   TOPT_MERGE_NONE}},
     .pool_numbers = 1000000000,
     .bucket_numbers = 500000000,
     .offers = {[TOPT_OFFER_OPTIMIZER] = {.away = WITH_GRADIENTS,
                                          .levels = GRADIENT | PARAM,
                                          .part = PARAM},
                [TOPT_OFFER_PARAMETERS] = {.away = WITH_PARAMETERS, .levels = PARAM}},
     .muon_levels = NONE | STATE | GRADIENT,
     .muon = TOPT_MUON_GRAM,
     PYTORCH},
    {.name = "megatron",
     .title = "Megatron-LM",
     .source = "github.com/NVIDIA/Megatron-LM d98e8a6 (2026-08-22)",
     .precisions = SCALED | ENGINE,
     .low_params = ~0,
     .pipeline_orders = MEGATRON_ORDERS | 1 << TOPT_ORDER_COMBINED_V,
     .fork_orders = 1 << TOPT_ORDER_COMBINED_V, /* MindSpeed (gitee.com/ascend) */
     .deepep = 1,
     .software = {{2024, TOPT_ATTENTION_CUDNN, 0, 1, 0, TOPT_MERGE_FUSED},
                  {0, TOPT_ATTENTION_FLASH1, UNFUSED | TOPT_EAGER_SCORES, 0, 0,
                   TOPT_MERGE_FUSED}},
     .cuda_graphs = 1,
     .offers = {ON_HOST_STATES,
                [TOPT_OFFER_ACTIVATIONS] = {.away = TOPT_OFFLOAD_ACTIVATIONS,
                                            .levels = ALL,
                                            .keeps = 1},
                TOPT_OFFLOAD_MODULE_NAMES(MODULE)},
     .muon_levels = NONE | STATE,
     .muon = TOPT_MUON_WHOLE,
     .low_attention = 1 << TOPT_LOW_DELAYED | 1 << TOPT_LOW_TENSORWISE |
                      1 << TOPT_LOW_MXFP8 | 1 << TOPT_LOW_NVFP4,
     MEGATRON},
    {.name = "primus",
     .title = "Primus (Megatron-LM)",
     .source = "github.com/AMD-AGI/Primus fd1eeab (2026-08-22)",
     .precisions = SCALED | (ENGINE & ~(1 << NVFP4)),
     .low_params = ~(1 << TOPT_LOW_MXFP8),
     .pipeline_orders = MEGATRON_ORDERS | 1 << TOPT_ORDER_ZB_H1 | 1 << TOPT_ORDER_ZBV,
     .operands_wait = 1,
     .software = {{0, TOPT_ATTENTION_FLASH2, 0, 1, 0, TOPT_MERGE_FUSED}},
     .offers = {ON_HOST_STATES},
     MEGATRON},
    {.name = "torchtitan",
     .title = "torchtitan",
     .source = "github.com/pytorch/torchtitan b5bcd76 (2026-08-21)",
     .precisions = WIDE | 1 << FP8_ROWWISE | 1 << MXFP8 | 1 << NVFP4,
     .low_compiled = 1,
     .gone = 1 << FP8_TENSORWISE,
     .gone_since = 2026,
     .zero = NONE | GRADIENT | PARAM,
     .level = {[TOPT_ZERO_NONE] = "data parallel",
               [TOPT_ZERO_GRADIENT] = "FSDP without resharding after forward",
               [TOPT_ZERO_PARAM] = "FSDP"},
     .tensor = TOPT_TENSOR_NODE,
     .rules = &topt_tensor_torchtitan,
     .pipeline_orders = 1 << TOPT_ORDER_GPIPE | 1 << TOPT_ORDER_1F1B |
                        1 << TOPT_ORDER_INTERLEAVED | 1 << TOPT_ORDER_ZB_H1 |
                        1 << TOPT_ORDER_INTERLEAVED_ZB | 1 << TOPT_ORDER_ZBV |
                        1 << TOPT_ORDER_DUALPIPE_V,
     .pipeline_levels = NONE | GRADIENT,
     .replica_levels = GRADIENT | PARAM,
     .expert_levels = GRADIENT | PARAM,
     .can_modules = TOPT_MODULE_OP,
     .context = TOPT_CONTEXT_GATHER,
     .regather = TOPT_REGATHER_KEYS,
     .losses = WRITTEN | FUSED | CHUNKED,
     .loss = TOPT_LOSS_CHUNKED,
     .software = {{2026, TOPT_ATTENTION_FLASH2, TOPT_EAGER_OPERATORS, 0, 0,
                   TOPT_MERGE_NONE},
                  {2025, TOPT_ATTENTION_FLASH2, TOPT_EAGER_OPERATORS, 0, 1,
                   TOPT_MERGE_EAGER},
                  {0, TOPT_ATTENTION_FLASH2, UNFUSED | TOPT_EAGER_OPTIMIZER, 0, 1,
                   TOPT_MERGE_EAGER}},
     .cuda_graphs = 1,
     .offers = {ON_HOST_FSDP},
     FSDP2,
     SEARCHED,
     PYTORCH},
    {.name = "topt",
     .title = "topt run",
     .source = "this project",
     .precisions = SCALED,
     .zero = ALL | TABLES,
     .level = {"data parallel", "ZeRO-1", "ZeRO-2", "FSDP (ZeRO-3)"},
     .tensor = TOPT_TENSOR_ANYWHERE,
     .tensor_most = TOPT_TENSOR_ANYWHERE,
     .losses = FUSED,
     .loss = TOPT_LOSS_FUSED,
     .software = {{0, TOPT_ATTENTION_OWN, 0, 0, 0, TOPT_MERGE_NONE}}},
};
enum { FRAMEWORKS = sizeof frameworks / sizeof *frameworks };

#define LOW(row, text, scaling, what)                                                    \
    [row] = {text, TOPT_BF16,                                                            \
             0,    TOPT_LOW_##scaling,                                                   \
             0,    "products of layers in " what "; the rest as bf16-mixed"}
static const struct topt_precision precisions[PRECISIONS] = {
    [BF16_MIXED] = {"bf16-mixed", TOPT_BF16, 0, TOPT_LOW_NONE, 1,
                    "computes in bf16; master weights and optimizer state in f32"},
    [BF16] = {"bf16", TOPT_BF16, 1, TOPT_LOW_NONE, 0,
              "weights, gradients and optimizer state in bf16"},
    [FP16_MIXED] = {"fp16-mixed", TOPT_F16, 0, TOPT_LOW_NONE, 1,
                    "computes in fp16, its loss scaled; master weights and optimizer "
                    "state in f32"},
    LOW(FP8_DELAYED, "fp8-delayed", DELAYED, "FP8 with scales from past steps"),
    LOW(FP8_TENSORWISE, "fp8-tensorwise", TENSORWISE, "FP8 with a scale for each tensor"),
    LOW(FP8_ROWWISE, "fp8-rowwise", ROWWISE, "FP8 with a scale for each row"),
    LOW(FP8_BLOCKWISE, "fp8-blockwise", BLOCKWISE,
        "FP8 with scales for 128 activations and 128 x 128 weights"),
    LOW(MXFP8, "mxfp8", MXFP8, "MXFP8 (a scale for 32 numbers)"),
    LOW(NVFP4, "nvfp4", NVFP4, "NVFP4 (a scale for 16 numbers)"),
    [F32] = {"f32", TOPT_F32, 0, TOPT_LOW_NONE, 1, "everything in f32"},
    [F64] = {"f64", TOPT_F64, 0, TOPT_LOW_NONE, 0, "everything in f64"},
};

const struct topt_software *topt_framework_software(const struct topt_framework *f,
                                                    int64_t year)
{
    const struct topt_software *age = f->software;
    while (year && age->since > year)
        age++;
    return age;
}

TOPT_NAMED_HERE(topt_framework_name, FRAMEWORKS, frameworks[i].name)
TOPT_NAMED(topt_precision_name, unsigned, PRECISIONS, precisions[i].name)

/* The rows of a table by place and by name. */
#define TABLE_BY_NAME(what, rows, n)                                                     \
    const struct topt_##what *topt_##what##_at(int i)                                    \
    {                                                                                    \
        return i >= 0 && i < n ? &rows[i] : NULL;                                        \
    }                                                                                    \
    int topt_##what##_find(const char *name, const struct topt_##what **ret,             \
                           struct topt_error *err)                                       \
    {                                                                                    \
        unsigned i = 0;                                                                  \
        int rc = topt_name_find(#what, name, topt_##what##_name, n, &i, err);            \
        *ret = rc ? *ret : &rows[i];                                                     \
        return rc;                                                                       \
    }
TABLE_BY_NAME(framework, frameworks, FRAMEWORKS)
TABLE_BY_NAME(precision, precisions, PRECISIONS)

char *topt_framework_not_searched(const struct topt_framework *f, int staged, int context)
{
    int asked = f && f->pipeline_orders && f->pipeline == TOPT_PIPELINE_ASKED;
    struct topt_text t = {0};
    if (!f || !f->lacks || (f->context && context)) /* it is all that is lacking */
        return NULL;
    const char *levels = strstr(f->title, " (");
    int len = (int)(levels ? (size_t)(levels - f->title) : strlen(f->title));
    topt_text_add(&t, "%s%s, which %.*s supports", f->lacks,
                  asked && !staged ? " and pipeline stages (--pipeline N)" : "", len,
                  f->title);
    return topt_text_take(&t);
}

int topt_framework_trains(const struct topt_framework *f, const struct topt_precision *p,
                          int64_t year)
{
    int had = year && year < f->gone_since ? f->precisions | f->gone : f->precisions;
    return had >> (p - precisions) & 1;
}

const struct topt_precision *topt_precision_of(const struct topt_settings *s)
{
    int i = 0;
    while (i + 1 < PRECISIONS &&
           (precisions[i].dtype != s->dtype || precisions[i].low != s->low ||
            precisions[i].state_bf16 != s->state_bf16))
        i++;
    return &precisions[i];
}
