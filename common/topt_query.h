/* topt_query.h - a question to the planner as it was asked: a value for each row of topt_fields.h.
 *
 * Command lines, URLs, documents in JSON, the requests to toptd's workers and the keys of kept answers are
 * read into this struct and written from it here and nowhere else; a field that is not in the table is
 * refused by name.  plan/request makes a request of it.  Thread safety: plain values. */
#ifndef TOPT_QUERY_H
#define TOPT_QUERY_H

#include <jansson.h>
#include <stdint.h>

#include "topt_error.h"
#include "topt_fields.h"
#include "topt_text.h"

enum topt_query_kind { TOPT_QUERY_PLAN, TOPT_QUERY_CURVE, TOPT_QUERY_FRONTIER };

/* A member a field; text "" and numbers 0: not said. */
#define TOPT_QUERY_TEXT(name, most)   char name[(most) + 1];
#define TOPT_QUERY_WORD(name, most)   TOPT_QUERY_TEXT(name, most)
#define TOPT_QUERY_NAME(name, most)   TOPT_QUERY_TEXT(name, most)
#define TOPT_QUERY_LIST(name, most)   TOPT_QUERY_TEXT(name, most)
#define TOPT_QUERY_LABEL(name, most)  TOPT_QUERY_TEXT(name, most)
#define TOPT_QUERY_INT(name, most)    int64_t name;
#define TOPT_QUERY_BATCH(name, most)  int64_t name;
#define TOPT_QUERY_BYTES(name, most)  int64_t name;
#define TOPT_QUERY_AMOUNT(name, most) int64_t name;
#define TOPT_QUERY_REAL(name, most)   double name;
#define TOPT_QUERY_PRICE(name, most)  double name;
#define TOPT_QUERY_SHARE(name, most)  double name;
#define TOPT_QUERY_BOOL(name, most)   int name;
#define TOPT_QUERY_COUNTS(name, most)                                                    \
    int64_t name[TOPT_FIELD_COUNTS_MOST];                                                \
    int n##name;
#define TOPT_QUERY_MEMORY(name, most)                       /* another way to say name_bytes */
#define TOPT_QUERY_MEMBER(ID, name, KIND, LEAST, MOST, ...) TOPT_QUERY_##KIND(name, MOST)
struct topt_query {
    enum topt_query_kind kind;
    TOPT_FIELDS(TOPT_QUERY_MEMBER) /* of wait_ms -1 is "not said" */
};

/* A key and its value from a URL, decoded.  'value' NULL: no '='. */
struct topt_pair {
    const char *key, *value;
};

/* Read a question for an endpoint of that kind.  In JSON the member "model" is left to the
 * caller.  '*ret_source' names the field at fault (borrowed for ever, or from the input). */
int topt_query_from_json(enum topt_query_kind kind, const json_t *obj,
                         struct topt_query *ret, const char **ret_source,
                         struct topt_error *err) TOPT_MUST_CHECK;
int topt_query_from_pairs(enum topt_query_kind kind, const struct topt_pair *pairs,
                          int npairs, struct topt_query *ret, const char **ret_source,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* Read the value of a command line's --option, a row of the table. */
int topt_query_option(struct topt_query *asked, const char *option, const char *value,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* The fields that were said. */
enum topt_query_part {
    TOPT_QUERY_WHOLE,  /* all */
    TOPT_QUERY_ANSWER, /* those that decide the answer, with model and hardware */
    TOPT_QUERY_PROBLEM /* those that decide the problem alone, what strategies cost */
};
/* Write them as one line of JSON that is the same for equal questions.  Fails where a field is no
 * UTF-8, with its name in '*ret_source'. */
int topt_query_write(const struct topt_query *asked, enum topt_query_part part,
                     struct topt_text *out, const char **ret_source,
                     struct topt_error *err) TOPT_MUST_CHECK;
/* Read what was written as a whole. */
int topt_query_read(const char *text, struct topt_query *ret, const char **ret_source,
                    struct topt_error *err) TOPT_MUST_CHECK;
/* Give 'take' each field that was said, as a URL has it.  -1 without memory. */
int topt_query_each(const struct topt_query *asked,
                    void (*take)(void *to, const char *name, const char *value),
                    void *to) TOPT_MUST_CHECK;

/* Take over from another question the fields that 'q' does not say. */
void topt_query_fill(struct topt_query *q, const struct topt_query *from);

/* Is 's' 1..max bytes of letters, digits and "._-", and no path? */
int topt_is_name(const char *s, size_t max);

#endif
