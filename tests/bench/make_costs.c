/* make_costs.c - write a generated problem as a cost file, for "topt solve".
 *
 *     make_costs chain|forkjoin|residual|comb|star|... SIZE CONFIGS [random|split [RANGE
 *                [SEED [alike]]]]
 */
#include "instances.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct topt_error err;
    char *text;
    if (argc < 4) {
        fprintf(stderr, "usage: make_costs SHAPE SIZE CONFIGS [random|split [RANGE [SEED "
                        "[alike]]]]\n");
        return 2;
    }
    struct instance_spec spec = {.shape = argv[1],
                                 .size = atoi(argv[2]),
                                 .configs = atoi(argv[3]),
                                 .costs = argc > 4 ? argv[4] : NULL,
                                 .range = argc > 5 ? atoll(argv[5]) : 0,
                                 .seed = argc > 6 ? (uint64_t)atoll(argv[6]) : 1,
                                 .alike = argc > 7 && !strcmp(argv[7], "alike")};
    struct instance *in = spec.size > 0 && spec.configs > 0 ? instance_make(&spec) : NULL;
    if (!in) {
        fprintf(stderr, "make_costs: no such shape, or sizes out of range\n");
        return 1;
    }
    if (topt_costs_write(instance_problem(in), &text, &err)) {
        fprintf(stderr, "make_costs: %s\n", err.text);
        return 1;
    }
    fputs(text, stdout);
    free(text);
    instance_free(in);
    return 0;
}
