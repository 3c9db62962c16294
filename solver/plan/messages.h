/* messages.h - bounds on what strategies weigh, by messages between places.  Private to plan/.
 *
 * A weighing counts memory and time together, each times a factor.  Of every configuration of every place a bound
 * says what all strategies with it weigh at least; what is beyond a limit is marked.  Tables of edges are not needed:
 * an entry's weight is worked out from the layouts at its ends where it is looked at. */
#ifndef TOPT_MESSAGES_H
#define TOPT_MESSAGES_H

#include "problem_impl.h"

/* Forward and back by turns: with floors for moves, and then with exact prices for those that a bound hangs on. */
enum {
    MESSAGES_FLOOR_SWEEPS = 2, /* more hardly raise a bound */
    MESSAGES_SWEEPS = 4
};

/* A place: what the search chooses for. */
struct spot {
    int n, nparts;
    struct part *part;
    /* The first place of the same nodes, which has what follows for all, and how many those are. */
    int like, times;
    struct topt_cost *cost;
    int64_t *transient, *waiting;
    double *left;           /* by configuration: weight that was not moved on */
    uint8_t *out;           /* beyond the limit */
    int first[2], nties[2]; /* its ties to later places, and to earlier ones */
};

/* One end of a tie. */
struct end {
    int place, nclasses;
    const int32_t *class; /* by configuration */
    const struct topt_edge_end *at;
    int32_t *number; /* of the layouts of value and gradient, by class */
    double *moved;   /* weight that was moved onto the tie, by class */
};

/* Edges between two places that have one table. */
struct tie {
    struct end end[2]; /* producer, consumer */
    int next[2];       /* of the ties of the earlier place, and of the later one */
    int table, trained;
    double times;
    struct topt_moves *moves;
};

/* A class and the weight that comes with it. */
struct weighed {
    double weight;
    int class;
};

struct messages {
    struct topt_problem *p;
    struct topt_error *err;
    struct spot *spot;
    struct tie *tie;
    int nties, nclasses;                    /* most of an end */
    double by_memory, by_time, bound, most; /* of this weighing; 'most': the limit */
    int exact;                              /* what is lightest has exact prices */
    /* scratch, by class */
    double *given, *passed;
    double *room; /* what may be passed: a class that is passed more goes */
    struct weighed *order, *found;
    int *listed, *open;
    double *before; /* by configuration */
};

/* Places and ties of a problem that has places and families, and no tables yet; LIMIT where sums overflow.  To be freed
 * even after an error. */
int topt_messages_init(struct messages *m, struct topt_problem *p,
                       struct topt_error *err) TOPT_MUST_CHECK;
void topt_messages_fini(struct messages *m);
/* Nothing is marked. */
void topt_messages_clear(struct messages *m);
/* Mark what can't be part of any strategy that is no heavier than the heaviest of 'n' costs; what is marked already
 * stays so.  'sweeps' 0: by places alone, of which only the first of those that are alike is looked at.  '*ret': what
 * all strategies weigh at least, as a part of that. */
int topt_messages_weigh(struct messages *m, double by_memory, double by_time,
                        const struct topt_cost *cost, int n, int sweeps,
                        double *ret) TOPT_MUST_CHECK;
/* Exact prices for the operators that are not marked, where there are floors. */
int topt_messages_settle(struct messages *m) TOPT_MUST_CHECK;
/* Entries of all tables: between the configurations that 'keep' marks, by place; NULL: between all. */
int64_t topt_messages_entries(const struct messages *m, uint8_t *const *keep);

#endif
