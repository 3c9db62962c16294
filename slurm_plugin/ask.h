/* ask.h - what the user asks with the --topt-* options, and the request made of it.
 *
 * Pure: knows no Slurm.  Thread safety: none; one owner at a time. */
#ifndef TOPT_SLURM_ASK_H
#define TOPT_SLURM_ASK_H

#include <stdint.h>

#include "topt_error.h"
#include "topt_fields.h"
#include "topt_label.h"
#include "topt_text.h"

enum topt_ask_kind {
    TOPT_ASK_IS_FILE,
    TOPT_ASK_IS_COUNT,
    TOPT_ASK_IS_COUNTS, /* one, or several with commas between */
    TOPT_ASK_IS_BYTES,
    TOPT_ASK_IS_SHARE,
    TOPT_ASK_IS_TEXT,
    TOPT_ASK_IS_FLAG,    /* takes no argument */
    TOPT_ASK_IS_ELASTIC, /* may take one: "auto" (as without one), "no", or counts; "kinds"
                          * and "requeue" alone, or before "auto" or counts with commas between */
};

/* X(NAME, option, argument shown, kind, help): what is said to the plugin alone; the rest
 * are the fields of a question (topt_fields.h) that are options of sbatch. */
#define TOPT_ASK_OPTIONS(X)                                                              \
    X(MODEL, "topt-model", "FILE", FILE,                                                 \
      "the model: a config.json, its folder or org/name, ONNX, a Megatron-LM script or " \
      "native")                                                                          \
    X(TASKS, "topt-tasks", "WHAT", TEXT,                                                 \
      "gpu: one task per GPU, as for topt run; node: one per node, as for torchrun, "    \
      "accelerate and deepspeed (default: from the job's tasks and --topt-framework)")   \
    X(ELASTIC, "topt-elastic", "COUNTS", ELASTIC,                                        \
      "let the job be resized while it waits: to these numbers of GPUs, or auto "        \
      "(halves and doubles); kinds, alone or before these: also moved to others of the " \
      "partitions that it names; requeue, likewise: it goes on from its checkpoints, "   \
      "so "                                                                              \
      "it may also be stopped and requeued; no: never")                                  \
    X(STEPS, "topt-steps", "N", COUNT,                                                   \
      "with --topt-elastic: steps that the job trains, for how long it runs in topt "    \
      "rightsize (default: its time limit)")                                             \
    X(DRY_RUN, "topt-dry-run", NULL, FLAG,                                               \
      "show the alternatives and what the job would get, without submitting")            \
    X(EXPLAIN, "topt-explain", NULL, FLAG,                                               \
      "show the whole answer: alternatives, why not fewer GPUs, memory and time")        \
    X(ON_ERROR, "topt-on-error", "WHAT", TEXT,                                           \
      "when there is no plan: gpus (the job as asked, if it asks for GPUs), submit (as " \
      "asked) or abort")

enum topt_ask_option {
#define X(ID, name, KIND, LEAST, MOST, WHERE, KEY, DOORS, ...)                           \
    TOPT_FIELD_OF_SBATCH_##DOORS(TOPT_ASK_##ID, )
    TOPT_FIELDS(X)
#undef X
#define X(NAME, ...) TOPT_ASK_##NAME,
        TOPT_ASK_OPTIONS(X)
#undef X
            TOPT_ASK_COUNT
};

struct topt_ask_row {
    const char *option, *query, *help; /* query: the field, or NULL */
    const char *arg;                   /* shown; NULL: none */
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

/* Values can be read, and --topt-model is there.  Fails with one line that names the option. */
int topt_ask_check(const struct topt_ask *ask, struct topt_error *err) TOPT_MUST_CHECK;

/* The mode is mini-time; is profiling; of --topt-mode, and where that is not said of how many
 * numbers --topt-gpus has (none is mini-parallelism). */
int topt_ask_mini_time(const struct topt_ask *ask);
int topt_ask_profiling(const struct topt_ask *ask);

/* Nothing is to be submitted, whatever the answer is.  Only after topt_ask_check succeeded. */
int topt_ask_shows_only(const struct topt_ask *ask);

/* Give the options that were not given what $TOPT_<OPTION> says: TOPT_HW for --topt-hw.
 * Not of --topt-gpus, whose variable is an answer's.  Fails with one line that names the
 * variable. */
int topt_ask_environment(struct topt_ask *ask, struct topt_error *err) TOPT_MUST_CHECK;

/* The option that the first 'len' letters of 'word' stand for, as "min_efficiency" for
 * --topt-min-efficiency, or -1. */
int topt_ask_find(const char *word, size_t len);

/* The numbers of GPUs that --topt-elastic names: how many of 'most', 0 for "auto", -1
 * where the job takes no other. Only after topt_ask_check succeeded. */
int topt_ask_elastic(const struct topt_ask *ask, int64_t *ret, int most);
/* Does it agree to GPUs of other kinds?  To be stopped and to wait again, once it runs? */
int topt_ask_kinds(const struct topt_ask *ask);
int topt_ask_requeues(const struct topt_ask *ask);

/* The value alone can be read. */
int topt_ask_check_value(enum topt_ask_option which, const char *value,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* Why a job that asks, and has several parts, is refused. */
#define TOPT_ASK_NO_PARTS                                                                \
    "the parts of a heterogeneous job can't be sized: give none of them --topt-..., "    \
    "and "                                                                               \
    "book what `topt client plan` prints"

/* What becomes of a job without a plan. */
enum topt_on_error {
    TOPT_ON_ERROR_GPUS, /* it goes as it was asked if that names GPUs; else it is refused */
    TOPT_ON_ERROR_SUBMIT, /* it goes as it was asked */
    TOPT_ON_ERROR_ABORT,  /* it is refused */
};
/* NULL is "gpus".  -1 for a word that is none of these. */
int topt_ask_on_error(const char *word);

/* Read the model file (a folder stands for its config.json) of at most 64 MiB.  The bytes
 * are the caller's to free; 'ret_name' is what plans call it. */
char *topt_ask_model(const struct topt_ask *ask, size_t *ret_len,
                     char ret_name[TOPT_LABEL], struct topt_error *err) TOPT_MUST_CHECK;

/* Append "/v1/plan?mode=..&batch=..&name=.." to 'out' (its oom tells failure).
 * 'bound' is the most GPUs that the job's options allow, 0 for no bound (mini-time without
 * --topt-gpus takes that many). */
void topt_ask_target(const struct topt_ask *ask, const char *name, int64_t bound,
                     struct topt_text *out);

/* Append 's' with everything but letters, digits and -._~ as %XX. */
void topt_ask_escape(const char *s, struct topt_text *out);

#endif
