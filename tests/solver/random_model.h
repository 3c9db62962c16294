/* random_model.h - small random models for property tests, the same for the same seed. */
#ifndef TOPT_RANDOM_MODEL_H
#define TOPT_RANDOM_MODEL_H

#include <stdio.h>

#include "topt_model.h"

static uint64_t random_next(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int random_below(uint64_t *seed, int n)
{
    return (int)(random_next(seed) % (uint64_t)n);
}

/* One operator on 'x' that keeps [b, s, d]; 'kept' is an earlier tensor of the same shape. */
static int random_step(struct topt_model *m, uint64_t *seed, int x, int kept, int width)
{
    char name[24];
    snprintf(name, sizeof name, "op%d", m->nops);
    struct topt_attrs a = {.features = width};
    int two[2] = {x, kept};
    switch (random_below(seed, kept >= 0 ? 6 : 4)) {
    case 0:
        return topt_model_add(m, "linear", name, 1, &x, &a, NULL);
    case 1:
        a = (struct topt_attrs){.activation = random_below(seed, 4)};
        return topt_model_add(m, "unary", name, 1, &x, &a, NULL);
    case 2:
        a = (struct topt_attrs){.rms = random_below(seed, 2)};
        return topt_model_add(m, "norm", name, 1, &x, &a, NULL);
    case 3:
        return topt_model_add(m, "bias", name, 1, &x, NULL, NULL);
    case 4:
        return topt_model_add(m, "add", name, 2, two, NULL, NULL);
    default:
        return topt_model_add(m, "mul", name, 2, two, NULL, NULL);
    }
}

/* The model with a loss of 'x', or NULL. */
static struct topt_model *finished(struct topt_model *m, int x)
{
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    if (x >= 0 && !topt_model_finish(m, NULL))
        return m;
    topt_model_destroy(m);
    return NULL;
}

/* embedding, of odd width a sparse table, 'steps' random operators, a linear to the
 * vocabulary, the loss. */
__attribute__((unused)) static struct topt_model *random_model(uint64_t seed, int steps)
{
    struct topt_model *m = topt_model_create("random", 2 + random_below(&seed, 5),
                                             1 + random_below(&seed, 4), NULL);
    int width = 4 + random_below(&seed, 9), vocab = 4 + random_below(&seed, 9);
    struct topt_attrs a = {.vocab = vocab, .features = width};
    int tied = random_below(&seed, 4) == 0;
    int w = tied ? topt_model_add(m, "variable", "table", 0, NULL, &a, NULL) : -1;
    a.sparse = width % 2;
    int x = topt_model_add(m, "embedding", "embedding", tied, &w, tied ? NULL : &a, NULL);
    int kept = -1;
    for (int i = 0; i < steps; i++) {
        int before = x;
        x = random_step(m, &seed, x, kept, width);
        if (kept < 0 || random_below(&seed, 3) == 0)
            kept = before;
    }
    int both[2] = {x, w};
    a = (struct topt_attrs){.features = vocab};
    x = topt_model_add(m, "linear", "head", 1 + tied, both, tied ? NULL : &a, NULL);
    return finished(m, x);
}

/* embedding, 'blocks' times the same 'steps' operators, a linear to the vocabulary,
 * the loss. */
__attribute__((unused)) static struct topt_model *block_model(uint64_t seed, int blocks,
                                                              int steps)
{
    struct topt_model *m = topt_model_create("blocks", 2 + random_below(&seed, 5),
                                             1 + random_below(&seed, 4), NULL);
    int width = 4 + random_below(&seed, 9), vocab = 4 + random_below(&seed, 9);
    struct topt_attrs a = {.vocab = vocab, .features = width, .sparse = width % 2};
    int x = topt_model_add(m, "embedding", "embedding", 0, NULL, &a, NULL);
    int residual = random_below(&seed, 3) == 0;
    for (int b = 0; b < blocks; b++) {
        uint64_t same = seed;
        int kept = residual ? x : -1;
        for (int i = 0; i < steps; i++)
            x = random_step(m, &same, x, i > 0 ? kept : -1, width);
    }
    a = (struct topt_attrs){.features = vocab};
    x = topt_model_add(m, "linear", "head", 1, &x, &a, NULL);
    return finished(m, x);
}

#endif
