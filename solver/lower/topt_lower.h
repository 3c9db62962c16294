/* topt_lower.h - (model, strategy) -> the program that every rank runs.
 *
 * There is one description of what a configuration does: the fragment written here.
 * Written into a sink that adds up, a fragment is a cost; written into a sink that
 * records, it is the program the runtime executes.  All ranks run the same program; a
 * buffer's local box follows from its shape, its layout and the rank.
 *
 * A step of training is: start the gradients from zero; for each micro-batch, for each
 * operator in order, bring its inputs into the layout its configuration wants (moves),
 * run its forward steps; then in reverse order bring back what was not kept, run its
 * backward steps, and move its input gradients to the layout their producers want; at
 * the end reduce the gradients of parameters over their replicas and update every
 * parameter.
 *
 * Micro-batches: the model that is lowered and costed is that of one micro-batch
 * (topt_model_rebatch); settings.micro_batches says how often a step runs it.
 *
 * Thread safety: a finished program is only read; lowering is reentrant with a router
 * each. */
#ifndef TOPT_LOWER_H
#define TOPT_LOWER_H

#include <stdatomic.h>
#include <stdint.h>

#include "topt_layout.h"
#include "topt_model.h"
#include "topt_pipeline.h"
#include "topt_stages.h"
#include "topt_step.h"
#include "topt_symmetry_bound.h"

enum topt_optimizer {
    TOPT_SGD,
    TOPT_MOMENTUM,
    TOPT_ADAM,
    TOPT_ADAMW, /* weights decay apart from the gradient (Loshchilov and Hutter 2019) */
    TOPT_ADAFACTOR, /* means of rows and of columns (Shazeer and Stern 2018); plans only */
    TOPT_ADAMW_BF16, /* moments in bf16, computed with in f32 (DeepSeek-AI, DeepSeek-V3, 2024); plans only */
    TOPT_ADAM8, /* states of 8 bits in blocks of 2048 (Dettmers et al. 2022); plans only */
    /* States in managed memory, which leaves the device where that runs short (Dettmers et al., QLoRA,
     * 2023), so that none count; what moving them takes is not priced; plans only. */
    TOPT_PAGED_ADAMW,
    TOPT_PAGED_ADAMW8,
    /* Adagrad (Duchi et al. 2011) with one state a row of the last dimension, which adds up the
     * mean of the row's squared gradients; of vectors one a number.  As DLRM's tables are trained
     * (Mudigere et al. 2022). */
    TOPT_ROW_WISE_ADAGRAD,
    TOPT_MUON, /* one momentum of matrices, made orthogonal; the rest by AdamW (muon.c); plans only */
    TOPT_OPTIMIZER_COUNT
};
const char *topt_optimizer_name(enum topt_optimizer o);
int topt_optimizer_runs(enum topt_optimizer o); /* 0: plans count its bytes, no more */

/* The bytes that memory_bytes counts. */
enum topt_accounting {
    TOPT_ACCOUNTING_RUN, /* what a run needs */
    /* The papers' count (Cai et al., TensorOpt, 2020), which no run could live on: 4 bytes a
     * parameter, and twice every output that is not fused with the operator before it, with
     * the tensors made inside. */
    TOPT_ACCOUNTING_PAPER,
    /* The papers' count, where a tensor that is kept in another layout than where it was
     * made counts once more: their tensor reuse, for which memory buys time. */
    TOPT_ACCOUNTING_PAPER_REUSE,
    /* Only bytes that every strategy has at one moment, between forward and backward: a sum that a
     * step's peak is never below, for searches of strategies whose memory is their schedule's. */
    TOPT_ACCOUNTING_LEAST,
    TOPT_ACCOUNTING_COUNT = TOPT_ACCOUNTING_LEAST /* of those that questions name */
};
const char *topt_accounting_name(enum topt_accounting a);
int topt_accounting_is_papers(enum topt_accounting a);

/* Which communication the executing system runs beside computation.  Our runtime:
 * none. */
enum topt_overlap {
    TOPT_OVERLAP_NONE,
    TOPT_OVERLAP_DDP, /* gradients are reduced behind backward (Li et al., VLDB 2020) */
    TOPT_OVERLAP_FSDP, /* and sharded parameters are gathered ahead (Zhao et al., VLDB 2023) */
    TOPT_OVERLAP_COUNT
};
const char *topt_overlap_name(enum topt_overlap o);

/* The transfers that a system overlaps with computation; and parameters that are there already. */
enum topt_async {
    TOPT_ASYNC_NOTHING,
    TOPT_ASYNC_GRADIENT,
    TOPT_ASYNC_PARAM,
    TOPT_ASYNC_SHARED
};
int topt_overlap_has(enum topt_overlap o, enum topt_async what); /* does it? */

/* The parts of a step that PyTorch's own kernels run one after the other, in place of fused
 * ones; bits.  Our runtime: none. */
enum topt_eager_part {
    TOPT_EAGER_OPERATORS = 1, /* but losses; attention is one kernel there too */
    /* ... and made of products that write scores, as before 2022 */
    TOPT_EAGER_SCORES = 2,
    TOPT_EAGER_LOSS = 4, /* of questions alone: settings.loss is then no fused one */
    TOPT_EAGER_OPTIMIZER = 8,
    /* of operators: RMS norm is written out, not PyTorch's one kernel */
    TOPT_EAGER_NORMS = 16,
    TOPT_EAGER_METRICS = 32, /* the trainer makes metrics of the logits for its log */
    TOPT_EAGER_LOOP = 64     /* the optimizer's steps are kernels of each parameter */
};

/* The buffers that the executing system holds beside the program's own where parameters are
 * sharded. */
enum topt_gather {
    TOPT_GATHER_OPERATOR, /* an operator's parameters at a time, inside the arena: our runtime */
    /* Units of parameters as PyTorch's FSDP2 and DDP hold them: everything outside of
     * the model's units is one, which stays gathered; of units two are at once, the second
     * one prefetched. */
    TOPT_GATHER_UNIT,
    TOPT_GATHER_POOL, /* shares of all parameters: pools of a fixed size (DeepSpeed) */
    TOPT_GATHER_COUNT
};
const char *topt_gather_name(enum topt_gather g);

/* Which copy of an operand that moves on its way to an operator is kept for backward: the one that is read, or the one that
 * moved, which then moves once more.  Bits; without any, a strategy says so for each operand.  FIXED: the executing system says
 * so, and keeps the one that is read, but for what tensor ranks gather for products, and for keys and values that context ranks
 * gather, where their bits are set. */
enum topt_regather {
    TOPT_REGATHER_FIXED = 1,
    TOPT_REGATHER_PRODUCTS = 2,
    TOPT_REGATHER_KEYS = 4
};

/* Types of few bits in which products of layers run, by how their numbers are scaled (low.c). */
enum topt_low {
    TOPT_LOW_NONE,
    TOPT_LOW_DELAYED,
    TOPT_LOW_TENSORWISE,
    TOPT_LOW_ROWWISE,
    TOPT_LOW_BLOCKWISE,
    TOPT_LOW_MXFP8,
    TOPT_LOW_NVFP4,
    TOPT_LOW_COUNT
};
const char *topt_low_name(enum topt_low r);
/* The type of these products, of which profiles have the rates. */
enum topt_dtype topt_low_type(enum topt_low r);
/* How tokens go to experts on other devices, and back. */
enum topt_dispatch {
    TOPT_DISPATCH_ALLTOALL, /* once for each of a token's experts: NCCL's all-to-all */
    /* Once to each node that has some of them, or inside of one to each device: DeepEP.  The rate of what is sent is
     * the profile's of all-to-all: 43 to 58 GB/s between nodes with NICs of 50 GB/s, 153 GB/s inside of one of H800
     * (github.com/deepseek-ai/DeepEP, docs/legacy.md, 2025). */
    TOPT_DISPATCH_DEEPEP,
    TOPT_DISPATCH_COUNT
};
const char *topt_dispatch_name(enum topt_dispatch d);
/* The kernels that merge the partial outputs of attention over context ranks, and accumulate its gradients (ring.c). */
enum topt_merge {
    TOPT_MERGE_NONE, /* nothing: one kernel meets all of them */
    TOPT_MERGE_FUSED, /* Transformer Engine's p2p: a fused kernel a step, in the type of activations */
    TOPT_MERGE_EAGER, /* PyTorch's: operators one by one, in f32 */
    TOPT_MERGE_COUNT
};
const char *topt_merge_name(enum topt_merge m);
struct topt_settings;
/* The share of a device's multiprocessors that sending tokens occupies: NCCL's kernels that of the profile, DeepEP's
 * 20 of 132 (DeepSeek-AI, DeepSeek-V3, 2024, 3.2.2). */
double topt_dispatch_share(const struct topt_settings *s, const struct topt_hw *hw);

/* What rests in the host's memory, which devices reach by a link of their own; bits.  Of the optimizer's states a
 * fraction may, and their part of parameters is updated by the host. */
enum topt_offload {
    TOPT_OFFLOAD_STATE = 1,
    TOPT_OFFLOAD_GRADIENT = 2,
    TOPT_OFFLOAD_PARAM = 4,
    TOPT_OFFLOAD_ACTIVATIONS = 8, /* what layers but the last keep for backward */
    TOPT_OFFLOAD_MODULES = 2032,  /* ... of which what these modules keep */
    TOPT_OFFLOAD_KEPT = 2040
};
/* Modules that Megatron-LM's fine-grained offloading names; the first one's bit is 16. */
#define TOPT_OFFLOAD_MODULE_NAMES(X)                                                     \
    X(ATTN_NORM, "attn_norm")                                                            \
    X(QKV_LINEAR, "qkv_linear")                                                          \
    X(CORE_ATTN, "core_attn")                                                            \
    X(ATTN_PROJ, "attn_proj")                                                            \
    X(MLP_NORM, "mlp_norm") X(EXPERT_FC1, "expert_fc1") X(MOE_ACT, "moe_act")
enum topt_offload_module {
#define TOPT_OFFLOAD_PLACE(name, word) TOPT_PLACE_##name,
    TOPT_OFFLOAD_MODULE_NAMES(TOPT_OFFLOAD_PLACE)
};
#define TOPT_OFFLOAD_OF(name) (16 << TOPT_PLACE_##name)

/* How a framework makes Muon's updates; bits. */
enum topt_muon {
    TOPT_MUON_GRAM = 1, /* by the small square matrix alone */
    TOPT_MUON_WHOLE =
        2 /* of matrices that tensor parallelism splits, gathered on each rank */
};

/* The settings that decide bytes besides the layouts. */
struct topt_settings {
    enum topt_dtype dtype;         /* of activations, weights and gradients */
    enum topt_optimizer optimizer; /* states are kept in f32, or f64 where dtype is f64 */
    int64_t granule_bytes;         /* every buffer is rounded up to this; at least 1 */
    /* The step runs forward and backward so often, on models of the batch divided by
     * this, and adds the gradients up; at least 1. */
    int64_t micro_batches;
    int gradient_f32; /* bf16: gradients of parameters are added up in f32 */
    int state_bf16; /* bf16: no master copy in f32, and what the optimizer keeps is bf16 too */
    int shard_f32; /* bf16: a sharded parameter is its f32 master copy alone */
    /* bf16, with matrices of few bits: other frozen parameters rest in f32, and so are tensors between
     * operators but logits, as PEFT's prepare_model_for_kbit_training makes them; under autocast the
     * head multiplies by a copy in bf16, which stays for its backward. */
    int rest_f32;
    enum topt_gather gather;
    /* A unit of the model recomputes at once, alike others or not; else, as our runtime
     * does, a block that repeats exactly. */
    int by_unit;
    /* Activations have positions before samples, FlashAttention's the other way round: its output lies there twice, one
     * for its own backward and one for the product after it. */
    int positions_first;
    int64_t pool_numbers;   /* POOL: parameters gathered at once, at most */
    int64_t bucket_numbers; /* POOL: gradients in a bucket that is reduced */
    /* tables of the vocabulary are padded to this times their parts; 0: not */
    int64_t vocab_multiple;
    /* Thousandths that are added to memory that comes and goes in a step, for bytes that a
     * caching allocator holds and can't use.  Our runtime's arena: 0. */
    int64_t allocator_permille;
    int64_t workspace_bytes; /* that libraries keep in that allocator */
    /* by_unit: tables that several operators share are parameters there, not tensors between operators:
     * their enum topt_zero, and over how many replicas states and gradients are cut by it. */
    int64_t tables, table_shards;
    enum topt_accounting accounting;
    enum topt_overlap overlap;
    /* A strategy's time is that of its schedule by units (topt_step.h), and costs of pieces leave
     * asynchronous communication out.  Where units are recomputed at once (by_unit), its memory is
     * the most that the schedule holds.  Else each operator's own computation hides its
     * communication, and bytes are sums under caps, so that costs add up. */
    int by_schedule;
    int eager;                     /* bits of enum topt_eager_part */
    enum topt_attention attention; /* the kernel that a device runs */
    /* Pipeline stages (topt_pipeline.h), each on a mesh like the one that costs are of; chunks of
     * layers that one has; and their schedule.  1 and 1: none.  Above 1 by_schedule and by_unit. */
    int64_t stages, stage_chunks;
    enum topt_order_row order;
    int even_stages; /* each chunk has as many layers as the others */
    int sends_wait; /* a stage waits until its output is sent, also in orders that need not */
    /* Orders that make gradients of parameters apart hold operands of products and gradients of their outputs alone until
     * then, not all that was kept (Transformer Engine's delayed gradients of weights), and reduce none beside their
     * passes. */
    int operands_wait;
    /* Ranks of a stage that shard gradients accumulate them unsharded, keep parameters unsharded, and reduce
     * gradients once a step (FSDP2 in PyTorch's pipelines); of more than TOPT_ACTIVE_CHUNKS chunks, only so many
     * have unsharded parameters at a time. */
    int unsharded_sums;
    /* Stages lie on the groups of unlike devices of the profile, in its order, each on one; the mesh is that of a stage. */
    int unlike_stages;
    /* Under by_schedule: the time in which the host starts one kernel, beside the device's work; 0: it is
     * never late. */
    int64_t host_ns;
    int cuda_graphs; /* why host_ns is 0: kernels are recorded once and replayed */
    enum topt_loss_kernel loss;
    enum topt_low low; /* of products of layers beside bf16 */
    int low_apart;     /* low: by torchao's casts, not Transformer Engine's */
    int low_strided;   /* ... which are strided along columns, those of rowwise (low.c) */
    int low_params;    /* low: their weights are stored and gathered in these bits */
    enum topt_dispatch dispatch;
    int64_t offload;          /* bits of enum topt_offload */
    int64_t offload_permille; /* of the states, those that rest on the host */
    int64_t muon;             /* bits of enum topt_muon */
    /* Communication of tensor parallelism is beside its products; if not, in backward that of inputs' gradients beside the
     * products that make weights' (beside.c). */
    int tensor_overlap, tensor_async;
    int64_t regather;  /* bits of enum topt_regather */
    int low_attention; /* attention is in 8 bits, too */
    int low_activation; /* what gated activations read is kept in 8 bits, in any precision */
    int experts_apart; /* products of each of a device's experts are kernels of their own */
    int ring; /* of context ranks keys and values go around, else all are gathered */
    enum topt_merge merge; /* of context ranks */
};
struct topt_settings topt_settings_default(void); /* f32, adam, 64 */

/* Is the memory of a strategy what its schedule holds at most (and not a sum under caps)? */
int topt_settings_scheduled(const struct topt_settings *s);
/* PyTorch's schedules of several chunks keep the parameters of the next three that a stage works on (_add_unshard_reshard of
 * torch/distributed/pipelining, v2.14). */
enum { TOPT_ACTIVE_CHUNKS = 3 };
/* How often a stage gathers each of its chunks in a step, under unsharded_sums. */
double topt_chunk_gathers(const struct topt_settings *s);
/* Does backward allocate the gradients of parameters one by one, because a step begins without them? */
int topt_gradients_come(const struct topt_settings *s);

/* Is the operator a table that several operators read, which a framework has as a parameter (settings.tables)? */
int topt_is_table(const struct topt_model *m, const struct topt_settings *s, int op);

/* Checks that the model can train under these settings, and says what does not fit (INVAL): an
 * operator that mixes samples, for instance, allows no micro-batches. */
int topt_settings_fit(const struct topt_model *m, const struct topt_settings *s,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* Bytes that come and go in a step, with those that a caching allocator holds beside them.
 * Cannot overflow, as topt_model.h limits a tensor. */
static inline int64_t topt_with_allocator(const struct topt_settings *s, int64_t bytes)
{
    return bytes + bytes / 1000 * s->allocator_permille;
}

/* The bytes of value, gradient and state that one number of a trained parameter holds at least,
 * throughout a step. */
int topt_parameter_bytes(const struct topt_settings *s);
/* ... that all parameters of a model, or of its experts alone, hold at least, over all devices. */
struct topt_least_parameters {
    double value, gradient, state;
    double reread; /* of 'value', what backward reads */
};
struct topt_least_parameters topt_least_parameters(const struct topt_model *m,
                                                   const struct topt_settings *s,
                                                   int experts);
/* ... of the operators [from, until).  'split': by operator, the dimension that tensor ranks split; only parameters without
 * that dimension, which are no experts', are then counted.  NULL: all are. */
struct topt_least_parameters topt_least_parameters_of(const struct topt_model *m,
                                                      const struct topt_settings *s,
                                                      int experts, const int8_t *split,
                                                      int from, int until);

/* A lower bound of the bytes of activations that every strategy keeps for backward, or has on the host, over all devices.
 * 'again': what runs again in backward (enum topt_again, by operator); NULL: nothing.  0 where memory runs out, which is a
 * bound as well. */
double topt_least_kept_bytes(const struct topt_model *m, const struct topt_settings *s,
                             const uint8_t *again);

/* The copy of a tensor that one of its uses keeps for backward (TensorOpt's tensor reuse). */
enum topt_keep {
    TOPT_KEEP_AFTER, /* keep the copy in the consumer's layout, where backward reads it */
    TOPT_KEEP_BEFORE, /* keep the producer's copy and move it again in backward */
};

/* The level of sharding over the replicas of a parameter, beside its own splits (ZeRO:
 * Rajbhandari et al. 2020), and whether its gradient is sparse (lower/rows.c).  Replicas
 * differ along the axes along which its gradient is partial; sharded tensors lie in
 * topt_sharded_layout. */
enum topt_zero {
    TOPT_ZERO_NONE,
    TOPT_ZERO_STATE,    /* optimizer state (ZeRO-1) */
    TOPT_ZERO_GRADIENT, /* and gradients (ZeRO-2) */
    TOPT_ZERO_PARAM,    /* and parameters, gathered before use (ZeRO-3, FSDP) */
    TOPT_ZERO_LEVELS, /* those of any operator; the others are of one with a sparse table: */
    /* The table is whole, and replicas gather each other's rows and values. */
    TOPT_ZERO_SPARSE = TOPT_ZERO_LEVELS,
    /* Rows lie in blocks, each of which has an owner: it sends rows that are looked up, and
     * receives the rows of their gradients. */
    TOPT_ZERO_OWNER,
    TOPT_ZERO_COUNT
};

/* Whether backward runs an operator's forward again. */
enum topt_again {
    TOPT_AGAIN_NOTHING,
    TOPT_AGAIN_ALL,   /* again; neither its output nor what it saves is kept */
    TOPT_AGAIN_SAVED, /* again, but its output is kept, as that of a checkpointed module */
    TOPT_AGAIN_KEPT /* not again; its output is kept although backward does not read it */
};
/* An operator's configuration: the dimension that each axis splits, or -1 for none (every
 * device along that axis computes the same); axes of one dimension split it in axis
 * order.  'zero' (enum topt_zero) shards along the axes along which a parameter's gradient
 * is partial.  'recompute': enum topt_again. */
struct topt_config {
    int8_t dim[TOPT_MAX_AXES];
    uint8_t zero, recompute;
    uint8_t whole_axes; /* the first so many, along which 'zero' shards nothing (HSDP) */
};
struct topt_config topt_config_none(void); /* no axis splits anything */
static inline int topt_runs_again(const struct topt_config *c)
{
    return c->recompute == TOPT_AGAIN_ALL || c->recompute == TOPT_AGAIN_SAVED;
}

/* The fate of a hub's value after forward. */
enum topt_hub_keep {
    TOPT_HUB_DROP,      /* a consumer that reads it in backward keeps a copy of its own */
    TOPT_HUB_KEEP,      /* kept for backward */
    TOPT_HUB_RECOMPUTE, /* recomputed in backward: only where the producer recomputes */
};

/* A tensor with several uses has a hub between its producer and its consumers: 'layout'
 * gives the tensor dimension that each axis splits, 'keep' is enum topt_hub_keep.  An axis may
 * have TOPT_HUB_SUM instead of a dimension: along it the value is whole and the gradient partial,
 * so that the gradients of all consumers are added first, and summed over devices once.  Frameworks
 * do that where several products read one tensor; the named spaces do not list it. */
enum { TOPT_HUB_SUM = -2 };
struct topt_hub {
    struct topt_config layout;
    int keep;
};

/* A whole strategy: configurations by operator, hubs by tensor (only those of tensors with
 * several uses are read), and enum topt_keep by operator and input, at
 * op * TOPT_MAX_INPUTS + i. */
struct topt_strategy {
    int nops, ntensors;
    struct topt_config *config;
    struct topt_hub *hub;
    uint8_t *keep;
};
/* Everything is replicated. */
struct topt_strategy *topt_strategy_create(const struct topt_model *m);
/* NULL: no memory. */
struct topt_strategy *topt_strategy_copy(const struct topt_strategy *s);
void topt_strategy_destroy(struct topt_strategy *s);

/* Layouts that follow from a configuration. */
struct topt_layout topt_value_layout(const struct topt_op *op, int operand,
                                     const struct topt_config *c,
                                     const struct topt_mesh *mesh);
/* The layout of the gradient that an operator produces for an INPUT or PARAM (may be
 * partial), or needs of its OUTPUT (never partial). */
struct topt_layout topt_grad_layout(const struct topt_op *op, int operand,
                                    const struct topt_config *c,
                                    const struct topt_mesh *mesh);
struct topt_layout topt_hub_layout(const struct topt_hub *h,
                                   const struct topt_mesh *mesh);
struct topt_layout topt_hub_grad_layout(const struct topt_hub *h,
                                        const struct topt_mesh *mesh);
/* Axes along which a PARAM has replicas.  If it is trained, each replica has a part of its
 * gradient. */
uint32_t topt_replica_axes(const struct topt_op *op, int operand,
                           const struct topt_config *c, const struct topt_mesh *mesh);
/* The layout of a PARAM that is sharded over its replicas: the value layout with the replicas'
 * axes innermost in the dimension that has the most counts a part. */
struct topt_layout topt_sharded_layout(const struct topt_op *op, int operand,
                                       const struct topt_config *c,
                                       const struct topt_mesh *mesh);
/* Axes that split one of 'dims' (bit d), dimensions of the operator. */
uint32_t topt_axes_over(const struct topt_mesh *mesh, const struct topt_config *c,
                        uint32_t dims);
/* The fewest counts that an operand has of a dimension, so the most parts into which it can be split. */
int64_t topt_fewest_counts(const struct topt_op *op, int d);
/* Does the operator's row allow every split of 'c', and does each leave work for all devices?
 * 'zero' is allowed only where it shards something of a parameter with replicas, so that no
 * two valid configurations mean the same. */
int topt_config_valid(const struct topt_op *op, const struct topt_config *c,
                      const struct topt_mesh *mesh);

/* The first operator of the unit (settings.by_unit) or block whose operators are recomputed
 * together with this one; -1: it is in none. */
static inline int topt_recomputed_with(const struct topt_model *m,
                                       const struct topt_settings *s, int op)
{
    if (s->by_unit)
        return m->unit[op];
    return m->blocks->kind[op] < 0 ? -1 : op - m->blocks->position[op];
}
/* By operator: may it recompute?  It must be in a unit or block, be read only there, and be no
 * loss.  Owned by the caller. */
int topt_recomputable(const struct topt_model *m, const struct topt_settings *s,
                      uint8_t **ret, struct topt_error *err) TOPT_MUST_CHECK;
/* The bytes that are recomputed at one time, from 'bytes' of each unit or block, by its first
 * operator: those of the largest unit, or the sum over kinds of the largest block of each. */
int64_t topt_recomputed_at_once(const struct topt_model *m, const struct topt_settings *s,
                                const int64_t *bytes);

/* Modules that a framework recomputes, by one choice for the whole model: bits.  WHOLE is each layer; the others
 * are modules of Megatron-LM's --recompute-modules (core/transformer/transformer_config.py, d98e8a6) and
 * torchtitan's SelectiveAC (distributed/activation_checkpoint.py, b5bcd76), whose rules modules.c has. */
enum topt_recompute_module {
    TOPT_MODULE_WHOLE = 1,
    TOPT_MODULE_CORE_ATTN = 2,
    TOPT_MODULE_MLP = 4,
    TOPT_MODULE_MOE = 8,
    TOPT_MODULE_SHARED_EXPERTS = 16,
    TOPT_MODULE_MOE_ACT = 32,
    TOPT_MODULE_LAYERNORM = 64,
    TOPT_MODULE_MLA_UP_PROJ = 128,
    TOPT_MODULE_OP = 256
};
/* Reads "core_attn+mlp", "full", "none", 0 or 1; and writes such words into 'buf', which it returns. */
int topt_modules_parse(const char *text, int64_t *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;
enum { TOPT_MODULES_SIZE = 120 };
const char *topt_modules_words(int modules, char buf[TOPT_MODULES_SIZE]);
/* By operator, enum topt_again if these modules recompute; owned by the caller.  'ret_present' (may be NULL): the
 * modules among them that the model has. */
int topt_modules_again(const struct topt_model *m, const struct topt_settings *s,
                       int modules, uint8_t **ret, int *ret_present,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Modules of fine-grained offloading that a model's layers have, bits of enum topt_offload. */
int topt_offload_present(const struct topt_model *m);
/* The share that settings.offload keeps on the host of the bytes that an operator keeps for backward: of its inputs and
 * what it saves, or ('hub') of its output, if that has a hub. */
double topt_offload_share(const struct topt_model *m, const struct topt_settings *s,
                          int op, int hub);

/* By operator: does backward need it to run again?  The results of other operators that recompute are
 * not needed. */
void topt_recompute_demand(const struct topt_model *m, const struct topt_strategy *s,
                           uint8_t *ret_demanded);

/* ---- the program ------------------------------------------------------------------- */

enum topt_class {
    TOPT_CLASS_PARAM,
    TOPT_CLASS_GRAD,
    TOPT_CLASS_STATE,      /* optimizer state; for bf16 also the f32 master copy */
    TOPT_CLASS_DATA,       /* tokens and labels, 32-bit */
    TOPT_CLASS_BUFFERS,    /* costs only: what enum topt_gather says */
    TOPT_CLASS_KEPT,       /* activations and statistics that backward reads */
    TOPT_CLASS_RECOMPUTED, /* the same, recomputed in backward: one unit's at a time */
    TOPT_CLASS_TRANSIENT,  /* everything else: values and gradients in flight, work */
    TOPT_CLASS_STAGING,    /* packing space of a collective */
    TOPT_CLASS_COUNT
};
const char *topt_class_name(enum topt_class c);

enum topt_element {
    TOPT_ELEM_REAL, /* the settings' dtype */
    TOPT_ELEM_STATE, /* what the optimizer keeps: f32, f64 under f64, bf16 under state_bf16 */
    TOPT_ELEM_WIDE, /* statistics, losses, gradient_f32: f32, f64 under f64 */
    TOPT_ELEM_INT32,
    TOPT_ELEM_BYTE
};

struct topt_buffer {
    enum topt_class cls;
    enum topt_element elem;
    struct topt_shape shape; /* global; STAGING: shape.ndim 0 and 'bytes' only */
    struct topt_layout layout;
    uint8_t window; /* an operand that is a window: its box is topt_operand_box */
    /* Of a gradient that is a list of rows (TOPT_ZERO_SPARSE, _OWNER), else 0: the number of different
     * rows on the mean, with some more for chance.  Each has its number and its values.  'shape' and
     * 'layout' are those of the table. */
    int64_t rows;
    int64_t bytes;   /* of the largest block, rounded up to the granule */
    int op, operand; /* whose it is (operand -1: none); states: 'index' 0, 1... */
    int index;
};

enum topt_instr_kind {
    TOPT_I_ALLOC,    /* a: buffer */
    TOPT_I_FREE,     /* a: buffer */
    TOPT_I_ZERO,     /* a: buffer */
    TOPT_I_INIT,     /* a: parameter buffer (INIT section only): fill from the seed */
    TOPT_I_KERNEL,   /* 'kernel' of operator 'op' on value[] and grad[] */
    TOPT_I_MOVE,     /* a -> b by 'move'; c: staging buffer or -1; a == b: in place */
    TOPT_I_HALO,     /* a: blocks -> b: windows of them over 'axes'; c: staging */
    TOPT_I_HALO_ADD, /* a: windows -> b: blocks, what overlaps added up; c: staging */
    TOPT_I_REDUCE, /* all-reduce buffer a in place along 'axes': sum, or max where 'is_max' */
    TOPT_I_ADD,    /* b += a */
    TOPT_I_LOSS,   /* a: per-token losses; report their mean over all tokens */
    TOPT_I_UPDATE, /* optimizer: a parameter, b gradient; c, d, e: states 0, 1, 2 or -1 */
    TOPT_I_DROP, /* b: the numbers of a, some of them 0 (topt_program_dropout); may be a */
    TOPT_I_NORM,   /* of the gradients of all updates together (topt_program_clip) */
    TOPT_I_UNPACK, /* b: the numbers of a, which are stored in few bits */
    /* The operator's forward where a, rows of its table, has other owners along 'axes': ids in
     * value[]; b: the output; c: staging. */
    TOPT_I_ROWS_FETCH,
    /* The operator's backward: a, the gradient of its output, added to b, a gradient of rows;
     * ids in value[].  Along 'axes' rows come from all, or go to their owners; c: staging. */
    TOPT_I_ROWS_ADD,
    TOPT_I_BUCKET, /* all-reduce of bucket b, of which a is the first member, in place */
};

struct topt_instr {
    enum topt_instr_kind kind;
    int op; /* operator it belongs to, or -1 */
    uint8_t backward;
    int a, b, c, d, e;
    enum topt_kernel kernel;
    uint32_t axes;
    int is_max;
    struct topt_move move;
    int64_t at;     /* KERNEL in a loop: the count it is at */
    uint8_t joined; /* KERNEL: a device may do it in one pass with the kernel before it */
    /* ROWS_*: different rows that a device's lookups name on the mean, and how many a device
     * sends at once */
    int64_t rows, chunk;
    /* KERNEL: buffers by operand number, -1 where it has none */
    int value[TOPT_MAX_OPERANDS], grad[TOPT_MAX_OPERANDS];
};

/* Gradients that are reduced together (topt_program_bucket): 'n' members of the program from
 * 'first' on, which lie one after the other in memory. */
struct topt_bucket {
    uint32_t axes;
    enum topt_element elem;
    int first, n;
    int ready; /* the instruction of a micro-batch from which on no member is touched */
    int64_t bytes; /* of all members, each rounded up to the granule */
};

struct topt_instr_time {
    int64_t ns;
    int64_t times;          /* rounds of a loop that 'ns' covers */
    int64_t host_ns;        /* in which the host starts its kernels */
    uint8_t network, async; /* whether the network takes it; enum topt_async */
    uint8_t basis;          /* enum topt_basis */
};

struct topt_program {
    const struct topt_model *model; /* borrowed */
    struct topt_mesh mesh;
    struct topt_settings settings;
    struct topt_config *config; /* by operator: local boxes of kernels follow from it */
    int nbuffers;
    struct topt_buffer *buffer;
    /* [0, init_end) once; each step [init_end, micro_begin) once, [micro_begin,
     * micro_end) for each micro-batch, [micro_end, ninstr) once. */
    int ninstr, init_end, micro_begin, micro_end;
    struct topt_instr *instr;
    struct topt_instr_time *time; /* by instruction; NULL: not asked for */
    int64_t peak_bytes;           /* largest sum of live buffers over init and step */
    int64_t class_bytes[TOPT_CLASS_COUNT]; /* live of each class at the peak */
    int nbuckets;
    struct topt_bucket *bucket;
    int *member; /* buffers, by bucket */
};

/* A device's block of an operand, in its own counts; of a window, the part of the tensor that its
 * block of the output reads. */
struct topt_box topt_operand_box(const struct topt_op *op, int operand,
                                 const struct topt_config *c,
                                 const struct topt_mesh *mesh, int device);
/* Elements of the largest block of an operand. */
int64_t topt_operand_largest(const struct topt_op *op, int operand,
                             const struct topt_config *c, const struct topt_mesh *mesh);
/* Axes along which 'operand', a window, reaches beyond its device's own block; 0: it does not. */
uint32_t topt_window_axes(const struct topt_op *op, int operand,
                          const struct topt_config *c, const struct topt_mesh *mesh);

/* Elements that exchanging the windows of 'operand' packs and receives, at most. */
int64_t topt_window_staging(const struct topt_op *op, int operand,
                            const struct topt_config *c, const struct topt_mesh *mesh);

/* Local box of an operator's dimension on 'device', in counts. */
void topt_op_box(const struct topt_op *op, const struct topt_config *c,
                 const struct topt_mesh *mesh, int device,
                 int64_t ret_off[TOPT_MAX_OPDIMS], int64_t ret_len[TOPT_MAX_OPDIMS]);

/* Does any of its operators run again in backward? */
int topt_recomputes(const struct topt_strategy *s);

/* Lowers a strategy to a program, which the caller owns and which borrows 'm'.  INVAL where the strategy does not fit the
 * model or mesh.  'fed': the caller's training gives the samples; each device then loads only its part of the batch, and
 * moves bring it into the layouts that configurations want. */
int topt_lower(const struct topt_model *m, const struct topt_mesh *mesh,
               const struct topt_settings *settings, const struct topt_strategy *s,
               struct topt_router *router, int fed, struct topt_program **ret,
               struct topt_error *err) TOPT_MUST_CHECK;
void topt_program_destroy(struct topt_program *p);
/* The instruction of a micro-batch that is the first kernel of the loss, whose inputs are the
 * model's outputs; -1: there is none. */
int topt_program_find_loss(const struct topt_program *p);

/* The bytes that the largest block of a tensor in a layout is charged: rounded up to the granule. */
int64_t topt_block_bytes(const struct topt_mesh *mesh, const struct topt_settings *s,
                         const struct topt_shape *shape, const struct topt_layout *l,
                         enum topt_element e);
/* An instruction of an operator (-1: of none) that names no buffer yet. */
struct topt_instr topt_fragment_instr(enum topt_instr_kind kind, int op, int backward);
/* Fills peak_bytes and class_bytes anew, after instructions or buffers were changed.  It follows one micro-batch, as
 * none leaves anything behind. */
void topt_program_find_peak(struct topt_program *p);

/* ---- its times ----------------------------------------------------------------------- */

/* The program of a strategy with the time of each instruction, as costs (below) have it.  It has the instructions
 * of a loop once, with the time of all rounds, so it cannot be run. */
struct topt_costing;
int topt_lower_with_times(const struct topt_costing *k, const struct topt_strategy *s,
                          struct topt_program **ret,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* ---- costs ------------------------------------------------------------------------- */

struct topt_fragment_cost {
    /* network_ns: communication that nothing hides (settings.overlap) */
    int64_t compute_ns, network_ns;
    int64_t basis_ns[TOPT_BASIS_COUNT]; /* the sum of both, by its basis */
    /* Under by_schedule: asynchronous communication, which is not in the times above, likewise. */
    int64_t async_ns[TOPT_BASIS_COUNT];
    struct topt_piece_time spent; /* all times, by part of a step */
    /* The classes that stay, PARAM..KEPT, and RECOMPUTED; the others are 0. */
    int64_t class_bytes[TOPT_CLASS_COUNT];
    int64_t transient_bytes; /* most of TRANSIENT and STAGING at once */
    /* Under by_schedule, where units are gathered, as of struct topt_piece_bytes: whole parameters in
     * each pass, or from forward to backward; gradients as backward makes them, and as they are reduced. */
    int64_t gathered_bytes, whole_bytes, made_bytes, reduced_bytes;
    int64_t host_bytes; /* that rest on the host, without activations */
    /* of buffers for communication beside products, which all layers share */
    int64_t beside_bytes;
};

/* Where costs come from. */
struct topt_costing {
    const struct topt_model *model;
    const struct topt_hw *hw;
    const struct topt_mesh *mesh;
    const struct topt_settings *settings;
    struct topt_router *router;
    /* polled by callers that cost many configurations; may be NULL */
    const atomic_bool *cancel;
};

/* The time of one kernel on a local box ('len' by operator dimension, in counts) that touches so many
 * bytes; attention by the rates of the settings' kernel. */
struct topt_time topt_kernel_time(const struct topt_costing *k, const struct topt_op *o,
                                  enum topt_kernel kernel, const int64_t *len,
                                  int64_t bytes);

/* Costs are those of a whole step: the work of a micro-batch counts micro_batches times.
 *
 * The cost of an operator's own fragments: parameters, forward, backward, reduction of the
 * parameter gradients, update. */
int topt_cost_op(const struct topt_costing *k, int op, const struct topt_config *c,
                 struct topt_fragment_cost *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* The same for many configurations, whose routes between layouts are found together: a route that is not
 * known is asked for, and '*ret_open' set.  Time and transient bytes are then invalid; after
 * topt_router_answer(), topt_cost_op() has them. */
int topt_cost_op_ask(const struct topt_costing *k, int op, const struct topt_config *c,
                     struct topt_fragment_cost *ret, int *ret_open,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* The former where 'ret_open' is NULL, else the latter.  'alive' (tally.h; may be NULL) follows the bytes of
 * the operator's pieces. */
struct topt_live;
int topt_cost_op_by(const struct topt_costing *k, int op, const struct topt_config *c,
                    struct topt_live *alive, struct topt_fragment_cost *ret,
                    int *ret_open, struct topt_error *err) TOPT_MUST_CHECK;

/* The links that communication along these axes takes, bits of enum topt_link. */
uint8_t topt_group_links(const struct topt_mesh *mesh, uint32_t axes);

/* By operator ('ret_unit'): the unit with which its parameters are gathered, numbered forward; returns
 * how many there are.  It is a unit of the model, or under TOPT_GATHER_OPERATOR one operator.  An operator
 * outside of the model's units that has no parameters belongs to the unit before it. */
int topt_gathered_units(const struct topt_model *m, const struct topt_settings *s,
                        int *ret_unit);

/* The cost of a hub itself: adding the gradients of its consumers. */
int topt_cost_hub(const struct topt_costing *k, int tensor, const struct topt_hub *h,
                  struct topt_fragment_cost *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* The copy of a tensor that a consumer has kept for backward: the one that it reads, the one that moved to it, or either
 * (enum topt_regather). */
enum topt_copy { TOPT_COPY_EITHER, TOPT_COPY_READ, TOPT_COPY_MOVED };

/* One end of an edge, which is a tensor on its way between a producer, its hub and a consumer: the layouts of
 * its value and gradient there. */
struct topt_edge_end {
    struct topt_layout value, grad;
    int hub, hub_keep;    /* this end is a hub; enum topt_hub_keep */
    int recompute;        /* the producer or consumer recomputes */
    int needed;           /* consumer: backward reads the value, or recomputes from it */
    enum topt_copy copy;  /* consumer: which copy is kept */
    int64_t others_bytes; /* consumer: its other inputs, live beside this one */
    int64_t op_bytes;     /* consumer: transients of its own fragments */
    int64_t out_bytes;    /* consumer: gradient of its output */
    /* Thousandths of the tensor, which do not depend on the configuration: those that a consumer keeps for backward, and
     * those that move where this end gathers it (0: all). */
    int kept_permille, moved_permille;
    int ring;           /* consumer: the tensor goes around so many ranks (ring.c), */
    int64_t ring_ns[2]; /* ... beside attention of so long, forward and backward */
    /* Under settings.tensor_overlap: the time of the operator's products, forward and backward in one micro-batch, beside
     * which the tensor may move. */
    int64_t beside_ns[2];
};

/* The ends that follow from configurations. */
struct topt_edge_end topt_edge_producer(const struct topt_costing *k, int op,
                                        const struct topt_config *c);
struct topt_edge_end topt_edge_hub(const struct topt_costing *k,
                                   const struct topt_hub *h);
struct topt_edge_end topt_edge_consumer(const struct topt_costing *k, int op, int input,
                                        const struct topt_config *c,
                                        int64_t op_transient);

/* The cost of moving a tensor once in each micro-batch: the time, the bytes that are live at most, and of
 * these the source's and the result's. */
struct topt_move_cost {
    int64_t network_ns, basis_ns[TOPT_BASIS_COUNT];
    int64_t transient_bytes, from_bytes, to_bytes;
    uint8_t links; /* under by_schedule, else 0; 0 of a cost by its route */
    int of_tokens; /* it moves tokens to experts, or back */
};
/* The time of an exchange of tokens under settings.dispatch, if it takes 'ns' with a copy of each token for each of its
 * experts; 'ns' itself of any other tensor. */
int64_t topt_sent_ns(const struct topt_costing *k, int tensor, uint32_t axes, int64_t ns);
int topt_cost_move(const struct topt_costing *k, int tensor,
                   const struct topt_layout *from, const struct topt_layout *to,
                   struct topt_move_cost *ret, struct topt_error *err) TOPT_MUST_CHECK;
/* The same by the route along 'axes', which was asked for beside many others, and the bytes of both ends. */
int topt_cost_move_by(const struct topt_costing *k, int tensor, uint32_t axes,
                      const struct topt_route *by, int64_t from_bytes, int64_t to_bytes,
                      struct topt_move_cost *ret, struct topt_error *err) TOPT_MUST_CHECK;
struct topt_shape topt_tensor_shape(const struct topt_tensor *t);
/* Bytes of a tensor's largest block. */
int64_t topt_cost_block(const struct topt_costing *k, int tensor,
                        const struct topt_layout *l);

/* The cost of an edge under each choice of the copy that backward keeps: 1 or 2 alternatives, the
 * first of two TOPT_KEEP_AFTER.  None where the ends exclude each other: a hub cannot recompute what
 * its producer keeps. */
struct topt_edge_cost {
    int nalts;
    struct topt_fragment_cost alt[2];
    enum topt_keep keep[2];
};
int topt_cost_edge(const struct topt_costing *k, int tensor,
                   const struct topt_edge_end *from, const struct topt_edge_end *to,
                   struct topt_edge_cost *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* The alternatives of an edge whose moves, of the value there and of the gradient back (NULL: there is
 * none), have been priced; returns how many.  Times have no basis here, as tables have millions of
 * alternatives.  'in_place': both ends have the same layout of the value. */
struct topt_edge_alternative {
    enum topt_keep keep;
    /* Of the value there, in each micro-batch, and of these moves those of backward that are beside products; the gradient is
     * moved once. */
    int moves, beside;
    int64_t kept, recomputed, transient; /* bytes */
};
int topt_edge_alternatives(const struct topt_costing *k, const struct topt_edge_end *from,
                           const struct topt_edge_end *to, int in_place,
                           const struct topt_move_cost *there,
                           const struct topt_move_cost *back,
                           struct topt_edge_alternative ret[2]);
/* Adapts the costs of a value's move there and its gradient's move back (NULL: none) to the ends: operands of
 * products in few bits move in these bits, and some moves are beside products (beside.c).  '*again': the value's move in
 * backward, where that is beside a product (struct topt_edge_alternative). */
void topt_edge_moves(const struct topt_costing *k, int tensor,
                     const struct topt_edge_end *from, const struct topt_edge_end *to,
                     struct topt_move_cost *there, struct topt_move_cost *again,
                     struct topt_move_cost *back);
/* The cost of an edge by such moves, with the basis of its time. */
void topt_cost_edge_by(const struct topt_costing *k, int tensor,
                       const struct topt_edge_end *from, const struct topt_edge_end *to,
                       const struct topt_move_cost *there,
                       const struct topt_move_cost *back, struct topt_edge_cost *ret);

/* Tensors in flight past other operators ("crossing"): the most at one time, for the bound on
 * memory; and how each tensor is charged. */
enum topt_span {
    TOPT_SPAN_NEXT,     /* consumed by the next operator: part of its transients */
    TOPT_SPAN_CROSSING, /* at most 'crossing' such at once, each at most the crossing cap */
    TOPT_SPAN_LONG,     /* lives most of the step: charged by itself */
};
struct topt_spans {
    int crossing;
    uint8_t *span; /* by tensor: enum topt_span; owned */
};
int topt_spans_init(struct topt_spans *s, const struct topt_model *m,
                    struct topt_error *err) TOPT_MUST_CHECK;
/* Adapts spans to strategies that recompute.  While a unit or block is recomputed, the gradient of its
 * output waits; so the outputs of its operators cross, and one more tensor at one time. */
void topt_spans_recompute(struct topt_spans *s, const struct topt_model *m,
                          const struct topt_settings *settings);
void topt_spans_fini(struct topt_spans *s);
/* The bytes of a crossing tensor in its hub, or as its producer's output. */
int64_t topt_span_bytes(const struct topt_costing *k, int tensor,
                        const struct topt_layout *where);

/* Transients are rounded up to four significant bits before they are compared, so that there are few
 * different caps.  A small code stands for each, in their order. */
enum { TOPT_TRANSIENT_CODES = 512 };
static inline int topt_transient_code(int64_t bytes)
{
    int bits = bytes > 0 ? 64 - __builtin_clzll((unsigned long long)bytes) : 0;
    int shift = bits > 4 ? bits - 4 : 0;
    return 8 * shift + (int)((bytes + ((int64_t)1 << shift) - 1) >> shift);
}
static inline int64_t topt_transient_of(int code)
{
    int shift = code < 16 ? 0 : code / 8 - 1;
    return (int64_t)(code - 8 * shift) << shift;
}
int64_t topt_round_transient(int64_t bytes);

/* The cost of a whole strategy, by the plainest sum over fragments:
 *     memory_bytes = what stays + recomputed_bytes + transient_cap + crossing * crossing_cap,
 * an upper bound of the program's peak_bytes.  The caps are the largest that occur;
 * recomputed_bytes are topt_recomputed_at_once().
 *
 * Where the schedule says what is held (settings.by_schedule), all terms are those of the moment
 * when that is most, with 'crossing' 1. */
struct topt_strategy_cost {
    struct topt_fragment_cost sum;
    int64_t memory_bytes, time_ns;
    int64_t recomputed_bytes, transient_cap, crossing_cap;
    int crossing, at_loss; /* 'at_loss': transient_cap is of the loss operator */
    /* Of this device on the host: its bytes; the part of the time that is due to offloading (of stages, the
     * mean of the host's own work); and the time of the host's optimizer. */
    int64_t host_bytes, host_wait_ns, host_update_ns;
    struct topt_stage_costs stage;
};
int topt_cost_strategy(const struct topt_costing *k, const struct topt_strategy *s,
                       struct topt_strategy_cost *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* The costs on a profile with groups of unlike devices, of each group by its own blocks and rates.
 * INVAL unless each part of the mesh's first axis is in one group, in the order of the profile. */
struct topt_group_costs {
    int n, slowest; /* the group that takes most time */
    struct topt_strategy_cost of[TOPT_HW_GROUPS];
};
int topt_cost_groups(const struct topt_costing *k, const struct topt_strategy *s,
                     struct topt_group_costs *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Costings by the devices of each group under settings.unlike_stages; else 'k' alone.  Borrows from 'k'. */
struct topt_group_costings {
    int n;
    /* with routers of their own, where there are several */
    struct topt_costing of[TOPT_HW_GROUPS];
};
int topt_group_costings_init(struct topt_group_costings *g, const struct topt_costing *k,
                             struct topt_error *err) TOPT_MUST_CHECK;
void topt_group_costings_fini(struct topt_group_costings *g);

/* Limits of pipeline stages (0: none): if the first lower bounds of a strategy's memory or time exceed them, its
 * cost is these bounds, and stage.stages is 0. */
struct topt_evaluator;
void topt_evaluator_limit(struct topt_evaluator *a, int64_t memory, int64_t time);
/* From now on, writes the passes of the stages of each strategy that is costed into 'ret'; NULL: no more. */
struct topt_passes;
void topt_evaluator_passes(struct topt_evaluator *a, struct topt_passes *ret);
/* From now on, gives each chunk so many layers, in the model's order; borrowed.  NULL: as many as is best. */
void topt_evaluator_cut(struct topt_evaluator *a, const int16_t *layers);
/* The cost of the strategy that was evaluated last, after the settings that the evaluator borrows have got other
 * stages, chunks or another schedule. */
int topt_evaluate_stages(struct topt_evaluator *a, const struct topt_strategy *s,
                         struct topt_strategy_cost *ret_cost,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* Fills 'ret' with the sums of a strategy's units, and behind them those of a table that two stages share and both hold.
 * It costs no stages; topt_evaluate_stages does that. */
int topt_evaluate_units(struct topt_evaluator *a, const struct topt_strategy *s,
                        struct topt_unit_sums *ret,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* Do such units exceed the limits (as of topt_evaluator_limit) over the stages of the costing's settings?  Returns 1 where
 * they do: 'ret' then has the memory and layers that their evaluation would give, and a lower bound of its time.  0: the
 * strategy must be evaluated; -1: failed. */
int topt_stages_exceed(const struct topt_costing *k, const struct topt_stage_units *u,
                       struct topt_unit_sums *of, int64_t memory_limit,
                       int64_t time_limit, struct topt_strategy_cost *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* The costs of many strategies of one model, as topt_cost_strategy has them, and the
 * peak_bytes of the programs that topt_lower makes of them.  Fragments of alike operators
 * with the same configuration, and moves between the same layouts, are written once.
 * An evaluator belongs to one thread at a time and borrows what the costing points to.
 * 'ret_peak' must be NULL where 'peaks' was 0, which is half the work. */
struct topt_evaluator *topt_evaluator_create(const struct topt_costing *k, int peaks,
                                             struct topt_error *err); /* NULL: failed */
void topt_evaluator_destroy(struct topt_evaluator *a);
int topt_evaluate_strategy(struct topt_evaluator *a, const struct topt_strategy *s,
                           struct topt_strategy_cost *ret_cost, int64_t *ret_peak,
                           struct topt_error *err) TOPT_MUST_CHECK;

#endif
