/* topt_fields.h - the fields of a question: one table, which every entrance reads.
 *
 * From a row follow the member of struct topt_query with its reader and writer (topt_query.h), the key under
 * which an answer is kept, the options of `topt plan`, `topt client` and sbatch with their help, and, by
 * daemon/page/document.c, the schemas of openapi.json, the table in docs/REST.md and the lists of options in
 * man pages.  Another field is another row.
 *
 * Macros only: whoever includes this pays for what it expands.  A row is
 *
 *     X(ID, name, KIND, LEAST, MOST, WHERE, KEY, DOORS, OPTION, ARG, OTHER, VALUES, HELP)
 *
 * ID, name       for enumerators; in JSON and in a URL
 * KIND           of its value, below
 * LEAST, MOST    of numbers; of text the longest one, in bytes
 * WHERE          endpoints that take it, bits of enum topt_field_where
 * KEY            PROBLEM: strategies cost what it says; ANSWER: it decides the answer alone; NONE: neither (model and
 *                profile are keys by their digests)
 * DOORS          SBATCH: an option everywhere; TOPT: of topt plan and topt client; TOPTD: of topt client and sbatch, where
 *                topt plan has one of its own; REST: of none
 * OPTION, ARG    the option without its dashes, and what stands for its value in a help text
 * OTHER          what is taken where it is not said; shown as "HELP (default: OTHER)"
 * VALUES         words that it can be, or that a list can hold, with commas between; NULL: not just so many
 * HELP           what it is, in one sentence
 */
#ifndef TOPT_FIELDS_H
#define TOPT_FIELDS_H

enum topt_field_kind {
    /* Text. */
    TOPT_FIELD_WORD,  /* one of few words */
    TOPT_FIELD_NAME,  /* letters, digits and "._-" */
    TOPT_FIELD_LIST,  /* words with commas between, each once */
    TOPT_FIELD_LABEL, /* any without control characters */
    /* The rest. */
    TOPT_FIELD_INT,
    TOPT_FIELD_BATCH,  /* INT; to `topt plan` several, or "auto" */
    TOPT_FIELD_BYTES,  /* a size, also as "2GiB" */
    TOPT_FIELD_MEMORY, /* a size; one below 1 MiB needs its unit */
    TOPT_FIELD_AMOUNT, /* a whole number, also as "1.5T" or "2e12": topt_parse_amount() */
    TOPT_FIELD_REAL,
    TOPT_FIELD_PRICE, /* REAL; to `topt plan` one for each --hw */
    TOPT_FIELD_SHARE, /* 0 to 1, also as a percentage: topt_parse_share() */
    TOPT_FIELD_BOOL,
    TOPT_FIELD_COUNTS /* one INT or a list of them */
};

enum topt_field_where {
    TOPT_IN_PLAN = 1,
    TOPT_IN_CURVE = 2,
    TOPT_IN_FRONTIER = 4,
    TOPT_IN_ANY = TOPT_IN_PLAN | TOPT_IN_CURVE | TOPT_IN_FRONTIER
};

enum { TOPT_FIELD_COUNTS_MOST = 64, TOPT_FIELD_WAIT_MOST = 60000 };

/* Of a row, for --help. */
#define TOPT_FIELD_HELP(HELP, OTHER) HELP " (default: " OTHER ")"

/* clang-format off */

/* What is asked. */
#define TOPT_FIELDS_ASKED(X)                                                                                           \
    X(MODE, mode, WORD, 0, 31, TOPT_IN_PLAN, ANSWER, SBATCH, "mode", "MODE",                                         \
      "chosen by --gpus: none mini-parallelism, one mini-time, several profiling", "mini-parallelism,mini-time,profiling",   \
      "mini-parallelism: the fewest GPUs that fit; mini-time: the fastest plan on a given number of GPUs; profiling: speed and "       \
      "memory of every number of GPUs")                                                                              \
    X(GPUS, gpus, COUNTS, 1, 1 << 14, TOPT_IN_PLAN | TOPT_IN_FRONTIER, ANSWER, SBATCH, "gpus", "N",                  \
      "found by the mode", NULL, "number of GPUs; a list for profiling")                                   \
    X(MAX_GPUS, max_gpus, INT, 1, 1 << 20, TOPT_IN_PLAN | TOPT_IN_CURVE, ANSWER, SBATCH, "max-gpus", "N",          \
      "all GPUs of the profile", NULL, "use at most N GPUs")                                                   \
    X(COUNTS, counts, WORD, 0, 31, TOPT_IN_PLAN | TOPT_IN_CURVE, ANSWER, TOPT, "counts", "NAME",                      \
      "whole", "whole,nodes,pow2,any",                                                                                 \
      "GPU counts to try: whole (divisors of a node, then whole nodes), nodes (whole nodes only), pow2 or any") \
    X(MIN_EFFICIENCY, min_efficiency, SHARE, 0, 1, TOPT_IN_PLAN, ANSWER, SBATCH, "min-efficiency", "E",            \
      "the fewest GPUs", NULL,                                                                                              \
      "mini-parallelism: use the most GPUs that keep this scaling efficiency (0.8 or 80%)")                          \
    X(GROUPS, groups, LABEL, 0, 255, TOPT_IN_PLAN, ANSWER, SBATCH, "groups", "WHICH",                                \
      "all; of a job that sbatch sizes one", NULL,                                                                    \
      "of a profile with groups of unlike GPUs: all (a group, or several together), one (a group by itself), or names of groups, with commas between, to choose among")

/* How much is trained, and at what price. */
#define TOPT_FIELDS_TRAINING(X)                                                                                        \
    X(TOKENS, tokens, AMOUNT, 1, (int64_t)1 << 60, TOPT_IN_ANY, ANSWER, SBATCH, "tokens", "N",                        \
      "no totals", NULL, "tokens of the whole training, as 300B, 1.5T or 2e12: answers give its days and GPU-hours")   \
    X(SAMPLES, samples, AMOUNT, 1, (int64_t)1 << 60, TOPT_IN_ANY, ANSWER, SBATCH, "samples", "N",                      \
      "no totals", NULL, "the same in samples: images, or whole sequences")                                            \
    X(PRICE, price, PRICE, 0, 1000000, TOPT_IN_ANY, ANSWER, SBATCH, "price", "P",                                      \
      "of toptd its setting prices; else none", NULL,                                                                  \
      "price of a GPU-hour, as 2.5 (with topt plan one for each --hw): answers give the cost of --tokens or --samples")                                   \
    X(CURRENCY, currency, LABEL, 0, 15, TOPT_IN_ANY, ANSWER, REST, NULL, NULL,                                         \
      "toptd's setting currency, or none", NULL, "what the price is counted in, as EUR")

/* The cluster, and how the job runs. */
#define TOPT_FIELDS_JOB(X)                                                                                             \
    X(HW, hw, NAME, 0, 79, TOPT_IN_ANY, NONE, SBATCH, "hw", "NAME",                                                \
      "topt plan: of the GPUs that nvidia-smi or sinfo shows; toptd: its default, or its only profile", NULL,            \
      "hardware profile: a name (topt hw list), with topt plan also a file or several names with commas between, with toptd also an id")                  \
    X(GPUS_PER_NODE, gpus_per_node, INT, 1, 1 << 10, TOPT_IN_ANY, PROBLEM, TOPT, "gpus-per-node", "N",                \
      "as in the profile", NULL, "GPUs per node, if fewer than in the profile")                      \
    X(BATCH, batch, BATCH, 1, 1 << 30, TOPT_IN_ANY, PROBLEM, SBATCH, "batch", "N",                                    \
      "the model file's, or 8", NULL, "global batch size: samples per step over all GPUs")                               \
    X(SEQ, seq, INT, 1, 1 << 30, TOPT_IN_ANY, PROBLEM, SBATCH, "seq", "N",                                            \
      "the model file's, of a config.json at most 1024", NULL, "sequence length: tokens per sample")                    \
    X(DOCUMENT_LENGTH, document_length, INT, 1, 1 << 24, TOPT_IN_ANY, PROBLEM, SBATCH, "document-length", "N",        \
      "a sample is one document", NULL,                                                                                \
      "mean tokens of the documents that are packed into a sample, where each attends to itself alone")               \
    X(MTP, mtp, INT, 1, 16, TOPT_IN_ANY, PROBLEM, SBATCH, "mtp", "N",                                                 \
      "none, though a config.json has some", NULL,                                                                     \
      "number of multi-token prediction (MTP) modules, which are trained with the model to predict further tokens (megatron)")            \
    X(FRAMEWORK, framework, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, SBATCH, "framework", "NAME",                           \
      "pytorch; of topt compare, sample and costgraph topt", "pytorch,deepspeed,megatron,primus,torchtitan,topt",             \
      "training framework, which determines the strategies and their costs: pytorch, deepspeed, megatron, primus (Megatron-LM on AMD GPUs), torchtitan or topt (our runtime, topt run)") \
    X(TRAIN, train, LABEL, 0, 199, TOPT_IN_ANY, PROBLEM, SBATCH, "train", "WHAT",                                     \
      "all", NULL, "trained parameters: all, names, or lora[:RANK[:NAMES]]; +4bit or +8bit quantizes the frozen ones (qlora: lora+4bit)")                                                                                       \
    X(PRECISION, precision, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, SBATCH, "precision", "P",                              \
      "bf16-mixed; on a GPU without bf16 fp16-mixed, or f32 where the framework scales no loss", "bf16-mixed,bf16,fp16-mixed,fp8-delayed,fp8-tensorwise,fp8-rowwise,fp8-blockwise,mxfp8,nvfp4,f32,f64",                                   \
      "precision: bf16-mixed, bf16, fp16-mixed (V100, T4), f32, f64; or with products of layers in fewer bits, fp8-delayed, fp8-tensorwise, fp8-rowwise, fp8-blockwise, mxfp8 or nvfp4")                                                        \
    X(OPTIMIZER, optimizer, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, SBATCH, "optimizer", "O",                              \
      "adamw; adam with --framework topt", "adamw,adamw_bf16,adam,adafactor,adam8,paged_adamw,paged_adamw8,momentum,sgd,row_wise_adagrad,muon",                                                \
      "optimizer: sgd, momentum, adam, adamw, adamw_bf16 (moments in bf16: megatron), row_wise_adagrad, adafactor, adam8, paged_adamw, paged_adamw8 or muon (megatron, deepspeed, pytorch with DDP)")                                   \
    X(GRADIENTS, gradients, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, TOPT, "gradients", "TYPE",                             \
      "as in the framework", "f32,bf16",                                                                               \
      "type in which gradients are accumulated and reduced with bf16-mixed: f32, or bf16 (--grad-reduce-in-bf16 of megatron)") \
    X(FP8_PARAMS, fp8_params, BOOL, 0, 1, TOPT_IN_ANY, PROBLEM, SBATCH, "fp8-params", "",                            \
      "weights in bf16", NULL, "with fp8 and fewer bits: weights are stored and gathered in them (--fp8-param-gather of megatron, primus; fp8-tensorwise of pytorch, torchtitan)") \
    X(CUDA_GRAPHS, cuda_graphs, BOOL, 0, 1, TOPT_IN_ANY, PROBLEM, SBATCH, "cuda-graphs", "",                          \
      "off", NULL, "forward and backward are CUDA graphs, whose kernels the host does not start one by one (pytorch, megatron, torchtitan)") \
    X(FP8_ATTENTION, fp8_attention, BOOL, 0, 1, TOPT_IN_ANY, PROBLEM, SBATCH, "fp8-attention", "",                      \
      "attention in bf16", NULL, "with fp8 and fewer bits: attention runs in 8 bits, too (megatron, by fp8_dot_product_attention)") \
    X(FP8_ACTIVATION, fp8_activation, BOOL, 0, 1, TOPT_IN_ANY, PROBLEM, SBATCH, "fp8-activation", "",                   \
      "as it was computed", NULL, "backward finds the input of gated activations (SwiGLU) in 8 bits, with any precision (megatron, by activation_func_fp8_input_store)") \
    X(TENSOR_OVERLAP, tensor_overlap, BOOL, 0, 1, TOPT_IN_ANY, PROBLEM, SBATCH, "tensor-overlap", "",                   \
      "off", NULL, "communication of tensor parallelism runs beside its products (--tp-comm-overlap of megatron; async tensor parallelism of torchtitan, compiled)") \
    X(OFFLOAD, offload, LIST, 0, 127, TOPT_IN_ANY, PROBLEM, SBATCH, "offload", "LIST",                                \
      "everything on the GPUs", "optimizer,parameters,activations,attn_norm,qkv_linear,core_attn,attn_proj,mlp_norm,expert_fc1,moe_act", \
      "what rests in the host's memory: optimizer (deepspeed, megatron, primus), parameters (with gradients and optimizer; pytorch, torchtitan, deepspeed), activations of layers (pytorch, megatron), or of modules by name (megatron's --offload-modules)") \
    X(OFFLOAD_FRACTION, offload_fraction, SHARE, 0, 1, TOPT_IN_ANY, PROBLEM, SBATCH, "offload-fraction", "F",        \
      "1", NULL, "with --offload optimizer: the share of the optimizer that rests on the host (megatron; deepspeed with ZeRO-3)") \
    X(ACCOUNTING, accounting, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, TOPT, "accounting", "A",                             \
      "run", "run,paper,paper-reuse",                                                                                    \
      "memory accounting: run (what a run needs), paper (as papers count it) or paper-reuse (also copies kept in other layouts)")                       \
    X(OVERLAP, overlap, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, SBATCH, "overlap", "O",                                     \
      "as in the framework", "none,ddp,fsdp",                                                                        \
      "advanced: communication that overlaps with compute: none, ddp or fsdp")                                          \
    X(ATTENTION, attention, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, SBATCH, "attention", "KERNEL",                         \
      "the framework's kernel of that year", "flash-1,flash-2,flash-3,cudnn,xformers,topt",                                        \
      "advanced: the attention kernel: flash-1, flash-2, flash-3, cudnn, xformers or topt (our runtime's)")                                   \
    X(LOSS_KERNEL, loss_kernel, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, SBATCH, "loss-kernel", "KERNEL",                     \
      "that of the framework's own trainer", "written,in-place,chunked-saved,fused,chunked",                           \
      "the kernel of a language model's loss, from the most memory to the least: written, in-place, chunked-saved, fused or chunked") \
    X(SOFTWARE, software, INT, 2018, 2100, TOPT_IN_ANY, PROBLEM, SBATCH, "software", "YEAR",                         \
      "today's", NULL, "the year of the framework's release, which decides the kernels it runs")                       \
    X(EAGER, eager, LIST, 0, 79, TOPT_IN_ANY, PROBLEM, SBATCH, "eager", "LIST",                                       \
      "as in the framework", "operators,scores,loss,optimizer,operators-but-norms,metrics,optimizer-loop",                                  \
      "advanced: parts that are not fused: operators (operators-but-norms: with fused norms), scores, loss, optimizer (optimizer-loop: one parameter after the other), or all, none; and metrics for the log")

/* Which strategies there are. */
#define TOPT_FIELDS_SPACE(X)                                                                                           \
    X(SPACE, space, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, SBATCH, "space", "NAME",                                       \
      "what the framework supports", "uniform,canonical,full,auto",                                                       \
      "advanced: strategies to search: uniform, canonical, full or auto")                                   \
    X(BLOCKS, blocks, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, TOPT, "blocks", "NAME",                                      \
      "auto", "auto,free,alike", "advanced: strategies of repeated blocks: alike, free or auto")                                \
    X(FACTORS, factors, LIST, 0, 39, TOPT_IN_ANY, ANSWER, SBATCH, "factors", "LIST",                                 \
      "auto", "zero,recompute,micro",                                                                                  \
      "advanced: what is searched besides splits: zero,recompute,micro, or all, none, auto")                             \
    X(MICRO_BATCHES, micro_batches, INT, 1, 1 << 30, TOPT_IN_ANY, ANSWER, SBATCH, "micro-batches", "N",              \
      "searched", NULL, "number of micro-batches per step (gradient accumulation steps), not their size")                                                           \
    X(TENSOR_PARALLEL, tensor_parallel, BOOL, 0, 1, TOPT_IN_ANY, ANSWER, SBATCH, "tensor-parallel", "",              \
      "megatron, primus, torchtitan: inside a node; others: only where nothing else fits", NULL,                                               \
      "also search tensor parallelism, across nodes too; the script must support it")                                      \
    X(SEQUENCE_PARALLEL, sequence_parallel, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, SBATCH, "sequence-parallel", "on/off",  \
      "on if the framework has it", "on,off",                                                                       \
      "sequence parallelism beside tensor parallelism: on or off (megatron, primus, torchtitan)")     \
    X(PIPELINE, pipeline, INT, 1, 64, TOPT_IN_ANY, ANSWER, SBATCH, "pipeline", "N",                                   \
      "megatron, primus, torchtitan: searched; others: 1", NULL,                                                             \
      "pipeline stages (1: none); the script must support them")                                                     \
    X(VIRTUAL_STAGES, virtual_stages, INT, 1, 64, TOPT_IN_ANY, ANSWER, SBATCH, "virtual-stages", "N",                 \
      "searched", NULL, "chunks of layers per pipeline stage (interleaved schedule; 1: none)")                       \
    X(SCHEDULE, schedule, WORD, 0, 31, TOPT_IN_ANY, ANSWER, SBATCH, "schedule", "NAME",                               \
      "searched", "1f1b,interleaved-1f1b,gpipe,zb-h1,interleaved-zb,zbv,dualpipev,combined-1f1b,combined-dualpipev",                                        \
      "the schedule of pipeline stages: 1f1b, interleaved-1f1b, with pytorch and torchtitan gpipe, with torchtitan zb-h1, interleaved-zb, zbv or dualpipev, with primus zb-h1 or zbv, with megatron and primus combined-1f1b (all-to-all of experts beside another micro-batch's compute) or, with megatron's fork MindSpeed, combined-dualpipev (DualPipe)") \
    X(SHARD_RANKS, shard_ranks, INT, 2, 1 << 20, TOPT_IN_ANY, ANSWER, SBATCH, "shard-ranks", "N",                     \
      "all data parallel ranks; megatron, primus, torchtitan: also those of a node", NULL,                                       \
      "data parallel ranks that FSDP or the distributed optimizer shards over, replicated over the others (HSDP)")        \
    X(CONTEXT, context, INT, 1, 1 << 10, TOPT_IN_ANY, PROBLEM, SBATCH, "context", "N",                                 \
      "searched where sequences are long", NULL, "GPUs that share out the positions of each sample (context parallelism; megatron, primus, torchtitan)") \
    X(EXPERT, expert, INT, 1, 1 << 14, TOPT_IN_ANY, ANSWER, SBATCH, "expert", "N",                                    \
      "megatron, primus, torchtitan: searched; others: 1", NULL,                                                             \
      "GPUs that the experts of a layer are shared out over (1: every GPU has all of them)")                         \
    X(EXPERT_TENSOR, expert_tensor, INT, 1, 1 << 10, TOPT_IN_ANY, ANSWER, TOPT, "expert-tensor", "N",                 \
      "searched", NULL, "GPUs that split each expert beside --expert, at most those of tensor parallelism (megatron)") \
    X(DEGREES, degrees, LABEL, 0, 199, TOPT_IN_ANY, ANSWER, SBATCH, "degrees", "LIST",                                \
      "searched", NULL, "fixed degrees, as tp=8,pp=8,vp=2,dp=16,mbs=1 (also cp, ep, etp, zero, recompute, even); others are searched") \
    X(AS_IS, as_is, BOOL, 0, 1, TOPT_IN_PLAN, PROBLEM, TOPTD, "as-is", "",                                            \
      "off", NULL, "the degrees, or without them the script that is sent, are a run that exists: the answer is the best plan, with that run beside it") \
    X(DISPATCH, dispatch, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, SBATCH, "dispatch", "NAME",                             \
      "alltoall", "alltoall,deepep",                                                                                 \
      "how tokens go to experts on other GPUs: alltoall (NCCL, once for each expert) or deepep (once for each node)") \
    X(SEQUENCE_SPLITS, sequence_splits, BOOL, 0, 1, TOPT_IN_ANY, PROBLEM, TOPT, "sequence-splits", "",              \
      "off", NULL, "also search splits of a sample's positions over GPUs")

#define TOPT_FIELDS_PIN(X)                                                                                             \
    X(PIN, pin, LABEL, 0, 3999, TOPT_IN_ANY, PROBLEM, SBATCH, "pin", "NAME=SPLIT",                                     \
      "none", NULL,                                                                                       \
      "advanced: fixed splits of operators, as 'h0.up=n:8' or 'h*.up=data 2 x tensor 4 over n', separated by ;")

#define TOPT_FIELDS_MEMORY(X)                                                                                          \
    X(MEMORY_BYTES, memory_bytes, BYTES, 1, (int64_t)1 << 61, TOPT_IN_ANY, ANSWER, REST, NULL, NULL,                 \
      "the usable memory of the profile's GPU", NULL, "memory limit per GPU, in bytes")                             \
    X(MEMORY, memory, MEMORY, 1, (int64_t)1 << 61, TOPT_IN_ANY, NONE, SBATCH, "memory", "SIZE",                    \
      "the usable memory of the profile's GPU", NULL, "memory limit per GPU, as 14.5GiB")

#define TOPT_FIELDS_ALGORITHM(X)                                                                                       \
    X(ALGORITHM, algorithm, WORD, 0, 31, TOPT_IN_ANY, PROBLEM, SBATCH, "algorithm", "NAME",                           \
      "ft", NULL, "search algorithm, or another system's: data-parallel, tofu, ...")

/* How it is searched. */
#define TOPT_FIELDS_SEARCH(X)                                                                                          \
    X(EPSILON, epsilon, REAL, 0, 1, TOPT_IN_ANY, PROBLEM, TOPT, "epsilon", "E",                                     \
      "0, which is exact", NULL, "allowed optimality gap of the time")                                                \
    X(MAX_TABLE_BYTES, max_table_bytes, BYTES, 1, (int64_t)1 << 61, TOPT_IN_ANY, PROBLEM, TOPT,                     \
      "max-table-bytes", "SIZE", "4GiB, or toptd's limit", NULL,                             \
      "largest memory for the cost tables")

/* Of requests alone. */
#define TOPT_FIELDS_REQUEST(X)                                                                                         \
    X(MODEL_ID, model_id, LABEL, 0, 127, TOPT_IN_PLAN, NONE, REST, NULL, NULL,                                     \
      "the model in the body", NULL, "a registered model, by id or by a name that no other has")                       \
    X(NAME, name, LABEL, 0, 127, TOPT_IN_PLAN, NONE, REST, NULL, NULL,                                             \
      "what the file says", NULL,                                                                                      \
      "what the model is called where its file does not say: a path, of which the last part counts, of "               \
      "x/config.json the folder")                                                                                      \
    X(WAIT_MS, wait_ms, INT, 0, TOPT_FIELD_WAIT_MOST, TOPT_IN_ANY, NONE, REST, NULL, NULL,                         \
      "2000; 25000 for text/plain", NULL, "how long to wait before a 202, in milliseconds")

#define TOPT_FIELDS(X)                                                                                                 \
    TOPT_FIELDS_ASKED(X)                                                                                               \
    TOPT_FIELDS_TRAINING(X)                                                                                            \
    TOPT_FIELDS_JOB(X)                                                                                                 \
    TOPT_FIELDS_SPACE(X)                                                                                               \
    TOPT_FIELDS_PIN(X)                                                                                                 \
    TOPT_FIELDS_MEMORY(X)                                                                                              \
    TOPT_FIELDS_ALGORITHM(X)                                                                                           \
    TOPT_FIELDS_SEARCH(X)                                                                                              \
    TOPT_FIELDS_REQUEST(X)

/* What goes with a question of a job in Slurm, in its URL alone, as slurm_NAME: X(name, KIND, MOST, OPTION, VALUES, HELP).
 * KIND is TEXT of at most MOST bytes, INT of at most MOST, or WORD, one of VALUES; OPTION is that of sbatch which says it,
 * NULL: none alone does. */
#define TOPT_SLURM_FIELDS(X)                                                                                           \
    X(partition, TEXT, 255, "partition", NULL,                                                                         \
      "where the job may go: a partition, or several with commas between (default: Slurm's)")                       \
    X(constraint, TEXT, 255, "constraint", NULL, "features that its nodes must have")                                  \
    X(nodelist, TEXT, 4095, "nodelist", NULL, "nodes that it must have, as Slurm lists them")                          \
    X(gpu_type, TEXT, 63, NULL, NULL, "the type of GPU that it names")                                                 \
    X(time, TEXT, 63, "time", NULL, "its time limit, as Slurm writes it")                                              \
    X(nodes, INT, 1 << 30, NULL, NULL, "the most nodes that it takes")                                                 \
    X(gpus_per_node, INT, 1 << 20, NULL, NULL, "the most GPUs that it takes of a node")                                \
    X(exclusive, TEXT, 15, "exclusive", NULL, "exclusive: it has its nodes for itself")                                \
    X(tasks, WORD, 7, NULL, "gpu,node", "what a task of it is for")                                                    \
    X(cpus_per_task, INT, 1 << 30, "cpus-per-task", NULL, "CPUs of a task")                                            \
    X(mem, TEXT, 63, "mem", NULL, "memory of a node")                                                                  \
    X(mem_per_gpu, TEXT, 63, "mem-per-gpu", NULL, "memory for each GPU")                                               \
    X(mem_per_cpu, TEXT, 63, "mem-per-cpu", NULL, "memory for each CPU")                                               \
    X(cpus_per_gpu, INT, 1 << 30, "cpus-per-gpu", NULL, "CPUs for each GPU")                                           \
    X(reservation, TEXT, 255, "reservation", NULL, "the reservation that it runs in")                                  \
    X(account, TEXT, 63, "account", NULL, "the account that is charged (default: the user's own)")                          \
    X(qos, TEXT, 63, "qos", NULL, "its quality of service (default: the account's)")                                        \
    X(show, WORD, 7, NULL, "table,all",                                                                                \
      "what of the answer is told in lines TOPT_SHOWN of text/plain: the alternatives, or all; of a curve its drawing")

/* clang-format on */

/* What follows where the field is an option of sbatch; of topt plan; of topt client. */
#define TOPT_FIELD_OF_SBATCH_SBATCH(...) __VA_ARGS__
#define TOPT_FIELD_OF_SBATCH_TOPT(...)
#define TOPT_FIELD_OF_SBATCH_TOPTD(...) __VA_ARGS__
#define TOPT_FIELD_OF_SBATCH_REST(...)
#define TOPT_FIELD_OF_TOPT_SBATCH(...) __VA_ARGS__
#define TOPT_FIELD_OF_TOPT_TOPT(...)   __VA_ARGS__
#define TOPT_FIELD_OF_TOPT_TOPTD(...)
#define TOPT_FIELD_OF_TOPT_REST(...)
#define TOPT_FIELD_OF_CLIENT_SBATCH(...) __VA_ARGS__
#define TOPT_FIELD_OF_CLIENT_TOPT(...)   __VA_ARGS__
#define TOPT_FIELD_OF_CLIENT_TOPTD(...)  __VA_ARGS__
#define TOPT_FIELD_OF_CLIENT_REST(...)

#endif
