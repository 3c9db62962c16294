/* edge_classes.h - the ends of edges that a family has, numbered by what differs.  Private to
 * plan/. */
#ifndef TOPT_EDGE_CLASSES_H
#define TOPT_EDGE_CLASSES_H

#include "topt_lower.h"

/* The different ends found so far: a hash finds them. */
struct classes {
    struct topt_edge_end **end; /* the family's, and how many */
    int *n;
    int cap;
    int32_t *slot; /* 2 * cap; -1: free */
};

/* The class of an end, a new one where it is the first such.  -1: no memory. */
int32_t topt_class_of(struct classes *c, const struct topt_edge_end *e);

/* The ends stay the family's. */
void topt_classes_fini(struct classes *c);

#endif
