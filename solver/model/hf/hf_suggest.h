/* hf_suggest.h - what a config of an unknown family may be.  Private to model/. */
#ifndef TOPT_HF_SUGGEST_H
#define TOPT_HF_SUGGEST_H

#include "hf_arch.h"

/* Refuses it, with the known name that it may be a slip of, or the family whose class
 * knows most of its keys; 'type' or 'architecture' may be NULL. */
void topt_hf_refuse_unknown(const json_t *doc, const char *type, const char *architecture,
                            struct topt_error *err);

/* Why no reader takes a type that transformers has; NULL: it is read, or unknown. */
const char *topt_hf_why_unread(const char *type);

#endif
