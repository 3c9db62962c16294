/* images.c - the extents that operators on images give, and what they refuse. */
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_model.h"

/* An operator on one image of channels by height by width: its output's extents from the
 * channels on, or the words it is refused with. */
static const struct fixture {
    const char *kind;
    struct topt_dim channels;
    int64_t height, width;
    struct topt_attrs attrs;
    struct topt_dim want[3];
    const char *says;
} fixtures[] = {
    /* the first layers of networks that everybody knows */
    {.kind = "conv",
     .channels = {3, 1},
     .height = 224,
     .width = 224,
     .attrs = {.features = 64,
               .kernel_h = 7,
               .kernel_w = 7,
               .stride_h = 2,
               .stride_w = 2,
               .pad_top = 3,
               .pad_left = 3,
               .pad_bottom = 3,
               .pad_right = 3},
     .want = {{64, 1}, {112, 1}, {112, 1}}},
    {.kind = "pool",
     .channels = {64, 1},
     .height = 112,
     .width = 112,
     .attrs = {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .ceil = 1},
     .want = {{64, 1}, {56, 1}, {56, 1}}},
    {.kind = "conv",
     .channels = {3, 1},
     .height = 227,
     .width = 227,
     .attrs =
         {.features = 96, .kernel_h = 11, .kernel_w = 11, .stride_h = 4, .stride_w = 4},
     .want = {{96, 1}, {55, 1}, {55, 1}}},
    {.kind = "conv",
     .channels = {2, 1},
     .height = 10,
     .width = 9,
     .attrs = {.features = 4,
               .features_unit = 2,
               .kernel_h = 3,
               .kernel_w = 2,
               .dilation_h = 3,
               .pad_right = 4},
     .want = {{4, 2}, {4, 1}, {12, 1}}},
    /* a last window would start behind the image */
    {.kind = "pool",
     .channels = {1, 1},
     .height = 3,
     .width = 5,
     .attrs = {.kernel_h = 1, .kernel_w = 1, .stride_h = 4, .stride_w = 3, .ceil = 1},
     .want = {{1, 1}, {1, 1}, {2, 1}}},
    {.kind = "conv_grouped",
     .channels = {4, 2},
     .height = 5,
     .width = 5,
     .attrs = {.groups = 4, .features_unit = 3, .kernel_h = 2, .kernel_w = 5},
     .want = {{4, 3}, {4, 1}, {1, 1}}},
    {.kind = "global_pool",
     .channels = {4, 2},
     .height = 5,
     .width = 6,
     .want = {{1, 1}, {4, 2}}},
    {.kind = "flatten",
     .channels = {4, 2},
     .height = 5,
     .width = 6,
     .want = {{1, 1}, {4, 60}}},
    {.kind = "tokens",
     .channels = {4, 2},
     .height = 5,
     .width = 6,
     .want = {{30, 1}, {4, 2}}},
    /* what is refused */
    {.kind = "conv",
     .channels = {2, 1},
     .height = 4,
     .width = 9,
     .attrs =
         {.features = 2, .kernel_h = 3, .kernel_w = 3, .dilation_h = 2, .dilation_w = 2},
     .says = "a window of 5 rows does not fit into 4 and padding of 0"},
    {.kind = "pool",
     .channels = {2, 1},
     .height = 4,
     .width = 2,
     .attrs = {.kernel_h = 3, .kernel_w = 4, .pad_left = 1},
     .says = "4 columns does not fit into 2 and padding of 1"},
    {.kind = "conv",
     .channels = {2, 1},
     .height = 4,
     .width = 4,
     .attrs = {.kernel_h = 1, .kernel_w = 1},
     .says = "needs features"},
    {.kind = "conv",
     .channels = {2, 1},
     .height = 4,
     .width = 4,
     .attrs = {.features = 1, .kernel_h = 1},
     .says = "along columns"},
    {.kind = "pool",
     .channels = {2, 1},
     .height = 4,
     .width = 4,
     .attrs = {.kernel_h = 1, .kernel_w = 1, .stride_h = (int64_t)1 << 40},
     .says = "along rows"},
    {.kind = "pool",
     .channels = {2, 1},
     .height = 4,
     .width = 4,
     .attrs = {.kernel_h = 1, .kernel_w = 1, .dilation_w = (int64_t)1 << 62},
     .says = "along columns"},
    {.kind = "conv",
     .channels = {2, 1},
     .height = 1024,
     .width = 1024,
     .attrs = {.features = 1, .kernel_h = 1024, .kernel_w = 1024},
     .says = "more than 65536 pixels"},
    {.kind = "conv",
     .channels = {2, 1},
     .height = 4,
     .width = 4,
     .attrs = {.features = (int64_t)1 << 40,
               .features_unit = (int64_t)1 << 40,
               .kernel_h = 1,
               .kernel_w = 1},
     .says = "elements"},
    {.kind = "conv_grouped",
     .channels = {4, 2},
     .height = 4,
     .width = 4,
     .attrs = {.groups = 8, .kernel_h = 1, .kernel_w = 1},
     .says = "4 groups of 2, 8 groups are asked for"},
    {.kind = "lrn",
     .channels = {4, 2},
     .height = 4,
     .width = 4,
     .attrs = {.size = 3},
     .says = "groups of 2"},
    {.kind = "lrn", .channels = {4, 1}, .height = 4, .width = 4, .says = "size of 1"},
    {.kind = "image", .says = "channels, height and width"},
    {.kind = "input", .says = "features"},
};

/* The operator's output, or -1. */
static int add(struct topt_model *m, const struct fixture *x, struct topt_error *err)
{
    struct topt_attrs image = {.channels = x->channels.count,
                               .features_unit = x->channels.unit,
                               .height = x->height,
                               .width = x->width};
    int in = -1;
    if (x->channels.count)
        in = topt_model_add(m, "image", "image", 0, NULL, &image, err);
    return topt_model_add(m, x->kind, "op", in >= 0, &in, &x->attrs, err);
}

static int as_wanted(const struct topt_tensor *t, const struct fixture *x)
{
    int same = 1;
    for (int i = 1; i < t->ndim; i++)
        same &= t->dim[i].count == x->want[i - 1].count &&
                t->dim[i].unit == x->want[i - 1].unit;
    return same;
}

int main(void)
{
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++) {
        const struct fixture *x = &fixtures[i];
        struct topt_error err = {0};
        struct topt_model *m = topt_model_create("test", 2, 1, &err);
        int t = m ? add(m, x, &err) : -1;
        if (x->says)
            ok(t < 0 && strstr(err.text, x->says), "%s refuses: %s", x->kind, err.text);
        else
            ok(t >= 0 && as_wanted(&m->tensor[t], x), "%s gives %lld of %lld ... %s",
               x->kind, (long long)x->want[0].count, (long long)x->want[0].unit,
               err.text);
        topt_model_destroy(m);
    }
    return done_testing();
}
