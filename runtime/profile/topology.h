/* topology.h - what a node is made of, as hwloc sees it: this machine, or one whose
 * topology was exported. */
#ifndef TOPT_TOPOLOGY_H
#define TOPT_TOPOLOGY_H

#include <jansson.h>
#include <stdint.h>

#include "topt_error.h"

enum { TOPT_MOST_GPUS = 64, TOPT_MOST_NICS = 64, TOPT_CPU_LIST = 256 };

struct topt_topology_gpu {
    char name[48];            /* "nvml0", or its place on the bus */
    char bus[16];             /* "0000:34:00.0" */
    char cpus[TOPT_CPU_LIST]; /* of a rank that uses it, as a list */
    char mask[TOPT_CPU_LIST]; /* the same as a mask */
    char nic[32];             /* the nearest; "" without */
    double pci;               /* bytes a second of its slot; 0: not known */
    double nvlink;            /* of all its NVLinks together; 0: none */
};

struct topt_topology {
    char model[96]; /* of the processor */
    int packages, numa, cores, threads;
    int64_t memory, l2, l3; /* bytes: of the node; of the largest cache of that level */
    int ngpus, nnics;
    struct topt_topology_gpu gpu[TOPT_MOST_GPUS];
    char nic[TOPT_MOST_NICS][32];
    double nic_pci;       /* bytes a second of the slots of all InfiniBand adapters */
    int nvlink_joins_all; /* every GPU reaches every other by NVLinks alone */
};

/* 'xml' NULL: this machine.  INVAL where topt was built without hwloc. */
int topt_topology_read(const char *xml, struct topt_topology *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;
/* Masks of 'ranks' ranks without GPUs, spread over the cores, with commas between. */
int topt_topology_spread(const char *xml, int ranks, char *buf, size_t size,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* As an object and back, for other ranks; new reference.  -1 where the object is no topology's. */
json_t *topt_topology_to_json(const struct topt_topology *t);
int topt_topology_from_json(const json_t *doc, struct topt_topology *ret) TOPT_MUST_CHECK;
/* What of 't' is not as of 'other': "cores: 8, not 16; GPUs: 4, not 8"; "" where they are alike. */
void topt_topology_unlike(const struct topt_topology *t,
                          const struct topt_topology *other, char *buf, size_t size);
/* Lowers rates and memory of 't' to those of 'other' where that has less; both have as many GPUs.
 */
void topt_topology_lower(struct topt_topology *t, const struct topt_topology *other);

/* "2 packages, 24 cores (48 threads), L3 33 MiB, 8 GPUs joined by NVLink". */
void topt_topology_words(const struct topt_topology *t, char *buf, size_t size);
/* A profile "topt-hw/1" of 'nodes' nodes like this (0: as many as 'like' has): GPUs and
 * links as the topology says, what it does not say from the shipped profile 'like'.  New
 * reference. */
json_t *topt_topology_profile(const struct topt_topology *t, const char *name,
                              const char *like, int nodes, struct topt_error *err);

#endif
