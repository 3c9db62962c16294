/* tables.c - how many numbers an operand has, tables of unlike lengths included, and how many
 * different rows of tables a batch names.
 *
 * Each row of a table is taken to be as likely as the others, or each of so many rows as give a
 * density that was measured (topt_table_named). */
#include "tables.h"

#include <math.h>

int64_t topt_operand_numbers(const struct topt_op *op, int operand)
{
    int ragged = op->spec->operand[operand].ragged;
    int64_t n = ragged ? (int64_t)topt_table_heights(op) : 1;
    for (int i = ragged ? 2 : 0; i < topt_operand_rank(op, operand); i++)
        n *= op->operand[operand].dim[i].count * op->operand[operand].dim[i].unit;
    return n;
}

double topt_op_parameters(const struct topt_op *op)
{
    double n = 0;
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->operand[o].role == TOPT_PARAM && op->operand[o].present)
            n += (double)topt_operand_numbers(op, o);
    return n;
}

int topt_table_sparse(const struct topt_op *op)
{
    for (int o = 0; op->attrs->sparse && o < op->spec->noperands; o++)
        if (op->spec->operand[o].rows_of && topt_is_trained(op, o))
            return o;
    return -1;
}

int topt_table_ids(const struct topt_op *op)
{
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->spec->operand[o].rows_of)
            return op->spec->operand[o].rows_of - 1;
    return -1;
}

int topt_model_has_tables(const struct topt_model *m)
{
    for (int i = 0; i < m->nops; i++)
        if (topt_table_sparse(&m->op[i]) >= 0)
            return 1;
    return 0;
}

double topt_table_lookups(const struct topt_op *op)
{
    int ids = topt_table_ids(op);
    return ids < 0 ? 0 : (double)topt_operand_numbers(op, ids);
}

int64_t topt_tables_of(const struct topt_op *op)
{
    int64_t n = 0;
    while (n < TOPT_MAX_TABLES && op->attrs->tables[n])
        n++;
    return n ? n : 1;
}

int64_t topt_table_height(const struct topt_op *op, int64_t table)
{
    return op->attrs->tables[0] ? op->attrs->tables[table] : op->attrs->vocab;
}

double topt_table_heights(const struct topt_op *op)
{
    double rows = 0;
    for (int64_t k = 0; k < topt_tables_of(op); k++)
        rows += (double)topt_table_height(op, k);
    return rows;
}

/* Of 'rows' rows, each as likely, so many are named. */
static double named(double rows, double lookups)
{
    return rows > 1 ? -rows * expm1(lookups * log1p(-1 / rows)) : 1;
}

static double at_most(double x, double most)
{
    return x < most ? x : most;
}

double topt_table_named(const struct topt_op *op, int64_t table, double lookups,
                        double evenness)
{
    double rows = (double)topt_table_height(op, table);
    return at_most(at_most(named(rows * evenness, lookups), rows), lookups);
}

static double named_of_all(const struct topt_op *op, double lookups, double evenness)
{
    double n = 0, tables = (double)topt_tables_of(op);
    for (int64_t k = 0; k < topt_tables_of(op); k++)
        n += topt_table_named(op, k, lookups / tables, evenness);
    return n;
}

/* Of each table's rows this part, or this many times as many, each as likely, give the density;
 * the number named rises with them. */
double topt_table_evenness(const struct topt_op *op)
{
    double want = op->attrs->density * topt_table_heights(op);
    double lookups = (double)op->attrs->density_of, low = 1e-12, high = 1e6;
    if (!(op->attrs->density > 0))
        return 1;
    for (int i = 0; i < 200 && high - low > 1e-9 * high; i++) {
        double middle = sqrt(low * high);
        if (named_of_all(op, lookups, middle) < want)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double topt_table_rows(const struct topt_op *op, double lookups)
{
    return named_of_all(op, lookups, topt_table_evenness(op));
}

int topt_refuse_density(const struct topt_op *op, struct topt_error *err)
{
    double d = op->attrs->density, rows = topt_table_heights(op);
    if (!op->attrs->sparse && (d > 0 || op->attrs->density_of))
        return topt_fail(err, TOPT_ERR_INVAL, "\"density\" is for sparse tables only");
    if (op->attrs->sparse && op->operand[1].role == TOPT_INPUT)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a table that is another operator's tensor can't be sparse: its "
                         "other readers give every row a gradient");
    if ((d > 0) != (op->attrs->density_of > 0))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "density and density_of, the lookups that have it, go together");
    if (d > 1 || d * rows > (double)op->attrs->density_of)
        return topt_fail(err, TOPT_ERR_INVAL, "%lld lookups can't name %g of %.0f rows",
                         (long long)op->attrs->density_of, d, rows);
    return 0;
}
