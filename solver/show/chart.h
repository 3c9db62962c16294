/* chart.h - a picture of a trade-off, whatever it is drawn with.  Private to plan/.
 *
 * A chart is two axes and, over them, series of points and straight rules.  chart.c finds
 * ranges and ticks, chart_svg.c and chart_text.c draw.  Everything is plain arithmetic on
 * the numbers given, so the same numbers are the same bytes.  Thread safety: reentrant; a
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
    /* Found by topt_axis_fit(). */
    double lo, hi, per_unit; /* one of 'unit_name' is so much */
    const char *unit_name;   /* "GiB"; "" for a number */
    int nticks;
    double tick[TOPT_CHART_TICKS];
};

enum topt_series_kind {
    TOPT_SERIES_LINE,  /* from point to point */
    TOPT_SERIES_STEPS, /* level until the next point */
    TOPT_SERIES_IDEAL, /* from point to point, dashed */
    TOPT_SERIES_AREA,  /* between y and y2; level until the next point if 'steps' */
    TOPT_SERIES_MARK,  /* points that are pointed out */
    TOPT_SERIES_CROSS  /* points where there is nothing */
};

struct topt_series {
    enum topt_series_kind kind;
    const char *name; /* in the legend; NULL: not there */
    int n, steps;
    double *x, *y, *y2; /* owned; y2 for areas alone */
    char **note;        /* what is said of each point, owned; NULL: nothing */
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
/* Where a value is, from 0 at 'lo' to 1 at 'hi'; beyond for others. */
double topt_axis_at(const struct topt_axis *a, double value);
/* "12.5" of tick 'i', in the axis' unit.  Returns 'buf'. */
char *topt_axis_tick(const struct topt_axis *a, int i, char *buf, size_t size);
/* "memory of a GPU, GiB" */
char *topt_axis_title(const struct topt_axis *a, char *buf, size_t size);

/* A series of n points, zeroed; NULL where there is no memory or no room.  'notes': with
 * room for what is said of each. */
struct topt_series *topt_chart_add(struct topt_chart *c, enum topt_series_kind kind,
                                   const char *name, int n, int notes);
void topt_chart_fini(struct topt_chart *c);

/* The point farthest from the straight line between the ends, both axes scaled to the
 * same length: where more of x begins to buy less.  -1 where there is none to speak
 * of. */
int topt_chart_knee(const double *x, const double *y, int n);

#endif
