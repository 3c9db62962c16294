/* frame.h - what toptd and its worker processes say to each other over a socket pair.
 *
 * A frame is a type and a payload; the payload of most is a list of fields, each with its length,
 * in the order that the type says.  Both ends are of one build on one machine, so numbers travel as
 * they lie in memory, but a worker has read what strangers sent: every length is checked against a
 * limit and against what is there.
 *
 *      from the daemon                                        from the worker
 *      requests, see below                                    PROGRESS  phase, done, of, best
 *      STOP     answer with the best so far                   DONE      as the operation says
 *      CANCEL   end                                           FAIL      code, field at fault, text
 *      BRIEF    leave out what stands beside the answer
 *
 * Thread safety: none; a buffer has one owner at a time. */
#ifndef TOPTD_FRAME_H
#define TOPTD_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"

enum frame_type {
    /* is it a question, the question beside it or "", name, body
     *   ->  the question in it or "", notes of a run as JSON or "", model id, name, document (or none of these) */
    FRAME_READ = 1,
    FRAME_CHECK, /* question  ->  nothing */
    /* question, model id, name, document, hw id, document, threads, table bytes, thousandths of
     * memory, the problem's name, notes of a run as JSON or ""
     *   ->  feasible, answer, plan id, plan, was there a search, was it stopped */
    FRAME_PLAN,
    FRAME_FACTS,   /* name, document  ->  facts as numbers */
    FRAME_PROFILE, /* document as it came  ->  id, name, document */
    FRAME_LAUNCH, /* is drawn, plan  ->  the job script that runs it, or its schedule as SVG */
    FRAME_SHIPPED, /* nothing  ->  (name, id, document)... */
    FRAME_STOP,
    FRAME_CANCEL,
    FRAME_BRIEF,
    FRAME_PROGRESS,
    FRAME_DONE,
    FRAME_FAIL,
    FRAME_TYPES
};

/* Exit status of a worker that has no memory to say so. */
enum { WORKER_NOMEM = 12 };

/* The header: type and length, each four bytes. */
enum { FRAME_HEADER = 8 };
#define FRAME_LIMIT ((size_t)1 << 30)

/* A frame that grows while it is written, or that was received.  Start from {0}. */
struct frame {
    enum frame_type type;
    unsigned char *data; /* header and payload */
    size_t len, room;
    int oom;
    size_t at; /* while it is read: the next field; while it arrives: bytes there */
};

void frame_begin(struct frame *f, enum frame_type type); /* what was in it is dropped */
void frame_put(struct frame *f, const void *bytes, size_t len);
void frame_put_text(struct frame *f, const char *s); /* NULL: as "" */
void frame_put_int(struct frame *f, int64_t v);
/* Its length into the header: it can be sent.  -1 where memory, or the limit, was passed. */
int frame_end(struct frame *f, struct topt_error *err) TOPT_MUST_CHECK;
void frame_fini(struct frame *f);

/* The next field, borrowed, NUL-terminated; '*ret_len' may be NULL.  NULL: there is none, or it
 * isn't one. */
const char *frame_get(struct frame *f, size_t *ret_len);
/* The same, "" where there is none. */
const char *frame_get_text(struct frame *f);
int64_t frame_get_int(struct frame *f); /* 0 where there is none */

/* The next that is received begins; what is in it is dropped. */
void frame_expect(struct frame *f);
/* Read from the socket what there is of a frame.  1: it is whole; 0: more has to come; -1:
 * the other end is gone (err->sys 0), or what comes is no frame. */
int frame_receive(struct frame *f, int fd, struct topt_error *err) TOPT_MUST_CHECK;
/* Write what the socket takes of a frame that was ended, from f->at on.  1: all of it is out; 0:
 * some is left; -1. */
int frame_send(struct frame *f, int fd, struct topt_error *err) TOPT_MUST_CHECK;

#endif
