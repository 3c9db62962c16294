/* tables.c - what AccPar says a cut exchanges and computes.
 *
 * A type fixes how each tensor of a layer lies on the two sides, and the tables follow:
 *
 *             reads F_l   makes F_{l+1}   reads E_{l+1}   makes E_l   sums between the sides
 *     I       rows        rows            rows            rows        the gradient of W
 *     II      features    whole           whole           features    F_{l+1}
 *     III     whole       features        features        whole       E_l
 *
 * Between two layers a side fetches what the next one reads and it does not have: of rows and
 * rows, or features and features, what its share grew by; of rows and features the crossing
 * less what it has; and nothing where it has the whole.  With equal shares a this is the 3 x 3
 * table of the paper, for instance a (1 - a) (A(F) + A(E)) between types I and II. */
#include "topt_accpar.h"

#include <math.h>

enum lie { ROWS, FEATURES, WHOLE };

static const struct {
    const char *name;
    enum lie reads_f, makes_f, reads_e, makes_e;
} types[TOPT_ACCPAR_TYPES] = {
    [TOPT_ACCPAR_BATCH] = {"I", ROWS, ROWS, ROWS, ROWS},
    [TOPT_ACCPAR_INPUT] = {"II", FEATURES, WHOLE, WHOLE, FEATURES},
    [TOPT_ACCPAR_OUTPUT] = {"III", WHOLE, FEATURES, FEATURES, WHOLE},
};

const char *topt_accpar_type_name(enum topt_accpar_type t)
{
    return types[t].name;
}

const char *topt_accpar_system_name(enum topt_accpar_system s)
{
    static const char *const names[] = {
        [TOPT_ACCPAR_TOFU] = "Tofu",
        [TOPT_ACCPAR_DATA] = "data parallel",
        [TOPT_ACCPAR_OWT] = "one weird trick",
        [TOPT_ACCPAR_HYPAR] = "HyPar",
        [TOPT_ACCPAR_ACCPAR] = "AccPar",
        [TOPT_ACCPAR_BY_FLOPS] = "AccPar, shares by computing",
    };
    return names[s];
}

/* The share of a tensor that a side fetches which has its share 'a' of it in one way, and needs
 * its share 'b' in another. */
static double fetched(enum lie has, double a, enum lie needs, double b)
{
    double need = needs == WHOLE ? 1 : b;
    double had = has == WHOLE     ? need
                 : needs == WHOLE ? a
                 : has == needs   ? fmin(a, b)
                                  : a * b;
    return need - had;
}

double topt_accpar_between(enum topt_accpar_type from, enum topt_accpar_type to,
                           int joins, double a, double b, double f, double e)
{
    enum lie reads = joins ? types[to].makes_f : types[to].reads_f;
    enum lie gives = joins ? types[to].reads_e : types[to].makes_e;
    return f * fetched(types[from].makes_f, a, reads, b) +
           e * fetched(gives, b, types[from].reads_e, a);
}

double topt_accpar_within(const struct topt_accpar_layer *l, double batch,
                          enum topt_accpar_type t)
{
    switch (t) {
    case TOPT_ACCPAR_BATCH:
        return l->in * l->out * l->kernel * (1 + l->beside);
    case TOPT_ACCPAR_INPUT:
        return batch * l->out * l->map_out;
    default:
        return l->lookup ? 0 : batch * l->in * l->map_in;
    }
}

/* By rows the other half of W is fetched, forward and backward, and of its gradient's sum a half is
 * kept.  By input features half of the output's sum is kept, and the other half of its error is
 * fetched; by output features the other half of the input, and half of its error's sum is kept. */
double topt_tofu_within(const struct topt_accpar_layer *l, double batch,
                        enum topt_accpar_type t)
{
    double w = l->in * l->out * l->kernel * (1 + l->beside);
    double f = batch * l->out * l->map_out,
           in = l->lookup ? 0 : batch * l->in * l->map_in;
    return t == TOPT_ACCPAR_BATCH ? 1.5 * w : t == TOPT_ACCPAR_INPUT ? f : in;
}

/* A sum is kept as the next layer reads it, and who reads the whole fetches the other half whatever
 * half it has. */
double topt_tofu_between(enum topt_accpar_type from, enum topt_accpar_type to, double f,
                         double e)
{
    int rows = from == TOPT_ACCPAR_BATCH, reads_rows = to == TOPT_ACCPAR_BATCH;
    if (from == TOPT_ACCPAR_INPUT || to == TOPT_ACCPAR_OUTPUT || rows == reads_rows)
        return 0;
    return 0.25 * (f + e);
}

double topt_accpar_flops(const struct topt_accpar_layer *l, double batch)
{
    double f = batch * l->out * l->map_out, e = batch * l->in * l->map_in;
    double w = l->in * l->out * l->kernel;
    if (l->lookup) /* rows are added up, and their gradients */
        return 2 * batch * l->map_in * l->out;
    return f * (2 * l->in * l->kernel - 1) + e * (2 * l->out * l->kernel - 1) +
           w * (2 * batch * l->map_out - 1);
}

double topt_accpar_share(double flops, const double rate[2], const double exchange[2])
{
    double low = 0, high = 1;
    if (exchange[0] >= flops / rate[1] + exchange[1])
        return 0;
    if (exchange[1] >= flops / rate[0] + exchange[0])
        return 1;
    for (int i = 0; i < 60; i++) {
        double a = (low + high) / 2;
        double first = a * flops / rate[0] + exchange[0];
        if (first < (1 - a) * flops / rate[1] + exchange[1])
            low = a;
        else
            high = a;
    }
    return (low + high) / 2;
}
