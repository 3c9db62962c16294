/* query.h - a question to the planner as clients write it, in JSON or in a query string.
 *
 * One table (query.c) names the fields, their kinds and limits; whatever is not in it is
 * refused by name.  Thread safety: plain values. */
#ifndef TOPTD_QUERY_H
#define TOPTD_QUERY_H

#include <jansson.h>
#include <stdint.h>

#include "topt_error.h"
#include "topt_text.h"

enum { QUERY_MAX_COUNTS = 64, QUERY_MAX_WAIT_MS = 60000 };

enum query_kind { QUERY_PLAN, QUERY_CURVE, QUERY_FRONTIER };

struct query {
    enum query_kind kind;
    /* "": not said */
    char mode[24], framework[16], space[24], blocks[16], factors[40], algorithm[24],
        optimizer[24], precision[16], train[200], counts[8], overlap[8], eager[48];
    char hw[80], model_id[128], name[128];
    int64_t gpus[QUERY_MAX_COUNTS];
    int ngpus;
    int64_t max_gpus, memory_bytes, batch, seq, micro_batches,
        max_table_bytes; /* 0: not said */
    double epsilon, min_efficiency;
    int sequence_splits, tensor_parallel;
    int64_t wait_ms; /* -1: not said */
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

/* A question as the daemon and its workers hand it to each other: all of it, as JSON, and back.
 * A new reference; NULL where a field is no UTF-8. */
json_t *query_pack(const struct query *q, const char **ret_source,
                   struct topt_error *err);
int query_unpack(const json_t *doc, struct query *ret, const char **ret_source,
                 struct topt_error *err) TOPT_MUST_CHECK;

/* Is 's' 1..max bytes of letters, digits and "._-", and no path? */
int query_is_name(const char *s, size_t max);

#endif
