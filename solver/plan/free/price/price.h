/* price.h - what a problem is made of, and how its parts are made.  Private to plan/free.
 *
 *     node    an operator or hub of the model        edge   a use of a tensor
 *       |  alike ones share                            |  between two families share
 *     family  configurations and their costs         table  costs by class of configuration
 *
 *     variable  what the search chooses for, from a domain: one node, or all nodes at the
 *               same position of blocks that choose alike
 *     term      what the search pays between two variables: one edge, or all that are alike
 *
 * Where every block is free, variables are nodes and terms are edges.
 *
 * What is recomputed in backward is there for one block at a time, the largest of its
 * kind.  Blocks that choose alike pay for it once.  Free ones pay the mean of all, each
 * its part, which adds up and is never more: a problem of free blocks has strategies for
 * less than they cost, and its bounds hold.  The difference is the point's excess.
 *
 * Where a framework recomputes by unit (settings.by_unit), the variables of the unit that
 * recomputes most, by the prices of its operators, pay for all, each as a block's would.
 * Another unit may come to recompute more by its choices, which is a point's excess. */
#ifndef TOPT_PRICE_H
#define TOPT_PRICE_H

#include "free.h"

/* Bytes that a problem's tables may take by default: most machines have that to
 * spare.  More is refused; GPT-3's whole frontier in full on 64. */
#define TOPT_PROBLEM_MAX_BYTES ((int64_t)4 << 30)

/* Counted work of pricing a configuration, or a row of a table of moves: pairs of points that
 * are added up in the same time. */
enum { PRICED_WORK = 1 << 16 };

/* An alternative of an edge, beside its cost. */
struct edge_fact {
    uint16_t transient : 10; /* topt_transient_code */
    uint16_t recomputed : 2; /* which ends' bytes are recomputed: enum edge_recomputed */
    uint16_t keep : 1;
};

enum edge_recomputed { RECOMPUTED_FROM = 1, RECOMPUTED_TO = 2 };

/* Edges see a configuration from several sides: as the producer of its output, and as the consumer of
 * each input. */
enum { AS_PRODUCER, AS_CONSUMER, SIDES = AS_CONSUMER + TOPT_MAX_INPUTS };

/* A configuration of alike nodes. */
struct choice {
    struct topt_config config;
    uint8_t hub_keep; /* hubs */
    struct topt_cost cost;
    /* of these, bytes that stay beside passes of micro-batches, and time before and after */
    struct topt_cost ends;
    int64_t forward_ns; /* of the time, that of forward passes */
    int64_t added_ns;   /* ... adding gradients of micro-batches up */
    int64_t recomputed; /* bytes that are recomputed */
    int64_t transient;  /* rounded */
    int64_t waiting;    /* bytes of the output where it waits; 0 where no cap applies */
    int32_t class[SIDES];
};

/* Everything about configurations of alike nodes. */
struct family {
    int op, tensor; /* a representative and its output; op -1: a hub of 'tensor' */
    int next;       /* another family of operators, or hubs of such, that are alike; -1 */
    int among;      /* each of so many blocks pays its part of what is recomputed */
    int n, ninputs;
    int first; /* number of its first configuration among those of all families */
    struct choice *at;
    struct side {
        int n; /* classes */
        struct topt_edge_end *end;
    } side[SIDES];
};

/* Costs between the classes of two families: by far the most of a problem's memory, which
 * is why an alternative takes 18 bytes, and multiplicities and searches look at the
 * same. */
struct edge_table {
    int from, to, input; /* families; input of an operator, 0 for a hub */
    int32_t *first;
    struct topt_cost *cost; /* of what stays; once there are multiplicities, see there */
    struct edge_fact *fact;
    struct topt_cost least; /* of both, over all alternatives */
    struct edge_passes {
        int64_t least_ns[2], most_ns[2]; /* forward, backward, of its alternatives */
        int of_tokens;                   /* that go to experts, or come back */
        int seen;
    } passes;
    uint64_t occurs[TOPT_TRANSIENT_CODES / 64]; /* codes of transients, as bits */
    int recomputes;     /* some alternative makes something again */
    int64_t *end_bytes; /* of the tensor, by class of the producer, then the consumer */
    /* Numbers of the layouts at the ends, value and gradient of each class of the
     * producer, then of the consumer; and whose moves they are. */
    int32_t *number;
    struct topt_moves *moves;
    int trained; /* gradients come back */
};

struct node {
    int op, tensor; /* op -1: hub */
    int family, variable;
};

struct edge {
    int from, to;  /* nodes */
    int op, input; /* consumer, or op -1: into a hub */
    int table, term;
};

/* Nodes of one family that a variable stands for. */
struct domain_part {
    int family;
    int64_t times;
    int64_t paying; /* of these, nodes of the unit that pays for what is recomputed */
    /* under the current caps */
    int32_t *class[SIDES];
};

/* The domain of variables: the configurations of their families, which have the same list.
 * Shared by variables that are alike. */
struct domain {
    int nparts;
    struct domain_part *part;
    int n;
    struct value {
        int32_t config; /* its number in the families' lists */
        struct topt_cost cost;
        int64_t transient, waiting;
    } * at; /* those that nothing dominates */
    /* by how many variables together; 0: not charged */
    int charge_transient, charge_waiting;
    /* under the current caps */
    int nkept;
    int32_t *kept; /* numbers in 'at' */
    struct topt_cost *kept_cost;
};

/* The costs of terms: a table, so many times, perhaps with its ends exchanged so that no
 * circle arises.  Shared by terms that are alike. */
struct multiplicity {
    int table;
    int64_t times;
    int64_t once;   /* charged so often with what is recomputed: once, or by unit */
    int transposed; /* rows are the consumer's classes */
    /* All alternatives, charged: the table's own costs where no other multiplicity needs
     * them, which then are charged in place, or where that changes nothing; else a
     * copy. */
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

struct variable {
    int domain;
    const char *name;
    int terms, last_term; /* the first and the last that lead here, from 1 on */
};

struct term {
    int from, to; /* variables of producer and consumer */
    int from_part, to_part;
    int input, multiplicity;
    int64_t times, once;
    int64_t paying; /* edges into the unit that pays for what is recomputed */
    int next; /* number, from 1 on, of the next that leads to the same variable; 0: none */
};

/* A block of one operator reads its own variable: a second variable takes the same
 * configuration, and the term leads there. */
struct mirror {
    int variable, of;          /* variables */
    struct topt_cost *nothing; /* of configurations and alternatives */
    int32_t *number, *first;
    struct topt_table table;
};

struct topt_problem {
    struct topt_costing k;
    struct topt_space_options options;
    struct topt_spans spans;
    uint8_t *may_recompute; /* by operator: it may be recomputed; NULL: none */
    uint8_t *reread;        /* by tensor: backward may read it */
    int paying;             /* the unit that pays for what is recomputed; -1: blocks do */
    int swapped;            /* memory is time and time is memory */
    int nnodes, nedges, nfamilies, ntables, last_table;
    int nchoices; /* of all families */
    struct node *node;
    struct edge *edge;
    struct family *family;
    struct edge_table *table;
    int *of_op, *of_hub; /* families by the first alike operator, -1: none yet */
    int nvariables, nterms, ndomains, nmultiplicities, nmirrors;
    struct variable *variable;
    struct term *term;
    struct domain *domain;
    struct multiplicity *multiplicity;
    struct mirror *mirror;
    struct topt_search_op *search_op;
    struct topt_search_edge *search_edge;
    struct topt_search_problem search;
    struct topt_arena *arena; /* what is as large as it is from the start */
    /* Prices of moves are bounds until they are asked for exactly; NULL: all are
     * exact. */
    struct topt_byte_bounds *byte_bounds;
    /* Also those that ways between orbits take, once 'by_orbits': of parts. */
    struct topt_symmetry_bounds *symmetry_bounds;
    int by_orbits;
    /* the problem that this is a part of, which has its moves (narrowed_problem.c) */
    struct topt_problem *of;
    int nmoves; /* shapes of tensors */
    struct topt_moves **moves;
    int64_t moves_priced;
};

/* The domain of a variable. */
static inline struct domain *topt_domain(const struct topt_problem *p, int variable)
{
    return &p->domain[p->variable[variable].domain];
}

/* The classes at both ends of a table. */
static inline const struct side *topt_rows(const struct topt_problem *p,
                                           const struct edge_table *e)
{
    return &p->family[e->from].side[AS_PRODUCER];
}

static inline const struct side *topt_cols(const struct topt_problem *p,
                                           const struct edge_table *e)
{
    return &p->family[e->to].side[AS_CONSUMER + e->input];
}

/* Is the request's counted work done? */
static inline int topt_problem_is_over(const struct topt_problem *p)
{
    return p->options.work && p->options.max_work &&
           *p->options.work >= p->options.max_work;
}

/* Asked before each configuration, and each row of a table, is priced, by one thread. */
static inline int topt_problem_canceled(const struct topt_problem *p,
                                        struct topt_error *err)
{
    TOPT_PROGRESS_ONE(p->options.progress, priced);
    if (p->options.work)
        *p->options.work += PRICED_WORK;
    if (topt_problem_is_over(p))
        return topt_fail(err, TOPT_ERR_CANCELED, "the search was stopped");
    return p->k.cancel && atomic_load(p->k.cancel)
               ? topt_fail(err, TOPT_ERR_CANCELED, "the search was canceled")
               : 0;
}

/* The operator that a node is, or whose output it is the hub of. */
static inline int topt_node_operator(const struct topt_problem *p, const struct node *n)
{
    return p->k.model->tensor[n->tensor].producer;
}

/* Is a node in the unit that pays for what is recomputed? */
static inline int topt_node_pays(const struct topt_problem *p, const struct node *n)
{
    return p->paying >= 0 && p->k.model->unit[topt_node_operator(p, n)] == p->paying;
}

/* How often a variable pays for what a node of it recomputes: once, or for each that stands
 * in the unit that pays. */
static inline int64_t topt_parts_once(const struct topt_problem *p,
                                      const struct domain_part *part, int n)
{
    int64_t paying = 0;
    for (int k = 0; k < n; k++)
        paying += part[k].paying;
    return p->k.settings->by_unit ? paying : 1;
}

/* May operator 'op' be recomputed here?  Where nothing is free to choose, enum topt_again. */
static inline int topt_problem_may_recompute(const struct topt_problem *p, int op)
{
    return p->may_recompute ? p->may_recompute[op] : 0;
}

/* ---- family.c: configurations of alike operators, and of alike hubs ---------------- */

/* The family of an operator, or (op -1) of a tensor's hub, made where it is new.
 * -1 with an error. */
int topt_problem_family(struct topt_problem *p, int op, int tensor,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* Price a family whose operator or tensor is set; what it holds, unlike the rest of the problem, is to be freed on
 * failure too. */
int topt_make_family(struct topt_problem *p, struct family *f,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_family_fini(struct family *f);

/* ---- moves.c: what it costs to move tensors of one shape, each pair once ----------- */

/* Costs of moving tensors of the shape of 'tensor'.  Layouts are numbered (-1: no
 * memory); what is read at a pair has been asked for, and all that was asked for
 * answered. */
struct topt_moves *topt_moves_of(struct topt_problem *p, int tensor,
                                 struct topt_error *err) TOPT_MUST_CHECK;

int topt_moves_number(const struct topt_problem *p, struct topt_moves *m,
                      const struct topt_layout *l);

int topt_moves_ask(struct topt_problem *p, struct topt_moves *m, int from, int to,
                   struct topt_error *err) TOPT_MUST_CHECK;

int topt_moves_answer(struct topt_problem *p, struct topt_moves *m,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* Where prices are bounds: ask for the exact one. */
int topt_moves_ask_exact(struct topt_problem *p, struct topt_moves *m, int from, int to,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* Without what its time rests on. */
struct topt_move_cost topt_moves_at(const struct topt_moves *m, int from, int to);

void topt_moves_fini(struct topt_problem *p);

/* ---- edge_table.c: what edges cost, by class --------------------------------------- */

/* The table between two families, listed where it is new, priced later. */
int topt_edge_table_of(struct topt_problem *p, int from, int to, int input);

/* Ask for the exact prices of an entry of a part of a problem with bounds, to be answered. */
int topt_table_ask_exact(struct topt_problem *p, const struct edge_table *e,
                         int64_t entry, struct topt_error *err) TOPT_MUST_CHECK;

/* Price all tables with the moves as they are.  They are most of the work and of the memory: LIMIT
 * before the first where they would take more memory than the options allow. */
int topt_tables_price(struct topt_problem *p, struct topt_error *err) TOPT_MUST_CHECK;

int topt_table_price(struct topt_problem *p, struct edge_table *e,
                     struct topt_error *err) TOPT_MUST_CHECK;

int64_t topt_table_entries(const struct topt_problem *p, const struct edge_table *e);

void topt_table_fini(struct edge_table *e);

/* ---- edge_multiplicity.c: what terms pay ------------------------------------------- */

/* Charge the multiplicities once all are listed; charge one under a cap; exchange memory and
 * time, and back. */
int topt_multiplicities_charge(struct topt_problem *p,
                               struct topt_error *err) TOPT_MUST_CHECK;

void topt_multiplicity_cap(const struct topt_problem *p, struct multiplicity *t,
                           int64_t transient_cap);

void topt_multiplicities_exchange(struct topt_problem *p);

/* An alternative of an entry of of->at; its facts, and the bytes that it recomputes. */
struct taken_edge {
    const struct multiplicity *of;
    int from_class, to_class, alt;
};
struct edge_fact topt_taken_fact(const struct topt_problem *p, struct taken_edge x);
int64_t topt_taken_recomputed(const struct topt_problem *p, struct taken_edge x);

/* The most that an alternative of a table recomputes. */
int64_t topt_table_recomputed_most(const struct topt_problem *p,
                                   const struct edge_table *e);

/* ---- block_folding.c: blocks that choose alike, as one block ----------------------- */

/* Variables and terms of the nodes and edges. */
int topt_fold_blocks(struct topt_problem *p, struct topt_error *err) TOPT_MUST_CHECK;

void topt_unfold_blocks(struct topt_problem *p); /* frees them */

/* ---- narrowed_problem.c: problems with some of the configurations of another ------- */

/* The part of a problem with bounds (or of a part of it) that has the configurations up to the
 * 'last' level, by their numbers among all; families of one variable have the same levels.  It
 * borrows from the problem, which must outlive it. */
int topt_narrowed_problem(struct topt_problem *p, const uint16_t *level, int last,
                          struct topt_problem **ret,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* The configurations of a problem with orbits, or 'every' one which they stand for, as a
 * problem of its own: with as many bounds, of moves between just these.  How many there
 * are of the latter, as what is searched. */
int topt_problem_of_orbits(const struct topt_problem *p, int every, int bounds,
                           struct topt_problem **ret,
                           struct topt_error *err) TOPT_MUST_CHECK;

#endif
