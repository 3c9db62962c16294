/* byte_bound.c - a lower bound on the time of a redistribution, from the bytes that
 * travel.
 *
 * On any path, what a device (a node) lacks of its target block must come to it, and
 * where partial sums end, all contributions to an element must meet.  The bytes that
 * come in follow from the two layouts alone:
 *
 *     no partial sums     the target block, less what the device has of it
 *     sums over n parts   every element takes n - 1 meetings, then copies for all but one
 *                         of its replicas (2 (n - 1) / n of an all-reduce's bytes a device:
 *                         Patarasu and Yuan, Bandwidth optimal all-reduce algorithms for
 *                         clusters of workstations, 2009)
 *
 * A path is a few collectives, each of which brings a number of bytes in a time.  For
 * any x, either one of them brings more than x bytes, which takes at least the least
 * such time; or all bring at most x bytes each, and then bytes come at the best rate r
 * of such collectives, and the first costs its latency a:
 *
 *     time >= min( least time of what brings more than x,  a(x) + bytes / r(x) )
 *
 * The maximum over x is a curve of time against bytes, computed once for devices and
 * once for nodes (all groups of a node's devices share its network).  Times of
 * collectives grow with bytes, so between two sampled sizes nothing is faster than the
 * first or brings more than the second. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topt_layout.h"

enum {
    FINE_BITS = 4,
    FINE = 1 << FINE_BITS, /* sizes of an octave, the same apart */
    OCTAVES = 43,          /* from one byte on; no bound is known of larger tensors */
    SIZES = FINE * OCTAVES,
    FIRST = 8 * FINE, /* sizes below it are one */
    STRIDE = 16,      /* of the sizes that are tried as x */
    MAX_GROUPS = 256,
};

/* The kinds of collectives, by the bytes that they bring. */
struct brought {
    double least[SIZES + 1]; /* the least time of what brings about as much */
    double most[SIZES + 1];  /* and the most that such brings */
};

/* The least time, by bytes. */
struct curve {
    double ns[SIZES];
};

struct topt_byte_bounds {
    struct topt_mesh mesh;
    struct curve device[2], node[2]; /* without partial sums, and with */
};

/* ---- collectives ------------------------------------------------------------------- */

/* A size has for its number the exponent and the first bits of what it is as a
 * floating-point number: they are asked for often. */
enum { SIZE_SHIFT = 52 - FINE_BITS, SIZE_ONE = 1023 << FINE_BITS };

static double size_at(int i)
{
    uint64_t bits = (uint64_t)(i + SIZE_ONE) << SIZE_SHIFT;
    double bytes;
    memcpy(&bytes, &bits, sizeof bytes);
    return bytes;
}

/* The largest size that is not above 'bytes' (at least one). */
static int size_below(double bytes)
{
    uint64_t bits;
    memcpy(&bits, &bytes, sizeof bits);
    int i = (int)(bits >> SIZE_SHIFT) - SIZE_ONE;
    return i < SIZES ? i : SIZES - 1;
}

struct sizes {
    double at[SIZES + 1];
    /* from FIRST on: what is more than the size before */
    int64_t above[SIZES + 1 - FIRST];
};

static void sizes_init(struct sizes *s)
{
    for (int i = 0; i <= SIZES; i++)
        s->at[i] = size_at(i);
    for (int i = FIRST; i <= SIZES; i++)
        s->above[i - FIRST] = i == FIRST ? 1 : (int64_t)s->at[i - 1];
}

static void bring(struct brought *b, double bytes, double ns)
{
    if (bytes < 1 || ns <= 0)
        return;
    int i = size_below(bytes);
    b->least[i] = ns < b->least[i] ? ns : b->least[i];
    b->most[i] = bytes > b->most[i] ? bytes : b->most[i];
}

/* The bytes that one byte of a collective brings to each device of a group, and to a node by
 * all the groups in it. */
static void volumes(enum topt_collective c, struct topt_group g, double *ret_device,
                    double *ret_node)
{
    double n = g.nodes, m = g.per_node, all = n * m;
    double twice = c == TOPT_ALL_REDUCE ? 2 : 1;
    *ret_device = c == TOPT_PERMUTE ? 1 : twice * (all - 1) / all;
    *ret_node = c == TOPT_PERMUTE      ? m
                : c == TOPT_ALL_TO_ALL ? m * (n - 1) / n
                                       : twice * (n - 1) / n;
    *ret_node = g.nodes > 1 ? *ret_node * g.siblings : 0;
}

static void bring_all(const struct topt_hw *hw, const struct sizes *s,
                      enum topt_collective c, struct topt_group g, struct brought *device,
                      struct brought *node)
{
    double of_device, of_node;
    int64_t ns[SIZES + 1 - FIRST];
    volumes(c, g, &of_device, &of_node);
    topt_hw_collective_all(hw, c, g, s->above, SIZES + 1 - FIRST, ns);
    for (int i = FIRST; i <= SIZES; i++) {
        bring(device, of_device * s->at[i], (double)ns[i - FIRST]);
        bring(node, of_node * s->at[i], (double)ns[i - FIRST]);
    }
}

/* ---- curves ------------------------------------------------------------------------ */

/* A latency and a rate that hold up to some size, and what anything beyond takes. */
struct line {
    double latency, per_byte, beyond;
};

static void raise_curve(struct curve *c, const struct sizes *s, const struct line *l)
{
    for (int i = 0; i < SIZES; i++) {
        double ns = l->latency + s->at[i] * l->per_byte;
        ns = ns < l->beyond ? ns : l->beyond;
        c->ns[i] = ns > c->ns[i] ? ns : c->ns[i];
    }
}

/* Those of what was brought that nothing between two others takes less than: the rest
 * needs no look, whatever a byte takes (the lower hull: Andrew, Another efficient
 * algorithm for convex hulls in two dimensions, 1979). */
struct hull {
    int n;
    double bytes[SIZES], ns[SIZES];
};

static void hull_add(struct hull *h, double bytes, double ns)
{
    while (h->n > 1 &&
           (h->ns[h->n - 1] - h->ns[h->n - 2]) * (bytes - h->bytes[h->n - 2]) >=
               (ns - h->ns[h->n - 2]) * (h->bytes[h->n - 1] - h->bytes[h->n - 2]))
        h->n--;
    h->bytes[h->n] = bytes;
    h->ns[h->n++] = ns;
}

/* The latency with which all that is in it takes so long for each byte, or longer. */
static double latency_at(const struct hull *h, double per_byte)
{
    double least = INFINITY;
    for (int i = 0; i < h->n; i++) {
        double ns = h->ns[i] - h->bytes[i] * per_byte;
        least = ns < least ? ns : least;
    }
    return fmax(least, 0);
}

/* Sizes up to x, where those up to a step before are in it; '*rate' is the best. */
static void look_up_to(const struct brought *b, int x, struct hull *h, double *rate)
{
    for (int i = x < STRIDE ? 0 : x - STRIDE + 1; i <= x; i++) {
        if (isinf(b->least[i]))
            continue;
        *rate = fmax(*rate, b->most[i] / b->least[i]);
        hull_add(h, b->most[i], b->least[i]);
    }
}

/* From most sizes on a line is the same, and that with the largest of them says all. */
static void make_curve(struct brought *b, const struct sizes *s, struct curve *ret)
{
    static const double times[] = {1, 1.1, 1.5, 4}; /* the best rate */
    enum { TIMES = sizeof times / sizeof *times };
    double beyond[SIZES + 1], rate = 0;
    struct hull hull = {.n = 0};
    struct line last[TIMES] = {{0, 0, 0}};
    beyond[SIZES] = INFINITY;
    for (int i = SIZES - 1; i >= 0; i--)
        beyond[i] = fmin(beyond[i + 1], b->least[i]);
    for (int i = 0; i < SIZES; i++)
        ret->ns[i] = isinf(beyond[0]) ? 0 : beyond[0];
    for (int x = 0; x < SIZES; x += STRIDE) {
        look_up_to(b, x, &hull, &rate);
        for (int k = 0; rate > 0 && k < TIMES; k++) {
            double per_byte = 1 / (rate * times[k]);
            struct line l = {latency_at(&hull, per_byte), per_byte, beyond[x + 1]};
            if (l.latency != last[k].latency || l.per_byte != last[k].per_byte)
                raise_curve(ret, s, &last[k]);
            last[k] = l;
        }
    }
    for (int k = 0; k < TIMES; k++)
        raise_curve(ret, s, &last[k]);
    /* Times are rounded up, and these sums not quite exact. */
    for (int i = 0; i < SIZES; i++)
        ret->ns[i] *= 1 - 1e-9;
}

/* ---- groups ------------------------------------------------------------------------ */

/* Different products of some of the axes. */
static int products(const int *size, int n, int *ret)
{
    int count = 1;
    ret[0] = 1;
    for (int a = 0; a < n; a++)
        for (int i = count - 1; i >= 0; i--) {
            int x = ret[i] * size[a], k = 0;
            while (k < count && ret[k] != x)
                k++;
            if (k == count && count < MAX_GROUPS)
                ret[count++] = x;
        }
    return count;
}

static void no_brought(struct brought *b)
{
    for (int i = 0; i <= SIZES; i++) {
        b->least[i] = INFINITY;
        b->most[i] = 0;
    }
}

/* The bytes that all collectives of a kind bring, with or without those that end partial
 * sums. */
static void bring_every(const struct topt_hw *hw, const struct topt_mesh *m,
                        const struct sizes *s, int partial, struct brought *device,
                        struct brought *node)
{
    int nodes[MAX_GROUPS], local[MAX_GROUPS];
    int nnodes = products(m->size, m->node_axes, nodes);
    int nlocal = products(m->size + m->node_axes, m->naxes - m->node_axes, local);
    for (int i = 0; i < nnodes * nlocal; i++) {
        struct topt_group g = {nodes[i / nlocal], local[i % nlocal],
                               m->per_node / local[i % nlocal]};
        for (int c = 0; c < TOPT_COLLECTIVE_COUNT; c++) {
            int ends = c == TOPT_ALL_REDUCE || c == TOPT_REDUCE_SCATTER;
            if (g.nodes * g.per_node > 1 && ends == partial)
                bring_all(hw, s, (enum topt_collective)c, g, device, node);
        }
    }
}

struct topt_byte_bounds *topt_byte_bounds_create(const struct topt_hw *hw,
                                                 const struct topt_mesh *mesh)
{
    struct topt_byte_bounds *f = malloc(sizeof *f);
    struct brought *b = malloc(2 * sizeof *b);
    struct sizes *s = malloc(sizeof *s);
    if (f && b && s) {
        f->mesh = *mesh;
        sizes_init(s);
        no_brought(&b[0]);
        no_brought(&b[1]);
        for (int partial = 0; partial < 2; partial++) {
            bring_every(hw, mesh, s, partial, &b[0], &b[1]);
            make_curve(&b[0], s, &f->device[partial]);
            make_curve(&b[1], s, &f->node[partial]);
        }
    } else {
        free(f);
        f = NULL;
    }
    free(b);
    free(s);
    return f;
}

void topt_byte_bounds_destroy(struct topt_byte_bounds *f)
{
    free(f);
}

/* ---- what has to travel ------------------------------------------------------------ */

/* The axes that split a dimension, outermost first: four bits each. */
static int axis_at(uint64_t axes, int i)
{
    return (int)(axes >> 4 * i & 15);
}

void topt_byte_bound_end_of(const struct topt_mesh *m, const struct topt_shape *s,
                            const struct topt_layout *l, struct topt_byte_bound_end *ret)
{
    *ret = (struct topt_byte_bound_end){
        .partial = topt_layout_partial_mask(l), .elements = 1, .device = 1, .node = 1};
    for (int d = 0; d < TOPT_MAX_RANK; d++)
        ret->parts[d] = 1;
    for (int a = 0; a < m->naxes; a++) {
        int d = l->at[a];
        if (d < 0)
            continue;
        ret->axes[d] |= (uint64_t)a << 4 * l->pos[a];
        ret->naxes[d]++;
        ret->parts[d] *= m->size[a];
        ret->device /= m->size[a];
        ret->node /= a < m->node_axes ? m->size[a] : 1;
        ret->odd |= m->size[a] == 2 ? 0 : 1u << d;
    }
    for (int d = 0; d < s->ndim; d++) {
        ret->elements *= (double)s->dim[d].count * (double)s->dim[d].unit;
        ret->uneven |= s->dim[d].count % ret->parts[d] ? 1u << d : 0;
    }
}

/* The parts of a device's and of a node's target that they have already. */
struct share {
    double of_device, of_node;
};

/* Where axes split a dimension into blocks that are not all of one size, we look at a
 * part of the tensor that they do split evenly: as many counts of each of the finest
 * blocks.  Halves of halves lie at the same places whichever axes they are of, and
 * differ by one count at most.  Of other splits nothing is known. */
static double even_part(int64_t count, const struct topt_byte_bound_end *from,
                        const struct topt_byte_bound_end *to, int dim)
{
    if ((from->odd | to->odd) >> dim & 1)
        return 0;
    int64_t finest =
        from->parts[dim] > to->parts[dim] ? from->parts[dim] : to->parts[dim];
    return (double)(count / finest * finest) / (double)count;
}

/* Axis 'x' chooses the node, and its coordinate a digit of the counts of a dimension
 * that a node has.  'before' digits are more significant.  What part of what the node
 * is to have has that digit? */
static double part_of_node(const struct topt_mesh *m, int x, int before,
                           const struct topt_byte_bound_end *end, int dim)
{
    int k = 0, nto = end->naxes[dim], above = 1;
    uint64_t to = end->axes[dim];
    while (k < nto && above < before)
        above *= m->size[axis_at(to, k++)];
    if (k == nto)
        return before % above ? 1
                              : 1.0 / m->size[x]; /* what it is to have has all digits */
    int at = axis_at(to, k);
    if (above != before || m->size[at] != m->size[x] || at == x)
        return 1;
    /* Its devices are to have each another digit; or all have one, and of some node
     * another. */
    return at >= m->node_axes ? 1.0 / m->size[x] : 0;
}

/* How many of the outermost axes are the same. */
static int same_axes(const struct topt_byte_bound_end *a,
                     const struct topt_byte_bound_end *b, int dim)
{
    uint64_t differ = a->axes[dim] ^ b->axes[dim];
    int n = a->naxes[dim] < b->naxes[dim] ? a->naxes[dim] : b->naxes[dim];
    int same = differ ? __builtin_ctzll(differ) / 4 : n;
    return same < n ? same : n;
}

/* A dimension that the source splits. */
static void add_dim(const struct topt_mesh *m, const struct topt_byte_bound_end *from,
                    const struct topt_byte_bound_end *to, int dim, struct share *ret)
{
    int na = from->naxes[dim], nb = to->naxes[dim];
    int same = same_axes(from, to, dim), before = 1;
    if (same < na && same < nb)
        ret->of_device = 0; /* some device has nothing of what it is to have */
    for (int i = 0; i < na; i++) {
        int a = axis_at(from->axes[dim], i);
        if (i >= same)
            ret->of_device /= m->size[a];
        if (a < m->node_axes)
            ret->of_node *= part_of_node(m, a, before, to, dim);
        before *= m->size[a];
    }
}

/* Devices, and nodes, that hold different parts of the sums that end. */
static void parts_of_sums(const struct topt_mesh *m, uint32_t ends, double *ret_all,
                          double *ret_nodes)
{
    *ret_all = *ret_nodes = 1;
    for (; ends; ends &= ends - 1) {
        int a = __builtin_ctz(ends);
        *ret_all *= m->size[a];
        *ret_nodes *= a < m->node_axes ? m->size[a] : 1;
    }
}

/* Meetings of 'parts', and copies for all replicas but one: of each of 'n' devices, or
 * nodes. */
static double of_sums(double parts, double share, double n)
{
    return (parts - 1 + n * share - 1) / n;
}

static double on_curve(const struct curve *c, double bytes)
{
    return bytes < 1 ? 0 : c->ns[size_below(bytes)];
}

int64_t topt_byte_bound_between(const struct topt_byte_bounds *f,
                                const struct topt_shape *s, int element_bytes,
                                const struct topt_byte_bound_end *from,
                                const struct topt_byte_bound_end *to)
{
    const struct topt_mesh *m = &f->mesh;
    struct share x = {1, 1};
    double bytes = element_bytes * from->elements, even = 1, parts, nodes;
    if (bytes >= size_at((OCTAVES - 2) * FINE) || m->costed) /* a small part has less */
        return 0;
    for (int d = 0; d < s->ndim; d++)
        if (from->naxes[d])
            add_dim(m, from, to, d, &x);
    for (uint32_t dims = from->uneven | to->uneven; dims; dims &= dims - 1)
        even *=
            even_part(s->dim[__builtin_ctz(dims)].count, from, to, __builtin_ctz(dims));
    parts_of_sums(m, from->partial & ~to->partial, &parts, &nodes);
    int sums = parts > 1;
    double device = even * to->device * (1 - x.of_device),
           node = even * to->node * (1 - x.of_node);
    /* Whatever the sizes of blocks are, each element is in so many. */
    if (parts > 1)
        device = fmax(to->device, of_sums(parts, to->device, m->devices));
    if (nodes > 1)
        node = fmax(to->node, of_sums(nodes, to->node, m->nodes));
    return (int64_t)fmax(on_curve(&f->device[sums], bytes * device),
                         on_curve(&f->node[sums], bytes * node));
}
