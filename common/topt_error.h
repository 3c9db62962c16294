/* topt_error.h - errors as values with text.
 *
 * A fallible function returns -1 (or NULL) and describes the failure in the caller's
 * 'struct topt_error'; nothing in a library prints or exits.  'err' may be NULL wherever
 * it is taken.  Thread safety: an error belongs to the thread that fills it. */
#ifndef TOPT_ERROR_H
#define TOPT_ERROR_H

#include <stdarg.h>

enum topt_err {
    TOPT_OK = 0,
    TOPT_ERR_INVAL,      /* input that can't mean anything */
    TOPT_ERR_USAGE,      /* wrong command line */
    TOPT_ERR_NOTFOUND,   /* a named thing does not exist */
    TOPT_ERR_INFEASIBLE, /* well posed, but nothing satisfies it */
    TOPT_ERR_CANCELED,   /* told to stop, or past its deadline */
    TOPT_ERR_NOMEM,
    TOPT_ERR_LIMIT, /* a stated limit (size, count, overflow) was passed */
    TOPT_ERR_IO,
    TOPT_ERR_DEVICE, /* MPI, CUDA, NCCL */
    TOPT_ERR_INTERNAL,
    TOPT_ERR_BUSY, /* somebody else holds it; try again */
    TOPT_ERR_ROOM, /* no room to store it, or no leave to write */
    TOPT_ERR_COUNT
};

struct topt_error {
    enum topt_err code;
    int sys; /* errno when the failure was made, 0 where none applies */
    char text[240];
};

#define TOPT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define TOPT_MUST_CHECK   __attribute__((warn_unused_result))

/* Fill 'err' and return -1, so that a failure is one line.  Preserves errno. */
int topt_fail(struct topt_error *err, enum topt_err code, const char *fmt, ...)
    TOPT_PRINTF(3, 4);

/* Fail with NOMEM: "no memory for WHAT", or "out of memory" where 'what' is NULL. */
int topt_nomem(struct topt_error *err, const char *what);

/* Put "prefix: " before the text already in 'err'.  Returns -1. */
int topt_wrap(struct topt_error *err, const char *fmt, ...) TOPT_PRINTF(2, 3);

/* Make 'err' say that nothing failed. */
void topt_error_clear(struct topt_error *err);

/* One table maps a code to its name, the exit status of a command and an HTTP status. */
const char *topt_err_name(enum topt_err code);
int topt_err_exit(enum topt_err code);
int topt_err_http(enum topt_err code);

#endif
