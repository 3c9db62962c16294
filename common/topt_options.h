/* topt_options.h - one table of options per command: it parses, checks and prints --help.
 *
 * Usage:
 *     static const struct topt_option table[] = {
 *         TOPT_EXAMPLE("topt hw show a100", "one as a document"),
 *         {"hw", TOPT_OPT_STRING, offsetof(struct args, hw), "NAME", "hardware profile"}, ...
 *         {0}};
 *     topt_options_parse(table, argc, argv, &args, positional, max, &npositional, err)
 * Strings are borrowed from argv.  Thread safety: reentrant. */
#ifndef TOPT_OPTIONS_H
#define TOPT_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

#include "topt_error.h"

enum topt_option_kind {
    TOPT_OPT_FLAG,     /* int, set to 1 */
    TOPT_OPT_STRING,   /* const char * */
    TOPT_OPT_MAYBE,    /* the same; "" where no word without a dash follows */
    TOPT_OPT_INT,      /* int64_t, at least 0 */
    TOPT_OPT_COUNT,    /* int64_t, at least 1 */
    TOPT_OPT_REAL,     /* double, at least 0 */
    TOPT_OPT_POSITIVE, /* double, above 0 */
    TOPT_OPT_SHARE,    /* double, 0 to 1; also as a percentage */
    TOPT_OPT_BYTES,    /* int64_t */
    TOPT_OPT_MEMORY,   /* int64_t; a small number without a unit is refused */
    TOPT_OPT_FIELD, /* struct topt_query: the field that has this option; arg "": a switch */
    TOPT_OPT_EXAMPLE, /* no option: name is a command line that --help shows, help what it does */
};

struct topt_option {
    const char *name; /* long name without dashes, or one letter for -x; NULL ends */
    enum topt_option_kind kind;
    /* of the field in the caller's struct, whose value before is the default */
    size_t offset;
    const char *arg;
    const char *help;
};

/* A row that shows how the command is used. */
#define TOPT_EXAMPLE(line, what)                                                         \
    {                                                                                    \
        line, TOPT_OPT_EXAMPLE, 0, NULL, what                                            \
    }

/* '--name value', '--name=value', '-o value', '--' ends options.  Positional arguments go
 * to 'ret_args' (at most 'max_args').  Returns 1 where --help was asked for, 0, or -1. */
int topt_options_parse(const struct topt_option *table, int argc, char **argv,
                       void *target, const char **ret_args, int max_args, int *ret_nargs,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* "Usage: " + usage, which may go on with lines that say what the command is for, then the
 * examples and each option, in 80 columns; a command line is never broken. */
void topt_options_help(FILE *out, const char *usage, const struct topt_option *table);

#endif
