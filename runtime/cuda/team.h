/* team.h - matrix products on tensor cores inside a kernel, and the blocks that run them, written
 * like grid.h so that one source runs on a GPU and, for tests, on a CPU.
 *
 * A team is a block of TEAM_WARPS warps of 32 lanes.  In a TEAM_KERNEL
 *
 *     TEAM_PHASE { ... t ... }     thread t of the team does its part; then the team waits
 *     WARP(w) { ... }              each warp does its part; inside it
 *     LANE { ... lane ... }        each lane of the warp does its part
 *     REGISTERS(type, x, n)        n numbers of each lane, kept over phases; in a LANE they are
 *     MY(x)[i]
 *
 * and on a whole warp, outside of LANE:
 *
 *     LOAD_TILES(x, i, address, transposed)   four 8 x 8 tiles of 16-bit numbers from shared
 *                                             memory into MY(x)[i .. i + 3]; 'address' (of lane)
 *                                             is that of row lane % 8 of tile lane / 8
 *     MULTIPLY(c, i, a, j, b, k)              16 x 8 numbers at c[i .. i + 3] += 16 x 16 of a
 *                                             times 16 x 8 of b[k .. k + 1]
 *     QUADS(x, i, op)                         x[i] of the four lanes of a row, folded, to each
 *
 * Which number of a tile a lane has is fixed by PTX (ISA 8.x, "Matrix fragments for
 * mma.m16n8k16" and "ldmatrix"): of c number e is at row lane / 4 + 8 (e / 2), column
 * 2 (lane % 4) + e % 2.  The CPU's versions below are those tables written out.  Tensor cores
 * take bf16 from sm_80 on; older GPUs never get here. */
#ifndef TOPT_CU_TEAM_H
#define TOPT_CU_TEAM_H

#include "grid.h"

enum { TEAM_WARPS = 4, TEAM = 32 * TEAM_WARPS };

/* Sixteen bytes, moved at once. */
struct chunk {
    uint64_t part[2];
} __attribute__((aligned(16)));

#if defined(__CUDACC__)
#define TEAM_KERNEL static __global__ void __launch_bounds__(TEAM)
#define TEAM_SHARED(type, x, n)                                                          \
    extern __shared__ struct chunk team_shared[];                                        \
    type *x = (type *)team_shared
#define TEAM_PHASE                                                                       \
    for (int t = (int)threadIdx.x, once = 1; once; once = 0, __syncthreads())
#define WARP(w)               for (int w = (int)threadIdx.x / 32, once_w = 1; once_w; once_w = 0)
#define LANE                  for (int lane = (int)threadIdx.x % 32, once_l = 1; once_l; once_l = 0)
#define REGISTERS(type, x, n) type x[n]
#define MY(x)                 x
#define TEAM_LAUNCH(kernel, blocks, bytes, stream, call)                                 \
    do {                                                                                 \
        if ((blocks) > 0) {                                                              \
            int rc_ = (int)cudaFuncSetAttribute(                                         \
                kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(bytes));      \
            if (rc_)                                                                     \
                return rc_;                                                              \
            kernel<<<grid_of(blocks), TEAM, bytes, (cudaStream_t)(stream)>>>(*(call));   \
            rc_ = (int)cudaGetLastError();                                               \
            if (rc_)                                                                     \
                return rc_;                                                              \
        }                                                                                \
    } while (0)

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE void load_tiles(uint32_t *x, const void *row, int transposed)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    if (transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(at)
                     : "memory");
}

DEVICE void multiply(float *c, const uint32_t *a, const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#else
DEVICE void load_tiles(uint32_t *, const void *, int)
{
    __trap();
}

DEVICE void multiply(float *, const uint32_t *, const uint32_t *)
{
    __trap();
}
#endif
#define LOAD_TILES(x, i, address, transposed)                                            \
    LANE load_tiles((x) + (i), address, transposed)
#define MULTIPLY(c, i, a, j, b, k) multiply((c) + (i), (a) + (j), (b) + (k))
#define QUADS(x, i, op)                                                                  \
    do {                                                                                 \
        (x)[i] = op((x)[i], __shfl_xor_sync(0xffffffffu, (x)[i], 1));                    \
        (x)[i] = op((x)[i], __shfl_xor_sync(0xffffffffu, (x)[i], 2));                    \
    } while (0)

#else
/* Without sanitizers, whose checks of each register make a compiler work for minutes; what a kernel
 * does to memory it does by functions that have them. */
#define TEAM_KERNEL             __attribute__((no_sanitize("address", "undefined"))) static void
#define TEAM_SHARED(type, x, n) type x[n] __attribute__((aligned(16)))
#define TEAM_PHASE              for (int t = 0; t < TEAM; t++)
#define WARP(w)                 for (int w = 0; w < TEAM_WARPS; w++)
#define LANE                    for (int lane = 0; lane < 32; lane++)
#define REGISTERS(type, x, n)   type x[TEAM_WARPS][32][n]
#define MY(x)                   x[w][lane]
#define TEAM_LAUNCH(kernel, blocks, bytes, stream, call)                                 \
    do {                                                                                 \
        (void)(bytes);                                                                   \
        LAUNCH(kernel, blocks, stream, call);                                            \
    } while (0)

/* Lane 'l' has of tile 'm' the numbers at row l / 4, columns 2 (l % 4) and the next; or, of the
 * transposed tile, those rows of that column. */
static inline uint32_t emulated_pair(const uint16_t *const *row, int m, int l,
                                     int transposed)
{
    int near = l / 4, far = 2 * (l % 4);
    uint32_t low = transposed ? row[8 * m + far][near] : row[8 * m + near][far];
    uint32_t high = transposed ? row[8 * m + far + 1][near] : row[8 * m + near][far + 1];
    return low | high << 16;
}

/* Out of line, as below: written into every product, its loops take a compiler minutes. */
__attribute__((noinline, unused)) static void
emulated_load(uint32_t *const *x, const uint16_t *const *row, int transposed)
{
    for (int l = 0; l < 32; l++)
        for (int m = 0; m < 4; m++)
            x[l][m] = emulated_pair(row, m, l, transposed);
}

#define LOAD_TILES(x, i, address, transposed)                                            \
    do {                                                                                 \
        const uint16_t *row_[32];                                                        \
        uint32_t *to_[32];                                                               \
        LANE                                                                             \
        {                                                                                \
            row_[lane] = (address);                                                      \
            to_[lane] = MY(x) + (i);                                                     \
        }                                                                                \
        emulated_load(to_, row_, transposed);                                            \
    } while (0)

static inline float emulated_half(uint32_t pair, int high)
{
    uint32_t bits = high ? pair & 0xffff0000u : pair << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

__attribute__((noinline, unused)) static void
emulated_multiply(float *const *c, const uint32_t *const *a, const uint32_t *const *b)
{
    float left[16][16], right[16][8];
    for (int l = 0; l < 32; l++)
        for (int e = 0; e < 8; e++) {
            int row = l / 4 + 8 * (e / 2 % 2), k = 2 * (l % 4) + e % 2 + 8 * (e / 4);
            left[row][k] = emulated_half(a[l][e / 2], e % 2);
            if (e < 4)
                right[2 * (l % 4) + e % 2 + 8 * (e / 2)][l / 4] =
                    emulated_half(b[l][e / 2], e % 2);
        }
    for (int l = 0; l < 32; l++)
        for (int e = 0; e < 4; e++)
            for (int k = 0; k < 16; k++)
                c[l][e] += left[l / 4 + 8 * (e / 2)][k] * right[k][2 * (l % 4) + e % 2];
}

#define MULTIPLY(c, i, a, j, b, k)                                                       \
    do {                                                                                 \
        float *into_[32];                                                                \
        const uint32_t *left_[32], *right_[32];                                          \
        LANE                                                                             \
        {                                                                                \
            into_[lane] = MY(c) + (i);                                                   \
            left_[lane] = MY(a) + (j);                                                   \
            right_[lane] = MY(b) + (k);                                                  \
        }                                                                                \
        emulated_multiply(into_, left_, right_);                                         \
    } while (0)
#define QUADS(x, i, op)                                                                  \
    for (int quad_ = 0; quad_ < 32; quad_ += 4) {                                        \
        float *q_[4];                                                                    \
        for (int lane = quad_; lane < quad_ + 4; lane++)                                 \
            q_[lane - quad_] = MY(x) + (i);                                              \
        float all_ = op(op(*q_[0], *q_[1]), op(*q_[2], *q_[3]));                         \
        for (int k_ = 0; k_ < 4; k_++)                                                   \
            *q_[k_] = all_;                                                              \
    }
#endif

#endif
