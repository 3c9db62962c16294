/* rows.c - tables of which a step reads few rows, as solver/lower/rows.c plans them.
 *
 * A row is called by its place: the ranks that share out its table's rows have theirs one after
 * the other, in the order of ranks, and each in the order in which its block has them, whatever
 * tables they are of.  So the rows of all tables of an operator travel in one exchange, and a rank
 * is told which of its own rows are meant.  A rank sorts its lookups by place.  Each different
 * row is asked for once, or has its lookups' gradients summed once before they are sent.  Rows
 * travel in rounds of at most a chunk, as many rounds on every rank as the one with most needs,
 * so that the packing space does not depend on the samples.  What comes is added in the order
 * of the senders, which is the same on all replicas: they stay equal to the last bit.
 *
 * A gradient of rows has room for the number that was planned; where more come, memory
 * of twice the room takes its place, beside the plan's.
 *
 *     head | values [room][cols] | row numbers [room] | hash [2 room] */
#include "rows.h"

#include "memory.h"
#include "number.h"

#include <stdlib.h>
#include <string.h>

struct head {
    int64_t n, room;
};
enum { HEAD_BYTES = 64, PLACE_BYTES = 12 }; /* as planned: a row's number and its hash */

static int real_bytes(const struct topt_session *s)
{
    return s->dev->real_bytes;
}

static int64_t cols_of(const struct topt_session *s, int buffer)
{
    const struct topt_buffer *b = &s->p->buffer[buffer];
    struct topt_box box = topt_buffer_box(s, buffer);
    int last = b->shape.ndim - 1;
    return box.len[last] * b->shape.dim[last].unit;
}

static int64_t bytes_for(const struct topt_session *s, int64_t room, int64_t cols)
{
    return HEAD_BYTES + room * (cols * real_bytes(s) + PLACE_BYTES);
}

/* A gradient of rows: numbers of different rows of a table, in the order in which they came, and their values one after the
 * other. */
struct rows {
    int64_t n, room, cols;
    int32_t *row, *slot; /* slot: a hash of 2 room places, 1 + place in 'row' */
    char *value;
};

/* The rows of a live buffer; borrowed until rows are added. */
static struct rows rows_of(const struct topt_session *s, int buffer)
{
    char *at = s->ptr[buffer];
    const struct head *h = (const struct head *)at;
    struct rows r = {.n = h->n, .room = h->room, .cols = cols_of(s, buffer)};
    r.value = at + HEAD_BYTES;
    r.row = (int32_t *)(r.value + r.room * r.cols * real_bytes(s));
    r.slot = r.row + r.room;
    return r;
}

void topt_session_rows_clear(struct topt_session *s, int buffer)
{
    struct head *h = s->ptr[buffer];
    if (!s->rows_heap[buffer])
        h->room = s->p->buffer[buffer].rows;
    h->n = 0;
    struct rows r = rows_of(s, buffer);
    memset(r.slot, 0, 2 * (size_t)r.room * sizeof *r.slot);
}

static int32_t *slot_of(const struct rows *r, int32_t row)
{
    uint64_t places = 2 * (uint64_t)r->room;
    uint64_t at = (uint64_t)(uint32_t)row * 0x9e3779b97f4a7c15u % places;
    while (r->slot[at] && r->row[r->slot[at] - 1] != row)
        at = at + 1 < places ? at + 1 : 0;
    return &r->slot[at];
}

static int grow(struct topt_session *s, int buffer, struct topt_error *err)
{
    struct rows old = rows_of(s, buffer);
    int64_t room = 2 * old.room + 16;
    char *more = malloc((size_t)bytes_for(s, room, old.cols));
    if (!more)
        return topt_nomem(err, "rows of a gradient");
    *(struct head *)more = (struct head){old.n, room};
    s->ptr[buffer] = more;
    struct rows r = rows_of(s, buffer);
    memset(r.slot, 0, 2 * (size_t)room * sizeof *r.slot);
    memcpy(r.value, old.value, (size_t)(old.n * old.cols * real_bytes(s)));
    memcpy(r.row, old.row, (size_t)old.n * sizeof *r.row);
    for (int64_t i = 0; i < r.n; i++)
        *slot_of(&r, r.row[i]) = (int32_t)(i + 1);
    free(s->rows_heap[buffer]);
    s->rows_heap[buffer] = more;
    return 0;
}

/* Add 'cols' values to a row. */
static int add_row(struct topt_session *s, int buffer, int32_t row, const void *value,
                   struct topt_error *err)
{
    struct rows r = rows_of(s, buffer);
    int64_t bytes = r.cols * real_bytes(s);
    int32_t *slot = slot_of(&r, row);
    if (*slot)
        return s->dev->ops->add(s->dev, r.value + (*slot - 1) * bytes, value, r.cols, 0,
                                err);
    if (r.n == r.room) {
        if (grow(s, buffer, err))
            return -1;
        r = rows_of(s, buffer);
        slot = slot_of(&r, row);
    }
    r.row[r.n] = row;
    memcpy(r.value + r.n * bytes, value, (size_t)bytes);
    *slot = (int32_t)(r.n + 1);
    ((struct head *)s->ptr[buffer])->n++;
    return 0;
}

/* ---- lookups by row ---------------------------------------------------------------- */

/* What ranks have of an operator's tables, and where in the order of places; 'piece' by rank, then
 * by table from 'first' on. */
struct owners {
    int n;
    int64_t first, tables;
    int64_t *begin; /* by rank, one more than there are */
    struct topt_piece *piece;
};

static void owners_fini(struct owners *o)
{
    free(o->begin);
    free(o->piece);
}

/* Of the buffer's blocks those of 'n' ranks, which have parts of the same tables. */
static int owners_init(struct owners *o, const struct topt_session *s, int buffer, int n,
                       const int *device, struct topt_error *err)
{
    const struct topt_buffer *b = &s->p->buffer[buffer];
    struct topt_box box = topt_layout_box(&s->p->mesh, &b->shape, &b->layout, device[0]);
    *o = (struct owners){.n = n};
    o->first = topt_box_tables(&b->shape, &box, &o->tables);
    o->begin = calloc((size_t)n + 1, sizeof *o->begin);
    o->piece = calloc((size_t)(n * o->tables) + 1, sizeof *o->piece);
    if (!o->begin || !o->piece) {
        owners_fini(o);
        return topt_nomem(err, "owners of rows");
    }
    for (int m = 0; m < n; m++) {
        struct topt_piece *p = o->piece + m * o->tables;
        box = topt_layout_box(&s->p->mesh, &b->shape, &b->layout, device[m]);
        o->begin[m + 1] = o->begin[m];
        for (int64_t k = 0; k < o->tables; k++) {
            p[k] = topt_box_piece(&b->shape, &box, o->first + k);
            o->begin[m + 1] += p[k].rows;
        }
    }
    return 0;
}

/* The place of a row of table 'first' + k; -1 where none of these ranks has it. */
static int64_t place_of(const struct owners *o, int64_t k, int64_t row)
{
    for (int m = 0; m < o->n; m++) {
        const struct topt_piece *p = &o->piece[m * o->tables + k];
        if (row >= p->first && row < p->first + p->rows)
            return o->begin[m] + p->before + row - p->first;
    }
    return -1;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* This rank's lookups in the order of places: key = place << 32 | lookup; first[k] is where row k
 * of the different ones begins. */
struct lookups {
    struct owners by;
    uint64_t *key;
    int64_t *first, n, rows, each; /* each: lookups of one row of the output */
};

static void lookups_fini(struct lookups *l)
{
    owners_fini(&l->by);
    free(l->key);
    free(l->first);
}

static int64_t place_at(const struct lookups *l, int64_t k)
{
    return (int64_t)(l->key[l->first[k]] >> 32);
}

/* Those of rows that 'n' ranks have of what 'buffer' is of; they are called by their places
 * there. */
static int sort_lookups(const struct topt_session *s, const struct topt_instr *i,
                        int buffer, int n, const int *device, struct lookups *ret,
                        struct topt_error *err)
{
    const struct topt_op *op = &s->p->model->op[i->op];
    int ids_of = i->value[topt_table_ids(op)];
    int64_t all = topt_buffer_elements(s, ids_of);
    const int32_t *ids = s->ptr[ids_of];
    *ret = (struct lookups){.each = op->attrs->lookups ? op->attrs->lookups : 1};
    if (owners_init(&ret->by, s, buffer, n, device, err))
        return -1;
    ret->key = malloc(((size_t)all + 1) * sizeof *ret->key);
    ret->first = malloc(((size_t)all + 1) * sizeof *ret->first);
    if (!ret->key || !ret->first) {
        lookups_fini(ret);
        return topt_nomem(err, "lookups of a table");
    }
    for (int64_t k = 0; k < all; k++) {
        int64_t place = place_of(&ret->by, k / ret->each % ret->by.tables, ids[k]);
        if (place >= 0)
            ret->key[ret->n++] = (uint64_t)place << 32 | (uint64_t)k;
    }
    qsort(ret->key, (size_t)ret->n, sizeof *ret->key, by_key);
    for (int64_t k = 0; k < ret->n; k++)
        if (!k || ret->key[k] >> 32 != ret->key[k - 1] >> 32)
            ret->first[ret->rows++] = k;
    ret->first[ret->rows] = ret->n;
    return 0;
}

/* The sum of the gradients of row k's lookups. */
static int sum_row(const struct topt_session *s, const struct lookups *l, int64_t k,
                   const char *gradient, int64_t cols, char *ret, struct topt_error *err)
{
    int64_t bytes = cols * real_bytes(s);
    memset(ret, 0, (size_t)bytes);
    for (int64_t x = l->first[k]; x < l->first[k + 1]; x++) {
        int64_t output = (int64_t)(l->key[x] & 0xffffffffu) / l->each;
        if (s->dev->ops->add(s->dev, ret, gradient + output * bytes, cols, 0, err))
            return -1;
    }
    return 0;
}

/* Each output that looked up row k gets its values. */
static int hand_out(const struct topt_session *s, const struct lookups *l, int64_t k,
                    const char *value, int64_t cols, char *outputs,
                    struct topt_error *err)
{
    int64_t bytes = cols * real_bytes(s);
    for (int64_t x = l->first[k]; x < l->first[k + 1]; x++) {
        int64_t output = (int64_t)(l->key[x] & 0xffffffffu) / l->each;
        if (s->dev->ops->add(s->dev, outputs + output * bytes, value, cols, 0, err))
            return -1;
    }
    return 0;
}

/* ---- exchanges --------------------------------------------------------------------- */

/* Rows on their way: of each member's list of different rows, so many at a time. */
struct traffic {
    struct topt_session *s;
    const struct topt_instr *i;
    struct topt_comm_group g;
    int64_t cols, quota, rounds; /* quota: rows to one member in a round */
    int64_t *begin, *send;       /* rows of my list that are for a member */
    int64_t *come;               /* rows that a member has for me */
    int64_t *out, *in;           /* of this round, by member; out_n, in_n their sums */
    int64_t *out_numbers, *in_numbers;
    int64_t out_n, in_n;
    char *out_value, *in_value; /* in the staging buffer */
    int32_t *out_row, *in_row;
};

static void traffic_fini(struct traffic *t)
{
    free(t->begin);
}

/* 'sets' of room for the chunk: one to send, the rest to receive. */
static int traffic_init(struct traffic *t, struct topt_session *s,
                        const struct topt_instr *i, int64_t cols, int64_t sets,
                        struct topt_error *err)
{
    *t = (struct traffic){.s = s, .i = i, .cols = cols};
    if (s->comm->ops->group(s->comm, i->axes, &t->g, err))
        return -1;
    size_t n = (size_t)t->g.size;
    int64_t *all = calloc(7 * n, sizeof *all), bytes = cols * real_bytes(s);
    if (!all)
        return topt_nomem(err, "an exchange of rows");
    t->begin = all;
    t->send = all + n;
    t->come = all + 2 * n;
    t->out = all + 3 * n;
    t->in = all + 4 * n;
    t->out_numbers = all + 5 * n;
    t->in_numbers = all + 6 * n;
    t->out_value = s->ptr[i->c];
    t->in_value = t->out_value + i->chunk * bytes;
    t->out_row = (int32_t *)(t->in_value + (sets - 1) * i->chunk * bytes);
    t->in_row = t->out_row + i->chunk;
    return 0;
}

static int64_t in_round(int64_t all, int64_t quota, int64_t round)
{
    int64_t left = all - quota * round;
    return left < 0 ? 0 : left < quota ? left : quota;
}

static void plan_round(struct traffic *t, int64_t round)
{
    t->out_n = t->in_n = 0;
    for (int m = 0; m < t->g.size; m++) {
        t->out[m] = in_round(t->send[m], t->quota, round);
        t->in[m] = in_round(t->come[m], t->quota, round);
        t->out_numbers[m] = t->out[m] * t->cols;
        t->in_numbers[m] = t->in[m] * t->cols;
        t->out_n += t->out[m];
        t->in_n += t->in[m];
    }
}

static int agree_rounds(struct traffic *t, struct topt_error *err)
{
    double most = 0;
    for (int m = 0; m < t->g.size; m++) {
        int64_t n = (t->send[m] + t->quota - 1) / t->quota;
        most = (double)n > most ? (double)n : most;
    }
    if (t->s->comm->ops->max(t->s->comm, &most, 1, err))
        return -1;
    t->rounds = (int64_t)most;
    return 0;
}

static enum topt_comm_number real_number(const struct topt_session *s)
{
    return real_bytes(s) == 8 ? TOPT_COMM_F64 : TOPT_COMM_F32;
}

/* Which of my rows each member owns, and which of mine they ask for. */
static int ask_owners(struct traffic *t, const struct lookups *l, struct topt_error *err)
{
    struct topt_comm *comm = t->s->comm;
    int64_t k = 0;
    for (int m = 0; m < t->g.size; m++) {
        t->begin[m] = k;
        while (k < l->rows && place_at(l, k) < l->by.begin[m + 1])
            k++;
        t->send[m] = k - t->begin[m];
        t->out[m] = t->in[m] = 1;
    }
    t->quota = t->i->chunk / t->g.size;
    struct topt_comm_call c = {.axes = t->i->axes,
                               .number = TOPT_COMM_64,
                               .src = t->send,
                               .dst = t->come,
                               .counts = t->out,
                               .to_counts = t->in};
    return comm->ops->all_to_all(comm, &c, err) || agree_rounds(t, err) ? -1 : 0;
}

static int trade(struct traffic *t, enum topt_comm_number number, const void *src,
                 void *dst, const int64_t *counts, const int64_t *to_counts,
                 struct topt_error *err)
{
    struct topt_comm_call k = {.axes = t->i->axes,
                               .number = number,
                               .src = src,
                               .dst = dst,
                               .counts = counts,
                               .to_counts = to_counts};
    return t->s->comm->ops->all_to_all(t->s->comm, &k, err);
}

/* Which of its own rows each member is asked for in a round. */
static void name_rows(struct traffic *t, const struct lookups *l, int64_t round)
{
    int64_t at = 0;
    for (int m = 0; m < t->g.size; m++)
        for (int64_t k = 0; k < t->out[m]; k++)
            t->out_row[at++] = (int32_t)(place_at(l, t->begin[m] + round * t->quota + k) -
                                         l->by.begin[m]);
}

/* ---- forward ----------------------------------------------------------------------- */

static int answer(struct traffic *t, int64_t rows, struct topt_error *err)
{
    const struct topt_session *s = t->s;
    int64_t bytes = t->cols * real_bytes(s);
    for (int64_t k = 0; k < t->in_n; k++) {
        int64_t row = t->in_row[k];
        if (row < 0 || row >= rows)
            return topt_fail(err, TOPT_ERR_INTERNAL, "row %d is another's", t->in_row[k]);
        memcpy(t->in_value + k * bytes, (const char *)s->ptr[t->i->a] + row * bytes,
               (size_t)bytes);
    }
    return 0;
}

static int fetch_round(struct traffic *t, const struct lookups *l, int64_t round,
                       struct topt_error *err)
{
    int64_t at = 0, bytes = t->cols * real_bytes(t->s);
    plan_round(t, round);
    name_rows(t, l, round);
    if (trade(t, TOPT_COMM_32, t->out_row, t->in_row, t->out, t->in, err) ||
        answer(t, l->by.begin[t->g.me + 1] - l->by.begin[t->g.me], err) ||
        trade(t, real_number(t->s), t->in_value, t->out_value, t->in_numbers,
              t->out_numbers, err))
        return -1;
    for (int m = 0; m < t->g.size; m++)
        for (int64_t k = 0; k < t->out[m]; k++, at++)
            if (hand_out(t->s, l, t->begin[m] + round * t->quota + k,
                         t->out_value + at * bytes, t->cols, t->s->ptr[t->i->b], err))
                return -1;
    return 0;
}

static int fetch(struct traffic *t, struct topt_error *err)
{
    const struct topt_instr *i = t->i;
    struct lookups l;
    if (sort_lookups(t->s, i, i->a, t->g.size, t->g.device, &l, err))
        return -1;
    int rc = ask_owners(t, &l, err);
    for (int64_t r = 0; !rc && r < t->rounds; r++)
        rc = fetch_round(t, &l, r, err);
    lookups_fini(&l);
    return rc;
}

int topt_session_rows_fetch(struct topt_session *s, const struct topt_instr *i,
                            struct topt_error *err)
{
    struct traffic t;
    if (s->dev->ops->zero(s->dev, s->ptr[i->b], topt_buffer_bytes(s, i->b), err) ||
        traffic_init(&t, s, i, cols_of(s, i->a), 2, err))
        return -1;
    int rc = fetch(&t, err);
    traffic_fini(&t);
    return rc;
}

/* ---- backward ---------------------------------------------------------------------- */

static int add_here(struct topt_session *s, const struct topt_instr *i, int64_t cols,
                    const struct lookups *l, struct topt_error *err)
{
    char *sum = topt_scratch(s, cols * real_bytes(s));
    if (!sum)
        return topt_nomem(err, NULL);
    for (int64_t k = 0; k < l->rows; k++)
        if (sum_row(s, l, k, s->ptr[i->a], cols, sum, err) ||
            add_row(s, i->b, (int32_t)place_at(l, k), sum, err))
            return -1;
    return 0;
}

static int add_come(struct traffic *t, struct topt_error *err)
{
    int64_t bytes = t->cols * real_bytes(t->s);
    for (int64_t k = 0; k < t->in_n; k++)
        if (add_row(t->s, t->i->b, t->in_row[k], t->in_value + k * bytes, err))
            return -1;
    return 0;
}

static int push_round(struct traffic *t, const struct lookups *l, int64_t round,
                      struct topt_error *err)
{
    int64_t at = 0, bytes = t->cols * real_bytes(t->s);
    plan_round(t, round);
    name_rows(t, l, round);
    for (int m = 0; m < t->g.size; m++)
        for (int64_t k = 0; k < t->out[m]; k++, at++)
            if (sum_row(t->s, l, t->begin[m] + round * t->quota + k, t->s->ptr[t->i->a],
                        t->cols, t->out_value + at * bytes, err))
                return -1;
    return trade(t, TOPT_COMM_32, t->out_row, t->in_row, t->out, t->in, err) ||
                   trade(t, real_number(t->s), t->out_value, t->in_value, t->out_numbers,
                         t->in_numbers, err)
               ? -1
               : add_come(t, err);
}

static int push_to_owners(struct traffic *t, const struct lookups *l,
                          struct topt_error *err)
{
    int rc = ask_owners(t, l, err);
    for (int64_t r = 0; !rc && r < t->rounds; r++)
        rc = push_round(t, l, r, err);
    return rc;
}

static int gather(struct traffic *t, enum topt_comm_number number, const void *src,
                  void *dst, const int64_t *counts, struct topt_error *err)
{
    struct topt_comm_call k = {
        .axes = t->i->axes, .number = number, .src = src, .dst = dst, .counts = counts};
    return t->s->comm->ops->all_gather(t->s->comm, &k, err);
}

static int gather_round(struct traffic *t, const struct lookups *l, int64_t round,
                        struct topt_error *err)
{
    int64_t bytes = t->cols * real_bytes(t->s);
    plan_round(t, round);
    int64_t mine = t->in[t->g.me];
    for (int64_t k = 0; k < mine; k++) {
        t->out_row[k] = (int32_t)place_at(l, round * t->quota + k);
        if (sum_row(t->s, l, round * t->quota + k, t->s->ptr[t->i->a], t->cols,
                    t->out_value + k * bytes, err))
            return -1;
    }
    return gather(t, TOPT_COMM_32, t->out_row, t->in_row, t->in, err) ||
                   gather(t, real_number(t->s), t->out_value, t->in_value, t->in_numbers,
                          err)
               ? -1
               : add_come(t, err);
}

static int gather_from_all(struct traffic *t, const struct lookups *l,
                           struct topt_error *err)
{
    int64_t mine = l->rows;
    for (int m = 0; m < t->g.size; m++)
        t->out[m] = 1;
    if (gather(t, TOPT_COMM_64, &mine, t->come, t->out, err))
        return -1;
    memset(t->send, 0, (size_t)t->g.size * sizeof *t->send);
    t->send[t->g.me] = mine;
    t->quota = t->i->chunk;
    int rc = agree_rounds(t, err);
    for (int64_t r = 0; !rc && r < t->rounds; r++)
        rc = gather_round(t, l, r, err);
    return rc;
}

static int add(struct topt_session *s, const struct topt_instr *i, int64_t cols,
               struct topt_error *err)
{
    int owner = s->p->config[i->op].zero == TOPT_ZERO_OWNER && i->axes;
    struct topt_comm_group g = {.size = 1};
    struct lookups l;
    struct traffic t;
    if (i->axes && s->comm->ops->group(s->comm, i->axes, &g, err))
        return -1;
    if (sort_lookups(s, i, i->b, owner ? g.size : 1, owner ? g.device : &s->comm->rank,
                     &l, err))
        return -1;
    int rc = i->axes ? traffic_init(&t, s, i, cols, owner ? 2 : 1 + g.size, err) : 0;
    if (!rc && !i->axes)
        rc = add_here(s, i, cols, &l, err);
    else if (!rc) {
        rc = owner ? push_to_owners(&t, &l, err) : gather_from_all(&t, &l, err);
        traffic_fini(&t);
    }
    lookups_fini(&l);
    return rc;
}

int topt_session_rows_add(struct topt_session *s, const struct topt_instr *i,
                          struct topt_error *err)
{
    return add(s, i, cols_of(s, i->b), err);
}

/* ---- updates ----------------------------------------------------------------------- */

/* Sums of the squares of 'n' rows, added up over the ranks that have other columns. */
static int add_squares(struct topt_session *s, const struct topt_instr *i,
                       struct topt_update_call *c, struct topt_error *err)
{
    const struct topt_buffer *b = &s->p->buffer[i->a];
    struct topt_shape column = b->shape; /* there also where this rank has none */
    struct topt_box box = topt_buffer_box(s, i->a);
    int last = b->shape.ndim - 1;
    box.len[last] = column.dim[last].unit = 1;
    int64_t rows = c->rows = c->row ? c->rows : topt_box_elements(&column, &box);
    void *squares = topt_scratch(s, (rows + 1) * real_bytes(s));
    if (!squares)
        return topt_nomem(err, NULL);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t k = 0; k < c->cols; k++) {
            double g = topt_number_get(s->dev->dtype, c->grad, r * c->cols + k);
            sum += g * g;
        }
        topt_number_put(s->dev->dtype, squares, r, sum);
    }
    c->squares = squares;
    struct topt_comm_call k = {.axes = i->axes,
                               .number = real_number(s),
                               .reduce = TOPT_COMM_SUM,
                               .src = squares,
                               .dst = squares,
                               .n = rows};
    return s->comm->ops->all_reduce(s->comm, &k, err);
}

/* Of copies of a block, and of its columns, those at 0 along each axis count. */
static int counts(const struct topt_session *s, const struct topt_layout *l)
{
    for (int a = 0; a < s->p->mesh.naxes; a++)
        if (l->at[a] != 0 && topt_mesh_coord(&s->p->mesh, s->comm->rank, a))
            return 0;
    return 1;
}

int topt_session_tables(struct topt_session *s, double *ret, struct topt_error *err)
{
    int n = s->p->model->nops;
    memcpy(ret, s->rows_named, (size_t)n * sizeof *ret);
    if (s->comm->ops->sum(s->comm, ret, n, err))
        return -1;
    for (int i = 0; i < n; i++)
        ret[i] /= s->step > 0 ? (double)s->step : 1;
    return 0;
}

int topt_session_rows_update(struct topt_session *s, const struct topt_instr *i,
                             struct topt_update_call *c, struct topt_error *err)
{
    const struct topt_buffer *b = &s->p->buffer[i->a];
    struct topt_box box = topt_buffer_box(s, i->a);
    int last = b->shape.ndim - 1;
    c->lazy = topt_table_sparse(&s->p->model->op[b->op]) == b->operand;
    c->cols = last ? box.len[last] * b->shape.dim[last].unit : 1;
    c->whole_cols = last ? b->shape.dim[last].count * b->shape.dim[last].unit : 1;
    if (s->p->buffer[i->b].rows) {
        struct rows r = rows_of(s, i->b);
        c->rows = r.n;
        c->row = r.row;
        c->grad = r.value;
        if (counts(s, &s->p->buffer[i->b].layout))
            s->rows_named[b->op] += (double)r.n;
    }
    return i->axes ? add_squares(s, i, c, err) : 0;
}

/* ---- for people and tests ---------------------------------------------------------- */

void topt_session_rows_spread(const struct topt_session *s, int buffer, double *ret)
{
    struct rows r = rows_of(s, buffer);
    for (int64_t k = 0; k < r.n; k++)
        for (int64_t j = 0; j < r.cols; j++)
            ret[r.row[k] * r.cols + j] =
                topt_number_get(s->dev->dtype, r.value, k * r.cols + j);
}

double topt_session_rows_square(const struct topt_session *s, int buffer)
{
    struct rows r = rows_of(s, buffer);
    double sum = 0;
    for (int64_t k = 0; k < r.n * r.cols; k++) {
        double g = topt_number_get(s->dev->dtype, r.value, k);
        sum += g * g;
    }
    return sum;
}

void topt_session_rows_fini(struct topt_session *s)
{
    for (int b = 0; s->rows_heap && b < s->p->nbuffers; b++)
        free(s->rows_heap[b]);
    free(s->rows_heap);
    free(s->rows_named);
    s->rows_heap = NULL;
    s->rows_named = NULL;
}
