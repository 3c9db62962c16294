/* hf_complete.h - keys that a Hugging Face config leaves out.  Private to model/. */
#ifndef TOPT_HF_COMPLETE_H
#define TOPT_HF_COMPLETE_H

#include "hf_arch.h"

/* A copy of the config in which each key that the class of 'type' knows is there, by the
 * value that the class has for it, and under each of its names; and no flag that the
 * class does not have.  'type' of no known class: a plain copy.  New reference. */
json_t *topt_hf_complete(const json_t *doc, const char *type,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* Sizes in the words of the config that it left out and the class filled in; "" where
 * there are none. */
void topt_hf_filled_in(const json_t *doc, const char *type, char *ret, size_t size);

/* Those of the config's keys that some class has (new reference), and how many of them
 * that of 'type' has; -1 where there is no such class. */
json_t *topt_hf_keys_of_classes(const json_t *doc);
int topt_hf_knows(const json_t *keys, const char *type);

#endif
