/* emulate.h - what runtime/cuda/grid.h asks of a C compiler in place of a GPU.
 * Thread safety: one thread, as the device. */
#ifndef TOPT_TEST_EMULATE_H
#define TOPT_TEST_EMULATE_H

#include <stddef.h>
#include <stdint.h>

/* The block that runs, and how many there are. */
extern int64_t cu_emulated_block, cu_emulated_blocks;

/* Around whatever works on the device's memory; between them it is out of bounds where the
 * address sanitizer looks. */
void cu_emulated_enter(void);
void cu_emulated_leave(void);
/* A kernel goes to a stream of the thread's current device only. */
void cu_emulated_on(void *stream);
struct fake_stream;
/* Put work on a stream: a copy of 'ctx', of 'bytes'.  The first stream of a device runs it at
 * once; another one not before somebody waits for it, so that who does not wait sees what was
 * there before. */
void cu_emulated_put(struct fake_stream *s, void (*work)(const void *ctx),
                     const void *ctx, size_t bytes);
/* What cudaGetLastError() says after a launch. */
int cu_emulated_error(void);

#endif
