/* dataflow.h - the dataflow of a micro-batch: what is moved where before which operator
 * runs, and the lifetime of each value and gradient.  Private to lower/.
 *
 * An emitter is called for each event: that of lower.c writes the program, that of
 * evaluator.c counts live bytes.  The dataflow knows no layouts and no bytes, an emitter no
 * uses. */
#ifndef TOPT_DATAFLOW_H
#define TOPT_DATAFLOW_H

#include "fragment.h"

enum { TOPT_FLOW_HUB = -1 }; /* in place of an input: the operator's output */

/* Values and gradients go by the emitter's numbers, from 0; -1 stands for none.  What
 * brings something returns the number of what it made, or of its source where nothing
 * has to be moved, or -1 (error filled); the source is not released. */
struct topt_emitter {
    /* Does the operator read its input where that waits? */
    int (*in_place)(struct topt_emitter *c, int op, int input);
    /* Is what waits a sum that is still to be made? */
    int (*partial)(struct topt_emitter *c, int tensor);
    /* A tensor's value, and its gradient: of an operator's input, or of its output
     * (TOPT_FLOW_HUB), where that has a hub:
     *
     *     producer -- fetch, HUB -----> where it waits -- fetch ----> consumer
     *     producer <- give_grad, HUB -- where it waits <- give_grad -- consumer */
    int (*fetch)(struct topt_emitter *c, int op, int input, int backward, int value);
    int (*give_grad)(struct topt_emitter *c, int op, int input, int grad);
    /* -1: failed.  NULL: adding makes and takes nothing. */
    int (*add)(struct topt_emitter *c, int op, int grad, int into);
    /* The operator's output, from values of its inputs. */
    int (*forward)(struct topt_emitter *c, int op, enum topt_pass pass, const int *input);
    /* Gradients of the inputs (-1: needs none) from that of the output (-1: the loss)
     * and the inputs that are read (others -1).  -1: failed. */
    int (*backward)(struct topt_emitter *c, int op, int grad, const int *input,
                    int *ret_input_grad);
    void (*release)(struct topt_emitter *c, int what);
    /* NULL: what is kept is no other. */
    void (*keep)(struct topt_emitter *c, int value, enum topt_class cls);
};

/* Room for one dataflow at a time, of any strategy of the model. */
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
/* One micro-batch of a strategy that fits the model.  INVAL where it keeps too little. */
int topt_dataflow_run(struct topt_dataflow *o, const struct topt_strategy *s,
                      struct topt_emitter *c, struct topt_error *err) TOPT_MUST_CHECK;

#endif
