/* log.c - one line to stderr. */
#include "topt_log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static struct {
    const char *name; /* this and 'journal': set by main before any thread starts */
    int journal;
    atomic_int max;
} config = {"topt", 0, TOPT_LOG_INFO};

void topt_log_init(const char *name, enum topt_level max, int journal)
{
    config.name = name;
    config.journal = journal;
    topt_log_level(max);
}

void topt_log_level(enum topt_level max)
{
    atomic_store_explicit(&config.max, (int)max, memory_order_relaxed);
}

void topt_log(enum topt_level level, const char *fmt, ...)
{
    if ((int)level > atomic_load_explicit(&config.max, memory_order_relaxed))
        return;
    char line[1024];
    int n = config.journal
                ? snprintf(line, sizeof line, "<%d>%s: ", (int)level, config.name)
                : snprintf(line, sizeof line, "%s: ", config.name);
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (m < 0)
        return;
    size_t len = (size_t)n + (size_t)m;
    if (len > sizeof line - 2)
        len = sizeof line - 2;
    line[len] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, len + 1);
    (void)ignored;
}
