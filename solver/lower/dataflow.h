/* dataflow.h - the dataflow of a micro-batch: the order of operators and moves, and the
 * lifetime of each value and gradient.  Private to lower/.
 *
 * It calls an emitter for each event: that of lower.c writes the program, that of
 * evaluator.c counts live bytes.  The dataflow knows neither layouts nor bytes; the emitter
 * does not know which event uses a tensor last. */
#ifndef TOPT_DATAFLOW_H
#define TOPT_DATAFLOW_H

#include "fragment.h"

enum { TOPT_FLOW_HUB = -1 }; /* in place of an input: the operator's output */

/* Values and gradients have numbers that the emitter gives, from 0; -1: none.  fetch,
 * give_grad and forward return the number of the result, which is the source's where nothing
 * has to be moved, or -1 with the error; they do not release the source. */
struct topt_emitter {
    /* Is the layout in which the operator reads its input that of the hub, or of the producer? */
    int (*in_place)(struct topt_emitter *c, int op, int input);
    /* Is the tensor's value there a partial sum? */
    int (*partial)(struct topt_emitter *c, int tensor);
    /* Moves of a tensor's value and of its gradient, between the operator and the tensor's
     * hub: of an input, or of the output (TOPT_FLOW_HUB).  A tensor with one consumer has no
     * hub and moves from the producer.
     *
     *     producer -- fetch, HUB -----> hub -- fetch ----> consumer
     *     producer <- give_grad, HUB -- hub <- give_grad -- consumer */
    int (*fetch)(struct topt_emitter *c, int op, int input, int backward, int value);
    int (*give_grad)(struct topt_emitter *c, int op, int input, int grad);
    /* Adds a gradient to another; -1: failed.  May be NULL. */
    int (*add)(struct topt_emitter *c, int op, int grad, int into);
    /* Runs the operator: its output, from the values of its inputs. */
    int (*forward)(struct topt_emitter *c, int op, enum topt_pass pass, const int *input);
    /* Runs it backward: the gradients of its inputs (-1: of one that needs none), from that
     * of its output (-1: of the loss) and the inputs that it reads (others -1).  -1: failed. */
    int (*backward)(struct topt_emitter *c, int op, int grad, const int *input,
                    int *ret_input_grad);
    void (*release)(struct topt_emitter *c, int what);
    /* The value stays for backward.  May be NULL. */
    void (*keep)(struct topt_emitter *c, int value, enum topt_class cls);
};

/* Storage for the dataflow of one strategy of the model at a time. */
struct topt_dataflow {
    const struct topt_model *m; /* borrowed, as is the strategy at hand */
    const struct topt_strategy *s;
    struct topt_emitter *c;
    struct topt_flow_tensor *tensor; /* by tensor */
    struct topt_flow_use *use;       /* at op * TOPT_MAX_INPUTS + input */
    uint8_t *demanded;               /* by operator: to be run again in backward */
    struct topt_error *err;
};
int topt_dataflow_init(struct topt_dataflow *o, const struct topt_model *m,
                       struct topt_error *err) TOPT_MUST_CHECK;
void topt_dataflow_fini(struct topt_dataflow *o);
/* Runs one micro-batch of a strategy that fits the model.  INVAL where backward needs a value that the strategy
 * neither keeps nor recomputes. */
int topt_dataflow_run(struct topt_dataflow *o, const struct topt_strategy *s,
                      struct topt_emitter *c, struct topt_error *err) TOPT_MUST_CHECK;

#endif
