/* flash_tiles.h - the kernels of k_flash.h for heads of up to FLASH_D numbers; included once for
 * each. */
#define FLASH_NAME_(name, d) name##_##d
#define FLASH_NAME(name, d)  FLASH_NAME_(name, d)
#define F(name)              FLASH_NAME(name, FLASH_D)

/* Keys, or queries, at a time; and what of shared memory a kernel takes. */
enum {
    F(forward_cols) = 64,
    F(rows_cols) = FLASH_D > 64 ? 32 : 64,
    F(keys_cols) = 32,
    F(ld) = FLASH_D + APART,
    F(flash_forward_bytes) = (ROWS + 2 * F(forward_cols)) * F(ld) * (int)sizeof(real),
    F(flash_rows_bytes) = 2 * (ROWS + F(rows_cols)) * F(ld) * (int)sizeof(real),
    F(flash_keys_bytes) = 2 * (ROWS + F(keys_cols)) * F(ld) * (int)sizeof(real) +
                          2 * F(keys_cols) * (int)sizeof(float)
};

/* y = softmax of scores times values, and the log-sum-exps; a block a tile of a head's
 * queries. */
TEAM_KERNEL F(flash_forward)(CALL(cu_flash) c)
{
    enum { COLS = F(forward_cols), LD = F(ld) };
    TEAM_SHARED(real, q, F(flash_forward_bytes) / (int)sizeof(real));
    real *k = q + ROWS * LD, *v = k + COLS * LD;
    BLOCKS(block, flash_tiles(&c))
    {
        const struct flash_tile tile = flash_tile_of(&c, block);
        int64_t first = tile.first, b = tile.b, g = tile.g, h = tile.h;
        int64_t k_at = flash_at(&c.k, b, g, 0), v_at = flash_at(&c.v, b, g, 0);
        REGISTERS(float, o, FLASH_D / 2);
        REGISTERS(float, most, 2);
        REGISTERS(float, sum, 2);
        WARP(w)
        {
            LANE
            {
                for (int i = 0; i < FLASH_D / 2; i++)
                    MY(o)[i] = 0;
                for (int i = 0; i < 2; i++) {
                    MY(most)[i] = -INFINITY;
                    MY(sum)[i] = 0;
                }
            }
        }
        TEAM_PHASE
        {
            fetch(q, LD, FLASH_D, &c.q, flash_at(&c.q, b, g, h), first, c.s, ROWS, c.d,
                  c.vectors, t);
        }
        for (int64_t key = tile.from / COLS * COLS; key < tile.to; key += COLS) {
            TEAM_PHASE
            {
                fetch(k, LD, FLASH_D, &c.k, k_at, key, c.mask.keys, COLS, c.d, c.vectors,
                      t);
                fetch(v, LD, FLASH_D, &c.v, v_at, key, c.mask.keys, COLS, c.vd, c.vectors,
                      t);
            }
            WARP(w)
            {
                REGISTERS(float, p, COLS / 2);
                REGISTERS(float, now, 2);
                TIMES_ROWS(p, COLS, q, k, FLASH_D);
                LANE
                {
                    int64_t row_from[2], row_to[2];
                    for (int i = 0; i < 2; i++) {
                        flash_keys_of(&c, first + ROW_OF(2 * i), &row_from[i],
                                      &row_to[i]);
                        MY(now)[i] = MY(most)[i];
                    }
                    UNROLL for (int i = 0; i < COLS / 2; i++)
                    {
                        int64_t j = key + COLUMN_OF(i);
                        int own = i / 2 % 2;
                        MY(p)
                        [i] = j >= row_from[own] && j < row_to[own]
                                  ? flash_score(&c, MY(p)[i]) * LOG2E
                                  : -INFINITY;
                        MY(now)[own] = flash_larger(MY(now)[own], MY(p)[i]);
                    }
                }
                QUADS(now, 0, flash_larger);
                QUADS(now, 1, flash_larger);
                LANE
                {
                    float keep[2], base[2];
                    for (int i = 0; i < 2; i++) {
                        /* nothing seen yet: no difference of infinities */
                        base[i] = MY(now)[i] > -INFINITY ? MY(now)[i] : 0;
                        keep[i] = exp2f(MY(most)[i] - base[i]);
                        MY(most)[i] = MY(now)[i];
                        MY(sum)[i] *= keep[i];
                    }
                    UNROLL for (int i = 0; i < COLS / 2; i++)
                    {
                        MY(p)[i] = exp2f(MY(p)[i] - base[i / 2 % 2]);
                        MY(sum)[i / 2 % 2] += MY(p)[i];
                    }
                    UNROLL for (int i = 0; i < FLASH_D / 2; i++) MY(o)[i] *=
                        keep[i / 2 % 2];
                }
                TIMES_COLUMNS(o, p, COLS, v, FLASH_D);
            }
            WAIT;
        }
        WARP(w)
        {
            REGISTERS(float, inverse, 2);
            QUADS(sum, 0, flash_plus);
            QUADS(sum, 1, flash_plus);
            LANE for (int i = 0; i < 2; i++)
            {
                int64_t row = first + ROW_OF(2 * i);
                float all = MY(sum)[i];
                MY(inverse)[i] = all > 0 ? 1 / all : 0;
                if (lane % 4 == 0 && row < c.s)
                    STAT(c.lse.p)
                [flash_at(&c.lse, b, g, h) + row * c.lse.row] =
                    all > 0 ? (float)(((double)MY(most)[i] + log2((double)all)) / LOG2E)
                            : -INFINITY;
            }
            STORE(&c.y, flash_at(&c.y, b, g, h), o, FLASH_D, c.vd, first, c.s, inverse)
        }
        WAIT;
    }
}

/* By rows of queries: delta = the sum of p dp over keys, where that is asked for, and dq; a block a tile of a
 * head's queries. */
TEAM_KERNEL F(flash_rows)(CALL(cu_flash) c)
{
    enum { COLS = F(rows_cols), LD = F(ld) };
    TEAM_SHARED(real, q, F(flash_rows_bytes) / (int)sizeof(real));
    real *dy = q + ROWS * LD, *k = dy + ROWS * LD, *v = k + COLS * LD;
    BLOCKS(block, flash_tiles(&c))
    {
        const struct flash_tile tile = flash_tile_of(&c, block);
        int64_t first = tile.first, b = tile.b, g = tile.g, h = tile.h;
        int64_t k_at = flash_at(&c.k, b, g, 0), v_at = flash_at(&c.v, b, g, 0);
        int64_t lse_at = flash_at(&c.lse, b, g, h),
                delta_at = flash_at(&c.delta, b, g, h);
        REGISTERS(float, dq, FLASH_D / 2);
        REGISTERS(float, lse, 2);
        REGISTERS(float, delta, 2);
        WARP(w)
        {
            LANE
            {
                for (int i = 0; i < FLASH_D / 2; i++)
                    MY(dq)[i] = 0;
                for (int i = 0; i < 2; i++) {
                    int64_t row = first + ROW_OF(2 * i);
                    MY(lse)[i] = row < c.s ? STAT(c.lse.p)[lse_at + row * c.lse.row] : 0;
                    MY(delta)
                    [i] = row < c.s && !c.sums
                              ? STAT(c.delta.p)[delta_at + row * c.delta.row]
                              : 0;
                }
            }
        }
        TEAM_PHASE
        {
            fetch(q, LD, FLASH_D, &c.q, flash_at(&c.q, b, g, h), first, c.s, ROWS, c.d,
                  c.vectors, t);
            fetch(dy, LD, FLASH_D, &c.dy, flash_at(&c.dy, b, g, h), first, c.s, ROWS,
                  c.vd, c.vectors, t);
        }
        /* first the sums of p dp, where they are not there yet, then the gradients */
        for (int sums = c.sums; sums >= 0 && (sums || c.dq.p); sums--) {
            for (int64_t key = tile.from / COLS * COLS; key < tile.to; key += COLS) {
                TEAM_PHASE
                {
                    fetch(k, LD, FLASH_D, &c.k, k_at, key, c.mask.keys, COLS, c.d,
                          c.vectors, t);
                    fetch(v, LD, FLASH_D, &c.v, v_at, key, c.mask.keys, COLS, c.vd,
                          c.vectors, t);
                }
                WARP(w)
                {
                    REGISTERS(float, p, COLS / 2);
                    REGISTERS(float, dp, COLS / 2);
                    TIMES_ROWS(p, COLS, q, k, FLASH_D);
                    TIMES_ROWS(dp, COLS, dy, v, FLASH_D);
                    LANE
                    {
                        int64_t row_from[2], row_to[2];
                        for (int i = 0; i < 2; i++)
                            flash_keys_of(&c, first + ROW_OF(2 * i), &row_from[i],
                                          &row_to[i]);
                        UNROLL for (int i = 0; i < COLS / 2; i++)
                        {
                            int own = i / 2 % 2;
                            float score = flash_score(&c, MY(p)[i]);
                            float weight =
                                flash_weight(score, key + COLUMN_OF(i), row_from[own],
                                             row_to[own], MY(lse)[own]);
                            if (sums)
                                MY(delta)[own] += weight * MY(dp)[i];
                            else
                                MY(p)
                            [i] = weight * (MY(dp)[i] - MY(delta)[own]) *
                                  flash_slope(&c, score);
                        }
                    }
                    if (!sums)
                        TIMES_COLUMNS(dq, p, COLS, k, FLASH_D);
                }
                WAIT;
            }
            WARP(w)
            {
                if (sums) {
                    QUADS(delta, 0, flash_plus);
                    QUADS(delta, 1, flash_plus);
                    LANE for (int i = 0; i < 2; i++)
                    {
                        int64_t row = first + ROW_OF(2 * i);
                        if (lane % 4 == 0 && row < c.s)
                            STAT(c.delta.p)
                        [delta_at + row * c.delta.row] = MY(delta)[i];
                    }
                }
            }
        }
        WARP(w)
        {
            REGISTERS(float, one, 2);
            LANE MY(one)[0] = MY(one)[1] = 1;
            if (c.dq.p)
                STORE(&c.dq, flash_at(&c.dq, b, g, h), dq, FLASH_D, c.d, first, c.s, one)
        }
        WAIT;
    }
}

/* Gradients of a tile of keys and of their values, from all queries of all heads of the
 * group. */
TEAM_KERNEL F(flash_keys)(CALL(cu_flash) c)
{
    enum { COLS = F(keys_cols), LD = F(ld) };
    TEAM_SHARED(real, k, F(flash_keys_bytes) / (int)sizeof(real));
    real *v = k + ROWS * LD, *q = v + ROWS * LD, *dy = q + COLS * LD;
    float *lse = (float *)(dy + COLS * LD), *delta = lse + COLS;
    int64_t tiles = (c.mask.keys + ROWS - 1) / ROWS;
    BLOCKS(block, c.batch * c.groups * tiles)
    {
        int64_t first = rest(block, tiles) * ROWS, group = quotient(block, tiles);
        int64_t b = quotient(group, c.groups), g = rest(group, c.groups);
        REGISTERS(float, dk, FLASH_D / 2);
        REGISTERS(float, dv, FLASH_D / 2);
        WARP(w)
        {
            LANE for (int i = 0; i < FLASH_D / 2; i++) MY(dk)[i] = MY(dv)[i] = 0;
        }
        TEAM_PHASE
        {
            fetch(k, LD, FLASH_D, &c.k, flash_at(&c.k, b, g, 0), first, c.mask.keys, ROWS,
                  c.d, c.vectors, t);
            fetch(v, LD, FLASH_D, &c.v, flash_at(&c.v, b, g, 0), first, c.mask.keys, ROWS,
                  c.vd, c.vectors, t);
        }
        for (int64_t turn = 0; turn < c.heads * ((c.s + COLS - 1) / COLS); turn++) {
            int64_t h = rest(turn, c.heads), query = quotient(turn, c.heads) * COLS;
            int64_t from, to;
            flash_span_of(&c, query, COLS, &from, &to);
            if (to <= first || from >= first + ROWS)
                continue; /* none of these queries sees one of these keys */
            TEAM_PHASE
            {
                fetch(q, LD, FLASH_D, &c.q, flash_at(&c.q, b, g, h), query, c.s, COLS,
                      c.d, c.vectors, t);
                fetch(dy, LD, FLASH_D, &c.dy, flash_at(&c.dy, b, g, h), query, c.s, COLS,
                      c.vd, c.vectors, t);
                for (int i = t; i < COLS; i += TEAM) {
                    int64_t row = query + i < c.s ? query + i : c.s - 1;
                    lse[i] = STAT(c.lse.p)[flash_at(&c.lse, b, g, h) + row * c.lse.row];
                    delta[i] =
                        STAT(c.delta.p)[flash_at(&c.delta, b, g, h) + row * c.delta.row];
                }
            }
            WARP(w)
            {
                REGISTERS(float, p, COLS / 2);
                REGISTERS(float, dp, COLS / 2);
                TIMES_ROWS(p, COLS, k, q, FLASH_D);
                TIMES_ROWS(dp, COLS, v, dy, FLASH_D);
                LANE UNROLL for (int i = 0; i < COLS / 2; i++)
                {
                    int j = COLUMN_OF(i);
                    float score = flash_score(&c, MY(p)[i]);
                    int64_t seen, end;
                    flash_keys_of(&c, query + j, &seen, &end);
                    MY(p)[i] = flash_weight(score, first + ROW_OF(i), seen, end, lse[j]);
                    MY(dp)
                    [i] = MY(p)[i] * (MY(dp)[i] - delta[j]) * flash_slope(&c, score);
                }
                TIMES_COLUMNS(dv, p, COLS, dy, FLASH_D);
                TIMES_COLUMNS(dk, dp, COLS, q, FLASH_D);
            }
            WAIT;
        }
        WARP(w)
        {
            REGISTERS(float, one, 2);
            LANE MY(one)[0] = MY(one)[1] = 1;
            STORE(&c.dk, flash_at(&c.dk, b, g, 0), dk, FLASH_D, c.d, first, c.mask.keys,
                  one)
            STORE(&c.dv, flash_at(&c.dv, b, g, 0), dv, FLASH_D, c.vd, first, c.mask.keys,
                  one)
        }
        WAIT;
    }
}

#undef F
#undef FLASH_NAME
#undef FLASH_NAME_
