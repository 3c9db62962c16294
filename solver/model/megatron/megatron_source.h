/* megatron_source.h - files that a script for Megatron-LM takes in.  Private to model/. */
#ifndef TOPT_MEGATRON_SOURCE_H
#define TOPT_MEGATRON_SOURCE_H

#include <stddef.h>

/* The text with each file that it sources, and that lies where it says from 'dir' on, in place
 * of the line; NULL where there is none, or no memory.  Freed by the caller. */
char *topt_megatron_with_sources(const char *text, size_t len, const char *dir,
                                 size_t *ret_len);

/* The names of files that the text sources, and that are not in it; empty: none. */
void topt_megatron_sources(const char *text, size_t len, char *ret, size_t size);

#endif
