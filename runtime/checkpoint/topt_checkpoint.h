/* topt_checkpoint.h - what training stays with, in files, and from files.
 *
 * A checkpoint is a folder DIR/step-000000100: of each rank one safetensors file with the
 * blocks that it holds, and index.json, which says where each whole tensor's blocks are.
 * Any plan of the same model, for any number of ranks, can go on from it.
 *
 * Saving is begun after a step: blocks are copied (topt_saver_bytes() of memory), and a
 * thread writes them while training goes on.  A folder gets its name when all of it is on
 * disk, so that one with a name is whole; index.json has the length and a sum of each file.
 * Every rank reads and writes below the same DIR.
 *
 * Thread safety: a saver belongs to the thread that opened it. */
#ifndef TOPT_CHECKPOINT_H
#define TOPT_CHECKPOINT_H

#include "topt_runtime.h"

/* Beside the tensors; kept as it is. */
struct topt_checkpoint_facts {
    int64_t step; /* done */
    int64_t batch, seq;
    uint64_t seed, data; /* data: digest of the feed */
    int64_t
        schedule_last; /* the step at which the cosine of the learning rate ends; 0: it
                            * is constant, -1: not known */
};

struct topt_saver;

/* Bytes that a saver of a program holds on a rank. */
int64_t topt_saver_bytes(const struct topt_program *p, int rank);
/* Makes 'dir', and finds out whether the ranks' files have room there.  'keep' checkpoints
 * stay, older ones go, and so does what a run that was killed left unfinished.  Every rank; where one fails all do. */
int topt_saver_open(struct topt_session *s, const char *dir, int64_t keep,
                    struct topt_saver **ret, struct topt_error *err) TOPT_MUST_CHECK;
/* Waits for what is being written, and forgets it. */
void topt_saver_close(struct topt_saver *v);

/* Every rank, none of which is writing any more. */
int topt_saver_begin(struct topt_saver *v, const struct topt_checkpoint_facts *facts,
                     struct topt_error *err) TOPT_MUST_CHECK;
/* What begins and is not committed: 0 nothing, 1 this rank writes, 2 it has written, or
 * failed, which topt_saver_commit() tells. */
int topt_saver_state(struct topt_saver *v);
/* Every rank, when all have written: the checkpoint has its name from here on. */
int topt_saver_commit(struct topt_saver *v, struct topt_error *err) TOPT_MUST_CHECK;

/* The last step of which 'dir' has a folder with a checkpoint's name, whatever is in it; -1:
 * none. */
int64_t topt_checkpoint_newest(const char *dir);
/* The last whole checkpoint of this model in 'dir' whose files are as they were written,
 * into the session; every rank.  '*ret_step' -1 where 'dir' has none at all; INVAL where it
 * has some and none is good.  'note' (may be NULL) is told, on rank 0, of each that is
 * passed over. */
int topt_checkpoint_load(struct topt_session *s, const char *dir,
                         void (*note)(void *ctx, const char *text), void *ctx,
                         struct topt_checkpoint_facts *ret,
                         struct topt_error *err) TOPT_MUST_CHECK;
/* The same, of whatever optimizer: for a session without states, which does not train. */
int topt_checkpoint_load_values(struct topt_session *s, const char *dir,
                                void (*note)(void *ctx, const char *text), void *ctx,
                                struct topt_checkpoint_facts *ret,
                                struct topt_error *err) TOPT_MUST_CHECK;

#endif
