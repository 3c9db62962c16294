/* topt_comm.h - how the ranks of a run talk.
 *
 * One table of functions.  Between hosts' memory: a single process, where every
 * collective is a copy, MPI, and plain sockets.  Between devices' memory: by way of
 * the hosts', over one of these (comm_staged.h), or a module's own (topt_module.h).  A
 * communicator is bound to a mesh, rank = device number; collectives name their group
 * by the mesh axes along which its members differ, and members are ordered by device
 * number.  Every member of a group makes the same calls in the same order.
 *
 * Failures: a call that fails returns -1 on the rank that saw it.  agree() tells all
 * ranks whether one of them failed, at points where all still take part; elsewhere the
 * caller has to abort(), since the others wait for it.  Thread safety: one thread. */
#ifndef TOPT_COMM_H
#define TOPT_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "topt_layout.h"
#include "topt_queue.h"

enum topt_comm_number {
    TOPT_COMM_BYTE,
    TOPT_COMM_32,
    TOPT_COMM_64,
    TOPT_COMM_F32,
    TOPT_COMM_F64,
    TOPT_COMM_BF16, /* added up only where the device's own library does that */
    TOPT_COMM_NUMBER_COUNT
};
int topt_comm_number_bytes(enum topt_comm_number n);

enum topt_comm_reduce { TOPT_COMM_SUM, TOPT_COMM_MAX };

/* Members of this rank's group, in order of device number. */
struct topt_comm_group {
    int size, me; /* my place */
    const int *device;
};

struct topt_comm {
    const struct topt_comm_ops *ops;
    int rank, size;
    struct topt_mesh mesh;
    void *impl;
};

/* Arguments of a collective.  'counts' and 'to_counts' are elements by member; blocks
 * lie one after the other. */
struct topt_comm_call {
    uint32_t axes;
    enum topt_comm_number number;
    enum topt_comm_reduce reduce;
    enum topt_queue queue; /* all_reduce, where the communicator has it: COMMUNICATION */
    const void *src;
    void *dst; /* all_reduce: may be src */
    int64_t n; /* all_reduce */
    const int64_t *counts, *to_counts;
};

struct topt_comm_ops {
    const char *name;
    void (*destroy)(struct topt_comm *c);
    void (*forget)(struct topt_comm *c); /* groups made so far: the mesh changes */
    int (*group)(struct topt_comm *c, uint32_t axes, struct topt_comm_group *ret,
                 struct topt_error *err); /* borrowed until the next call */
    int (*all_reduce)(struct topt_comm *c, const struct topt_comm_call *k,
                      struct topt_error *err);
    /* The queue of communication; NULL where the communicator can't put anything there.  What
     * moves it, functions NULL where that is the device itself. */
    struct topt_engine (*engine)(struct topt_comm *c);
    /* src: blocks by member, 'counts'; dst: my block */
    int (*reduce_scatter)(struct topt_comm *c, const struct topt_comm_call *k,
                          struct topt_error *err);
    /* src: my block; dst: blocks by member, 'counts' */
    int (*all_gather)(struct topt_comm *c, const struct topt_comm_call *k,
                      struct topt_error *err);
    /* src: blocks by member, 'counts'; dst: 'to_counts' */
    int (*all_to_all)(struct topt_comm *c, const struct topt_comm_call *k,
                      struct topt_error *err);
    /* Whole world. */
    int (*broadcast)(struct topt_comm *c, void *data, int64_t bytes,
                     struct topt_error *err);
    int (*send)(struct topt_comm *c, int to, const void *data, int64_t bytes,
                struct topt_error *err);
    int (*receive)(struct topt_comm *c, int from, void *data, int64_t bytes,
                   struct topt_error *err);
    int (*sum)(struct topt_comm *c, double *values, int n, struct topt_error *err);
    int (*max)(struct topt_comm *c, double *values, int n, struct topt_error *err);
    void (*abort)(struct topt_comm *c, int status);
};

/* One process.  'mesh' of one device. */
int topt_comm_single(struct topt_comm **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* Bind to a mesh of as many devices as ranks; INVAL otherwise.  May be bound again to
 * another mesh; every rank calls it. */
int topt_comm_bind(struct topt_comm *c, const struct topt_mesh *mesh,
                   struct topt_error *err) TOPT_MUST_CHECK;
void topt_comm_destroy(struct topt_comm *c);

/* -1 on every rank where any of them passes 'failed' (with 'err' filled).  The first
 * that failed keeps its error; on the others it becomes "rank N: " and its text with the same
 * code, and topt_comm_failed_elsewhere() is true of it, so that one rank prints. */
int topt_comm_agree(struct topt_comm *c, int failed,
                    struct topt_error *err) TOPT_MUST_CHECK;
int topt_comm_failed_elsewhere(const struct topt_error *err);

/* Text that rank 0 has, on every rank: '*text' (freed by the caller) and '*len' are
 * given on rank 0 and filled on the others.  'failed' (with 'err' filled) on rank 0
 * fails all. */
int topt_comm_share_text(struct topt_comm *c, int failed, char **text, size_t *len,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* Devices that differ from 'device' along 'axes' only, in order; 'ret' has room for
 * all of the mesh.  Returns how many. */
int topt_comm_members(const struct topt_mesh *m, uint32_t axes, int device, int *ret);

/* Was this process started by mpirun or srun, or is TOPT_RENDEZVOUS set? */
int topt_comm_launched(void);
/* Processes that find each other without MPI: TOPT_RANK of TOPT_RANKS, each with the
 * same TOPT_RENDEZVOUS=HOST:PORT, where rank 0 listens.  All data passes through rank
 * 0, so it is for small messages, and for tests where there is no MPI.  Every rank of
 * the world makes every collective call, whatever its group. */
int topt_comm_sockets(struct topt_comm **ret, struct topt_error *err) TOPT_MUST_CHECK;
/* Initialise MPI (once a process) and take its world; without MPI in the build: an
 * error. */
int topt_comm_mpi_world(int *argc, char ***argv, struct topt_comm **ret,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* Sockets where TOPT_RENDEZVOUS is set, MPI where the process was started by a
 * launcher, else a single process.  Settles how the process keeps freed memory, too. */
int topt_comm_open(int *argc, char ***argv, struct topt_comm **ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* After the last communicator is gone. */
void topt_comm_mpi_finish(void);

#endif
