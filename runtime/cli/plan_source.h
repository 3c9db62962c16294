/* plan_source.h - the plan that all ranks run. */
#ifndef TOPT_RUNTIME_PLAN_SOURCE_H
#define TOPT_RUNTIME_PLAN_SOURCE_H

#include "topt_comm.h"
#include "topt_plan.h"

/* A plan on every rank: rank 0 reads the file or, where 'arg' is the id of a plan, what the
 * job carries, else asks the server; and broadcasts it. */
int topt_plan_everywhere(struct topt_comm *comm, const char *arg,
                         struct topt_plan_doc **ret,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* The path of topt-client, which is beside this program. */
int topt_client_path(char *buf, size_t size, struct topt_error *err) TOPT_MUST_CHECK;

#endif
