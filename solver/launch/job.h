/* job.h - what a plan document says to a framework: ranks, batch, precision, and the shape of a
 * decoder.  Private to launch/. */
#ifndef TOPT_LAUNCH_JOB_H
#define TOPT_LAUNCH_JOB_H

#include <jansson.h>
#include <stdint.h>

#include "topt_component.h"
#include "topt_error.h"
#include "topt_order.h"
#include "topt_text.h"

enum job_precision { JOB_F32, JOB_BF16_MIXED, JOB_BF16, JOB_F64, JOB_F16_MIXED };

/* The shape of the model as far as frameworks ask for it; zeros where it has no such thing. */
struct job_model {
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, positions, experts,
        top_k, mtp; /* 'mtp': modules that predict further tokens, beside 'layers' */
    int dense, causal, rms, gated, bias, qkv_bias, tied, head_norm, rotary, distance;
    double eps, theta, rope_factor; /* above 0: angles scaled as Llama 3.1 does */
    const char *activation;
    const char *other; /* an operator that a plain decoder does not have, or NULL */
};

enum { JOB_COMPONENTS = 8 }; /* as many as a profile has groups */

/* Strings are borrowed from the document. */
struct job {
    const json_t *plan;
    const char *id, *framework, *optimizer, *name, *hw, *mode;
    const char *calls; /* what the target calls the optimizer; set by topt_launch() */
    enum job_precision precision;
    const char *low; /* scaling of products in few bits beside bf16; NULL: none */
    int low_params;  /* with weights in these bits */
    int64_t nodes, gpus;
    int64_t per_node; /* GPUs of a node; 0: components have nodes of different sizes */
    int64_t dp, tp, pp, vp, ep, etp, cp, zero, micro, steps, batch, seq;
    int64_t recompute_layers; /* the first of each chunk of a stage alone; 0: all */
    const char *modules;      /* that are recomputed, with + between; "": whole layers */
    int64_t shard;            /* of 'dp', those that 'zero' shards over */
    /* 'dp' and what follows from it are 0 of a plan that splits operators each in its own way. */
    int cuda_graphs;
    int gradient_f32;   /* gradients are accumulated in f32 */
    int tensor_overlap; /* communication of tensor parallelism beside its products */
    int low_attention;  /* attention in 8 bits */
    int low_activation; /* the input of gated activations is kept in 8 bits */
    int64_t offload;    /* what rests on the host, as bits: enum topt_offload */
    int64_t offload_permille; /* of the optimizer's states */
    int recompute, overlap;   /* hides reductions behind computation */
    int sequence_parallel;    /* beside tensor parallelism */
    /* of each chunk of pipeline stages, in the model's order; NULL: none */
    const json_t *layers;
    /* The nodes of each group of unlike GPUs, in the order of the plan's ranks; one without a name where all are alike. */
    struct topt_component component[JOB_COMPONENTS];
    int components;
    int unequal_shares;        /* of the batch or the state, for each group its own */
    enum topt_order_row order; /* their schedule */
    const char *dispatch;      /* how tokens go to experts on other devices, by name */
    const char *cp_comm; /* what attention does over context ranks; "": there are none */
    const char *loss;    /* the kernel of the loss, by name */
    const char *train;   /* as topt_model_train() was told; "all" */
    int64_t trained;     /* parameters, of a plan that does not train all */
    struct job_model model;
};

int topt_job_read(const json_t *plan, struct job *ret,
                  struct topt_error *err) TOPT_MUST_CHECK;

struct sheet;
/* INFEASIBLE: "REASON; ask: topt plan MODEL ... --framework NAME". */
int topt_job_refuse(const struct job *j, const char *framework, struct topt_error *err,
                    const char *reason, ...) TOPT_PRINTF(4, 5);
/* The line of code for what layers keep on the host. */
void topt_job_offload_kept(const struct job *j, struct sheet *s);
/* Refuse a plan that does not train all parameters. */
int topt_job_trains_all(const struct job *j, const char *framework,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* Refuse unless tensor parallelism divides query heads, key-value heads and the inner features.
 * 'replicate': key-value heads may be fewer than it, if they divide it. */
int topt_job_splits(const struct job *j, const char *framework, int replicate,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* Has each of the pipeline's chunks as many layers as the others? */
int topt_job_even_stages(const struct job *j);

/* Bits of 'offload' (enum topt_offload of lower/, which this does not know). */
enum {
    JOB_HOST_STATES = 1,
    JOB_HOST_GRADIENTS = 2,
    JOB_HOST_PARAMETERS = 4,
    JOB_HOST_KEPT = 8,
    JOB_HOST_MODULES = 16 /* and the next ones, of each module one */
};
/* The level of sharding to be said: on one data parallel rank what rests on the host is still that of a sharded
 * parameter. */
int64_t topt_job_zero(const struct job *j);
/* The ranks that share what is sharded over replicas: context ranks have the same parameters as data ranks. */
int64_t topt_job_sharers(const struct job *j);

const char *topt_job_precision(enum job_precision p);
/* Does it compute in a type of two bytes beside weights in f32? */
int topt_job_is_mixed(const struct job *j);

/* What a target writes into: remarks and files of the answer. */
struct sheet {
    json_t *differs, *script, *files;
    /* In a job of Slurm srun starts this for each GPU; NULL: it starts launch.sh on each node. */
    const char *each_gpu;
};
/* The files as one file job.sh, which writes them into a folder of the job and starts the plan:
 * 'head', remarks in comments, and variables of 'env' (NULL: none). */
int topt_job_as_slurm(const struct job *j, const char *head, const json_t *env,
                      struct sheet *s, struct topt_error *err) TOPT_MUST_CHECK;
void topt_sheet_differs(struct sheet *s, const char *fmt, ...) TOPT_PRINTF(2, 3);
void topt_sheet_script(struct sheet *s, const char *fmt, ...) TOPT_PRINTF(2, 3);
/* Takes the text. */
int topt_sheet_file(struct sheet *s, const char *name, struct topt_text *text,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* A name that a shell and Slurm take as it is. */
void topt_job_put_name(const char *name, struct topt_text *t);

/* launch.sh is started once on each node, with MASTER_ADDR (and MASTER_PORT) where there are
 * several.  These write its lines: the folder of the files beside it, as $here ... */
void topt_job_here(struct topt_text *t);
/* ... from which Python imports, too; */
void topt_job_import_here(struct topt_text *t);
/* ... where GPUs are of several groups, $node, the number of the node among those of all groups ... */
void topt_job_put_node(const struct job *j, struct topt_text *t);
/* "torchrun" with ranks and meeting place, up to the script; 'command' may be another that takes
 * these. */
void topt_job_start_torchrun(const struct job *j, const char *command,
                             struct topt_text *t);

/* Adapters or few bits of the plan that PyTorch's libraries can't split or share out.
 * 'shards_from' is the level of ZeRO from which the launcher shards parameters. */
int topt_job_train_fits(const struct job *j, int shards_from,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* For launchers other than torchrun: topt_apply.py and the lines that freeze the model, where not
 * all is trained. */
int topt_job_write_train(const struct job *j, struct sheet *s, struct topt_error *err);

/* The targets. */
int topt_launch_hf(const struct job *j, struct sheet *s, struct topt_error *err);
int topt_launch_torchtune(const struct job *j, struct sheet *s, struct topt_error *err);
int topt_launch_topt(const struct job *j, struct sheet *s, struct topt_error *err);
int topt_launch_torchrun(const struct job *j, struct sheet *s, struct topt_error *err);
int topt_launch_accelerate(const struct job *j, struct sheet *s, struct topt_error *err);
int topt_launch_deepspeed(const struct job *j, struct sheet *s, struct topt_error *err);
int topt_launch_megatron(const struct job *j, struct sheet *s, struct topt_error *err);
int topt_launch_primus(const struct job *j, struct sheet *s, struct topt_error *err);

/* Adds Megatron-LM's arguments for a plan, each after " \\\n    " with its values, as a shell reads them, and remarks to
 * the sheet.  1; 0: those of the architecture are not among them; -1: refused. */
int topt_launch_megatron_arguments(const struct job *j, struct topt_text *t,
                                   struct sheet *s, struct topt_error *err);
int topt_launch_megatron_schedules(const struct job *j); /* has it the plan's schedule? */
/* Adds the line for the number of the device's queues where it matters. */
void topt_launch_megatron_queues(const struct job *j, struct topt_text *t);
int topt_launch_torchtitan(const struct job *j, struct sheet *s, struct topt_error *err);

#endif
