/* paper_parts.c - projections, convolutions and images of the papers' models. */
#include "paper_parts.h"

#include <stdarg.h>

int topt_paper_add(struct paper *p, int fused, const char *kind, int x, int y,
                   struct topt_attrs attrs, const char *fmt, ...)
{
    va_list ap;
    attrs.fused = fused == FUSED;
    va_start(ap, fmt);
    int t = topt_model_append(p->m, &p->failed, p->prefix, kind, x, y, &attrs, p->err,
                              fmt, ap);
    va_end(ap);
    return t;
}

int topt_paper_project(struct paper *p, int fused, int x, int64_t features, int64_t unit,
                       const char *name)
{
    x = topt_paper_add(p, fused, "linear", x, -1,
                       ATTRS(.features = features, .features_unit = unit), "%s", name);
    return topt_paper_add(p, FUSED, "bias", x, -1, ATTRS(0), "%s.bias", name);
}

int topt_paper_relu(struct paper *p, int x, const char *name)
{
    return topt_paper_add(p, FUSED, "unary", x, -1, ATTRS(.activation = TOPT_ACT_RELU),
                          "%s.relu", name);
}

struct topt_attrs topt_paper_window(int64_t size, int64_t stride)
{
    return topt_attrs_window(size, stride, (size - 1) / 2);
}

int topt_paper_image(struct paper *p, int64_t size)
{
    return topt_paper_add(p, COUNTED, "image", -1, -1,
                          ATTRS(.channels = 3, .height = size, .width = size), "image");
}

int topt_paper_conv_norm(struct paper *p, int x, int64_t channels,
                         struct topt_attrs attrs, const char *name)
{
    attrs.features = channels;
    x = topt_paper_add(p, COUNTED, "conv", x, -1, attrs, "%s", name);
    return topt_paper_add(p, FUSED, "batch_norm", x, -1, ATTRS(0), "%s.norm", name);
}
