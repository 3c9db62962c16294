/* topt_log.h - one line to stderr, for main programs and daemons (libraries return errors).
 * Thread safety: any thread; a line is written whole. */
#ifndef TOPT_LOG_H
#define TOPT_LOG_H

#include "topt_error.h"

/* The numbers are syslog's, so that journald reads the "<N>" prefix. */
enum topt_level {
    TOPT_LOG_ERR = 3,
    TOPT_LOG_WARN = 4,
    TOPT_LOG_INFO = 6,
    TOPT_LOG_DEBUG = 7
};

/* 'name' (borrowed for ever) is put before each line.  'journal' adds the "<N>" prefix.
 * Lines above 'max' are dropped. */
void topt_log_init(const char *name, enum topt_level max, int journal);

/* Another level, at any time. */
void topt_log_level(enum topt_level max);

void topt_log(enum topt_level level, const char *fmt, ...) TOPT_PRINTF(2, 3);

#endif
