/* topt_near.h - "did you mean": of a list of names, the one that a name nobody knows is most
 * likely a slip of.
 *
 *     struct topt_near near = {.name = "a100-80-dxg"};
 *     for (...) topt_near_try(&near, each);
 *     topt_fail(err, TOPT_ERR_USAGE, "unknown hardware '%s'%s ('topt hw list' names all)",
 *               name, topt_near_words(&near, buf));
 * Thread safety: plain values. */
#ifndef TOPT_NEAR_H
#define TOPT_NEAR_H

enum { TOPT_NEAR_WORDS = 96, TOPT_NEAR_MATCHES = 128 };

/* Start from {.name = ...}; names are borrowed. */
struct topt_near {
    const char *name, *best; /* best: NULL where nothing is close */
    int distance;            /* of the best */
    const char *longer;      /* the one that begins with the name */
    int nlonger;
};

/* One of the names that are known. */
void topt_near_try(struct topt_near *near, const char *known);

/* The known name that is close, or NULL: a third of the letters may be wrong, in excess,
 * missing or swapped with the next, capitals count for nothing, or it is what people call it
 * ("fsdp" for pytorch); else the only one that begins with the name. */
const char *topt_near_name(const struct topt_near *near);

/* "; did you mean NAME?", or where nothing is close "".  Returns 'buf'. */
const char *topt_near_words(const struct topt_near *near, char buf[TOPT_NEAR_WORDS]);

/* The same for names that end with NULL, at once. */
const char *topt_near_among(const char *name, const char *const *known,
                            char buf[TOPT_NEAR_WORDS]);

/* "; did you mean A, B or C?": the known names that contain the name, as many as fit, capitals count
 * for nothing; two letters must begin it.  "" where there are none.  'known' ends with NULL.  Returns
 * 'buf'. */
const char *topt_near_containing(const char *name, const char *const *known,
                                 char buf[TOPT_NEAR_MATCHES]);

/* The name in other capitals; else all that contain it, else the one that is close.  As above. */
const char *topt_near_guess(const char *name, const char *const *known,
                            char buf[TOPT_NEAR_MATCHES]);

#endif
