/* explain_split.c - what a plan splits where, in few lines.
 *
 * Operators that do the same are listed together, repeated blocks that do the same once
 * with the numbers of all of them: most models are a handful of lines, however deep.
 * Papers write the same as a list of mesh dimensions, and for every tensor a map from its
 * dimensions to those, -1 where a dimension is whole. */
#include "explain_parts.h"
#include "strategy_words.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 96, INDENT = 6 };

/* ---- which blocks do the same ------------------------------------------------------ */

static int same_choice(const struct topt_plan_doc *p, int a, int b)
{
    const struct topt_strategy *s = p->strategy;
    return !memcmp(&s->config[a], &s->config[b], sizeof s->config[a]) &&
           !memcmp(&s->keep[a * TOPT_MAX_INPUTS], &s->keep[b * TOPT_MAX_INPUTS],
                   TOPT_MAX_INPUTS);
}

/* Does block 'x' of a kind do all that block 'y' does? */
static int same_block(const struct topt_plan_doc *p, const struct topt_block_kind *k,
                      int x, int y)
{
    for (int i = 0; i < k->length; i++)
        if (!same_choice(p, k->first + x * k->length + i, k->first + y * k->length + i))
            return 0;
    return 1;
}

static int first_like(const struct topt_plan_doc *p, const struct topt_block_kind *k,
                      int block)
{
    int x = 0;
    while (x < block && !same_block(p, k, x, block))
        x++;
    return x;
}

/* ---- one operator ------------------------------------------------------------------ */

/* Names of the dimensions that axes split, but for the batch and experts: " over n". */
static void put_dimensions(struct topt_text *t, const struct topt_op *op,
                           const struct topt_mesh *mesh, const struct topt_config *c)
{
    int any = 0;
    for (int d = 0; d < op->spec->ndims; d++) {
        int used = op->spec->dim[d].split == TOPT_SPLIT_BATCH || d == topt_op_experts(op);
        for (int a = 0; a < mesh->naxes && !used; a++)
            if (c->dim[a] == d) {
                topt_text_add(t, "%s%s", any++ ? ", " : " over ", op->spec->dim[d].name);
                used = 1;
            }
    }
}

static void put_choice(struct topt_text *t, const struct topt_plan_doc *p, int i)
{
    const struct topt_op *op = &p->model->op[i];
    const struct topt_config *c = &p->strategy->config[i];
    int again = 0;
    topt_config_words(t, op, &p->mesh, c);
    put_dimensions(t, op, &p->mesh, c);
    if (topt_runs_again(c))
        topt_text_add(t, c->recompute == TOPT_AGAIN_ALL
                             ? ", recomputed in backward"
                             : ", what it saves is recomputed in backward");
    for (int k = 0; k < op->ninputs; k++)
        again |= p->strategy->keep[i * TOPT_MAX_INPUTS + k] == TOPT_KEEP_BEFORE;
    if (again)
        topt_text_add(t, ", input gathered again in backward");
}

/* An operator's splits in words, owned; NULL where memory ran out. */
static char *choice_words(const struct topt_plan_doc *p, int i)
{
    struct topt_text t = {0};
    put_choice(&t, p, i);
    return topt_text_take(&t);
}

/* ---- operators together ------------------------------------------------------------ */

/* Characters that all names of [from, to) begin with, up to and with a dot. */
static size_t common_prefix(const struct topt_model *m, int from, int to)
{
    const char *first = m->op[from].name;
    size_t n = to - from > 1 ? strlen(first) : 0;
    for (int i = from + 1; i < to; i++) {
        size_t k = 0;
        while (k < n && m->op[i].name[k] == first[k])
            k++;
        n = k;
    }
    while (n > 0 && first[n - 1] != '.')
        n--;
    return n;
}

/* Names with commas between, in lines of an indent. */
static void put_name(struct topt_text *t, const char *name, size_t *column)
{
    size_t len = strlen(name);
    if (*column + len + 2 > COLUMNS) {
        topt_text_add(t, ",\n%*s", INDENT, "");
        *column = INDENT;
    } else if (*column > INDENT) {
        topt_text_add(t, ", ");
        *column += 2;
    }
    topt_text_add(t, "%s", name);
    *column += len;
}

/* Operators [from, to), those that do the same together, in the order of the first
 * ones. */
static void put_together(struct topt_text *t, const struct topt_plan_doc *p, int from,
                         int to)
{
    size_t skip = common_prefix(p->model, from, to);
    int n = to - from;
    char **words = calloc((size_t)n + 1, sizeof *words);
    for (int i = 0; words && i < n; i++)
        if (!(words[i] = choice_words(p, from + i)))
            t->oom = 1;
    if (!words)
        t->oom = 1;
    for (int i = 0; !t->oom && i < n; i++) {
        size_t column = INDENT;
        int first = 0;
        while (strcmp(words[first], words[i]))
            first++;
        if (first < i)
            continue;
        topt_text_add(t, "    %s:\n%*s", words[i], INDENT, "");
        for (int k = i; k < n; k++)
            if (!strcmp(words[k], words[i]))
                put_name(t, p->model->op[from + k].name + skip, &column);
        topt_text_add(t, "\n");
    }
    for (int i = 0; words && i < n; i++)
        free(words[i]);
    free(words);
}

/* "1 to 4, 6": the blocks of a kind that do what block 'like' does. */
static void put_numbers(struct topt_text *t, const struct topt_plan_doc *p,
                        const struct topt_block_kind *k, int like)
{
    int any = 0;
    for (int x = like; x < k->count; x++) {
        if (first_like(p, k, x) != like)
            continue;
        int last = x;
        while (last + 1 < k->count && first_like(p, k, last + 1) == like)
            last++;
        topt_text_add(t, any++ ? ", %d" : " %d", x + 1);
        if (last > x)
            topt_text_add(t, last > x + 1 ? " to %d" : ", %d", last + 1);
        x = last;
    }
}

static void put_blocks(struct topt_text *t, const struct topt_plan_doc *p,
                       const struct topt_block_kind *k)
{
    enum { SHOWN = 6 };
    int shown = 0, more = 0;
    for (int x = 0; x < k->count; x++) {
        if (first_like(p, k, x) != x)
            continue;
        if (shown++ >= SHOWN) {
            more++;
            continue;
        }
        int from = k->first + x * k->length;
        topt_text_add(t, "  blocks");
        put_numbers(t, p, k, x);
        topt_text_add(t, " of %d (%d operators each, starting at %s):\n", k->count,
                      k->length, p->model->op[from].name);
        put_together(t, p, from, from + k->length);
    }
    if (more)
        topt_text_add(
            t, "  and %d more strategies for such blocks; --operators lists all\n", more);
}

static void put_each(struct topt_text *t, const struct topt_plan_doc *p)
{
    for (int i = 0; i < p->model->nops; i++) {
        topt_text_add(t, "  %-24s %-13s ", p->model->op[i].name,
                      p->model->op[i].spec->name);
        put_choice(t, p, i);
        topt_text_add(t, "\n");
    }
}

/* ---- axes -------------------------------------------------------------------------- */

static const char *const uses[] = {"data",     "tensor", "spatial",
                                   "sequence", "expert", "repeated"};
enum { DATA, TENSOR, SPATIAL, SEQUENCE, EXPERT, REPEATED, USES };

/* The uses of an axis of the devices, by number of operators. */
static void count_uses(const struct topt_plan_doc *p, int axis, int n[USES])
{
    memset(n, 0, USES * sizeof *n);
    for (int i = 0; i < p->model->nops; i++) {
        int d = p->strategy->config[i].dim[axis];
        enum topt_split s =
            d >= 0 ? p->model->op[i].spec->dim[d].split : TOPT_SPLIT_NEVER;
        n[d < 0                                    ? REPEATED
          : d == topt_op_experts(&p->model->op[i]) ? EXPERT
          : s == TOPT_SPLIT_BATCH                  ? DATA
          : s == TOPT_SPLIT_SPATIAL                ? SPATIAL
          : s == TOPT_SPLIT_SEQUENCE               ? SEQUENCE
                                                   : TENSOR]++;
    }
}

static const char *level(const struct topt_plan_doc *p, int axis)
{
    return axis < p->mesh.node_axes ? "between nodes" : "inside a node";
}

static void put_axes(struct topt_text *t, const struct topt_plan_doc *p)
{
    char name[8];
    for (int a = 0; a < p->mesh.naxes; a++) {
        int n[USES], any = 0;
        count_uses(p, a, n);
        topt_text_add(t, "  %s:%d %-14s ", topt_mesh_axis_name(&p->mesh, a, name),
                      p->mesh.size[a], level(p, a));
        for (int u = 0; u < USES; u++)
            if (n[u])
                topt_text_add(t, "%s%s in %d", any++ ? ", " : "", uses[u], n[u]);
        topt_text_add(t, " of %d operators\n", p->model->nops);
    }
}

static json_t *axes_json(const struct topt_plan_doc *p)
{
    json_t *axes = json_array();
    char name[8];
    for (int a = 0; a < p->mesh.naxes; a++) {
        int n[USES];
        json_t *operators = json_object();
        count_uses(p, a, n);
        for (int u = 0; u < USES; u++)
            json_object_set_new(operators, uses[u], json_integer(n[u]));
        json_array_append_new(axes, json_pack("{s:s, s:i, s:s, s:o}", "name",
                                              topt_mesh_axis_name(&p->mesh, a, name),
                                              "size", p->mesh.size[a], "level",
                                              level(p, a), "operators", operators));
    }
    return axes;
}

json_t *topt_explain_splits_json(const struct topt_plan_doc *p)
{
    json_t *ways = json_object();
    for (int i = 0; i < p->model->nops; i++) {
        char *words = choice_words(p, i);
        json_t *list = words ? json_object_get(ways, words) : NULL;
        if (words && !list) {
            list = json_array();
            json_object_set_new(ways, words, list);
        }
        json_array_append_new(list, json_string(p->model->op[i].name));
        free(words);
    }
    return json_pack("{s:o, s:o}", "axes", axes_json(p), "operators", ways);
}

void topt_explain_splits(struct topt_text *t, const struct topt_plan_doc *p, int all)
{
    const struct topt_blocks *b = p->model->blocks;
    if (p->mesh.naxes) {
        topt_text_add(
            t, "\nDevice mesh, outermost axis first, and what each axis splits:\n");
        put_axes(t, p);
    }
    topt_text_add(t, "\nWhat is split where:\n");
    if (all) {
        put_each(t, p);
        return;
    }
    for (int i = 0; i < p->model->nops;) {
        int end = i;
        if (b->kind[i] >= 0) {
            const struct topt_block_kind *k = &b->of[b->kind[i]];
            put_blocks(t, p, k);
            i = k->first + k->length * k->count;
            continue;
        }
        while (end < p->model->nops && b->kind[end] < 0)
            end++;
        topt_text_add(t, end - i > 1 ? "  %s to %s:\n" : "  %s:\n", p->model->op[i].name,
                      p->model->op[end - 1].name);
        put_together(t, p, i, end);
        i = end;
    }
}

/* ---- as papers write it ------------------------------------------------------------- */

/* The operator in the same place of the first block that does all that this one's block
 * does; itself outside of blocks. */
static int first_op_like(const struct topt_plan_doc *p, int op)
{
    const struct topt_blocks *b = p->model->blocks;
    if (b->kind[op] < 0)
        return op;
    const struct topt_block_kind *k = &b->of[b->kind[op]];
    return k->first + first_like(p, k, b->block[op]) * k->length + b->position[op];
}

/* Mesh dimensions: runs of axes that every layout treats alike.  'of' by axis. */
struct runs {
    int n, of[TOPT_MAX_AXES], size[TOPT_MAX_AXES];
};

static int has_map(const struct topt_op *op, int operand)
{
    enum topt_role role = op->operand[operand].role;
    return op->operand[operand].present && (role == TOPT_OUTPUT || role == TOPT_PARAM);
}

static void find_runs(const struct topt_plan_doc *p, struct runs *r)
{
    uint8_t apart[TOPT_MAX_AXES] = {0};
    for (int i = 0; i < p->model->nops; i++)
        for (int o = 0; o < p->model->op[i].spec->noperands; o++) {
            const struct topt_op *op = &p->model->op[i];
            if (!has_map(op, o))
                continue;
            struct topt_layout l =
                topt_value_layout(op, o, &p->strategy->config[i], &p->mesh);
            for (int a = 1; a < p->mesh.naxes; a++)
                apart[a] |= l.at[a] != l.at[a - 1];
        }
    *r = (struct runs){0};
    for (int a = 0; a < p->mesh.naxes; a++) {
        if (a == 0 || apart[a] || a == p->mesh.node_axes)
            r->size[r->n++] = 1;
        r->of[a] = r->n - 1;
        r->size[r->n - 1] *= p->mesh.size[a];
    }
}

/* "[0,-1,1]"; "0+2" where two mesh dimensions split one. */
static void put_map(struct topt_text *t, const struct topt_op *op, int operand,
                    const struct topt_plan_doc *p, const struct topt_config *c,
                    const struct runs *r)
{
    struct topt_layout l = topt_value_layout(op, operand, c, &p->mesh);
    topt_text_add(t, " %s [", op->spec->operand[operand].name);
    for (int d = 0; d < op->spec->operand[operand].ndim; d++) {
        int last = -1, any = 0;
        for (int a = 0; a < p->mesh.naxes; a++)
            if (l.at[a] == d && r->of[a] != last) {
                last = r->of[a];
                topt_text_add(t, "%s%d", any++ ? "+" : d ? "," : "", last);
            }
        if (!any)
            topt_text_add(t, "%s-1", d ? "," : "");
    }
    topt_text_add(t, "]%s", topt_layout_partial_mask(&l) ? " (parts of a sum)" : "");
}

void topt_explain_notation(struct topt_text *t, const struct topt_plan_doc *p)
{
    struct runs r;
    find_runs(p, &r);
    topt_text_add(t, "Device mesh [");
    for (int i = 0; i < r.n; i++)
        topt_text_add(t, "%s%d", i ? "," : "", r.size[i]);
    topt_text_add(t, "], devices row-major; tensor maps of outputs and parameters:\n");
    for (int i = 0; i < p->model->nops; i++) {
        const struct topt_op *op = &p->model->op[i];
        if (first_op_like(p, i) != i)
            continue;
        topt_text_add(t, "  %-22s", op->name);
        for (int o = 0; o < op->spec->noperands; o++)
            if (has_map(op, o))
                put_map(t, op, o, p, &p->strategy->config[i], &r);
        topt_text_add(t, "\n");
    }
}
