/* points.c - see points.h. */
#include "points.h"

#include <math.h>
#include <string.h>

static const double NARROW = 1.5;

int topt_points_add(struct topt_points *p, int64_t at, double ns)
{
    int i = p->n;
    while (i > 0 && p->at[i - 1] > at)
        i--;
    if (p->n == TOPT_MOST_POINTS || (i > 0 && p->at[i - 1] == at))
        return 0;
    memmove(p->at + i + 1, p->at + i, (size_t)(p->n - i) * sizeof *p->at);
    memmove(p->ns + i + 1, p->ns + i, (size_t)(p->n - i) * sizeof *p->ns);
    p->at[i] = at;
    p->ns[i] = ns;
    p->n++;
    return 1;
}

/* How far point 'i' is from the line between its neighbours, as a share of its time. */
static double off_line(const struct topt_points *p, int i)
{
    double share =
        (double)(p->at[i] - p->at[i - 1]) / (double)(p->at[i + 1] - p->at[i - 1]);
    double line = p->ns[i - 1] + share * (p->ns[i + 1] - p->ns[i - 1]);
    return fabs(line - p->ns[i]) / p->ns[i];
}

/* From point 'i' to the next, as a factor. */
static double gap(const struct topt_points *p, int i)
{
    return (double)p->at[i + 1] / (double)p->at[i];
}

int64_t topt_points_next(const struct topt_points *p, double tolerance)
{
    int best = -1;
    double farthest = tolerance;
    for (int i = 1; i + 1 < p->n; i++) {
        int wider = gap(p, i) > gap(p, i - 1) ? i : i - 1;
        double off = off_line(p, i);
        if (off > farthest && gap(p, wider) >= NARROW) {
            farthest = off;
            best = wider;
        }
    }
    return best < 0 ? 0 : (int64_t)sqrt((double)p->at[best] * (double)p->at[best + 1]);
}
