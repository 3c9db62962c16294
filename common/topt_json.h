/* topt_json.h - reading JSON documents with errors that name the place.
 *
 * Every topt document is an object with "format": "topt-<kind>/1"; fields it does not know
 * are refused by name.  Getters take the path of the object ("ops[3]") for their messages.
 * Thread safety: a document belongs to one thread at a time. */
#ifndef TOPT_JSON_H
#define TOPT_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "topt_digest.h"
#include "topt_error.h"

/* Have the JSON library's allocations looked at, so that memory that does not suffice is
 * no fault of the document: its parser may take what it could not keep for a mistake, or
 * leave it out.  Once, before there are threads. */
void topt_json_watch_memory(void);
/* Did it lack memory in this thread since this was asked last, or something parsed? */
int topt_json_lacked(void);

/* Parse text / a file (at most 'max_bytes'); duplicate keys are refused.  New reference. */
json_t *topt_json_parse(const char *text, size_t len, const char *what,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* Refuse text with more than 'values' values or nested deeper than 'depth', before any memory
 * is spent on them: a value takes some 100 bytes, and three of its text. */
int topt_json_within(const char *text, size_t len, const char *what, size_t values,
                     size_t depth, struct topt_error *err) TOPT_MUST_CHECK;
json_t *topt_json_load(const char *path, size_t max_bytes,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Check "format"; 'kind' is "model", "hw", "plan"... */
int topt_json_format(const json_t *doc, const char *kind,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Refuse members of 'obj' that are not in the NULL-ended list 'allowed'. */
int topt_json_only(const json_t *obj, const char *path, const char *const allowed[],
                   struct topt_error *err) TOPT_MUST_CHECK;

/* Getters.  The plain ones fail where the field is missing; the _or ones leave '*ret' as it
 * is.  A field of the wrong type or outside [min, max] always fails.  Strings and arrays
 * are borrowed from 'obj'. */
int topt_json_int(const json_t *obj, const char *path, const char *key, int64_t min,
                  int64_t max, int64_t *ret, struct topt_error *err) TOPT_MUST_CHECK;
int topt_json_int_or(const json_t *obj, const char *path, const char *key, int64_t min,
                     int64_t max, int64_t *ret, struct topt_error *err) TOPT_MUST_CHECK;
int topt_json_real(const json_t *obj, const char *path, const char *key, double min,
                   double max, double *ret, struct topt_error *err) TOPT_MUST_CHECK;
int topt_json_real_or(const json_t *obj, const char *path, const char *key, double min,
                      double max, double *ret, struct topt_error *err) TOPT_MUST_CHECK;
int topt_json_bool_or(const json_t *obj, const char *path, const char *key, int *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
int topt_json_string(const json_t *obj, const char *path, const char *key,
                     const char **ret, struct topt_error *err) TOPT_MUST_CHECK;
int topt_json_string_or(const json_t *obj, const char *path, const char *key,
                        const char **ret, struct topt_error *err) TOPT_MUST_CHECK;
int topt_json_array(const json_t *obj, const char *path, const char *key,
                    const json_t **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* Keep account, in the object itself and its copies, of the members that the getters above
 * and topt_json_member ask for: what nobody asked for had no effect on what was read. */
int topt_json_watch(json_t *obj, struct topt_error *err) TOPT_MUST_CHECK;
json_t *topt_json_member(const json_t *obj, const char *key);
int topt_json_was_asked(const json_t *obj, const char *key);

/* Of a document that topt wrote itself: the member, or 0 and "" where it is not there. */
int64_t topt_json_whole_at(const json_t *obj, const char *key);
double topt_json_number_at(const json_t *obj, const char *key);
const char *topt_json_words_at(const json_t *obj, const char *key);

/* Compact, keys in the order they were set: the same document is the same bytes.  Freed by
 * the caller; NULL when out of memory. */
char *topt_json_text(const json_t *doc, int indent);

/* The id of a document (topt_digest.h): of its compact text with sorted keys.  -1 where
 * memory does not suffice. */
int topt_json_id(const json_t *doc, char kind, char ret[TOPT_ID]) TOPT_MUST_CHECK;

#endif
