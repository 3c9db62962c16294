/* topt_accpar.h - AccPar and HyPar: how a convolutional network is cut over two groups of
 * accelerators, then each group again, down to single boards.
 *
 * AccPar: Song et al., "AccPar: Tensor Partitioning for Heterogeneous Deep Learning
 * Accelerators", HPCA 2020.  HyPar: Song et al., "HyPar: Towards Hybrid Parallelism for Deep
 * Learning Accelerator Array", HPCA 2019.  A cut gives every layer one of three types and one of
 * the groups a share of it; what is exchanged follows from the types of a layer and of its
 * neighbours.  Quantities are elements of tensors and seconds, in doubles, as there.
 * Thread safety: reentrant; networks are only read. */
#ifndef TOPT_ACCPAR_H
#define TOPT_ACCPAR_H

#include "topt_error.h"

enum {
    TOPT_ACCPAR_LAYERS = 512, /* of a network */
    TOPT_ACCPAR_EDGES = 1024,
    TOPT_ACCPAR_LEVELS = 16, /* of cuts: 2^16 boards */
};

/* What a cut splits: the batch (I), input features (II) or output features (III). */
enum topt_accpar_type {
    TOPT_ACCPAR_BATCH,
    TOPT_ACCPAR_INPUT,
    TOPT_ACCPAR_OUTPUT,
    TOPT_ACCPAR_TYPES
};
const char *topt_accpar_type_name(enum topt_accpar_type t); /* "I", "II", "III" */

/* F_{l+1} = F_l W_l; a convolution multiplies by areas of maps and of the kernel. */
struct topt_accpar_layer {
    char name[24];
    int conv;
    double in, out;         /* features, channels */
    double map_in, map_out; /* area of the map that it reads and of the one it writes */
    double kernel;          /* area */
    double beside; /* more weights of this size beside it: tables of a bag, experts */
    /* Rows are looked up, 'map_in' of them a sample: nothing is multiplied, and there is no error
     * of its input. */
    int lookup;
    int recurrent; /* its input is its own output of the step before */
};

/* The output of 'from' is what 'to' reads; or, where it 'joins', is added to the output of
 * 'to': the end of a shortcut. */
struct topt_accpar_edge {
    int from, to, joins;
};

/* Layers stand in an order in which each reads only earlier ones. */
struct topt_accpar_net {
    char name[24];
    double batch;
    int n, nedges;
    struct topt_accpar_layer layer[TOPT_ACCPAR_LAYERS];
    struct topt_accpar_edge edge[TOPT_ACCPAR_EDGES];
};

/* Names, NULL-ended, of the networks that AccPar's evaluation has: alexnet, vgg11 to vgg19,
 * resnet18 to resnet50 (1000 classes, images of 224 x 224).  NOTFOUND names them all. */
const char *const *topt_accpar_nets(void);
int topt_accpar_net(const char *name, double batch, struct topt_accpar_net *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* ---- the tables --------------------------------------------------------------------- */

/* Elements that one side receives within a layer: A(W), A(F_{l+1}) or A(E_l), whatever its
 * share is; what a recurrent layer hands itself aside. */
double topt_accpar_within(const struct topt_accpar_layer *l, double batch,
                          enum topt_accpar_type t);

/* Elements that the side with share 'a' of a layer of type 'from' and share 'b' of the next one,
 * of type 'to', receives between them; 'f' and 'e' are A(F_{l+1}) and A(E_{l+1}).  'joins' as
 * in topt_accpar_edge. */
double topt_accpar_between(enum topt_accpar_type from, enum topt_accpar_type to,
                           int joins, double a, double b, double f, double e);

/* The same where each side stores half of every tensor, and fetches what it lacks. */
double topt_tofu_within(const struct topt_accpar_layer *l, double batch,
                        enum topt_accpar_type t);
double topt_tofu_between(enum topt_accpar_type from, enum topt_accpar_type to, double f,
                         double e);

/* Operations of the three products of a layer: forward, error and gradient. */
double topt_accpar_flops(const struct topt_accpar_layer *l, double batch);

/* The share 'a' of side 1 at which a flops / c1 + x1 = (1 - a) flops / c2 + x2, seconds; 0 or 1
 * where one side is done before the other has exchanged. */
double topt_accpar_share(double flops, const double rate[2], const double exchange[2]);

/* ---- one cut ------------------------------------------------------------------------ */

/* What a group has of a layer: its shares by batch, input and output features, multiplied over
 * all cuts above. */
struct topt_accpar_part {
    double batch, in, out;
};

enum topt_accpar_system {
    TOPT_ACCPAR_DATA, /* every layer over the batch */
    TOPT_ACCPAR_OWT, /* "one weird trick": convolutions over the batch, products by features */
    /* Types I and II, by the elements exchanged alone, halves.  The search sees one path: what
     * consecutive layers exchange, none of what forks and joins. */
    TOPT_ACCPAR_HYPAR,
    TOPT_ACCPAR_ACCPAR, /* all three, by time, shares between unequal groups */
    TOPT_ACCPAR_SYSTEMS,
    /* Tofu (Wang, Huang and Li, EuroSys 2019), no system of AccPar's evaluation: all three, by the
     * elements fetched where every tensor is stored in halves, halves of work. */
    TOPT_ACCPAR_TOFU = TOPT_ACCPAR_SYSTEMS,
    TOPT_ACCPAR_BY_FLOPS /* AccPar, its shares by what groups compute a second alone */
};
const char *topt_accpar_system_name(enum topt_accpar_system s);

/* Two groups: operations and bytes a second of each as a whole. */
struct topt_accpar_sides {
    double flops[2], bytes_per_second[2];
    double element_bytes;
};

struct topt_accpar_cut {
    enum topt_accpar_type type[TOPT_ACCPAR_LAYERS];
    double share[TOPT_ACCPAR_LAYERS]; /* of side 0 */
    double cost;             /* what the search made least: elements or seconds */
    double exchange_seconds; /* of both kinds of exchange, the slower side's */
};

/* The types that cost least by what the system sees: node and edge elimination over types of a
 * series-parallel network, exact.  'part' is what both groups have together of each layer, NULL all of it.
 * INVAL where shortcuts cross. */
int topt_accpar_cut(const struct topt_accpar_net *net,
                    const struct topt_accpar_part *part,
                    const struct topt_accpar_sides *sides, enum topt_accpar_system system,
                    struct topt_accpar_cut *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* The cost of given types, by the plainest sums. */
double topt_accpar_cost(const struct topt_accpar_net *net,
                        const struct topt_accpar_part *part,
                        const struct topt_accpar_sides *sides,
                        enum topt_accpar_system system,
                        const enum topt_accpar_type *type);

/* ---- all cuts ----------------------------------------------------------------------- */

/* Boards of one kind. */
struct topt_accpar_boards {
    char name[48];
    int count; /* a power of two */
    double flops, bytes_per_second;
    /* Boards that stand together in a node, and the rate between these; 0: none do. */
    int per_node;
    double node_bytes_per_second;
    /* A group of boards sends by one link, however many they are; else each by its own. */
    int one_link;
};

struct topt_hw;
enum { TOPT_ACCPAR_KINDS = 2 };
/* What a profile has: its groups, only the one of that name where 'group' is not NULL; and how
 * long a number of the type is that it computes in. */
int topt_accpar_boards(const struct topt_hw *hw, const char *group,
                       struct topt_accpar_boards ret[TOPT_ACCPAR_KINDS], int *ret_kinds,
                       double *ret_element_bytes, struct topt_error *err) TOPT_MUST_CHECK;

struct topt_accpar_answer {
    double seconds; /* of a step */
    double compute_seconds, exchange_seconds;
    int levels;
    /* The cuts from the whole array down to a board, on the way to the slowest one. */
    struct topt_accpar_cut cut[TOPT_ACCPAR_LEVELS];
};

/* Cut between the kinds first (one or two of them), then each kind in halves. */
int topt_accpar_solve(const struct topt_accpar_net *net,
                      const struct topt_accpar_boards *boards, int kinds,
                      double element_bytes, enum topt_accpar_system system,
                      struct topt_accpar_answer *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
