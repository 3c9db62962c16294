/* k_own.h - operators that the program brings itself: its functions are called with this rank's
 * positions. */
#include "real.h"

enum { OWN_X, OWN_P, OWN_Y };

static struct topt_own_call own_call_of(const struct topt_kernel_call *c)
{
    return (struct topt_own_call){
        .n = rows_of(c, OWN_X),
        .width = cols_of(c, OWN_X),
        .out = cols_of(c, OWN_Y),
        .parameters = c->op->operand[OWN_P].present ? elements_of(c, OWN_P) : 0,
        .is_double = sizeof(real) == sizeof(double),
        .x = c->value[OWN_X],
        .w = c->value[OWN_P],
        .y = c->value[OWN_Y],
        .dy = c->grad[OWN_Y],
        .dx = c->grad[OWN_X],
        .dw = c->grad[OWN_P]};
}

static void own_fwd(const struct topt_kernel_call *c)
{
    struct topt_own_call o = own_call_of(c);
    c->own->forward(c->own->ctx, &o);
}

static void own_bwd(const struct topt_kernel_call *c)
{
    struct topt_own_call o = own_call_of(c);
    c->own->backward(c->own->ctx, &o);
}
