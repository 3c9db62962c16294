/* devices.c - which device a rank computes on, and how the devices talk. */
#include "devices.h"
#include "comm_staged.h"
#include "topt_near.h"
#include "topt_module.h"

#include <stdlib.h>
#include <string.h>

/* This process among those of its node, as launchers say it. */
static int local_rank(const struct topt_comm *host)
{
    static const char *const name[] = {"TOPT_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                       "MPI_LOCALRANKID", NULL};
    for (int i = 0; name[i]; i++)
        if (getenv(name[i]))
            return atoi(getenv(name[i]));
    /* Slurm's counts its tasks; what a batch script starts by itself inherits the script's */
    return getenv("SLURM_LOCALID") && !getenv("TOPT_RANK") ? atoi(getenv("SLURM_LOCALID"))
                                                           : host->rank;
}

int topt_run_device_check(const struct topt_run_device *d, struct topt_error *err)
{
    static const char *const comm[] = {"auto", "mpi", "nccl", "staged", NULL};
    static const char *const device[] = {"host", "cuda", NULL};
    char meant[TOPT_NEAR_WORDS];
    int known = 0, on_host = !strcmp(d->device, "host");
    for (int i = 0; comm[i]; i++)
        known |= !strcmp(d->comm, comm[i]);
    if (!known)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "unknown --comm '%.40s'%s (one of auto, mpi, nccl, staged)",
                         d->comm, topt_near_among(d->comm, comm, meant));
    if (!on_host && strcmp(d->device, "cuda"))
        return topt_fail(err, TOPT_ERR_USAGE, "unknown --device '%.40s'%s (host or cuda)",
                         d->device, topt_near_among(d->device, device, meant));
    if (on_host && !strcmp(d->comm, "nccl"))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--comm nccl is between GPUs; add --device cuda");
    if (!on_host && !strcmp(d->comm, "mpi"))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--comm mpi is between hosts; --device %s takes nccl or staged",
                         d->device);
    return 0;
}

int topt_run_device_open(struct topt_run_device *d, enum topt_dtype dtype,
                         struct topt_error *err)
{
    if (topt_run_device_check(d, err))
        return -1;
    if (!strcmp(d->device, "host"))
        return topt_device_open_host(dtype, &d->dev, err);
    if (topt_module_load(d->device, &d->module, err))
        return -1;
    d->index = local_rank(d->host);
    return d->module->open(dtype, d->index, &d->dev, &d->identity, err);
}

/* Has any other rank this rank's device? */
static int shared_by_ranks(struct topt_run_device *d, int *ret, struct topt_error *err)
{
    int n = d->host->size;
    int64_t *counts = calloc((size_t)n, sizeof *counts);
    uint64_t *all = calloc((size_t)n, sizeof *all);
    struct topt_comm_call k = {.axes = (1u << d->host->mesh.naxes) - 1,
                               .number = TOPT_COMM_64,
                               .src = &d->identity,
                               .dst = all,
                               .counts = counts};
    int rc = counts && all ? 0 : topt_nomem(err, NULL);
    for (int i = 0; i < n && !rc; i++)
        counts[i] = 1;
    if (!rc)
        rc = d->host->ops->all_gather(d->host, &k, err);
    double shared = 0;
    for (int i = 0; i < n && !rc; i++)
        shared += i != d->host->rank && all[i] == d->identity;
    if (!rc)
        rc = d->host->ops->max(d->host, &shared, 1, err);
    free(counts);
    free(all);
    *ret = shared > 0;
    return rc;
}

int topt_run_device_connect(struct topt_run_device *d, struct topt_comm **ret,
                            struct topt_error *err)
{
    int nccl = !strcmp(d->comm, "nccl"), staged = !strcmp(d->comm, "staged"), shared = 0;
    if (!d->module && !staged) {
        *ret = d->host;
        return 0;
    }
    if (!staged && d->host->size > 1 && shared_by_ranks(d, &shared, err))
        return -1;
    if (shared)
        return topt_fail(
            err, TOPT_ERR_DEVICE,
            "two ranks of a node use the same GPU: start one rank per GPU (srun "
            "--gpus-per-task=1), or let them share it with --comm staged");
    if (!strcmp(d->comm, "auto") && d->host->size > 1)
        nccl = d->module->communicator != NULL;
    if (nccl && !d->module->communicator)
        return topt_fail(err, TOPT_ERR_DEVICE,
                         "the %s backend has no NCCL; use --comm staged", d->device);
    return nccl ? d->module->communicator(d->host, &d->dev, ret, err)
                : topt_comm_staged(d->host, &d->dev, ret, err);
}
