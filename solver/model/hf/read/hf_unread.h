/* hf_unread.h - keys of a Hugging Face config that no reader asked for.  Private to
 * model/. */
#ifndef TOPT_HF_UNREAD_H
#define TOPT_HF_UNREAD_H

#include "hf_arch.h"

/* Names those keys of 'doc' that say something of a model and that no reader asked of
 * 'whole', which topt_hf_complete made of it for the class of 'type'; with commas, "" where
 * there are none.  Returns how many there are. */
int topt_hf_unread_keys(const json_t *doc, const json_t *whole, const char *type,
                        char *ret, size_t size);

/* Tells of those keys in the model's note, after these words. */
#define TOPT_HF_UNREAD "not read, so that the count may be off: "
void topt_hf_note_unread(const json_t *doc, const json_t *whole, const char *type,
                         struct hf_arch *a);

#endif
