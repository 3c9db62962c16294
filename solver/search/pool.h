/* pool.h - a few threads that do the numbered pieces of one job at a time.
 * Internal to this folder. */
#ifndef TOPT_POOL_H
#define TOPT_POOL_H

#include "topt_error.h"

struct pool;

/* 'nthreads' counts the caller, who works too; 1 starts no thread. */
struct pool *topt_pool_create(int nthreads, struct topt_error *err);
void topt_pool_destroy(struct pool *p);
int topt_pool_threads(const struct pool *p);

/* Run work(ctx, worker) once on every thread, worker in 0..nthreads-1; returns when all are
 * back.  How the pieces are shared out is the job's affair. */
void topt_pool_run(struct pool *p, void (*work)(void *ctx, int worker), void *ctx);

#endif
