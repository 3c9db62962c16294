/* main.c - topt-runtime: what `topt run` and `topt profile` start, once for each rank, and
 * `topt generate` and `topt tokenize` once. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Valgrind does not follow a program that starts anew, unless it is told so. */
static int is_under_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "vgpreload");
}

/* OpenBLAS reads its environment when it is loaded.  Ranks are the parallelism, so it
 * gets one thread; and it takes some AVX-512 machines for older ones, which halves its
 * speed. */
static void settle_blas(char **argv)
{
    if (getenv("TOPT_BLAS_SETTLED") || is_under_valgrind())
        return;
    setenv("TOPT_BLAS_SETTLED", "1", 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
#endif
    execv("/proc/self/exe", argv); /* goes on as it is where this fails */
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    int computes;
} commands[] = {{"run", topt_cmd_run, 1},
                {"profile", topt_cmd_profile, 1},
                {"generate", topt_cmd_generate, 1},
                {"tokenize", topt_cmd_tokenize, 0}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc >= 2 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        if (commands[i].computes)
            settle_blas(argv);
        return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "topt-runtime: it is started by 'topt run', 'topt profile', 'topt "
                    "generate' and 'topt tokenize'\n");
    return 2;
}
