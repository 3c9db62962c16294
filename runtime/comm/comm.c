/* comm.c - what all communicators share; modules have it, too. */
#include "topt_comm.h"

#include <stdlib.h>
#include <string.h>

int topt_comm_bind(struct topt_comm *c, const struct topt_mesh *mesh,
                   struct topt_error *err)
{
    if (mesh->devices != c->size)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "the plan is for %d devices, but %d process%s started; start it with "
            "mpirun -n %d or srun --mpi=pmix -n %d",
            mesh->devices, c->size, c->size == 1 ? " was" : "es were", mesh->devices,
            mesh->devices);
    if (memcmp(&c->mesh, mesh, sizeof *mesh))
        c->ops->forget(c);
    c->mesh = *mesh;
    return 0;
}

void topt_comm_destroy(struct topt_comm *c)
{
    if (!c)
        return;
    c->ops->destroy(c);
    free(c);
}

enum { ELSEWHERE = -1, CODES = 64 };

int topt_comm_agree(struct topt_comm *c, int failed, struct topt_error *err)
{
    struct topt_error none = {.code = TOPT_ERR_INTERNAL};
    enum topt_err code = (err && err->code ? err : &none)->code;
    double first = failed ? (double)(c->size - c->rank) * CODES + (double)code : 0;
    if (c->ops->max(c, &first, 1, err))
        return -1;
    int rank = c->size - (int)(first / CODES);
    if (!(first > 0) || rank == c->rank)
        return first > 0 ? -1 : 0;
    topt_fail(err, (enum topt_err)((int)first % CODES), "rank %d failed", rank);
    if (err)
        err->sys = ELSEWHERE;
    return -1;
}

int topt_comm_failed_elsewhere(const struct topt_error *err)
{
    return err->sys == ELSEWHERE;
}

int topt_comm_share_text(struct topt_comm *c, int failed, char **text, size_t *len,
                         struct topt_error *err)
{
    int64_t n = (int64_t)*len;
    if (topt_comm_agree(c, failed, err) || c->ops->broadcast(c, &n, sizeof n, err))
        return -1;
    failed = 0;
    if (c->rank) {
        *len = (size_t)n;
        *text = calloc(1, *len + 1);
        failed = *text ? 0 : topt_nomem(err, NULL);
    }
    return topt_comm_agree(c, failed, err) || c->ops->broadcast(c, *text, n, err) ? -1
                                                                                  : 0;
}

int topt_comm_members(const struct topt_mesh *m, uint32_t axes, int device, int *ret)
{
    int n = 0;
    for (int d = 0; d < m->devices; d++) {
        int same = 1;
        for (int a = 0; a < m->naxes && same; a++)
            same = (axes >> a & 1) ||
                   topt_mesh_coord(m, d, a) == topt_mesh_coord(m, device, a);
        if (same)
            ret[n++] = d;
    }
    return n;
}

int topt_comm_number_bytes(enum topt_comm_number n)
{
    static const int bytes[TOPT_COMM_NUMBER_COUNT] = {1, 4, 8, 4, 8, 2};
    return bytes[n];
}
