/* ask.h - what the commands about plans share: options, the loader of what is asked about, and
 * writing answers.  Private to cli/; for a program's main thread. */
#ifndef TOPT_ASK_H
#define TOPT_ASK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "topt_options.h"
#include "topt_plan.h"
#include "topt_progress.h"

enum { TOPT_ASK_COUNTS = 64 };

struct topt_args {
    const char *hw, *gpus, *batch, *output, *plan, *svg, *loss, *train;
    int64_t max_gpus, memory, micro, threads, count, seed, work, entries, table_bytes;
    double epsilon, seconds, min_efficiency;
    int json, quiet, sequence;
    struct topt_explain_options explain;
    struct topt_words words; /* .batch: of the list the one that is asked about now */
};

struct topt_question {
    struct topt_args a;
    struct topt_model *model;
    struct topt_hw *hw;
    struct topt_request r;
    const char *path; /* of the model */
    int64_t gpus[TOPT_ASK_COUNTS];
    int64_t batch[TOPT_ASK_COUNTS]; /* --batch N,N... */
    int nbatch, batch_auto;
    struct topt_watch watch; /* while the search runs */
};

/* Options come in groups; a command's table has those that it heeds. */
#define ASK_AT(field)   offsetof(struct topt_args, field)
#define ASK_WORD(field) offsetof(struct topt_args, words.field)
/* The model, the cluster, and how the job runs. */
#define ASK_JOB                                                                          \
    {"hw", TOPT_OPT_STRING, ASK_AT(hw), "NAME|FILE", "hardware profile (topt hw list)"}, \
        {"batch", TOPT_OPT_STRING, ASK_AT(batch), "N",                                   \
         "samples a step, over all GPUs (the global batch)"},                            \
        {"seq", TOPT_OPT_COUNT, ASK_WORD(seq), "N",                                      \
         "positions a sample: tokens of a sequence"},                                    \
        {"framework", TOPT_OPT_STRING, ASK_WORD(framework), "NAME",                      \
         "what will train it: pytorch (default), deepspeed, megatron, torchtitan, or "   \
         "topt (topt run)"},                                                             \
        {"loss", TOPT_OPT_STRING, ASK_AT(loss), "NAME",                                  \
         "of an ONNX graph: cross_entropy or mse (default: by its output)"},             \
        {"train", TOPT_OPT_STRING, ASK_AT(train), "WHAT",                                \
         "all (default), names, or lora[:RANK[:NAMES]]; +4bit or +8bit"},                \
        {"precision", TOPT_OPT_STRING, ASK_WORD(precision), "P",                         \
         "bf16-mixed (default where the device has bf16), bf16, f32 or f64"},            \
        {"optimizer", TOPT_OPT_STRING, ASK_WORD(optimizer), "O",                         \
         "sgd, momentum, adam, adamw, adafactor or adam8"},                              \
        {"gradient-f32", TOPT_OPT_FLAG, ASK_WORD(gradient_f32), "",                      \
         "bf16-mixed: gradients are added up in f32 (else as the framework does)"},      \
        {"accounting", TOPT_OPT_STRING, ASK_WORD(accounting), "A",                       \
         "run, or paper: memory as the papers count it"},                                \
        {"overlap", TOPT_OPT_STRING, ASK_WORD(overlap), "O",                             \
         "experts: what the network hides: none, ddp or fsdp (else as the framework)"},  \
    {                                                                                    \
        "eager", TOPT_OPT_STRING, ASK_WORD(eager), "LIST",                               \
            "experts: what is not fused: operators,scores,loss,optimizer, all or none"   \
    }

/* Which strategies there are. */
#define ASK_SPACE                                                                        \
    {"space", TOPT_OPT_STRING, ASK_WORD(space), "NAME",                                  \
     "experts: uniform, canonical, full or auto (else what the framework obeys)"},       \
        {"blocks", TOPT_OPT_STRING, ASK_WORD(blocks), "NAME",                            \
         "experts: repeated blocks choose auto, free or alike"},                         \
        {"factors", TOPT_OPT_STRING, ASK_WORD(factors), "LIST",                          \
         "experts: what is searched beside splits: zero,recompute,micro or all, none, "  \
         "auto"},                                                                        \
        {"micro-batches", TOPT_OPT_COUNT, ASK_AT(micro), "N", "just so many a step"},    \
        {"tensor-parallel", TOPT_OPT_FLAG, ASK_WORD(tensor_parallel), "",                \
         "search tensor parallelism inside a node too (the script has to support it)"},  \
    {                                                                                    \
        "sequence-splits", TOPT_OPT_FLAG, ASK_AT(sequence), "", "split positions too"    \
    }

#define ASK_MEMORY                                                                       \
    {                                                                                    \
        "memory", TOPT_OPT_MEMORY, ASK_AT(memory), "BYTES",                              \
            "limit a GPU, as 14.5GiB (default: what the profile's has)"                  \
    }

#define ASK_ALGORITHM                                                                    \
    {                                                                                    \
        "algorithm", TOPT_OPT_STRING, ASK_WORD(algorithm), "NAME",                       \
            "search, or another system's way (default ft)"                               \
    }

/* How it is searched, and when to answer with the best so far. */
#define ASK_SEARCH                                                                       \
    ASK_MEMORY,                                                                          \
        {"epsilon", TOPT_OPT_REAL, ASK_AT(epsilon), "E",                                 \
         "allowed loss of time, proven; 0 is exact"},                                    \
        {"threads", TOPT_OPT_COUNT, ASK_AT(threads), "N",                                \
         "threads of the search; else the processors, at most 8"},                       \
        {"seconds", TOPT_OPT_POSITIVE, ASK_AT(seconds), "S",                             \
         "answer after so long with the best so far, and how good it is"},               \
        {"max-work", TOPT_OPT_COUNT, ASK_AT(work), "N",                                  \
         "the same after so many pairs of points, the same on any machine"},             \
        {"max-table-bytes", TOPT_OPT_MEMORY, ASK_AT(table_bytes), "BYTES",               \
         "refuse problems whose costs take more memory (4GiB)"},                         \
    {                                                                                    \
        "max-entries", TOPT_OPT_COUNT, ASK_AT(entries), "N",                             \
            "decide operators by heuristic where tables would be larger "                \
            "(8388608)"                                                                  \
    }

#define ASK_QUIET                                                                        \
    {                                                                                    \
        "quiet", TOPT_OPT_FLAG, ASK_AT(quiet), "",                                       \
            "no line on a terminal about progress"                                       \
    }

#define ASK_JSON                                                                         \
    {                                                                                    \
        "json", TOPT_OPT_FLAG, ASK_AT(json), "", "JSON on standard output"               \
    }

#define ASK_OUTPUT                                                                       \
    {                                                                                    \
        "o", TOPT_OPT_STRING, ASK_AT(output), "FILE", "write the result to a file"       \
    }

/* Parse the options, load model and profile, and make the request.  0; 1 where help was shown;
 * -1 with the error.  'usage' may go on with lines of help; 'framework' is the one where
 * none is named, NULL: that of all questions about plans.  Always followed by
 * topt_ask_fini(). */
/* Where --batch lists several: ask the same of the i-th. */
int topt_ask_batch(struct topt_question *q, int64_t batch,
                   struct topt_error *err) TOPT_MUST_CHECK;
int topt_ask(struct topt_question *q, const struct topt_option *table, const char *usage,
             const char *framework, int argc, char **argv,
             struct topt_error *err) TOPT_MUST_CHECK;
void topt_ask_fini(struct topt_question *q);
/* From here on the search may take long: a terminal is told, until topt_watch_stop(). */
void topt_ask_watch(struct topt_question *q);

/* Print the error of a command; the exit status. */
int topt_cli_fail(const char *command, const struct topt_error *err);
int topt_cli_write_json(const json_t *doc, const char *path,
                        struct topt_error *err) TOPT_MUST_CHECK;
int topt_cli_width(void); /* columns of the terminal, or 100 */
/* Members of a document; 0 and "" where there is none. */
int64_t topt_cli_whole(const json_t *o, const char *key);
const char *topt_cli_words(const json_t *o, const char *key);

#endif
