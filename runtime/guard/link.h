/* link.h - inside the guard: the connections between its threads.
 *
 * A star around rank 0, on the loopback device where all ranks are on one machine, else on
 * rank 0's own addresses.  Whoever connects proves that it knows the secret that rank 0
 * drew and the communicator carried.  All messages have one size, so that nothing that
 * comes from a wire decides how much is read. */
#ifndef TOPT_GUARD_LINK_H
#define TOPT_GUARD_LINK_H

#include "topt_comm.h"

enum topt_guard_word {
    TOPT_GUARD_HERE = 1, /* alive, and where it is */
    TOPT_GUARD_FAILED,   /* this rank can't go on: 'code' and 'text' */
    TOPT_GUARD_DONE,     /* an orderly end: nothing more comes */
    TOPT_GUARD_END       /* from rank 0: all end with 'code' */
};

struct topt_guard_frame {
    uint32_t magic, word;
    int32_t code, waits;
    int64_t count, step, instr;
    char text[256];
};

/* Who a rank is, for words and for ending it where it lies on this machine. */
struct topt_guard_self {
    uint64_t machine; /* machine and process namespace */
    int64_t pid;
    char host[64];
};

struct topt_guard_link {
    int fd; /* -1: none */
    size_t have;
    struct topt_guard_frame in; /* 'have' bytes of the next frame */
};

/* Connects all ranks: 'link' by rank on rank 0 (its own is unused), else link[0].  'self'
 * is filled by rank on every rank.  Where any rank can't connect none is, 'ret_connected'
 * 0: no failure. */
int topt_guard_connect(struct topt_comm *c, struct topt_guard_link *link,
                       struct topt_guard_self *self, int *ret_connected,
                       struct topt_error *err) TOPT_MUST_CHECK;
/* One frame, as far as the connection takes it at once; a full one drops it. */
void topt_guard_put(struct topt_guard_link *l, const struct topt_guard_frame *f);
/* 1: a frame is in l->in, 0: not yet, -1: the connection has ended or talks nonsense. */
int topt_guard_take(struct topt_guard_link *l);
void topt_guard_close(struct topt_guard_link *l);
/* The same after the last frame: waits, not long, until the other side has ended, too, so
 * that what it still sends does not undo the frame. */
void topt_guard_finish(struct topt_guard_link *l);

#endif
