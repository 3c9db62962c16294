/* solver.c - `topt-solver`: the subcommands that only think. */
#include <stdio.h>
#include <string.h>

#include "heap.h"
#include "topt_cli.h"
#include "topt_search_cmd.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"plan", topt_cmd_plan},       {"frontier", topt_cmd_frontier},
    {"explain", topt_cmd_explain}, {"evaluate", topt_cmd_evaluate},
    {"sample", topt_cmd_sample},   {"costgraph", topt_cmd_costgraph},
    {"compare", topt_cmd_compare}, {"solve", topt_cmd_solve},
    {"hw", topt_cmd_hw},           {"calibrate", topt_cmd_calibrate},
    {"import", topt_cmd_import},   {"inspect", topt_cmd_inspect},
    {"launch", topt_cmd_launch},   {"simulate", topt_cmd_simulate},
    {"study", topt_cmd_study},     {"cluster", topt_cmd_cluster},
};

/* What was printed has to have arrived: on a full disk nothing was answered. */
static int finish(const char *name, int status)
{
    if ((!fflush(stdout) && !ferror(stdout)) || status)
        return status;
    fprintf(stderr, "topt %s: the answer can't be written to stdout\n", name);
    return 1;
}

int main(int argc, char **argv)
{
    topt_heap_open();
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name))
            return finish(argv[1], commands[i].run(argc - 1, argv + 1));
    fprintf(stderr, "topt-solver: started by `topt COMMAND`, see `topt --help`\n");
    return 2;
}
