/* megatron.h - a decoder as Megatron-LM's arguments describe it.  Private to model/. */
#ifndef TOPT_MEGATRON_H
#define TOPT_MEGATRON_H

#include "topt_model.h"

/* Does the text hold the arguments that every decoder of Megatron-LM has, and a model
 * from them. */
int topt_megatron_looks_like(const char *text, size_t len);
struct topt_model *topt_megatron_build(const char *text, size_t len, const char *name,
                                       const struct topt_import_options *o,
                                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
