/* memory.c - what all parts of the CUDA backend do with a device: it is chosen, its memory is taken and
 * given back in the order of its stream, and errors get words. */
#include "cuda.h"

int topt_cuda_check(cudaError_t rc, const char *what, struct topt_error *err)
{
    if (!rc)
        return 0;
    cudaGetLastError(); /* it is told here, not by the next kernel */
    return topt_fail(err,
                     rc == cudaErrorMemoryAllocation ? TOPT_ERR_NOMEM : TOPT_ERR_DEVICE,
                     "%s: %s", what, cudaGetErrorString(rc));
}

/* CUDA has a current device for each thread, and a kernel goes to a stream of that one
 * only: whoever calls may be another thread than the one that opened the device, or have
 * opened several. */
int topt_cuda_enter(const struct topt_device *d, struct topt_error *err)
{
    return topt_cuda_check(cudaSetDevice(dev_of(d)->index), "choosing a GPU", err);
}

int topt_cuda_alloc(struct topt_device *d, int64_t bytes, void **ret,
                    struct topt_error *err)
{
    if (topt_cuda_enter(d, err))
        return -1;
    cudaError_t rc =
        cudaMallocAsync(ret, (size_t)(bytes > 0 ? bytes : 1), dev_of(d)->stream);
    if (!rc)
        return 0;
    topt_cuda_check(rc, "allocation", err);
    return topt_wrap(err, "%lld bytes of the GPU's memory", (long long)bytes);
}

/* In the stream's order, so work in flight may still use it. */
void topt_cuda_release(struct topt_device *d, void *p)
{
    if (p)
        cudaFreeAsync(p, dev_of(d)->stream);
}

int topt_cuda_scratch(struct topt_device *d, int64_t bytes, void **ret,
                      struct topt_error *err)
{
    struct cuda_device *c = dev_of(d);
    if (bytes > c->scratch_bytes) {
        topt_cuda_release(d, c->scratch);
        c->scratch = NULL;
        c->scratch_bytes = 0;
        if (topt_cuda_alloc(d, bytes, &c->scratch, err))
            return -1;
        c->scratch_bytes = bytes;
    }
    *ret = c->scratch;
    return 0;
}

int topt_cuda_launched(int rc, const struct topt_kernel_call *c, struct topt_error *err)
{
    if (topt_cuda_check((cudaError_t)rc, topt_kernel_name(c->kernel), err))
        return topt_wrap(err, "%s", c->op->name);
    return 0;
}
