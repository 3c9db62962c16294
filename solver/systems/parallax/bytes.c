/* bytes.c - every message of a step, and the paper's formulas for their sum.
 *
 *   server        each worker pulls what it touches from the variable's server, and pushes its
 *                 gradient back; between processes of one machine nothing crosses the network
 *   ring          a variable in N pieces: N-1 steps in which each machine adds a piece to its
 *                 own and passes it on, N-1 in which sums go round
 *   all-gather    N-1 steps in which each machine passes on what it got last
 *
 * The simulation keeps no formula: pieces are moved until every machine has what it needs, and
 * that it has is checked. */
#include "topt_parallax.h"

#include <math.h>
#include <string.h>

/* ---- messages ----------------------------------------------------------------------- */

static void send(struct topt_parallax_traffic *t, int from, int to, int64_t bytes)
{
    if (from == to || !bytes)
        return;
    t->sent[from] += bytes;
    t->received[to] += bytes;
    t->messages++;
}

static void by_server(const struct topt_parallax_step *s, int variable,
                      struct topt_parallax_traffic *t)
{
    int server = variable % s->machines;
    for (int m = 0; m < s->machines; m++) {
        for (int w = 0; w < s->workers; w++)
            send(t, server, m, s->touched);
        int pushes = s->aggregate ? 1 : s->workers;
        for (int w = 0; w < pushes; w++) {
            send(t, m, server, s->aggregate ? s->together : s->touched);
            t->remote_pushes[m] += m != server;
        }
    }
}

/* Who has added to a piece, as bits, until all have; then who has the sum. */
static int by_ring(const struct topt_parallax_step *s, struct topt_parallax_traffic *t)
{
    int n = s->machines;
    int64_t piece = s->bytes / n;
    uint64_t all = n == 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
    uint64_t added[TOPT_PARALLAX_MACHINES][TOPT_PARALLAX_MACHINES];
    for (int m = 0; m < n; m++)
        for (int p = 0; p < n; p++)
            added[m][p] = (uint64_t)1 << m;
    for (int step = 0; step < 2 * (n - 1); step++) {
        uint64_t moved[TOPT_PARALLAX_MACHINES];
        for (int m = 0; m < n; m++)
            moved[m] = added[m][(m - step + 2 * n) % n];
        for (int m = 0; m < n; m++) {
            int p = (m - step + 2 * n) % n, next = (m + 1) % n;
            send(t, m, next, piece);
            added[next][p] = step < n - 1 ? added[next][p] | moved[m] : moved[m];
        }
    }
    for (int m = 0; m < n; m++)
        for (int p = 0; p < n; p++)
            if (added[m][p] != all)
                return 0;
    return 1;
}

static int by_gathering(const struct topt_parallax_step *s,
                        struct topt_parallax_traffic *t)
{
    int n = s->machines;
    uint64_t all = n == 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
    uint64_t has[TOPT_PARALLAX_MACHINES];
    for (int m = 0; m < n; m++)
        has[m] = (uint64_t)1 << m;
    for (int step = 0; step < n - 1; step++)
        for (int m = 0; m < n; m++) {
            send(t, m, (m + 1) % n, s->touched * s->workers);
            has[(m + 1) % n] |= (uint64_t)1 << ((m - step + n) % n);
        }
    for (int m = 0; m < n; m++)
        if (has[m] != all)
            return 0;
    return 1;
}

int topt_parallax_simulate(const struct topt_parallax_step *s, enum topt_parallax_way way,
                           struct topt_parallax_traffic *ret, struct topt_error *err)
{
    memset(ret, 0, sizeof *ret);
    if (s->machines < 1 || s->machines > TOPT_PARALLAX_MACHINES || s->workers < 1 ||
        s->variables < 0 || s->bytes < 0 || s->touched < 0 || s->touched > s->bytes ||
        s->together > s->bytes)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a step has 1 to %d machines with workers, and touches at most "
                         "what a variable has",
                         TOPT_PARALLAX_MACHINES);
    if (way == TOPT_PARALLAX_RING && s->bytes % s->machines)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a variable of %lld bytes has no %d equal pieces for a ring",
                         (long long)s->bytes, s->machines);
    for (int v = 0; v < s->variables; v++) {
        int whole = 1;
        if (way == TOPT_PARALLAX_SERVER)
            by_server(s, v, ret);
        else
            whole = way == TOPT_PARALLAX_RING ? by_ring(s, ret) : by_gathering(s, ret);
        if (!whole)
            return topt_fail(err, TOPT_ERR_INTERNAL, "a ring of %d machines is not whole",
                             s->machines);
    }
    return 0;
}

/* ---- formulas ----------------------------------------------------------------------- */

double topt_parallax_bytes(enum topt_parallax_way way, int machines, int variables,
                           double bytes, double alpha)
{
    double n = machines, m = variables;
    switch (way) {
    case TOPT_PARALLAX_SERVER:
        return 4 * alpha * bytes * m * (n - 1) / n;
    case TOPT_PARALLAX_RING:
        return 4 * bytes * m * (n - 1) / n;
    default:
        return 2 * alpha * bytes * m * (n - 1);
    }
}

double topt_parallax_together(double alpha, int workers)
{
    return 1 - pow(1 - alpha, workers);
}

int topt_parallax_dense_pays(double alpha, double server_rate, double ring_rate)
{
    return alpha > server_rate / ring_rate;
}
