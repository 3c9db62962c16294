/* module.c - backends as shared objects. */
#include "topt_module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the running program. */
static int own_folder(char ret[4096])
{
    ssize_t n = readlink("/proc/self/exe", ret, 4095);
    if (n <= 0)
        return -1;
    ret[n] = '\0';
    char *slash = strrchr(ret, '/');
    if (!slash)
        return -1;
    *slash = '\0';
    return 0;
}

/* The file in one of the folders of a list with colons; its path in 'ret'. */
static int find(const char *folders, const char *name, char ret[4096])
{
    while (*folders) {
        size_t n = strcspn(folders, ":");
        int len = snprintf(ret, 4096, "%.*s/libtopt_rt_%s.so", (int)n, folders, name);
        if (n && len < 4096 && access(ret, R_OK) == 0)
            return 0;
        folders += n + (folders[n] == ':');
    }
    return -1;
}

static int locate(const char *name, char ret[4096], struct topt_error *err)
{
    char own[4096];
    const char *folders = getenv("TOPT_MODULE_PATH");
    if (!folders || !*folders)
        folders = own_folder(own) ? "." : own;
    if (find(folders, name, ret) == 0)
        return 0;
    return topt_fail(err, TOPT_ERR_NOTFOUND,
                     "no libtopt_rt_%s.so in %s: this build has no %s backend; use "
                     "--device host, or set TOPT_MODULE_PATH",
                     name, folders, name);
}

int topt_module_load(const char *name, const struct topt_module **ret,
                     struct topt_error *err)
{
    char path[4096];
    if (locate(name, path, err))
        return -1;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return topt_fail(err, TOPT_ERR_DEVICE, "the %s backend can't be loaded: %s", name,
                         dlerror());
    const struct topt_module *m = dlsym(handle, "topt_module");
    if (!m)
        return topt_fail(err, TOPT_ERR_DEVICE, "%s is no backend of topt", path);
    if (m->abi != TOPT_DEVICE_ABI)
        return topt_fail(err, TOPT_ERR_DEVICE,
                         "%s was built for another topt (interface %d, this is %d); "
                         "build it again",
                         path, m->abi, TOPT_DEVICE_ABI);
    *ret = m;
    return 0;
}
