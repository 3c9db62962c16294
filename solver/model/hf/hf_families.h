/* hf_families.h - the families of Hugging Face configs that are read, and by which
 * functions.  Private to model/. */
#ifndef TOPT_HF_FAMILIES_H
#define TOPT_HF_FAMILIES_H

#include "hf_arch.h"

extern const struct hf_family topt_hf_families[]; /* ends with an empty one */

/* The family of this model_type; NULL: none has it. */
const struct hf_family *topt_hf_family(const char *type);

/* The family of the text in a model of several towers, by that model's type; NULL: none. */
const struct hf_family *topt_hf_family_of_text(const char *type);

#endif
