/* factors.h - the factors of a strategy beside its splits, at random: what is sharded over
 * replicas, what is made again in backward. */
#ifndef TOPT_TEST_FACTORS_H
#define TOPT_TEST_FACTORS_H

#include <stdlib.h>

#include "topt_lower.h"

/* 'roll' gives a number below 'sides'.  Returns how many operators recompute, -1 without
 * memory. */
__attribute__((unused)) static int
roll_factors(struct topt_strategy *s, const struct topt_model *m,
             const struct topt_mesh *mesh, const struct topt_settings *settings,
             int (*roll)(void *ctx, int sides), void *ctx)
{
    uint8_t *may = NULL;
    int often = roll(ctx, 4), flagged = 0;
    if (topt_recomputable(m, settings, &may, NULL))
        return -1;
    for (int i = 0; i < m->nops; i++) {
        struct topt_config *c = &s->config[i];
        c->zero = (uint8_t)roll(ctx, TOPT_ZERO_COUNT);
        if (!topt_config_valid(&m->op[i], c, mesh))
            c->zero = TOPT_ZERO_NONE;
        c->recompute = may[i] && roll(ctx, 4) < often;
        flagged += c->recompute;
        struct topt_hub *h = &s->hub[topt_output_tensor(&m->op[i])];
        if (c->recompute && h->keep == TOPT_HUB_KEEP && roll(ctx, 4))
            h->keep = TOPT_HUB_RECOMPUTE;
    }
    free(may);
    return flagged;
}

#endif
