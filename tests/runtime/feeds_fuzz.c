/* feeds_fuzz.c - tables, images and compressed files under bytes nobody chose: seeded, so
 * repeatable.  What is read gives numbers that a model can take; what is not has a reason. */
#include "feed_table.h"
#include "models.h"
#include "picture.h"
#include "tap.h"

#include <math.h>
#include <unistd.h>

enum { ROUNDS = 20000, FILES = 2000, MAX_LEN = 256, WIDTH = 6, CLASSES = 4, BATCH = 4 };

static const struct seed {
    const char *bytes;
    size_t len;
} seeds[] = {
    {"a,b,c,d,e,f,class\n1,5,-3,7,1e2,0.5,1\n3,4,9,7,2e2,0,3\n", 53},
    {"1,2,3,4,5,6,0\r\n1 ,2, 3,4,5,6,2", 30},
    {"\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\3\0\0\377\377\0\0\11\11\377\11\11\11", 28},
    {"\37\213\10\0\0\0\0\0\2\377\63\324\61\322\61\326\61\321\61\325\61\323\61\340\62\4"
     "\362\314\241\74\43\0\43\1\164\106\33\0\0\0",
     40}, /* a table, by gzip */
    /* pictures: PNM, PNG in colours and with a palette */
    {"\120\066\012\043\040\141\012\062\040\062\012\062\065\065\012\000\001\002"
     "\003\004\005\006\007\010\011\012\013",
     27},
    {"\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000"
     "\000\002\000\000\000\003\010\002\000\000\000\066\210\111\326\000\000\000"
     "\026\111\104\101\124\170\234\143\140\144\142\146\141\145\143\142\004\003"
     "\026\046\060\000\000\002\024\000\056\026\250\256\314\000\000\000\000\111"
     "\105\116\104\256\102\140\202",
     79},
    {"\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000"
     "\000\003\000\000\000\002\010\003\000\000\000\252\252\226\050\000\000\000"
     "\006\120\114\124\105\011\010\007\310\144\062\171\065\243\244\000\000\000"
     "\020\111\104\101\124\170\234\143\144\140\144\140\146\144\140\004\000\000"
     "\046\000\010\227\376\275\040\000\000\000\000\111\105\116\104\256\102\140"
     "\202",
     91},
};
enum { NSEEDS = sizeof seeds / sizeof *seeds };

static struct dice dice = {.stream = 42};

static size_t mutate(char buf[MAX_LEN + 1])
{
    const struct seed *s = &seeds[roll(&dice, NSEEDS)];
    size_t len = s->len;
    memcpy(buf, s->bytes, len);
    for (int n = roll(&dice, 4); n; n--) {
        size_t at = (size_t)roll(&dice, (int)len + 1);
        switch (roll(&dice, 4)) {
        case 0:
            len = at;
            break;
        case 1:
            buf[at] = (char)roll(&dice, 256);
            break;
        case 2:
            buf[at] = ",\n0123456789.e-x"[roll(&dice, 16)];
            break;
        default: {
            const struct seed *other = &seeds[roll(&dice, NSEEDS)];
            size_t more = (size_t)roll(&dice, (int)other->len + 1);
            if (at + more > MAX_LEN)
                break;
            memcpy(buf + at, other->bytes, more);
            len = at + more > len ? at + more : len;
        }
        }
    }
    buf[len] = '\0';
    return len;
}

/* A batch of an open feed: all numbers there, labels among the classes. */
static int sound(const struct topt_feed *f, const struct topt_model *m)
{
    struct topt_error err = {0};
    struct topt_box values = {{0}, {BATCH, 1, WIDTH}}, one = {{0}, {BATCH, 1}};
    double x[BATCH * WIDTH];
    int32_t y[BATCH];
    int good = !f->load_real(f->ctx, &m->op[0], m->op[0].output, 1, &values, TOPT_F64, x,
                             &err) &&
               !f->load(f->ctx, &m->op[m->loss], 1, 1, &one, y, &err);
    for (int i = 0; good && i < BATCH * WIDTH; i++)
        good &= isfinite(x[i]) != 0;
    for (int i = 0; good && i < BATCH; i++)
        good &= y[i] >= 0 && y[i] < CLASSES;
    return good;
}

struct counts {
    int accepted, silent, unsound;
};

static void count(struct counts *n, int rc, const struct topt_model *m,
                  struct topt_feed *f, const struct topt_error *err)
{
    n->silent += rc && !err->text[0];
    n->accepted += !rc;
    n->unsound += !rc && !sound(f, m);
    topt_feed_close(f);
}

static void report(const struct counts *n, int rounds, const char *what)
{
    ok(n->accepted > rounds / 50, "%s: %d of %d were accepted", what, n->accepted,
       rounds);
    is_int(n->silent, 0, "every refusal has a reason");
    is_int(n->unsound, 0, "what was accepted gives numbers that the model takes");
}

static void fuzz_memory(const struct topt_model *m)
{
    struct counts n = {0};
    for (int i = 0; i < ROUNDS; i++) {
        char buf[MAX_LEN + 1];
        struct topt_error err = {0};
        struct topt_feed f = {0};
        size_t len = mutate(buf);
        count(&n, topt_feed_csv(buf, len, NULL, m, 1, &f, &err), m, &f, &err);
    }
    report(&n, ROUNDS, "tables");
}

static void fuzz_pictures(void)
{
    int accepted = 0, silent = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char buf[MAX_LEN + 1];
        unsigned char fit[3 * 2 * 2];
        struct topt_error err = {0};
        struct topt_picture p;
        size_t len = mutate(buf);
        if (topt_picture_read(buf, len, &p, &err)) {
            silent += !err.text[0];
            continue;
        }
        topt_picture_fit(&p, 3, 2, 2, fit);
        accepted += p.width * p.height > 0;
        free(p.pixel);
    }
    ok(accepted > ROUNDS / 50, "pictures: %d of %d were accepted", accepted, ROUNDS);
    is_int(silent, 0, "every refusal has a reason");
}

static void put_file(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f))
        exit(1);
}

/* Labels stay good or are spoilt as the images are. */
static void fuzz_files(const struct topt_model *m)
{
    static const char labels[] = "\0\0\10\1\0\0\0\2\1\3";
    char dir[] = "/tmp/topt-fuzz-XXXXXX", images_path[64], labels_path[64];
    struct counts n = {0};
    if (!mkdtemp(dir))
        exit(1);
    snprintf(images_path, sizeof images_path, "%s/images-idx3", dir);
    snprintf(labels_path, sizeof labels_path, "%s/labels-idx1", dir);
    for (int i = 0; i < FILES; i++) {
        char buf[MAX_LEN + 1];
        struct topt_error err = {0};
        struct topt_feed f = {0};
        size_t len = roll(&dice, 8) ? sizeof labels - 1 : mutate(buf);
        put_file(labels_path, len == sizeof labels - 1 ? labels : buf, len);
        len = mutate(buf);
        put_file(images_path, buf, len);
        count(&n, topt_feed_open(images_path, m, 1, &f, &err), m, &f, &err);
    }
    unlink(images_path);
    unlink(labels_path);
    rmdir(dir);
    report(&n, FILES, "files");
}

int main(void)
{
    struct build b = {.m = topt_model_create("classifier", BATCH, 1, NULL)};
    int x = put(&b, "input", -1, -1, ATTRS(.features = WIDTH));
    x = put(&b, "linear", x, -1, ATTRS(.features = CLASSES));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    struct topt_model *m = finish(&b);
    fuzz_pictures();
    fuzz_memory(m);
    fuzz_files(m);
    topt_model_destroy(m);
    return done_testing();
}
