/* framework.c - the table of frameworks, and that of precisions.
 *
 * What the rows say was read in public source at the versions they name:
 *   PyTorch     torch/distributed/fsdp/_fully_shard (what is gathered at once, the f32 shards),
 *               nn/parallel/distributed.py (buckets), distributed/tensor/parallel; the loss in
 *               f32 is transformers'.
 *   DeepSpeed   runtime/zero/config.py (buckets of 5e8, 1e9 parameters live), runtime/config.py
 *               (the batch).
 *   Megatron-LM core/distributed (one f32 gradient buffer), training/arguments.py,
 *               core/optimizer/distrib_optimizer.py.
 *   torchtitan  torchtitan/distributed, config/configs.py (FSDP2 throughout; heads that tensor
 *               parallelism has to divide).
 * The allocator's share: published peaks of reserved memory lie 5 to 20 %, 12 % on the
 * mean, above what tensors are predicted to take of what comes and goes (torchtitan's
 * four runs of Llama 3 8B in docs/VALIDATION.md), gaps included that are given back when
 * memory runs out.  Two thirds of the mean are taken to be lost. */
#include "request.h"
#include "topt_tensor.h"
#include "topt_text.h"

#include <stddef.h>
#include <string.h>

enum {
    NONE = 1 << TOPT_ZERO_NONE,
    STATE = 1 << TOPT_ZERO_STATE,
    GRADIENT = 1 << TOPT_ZERO_GRADIENT,
    PARAM = 1 << TOPT_ZERO_PARAM,
    ALL = NONE | STATE | GRADIENT | PARAM,
    TABLES = 1 << TOPT_ZERO_SPARSE | 1 << TOPT_ZERO_OWNER
};

static const struct topt_framework frameworks[] = {
    {.name = "pytorch",
     .title = "PyTorch (DDP, FSDP2)",
     .source = "github.com/pytorch/pytorch v2.14.1 (2026-10-20)",
     .uniform_only = 1,
     .zero = ALL,
     .level = {"DDP", "DDP with ZeroRedundancyOptimizer",
               "FSDP2 without resharding after forward", "FSDP2"},
     .tensor = TOPT_TENSOR_LAST,
     .tensor_most = TOPT_TENSOR_ANYWHERE,
     .tensor_needs = "the script must apply tensor parallelism (DTensor's "
                     "parallelize_module); a plain FSDP script does not",
     .rules = &topt_tensor_pytorch,
     .lacks = "pipeline and context parallelism",
     .gradient_f32 = 1,
     .shard_f32 = 1,
     .overlap = TOPT_OVERLAP_FSDP,
     .eager = TOPT_EAGER_OPERATORS | TOPT_EAGER_LOSS,
     .gather = TOPT_GATHER_UNIT,
     .attention = TOPT_ATTENTION_FLASH2,
     .allocator_permille = 80},
    {.name = "deepspeed",
     .title = "DeepSpeed (ZeRO)",
     .source = "github.com/deepspeedai/DeepSpeed edaa722 (2026-08-22)",
     .uniform_only = 1,
     .zero = ALL,
     .level = {"data parallel", "ZeRO-1", "ZeRO-2", "ZeRO-3"},
     .tensor = TOPT_TENSOR_NEVER,
     .tensor_most = TOPT_TENSOR_NODE,
     .tensor_needs = "DeepSpeed's AutoTP supports models of transformers only",
     .lacks = "pipelines, expert parallelism and offloading to the host",
     .overlap = TOPT_OVERLAP_FSDP,
     .eager = TOPT_EAGER_OPERATORS | TOPT_EAGER_LOSS,
     .gather = TOPT_GATHER_POOL,
     .attention = TOPT_ATTENTION_FLASH2,
     .pool_numbers = 1000000000,
     .bucket_numbers = 500000000,
     .allocator_permille = 80},
    {.name = "megatron",
     .title = "Megatron-LM",
     .source = "github.com/NVIDIA/Megatron-LM d98e8a6 (2026-08-22)",
     .uniform_only = 1,
     .zero = NONE | STATE,
     .level = {"data parallel", "data parallel with the distributed optimizer"},
     .tensor = TOPT_TENSOR_NODE,
     .tensor_most = TOPT_TENSOR_ANYWHERE,
     .rules = &topt_tensor_megatron,
     .lacks = "pipeline, expert and context parallelism",
     .vocab_multiple = 128,
     .gradient_f32 = 1,
     .overlap = TOPT_OVERLAP_DDP,
     .eager = TOPT_EAGER_LOSS,
     .attention = TOPT_ATTENTION_CUDNN,
     .allocator_permille = 80},
    {.name = "torchtitan",
     .title = "torchtitan",
     .source = "github.com/pytorch/torchtitan b5bcd76 (2026-08-21)",
     .uniform_only = 1,
     .zero = NONE | GRADIENT | PARAM,
     .level = {[TOPT_ZERO_NONE] = "data parallel",
               [TOPT_ZERO_GRADIENT] = "FSDP without resharding after forward",
               [TOPT_ZERO_PARAM] = "FSDP"},
     .tensor = TOPT_TENSOR_LAST,
     .tensor_most = TOPT_TENSOR_ANYWHERE,
     .rules = &topt_tensor_torchtitan,
     .lacks = "pipeline, expert and context parallelism",
     .gradient_f32 = 1,
     .shard_f32 = 1,
     .overlap = TOPT_OVERLAP_FSDP,
     .eager = TOPT_EAGER_OPERATORS,
     .gather = TOPT_GATHER_UNIT,
     .attention = TOPT_ATTENTION_FLASH2,
     .allocator_permille = 80},
    {.name = "topt",
     .title = "topt run",
     .source = "this project",
     .zero = ALL | TABLES,
     .level = {"data parallel", "ZeRO-1", "ZeRO-2", "FSDP (ZeRO-3)"},
     .tensor = TOPT_TENSOR_ANYWHERE,
     .tensor_most = TOPT_TENSOR_ANYWHERE,
     .attention = TOPT_ATTENTION_FLASH2},
};
enum { FRAMEWORKS = sizeof frameworks / sizeof *frameworks };

static const struct topt_precision precisions[] = {
    {"bf16-mixed", TOPT_BF16, 0,
     "computes in bf16; master weights and optimizer state in f32"},
    {"bf16", TOPT_BF16, 1, "weights, gradients and optimizer state in bf16"},
    {"f32", TOPT_F32, 0, "everything in f32"},
    {"f64", TOPT_F64, 0, "everything in f64"},
};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

const struct topt_framework *topt_framework_at(int i)
{
    return i >= 0 && i < FRAMEWORKS ? &frameworks[i] : NULL;
}

static const char *framework_name(unsigned i)
{
    return frameworks[i].name;
}

static const char *precision_name(unsigned i)
{
    return precisions[i].name;
}

char *topt_framework_not_searched(const struct topt_framework *f)
{
    struct topt_text t = {0};
    if (!f || !f->lacks)
        return NULL;
    const char *levels = strstr(f->title, " (");
    int len = (int)(levels ? (size_t)(levels - f->title) : strlen(f->title));
    topt_text_add(&t, "%s, which %.*s supports", f->lacks, len, f->title);
    return topt_text_take(&t);
}

int topt_framework_find(const char *name, const struct topt_framework **ret,
                        struct topt_error *err)
{
    unsigned i;
    if (topt_name_find("framework", name, framework_name, FRAMEWORKS, &i, err))
        return -1;
    *ret = &frameworks[i];
    return 0;
}

int topt_precision_find(const char *name, const struct topt_precision **ret,
                        struct topt_error *err)
{
    unsigned i;
    if (topt_name_find("precision", name, precision_name, PRECISIONS, &i, err))
        return -1;
    *ret = &precisions[i];
    return 0;
}

const struct topt_precision *topt_precision_of(const struct topt_settings *s)
{
    int i = 0;
    while (i + 1 < PRECISIONS &&
           (precisions[i].dtype != s->dtype || precisions[i].state_bf16 != s->state_bf16))
        i++;
    return &precisions[i];
}
