/* topt_label.h - what a model is called whose file does not say: one rule for all who
 * read or send one, since a plan holds the name. Thread safety: reentrant. */
#ifndef TOPT_LABEL_H
#define TOPT_LABEL_H

#include <stddef.h>

enum { TOPT_LABEL = 80 /* bytes, with the NUL; a longer one is cut */ };

/* "dir/my-model.config.json" -> "my-model"; a plain config.json takes its folder's name,
 * and one in the Hugging Face cache its repository's.
 * Quotes around 'path' are no part of it, and what a label is the label of is itself. */
void topt_label(const char *path, char ret[TOPT_LABEL]);

#endif
