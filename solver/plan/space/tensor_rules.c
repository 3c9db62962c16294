/* tensor_rules.c - what frameworks' tensor parallelism does, a row each.
 *
 *   pytorch     solver/launch/topt_apply.py: ColwiseParallel and RowwiseParallel on the linear
 *               modules of blocks, which take and give whole tensors; untied ends by the vocabulary
 *               with logits gathered; tied ends are left whole; no rule for experts.
 *   Megatron    core/tensor_parallel/layers.py (ColumnParallelLinear, RowParallelLinear,
 *               VocabParallelEmbedding; with sequence_parallel the input is gathered and the sum
 *               scattered), cross_entropy.py; core/transformer/moe/experts.py (the inner features
 *               of each expert), token_dispatcher.py (alltoall gathers and scatters slots around
 *               them) and training/arguments.py (experts with tensor parallelism need
 *               --sequence-parallel).
 *   torchtitan  models/common/decoder_sharding.py (embedding, norms, products and lm_head, whose
 *               logits stay split: components/loss.py) and moe_sharding.py (without expert
 *               parallelism each expert is split by columns and rows; the router is whole);
 *               config/configs.py: enable_sequence_parallel is on by default. */
#include "topt_tensor.h"

#include "topt_lower.h"

/* DistributedDataParallel does not take parameters that are split: fully_shard alone does. */
enum { UNITS = 1 << TOPT_ZERO_GRADIENT | 1 << TOPT_ZERO_PARAM };

/* Layers by columns and rows, norms and residual sums by positions, and the loss on split logits. */
#define BY_ROLE .positions = 1, .tied_ends = 1, .split_loss = 1, .experts = 1
const struct topt_tensor_rules
    topt_tensor_pytorch = {.title = "PyTorch (topt_apply.py)",
                           .source = "solver/launch/topt_apply.py with "
                                     "torch.distributed.tensor.parallel of v2.14.1",
                           .levels = UNITS},
    topt_tensor_megatron = {.title = "Megatron-LM",
                            .source = "github.com/NVIDIA/Megatron-LM d98e8a6 "
                                      "(2026-08-22): core/tensor_parallel, "
                                      "core/transformer, training/arguments.py",
                            BY_ROLE,
                            .experts_need_positions = 1},
    topt_tensor_torchtitan = {.title = "torchtitan",
                              .source = "github.com/pytorch/torchtitan b5bcd76 "
                                        "(2026-08-21): models/common",
                              BY_ROLE,
                              .levels = UNITS},
    topt_tensor_context = {.title = "context parallelism",
                           .source = "github.com/NVIDIA/Megatron-LM d98e8a6 "
                                     "(2026-08-22): cp_comm_type of "
                                     "core/transformer/transformer_config.py",
                           .positions = 1,
                           .context = 1};
