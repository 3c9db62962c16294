/* topt_launch.h - a plan as the command or the configuration file of the framework that trains.
 *
 * A target is a program that starts training: torchrun, accelerate, deepspeed, megatron,
 * primus, torchtitan; and topt's own runtime.  Only plans that make one choice for the whole model
 * ("uniform") can be said to the others.  Every key that is written stands in keys/NAME.txt, a
 * list extracted from the pinned source of that framework.
 * Thread safety: reentrant; documents are only read. */
#ifndef TOPT_LAUNCH_H
#define TOPT_LAUNCH_H

#include <jansson.h>

#include "topt_error.h"

/* Where the keys of a target were taken from, and whether what is written was run. */
struct topt_launch_pin {
    const char *repository, *commit, *date, *run;
};

/* NULL where there is no such target. */
const struct topt_launch_pin *topt_launch_pin(const char *target);

/* Write the command and files that make 'target' (NULL: the usual one of the plan's framework)
 * run the "topt-plan/1" document 'plan'; with 'is_job' as one script for sbatch, of a
 * heterogeneous job where the plan's GPUs are of several groups.
 *  0 and '*ret', a new reference:
 *      {"target","framework","plan","pin":{"repository","commit","date","run"},
 *       "complete":nothing differs,
 *       "differs":[what the framework can't say],"script":[what the script does itself],
 *       "files":[{"name","text"}]}       the first file holds the command
 * -1: INFEASIBLE where the target can't obey the plan, with the question to ask instead;
 *     NOTFOUND for an unknown target; INVAL for a document that is no plan. */
int topt_launch(const json_t *plan, const char *target, int is_job, json_t **ret,
                struct topt_error *err) TOPT_MUST_CHECK;
/* The same for people: remarks, then each file; freed by the caller, NULL without memory. */
char *topt_launch_text(const json_t *launch);

/* The plan as environment variables: an object of strings, "TOPT_DP" and so on, in the order in
 * which they are printed; in a job of Slurm, which its environment tells, TOPT_TORCHRUN says where
 * its nodes meet.  A new reference.  -1 as topt_launch(), and INFEASIBLE where GPUs are of several
 * groups, whose ranks options of one srun can't order. */
int topt_launch_environment(const json_t *plan, json_t **ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

#endif
