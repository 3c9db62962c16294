/* planning.h - what the planning of one request has at hand at each of its steps: the numbers of
 * micro-batches with the model of each, the stage of tensor parallelism, pins, the work done so
 * far, and the cache of variants.  Private to plan/. */
#ifndef TOPT_PLANNING_H
#define TOPT_PLANNING_H

#include "degrees.h"
#include "pins.h"
#include "topt_question.h"
#include "topt_tensor.h"

#include <pthread.h>

struct topt_memo;
struct topt_grid_search;

/* Lower bounds of parameters' sizes over all devices: of all, of experts', and of those replicated over tensor ranks. */
struct topt_parameter_sums {
    struct topt_least_parameters all, of_experts, replicated;
};

/* Models by number of micro-batches are made when asked for, by any of several threads. */
struct topt_planning {
    const struct topt_request *request;
    /* where tensor parallelism of the uniform space may lie now */
    enum topt_tensor_where tensor;
    struct topt_tensor_map
        split,   /* what tensor parallelism does, where the row has rules */
        beside,  /* ... of the model of context ranks */
        context; /* what context parallelism does, where it is planned */
    /* The model that context ranks split; NULL: no context parallelism is planned. */
    const struct topt_model *apart;
    int sparse;    /* the model has sparse tables */
    int64_t heads; /* tensor parallelism divides it; 0: no attention */
    struct topt_parameter_sums parameters;
    /* The same of what rests on the host. */
    struct topt_least_parameters away, away_of_experts;
    int64_t experts; /* expert parallelism divides it; 0: it is not looked at */
    /* Bytes of the activations that backward reads, of the whole batch; without and with context ranks. */
    double activation_bytes[2];
    int layers,
        most_chunks; /* that pipeline stages can be cut between, and into; 0: none */
    struct topt_stage_units units; /* of these */
    int loss_unit,
        losses; /* the unit of the loss (-1: there is none), and how many losses there are */
    int batch_sums; /* other operators add up over samples inside of a pass, as batch norm does */
    struct topt_parameter_sums *in_unit; /* by unit; owned; NULL: no layers can be cut */
    int recomputes;                      /* some operator can be recomputed in backward */
    /* What is recomputed where anything is, bits of enum topt_recompute_module: whole layers, or what was asked for;
     * and the bytes that backward reads then and that are kept, at least, of the whole batch, without and with
     * context ranks. */
    int modules;
    double kept_bytes[2];
    double
        input_bytes; /* what layers read that stages recompute as a whole; 0: not known */
    struct topt_pins pins; /* of the request */
    int64_t work;          /* of searches and their pricing so far */
    int least_is_a_point;  /* of a frontier: its search too ends where work is done */
    /* Why a part of the space was not searched, as an error says it; "": all was. */
    char too_large[240];
    /* The memo of the request's problem (memo.h), which gets what is missing; borrowed,
     * NULL: there is none. */
    struct topt_memo *memo;
    /* grids of single pipeline stages, owned; grid.c closes them: */
    struct topt_grid_search *parts;
    void (*close_parts)(struct topt_planning *m);
    int n;
    pthread_mutex_t
        lock; /* guards 'at', whose members do not change once they are known */
    /* 'n' entries of the model without context ranks, and, if context parallelism is planned, as many after them of the model
     * with them. */
    struct topt_micro {
        int64_t batches;
        const struct topt_model *model; /* NULL: not made yet */
        struct topt_model *owned;       /* NULL for the request's own */
        struct topt_settings settings;
        int tables; /* are some tables parameters that others share? */
    } * at;
};

/* All divisors of the batch where micro-batches are searched, or are where nothing fits without,
 * ascending; one number else. */
int topt_planning_init(struct topt_planning *m, const struct topt_request *r,
                       struct topt_error *err) TOPT_MUST_CHECK;

void topt_planning_fini(struct topt_planning *m);

/* The model that degrees are planned with, of the whole batch. */
const struct topt_model *topt_planning_model(const struct topt_planning *m,
                                             const struct topt_degrees *d);

/* For options of a space: the framework's tensor parallelism, NULL: any; and whether dimensions
 * of positions may be split. */
const struct topt_tensor_map *topt_planning_tensor(const struct topt_planning *m,
                                                   const struct topt_degrees *d);
int topt_planning_positions(const struct topt_planning *m);

/* The entry of the degrees' micro-batches, with its model; NULL with an error.  Any thread may ask. */
struct topt_micro *topt_planning_at(struct topt_planning *m, const struct topt_degrees *d,
                                    struct topt_error *err);

/* Is the request to be answered with what there is: told so, or its counted work done? */
int topt_planning_over(const struct topt_planning *m);

/* Does a search that failed leave an answer to what it was a part of: is that over, or was the
 * search too large? */
int topt_planning_gave_up(const struct topt_planning *m, const struct topt_error *err);

/* The largest number of pipeline stages that is looked at (0 or 1: none); is 'stages' one of the numbers?  The
 * schedules (bits of enum topt_order_row) of degrees with stages, chunks and micro-batches; -1 where there is
 * none of any larger number of chunks either. */
int topt_planning_most_stages(const struct topt_planning *m);
int topt_planning_stages(const struct topt_planning *m, int stages);
int topt_planning_orders(const struct topt_planning *m, const struct topt_degrees *d);

/* Bytes that backward reads and that are kept, at least, of the whole batch, with the degrees' recomputation. */
double topt_planning_kept(const struct topt_planning *m, const struct topt_degrees *d);

/* May so many ranks share out the positions of a sample?  As many as are asked for; else of long samples alone. */
int topt_planning_contexts(const struct topt_planning *m, int64_t ranks);

/* Go on where another left off, and back. */
void topt_planning_resume(struct topt_planning *m, const struct topt_planning *from);

/* Set where tensor parallelism may lie at attempt '*stage', from 0 on, and count that up.  A last
 * resort, such as tensor parallelism over nodes, is an attempt of its own, for where nothing fits
 * without.  Returns 0 past the last attempt. */
int topt_planning_resort(struct topt_planning *m, int *stage);

/* Another question about the same model, such as that of a smaller space, planned beside this one.
 * Its planning points into it: it stays where it is. */
struct topt_beside {
    struct topt_request request;
    struct topt_planning planning;
};

int topt_beside_init(struct topt_beside *b, struct topt_request request,
                     struct topt_error *err) TOPT_MUST_CHECK;

void topt_beside_fini(struct topt_beside *b);

#endif
