/* nccl_api.h - NCCL's functions, found when they are wanted.
 *
 * The library is opened by name (libnccl.so.2, or what $TOPT_NCCL says), so that a
 * machine with one GPU needs none.  Where NCCL's own header is there, it declares the
 * functions; else the lines below do, with NCCL's names and numbers.  At least NCCL
 * 2.18. */
#ifndef TOPT_NCCL_API_H
#define TOPT_NCCL_API_H

#include <cuda_runtime_api.h>
#include <limits.h>
#include <stddef.h>

#if __has_include(<nccl.h>)
#include <nccl.h>
#else
typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
typedef enum { ncclSuccess = 0, ncclInProgress = 7 } ncclResult_t;
typedef enum { ncclSum = 0, ncclMax = 2 } ncclRedOp_t;
typedef enum {
    ncclInt8 = 0,
    ncclInt32 = 2,
    ncclInt64 = 4,
    ncclFloat32 = 7,
    ncclFloat64 = 8,
    ncclBfloat16 = 9
} ncclDataType_t;
/* As NCCL 2.18 has it; later ones take it by its size. */
typedef struct {
    size_t size;
    unsigned int magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
    int splitShare;
} ncclConfig_t;
#define NCCL_CONFIG_INITIALIZER                                                          \
    {                                                                                    \
        sizeof(ncclConfig_t), 0xcafebeef, 21800, INT_MIN, INT_MIN, INT_MIN, INT_MIN,     \
            NULL, INT_MIN                                                                \
    }
ncclResult_t ncclGetUniqueId(ncclUniqueId *ret);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *ret, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *ret);
ncclResult_t ncclCommFinalize(ncclComm_t c);
ncclResult_t ncclCommAbort(ncclComm_t c);
ncclResult_t ncclCommSplit(ncclComm_t c, int color, int key, ncclComm_t *ret,
                           ncclConfig_t *config);
ncclResult_t ncclCommDestroy(ncclComm_t c);
const char *ncclGetErrorString(ncclResult_t rc);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclAllReduce(const void *src, void *dst, size_t n, ncclDataType_t t,
                           ncclRedOp_t op, ncclComm_t c, cudaStream_t s);
ncclResult_t ncclReduce(const void *src, void *dst, size_t n, ncclDataType_t t,
                        ncclRedOp_t op, int root, ncclComm_t c, cudaStream_t s);
ncclResult_t ncclBroadcast(const void *src, void *dst, size_t n, ncclDataType_t t,
                           int root, ncclComm_t c, cudaStream_t s);
ncclResult_t ncclReduceScatter(const void *src, void *dst, size_t n, ncclDataType_t t,
                               ncclRedOp_t op, ncclComm_t c, cudaStream_t s);
ncclResult_t ncclAllGather(const void *src, void *dst, size_t n, ncclDataType_t t,
                           ncclComm_t c, cudaStream_t s);
ncclResult_t ncclSend(const void *src, size_t n, ncclDataType_t t, int peer, ncclComm_t c,
                      cudaStream_t s);
ncclResult_t ncclRecv(void *dst, size_t n, ncclDataType_t t, int peer, ncclComm_t c,
                      cudaStream_t s);
#endif

/* clang-format off */
#define TOPT_NCCL_FUNCTIONS(X)                                                             \
    X(GetUniqueId) X(CommInitRankConfig) X(CommGetAsyncError) X(CommSplit)                 \
    X(CommFinalize) X(CommDestroy) X(CommAbort) X(GetErrorString)                          \
    X(GroupStart) X(GroupEnd) X(AllReduce) X(Reduce) X(Broadcast) X(ReduceScatter)         \
    X(AllGather) X(Send) X(Recv)
/* clang-format on */

struct nccl_api {
#define X(name) __typeof__(nccl##name) *name;
    TOPT_NCCL_FUNCTIONS(X)
#undef X
};

#endif
