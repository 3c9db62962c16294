/* units.c - see units.h. */
#include "units.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int64_t site_seconds(const char *text)
{
    int64_t days = 0, part[3] = {0};
    int n = 0;
    if (!isdigit((unsigned char)*text))
        return strcasecmp(text, "UNLIMITED") && strcasecmp(text, "INFINITE") &&
                       strcasecmp(text, "NONE")
                   ? -1
                   : 0;
    const char *dash = strchr(text, '-');
    char *end = (char *)text;
    if (dash) {
        days = strtoll(text, &end, 10);
        if (end != dash)
            return -1;
        text = dash + 1;
    }
    for (;; text = end + 1) {
        if (n == 3 || !isdigit((unsigned char)*text))
            return -1;
        part[n++] = strtoll(text, &end, 10);
        if (*end != ':')
            break;
    }
    if (*end || days > 1 << 20)
        return -1;
    if (dash) /* hours, minutes, seconds */
        return ((days * 24 + part[0]) * 60 + part[1]) * 60 + part[2];
    return n == 3 ? (part[0] * 60 + part[1]) * 60 + part[2] : part[0] * 60 + part[1];
}

int64_t site_mebibytes(const char *text)
{
    char *end;
    long long n = strtoll(text, &end, 10);
    if (end == text || n < 0 || n > INT64_C(1) << 40 || (*end && end[1]))
        return -1;
    switch (toupper((unsigned char)*end)) {
    case 'K':
        return n / 1024;
    case '\0':
    case 'M':
        return n;
    case 'G':
        return n * 1024;
    case 'T':
        return n * 1024 * 1024;
    default:
        return -1;
    }
}

int site_has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; n && *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && memcmp(p, word, n) == 0)
            return 1;
    return 0;
}
