#include "say.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE = 2048 };

static void to_stderr(int is_error, const char *line)
{
    (void)is_error;
    fprintf(stderr, "%s\n", line);
}

static void (*say)(int is_error, const char *line) = to_stderr;

void topt_say_by(void (*by)(int is_error, const char *line))
{
    say = by;
}

void topt_say_info(const char *format, ...)
{
    char line[LINE];
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    say(0, line);
}

void topt_say_error(const char *format, ...)
{
    char line[LINE];
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    say(1, line);
}
