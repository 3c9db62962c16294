/* cluster.c - a step on machines with several GPUs: computing, then what is exchanged.
 *
 *   rings          over the GPUs of a machine, then over machines
 *   gathering      the touched rows of every worker pass every machine's network; each worker
 *                  adds all of them up, with its part of the machine's threads
 *   servers        every worker of a machine pulls and pushes; a server adds up the rows of all
 *                  workers, each partition by a thread.  What a machine adds up first it pushes
 *                  once, and pulls once
 *
 * Nothing overlaps.  Rates are those of the cluster, assumed where nobody published them,
 * and two of them, rows added up by a thread and what each partition costs, come from the
 * paper's table 2; computing is what its figure 9 implies of one GPU.  So which system is
 * faster follows, by how much less so. */
#include "topt_parallax.h"

#include <stddef.h>

static const double ELEMENT = 4;

static double rings(const struct topt_parallax_cluster *c, double bytes)
{
    double g = c->workers, n = c->machines;
    return 2 * (g - 1) / g * bytes / c->local + 2 * (n - 1) / n * bytes / c->ring;
}

static double gathering(const struct topt_parallax_cluster *c, double touched)
{
    double ranks = (double)c->machines * c->workers;
    double fold = c->fold * c->threads / c->workers;
    return (ranks - 1) * touched / c->server + ranks * touched / fold;
}

/* Of what 'times' workers of each machine pull and push: its network carries that once as a
 * worker's and once as a server's. */
static double transfer(const struct topt_parallax_cluster *c, double bytes, double times)
{
    double n = c->machines;
    return 2 * times * bytes * (n - 1) / n / c->server;
}

static double folded(const struct topt_parallax_cluster *c, double touched, double times,
                     int partitions)
{
    double all = touched * times * c->machines;
    int most = c->threads * c->machines;
    return all / (c->fold * (partitions < most ? partitions : most)) +
           c->stitch * partitions;
}

static double on_servers(const struct topt_parallax_model *m,
                         const struct topt_parallax_cluster *c, double dense,
                         int aggregate, int partitions)
{
    double times = aggregate ? 1 : c->workers;
    double alpha = aggregate ? topt_parallax_together(m->alpha, c->workers) : m->alpha;
    double touched = m->sparse * ELEMENT * alpha;
    return transfer(c, dense * ELEMENT + touched, times) +
           (touched > 0 ? folded(c, touched, times, partitions) : 0);
}

/* The paper puts sparse variables on servers, but for an alpha close to 1; how close it does not say:
 * by bytes and rates above server / ring, which 'by_rates' takes, else 1. */
static double hybrid(const struct topt_parallax_model *m,
                     const struct topt_parallax_cluster *c, int by_rates, int partitions)
{
    double alpha = topt_parallax_together(m->alpha, c->workers);
    double dense = rings(c, m->dense * ELEMENT);
    int pays =
        by_rates ? topt_parallax_dense_pays(alpha, c->server, c->ring) : m->alpha >= 1;
    if (m->sparse > 0 && pays)
        return rings(c, (m->dense + m->sparse) * ELEMENT);
    return dense + (m->sparse > 0 ? on_servers(m, c, 0, 1, partitions) : 0);
}

static double step_seconds(const struct topt_parallax_model *m,
                           const struct topt_parallax_cluster *c,
                           enum topt_parallax_system system, int partitions)
{
    switch (system) {
    case TOPT_PARALLAX_AR:
        return m->compute + rings(c, m->dense * ELEMENT) +
               gathering(c, m->sparse * ELEMENT * m->alpha);
    case TOPT_PARALLAX_NAIVE:
        return m->compute + on_servers(m, c, m->dense, 0, partitions);
    case TOPT_PARALLAX_OPT:
        return m->compute + on_servers(m, c, m->dense, 1, partitions);
    default:
        return m->compute + hybrid(m, c, system == TOPT_PARALLAX_RATES, partitions);
    }
}

struct asked {
    const struct topt_parallax_model *model;
    const struct topt_parallax_cluster *cluster;
    enum topt_parallax_system system;
};

static double sampled(void *ctx, int partitions)
{
    const struct asked *a = ctx;
    return step_seconds(a->model, a->cluster, a->system, partitions);
}

double topt_parallax_throughput(const struct topt_parallax_model *m,
                                const struct topt_parallax_cluster *c,
                                enum topt_parallax_system system, int *ret_partitions)
{
    struct asked a = {m, c, system};
    struct topt_parallax_fit fit;
    int chosen = c->machines;
    if (m->sparse > 0 &&
        !topt_parallax_partitions(sampled, &a, c->machines, 1, 4096, &fit, NULL))
        chosen = fit.chosen;
    if (ret_partitions)
        *ret_partitions = chosen;
    return m->samples * c->machines * c->workers / step_seconds(m, c, system, chosen);
}

/* Elements: table 1.  alpha of the sparse variables alone: LM's is that of all (99 % are
 * sparse), NMT's what table 1's 0.65 leaves when its dense ones count 1.  Samples: 64 images,
 * 128 x 20 words (LM's usual unrolling), 128 x 25 words (assumed, mean length of a sentence).
 * Computing: samples over the throughput of one GPU, table 1 and 4 over figure 9's 39.8, 44.4,
 * 9.4 and 18.4. */
static const struct topt_parallax_model models[] = {
    {"ResNet-50", 23.8e6, 0, 0, 64, 64 / (7600 / 39.8)},
    {"Inception-v3", 25.6e6, 0, 0, 64, 64 / (5900 / 44.4)},
    {"LM", 9.4e6, 813.3e6, 0.02, 2560, 2560 / (274e3 / 9.4)},
    {"NMT", 94.1e6, 74.9e6, 0.21, 3200, 3200 / (204e3 / 18.4)},
};

const struct topt_parallax_model *topt_parallax_models(int *ret_n)
{
    *ret_n = sizeof models / sizeof *models;
    return models;
}

/* ring, local: the profile titanxp-8x6.  server: TCP over 100 Gb/s InfiniBand, 24 Gb/s assumed.
 * fold, stitch: the least squares of table 2, LM (122,880 words a step), are 0.91 s + 11.7 s / P +
 * 1.56 ms P; 11.7 s are what a thread takes to add up the rows of 48 workers, 3.1 GB.  threads:
 * two processors of 18 cores. */
const struct topt_parallax_cluster *topt_parallax_titanxp(void)
{
    static const struct topt_parallax_cluster cluster = {
        8, 6, 8.8e9, 3e9, 7e9, 3.12e9 / 11.7, 1.56e-3, 36};
    return &cluster;
}
