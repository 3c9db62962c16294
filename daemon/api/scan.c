/* scan.c - see scan.h.  A body of 16 MiB of "[],[],..." takes a hundred times that once it is
 * parsed, so values and depth are counted first. */
#include "scan.h"

/* One past the string whose first quote is at 'i'. */
static size_t skip_string(const char *s, size_t len, size_t i)
{
    for (i++; i < len && s[i] != '"'; i++)
        if (s[i] == '\\')
            i++;
    return i + 1;
}

struct scan scan_json(const char *s, size_t len)
{
    struct scan r = {.values = 1};
    int now = 0;
    for (size_t i = 0;
         i < len && r.depth <= SCAN_MAX_DEPTH && r.values <= SCAN_MAX_VALUES;) {
        switch (s[i]) {
        case '"':
            i = skip_string(s, len, i);
            continue;
        case '{':
        case '[':
            now++;
            r.values++;
            r.depth = now > r.depth ? now : r.depth;
            break;
        case '}':
        case ']':
            now--;
            break;
        case ',':
            r.values++;
            break;
        default:
            break;
        }
        i++;
    }
    return r;
}
