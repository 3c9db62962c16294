/* papers.c - the models that papers on strategy search measure, made by name:
 * "paper:vgg16".
 *
 * Built as Cai et al. (TensorOpt, 2020) describe theirs; where that leaves something
 * open, so that the sizes they print come out.  Their accounting of memory takes a
 * convolution with its norm, sum and activation (a projection with its bias and so on)
 * as one operator: all but the counted one are marked as fused. */
#include "model_impl.h"
#include "topt_near.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Appends operators; after the first failure it does nothing. */
struct paper {
    struct topt_model *m;
    int failed;
    struct topt_error *err;
    char prefix[24]; /* of names */
};

enum { COUNTED, FUSED };

/* Negative inputs are left out. */
TOPT_PRINTF(7, 8)
static int add(struct paper *p, int fused, const char *kind, int x, int y,
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

#define ATTRS(...) ((struct topt_attrs){__VA_ARGS__})

/* A projection with its bias. */
static int project(struct paper *p, int fused, int x, int64_t features, int64_t unit,
                   const char *name)
{
    x = add(p, fused, "linear", x, -1, ATTRS(.features = features, .features_unit = unit),
            "%s", name);
    return add(p, FUSED, "bias", x, -1, ATTRS(0), "%s.bias", name);
}

static int relu(struct paper *p, int x, const char *name)
{
    return add(p, FUSED, "unary", x, -1, ATTRS(.activation = TOPT_ACT_RELU), "%s.relu",
               name);
}

/* A square window of 'size' that keeps the extents, or divides them by 'stride'. */
static struct topt_attrs window(int64_t size, int64_t stride)
{
    int64_t pad = (size - 1) / 2;
    return ATTRS(.kernel_h = size, .kernel_w = size, .stride_h = stride,
                 .stride_w = stride, .pad_top = pad, .pad_left = pad, .pad_bottom = pad,
                 .pad_right = pad);
}

static int image(struct paper *p, int64_t size)
{
    return add(p, COUNTED, "image", -1, -1,
               ATTRS(.channels = 3, .height = size, .width = size), "image");
}

/* ---- recurrent network ------------------------------------------------------------- */

/* LSTM layers alone: what they read is as wide as they are, and so is what they are to
 * say. */
static void make_rnn(struct paper *p)
{
    enum { LAYERS = 6, WIDTH = 24576, GATES = 4 };
    int x = add(p, FUSED, "input", -1, -1, ATTRS(.features = WIDTH), "x");
    for (int i = 0; i < LAYERS; i++) {
        snprintf(p->prefix, sizeof p->prefix, "l%d.", i);
        x = project(p, FUSED, x, WIDTH, GATES, "gates");
        x = add(p, COUNTED, "lstm", x, -1, ATTRS(0), "lstm");
    }
    p->prefix[0] = '\0';
    add(p, COUNTED, "mse", x, -1, ATTRS(0), "loss");
}

/* ---- networks of images ------------------------------------------------------------ */

static int conv_norm(struct paper *p, int x, int64_t channels, struct topt_attrs attrs,
                     const char *name)
{
    attrs.features = channels;
    x = add(p, COUNTED, "conv", x, -1, attrs, "%s", name);
    return add(p, FUSED, "batch_norm", x, -1, ATTRS(0), "%s.norm", name);
}

/* Narrow, convolve, widen, and add what came in; the stride is that of the middle. */
static int bottleneck(struct paper *p, int x, int64_t inner, int64_t outer,
                      int64_t stride, int first)
{
    int skip = first ? conv_norm(p, x, outer, window(1, stride), "skip") : x;
    x = relu(p, conv_norm(p, x, inner, window(1, 1), "narrow"), "narrow");
    x = relu(p, conv_norm(p, x, inner, window(3, stride), "middle"), "middle");
    x = conv_norm(p, x, outer, window(1, 1), "widen");
    return relu(p, add(p, FUSED, "add", x, skip, ATTRS(0), "sum"), "sum");
}

/* ResNet-152 with wide blocks. */
static void make_wide_resnet(struct paper *p)
{
    enum { IMAGE = 160, CLASSES = 1000, STEM = 96, OUTER = 4 * 96, INNER = 480 };
    static const int blocks[] = {3, 8, 36, 3};
    int x = relu(p, conv_norm(p, image(p, IMAGE), STEM, window(7, 2), "stem"), "stem");
    x = add(p, COUNTED, "pool", x, -1, window(3, 2), "pool");
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < blocks[i]; k++) {
            snprintf(p->prefix, sizeof p->prefix, "s%d.b%d.", i, k);
            x = bottleneck(p, x, (int64_t)INNER << i, (int64_t)OUTER << i,
                           i && !k ? 2 : 1, !k);
        }
    p->prefix[0] = '\0';
    x = add(p, COUNTED, "global_pool", x, -1, ATTRS(0), "mean");
    x = project(p, COUNTED, x, CLASSES, 1, "classes");
    add(p, COUNTED, "cross_entropy", x, -1, ATTRS(0), "loss");
}

static void make_vgg16(struct paper *p)
{
    enum { IMAGE = 224, CLASSES = 1000, INNER = 4096 };
    static const struct {
        int convs, channels;
    } stage[] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};
    int x = image(p, IMAGE);
    for (int i = 0; i < 5; i++) {
        snprintf(p->prefix, sizeof p->prefix, "s%d.", i);
        for (int k = 0; k < stage[i].convs; k++) {
            struct topt_attrs attrs = window(3, 1);
            char name[16];
            snprintf(name, sizeof name, "conv%d", k);
            attrs.features = stage[i].channels;
            x = add(p, COUNTED, "conv", x, -1, attrs, "%s", name);
            x = add(p, FUSED, "bias", x, -1, ATTRS(0), "%s.bias", name);
            x = relu(p, x, name);
        }
        x = add(p, COUNTED, "pool", x, -1,
                ATTRS(.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2),
                "pool");
    }
    p->prefix[0] = '\0';
    x = add(p, FUSED, "flatten", x, -1, ATTRS(0), "features");
    x = relu(p, project(p, COUNTED, x, INNER, 1, "fc0"), "fc0");
    x = relu(p, project(p, COUNTED, x, INNER, 1, "fc1"), "fc1");
    x = project(p, COUNTED, x, CLASSES, 1, "classes");
    add(p, COUNTED, "cross_entropy", x, -1, ATTRS(0), "loss");
}

/* ---- transformers ------------------------------------------------------------------ */

enum { HEAD = 128 };

/* Norms after the sums.  Attention makes scores and their softmax inside. */
static int block(struct paper *p, int x, int64_t width)
{
    int64_t heads = width / HEAD;
    int y = project(p, COUNTED, x, heads, 3 * HEAD, "qkv");
    y = add(p, COUNTED, "attention", y, -1,
            ATTRS(.heads = heads, .head_dim = HEAD, .inside = 2 * p->m->seq),
            "attention");
    y = project(p, COUNTED, y, width, 1, "context");
    y = add(p, FUSED, "add", x, y, ATTRS(0), "attention.sum");
    x = add(p, COUNTED, "norm", y, -1, ATTRS(0), "attention.norm");
    y = relu(p, project(p, COUNTED, x, 4 * width, 1, "up"), "up");
    y = project(p, COUNTED, y, width, 1, "down");
    y = add(p, FUSED, "add", x, y, ATTRS(0), "sum");
    return add(p, COUNTED, "norm", y, -1, ATTRS(0), "norm");
}

static void make_transformer_of(struct paper *p, int64_t width)
{
    enum { LAYERS = 32, VOCAB = 32768 };
    int table = add(p, FUSED, "variable", -1, -1,
                    ATTRS(.vocab = VOCAB, .features = width), "table");
    int x = add(p, COUNTED, "embedding", table, -1, ATTRS(0), "embedding");
    for (int i = 0; i < LAYERS; i++) {
        snprintf(p->prefix, sizeof p->prefix, "h%d.", i);
        x = block(p, x, width);
    }
    p->prefix[0] = '\0';
    x = add(p, COUNTED, "linear", x, table, ATTRS(0), "logits");
    add(p, COUNTED, "cross_entropy", x, -1, ATTRS(0), "loss");
}

static void make_transformer(struct paper *p)
{
    make_transformer_of(p, 2560);
}

static void make_transformer_s(struct paper *p)
{
    make_transformer_of(p, 1792);
}

/* ---- recommenders ------------------------------------------------------------------ */

enum { DLRM_TABLES = 26, DLRM_MLP = 6 };

/* DLRM (Naumov et al. 2019; github.com/facebookresearch/dlrm): numbers through the bottom MLP,
 * a row of each table, products of every two of these, the top MLP.  A width of 0 ends a list. */
struct dlrm {
    int64_t features;
    int64_t bottom[DLRM_MLP], top[DLRM_MLP];
    int64_t rows[DLRM_TABLES];
};

static int mlp(struct paper *p, int x, const int64_t *width, const char *name)
{
    for (int i = 0; i < DLRM_MLP && width[i]; i++) {
        snprintf(p->prefix, sizeof p->prefix, "%s%d.", name, i);
        x = project(p, FUSED, x, width[i], 1, "linear");
        if (i + 1 < DLRM_MLP && width[i + 1])
            x = relu(p, x, "out");
        else if (name[0] == 'b')
            x = relu(p, x, "out");
    }
    p->prefix[0] = '\0';
    return x;
}

/* One tensor of several, four at a time. */
static int join(struct paper *p, int *x, int n)
{
    for (int level = 0; n > 1; level++) {
        int made = 0;
        for (int i = 0; i < n; i += 4) {
            int in[4], k = n - i < 4 ? n - i : 4;
            char name[32];
            struct topt_attrs none = {.fused = 1};
            memcpy(in, x + i, (size_t)k * sizeof *in);
            snprintf(name, sizeof name, "join%d.%d", level, i / 4);
            x[made] = in[0];
            if (k > 1 && !p->failed)
                x[made] =
                    topt_model_add(p->m, "concat_counts", name, k, in, &none, p->err);
            p->failed |= x[made++] < 0;
        }
        n = made;
    }
    return x[0];
}

static void make_dlrm_of(struct paper *p, const struct dlrm *d)
{
    int vector[1 + DLRM_TABLES];
    int x = add(p, FUSED, "input", -1, -1, ATTRS(.features = 13), "numbers");
    int bottom = vector[0] = mlp(p, x, d->bottom, "bottom");
    for (int t = 0; t < DLRM_TABLES; t++)
        vector[1 + t] =
            add(p, COUNTED, "embedding", -1, -1,
                ATTRS(.vocab = d->rows[t], .features = d->features, .sparse = 1),
                "table%d", t);
    x = join(p, vector, 1 + DLRM_TABLES);
    x = add(p, COUNTED, "interact", x, -1, ATTRS(.features = d->features), "products");
    x = add(p, FUSED, "concat_counts", bottom, x, ATTRS(0), "joined");
    x = mlp(p, x, d->top, "top");
    add(p, COUNTED, "logistic", x, -1, ATTRS(0), "loss");
}

/* Criteo's Kaggle data: rows as its published preprocessing counts them. */
static void make_dlrm(struct paper *p)
{
    static const struct dlrm kaggle = {
        16,
        {512, 256, 64, 16},
        {512, 256, 1},
        {1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
         93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
         2173,  4,    7046547,  18,      15,  286181, 105,     142572}};
    make_dlrm_of(p, &kaggle);
}

/* MLPerf's: Criteo's terabyte, no more than 40 million rows a table. */
static void make_dlrm_terabyte(struct paper *p)
{
    static const struct dlrm terabyte = {
        128,
        {512, 256, 128},
        {1024, 1024, 512, 256, 1},
        {39884406, 39043,    17289,    7420,     20263,  3,     7120, 1543, 63,
         38532951, 2953546,  403346,   10,       2208,   11938, 155,  4,    976,
         14,       39979771, 25641295, 39664984, 585935, 12972, 108,  36}};
    make_dlrm_of(p, &terabyte);
}

/* The language model of one billion words that Parallax measures (Jozefowicz et al. 2016): a
 * sparse table, an LSTM of 2048 and a projection to 512.  Here the projection comes after the
 * recurrence, and the softmax is over all words. */
static void make_words(struct paper *p)
{
    enum { WORDS = 793471, WIDTH = 512, HIDDEN = 2048, GATES = 4 };
    int x = add(p, COUNTED, "embedding", -1, -1,
                ATTRS(.vocab = WORDS, .features = WIDTH, .sparse = 1), "words");
    x = project(p, FUSED, x, HIDDEN, GATES, "gates");
    x = add(p, COUNTED, "lstm", x, -1, ATTRS(0), "lstm");
    x = add(p, COUNTED, "linear", x, -1, ATTRS(.features = WIDTH), "projection");
    x = project(p, FUSED, x, WORDS, 1, "logits");
    add(p, COUNTED, "cross_entropy", x, -1, ATTRS(0), "loss");
}

/* ---- by name ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    int64_t seq, batch; /* batch 0: PAPER_BATCH */
    void (*make)(struct paper *p);
} papers[] = {
    {"rnn", 64, 0, make_rnn},
    {"wideresnet", 1, 0, make_wide_resnet},
    {"vgg16", 1, 0, make_vgg16},
    {"transformer", 32, 0, make_transformer},
    {"transformer-s", 32, 0, make_transformer_s},
    {"words", 20, 0, make_words},
    {"dlrm", 1, 2048, make_dlrm},
    {"dlrm-terabyte", 1, 65536, make_dlrm_terabyte},
};
enum { PAPERS = sizeof papers / sizeof *papers, PAPER_BATCH = 256 };

static struct topt_model *make(int k, const struct topt_import_options *o,
                               struct topt_error *err)
{
    int64_t batch = o && o->batch     ? o->batch
                    : papers[k].batch ? papers[k].batch
                                      : PAPER_BATCH;
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
    char known[100] = "";
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
