/* hf_text.h - the config of a language model among towers.  Private to model/. */
#ifndef TOPT_HF_TEXT_H
#define TOPT_HF_TEXT_H

#include "hf_arch.h"

/* The config of the language model inside one of several towers, which the caller owns; NULL where
 * there is none.  The outer config says whether its head is the table of tokens. */
int topt_hf_nested_text(const json_t *doc, json_t **ret, struct topt_error *err);

#endif
