/* weights.c - weights by the names that Hugging Face's libraries give them.
 *
 * A parameter is here a matrix whose rows are the numbers of its first dimension.  Each of
 * its rows is a row (or a column, where a tensor is the transpose) of one tensor there:
 * queries, keys and values lie by key-value head here and apart there, gated pairs row by row
 * here and apart there, and GPT-2's one projection has all queries, then all keys, then all
 * values.  GPT-J turns neighbouring numbers of a head where others turn those half a head
 * apart, OPT's positions begin with row 2, and Gemma's norms multiply by one more than what is
 * stored.  source_of() says which, and reading and writing follow it. */
#include "memory.h"
#include "number.h"
#include "tensor_file.h"
#include "tensors.h"
#include "topt_json.h"
#include "topt_text.h"
#include "topt_weights.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH = 4096, MOST_CONFIG = 16 << 20, MOST_TOKENIZER = 256 << 20 };

/* A tensor there. */
struct piece {
    char name[160];
    int op, operand; /* of the config's model */
    enum topt_weight_piece piece;
    int64_t parts, expert;
    int ndim;
    int64_t dim[TOPT_WEIGHT_RANK];
};

struct naming {
    struct topt_model *model; /* of the config */
    struct piece *piece;
    int n, cap, oom;
    struct topt_tensor_file *file;
    int nfiles;
    int habits; /* of the family */
};

/* What of a family's tensors lies otherwise than the names alone say; bits. */
enum habit {
    NEIGHBOURS = 1, /* rotary pairs are neighbours */
    LATE_ROWS = 2,  /* positions begin with row 2 */
    ONE_LESS = 4,   /* norms are stored less 1 */
    BY_HEAD = 8,    /* one projection has query, key and value of each head in turn */
};

/* Held against transformers by tests/runtime/weights: losses, and gradients by what a step
 * of SGD makes of them. */
static const struct {
    const char *name;
    int habits;
} families[] = {{"gpt2", 0},
                {"llama", 0},
                {"mistral", 0},
                {"qwen2", 0},
                {"qwen3", 0},
                {"phi", 0},
                {"starcoder2", 0},
                {"opt", LATE_ROWS},
                {"gemma", ONE_LESS},
                {"gptj", NEIGHBOURS},
                {"phi3", 0},
                {"gpt_neox", BY_HEAD},
                {"mamba", 0},
                {"mamba2", 0},
                {"falcon_mamba", 0},
                {"bamba", 0},
                {"jamba", 0},
                {"granitemoehybrid", 0},
                {"nemotron_h", 0},
                {"lfm2", 0},
                {"lfm2_moe", 0},
                {"bloom", BY_HEAD},
                {"mpt", 0},
                {"modernbert", 0},
                {"qwen3_next", ONE_LESS},
                {"qwen3_5_text", ONE_LESS},
                {"qwen3_5_moe_text", ONE_LESS}};
enum { NFAMILIES = sizeof families / sizeof *families };

/* ---- what there is ----------------------------------------------------------------- */

static int add_piece(void *ctx, const struct topt_weight *w)
{
    struct naming *n = ctx;
    if (n->n == n->cap) {
        int cap = n->cap ? 2 * n->cap : 64;
        struct piece *more = realloc(n->piece, (size_t)cap * sizeof *more);
        n->oom |= !more;
        if (!more)
            return -1;
        n->piece = more;
        n->cap = cap;
    }
    struct piece *p = &n->piece[n->n++];
    *p = (struct piece){.op = w->op,
                        .operand = w->operand,
                        .piece = w->piece,
                        .parts = w->parts,
                        .expert = w->expert,
                        .ndim = w->ndim};
    snprintf(p->name, sizeof p->name, "%s", w->name);
    memcpy(p->dim, w->dim, sizeof p->dim);
    return 0;
}

static void naming_fini(struct naming *n)
{
    for (int i = 0; i < n->nfiles; i++)
        topt_tensor_file_close(&n->file[i]);
    free(n->file);
    free(n->piece);
    topt_model_destroy(n->model);
    *n = (struct naming){.model = NULL};
}

static int refuse_family(const char *config, const struct topt_model *m,
                         struct topt_error *err)
{
    struct topt_text known = {0};
    for (int i = 0; i < NFAMILIES; i++)
        topt_text_add(&known, "%s%s", i ? ", " : "", families[i].name);
    topt_fail(err, TOPT_ERR_INVAL,
              "%.60s: weights of the family '%.40s' are not read yet; read are %s",
              config, m->family ? m->family : "none", known.s ? known.s : "some");
    topt_text_fini(&known);
    return -1;
}

static int naming_init(struct naming *n, const struct topt_program *p, const char *config,
                       struct topt_error *err)
{
    const struct topt_import_options o = {.batch = p->model->batch, .seq = p->model->seq};
    int known = 0;
    *n = (struct naming){.model = topt_model_load(config, &o, err)};
    if (!n->model)
        return -1;
    for (int i = 0; i < NFAMILIES && n->model->family; i++)
        if (!strcmp(families[i].name, n->model->family)) {
            n->habits = families[i].habits;
            known = 1;
        }
    if (!known)
        return refuse_family(config, n->model, err);
    if (topt_model_weights(n->model, add_piece, n))
        return topt_nomem(err, NULL);
    return 0;
}

/* The config's operator of that name; -1: none, the model was made of something else. */
static int op_there(const struct naming *n, const struct topt_program *p, int buffer)
{
    return topt_model_find(n->model, p->model->op[p->buffer[buffer].op].name);
}

static int is_same_shape(const struct topt_shape *here, const struct topt_op *there,
                         int operand)
{
    const struct topt_dim *dim = there->operand[operand].dim;
    int same = here->ndim == topt_operand_rank(there, operand);
    for (int d = 0; d < here->ndim && same; d++)
        same = here->dim[d].count == dim[d].count * dim[d].unit;
    return same;
}

/* Has the config's model what the program trains, in its shapes, and nothing more?  Numbers
 * of another model would be read or written as nonsense, without a word. */
static int check_same(const struct naming *n, const struct topt_program *p,
                      const struct topt_stay *stay, int nstays, const char *config,
                      struct topt_error *err)
{
    for (int t = 0; t < nstays; t++) {
        const struct topt_buffer *b = &p->buffer[stay[t].buffer];
        int op = b->cls == TOPT_CLASS_PARAM ? op_there(n, p, stay[t].buffer) : 0;
        struct topt_shape shape = topt_stay_shape(p, stay[t].buffer);
        if (op < 0)
            return topt_fail(err, TOPT_ERR_INVAL, "%s has no name for parameter '%.80s'",
                             config, stay[t].name);
        if (b->cls == TOPT_CLASS_PARAM &&
            !is_same_shape(&shape, &n->model->op[op], b->operand))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s is of another model: its '%.80s' has another shape than "
                             "the plan's",
                             config, stay[t].name);
    }
    for (int i = 0; i < n->n; i++) {
        const char *name = n->model->op[n->piece[i].op].name;
        if (topt_model_find(p->model, name) < 0)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s is of another model: it has '%.80s', which the plan's "
                             "has not",
                             config, name);
    }
    return 0;
}

/* The names of a config that is of the program's model, and what the program trains. */
static int open_naming(struct naming *n, const struct topt_program *p, const char *config,
                       struct topt_stay **ret_stay, int *ret_n, struct topt_error *err)
{
    return naming_init(n, p, config, err) || topt_stays(p, ret_stay, ret_n, err) ||
                   check_same(n, p, *ret_stay, *ret_n, config, err)
               ? -1
               : 0;
}

/* ---- which row is which ------------------------------------------------------------ */

/* Row 'row' of a parameter: row 'at' of tensor 'piece' (a column, where that is turned). */
struct source {
    const struct piece *piece;
    int64_t at;
};

static const struct piece *find_piece(const struct naming *n, int op, int operand,
                                      enum topt_weight_piece piece)
{
    for (int i = 0; i < n->n; i++)
        if (n->piece[i].op == op && n->piece[i].operand == operand &&
            n->piece[i].piece == piece)
            return &n->piece[i];
    return NULL;
}

/* Rows of all parameters that a tensor of that name holds, one after the other. */
static int64_t all_rows(const struct naming *n, const char *name)
{
    int64_t rows = 0;
    for (int i = 0; i < n->n; i++)
        if (!strcmp(n->piece[i].name, name))
            rows += n->piece[i].dim[0];
    return rows;
}

/* The same of those before piece 'p' in the order of names. */
static int64_t rows_before(const struct naming *n, const struct piece *p)
{
    int64_t rows = 0;
    for (const struct piece *x = n->piece; x < p; x++)
        if (!strcmp(x->name, p->name))
            rows += x->dim[0];
    return rows;
}

/* Is the piece some rows of a tensor that says by itself where they lie? */
static int is_run(const struct piece *p)
{
    return p->piece >= TOPT_WEIGHT_RUN && p->piece <= TOPT_WEIGHT_TURNS;
}

/* May its tensor hold other parameters, too? */
static int holds_several(const struct piece *p)
{
    return p->piece == TOPT_WEIGHT_WHOLE || is_run(p);
}

static int is_of_experts(const struct piece *p)
{
    return p->piece >= TOPT_WEIGHT_EXPERT && p->piece <= TOPT_WEIGHT_EXPERTS_PAIRED;
}

/* What reads "h3.qkv", of that and of "h3.qkv.bias": "h3.attention"; with 'ending' "q" what
 * reads "h3.q": "h3.attend". */
static const struct topt_attrs *heads_of(const struct naming *n, int op,
                                         const char *ending)
{
    char name[80], part[16];
    const char *own = n->model->op[op].name, *dot = strchr(own, '.');
    snprintf(part, sizeof part, ".%s", ending);
    size_t len = strlen(part);
    if (!dot || strncmp(dot, part, len) != 0 || (dot[len] && strcmp(dot + len, ".bias")))
        return NULL;
    snprintf(name, sizeof name, "%.*s.att%s", (int)(dot - own), own,
             strcmp(ending, "qkv") ? "end" : "ention");
    int at = topt_model_find(n->model, name);
    return at < 0 ? NULL : &n->model->op[at].attrs;
}

/* Where row 'row' of a matrix of heads lies there, of numbers that are turned. */
static int64_t turned_row(const struct naming *n, const struct topt_attrs *a, int op,
                          int64_t row)
{
    const struct topt_attrs *rotary = a;
    char name[96];
    snprintf(name, sizeof name, "%.80s.rotary", n->model->op[op].name);
    int at = topt_model_find(n->model, name);
    rotary = at < 0 ? a : &n->model->op[at].attrs;
    int64_t d = a->head_dim, o = row % d, half = rotary->rope_dim / 2;
    if (!(n->habits & NEIGHBOURS) || o >= 2 * half)
        return row;
    return row - o + (o < half ? 2 * o : 2 * (o - half) + 1);
}

/* Queries, keys and values in one parameter here. */
static struct source source_of_heads(const struct naming *n, int op, int operand,
                                     int64_t row, const struct topt_attrs *a,
                                     const struct piece *whole)
{
    int64_t group = a->heads / a->kv_heads, d = a->head_dim;
    int64_t head = row / ((group + 2) * d), o = row % ((group + 2) * d);
    int kind = o < group * d ? 0 : o < (group + 1) * d ? 1 : 2;
    int64_t within = kind == 0   ? head * group * d + o
                     : kind == 1 ? head * d + o - group * d
                                 : head * d + o - (group + 1) * d;
    if (whole && n->habits & BY_HEAD)
        return (struct source){whole, row};
    if (kind < 2)
        within = turned_row(n, a, op, within);
    if (!whole)
        return (struct source){
            find_piece(n, op, operand,
                       (enum topt_weight_piece)(TOPT_WEIGHT_QUERY + kind)),
            within};
    int64_t before = kind == 0   ? 0
                     : kind == 1 ? a->heads * d
                                 : (a->heads + a->kv_heads) * d;
    return (struct source){whole, before + within};
}

/* A parameter that has a whole tensor, or some rows of one. */
static struct source source_of_rows(const struct naming *n, int op, int64_t row,
                                    const struct piece *whole)
{
    static const char *const parts[] = {"q", "k", "v"};
    const struct topt_op *o = &n->model->op[op];
    int64_t rows = whole->dim[0], all = all_rows(n, whole->name);
    for (int k = 0; k < 3; k++) {
        const struct topt_attrs *a = heads_of(n, op, parts[k]);
        if (!a)
            continue;
        int64_t d = a->head_dim, group = a->kv_heads ? a->heads / a->kv_heads : 1;
        if (all == rows)
            return (struct source){whole, k < 2 ? turned_row(n, a, op, row) : row};
        if (n->habits & BY_HEAD) /* of each key-value head: its queries, key, value */
            return (struct source){
                whole, k ? row / d * (group + 2) * d + (group + k - 1) * d + row % d
                         : row / (group * d) * (group + 2) * d + row % (group * d)};
        return (struct source){whole, row + (k ? a->heads * d : 0) +
                                          (k == 2 ? a->kv_heads * d : 0)};
    }
    if (n->habits & LATE_ROWS && !strcmp(o->spec->name, "position"))
        return (struct source){whole, (row + 2) % rows};
    if (strstr(o->name, "gate_up")) /* all that gate, then all that are gated */
        return (struct source){whole, row / 2 + row % 2 * (rows / 2)};
    return (struct source){whole, row};
}

/* Row 'row' of a parameter in a piece of a tensor that holds several; -1: it is not. */
static int64_t row_of_run(const struct naming *n, const struct piece *p, int64_t row)
{
    int64_t each = p->dim[0] / p->parts, o = row % (2 * each);
    switch (p->piece) {
    case TOPT_WEIGHT_RUN:
        return rows_before(n, p) + row;
    case TOPT_WEIGHT_TURNS:
        return row / each * (all_rows(n, p->name) / p->parts) +
               rows_before(n, p) / p->parts + row % each;
    default:
        return (o < each) == (p->piece == TOPT_WEIGHT_LOW)
                   ? rows_before(n, p) + row / (2 * each) * each + o % each
                   : -1;
    }
}

/* Row 'row' of expert 'expert'. */
static int64_t row_of_expert(const struct piece *p, int64_t expert, int64_t row)
{
    int64_t rows = p->dim[1];
    switch (p->piece) {
    case TOPT_WEIGHT_EXPERT:
        return p->expert == expert ? row : -1;
    case TOPT_WEIGHT_EXPERT_FIRST:
    case TOPT_WEIGHT_EXPERT_SECOND:
        return p->expert == expert && row % 2 == (p->piece == TOPT_WEIGHT_EXPERT_SECOND)
                   ? row / 2
                   : -1;
    case TOPT_WEIGHT_EXPERTS:
        return expert * rows + row;
    default:
        return expert * rows + row / 2 + row % 2 * (rows / 2);
    }
}

/* Rows of an operand with three dimensions are those of all experts. */
static struct source source_of_piece(const struct naming *n, int op, int operand,
                                     int64_t row)
{
    const struct topt_operand *x = &n->model->op[op].operand[operand];
    int64_t each = x->dim[1].count * x->dim[1].unit;
    for (const struct piece *p = n->piece; p < n->piece + n->n; p++) {
        if (p->op != op || p->operand != operand || !(is_run(p) || is_of_experts(p)))
            continue;
        int64_t at =
            is_run(p) ? row_of_run(n, p, row) : row_of_expert(p, row / each, row % each);
        if (at >= 0)
            return (struct source){p, at};
    }
    return (struct source){NULL, 0};
}

static struct source source_of(const struct naming *n, int op, int operand, int64_t row)
{
    struct source several = source_of_piece(n, op, operand, row);
    if (several.piece)
        return several;
    const struct topt_attrs *a = heads_of(n, op, "qkv");
    const struct piece *whole = find_piece(n, op, operand, TOPT_WEIGHT_WHOLE);
    whole = whole ? whole : find_piece(n, op, operand, TOPT_WEIGHT_TURNED);
    if (a && a->kv_heads > 0)
        return source_of_heads(n, op, operand, row, a, whole);
    if (whole)
        return source_of_rows(n, op, row, whole);
    return (struct source){
        find_piece(n, op, operand, row % 2 ? TOPT_WEIGHT_SECOND : TOPT_WEIGHT_FIRST),
        row / 2};
}

/* What is added to a number from there. */
static double offset_of(const struct naming *n, const struct piece *p)
{
    const struct topt_op *o = &n->model->op[p->op];
    int is_gain = !strcmp(o->spec->operand[p->operand].name, "g");
    return n->habits & ONE_LESS && is_gain && !strstr(o->name, ".mixer.norm") ? 1 : 0;
}

/* ---- reading ----------------------------------------------------------------------- */

static int is_tensors(const struct dirent *e)
{
    size_t len = strlen(e->d_name);
    return e->d_name[0] != '.' && len > 12 &&
           !strcmp(e->d_name + len - 12, ".safetensors");
}

static int open_files(struct naming *n, const char *dir, struct topt_error *err)
{
    struct dirent **e;
    char path[PATH];
    int found = scandir(dir, &e, is_tensors, alphasort), rc = 0;
    if (found < 0)
        return topt_fail(err, TOPT_ERR_IO, "read '%s': %s", dir, strerror(errno));
    n->file = calloc((size_t)found + 1, sizeof *n->file);
    if (!n->file)
        rc = topt_nomem(err, NULL);
    for (int i = 0; i < found; i++) {
        if (!rc && snprintf(path, sizeof path, "%s/%s", dir, e[i]->d_name) >= PATH)
            rc = topt_fail(err, TOPT_ERR_INVAL, "a path in '%s' is too long", dir);
        if (!rc)
            rc = topt_tensor_file_open(path, &n->file[n->nfiles], err);
        n->nfiles += !rc;
        free(e[i]);
    }
    free(e);
    return rc || n->nfiles ? rc
                           : topt_fail(err, TOPT_ERR_NOTFOUND,
                                       "there is no *.safetensors in '%s'", dir);
}

/* Its numbers, by its name or by that of the bare model. */
static int find_data(const struct naming *n, const struct piece *p, const char **ret,
                     enum topt_dtype *ret_type, struct topt_error *err)
{
    const char *base = topt_weights_base(n->model), *dtype;
    size_t skip = strncmp(p->name, base, strlen(base)) ? 0 : strlen(base);
    int64_t len[TOPT_MAX_RANK], want = 1, have = 1;
    int ndim, bare;
    for (int i = 0; i < 2 * n->nfiles; i++) {
        const struct topt_tensor_file *f = &n->file[i / 2];
        bare = i % 2;
        const char *name = p->name + (bare ? skip : 0);
        if (!json_object_get(f->header, name))
            continue;
        if (topt_tensor_find(f, name, ret, &dtype, &ndim, len, err))
            return -1;
        for (int d = 0; d < ndim; d++)
            have *= len[d];
        int64_t rows = p->ndim && holds_several(p) ? all_rows(n, p->name) : p->dim[0];
        for (int d = 0; d < p->ndim; d++)
            want *= d ? p->dim[d] : rows;
        *ret_type = topt_tensor_dtype(dtype);
        return have == want && ndim == p->ndim && (ndim == 0 || len[0] == rows)
                   ? 0
                   : topt_fail(err, TOPT_ERR_INVAL,
                               "'%.100s' has another shape than the model", name);
    }
    return topt_fail(err, TOPT_ERR_NOTFOUND, "there is no tensor '%.120s'", p->name);
}

/* Rows and columns of a rank's block of a parameter: of each of 'n' experts from 'first'
 * on, where it has experts, of which each has 'all_rows'. */
struct block {
    int64_t row, rows, col, cols, all_cols;
    int64_t first, n, all_rows;
};

static struct block block_of(const struct topt_program *p, int buffer, int rank)
{
    struct topt_box box = topt_stay_box(p, buffer, rank);
    struct topt_shape shape = topt_stay_shape(p, buffer);
    int d = shape.ndim - 2; /* of rows */
    if (shape.ndim < 2)
        return (struct block){box.off[0], box.len[0], 0, 1, 1, 0, 1, 0};
    return (struct block){.row = box.off[d],
                          .rows = box.len[d],
                          .col = box.off[d + 1],
                          .cols = box.len[d + 1],
                          .all_cols = shape.dim[d + 1].count,
                          .first = d ? box.off[0] : 0,
                          .n = d ? box.len[0] : 1,
                          .all_rows = shape.dim[d].count};
}

static int load_row(const struct naming *n, const struct source *src,
                    const struct block *b, enum topt_dtype to, void *row,
                    struct topt_error *err)
{
    const char *data;
    enum topt_dtype from = TOPT_F32;
    if (find_data(n, src->piece, &data, &from, err))
        return -1;
    int turned = src->piece->piece == TOPT_WEIGHT_TURNED && src->piece->ndim == 2;
    int64_t step = turned ? src->piece->dim[1] : 1;
    int64_t at = turned ? b->col * step + src->at : src->at * b->all_cols + b->col;
    double more = offset_of(n, src->piece);
    for (int64_t j = 0; j < b->cols; j++)
        topt_number_put(to, row, j, topt_number_get(from, data, at + j * step) + more);
    return 0;
}

static int load_parameter(const struct naming *n, struct topt_session *s, int buffer,
                          struct topt_error *err)
{
    const struct topt_buffer *x = &s->p->buffer[buffer];
    struct block b = block_of(s->p, buffer, s->comm->rank);
    int op = op_there(n, s->p, buffer), bytes = topt_session_element_bytes(s, x->elem);
    int64_t row_bytes = b.cols * bytes;
    void *row = topt_scratch(s, row_bytes);
    if (!row)
        return topt_nomem(err, NULL);
    for (int64_t r = 0; r < b.n * b.rows; r++) {
        struct source src = {NULL, 0};
        int64_t at = b.rows ? (b.first + r / b.rows) * b.all_rows + r % b.rows : 0;
        if (op >= 0 && x->shape.ndim <= 3)
            src = source_of(n, op, x->operand, b.row + at);
        if (!src.piece)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "the config has no name for parameter '%s' of '%.80s'",
                             s->p->model->op[x->op].spec->operand[x->operand].name,
                             s->p->model->op[x->op].name);
        if (load_row(n, &src, &b, s->dev->dtype, row, err) ||
            s->dev->ops->write(s->dev, (char *)s->ptr[buffer] + r * row_bytes, row,
                               row_bytes, err))
            return -1;
    }
    return 0;
}

static int load_all(struct topt_session *s, const char *dir, struct topt_error *err)
{
    struct naming n;
    struct topt_stay *stay = NULL;
    int nstays = 0;
    int rc = open_naming(&n, s->p, dir, &stay, &nstays, err) || open_files(&n, dir, err);
    for (int t = 0; t < nstays && !rc; t++)
        if (s->p->buffer[stay[t].buffer].cls == TOPT_CLASS_PARAM)
            rc = load_parameter(&n, s, stay[t].buffer, err);
    free(stay);
    naming_fini(&n);
    return rc ? -1 : 0;
}

int topt_weights_load(struct topt_session *s, const char *dir, struct topt_error *err)
{
    return topt_comm_agree(s->comm, load_all(s, dir, err), err);
}

/* ---- writing ----------------------------------------------------------------------- */

static int64_t elements(const struct piece *p)
{
    int64_t n = 1;
    for (int d = 0; d < p->ndim; d++)
        n *= p->dim[d];
    return n;
}

static int write_at(FILE *f, int64_t at, const float *x, int64_t n,
                    struct topt_error *err)
{
    return fseek(f, (long)at, SEEK_SET) || fwrite(x, sizeof *x, (size_t)n, f) != (size_t)n
               ? topt_fail(err, TOPT_ERR_IO, "write the weights: %s", strerror(errno))
               : 0;
}

/* Rows of a parameter into the tensor that holds them, beside others where it holds more. */
static int spread_into(const struct naming *n, const struct piece *p, const double *whole,
                       int64_t rows, int64_t cols, FILE *f, int64_t at,
                       struct topt_error *err)
{
    int shared = holds_several(p) && all_rows(n, p->name) != p->dim[0];
    int turned = p->piece == TOPT_WEIGHT_TURNED && p->ndim == 2, rc = 0;
    float *out = calloc((size_t)elements(p) + 1, sizeof *out);
    if (!out)
        return topt_nomem(err, NULL);
    for (int64_t r = 0; r < rows && !rc; r++) {
        struct source src = source_of(n, p->op, p->operand, r);
        if (src.piece != p)
            continue;
        float *row = shared ? out : out + (turned ? src.at : src.at * cols);
        for (int64_t j = 0; j < cols; j++)
            row[turned ? j * p->dim[1] : j] =
                (float)(whole[r * cols + j] - offset_of(n, p));
        if (shared)
            rc = write_at(f, at + src.at * cols * (int64_t)sizeof *row, row, cols, err);
    }
    if (!rc && !shared)
        rc = write_at(f, at, out, elements(p), err);
    free(out);
    return rc;
}

/* The whole of a parameter into the tensors that are made of it; rank 0. */
static int spread(const struct naming *n, int op, int operand, const double *whole,
                  int64_t rows, int64_t cols, FILE *f, const int64_t *at,
                  struct topt_error *err)
{
    for (int i = 0; i < n->n; i++) {
        const struct piece *p = &n->piece[i];
        if (p->op == op && p->operand == operand && at[i] >= 0 &&
            spread_into(n, p, whole, rows, cols, f, at[i], err))
            return -1;
    }
    return 0;
}

/* The first piece of the same name. */
static int first_of(const struct naming *n, int i)
{
    int k = 0;
    while (strcmp(n->piece[k].name, n->piece[i].name) != 0)
        k++;
    return k;
}

/* Where each tensor goes in the file; -1: it is another's copy (tied tables). */
static char *lay_out(const struct naming *n, const struct topt_program *p,
                     const struct topt_stay *stay, int nstays, int64_t *at,
                     size_t *ret_len, struct topt_error *err)
{
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    int64_t end = 0;
    int rc = header ? 0 : topt_nomem(err, NULL);
    for (int i = 0; i < n->n && !rc; i++) {
        at[i] = -1;
        int there = 0;
        for (int t = 0; t < nstays && !there; t++)
            there = p->buffer[stay[t].buffer].cls == TOPT_CLASS_PARAM &&
                    p->buffer[stay[t].buffer].operand == n->piece[i].operand &&
                    op_there(n, p, stay[t].buffer) == n->piece[i].op;
        struct piece w = n->piece[i];
        int before = there && json_object_get(header, w.name) ? first_of(n, i) : -1;
        if (before >= 0 && holds_several(&w))
            at[i] = at[before];
        if (!there || before >= 0)
            continue;
        at[i] = end;
        if (holds_several(&w) && w.ndim)
            w.dim[0] = all_rows(n, w.name);
        rc = topt_tensor_entry(header, w.name, "F32", w.ndim, w.dim, &end, err);
    }
    char *text = rc ? NULL : topt_tensor_header(header, ret_len, err);
    for (int i = 0; i < n->n && text; i++)
        at[i] += at[i] < 0 ? 0 : (int64_t)*ret_len;
    json_decref(header);
    return text;
}

/* 'name' of a folder, or the file itself, as 'name' in 'dir'. */
static int copy_into(const char *dir, const char *name, const char *path, size_t most,
                     struct topt_error *err)
{
    char from[PATH], to[PATH];
    struct stat st;
    size_t len;
    int folder = !stat(path, &st) && S_ISDIR(st.st_mode);
    snprintf(from, sizeof from, "%.4000s%s%s", path, folder ? "/" : "",
             folder ? name : "");
    snprintf(to, sizeof to, "%.4000s/%s", dir, name);
    char *text = topt_read_file(from, most, &len, err);
    int rc = text ? topt_write_file(to, text, len, err) : -1;
    free(text);
    return rc;
}

/* What rank 0 writes into; the others have no file. */
struct target {
    FILE *f;
    char tmp[PATH], path[PATH];
    int64_t *at;
};

static int open_target(struct target *t, const struct naming *n, struct topt_session *s,
                       const struct topt_stay *stay, int nstays, const char *config,
                       const char *tokenizer, const char *dir, struct topt_error *err)
{
    size_t len = 0;
    if (s->comm->rank)
        return 0;
    if (mkdir(dir, 0777) && errno != EEXIST)
        return topt_fail(err, TOPT_ERR_IO, "create '%s': %s", dir, strerror(errno));
    snprintf(t->path, sizeof t->path, "%.4000s/model.safetensors", dir);
    snprintf(t->tmp, sizeof t->tmp, "%.4000s/model.safetensors.tmp", dir);
    t->at = calloc((size_t)n->n + 1, sizeof *t->at);
    char *header = t->at ? lay_out(n, s->p, stay, nstays, t->at, &len, err) : NULL;
    if (header)
        t->f = fopen(t->tmp, "we");
    int bad = header && (!t->f || fwrite(header, 1, len, t->f) != len);
    free(header);
    if (bad)
        return topt_fail(err, TOPT_ERR_IO, "write '%s': %s", t->tmp, strerror(errno));
    if (!t->at)
        return topt_nomem(err, NULL);
    return !header || copy_into(dir, "config.json", config, MOST_CONFIG, err) ||
                   (tokenizer &&
                    copy_into(dir, "tokenizer.json", tokenizer, MOST_TOKENIZER, err))
               ? -1
               : 0;
}

static int close_target(struct target *t, int failed, struct topt_error *err)
{
    int bad = t->f && fclose(t->f);
    free(t->at);
    if (t->f && !failed && (bad || rename(t->tmp, t->path)))
        return topt_fail(err, TOPT_ERR_IO, "write '%s': %s", t->path, strerror(errno));
    if (t->f && failed)
        remove(t->tmp);
    return failed;
}

static int save_parameter(struct topt_session *s, const struct naming *n, int buffer,
                          const struct target *t, struct topt_error *err)
{
    double *whole = NULL;
    struct topt_shape shape = topt_stay_shape(s->p, buffer);
    int64_t count, rows = shape.dim[0].count;
    rows *= shape.ndim > 2 ? shape.dim[1].count : 1;
    if (topt_session_gather(s, buffer, &whole, &count, NULL, err))
        return -1;
    int failed =
        t->f && spread(n, op_there(n, s->p, buffer), s->p->buffer[buffer].operand, whole,
                       rows, rows ? count / rows : 0, t->f, t->at, err);
    free(whole);
    return topt_comm_agree(s->comm, failed, err);
}

int topt_weights_check(const struct topt_program *p, const char *config,
                       int64_t *ret_bytes, struct topt_error *err)
{
    struct naming n;
    struct topt_stay *stay = NULL;
    int nstays = 0;
    int rc = open_naming(&n, p, config, &stay, &nstays, err);
    *ret_bytes = 0;
    for (int i = 0; i < n.n && !rc; i++)
        *ret_bytes += elements(&n.piece[i]) * (int64_t)sizeof(float);
    free(stay);
    naming_fini(&n);
    return rc;
}

int topt_weights_save(struct topt_session *s, const char *config, const char *tokenizer,
                      const char *dir, struct topt_error *err)
{
    struct naming n;
    struct topt_stay *stay = NULL;
    struct target t = {.f = NULL};
    int nstays = 0;
    int failed = open_naming(&n, s->p, config, &stay, &nstays, err) ||
                 open_target(&t, &n, s, stay, nstays, config, tokenizer, dir, err);
    int rc = topt_comm_agree(s->comm, failed, err);
    for (int i = 0; i < nstays && !rc; i++)
        if (s->p->buffer[stay[i].buffer].cls == TOPT_CLASS_PARAM)
            rc = save_parameter(s, &n, stay[i].buffer, &t, err);
    rc = topt_comm_agree(s->comm, close_target(&t, rc, err), err);
    free(stay);
    naming_fini(&n);
    return rc;
}
