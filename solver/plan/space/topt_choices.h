/* topt_choices.h - what a search may choose from: spaces, whether blocks choose alike,
 * factors. */
#ifndef TOPT_CHOICES_H
#define TOPT_CHOICES_H

enum topt_space {
    TOPT_SPACE_AUTO, /* full up to 16 devices, canonical beyond */
    TOPT_SPACE_FULL,
    TOPT_SPACE_CANONICAL,
    TOPT_SPACE_UNIFORM,
    TOPT_SPACE_COUNT
};

/* AUTO resolved for a number of devices. */
enum topt_space topt_space_resolve(enum topt_space s, int devices);

/* Does every repeated block choose by itself, or do all of a kind choose alike? */
enum topt_block_choice {
    /* Alike in the uniform space; where recomputation is searched, too, but for the
     * fastest within a tolerance. */
    TOPT_BLOCKS_AUTO,
    TOPT_BLOCKS_FREE,
    TOPT_BLOCKS_ALIKE,
    TOPT_BLOCKS_COUNT
};

/* The factors that are searched beside splits, as bits. */
enum topt_factor {
    TOPT_FACTOR_ZERO = 1,      /* sharding over the replicas of a parameter */
    TOPT_FACTOR_RECOMPUTE = 2, /* making activations again in backward */
    TOPT_FACTOR_MICRO = 4,     /* micro-batches: all divisors of the batch */
    TOPT_FACTORS_ALL = 7,
    /* all in the uniform space, sharding in the others, none by the papers' accounting */
    TOPT_FACTORS_AUTO = 8
};

#endif
