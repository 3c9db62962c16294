/* kernels_tables.c - the host kernels of recommenders, and what a lazy update by rows does. */
#include "table_fixtures.h"

enum { ROWS = 6, COLS = 3, NAMED = 3 };

struct state {
    double w[ROWS * COLS], s0[ROWS * COLS], s1[ROWS * COLS];
};

static void start(struct state *x)
{
    for (int i = 0; i < ROWS * COLS; i++) {
        x->w[i] = topt_random_normal(1, (uint64_t)i);
        x->s0[i] = 0.1;
        x->s1[i] = 0.2;
    }
}

static struct topt_update_call call_of(struct state *x, enum topt_optimizer o,
                                       const double *grad)
{
    return (struct topt_update_call){.optimizer = o,
                                     .n = ROWS * COLS,
                                     .step = 3,
                                     .lr = 0.1,
                                     .weight_decay = 0.1,
                                     .param = x->w,
                                     .grad = grad,
                                     .state = {x->s0, x->s1},
                                     .lazy = 1,
                                     .cols = COLS,
                                     .whole_cols = COLS};
}

/* Rows named and their values do what the gradient with zeros elsewhere does, and the other
 * rows stay as they were. */
static void check_rows(struct topt_device *d, enum topt_optimizer o)
{
    static const int32_t row[NAMED] = {4, 0, 1};
    double dense[ROWS * COLS] = {0}, value[NAMED * COLS];
    struct state a, b, before;
    start(&a);
    start(&b);
    start(&before);
    for (int k = 0; k < NAMED; k++)
        for (int j = 0; j < COLS; j++)
            value[k * COLS + j] = dense[row[k] * COLS + j] =
                topt_random_normal(2, (uint64_t)(k * COLS + j));
    struct topt_update_call whole = call_of(&a, o, dense), rows = call_of(&b, o, value);
    rows.row = row;
    rows.rows = NAMED;
    int rc = d->ops->update(d, &whole, NULL) | d->ops->update(d, &rows, NULL);
    int moved = 0, stayed = 1;
    for (int i = 0; i < ROWS * COLS; i++) {
        moved += a.w[i] < before.w[i] || a.w[i] > before.w[i];
        stayed &= dense[i] < 0 || dense[i] > 0 ||
                  !memcmp(&a.w[i], &before.w[i], sizeof(double));
    }
    ok(!rc && !memcmp(&a, &b, sizeof a) && moved == NAMED * COLS && stayed,
       "%s by rows is %s with zeros elsewhere; %d numbers move, the rest stays",
       topt_optimizer_name(o), topt_optimizer_name(o), moved);
}

/* By hand: the state adds up means of squares, over all columns wherever they are. */
static void check_adagrad(struct topt_device *d)
{
    double w[2] = {1, -1}, g[2] = {3, -1}, state[1] = {4}, squares[1] = {20};
    struct topt_update_call c = {.optimizer = TOPT_ROW_WISE_ADAGRAD,
                                 .n = 2,
                                 .step = 1,
                                 .lr = 0.5,
                                 .param = w,
                                 .grad = g,
                                 .state = {state},
                                 .cols = 2,
                                 .whole_cols = 2};
    int rc = d->ops->update(d, &c, NULL);
    ok(!rc && fabs(state[0] - 9) < 1e-12 && fabs(w[0] - 0.5) < 1e-8 &&
           fabs(w[1] + 1 - 1.0 / 6) < 1e-8,
       "row-wise adagrad: 4 + (9 + 1) / 2, steps of 0.5 g / 3");
    c.squares = squares;
    c.whole_cols = 4;
    rc = d->ops->update(d, &c, NULL);
    ok(!rc && fabs(state[0] - 14) < 1e-12, "... and columns of other ranks count");
}

int main(void)
{
    struct topt_device d;
    for (size_t i = 0; i < sizeof table_fixtures / sizeof *table_fixtures; i++)
        check_operator(&table_fixtures[i]);
    if (topt_device_open_host(TOPT_F64, &d, NULL))
        abort();
    check_rows(&d, TOPT_SGD);
    check_rows(&d, TOPT_MOMENTUM);
    check_rows(&d, TOPT_ADAM);
    check_rows(&d, TOPT_ADAMW);
    check_rows(&d, TOPT_ROW_WISE_ADAGRAD);
    check_adagrad(&d);
    topt_device_close(&d);
    return done_testing();
}
