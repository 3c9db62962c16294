/* kernels_seq.c - the host kernels of sequences: recurrences, attention over two sequences,
 * and what cuts, joins and reduces features. */
#include "kernel_checks.h"

static const struct fixture fixtures[] = {
    {"lstm", "lstm", 1, 3, 4, {0}},
    {"lstm of 5 cells", "lstm", 1, 5, 4, {0}},
    {"gru", "gru", 1, 4, 3, {0}},
};

int main(void)
{
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++)
        check_operator(&fixtures[i]);
    return done_testing();
}
