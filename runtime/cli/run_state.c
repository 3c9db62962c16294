/* run_state.c - what all parts of a run use. */
#include "run_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

TOPT_PRINTF(2, 0)
static void tell(const char *what, const char *fmt, va_list ap)
{
    fprintf(stderr, "%s: ", what);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
}

void topt_run_note(const struct topt_run *r, const char *fmt, ...)
{
    va_list ap;
    if (r->args.quiet || r->host->rank)
        return;
    va_start(ap, fmt);
    tell("note", fmt, ap);
    va_end(ap);
}

void topt_run_warn(const struct topt_run *r, const char *fmt, ...)
{
    va_list ap;
    if (r->host->rank)
        return;
    va_start(ap, fmt);
    tell("warning", fmt, ap);
    va_end(ap);
}

/* A line "VmHWM:  123 kB" of /proc/self/status, in bytes; 0 where there is none. */
int64_t topt_run_status_bytes(const char *key)
{
    char line[256];
    int64_t kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    size_t n = strlen(key);
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, n) && line[n] == ':')
            kb = strtoll(line + n + 1, NULL, 10);
    if (f)
        fclose(f);
    return kb * 1024;
}
