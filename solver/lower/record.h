/* record.h - fragments recorded as a program.  Private to lower/. */
#ifndef TOPT_RECORD_H
#define TOPT_RECORD_H

#include "fragment.h"

struct topt_recorder {
    struct topt_sink sink; /* first: it is cast to this */
    struct topt_program *p;
    int buffer_cap, instr_cap;
    int fed;    /* each device loads its part of the batch alone */
    int failed; /* a release found no memory: reported at the end */
};
struct topt_recorder topt_recorder(struct topt_program *p); /* borrows 'p' */

/* An empty program; NULL when out of memory. */
struct topt_program *topt_program_create(const struct topt_model *m,
                                         const struct topt_mesh *mesh,
                                         const struct topt_settings *settings,
                                         const struct topt_strategy *s);

#endif
