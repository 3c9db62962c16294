/* hf_families.h - the families of Hugging Face configs that are read, and by which
 * functions.  Private to model/. */
#ifndef TOPT_HF_FAMILIES_H
#define TOPT_HF_FAMILIES_H

#include "hf_arch.h"

extern const struct hf_family topt_hf_families[]; /* ends with an empty one */

#endif
