/* topt_carry.h - a document as one word, so that it travels in an environment variable.
 *
 * "1.<SHA-256 of the document, hexadecimal>.<base64 of the packed document>": a plan of a
 * large model has tens of kilobytes so.  Thread safety: reentrant. */
#ifndef TOPT_CARRY_H
#define TOPT_CARRY_H

#include <stddef.h>

#include "topt_error.h"

enum {
    TOPT_CARRY_MOST = 96 << 10,  /* of the word: Linux takes strings of 128 KiB */
    TOPT_CARRY_WHOLE = 16 << 20, /* of the document */
    /* where the digest begins in the word, and where the packed document */
    TOPT_CARRY_DIGEST_AT = 2,
    TOPT_CARRY_DATA_AT = TOPT_CARRY_DIGEST_AT + 65,
};

/* The environment variable in which a job's plan travels. */
#define TOPT_CARRY_VARIABLE "SLURM_TOPT_PLAN_DOC"

/* The word, owned and '*ret_len' long; LIMIT where it would be longer than TOPT_CARRY_MOST. */
int topt_carry_write(const char *doc, size_t len, char **ret, size_t *ret_len,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* The document, owned, with a NUL behind its '*ret_len' bytes.  INVAL where 'word' is not
 * what topt_carry_write made, or is of a document of more than TOPT_CARRY_WHOLE bytes. */
int topt_carry_read(const char *word, char **ret, size_t *ret_len,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* Is 'word' no longer than TOPT_CARRY_MOST and of a carried document's characters alone?
 * It is not unpacked. */
int topt_carry_looks_right(const char *word, size_t len);

/* The document of plan 'id' out of this process's environment: 1 and as topt_carry_read,
 * 0 where it carries no plan or another, -1.  Of a job of other nodes or GPUs than its
 * plan's that which travels with it for these; INFEASIBLE where none does. */
int topt_carry_plan(const char *id, char **ret, size_t *ret_len,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
