/* topt_weights.h - weights from and to files as Hugging Face's libraries have them.
 *
 * The config of the model says which tensors there are and what they are called
 * (topt_model_weights); the families whose numbers were seen to lie as they are read here
 * are listed in naming.c.  Thread safety: as the session. */
#ifndef TOPT_WEIGHTS_IO_H
#define TOPT_WEIGHTS_IO_H

#include "topt_runtime.h"

/* What is read. */
struct topt_weights_source {
    const char *dir;      /* all of its *.safetensors */
    const char *config;   /* of the program's model; NULL: that in 'dir' */
    const char *adapters; /* a folder of PEFT's with the adapters that the program has
                           * (adapter_config.json, adapter_model.safetensors); NULL: they
                           * start anew */
    /* Told, where there are some, which parameters of a head for a task are not there and start
     * anew; may be NULL. */
    void (*note)(void *ctx, const char *names);
    void *ctx;
};
/* The session's parameters.  Every rank, each of which reads what it holds; where one fails
 * all do. */
int topt_weights_load(struct topt_session *s, const struct topt_weights_source *from,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* What is written: of a program with adapters these alone, as PEFT's files have them, or
 * with 'merge' the weights that they come to; else all weights. */
struct topt_weights_folder {
    const char *dir;    /* made where it is not there */
    const char *config; /* a config.json or the folder of one: whose names they get */
    const char
        *tokenizer; /* a tokenizer.json or the folder of one, copied; may be NULL */
    int merge;
    double dropout; /* of what adapters read, for PEFT to know */
};
/* Is 'config', a config.json or the folder of one, of the program's model, and its family
 * among those that are written?  '*ret_bytes': what is written takes in f32 (a tensor that
 * has several names is counted for each).  One rank. */
int topt_weights_check(const struct topt_program *p, const char *config, int merge,
                       int64_t *ret_bytes, struct topt_error *err) TOPT_MUST_CHECK;
/* Into a folder, in f32: model.safetensors with a copy of the config, or
 * adapter_model.safetensors and adapter_config.json.  Every rank; rank 0 holds a tensor at
 * a time and writes. */
int topt_weights_save(struct topt_session *s, const struct topt_weights_folder *to,
                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
