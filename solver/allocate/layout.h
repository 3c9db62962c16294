/* layout.h - where all jobs of a problem are, and the steps by which they get there.
 *
 * Thread safety: none; one owner at a time. */
#ifndef TOPT_ALLOCATE_LAYOUT_H
#define TOPT_ALLOCATE_LAYOUT_H

#include "timeline.h"

struct layout {
    struct topt_alloc_spot *spot; /* of each job */
    size_t *node;                 /* of job i from spot[i].first on */
};

/* A round of planning. */
struct round {
    const struct topt_alloc_problem *p;
    struct layout asked; /* as everybody asked */
    /* with what is held alone, or NULL; and one to work with */
    struct timeline *held, *t;
    size_t *scratch;  /* nodes of a shape */
    int64_t permille; /* the bound on GPU-hours */
    int64_t reserve_permille;
    int64_t *set_gpus; /* of the nodes of each set */
    int nsets;
};

/* The sets of nodes: -1 without memory; the caller frees set_gpus. */
int layout_sets(const struct topt_alloc_problem *p, struct round *ret);
int layout_init(const struct topt_alloc_problem *p, struct layout *ret);
void layout_fini(struct layout *l);
void layout_copy(const struct round *r, const struct layout *from, struct layout *to);

int layout_is_rigid(const struct topt_alloc_job *j);
/* May it have this shape, under the bounds on GPU-hours and on shares? */
int layout_may(const struct round *r, size_t i, int shape);
/* Its last end: as it asked; any where it never starts so. */
int64_t layout_limit(const struct round *r, size_t i);
/* Sum of the ends of those that start as they asked. */
int64_t layout_sum(const struct round *r, const struct layout *l);
/* Jobs that start at all. */
size_t layout_starts(const struct round *r, const struct layout *l);
/* Do more jobs start in the first than in the second, or as many with a smaller sum? */
int layout_is_better(const struct round *r, const struct layout *a,
                     const struct layout *b);

/* The spare timeline, with what is held alone. */
struct timeline *layout_timeline(const struct round *r);
/* The job takes its place in the timeline (sign -1), or leaves it (1). */
void layout_move(const struct round *r, const struct layout *l, size_t i,
                 struct timeline *t, int sign);
/* The spot where the job ends first, by 'limit_s', of these with the fewest GPU-hours: in
 * 'shape' alone, or in any that it may have where that is -1.  1, or 0 where there is none
 * and its spot stays.  The timeline is not changed. */
int layout_place(const struct round *r, struct layout *l, size_t i, struct timeline *t,
                 int shape, int64_t limit_s);
/* Each job in turn leaves its spot for one where it ends earlier, or at the same time with
 * fewer GPU-hours, while the others stay; twice, if that changes anything.  -1 without
 * memory. */
int layout_settle(const struct round *r, struct layout *l);

#endif
