/* topt_weights.h - weights from and to files as Hugging Face's libraries have them.
 *
 * The config of the model says which tensors there are and what they are called
 * (topt_model_weights); the families whose numbers were seen to lie as they are read here
 * are listed in weights.c.  Thread safety: as the session. */
#ifndef TOPT_WEIGHTS_IO_H
#define TOPT_WEIGHTS_IO_H

#include "topt_runtime.h"

/* The session's parameters from 'dir': config.json, and all of *.safetensors.  Every rank,
 * each of which reads what it holds; where one fails all do. */
int topt_weights_load(struct topt_session *s, const char *dir,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* Is 'config', a config.json or the folder of one, of the program's model, and its family
 * among those that are written?  '*ret_bytes': what its weights take in f32 (a tensor that
 * has several names is counted for each).  One rank. */
int topt_weights_check(const struct topt_program *p, const char *config,
                       int64_t *ret_bytes, struct topt_error *err) TOPT_MUST_CHECK;
/* Into 'dir' (made where it is not there), as model.safetensors in f32, with copies of
 * 'config' and, unless it is NULL, of 'tokenizer' (a tokenizer.json or the folder of one).
 * Every rank; rank 0 holds a tensor at a time and writes. */
int topt_weights_save(struct topt_session *s, const char *config, const char *tokenizer,
                      const char *dir, struct topt_error *err) TOPT_MUST_CHECK;

#endif
