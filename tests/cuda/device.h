/* device.h - the device under test: what libtopt_rt_cuda.so opens, a GPU or its emulation. */
#ifndef TOPT_TEST_CUDA_DEVICE_H
#define TOPT_TEST_CUDA_DEVICE_H

#include "tap.h"
#include "topt_module.h"

#include <dlfcn.h>
#include <stdlib.h>

/* The module; the test is skipped where it can't be loaded or sees no GPU. */
__attribute__((unused)) static const struct topt_module *the_module(void)
{
    struct topt_error err = {0};
    const struct topt_module *m;
    int n;
    if (topt_module_load("cuda", &m, &err) || m->count(&n, &err))
        skip_all(err.text);
    return m;
}

__attribute__((unused)) static void open_device(const struct topt_module *m,
                                                enum topt_dtype dtype, int index,
                                                struct topt_device *ret)
{
    struct topt_error err = {0};
    uint64_t identity;
    if (m->open(dtype, index, ret, &identity, &err) == 0)
        return;
    printf("Bail out! %s\n", err.text);
    exit(1);
}

/* What the emulation has counted so far under a name; 0 of a GPU, which does not tell. */
__attribute__((unused)) static int emulated_count(const char *name)
{
    char path[4096];
    const char *folder = getenv("TOPT_MODULE_PATH");
    snprintf(path, sizeof path, "%s/libtopt_fake_cuda.so", folder ? folder : ".");
    void *h = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    const int *n = h ? dlsym(h, name) : NULL;
    int ret = n ? *n : 0;
    if (h)
        dlclose(h);
    return ret;
}

#endif
