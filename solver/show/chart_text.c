/* chart_text.c - charts for a terminal.
 *
 * A character cell has two by four dots (the Braille patterns from U+2800 on), which is fine enough to show
 * the steps of a frontier.  Dots are set column by column; marks and rules take a whole cell. */
#include "chart_text.h"
#include "chart.h"
#include "topt_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 10, CELL_X = 2, CELL_Y = 4 };

struct canvas {
    const struct topt_chart *c;
    int columns, rows;
    unsigned char *dots; /* by cell: the dots of its pattern */
    char *over;          /* by cell: 'o' a mark, '|' a rule, 0 nothing */
};

/* The bit of a dot in its cell's pattern, by column and row from the top. */
static unsigned char dot_bit(int x, int y)
{
    static const unsigned char bit[CELL_Y][CELL_X] = {
        {1, 8}, {2, 16}, {4, 32}, {64, 128}};
    return bit[y][x];
}

static void set_dot(struct canvas *v, int x, int y)
{
    if (x < 0 || y < 0 || x >= v->columns * CELL_X || y >= v->rows * CELL_Y)
        return;
    v->dots[y / CELL_Y * v->columns + x / CELL_X] |= dot_bit(x % CELL_X, y % CELL_Y);
}

static int dot_x(const struct canvas *v, double x)
{
    return (int)floor(topt_axis_at(&v->c->x, x) * (v->columns * CELL_X - 1) + 0.5);
}

static int dot_y(const struct canvas *v, double y)
{
    return (int)floor((1 - topt_axis_at(&v->c->y, y)) * (v->rows * CELL_Y - 1) + 0.5);
}

/* Set the dots of a straight segment. */
static void draw_line(struct canvas *v, int x0, int y0, int x1, int y1)
{
    int dx = abs(x1 - x0), dy = abs(y1 - y0), n = dx > dy ? dx : dy;
    for (int i = 0; i <= n; i++)
        set_dot(v, x0 + (int)floor((double)(x1 - x0) * i / (n ? n : 1) + 0.5),
                y0 + (int)floor((double)(y1 - y0) * i / (n ? n : 1) + 0.5));
}

static void draw_series(struct canvas *v, const struct topt_series *s)
{
    for (int i = 0; i < s->n; i++) {
        int x = dot_x(v, s->x[i]), y = dot_y(v, s->y[i]);
        int cell = y / CELL_Y * v->columns + x / CELL_X;
        if (s->kind == TOPT_SERIES_MARK && x >= 0 && y >= 0 && x / CELL_X < v->columns &&
            y / CELL_Y < v->rows)
            v->over[cell] = 'o';
        if (s->kind != TOPT_SERIES_LINE && s->kind != TOPT_SERIES_STEPS)
            continue;
        set_dot(v, x, y);
        if (i + 1 == s->n)
            break;
        int nx = dot_x(v, s->x[i + 1]), ny = dot_y(v, s->y[i + 1]);
        int level = s->kind == TOPT_SERIES_STEPS ? y : ny;
        draw_line(v, x, y, nx, level);
        draw_line(v, nx, level, nx, ny);
    }
}

static void draw_rules(struct canvas *v)
{
    for (int i = 0; i < v->c->nrules; i++) {
        int x = dot_x(v, v->c->rule[i].at) / CELL_X;
        for (int y = 0; v->c->rule[i].vertical && x >= 0 && x < v->columns && y < v->rows;
             y++)
            v->over[y * v->columns + x] = '|';
    }
}

static void put_cell(struct topt_text *t, const struct canvas *v, int cell)
{
    unsigned char dots = v->dots[cell];
    char pattern[4] = {(char)0xe2, (char)(0xa0 + (dots >> 6)), (char)(0x80 + (dots & 63)),
                       0};
    if (v->over[cell])
        topt_text_add(t, "%s", v->over[cell] == 'o' ? "\u25c6" : "\u2502");
    else
        topt_text_add(t, "%s", dots ? pattern : " ");
}

/* The tick of the y axis in this row, or -1. */
static int tick_in_row(const struct canvas *v, int row)
{
    for (int i = 0; i < v->c->y.nticks; i++) {
        int y = dot_y(v, v->c->y.tick[i]);
        if (y >= 0 && y / CELL_Y == row)
            return i;
    }
    return -1;
}

static void put_rows(struct topt_text *t, const struct canvas *v)
{
    char buf[32];
    for (int row = 0; row < v->rows; row++) {
        int tick = tick_in_row(v, row), last = v->columns - 1;
        topt_text_add(t, "%*s %s", LABEL - 2,
                      tick >= 0 ? topt_axis_tick(&v->c->y, tick, buf, sizeof buf) : "",
                      tick >= 0 ? "\u2524" : "\u2502");
        while (last >= 0 && !v->dots[row * v->columns + last] &&
               !v->over[row * v->columns + last])
            last--;
        for (int x = 0; x <= last; x++)
            put_cell(t, v, row * v->columns + x);
        topt_text_add(t, "\n");
    }
}

/* Draw the x axis, with the labels that fit. */
static void put_x_axis(struct topt_text *t, const struct canvas *v)
{
    const struct topt_axis *a = &v->c->x;
    char labels[512], buf[32];
    int used = 0, width = v->columns < 500 ? v->columns : 500;
    topt_text_add(t, "%*s \u2514", LABEL - 2, "");
    for (int x = 0; x < v->columns; x++) {
        int tick = 0;
        for (int i = 0; i < a->nticks; i++)
            tick |= dot_x(v, a->tick[i]) / CELL_X == x;
        topt_text_add(t, tick ? "\u252c" : "\u2500");
    }
    memset(labels, ' ', sizeof labels);
    for (int i = 0; i < a->nticks; i++) {
        int len = (int)strlen(topt_axis_tick(a, i, buf, sizeof buf));
        int at = dot_x(v, a->tick[i]) / CELL_X - len / 2;
        if (at < used || at + len > width)
            continue;
        memcpy(labels + at, buf, (size_t)len);
        used = at + len + 1;
    }
    topt_text_add(t, "\n%*s", LABEL, "");
    topt_text_put(t, labels, (size_t)(used > 0 ? used - 1 : 0));
    topt_text_add(t, "\n");
}

char *topt_chart_text(const struct topt_chart *c, int width, int height)
{
    struct topt_text t = {0};
    struct canvas v = {c, width - LABEL - 1, height, NULL, NULL};
    char buf[96];
    if (v.columns < 10)
        v.columns = 10;
    size_t cells = (size_t)v.columns * (size_t)v.rows;
    v.dots = calloc(cells, 1);
    v.over = calloc(cells, 1);
    if (v.dots && v.over) {
        draw_rules(&v);
        for (int i = 0; i < c->nseries; i++)
            draw_series(&v, &c->series[i]);
        topt_text_add(&t, "%*s%s\n", LABEL - 1, "",
                      topt_axis_title(&c->y, buf, sizeof buf));
        put_rows(&t, &v);
        put_x_axis(&t, &v);
        topt_axis_title(&c->x, buf, sizeof buf);
        topt_text_add(&t, "%*s\n", LABEL + v.columns, buf);
    }
    free(v.dots);
    free(v.over);
    if (t.oom)
        topt_text_fini(&t);
    return t.s;
}
