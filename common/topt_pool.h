/* topt_pool.h - a few threads that do the numbered pieces of one job at a time.
 * Thread safety: a pool belongs to one thread, who may be a worker of no job of it. */
#ifndef TOPT_POOL_H
#define TOPT_POOL_H

#include "topt_error.h"

struct topt_pool;

/* 'nthreads' counts the caller, who works too; 1 starts no thread. */
struct topt_pool *topt_pool_create(int nthreads, struct topt_error *err);
void topt_pool_destroy(struct topt_pool *p);
int topt_pool_threads(const struct topt_pool *p);

/* Run work(ctx, worker) once on every thread, worker in 0..nthreads-1; returns when all are
 * back.  How the pieces are shared out is the job's affair. */
void topt_pool_run(struct topt_pool *p, void (*work)(void *ctx, int worker), void *ctx);

/* Processors that this process may run on, at least 1 and at most 8: what a command that
 * somebody waits for may take of a machine that others use too. */
int topt_pool_processors(void);

#endif
