/* topt_question.h - what is asked: the request, its words and their names.
 *
 * Thread safety: reentrant; requests, models and profiles are only read. */
#ifndef TOPT_QUESTION_H
#define TOPT_QUESTION_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>

#include "topt_query.h"
#include "topt_choices.h"
#include "topt_framework.h"
#include "topt_hw.h"
#include "topt_lower.h"
#include "topt_model.h"
#include "topt_progress.h"
#include "topt_totals.h"

enum topt_mode { TOPT_MINI_TIME, TOPT_MINI_PARALLELISM, TOPT_PROFILING, TOPT_MODE_COUNT };
/* Which numbers of GPUs are tried where the request names none. */
enum topt_counts {
    TOPT_COUNTS_ANY,  /* every number, on every grid of nodes x equal devices a node */
    TOPT_COUNTS_POW2, /* powers of two, on the fewest nodes that have them, as the next */
    TOPT_COUNTS_WHOLE, /* what people book: divisors of a node, then whole nodes */
    TOPT_COUNTS_NODES, /* whole nodes alone, where nobody shares a node */
    TOPT_COUNTS_COUNT
};

/* The options that the user gave, so that an answer can name those that were assumed; bits. */
enum topt_given {
    TOPT_GIVEN_FRAMEWORK = 1,
    TOPT_GIVEN_PRECISION = 2,
    TOPT_GIVEN_OPTIMIZER = 4,
    TOPT_GIVEN_OVERLAP = 8,
    TOPT_GIVEN_EAGER = 16,
    TOPT_GIVEN_GRADIENT = 32,
    TOPT_GIVEN_BATCH = 64,
    TOPT_GIVEN_SEQ = 128,
    TOPT_GIVEN_ATTENTION = 256,
    TOPT_GIVEN_LOSS = 512
};

/* Groups of unlike devices along the first axis: its parts, what each takes of all that it splits,
 * and the one whose costs count.  Or pipeline stages on them: the profile of all groups, in the order of the stages
 * (borrowed; NULL: none), where the request's own has as many devices that are like the fastest, by which searches are
 * bounded, with the memory of the largest. */
struct topt_unlike {
    int parts, seen;
    int64_t share[TOPT_MAX_SHARES];
    const struct topt_hw *groups;
};

struct topt_request {
    const struct topt_model *model;
    /* The same with queries, keys and values apart (TOPT_APART_HEADS), which context ranks have; NULL: 'model' serves. */
    const struct topt_model *apart;
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
    const char *pin;       /* splits that are chosen, "NAME=SPLIT;..."; NULL: none */
    /* Degrees that the uniform space keeps to, as asked for or of a run that was measured; 0, of
     * 'zero' and 'recompute' -1: any.  'micro_batch': samples that a data parallel rank takes at once. */
    struct topt_fixed {
        int any;      /* is one of them fixed? */
        int64_t even; /* 1: each chunk of a stage has as many layers */
        int64_t data, tensor, stages, chunks, context, expert, expert_tensor, micro_batch,
            zero, recompute,
            recompute_layers; /* of pipeline stages: the first of each chunk alone; 0: all */
    } fixed;
    double epsilon;
    struct topt_totals totals; /* the whole of it, of which answers give the totals */
    int threads;
    int64_t software;      /* the year of the framework's release; 0: today's */
    int64_t micro_batches; /* just so many; 0: searched, or 1 where they are not */
    /* The row that decides what the uniform space may be.  NULL: nothing is left out (topt's
     * own). */
    const struct topt_framework *framework;
    /* just so many stages, chunks of each; 0: searched */
    int64_t pipeline, virtual_stages;
    int64_t shard_ranks; /* data ranks that ZeRO shards over; 0: all, or as searched */
    int schedule; /* of stages, the row of enum topt_order_row and one; 0: searched */
    /* just so many ranks have a part of each sample's positions; 0: searched */
    int64_t context;
    /* just so many ranks share out experts, split each; 0: searched */
    int64_t expert, expert_tensor;
    int tensor_parallel; /* as much as the framework can be asked for */
    /* Sequence parallelism beside it; AUTO: on where the framework has it. */
    enum topt_positions {
        TOPT_POSITIONS_AUTO,
        TOPT_POSITIONS_ON,
        TOPT_POSITIONS_OFF
    } sequence_parallel;
    int offload; /* what is asked to rest on the host, bits by enum topt_offer */
    double offload_fraction; /* of the optimizer; 0: unsaid */
    int levels; /* of sharding that go with it and with the optimizer, bits; 0: any */
    int offload_keeps;                      /* nothing is recomputed beside it */
    const struct topt_precision *precision; /* NULL: settings.dtype is as it is */
    int given;                              /* bits of enum topt_given */
    double
        /* mini-parallelism: take the most GPUs that are at least so efficient; 0: the
         * fewest */
        min_efficiency;
    /* granule_bytes 0: the profile's; micro_batches is not read */
    struct topt_settings settings;
    const atomic_bool *cancel;      /* polled: fail with CANCELED; may be NULL */
    struct topt_progress *progress; /* updated by the search; may be NULL */
    /* Polled: answer with the best so far, and how good it is known to be; may be
     * NULL. */
    const atomic_bool *stop;
    /* Polled: leave out what stands beside the plan of mini-parallelism (other numbers of
     * GPUs, what would fit if it were asked for); may be NULL.  An answer that may lack
     * some of it says so by "brief". */
    const atomic_bool *brief;
    int64_t max_work; /* the same after so much counted work of the search; 0: no limit */
    /* as of searches: larger tables are decided by heuristic; 0: 2^23 */
    int64_t max_entries;
    uint64_t seed;     /* of systems that search at random; 0: theirs */
    int64_t proposals; /* that these try at most; 0: as many as they think right */
    /* comparisons: these rows beside ours, with commas between; NULL: all */
    const char *systems;
    /* Comparisons share a limit of time, whose end 'stop' tells: 'arm' begins it anew, to so many
     * seconds from now.  0 or NULL: there is none. */
    double seconds;
    void (*arm)(double seconds);
    struct topt_unlike unlike; /* parts 0: devices are alike */
    /* fail with LIMIT where a problem's costs take more; 0: 4 GiB */
    int64_t max_table_bytes;
};

/* Sensible values for everything that is not a pointer. */
void topt_request_init(struct topt_request *r);

/* Products that a model is imported with one by one, bits of enum topt_apart, for what the question asks of context
 * parallelism and recomputation; none for degrees that topt_request_read() refuses. */
int topt_query_apart(const struct topt_query *w);

/* Is the model, imported once more with TOPT_APART_HEADS, of use to the question as its 'apart'?  Of a request that was
 * read, with its model. */
int topt_request_wants_apart(const struct topt_request *r);

/* Put what was asked, which 'r' borrows, into a request (after topt_request_init): all but the model and
 * the profile with what chooses them.  '*ret_field' names the field at fault; may be NULL. */
int topt_request_read(const struct topt_query *w, struct topt_request *r,
                      const char **ret_field, struct topt_error *err) TOPT_MUST_CHECK;
/* With the model and the profile in it: what was not said is taken from the framework's
 * row, the default one where none was named, and the precision that the device has.
 * INVAL where the limit is more than it has. */
int topt_request_complete(struct topt_request *r, struct topt_error *err) TOPT_MUST_CHECK;

/* Put into the settings what 'offload' and 'offload_fraction' ask for.  USAGE where the framework does not have it or
 * the profile says nothing of a host. */
int topt_request_offload(struct topt_request *r, struct topt_error *err) TOPT_MUST_CHECK;
const char *topt_offer_name(enum topt_offer o);

/* The assumptions, for what was not said: [{"what", "value", "option"}, ...]; and the job:
 * {"model", "hw", "parameters", "batch", "seq", "precision", "optimizer", "framework",
 * ...}.  New references. */
json_t *topt_request_assumed(const struct topt_request *r);
json_t *topt_request_job(const struct topt_request *r);
/* "not_searched": what the framework has and no question searches, and numbers of GPUs above the profile's. */
void topt_request_put_lacks(const struct topt_request *r, json_t *doc);

/* The request's settings with the profile's granule where none is given. */
struct topt_settings topt_request_settings(const struct topt_request *r);

/* Names as people write them, for options and JSON: topt_mode_parse() reads "mini-time", and so on.
 * Each has the type of its values, what messages call it, what names a value, and how many there
 * are. */
#define TOPT_WORDS(X)                                                                    \
    X(mode, enum topt_mode, "mode", topt_mode_name, TOPT_MODE_COUNT)                     \
    X(space, enum topt_space, "space", topt_space_name, TOPT_SPACE_COUNT)                \
    X(blocks, enum topt_block_choice, "choice of blocks", topt_blocks_name,              \
      TOPT_BLOCKS_COUNT)                                                                 \
    X(counts, enum topt_counts, "choice of counts", counts_at, TOPT_COUNTS_COUNT)        \
    X(dtype, enum topt_dtype, "dtype", topt_dtype_name, TOPT_DTYPE_STORED)               \
    X(accounting, enum topt_accounting, "accounting", topt_accounting_name,              \
      TOPT_ACCOUNTING_COUNT)                                                             \
    X(overlap, enum topt_overlap, "overlap", topt_overlap_name, TOPT_OVERLAP_COUNT)      \
    X(attention, enum topt_attention, "attention kernel", topt_attention_name,           \
      TOPT_ATTENTION_COUNT)                                                              \
    X(loss, enum topt_loss_kernel, "loss kernel", topt_loss_kernel_name,                 \
      TOPT_LOSS_COUNT)                                                                   \
    X(dispatch, enum topt_dispatch, "dispatch", topt_dispatch_name, TOPT_DISPATCH_COUNT) \
    X(optimizer, enum topt_optimizer, "optimizer", topt_optimizer_name,                  \
      TOPT_OPTIMIZER_COUNT)
#define TOPT_DECLARE_PARSE(word, type, what, name_of, count)                             \
    int topt_##word##_parse(const char *name, type *ret, struct topt_error *err)         \
        TOPT_MUST_CHECK;
TOPT_WORDS(TOPT_DECLARE_PARSE)
/* "zero,recompute,micro", in any selection, or "all", "none", "auto". */
int topt_factors_parse(const char *list, int *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;
/* "operators,scores,loss,optimizer", in any selection, or "all", "none"; bits of enum
 * topt_eager_part, and back, NULL without memory, owned by the caller. */
int topt_eager_parse(const char *list, int *ret, struct topt_error *err) TOPT_MUST_CHECK;
char *topt_eager_words(int parts);
/* "optimizer,activations": bits by enum topt_offer. */
int topt_offload_parse(const char *list, int *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;
const char *topt_mode_name(enum topt_mode m);
const char *topt_space_name(enum topt_space s);
const char *topt_blocks_name(enum topt_block_choice b);

/* Which of 'n' names it is; INVAL with all of them where it is none, and the one it may
 * be a slip of. */
int topt_name_find(const char *what, const char *name, const char *(*at)(unsigned),
                   unsigned n, unsigned *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* "full, blocks alike"; returns 'buf'. */
const char *topt_space_words(enum topt_space space, int alike, char *buf, size_t size);

#endif
