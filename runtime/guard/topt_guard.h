/* topt_guard.h - a job ends when one of its ranks does, or does not come.
 *
 * Ranks wait for each other in collectives, so one that is killed, stopped or stuck holds
 * all for ever.  Each rank has a thread that tells rank 0 twice a second where the rank is
 * in the program; between the threads are connections of their own, since those of the
 * program are what hangs.  Rank 0 (without it the first that is left) says once which
 * ranks are missing and what waits for them, tells all to end, and aborts the
 * communicator.
 *
 *     topt_guard_start(comm, &options, &g, &err)            every rank
 *     topt_guard_look(g, 1)                                 from here on stillness counts
 *     ... g's place is kept by the session (topt_session_options.place) ...
 *     topt_guard_stop(g)                                    every rank, in an orderly end
 *
 * Where no connection can be made each thread looks after its own rank alone.  Thread
 * safety: a guard belongs to the thread that started it; it reads the place that this
 * thread writes. */
#ifndef TOPT_GUARD_H
#define TOPT_GUARD_H

#include "topt_comm.h"
#include "topt_run_place.h"

struct topt_guard;

struct topt_guard_options {
    int64_t seconds; /* stillness that is too long; 0: any is borne */
    /* A place in words; called by the guard's thread. */
    void (*describe)(void *ctx, int64_t instr, char *buf, size_t size);
    /* Called on the one rank that speaks, by the guard's thread, while the others wait:
     * says 'line' and writes what is known so far.  Returns soon. */
    void (*last_words)(void *ctx, enum topt_err code, const char *line);
    void *ctx;
};

/* NULL in '*ret' for a single process.  Every rank calls it, where one fails all do. */
int topt_guard_start(struct topt_comm *comm, const struct topt_guard_options *o,
                     struct topt_guard **ret, struct topt_error *err) TOPT_MUST_CHECK;
/* Every rank: no more is to come.  NULL is fine, here and below. */
void topt_guard_stop(struct topt_guard *g);
/* Is stillness looked for? */
void topt_guard_look(struct topt_guard *g, int on);
/* Where this rank's thread writes what it does; NULL without a guard. */
struct topt_run_place *topt_guard_place(struct topt_guard *g);
/* Are the ranks connected, so that missing ones can be named? */
int topt_guard_connected(const struct topt_guard *g);
/* This rank can't go on: all end, and one of them says why.  Does not return. */
_Noreturn void topt_guard_fail(struct topt_guard *g, const struct topt_error *err);

#endif
