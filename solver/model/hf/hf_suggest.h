/* hf_suggest.h - what a config of an unknown family may be.  Private to model/. */
#ifndef TOPT_HF_SUGGEST_H
#define TOPT_HF_SUGGEST_H

#include "hf_arch.h"

/* Parameters of the config read as of family 'as', 0 where it is not read whole. */
typedef double topt_hf_try(const json_t *doc, const char *as);

/* Refuses it, with the known name that it may be a slip of, or the family whose class
 * knows most of its keys and that reads all of them, and the parameters that it has so.
 * 'type' or 'architecture' may be NULL, and so may 'parameters_as': nothing is tried. */
void topt_hf_refuse_unknown(const json_t *doc, const char *type, const char *architecture,
                            topt_hf_try *parameters_as, struct topt_error *err);

/* Refuses models that draft tokens for others; 0 where it is none. */
int topt_hf_refuse_draft(const json_t *doc, struct topt_error *err);

/* Does no reader take a type that transformers has, and why? */
int topt_hf_why_unread(const char *type, char *ret, size_t size);

/* Does a model of several towers have a text of another family where its text_config names none,
 * and which?  The same where the text's keys stand beside the towers. */
int topt_hf_text_of(const char *type, char *ret, size_t size);
int topt_hf_flat_text_of(const char *type, char *ret, size_t size);

#endif
