/* soap.c - how operators may be split, and what their parts take. */
#include "ff_data.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

/* ---- dimensions -------------------------------------------------------------------- */

/* Is the dimension one of the output?  Others are summed over, which no part does. */
static int in_output(const struct topt_op *o, int d)
{
    const struct topt_operand_spec *y = &o->spec->operand[o->output];
    for (int j = 0; j < y->ndim; j++)
        if (y->dim[j] == d)
            return 1;
    return 0;
}

static int may_split(const struct topt_op *o, int d)
{
    enum topt_split s = topt_op_split(o, d);
    return in_output(o, d) && s != TOPT_SPLIT_NEVER && s != TOPT_SPLIT_STAT;
}

static int degree_fits(const struct topt_op *o, int d, int degree)
{
    if (degree == 1)
        return 1;
    return may_split(o, d) && degree <= topt_fewest_counts(o, d) &&
           (!(o->spec->even >> d & 1) || o->count[d] % degree == 0);
}

static int add_degrees(struct ff_op *x, const struct ff_degrees *g)
{
    if (!(x->ndegrees & (x->ndegrees - 1)) &&
        TOPT_RESIZE(x->degrees, x->ndegrees ? 2 * x->ndegrees : 1))
        return -1;
    x->degrees[x->ndegrees++] = *g;
    return 0;
}

static int list_from(struct topt_flexflow *f, int op, int d, struct ff_degrees *g)
{
    const struct topt_op *o = &f->k.model->op[op];
    if (d == o->spec->ndims)
        return add_degrees(&f->op[op], g);
    int parts = g->nparts;
    for (int degree = 1; degree * parts <= f->devices; degree++) {
        if (f->devices % (degree * parts) || !degree_fits(o, d, degree))
            continue;
        g->at[d] = (uint8_t)degree;
        g->nparts = degree * parts;
        if (list_from(f, op, d + 1, g))
            return -1;
    }
    g->at[d] = 1;
    g->nparts = parts;
    return 0;
}

int ff_degrees_list(struct topt_flexflow *f, int op)
{
    struct ff_degrees g = {.nparts = 1};
    struct ff_op *x = &f->op[op];
    int most = 1, n = 0;
    memset(g.at, 1, sizeof g.at);
    if (list_from(f, op, 0, &g))
        return -1;
    for (int i = 0; f->rules.all_devices && i < x->ndegrees; i++)
        most = x->degrees[i].nparts > most ? x->degrees[i].nparts : most;
    for (int i = 0; i < x->ndegrees; i++)
        if (x->degrees[i].nparts >= most)
            x->degrees[n++] = x->degrees[i];
    x->ndegrees = n;
    return 0;
}

int ff_coordinate(const struct topt_op *o, const struct topt_soap *s, int part, int d)
{
    for (int e = o->spec->ndims - 1; e > d; e--)
        part /= s->degree[e];
    return part % s->degree[d];
}

/* ---- choices ----------------------------------------------------------------------- */

int64_t topt_flexflow_choices(const struct topt_flexflow *f, int op)
{
    return (int64_t)f->op[op].ndegrees * f->devices * 2;
}

static struct topt_soap placed(const struct topt_flexflow *f, const struct ff_degrees *g,
                               int start, int spread)
{
    struct topt_soap s = {.nparts = g->nparts};
    int stride = spread ? f->devices / g->nparts : 1;
    memcpy(s.degree, g->at, sizeof s.degree);
    for (int p = 0; p < s.nparts; p++)
        s.device[p] = (uint8_t)((start + p * stride) % f->devices);
    return s;
}

struct topt_soap topt_flexflow_choice(const struct topt_flexflow *f, int op, int64_t i)
{
    const struct ff_degrees *g = &f->op[op].degrees[i / (2 * f->devices)];
    return placed(f, g, (int)(i / 2 % f->devices), (int)(i % 2));
}

struct topt_soap topt_flexflow_data_parallel(const struct topt_flexflow *f, int op)
{
    const struct topt_op *o = &f->k.model->op[op];
    const struct ff_degrees *best = NULL;
    for (int i = 0; i < f->op[op].ndegrees; i++) {
        const struct ff_degrees *g = &f->op[op].degrees[i];
        int samples = 1;
        for (int d = 0; d < o->spec->ndims; d++)
            samples *= o->spec->dim[d].split == TOPT_SPLIT_BATCH ? g->at[d] : 1;
        if (samples == g->nparts && (!best || g->nparts > best->nparts))
            best = g;
    }
    return placed(f, best ? best : &f->op[op].degrees[0], 0, 1);
}

int topt_flexflow_valid(const struct topt_flexflow *f, int op, const struct topt_soap *s)
{
    const struct topt_op *o = &f->k.model->op[op];
    int parts = 1;
    for (int d = 0; d < o->spec->ndims; d++) {
        if (s->degree[d] < 1 || !degree_fits(o, d, s->degree[d]))
            return 0;
        parts *= s->degree[d];
        if (parts > f->devices)
            return 0;
    }
    for (int p = 0; p < parts; p++)
        if (s->device[p] >= f->devices)
            return 0;
    return parts == s->nparts;
}

/* ---- prices ------------------------------------------------------------------------ */

int ff_is_param(const struct topt_flexflow *f, int op, int operand)
{
    const struct topt_op *o = &f->k.model->op[op];
    const struct topt_operand *x = &o->operand[operand];
    return x->present &&
           (x->role == TOPT_PARAM ||
            (x->role == TOPT_INPUT &&
             f->op[f->k.model->tensor[o->tensor[operand]].producer].virtual));
}

/* Rows of the part that has most of tables of unlike lengths: runs of tables, as even as can be. */
static int64_t most_rows(const struct topt_op *o, int runs, int row_parts)
{
    int64_t most = 0, tables = topt_tables_of(o);
    for (int64_t i = 0; i < runs; i++) {
        int64_t rows = 0;
        for (int64_t k = i * tables / runs; k < (i + 1) * tables / runs; k++)
            rows += (topt_table_height(o, k) + row_parts - 1) / row_parts;
        most = rows > most ? rows : most;
    }
    return most;
}

int64_t ff_operand_elements(const struct topt_op *o, const struct topt_soap *s,
                            int operand)
{
    const struct topt_operand_spec *spec = &o->spec->operand[operand];
    int64_t n =
        spec->ragged ? most_rows(o, s->degree[spec->dim[0]], s->degree[spec->dim[1]]) : 1;
    for (int j = spec->ragged ? 2 : 0; j < topt_operand_rank(o, operand); j++) {
        const struct topt_dim *x = &o->operand[operand].dim[j];
        int degree = s->degree[spec->dim[j]];
        n *= (x->count + degree - 1) / degree * x->unit;
    }
    return n;
}

static int64_t operand_bytes(const struct topt_flexflow *f, const struct topt_op *o,
                             const struct topt_soap *s, int operand)
{
    int whole = o->operand[operand].role == TOPT_DATA && !o->spec->operand[operand].real;
    if (!o->operand[operand].present)
        return 0;
    return ff_operand_elements(o, s, operand) *
           (whole ? 4 : topt_dtype_bytes(f->k.settings->dtype));
}

/* As tally.c prices a kernel: what it reads and writes once, in a loop of one round. */
static int64_t kernel_ns(const struct topt_flexflow *f, const struct topt_op *o,
                         const struct topt_soap *s, const struct topt_step *k)
{
    int64_t len[TOPT_MAX_OPDIMS], bytes = 0;
    int64_t times = k->loop ? o->count[k->loop - 1] : 1;
    uint32_t touched = k->reads | k->writes;
    for (int d = 0; d < o->spec->ndims; d++)
        len[d] = (o->count[d] + s->degree[d] - 1) / s->degree[d];
    for (int x = 0; x < o->spec->noperands; x++) {
        int64_t once = operand_bytes(f, o, s, x);
        for (int j = 0; k->loop && j < o->spec->operand[x].ndim; j++)
            if (o->spec->operand[x].dim[j] == k->loop - 1) {
                once /= times;
                break;
            }
        bytes += once * ((touched >> x & 1) + (touched >> (16 + x) & 1));
    }
    return times * topt_kernel_time(&f->k, o, k->kernel, len, bytes).ns;
}

/* Is one of the dimensions split that the step is for? */
static int is_over(const struct topt_op *o, const struct topt_soap *s, uint32_t dims)
{
    int split = !dims;
    for (int d = 0; d < o->spec->ndims; d++)
        split |= (dims >> d & 1) && s->degree[d] > 1;
    return split;
}

static int64_t pass_ns(const struct topt_flexflow *f, const struct topt_op *o,
                       const struct topt_soap *s, int backward)
{
    const struct topt_step *k = backward ? o->spec->backward : o->spec->forward;
    int64_t ns = 0;
    for (int i = 0; i < TOPT_MAX_STEPS && k[i].kind != TOPT_STEP_END; i++)
        if (k[i].kind == TOPT_STEP_KERNEL && is_over(o, s, k[i].dims) &&
            (!backward || o->runs_back >> i & 1))
            ns += kernel_ns(f, o, s, &k[i]);
    return ns;
}

/* Parameters and their states are read and written, gradients read and set to zero. */
static int64_t update_ns(const struct topt_flexflow *f, int64_t numbers)
{
    struct topt_settings run = *f->k.settings;
    run.accounting = TOPT_ACCOUNTING_RUN;
    return 1 + topt_hw_compute_ns(f->k.hw, run.dtype, TOPT_WORK_ELEMENTWISE, 0,
                                  numbers * 2 * topt_parameter_bytes(&run), f->devices);
}

void ff_price(const struct topt_flexflow *f, int op, const struct topt_soap *s,
              struct ff_price *ret)
{
    const struct topt_op *o = &f->k.model->op[op];
    const struct topt_settings *set = f->k.settings;
    int paper = topt_accounting_is_papers(set->accounting);
    int64_t number = topt_dtype_bytes(set->dtype), trained = 0, kept = 0;
    *ret = (struct ff_price){.forward = pass_ns(f, o, s, 0),
                             .backward = pass_ns(f, o, s, 1)};
    ret->forward += ret->forward == 0;
    for (int x = 0; x < o->spec->noperands; x++) {
        if (!ff_is_param(f, op, x))
            continue;
        int64_t n = ff_operand_elements(o, s, x);
        int frozen = o->operand[x].role == TOPT_PARAM && !topt_is_trained(o, x);
        trained += frozen ? 0 : n;
        kept += n * (paper ? 4 : frozen ? number : topt_parameter_bytes(set));
    }
    int64_t out = ff_operand_elements(o, s, o->output) * number;
    ret->memory_bytes = kept + (paper ? (o->attrs->fused ? 0 : 2 * out) : out);
    ret->update = trained ? update_ns(f, trained) : 0;
}
