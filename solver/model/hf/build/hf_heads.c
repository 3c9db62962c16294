/* hf_heads.c - what ends a model that a Hugging Face config describes: logits of the
 * vocabulary, classes, the place of an answer, or nothing; and the loss. */
#include "hf_heads.h"
#include "hf_parts.h"

/* A linear map, an activation and a norm before the last map, where the head has them. */
static int transformed(struct hf_builder *b, int x, int64_t width)
{
    if (!b->a->head_transform)
        return x;
    x = topt_hf_linear(b, x, width, 1, !b->a->pooler_unbiased, "transform");
    x = topt_hf_unary(b, x, b->a->activation, "transform.activation");
    return topt_hf_norm(b, x, "transform.norm");
}

/* One number is a target, more are classes. */
static void loss_of_classes(struct hf_builder *b, int x)
{
    topt_hf_add(b, b->a->classes == 1 ? "mse" : "cross_entropy", x, -1, NULL, "loss");
}

void topt_hf_classifier(struct hf_builder *b, int x)
{
    loss_of_classes(b, topt_hf_linear(b, x, b->a->classes, 1, 1, "classifier"));
}

/* The first position, by way of a linear map. */
static int pooled(struct hf_builder *b, int x, int activation)
{
    x = topt_hf_add(b, "select", x, -1, NULL, "first");
    x = topt_hf_linear(b, x, b->a->width, 1, !b->a->pooler_unbiased, "pooler");
    x = topt_hf_unary(b, x, activation, "pooler.activation");
    return b->a->pooler_norm ? topt_hf_norm(b, x, "pooler.norm") : x;
}

/* Classes of what the last position knows of those before it. */
static void last_head(struct hf_builder *b, int x)
{
    struct topt_attrs last = {.offset = b->m->seq - 1};
    x = topt_hf_add(b, "select", x, -1, &last, "last");
    loss_of_classes(b, topt_hf_linear(b, x, b->a->classes, 1, 0, "score"));
}

/* Which position begins the answer, and which ends it: two choices among all. */
static void answer_head(struct hf_builder *b, int x)
{
    x = topt_hf_linear(b, x, b->a->classes, 1, 1, "qa_outputs");
    x = topt_hf_add(b, "transpose", x, -1, NULL, "ends");
    topt_hf_add(b, "cross_entropy", x, -1, NULL, "loss");
}

static void original_head(struct hf_builder *b, int x)
{
    x = topt_hf_linear(b, x, b->a->width, 1, 1, "discriminator");
    x = topt_hf_unary(b, x, b->a->activation, "discriminator.activation");
    x = topt_hf_linear(b, x, 1, 1, 1, "original");
    topt_hf_add(b, "mse", x, -1, NULL, "loss");
}

/* Nobody says what a model without a head is trained for: its output against targets. */
static void bare_head(struct hf_builder *b, int x)
{
    x = b->a->pooler ? pooled(b, x, TOPT_ACT_TANH) : x;
    topt_hf_add(b, "mse", x, -1, NULL, "loss");
}

/* Logits of the vocabulary. */
void topt_hf_language_head(struct hf_builder *b, int x, int table)
{
    const struct hf_arch *a = b->a;
    int64_t width = a->embed_width ? a->embed_width : a->width;
    if (a->head_factor > 0)
        x = topt_hf_scale(b, x, a->head_factor, "head.scale");
    if (width != a->width && !a->head_transform)
        x = topt_hf_linear(b, x, width, 1, 0, "project_out");
    x = transformed(b, x, width);
    x = table >= 0 ? topt_hf_add(b, "linear", x, table, NULL, "lm_head")
                   : topt_hf_linear(b, x, a->vocab, 1, 0, "lm_head");
    if (a->head_bias)
        x = topt_hf_add(b, "bias", x, -1, NULL, "lm_head.bias");
    if (a->logit_cap > 0) {
        x = topt_hf_unary(b, topt_hf_scale(b, x, 1 / a->logit_cap, "cap.in"),
                          TOPT_ACT_TANH, "cap.tanh");
        x = topt_hf_scale(b, x, a->logit_cap, "cap.out");
    }
    topt_hf_add(b, "cross_entropy", x, -1, NULL, "loss");
}

void topt_hf_head(struct hf_builder *b, int x, int table)
{
    if (!b->a->no_final_norm)
        x = topt_hf_norm(b, x, "norm");
    switch (b->a->head) {
    case HF_LANGUAGE:
        topt_hf_language_head(b, x, table);
        break;
    case HF_POOLED_TANH:
    case HF_POOLED_RELU:
    case HF_POOLED_GELU:
        topt_hf_classifier(b, pooled(b, x,
                                     b->a->head == HF_POOLED_TANH   ? TOPT_ACT_TANH
                                     : b->a->head == HF_POOLED_RELU ? TOPT_ACT_RELU
                                                                    : TOPT_ACT_GELU_ERF));
        break;
    case HF_LAST_CLASS:
        last_head(b, x);
        break;
    case HF_TOKEN_CLASS:
        x = b->a->class_transform ? transformed(b, x, b->a->width) : x;
        if (b->a->class_map)
            x = topt_hf_unary(b, topt_hf_linear(b, x, b->a->width, 1, 1, "class.map"),
                              TOPT_ACT_TANH, "class.map.activation");
        topt_hf_classifier(b, x);
        break;
    case HF_EACH_PIXEL:
    case HF_ANSWER:
        answer_head(b, b->a->class_transform ? transformed(b, x, b->a->width) : x);
        break;
    case HF_ORIGINAL:
        original_head(b, x);
        break;
    case HF_BARE:
        bare_head(b, x);
        break;
    }
}
