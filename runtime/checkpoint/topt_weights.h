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
/* Into 'dir' (made where it is not there), as model.safetensors in f32, with a copy of
 * 'config', a config.json or the folder of one.  Every rank; rank 0 holds a tensor at a
 * time and writes. */
int topt_weights_save(struct topt_session *s, const char *config, const char *dir,
                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
