/* onnx.h - an ONNX file to a model for training.  Private to model/. */
#ifndef TOPT_ONNX_H
#define TOPT_ONNX_H

#include "topt_model.h"

/* A model from the bytes of an ONNX file; an error that says so where ONNX was not
 * built in. */
struct topt_model *topt_onnx_build(const char *bytes, size_t len, const char *name,
                                   const struct topt_import_options *o,
                                   struct topt_error *err) TOPT_MUST_CHECK;

#endif
