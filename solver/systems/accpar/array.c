/* array.c - cuts of cuts: a whole array of boards, down to single ones.
 *
 * An array of two kinds is cut between them, one kind into halves, which are alike, so that one
 * of the two is cut on.  The boards of a group compute and talk at once: its rates are theirs
 * times their number.  A step takes what the cut exchanges, then what the slower of the two
 * groups takes; a board only computes.  Where they are told so, a group has the link of one board. */

#include "topt_accpar.h"

#include <string.h>

struct array {
    const struct topt_accpar_net *net;
    double element_bytes;
    enum topt_accpar_system system;
    struct topt_accpar_answer *answer; /* cuts on the way that is followed */
};

static double compute_seconds(const struct topt_accpar_net *net,
                              const struct topt_accpar_part *part,
                              const struct topt_accpar_boards *b)
{
    double sum = 0;
    for (int l = 0; l < net->n; l++)
        sum += topt_accpar_flops(&net->layer[l], net->batch) * part[l].batch *
               part[l].in * part[l].out / b->flops;
    return sum;
}

/* What one side of a cut has of what both had. */
static void narrow(const struct array *a, const struct topt_accpar_part *part,
                   const struct topt_accpar_cut *c, int side,
                   struct topt_accpar_part *ret)
{
    for (int l = 0; l < a->net->n; l++) {
        double share = side ? 1 - c->share[l] : c->share[l];
        ret[l] = part[l];
        if (c->type[l] == TOPT_ACCPAR_BATCH)
            ret[l].batch *= share;
        else if (c->type[l] == TOPT_ACCPAR_INPUT)
            ret[l].in *= share;
        else
            ret[l].out *= share;
    }
}

static int links(const struct topt_accpar_boards *b)
{
    return b->one_link ? 1 : b->count;
}

static int cut_boards(struct array *a, const struct topt_accpar_part *part,
                      struct topt_accpar_boards b, int level, struct topt_error *err)
{
    struct topt_accpar_part half[TOPT_ACCPAR_LAYERS];
    struct topt_accpar_answer *r = a->answer;
    memcpy(half, part, (size_t)a->net->n * sizeof *half);
    r->levels = level;
    r->exchange_seconds = 0;
    while (b.count > 1) {
        struct topt_accpar_cut *c = &r->cut[r->levels++];
        double link =
            b.count <= b.per_node ? b.node_bytes_per_second : b.bytes_per_second;
        b.count /= 2;
        double flops = b.flops * b.count, rate = link * links(&b);
        struct topt_accpar_sides sides = {{flops, flops}, {rate, rate}, a->element_bytes};
        if (topt_accpar_cut(a->net, half, &sides, a->system, c, err))
            return -1;
        r->exchange_seconds += c->exchange_seconds;
        narrow(a, half, c, 0, half);
    }
    r->compute_seconds = compute_seconds(a->net, half, &b);
    r->seconds = r->compute_seconds + r->exchange_seconds;
    return 0;
}

static int cut_kinds(struct array *a, const struct topt_accpar_part *part,
                     const struct topt_accpar_boards *kinds, struct topt_error *err)
{
    struct topt_accpar_answer *r = a->answer, other;
    struct topt_accpar_part side[2][TOPT_ACCPAR_LAYERS];
    struct topt_accpar_sides sides = {.element_bytes = a->element_bytes};
    for (int k = 0; k < 2; k++) {
        sides.flops[k] = kinds[k].flops * kinds[k].count;
        sides.bytes_per_second[k] = kinds[k].bytes_per_second * links(&kinds[k]);
    }
    if (topt_accpar_cut(a->net, part, &sides, a->system, &r->cut[0], err))
        return -1;
    struct topt_accpar_cut first = r->cut[0];
    for (int k = 0; k < 2; k++)
        narrow(a, part, &first, k, side[k]);
    if (cut_boards(a, side[0], kinds[0], 1, err))
        return -1;
    other = *r;
    if (cut_boards(a, side[1], kinds[1], 1, err))
        return -1;
    if (other.seconds > r->seconds)
        *r = other;
    r->exchange_seconds += first.exchange_seconds;
    r->seconds += first.exchange_seconds;
    return 0;
}

static int check(const struct topt_accpar_boards *boards, int kinds,
                 struct topt_error *err)
{
    if (kinds < 1 || kinds > 2)
        return topt_fail(err, TOPT_ERR_INVAL, "an array has one or two kinds of boards");
    for (int k = 0; k < kinds; k++) {
        int n = boards[k].count;
        if (n < 1 || n > 1 << (TOPT_ACCPAR_LEVELS - 2) || n & (n - 1))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%d boards of %s: arrays are cut in halves, so their number "
                             "is a power of two up to %d",
                             n, boards[k].name, 1 << (TOPT_ACCPAR_LEVELS - 2));
        if (!(boards[k].flops > 0) || !(boards[k].bytes_per_second > 0))
            return topt_fail(err, TOPT_ERR_INVAL, "%s has no rate of computing or links",
                             boards[k].name);
    }
    return 0;
}

int topt_accpar_solve(const struct topt_accpar_net *net,
                      const struct topt_accpar_boards *boards, int kinds,
                      double element_bytes, enum topt_accpar_system system,
                      struct topt_accpar_answer *ret, struct topt_error *err)
{
    struct array a = {net, element_bytes, system, ret};
    struct topt_accpar_part all[TOPT_ACCPAR_LAYERS];
    if (check(boards, kinds, err))
        return -1;
    for (int l = 0; l < net->n; l++)
        all[l] = (struct topt_accpar_part){1, 1, 1};
    return kinds == 1 ? cut_boards(&a, all, boards[0], 0, err)
                      : cut_kinds(&a, all, boards, err);
}
