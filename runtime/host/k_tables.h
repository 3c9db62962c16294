/* k_tables.h - what recommenders are made of: bags of tables' rows, products of every two
 * vectors, the loss of a yes or no. */
#include "real.h"

/* What this rank has of each of its tables. */
struct bags {
    int64_t tables, lookups, d; /* lookups of one row of the output */
    struct topt_piece piece[TOPT_MAX_TABLES];
};

static struct bags bags_of(const struct topt_kernel_call *c)
{
    struct topt_shape w = {.ndim = 3, .rows = c->op->attrs->tables};
    const struct topt_box *box = &c->box[BAG_W];
    struct bags b = {.tables = c->len[BAG_TABLES],
                     .lookups = cols_of(c, BAG_IDS),
                     .d = cols_of(c, BAG_Y)};
    memcpy(w.dim, c->op->operand[BAG_W].dim, sizeof w.dim);
    for (int64_t k = 0; k < b.tables; k++)
        b.piece[k] = topt_box_piece(&w, box, box->off[0] + k);
    return b;
}

/* The local row of lookup 'k'; -1: another rank has it. */
static int64_t bag_row(const struct bags *b, const int32_t *ids, int64_t k)
{
    const struct topt_piece *p = &b->piece[k / b->lookups % b->tables];
    int64_t row = ids[k] - p->first;
    return row < 0 || row >= p->rows ? -1 : p->before + row;
}

/* Rows of a table that another rank has give 0: the parts add up to the whole. */
static void embedding_bag_fwd(const struct topt_kernel_call *c)
{
    const int32_t *ids = c->value[BAG_IDS];
    const real *w = c->value[BAG_W];
    real *y = c->value[BAG_Y];
    struct bags b = bags_of(c);
    int64_t rows = rows_of(c, BAG_Y);
    memset(y, 0, (size_t)(rows * b.d) * sizeof *y);
    for (int64_t k = 0; k < rows * b.lookups; k++) {
        int64_t row = bag_row(&b, ids, k);
        for (int64_t j = 0; row >= 0 && j < b.d; j++)
            y[k / b.lookups * b.d + j] += w[row * b.d + j];
    }
}

static void embedding_bag_bwd(const struct topt_kernel_call *c)
{
    const int32_t *ids = c->value[BAG_IDS];
    const real *dy = c->grad[BAG_Y];
    real *dw = c->grad[BAG_W];
    struct bags b = bags_of(c);
    int64_t rows = rows_of(c, BAG_Y);
    for (int64_t k = 0; dw && k < rows * b.lookups; k++) {
        int64_t row = bag_row(&b, ids, k);
        for (int64_t j = 0; row >= 0 && j < b.d; j++)
            dw[row * b.d + j] += dy[k / b.lookups * b.d + j];
    }
}

/* The vectors of one position: of x, then of x0 to x2; and of their gradients, which are NULL where
 * nobody wants them. */
struct vectors {
    int64_t n, d;
    const real *x[TOPT_MAX_VECTORS];
    real *dx[TOPT_MAX_VECTORS];
};

static void put_vectors(struct vectors *v, const struct topt_kernel_call *c, int operand,
                        int64_t n, int64_t row)
{
    const real *x = c->value[operand];
    real *dx = c->grad[operand];
    for (int64_t i = row * n; i < (row + 1) * n && c->op->operand[operand].present; i++) {
        v->x[v->n] = x + i * v->d;
        v->dx[v->n++] = dx ? dx + i * v->d : NULL;
    }
}

static struct vectors vectors_at(const struct topt_kernel_call *c, int64_t row)
{
    struct vectors v = {.d = cols_of(c, 0)};
    put_vectors(&v, c, INTERACT_X, 1, row);
    for (int o = 0; o < INTERACT_TABLES; o++)
        put_vectors(&v, c, o, c->op->operand[o].dim[2].count, row);
    return v;
}

static void interact_fwd(const struct topt_kernel_call *c)
{
    real *y = c->value[INTERACT_Y];
    int64_t rows = rows_of(c, INTERACT_Y);
    for (int64_t r = 0; r < rows; r++) {
        struct vectors v = vectors_at(c, r);
        for (int64_t i = 1; i < v.n; i++)
            for (int64_t j = 0; j < i; j++) {
                double sum = 0;
                for (int64_t k = 0; k < v.d; k++)
                    sum += (double)v.x[i][k] * (double)v.x[j][k];
                *y++ = R(sum);
            }
    }
}

static void interact_bwd(const struct topt_kernel_call *c)
{
    const real *dy = c->grad[INTERACT_Y];
    int64_t rows = rows_of(c, INTERACT_Y);
    for (int64_t r = 0; r < rows; r++) {
        struct vectors v = vectors_at(c, r);
        for (int64_t i = 0; i < v.n; i++)
            if (v.dx[i])
                memset(v.dx[i], 0, (size_t)v.d * sizeof **v.dx);
        for (int64_t i = 1; i < v.n; i++)
            for (int64_t j = 0; j < i; j++, dy++)
                for (int64_t k = 0; k < v.d; k++) {
                    if (v.dx[i])
                        v.dx[i][k] += *dy * v.x[j][k];
                    if (v.dx[j])
                        v.dx[j][k] += *dy * v.x[i][k];
                }
    }
}

enum { LOGISTIC_X, LOGISTIC_LABELS, LOGISTIC_Y };

static void logistic_fwd(const struct topt_kernel_call *c)
{
    const real *x = c->value[LOGISTIC_X];
    const int32_t *label = c->value[LOGISTIC_LABELS];
    real *loss = c->value[LOGISTIC_Y];
    int64_t n = elements_of(c, LOGISTIC_Y);
    for (int64_t i = 0; i < n; i++)
        loss[i] = R(logistic_loss((double)x[i], label[i]));
}

/* Of the mean over all positions of the step's batch. */
static void logistic_bwd(const struct topt_kernel_call *c)
{
    const real *x = c->value[LOGISTIC_X];
    const int32_t *label = c->value[LOGISTIC_LABELS];
    real *dx = c->grad[LOGISTIC_X];
    int64_t n = dx ? elements_of(c, LOGISTIC_Y) : 0;
    double losses =
        (double)c->op->count[0] * (double)c->op->count[1] * (double)c->micro_batches;
    for (int64_t i = 0; i < n; i++)
        dx[i] = R(logistic_slope((double)x[i], label[i]) / losses);
}
