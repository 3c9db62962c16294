/* onnx_data.c - the models that come with ONNX (Debian's libonnx-testdata): each is imported or
 * refused with a reason, and what is imported computes the outputs that come with it.
 *
 * Values are compared where the model's own operators give the output in the file's order of
 * numbers: one node, weights that are inputs or initializers.  Operators run one after the other
 * in f64 on one rank. */
#include "fake_ranks.h"
#include "onnx.pb-c.h"
#include "tap.h"
#include "topt_text.h"

#include <dirent.h>

static const char root[] = "/usr/share/libonnx-testdata/data";

/* Of a folder of the package: how many models are imported and how many of these have their
 * values compared, at least; of the package's version 1.12.0, whose folders have so many. */
static const struct folder {
    const char *name;
    int models, imported, compared;
} folders[] = {{"node", 932, 226, 170},
               {"pytorch-converted", 82, 58, 45},
               {"pytorch-operator", 35, 18, 13},
               {"simple", 23, 1, 1}};

static int imported, refused, silent, compared, wrong;

/* ---- the package's files --------------------------------------------------------------- */

struct tensor {
    int ndim;
    int64_t dim[8], n;
    double *x;
};

static int read_tensor(const Onnx__TensorProto *t, struct tensor *ret)
{
    *ret = (struct tensor){.ndim = (int)t->n_dims, .n = 1};
    if (t->n_dims > 8)
        return -1;
    for (size_t d = 0; d < t->n_dims; d++)
        ret->n *= ret->dim[d] = t->dims[d];
    int wide = t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    if ((!wide && t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT) ||
        ret->n > 1 << 22)
        return -1;
    ret->x = calloc((size_t)ret->n + 1, sizeof *ret->x);
    for (int64_t i = 0; i < ret->n; i++) {
        float f = t->n_float_data > (size_t)i ? t->float_data[i] : 0;
        int64_t l = t->n_int64_data > (size_t)i ? t->int64_data[i] : 0;
        if (t->has_raw_data && !wide)
            memcpy(&f, t->raw_data.data + 4 * i, 4);
        if (t->has_raw_data && wide)
            memcpy(&l, t->raw_data.data + 8 * i, 8);
        ret->x[i] = wide ? (double)l : (double)f;
    }
    return 0;
}

static int read_file(const char *dir, const char *leaf, int i, struct tensor *ret)
{
    char path[1024];
    size_t len;
    snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", dir, leaf, i);
    char *bytes = topt_read_file(path, 64 << 20, &len, NULL);
    Onnx__TensorProto *t =
        bytes ? onnx__tensor_proto__unpack(NULL, len, (const uint8_t *)bytes) : NULL;
    int rc = t ? read_tensor(t, ret) : -1;
    onnx__tensor_proto__free_unpacked(t, NULL);
    free(bytes);
    return rc;
}

/* ---- one node -------------------------------------------------------------------------- */

enum { MAX_VALUES = 16 };

struct sample {
    const char *dir;
    const Onnx__NodeProto *node;
    struct tensor in[MAX_VALUES]; /* of the node; x NULL where left out */
    struct tensor out;
};

static int64_t attr_int(const Onnx__NodeProto *n, const char *name, int64_t otherwise)
{
    for (size_t i = 0; i < n->n_attribute; i++)
        if (!strcmp(n->attribute[i]->name, name))
            return n->attribute[i]->i;
    return otherwise;
}

static double attr_real(const Onnx__NodeProto *n, const char *name, double otherwise)
{
    for (size_t i = 0; i < n->n_attribute; i++)
        if (!strcmp(n->attribute[i]->name, name))
            return (double)n->attribute[i]->f;
    return otherwise;
}

/* The inputs of the only node, from the graph's inputs or initializers. */
static int read_sample(const Onnx__GraphProto *g, struct sample *s)
{
    s->node = g->node[0];
    if (g->n_node != 1 || s->node->n_input > MAX_VALUES || !g->n_output ||
        strcmp(g->output[0]->name, s->node->output[0]) ||
        read_file(s->dir, "output", 0, &s->out))
        return -1;
    for (size_t i = 0; i < s->node->n_input; i++) {
        const char *name = s->node->input[i];
        int file = 0;
        for (size_t k = 0; k < g->n_initializer; k++)
            if (!strcmp(g->initializer[k]->name, name) &&
                read_tensor(g->initializer[k], &s->in[i]))
                return -1;
        for (size_t k = 0; k < g->n_input && !s->in[i].x; k++) {
            int weight = 0;
            for (size_t j = 0; j < g->n_initializer; j++)
                weight |= !strcmp(g->initializer[j]->name, g->input[k]->name);
            if (!weight && !strcmp(g->input[k]->name, name) &&
                read_file(s->dir, "input", file, &s->in[i]))
                return -1;
            file += !weight;
        }
        if (*name && !s->in[i].x)
            return -1;
    }
    return 0;
}

static void drop_sample(struct sample *s)
{
    for (int i = 0; i < MAX_VALUES; i++)
        free(s->in[i].x);
    free(s->out.x);
}

/* ---- parameters ------------------------------------------------------------------------ */

/* Rows of gates: ONNX has all cells of a gate together, an operator all gates of a cell. */
static void put_gates(double *to, const double *from, int64_t gates, int64_t cells,
                      int64_t width, const int *order)
{
    for (int64_t c = 0; c < cells; c++)
        for (int64_t q = 0; q < gates; q++)
            memcpy(to + (c * gates + q) * width, from + (order[q] * cells + c) * width,
                   (size_t)width * sizeof *to);
}

static void put_transposed(double *to, const double *from, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            to[c * rows + r] = from[r * cols + c];
}

static int ends(const char *s, const char *with)
{
    size_t n = strlen(s), m = strlen(with);
    return n >= m && !strcmp(s + n - m, with);
}

/* ONNX has the gates of an LSTM as i, o, f, c; the operator as i, f, g, o. */
static int put_recurrent(const struct sample *s, const struct topt_op *op, double *to)
{
    static const int order[] = {0, 2, 3, 1};
    int64_t cells = s->in[2].dim[2];
    if (strcmp(s->node->op_type, "LSTM"))
        return -1;
    if (!strcmp(op->spec->name, "linear"))
        put_gates(to, s->in[1].x, 4, cells, s->in[1].dim[2], order);
    else if (!strcmp(op->spec->name, "lstm"))
        put_gates(to, s->in[2].x, 4, cells, cells, order);
    else {
        int64_t from = ends(op->name, ".state_bias") ? 4 * cells : 0;
        put_gates(to, s->in[3].x + from, 4, cells, 1, order);
    }
    return 0;
}

/* Numbers of parameter 'o' of an operator; -1 where the test does not know them. */
static int put_param(const struct sample *s, const struct topt_op *op, int o, double *to)
{
    const char *type = s->node->op_type, *kind = op->spec->name;
    int64_t n = fake_volume(op, o);
    if (!strcmp(type, "LSTM") || !strcmp(type, "GRU"))
        return put_recurrent(s, op, to);
    if (!strcmp(kind, "linear") && strcmp(type, "Conv")) {
        if (!strcmp(type, "Gemm") && attr_int(s->node, "transB", 0))
            memcpy(to, s->in[1].x, (size_t)n * sizeof *to);
        else
            put_transposed(to, s->in[1].x, s->in[1].dim[s->in[1].ndim - 2],
                           s->in[1].dim[s->in[1].ndim - 1]);
        return 0;
    }
    int i = !strcmp(kind, "bias") && strcmp(type, "Add") && strcmp(type, "Sub") ? 2 : 1;
    if (!strcmp(kind, "norm") || !strcmp(kind, "batch_norm") ||
        !strcmp(kind, "group_norm"))
        i = o; /* gain, then bias */
    if (!strcmp(kind, "embedding"))
        i = 0;
    if (i >= MAX_VALUES || !s->in[i].x || s->in[i].n != n)
        return -1;
    double factor = !strcmp(type, "Sub")    ? -1
                    : !strcmp(type, "Gemm") ? attr_real(s->node, "beta", 1)
                                            : 1;
    for (int64_t k = 0; k < n; k++)
        to[k] = factor * s->in[i].x[k];
    return 0;
}

/* ---- running --------------------------------------------------------------------------- */

/* A source is named after its input. */
static double *load(const struct sample *s, const struct topt_op *op, int64_t n)
{
    double *y = NULL;
    for (size_t i = 0; i < s->node->n_input && !y; i++)
        if (!strcmp(s->node->input[i], op->name) && s->in[i].n == n) {
            y = calloc((size_t)n, sizeof *y);
            memcpy(y, s->in[i].x, (size_t)n * sizeof *y);
            const int64_t *d = s->in[i].dim; /* steps before samples */
            for (int64_t t = 0; ends(s->node->op_type, "LSTM") && t < d[0]; t++)
                for (int64_t b = 0; b < d[1]; b++)
                    memcpy(y + (b * d[0] + t) * d[2], s->in[i].x + (t * d[1] + b) * d[2],
                           (size_t)d[2] * sizeof *y);
        }
    return y;
}

/* The output of an operator from those before it; NULL where something is not known. */
static double *run_op(const struct sample *s, const struct topt_op *op,
                      double *const *value)
{
    struct topt_mesh one;
    struct topt_config none = topt_config_none();
    struct whole w = {0};
    struct fake f;
    int known = 1;
    if (topt_mesh_init(&one, 1, 1, NULL))
        abort();
    for (int o = 0; o < op->spec->noperands; o++) {
        enum topt_role role = op->operand[o].role;
        if (!op->operand[o].present || role == TOPT_OUTPUT)
            continue;
        int64_t n = fake_volume(op, o);
        if (role == TOPT_INPUT) {
            w.value[o] = value[op->tensor[o]];
            known &= w.value[o] != NULL;
        } else if (role == TOPT_PARAM) {
            w.value[o] = calloc((size_t)n, sizeof(double));
            known &= !put_param(s, op, o, w.value[o]);
        } else if (role == TOPT_DATA) {
            w.data[o] = calloc((size_t)n, sizeof(int32_t));
            known &= s->in[1].x && s->in[1].n == n;
            for (int64_t i = 0; known && i < n; i++)
                w.data[o][i] = (int32_t)s->in[1].x[i];
        }
    }
    double *y = NULL;
    if (known) {
        fake_init(&f, op, &one, &none, &w);
        fake_run(&f, 0);
        y = fake_join(&f, op->output, 0);
        fake_fini(&f);
    }
    for (int o = 0; o < op->spec->noperands; o++) {
        if (op->operand[o].role == TOPT_PARAM)
            free(w.value[o]);
        free(w.data[o]);
    }
    return y;
}

static double difference(const double *y, const struct tensor *want,
                         const struct sample *s, const struct topt_tensor *t)
{
    double worst = 0;
    int lstm = !strcmp(s->node->op_type, "LSTM");
    int64_t steps = t->dim[1].count, d = t->dim[2].count;
    for (int64_t i = 0; i < want->n; i++) {
        int64_t at =
            lstm ? (i / d % t->dim[0].count * steps + i / d / t->dim[0].count) * d + i % d
                 : i;
        worst = fmax(worst, fabs(y[at] - want->x[i]) / (1 + fabs(want->x[i])));
    }
    return worst;
}

static void compare(const struct sample *s, const struct topt_model *m)
{
    double **value = calloc((size_t)m->ntensors, sizeof *value);
    int last = -1;
    for (int i = 0; i < m->nops; i++) {
        const struct topt_op *op = &m->op[i];
        int t = topt_output_tensor(op);
        if (ends(op->name, ".loss") || ends(op->name, ".pixels") ||
            (i + 2 == m->nops && ends(op->name, ".regroup")))
            continue;
        value[t] = op->ninputs == 0 && !op->spec->backward[0].kind
                       ? load(s, op, fake_volume(op, op->output))
                       : run_op(s, op, value);
        last = value[t] ? t : -1;
    }
    int64_t n = 1;
    for (int d = 0; last >= 0 && d < m->tensor[last].ndim; d++)
        n *= m->tensor[last].dim[d].count * m->tensor[last].dim[d].unit;
    if (last >= 0 && n == s->out.n) {
        double off = difference(value[last], &s->out, s, &m->tensor[last]);
        compared++;
        wrong += !(off < 1e-5);
        if (!(off < 1e-5))
            printf("# %s: off by %.2e\n", s->dir, off);
    }
    for (int t = 0; t < m->ntensors; t++)
        free(value[t]);
    free(value);
}

/* ---- all ------------------------------------------------------------------------------- */

/* Values of training, in another order, or of statistics from outside are not compared. */
static int comparable(const struct sample *s)
{
    static const char *const never[] = {"Dropout", "Transpose", NULL};
    const Onnx__NodeProto *n = s->node;
    int64_t axis = attr_int(n, "axis", -1), last = s->in[0].ndim - 1;
    for (int i = 0; never[i]; i++)
        if (!strcmp(n->op_type, never[i]))
            return 0;
    if (!strcmp(n->op_type, "Softmax") || !strcmp(n->op_type, "LogSoftmax"))
        return axis < 0 || axis == last || last < 2; /* else it is made on the last */
    if (!strcmp(n->op_type, "LayerNormalization"))
        return axis == -1 || axis == last;
    return strcmp(n->op_type, "BatchNormalization") || attr_int(n, "training_mode", 0);
}

static void try_model(const char *dir)
{
    char path[1024];
    struct topt_error err = {0};
    size_t len;
    snprintf(path, sizeof path, "%s/model.onnx", dir);
    char *bytes = topt_read_file(path, 64 << 20, &len, &err);
    Onnx__ModelProto *proto =
        bytes ? onnx__model_proto__unpack(NULL, len, (const uint8_t *)bytes) : NULL;
    struct sample s = {.dir = dir};
    struct topt_import_options o = {.untrained = 1, .loss = "mse"};
    int whole = proto && proto->graph && proto->graph->n_node &&
                !read_sample(proto->graph, &s) && comparable(&s);
    if (whole && s.in[0].ndim)
        o.batch = s.in[0].dim[!strcmp(s.node->op_type, "LSTM")];
    if (whole && !strcmp(s.node->op_type, "Gather"))
        o.batch = s.in[1].ndim ? s.in[1].dim[0] : 1;
    struct topt_model *m = bytes ? topt_model_import(bytes, len, dir, &o, &err) : NULL;
    imported += m != NULL;
    refused += !m;
    silent += !m && (!err.text[0] || strchr(err.text, '\n'));
    if (m && whole && !m->plan_only)
        compare(&s, m);
    topt_model_destroy(m);
    drop_sample(&s);
    onnx__model_proto__free_unpacked(proto, NULL);
    free(bytes);
}

static void try_folder(const struct folder *f)
{
    char path[512];
    struct dirent **entry;
    imported = refused = compared = 0;
    snprintf(path, sizeof path, "%s/%s", root, f->name);
    int n = scandir(path, &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s/%.200s", root, f->name, entry[i]->d_name);
        if (entry[i]->d_name[0] != '.')
            try_model(path);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    int all = imported + refused >= f->models; /* another version may have fewer */
    ok((imported >= f->imported && compared >= f->compared) || !all,
       "%s: %d imported, %d refused, %d compared", f->name, imported, refused, compared);
}

int main(void)
{
    DIR *there = opendir(root);
    if (!there)
        skip_all("libonnx-testdata is not installed");
    closedir(there);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        try_folder(&folders[i]);
    is_int(silent, 0, "each refusal is one line");
    is_int(wrong, 0, "values are those that come with the model");
    return done_testing();
}
