/* papers_flexflow.c - models that FlexFlow's paper measures (Jia, Zaharia and Aiken 2019): AlexNet,
 * Inception-v3, and two recurrent networks over 40 steps.
 *
 * AlexNet is that of Krizhevsky's "One weird trick" (2014), Inception-v3 that of Szegedy et al.
 * (2016, without the head beside it).  RNNLM: two LSTM layers 2048 wide over a vocabulary of
 * 10,000 words, that of Penn Treebank.  NMT: two LSTM layers 1024 wide that read and two that
 * write, attention between them, 32,768 words each.  FlexFlow unrolls a recurrent layer into its
 * steps, each of which may be elsewhere; here it is one operator. */
#include "papers_flexflow.h"
#include "paper_parts.h"

#include <stdio.h>

enum { CLASSES = 1000 };

/* ---- AlexNet -------------------------------------------------------------------------- */

static int conv_relu(struct paper *p, int x, int64_t channels, struct topt_attrs attrs,
                     const char *name)
{
    attrs.features = channels;
    x = topt_paper_add(p, COUNTED, "conv", x, -1, attrs, "%s", name);
    x = topt_paper_add(p, FUSED, "bias", x, -1, ATTRS(0), "%s.bias", name);
    return topt_paper_relu(p, x, name);
}

void topt_paper_alexnet(struct paper *p)
{
    enum { IMAGE = 224, INNER = 4096 };
    struct topt_attrs stem = topt_attrs_window(11, 4, 2);
    int x = conv_relu(p, topt_paper_image(p, IMAGE), 64, stem, "conv1");
    x = topt_paper_add(p, COUNTED, "pool", x, -1, topt_attrs_window(3, 2, 0), "pool1");
    x = conv_relu(p, x, 192, topt_paper_window(5, 1), "conv2");
    x = topt_paper_add(p, COUNTED, "pool", x, -1, topt_attrs_window(3, 2, 0), "pool2");
    x = conv_relu(p, x, 384, topt_paper_window(3, 1), "conv3");
    x = conv_relu(p, x, 256, topt_paper_window(3, 1), "conv4");
    x = conv_relu(p, x, 256, topt_paper_window(3, 1), "conv5");
    x = topt_paper_add(p, COUNTED, "pool", x, -1, topt_attrs_window(3, 2, 0), "pool5");
    x = topt_paper_add(p, FUSED, "flatten", x, -1, ATTRS(0), "features");
    x = topt_paper_relu(p, topt_paper_project(p, COUNTED, x, INNER, 1, "fc6"), "fc6");
    x = topt_paper_relu(p, topt_paper_project(p, COUNTED, x, INNER, 1, "fc7"), "fc7");
    x = topt_paper_project(p, COUNTED, x, CLASSES, 1, "classes");
    topt_paper_add(p, COUNTED, "cross_entropy", x, -1, ATTRS(0), "loss");
}

/* ---- Inception ------------------------------------------------------------------------ */

static int conv(struct paper *p, int x, int64_t channels, struct topt_attrs attrs,
                const char *name)
{
    return topt_paper_relu(p, topt_paper_conv_norm(p, x, channels, attrs, name), name);
}

static int square(struct paper *p, int x, int64_t channels, int64_t size,
                  const char *name)
{
    return conv(p, x, channels, topt_paper_window(size, 1), name);
}

/* Windows of h x w that keep the extents. */
static int slim(struct paper *p, int x, int64_t channels, int64_t h, int64_t w,
                const char *name)
{
    return conv(p, x, channels,
                ATTRS(.kernel_h = h, .kernel_w = w, .stride_h = 1, .stride_w = 1,
                      .pad_top = (h - 1) / 2, .pad_bottom = (h - 1) / 2,
                      .pad_left = (w - 1) / 2, .pad_right = (w - 1) / 2),
                name);
}

static int mean(struct paper *p, int x)
{
    struct topt_attrs attrs = topt_paper_window(3, 1);
    attrs.average = 1;
    return topt_paper_add(p, COUNTED, "pool", x, -1, attrs, "pool");
}

static int largest(struct paper *p, int x)
{
    return topt_paper_add(p, COUNTED, "pool", x, -1, topt_attrs_window(3, 2, 0), "pool");
}

/* Channels of all, one after the other. */
static int join(struct paper *p, const int *of, int n, const char *name)
{
    char full[64];
    struct topt_attrs attrs = ATTRS(.fused = 1);
    if (p->failed)
        return -1;
    snprintf(full, sizeof full, "%s%s", p->prefix, name);
    int t = topt_model_add(p->m, "concat_counts", full, n, of, &attrs, p->err);
    p->failed = t < 0;
    return t;
}

static int block_a(struct paper *p, int x, int64_t pooled)
{
    int of[4] = {square(p, x, 64, 1, "one")};
    of[1] = square(p, square(p, x, 48, 1, "five.in"), 64, 5, "five");
    of[2] = square(p, x, 64, 1, "three.in");
    of[2] = square(p, square(p, of[2], 96, 3, "three.mid"), 96, 3, "three");
    of[3] = square(p, mean(p, x), pooled, 1, "pooled");
    return join(p, of, 4, "join");
}

static int block_b(struct paper *p, int x)
{
    int of[3] = {conv(p, x, 384, topt_attrs_window(3, 2, 0), "three")};
    of[1] = square(p, square(p, x, 64, 1, "double.in"), 96, 3, "double.mid");
    of[1] = conv(p, of[1], 96, topt_attrs_window(3, 2, 0), "double");
    of[2] = largest(p, x);
    return join(p, of, 3, "join");
}

static int block_c(struct paper *p, int x, int64_t inner)
{
    int of[4] = {square(p, x, 192, 1, "one")};
    of[1] = slim(p, square(p, x, inner, 1, "seven.in"), inner, 1, 7, "seven.row");
    of[1] = slim(p, of[1], 192, 7, 1, "seven");
    of[2] = slim(p, square(p, x, inner, 1, "double.in"), inner, 7, 1, "double.a");
    of[2] = slim(p, of[2], inner, 1, 7, "double.b");
    of[2] = slim(p, of[2], inner, 7, 1, "double.c");
    of[2] = slim(p, of[2], 192, 1, 7, "double");
    of[3] = square(p, mean(p, x), 192, 1, "pooled");
    return join(p, of, 4, "join");
}

static int block_d(struct paper *p, int x)
{
    int of[3] = {conv(p, square(p, x, 192, 1, "three.in"), 320,
                      topt_attrs_window(3, 2, 0), "three")};
    of[1] = slim(p, square(p, x, 192, 1, "seven.in"), 192, 1, 7, "seven.row");
    of[1] = slim(p, of[1], 192, 7, 1, "seven.column");
    of[1] = conv(p, of[1], 192, topt_attrs_window(3, 2, 0), "seven");
    of[2] = largest(p, x);
    return join(p, of, 3, "join");
}

static int fork_in_two(struct paper *p, int x, const char *row, const char *column,
                       const char *name)
{
    int of[2] = {slim(p, x, 384, 1, 3, row), slim(p, x, 384, 3, 1, column)};
    return join(p, of, 2, name);
}

static int block_e(struct paper *p, int x)
{
    int of[4] = {square(p, x, 320, 1, "one")};
    of[1] = fork_in_two(p, square(p, x, 384, 1, "three.in"), "three.row", "three.column",
                        "three");
    of[2] = square(p, square(p, x, 448, 1, "double.in"), 384, 3, "double.mid");
    of[2] = fork_in_two(p, of[2], "double.row", "double.column", "double");
    of[3] = square(p, mean(p, x), 192, 1, "pooled");
    return join(p, of, 4, "join");
}

static int stem(struct paper *p)
{
    int x = conv(p, topt_paper_image(p, 299), 32, topt_attrs_window(3, 2, 0), "stem.a");
    x = conv(p, x, 32, topt_attrs_window(3, 1, 0), "stem.b");
    x = square(p, x, 64, 3, "stem.c");
    x = topt_paper_add(p, COUNTED, "pool", x, -1, topt_attrs_window(3, 2, 0),
                       "stem.pool1");
    x = conv(p, x, 80, topt_attrs_window(1, 1, 0), "stem.d");
    x = conv(p, x, 192, topt_attrs_window(3, 1, 0), "stem.e");
    return topt_paper_add(p, COUNTED, "pool", x, -1, topt_attrs_window(3, 2, 0),
                          "stem.pool2");
}

void topt_paper_inception(struct paper *p)
{
    static const int64_t pooled[] = {32, 64, 64}, inner[] = {128, 160, 160, 192};
    int x = stem(p), n = 0;
    for (int i = 0; i < 3; i++) {
        snprintf(p->prefix, sizeof p->prefix, "m%d.", n++);
        x = block_a(p, x, pooled[i]);
    }
    snprintf(p->prefix, sizeof p->prefix, "m%d.", n++);
    x = block_b(p, x);
    for (int i = 0; i < 4; i++) {
        snprintf(p->prefix, sizeof p->prefix, "m%d.", n++);
        x = block_c(p, x, inner[i]);
    }
    snprintf(p->prefix, sizeof p->prefix, "m%d.", n++);
    x = block_d(p, x);
    for (int i = 0; i < 2; i++) {
        snprintf(p->prefix, sizeof p->prefix, "m%d.", n++);
        x = block_e(p, x);
    }
    p->prefix[0] = '\0';
    x = topt_paper_add(p, COUNTED, "global_pool", x, -1, ATTRS(0), "mean");
    x = topt_paper_project(p, COUNTED, x, CLASSES, 1, "classes");
    topt_paper_add(p, COUNTED, "cross_entropy", x, -1, ATTRS(0), "loss");
}

/* ---- recurrent networks --------------------------------------------------------------- */

static int lstm(struct paper *p, int x, int64_t width, const char *name)
{
    enum { GATES = 4 };
    char gates[32];
    snprintf(gates, sizeof gates, "%s.gates", name);
    x = topt_paper_project(p, FUSED, x, width, GATES, gates);
    return topt_paper_add(p, COUNTED, "lstm", x, -1, ATTRS(0), "%s", name);
}

static int words(struct paper *p, int64_t vocab, int64_t width, const char *name)
{
    return topt_paper_add(p, COUNTED, "embedding", -1, -1,
                          ATTRS(.vocab = vocab, .features = width), "%s", name);
}

void topt_paper_rnnlm(struct paper *p)
{
    enum { WIDTH = 2048, VOCAB = 10000 };
    int x = words(p, VOCAB, WIDTH, "words");
    x = lstm(p, x, WIDTH, "lstm1");
    x = lstm(p, x, WIDTH, "lstm2");
    x = topt_paper_project(p, COUNTED, x, VOCAB, 1, "logits");
    topt_paper_add(p, COUNTED, "cross_entropy", x, -1, ATTRS(0), "loss");
}

/* What was read, weighted by how it fits each state of the writer, is added to that state. */
static int attention(struct paper *p, int read, int written, int64_t width)
{
    int q = topt_paper_project(p, COUNTED, written, 1, width, "query");
    int kv = topt_paper_project(p, COUNTED, read, 1, 2 * width, "keys");
    int y = topt_paper_add(p, COUNTED, "attention", q, kv,
                           ATTRS(.heads = 1, .head_dim = width), "attention");
    y = topt_paper_project(p, COUNTED, y, width, 1, "context");
    written = topt_paper_project(p, COUNTED, written, width, 1, "state");
    y = topt_paper_add(p, FUSED, "add", written, y, ATTRS(0), "sum");
    return topt_paper_add(p, FUSED, "unary", y, -1, ATTRS(.activation = TOPT_ACT_TANH),
                          "tanh");
}

void topt_paper_nmt(struct paper *p)
{
    enum { WIDTH = 1024, VOCAB = 32768 };
    int x = words(p, VOCAB, WIDTH, "source"), y = words(p, VOCAB, WIDTH, "target");
    x = lstm(p, lstm(p, x, WIDTH, "read1"), WIDTH, "read2");
    y = lstm(p, lstm(p, y, WIDTH, "write1"), WIDTH, "write2");
    y = attention(p, x, y, WIDTH);
    y = topt_paper_project(p, COUNTED, y, VOCAB, 1, "logits");
    topt_paper_add(p, COUNTED, "cross_entropy", y, -1, ATTRS(0), "loss");
}
