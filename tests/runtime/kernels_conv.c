/* kernels_conv.c - the host kernels of images: elementwise operators, changes of shape. */
#include "kernel_checks.h"

/* clang-format off */
#define SHAPE(c, unit, h, w) {4, {{BATCH, 1}, {(c), (unit)}, {(h), 1}, {(w), 1}}}
/* An operator with attributes on images of c channels of 'unit' numbers. */
#define ON_IMAGE(kind, title, c, unit, h, w, ...) \
    {title, kind, 1, 1, 1, {__VA_ARGS__}, .shape = {SHAPE(c, unit, h, w)}}
#define ON_TWO(kind, title, c, unit, h, w) \
    {title, kind, 2, 1, 1, {0}, .shape = {SHAPE(c, unit, h, w), SHAPE(c, unit, h, w)}}
/* clang-format on */

static const struct fixture fixtures[] = {
    ON_IMAGE("bias", "bias of channels", 3, 2, 5, 4, 0),
    ON_IMAGE("unary", "elu of images", 2, 1, 5, 3, .activation = TOPT_ACT_ELU,
             .alpha = 0.7),
    ON_TWO("add", "sum of images", 2, 2, 4, 3),
    ON_TWO("mul", "product of images", 3, 1, 5, 2),
    ON_IMAGE("global_pool", "global pool", 3, 2, 5, 4, 0),
    ON_IMAGE("flatten", "flatten", 5, 2, 3, 2, 0),
    ON_IMAGE("tokens", "tokens", 5, 2, 5, 4, 0),
    ON_IMAGE("tokens", "tokens of many channels", 19, 1, 3, 6, 0),
};

int main(void)
{
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++)
        check_operator(&fixtures[i]);
    return done_testing();
}
