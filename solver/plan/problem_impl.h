/* problem_impl.h - what problem.c, family.c, configs.c, prices.c, table.c, fold.c, toll.c and caps.c share.  Private to these.
 *
 *     node    an operator or hub of the model        edge   a use of a tensor
 *       |  alike ones share                            |  between two families share
 *     family  configurations and their costs         table  costs by class of configuration
 *
 *     place   what the search chooses for: one node, or all nodes at the same place of blocks
 *             that choose alike
 *     link    what the search pays between two places: one edge, or all edges that are alike
 *
 * Where every block is free, places are nodes and links are edges.
 *
 * What is made again in backward is there for one block at a time, the largest of its kind.  Blocks that
 * choose alike pay for it once.  Free ones pay the mean of all, each its part, which adds up and is never
 * more: a problem of free blocks has strategies for less than they cost, and its bounds hold.  What is missing
 * is a point's excess. */
#ifndef TOPT_PROBLEM_IMPL_H
#define TOPT_PROBLEM_IMPL_H

#include "problem.h"
#include "topt_orbits.h"

/* What an alternative of an edge has beside its cost. */
struct edge_fact {
    uint16_t transient : 10; /* topt_transient_code */
    uint16_t remade : 2;     /* which ends' bytes are made again: enum edge_remade */
    uint16_t keep : 1;
};
enum edge_remade { REMADE_FROM = 1, REMADE_TO = 2 };

/* Everything about configurations of alike nodes. */
struct family {
    int op, tensor; /* a representative; op -1: a hub of 'tensor' */
    int next;       /* another family of operators, or hubs of such, that are alike; -1 */
    int n, ninputs;
    struct topt_config *config;
    uint8_t *hub_keep; /* hubs */
    struct topt_cost *cost;
    int64_t *remade;    /* bytes that are made again, ... */
    int among;          /* ... of which each of so many blocks pays its part */
    int64_t *transient; /* rounded */
    int64_t *waiting;   /* bytes of the output where it waits; 0 where no cap applies */
    int nfrom;          /* classes as a producer */
    int32_t *from_class;
    struct topt_edge_end *from_end; /* by class */
    int nto[TOPT_MAX_INPUTS];
    int32_t *to_class[TOPT_MAX_INPUTS];
    struct topt_edge_end *to_end[TOPT_MAX_INPUTS];
};

/* Costs between the classes of two families: by far the most of a problem's memory, which is why
 * an alternative takes 18 bytes, and tolls and searches look at the same. */
struct edge_table {
    int from, to, input; /* families; input of an operator, 0 for a hub */
    int32_t *first;
    struct topt_cost *cost; /* of what stays; once there are tolls, see there */
    struct edge_fact *fact;
    struct topt_cost least;                     /* of both, over all alternatives */
    uint64_t occurs[TOPT_TRANSIENT_CODES / 64]; /* codes of transients, as bits */
    int remakes;        /* some alternative makes something again */
    int64_t *end_bytes; /* of the tensor, by class of the producer, then the consumer */
    /* Numbers of the layouts at the ends, value and gradient of each class of the producer, then
     * of the consumer; and whose moves they are. */
    int32_t *number;
    struct topt_moves *moves;
    int trained; /* gradients come back */
};

struct node {
    int op, tensor; /* op -1: hub */
    int family, place;
};

struct edge {
    int from, to;  /* nodes */
    int op, input; /* consumer, or op -1: into a hub */
    int table, link;
};

/* Nodes of one family that a place stands for. */
struct part {
    int family;
    int64_t times;
    /* under the current caps */
    int32_t *from_class, *to_class[TOPT_MAX_INPUTS];
};

/* What places choose from: the configurations of their families, which have the same list.
 * Shared by places that are alike. */
struct choice {
    int nparts;
    struct part *part;
    int n;
    int32_t *config; /* numbers in the families' lists: those that nothing dominates */
    struct topt_cost *cost;
    int64_t *transient, *waiting;
    int charge_transient, charge_waiting; /* by so many places together; 0: not charged */
    /* under the current caps */
    int nkept;
    int32_t *kept; /* numbers in 'config' */
    struct topt_cost *kept_cost;
};

/* What links pay: a table, so many times, perhaps with its ends exchanged so that no circle
 * arises.  Shared by links that are alike. */
struct toll {
    int table;
    int64_t times;
    int once;       /* charged with what is made again, which counts once */
    int transposed; /* rows are the consumer's classes */
    /* All alternatives, charged: the table's own costs where no other toll needs them, which
     * then are charged in place, or where that changes nothing; else a copy. */
    struct topt_table whole;
    struct topt_cost least; /* of both, over all alternatives */
    int32_t *own_first;
    struct topt_cost *own_cost;
    /* under the current caps: 'whole' where they leave out nothing */
    struct topt_table at;
    int most; /* code of the transients' cap */
    int32_t *kept_first;
    struct topt_cost *kept_cost;
};

struct place {
    int choice;
    const char *name;
};

struct link {
    int from, to; /* places of producer and consumer */
    int from_part, to_part;
    int input, toll;
    int64_t times;
    int once;
};

/* A block of one operator reads its own place: a second place takes the same configuration,
 * and the link leads there. */
struct mirror {
    int place, of; /* places */
    struct topt_cost *cost, *alt;
    int32_t *number, *first;
    struct topt_table table;
};

struct topt_problem {
    struct topt_costing k;
    struct topt_space_options options;
    struct topt_spans spans;
    uint8_t *may_remake; /* by operator: it may be recomputed; NULL: none */
    uint8_t *reread;     /* by tensor: backward may read it */
    int exchanged;       /* memory is time and time is memory */
    int nnodes, nedges, nfamilies, ntables;
    struct node *node;
    struct edge *edge;
    struct family *family;
    struct edge_table *table;
    int *of_op, *of_hub; /* families by the first alike operator, -1: none yet */
    int nplaces, nlinks, nchoices, ntolls, nmirrors;
    struct place *place;
    struct link *link;
    struct choice *choice;
    struct toll *toll;
    struct mirror *mirror;
    struct topt_search_op *search_op;
    struct topt_search_edge *search_edge;
    struct topt_search_problem search;
    struct topt_arena *names;
    /* Prices of moves are floors until they are asked for exactly; NULL: all are exact. */
    struct topt_floors *floors;
    /* Also those that ways between orbits take, once 'by_orbits': of parts. */
    struct topt_orbit_set *orbits;
    int by_orbits;
    struct topt_problem
        *of; /* it is a part of that one, which has its moves (within.c) */
    /* With orbits: how large the space is that they stand for. */
    struct topt_problem_stats listed;
    int nmoves; /* shapes of tensors */
    struct topt_moves **moves;
    int64_t moves_priced;
};

/* Asked before each configuration, and each row of a table, is priced. */
static inline int topt_problem_canceled(const struct topt_problem *p,
                                        struct topt_error *err)
{
    TOPT_PROGRESS_ONE(p->options.progress, priced);
    return p->k.cancel && atomic_load(p->k.cancel)
               ? topt_fail(err, TOPT_ERR_CANCELED, "the search was canceled")
               : 0;
}

/* May operator 'op' be recomputed here? */
static inline int topt_problem_remakes(const struct topt_problem *p, int op)
{
    return p->may_remake && p->may_remake[op];
}

/* family.c: the family of an operator, or (op -1) of a tensor's hub, made where it is new.
 * -1 with an error. */
int topt_problem_family(struct topt_problem *p, int op, int tensor,
                        struct topt_error *err) TOPT_MUST_CHECK;
void topt_family_fini(struct family *f);

/* configs.c: the configurations of a new family. */
int topt_family_list(struct topt_problem *p, struct family *f,
                     struct topt_error *err) TOPT_MUST_CHECK;
/* With axes that are alike in an order that does not depend on their names: what a configuration costs follows from
 * that alone, since within a dimension axes keep their order. */
struct topt_config topt_config_nameless(const struct topt_mesh *m, struct topt_config c);

/* prices.c: what those of operators cost. */
int topt_family_cost(const struct topt_problem *p, struct family *f,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* table.c: the table between two families, listed where it is new, priced later. */
int topt_problem_table(struct topt_problem *p, int from, int to, int input);
/* Of a part of a problem with floors: ask for the exact prices of an entry, to be answered. */
int topt_table_settle(struct topt_problem *p, const struct edge_table *e, int64_t entry,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* Price a table with the moves as they are. */
int topt_table_price(struct topt_problem *p, struct edge_table *e,
                     struct topt_error *err) TOPT_MUST_CHECK;
int64_t topt_table_entries(const struct topt_problem *p, const struct edge_table *e);
void topt_table_fini(struct edge_table *e);

/* room.c: will the tables take no more memory than the options allow? */
int topt_problem_fits(const struct topt_problem *p,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* toll.c: what tolls charge, once all are listed; under a cap; with memory for time, and back. */
int topt_tolls_charge(struct topt_problem *p, struct topt_error *err) TOPT_MUST_CHECK;
void topt_toll_cap(const struct topt_problem *p, struct toll *t, int64_t transient_cap);
void topt_tolls_exchange(struct topt_problem *p);
/* Of alternative 'alt' of an entry of t->at. */
struct edge_fact topt_toll_fact(const struct topt_problem *p, const struct toll *t,
                                int from_class, int to_class, int alt);
/* Bytes that it makes again. */
int64_t topt_toll_again(const struct topt_problem *p, const struct toll *t,
                        int from_class, int to_class, int alt);
void topt_toll_fini(struct toll *t);

/* moves.c: costs of moving tensors of the shape of 'tensor'.  Layouts are numbered (-1: no
 * memory); what is read at a pair has been asked for, and all that was asked for answered. */
struct topt_moves *topt_moves_of(struct topt_problem *p, int tensor,
                                 struct topt_error *err) TOPT_MUST_CHECK;
int topt_moves_number(const struct topt_problem *p, struct topt_moves *m,
                      const struct topt_layout *l);
int topt_moves_ask(struct topt_problem *p, struct topt_moves *m, int from, int to,
                   struct topt_error *err) TOPT_MUST_CHECK;
int topt_moves_answer(struct topt_problem *p, struct topt_moves *m,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* Where prices are floors: ask for the exact one. */
int topt_moves_settle(struct topt_problem *p, struct topt_moves *m, int from, int to,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* Is the price at a pair exact, and not its floor? */
int topt_moves_exact(const struct topt_moves *m, int from, int to);
/* Without what its time rests on. */
struct topt_move_cost topt_moves_at(const struct topt_moves *m, int from, int to);
void topt_moves_fini(struct topt_problem *p);

/* within.c: the part of a problem with floors (or of a part of it) that has the configurations that
 * 'keep' marks, by family and number; families of one place have the same marks.  It borrows from the problem, which must outlive it. */
int topt_problem_within(struct topt_problem *p, uint8_t *const *keep,
                        struct topt_problem **ret,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* every.c: the configurations of a problem with orbits, or 'every' one which they stand for, as a problem of its own:
 * with as many floors, of moves between just these.  How many there are of the latter, as what is searched. */
int topt_problem_again(const struct topt_problem *p, int every, int floors,
                       struct topt_problem **ret, struct topt_error *err) TOPT_MUST_CHECK;
void topt_problem_count_every(struct topt_problem *p);
/* boxes.c: topt_problem_fastest and topt_problem_least where prices are exact. */
int topt_boxes_fastest(struct topt_problem *p, const struct topt_search_options *options,
                       struct topt_solutions *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;
int topt_boxes_least(struct topt_problem *p, const struct topt_search_options *options,
                     int64_t below, struct topt_solutions *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;
/* settle.c: the same where they are floors. */
int topt_settle_fastest(struct topt_problem *p, const struct topt_search_options *options,
                        struct topt_solutions *ret,
                        struct topt_error *err) TOPT_MUST_CHECK;
int topt_settle_least(struct topt_problem *p, const struct topt_search_options *options,
                      int64_t below, struct topt_solutions *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* caps.c: from now on what is in flight counts as memory, or not: of the operators that need most at least,
 * what they need themselves.  Every strategy needs that much beside its sum, and most no more. */
void topt_problem_charge(struct topt_problem *p, int on);
/* frontier.c: topt_problem_frontier where prices are exact; sift.c: where they are floors. */
int topt_caps_frontier(struct topt_problem *p, const struct topt_search_options *options,
                       struct topt_solutions *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;
int topt_sift_frontier(struct topt_problem *p, const struct topt_search_options *options,
                       struct topt_solutions *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* fold.c: places and links of the nodes and edges. */
int topt_problem_fold(struct topt_problem *p, struct topt_error *err) TOPT_MUST_CHECK;
void topt_problem_unfold(struct topt_problem *p); /* frees them */
/* What nodes of some families cost together, by configuration: added to what is there; what is made again counts once,
 * and of what is in flight the most.  1 where that overflows. */
int topt_parts_sum(const struct topt_problem *p, const struct part *part, int nparts,
                   struct topt_cost *cost, int64_t *transient, int64_t *waiting);
int topt_parts_same(const struct part *a, int na, const struct part *b, int nb);

#endif
