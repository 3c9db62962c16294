/* costs_text.h - a cost file that is a text of the test's. */
#ifndef TOPT_TEST_COSTS_TEXT_H
#define TOPT_TEST_COSTS_TEXT_H

#include "topt_search.h"

static inline int read_costs(const char *text, size_t len, struct topt_costs_file **ret,
                             struct topt_error *err)
{
    FILE *from = fmemopen((void *)text, len, "r");
    *ret = NULL;
    if (!from)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the text");
    int rc = topt_costs_load(from, ret, err);
    fclose(from);
    return rc;
}

#endif
