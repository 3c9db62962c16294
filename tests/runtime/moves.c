/* moves.c - redistributions between random layouts against the whole tensor.
 *
 * usage: mpirun -n 8 runtime_moves [seed [rounds]]
 * Numbers are whole, so that sums of partial values are exact and blocks compare with ==. */
#include "exchange.h"
#include "mpi_world.h"
#include "random.h"

#include <string.h>

static uint64_t stream, counter;

static int draw(int n)
{
    return (int)(topt_random(stream, counter++) % (uint64_t)n);
}

static struct topt_layout random_layout(const struct topt_mesh *m, int ndim, int partial)
{
    struct topt_layout l = topt_layout_replicated();
    int order[TOPT_MAX_AXES], used[TOPT_MAX_RANK] = {0};
    for (int a = 0; a < m->naxes; a++) {
        int j = draw(a + 1);
        order[a] = order[j];
        order[j] = a;
    }
    for (int k = 0; k < m->naxes; k++) {
        int a = order[k], what = draw(ndim + 1 + partial);
        if (what < ndim) {
            l.at[a] = (int8_t)what;
            l.pos[a] = (int8_t)used[what]++;
        } else if (what > ndim) {
            l.at[a] = TOPT_PARTIAL;
        }
    }
    return l;
}

static double element(int64_t i)
{
    return (double)(topt_random(7, (uint64_t)i) % 100000);
}

/* My number among the ranks whose partial values add up, and how many they are. */
static int partial_place(const struct topt_mesh *m, const struct topt_layout *l, int rank,
                         int *ret_size)
{
    int at = 0, size = 1;
    for (int a = 0; a < m->naxes; a++)
        if (l->at[a] == TOPT_PARTIAL) {
            at = at * m->size[a] + topt_mesh_coord(m, rank, a);
            size *= m->size[a];
        }
    *ret_size = size;
    return at;
}

/* The block that 'rank' has of the tensor whose element i is element(i). */
static double *block_of(const struct topt_mesh *m, const struct topt_shape *s,
                        const struct topt_layout *l, int rank, int64_t *ret_n)
{
    struct topt_box box = topt_layout_box(m, s, l, rank);
    int64_t n = topt_box_elements(s, &box), index[TOPT_MAX_RANK];
    double *block = calloc((size_t)n + 1, sizeof *block);
    int size, place = partial_place(m, l, rank, &size);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = 0;
        for (int d = s->ndim - 1; d >= 0; d--) {
            int64_t len = box.len[d] * s->dim[d].unit;
            index[d] = rest % len + box.off[d] * s->dim[d].unit;
            rest /= len;
        }
        for (int d = 0; d < s->ndim; d++)
            at = at * s->dim[d].count * s->dim[d].unit + index[d];
        block[i] = place ? 7 * place : element(at) - 7.0 * size * (size - 1) / 2;
    }
    block[n] = 12345;
    *ret_n = n;
    return block;
}

struct round {
    struct topt_comm *comm;
    struct topt_device dev;
    struct topt_router *router;
    struct topt_shape shape;
    struct topt_layout from, to;
    int seen[8]; /* moves by kind */
};

/* One move from 'src' into a new block; counts what is wrong beside the blocks. */
static double *one_move(struct round *r, const struct topt_move *mv, double *src,
                        int *bad)
{
    struct topt_error err = {0};
    const struct topt_mesh *m = &r->comm->mesh;
    int64_t n, bytes = topt_move_staging_bytes(m, &r->shape, mv, 8);
    int64_t counts[64];
    double *dst = block_of(m, &r->shape, &mv->to, r->comm->rank, &n);
    char *staging = calloc(1, (size_t)bytes + 8);
    memset(dst, 0, (size_t)n * sizeof *dst);
    memset(staging + bytes, 0x5a, 8);
    struct topt_exchange x = {.comm = r->comm,
                              .device = &r->dev,
                              .shape = &r->shape,
                              .number = TOPT_COMM_F64,
                              .move = mv,
                              .src = src,
                              .dst = dst,
                              .staging = bytes ? staging : NULL,
                              .counts = counts};
    if (topt_exchange(&x, &err))
        give_up(&err);
    for (int i = 0; i < 8; i++)
        *bad += staging[bytes + i] != 0x5a;
    *bad += dst[n] != 12345;
    free(staging);
    free(src);
    r->seen[mv->kind]++;
    return dst;
}

static int one_path(struct round *r)
{
    struct topt_error err = {0};
    const struct topt_path *path;
    const struct topt_mesh *m = &r->comm->mesh;
    int bad = 0;
    int64_t n;
    if (topt_router_path(r->router, &r->shape, 8, &r->from, &r->to, &path, &err))
        give_up(&err);
    double *block = block_of(m, &r->shape, &r->from, r->comm->rank, &n);
    for (int k = 0; k < path->nmoves; k++)
        block = one_move(r, &path->move[k], block, &bad);
    /* an added-up block is compared as such; one still partial was never reduced */
    double *want = block_of(m, &r->shape, &r->to, r->comm->rank, &n);
    for (int64_t i = 0; i < n && !topt_layout_partial_mask(&r->to); i++)
        bad += block[i] != want[i];
    free(block);
    free(want);
    return bad;
}

static void check_mesh(int nodes, int per_node, int rounds)
{
    struct topt_error err = {0};
    struct topt_mesh mesh;
    struct round r = {.comm = NULL};
    double bad = 0;
    if (topt_mesh_init(&mesh, nodes, per_node, &err) ||
        topt_device_open_host(TOPT_F64, &r.dev, &err))
        give_up(&err);
    r.comm = sub_world(mesh.devices);
    if (r.comm) {
        struct topt_hw *hw = topt_hw_load("v100-dgx1-2x8", &err);
        if (!hw || topt_comm_bind(r.comm, &mesh, &err))
            give_up(&err);
        r.router = topt_router_create(hw, &mesh);
        for (int k = 0; k < rounds; k++) {
            r.shape = (struct topt_shape){.ndim = 1 + draw(3)};
            for (int d = 0; d < r.shape.ndim; d++)
                r.shape.dim[d] = (struct topt_dim){1 + draw(9), 1 + draw(3)};
            r.from = random_layout(&mesh, r.shape.ndim, 1);
            r.to = random_layout(&mesh, r.shape.ndim, 0);
            bad += one_path(&r);
        }
        topt_router_destroy(r.router);
        topt_hw_destroy(hw);
        topt_comm_destroy(r.comm);
    }
    quiet_barrier();
    counter =
        1000000u * (unsigned)(nodes * 100 + per_node); /* the same again on all ranks */
    bad = world_max(bad);
    ok0(bad == 0,
        "%dx%d: %d random redistributions (slice %d, all-gather %d, all-to-all %d, "
        "permute %d, reduce-scatter %d, all-reduce %d)",
        nodes, per_node, rounds, r.seen[0], r.seen[1], r.seen[2], r.seen[3], r.seen[4],
        r.seen[5]);
}

/* Each kind of move by hand, on the first two axes of four ranks. */
static void check_kinds(void)
{
    static const struct {
        enum topt_move_kind kind;
        uint32_t axes;
        int8_t from[2], to[2];
        int8_t from_pos[2], to_pos[2];
    } move[] = {
        {TOPT_MOVE_SLICE, 2, {0, -1}, {0, 1}, {0}, {0}},
        {TOPT_MOVE_SLICE, 3, {-1, -1}, {0, 0}, {0}, {1, 0}},
        {TOPT_MOVE_ALL_GATHER, 2, {0, 0}, {0, -1}, {0, 1}, {0}},
        {TOPT_MOVE_ALL_GATHER, 3, {0, 0}, {-1, -1}, {1, 0}, {0}},
        {TOPT_MOVE_ALL_TO_ALL, 1, {0, 1}, {1, 1}, {0}, {1, 0}},
        {TOPT_MOVE_ALL_TO_ALL, 3, {0, 0}, {1, 1}, {0, 1}, {1, 0}},
        {TOPT_MOVE_PERMUTE, 3, {0, 0}, {0, 0}, {0, 1}, {1, 0}},
        {TOPT_MOVE_REDUCE_SCATTER, 2, {0, -2}, {0, 0}, {0}, {0, 1}},
        {TOPT_MOVE_REDUCE_SCATTER, 3, {-2, -2}, {1, 1}, {0}, {1, 0}},
        {TOPT_MOVE_ALL_REDUCE, 1, {-2, 1}, {-1, 1}, {0}, {0}},
        {TOPT_MOVE_ALL_REDUCE, 3, {-2, -2}, {-1, -1}, {0}, {0}},
    };
    struct topt_error err = {0};
    struct round r = {.shape = {.ndim = 2, .dim = {{5, 1}, {6, 2}}}};
    struct topt_mesh mesh;
    if (topt_mesh_init(&mesh, 2, 2, &err) ||
        topt_device_open_host(TOPT_F64, &r.dev, &err))
        give_up(&err);
    r.comm = sub_world(4);
    if (r.comm && topt_comm_bind(r.comm, &mesh, &err))
        give_up(&err);
    for (size_t k = 0; k < sizeof move / sizeof *move; k++) {
        struct topt_move mv = {.kind = move[k].kind, .axes = move[k].axes};
        mv.from = mv.to = topt_layout_replicated();
        for (int a = 0; a < 2; a++) {
            mv.from.at[a] = move[k].from[a];
            mv.to.at[a] = move[k].to[a];
            mv.from.pos[a] = move[k].from_pos[a];
            mv.to.pos[a] = move[k].to_pos[a];
        }
        int bad = 0;
        if (r.comm) {
            int64_t n;
            double *got = block_of(&mesh, &r.shape, &mv.from, r.comm->rank, &n);
            got = one_move(&r, &mv, got, &bad);
            double *want = block_of(&mesh, &r.shape, &mv.to, r.comm->rank, &n);
            for (int64_t i = 0; i < n; i++)
                bad += got[i] != want[i];
            free(got);
            free(want);
        }
        ok0(world_max(bad) == 0, "%s over axes %u", topt_move_name(mv.kind), mv.axes);
    }
    topt_comm_destroy(r.comm);
}

static void check_agreement(void)
{
    struct topt_error err = {0};
    struct topt_mesh mesh;
    struct topt_comm *c = sub_world(world_size);
    int rc = topt_comm_agree(c, 0, &err);
    ok0(rc == 0, "nobody failed");
    rc = world_rank == 1 && topt_fail(&err, TOPT_ERR_IO, "no such file");
    rc = topt_comm_agree(c, rc, &err);
    ok0(rc == -1 && err.code == TOPT_ERR_IO && topt_comm_failed_elsewhere(&err) &&
            !strcmp(err.text, "rank 1: no such file"),
        "one failed, all know which and why");
    rc = topt_mesh_init(&mesh, 1, world_size + 1, &err) || topt_comm_bind(c, &mesh, &err);
    ok0(rc && strstr(err.text, "the plan is for 9 devices, but 8 processes were started"),
        "another number of ranks is refused, both named");
    char text[8] = {0};
    if (!world_rank)
        strcpy(text, "hello");
    rc = c->ops->broadcast(c, text, sizeof text, &err);
    ok0(world_max(rc || strcmp(text, "hello")) == 0, "broadcast");
    topt_comm_destroy(c);
}

/* Sums on the queue of communication, more than it holds at once: what waits for an event finds
 * all of those before it, and what is put there later is not waited for by the event. */
static void check_queue(void)
{
    enum { N = 300, HALF = N / 2 };
    struct topt_error err = {0};
    struct topt_mesh mesh;
    struct topt_device d;
    struct topt_event *e;
    double x[N];
    int bad = 0;
    struct topt_comm *c = sub_world(world_size);
    if (topt_mesh_init(&mesh, 1, world_size, &err) || topt_comm_bind(c, &mesh, &err) ||
        topt_device_open_host(TOPT_F64, &d, &err) || d.ops->event_create(&d, &e, &err))
        give_up(&err);
    d.engine = c->ops->engine(c);
    for (int i = 0; i < N; i++) {
        struct topt_comm_call k = {.axes = (1u << mesh.naxes) - 1,
                                   .number = TOPT_COMM_F64,
                                   .queue = TOPT_QUEUE_COMMUNICATION,
                                   .src = &x[i],
                                   .dst = &x[i],
                                   .n = 1};
        x[i] = i;
        if (c->ops->all_reduce(c, &k, &err) ||
            (i == HALF && d.ops->event_record(&d, e, TOPT_QUEUE_COMMUNICATION, &err)) ||
            d.ops->advance(&d, &err))
            give_up(&err);
    }
    if (d.ops->event_wait(&d, e, TOPT_QUEUE_COMPUTE, &err))
        give_up(&err);
    for (int i = 0; i <= HALF; i++)
        bad += x[i] != (double)i * world_size;
    ok0(world_max(bad) == 0, "%d sums on the queue are done where their event is awaited",
        HALF + 1);
    if (d.ops->event_record(&d, e, TOPT_QUEUE_COMMUNICATION, &err) ||
        d.ops->event_wait(&d, e, TOPT_QUEUE_COMPUTE, &err))
        give_up(&err);
    for (int i = 0; i < N; i++)
        bad += x[i] != (double)i * world_size;
    ok0(world_max(bad) == 0, "... and all %d at its next", (int)N);
    d.ops->event_destroy(&d, e);
    topt_device_close(&d);
    topt_comm_destroy(c);
}

int main(int argc, char **argv)
{
    world_begin(&argc, &argv);
    if (world_size != 8) {
        MPI_Finalize();
        skip_all("needs 8 ranks");
    }
    stream = world_seed(argc > 1 ? argv[1] : NULL);
    int rounds = argc > 2 ? atoi(argv[2]) : 150;
    static const int mesh[][2] = {{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 2},
                                  {2, 3}, {1, 6}, {1, 8}, {2, 4}};
    check_kinds();
    for (size_t i = 0; i < sizeof mesh / sizeof *mesh; i++)
        check_mesh(mesh[i][0], mesh[i][1], rounds);
    check_agreement();
    check_queue();
    return world_end();
}
