/* papers.c - the models that papers on strategy search measure, made by name:
 * "paper:vgg16".
 *
 * Built as Cai et al. (TensorOpt, 2020) describe theirs; where that leaves something
 * open, so that the sizes they print come out.  Their accounting of memory takes a
 * convolution with its norm, sum and activation (a projection with its bias and so on)
 * as one operator: all but the counted one are marked as fused.  Those of FlexFlow's paper are in
 * papers_flexflow.c, recommenders in papers_tables.c. */
#include "papers.h"
#include "paper_parts.h"
#include "papers_flexflow.h"
#include "papers_tables.h"
#include "topt_near.h"

#include <stdio.h>
#include <string.h>

/* ---- recurrent network ------------------------------------------------------------- */

/* LSTM layers alone: what they read is as wide as they are, and so is what they are to
 * say. */
static void make_rnn(struct paper *p)
{
    enum { LAYERS = 6, WIDTH = 24576, GATES = 4 };
    int x = topt_paper_add(p, FUSED, "input", -1, -1, ATTRS(.features = WIDTH), "x");
    for (int i = 0; i < LAYERS; i++) {
        snprintf(p->prefix, sizeof p->prefix, "l%d.", i);
        x = topt_paper_project(p, FUSED, x, WIDTH, GATES, "gates");
        x = topt_paper_add(p, COUNTED, "lstm", x, -1, ATTRS(0), "lstm");
    }
    p->prefix[0] = '\0';
    topt_paper_add(p, COUNTED, "mse", x, -1, ATTRS(0), "loss");
}

/* ---- networks of images ------------------------------------------------------------ */

/* Narrow, convolve, widen, and add what came in; the stride is that of the middle. */
static int bottleneck(struct paper *p, int x, int64_t inner, int64_t outer,
                      int64_t stride, int first)
{
    int skip =
        first ? topt_paper_conv_norm(p, x, outer, topt_paper_window(1, stride), "skip")
              : x;
    x = topt_paper_relu(
        p, topt_paper_conv_norm(p, x, inner, topt_paper_window(1, 1), "narrow"),
        "narrow");
    x = topt_paper_relu(
        p, topt_paper_conv_norm(p, x, inner, topt_paper_window(3, stride), "middle"),
        "middle");
    x = topt_paper_conv_norm(p, x, outer, topt_paper_window(1, 1), "widen");
    return topt_paper_relu(p, topt_paper_add(p, FUSED, "add", x, skip, ATTRS(0), "sum"),
                           "sum");
}

/* ResNet-152 with wide blocks. */
static void make_wide_resnet(struct paper *p)
{
    enum { IMAGE = 160, CLASSES = 1000, STEM = 96, OUTER = 4 * 96, INNER = 480 };
    static const int blocks[] = {3, 8, 36, 3};
    int x = topt_paper_relu(p,
                            topt_paper_conv_norm(p, topt_paper_image(p, IMAGE), STEM,
                                                 topt_paper_window(7, 2), "stem"),
                            "stem");
    x = topt_paper_add(p, COUNTED, "pool", x, -1, topt_paper_window(3, 2), "pool");
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < blocks[i]; k++) {
            snprintf(p->prefix, sizeof p->prefix, "s%d.b%d.", i, k);
            x = bottleneck(p, x, (int64_t)INNER << i, (int64_t)OUTER << i,
                           i && !k ? 2 : 1, !k);
        }
    p->prefix[0] = '\0';
    x = topt_paper_add(p, COUNTED, "global_pool", x, -1, ATTRS(0), "mean");
    x = topt_paper_project(p, COUNTED, x, CLASSES, 1, "classes");
    topt_paper_add(p, COUNTED, "cross_entropy", x, -1, ATTRS(0), "loss");
}

static void make_vgg16(struct paper *p)
{
    enum { IMAGE = 224, CLASSES = 1000, INNER = 4096 };
    static const struct {
        int convs, channels;
    } stage[] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};
    int x = topt_paper_image(p, IMAGE);
    for (int i = 0; i < 5; i++) {
        snprintf(p->prefix, sizeof p->prefix, "s%d.", i);
        for (int k = 0; k < stage[i].convs; k++) {
            struct topt_attrs attrs = topt_paper_window(3, 1);
            char name[16];
            snprintf(name, sizeof name, "conv%d", k);
            attrs.features = stage[i].channels;
            x = topt_paper_add(p, COUNTED, "conv", x, -1, attrs, "%s", name);
            x = topt_paper_add(p, FUSED, "bias", x, -1, ATTRS(0), "%s.bias", name);
            x = topt_paper_relu(p, x, name);
        }
        x = topt_paper_add(p, COUNTED, "pool", x, -1, topt_attrs_window(2, 2, 0), "pool");
    }
    p->prefix[0] = '\0';
    x = topt_paper_add(p, FUSED, "flatten", x, -1, ATTRS(0), "features");
    x = topt_paper_relu(p, topt_paper_project(p, COUNTED, x, INNER, 1, "fc0"), "fc0");
    x = topt_paper_relu(p, topt_paper_project(p, COUNTED, x, INNER, 1, "fc1"), "fc1");
    x = topt_paper_project(p, COUNTED, x, CLASSES, 1, "classes");
    topt_paper_add(p, COUNTED, "cross_entropy", x, -1, ATTRS(0), "loss");
}

/* ---- transformers ------------------------------------------------------------------ */

enum { HEAD = 128 };

/* Norms after the sums.  Attention makes scores and their softmax inside. */
static int block(struct paper *p, int x, int64_t width)
{
    int64_t heads = width / HEAD;
    int y = topt_paper_project(p, COUNTED, x, heads, 3 * HEAD, "qkv");
    y = topt_paper_add(p, COUNTED, "attention", y, -1,
                       ATTRS(.heads = heads, .head_dim = HEAD, .inside = 2 * p->m->seq),
                       "attention");
    y = topt_paper_project(p, COUNTED, y, width, 1, "context");
    y = topt_paper_add(p, FUSED, "add", x, y, ATTRS(0), "attention.sum");
    x = topt_paper_add(p, COUNTED, "norm", y, -1, ATTRS(0), "attention.norm");
    y = topt_paper_relu(p, topt_paper_project(p, COUNTED, x, 4 * width, 1, "up"), "up");
    y = topt_paper_project(p, COUNTED, y, width, 1, "down");
    y = topt_paper_add(p, FUSED, "add", x, y, ATTRS(0), "sum");
    return topt_paper_add(p, COUNTED, "norm", y, -1, ATTRS(0), "norm");
}

static void make_transformer_of(struct paper *p, int64_t width)
{
    enum { LAYERS = 32, VOCAB = 32768 };
    int table = topt_paper_add(p, FUSED, "variable", -1, -1,
                               ATTRS(.vocab = VOCAB, .features = width), "table");
    int x = topt_paper_add(p, COUNTED, "embedding", table, -1, ATTRS(0), "embedding");
    for (int i = 0; i < LAYERS; i++) {
        snprintf(p->prefix, sizeof p->prefix, "h%d.", i);
        x = block(p, x, width);
    }
    p->prefix[0] = '\0';
    x = topt_paper_add(p, COUNTED, "linear", x, table, ATTRS(0), "logits");
    topt_paper_add(p, COUNTED, "cross_entropy", x, -1, ATTRS(0), "loss");
}

static void make_transformer(struct paper *p)
{
    make_transformer_of(p, 2560);
}

static void make_transformer_s(struct paper *p)
{
    make_transformer_of(p, 1792);
}

/* ---- by name ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    int64_t batch, seq;
    void (*make)(struct paper *p);
} papers[] = {
    {"rnn", 256, 64, make_rnn},
    {"wideresnet", 256, 1, make_wide_resnet},
    {"vgg16", 256, 1, make_vgg16},
    {"transformer", 256, 32, make_transformer},
    {"transformer-s", 256, 32, make_transformer_s},
    {"alexnet", 256, 1, topt_paper_alexnet},
    {"inception", 64, 1, topt_paper_inception},
    {"rnnlm", 64, 40, topt_paper_rnnlm},
    {"nmt", 64, 40, topt_paper_nmt},
    {"words", 256, 20, topt_paper_words},
    {"dlrm", 2048, 1, topt_paper_dlrm},
    {"dlrm-terabyte", 65536, 1, topt_paper_dlrm_terabyte},
};
enum { PAPERS = sizeof papers / sizeof *papers };

static struct topt_model *make(int k, const struct topt_import_options *o,
                               struct topt_error *err)
{
    int64_t batch = o && o->batch ? o->batch : papers[k].batch;
    int64_t seq = o && o->seq ? o->seq : papers[k].seq;
    if (papers[k].seq == 1 && seq != 1) {
        topt_fail(err, TOPT_ERR_USAGE, "paper:%s takes samples that have no sequence",
                  papers[k].name);
        return NULL;
    }
    struct paper p = {.m = topt_model_create(papers[k].name, batch, seq, err),
                      .err = err};
    if (!p.m)
        return NULL;
    papers[k].make(&p);
    if (!p.failed && !topt_model_finish(p.m, err))
        return p.m;
    topt_wrap(err, "paper:%s", papers[k].name);
    topt_model_destroy(p.m);
    return NULL;
}

struct topt_model *topt_paper_build(const char *name, const struct topt_import_options *o,
                                    struct topt_error *err)
{
    char known[160] = "";
    struct topt_near near = {.name = name};
    for (int k = 0; k < PAPERS; k++) {
        if (!strcmp(papers[k].name, name))
            return make(k, o, err);
        topt_near_try(&near, papers[k].name);
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
                 k ? ", " : "", papers[k].name);
    }
    const char *meant = topt_near_name(&near);
    topt_fail(err, TOPT_ERR_USAGE,
              meant ? "unknown model 'paper:%.40s'; did you mean paper:%s? (one of %s)"
                    : "unknown model 'paper:%.40s'%s (one of %s)",
              name, meant ? meant : "", known);
    return NULL;
}
