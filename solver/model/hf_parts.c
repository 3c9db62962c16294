/* hf_parts.c - what the builders of Hugging Face models are made of: one operator, or a
 * few that always stand together. */
#include "hf_parts.h"
#include "model_impl.h"

#include <stdarg.h>
#include <stdio.h>

int topt_hf_add(struct hf_builder *b, const char *kind, int x, int y,
                const struct topt_attrs *attrs, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int t = topt_model_append(b->m, &b->failed, b->prefix, kind, x, y, attrs, b->err, fmt,
                              ap);
    va_end(ap);
    return t;
}

int topt_hf_norm(struct hf_builder *b, int x, const char *name)
{
    int plain = b->a->unbiased_norms || b->a->untrained_norms;
    struct topt_attrs attrs = {.rms = b->a->rms, .plain = plain, .eps = b->a->eps};
    x = topt_hf_add(b, "norm", x, -1, &attrs, "%s", name);
    return b->a->unbiased_norms ? topt_hf_add(b, "gain", x, -1, NULL, "%s.gain", name)
                                : x;
}

int topt_hf_linear(struct hf_builder *b, int x, int64_t features, int64_t unit, int bias,
                   const char *name)
{
    struct topt_attrs attrs = {
        .features = features, .features_unit = unit, .init_std = b->a->init_std};
    int y = topt_hf_add(b, "linear", x, -1, &attrs, "%s", name);
    return bias ? topt_hf_add(b, "bias", y, -1, NULL, "%s.bias", name) : y;
}

int topt_hf_scale(struct hf_builder *b, int x, double factor, const char *name)
{
    struct topt_attrs attrs = {.factor = factor};
    return topt_hf_add(b, "scale", x, -1, &attrs, "%s", name);
}

int topt_hf_unary(struct hf_builder *b, int x, int activation, const char *name)
{
    struct topt_attrs attrs = {.activation = activation};
    return topt_hf_add(b, "unary", x, -1, &attrs, "%s", name);
}

int topt_hf_attend(struct hf_builder *b, const int input[4],
                   const struct topt_attrs *attrs, const char *name)
{
    char full[60];
    int list[4], n = 0;
    for (int i = 0; i < 4; i++)
        if (input[i] >= 0)
            list[n++] = input[i];
    snprintf(full, sizeof full, "%s%s", b->prefix, name);
    int t = b->failed ? -1 : topt_model_add(b->m, "attend", full, n, list, attrs, b->err);
    b->failed |= t < 0;
    return t;
}
