/* run.h - readers of runs, and what they share.  Private to model/run. */
#ifndef TOPT_MODEL_RUN_H
#define TOPT_MODEL_RUN_H

#include <jansson.h>

#include "megatron_text.h"
#include "topt_text.h"

struct run {
    const char *text;
    size_t len;
    struct megatron_text words; /* of a script; of other texts of no use */
    int64_t gpus;               /* 0: not known */
    json_t *fields, *notes;
    struct topt_text degrees; /* "tp=8,pp=8" */
    struct topt_error *err;
};

void run_degree(struct run *r, const char *key, int64_t value);
void run_degree_word(struct run *r, const char *key, const char *value);
void run_number(struct run *r, const char *field, int64_t value);
void run_word(struct run *r, const char *field, const char *value);
void run_flag(struct run *r, const char *field); /* a field of a question that is on */
void run_note(struct run *r, const char *note);
/* The batch that is given, else of so many samples on each data parallel rank; 0 and nothing put where the
 * number of GPUs, which 'ranks' share with data parallelism, is not known. */
void run_batch(struct run *r, int64_t given, int64_t of_rank, int64_t ranks);

/* An argument of a script, "--name value" or "--name=value": is it there? */
int run_has(const struct run *r, const char *name);
/* Its value with variables filled in, owned by the caller: 1; 0 where it is not there; -1. */
int run_text(struct run *r, const char *name, char **ret);
/* The same of one of several values, from 0 on. */
int run_text_at(struct run *r, const char *name, int n, char **ret);
/* A whole number, untouched where it is not there. */
int run_whole(struct run *r, const char *name, int64_t least, int64_t *ret);

/* The readers: 0, or -1 with the error. */
int run_read_megatron(struct run *r);
int run_read_titan(struct run *r);
int run_read_deepspeed(struct run *r);
int run_read_primus(struct run *r);
int run_is_primus(const struct run *r); /* is it an experiment of Primus? */

#endif
