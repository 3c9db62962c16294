/* documents.h - models as clients send them: parsed, named, and in their canonical form.
 * Thread safety: reentrant. */
#ifndef TOPTD_DOCUMENTS_H
#define TOPTD_DOCUMENTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "topt_digest.h"
#include "topt_error.h"

enum { MODEL_NAME = 121 };

/* Parse a body that is JSON.  '*ret_source' names it as a field.  New. */
json_t *parse_body(const char *body, size_t len, const char *what,
                   const char **ret_source, struct topt_error *err) TOPT_MUST_CHECK;

/* Parse a body that is a model's file: JSON, or else what can be imported (ONNX, Megatron-LM's
 * arguments), which becomes a native document of so many samples and positions (0: the file's). */
json_t *parse_model(const char *body, size_t len, const char *what, int64_t batch,
                    int64_t seq, const char **ret_source,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* What a model is called, as in plans: a native document as it says itself, others by the label of
 * what is given (may be NULL or ""), else of what they say. */
void model_name(const json_t *doc, const char *given, char ret[MODEL_NAME]);

/* Canonical text (compact, sorted keys) of a document and its id; owned, NULL without memory. */
char *canonical(const json_t *doc, char kind, char ret_id[TOPT_ID]);

#endif
