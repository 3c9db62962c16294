/* ask.h - what the user asks with the --topt-* options, and the request made of it.
 *
 * Pure: knows no Slurm.  Thread safety: none; one owner at a time. */
#ifndef TOPT_ASK_H
#define TOPT_ASK_H

#include <stdint.h>

#include "topt_error.h"
#include "topt_label.h"
#include "topt_text.h"

enum topt_ask_kind {
    TOPT_ASK_IS_MODE,
    TOPT_ASK_IS_FILE,
    TOPT_ASK_IS_COUNT,
    TOPT_ASK_IS_BYTES,
    TOPT_ASK_IS_TEXT,
    TOPT_ASK_IS_FLAG, /* takes no argument */
    TOPT_ASK_IS_ON_ERROR,
};

/* X(NAME, option, argument shown, query field or NULL, kind, help) */
#define TOPT_ASK_OPTIONS(X)                                                              \
    X(MODE, "topt-mode", "MODE", "mode", MODE,                                           \
      "let topt size the job: mini-parallelism (fewest GPUs that fit) or mini-time")     \
    X(MODEL, "topt-model", "FILE", NULL, FILE, "the model: native or a config.json")     \
    X(BATCH, "topt-batch", "N", "batch", COUNT, "global batch size")                     \
    X(SEQ, "topt-seq", "N", "seq", COUNT, "sequence length")                             \
    X(MEMORY, "topt-memory", "SIZE", "memory", BYTES,                                    \
      "memory of a GPU to use, as 16GiB")                                                \
    X(MAX_GPUS, "topt-max-gpus", "N", "max_gpus", COUNT, "never more GPUs than this")    \
    X(GPUS, "topt-gpus", "N", "gpus", COUNT, "mini-time: the number of GPUs")            \
    X(HW, "topt-hw", "NAME", "hw", TEXT, "hardware profile")                             \
    X(FRAMEWORK, "topt-framework", "NAME", "framework", TEXT,                            \
      "what trains it: pytorch (default), deepspeed, megatron, torchtitan or topt")      \
    X(PRECISION, "topt-precision", "NAME", "precision", TEXT,                            \
      "bf16-mixed (default where the GPU has bf16), bf16 or f32")                        \
    X(EFFICIENCY, "topt-min-efficiency", "E", "min_efficiency", TEXT,                    \
      "the most GPUs that keep this share (0 to 1) of the best speed a GPU")             \
    X(TENSOR, "topt-tensor-parallel", NULL, "tensor_parallel", FLAG,                     \
      "split operators over GPUs too; the script must support it")                       \
    X(SPACE, "topt-space", "NAME", "space", TEXT,                                        \
      "experts: uniform, canonical or full (else as the framework obeys)")               \
    X(FACTORS, "topt-factors", "LIST", "factors", TEXT,                                  \
      "searched beside splits: zero,recompute,micro or all, none, auto")                 \
    X(ALGORITHM, "topt-algorithm", "NAME", "algorithm", TEXT,                            \
      "search as another system does: data-parallel, tofu, ...")                         \
    X(OPTIMIZER, "topt-optimizer", "NAME", "optimizer", TEXT,                            \
      "sgd, momentum, adam or adamw")                                                    \
    X(OVERLAP, "topt-overlap", "NAME", "overlap", TEXT,                                  \
      "what the script's framework communicates meanwhile: none, ddp or fsdp")           \
    X(EAGER, "topt-eager", "LIST", "eager", TEXT,                                        \
      "what it does not fuse: operators,scores,loss,optimizer or all, none")             \
    X(DRY_RUN, "topt-dry-run", NULL, NULL, FLAG, "say what the job would get, and end")  \
    X(ON_ERROR, "topt-on-error", "WHAT", NULL, ON_ERROR,                                 \
      "when the planner can't be reached: submit (the job as asked) or abort")

enum topt_ask_option {
#define X(name, option, arg, query, kind, help) TOPT_ASK_##name,
    TOPT_ASK_OPTIONS(X)
#undef X
        TOPT_ASK_COUNT
};

struct topt_ask_row {
    const char *option, *arg, *query, *help;
    enum topt_ask_kind kind;
};
extern const struct topt_ask_row topt_ask_table[TOPT_ASK_COUNT];

/* Start from {0}; values are owned copies, NULL where the user said nothing. */
struct topt_ask {
    char *value[TOPT_ASK_COUNT];
};

void topt_ask_fini(struct topt_ask *ask);

/* Take a copy of 'value'; the last one given stays.  -1 when out of memory. */
int topt_ask_set(struct topt_ask *ask, enum topt_ask_option which,
                 const char *value) TOPT_MUST_CHECK;

/* The first option given, or NULL: then topt has nothing to do with this job. */
const char *topt_ask_any(const struct topt_ask *ask);

/* Values can be read, and --topt-mode and --topt-model are both there.  Fails with one
 * line that names the option. */
int topt_ask_check(const struct topt_ask *ask, struct topt_error *err) TOPT_MUST_CHECK;

/* The mode is mini-time.  Only after topt_ask_check succeeded. */
int topt_ask_mini_time(const struct topt_ask *ask);

/* 1 when on_error is "abort", 0 for "submit" or NULL, -1 for anything else. */
int topt_ask_aborts(const char *on_error);

/* Read the model file (a folder stands for its config.json) of at most 64 MiB.  The bytes
 * are the caller's to free; 'ret_name' is what plans call it. */
char *topt_ask_model(const struct topt_ask *ask, size_t *ret_len,
                     char ret_name[TOPT_LABEL], struct topt_error *err) TOPT_MUST_CHECK;

/* Append "/v1/plan?mode=..&batch=..&name=.." to 'out' (its oom tells failure).
 * 'bound' is the most GPUs that the job's options allow, 0 for no bound (mini-time without
 * --topt-gpus takes that many); 'hw' the profile to name where the user named none, or
 * NULL. */
void topt_ask_target(const struct topt_ask *ask, const char *name, int64_t bound,
                     const char *hw, struct topt_text *out);

/* Append 's' with everything but letters, digits and -._~ as %XX. */
void topt_ask_escape(const char *s, struct topt_text *out);

#endif
