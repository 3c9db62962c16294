/* handlers.h - the threads that run handlers, so that no thread that serves connections ever
 * waits for a disk, for munged or for a document to be written out.
 *
 * Thread safety: any thread adds; create and destroy belong to the main thread. */
#ifndef TOPTD_HANDLERS_H
#define TOPTD_HANDLERS_H

#include "topt_error.h"

struct handlers;

/* One call to be made; part of what it is about, and linked in here while it waits. */
struct handlers_call {
    void (*run)(void *ctx);
    void *ctx;
    struct handlers_call *next;
};

/* 'threads' for all calls, and one more for urgent calls alone. */
int handlers_create(int threads, struct handlers **ret,
                    struct topt_error *err) TOPT_MUST_CHECK;
/* Urgent calls are made before all others; else the order is that of adding. */
void handlers_add(struct handlers *h, struct handlers_call *call, int urgent);
/* Make every call that waits, then join the threads and free.  Nothing may be added any more
 * but by those calls.  NULL is fine. */
void handlers_destroy(struct handlers *h);

#endif
