/* usable_gpus.c - see usable_gpus.h.
 *
 * Seen on Slurm: a job that asks for more CPUs or memory than MaxCPUsPerNode or
 * MaxMemPerNode allow waits for ever (PartitionConfig, MaxMemPerLimit), whatever is
 * counted.  A node's memory binds --mem always, but the memory for each CPU or GPU only
 * where SelectTypeParameters counts memory. */
#include "usable_gpus.h"

#include <stdio.h>
#include <string.h>

int64_t site_gpus_of(const struct site_node *n, const char *type)
{
    int64_t gpus = 0;
    for (int i = 0; i < n->ntypes; i++)
        if ((!*type || !strcmp(n->gpu[i].type, type)) && n->gpu[i].count > gpus)
            gpus = n->gpu[i].count;
    return gpus;
}

/* The less of two, of which 0 is no limit. */
static int64_t less(int64_t a, int64_t b)
{
    return a <= 0 ? b : b <= 0 || a < b ? a : b;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t mib_of(const char *text)
{
    return *text ? at_least(site_mebibytes(text), 0) : 0;
}

/* Options that leave no room for a default. */
static int says_memory(const struct site_job *job)
{
    return *job->mem || *job->mem_per_gpu || *job->mem_per_cpu;
}

/* Has the job its nodes for itself?  Then Slurm gives it all GPUs of a node, and what it
 * asks for each GPU counts for all of them. */
static int is_whole(const struct site_partition *p, const struct site_job *job)
{
    return p->is_whole || !strcmp(job->exclusive, "exclusive");
}

/* A node gives 'counted' GPUs to the job, which uses 'gpus' of them. */
static int64_t cpus_for(const struct site_partition *p, const struct site_job *job,
                        int64_t gpus, int64_t counted)
{
    int64_t tasks = strcmp(job->tasks, "node") ? gpus : 1;
    int64_t each = job->cpus_per_gpu    ? job->cpus_per_gpu
                   : job->cpus_per_task ? 0
                                        : p->def_cpus_per_gpu;
    return at_least(tasks * at_least(job->cpus_per_task, 1), counted * each);
}

/* MiB on a node.  What is said of all of it is told apart, since Slurm compares that with
 * the node's always. */
static int64_t memory_for(const struct site_partition *p, const struct site_job *job,
                          int64_t gpus, int64_t counted, int *is_of_node)
{
    int64_t node = mib_of(job->mem), gpu = mib_of(job->mem_per_gpu);
    int64_t cpu = mib_of(job->mem_per_cpu);
    if (!says_memory(job) && !(gpu = p->def_mem_per_gpu))
        cpu = p->def_mem_per_cpu;
    *is_of_node = node > 0;
    return node ? node : gpu ? counted * gpu : cpu * cpus_for(p, job, gpus, counted);
}

static int has_cpus(const struct site_partition *p, const struct site_node *n,
                    const struct site_job *job, int64_t gpus, int64_t counted)
{
    int64_t most = less(n->cpus, p->max_cpus);
    return !most || cpus_for(p, job, gpus, counted) <= most;
}

static int has_memory(const struct site_slurm *s, const struct site_partition *p,
                      const struct site_node *n, const struct site_job *job, int64_t gpus,
                      int64_t counted)
{
    int is_of_node;
    int64_t need = memory_for(p, job, gpus, counted, &is_of_node);
    int64_t most = is_of_node || s->counts_memory ? n->memory_mib : 0;
    most = less(most, p->max_mem_mib);
    return !most || need <= most;
}

int64_t site_usable_gpus(const struct site_slurm *s, const struct site_partition *p,
                         const struct site_node *n, const struct site_job *job,
                         const char *type, int but)
{
    int64_t gpus = site_gpus_of(n, type);
    if (job->gpus_per_node && job->gpus_per_node < gpus)
        gpus = job->gpus_per_node;
    for (int whole = is_whole(p, job); gpus > 0; gpus--) {
        int64_t counted = whole ? site_gpus_of(n, type) : gpus;
        if ((but & SITE_BUT_CPUS || has_cpus(p, n, job, gpus, counted)) &&
            (but & SITE_BUT_MEMORY || has_memory(s, p, n, job, gpus, counted)))
            break;
    }
    return gpus;
}

void site_need_of_cpus(const struct site_partition *p, const struct site_job *job,
                       char *ret, size_t size)
{
    ret[0] = '\0';
    if (job->cpus_per_gpu)
        snprintf(ret, size, "--cpus-per-gpu=%lld%s", (long long)job->cpus_per_gpu,
                 is_whole(p, job) ? " for each GPU of a whole node" : "");
    else if (job->cpus_per_task)
        snprintf(ret, size, "-c %lld", (long long)job->cpus_per_task);
    else if (p->def_cpus_per_gpu)
        snprintf(ret, size, "DefCpuPerGPU=%lld", (long long)p->def_cpus_per_gpu);
}

void site_need_of_memory(const struct site_partition *p, const struct site_job *job,
                         char *ret, size_t size)
{
    const char *option = *job->mem           ? "--mem"
                         : *job->mem_per_gpu ? "--mem-per-gpu"
                                             : "--mem-per-cpu";
    const char *value = *job->mem           ? job->mem
                        : *job->mem_per_gpu ? job->mem_per_gpu
                                            : job->mem_per_cpu;
    if (says_memory(job))
        snprintf(ret, size, "%s=%s%s", option, value,
                 *job->mem_per_gpu && is_whole(p, job) ? " for each GPU of a whole node"
                                                       : "");
    else if (p->def_mem_per_gpu)
        snprintf(ret, size, "DefMemPerGPU=%lld", (long long)p->def_mem_per_gpu);
    else
        snprintf(ret, size, "DefMemPerCPU=%lld", (long long)p->def_mem_per_cpu);
}
