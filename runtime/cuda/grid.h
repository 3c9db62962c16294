/* grid.h - how kernels are written, so that one source runs on a GPU and, for tests,
 * on a CPU.
 *
 * A kernel is a function of one argument, a struct by value, run by a grid of blocks
 * of THREADS threads.  It is made of
 *
 *     EACH(i, n) { ... }        every i below n once, somewhere in the grid, no order
 *     BLOCKS(r, n) { ... }      every r below n by one block, whose threads share it
 *     PHASE { ... t ... }       inside BLOCKS: thread t does its part; then the block waits
 *     ANY(flag, condition)      flag = does the condition hold for some thread t
 *     BLOCK_FOLD(x, op)         x[0] = x[0] op x[1] ... over a SHARED array, as a tree
 *     UNROLL for ...            of few and constant turns, whose arrays are registers
 *     WAIT                      what was read of SHARED may be overwritten from here on
 *
 * What threads hand to each other, and what one keeps from phase to phase, is in
 * SHARED arrays of THREADS.  Everything outside phases is the same for all threads of
 * a block; a phase may 'continue' (this thread is done), never return.
 *
 * nvcc gets the usual grid.  A C compiler gets loops: blocks one after the other, in
 * each the phases one after the other, in each the threads.  Sums come out in the same
 * order. */
#ifndef TOPT_CU_GRID_H
#define TOPT_CU_GRID_H

#include <stdint.h>

#if defined(__CUDACC__)
#include <cuda_runtime.h>

enum { THREADS = 256, STRIP = 32 };

#define KERNEL     static __global__ void __launch_bounds__(THREADS)
#define CALL(type) const __grid_constant__ struct type
#define DEVICE     static __device__ __forceinline__
#define BOTH       static __host__ __device__ __forceinline__
#define WAIT       __syncthreads()
#define SHARED     __shared__
#define EACH(i, n)                                                                       \
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < (n);               \
         i += (int64_t)gridDim.x * THREADS)
#define UNROLL       _Pragma("unroll")
#define BLOCKS(r, n) for (int64_t r = blockIdx.x; r < (n); r += gridDim.x)
#define PHASE        for (int t = (int)threadIdx.x, once = 1; once; once = 0, __syncthreads())
#define ANY(flag, condition)                                                             \
    do {                                                                                 \
        int t = (int)threadIdx.x;                                                        \
        flag = __syncthreads_or(condition);                                              \
    } while (0)
#define LAUNCH(kernel, blocks, stream, call)                                             \
    do {                                                                                 \
        if ((blocks) > 0) {                                                              \
            kernel<<<grid_of(blocks), THREADS, 0, (cudaStream_t)(stream)>>>(*(call));    \
            int rc_ = (int)cudaGetLastError();                                           \
            if (rc_)                                                                     \
                return rc_;                                                              \
        }                                                                                \
    } while (0)

#else
#include "emulate.h"

enum { THREADS = 16, STRIP = 4 };

#define KERNEL     static void
#define CALL(type) const struct type
#define DEVICE     static inline
#define BOTH       static inline
#define WAIT       (void)0
#define SHARED
#define UNROLL
#define EACH(i, n)   for (int64_t i = cu_emulated_block; i < (n); i += cu_emulated_blocks)
#define BLOCKS(r, n) for (int64_t r = cu_emulated_block; r < (n); r += cu_emulated_blocks)
#define PHASE        for (int t = 0; t < THREADS; t++)
#define ANY(flag, condition)                                                             \
    do {                                                                                 \
        flag = 0;                                                                        \
        for (int t = 0; t < THREADS; t++)                                                \
            flag |= (condition) ? 1 : 0;                                                 \
    } while (0)
#define LAUNCH(kernel, blocks, stream, call)                                             \
    do {                                                                                 \
        cu_emulated_on(stream);                                                          \
        cu_emulated_blocks = grid_of(blocks);                                            \
        cu_emulated_enter();                                                             \
        for (cu_emulated_block = 0; cu_emulated_block < cu_emulated_blocks;              \
             cu_emulated_block++)                                                        \
            kernel(*(call));                                                             \
        cu_emulated_leave();                                                             \
        int rc_ = cu_emulated_error();                                                   \
        if (rc_)                                                                         \
            return rc_;                                                                  \
    } while (0)
#endif

enum { LANES = THREADS / STRIP };

/* Enough to fill any GPU several times; what is more is done in turns. */
static inline unsigned grid_of(int64_t blocks)
{
    return (unsigned)(blocks < 1 << 14 ? blocks : 1 << 14);
}

#define BLOCK_FOLD(x, op)                                                                \
    for (int half = THREADS / 2; half > 0; half /= 2)                                    \
        PHASE                                                                            \
        {                                                                                \
            if (t < half)                                                                \
                x[t] = op(x[t], x[t + half]);                                            \
        }

/* 64-bit division is slow on GPUs, and rarely needed. */
DEVICE int64_t quotient(int64_t i, int64_t n)
{
    return (i | n) >> 32 ? i / n : (int64_t)((uint32_t)i / (uint32_t)n);
}

DEVICE int64_t rest(int64_t i, int64_t n)
{
    return (i | n) >> 32 ? i % n : (int64_t)((uint32_t)i % (uint32_t)n);
}

/* Blocks for n elements of an EACH. */
static inline int64_t blocks_for(int64_t n)
{
    return (n + THREADS - 1) / THREADS;
}

#endif
