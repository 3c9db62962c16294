/* layout.c - meshes, layouts and the block of a tensor that each device holds. */
#include "topt_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- mesh -------------------------------------------------------------------------- */

static int add_factors(struct topt_mesh *mesh, int n)
{
    int factor[TOPT_MAX_AXES], count = 0;
    for (int f = 2; n > 1; f++)
        while (n % f == 0) {
            if (count == TOPT_MAX_AXES)
                return -1;
            factor[count++] = f;
            n /= f;
        }
    if (mesh->naxes + count > TOPT_MAX_AXES)
        return -1;
    while (count > 0)
        mesh->size[mesh->naxes++] = factor[--count];
    return 0;
}

int topt_mesh_init(struct topt_mesh *mesh, int nodes, int per_node,
                   struct topt_error *err)
{
    memset(mesh, 0, sizeof *mesh);
    if (nodes < 1 || per_node < 1 || nodes > 1 << 14 || per_node > 1 << 14)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%d nodes of %d devices can't be planned for", nodes, per_node);
    *mesh = (struct topt_mesh){
        .nodes = nodes, .per_node = per_node, .devices = nodes * per_node};
    int bad = add_factors(mesh, nodes);
    mesh->node_axes = mesh->naxes;
    if (bad || add_factors(mesh, per_node))
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "%d nodes of %d devices have more than %d prime factors", nodes,
                         per_node, TOPT_MAX_AXES);
    return 0;
}

int topt_mesh_init_parts(struct topt_mesh *mesh, int parts, int nodes, int per_node,
                         struct topt_error *err)
{
    int one = nodes == 1, of = one ? per_node : nodes;
    struct topt_mesh rest;
    if (parts < 2)
        return topt_mesh_init(mesh, nodes, per_node, err);
    if (of < 1 || of % parts)
        return topt_fail(err, TOPT_ERR_INVAL, "%d %s are not %d equal parts", of,
                         one ? "devices" : "nodes", parts);
    if (topt_mesh_init(&rest, one ? 1 : nodes / parts, one ? per_node / parts : per_node,
                       err))
        return -1;
    if (rest.naxes == TOPT_MAX_AXES)
        return topt_fail(err, TOPT_ERR_LIMIT, "%d parts of so many axes", parts);
    *mesh = rest;
    memcpy(mesh->size + 1, rest.size, (size_t)rest.naxes * sizeof *rest.size);
    mesh->size[0] = parts;
    mesh->naxes++;
    mesh->node_axes += !one;
    mesh->nodes = nodes;
    mesh->per_node = per_node;
    mesh->devices = nodes * per_node;
    return 0;
}

/* Shares that are all alike are none, unless they stand beside others. */
static int take_shares(const struct topt_mesh *mesh, const int64_t *share, int n,
                       int falling, int keep_alike, int *ret, struct topt_error *err)
{
    int alike = !keep_alike;
    if (!mesh->naxes || n != mesh->size[0] || n > TOPT_MAX_SHARES)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%d shares, and the first axis of the mesh has %d parts (at "
                         "most %d may be unequal)",
                         n, mesh->naxes ? mesh->size[0] : 1, TOPT_MAX_SHARES);
    for (int i = 0; i < n; i++) {
        if (share[i] < 1 || share[i] > 1 << 20 ||
            (falling && i && share[i] > share[i - 1]))
            return topt_fail(err, TOPT_ERR_INVAL, "shares are 1 to %d each%s", 1 << 20,
                             falling ? ", the largest first" : "");
        alike &= share[i] == share[0];
    }
    for (int i = 0; i < n; i++)
        ret[i] = alike ? 0 : (int)share[i];
    return 0;
}

int topt_mesh_shares(struct topt_mesh *mesh, const int64_t *share, int n,
                     struct topt_error *err)
{
    return take_shares(mesh, share, n, 1, 0, mesh->share, err);
}

int topt_mesh_costed_shares(struct topt_mesh *mesh, const int64_t *share, int n,
                            struct topt_error *err)
{
    return take_shares(mesh, share, n, 0, 0, mesh->share, err);
}

int topt_mesh_state_shares(struct topt_mesh *mesh, const int64_t *share, int n,
                           struct topt_error *err)
{
    return take_shares(mesh, share, n, 0, mesh->share[0] != 0, mesh->state_share, err);
}

int64_t topt_mesh_parts(const struct topt_mesh *mesh, int axis)
{
    int64_t parts = 0;
    if (axis || !mesh->share[0])
        return mesh->size[axis];
    for (int i = 0; i < mesh->size[0]; i++)
        parts += mesh->share[i];
    return parts;
}

int topt_mesh_costed_device(const struct topt_mesh *mesh)
{
    return mesh->costed ? (mesh->costed - 1) * (mesh->devices / mesh->size[0]) : 0;
}

/* Are blocks of this device costed? */
static int is_costed(const struct topt_mesh *mesh, int device)
{
    return !mesh->costed || topt_mesh_coord(mesh, device, 0) == mesh->costed - 1;
}

int topt_mesh_coord(const struct topt_mesh *mesh, int device, int axis)
{
    for (int a = mesh->naxes - 1; a > axis; a--)
        device /= mesh->size[a];
    return device % mesh->size[axis];
}

struct topt_group topt_mesh_group(const struct topt_mesh *mesh, uint32_t axes)
{
    struct topt_group g = {1, 1, 1};
    for (int a = 0; a < mesh->naxes; a++) {
        if (!(axes >> a & 1))
            continue;
        if (a < mesh->node_axes)
            g.nodes *= mesh->size[a];
        else
            g.per_node *= mesh->size[a];
    }
    g.siblings = mesh->per_node / g.per_node;
    return g;
}

int topt_mesh_alike(const struct topt_mesh *mesh, int a, int b)
{
    if ((mesh->share[0] || mesh->state_share[0]) && a != b && (!a || !b))
        return 0;
    return mesh->size[a] == mesh->size[b] &&
           (a < mesh->node_axes) == (b < mesh->node_axes);
}

const char *topt_mesh_axis_name(const struct topt_mesh *mesh, int axis, char buf[8])
{
    int node = axis < mesh->node_axes;
    snprintf(buf, 8, "%c%d", node ? 'n' : 'g',
             (node ? axis : axis - mesh->node_axes) % 100);
    return buf;
}

int topt_mesh_axis_find(const struct topt_mesh *mesh, const char *name)
{
    char buf[8];
    for (int a = 0; a < mesh->naxes; a++)
        if (!strcmp(topt_mesh_axis_name(mesh, a, buf), name))
            return a;
    return -1;
}

/* ---- layouts ----------------------------------------------------------------------- */

struct topt_layout topt_layout_replicated(void)
{
    struct topt_layout l;
    memset(l.at, TOPT_REPLICATE, sizeof l.at);
    memset(l.pos, 0, sizeof l.pos);
    return l;
}

int topt_layout_equal(const struct topt_layout *a, const struct topt_layout *b)
{
    return !memcmp(a, b, sizeof *a);
}

int topt_layout_axes_of(const struct topt_layout *l, int dim, int8_t ret[TOPT_MAX_AXES])
{
    int n = 0;
    for (int a = 0; a < TOPT_MAX_AXES; a++)
        if (l->at[a] == dim) {
            ret[l->pos[a]] = (int8_t)a;
            n++;
        }
    return n;
}

int64_t topt_layout_parts(const struct topt_mesh *mesh, const struct topt_layout *l,
                          int dim)
{
    int64_t n = 1;
    for (int a = 0; a < mesh->naxes; a++)
        n *= l->at[a] == dim ? mesh->size[a] : 1;
    return n;
}

uint32_t topt_layout_partial_mask(const struct topt_layout *l)
{
    uint32_t mask = 0;
    if (!memchr(l->at, TOPT_PARTIAL, sizeof l->at)) /* as of most */
        return 0;
    for (int a = 0; a < TOPT_MAX_AXES; a++)
        if (l->at[a] == TOPT_PARTIAL)
            mask |= 1u << a;
    return mask;
}

uint32_t topt_layout_changed_mask(const struct topt_layout *a,
                                  const struct topt_layout *b)
{
    uint32_t mask = 0;
    for (int i = 0; i < TOPT_MAX_AXES; i++)
        mask |= (uint32_t)(a->at[i] != b->at[i] || a->pos[i] != b->pos[i]) << i;
    return mask;
}

uint32_t topt_layout_gathered_mask(const struct topt_layout *from,
                                   const struct topt_layout *to)
{
    uint32_t mask = topt_layout_changed_mask(from, to);
    for (int i = 0; i < TOPT_MAX_AXES; i++)
        if (from->at[i] == TOPT_PARTIAL || (mask >> i & 1 && to->at[i] != TOPT_REPLICATE))
            return 0;
    return mask;
}

/* Where the piece of coordinate 'at' begins in a block of 'count', along an axis with shares. */
static int64_t begin_of(const struct topt_mesh *mesh, const int *share, int64_t count,
                        int at)
{
    int64_t all = 0, before = 0;
    for (int i = 0; i < mesh->size[0]; i++) {
        all += share[i];
        before += i < at ? share[i] : 0;
    }
    return count / all * before + (count % all * before + all - 1) / all;
}

/* 'share': of the first axis, where it has any. */
static void split_block(const struct topt_mesh *mesh, const int *share, int64_t count,
                        const int8_t *axes, int naxes, int device, int64_t *ret_off,
                        int64_t *ret_len)
{
    int64_t off = 0, len = count, cap = count;
    for (int i = 0; i < naxes; i++) {
        int64_t size = mesh->size[axes[i]];
        int64_t piece = (cap + size - 1) / size;
        int at = topt_mesh_coord(mesh, device, axes[i]);
        int64_t start = piece * at;
        if (!axes[i] && share[0]) {
            start = begin_of(mesh, share, cap, at);
            piece = begin_of(mesh, share, cap, at + 1) - start;
        }
        if (start > len)
            start = len;
        off += start;
        len = len - start < piece ? len - start : piece;
        cap = piece;
    }
    *ret_off = off;
    *ret_len = len;
}

void topt_split_block(const struct topt_mesh *mesh, int64_t count, const int8_t *axes,
                      int naxes, int device, int64_t *ret_off, int64_t *ret_len)
{
    split_block(mesh, mesh->share, count, axes, naxes, device, ret_off, ret_len);
}

static const int *shares_of(const struct topt_mesh *mesh, const struct topt_shape *s)
{
    return s->of_state && mesh->state_share[0] ? mesh->state_share : mesh->share;
}

/* The device whose blocks count: one of the part that is seen, or of those along the first axis
 * the one that takes most. */
static int counted_device(const struct topt_mesh *mesh, const int *share)
{
    int best = 0;
    if (mesh->costed)
        return topt_mesh_costed_device(mesh);
    for (int i = 1; i < mesh->size[0]; i++)
        best = share[i] > share[best] ? i : best;
    return best * (mesh->devices / mesh->size[0]);
}

struct topt_box topt_layout_box(const struct topt_mesh *mesh, const struct topt_shape *s,
                                const struct topt_layout *l, int device)
{
    struct topt_box box = {{0}, {0}};
    for (int d = 0; d < s->ndim; d++) {
        int8_t axes[TOPT_MAX_AXES];
        int n = topt_layout_axes_of(l, d, axes);
        split_block(mesh, shares_of(mesh, s), s->dim[d].count, axes, n, device,
                    &box.off[d], &box.len[d]);
    }
    return box;
}

/* The number of 'rows' rows that lie before share 'at' of 'all'. */
static int64_t rows_before(int64_t rows, int64_t at, int64_t all)
{
    return (rows * at + all - 1) / all;
}

static struct topt_piece piece_of(const struct topt_shape *s, const struct topt_box *b,
                                  int64_t table)
{
    int64_t all = s->dim[1].count, rows = s->rows[table];
    struct topt_piece p = {.first = rows_before(rows, b->off[1], all)};
    p.rows = rows_before(rows, b->off[1] + b->len[1], all) - p.first;
    return p;
}

int64_t topt_box_tables(const struct topt_shape *s, const struct topt_box *b,
                        int64_t *ret_n)
{
    *ret_n = s->rows ? b->len[0] : 1;
    return s->rows ? b->off[0] : 0;
}

struct topt_piece topt_box_piece(const struct topt_shape *s, const struct topt_box *b,
                                 int64_t table)
{
    if (!s->rows)
        return (struct topt_piece){.first = b->off[0], .rows = b->len[0]};
    struct topt_piece p = piece_of(s, b, table);
    for (int64_t k = b->off[0]; k < table; k++)
        p.before += piece_of(s, b, k).rows;
    return p;
}

int64_t topt_box_elements(const struct topt_shape *s, const struct topt_box *b)
{
    int64_t n = s->rows ? 0 : 1;
    for (int64_t k = b->off[0]; s->rows && k < b->off[0] + b->len[0]; k++)
        n += piece_of(s, b, k).rows;
    for (int d = s->rows ? 2 : 0; d < s->ndim; d++)
        n *= b->len[d] * s->dim[d].unit;
    return n;
}

int topt_layout_leads(const struct topt_mesh *mesh, const struct topt_layout *l, int dim,
                      int device)
{
    for (int a = 0; a < mesh->naxes; a++)
        if (l->at[a] != dim && topt_mesh_coord(mesh, device, a) &&
            (a || (!mesh->costed && !mesh->share[0] && !mesh->state_share[0])))
            return 0;
    return is_costed(mesh, device);
}

/* Whole tables are not alike: each device that has others may have the largest block. */
static int64_t largest_of_all(const struct topt_mesh *mesh, const struct topt_shape *s,
                              const struct topt_layout *l)
{
    int64_t most = 0;
    for (int r = 0; r < mesh->devices; r++) {
        if (!topt_layout_leads(mesh, l, 0, r))
            continue;
        struct topt_box box = topt_layout_box(mesh, s, l, r);
        int64_t n = topt_box_elements(s, &box);
        most = n > most ? n : most;
    }
    return most;
}

int64_t topt_layout_elements(const struct topt_mesh *mesh, const struct topt_shape *s,
                             const struct topt_layout *l)
{
    int64_t split[TOPT_MAX_RANK] = {1, 1, 1, 1}, n = 1; /* ceilings nest */
    const int *share = shares_of(mesh, s);
    if (s->rows)
        return largest_of_all(mesh, s, l);
    if (mesh->naxes && share[0]) {
        struct topt_box most = topt_layout_box(mesh, s, l, counted_device(mesh, share));
        return topt_box_elements(s, &most);
    }
    for (int a = 0; a < mesh->naxes; a++)
        if (l->at[a] >= 0)
            split[l->at[a]] *= mesh->size[a];
    for (int d = 0; d < s->ndim; d++)
        n *= (s->dim[d].count + split[d] - 1) / split[d] * s->dim[d].unit;
    return n;
}

/* ---- moves ------------------------------------------------------------------------- */

const char *topt_move_name(enum topt_move_kind k)
{
    static const char *const name[] = {"slice",   "all-gather",     "all-to-all",
                                       "permute", "reduce-scatter", "all-reduce"};
    return (unsigned)k < sizeof name / sizeof *name ? name[k] : "unknown";
}

int64_t topt_move_staging_bytes(const struct topt_mesh *mesh, const struct topt_shape *s,
                                const struct topt_move *m, int element_bytes)
{
    return topt_move_staging(m->kind,
                             topt_layout_elements(mesh, s, &m->from) * element_bytes,
                             topt_layout_elements(mesh, s, &m->to) * element_bytes);
}

int64_t topt_move_staging(enum topt_move_kind k, int64_t from, int64_t to)
{
    switch (k) {
    case TOPT_MOVE_ALL_GATHER:
    case TOPT_MOVE_ALL_TO_ALL:
    case TOPT_MOVE_PERMUTE:
        return from + to;
    case TOPT_MOVE_REDUCE_SCATTER:
        return from;
    default:
        return 0;
    }
}

enum topt_collective topt_move_collective(enum topt_move_kind k)
{
    static const enum topt_collective collective[] = {
        [TOPT_MOVE_ALL_GATHER] = TOPT_ALL_GATHER,
        [TOPT_MOVE_ALL_TO_ALL] = TOPT_ALL_TO_ALL,
        [TOPT_MOVE_PERMUTE] = TOPT_PERMUTE,
        [TOPT_MOVE_REDUCE_SCATTER] = TOPT_REDUCE_SCATTER,
        [TOPT_MOVE_ALL_REDUCE] = TOPT_ALL_REDUCE,
    };
    return collective[k];
}

int64_t topt_move_bytes(const struct topt_mesh *mesh, const struct topt_shape *s,
                        const struct topt_move *m, int element_bytes)
{
    int gathers = m->kind == TOPT_MOVE_ALL_GATHER;
    return topt_layout_elements(mesh, s, gathers ? &m->to : &m->from) * element_bytes;
}
