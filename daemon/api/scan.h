/* scan.h - what a body of JSON will cost, before it is parsed.  Thread safety: reentrant. */
#ifndef TOPTD_SCAN_H
#define TOPTD_SCAN_H

#include <stddef.h>
#include <stdint.h>

enum { SCAN_MAX_VALUES = 200000, SCAN_MAX_DEPTH = 64 };

struct scan {
    int64_t values; /* at least as many as a parser would make */
    int depth;
};

/* Read once over 'len' bytes: brackets and commas outside of strings.  Says nothing of whether
 * they are JSON.  Ends early where a limit is passed. */
struct scan scan_json(const char *s, size_t len);

#endif
