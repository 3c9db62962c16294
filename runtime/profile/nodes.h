/* nodes.h - the nodes under the ranks of a job: which ranks lie on which, what each is
 * made of, and whether they are alike. */
#ifndef TOPT_NODES_H
#define TOPT_NODES_H

#include "topology.h"
#include "topt_comm.h"

enum { TOPT_HOST = 64 };

struct topt_node {
    char host[TOPT_HOST];
    int first, ranks; /* first rank, and how many; a node's ranks follow each other */
    int seen;         /* hwloc could read it */
    struct topt_topology is; /* unless it could not */
    char *cpus;              /* of each rank, a line each */
};

struct topt_nodes {
    int n;
    struct topt_node *node;
};

/* Every rank calls it and gets all nodes.  A rank that 'reads_node' tells what its node is, of
 * 'xml' as topt_topology_read() takes it; one of each node is enough.  USAGE where a
 * node's ranks do not follow each other. */
int topt_nodes_gather(struct topt_comm *comm, int reads_node, const char *xml,
                      struct topt_nodes *ret, struct topt_error *err) TOPT_MUST_CHECK;
void topt_nodes_fini(struct topt_nodes *n);

/* Processors that rank 'rank' may use, "0-3,8"; 'buf' is filled and returned. */
char *topt_nodes_cpus(const struct topt_nodes *n, int rank, char *buf, size_t size);
/* Ranks of each node; 0 where nodes have unequal numbers. */
int topt_nodes_ranks_each(const struct topt_nodes *n);
/* "a", "a and b", "a, b and 14 more". */
void topt_nodes_names(const struct topt_nodes *n, char *buf, size_t size);
/* Node 'i' against the first: "cores: 8, not 16"; "" where they are alike. */
void topt_nodes_unlike(const struct topt_nodes *n, int i, char *buf, size_t size);

#endif
