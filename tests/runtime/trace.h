/* trace.h - what MPI tests hold against each other: the losses, the first step's gradients and
 * the bytes of one training. */
#ifndef TOPT_TEST_TRACE_H
#define TOPT_TEST_TRACE_H

#include <math.h>
#include <string.h>

#include "mpi_world.h"
#include "topt_runtime.h"

enum { MAX_STEPS = 200, MAX_GRADS = 512, MAX_OWN = 4 };

struct trace {
    double loss[MAX_STEPS];
    int steps;
    int ngrads;
    struct grad {
        int op, operand;
        double *x;
        int64_t n;
    } grad[MAX_GRADS];
    double spread; /* between copies of a gradient on different ranks */
    int64_t peak;  /* most bytes alive at once, on the rank with most */
};

/* How to train, beside the program. */
struct training {
    struct topt_feed feed;
    double lr;
    int steps, overlap;
    struct topt_dropout dropout;
    double balance;
    /* In place of the host's, so that a bug can be planted; or NULL. */
    struct topt_device *device;
};

/* Gradients are taken where they are whole: at the first step's updates. */
__attribute__((unused)) static int take_gradient(void *ctx, struct topt_session *s,
                                                 int instr, struct topt_error *err)
{
    struct trace *t = ctx;
    const struct topt_program *p = topt_session_program(s);
    const struct topt_buffer *b = &p->buffer[p->instr[instr].b];
    for (int i = 0; i < t->ngrads; i++)
        if (t->grad[i].op == b->op && t->grad[i].operand == b->operand)
            return 0;
    if (t->ngrads == MAX_GRADS)
        return topt_fail(err, TOPT_ERR_LIMIT, "more than %d gradients", MAX_GRADS);
    struct grad *g = &t->grad[t->ngrads++];
    double spread;
    g->op = b->op;
    g->operand = b->operand;
    if (topt_session_gather(s, p->instr[instr].b, &g->x, &g->n, &spread, err))
        return -1;
    t->spread = fmax(t->spread, spread);
    return 0;
}

__attribute__((unused)) static void trace_fini(struct trace *t)
{
    for (int i = 0; i < t->ngrads; i++)
        free(t->grad[i].x);
    memset(t, 0, sizeof *t);
}

/* The operator of the tests' own: y[j] = sin(x[j] + w), each x and w as often as it takes. */
static double own_at(const void *of, int64_t i, int is_double)
{
    return is_double ? ((const double *)of)[i] : (double)((const float *)of)[i];
}

static void own_add(void *to, int64_t i, int is_double, double x)
{
    if (is_double)
        ((double *)to)[i] += x;
    else
        ((float *)to)[i] += (float)x;
}

static double own_sum(const struct topt_own_call *c, int64_t i, int64_t j)
{
    double w = c->parameters ? own_at(c->w, j % c->parameters, c->is_double) : 0;
    return own_at(c->x, i * c->width + j % c->width, c->is_double) + w;
}

static void own_forward(void *ctx, const struct topt_own_call *c)
{
    (void)ctx;
    size_t bytes = c->is_double ? sizeof(double) : sizeof(float);
    memset(c->y, 0, (size_t)(c->n * c->out) * bytes);
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t j = 0; j < c->out; j++)
            own_add(c->y, i * c->out + j, c->is_double, sin(own_sum(c, i, j)));
}

static void own_backward(void *ctx, const struct topt_own_call *c)
{
    (void)ctx;
    size_t bytes = c->is_double ? sizeof(double) : sizeof(float);
    if (c->dx)
        memset(c->dx, 0, (size_t)(c->n * c->width) * bytes);
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t j = 0; j < c->out; j++) {
            double slope =
                cos(own_sum(c, i, j)) * own_at(c->dy, i * c->out + j, c->is_double);
            if (c->dx)
                own_add(c->dx, i * c->width + j % c->width, c->is_double, slope);
            if (c->dw)
                own_add(c->dw, j % c->parameters, c->is_double, slope);
        }
}

__attribute__((unused)) static void train(const struct training *how,
                                          struct topt_comm *comm,
                                          const struct topt_program *p, struct trace *t)
{
    struct topt_error err = {0};
    struct topt_device host;
    struct topt_session *s;
    struct topt_own own[MAX_OWN];
    struct topt_session_options o = {.lr = how->lr,
                                     .own = own,
                                     .seed = 5,
                                     .feed = how->feed,
                                     .overlap = how->overlap,
                                     .dropout = how->dropout,
                                     .balance = how->balance,
                                     .before_update = take_gradient,
                                     .ctx = t};
    for (int i = 0; i < p->model->nops && o.nown < MAX_OWN; i++)
        if (!strcmp(p->model->op[i].spec->name, "own"))
            own[o.nown++] = (struct topt_own){.name = p->model->op[i].name,
                                              .forward = own_forward,
                                              .backward = own_backward};
    memset(t, 0, sizeof *t);
    if (topt_device_open_host(p->settings.dtype, &host, &err) ||
        topt_session_create(p, comm, how->device ? how->device : &host, &o, &s, &err))
        give_up(&err);
    t->steps = how->steps;
    for (int k = 0; k < t->steps; k++)
        if (topt_session_step(s, &t->loss[k], &err))
            give_up(&err);
    double peak = (double)topt_session_peak_bytes(s);
    if (comm->ops->max(comm, &peak, 1, &err))
        give_up(&err);
    t->peak = (int64_t)peak;
    topt_session_destroy(s);
    topt_device_close(&host);
}

/* Largest difference of a loss beside itself, or beside a tenth of the first: what has been
 * learnt by heart has a loss of next to nothing. */
__attribute__((unused)) static double worst_loss(const struct trace *a,
                                                 const struct trace *b)
{
    double worst = 0, floor = 0.1 * fabs(b->loss[0]);
    for (int k = 0; k < a->steps && k < b->steps; k++) {
        double d = fabs(a->loss[k] - b->loss[k]) / fmax(fabs(b->loss[k]), floor);
        worst = isfinite(d) ? fmax(worst, d) : INFINITY;
    }
    return worst;
}

static double largest(const struct grad *g)
{
    double most = 0;
    for (int64_t k = 0; k < g->n; k++)
        most = fmax(most, fabs(g->x[k]));
    return most;
}

static const struct grad *same_grad(const struct trace *t, const struct grad *g)
{
    for (int i = 0; i < t->ngrads; i++)
        if (t->grad[i].op == g->op && t->grad[i].operand == g->operand &&
            t->grad[i].n == g->n)
            return &t->grad[i];
    return NULL;
}

/* Beside the largest element of each gradient, or a thousandth of the largest of all where that
 * is more: a bias before a batch norm has a gradient of 0, of which only rounding is seen.
 * Rank 0 only. */
__attribute__((unused)) static double worst_gradient(const struct trace *a,
                                                     const struct trace *b)
{
    double worst = a->ngrads == b->ngrads ? a->spread : INFINITY, floor = 1e-30;
    for (int i = 0; i < b->ngrads; i++)
        floor = fmax(floor, 1e-3 * largest(&b->grad[i]));
    for (int i = 0; i < a->ngrads && a->grad[i].x; i++) {
        const struct grad *g = &a->grad[i], *h = same_grad(b, g);
        double diff = h ? 0 : INFINITY;
        for (int64_t k = 0; h && k < g->n; k++)
            diff = fmax(diff, fabs(g->x[k] - h->x[k]));
        worst = fmax(worst, h ? diff / fmax(floor, largest(h)) : diff);
    }
    return worst;
}

#endif
