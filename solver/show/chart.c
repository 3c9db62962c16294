/* chart.c - ranges, ticks and the knee, which all drawings of a chart share.
 *
 * A tick is 1, 2 or 5 times a power of ten, in the unit in which the largest value is written.  For
 * bytes the unit is the power of 1024 that keeps the number below a thousand. */
#include "chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void choose_unit(struct topt_axis *a, double hi)
{
    static const char *const bytes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    static const char *const times[] = {"ns", "\u00b5s", "ms", "s"};
    double base = a->unit == TOPT_UNIT_BYTES ? 1024 : 1000;
    int last = a->unit == TOPT_UNIT_BYTES ? 5 : 3, i = 0;
    a->per_unit = 1;
    a->unit_name = "";
    if (a->unit == TOPT_UNIT_NUMBER)
        return;
    for (; i < last && hi >= a->per_unit * base; i++)
        a->per_unit *= base;
    a->unit_name = a->unit == TOPT_UNIT_BYTES ? bytes[i] : times[i];
}

/* Round 'x' up to 1, 2 or 5 times a power of ten. */
static double round_step(double step)
{
    double power = pow(10, floor(log10(step)));
    double part = step / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static void add_tick(struct topt_axis *a, double at)
{
    if (a->nticks < TOPT_CHART_TICKS)
        a->tick[a->nticks++] = at;
}

static void linear_ticks(struct topt_axis *a, int want)
{
    double step = round_step((a->hi - a->lo) / a->per_unit / want);
    step = a->whole && step < 1 ? 1 : step;
    double first = ceil(a->lo / a->per_unit / step - 1e-9);
    for (int i = 0; (first + i) * step * a->per_unit <= a->hi * (1 + 1e-12); i++)
        add_tick(a, (first + i) * step * a->per_unit);
}

static void power_ticks(struct topt_axis *a, int want)
{
    int lo = (int)ceil(log2(a->lo) - 1e-9), hi = (int)floor(log2(a->hi) + 1e-9);
    int stride = 1 + (hi - lo) / (want < 1 ? 1 : want);
    for (int k = lo; k <= hi; k += stride)
        add_tick(a, ldexp(1, k));
}

/* Ticks of a log axis: decades; 2 and 5 of each where there are few decades; round steps below one decade. */
static void log_ticks(struct topt_axis *a, int want)
{
    static const double part[] = {1, 2, 5};
    double decades = log10(a->hi / a->lo);
    int each = decades <= 3 ? 1 : 3, stride = 1 + (int)(decades / want);
    int k = (int)floor(log10(a->lo / a->per_unit) + 1e-9);
    if (decades < 0.8) {
        linear_ticks(a, want);
        return;
    }
    for (; a->per_unit * pow(10, k) <= a->hi; k += stride)
        for (int i = 0; i < 3; i += each) {
            double at = part[i] * pow(10, k) * a->per_unit;
            if (at >= a->lo * (1 - 1e-12) && at <= a->hi * (1 + 1e-12))
                add_tick(a, at);
        }
}

void topt_axis_fit(struct topt_axis *a, double lo, double hi, int want, int zero)
{
    double pad = 0.04 * (hi - lo);
    a->nticks = 0;
    choose_unit(a, hi);
    if (a->scale == TOPT_LINEAR) {
        if (!(pad > 0))
            pad = hi > 0 ? 0.1 * hi : 1;
        a->lo = zero || lo < pad ? 0 : lo - pad;
        a->hi = hi + pad;
        linear_ticks(a, want);
        return;
    }
    lo = lo > 0 ? lo : 1;
    hi = hi > lo ? hi : 2 * lo;
    double edge = pow(hi / lo, 0.04);
    a->lo = lo / edge;
    a->hi = hi * edge;
    if (a->scale == TOPT_POWERS_OF_TWO)
        power_ticks(a, want);
    else
        log_ticks(a, want);
}

double topt_axis_at(const struct topt_axis *a, double value)
{
    if (a->scale == TOPT_LINEAR)
        return (value - a->lo) / (a->hi - a->lo);
    return value > 0 ? log(value / a->lo) / log(a->hi / a->lo) : 0;
}

char *topt_axis_tick(const struct topt_axis *a, int i, char *buf, size_t size)
{
    snprintf(buf, size, "%.6g", a->tick[i] / a->per_unit);
    return buf;
}

char *topt_axis_title(const struct topt_axis *a, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s", a->label, *a->unit_name ? ", " : "", a->unit_name);
    return buf;
}

struct topt_series *topt_chart_add(struct topt_chart *c, enum topt_series_kind kind,
                                   const char *name, int n, int notes)
{
    if (c->nseries == TOPT_CHART_SERIES)
        return NULL;
    struct topt_series *s = &c->series[c->nseries];
    size_t size = (size_t)n + 1;
    *s = (struct topt_series){.kind = kind, .name = name, .n = n};
    c->nseries++;
    s->x = calloc(size, sizeof *s->x);
    s->y = calloc(size, sizeof *s->y);
    s->y2 = calloc(size, sizeof *s->y2);
    s->note = notes ? calloc(size, sizeof *s->note) : NULL;
    return s->x && s->y && s->y2 && (s->note || !notes) ? s : NULL;
}

void topt_chart_fini(struct topt_chart *c)
{
    for (int i = 0; i < c->nseries; i++) {
        struct topt_series *s = &c->series[i];
        for (int k = 0; s->note && k < s->n; k++)
            free(s->note[k]);
        free(s->note);
        free(s->x);
        free(s->y);
        free(s->y2);
    }
    c->nseries = 0;
}

int topt_chart_knee(const double *x, const double *y, int n)
{
    int at = -1;
    double most = 0.02; /* of the diagonal: less is as good as straight */
    double dx = n > 2 ? x[n - 1] - x[0] : 0, dy = n > 2 ? y[n - 1] - y[0] : 0;
    for (int i = 1; i + 1 < n && dx != 0 && dy != 0; i++) {
        double away = fabs((y[i] - y[0]) / dy - (x[i] - x[0]) / dx);
        if (away > most) {
            most = away;
            at = i;
        }
    }
    return at;
}
