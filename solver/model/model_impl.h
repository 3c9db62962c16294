/* model_impl.h - what the importers share; not for other folders. */
#ifndef TOPT_MODEL_IMPL_H
#define TOPT_MODEL_IMPL_H

#include <stdarg.h>

#include "topt_model.h"

/* Samples of a step and most positions of one where neither model nor user says. */
enum { TOPT_DEFAULT_BATCH = 8, TOPT_DEFAULT_SEQ = 1024 };

/* blocks.c: fill m->alike, m->repeats and m->blocks; or take them from the same model
 * of another batch, on which they do not depend. */
int topt_model_find_repeats(struct topt_model *m, struct topt_error *err) TOPT_MUST_CHECK;
int topt_model_copy_repeats(struct topt_model *to, const struct topt_model *from,
                            struct topt_error *err) TOPT_MUST_CHECK;
void topt_model_free_blocks(struct topt_model *m);
/* units.c: fill m->unit, which tells alike operators apart; then m->share, which they have in
 * common; or take both from the same model of another batch. */
int topt_model_find_units(struct topt_model *m, struct topt_error *err) TOPT_MUST_CHECK;
int topt_model_find_shares(struct topt_model *m, struct topt_error *err) TOPT_MUST_CHECK;
int topt_model_copy_units(struct topt_model *to, const struct topt_model *from,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* Fills what an operator's backward does, once its inputs are known (backward.c). */
void topt_op_find_backward(struct topt_op *op);

/* Append an operator on up to two tensors (negative ones are left out), named with a prefix
 * and a format.  Does nothing and gives -1 where '*failed' is set, and sets it where it fails. */
__attribute__((format(printf, 9, 0))) int
topt_model_append(struct topt_model *m, int *failed, const char *prefix, const char *kind,
                  int x, int y, const struct topt_attrs *attrs, struct topt_error *err,
                  const char *fmt, va_list ap);

/* The attributes of a square window that moves by 'stride', over an image with a border of
 * 'pad' on each side. */
struct topt_attrs topt_attrs_window(int64_t size, int64_t stride, int64_t pad);

/* Make one operator of those that a config's reader has as one: projections of queries, keys
 * and values with attention, and of a gate with what it gates (fuse.c).  Replaces '*m' where
 * there are any; -1 leaves it. */
int topt_model_fuse(struct topt_model **m, struct topt_error *err) TOPT_MUST_CHECK;

/* Set 'train' of a model to a copy of 'spec'. */
int topt_model_say_trained(struct topt_model *m, const char *spec,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* topt_model_from_json with the document's batch and seq replaced where 'o' sets them. */
struct topt_model *topt_native_build(const json_t *doc,
                                     const struct topt_import_options *o,
                                     struct topt_error *err) TOPT_MUST_CHECK;

/* Does the object look like a Hugging Face config.json? */
int topt_hf_looks_like(const json_t *doc);
/* 'name' is the model's where the document has none. */
struct topt_model *topt_hf_build(const json_t *doc, const char *name,
                                 const struct topt_import_options *o,
                                 struct topt_error *err) TOPT_MUST_CHECK;

/* Does the text hold the arguments that every decoder of Megatron-LM has, and a model
 * from them. */
int topt_megatron_looks_like(const char *text, size_t len);
struct topt_model *topt_megatron_build(const char *text, size_t len, const char *name,
                                       const struct topt_import_options *o,
                                       struct topt_error *err) TOPT_MUST_CHECK;

/* A model by its name in papers on strategy search; 'name' without the "paper:" before
 * it. */
struct topt_model *topt_paper_build(const char *name, const struct topt_import_options *o,
                                    struct topt_error *err) TOPT_MUST_CHECK;

/* A model from the bytes of an ONNX file; an error that says so where ONNX was not
 * built in. */
struct topt_model *topt_onnx_build(const char *bytes, size_t len, const char *name,
                                   const struct topt_import_options *o,
                                   struct topt_error *err) TOPT_MUST_CHECK;

/* Are the weights in a directory (*.safetensors and their index; none is well) the
 * model's, by name and shape?  -1 with the differences named. */
int topt_safetensors_check(const char *dir, struct topt_model *m,
                           struct topt_error *err) TOPT_MUST_CHECK;

#endif
