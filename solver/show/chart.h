/* chart.h - a chart of a trade-off, independent of the medium that it is drawn on.  Private to show/.
 *
 * A chart has two axes, series of points and straight rules.  chart.c computes ranges and ticks;
 * chart_svg.c and chart_text.c draw.  The same numbers give the same bytes.  Thread safety: reentrant; a
 * chart has one owner. */
#ifndef TOPT_CHART_H
#define TOPT_CHART_H

#include <stddef.h>

enum topt_unit { TOPT_UNIT_NUMBER, TOPT_UNIT_BYTES, TOPT_UNIT_NS };

enum { TOPT_CHART_TICKS = 16, TOPT_CHART_SERIES = 6, TOPT_CHART_RULES = 2 };

struct topt_axis {
    const char *label;
    enum topt_unit unit;
    enum topt_scale { TOPT_LINEAR, TOPT_LOG, TOPT_POWERS_OF_TWO } scale;
    int whole; /* values are whole numbers, and so are ticks */
    /* Set by topt_axis_fit(). */
    double lo, hi, per_unit; /* the size of one 'unit_name' */
    const char *unit_name;   /* "GiB"; "" for a number */
    int nticks;
    double tick[TOPT_CHART_TICKS];
};

enum topt_series_kind {
    TOPT_SERIES_LINE,  /* from point to point */
    TOPT_SERIES_STEPS, /* level until the next point */
    TOPT_SERIES_IDEAL, /* from point to point, dashed */
    TOPT_SERIES_AREA,  /* between y and y2; level until the next point if 'steps' */
    TOPT_SERIES_MARK,  /* highlighted points */
    TOPT_SERIES_CROSS  /* points without a value */
};

struct topt_series {
    enum topt_series_kind kind;
    const char *name; /* in the legend; NULL: none */
    int n, steps;
    double *x, *y, *y2; /* owned; y2 only for areas */
    char **note;        /* a note for each point, owned; NULL: none */
};

struct topt_chart {
    struct topt_axis x, y;
    int nseries;
    struct topt_series series[TOPT_CHART_SERIES];
    int nrules;
    struct topt_rule {
        int vertical;
        double at;
        const char *name;
    } rule[TOPT_CHART_RULES];
};

/* Range and ticks for values from 'lo' to 'hi', at most 'want' ticks; 'zero': the range
 * starts there. */
void topt_axis_fit(struct topt_axis *a, double lo, double hi, int want, int zero);
/* Map a value to its position: 0 at 'lo', 1 at 'hi', outside 0..1 beyond them. */
double topt_axis_at(const struct topt_axis *a, double value);
/* "12.5" of tick 'i', in the axis' unit.  Returns 'buf'. */
char *topt_axis_tick(const struct topt_axis *a, int i, char *buf, size_t size);
/* "memory of a GPU, GiB" */
char *topt_axis_title(const struct topt_axis *a, char *buf, size_t size);

/* Add a series of n points, zeroed, with 'notes' also room for a note per point.  NULL without memory or
 * room. */
struct topt_series *topt_chart_add(struct topt_chart *c, enum topt_series_kind kind,
                                   const char *name, int n, int notes);
void topt_chart_fini(struct topt_chart *c);

/* The knee: the point farthest from the straight line between the ends, with both axes scaled to the same
 * length.  -1 where the curve is nearly straight. */
int topt_chart_knee(const double *x, const double *y, int n);

#endif
