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

enum { ELSEWHERE = -1 };

/* What the rank that failed first says, on all. */
static int share_error(struct topt_comm *c, int rank, struct topt_error *err)
{
    struct topt_error first = *err;
    int64_t bytes = (int64_t)sizeof first;
    if (rank && c->rank == rank && c->ops->send(c, 0, &first, bytes, err))
        return -1;
    if (rank && !c->rank && c->ops->receive(c, rank, &first, bytes, err))
        return -1;
    if (c->ops->broadcast(c, &first, bytes, err))
        return -1;
    first.text[sizeof first.text - 1] = '\0';
    if (c->rank == rank)
        return 0;
    *err = first;
    topt_wrap(err, "rank %d", rank);
    err->sys = ELSEWHERE;
    return 0;
}

int topt_comm_agree(struct topt_comm *c, int failed, struct topt_error *err)
{
    struct topt_error mine = {.code = TOPT_ERR_INTERNAL, .text = "failed"};
    if (failed && err && err->code)
        mine = *err;
    /* who knows of a failure from another rank only is not the first */
    int first_hand = failed && mine.sys != ELSEWHERE;
    double word[2] = {first_hand ? c->size - c->rank : 0, failed ? 1 : 0};
    if (c->ops->max(c, word, 2, err))
        return -1;
    if (!(word[1] > 0))
        return 0;
    int rank = word[0] > 0 ? c->size - (int)word[0] : 0;
    if (c->size > 1 && share_error(c, rank, &mine))
        return -1;
    if (err)
        *err = mine;
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
