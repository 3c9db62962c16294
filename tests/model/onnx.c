/* ONNX graphs: what becomes of the nodes that exporters write, and what is refused. */
#include "onnx_graph.h"
#include "tap.h"
#include "topt_model.h"

#include <sys/resource.h>
#include <unistd.h>

static int needs_weights;

static struct topt_model *import(struct graph *g, const char *loss, int64_t seq,
                                 struct topt_error *err)
{
    struct topt_import_options o = {
        .loss = loss, .seq = seq, .untrained = !needs_weights};
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
    const struct topt_op *a = first(m, "attention"), *u = first(m, "unary");
    ok(a && a->attrs->heads == 4 && a->attrs->head_dim == 4 && a->attrs->causal &&
           a->attrs->scale > 0.4999 && a->attrs->scale < 0.5001,
       "attention of four heads under a causal mask");
    ok(u && u->attrs->activation == TOPT_ACT_GELU_ERF, "GELU of five nodes");
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
    ok(s && s->attrs->groups == 2, "channels are shuffled once");
    ok(z && z->attrs->height == 4 && z->attrs->width == 4 && !z->attrs->linear,
       "the image is made larger");
    ok(t && t->attrs->height == 8 && t->attrs->features == 6, "and by weights");
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
    is_int(stats.parameters, 24 * 4 + 24 * 6 + 48 + 18,
           "its parameters, both biases among them");
    ok(m->batch == 2 && m->seq == 5, "steps before samples");
    const struct topt_op *last = first(m, "select");
    ok(last && last->attrs->offset == 4, "the last step goes on");
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
    ok(u && !strcmp(topt_activation_name((enum topt_activation)u->attrs->activation),
                    kind),
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
    struct graph g = graph_begin(24);
    graph_input(&g, "x", 1, 2, DIMS(2, 8));
    graph_node(&g, "Relu", "x", "y", "");
    graph_end(&g, "y");
    struct topt_model *m = import(&g, NULL, 0, &err);
    ok(!m && strstr(err.text, "operator set 24"), "a new set: %s", err.text);
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

/* ---- what exporters of PyTorch and Keras write ------------------------------------- */

static int64_t parameters_of(struct topt_model *m)
{
    struct topt_model_stats stats = {0};
    if (m)
        topt_model_stats(m, &stats);
    return stats.parameters;
}

/* The node with each * of its names as the letter. */
static void node_of(struct graph *g, char letter, const char *type, const char *inputs,
                    const char *output, const char *attrs)
{
    char name[2][60];
    const char *from[] = {inputs, output};
    for (int i = 0; i < 2; i++) {
        snprintf(name[i], sizeof name[i], "%s", from[i]);
        for (char *c = name[i]; *c; c++)
            *c = *c == '*' ? letter : *c;
    }
    graph_node(g, type, name[0], name[1], attrs);
}

/* Heads turned by position: *_t of *. */
static void turn(struct graph *g, char letter)
{
    node_of(g, letter, "Mul", "* cos", "*_c", "");
    node_of(g, letter, "Slice", "* none two three one", "*_lo", "");
    node_of(g, letter, "Slice", "* two end three one", "*_hi", "");
    node_of(g, letter, "Neg", "*_hi", "*_n", "");
    node_of(g, letter, "Concat", "*_n *_lo", "*_r", "axis=-1");
    node_of(g, letter, "Mul", "*_r sin", "*_s", "");
    node_of(g, letter, "Add", "*_c *_s", "*_t", "");
}

/* Tokens under a mask that is an input, keys and values for two queries each, turned by
 * position, a choice for what is hidden, zeros for what is no number, a table that is the
 * head's too. */
static void exported(void)
{
    struct graph g = graph_begin(17);
    struct topt_error err = {0};
    double lower[36], table[160], low = -1e30, zero = 0;
    for (int i = 0; i < 36; i++)
        lower[i] = i % 6 <= i / 6;
    for (int i = 0; i < 160; i++)
        table[i] = i;
    graph_input(&g, "ids", 7, 2, DIMS(2, 6));
    graph_input(&g, "attention_mask", 7, 2, DIMS(2, 6));
    graph_tensor(&g, "table", 1, 2, DIMS(10, 16), table);
    graph_weights(&g, "wq", 2, DIMS(16, 16));
    graph_weights(&g, "wk", 2, DIMS(16, 8));
    graph_weights(&g, "wv", 2, DIMS(16, 8));
    graph_weights(&g, "cos", 4, DIMS(1, 1, 6, 4));
    graph_weights(&g, "sin", 4, DIMS(1, 1, 6, 4));
    graph_tensor(&g, "lower", 7, 4, DIMS(1, 1, 6, 6), lower);
    graph_tensor(&g, "low", 1, 1, DIMS(1), &low);
    graph_tensor(&g, "zero", 1, 1, DIMS(1), &zero);
    graph_number(&g, "half", 0.5);
    graph_list(&g, "q_heads", 4, DIMS(2, 6, 4, 4));
    graph_list(&g, "k_heads", 4, DIMS(2, 6, 2, 4));
    graph_list(&g, "copies", 5, DIMS(2, 2, 2, 6, 4));
    graph_list(&g, "all_heads", 4, DIMS(2, 4, 6, 4));
    graph_list(&g, "flat", 3, DIMS(2, 6, 16));
    graph_list(&g, "one", 1, DIMS(1));
    graph_list(&g, "two", 1, DIMS(2));
    graph_list(&g, "three", 1, DIMS(3));
    graph_list(&g, "none", 1, DIMS(0));
    graph_list(&g, "end", 1, DIMS(100));
    graph_list(&g, "rows4", 4, DIMS(2, 1, 1, 6));
    graph_node(&g, "Gather", "table ids", "e", "");
    graph_node(&g, "Reshape", "attention_mask rows4", "m0", "");
    graph_node(&g, "And", "lower m0", "keep", "");
    graph_node(&g, "MatMul", "e wq", "q0", "");
    graph_node(&g, "Reshape", "q0 q_heads", "q1", "");
    graph_node(&g, "Transpose", "q1", "q", "perm=0,2,1,3");
    graph_node(&g, "MatMul", "e wk", "k0", "");
    graph_node(&g, "Reshape", "k0 k_heads", "k1", "");
    graph_node(&g, "Transpose", "k1", "k", "perm=0,2,1,3");
    graph_node(&g, "MatMul", "e wv", "v0", "");
    graph_node(&g, "Reshape", "v0 k_heads", "v1", "");
    graph_node(&g, "Transpose", "v1", "v", "perm=0,2,1,3");
    turn(&g, 'q');
    turn(&g, 'k');
    graph_node(&g, "Unsqueeze", "k_t two", "ku", "");
    graph_node(&g, "Expand", "ku copies", "ke", "");
    graph_node(&g, "Reshape", "ke all_heads", "kr", "");
    graph_node(&g, "Unsqueeze", "v two", "vu", "");
    graph_node(&g, "Expand", "vu copies", "ve", "");
    graph_node(&g, "Reshape", "ve all_heads", "vr", "");
    graph_node(&g, "Transpose", "kr", "kt", "perm=0,1,3,2");
    graph_node(&g, "Mul", "q_t half", "qs", "");
    graph_node(&g, "MatMul", "qs kt", "s0", "");
    graph_node(&g, "Where", "keep s0 low", "s1", "");
    graph_node(&g, "Softmax", "s1", "p", "axis=-1");
    graph_node(&g, "IsNaN", "p", "nan", "");
    graph_node(&g, "Where", "nan zero p", "p1", "");
    graph_node(&g, "MatMul", "p1 vr", "a0", "");
    graph_node(&g, "Transpose", "a0", "a1", "perm=0,2,1,3");
    graph_node(&g, "Reshape", "a1 flat", "a2", "");
    graph_node(&g, "Transpose", "table", "head", "perm=1,0");
    graph_node(&g, "MatMul", "a2 head", "y", "");
    graph_end(&g, "y");
    struct topt_model *m = import(&g, NULL, 0, &err);
    is_int(parameters_of(m), 160 + 256 + 128 + 128,
           "the parameters of an exported decoder");
    const struct topt_op *a = m ? first(m, "attention") : NULL,
                         *l = m ? first(m, "linear") : NULL;
    ok(a && a->attrs->heads == 4 && a->attrs->kv_heads == 2 && a->attrs->causal &&
           a->attrs->rope_theta > 0,
       "attention, of two queries to a key, causal, by turned positions %s", err.text);
    ok(l && l->attrs->features == 2 && l->attrs->features_unit == 16 &&
           count(m, "linear") == 2 && count(m, "rotary") == 0 && count(m, "mul") == 0 &&
           count(m, "variable") == 1,
       "queries, keys and values by one projection of two groups, one table");
    ok(m && m->note && strstr(m->note, "attention_mask"), "the mask is told of");
    topt_model_destroy(m);
}

/* A gate and what it gates, by two projections or by halves of one, are one operator; not where
 * something else reads what a projection gives. */
static void gated(void)
{
    for (int how = 0; how < 3; how++) {
        struct graph g = graph_begin(17);
        struct topt_error err = {0};
        graph_input(&g, "x", 1, 3, DIMS(2, 6, 16));
        graph_weights(&g, "wide", 2, DIMS(16, 48));
        graph_weights(&g, "wg", 2, DIMS(16, 24));
        graph_weights(&g, "wu", 2, DIMS(16, 24));
        graph_weights(&g, "wd", 2, DIMS(24, 16));
        graph_list(&g, "halves", 2, DIMS(24, 24));
        if (how == 1) {
            graph_node(&g, "MatMul", "x wide", "both", "");
            graph_node(&g, "Split", "both halves", "gate up", "axis=2");
        } else {
            graph_node(&g, "MatMul", "x wg", "gate", "");
            graph_node(&g, "MatMul", "x wu", "up", "");
        }
        graph_node(&g, "Sigmoid", "gate", "s", "");
        graph_node(&g, "Mul", "gate s", "act", "");
        graph_node(&g, "Mul", "up act", "h", "");
        graph_node(&g, "Add", how == 2 ? "h up" : "h h", "h2", "");
        graph_node(&g, "MatMul", "h2 wd", "y", "");
        graph_end(&g, "y");
        struct topt_model *m = import(&g, "mse", 0, &err);
        const struct topt_op *l = m ? first(m, "glu") : NULL;
        is_int(parameters_of(m), 3 * 16 * 24, "parameters of a gated feed-forward %s",
               err.text);
        if (how == 2)
            ok(!l, "a projection that is read twice stays");
        else
            ok(l && l->attrs->activation == TOPT_ACT_SILU && count(m, "linear") == 2 &&
                   count(m, "mul") == 0 && count(m, "slice") == 0,
               "gate and what it gates, %s", how ? "halves of one" : "two projections");
        topt_model_destroy(m);
    }
}

/* Rows of tables for positions and for kinds of tokens that are known beforehand. */
static void tables(void)
{
    struct graph g = graph_begin(17);
    struct topt_error err = {0};
    double zeros[6] = {0}, places[6] = {0, 1, 2, 3, 4, 5};
    graph_input(&g, "ids", 7, 2, DIMS(2, 6));
    graph_weights(&g, "table", 2, DIMS(10, 16));
    graph_weights(&g, "places", 2, DIMS(64, 16));
    graph_weights(&g, "kinds", 2, DIMS(2, 16));
    graph_weights(&g, "head", 2, DIMS(16, 10));
    graph_tensor(&g, "at", 7, 2, DIMS(1, 6), places);
    graph_tensor(&g, "zeros", 7, 2, DIMS(1, 6), zeros);
    graph_node(&g, "Gather", "table ids", "e", "");
    graph_node(&g, "Gather", "places at", "p", "");
    graph_node(&g, "Gather", "kinds zeros", "k", "");
    graph_node(&g, "Add", "e k", "s", "");
    graph_node(&g, "Add", "s p", "x", "");
    graph_node(&g, "MatMul", "x head", "y", "");
    graph_end(&g, "y");
    struct topt_model *m = import(&g, NULL, 0, &err);
    is_int(parameters_of(m), 160 + 64 * 16 + 2 * 16 + 160,
           "tables have all their rows, also those that nobody looks up %s", err.text);
    topt_model_destroy(m);
}

/* Samples, rows, columns, channels, as Keras has them; a bias of one number; an output
 * more, which reads weights of its own. */
static void channels_last(void)
{
    struct graph g = graph_begin(13);
    struct topt_error err = {0};
    double half = 0.5;
    graph_input(&g, "image", 1, 4, DIMS(2, 8, 10, 3));
    graph_weights(&g, "w", 4, DIMS(4, 3, 3, 3));
    graph_weights(&g, "v", 2, DIMS(192, 1));
    graph_tensor(&g, "b", 1, 1, DIMS(1), &half);
    graph_weights(&g, "u", 2, DIMS(192, 7));
    graph_node(&g, "Transpose", "image", "x", "perm=0,3,1,2");
    graph_node(&g, "Conv", "x w", "c", "");
    graph_node(&g, "Flatten", "c", "f", "axis=1");
    graph_node(&g, "MatMul", "f v", "h", "");
    graph_node(&g, "Add", "h b", "y", "");
    graph_node(&g, "MatMul", "f u", "z", "");
    struct topt_text info = {0};
    pb_bytes(&info, 1, "y", 1);
    pb_take(&g.rest, 12, &info);
    graph_end(&g, "z");
    struct topt_model *m = import(&g, NULL, 0, &err);
    const struct topt_op *image = m ? first(m, "image") : NULL;
    ok(image && image->attrs->channels == 3 && image->attrs->height == 8 &&
           image->attrs->width == 10,
       "channels behind rows and columns %s", err.text);
    is_int(parameters_of(m), 108 + 192 + 1, "a bias of one number is trained");
    ok(m && m->note && strstr(m->note, "1 output after the first (z), with 1344 weights"),
       "an output that is left out is named: %s", m && m->note ? m->note : "");
    topt_model_destroy(m);
}

/* An input of whole numbers without dimensions, whatever it is called. */
static void scalar_input(void)
{
    struct graph g = graph_begin(13);
    struct topt_error err = {0};
    graph_input(&g, "mask", 7, 0, NULL);
    graph_input(&g, "x", 1, 2, DIMS(2, 8));
    graph_weights(&g, "w", 2, DIMS(8, 3));
    graph_node(&g, "MatMul", "x w", "y", "");
    graph_end(&g, "y");
    struct topt_model *m = import(&g, NULL, 0, &err);
    is_int(parameters_of(m), 24, "a mask without dimensions is no mask %s", err.text);
    topt_model_destroy(m);
}

static void untrained(void)
{
    struct graph g = graph_begin(13);
    struct topt_error err = {0};
    graph_input(&g, "x", 1, 2, DIMS(2, 8));
    graph_node(&g, "Relu", "x", "y", "");
    graph_end(&g, "y");
    needs_weights = 1;
    struct topt_model *m = import(&g, "mse", 0, &err);
    ok(!m && strstr(err.text, "nothing to train"), "no weights: %s", err.text);
    topt_model_destroy(m);
    needs_weights = 0;
}

/* Types of operator sets 20 to 23. */
static void new_sets(void)
{
    struct graph g = graph_begin(23);
    struct topt_error err = {0};
    graph_input(&g, "x", 1, 3, DIMS(2, 6, 16));
    for (int i = 0; i < 3; i++)
        graph_weights(&g, (const char *[]){"wq", "wk", "wv"}[i], 2, DIMS(16, i ? 8 : 16));
    graph_weights(&g, "gain", 1, DIMS(16));
    graph_weights(&g, "cos", 2, DIMS(6, 2));
    graph_weights(&g, "sin", 2, DIMS(6, 2));
    graph_node(&g, "RMSNormalization", "x gain", "n", "");
    graph_node(&g, "MatMul", "n wq", "q", "");
    graph_node(&g, "MatMul", "n wk", "k", "");
    graph_node(&g, "MatMul", "n wv", "v", "");
    graph_node(&g, "RotaryEmbedding", "q cos sin", "qt", "num_heads=4");
    graph_node(&g, "RotaryEmbedding", "k cos sin", "kt", "num_heads=2");
    graph_node(&g, "Attention", "qt kt v", "a",
               "q_num_heads=4 kv_num_heads=2 is_causal=1");
    graph_node(&g, "Gelu", "a", "y", "");
    graph_end(&g, "y");
    struct topt_model *m = import(&g, "mse", 0, &err);
    const struct topt_op *a = m ? first(m, "attention") : NULL;
    ok(a && a->attrs->heads == 4 && a->attrs->kv_heads == 2 && a->attrs->head_dim == 4 &&
           a->attrs->causal,
       "Attention of set 23 %s", err.text);
    ok(a && a->attrs->rope_theta > 0, "RotaryEmbedding");
    is_int(parameters_of(m), 16 + 256 + 256, "its weights, without tables of angles");
    topt_model_destroy(m);
    g = graph_begin(21);
    graph_input(&g, "x", 1, 4, DIMS(2, 8, 4, 4));
    graph_weights(&g, "gain", 1, DIMS(8));
    graph_node(&g, "GroupNormalization", "x gain gain", "n", "num_groups=2");
    graph_node(&g, "DepthToSpace", "n", "y", "blocksize=2");
    graph_end(&g, "y");
    m = import(&g, "mse", 0, &err);
    is_int(parameters_of(m), 16, "GroupNormalization has gains of channels %s", err.text);
    ok(m && m->plan_only && strstr(m->plan_only, "blocks of channels"),
       "DepthToSpace is planned and not run");
    topt_model_destroy(m);
}

/* Images of three dimensions, whose last two are columns here. */
static void volumes(void)
{
    struct topt_error err = {0};
    struct graph g = graph_begin(13);
    graph_input(&g, "x", 1, 5, DIMS(2, 3, 8, 8, 8));
    graph_weights(&g, "w", 5, DIMS(4, 3, 3, 3, 3));
    graph_weights(&g, "v", 5, DIMS(4, 2, 2, 2, 2));
    graph_node(&g, "Conv", "x w", "c", "pads=1,1,1,1,1,1 strides=2,2,2");
    graph_node(&g, "Relu", "c", "r", "");
    graph_node(&g, "ConvTranspose", "r v", "y", "strides=2,2,2");
    graph_end(&g, "y");
    struct topt_model *m = import(&g, "mse", 0, &err);
    const struct topt_op *conv = first(m, "conv"), *up = first(m, "conv_transpose");
    is_int(parameters_of(m), 4 * 3 * 27 + 4 * 2 * 8, "windows over three dimensions %s",
           err.text);
    ok(conv && up && conv->operand[conv->output].dim[2].count == 4 &&
           conv->operand[conv->output].dim[3].count == 16 &&
           up->operand[up->output].dim[3].count == 64,
       "depth is rows");
    ok(m && m->plan_only && strstr(m->plan_only, "three dimensions"),
       "... are planned and not run");
    topt_model_destroy(m);
}

/* Both biases of all three gates, each way. */
static void gru_biases(void)
{
    struct topt_error err = {0};
    struct graph g = graph_begin(14);
    graph_input(&g, "x", 1, 3, DIMS(5, 2, 4));
    graph_weights(&g, "w", 3, DIMS(1, 18, 4));
    graph_weights(&g, "r", 3, DIMS(1, 18, 6));
    graph_weights(&g, "b", 2, DIMS(1, 36));
    graph_node(&g, "GRU", "x w r b", "y", "hidden_size=6 linear_before_reset=1");
    graph_end(&g, "y");
    struct topt_model *m = import(&g, "mse", 0, &err);
    is_int(parameters_of(m), 18 * (4 + 6) + 36, "a GRU with six biases a cell %s",
           err.text);
    topt_model_destroy(m);
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
    exported();
    gated();
    tables();
    channels_last();
    scalar_input();
    untrained();
    new_sets();
    volumes();
    gru_biases();
    branches(2, "relu");
    branches(3, "tanh");
    errors();
    limits();
    large();
    return done_testing();
}
