/* profile_args.h - `topt profile`: its options, and what its two halves share. */
#ifndef TOPT_RUNTIME_CLI_PROFILE_ARGS_H
#define TOPT_RUNTIME_CLI_PROFILE_ARGS_H

#include <jansson.h>
#include <stdint.h>

#include "nodes.h"

struct topt_profile_args {
    const char *out, *name, *topology, *like, *post, *device, *comm;
    int64_t nodes, per_node, max_bytes, max_product;
    int quiet;
};

/* What hwloc sees of the nodes under the ranks: words, bindings and, with -o, a profile;
 * rank 0 tells.  Every rank calls it. */
int topt_profile_topology(const struct topt_profile_args *a, struct topt_comm *comm,
                          struct topt_error *err) TOPT_MUST_CHECK;
/* "a and b, 4 ranks each: 2 packages ..." on standard output, and a note for each node
 * that is not as the first. */
void topt_profile_say_nodes(const struct topt_nodes *n);
/* Written after it was read back as a stranger would read it: it has to be a profile. */
int topt_profile_write(const struct topt_profile_args *a, const json_t *doc,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
