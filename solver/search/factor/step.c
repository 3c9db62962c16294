/* step.c - how a table is made of two others. */
#include "step.h"

#include "factor_tuning.h"

enum { COLUMNS = TOPT_TILE_COLUMNS };

static int none(const int32_t *off, int n)
{
    for (int i = 0; i < n; i++)
        if (off[i])
            return 0;
    return 1;
}

void topt_min_plus_find(struct step *s)
{
    const int32_t *off = s->off;
    int of_a = 0, of_b = 0; /* dimensions that only A, or only B, tells apart */
    s->matrix = 0;
    /* A table without entries does not tell which factor distinguishes its dimensions. */
    if (s->ngroups != 1 || !s->b || s->kfirst[1] < 2 || !s->nentries)
        return;
    for (int d = 0; d < s->ndims; off += 2 * s->size[d++])
        if (s->size[d] > 1) {
            of_a += none(off + s->size[d], s->size[d]);
            of_b += none(off, s->size[d]);
            if (!none(off, s->size[d]) && !none(off + s->size[d], s->size[d]))
                return;
        }
    s->matrix = of_a && of_b;
}

void topt_step_count_values(const struct step *s, int64_t *ret_x, int64_t *ret_y)
{
    const int32_t *off = s->off;
    *ret_x = *ret_y = 1;
    for (int d = 0; d < s->ndims; off += 2 * s->size[d++])
        *(none(off, s->size[d]) ? ret_y : ret_x) *= s->size[d];
}

int64_t topt_min_plus_room(const struct step *s)
{
    int64_t x, y, k = s->kfirst[1] + COLUMNS;
    topt_step_count_values(s, &x, &y);
    x += COLUMNS;
    y += COLUMNS;
    int64_t rows = 2 * (x + y) * k + (x + y) / (int64_t)sizeof(double);
    int64_t tiles = x * y + (x > y ? x : y) * k;
    return x + y + (rows > tiles ? rows : tiles);
}
