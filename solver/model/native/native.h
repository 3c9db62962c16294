/* native.h - the document "topt-model/1".  Private to model/. */
#ifndef TOPT_NATIVE_H
#define TOPT_NATIVE_H

#include "topt_model.h"

/* topt_model_from_json with the document's batch and seq replaced where 'o' sets them. */
struct topt_model *topt_native_build(const json_t *doc,
                                     const struct topt_import_options *o,
                                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
