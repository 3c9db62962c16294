/* points.h - times against sizes, and where one more is worth measuring.
 *
 * Whoever reads a profile draws straight lines between its points.  Where a point is far from the
 * line between its neighbours (an algorithm switches, a cache ends) the gaps beside it are too
 * wide, so the wider of them gets another one.  Thread safety: plain values. */
#ifndef TOPT_POINTS_H
#define TOPT_POINTS_H

#include <stdint.h>

enum { TOPT_MOST_POINTS = 40 };

struct topt_points {
    int n;
    int64_t at[TOPT_MOST_POINTS]; /* bytes or operations, ascending */
    double ns[TOPT_MOST_POINTS];
};

/* Puts a point in its place; 0 where that size is there already, or no room is left. */
int topt_points_add(struct topt_points *p, int64_t at, double ns);
/* The size beside the point that is the farthest from its neighbours' line, as a share of
 * its time; 0 where none is farther than 'tolerance', or gaps are narrower than a factor
 * of 1.5. */
int64_t topt_points_next(const struct topt_points *p, double tolerance);

#endif
