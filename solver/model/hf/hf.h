/* hf.h - models that Hugging Face configs describe.  Private to model/. */
#ifndef TOPT_HF_H
#define TOPT_HF_H

#include "topt_model.h"

/* Does the object look like a Hugging Face config.json? */
int topt_hf_looks_like(const json_t *doc);
/* 'name' is the model's where the document has none. */
struct topt_model *topt_hf_build(const json_t *doc, const char *name,
                                 const struct topt_import_options *o,
                                 struct topt_error *err) TOPT_MUST_CHECK;

#endif
