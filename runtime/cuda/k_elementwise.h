/* k_elementwise.h - activations, gated units, scale, add, mul. */
#include "real.h"

DEVICE num activated(const struct cu_call *c, num x)
{
    return activate(c->activation, c->alpha, c->beta, x);
}

DEVICE num slope(const struct cu_call *c, num x)
{
    return slope_of(c->activation, c->alpha, c->beta, x);
}

KERNEL unary_fwd_each(CALL(cu_call) c)
{
    enum { X, Y };
    EACH(i, elements(&c, X))
    put(OUT(c.value[Y]), i, activated(&c, get(IN(c.value[X]), i)));
}

static int unary_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(unary_fwd_each, blocks_for(size_of(c, 0)), stream, c);
    return 0;
}

KERNEL unary_bwd_each(CALL(cu_call) c)
{
    enum { X, Y };
    EACH(i, elements(&c, X))
    put(OUT(c.grad[X]), i, get(IN(c.grad[Y]), i) * slope(&c, get(IN(c.value[X]), i)));
}

static int unary_bwd(void *stream, const struct cu_call *c)
{
    if (c->grad[0])
        LAUNCH(unary_bwd_each, blocks_for(size_of(c, 0)), stream, c);
    return 0;
}

/* x holds pairs (gate, up). */
KERNEL glu_fwd_each(CALL(cu_call) c)
{
    enum { X, Y };
    EACH(i, elements(&c, Y))
    {
        num gate = get(IN(c.value[X]), 2 * i), up = get(IN(c.value[X]), 2 * i + 1);
        put(OUT(c.value[Y]), i, activated(&c, gate) * up);
    }
}

static int glu_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(glu_fwd_each, blocks_for(size_of(c, 1)), stream, c);
    return 0;
}

KERNEL glu_bwd_each(CALL(cu_call) c)
{
    enum { X, Y };
    EACH(i, elements(&c, Y))
    {
        num gate = get(IN(c.value[X]), 2 * i), up = get(IN(c.value[X]), 2 * i + 1);
        num dy = get(IN(c.grad[Y]), i);
        put(OUT(c.grad[X]), 2 * i, dy * up * slope(&c, gate));
        put(OUT(c.grad[X]), 2 * i + 1, dy * activated(&c, gate));
    }
}

static int glu_bwd(void *stream, const struct cu_call *c)
{
    if (c->grad[0])
        LAUNCH(glu_bwd_each, blocks_for(size_of(c, 1)), stream, c);
    return 0;
}

KERNEL scale_fwd_each(CALL(cu_call) c)
{
    enum { X, Y };
    EACH(i, elements(&c, Y))
    put(OUT(c.value[Y]), i, N(c.factor) * get(IN(c.value[X]), i) + N(c.shift));
}

static int scale_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(scale_fwd_each, blocks_for(size_of(c, 1)), stream, c);
    return 0;
}

KERNEL scale_bwd_each(CALL(cu_call) c)
{
    enum { X, Y };
    EACH(i, elements(&c, Y))
    put(OUT(c.grad[X]), i, N(c.factor) * get(IN(c.grad[Y]), i));
}

static int scale_bwd(void *stream, const struct cu_call *c)
{
    if (c->grad[0])
        LAUNCH(scale_bwd_each, blocks_for(size_of(c, 1)), stream, c);
    return 0;
}

KERNEL add_fwd_each(CALL(cu_call) c)
{
    enum { A, B, Y };
    EACH(i, elements(&c, Y))
    put(OUT(c.value[Y]), i, get(IN(c.value[A]), i) + get(IN(c.value[B]), i));
}

static int add_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(add_fwd_each, blocks_for(size_of(c, 2)), stream, c);
    return 0;
}

KERNEL add_bwd_each(CALL(cu_call) c)
{
    enum { A, B, Y };
    EACH(i, elements(&c, Y))
    {
        if (c.grad[A])
            OUT(c.grad[A])[i] = IN(c.grad[Y])[i];
        if (c.grad[B])
            OUT(c.grad[B])[i] = IN(c.grad[Y])[i];
    }
}

static int add_bwd(void *stream, const struct cu_call *c)
{
    LAUNCH(add_bwd_each, blocks_for(size_of(c, 2)), stream, c);
    return 0;
}

KERNEL mul_fwd_each(CALL(cu_call) c)
{
    enum { A, B, Y };
    EACH(i, elements(&c, Y))
    put(OUT(c.value[Y]), i, get(IN(c.value[A]), i) * get(IN(c.value[B]), i));
}

static int mul_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(mul_fwd_each, blocks_for(size_of(c, 2)), stream, c);
    return 0;
}

KERNEL mul_bwd_each(CALL(cu_call) c)
{
    enum { A, B, Y };
    EACH(i, elements(&c, Y))
    {
        num dy = get(IN(c.grad[Y]), i);
        if (c.grad[A])
            put(OUT(c.grad[A]), i, dy * get(IN(c.value[B]), i));
        if (c.grad[B])
            put(OUT(c.grad[B]), i, dy * get(IN(c.value[A]), i));
    }
}

static int mul_bwd(void *stream, const struct cu_call *c)
{
    LAUNCH(mul_bwd_each, blocks_for(size_of(c, 2)), stream, c);
    return 0;
}
