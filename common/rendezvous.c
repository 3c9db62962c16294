/* rendezvous.c - see topt_rendezvous.h. */
#include "topt_rendezvous.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_PORT = 20000 }; /* all of them below those that Linux gives out by itself */

int topt_rendezvous_host(const char *list, char ret[TOPT_HOST_SIZE])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-_";
    size_t n = 0;
    int is_range = 0, is_past = 0; /* in brackets; there, behind the first number */
    for (const char *p = list; *p && (is_range || *p != ','); p++) {
        if (*p == '[' || *p == ']') {
            is_range = *p == '[';
            is_past = 0;
            continue;
        }
        is_past = is_past || (is_range && (*p == ',' || *p == '-'));
        if (is_past)
            continue;
        if (!strchr(letters, *p) || n + 1 >= TOPT_HOST_SIZE)
            return -1;
        ret[n++] = *p;
    }
    ret[n] = '\0';
    return n ? 0 : -1;
}

int topt_rendezvous_port(int64_t job)
{
    return FIRST_PORT + (int)(job % TOPT_RENDEZVOUS_PORTS);
}

void topt_rendezvous_torchrun(int64_t nodes, int64_t per_node, const char *list,
                              int64_t job, char ret[TOPT_RENDEZVOUS_SIZE])
{
    char host[TOPT_HOST_SIZE];
    int n = snprintf(ret, TOPT_RENDEZVOUS_SIZE, "--nnodes=%lld --nproc-per-node=%lld%s",
                     (long long)nodes, (long long)per_node,
                     nodes == 1 ? " --standalone" : " --rdzv-backend=c10d");
    if (nodes > 1 && list && !topt_rendezvous_host(list, host))
        snprintf(ret + n, TOPT_RENDEZVOUS_SIZE - (size_t)n,
                 " --rdzv-id=%lld --rdzv-endpoint=%s:%d", (long long)job, host,
                 topt_rendezvous_port(job));
}

void topt_rendezvous_srun(int64_t nodes, int64_t tasks_per_node,
                          char ret[TOPT_RENDEZVOUS_SIZE])
{
    snprintf(ret, TOPT_RENDEZVOUS_SIZE,
             "--nodes=%lld --ntasks=%lld --ntasks-per-node=%lld", (long long)nodes,
             (long long)(nodes * tasks_per_node), (long long)tasks_per_node);
}
