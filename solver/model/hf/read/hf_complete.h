/* hf_complete.h - keys that a Hugging Face config leaves out.  Private to model/. */
#ifndef TOPT_HF_COMPLETE_H
#define TOPT_HF_COMPLETE_H

#include "hf_arch.h"

/* The row of a class in hf_defaults.json, by its model_type: "keys" has values, "none" keys
 * without one, "also" other names.  New reference; NULL where there is none. */
json_t *topt_hf_class(const char *type);

/* A copy of the config in which each key that the class of 'type' knows is there, by the
 * value that the class has for it, and under each of its names; and no flag that the
 * class does not have.  'type' of no known class: a plain copy.  It keeps account of the
 * members that are asked for (topt_json_watch).  New reference. */
json_t *topt_hf_complete(const json_t *doc, const char *type,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* Is the key, whose value is 'value', accounted for?  A reader asked that copy for it, under
 * either of its names; it is a flag that the class does not have; or its value is what the
 * class, whose row is 'row', has where nobody says, and with which readers are checked. */
int topt_hf_asked(const json_t *whole, const json_t *row, const char *key,
                  const json_t *value);

/* Sizes in the words of the config that it left out and the class filled in; "" where
 * there are none. */
void topt_hf_filled_in(const json_t *doc, const char *type, char *ret, size_t size);

/* Does the class of 'type' have sizes of which the config says none at all? */
int topt_hf_is_sizeless(const json_t *doc, const char *type);

/* Those of the config's keys that some class has (new reference), and how many of them
 * that of 'type' has; -1 where there is no such class. */
json_t *topt_hf_keys_of_classes(const json_t *doc);
int topt_hf_knows(const json_t *keys, const char *type);

#endif
