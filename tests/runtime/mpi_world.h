/* mpi_world.h - what the MPI tests share: a sub-world of the first n ranks, and TAP lines
 * from rank 0 alone.  Every rank makes the same decisions: numbers are reduced first. */
#ifndef TOPT_TEST_MPI_WORLD_H
#define TOPT_TEST_MPI_WORLD_H

#include <mpi.h>
#include <stdlib.h>
#include <time.h>

#include "comm_mpi.h"
#include "tap.h"

static int world_rank, world_size;

/* Where a rank can't go on the others would wait for it. */
__attribute__((unused, noreturn)) static void give_up(const struct topt_error *err)
{
    printf("Bail out! rank %d: %s\n", world_rank, err->text);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Communicator of ranks [0, n) bound to nothing; NULL on the others. */
__attribute__((unused)) static struct topt_comm *sub_world(int n)
{
    MPI_Comm part;
    struct topt_error err = {0};
    struct topt_comm *c = NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < n ? 0 : MPI_UNDEFINED, world_rank, &part);
    if (part == MPI_COMM_NULL)
        return NULL;
    if (topt_comm_mpi(part, &c, &err))
        give_up(&err);
    MPI_Comm_free(&part);
    return c;
}

/* The largest over all ranks. */
__attribute__((unused)) static double world_max(double x)
{
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return x;
}

#define ok0(good, ...)                                                                   \
    do {                                                                                 \
        int good_ = (good);                                                              \
        if (!world_rank)                                                                 \
            ok(good_, __VA_ARGS__);                                                      \
    } while (0)

/* Ranks sleep while others work: the tests run more ranks than cores. */
__attribute__((unused)) static void quiet_barrier(void)
{
    MPI_Request r;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &r);
    while (MPI_Test(&r, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

__attribute__((unused)) static void world_begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
}

/* Exit status of the program; only rank 0 counted. */
__attribute__((unused)) static int world_end(void)
{
    int rc = world_rank ? 0 : done_testing();
    MPI_Finalize();
    return rc;
}

/* Seed from the command line, else from the clock; the same on all ranks, and printed. */
__attribute__((unused)) static uint64_t world_seed(const char *arg)
{
    uint64_t seed = arg ? strtoull(arg, NULL, 10) : (uint64_t)time(NULL) % 1000000;
    MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (!world_rank)
        printf("# seed %llu\n", (unsigned long long)seed);
    return seed;
}

#endif
