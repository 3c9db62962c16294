/* queue.c - topt-queue FILE: solves a topt-milp/1 with CBC, and prints the places of the
 * variables that are 1, and "done".
 *
 * A program of its own, so that nothing else links CBC.  It stops by numbers of nodes and the
 * gap, never by time, and prints the same for the same problem. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <coin/Cbc_C_Interface.h>

#include "topt_milp.h"

/* All as CBC takes them. */
struct arrays {
    int *begin;
    double *cost, *value, *zero, *one, *least, *most;
};

static double *doubles(const int64_t *from, size_t n)
{
    double *ret = calloc(n + 1, sizeof *ret);
    for (size_t i = 0; ret && from && i < n; i++)
        ret[i] = (double)from[i];
    return ret;
}

static int make(const struct topt_milp *p, struct arrays *a)
{
    *a = (struct arrays){.begin = calloc(p->ncols + 1, sizeof *a->begin),
                         .cost = doubles(p->cost, p->ncols),
                         .value = doubles(p->value, p->nentries),
                         .zero = doubles(NULL, p->ncols),
                         .one = doubles(NULL, p->ncols),
                         .least = doubles(p->most, p->nrows),
                         .most = doubles(p->most, p->nrows)};
    if (!a->begin || !a->cost || !a->value || !a->zero || !a->one || !a->least ||
        !a->most)
        return -1;
    for (size_t i = 0; i <= p->ncols; i++)
        a->begin[i] = (int)p->begin[i];
    for (size_t i = 0; i < p->ncols; i++)
        a->one[i] = 1;
    for (size_t i = 0; i < p->nrows; i++)
        if (!p->is_equal[i])
            a->least[i] = -1e30;
    return 0;
}

/* The words of CBC go to standard error: what it prints has no switch for all of it. */
static int solve(const struct topt_milp *p, const struct arrays *a)
{
    int out = dup(STDOUT_FILENO);
    if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return -1;
    Cbc_Model *m = Cbc_newModel();
    Cbc_loadProblem(m, (int)p->ncols, (int)p->nrows, a->begin, p->row, a->value, a->zero,
                    a->one, a->cost, a->least, a->most);
    for (size_t i = 0; i < p->ncols; i++)
        Cbc_setInteger(m, (int)i);
    Cbc_setParameter(m, "log", "0");
    Cbc_setParameter(m, "maxNodes", "200");
    Cbc_setParameter(m, "ratioGap", "0.001");
    Cbc_setParameter(m, "randomCbcSeed", "1");
    Cbc_solve(m);
    const double *x = Cbc_bestSolution(m);
    fflush(stdout);
    int rc = dup2(out, STDOUT_FILENO) < 0 || !x ? -1 : 0;
    for (size_t i = 0; !rc && i < p->ncols; i++)
        if (x[i] > 0.5)
            printf("%zu\n", i);
    if (!rc)
        printf("done\n");
    Cbc_deleteModel(m);
    close(out);
    return rc;
}

int main(int argc, char **argv)
{
    struct topt_milp p;
    struct topt_error err = {0};
    struct arrays a;
    if (argc != 2) {
        fprintf(stderr, "usage: topt-queue FILE\n");
        return 2;
    }
    if (topt_milp_read(argv[1], &p, &err)) {
        fprintf(stderr, "topt-queue: %s\n", err.text);
        return topt_err_exit(err.code);
    }
    int rc = make(&p, &a) || solve(&p, &a);
    double *const all[] = {a.cost, a.value, a.zero, a.one, a.least, a.most};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(a.begin);
    topt_milp_fini(&p);
    return rc ? 1 : 0;
}
