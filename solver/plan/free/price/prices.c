/* prices.c - what the configurations of a family of operators cost.
 *
 * A configuration's fragment is priced once for all that differ from it only by names of
 * axes.  Moves inside it (of a recurrence, of a halo) take ways that are found together,
 * by threads. */
#include "prices.h"
#include "configs.h"
#include "problem_data.h"
#include "topt_hash.h"

#include <stdlib.h>
#include <string.h>

/* For each configuration the first that costs the same. */
static int find_same(const struct topt_mesh *m, const struct family *f, int32_t *ret)
{
    uint32_t nslots = 2;
    while (nslots < 2 * (uint32_t)f->n)
        nslots *= 2;
    struct topt_config *form = malloc(((size_t)f->n + 1) * sizeof *form);
    int32_t *slot = malloc(nslots * sizeof *slot);
    if (slot)
        memset(slot, 0xff, nslots * sizeof *slot);
    for (int i = 0; form && slot && i < f->n; i++) {
        form[i] = topt_config_nameless(m, f->config[i]);
        uint32_t at = (uint32_t)topt_hash(&form[i], sizeof form[i], 1) & (nslots - 1);
        while (slot[at] >= 0 && memcmp(&form[slot[at]], &form[i], sizeof form[i]) != 0)
            at = (at + 1) & (nslots - 1);
        slot[at] = slot[at] < 0 ? i : slot[at];
        ret[i] = slot[at];
    }
    int bad = !form || !slot;
    free(form);
    free(slot);
    return bad ? -1 : 0;
}

static void keep_time(struct family *f, int i, const struct topt_fragment_cost *c)
{
    f->cost[i].time = c->compute_ns + c->network_ns;
    f->transient[i] = c->transient_bytes;
}

static void keep_cost(struct family *f, int i, const struct topt_fragment_cost *c)
{
    keep_time(f, i, c);
    f->cost[i].memory = 0;
    for (int k = 0; k < TOPT_CLASS_COUNT; k++)
        f->cost[i].memory += k == TOPT_CLASS_RECOMPUTED ? 0 : c->class_bytes[k];
    f->recomputed[i] = c->class_bytes[TOPT_CLASS_RECOMPUTED];
}

/* On the way to the price of a configuration. */
enum state { LEFT, WANTED, WAITING /* for ways */, SETTLED };

/* Price the fragments of WANTED configurations, whose routes are known. */
static int ask_wanted(const struct topt_problem *p, struct family *f, uint8_t *state,
                      struct topt_error *err)
{
    struct topt_fragment_cost c;
    int waits;
    for (int i = 0; i < f->n; i++) {
        if (state[i] != WANTED)
            continue;
        if (topt_problem_canceled(p, err) ||
            topt_cost_op_ask(&p->k, f->op, &f->config[i], &c, &waits, err))
            return -1;
        state[i] = waits ? WAITING : SETTLED;
        keep_cost(f, i, &c);
    }
    return 0;
}

/* The first of each kind. */
static int ask_firsts(const struct topt_problem *p, struct family *f, const int32_t *same,
                      uint8_t *state, struct topt_error *err)
{
    for (int i = 0; i < f->n; i++)
        state[i] = same[i] == i ? WANTED : LEFT;
    return ask_wanted(p, f, state, err);
}

/* Ways are found together, and then what waits for them is written once more. */
static int settle_waiting(const struct topt_problem *p, struct family *f, uint8_t *state,
                          struct topt_error *err)
{
    struct topt_fragment_cost c;
    int any = memchr(state, WAITING, (size_t)f->n) != NULL;
    if (any && topt_router_answer(p->k.router, p->options.threads, p->k.cancel, err))
        return -1;
    for (int i = 0; any && i < f->n; i++) {
        if (state[i] != WAITING)
            continue;
        if (topt_cost_op(&p->k, f->op, &f->config[i], &c, err))
            return -1;
        state[i] = SETTLED;
        keep_time(f, i, &c);
    }
    return 0;
}

int topt_family_cost(const struct topt_problem *p, struct family *f,
                     struct topt_error *err)
{
    int32_t *same = malloc(((size_t)f->n + 1) * sizeof *same);
    uint8_t *state = calloc((size_t)f->n + 1, 1);
    int rc = !same || !state || find_same(p->k.mesh, f, same)
                 ? topt_nomem(err, "configurations")
                 : ask_firsts(p, f, same, state, err);
    if (!rc)
        rc = settle_waiting(p, f, state, err);
    for (int i = 0; !rc && i < f->n; i++) {
        f->cost[i] = f->cost[same[i]];
        f->recomputed[i] = f->recomputed[same[i]];
        f->transient[i] = f->transient[same[i]];
    }
    free(same);
    free(state);
    return rc;
}
