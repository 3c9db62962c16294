/* topt_plan.h - questions people ask, answered as documents.
 *
 * A request (model, hardware, mode, limits) becomes a plan document "topt-plan/1": the
 * chosen strategy with everything a rank needs to run it (the model inside), what it is
 * predicted to cost, and why it was chosen.  Every plan is re-costed and lowered by the
 * checker before anyone gets it.
 * Thread safety: reentrant; requests, models and profiles are only read. */
#ifndef TOPT_PLAN_H
#define TOPT_PLAN_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>

#include "topt_framework.h"
#include "topt_hw.h"
#include "topt_lower.h"
#include "topt_model.h"
#include "topt_search.h"

enum topt_mode { TOPT_MINI_TIME, TOPT_MINI_PARALLELISM, TOPT_PROFILING, TOPT_MODE_COUNT };
enum topt_space {
    TOPT_SPACE_AUTO, /* full up to 16 devices, canonical beyond */
    TOPT_SPACE_FULL,
    TOPT_SPACE_CANONICAL,
    TOPT_SPACE_UNIFORM,
    TOPT_SPACE_COUNT
};

/* Does every repeated block choose by itself, or do all of a kind choose alike? */
enum topt_block_choice {
    /* Alike in the uniform space; where recomputation is searched, too, but for the fastest within a
     * tolerance. */
    TOPT_BLOCKS_AUTO,
    TOPT_BLOCKS_FREE,
    TOPT_BLOCKS_ALIKE,
    TOPT_BLOCKS_COUNT
};

/* What is searched beside splits, as bits. */
enum topt_factor {
    TOPT_FACTOR_ZERO = 1,      /* sharding over the replicas of a parameter */
    TOPT_FACTOR_RECOMPUTE = 2, /* making activations again in backward */
    TOPT_FACTOR_MICRO = 4,     /* micro-batches: all divisors of the batch */
    TOPT_FACTORS_ALL = 7,
    /* all in the uniform space, sharding in the others, none by the papers' accounting */
    TOPT_FACTORS_AUTO = 8
};

/* Which numbers of GPUs are tried where nobody names them. */
enum topt_counts {
    TOPT_COUNTS_ANY,  /* every number, on every grid of nodes x equal devices a node */
    TOPT_COUNTS_POW2, /* powers of two, on the fewest nodes that have them, as the next */
    TOPT_COUNTS_WHOLE, /* what people book: divisors of a node, then whole nodes */
    TOPT_COUNTS_COUNT
};

/* What whoever asks said, so that an answer can name what was assumed; bits. */
enum topt_given {
    TOPT_GIVEN_FRAMEWORK = 1,
    TOPT_GIVEN_PRECISION = 2,
    TOPT_GIVEN_OPTIMIZER = 4,
    TOPT_GIVEN_OVERLAP = 8,
    TOPT_GIVEN_EAGER = 16,
    TOPT_GIVEN_GRADIENT = 32,
    TOPT_GIVEN_BATCH = 64,
    TOPT_GIVEN_SEQ = 128
};

struct topt_request {
    const struct topt_model *model;
    const struct topt_hw *hw;
    enum topt_mode mode;
    int64_t gpus;     /* mini-time: exactly so many; profiling: 0 */
    int64_t max_gpus; /* mini-parallelism, profiling: at most; 0: all the profile has */
    const int64_t *gpu_list; /* profiling: these counts, or NULL for 'counts' up to max */
    int ngpu_list;
    enum topt_counts counts;
    int64_t memory_limit; /* bytes a device; 0: what the profile's device has */
    enum topt_space space;
    int sequence_splits; /* search splits of sequence dimensions too */
    enum topt_block_choice blocks;
    int factors;           /* bits of enum topt_factor */
    const char *algorithm; /* NULL: ft */
    double epsilon;
    int threads;
    int64_t micro_batches; /* just so many; 0: searched, or 1 where they are not */
    /* Of the uniform space: the row decides what it may be.  NULL: nothing is left out (topt's own). */
    const struct topt_framework *framework;
    int tensor_parallel; /* as much as the framework can be asked for */
    const struct topt_precision *precision; /* NULL: settings.dtype is as it is */
    int given;                              /* bits of enum topt_given */
    double
        min_efficiency; /* mini-parallelism: take the most GPUs that are at least so efficient; 0: the fewest */
    /* granule_bytes 0: the profile's; micro_batches is not read */
    struct topt_settings settings;
    const atomic_bool *cancel;      /* polled: fail with CANCELED; may be NULL */
    struct topt_progress *progress; /* told what the search is at; may be NULL */
    /* Polled: answer with the best so far, and how good it is known to be; may be NULL. */
    const atomic_bool *stop;
    int64_t max_work; /* the same after so much counted work of the search; 0: no limit */
    int64_t
        max_entries; /* as of searches: larger tables are decided by heuristic; 0: 2^23 */
    int64_t
        max_table_bytes; /* fail with LIMIT where a problem's costs take more; 0: 4 GiB */
};

/* Sensible values for everything that is not a pointer. */
void topt_request_init(struct topt_request *r);

/* What is asked, in words; NULL and 0: not said.  Borrowed. */
struct topt_words {
    const char *mode, *framework, *space, *blocks, *factors, *counts, *algorithm,
        *precision, *optimizer, *accounting, *overlap, *eager;
    int64_t batch, seq;
    int gradient_f32, tensor_parallel;
};
/* Put words into a request (after topt_request_init).  '*ret_field' names the one at fault; may be NULL. */
int topt_request_read(const struct topt_words *w, struct topt_request *r,
                      const char **ret_field, struct topt_error *err) TOPT_MUST_CHECK;
/* With the model and the profile in it: what was not said is taken from the framework's row, the default one
 * where none was named, and the precision that the device has.  INVAL where the limit is more than it has. */
int topt_request_complete(struct topt_request *r, struct topt_error *err) TOPT_MUST_CHECK;

/* What was not said, as [{"what", "value", "option"}, ...]; and what the job is: {"model", "hw", "parameters", "batch",
 * "seq", "precision", "optimizer", "framework", ...}.  New references. */
json_t *topt_request_assumed(const struct topt_request *r);
json_t *topt_request_job(const struct topt_request *r);

/* The request's settings with the profile's granule where none is given. */
struct topt_settings topt_request_settings(const struct topt_request *r);

/* Names as people write them, for options and JSON: "mini-time", "full"... */
int topt_mode_parse(const char *name, enum topt_mode *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;
int topt_space_parse(const char *name, enum topt_space *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;
int topt_blocks_parse(const char *name, enum topt_block_choice *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* "zero,recompute,micro", in any selection, or "all", "none", "auto". */
int topt_factors_parse(const char *list, int *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;
int topt_counts_parse(const char *name, enum topt_counts *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
int topt_dtype_parse(const char *name, enum topt_dtype *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;
int topt_accounting_parse(const char *name, enum topt_accounting *ret,
                          struct topt_error *err) TOPT_MUST_CHECK;
/* INVAL with all names where there is none such: a search (topt_search.h), or another system's.
 * NULL is ft. */
int topt_algorithm_check(const char *name, struct topt_error *err) TOPT_MUST_CHECK;
int topt_overlap_parse(const char *name, enum topt_overlap *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;
/* "operators,scores,loss,optimizer", in any selection, or "all", "none"; bits of enum
 * topt_eager_part, and back, NULL without memory, owned by the caller. */
int topt_eager_parse(const char *list, int *ret, struct topt_error *err) TOPT_MUST_CHECK;
char *topt_eager_words(int parts);
int topt_optimizer_parse(const char *name, enum topt_optimizer *ret,
                         struct topt_error *err) TOPT_MUST_CHECK;
const char *topt_mode_name(enum topt_mode m);
const char *topt_space_name(enum topt_space s);
const char *topt_blocks_name(enum topt_block_choice b);

/* Answer a mini-time or mini-parallelism request.
 *  0 and '*ret' the answer, a new reference:
 *      {"feasible":true,"gpus","nodes","gpus_per_node","memory_bytes","peak_bytes","time_ns",
 *       "compute_ns","network_ns","why","strategy","space",...,"plan":{topt-plan/1}}
 *    or, when nothing fits,
 *      {"feasible":false,"why","nearest":{"gpus","memory_bytes",...}}   (no "plan")
 * -1: the request is malformed, was canceled, or passed a limit. */
int topt_plan(const struct topt_request *r, json_t **ret,
              struct topt_error *err) TOPT_MUST_CHECK;

/* Answer a profiling request: {"points":[{"gpus","nodes","feasible","limit","memory_bytes",
 * "time_ns"},...], "model", "hw", "space", "batch", "seq"}. */
int topt_plan_curve(const struct topt_request *r, json_t **ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* The whole frontier for r->gpus devices: {"points":[{"memory_bytes","time_ns",
 * "compute_ns","network_ns","nodes"},...],"exact","epsilon","space",...}. */
int topt_plan_frontier(const struct topt_request *r, json_t **ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* All systems on r->gpus devices: "topt-compare/1", rows sorted by time.  Each has its fastest
 * plan within the limit, or where it has none the one that needs least. */
int topt_plan_compare(const struct topt_request *r, json_t **ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* The same as a table for people; freed by the caller. */
char *topt_compare_text(const json_t *compare);

/* A plan document read back: everything a rank needs. */
struct topt_plan_doc {
    struct topt_model *model; /* of the global batch */
    struct topt_model
        *micro; /* of a micro-batch, which is lowered; 'model' where that is all */
    struct topt_mesh mesh;
    struct topt_settings settings;
    struct topt_strategy *strategy;
    int64_t memory_bytes, peak_bytes, time_ns; /* as predicted when it was made */
    char id[24];                               /* "p-<16 hex>" of the document */
    struct topt_program *program;              /* lowered; what ranks execute */
    struct topt_router *router;
    struct topt_hw *hw; /* the profile it was planned for */
};
/* Parse, check (known fields, model digest, strategy fits) and lower. */
int topt_plan_read(const json_t *doc, struct topt_plan_doc **ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
int topt_plan_load(const char *path, struct topt_plan_doc **ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
void topt_plan_doc_destroy(struct topt_plan_doc *p);

/* Memory of the largest device by component: what adds up to memory_bytes, and the reserve
 * beside it.  A new reference. */
json_t *topt_memory_parts(const struct topt_hw *hw, const struct topt_strategy_cost *c);
/* What people call such a part. */
const char *topt_part_words(const char *part);
/* Between what and what memory of the device and time will be, and what the time rests on:
 * {"memory":{"low_bytes","high_bytes"},"time":{"low_ns","high_ns","rests_on_ns":{...}}}. */
json_t *topt_prediction_band(const struct topt_hw *hw, const struct topt_strategy_cost *c,
                             int64_t peak_bytes);

/* What the plan does in a line ("data 2 x tensor 2") and in paragraphs; freed by the caller. */
char *topt_plan_strategy_words(const struct topt_plan_doc *p);
struct topt_explain_options {
    int operators; /* every operator by itself */
    int notation;  /* also as a device mesh and tensor maps */
    /* Also what fewer and more GPUs would do, which is searched as the plan was. */
    int around, threads;
    const atomic_bool *cancel;
    struct topt_progress *progress;
};
char *topt_plan_explain(const json_t *plan, const struct topt_explain_options *o,
                        struct topt_error *err);
/* The same as numbers and lists, a new reference: docs/FORMATS.md. */
json_t *topt_plan_explain_json(const json_t *plan, const struct topt_explain_options *o,
                               struct topt_error *err);

/* The curve of topt_plan_curve drawn for a terminal of 'width' columns; freed by caller. */
char *topt_plot_curve(const json_t *curve, int width);
/* The frontier of topt_plan_frontier drawn the same way. */
char *topt_plot_frontier(const json_t *frontier, int width);
/* Both as SVG that stands alone, the same bytes for the same document; freed by the caller,
 * NULL when out of memory. */
char *topt_svg_curve(const json_t *curve);
char *topt_svg_frontier(const json_t *frontier);

/* 'count' random valid strategies (seeded, repeatable) as plan documents: a JSON array. */
int topt_plan_sample(const struct topt_request *r, int count, uint64_t seed, json_t **ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* The bare problem of r->gpus devices as a "topt-costs/1" text, freed by the caller: its
 * frontier is topt_plan_frontier's.  LIMIT where it would be too large. */
int topt_plan_costgraph(const struct topt_request *r, char **ret_text,
                        struct topt_error *err) TOPT_MUST_CHECK;

#endif
