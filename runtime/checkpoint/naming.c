/* naming.c - parameters by the names that Hugging Face's libraries give them.
 *
 * A parameter is here a matrix whose rows are the numbers of its first dimension.  Each of
 * its rows is a row (or a column, where a tensor is the transpose) of one tensor there:
 * queries, keys and values lie by key-value head here and apart there, gated pairs row by row
 * here and apart there, and GPT-2's one projection has all queries, then all keys, then all
 * values.  GPT-J turns neighbouring numbers of a head where others turn those half a head
 * apart, OPT's positions begin with row 2, and Gemma's norms multiply by one more than what is
 * stored.  topt_naming_source() says which, and reading and writing follow it. */
#include "naming.h"
#include "topt_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What of a family's tensors lies otherwise than the names alone say; bits. */
enum habit {
    NEIGHBOURS = 1, /* rotary pairs are neighbours */
    LATE_ROWS = 2,  /* positions begin with row 2 */
    ONE_LESS = 4,   /* norms are stored less 1 */
    BY_HEAD = 8,    /* one projection has query, key and value of each head in turn */
    LATE_TURNS = 16 /* what is turned of a head comes last */
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
                {"qwen3_5_moe_text", ONE_LESS},
                {"mixtral", 0},
                {"qwen3_moe", 0},
                {"deepseek_v2", NEIGHBOURS | LATE_TURNS},
                {"bert", 0},
                {"distilbert", 0},
                {"t5", 0},
                {"vit", 0},
                {"resnet", 0}};
enum { NFAMILIES = sizeof families / sizeof *families };

/* ---- what there is ----------------------------------------------------------------- */

int topt_naming_add(void *ctx, const struct topt_weight *w)
{
    struct topt_naming *n = ctx;
    if (n->n == n->cap) {
        int cap = n->cap ? 2 * n->cap : 64;
        struct topt_name_piece *more = realloc(n->piece, (size_t)cap * sizeof *more);
        n->oom |= !more;
        if (!more)
            return -1;
        n->piece = more;
        n->cap = cap;
    }
    struct topt_name_piece *p = &n->piece[n->n++];
    *p = (struct topt_name_piece){.op = w->op,
                                  .operand = w->operand,
                                  .piece = w->piece,
                                  .parts = w->parts,
                                  .expert = w->expert,
                                  .ndim = w->ndim};
    snprintf(p->name, sizeof p->name, "%s", w->name);
    memcpy(p->dim, w->dim, sizeof p->dim);
    return 0;
}

void topt_naming_close(struct topt_naming *n)
{
    for (int i = 0; i < n->nfiles; i++)
        topt_tensor_file_close(&n->file[i]);
    free(n->file);
    free(n->piece);
    free(n->adapter);
    topt_model_destroy(n->model);
    *n = (struct topt_naming){.model = NULL};
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

static int naming_init(struct topt_naming *n, const struct topt_program *p,
                       const char *config, struct topt_error *err)
{
    const struct topt_import_options o = {.batch = p->model->batch, .seq = p->model->seq};
    int known = 0;
    *n = (struct topt_naming){.model = topt_model_load(config, &o, err), .scale = 1};
    if (!n->model)
        return -1;
    for (int i = 0; i < NFAMILIES && n->model->family; i++)
        if (!strcmp(families[i].name, n->model->family)) {
            n->habits = families[i].habits;
            known = 1;
        }
    if (!known)
        return refuse_family(config, n->model, err);
    /* what is trained by name needs nothing more: the operators are the same */
    const char *train = p->model->train;
    if (train && !n->model->train && topt_model_train(&n->model, train, err))
        return -1;
    return topt_model_weights(n->model, topt_naming_add, n) ? topt_nomem(err, NULL) : 0;
}

/* The config's operator of that name; -1: none, the model was made of something else. */
int topt_naming_op(const struct topt_naming *n, const struct topt_program *p, int buffer)
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
static int check_same(const struct topt_naming *n, const struct topt_program *p,
                      const struct topt_stay *stay, int nstays, const char *config,
                      struct topt_error *err)
{
    for (int t = 0; t < nstays; t++) {
        const struct topt_buffer *b = &p->buffer[stay[t].buffer];
        int op = b->cls == TOPT_CLASS_PARAM ? topt_naming_op(n, p, stay[t].buffer) : 0;
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
int topt_naming_open(struct topt_naming *n, const struct topt_program *p,
                     const char *config, struct topt_stay **ret_stay, int *ret_n,
                     struct topt_error *err)
{
    return naming_init(n, p, config, err) || topt_stays(p, ret_stay, ret_n, err) ||
                   check_same(n, p, *ret_stay, *ret_n, config, err)
               ? -1
               : 0;
}

/* ---- adapters ---------------------------------------------------------------------- */

static int ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n > k && !strcmp(s + n - k, end);
}

int topt_naming_is_adapter(const struct topt_naming *n, int op)
{
    const char *name = n->model->op[op].name;
    return ends_in(name, TOPT_ADAPTER_FIRST) || ends_in(name, TOPT_ADAPTER_SECOND);
}

const struct topt_adapter *topt_naming_second(const struct topt_naming *n, int op)
{
    for (int i = 0; i < n->nadapters; i++)
        if (n->adapter[i].b == op)
            return &n->adapter[i];
    return NULL;
}

int64_t topt_naming_adapter_row(const struct topt_adapter *a, int64_t row)
{
    return row / a->unit * a->total + a->offset + row % a->unit;
}

struct topt_name_source topt_naming_adapter_source(const struct topt_naming *n,
                                                   const struct topt_adapter *a,
                                                   int64_t row)
{
    return topt_naming_source(n, a->parent, a->weight, topt_naming_adapter_row(a, row));
}

/* ---- which row is which ------------------------------------------------------------ */

static const struct topt_name_piece *find_piece(const struct topt_naming *n, int op,
                                                int operand, enum topt_weight_piece piece)
{
    for (int i = 0; i < n->n; i++)
        if (n->piece[i].op == op && n->piece[i].operand == operand &&
            n->piece[i].piece == piece)
            return &n->piece[i];
    return NULL;
}

/* Rows of all parameters that a tensor of that name holds, one after the other. */
int64_t topt_naming_rows(const struct topt_naming *n, const char *name)
{
    int64_t rows = 0;
    for (int i = 0; i < n->n; i++)
        if (!strcmp(n->piece[i].name, name))
            rows += n->piece[i].dim[0];
    return rows;
}

/* The same of those before piece 'p' in the order of names. */
static int64_t rows_before(const struct topt_naming *n, const struct topt_name_piece *p)
{
    int64_t rows = 0;
    for (const struct topt_name_piece *x = n->piece; x < p; x++)
        if (!strcmp(x->name, p->name))
            rows += x->dim[0];
    return rows;
}

/* Is the piece some rows of a tensor that says by itself where they lie? */
static int is_run(const struct topt_name_piece *p)
{
    return p->piece >= TOPT_WEIGHT_RUN && p->piece <= TOPT_WEIGHT_TURNS;
}

/* May its tensor hold other parameters, too? */
int topt_naming_is_shared(const struct topt_name_piece *p)
{
    return p->piece == TOPT_WEIGHT_WHOLE || is_run(p);
}

static int is_of_experts(const struct topt_name_piece *p)
{
    return p->piece >= TOPT_WEIGHT_EXPERT && p->piece <= TOPT_WEIGHT_EXPERTS_PAIRED;
}

/* What reads "h3.qkv", of that and of "h3.qkv.bias": "h3.attention"; with 'ending' "q" what
 * reads "h3.q": "h3.attend". */
static const struct topt_attrs *heads_of(const struct topt_naming *n, int op,
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
    return at < 0 ? NULL : n->model->op[at].attrs;
}

/* Where row 'row' of a matrix of heads lies there, of numbers that are turned: by the attention
 * that reads it ('a'), or by an operator of their own. */
static int64_t turned_row(const struct topt_naming *n, const struct topt_attrs *a, int op,
                          int64_t row)
{
    char name[96];
    snprintf(name, sizeof name, "%.80s.rotary", n->model->op[op].name);
    int own = topt_model_find(n->model, name);
    a = own < 0 ? a : n->model->op[own].attrs;
    int64_t d = a->head_dim, turns = a->rope_dim / 2 * 2, o = row % d, at = o;
    if (n->habits & NEIGHBOURS && o < turns)
        at = o < turns / 2 ? 2 * o : 2 * (o - turns / 2) + 1;
    if (n->habits & LATE_TURNS)
        at += o < turns ? d - turns : -turns;
    return row - o + at;
}

/* Queries, keys and values in one parameter here. */
static struct topt_name_source source_of_heads(const struct topt_naming *n, int op,
                                               int operand, int64_t row,
                                               const struct topt_attrs *a,
                                               const struct topt_name_piece *whole)
{
    int64_t group = a->heads / a->kv_heads, d = a->head_dim;
    int64_t head = row / ((group + 2) * d), o = row % ((group + 2) * d);
    int kind = o < group * d ? 0 : o < (group + 1) * d ? 1 : 2;
    int64_t within = kind == 0   ? head * group * d + o
                     : kind == 1 ? head * d + o - group * d
                                 : head * d + o - (group + 1) * d;
    if (whole && n->habits & BY_HEAD)
        return (struct topt_name_source){whole, row};
    if (kind < 2)
        within = turned_row(n, a, op, within);
    if (!whole)
        return (struct topt_name_source){
            find_piece(n, op, operand,
                       (enum topt_weight_piece)(TOPT_WEIGHT_QUERY + kind)),
            within};
    int64_t before = kind == 0   ? 0
                     : kind == 1 ? a->heads * d
                                 : (a->heads + a->kv_heads) * d;
    return (struct topt_name_source){whole, before + within};
}

/* A parameter that has a whole tensor, or some rows of one. */
static struct topt_name_source source_of_rows(const struct topt_naming *n, int op,
                                              int64_t row,
                                              const struct topt_name_piece *whole)
{
    static const char *const parts[] = {"q", "k", "v"};
    const struct topt_op *o = &n->model->op[op];
    int64_t rows = whole->dim[0], all = topt_naming_rows(n, whole->name);
    for (int k = 0; k < 3; k++) {
        const struct topt_attrs *a = heads_of(n, op, parts[k]);
        if (!a)
            continue;
        int64_t d = a->head_dim, group = a->kv_heads ? a->heads / a->kv_heads : 1;
        if (all == rows)
            return (struct topt_name_source){whole,
                                             k < 2 ? turned_row(n, a, op, row) : row};
        if (n->habits & BY_HEAD) /* of each key-value head: its queries, key, value */
            return (struct topt_name_source){
                whole, k ? row / d * (group + 2) * d + (group + k - 1) * d + row % d
                         : row / (group * d) * (group + 2) * d + row % (group * d)};
        return (struct topt_name_source){whole, row + (k ? a->heads * d : 0) +
                                                    (k == 2 ? a->kv_heads * d : 0)};
    }
    if (all != rows) /* of latent keys and values those, then the part that is turned */
        return (struct topt_name_source){
            whole,
            rows_before(n, whole) +
                (strstr(o->name, ".k_shared") ? turned_row(n, o->attrs, op, row) : row)};
    if (n->habits & LATE_ROWS && !strcmp(o->spec->name, "position"))
        return (struct topt_name_source){whole, (row + 2) % rows};
    if (strstr(o->name, "gate_up")) /* all that gate, then all that are gated */
        return (struct topt_name_source){whole, row / 2 + row % 2 * (rows / 2)};
    return (struct topt_name_source){whole, row};
}

/* Row 'row' of a parameter in a piece of a tensor that holds several; -1: it is not. */
static int64_t row_of_run(const struct topt_naming *n, const struct topt_name_piece *p,
                          int64_t row)
{
    int64_t each = p->dim[0] / p->parts, o = row % (2 * each);
    switch (p->piece) {
    case TOPT_WEIGHT_RUN:
        return rows_before(n, p) + row;
    case TOPT_WEIGHT_TURNS:
        return row / each * (topt_naming_rows(n, p->name) / p->parts) +
               rows_before(n, p) / p->parts + row % each;
    default:
        return (o < each) == (p->piece == TOPT_WEIGHT_LOW)
                   ? rows_before(n, p) + row / (2 * each) * each + o % each
                   : -1;
    }
}

/* Row 'row' of expert 'expert'. */
static int64_t row_of_expert(const struct topt_name_piece *p, int64_t expert, int64_t row)
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
static struct topt_name_source source_of_piece(const struct topt_naming *n, int op,
                                               int operand, int64_t row)
{
    const struct topt_operand *x = &n->model->op[op].operand[operand];
    int64_t each = x->dim[1].count * x->dim[1].unit;
    for (const struct topt_name_piece *p = n->piece; p < n->piece + n->n; p++) {
        if (p->op != op || p->operand != operand || !(is_run(p) || is_of_experts(p)))
            continue;
        int64_t at =
            is_run(p) ? row_of_run(n, p, row) : row_of_expert(p, row / each, row % each);
        if (at >= 0)
            return (struct topt_name_source){p, at};
    }
    return (struct topt_name_source){NULL, 0};
}

/* Rows of a second map lie as those of the module that it is beside. */
static struct topt_name_source source_of_adapter(const struct topt_naming *n, int op,
                                                 int64_t row)
{
    const struct topt_adapter *a = topt_naming_second(n, op);
    int64_t at = a ? topt_naming_adapter_source(n, a, row).at : row;
    for (int i = n->base; i < n->n; i++)
        if (n->piece[i].op == op)
            return (struct topt_name_source){&n->piece[i], at};
    return (struct topt_name_source){NULL, 0};
}

struct topt_name_source topt_naming_source(const struct topt_naming *n, int op,
                                           int operand, int64_t row)
{
    if (topt_naming_is_adapter(n, op))
        return source_of_adapter(n, op, row);
    struct topt_name_source several = source_of_piece(n, op, operand, row);
    if (several.piece)
        return several;
    const struct topt_attrs *a = heads_of(n, op, "qkv");
    const struct topt_name_piece *whole = find_piece(n, op, operand, TOPT_WEIGHT_WHOLE);
    whole = whole ? whole : find_piece(n, op, operand, TOPT_WEIGHT_TURNED);
    if (a && a->kv_heads > 0)
        return source_of_heads(n, op, operand, row, a, whole);
    if (whole)
        return source_of_rows(n, op, row, whole);
    return (struct topt_name_source){
        find_piece(n, op, operand, row % 2 ? TOPT_WEIGHT_SECOND : TOPT_WEIGHT_FIRST),
        row / 2};
}

/* What is added to a number from there. */
double topt_naming_offset(const struct topt_naming *n, const struct topt_name_piece *p)
{
    const struct topt_op *o = &n->model->op[p->op];
    int is_gain = !strcmp(o->spec->operand[p->operand].name, "g");
    return n->habits & ONE_LESS && is_gain && !strstr(o->name, ".mixer.norm") ? 1 : 0;
}
