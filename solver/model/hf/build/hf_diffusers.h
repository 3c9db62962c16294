/* hf_diffusers.h - networks of diffusers' configs.  Private to model/. */
#ifndef TOPT_HF_DIFFUSERS_H
#define TOPT_HF_DIFFUSERS_H

#include "hf_arch.h"

/* Of a config with a "_class_name". */
struct topt_model *topt_diffusers_build(const json_t *doc, const char *name,
                                        const struct topt_import_options *o,
                                        struct topt_error *err) TOPT_MUST_CHECK;

#endif
