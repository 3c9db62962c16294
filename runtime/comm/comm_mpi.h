/* comm_mpi.h - a communicator over any MPI communicator; for tests that split the
 * world. */
#ifndef TOPT_COMM_MPI_H
#define TOPT_COMM_MPI_H

#include <mpi.h>

#include "topt_comm.h"

/* Duplicates 'mpi'.  Every member calls it. */
int topt_comm_mpi(MPI_Comm mpi, struct topt_comm **ret,
                  struct topt_error *err) TOPT_MUST_CHECK;

#endif
