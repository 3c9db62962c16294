/* alone.c - see alone.h. */
#include "alone.h"

static int lower(const struct topt_model *m, struct topt_alone *a, struct topt_error *err)
{
    struct topt_settings s = topt_settings_default();
    struct topt_mesh one;
    s.optimizer = TOPT_SGD;
    if (topt_mesh_init(&one, 1, 1, err))
        return -1;
    a->hw = topt_hw_load("lab-cpu", err); /* nothing is costed by it */
    a->router = a->hw ? topt_router_create(a->hw, &one) : NULL;
    a->strategy = a->router ? topt_strategy_create(m) : NULL;
    if (!a->strategy)
        return a->hw ? topt_nomem(err, NULL) : -1;
    return topt_lower(m, &one, &s, a->strategy, a->router, 0, &a->program, err);
}

int topt_alone_open(const struct topt_model *m,
                    const struct topt_session_options *options, struct topt_alone *ret,
                    struct topt_error *err)
{
    *ret = (struct topt_alone){.hw = NULL};
    return lower(m, ret, err) || topt_comm_single(&ret->comm, err) ||
                   topt_device_open_host(TOPT_F32, &ret->device, err) ||
                   topt_session_create(ret->program, ret->comm, &ret->device, options,
                                       &ret->session, err)
               ? -1
               : 0;
}

void topt_alone_close(struct topt_alone *a)
{
    topt_session_destroy(a->session);
    topt_device_close(&a->device);
    topt_comm_destroy(a->comm);
    topt_program_destroy(a->program);
    topt_strategy_destroy(a->strategy);
    topt_router_destroy(a->router);
    topt_hw_destroy(a->hw);
}
