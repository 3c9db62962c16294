/* alone.h - a model on one device of this process: its program and a session, without a plan. */
#ifndef TOPT_ALONE_H
#define TOPT_ALONE_H

#include "topt_runtime.h"

struct topt_alone {
    struct topt_hw *hw;
    struct topt_router *router;
    struct topt_strategy *strategy;
    struct topt_program *program;
    struct topt_comm *comm;
    struct topt_device device;
    struct topt_session *session;
};

/* In f32, with plain gradient descent, which has no states.  Borrows 'm' and what 'options' hold.
 */
int topt_alone_open(const struct topt_model *m,
                    const struct topt_session_options *options, struct topt_alone *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;
void topt_alone_close(struct topt_alone *a); /* an empty one, too */

#endif
