/* k_scan.h - what recurrences that are computed by chunks have in common.
 *
 * A head carries a matrix [n, p] from position to position: n numbers of a key by p of a
 * value.  From position j to t of a chunk it decays by e^(sum[t] - sum[j]), where sum adds
 * up the exponents of the chunk's positions; a head's state at the start of each chunk is
 * kept.  Exponents are not positive, so differences from an earlier position to a later
 * one are all that is ever taken the power of, and nothing overflows. */
#include "real.h"

enum { SCAN_CHUNK = 1024 }; /* as the rows take */

static inline int64_t group_of_head(const struct scan *s, int64_t head)
{
    return (s->first_head + head) / s->per_group;
}

/* One chunk of one head. */
struct scan_at {
    int64_t first, len; /* positions */
    int64_t head;       /* number of the chunk's first position's numbers of the head, */
    int64_t group;      /* of its group's, */
    int64_t one;        /* and of operands with one number a head */
    int64_t state;      /* of its state */
    int starts, ends;   /* no state comes before it, none is wanted after it */
};

static struct scan_at scan_at(const struct scan *s, int64_t b, int64_t chunk, int64_t h)
{
    int64_t first = chunk * s->chunk, left = s->seq - first, row = b * s->seq + first;
    return (struct scan_at){.first = first,
                            .len = left < s->chunk ? left : s->chunk,
                            .head = row * s->ld + h * s->p,
                            .group = row * s->ldg + group_of_head(s, h) * 2 * s->n,
                            .one = row * s->heads + h,
                            .state =
                                ((b * s->chunks + chunk) * s->heads + h) * s->n * s->p,
                            .starts = chunk == 0 && !s->carries,
                            .ends = chunk + 1 == s->chunks && !s->carries};
}

/* Is head 'h' the first, or the last, of those here that its group has? */
static int begins_group(const struct scan *s, int64_t h)
{
    return h == 0 || group_of_head(s, h) != group_of_head(s, h - 1);
}

static int ends_group(const struct scan *s, int64_t h)
{
    return h + 1 == s->heads || group_of_head(s, h) != group_of_head(s, h + 1);
}

/* decay[t, j] = e^(sum[t] - sum[j]) up to j = t, and 0 from there on. */
static void fill_decays(real *decay, const double *sum, int64_t len)
{
    for (int64_t t = 0; t < len; t++) {
        real *row = decay + t * len;
        for (int64_t j = 0; j <= t; j++)
            row[j] = R(sum[t] - sum[j]);
        for (int64_t j = 0; j <= t; j++)
            row[j] = EXP(row[j]);
        memset(row + t + 1, 0, (size_t)(len - t - 1) * sizeof *row);
    }
}

static double dot(const real *a, const real *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* dst += factor src. */
static void add_times(real *dst, double factor, const real *src, int64_t n)
{
    real f = R(factor);
    for (int64_t i = 0; i < n; i++)
        dst[i] += f * src[i];
}

/* dst = factor src. */
static void set_times(real *dst, double factor, const real *src, int64_t n)
{
    real f = R(factor);
    for (int64_t i = 0; i < n; i++)
        dst[i] = f * src[i];
}

/* From gradients of sums to those of what was added up: each is in all sums from its own
 * on. */
static void sums_of_later(double *g, int64_t len)
{
    for (int64_t t = len - 2; t >= 0; t--)
        g[t] += g[t + 1];
}

/* What is done for a chunk of a head. */
typedef void scan_head(const struct topt_kernel_call *c, const struct scan *s,
                       const struct scan_at *at, int64_t h);

/* From the first chunk to the last; states are those at the starts of chunks. */
static void scan_forward(const struct topt_kernel_call *c, const struct scan *s,
                         real *states, scan_head *head)
{
    int64_t all = s->heads * s->n * s->p;
    for (int64_t b = 0; b < s->batch && s->heads > 0; b++) {
        if (!s->carries)
            memset(states + b * s->chunks * all, 0, (size_t)all * sizeof *states);
        for (int64_t k = 0; k < s->chunks; k++)
            for (int64_t h = 0; h < s->heads; h++) {
                struct scan_at at = scan_at(s, b, k, h);
                head(c, s, &at, h);
            }
    }
    if (s->carries)
        copy(states, states + s->chunks * all, all);
}

/* From the last chunk to the first, which hand each head's gradient of the state down in
 * 'carry'.  The groups' gradient adds up over their heads. */
static void scan_backward(const struct topt_kernel_call *c, const struct scan *s,
                          int of_groups, real *carry, scan_head *head)
{
    if (c->grad[of_groups])
        memset(c->grad[of_groups], 0, (size_t)elements_of(c, of_groups) * sizeof(real));
    for (int64_t b = 0; b < s->batch && s->heads > 0; b++) {
        memset(carry, 0, (size_t)(s->heads * s->n * s->p) * sizeof *carry);
        for (int64_t k = s->chunks - 1; k >= 0; k--)
            for (int64_t h = 0; h < s->heads; h++) {
                struct scan_at at = scan_at(s, b, k, h);
                head(c, s, &at, h);
            }
    }
}
