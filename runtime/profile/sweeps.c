/* sweeps.c - times of updating, clearing and adding up, by size.
 *
 * Between two updates a step touches everything that a rank holds, so that parameters, gradients and states
 * have left the nearest caches.  Blocks are therefore taken one after the other from pools that are larger than
 * these caches.  The clock is the thread's processor time; the median of a few rounds counts. */
#include "sweeps.h"
#include "topt_clock.h"
#include "topt_device.h"
#include "topt_lower.h"
#include "topt_median.h"

enum { POOLS = 4, POOL = 1 << 20, LEAST = 64, GROWS = 8, ROUNDS = 7, REAL = 4 };
static const double ROUND_NS = 1e6;

/* What is clocked, and how many times a number is read and written. */
static const struct {
    enum topt_sweep sweep;
    int counts;
    enum topt_optimizer optimizer;
    int touches;
} kinds[] = {
    {TOPT_SWEEP_ZERO, 0, TOPT_SGD, 1},    {TOPT_SWEEP_ADD, 0, TOPT_SGD, 3},
    {TOPT_SWEEP_UPDATE, 1, TOPT_SGD, 3},  {TOPT_SWEEP_UPDATE, 1, TOPT_MOMENTUM, 5},
    {TOPT_SWEEP_UPDATE, 1, TOPT_ADAM, 7}, {TOPT_SWEEP_UPDATE, 1, TOPT_ADAMW, 7}};
enum { KINDS = sizeof kinds / sizeof *kinds };

int topt_sweep_samples(int64_t most, struct topt_sweep_sample ret[TOPT_SWEEP_SAMPLES])
{
    int n = 0;
    for (int k = 0; k < KINDS; k++)
        for (int64_t of = LEAST; of <= POOL && of <= LEAST * most; of *= GROWS)
            ret[n++] = (struct topt_sweep_sample){
                kinds[k].sweep,
                kinds[k].counts ? topt_optimizer_name(kinds[k].optimizer) : "",
                kinds[k].touches * REAL * of, 0};
    return n;
}

struct pools {
    struct topt_device dev;
    void *pool[POOLS]; /* parameters, gradients, two states */
    int64_t at;
};

static int pools_open(struct pools *p, struct topt_error *err)
{
    *p = (struct pools){.at = 0};
    if (topt_device_open_host(TOPT_F32, &p->dev, err))
        return -1;
    int rc = 0;
    for (int i = 0; i < POOLS && !rc; i++)
        rc = p->dev.ops->alloc(&p->dev, POOL * REAL, &p->pool[i], err) ||
             p->dev.ops->zero(&p->dev, p->pool[i], POOL * REAL, err);
    return rc ? -1 : 0;
}

static void pools_close(struct pools *p)
{
    for (int i = 0; i < POOLS && p->dev.ops; i++)
        p->dev.ops->release(&p->dev, p->pool[i]);
    topt_device_close(&p->dev);
}

static int kind_of(const struct topt_sweep_sample *s)
{
    int k = 0;
    while (kinds[k].sweep != s->sweep ||
           (kinds[k].counts && s->of != topt_optimizer_name(kinds[k].optimizer)))
        k++;
    return k;
}

static int call(struct pools *p, int kind, int64_t n, struct topt_error *err)
{
    char *block[POOLS];
    p->at = p->at + n > POOL ? 0 : p->at;
    for (int i = 0; i < POOLS; i++)
        block[i] = (char *)p->pool[i] + p->at * REAL;
    p->at += n;
    if (kinds[kind].sweep == TOPT_SWEEP_ZERO)
        return p->dev.ops->zero(&p->dev, block[0], n * REAL, err);
    if (kinds[kind].sweep == TOPT_SWEEP_ADD)
        return p->dev.ops->add(&p->dev, block[0], block[1], n, 0, err);
    struct topt_update_call c = {.optimizer = kinds[kind].optimizer,
                                 .n = n,
                                 .step = 1,
                                 .lr = 1e-3,
                                 .param = block[0],
                                 .grad = block[1],
                                 .state = {block[2], block[3]}};
    return p->dev.ops->update(&p->dev, &c, err);
}

/* Nanoseconds of one of so many calls. */
static int clock_calls(struct pools *p, int kind, int64_t n, int calls, double *ret,
                       struct topt_error *err)
{
    double t = topt_thread_ns();
    for (int i = 0; i < calls; i++)
        if (call(p, kind, n, err))
            return -1;
    *ret = (topt_thread_ns() - t) / calls;
    return 0;
}

static int clock_one(struct pools *p, struct topt_sweep_sample *s, struct topt_error *err)
{
    int k = kind_of(s);
    int64_t n = s->bytes / (kinds[k].touches * REAL);
    double ns[ROUNDS];
    if (clock_calls(p, k, n, 1, ns, err) || clock_calls(p, k, n, 2, ns, err))
        return -1;
    int calls = 1 + (int)(ROUND_NS / (ns[0] + 100));
    for (int r = 0; r < ROUNDS; r++)
        if (clock_calls(p, k, n, calls, &ns[r], err))
            return -1;
    s->ns = topt_median(ns, ROUNDS);
    return 0;
}

int topt_clock_sweeps(struct topt_sweep_sample *s, int n, struct topt_error *err)
{
    struct pools p;
    int rc = pools_open(&p, err);
    for (int i = 0; i < n && !rc; i++)
        rc = clock_one(&p, &s[i], err);
    pools_close(&p);
    return rc;
}
