/* pins.h - splits that the user has chosen.  Private to plan/.
 *
 *     NAME=SPLIT[;NAME=SPLIT...]
 *
 * NAME is an operator, or a pattern with * and ?; SPLIT the parts of its dimensions ("b:2,n:4",
 * those that are not named stay whole), or the axes that split them ("b:n0+g0,n:g1", as plans name
 * axes: "n0" between nodes, "g1" inside), or what `topt explain` prints ("data 2 x tensor 4 over
 * n").  Of several pins that an operator matches the last one holds. */
#ifndef TOPT_PINS_H
#define TOPT_PINS_H

#include "topt_lower.h"

enum { TOPT_PIN_NAME = 96, TOPT_PIN_DIM = 16 };

struct topt_pin {
    char name[TOPT_PIN_NAME];
    int ways; /* as explain prints it, not by dimension */
    int n;    /* dimensions; of ways, those that are split, where they are said */
    struct topt_pin_part {
        char dim[TOPT_PIN_DIM];
        int64_t parts;          /* 0: by axes */
        uint32_t nodes, inside; /* axes between nodes and inside, a bit each */
    } part[TOPT_MAX_OPDIMS];
    int64_t data, spatial, sequence, tensor, expert, same; /* of ways */
    int zero;                                              /* of ways: a level; -1: any */
};

struct topt_pins {
    int n;
    struct topt_pin *pin;
    /* By operator of a model: its pin or -1.  'alike': where blocks choose alike, so that a pin
     * of one is one of all. */
    int *at, *alike;
};

/* The text alone. */
int topt_pins_parse(const char *text, struct topt_pins *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;
/* Read the pins of a model; 'text' may be NULL. */
int topt_pins_init(struct topt_pins *p, const char *text, const struct topt_model *m,
                   struct topt_error *err) TOPT_MUST_CHECK;
void topt_pins_fini(struct topt_pins *p);

/* Has an operator no pin, or a configuration what its pin says? */
int topt_pins_allow(const struct topt_pins *p, int alike, int op,
                    const struct topt_op *of, const struct topt_mesh *mesh,
                    const struct topt_config *c);
/* The pin of an operator; -1: none. */
int topt_pins_at(const struct topt_pins *p, int alike, int op);

/* How many parts a configuration makes of each dimension, and how many devices do the same. */
void topt_pin_parts(const struct topt_op *op, const struct topt_mesh *mesh,
                    const struct topt_config *c, int64_t parts[TOPT_MAX_OPDIMS],
                    int64_t *same);
/* Does a configuration split the operator as the pin says, whatever its level of sharding? */
int topt_pin_matches(const struct topt_pin *p, const struct topt_op *op,
                     const struct topt_mesh *mesh, const struct topt_config *c);

#endif
