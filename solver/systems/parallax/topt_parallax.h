/* topt_parallax.h - Parallax: parameter servers or all-reduce, for each variable by how sparse
 * its gradient is, and into how many partitions.
 *
 * Kim et al., "Parallax: Sparsity-aware Data Parallel Training of Deep Neural Networks", 2018.
 * A variable of 'w' bytes of which a worker touches the share alpha in a step is held by a server
 * (workers pull what they touch and push its gradient) or by every worker (gradients are
 * all-reduced, or gathered as indices and values).
 * Thread safety: reentrant. */
#ifndef TOPT_PARALLAX_H
#define TOPT_PARALLAX_H

#include <stdint.h>

#include "topt_error.h"

/* ---- bytes -------------------------------------------------------------------------- */

enum topt_parallax_way {
    TOPT_PARALLAX_SERVER,     /* parameter servers, variable v on machine v mod N */
    TOPT_PARALLAX_RING,       /* all-reduce of the whole, by a ring */
    TOPT_PARALLAX_ALL_GATHER, /* every worker's touched elements go round the ring */
};

enum { TOPT_PARALLAX_MACHINES = 64 };

/* What happens in a step of 'variables' of 'bytes' each, on machines with so many workers. */
struct topt_parallax_step {
    int machines, workers;
    int variables;
    int64_t
        bytes; /* of one variable; a multiple of the machines where it goes round a ring */
    int64_t touched; /* of one, by a worker; 'bytes' where its gradient is dense */
    /* Server: the workers of a machine add up first, and one of them pushes what any of them
     * touched, of 'together' bytes. */
    int aggregate;
    int64_t together;
};

/* Of each machine over the network, indices aside. */
struct topt_parallax_traffic {
    int64_t sent[TOPT_PARALLAX_MACHINES], received[TOPT_PARALLAX_MACHINES];
    int64_t
        remote_pushes[TOPT_PARALLAX_MACHINES]; /* gradients sent to servers elsewhere */
    int64_t messages;
};

/* Every message of the step, one after the other.  INVAL where sizes can't be. */
int topt_parallax_simulate(const struct topt_parallax_step *s, enum topt_parallax_way way,
                           struct topt_parallax_traffic *ret,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* Bytes that a machine sends and receives, by the paper's table 3; one worker a machine,
 * variables in equal parts on the servers. */
double topt_parallax_bytes(enum topt_parallax_way way, int machines, int variables,
                           double bytes, double alpha);

/* The largest share of rows that 'workers' touch together where each touches the share 'alpha':
 * 1 - (1 - alpha)^workers, reached where all rows are alike. */
double topt_parallax_together(double alpha, int workers);

/* Is all-reduce of the whole faster than a server, by the bytes and both rates: alpha above
 * server rate / ring rate. */
int topt_parallax_dense_pays(double alpha, double server_rate, double ring_rate);

/* ---- partitions --------------------------------------------------------------------- */

/* Seconds of a step with so many partitions, as measured; or -1. */
typedef double topt_parallax_measure(void *ctx, int partitions);

enum { TOPT_PARALLAX_SAMPLES = 32 };
struct topt_parallax_fit {
    int n;
    int partitions[TOPT_PARALLAX_SAMPLES];
    double seconds[TOPT_PARALLAX_SAMPLES];
    double theta[3]; /* time = theta0 + theta1 / P + theta2 P */
    int chosen;
};

/* Double from 'start' until a step gets slower, halve from it likewise, not below 'least' nor
 * above 'most'; fit by least squares, and take the integer inside of what was sampled where the
 * fit is least.  With fewer than three samples the best of them. */
int topt_parallax_partitions(topt_parallax_measure *measure, void *ctx, int start,
                             int least, int most, struct topt_parallax_fit *ret,
                             struct topt_error *err) TOPT_MUST_CHECK;

/* ---- a cluster ---------------------------------------------------------------------- */

/* Rates in bytes a second. */
struct topt_parallax_cluster {
    int machines, workers;
    double ring;   /* of a machine's network, by collectives of GPUs */
    double server; /* ... by messages of processes: servers, and gathering */
    double local;  /* between GPUs of a machine */
    double fold;   /* rows added up by one thread */
    double stitch; /* seconds that each partition adds to a step */
    int threads;   /* of a machine */
};

struct topt_parallax_model {
    const char *name;
    double dense, sparse; /* elements of f32 */
    double alpha;         /* of the sparse ones alone, for one worker */
    double samples;       /* of a worker and step: images or words */
    double compute;       /* seconds of a worker's step alone */
};

enum topt_parallax_system {
    TOPT_PARALLAX_AR,    /* everything by collectives: rings and gathering */
    TOPT_PARALLAX_NAIVE, /* everything on servers */
    TOPT_PARALLAX_OPT,   /* the same, machines aggregate before */
    TOPT_PARALLAX_HYBRID, /* dense by rings; sparse on servers, but what all is touched of */
    TOPT_PARALLAX_RATES, /* the same; sparse by rings where bytes over rates say so */
    TOPT_PARALLAX_SYSTEMS
};

/* Samples a second of all workers, sparse variables in as many partitions as the sampler above
 * chooses for this system; 'ret_partitions' may be NULL. */
double topt_parallax_throughput(const struct topt_parallax_model *m,
                                const struct topt_parallax_cluster *c,
                                enum topt_parallax_system system, int *ret_partitions);

/* The four models and the cluster of the paper's evaluation, with what they rest on. */
const struct topt_parallax_model *topt_parallax_models(int *ret_n);
const struct topt_parallax_cluster *topt_parallax_titanxp(void);

#endif
