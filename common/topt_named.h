/* topt_named.h - functions that name the values of an enumeration, all alike: past the last one, "unknown". */
#ifndef TOPT_NAMED_H
#define TOPT_NAMED_H

/* "const char *function(type i)" by the expression 'at' of i. */
#define TOPT_NAMED(function, type, count, at)                                            \
    const char *function(type i)                                                         \
    {                                                                                    \
        return (unsigned)i < (unsigned)(count) ? (at) : "unknown";                       \
    }

/* ... by names in order. */
#define TOPT_NAMES(function, type, ...)                                                  \
    const char *function(type i)                                                         \
    {                                                                                    \
        static const char *const name[] = {__VA_ARGS__};                                 \
        return (unsigned)i < sizeof name / sizeof *name ? name[i] : "unknown";           \
    }

/* ... of this file alone. */
#define TOPT_NAMED_HERE(function, count, at)                                             \
    static TOPT_NAMED(function, unsigned, count, at)

#endif
