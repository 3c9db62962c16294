/* one_line.c - names and messages that strangers had a part in. */
#include "one_line.h"

#include <ctype.h>
#include <jansson.h>

void one_line(const char *src, char *dst, size_t size)
{
    size_t n = 0;
    for (; *src && n + 1 < size; src++)
        dst[n++] = iscntrl((unsigned char)*src) ? ' ' : *src;
    dst[n] = '\0';
    json_t *probe = json_string(dst);
    for (char *p = dst; !probe && *p; p++) /* not UTF-8, or cut within a character */
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    json_decref(probe);
}
