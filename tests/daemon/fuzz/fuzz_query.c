/* fuzz_query.c - a question as a query string or as JSON, a job of Slurm's own
 * parameters, and the scan of a body.  What is accepted must have a text, and be the same
 * after it was handed to a worker. */
#include "topt_query.h"
#include "scan.h"
#include "topt_json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Cut 'text', which is overwritten, at '&' and '='. */
static int cut(char *text, struct topt_pair pair[PAIRS])
{
    int n = 0;
    for (char *word; n < PAIRS && (word = strsep(&text, "&"));) {
        pair[n].key = strsep(&word, "=");
        pair[n++].value = word;
    }
    return n;
}

/* To a worker and back: nothing is lost. */
static void check(const struct topt_query *q)
{
    struct topt_error err = {0};
    struct topt_text was = {0}, is = {0};
    struct topt_query back;
    const char *source = NULL;
    if (!topt_query_write(q, TOPT_QUERY_WHOLE, &was, &source, &err) &&
        (topt_query_read(was.s, &back, &source, &err) ||
         topt_query_write(&back, TOPT_QUERY_WHOLE, &is, &source, &err) ||
         strcmp(was.s, is.s) != 0))
        abort();
    topt_text_fini(&was);
    topt_text_fini(&is);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum topt_query_kind kinds[] = {TOPT_QUERY_PLAN, TOPT_QUERY_CURVE,
                                                 TOPT_QUERY_FRONTIER};
    struct topt_error err = {0};
    struct topt_pair pair[PAIRS];
    const char *source = NULL;
    struct topt_query q;
    if (!size)
        return 0;
    enum topt_query_kind kind = kinds[data[0] % 3];
    char *text = strndup((const char *)data + 1, size - 1);
    struct scan found = scan_json(text, strlen(text));
    if (data[0] & 128) {
        json_t *doc = found.depth > SCAN_MAX_DEPTH
                          ? NULL
                          : topt_json_parse(text, strlen(text), "the question", &err);
        if (doc && topt_query_from_json(kind, doc, &q, &source, &err) == 0)
            check(&q);
        json_decref(doc);
    } else if (topt_query_from_pairs(kind, pair, cut(text, pair), &q, &source, &err) ==
               0) {
        check(&q);
    }
    free(text);
    return 0;
}
