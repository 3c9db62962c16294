/* error.c - errors as values, and the one table of what each code means outside. */
#include "topt_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int exit_status;
    int http_status;
} codes[TOPT_ERR_COUNT] = {
    [TOPT_OK] = {"ok", 0, 200},
    [TOPT_ERR_INVAL] = {"invalid", 1, 400},
    [TOPT_ERR_USAGE] = {"usage", 2, 400},
    [TOPT_ERR_NOTFOUND] = {"not_found", 1, 404},
    [TOPT_ERR_INFEASIBLE] = {"infeasible", 3, 422},
    [TOPT_ERR_CANCELED] = {"canceled", 1, 409},
    [TOPT_ERR_NOMEM] = {"out_of_memory", 1, 503},
    [TOPT_ERR_LIMIT] = {"limit", 1, 413},
    [TOPT_ERR_IO] = {"io", 1, 500},
    [TOPT_ERR_DEVICE] = {"device", 1, 500},
    [TOPT_ERR_INTERNAL] = {"internal", 1, 500},
    [TOPT_ERR_BUSY] = {"busy", 1, 503},
    [TOPT_ERR_ROOM] = {"no_room", 1, 507},
};

/* An error is one line, whatever the names in it hold. */
static void keep_to_a_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

int topt_fail(struct topt_error *err, enum topt_err code, const char *fmt, ...)
{
    if (!err)
        return -1;
    int saved = errno;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    keep_to_a_line(err->text);
    err->code = code;
    err->sys = code == TOPT_ERR_IO ? saved : 0;
    errno = saved;
    return -1;
}

int topt_nomem(struct topt_error *err, const char *what)
{
    if (what)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for %s", what);
    return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
}

int topt_wrap(struct topt_error *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char text[2 * sizeof err->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof err->text, fmt, ap);
    va_end(ap);
    size_t len = strlen(text);
    snprintf(text + len, sizeof text - len, ": %s", err->text);
    snprintf(err->text, sizeof err->text, "%.*s", (int)sizeof err->text - 1, text);
    keep_to_a_line(err->text);
    return -1;
}

void topt_error_clear(struct topt_error *err)
{
    if (err)
        memset(err, 0, sizeof *err);
}

static int known(enum topt_err code)
{
    return (int)code >= 0 && code < TOPT_ERR_COUNT;
}

const char *topt_err_name(enum topt_err code)
{
    return known(code) ? codes[code].name : "unknown";
}

int topt_err_exit(enum topt_err code)
{
    return known(code) ? codes[code].exit_status : 1;
}

int topt_err_http(enum topt_err code)
{
    return known(code) ? codes[code].http_status : 500;
}
