/* spank_topt.c - the plugin as Slurm sees it: callbacks, sent on by context to a role.
 *
 *     sbatch, salloc, srun   init: register options     init_post_opt: submit.c
 *     slurmstepd             init: register options     task_init: step.c
 *     slurmd, prolog, epilog nothing
 *
 * It is loaded into every command and every step of the site, so it does nothing unless a
 * --topt-* option or a plan is there, and no callback ever returns an error: a submission is
 * refused by leaving the command with status 1 after one line, which an `optional` plugin
 * can't do otherwise, and errors from remote callbacks can drain a node. */
#include <slurm/spank.h>
#include <stdlib.h>

#include "ask.h"
#include "roles.h"

SPANK_PLUGIN(topt, 1)

/* Options of this process; callbacks may come several times, the last value stays. */
static struct topt_ask the_ask;

static int take_option(int which, const char *value, int remote)
{
    if (remote)
        return ESPANK_SUCCESS;
    if (which < 0 || which >= TOPT_ASK_COUNT)
        return ESPANK_BAD_ARG;
    return topt_ask_set(&the_ask, (enum topt_ask_option)which, value) ? ESPANK_ERROR
                                                                      : ESPANK_SUCCESS;
}

static int submitting(void)
{
    spank_context_t ctx = spank_context();
    return ctx == S_CTX_LOCAL || ctx == S_CTX_ALLOCATOR;
}

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (!submitting() && spank_context() != S_CTX_REMOTE)
        return ESPANK_SUCCESS;
    if (submitting())
        topt_submit_begin();
    for (int i = 0; i < TOPT_ASK_COUNT; i++) {
        const struct topt_ask_row *row = &topt_ask_table[i];
        struct spank_option option = {.name = (char *)row->option,
                                      .arginfo = (char *)row->arg,
                                      .usage = (char *)row->help,
                                      .has_arg = row->kind == TOPT_ASK_IS_FLAG      ? 0
                                                 : row->kind == TOPT_ASK_IS_ELASTIC ? 2
                                                                                    : 1,
                                      .val = i,
                                      .cb = take_option};
        if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
            slurm_error("topt: can't register --%s", row->option);
    }
    return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
    int rc = submitting() ? topt_submit(spank, &the_ask, argc, argv) : 0;
    if (rc)
        exit(rc < 0 ? 1 : 0);
    return ESPANK_SUCCESS;
}

int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
    if (spank_context() == S_CTX_REMOTE)
        topt_step(spank, argc, argv);
    return ESPANK_SUCCESS;
}

int slurm_spank_exit(spank_t spank, int argc, char **argv)
{
    (void)spank;
    (void)argc;
    (void)argv;
    topt_ask_fini(&the_ask);
    return ESPANK_SUCCESS;
}
