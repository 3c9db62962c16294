/* query.h - a question to the planner as clients write it, in JSON or in a query string.
 *
 * The table of topt_fields.h names the fields, their kinds and limits; whatever is not in it is
 * refused by name.  Thread safety: plain values. */
#ifndef TOPTD_QUERY_H
#define TOPTD_QUERY_H

#include <jansson.h>
#include <stdint.h>

#include "topt_error.h"
#include "topt_fields.h"
#include "topt_text.h"

enum { QUERY_MAX_WAIT_MS = TOPT_FIELD_WAIT_MOST };

enum query_kind { QUERY_PLAN, QUERY_CURVE, QUERY_FRONTIER };

/* A member a field; text "" and numbers 0: not said. */
#define QUERY_TEXT(name, most)  char name[(most) + 1];
#define QUERY_WORD(name, most)  QUERY_TEXT(name, most)
#define QUERY_NAME(name, most)  QUERY_TEXT(name, most)
#define QUERY_LIST(name, most)  QUERY_TEXT(name, most)
#define QUERY_LABEL(name, most) QUERY_TEXT(name, most)
#define QUERY_INT(name, most)   int64_t name;
#define QUERY_BATCH(name, most) int64_t name;
#define QUERY_BYTES(name, most) int64_t name;
#define QUERY_REAL(name, most)  double name;
#define QUERY_SHARE(name, most) double name;
#define QUERY_BOOL(name, most)  int name;
#define QUERY_COUNTS(name, most)                                                         \
    int64_t name[TOPT_FIELD_COUNTS_MOST];                                                \
    int n##name;
#define QUERY_MEMORY(name, most)                       /* another way to say name_bytes */
#define QUERY_MEMBER(ID, name, KIND, LEAST, MOST, ...) QUERY_##KIND(name, MOST)
struct query {
    enum query_kind kind;
    TOPT_FIELDS(QUERY_MEMBER) /* of wait_ms -1 is "not said" */
};

/* A key and its value from a URL, decoded.  'value' NULL: no '='. */
struct query_pair {
    const char *key, *value;
};

/* Parse for an endpoint of that kind.  In JSON the member "model" is left to the caller.
 * '*ret_source' names the field at fault (borrowed for ever, or from the input). */
int query_from_json(enum query_kind kind, const json_t *obj, struct query *ret,
                    const char **ret_source, struct topt_error *err) TOPT_MUST_CHECK;
int query_from_pairs(enum query_kind kind, const struct query_pair *pairs, int npairs,
                     struct query *ret, const char **ret_source,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Everything that decides the answer, except model and hardware, in one canonical line. */
void query_text(const struct query *q, struct topt_text *out);

/* The same of what decides the problem alone, what strategies cost: without memory limit, mode,
 * efficiency, numbers of GPUs and selections of what is tried. */
void query_problem_text(const struct query *q, struct topt_text *out);

/* A question as the daemon and its workers hand it to each other: all of it, as JSON, and back.
 * A new reference; NULL where a field is no UTF-8. */
json_t *query_pack(const struct query *q, const char **ret_source,
                   struct topt_error *err);
int query_unpack(const json_t *doc, struct query *ret, const char **ret_source,
                 struct topt_error *err) TOPT_MUST_CHECK;

/* Is 's' 1..max bytes of letters, digits and "._-", and no path? */
int query_is_name(const char *s, size_t max);

#endif
