/* rows.h - runs that others published, as rows/STEM.csv tells them.  See rows.c. */
#ifndef TOPT_BENCH_ROWS_H
#define TOPT_BENCH_ROWS_H

#include <jansson.h>
#include <stdint.h>

/* One run; texts are "" and numbers 0 where the source says nothing. */
struct row {
    const char *source; /* "repository:path", a paper or a page */
    const char *also;   /* another file of the repository that tells the same run */
    const char *at;     /* commit, date, line or table there */
    int64_t year;       /* of the software that ran */
    const char *group;  /* the heading that it stands under in docs/VALIDATION.md */
    const char *model;  /* a name in models.json */
    const char *named;  /* as the source names the model; "": as models.json does */
    const char *device; /* as the source names it */
    const char *hw;     /* the shipped profile that is nearest */
    double device_gib;  /* what the driver shows of the device; 0: as in the profile */
    int64_t gpus, per_node;
    int64_t
        shards; /* GPUs that share one copy of the states; 0: all that are not tensor's */
    int64_t tensor, pipeline, context, expert; /* degrees; 0: 1 */
    int64_t virtual;                           /* stages of a GPU; 0: 1 */
    const char *sequence_parallel; /* "on", "off"; "": the framework's default */
    int64_t zero;
    const char *
        recompute; /* "none", "blocks", "whole", "second", "products", "attention", or modules: "mlp+core_attn" */
    int64_t
        documents; /* positions of a packed one on the mean, which attends to itself; 0: a sample is one */
    int64_t seq, batch, micro; /* positions, samples of a step, of a GPU at a time */
    const char
        /* "f32", "bf16-mixed", "autocast", "main-f32", "bf16"; of products in few bits as questions have it,
         * "fp8-tensorwise+params" with weights in them, "fp8" where the source does not say the scaling */
        *precision;
    const char *train; /* "lora:16"; "": all parameters */
    const char *optimizer, *framework;
    /* Of the software that ran; "": the framework's. */
    const char *overlap, *eager, *attention;
    const char *
        gradients; /* "throughout": there all the time, as before PyTorch 2.0; "bf16": added up so; "": as made */
    const char *measure; /* of 'value': "s", "tokens/s/gpu", "tflops/gpu" */
    double value;
    double memory_gib; /* of a GPU */
    double
        beside_gib; /* of that what is no tensor, or workspaces that a plan does not say, as published */
    const char *
        memory_kind; /* "tensors" (no workspace is one), "allocated", "reserved", "process", "at-failure" */
    const char *outcome; /* "ran", "oom", "left out" */
    const char *job;     /* rows of one job are plans for it */
    const char *ask;     /* "yes": the fewest GPUs are asked for, as this run was */
    const char *needs;   /* mechanisms of the run that no degree tells, by space */
    const char *note;    /* what it does that a plan does not say */
    const char *open;    /* what decides and the source does not say */
};

struct rows {
    struct row *row; /* owned, with the texts */
    int n;
    char *text;
};

struct topt_model;

/* The rows of FOLDER/STEM.csv, or of STEM.csv where that is a whole path.  Exits with a line that names
 * file, line and column where one is not well formed, names a model or a profile that is not there, or no
 * source. */
void rows_read(const char *stem, struct rows *ret);
void rows_fini(struct rows *rows);

/* rows/STEM.json, owned. */
json_t *rows_json(const char *stem);

/* A row's model for a step of 'batch' samples, owned; its parameters are checked against those
 * published.  Exits with a line where it can't be made. */
struct topt_model *row_model(const struct row *r, int64_t batch);

/* Copies that take samples of their own: GPUs over the other degrees. */
int64_t row_data(const struct row *r);

/* How often a GPU takes a micro-batch in a step. */
int64_t row_accumulation(const struct row *r);
/* How often a step fills and empties its pipeline, with a part of its micro-batches each time; at least 1. */
int64_t row_pipelines(const struct row *r);

/* Is it a run that no plan here describes, which the documents list with the reason ('note')? */
int row_is_left_out(const struct row *r);

/* The mechanisms that a run may need and plans here may lack, from 0; NULL at the end. */
const char *row_mechanism(int i);
int row_needs(const struct row *r, int i);
/* Do its products run in few bits, of which the scaling is known? */
int row_is_narrow(const struct row *r);
/* Is the mechanism one that the column names? */
int row_uses(const struct row *r, const char *mechanism);
/* What the column says of it behind '=', into 'ret' of 'size' bytes; "": nothing. */
void row_says(const struct row *r, const char *mechanism, char *ret, size_t size);
/* Does ran.c cost it: does it need nothing that plans here lack? */
int row_is_costed(const struct row *r);
/* Would it be, if this mechanism were not lacking? */
int row_lacks_only(const struct row *r, const char *mechanism);

/* Seconds of a step as measured; 0: no time was. */
double row_seconds(const struct row *r);

/* "repository:path|model|device" in lower case, as the source has them: runs of one name are a group. */
void row_group_name(const struct row *r, const char *source, char *buf, size_t size);

/* Is a run's group one that predictions are judged by, so that no constant may follow from it?  The last
 * bit of the SHA-256 of its name says so; a run that stands in two groups is seen if either is. */
int row_is_judged(const struct row *r);

/* Append or print "data 8 x tensor 2, FSDP, blocks recomputed, micro-batch 4 x 2, 4096 positions, bf16-mixed". */
struct topt_text;
void row_add_plan(const struct row *r, struct topt_text *to);
void row_print_plan(const struct row *r);

/* Print "github.com/owner/name:path (commit)". */
void row_print_source(const struct row *r);

#endif
