/* topt_rendezvous.h - how launchers that start once a node meet in a job of Slurm.
 *
 * The plugin, whose steps know the job's nodes, and `topt launch` share it.  Pure, libc alone. */
#ifndef TOPT_RENDEZVOUS_H
#define TOPT_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

enum {
    TOPT_HOST_SIZE = 256,
    TOPT_RENDEZVOUS_SIZE = 512,
    TOPT_RENDEZVOUS_PORTS = 10000, /* numbers that a job's is one of */
};

/* The first host of a list as Slurm writes it: "n03" of "n[03-08,12],m1".  0; -1 where there is
 * none, it is too long, or it has letters that no host name has. */
int topt_rendezvous_host(const char *list, char ret[TOPT_HOST_SIZE]);

/* The port at which the ranks of a job meet: jobs that share a node have two. */
int topt_rendezvous_port(int64_t job);

/* The arguments of torchrun.  'list': the nodes of 'job', or NULL where they are not known yet:
 * then PET_RDZV_ENDPOINT has to say where several nodes meet. */
void topt_rendezvous_torchrun(int64_t nodes, int64_t per_node, const char *list,
                              int64_t job, char ret[TOPT_RENDEZVOUS_SIZE]);

/* The options of srun for so many tasks on each node, whatever tasks the job has itself. */
void topt_rendezvous_srun(int64_t nodes, int64_t tasks_per_node,
                          char ret[TOPT_RENDEZVOUS_SIZE]);

#endif
