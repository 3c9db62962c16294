/* points.h - frontiers of an algorithm as documents, and whether one covers another. */
#ifndef TEST_POINTS_H
#define TEST_POINTS_H

#include <jansson.h>
#include <stdio.h>

#include "topt_plan.h"

static int64_t whole(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* The caller's; NULL, with a line that says why, where there is none. */
static json_t *frontier(const struct topt_request *r, const char *algorithm)
{
    struct topt_request own = *r;
    struct topt_error err = {0};
    json_t *doc = NULL;
    own.algorithm = algorithm;
    if (topt_plan_frontier(&own, &doc, &err))
        printf("# %s: %s\n", algorithm, err.text);
    return doc;
}

static size_t npoints(const json_t *doc)
{
    return json_array_size(json_object_get(doc, "points"));
}

static const json_t *point(const json_t *doc, size_t i)
{
    return json_array_get(json_object_get(doc, "points"), i);
}

/* Is each point of 'theirs', if there are any, no better than some point of 'ours'? */
static int covers(const json_t *ours, const json_t *theirs)
{
    for (size_t i = 0; i < npoints(theirs); i++) {
        const json_t *p = point(theirs, i);
        size_t k = 0;
        while (k < npoints(ours) &&
               (whole(point(ours, k), "memory_bytes") > whole(p, "memory_bytes") ||
                whole(point(ours, k), "time_ns") > whole(p, "time_ns")))
            k++;
        if (k == npoints(ours))
            return 0;
    }
    return 1;
}

#endif
