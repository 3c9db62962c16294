/* topt_run_place.h - where in a program a rank is: written by the thread that runs it,
 * read by whoever watches.  Fields are told one by one. */
#ifndef TOPT_RUN_PLACE_H
#define TOPT_RUN_PLACE_H

#include <stdatomic.h>
#include <stdint.h>

/* What is done outside of the program's instructions. */
enum topt_run_doing {
    TOPT_DOING_START = -1,
    TOPT_DOING_BETWEEN = -2, /* after a step, before the next */
    TOPT_DOING_SAVE = -3,
    TOPT_DOING_LOAD = -4,
    TOPT_DOING_END = -5
};

struct topt_run_place {
    /* Instructions begun so far: the same on ranks that are at the same place. */
    atomic_int_least64_t count;
    atomic_int_least64_t step, instr; /* finished steps; enum topt_run_doing below 0 */
    atomic_int waits;                 /* for other ranks */
};

/* The next instruction begins; 'p' may be NULL. */
static inline void topt_run_at(struct topt_run_place *p, int64_t step, int64_t instr,
                               int waits)
{
    if (!p)
        return;
    atomic_store_explicit(&p->step, step, memory_order_relaxed);
    atomic_store_explicit(&p->instr, instr, memory_order_relaxed);
    atomic_store_explicit(&p->waits, waits, memory_order_relaxed);
    atomic_store_explicit(&p->count,
                          atomic_load_explicit(&p->count, memory_order_relaxed) + 1,
                          memory_order_release);
}

#endif
