/* main.c - `topt`: finds the program that has a subcommand, and becomes it.
 *
 * Each part of topt builds its own program, so that planning never loads MPI or CUDA. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topt_near.h"

static const struct {
    const char *name, *program, *help;
} commands[] = {
    {"plan", "topt-solver",
     "plan a job: the fewest GPUs that fit, or the fastest strategy on N"},
    {"frontier", "topt-solver", "memory per GPU against time per step on N GPUs"},
    {"compare", "topt-solver", "compare with other auto-parallel systems"},
    {"inspect", "topt-solver", "operators, parameters, FLOPs and bytes of a model"},
    {"import", "topt-solver", "convert a model to topt's own format"},
    {"explain", "topt-solver", "explain a plan: memory, time, what is split where"},
    {"launch", "topt-solver", "print a plan as its framework's command and files"},
    {"evaluate", "topt-solver", "memory and time of a given plan, by operator"},
    {"simulate", "topt-solver", "simulate a step: a trace, a timeline"},
    {"sample", "topt-solver", "random valid plans"},
    {"costgraph", "topt-solver", "export the optimization problem of a model"},
    {"solve", "topt-solver", "solve such a problem"},
    {"study", "topt-solver", "reproduce another system's own search"},
    {"cluster", "topt-solver", "simulate how jobs of a trace share a cluster"},
    {"hw", "topt-solver", "hardware profiles: list, show, check"},
    {"calibrate", "topt-solver", "fit a hardware profile to measured steps"},
    {"run", "topt-runtime", "train with a plan, on every rank (mpirun, srun)"},
    {"generate", "topt-runtime", "generate text with a trained model"},
    {"tokenize", "topt-runtime", "tokenize texts with a tokenizer.json"},
    {"profile", "topt-runtime", "measure this cluster, on every rank"},
    {"client", "topt-client", "ask a running toptd"},
    {"report", "topt-client", "compare a job's prediction with its measurement"},
    {"sbatch", "topt-sbatch", "submit a Slurm job sized by a plan"},
    {"rightsize", "topt-rightsize", "resize waiting jobs that opted in"},
    {"queue", "topt-rightsize", "when waiting jobs start, and what would help"},
};

static void help(FILE *out)
{
    fprintf(out, "Usage: topt COMMAND [ARGUMENTS]   (topt COMMAND --help tells more)\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
}

/* The programs lie in ../libexec/topt beside the folder this one was started from. */
static int program_path(const char *program, char *path, size_t size)
{
    char self[PATH_MAX];
    const char *dir = getenv("TOPT_LIBEXEC");
    if (dir)
        return snprintf(path, size, "%s/%s", dir, program) < (int)size ? 0 : -1;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return -1;
    self[n] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
    }
    return snprintf(path, size, "%s/libexec/topt/%s", self, program) < (int)size ? 0 : -1;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "topt: which command? `topt --help` lists them\n");
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
        !strcmp(argv[1], "help")) {
        help(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("topt %s\n", TOPT_VERSION);
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char path[PATH_MAX];
        if (strcmp(argv[1], commands[i].name))
            continue;
        if (program_path(commands[i].program, path, sizeof path)) {
            fprintf(stderr,
                    "topt: can't tell where %s is, as /proc is not mounted or the path "
                    "is too "
                    "long; TOPT_LIBEXEC names its folder\n",
                    commands[i].program);
            return 1;
        }
        execv(path, argv);
        fprintf(stderr, "topt %s: can't start '%s': %s\n", argv[1], path,
                errno == ENOENT ? "not part of this build" : strerror(errno));
        return 1;
    }
    char meant[TOPT_NEAR_WORDS];
    struct topt_near near = {.name = argv[1]};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        topt_near_try(&near, commands[i].name);
    fprintf(stderr, "topt: unknown command '%s'%s (`topt --help` lists all)\n", argv[1],
            topt_near_words(&near, meant));
    return 2;
}
