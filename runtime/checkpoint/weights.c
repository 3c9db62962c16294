/* weights.c - weights from and to files, by the names that Hugging Face's libraries give
 * them (naming.c). */
#include "adapters.h"
#include "memory.h"
#include "naming.h"
#include "number.h"
#include "packed.h"
#include "resnet.h"
#include "topt_json.h"
#include "topt_text.h"
#include "topt_weights.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char ADAPTERS[] = "adapter_model.safetensors";
static const char WEIGHTS[] = "model.safetensors";

enum { PATH = 4096, MOST_CONFIG = 16 << 20, MOST_TOKENIZER = 256 << 20 };

/* The names of a config's parameters, and of the adapters that the program has beside them. */
static int open_naming(struct topt_naming *n, const struct topt_program *p,
                       const char *config, struct topt_stay **ret_stay, int *ret_n,
                       struct topt_error *err)
{
    return topt_naming_open(n, p, config, ret_stay, ret_n, err) ||
                   topt_resnet_name(n, err) || topt_adapters_name(n, err)
               ? -1
               : 0;
}

/* ---- reading ----------------------------------------------------------------------- */

static int is_tensors(const struct dirent *e)
{
    size_t len = strlen(e->d_name);
    return e->d_name[0] != '.' && len > 12 &&
           !strcmp(e->d_name + len - 12, ".safetensors");
}

/* The adapters', if there are any, is the first. */
static int open_adapters(struct topt_naming *n, const char *dir, struct topt_error *err)
{
    char path[PATH];
    snprintf(path, sizeof path, "%.4000s/%s", dir, ADAPTERS);
    if (topt_adapters_read_config(dir, &n->scale, err) ||
        topt_tensor_file_open(path, &n->file[0], err))
        return -1;
    n->nfiles = 1;
    return topt_adapters_check_file(n, &n->file[0], err) ? topt_wrap(err, "%s", path) : 0;
}

static int open_files(struct topt_naming *n, const char *dir, const char *adapters,
                      struct topt_error *err)
{
    struct dirent **e;
    char path[PATH];
    int found = scandir(dir, &e, is_tensors, alphasort), rc = 0;
    if (found < 0)
        return topt_fail(err, TOPT_ERR_IO, "read '%s': %s", dir, strerror(errno));
    n->file = calloc((size_t)found + 2, sizeof *n->file);
    if (!n->file)
        rc = topt_nomem(err, NULL);
    else if (adapters)
        rc = open_adapters(n, adapters, err);
    int before = n->nfiles;
    for (int i = 0; i < found; i++) {
        if (!rc && snprintf(path, sizeof path, "%s/%s", dir, e[i]->d_name) >= PATH)
            rc = topt_fail(err, TOPT_ERR_INVAL, "a path in '%s' is too long", dir);
        if (!rc)
            rc = topt_tensor_file_open(path, &n->file[n->nfiles], err);
        n->nfiles += !rc;
        free(e[i]);
    }
    free(e);
    return rc || n->nfiles > before ? rc
                                    : topt_fail(err, TOPT_ERR_NOTFOUND,
                                                "there is no *.safetensors in '%s'", dir);
}

/* Its numbers, by its name or by that of the bare model. */
static int find_data(const struct topt_naming *n, const struct topt_name_piece *p,
                     const char **ret, enum topt_dtype *ret_type, struct topt_error *err)
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
        int64_t rows = p->ndim && topt_naming_is_shared(p) ? topt_naming_rows(n, p->name)
                                                           : p->dim[0];
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

static int load_row(const struct topt_naming *n, const struct topt_name_source *src,
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
    double more = topt_naming_offset(n, src->piece);
    double times = topt_naming_second(n, src->piece->op) ? n->scale : 1;
    for (int64_t j = 0; j < b->cols; j++)
        topt_number_put(to, row, j,
                        times * topt_number_get(from, data, at + j * step) + more);
    return 0;
}

/* Is it of a head for a task of its own, which weights for another task don't have? */
static int is_of_head(const char *op)
{
    static const char *const heads[] = {"pooler", "classifier", "score", "qa_outputs"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        size_t len = strlen(heads[i]);
        if (!strncmp(op, heads[i], len) && (!op[len] || op[len] == '.'))
            return 1;
    }
    return 0;
}

static int is_there(const struct topt_naming *n, const struct topt_name_piece *p)
{
    const char *data;
    enum topt_dtype type;
    struct topt_error err;
    return !find_data(n, p, &data, &type, &err) || err.code != TOPT_ERR_NOTFOUND;
}

/* A head that is not there keeps what it starts with. */
static int starts_anew(const struct topt_naming *n, const struct topt_program *p,
                       int buffer)
{
    int op = topt_naming_op(n, p, buffer), operand = p->buffer[buffer].operand;
    if (op < 0 || !is_of_head(n->model->op[op].name))
        return 0;
    struct topt_name_source src = topt_naming_source(n, op, operand, 0);
    return src.piece && !is_there(n, src.piece);
}

static int load_parameter(const struct topt_naming *n, struct topt_session *s, int buffer,
                          struct topt_error *err)
{
    const struct topt_buffer *x = &s->p->buffer[buffer];
    struct block b = block_of(s->p, buffer, s->comm->rank);
    int op = topt_naming_op(n, s->p, buffer), bits = topt_packed_bits(s->p, buffer),
        bytes = bits ? (int)sizeof(float) : topt_session_element_bytes(s, x->elem);
    int64_t row_bytes = b.cols * bytes;
    char *row = topt_scratch(s, bits ? b.n * b.rows * row_bytes : row_bytes);
    const float *all = (const float *)(const void *)row; /* what is packed, at once */
    if (!row)
        return topt_nomem(err, NULL);
    for (int64_t r = 0; r < b.n * b.rows; r++) {
        struct topt_name_source src = {NULL, 0};
        int64_t at = b.rows ? (b.first + r / b.rows) * b.all_rows + r % b.rows : 0;
        if (op >= 0 && x->shape.ndim <= 3)
            src = topt_naming_source(n, op, x->operand, b.row + at);
        if (!src.piece)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "the config has no name for parameter '%s' of '%.80s'",
                             s->p->model->op[x->op].spec->operand[x->operand].name,
                             s->p->model->op[x->op].name);
        if (load_row(n, &src, &b, topt_buffer_dtype(s, buffer), row, err))
            return -1;
        if (bits)
            row += row_bytes;
        else if (s->dev->ops->write(s->dev, (char *)s->ptr[buffer] + r * row_bytes, row,
                                    row_bytes, err))
            return -1;
    }
    if (bits)
        topt_packed_put(s, buffer, all);
    return 0;
}

/* All parameters but what starts anew, of which '*ret_anew' has the names. */
static int load_parameters(const struct topt_naming *n, struct topt_session *s,
                           const struct topt_stay *stay, int nstays, int adapters,
                           struct topt_text *anew, struct topt_error *err)
{
    for (int t = 0; t < nstays; t++) {
        int buffer = stay[t].buffer;
        if (!topt_stay_is_weight(s->p, buffer) ||
            (!adapters && topt_naming_is_adapter(n, topt_naming_op(n, s->p, buffer))))
            continue;
        if (starts_anew(n, s->p, buffer))
            topt_text_add(anew, "%s%s", anew->len ? ", " : "", stay[t].name);
        else if (load_parameter(n, s, buffer, err))
            return -1;
    }
    return 0;
}

static int load_all(struct topt_session *s, const struct topt_weights_source *from,
                    struct topt_error *err)
{
    struct topt_naming n;
    struct topt_stay *stay = NULL;
    struct topt_text anew = {0};
    int nstays = 0, adapters = from->adapters != NULL;
    int rc = open_naming(&n, s->p, from->config ? from->config : from->dir, &stay,
                         &nstays, err);
    if (!rc && adapters && !n.nadapters)
        rc = topt_fail(err, TOPT_ERR_INVAL,
                       "the plan has no adapters for '%.200s'; plan with --train lora",
                       from->adapters);
    rc = rc || open_files(&n, from->dir, from->adapters, err) ||
         load_parameters(&n, s, stay, nstays, adapters, &anew, err);
    if (!rc && anew.len && from->note)
        from->note(from->ctx, anew.s);
    topt_text_fini(&anew);
    free(stay);
    topt_naming_close(&n);
    return rc ? -1 : 0;
}

int topt_weights_load(struct topt_session *s, const struct topt_weights_source *from,
                      struct topt_error *err)
{
    return topt_comm_agree(s->comm, load_all(s, from, err), err);
}

/* ---- writing ----------------------------------------------------------------------- */

static int64_t elements(const struct topt_name_piece *p)
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
static int spread_into(const struct topt_naming *n, const struct topt_name_piece *p,
                       const double *whole, int64_t rows, int64_t cols, FILE *f,
                       int64_t at, struct topt_error *err)
{
    int shared = topt_naming_is_shared(p) && topt_naming_rows(n, p->name) != p->dim[0];
    int turned = p->piece == TOPT_WEIGHT_TURNED && p->ndim == 2, rc = 0;
    float *out = calloc((size_t)elements(p) + 1, sizeof *out);
    if (!out)
        return topt_nomem(err, NULL);
    for (int64_t r = 0; r < rows && !rc; r++) {
        struct topt_name_source src = topt_naming_source(n, p->op, p->operand, r);
        if (src.piece != p)
            continue;
        float *row = shared ? out : out + (turned ? src.at : src.at * cols);
        for (int64_t j = 0; j < cols; j++)
            row[turned ? j * p->dim[1] : j] =
                (float)(whole[r * cols + j] - topt_naming_offset(n, p));
        if (shared)
            rc = write_at(f, at + src.at * cols * (int64_t)sizeof *row, row, cols, err);
    }
    if (!rc && !shared)
        rc = write_at(f, at, out, elements(p), err);
    free(out);
    return rc;
}

/* The whole of a parameter into the tensors that are made of it; rank 0. */
static int spread(const struct topt_naming *n, int op, int operand, const double *whole,
                  int64_t rows, int64_t cols, FILE *f, const int64_t *at,
                  struct topt_error *err)
{
    for (int i = 0; i < n->n; i++) {
        const struct topt_name_piece *p = &n->piece[i];
        if (p->op == op && p->operand == operand && at[i] >= 0 &&
            spread_into(n, p, whole, rows, cols, f, at[i], err))
            return -1;
    }
    return 0;
}

/* The first piece of the same name. */
static int first_of(const struct topt_naming *n, int i)
{
    int k = 0;
    while (strcmp(n->piece[k].name, n->piece[i].name) != 0)
        k++;
    return k;
}

/* Where each tensor goes in the file, of the adapters' or of all others; -1: it is another's
 * copy (tied tables), or in no file. */
static char *lay_out(const struct topt_naming *n, const struct topt_program *p,
                     const struct topt_stay *stay, int nstays, int adapters, int64_t *at,
                     size_t *ret_len, struct topt_error *err)
{
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    int64_t end = 0;
    int rc = header ? 0 : topt_nomem(err, NULL);
    for (int i = 0; i < n->n && !rc; i++) {
        at[i] = -1;
        int there = 0;
        if ((i >= n->base) != adapters)
            continue;
        for (int t = 0; t < nstays && !there; t++)
            there = topt_stay_is_weight(p, stay[t].buffer) &&
                    p->buffer[stay[t].buffer].operand == n->piece[i].operand &&
                    topt_naming_op(n, p, stay[t].buffer) == n->piece[i].op;
        struct topt_name_piece w = n->piece[i];
        int before = there && json_object_get(header, w.name) ? first_of(n, i) : -1;
        if (before >= 0 && topt_naming_is_shared(&w))
            at[i] = at[before];
        if (!there || before >= 0)
            continue;
        at[i] = end;
        if (topt_naming_is_shared(&w) && w.ndim)
            w.dim[0] = topt_naming_rows(n, w.name);
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

/* What is written, and for rank 0 where to; the others have no file. */
struct target {
    const struct topt_weights_folder *to;
    int adapters; /* they alone */
    FILE *f;
    char tmp[PATH], path[PATH];
    int64_t *at;
};

/* The files beside the tensors. */
static int write_beside(const struct target *t, const struct topt_naming *n,
                        struct topt_error *err)
{
    const struct topt_weights_folder *to = t->to;
    if (t->adapters ? topt_adapters_write_config(n, to->config, to->dir, to->dropout, err)
                    : copy_into(to->dir, "config.json", to->config, MOST_CONFIG, err))
        return -1;
    return to->tokenizer
               ? copy_into(to->dir, "tokenizer.json", to->tokenizer, MOST_TOKENIZER, err)
               : 0;
}

static int open_target(struct target *t, const struct topt_naming *n,
                       struct topt_session *s, const struct topt_stay *stay, int nstays,
                       struct topt_error *err)
{
    size_t len = 0;
    const char *dir = t->to->dir;
    if (s->comm->rank)
        return 0;
    if (mkdir(dir, 0777) && errno != EEXIST)
        return topt_fail(err, TOPT_ERR_IO, "create '%s': %s", dir, strerror(errno));
    snprintf(t->path, sizeof t->path, "%.4000s/%s", dir,
             t->adapters ? ADAPTERS : WEIGHTS);
    snprintf(t->tmp, sizeof t->tmp, "%.4080s.tmp", t->path);
    t->at = calloc((size_t)n->n + 1, sizeof *t->at);
    char *header =
        t->at ? lay_out(n, s->p, stay, nstays, t->adapters, t->at, &len, err) : NULL;
    if (header)
        t->f = fopen(t->tmp, "we");
    int bad = header && (!t->f || fwrite(header, 1, len, t->f) != len);
    free(header);
    if (bad)
        return topt_fail(err, TOPT_ERR_IO, "write '%s': %s", t->tmp, strerror(errno));
    if (!t->at)
        return topt_nomem(err, NULL);
    return header ? write_beside(t, n, err) : -1;
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

/* The parameter of an operator; its whole on rank 0, as topt_session_gather() has it. */
static int gather_of(struct topt_session *s, const struct topt_naming *n,
                     const struct topt_stay *stay, int nstays, int op, double **ret,
                     struct topt_error *err)
{
    int64_t count;
    for (int i = 0; i < nstays; i++)
        if (s->p->buffer[stay[i].buffer].cls == TOPT_CLASS_PARAM &&
            topt_naming_op(n, s->p, stay[i].buffer) == op)
            return topt_session_gather(s, stay[i].buffer, ret, &count, NULL, err);
    return topt_fail(err, TOPT_ERR_INTERNAL, "an adapter has no parameter");
}

/* What an adapter adds to the rows of the parameter that it is beside; 'whole' NULL: on another
 * rank. */
static int merge_one(struct topt_session *s, const struct topt_naming *n,
                     const struct topt_adapter *a, const struct topt_stay *stay,
                     int nstays, double *whole, int64_t cols, struct topt_error *err)
{
    double *first = NULL, *second = NULL;
    const struct topt_dim *d = n->model->op[a->b].operand[a->weight].dim;
    int64_t rows = d[0].count * d[0].unit, rank = d[1].count * d[1].unit;
    int rc = gather_of(s, n, stay, nstays, a->a, &first, err) ||
             gather_of(s, n, stay, nstays, a->b, &second, err);
    for (int64_t r = 0; !rc && whole && r < rows; r++) {
        double *row = whole + topt_naming_adapter_row(a, r) * cols;
        for (int64_t k = 0; k < rank; k++)
            for (int64_t j = 0; j < cols; j++)
                row[j] += second[r * rank + k] * first[k * cols + j];
    }
    free(first);
    free(second);
    return rc ? -1 : 0;
}

static int save_parameter(struct topt_session *s, const struct topt_naming *n, int buffer,
                          const struct topt_stay *stay, int nstays,
                          const struct target *t, struct topt_error *err)
{
    double *whole = NULL;
    struct topt_shape shape = topt_stay_shape(s->p, buffer);
    int64_t count, rows = shape.dim[0].count;
    int op = topt_naming_op(n, s->p, buffer), operand = s->p->buffer[buffer].operand;
    rows *= shape.ndim > 2 ? shape.dim[1].count : 1;
    if (topt_session_gather(s, buffer, &whole, &count, NULL, err))
        return -1;
    int64_t cols = rows ? count / rows : 0;
    int rc = 0;
    for (int i = 0; i < n->nadapters && !t->adapters && !rc; i++)
        if (n->adapter[i].parent == op && n->adapter[i].weight == operand)
            rc = merge_one(s, n, &n->adapter[i], stay, nstays, whole, cols, err);
    int failed =
        rc || (t->f && spread(n, op, operand, whole, rows, cols, t->f, t->at, err));
    free(whole);
    return topt_comm_agree(s->comm, failed, err);
}

/* Has each adapter a name of PEFT's? */
static int check_adapters(const struct topt_naming *n, struct topt_error *err)
{
    for (int i = 0; i < n->nadapters; i++)
        if (!topt_naming_source(n, n->adapter[i].a, n->adapter[i].weight, 0).piece)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "'%.80s' is beside a part of a module, which PEFT's files "
                             "have no name for; --merge adds it to the weights",
                             n->model->op[n->adapter[i].a].name);
    return 0;
}

int topt_weights_check(const struct topt_program *p, const char *config, int merge,
                       int64_t *ret_bytes, struct topt_error *err)
{
    struct topt_naming n;
    struct topt_stay *stay = NULL;
    int nstays = 0;
    int rc = open_naming(&n, p, config, &stay, &nstays, err);
    int adapters = n.nadapters > 0 && !merge;
    if (!rc && merge && !n.nadapters)
        rc = topt_fail(err, TOPT_ERR_USAGE, "--merge: the plan has no adapters to merge");
    rc = rc || (adapters && check_adapters(&n, err));
    *ret_bytes = 0;
    for (int i = adapters ? n.base : 0; i < (adapters ? n.n : n.base) && !rc; i++)
        *ret_bytes += elements(&n.piece[i]) * (int64_t)sizeof(float);
    free(stay);
    topt_naming_close(&n);
    return rc ? -1 : 0;
}

int topt_weights_save(struct topt_session *s, const struct topt_weights_folder *to,
                      struct topt_error *err)
{
    struct topt_naming n;
    struct topt_stay *stay = NULL;
    struct target t = {.to = to};
    int nstays = 0;
    int failed = open_naming(&n, s->p, to->config, &stay, &nstays, err);
    t.adapters = n.nadapters > 0 && !to->merge;
    failed = failed || (t.adapters && check_adapters(&n, err)) ||
             open_target(&t, &n, s, stay, nstays, err);
    int rc = topt_comm_agree(s->comm, failed, err);
    for (int i = 0; i < nstays && !rc; i++) {
        int is_param = topt_stay_is_weight(s->p, stay[i].buffer);
        if (is_param && (int)topt_naming_is_adapter(
                            &n, topt_naming_op(&n, s->p, stay[i].buffer)) == t.adapters)
            rc = save_parameter(s, &n, stay[i].buffer, stay, nstays, &t, err);
    }
    rc = topt_comm_agree(s->comm, close_target(&t, rc, err), err);
    free(stay);
    topt_naming_close(&n);
    return rc;
}
