/* ONNX graphs: what becomes of the nodes that exporters write, and what is refused. */
#include "onnx_graph.h"
#include "tap.h"
#include "topt_model.h"

#include <sys/resource.h>
#include <unistd.h>

static struct topt_model *import(struct graph *g, const char *loss, int64_t seq,
                                 struct topt_error *err)
{
    struct topt_import_options o = {.loss = loss, .seq = seq};
    struct topt_model *m =
        topt_model_import(g->file.s, g->file.len, "graph.onnx", &o, err);
    topt_text_fini(&g->file);
    return m;
}

static int count(const struct topt_model *m, const char *kind)
{
    int n = 0;
    for (int i = 0; i < m->nops; i++)
        n += !strcmp(m->op[i].spec->name, kind);
    return n;
}

static const struct topt_op *first(const struct topt_model *m, const char *kind)
{
    for (int i = 0; i < m->nops; i++)
        if (!strcmp(m->op[i].spec->name, kind))
            return &m->op[i];
    return NULL;
}

static void transformer(void)
{
    struct graph g;
    struct topt_error err = {0};
    struct topt_model_stats stats;
    graph_block(&g);
    struct topt_model *m = import(&g, NULL, 0, &err);
    if (!ok(m != NULL, "a block of a transformer %s", err.text))
        return;
    topt_model_stats(m, &stats);
    is_int(stats.parameters, 50 * 16 + 6 * 16 + 2 * 16 + 4 * 256 + 16 + 2 * 1024 + 800,
           "its parameters");
    ok(m->batch == 8 && m->seq == 6 && m->vocab == 50,
       "its batch, positions and classes");
    is_int(count(m, "norm"), 1, "one norm of nine nodes, its gain and shift within");
    is_int(count(m, "scale"), 0, "no scaling is left over");
    const struct topt_op *a = first(m, "attend"), *u = first(m, "unary");
    ok(a && a->attrs.heads == 4 && a->attrs.head_dim == 4 && a->attrs.causal &&
           a->attrs.scale > 0.4999 && a->attrs.scale < 0.5001,
       "attention of four heads under a causal mask");
    ok(u && u->attrs.activation == TOPT_ACT_GELU_ERF, "GELU of five nodes");
    ok(count(m, "position") == 1 && count(m, "bias") == 1 && count(m, "add") == 2,
       "positions, a bias and two sums");
    topt_model_destroy(m);
}

static void images(void)
{
    struct graph g;
    struct topt_error err = {0};
    struct topt_model_stats stats;
    graph_images(&g);
    struct topt_model *m = import(&g, NULL, 0, &err);
    if (!ok(m != NULL, "convolutions %s", err.text))
        return;
    topt_model_stats(m, &stats);
    is_int(stats.parameters, 216 + 8 + 144 + 16 + 64 + 2880 + 10, "parameters");
    const struct topt_op *c = first(m, "conv_grouped");
    ok(c && c->count[1] == 4 && count(m, "batch_norm") == 1 && count(m, "pool") == 1,
       "groups, batch norm, pool");
    is_int(count(m, "weigh"), 1, "channels are weighed");
    is_int(count(m, "softmax"), 0, "the softmax is part of the loss");
    is_int(count(m, "flatten"), 1, "one flattening");
    topt_model_destroy(m);
    graph_images(&g);
    m = import(&g, "mse", 0, &err);
    ok(m && count(m, "mse") == 1 && count(m, "softmax") == 1, "another loss %s",
       err.text);
    topt_model_destroy(m);
}

static void digits(void)
{
    struct graph g;
    struct topt_error err = {0};
    struct topt_model_stats stats;
    graph_digits(&g);
    struct topt_model *m = import(&g, NULL, 0, &err);
    if (!ok(m != NULL, "a classifier of many functions %s", err.text))
        return;
    topt_model_stats(m, &stats);
    is_int(stats.parameters, 72 + 8 + 288 + 16 + 96 + 6 + 960 + 10, "its parameters");
    const struct topt_op *s = first(m, "shuffle"), *z = first(m, "resize"),
                         *t = first(m, "conv_transpose");
    ok(s && s->attrs.groups == 2, "channels are shuffled once");
    ok(z && z->attrs.height == 4 && z->attrs.width == 4 && !z->attrs.linear,
       "the image is made larger");
    ok(t && t->attrs.height == 8 && t->attrs.features == 6, "and by weights");
    ok(count(m, "slice") == 2 && count(m, "group_norm") == 1 && count(m, "prelu") == 1,
       "cuts, a norm of instances, slopes");
    is_int(m->batch, 8, "samples where the file leaves them open");
    topt_model_destroy(m);
}

static void steps(void)
{
    struct graph g;
    struct topt_error err = {0};
    struct topt_model_stats stats;
    graph_steps(&g);
    struct topt_model *m = import(&g, NULL, 0, &err);
    if (!ok(m != NULL, "a recurrence %s", err.text))
        return;
    topt_model_stats(m, &stats);
    is_int(stats.parameters, 24 * 4 + 24 * 6 + 24 + 18,
           "its parameters, one bias of two");
    ok(m->batch == 2 && m->seq == 5, "steps before samples");
    const struct topt_op *last = first(m, "select");
    ok(last && last->attrs.offset == 4, "the last step goes on");
    topt_model_destroy(m);
}

/* x[n, 8] through one or two nodes. */
static void refuses(const char *type, const char *inputs, const char *attrs,
                    const char *names)
{
    struct graph g = graph_begin(13);
    struct topt_error err = {0};
    graph_input(&g, "x", 1, 2, DIMS(0, 8));
    graph_input(&g, "open", 1, 3, DIMS(2, 0, 8));
    graph_weights(&g, "w", 2, DIMS(7, 8));
    graph_list(&g, "huge", 2, DIMS(1 << 30, 1 << 30));
    graph_list(&g, "large", 4, DIMS(1 << 20, 1 << 20, 1 << 20, 1 << 20));
    graph_node(&g, type, inputs, "y", attrs);
    graph_end(&g, "y");
    struct topt_model *m = import(&g, "mse", 0, &err);
    ok(!m && strstr(err.text, names) && !strchr(err.text, '\n'), "names \"%s\": %s",
       names, m ? "(imported)" : err.text);
    topt_model_destroy(m);
}

static void errors(void)
{
    refuses("Nonesuch", "x", "", "Nonesuch: 1");
    refuses("MatMul", "x w", "", "8 columns times 7 rows");
    refuses("Reshape", "x huge", "", "can't have its shape");
    refuses("Expand", "x large", "", "does not fit");
    refuses("ConstantOfShape", "large", "", "over 2^46");
    refuses("Relu", "missing", "", "nothing before it makes");
    refuses("Relu", "open", "", "--seq");
    refuses("Concat", "x x", "axis=0", "joins other dimensions");
    refuses("Transpose", "x", "perm=0,0", "no permutation");
    refuses("ArgMax", "x", "", "ArgMax: 1 (its output has no gradient");
    refuses("Conv", "x w", "", "dimensions");
}

/* Features become positions for one product, and both become features for the next. */
static void rows(void)
{
    struct graph g = graph_begin(13);
    struct topt_error err = {0};
    struct topt_model_stats stats = {0};
    graph_input(&g, "x", 1, 2, DIMS(2, 12));
    graph_weights(&g, "w", 2, DIMS(3, 5));
    graph_weights(&g, "v", 2, DIMS(20, 4));
    graph_list(&g, "four", 2, DIMS(8, 3));
    graph_list(&g, "one", 2, DIMS(2, 20));
    graph_node(&g, "Reshape", "x four", "parts", "");
    graph_node(&g, "MatMul", "parts w", "h", "");
    graph_node(&g, "Reshape", "h one", "whole", "");
    graph_node(&g, "MatMul", "whole v", "y", "");
    graph_end(&g, "y");
    struct topt_model *m = import(&g, NULL, 0, &err);
    if (m)
        topt_model_stats(m, &stats);
    is_int(stats.parameters, 15 + 80, "products of parts, and of all of them");
    const struct topt_op *w = m ? first(m, "linear") : NULL;
    const struct topt_dim *d = w ? w->operand[w->output].dim : NULL;
    ok(d && d[1].count == 4 && d[2].count == 5, "four positions of five %s", err.text);
    topt_model_destroy(m);
}

/* A file that ends in its own loss. */
static void own_loss(const char *asked)
{
    struct graph g = graph_begin(13);
    struct topt_error err = {0};
    graph_input(&g, "x", 1, 2, DIMS(2, 12));
    graph_input(&g, "labels", 7, 1, DIMS(2));
    graph_weights(&g, "w", 2, DIMS(12, 5));
    graph_node(&g, "MatMul", "x w", "y", "");
    graph_node(&g, "LogSoftmax", "y", "p", "axis=1");
    graph_node(&g, "NegativeLogLikelihoodLoss", "p labels", "loss", "");
    graph_end(&g, "loss");
    struct topt_model *m = import(&g, asked, 0, &err);
    if (asked)
        ok(!m && strstr(err.text, "its own loss"), "another one is refused: %s",
           err.text);
    else
        ok(m && m->nops == 3 && m->vocab == 5 && count(m, "cross_entropy") == 1,
           "is trained by it %s", err.text);
    topt_model_destroy(m);
}

/* A branch is taken where its condition is known from shapes; nobody misses the other's type. */
static void branches(int64_t rows, const char *kind)
{
    struct graph g = graph_begin(13);
    struct topt_error err = {0};
    graph_input(&g, "x", 1, 2, DIMS(2, 8));
    graph_weights(&g, "w", 2, DIMS(8, 4));
    graph_list(&g, "first", 1, DIMS(0));
    graph_list(&g, "rows", 1, DIMS(rows));
    graph_node(&g, "MatMul", "x w", "h", "");
    graph_node(&g, "Shape", "h", "shape", "");
    graph_node(&g, "Gather", "shape first", "n", "");
    graph_node(&g, "Equal", "n rows", "same", "");
    graph_if(&g, "same", "Relu", rows == 2 ? "Nonesuch" : "Tanh", "h", "y");
    graph_node(&g, "Sigmoid", "y", "z", "");
    graph_end(&g, "z");
    struct topt_model *m = import(&g, "mse", 0, &err);
    const struct topt_op *u = m ? first(m, "unary") : NULL;
    ok(u &&
           !strcmp(topt_activation_name((enum topt_activation)u->attrs.activation), kind),
       "a branch is taken: %s %s", kind, err.text);
    ok(m && count(m, "unary") == 2, "and what follows it");
    topt_model_destroy(m);
}

/* Most memory that the process has had, in MiB. */
static long peak_mib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss >> 10;
}

static void large(void)
{
    struct topt_error err = {0};
    struct topt_model_stats stats = {0};
    char path[] = "/tmp/topt-onnx-XXXXXX";
    long before = peak_mib();
    int fd = mkstemp(path);
    ok(fd >= 0 && write(fd, "\10\10\72", 3) == 3 && !ftruncate(fd, (off_t)2 << 30),
       "a file of 2 GiB");
    struct topt_model *m = topt_model_load(path, NULL, &err);
    ok(!m && err.code == TOPT_ERR_LIMIT, "is refused: %s", err.text);
    close(fd);
    unlink(path);
    struct graph g = graph_begin(13);
    graph_input(&g, "x", 1, 2, DIMS(2, 1 << 15));
    graph_list(&g, "shape", 2, DIMS(1 << 15, 1 << 15));
    graph_weights(&g, "w2", 2, DIMS(1 << 15, 1 << 15));
    graph_node(&g, "ConstantOfShape", "shape", "w", "");
    graph_node(&g, "MatMul", "x w", "y", "");
    graph_node(&g, "MatMul", "y w2", "z", "");
    graph_end(&g, "z");
    m = import(&g, NULL, 0, &err);
    if (m)
        topt_model_stats(m, &stats);
    ok(stats.parameters == (int64_t)1 << 31, "two billion numbers are only counted");
    topt_model_destroy(m);
    g = graph_begin(13);
    graph_input(&g, "x", 1, 2, DIMS(2, 8));
    for (int i = 0; i < 100000; i++) { /* names that all become the same */
        char from[8] = "x", to[8];
        if (i)
            snprintf(from, sizeof from, "\1%c%c%c", 1 + (i - 1) % 30,
                     1 + (i - 1) / 30 % 30, 1 + (i - 1) / 900);
        snprintf(to, sizeof to, "\1%c%c%c", 1 + i % 30, 1 + i / 30 % 30, 1 + i / 900);
        graph_node(&g, "Relu", from, to, "");
    }
    graph_end(&g, "\1\12\4\160");
    m = import(&g, "mse", 0, &err);
    ok(m != NULL, "a hundred thousand names that are alike: %s", m ? "" : err.text);
    topt_model_destroy(m);
    ok(peak_mib() - before < 1000, "within %ld MiB", peak_mib() - before);
}

static void limits(void)
{
    struct topt_error err = {0};
    struct graph g = graph_begin(20);
    graph_input(&g, "x", 1, 2, DIMS(2, 8));
    graph_node(&g, "Relu", "x", "y", "");
    graph_end(&g, "y");
    struct topt_model *m = import(&g, NULL, 0, &err);
    ok(!m && strstr(err.text, "operator set 20"), "a new set: %s", err.text);
    g = graph_begin(13);
    graph_input(&g, "x", 1, 2, DIMS(2, 8));
    for (int i = 0; i < 1 << 20; i++)
        graph_node(&g, "Relu", "x", "", "");
    graph_end(&g, "y");
    m = import(&g, NULL, 0, &err);
    ok(!m && err.code == TOPT_ERR_LIMIT, "a million nodes: %s", err.text);
    /* 40 graphs in attributes of nodes of graphs */
    struct topt_text in = {0}, out = {0};
    for (int i = 0; i < 40; i++) {
        static const unsigned fields[] = {6, 5, 1};
        for (int k = 0; k < 3; k++) {
            pb_bytes(&out, fields[k], in.s ? in.s : "", in.len);
            topt_text_fini(&in);
            in = out;
            out = (struct topt_text){0};
        }
    }
    pb_int(&g.file, 1, 8);
    pb_take(&g.file, 7, &in);
    m = import(&g, NULL, 0, &err);
    ok(!m && strstr(err.text, "nest"), "deep graphs: %s", err.text);
}

int main(void)
{
    if (!reads_onnx())
        skip_all("this topt reads no ONNX");
    transformer();
    images();
    digits();
    steps();
    rows();
    own_loss(NULL);
    own_loss("mse");
    branches(2, "relu");
    branches(3, "tanh");
    errors();
    limits();
    large();
    return done_testing();
}
