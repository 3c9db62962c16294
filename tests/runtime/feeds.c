/* feeds.c - samples of every kind: any part of a batch is that part, what is asked for is there,
 * and each file that does not fit the model is refused with what is wrong. */
#include "models.h"
#include "tap.h"
#include "topt_runtime.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH = 8, SEQ = 6, WIDTH = 6, CLASSES = 4 };

static char dir[] = "/tmp/topt-feeds-XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void put_file(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(in_dir(name), "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f))
        exit(1);
}

/* A classifier of 2 x 3 numbers. */
static struct topt_model *build_classifier(void)
{
    struct build b = {.m = topt_model_create("classifier", BATCH, 1, NULL)};
    int x = put(&b, "input", -1, -1, ATTRS(.features = 3, .features_unit = 2));
    x = put(&b, "linear", x, -1, ATTRS(.features = CLASSES));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    return finish(&b);
}

static const struct topt_op *source(const struct topt_model *m)
{
    return &m->op[0];
}

static const struct topt_op *loss(const struct topt_model *m)
{
    return &m->op[m->loss];
}

/* ---- text -------------------------------------------------------------------------- */

static void check_text(void)
{
    struct topt_error err = {0};
    struct topt_model *m = build_mlp();
    struct topt_feed f;
    struct topt_box all = {{0}, {BATCH, SEQ}}, part = {{3, 2}, {2, 3}};
    int32_t x[BATCH * SEQ], y[BATCH * SEQ], z[6];
    if (topt_feed_text(test_text, sizeof test_text - 1, m, 11, &f, &err) ||
        f.load(f.ctx, source(m), 0, 5, &all, x, &err) ||
        f.load(f.ctx, loss(m), 1, 5, &all, y, &err) ||
        f.load(f.ctx, source(m), 0, 5, &part, z, &err))
        exit(1);
    int shifted = 1, same = 1, in_range = 1;
    for (int b = 0; b < BATCH; b++)
        for (int s = 0; s < SEQ; s++) {
            shifted &= s == SEQ - 1 || y[b * SEQ + s] == x[b * SEQ + s + 1];
            in_range &= x[b * SEQ + s] >= 0 && x[b * SEQ + s] < 30;
        }
    for (int i = 0; i < 6; i++)
        same &= z[i] == x[(3 + i / 3) * SEQ + 2 + i % 3];
    ok(shifted, "labels are the next characters");
    ok(in_range, "characters are numbered from 0");
    ok(same, "a part of a batch is that part of the batch");
    ok(!f.load(f.ctx, source(m), 0, 6, &all, y, &err) && memcmp(x, y, sizeof x),
       "the next step has other samples");
    all.len[0]++;
    ok(f.load(f.ctx, source(m), 0, 5, &all, x, &err) && err.code == TOPT_ERR_INTERNAL,
       "no sample is beyond the batch: %s", err.text);
    topt_feed_close(&f);
    topt_model_destroy(m);
}

/* ---- tokens ------------------------------------------------------------------------ */

/* 'n' tokens 'first', first + 1... modulo 'vocab', after 'header' words. */
static void put_tokens(const char *name, int n, int first, int vocab,
                       const int32_t *header, int wide)
{
    static unsigned char bytes[8192];
    size_t at = header ? 1024 : 0;
    memset(bytes, 0, sizeof bytes);
    for (int i = 0; header && i < 3; i++)
        memcpy(bytes + 4 * i, &header[i], 4);
    for (int i = 0; i < n; i++) {
        int token = (first + i) % vocab;
        bytes[at++] = (unsigned char)(token & 255);
        bytes[at++] = (unsigned char)(token >> 8);
        at += wide ? 2 : 0;
    }
    put_file(name, bytes, at);
}

/* Windows of consecutive tokens, labels the next, parts of a batch as in the whole; each
 * place of the shards comes. */
static void check_windows(const char *data, const char *kind, int vocab)
{
    struct topt_error err = {0};
    struct topt_model *m = build_mlp();
    struct topt_feed f;
    struct topt_box all = {{0}, {BATCH, SEQ}}, part = {{3, 2}, {2, 3}};
    int32_t x[BATCH * SEQ], y[BATCH * SEQ], z[6];
    int bad = 0, seen[64] = {0};
    if (!ok(topt_feed_open(data, m, 11, &f, &err) == 0, "%s: %s", kind, err.text))
        return;
    for (int64_t step = 0; step < 40; step++) {
        bad += f.load(f.ctx, source(m), 0, step, &all, x, &err) ||
               f.load(f.ctx, loss(m), 1, step, &all, y, &err) ||
               f.load(f.ctx, source(m), 0, step, &part, z, &err);
        for (int i = 0; i < BATCH * SEQ; i++) {
            bad += (x[i] + 1) % vocab != y[i];
            seen[x[i] % 64] = 1;
        }
        for (int i = 0; i < 6; i++)
            bad += z[i] != x[(3 + i / 3) * SEQ + 2 + i % 3];
    }
    int places = 0;
    for (int i = 0; i < vocab; i++)
        places += seen[i];
    ok(!bad && places == vocab, "... windows, labels and parts; %d of %d tokens seen",
       places, vocab);
    ok(!strcmp(f.kind, "tokens") && f.digest, "... of its kind");
    topt_feed_close(&f);
    topt_model_destroy(m);
}

static void check_tokens(void)
{
    enum { VOCAB = 10 };
    struct topt_error err = {0};
    struct topt_feed f;
    struct topt_model *m = build_mlp(), *images = build_classifier();
    put_tokens("plain.bin", 50, 3, VOCAB, NULL, 0);
    check_windows(in_dir("plain.bin"), "16-bit tokens", VOCAB);
    put_tokens("head.bin", 60, 0, VOCAB, (const int32_t[]){20240520, 1, 60}, 0);
    check_windows(in_dir("head.bin"), "16-bit tokens after a header", VOCAB);
    put_tokens("wide.bin", 60, 0, VOCAB, (const int32_t[]){20240801, 7, 60}, 1);
    check_windows(in_dir("wide.bin"), "32-bit tokens after a header", VOCAB);
    put_tokens("short.bin", 3, 0, VOCAB, NULL, 0); /* has no window */
    check_windows(dir, "a folder of shards", VOCAB);
    ok(topt_feed_open(in_dir("short.bin"), m, 1, &f, &err) &&
           strstr(err.text, "has no 7 tokens in a row"),
       "too few: %s", err.text);
    put_tokens("head.bin", 50, 0, VOCAB, (const int32_t[]){20240520, 1, 60}, 0);
    ok(topt_feed_open(in_dir("head.bin"), m, 1, &f, &err) &&
           strstr(err.text, "its header says 60 tokens, 50 follow"),
       "cut short: %s", err.text);
    ok(topt_feed_open(in_dir("plain.bin"), images, 1, &f, &err) &&
           strstr(err.text, "tokens are for models of text"),
       "a model of no text: %s", err.text);
    put_tokens("plain.bin", 50, 1000, 2000, NULL, 0);
    struct topt_box all = {{0}, {BATCH, SEQ}};
    int32_t x[BATCH * SEQ];
    ok(!topt_feed_open(in_dir("plain.bin"), m, 1, &f, &err) &&
           f.load(f.ctx, source(m), 0, 0, &all, x, &err) &&
           strstr(err.text, "another tokenizer"),
       "another vocabulary: %s", err.text);
    topt_feed_close(&f);
    unlink(in_dir("plain.bin"));
    unlink(in_dir("head.bin"));
    unlink(in_dir("wide.bin"));
    unlink(in_dir("short.bin"));
    topt_model_destroy(m);
    topt_model_destroy(images);
}

static void check_bad_texts(void)
{
    struct topt_error err = {0};
    struct topt_model *m = build_mlp(), *c = build_classifier();
    struct topt_feed f = {0};
    char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    ok(topt_feed_text(bytes, 256, m, 1, &f, &err) && strstr(err.text, "256 different"),
       "more characters than the model has: %s", err.text);
    ok(topt_feed_text("short", 5, m, 1, &f, &err) && strstr(err.text, "5 bytes"),
       "shorter than a sample: %s", err.text);
    ok(topt_feed_text("text", 4, c, 1, &f, &err) && strstr(err.text, "real numbers"),
       "a text for a model of real numbers: %s", err.text);
    ok(!topt_feed_text("exactly", 7, m, 1, &f, &err), "one sample is enough");
    topt_feed_close(&f);
    topt_feed_close(&f);
    ok(topt_feed_open("/nonexistent/text", m, 1, &f, &err) && err.text[0],
       "no such file: %s", err.text);
    ok(topt_feed_open(dir, m, 1, &f, &err) && err.code == TOPT_ERR_NOTFOUND,
       "an empty directory: %s", err.text);
    ok(topt_feed_open(NULL, m, 1, &f, &err) && err.code == TOPT_ERR_USAGE,
       "a model of text without one: %s", err.text);
    topt_model_destroy(m);
    topt_model_destroy(c);
}

/* ---- synthetic --------------------------------------------------------------------- */

static void check_synthetic(void)
{
    struct topt_error err = {0};
    struct topt_model *m = build_mlp(), *c = build_classifier();
    struct topt_feed f, g;
    struct topt_box all = {{0}, {BATCH, SEQ}}, one = {{0}, {BATCH, 1}};
    int32_t x[BATCH * SEQ], y[BATCH * SEQ];
    if (topt_feed_open("synthetic", m, 3, &f, &err) ||
        f.load(f.ctx, source(m), 0, 2, &all, x, &err) ||
        f.load(f.ctx, loss(m), 1, 2, &all, y, &err))
        exit(1);
    int told = 1, range = 1;
    for (int i = 0; i < BATCH * SEQ; i++) {
        range &= y[i] >= 0 && y[i] < 30 && x[i] >= 0 && x[i] < 30;
        for (int j = 0; j < i; j++)
            told &= x[i] != x[j] || y[i] == y[j];
    }
    ok(range, "synthetic tokens and labels are of the model's");
    ok(told, "a token tells its label");
    topt_feed_close(&f);

    double v[BATCH * WIDTH], w[BATCH * WIDTH], far = 0, near = 0;
    int nfar = 0, nnear = 0;
    struct topt_box values = {{0}, {BATCH, 1, 3}}, part = {{2, 0, 1}, {3, 1, 2}};
    if (topt_feed_open(NULL, c, 3, &f, &err) || topt_feed_synthetic(c, 4, &g, &err) ||
        f.load_real(f.ctx, source(c), source(c)->output, 0, &values, TOPT_F64, v, &err) ||
        f.load(f.ctx, loss(c), 1, 0, &one, y, &err))
        exit(1);
    for (int i = 0; i < BATCH; i++)
        for (int j = 0; j < i; j++) {
            double d = 0;
            for (int k = 0; k < WIDTH; k++)
                d += pow(v[i * WIDTH + k] - v[j * WIDTH + k], 2);
            *(y[i] == y[j] ? &near : &far) += d;
            (*(y[i] == y[j] ? &nnear : &nfar))++;
        }
    ok(!strcmp(f.kind, "synthetic"), "a model of real numbers needs no file");
    ok(nnear && near / nnear < far / nfar, "samples of one class are near each other");
    int same =
        !f.load_real(f.ctx, source(c), source(c)->output, 0, &part, TOPT_F64, w, &err);
    for (int i = 0; i < 12; i++)
        same &= w[i] == v[(2 + i / 4) * WIDTH + 2 + i % 4];
    ok(same, "a part of a batch is that part of the batch");
    float narrow[12];
    same = !f.load_real(f.ctx, source(c), source(c)->output, 0, &part, TOPT_F32, narrow,
                        &err);
    for (int i = 0; i < 12; i++)
        same &= narrow[i] == (float)w[i];
    ok(same, "and in single precision it is that, rounded");
    ok(!g.load_real(g.ctx, source(c), source(c)->output, 0, &values, TOPT_F64, w, &err) &&
           memcmp(v, w, sizeof v) && f.digest != g.digest,
       "another seed has other samples");
    topt_feed_close(&f);
    topt_feed_close(&g);
    topt_model_destroy(m);
    topt_model_destroy(c);
}

/* ---- tables ------------------------------------------------------------------------ */

static const unsigned char images[] = {0, 0, 8, 3, 0,   0,   0, 2, 0, 0, 0,   2, 0, 0,
                                       0, 3, 0, 0, 255, 255, 0, 0, 9, 9, 255, 9, 9, 9};
static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 3};

/* Every sample of a batch is one of the two rows, with its own label. */
static void check_rows(const char *data, const double row[2][WIDTH], const char *kind)
{
    struct topt_error err = {0};
    struct topt_model *c = build_classifier();
    struct topt_feed f = {0};
    double v[BATCH * WIDTH];
    int32_t y[BATCH];
    struct topt_box values = {{0}, {BATCH, 1, 3}}, one = {{0}, {BATCH, 1}};
    int rc = topt_feed_open(data, c, 3, &f, &err);
    if (!ok(!rc, "%s is read: %s", kind, err.text)) {
        topt_model_destroy(c);
        return;
    }
    int good = !f.load_real(f.ctx, source(c), source(c)->output, 0, &values, TOPT_F64, v,
                            &err) &&
               !f.load(f.ctx, loss(c), 1, 0, &one, y, &err);
    struct topt_box part = {{1, 0, 1}, {2, 1, 2}};
    float narrow[2 * (WIDTH - 2)];
    good &= !f.load_real(f.ctx, source(c), source(c)->output, 0, &part, TOPT_F32, narrow,
                         &err);
    for (int i = 0; i < 2 * (WIDTH - 2); i++)
        good &=
            narrow[i] == (float)v[(1 + i / (WIDTH - 2)) * WIDTH + 2 + i % (WIDTH - 2)];
    int seen[2] = {0};
    for (int i = 0; i < BATCH; i++) {
        int which = y[i] == 3;
        good &= y[i] == 1 || y[i] == 3;
        seen[which] = 1;
        for (int k = 0; k < WIDTH; k++)
            good &= fabs(v[i * WIDTH + k] - row[which][k]) < 1e-6;
    }
    ok(good && seen[0] && seen[1], "%s: samples are its rows", kind);
    ok(!strcmp(f.kind, kind), "it is told apart by its content");
    topt_feed_close(&f);
    topt_model_destroy(c);
}

static void refused(const char *name, const void *bytes, size_t n, const char *why)
{
    struct topt_error err = {0};
    struct topt_model *c = build_classifier();
    struct topt_feed f = {0};
    put_file(name, bytes, n);
    ok(topt_feed_open(in_dir(name), c, 1, &f, &err) && strstr(err.text, why),
       "refused: %s", err.text);
    topt_feed_close(&f);
    unlink(in_dir(name));
    topt_model_destroy(c);
}

static void check_idx(void)
{
    static const double row[2][WIDTH] = {
        {-1, -1, 1, 1, -1, -1},
        {9 / 127.5 - 1, 9 / 127.5 - 1, 1, 9 / 127.5 - 1, 9 / 127.5 - 1, 9 / 127.5 - 1}};
    unsigned char bad[sizeof images];
    put_file("train-images-idx3-ubyte", images, sizeof images);
    struct topt_model *c = build_classifier();
    struct topt_error err = {0};
    struct topt_feed f = {0};
    ok(topt_feed_open(dir, c, 1, &f, &err) && strstr(err.text, "labels-idx1"),
       "images without labels: %s", err.text);
    topt_model_destroy(c);
    put_file("train-labels-idx1-ubyte", labels, sizeof labels);
    check_rows(dir, row, "idx");
    put_file("train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\2\1\4", 10);
    refused("train-images-idx3-ubyte", images, sizeof images, "label 4");
    put_file("train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\3\1\1\1", 11);
    refused("train-images-idx3-ubyte", images, sizeof images, "3 labels for 2");
    refused("train-images-idx3-ubyte", images, sizeof images - 1, "27 bytes");
    memcpy(bad, images, sizeof bad);
    bad[2] = 13;
    refused("train-images-idx3-ubyte", bad, sizeof bad, "type 13");
    bad[2] = 8;
    bad[4] = bad[8] = bad[12] = 255;
    refused("train-images-idx3-ubyte", bad, sizeof bad, "dimension");
    refused("pictures", images, sizeof images, "\"images\"");
    unlink(in_dir("train-labels-idx1-ubyte"));
}

static void check_csv(void)
{
    static const double row[2][WIDTH] = {{-1, 1, -1, 0, -1, 1}, {1, -1, 1, 0, 1, -1}};
    static const char good[] =
        "a,b,c,d,e,f,class\r\n1, 5,-3,7,1e2,0.5,1\n\n3,4,9,7,2e2,0,3";
    static const char lone[] = "1,2,3\n";
    put_file("table", good, sizeof good - 1);
    check_rows(in_dir("table"), row, "csv");
    unlink(in_dir("table"));
    refused("t", lone, sizeof lone - 1, "line 1 has 3 numbers");
    refused("t", "1,2,3,4,5,6,4", 13, "classes 0 to 3");
    refused("t", "1,2,3,4,5,6,0.5", 15, "classes");
    refused("t", "1,2,3,4,5,6,0\n1,2,x,4,5,6,0", 27, "line 2, field 3");
    refused("t", "1,2,3,4,5,6,0\n1,2,,4,5,6,0", 26, "line 2, field 3");
    refused("t", "1,2,3,4,5,6,0\n1,2,nan,4,5,6,0", 29, "line 2, field 3");
    refused("t", "a text\n", 7, "no line of numbers");
    refused("t.gz", "\x1f\x8b\x08rubbish", 10, "t.gz");
}

/* A regression: the last columns are targets, which stay as they are. */
static void check_targets(void)
{
    static const char text[] = "1,2,3,4,5,6,7,8,9,10,0.5,-2,300\n";
    struct topt_error err = {0};
    struct topt_model *m = build_table(), *tokens = build_mlp();
    struct topt_feed f = {0};
    struct topt_box all = {{0}, {BATCH, 1, 3}};
    double y[BATCH * 3];
    put_file("table", text, sizeof text - 1);
    ok(!topt_feed_open(in_dir("table"), m, 1, &f, &err) &&
           !f.load_real(f.ctx, loss(m), 1, 0, &all, TOPT_F64, y, &err) && y[3] == 0.5 &&
           y[4] == -2 && y[5] == 300,
       "targets are the last columns, as they are%s", err.text);
    topt_feed_close(&f);
    put_file("images-idx3", images, sizeof images);
    ok(topt_feed_open(in_dir("images-idx3"), m, 1, &f, &err) &&
           strstr(err.text, "6 numbers, the model takes 10"),
       "images of another size: %s", err.text);
    ok(topt_feed_open(in_dir("images-idx3"), tokens, 1, &f, &err) &&
           strstr(err.text, "whole ones"),
       "images for a model of tokens: %s", err.text);
    unlink(in_dir("table"));
    unlink(in_dir("images-idx3"));
    topt_model_destroy(m);
    topt_model_destroy(tokens);
}

/* What is evaluated is read as what was trained on: 'b' is 1 there, whatever occurs here. */
static void check_like_text(void)
{
    struct topt_error err = {0};
    struct topt_model *m = build_mlp();
    struct topt_feed f = {0}, g = {0};
    struct topt_box all = {{0}, {BATCH, SEQ}};
    int32_t x[BATCH * SEQ] = {0};
    int bad = 0;
    put_file("first", "abcabcabcabcabc", 15);
    put_file("second", "bbbbbbbbbbbbbbb", 15);
    put_file("third", "zbzbzbzbzbzbzbz", 15);
    int rc = topt_feed_open(in_dir("first"), m, 1, &f, &err) ||
             topt_feed_like(&f, in_dir("second"), m, 1, &g, &err) ||
             g.load(g.ctx, source(m), 0, 0, &all, x, &err);
    for (int i = 0; i < BATCH * SEQ; i++)
        bad += x[i] != 1;
    ok(!rc && !bad, "characters of a second text have the numbers of the first %s",
       err.text);
    topt_feed_close(&g);
    rc = rc || topt_feed_like(&f, in_dir("third"), m, 1, &g, &err) ||
         g.load(g.ctx, source(m), 0, 0, &all, x, &err);
    for (int i = 0; i < BATCH * SEQ; i++)
        bad += x[i] != 1 && x[i] != 3;
    ok(!rc && !bad, "... and those that it lacks come behind them %s", err.text);
    topt_feed_close(&g);
    ok(topt_feed_like(&f, "synthetic", m, 1, &g, &err) && !g.close &&
           strstr(err.text, "is synthetic, the data to train on are text"),
       "... %s", err.text);
    topt_feed_close(&f);
    unlink(in_dir("first"));
    unlink(in_dir("second"));
    unlink(in_dir("third"));
    topt_model_destroy(m);
}

/* The first table's features are 0 and 2: mean 1, deviation 1; so 5 becomes 4. */
static void check_like_table(void)
{
    static const char first[] = "0,0,0,0,0,0,0,0,0,0,1,1,1\n2,2,2,2,2,2,2,2,2,2,1,1,1\n",
                      second[] = "5,5,5,5,5,5,5,5,5,5,1,1,1\n";
    struct topt_error err = {0};
    struct topt_model *m = build_table();
    struct topt_feed f = {0}, g = {0};
    struct topt_box all = {{0}, {BATCH, 1, 5}}; /* pairs */
    double x[BATCH * 10] = {0};
    put_file("first", first, sizeof first - 1);
    put_file("second", second, sizeof second - 1);
    int rc = topt_feed_open(in_dir("first"), m, 1, &f, &err) ||
             topt_feed_like(&f, in_dir("second"), m, 1, &g, &err) ||
             g.load_real(g.ctx, source(m), 0, 0, &all, TOPT_F64, x, &err);
    ok(!rc && x[0] == 4 && x[BATCH * 10 - 1] == 4,
       "features of a second table are scaled as the first's: %g %s", x[0], err.text);
    topt_feed_close(&f);
    topt_feed_close(&g);
    unlink(in_dir("first"));
    unlink(in_dir("second"));
    topt_model_destroy(m);
}

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    check_text();
    check_tokens();
    check_bad_texts();
    check_synthetic();
    check_idx();
    check_csv();
    check_targets();
    check_like_text();
    check_like_table();
    ok(!rmdir(dir), "nothing is left over");
    return done_testing();
}
