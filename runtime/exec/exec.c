/* exec.c - runs a program: one function for each kind of instruction.
 *
 * All ranks execute the same list in the same order; what differs is the local box of
 * each buffer.  Nothing here knows operators: a KERNEL is handed to the device with
 * its local extents, a LOAD to the feed. */
#include "buckets.h"
#include "topt_clock.h"
#include "topt_framework.h"
#include "clip.h"
#include "dropout.h"
#include "exchange.h"
#include "init.h"
#include "memory.h"
#include "number.h"
#include "packed.h"
#include "padding.h"
#include "running.h"
#include "rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double topt_default_lr(enum topt_optimizer o)
{
    static const double lr[TOPT_OPTIMIZER_COUNT] = {[TOPT_ROW_WISE_ADAGRAD] = 0.02,
                                                    [TOPT_SGD] = 0.1,
                                                    [TOPT_MOMENTUM] = 0.02,
                                                    [TOPT_ADAM] = 0.0003,
                                                    [TOPT_ADAMW] = 0.0003};
    return lr[o];
}

static enum topt_comm_number number_of(const struct topt_session *s, enum topt_element e)
{
    if (e == TOPT_ELEM_INT32)
        return TOPT_COMM_32;
    int bytes = topt_session_element_bytes(s, e);
    return bytes == 8 ? TOPT_COMM_F64 : bytes == 2 ? TOPT_COMM_BF16 : TOPT_COMM_F32;
}

static int is_wide(const struct topt_session *s, int buffer)
{
    return s->p->buffer[buffer].elem == TOPT_ELEM_WIDE;
}

/* Instructions name buffers by number; a dead one is our bug or a broken plan. */
static int alive(const struct topt_session *s, int buffer, struct topt_error *err)
{
    if (buffer >= 0 && buffer < s->p->nbuffers && s->ptr[buffer])
        return 0;
    return topt_fail(err, TOPT_ERR_INTERNAL,
                     "buffer %d is used while it is not allocated", buffer);
}

static int do_alloc(struct topt_session *s, const struct topt_instr *i,
                    struct topt_error *err)
{
    return topt_buffer_alloc(s, i->a, err);
}

static int do_free(struct topt_session *s, const struct topt_instr *i,
                   struct topt_error *err)
{
    if (alive(s, i->a, err))
        return -1;
    topt_buffer_free(s, i->a);
    return 0;
}

static int do_zero(struct topt_session *s, const struct topt_instr *i,
                   struct topt_error *err)
{
    if (alive(s, i->a, err))
        return -1;
    if (s->p->buffer[i->a].rows) {
        topt_session_rows_clear(s, i->a);
        return 0;
    }
    return s->dev->ops->zero(s->dev, s->ptr[i->a], topt_buffer_bytes(s, i->a), err);
}

static int do_init(struct topt_session *s, const struct topt_instr *i,
                   struct topt_error *err)
{
    return alive(s, i->a, err) ? -1 : topt_init_param(s, i->a, err);
}

/* Numbers in f32 become bf16, in place. */
static void narrow(void *buf, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        topt_number_put(TOPT_BF16, buf, i, topt_number_get(TOPT_F32, buf, i));
}

/* Feeds fill the buffer itself where it is the host's and as they have it. */
static int loads_in_place(const struct topt_session *s, int whole)
{
    return !s->dev->ops->memory && (whole || s->dev->dtype != TOPT_BF16);
}

/* Number in the global batch of this micro-batch's first sample. */
static int64_t first_sample(const struct topt_session *s)
{
    return s->micro * s->p->model->batch;
}

/* Host memory that a load goes through: bf16 comes as f32. */
static int64_t bytes_loaded(const struct topt_session *s, int buffer)
{
    int64_t bytes = topt_buffer_bytes(s, buffer);
    int whole = s->p->buffer[buffer].elem == TOPT_ELEM_INT32;
    if (loads_in_place(s, whole))
        return 0;
    return !whole && s->dev->dtype == TOPT_BF16 ? 2 * bytes : bytes;
}

static int load(struct topt_session *s, const struct topt_op *op, int operand, int buffer,
                struct topt_error *err)
{
    const struct topt_feed *feed = s->feed;
    struct topt_box box = topt_buffer_box(s, buffer);
    box.off[0] += first_sample(s);
    int64_t bytes = topt_buffer_bytes(s, buffer), n = topt_buffer_elements(s, buffer);
    int whole = s->p->buffer[buffer].elem == TOPT_ELEM_INT32;
    enum topt_dtype dtype = s->dev->dtype == TOPT_F64 ? TOPT_F64 : TOPT_F32;
    int in_place = loads_in_place(s, whole);
    void *host = in_place ? s->ptr[buffer] : topt_scratch(s, bytes_loaded(s, buffer));
    if (!host)
        return topt_nomem(err, NULL);
    if (!whole && !feed->load_real)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%s' takes real numbers, the data has none", op->name);
    if (whole ? feed->load(feed->ctx, op, operand, s->step, &box, host, err)
              : feed->load_real(feed->ctx, op, operand, s->step, &box, dtype, host, err))
        return -1;
    if (in_place)
        return 0;
    if (!whole && s->dev->dtype == TOPT_BF16)
        narrow(host, n);
    return s->dev->ops->write(s->dev, s->ptr[buffer], host, bytes, err);
}

static int load_all(struct topt_session *s, const struct topt_instr *i,
                    struct topt_error *err)
{
    const struct topt_op *op = &s->p->model->op[i->op];
    for (int o = 0; o < op->spec->noperands; o++)
        if (i->value[o] >= 0 &&
            (alive(s, i->value[o], err) || load(s, op, o, i->value[o], err)))
            return topt_wrap(err, "samples of '%s'", op->name);
    return 0;
}

/* Ranks that hold copies of the same tokens: only the one at 0 along each such axis
 * counts. */
static int counts_loss(const struct topt_session *s, const struct topt_layout *l)
{
    for (int a = 0; a < s->p->mesh.naxes; a++)
        if (l->at[a] == TOPT_REPLICATE && topt_mesh_coord(&s->p->mesh, s->comm->rank, a))
            return 0;
    return 1;
}

static int call_of(struct topt_session *s, const struct topt_instr *i,
                   struct topt_kernel_call *c, struct topt_error *err)
{
    enum { ROUTED = 1 };
    const struct topt_op *op = &s->p->model->op[i->op];
    *c = s->bound[i->op];
    c->kernel = i->kernel;
    c->at = i->at;
    c->step = s->step;
    c->labels = s->labels;
    c->first_sample = first_sample(s);
    c->filled = s->feed->filled ? c->filled : NULL;
    c->dropout = s->evaluates ? 0 : s->options.dropout.attention;
    if (i->kernel == TOPT_K_ROUTE_FWD && s->options.balance > 0 && !i->backward &&
        counts_loss(s, &s->p->buffer[i->value[ROUTED]].layout))
        c->balanced = &s->balanced;
    for (int o = 0; o < op->spec->noperands; o++) {
        if ((i->value[o] >= 0 && alive(s, i->value[o], err)) ||
            (i->grad[o] >= 0 && alive(s, i->grad[o], err)))
            return topt_wrap(err, "%s of '%s'", topt_kernel_name(i->kernel), op->name);
        c->value[o] = i->value[o] >= 0 ? s->ptr[i->value[o]] : NULL;
        c->grad[o] = i->grad[o] >= 0 ? s->ptr[i->grad[o]] : NULL;
        c->wide_grads |= (uint32_t)(i->grad[o] >= 0 && is_wide(s, i->grad[o])) << o;
    }
    return 0;
}

/* Of a cross-entropy whose kernels were run: labels that count, and those of them whose logit
 * is the largest. */
static int count_right(struct topt_session *s, const struct topt_instr *i,
                       struct topt_error *err)
{
    enum { MOST, SUM, TARGET, N, FIRST = 3 }; /* operands from FIRST on */
    const int *buffer = i->value + FIRST;
    int64_t n = topt_buffer_elements(s, buffer[MOST]);
    int64_t bytes = topt_buffer_bytes(s, buffer[MOST]);
    enum topt_dtype dtype = topt_buffer_dtype(s, buffer[MOST]);
    char *host = topt_scratch(s, N * bytes);
    if (!host)
        return topt_nomem(err, NULL);
    for (int k = 0; k < N; k++)
        if (s->dev->ops->read(s->dev, host + k * bytes, s->ptr[buffer[k]], bytes, err))
            return -1;
    for (int64_t r = 0; r < n && counts_loss(s, &s->p->buffer[buffer[MOST]].layout);
         r++) {
        int counts = topt_number_get(dtype, host + SUM * bytes, r) > 0;
        s->right[0] += counts;
        s->right[1] += counts && topt_number_get(dtype, host + TARGET * bytes, r) >=
                                     topt_number_get(dtype, host, r);
    }
    return 0;
}

/* The kernel, and those that are done with it. */
static int do_kernel(struct topt_session *s, const struct topt_instr *i,
                     struct topt_error *err)
{
    struct topt_kernel_call c[TOPT_MAX_TOGETHER];
    int n = s->together[i - s->p->instr];
    if (i->kernel == TOPT_K_LOAD)
        return load_all(s, i, err);
    for (int k = 0; k < n; k++)
        if (call_of(s, i + k, &c[k], err))
            return -1;
    if (s->evaluates && i->kernel == TOPT_K_BN_APPLY && topt_running_take(s, i, err))
        return -1;
    if (n > 1 ? s->dev->ops->kernels(s->dev, c, n, err)
              : s->dev->ops->kernel(s->dev, c, err))
        return -1;
    if (!s->evaluates && i->kernel == TOPT_K_BN_APPLY)
        return topt_running_give(s, i, err);
    return s->evaluates && i->kernel == TOPT_K_XENT_LOSS ? count_right(s, i, err) : 0;
}

static int do_move(struct topt_session *s, const struct topt_instr *i,
                   struct topt_error *err)
{
    if (alive(s, i->a, err) || alive(s, i->b, err) || (i->c >= 0 && alive(s, i->c, err)))
        return topt_wrap(err, "%s", topt_move_name(i->move.kind));
    const struct topt_buffer *b = &s->p->buffer[i->a];
    struct topt_exchange x = {.comm = s->comm,
                              .device = s->dev,
                              .shape = &b->shape,
                              .number = number_of(s, b->elem),
                              .move = &i->move,
                              .src = s->ptr[i->a],
                              .dst = s->ptr[i->b],
                              .staging = i->c >= 0 ? s->ptr[i->c] : NULL,
                              .counts = s->counts};
    return topt_exchange(&x, err);
}

static int do_halo(struct topt_session *s, const struct topt_instr *i,
                   struct topt_error *err)
{
    if (alive(s, i->a, err) || alive(s, i->b, err) || (i->c >= 0 && alive(s, i->c, err)))
        return topt_wrap(err, "halo exchange");
    int add = i->kind == TOPT_I_HALO_ADD;
    const struct topt_buffer *window = &s->p->buffer[add ? i->a : i->b];
    struct topt_halo x = {.comm = s->comm,
                          .device = s->dev,
                          .op = &s->p->model->op[i->op],
                          .window = window->operand,
                          .config = &s->p->config[i->op],
                          .number = number_of(s, window->elem),
                          .axes = i->axes,
                          .add = add,
                          .src = s->ptr[i->a],
                          .dst = s->ptr[i->b],
                          .staging = i->c >= 0 ? s->ptr[i->c] : NULL,
                          .counts = s->counts};
    if (add && s->dev->ops->zero(s->dev, x.dst, topt_buffer_bytes(s, i->b), err))
        return -1;
    return topt_exchange_halo(&x, err);
}

static int do_rows(struct topt_session *s, const struct topt_instr *i,
                   struct topt_error *err)
{
    int ids = i->value[topt_table_ids(&s->p->model->op[i->op])];
    if (alive(s, i->a, err) || alive(s, i->b, err) || alive(s, ids, err) ||
        (i->c >= 0 && alive(s, i->c, err)))
        return topt_wrap(err, "rows of '%s'", s->p->model->op[i->op].name);
    return i->kind == TOPT_I_ROWS_ADD ? topt_session_rows_add(s, i, err)
                                      : topt_session_rows_fetch(s, i, err);
}

static int do_drop(struct topt_session *s, const struct topt_instr *i,
                   struct topt_error *err)
{
    return alive(s, i->a, err) || alive(s, i->b, err) ? -1 : topt_session_drop(s, i, err);
}

static int do_reduce(struct topt_session *s, const struct topt_instr *i,
                     struct topt_error *err)
{
    if (alive(s, i->a, err))
        return -1;
    struct topt_comm_call k = {.axes = i->axes,
                               .number = number_of(s, s->p->buffer[i->a].elem),
                               .reduce = i->is_max ? TOPT_COMM_MAX : TOPT_COMM_SUM,
                               .src = s->ptr[i->a],
                               .dst = s->ptr[i->a],
                               .n = topt_buffer_elements(s, i->a)};
    return s->comm->ops->all_reduce(s->comm, &k, err);
}

static int do_bucket(struct topt_session *s, const struct topt_instr *i,
                     struct topt_error *err)
{
    return alive(s, i->a, err) ? -1 : topt_bucket_reduce(s, i->b, err);
}

static int do_add(struct topt_session *s, const struct topt_instr *i,
                  struct topt_error *err)
{
    if (alive(s, i->a, err) || alive(s, i->b, err))
        return -1;
    return s->dev->ops->add(s->dev, s->ptr[i->b], s->ptr[i->a],
                            topt_buffer_elements(s, i->b), is_wide(s, i->b), err);
}

static int do_loss(struct topt_session *s, const struct topt_instr *i,
                   struct topt_error *err)
{
    if (alive(s, i->a, err))
        return -1;
    const struct topt_buffer *b = &s->p->buffer[i->a];
    int64_t n = topt_buffer_elements(s, i->a), bytes = topt_buffer_bytes(s, i->a);
    void *host = topt_scratch(s, bytes);
    if (!host)
        return topt_nomem(err, NULL);
    if (s->dev->ops->read(s->dev, host, s->ptr[i->a], bytes, err))
        return -1;
    double sum = 0, tokens = 1;
    for (int d = 0; d < b->shape.ndim; d++)
        tokens *= (double)(b->shape.dim[d].count * b->shape.dim[d].unit);
    for (int64_t k = 0; k < n && counts_loss(s, &b->layout); k++)
        sum += topt_number_get(topt_buffer_dtype(s, i->a), host, k);
    if (s->labels) /* losses of micro-batches are means over as many as all have */
        tokens = (double)s->labels / (double)s->p->settings.micro_batches;
    s->loss += sum / tokens; /* this rank's share */
    s->loss_at = (int)(i - s->p->instr);
    return 0;
}

/* Norms' factors and biases do not decay: they have one dimension. */
static int decays(const struct topt_buffer *b)
{
    int dims = 0;
    for (int d = 0; d < b->shape.ndim; d++)
        dims += b->shape.dim[d].count * b->shape.dim[d].unit > 1;
    return dims >= 2;
}

static int do_update(struct topt_session *s, const struct topt_instr *i,
                     struct topt_error *err)
{
    const int state[] = {i->c, i->d, i->e};
    if (alive(s, i->a, err) || alive(s, i->b, err))
        return -1;
    for (int k = 0; k < 3; k++)
        if (state[k] >= 0 && alive(s, state[k], err))
            return -1;
    if (s->options.before_update &&
        s->options.before_update(s->options.ctx, s, (int)(i - s->p->instr), err))
        return -1;
    struct topt_update_call c = {
        .optimizer = s->p->settings.optimizer,
        .n = topt_buffer_elements(s, i->a),
        .step = s->step + 1,
        .lr = s->lr,
        .weight_decay = decays(&s->p->buffer[i->a]) ? s->options.weight_decay : 0,
        .beta1 = s->options.beta1,
        .beta2 = s->options.beta2,
        .eps = s->options.eps,
        .scale = s->scale,
        .param = s->ptr[i->a],
        .grad = s->ptr[i->b],
        .wide_grad = is_wide(s, i->b)};
    for (int k = 0; k < 3; k++)
        c.state[k] = state[k] >= 0 ? s->ptr[state[k]] : NULL;
    if (topt_session_rows_update(s, i, &c, err))
        return -1;
    return s->dev->ops->update(s->dev, &c, err);
}

/* The norm of all gradients, which are where their updates will read them. */
static int do_norm(struct topt_session *s, const struct topt_instr *norm,
                   struct topt_error *err)
{
    double sum = 0;
    for (int i = (int)(norm - s->p->instr); i < s->p->ninstr; i++)
        if (s->p->instr[i].kind == TOPT_I_UPDATE &&
            (alive(s, s->p->instr[i].b, err) ||
             topt_clip_square(s, s->p->instr[i].b, &sum, err)))
            return topt_wrap(err, "norm of the gradients");
    if (s->comm->ops->sum(s->comm, &sum, 1, err))
        return -1;
    s->norm = sqrt(sum);
    if (s->options.clip > 0 && s->norm > s->options.clip)
        s->scale = s->options.clip / s->norm;
    return 0;
}

static void account(struct topt_session_times *t, const struct topt_instr *i, int64_t ns)
{
    switch (i->kind) {
    case TOPT_I_KERNEL:
        t->kernel_ns[i->kernel] += ns;
        t->kernel_calls[i->kernel]++;
        break;
    case TOPT_I_MOVE:
    case TOPT_I_BUCKET: /* its first member's move */
        t->move_ns[i->move.kind] += ns;
        t->move_calls[i->move.kind]++;
        break;
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
    case TOPT_I_ROWS_FETCH:
    case TOPT_I_ROWS_ADD:
    case TOPT_I_REDUCE:
        t->reduce_ns += ns;
        break;
    case TOPT_I_UPDATE:
        t->update_ns += ns;
        break;
    default:
        t->other_ns += ns;
    }
}

/* Does an instruction wait for other ranks? */
static int waits(const struct topt_instr *i)
{
    switch (i->kind) {
    case TOPT_I_MOVE:
        return i->move.kind != TOPT_MOVE_SLICE;
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
    case TOPT_I_REDUCE:
    case TOPT_I_BUCKET:
    case TOPT_I_NORM:
        return 1;
    case TOPT_I_ROWS_FETCH:
    case TOPT_I_ROWS_ADD:
    case TOPT_I_UPDATE:
        return i->axes != 0;
    default:
        return 0;
    }
}

enum part { ALL, FORWARD };

/* Of backward what is freed there goes; what is made there is not. */
static int left_out(const struct topt_session *s, int i, enum part part)
{
    const struct topt_instr *instr = &s->p->instr[i];
    if (part == ALL)
        return 0;
    return instr->kind == TOPT_I_FREE ? !s->ptr[instr->a] : instr->backward;
}

/* Go on to the last kernel that was done with '*at'; their time is that of a product among
 * them, or of the first. */
static const struct topt_instr *count_joined(struct topt_session *s, int *at)
{
    const struct topt_instr *first = &s->p->instr[*at], *of = first;
    for (int k = 1; k < s->together[first - s->p->instr]; k++, ++*at)
        if (topt_kernel_work(first[k].kernel) != TOPT_WORK_ELEMENTWISE) {
            s->times.kernel_calls[of->kernel]++;
            of = &first[k];
        } else {
            s->times.kernel_calls[first[k].kernel]++;
        }
    return of;
}

static int run_part(struct topt_session *s, int from, int to, enum part part,
                    struct topt_error *err)
{
    static int (*const perform[])(struct topt_session *, const struct topt_instr *,
                                  struct topt_error *) = {
        [TOPT_I_ALLOC] = do_alloc,   [TOPT_I_FREE] = do_free,
        [TOPT_I_ZERO] = do_zero,     [TOPT_I_INIT] = do_init,
        [TOPT_I_KERNEL] = do_kernel, [TOPT_I_MOVE] = do_move,
        [TOPT_I_HALO] = do_halo,     [TOPT_I_HALO_ADD] = do_halo,
        [TOPT_I_REDUCE] = do_reduce, [TOPT_I_ADD] = do_add,
        [TOPT_I_LOSS] = do_loss,     [TOPT_I_UPDATE] = do_update,
        [TOPT_I_NORM] = do_norm,     [TOPT_I_ROWS_FETCH] = do_rows,
        [TOPT_I_ROWS_ADD] = do_rows, [TOPT_I_BUCKET] = do_bucket,
        [TOPT_I_DROP] = do_drop,     [TOPT_I_UNPACK] = topt_session_unpack,
    };
    /* gradients are whole from the last micro-batch on */
    int behind = s->overlaps && part == ALL && from >= s->p->micro_begin &&
                 to == s->p->micro_end && s->micro + 1 == s->p->settings.micro_batches;
    int64_t before = topt_clock_ns();
    if (from == s->p->micro_begin)
        topt_padding_fill(s);
    for (int i = from; i < to; i++) {
        const struct topt_instr *instr = &s->p->instr[i];
        if (left_out(s, i, part))
            continue;
        topt_run_at(s->options.place, s->step, i, waits(instr));
        if (perform[instr->kind](s, instr, err))
            return topt_wrap(err, "instruction %d", i);
        instr = count_joined(s, &i);
        if (behind && topt_buckets_behind(s, i, err))
            return topt_wrap(err, "instruction %d", i);
        int64_t after = topt_clock_ns();
        account(&s->times, instr, after - before);
        before = after;
        if (s->options.ran)
            s->options.ran(s->options.ctx, (int)(instr - s->p->instr));
    }
    return 0;
}

static int run(struct topt_session *s, int from, int to, struct topt_error *err)
{
    return run_part(s, from, to, ALL, err);
}

/* Host memory that an instruction takes. */
static int64_t scratch_of(const struct topt_session *s, const struct topt_instr *i)
{
    int64_t most = 0;
    if (i->kind == TOPT_I_LOSS)
        return topt_buffer_bytes(s, i->a);
    if (i->kind == TOPT_I_NORM)
        return topt_clip_scratch(s);
    if (i->kind == TOPT_I_KERNEL && i->kernel == TOPT_K_BN_APPLY)
        return topt_running_scratch(s, i);
    if (i->kind != TOPT_I_KERNEL || i->kernel != TOPT_K_LOAD)
        return 0;
    for (int o = 0; o < s->p->model->op[i->op].spec->noperands; o++) {
        int64_t bytes = i->value[o] >= 0 ? bytes_loaded(s, i->value[o]) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

static uint32_t axes_of(const struct topt_instr *i)
{
    switch (i->kind) {
    case TOPT_I_MOVE:
        return i->move.kind == TOPT_MOVE_SLICE ? 0 : i->move.axes;
    case TOPT_I_BUCKET:
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
    case TOPT_I_ROWS_FETCH:
    case TOPT_I_ROWS_ADD:
    case TOPT_I_UPDATE:
    case TOPT_I_REDUCE:
        return i->axes;
    default:
        return 0;
    }
}

/* What instructions would ask for is there before the first: groups of ranks, and host memory. */
static int make_ready(struct topt_session *s, struct topt_error *err)
{
    struct topt_comm_group g;
    int64_t most = 0;
    for (int i = 0; i < s->p->ninstr; i++) {
        int64_t bytes = scratch_of(s, &s->p->instr[i]);
        uint32_t axes = axes_of(&s->p->instr[i]);
        most = bytes > most ? bytes : most;
        if (axes && s->comm->size > 1 && s->comm->ops->group(s->comm, axes, &g, err))
            return -1;
    }
    return topt_scratch(s, most) ? 0 : topt_nomem(err, NULL);
}

static const struct topt_own *own_of(const struct topt_session *s,
                                     const struct topt_op *op)
{
    for (int k = 0; k < s->options.nown; k++)
        if (!strcmp(s->options.own[k].name, op->name))
            return &s->options.own[k];
    return NULL;
}

/* What all calls of an operator's kernels have in common. */
static void bind(struct topt_session *s)
{
    const struct topt_program *p = s->p;
    for (int k = 0; k < p->model->nops; k++) {
        const struct topt_op *op = &p->model->op[k];
        struct topt_kernel_call *c = &s->bound[k];
        *c = (struct topt_kernel_call){.op = op,
                                       .micro_batches = p->settings.micro_batches,
                                       .balance = s->options.balance,
                                       .own = own_of(s, op),
                                       .seed = s->options.seed};
        topt_op_box(op, &p->config[k], &p->mesh, s->comm->rank, c->off, c->len);
        c->filled = topt_padding_of(s, k, c->off[0]);
        for (int o = 0; o < op->spec->noperands; o++)
            c->box[o] = topt_operand_box(op, o, &p->config[k], &p->mesh, s->comm->rank);
    }
}

/* Where a buffer will be while it is alive. */
static void *place_of(const struct topt_session *s, int buffer)
{
    return buffer >= 0 ? (char *)s->arena + s->offset[buffer] : NULL;
}

/* A kernel as it will be called. */
static struct topt_kernel_call call_to_come(const struct topt_session *s,
                                            const struct topt_instr *in)
{
    struct topt_kernel_call c = s->bound[in->op];
    c.kernel = in->kernel;
    c.filled = s->feed->filled ? c.filled : NULL;
    c.at = in->at;
    for (int o = 0; o < c.op->spec->noperands; o++) {
        c.value[o] = place_of(s, in->value[o]);
        c.grad[o] = place_of(s, in->grad[o]);
        c.wide_grads |= (uint32_t)(in->grad[o] >= 0 && is_wide(s, in->grad[o])) << o;
    }
    return c;
}

/* Of the kernels that are joined to 'i': how many the device does with it. */
static int count_together(const struct topt_session *s, int i)
{
    struct topt_kernel_call c[TOPT_MAX_TOGETHER];
    int n = 0;
    for (; n < TOPT_MAX_TOGETHER && i + n < s->p->micro_end &&
           (!n || s->p->instr[i + n].joined);
         n++)
        c[n] = call_to_come(s, &s->p->instr[i + n]);
    return n > 1 && s->dev->ops->together ? s->dev->ops->together(s->dev, c, n) : 1;
}

/* The program's kernels as the device is told of them before the first step. */
struct told {
    const struct topt_session *s;
    int *instr; /* by call */
};

static void told_call(const void *ctx, int i, struct topt_kernel_call *ret)
{
    const struct told *t = ctx;
    *ret = call_to_come(t->s, &t->s->p->instr[t->instr[i]]);
}

static int prepare(struct topt_session *s, struct topt_error *err)
{
    struct told t = {s, calloc((size_t)s->p->ninstr + 1, sizeof *t.instr)};
    struct topt_device_program p = {
        .call = told_call, .ctx = &t, .communicates_beside = s->overlaps};
    int after = 0; /* one past those that are done with an earlier one */
    if (!t.instr)
        return topt_nomem(err, NULL);
    for (int i = 0; i < s->p->ninstr; i++) {
        const struct topt_instr *in = &s->p->instr[i];
        s->together[i] = 1;
        if (in->kind != TOPT_I_KERNEL || in->kernel == TOPT_K_LOAD)
            continue;
        if (i >= after)
            s->together[i] = (uint8_t)count_together(s, i);
        after = i + s->together[i] > after ? i + s->together[i] : after;
        t.instr[p.ncalls++] = i;
    }
    int rc = s->dev->ops->prepare(s->dev, &p, err);
    free(t.instr);
    return rc;
}

static int allocate(struct topt_session *s, struct topt_error *err)
{
    size_t n = (size_t)s->p->nbuffers;
    s->ptr = calloc(n + 1, sizeof *s->ptr);
    s->bytes = calloc(n + 1, sizeof *s->bytes);
    s->counts = calloc(2 * (size_t)s->comm->size, sizeof *s->counts);
    s->rows_heap = calloc(n + 1, sizeof *s->rows_heap);
    s->bound = calloc((size_t)s->p->model->nops + 1, sizeof *s->bound);
    s->rows_named = calloc((size_t)s->p->model->nops + 1, sizeof *s->rows_named);
    s->together = malloc((size_t)s->p->ninstr + 1);
    if (!s->ptr || !s->together || !s->bytes || !s->counts || !s->rows_heap ||
        !s->rows_named || !s->bound)
        return topt_nomem(err, NULL);
    if (topt_padding_open(s, err) || topt_dropout_open(s, err))
        return -1;
    bind(s);
    return 0;
}

/* Communicators take memory of the device, too: they come first. */
static int start(struct topt_session *s, struct topt_error *err)
{
    return make_ready(s, err) || topt_arena_open(s, err) || topt_buckets_open(s, err) ||
                   prepare(s, err)
               ? -1
               : 0;
}

/* Each sentence says what topt run lacks, and which other plan it can run. */
int topt_session_check(const struct topt_settings *s, struct topt_error *err)
{
    if (!topt_optimizer_runs(s->optimizer))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "topt run has no optimizer %s; plan with --optimizer adamw, or "
                         "start this plan's framework by topt launch",
                         topt_optimizer_name(s->optimizer));
    if (s->dtype == TOPT_F16)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "topt run cannot train in fp16: it has no kernels for it and "
                         "scales no loss; plan with --precision bf16-mixed or f32");
    if (s->low)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "topt run has no kernels for products in fewer bits (%s); plan "
                         "with --precision bf16-mixed, or start this plan's framework by "
                         "topt launch",
                         topt_precision_of(s)->name);
    if (s->state_bf16 && s->dtype == TOPT_BF16)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "topt run keeps weights and optimizer states in f32, and this "
                         "plan has them in bf16; plan with --precision bf16-mixed");
    if (s->offload)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "topt run keeps everything on its devices, and this plan has "
                         "some of it on the host; plan without --offload, or start this "
                         "plan's framework by topt launch");
    return 0;
}

static int has_norm(const struct topt_program *p)
{
    for (int i = p->micro_end; i < p->ninstr; i++)
        if (p->instr[i].kind == TOPT_I_NORM)
            return 1;
    return 0;
}

/* Gradients of rows, and sums of squares of rows whose columns are cut, are in the host's
 * memory. */
static int works_with_rows(const struct topt_program *p)
{
    for (int b = 0; b < p->nbuffers; b++)
        if (p->buffer[b].rows)
            return 1;
    for (int i = 0; i < p->ninstr; i++)
        if (p->instr[i].kind == TOPT_I_UPDATE && p->instr[i].axes)
            return 1;
    return 0;
}

/* Is it said of each operator of the program's what it does? */
static int check_own(const struct topt_model *m, const struct topt_session_options *o,
                     struct topt_error *err)
{
    for (int k = 0; k < m->nops; k++) {
        int known = strcmp(m->op[k].spec->name, "own") != 0;
        for (int i = 0; i < o->nown && !known; i++)
            known = !strcmp(o->own[i].name, m->op[k].name);
        if (!known)
            return topt_fail(
                err, TOPT_ERR_INVAL,
                "'%.80s' is an operator of a program's own: the program that has "
                "it trains it (topt_training_own)",
                m->op[k].name);
    }
    return 0;
}

static int routers_of(const struct topt_model *m)
{
    int n = 0;
    for (int k = 0; k < m->nops; k++)
        n += !strcmp(m->op[k].spec->name, "route");
    return n;
}

static int check_balance(const struct topt_model *m, const struct topt_device *device,
                         double balance, struct topt_error *err)
{
    if (balance > 0 && !routers_of(m))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "there is no balance of experts: '%.80s' has no router",
                         m->name);
    return balance > 0 && strcmp(device->ops->name, "host") != 0
               ? topt_fail(
                     err, TOPT_ERR_INVAL,
                     "the balance of experts is learnt on CPUs only; run with --device "
                     "host or without --balance")
               : 0;
}

/* Can the device run the program, with these options? */
static int check_program(const struct topt_program *p, const struct topt_device *device,
                         const struct topt_session_options *options,
                         struct topt_error *err)
{
    if (p->settings.dtype != device->dtype)
        return topt_fail(
            err, TOPT_ERR_INVAL, "the program is in %s, the device computes in %s",
            topt_dtype_name(p->settings.dtype), topt_dtype_name(device->dtype));
    if (topt_session_check(&p->settings, err) || topt_model_check_run(p->model, err) ||
        topt_packed_check(p, device, err) ||
        topt_dropout_check(&options->dropout, device, err) ||
        check_balance(p->model, device, options->balance, err) ||
        check_own(p->model, options, err))
        return -1;
    if (strcmp(device->ops->name, "host") && works_with_rows(p))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "the plan keeps gradients of rows of tables, which is done on "
                         "CPUs only; run with --device host, or plan the model with "
                         "\"sparse\" 0");
    if (options->clip > 0 && !has_norm(p))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "to clip gradients the program needs their norm "
                         "(topt_program_clip)");
    return 0;
}

int topt_session_create(const struct topt_program *p, struct topt_comm *comm,
                        struct topt_device *device,
                        const struct topt_session_options *options,
                        struct topt_session **ret, struct topt_error *err)
{
    struct topt_session *s = NULL;
    int bad = check_program(p, device, options, err);
    if (!bad && !(s = calloc(1, sizeof *s)))
        bad = topt_nomem(err, NULL);
    if (topt_comm_agree(comm, bad, err)) {
        free(s);
        return -1;
    }
    s->p = p;
    s->comm = comm;
    s->dev = device;
    s->options = *options;
    s->feed = &s->options.feed;
    if (!(s->options.lr > 0))
        s->options.lr = topt_default_lr(p->settings.optimizer);
    if (s->options.weight_decay == 0)
        s->options.weight_decay = 0.01;
    else if (s->options.weight_decay < 0)
        s->options.weight_decay = 0;
    s->overlaps = options->overlap && comm->ops->engine && comm->size > 1;
    if (s->overlaps)
        device->engine = comm->ops->engine(comm);
    s->meter.granule = p->settings.granule_bytes > 0 ? p->settings.granule_bytes : 1;
    int failed = topt_comm_bind(comm, &p->mesh, err) || allocate(s, err);
    if (topt_comm_agree(comm, failed, err) || topt_comm_agree(comm, start(s, err), err) ||
        topt_comm_agree(comm, run(s, 0, p->init_end, err) || topt_running_open(s, err),
                        err)) {
        topt_session_destroy(s);
        return -1;
    }
    memset(&s->times, 0, sizeof s->times);
    *ret = s;
    return 0;
}

void topt_session_destroy(struct topt_session *s)
{
    if (!s)
        return;
    topt_session_rows_fini(s);
    topt_buckets_close(s);
    s->dev->engine = (struct topt_engine){.last = NULL};
    topt_arena_close(s);
    free(s->ptr);
    free(s->bytes);
    free(s->counts);
    free(s->bound);
    free(s->together);
    free(s->filled);
    free(s->drop_op);
    free(s->drop_form);
    free(s->drop_model);
    free(s->scratch);
    free(s);
}

double topt_lr_at(const struct topt_lr_schedule *c, double lr, int64_t step)
{
    if (step < c->warmup)
        return lr * (double)(step + 1) / (double)c->warmup;
    if (!c->last)
        return lr;
    if (step >= c->last || c->last <= c->warmup)
        return c->lowest;
    double way = (double)(step - c->warmup) / (double)(c->last - c->warmup);
    return c->lowest + (lr - c->lowest) * 0.5 * (1 + cos(3.14159265358979323846 * way));
}

/* Losses of all micro-batches, and what ranks have to say, in one message. */
static int tell_all(struct topt_session *s, int says, double *ret_loss,
                    struct topt_error *err)
{
    enum { LOSS, BALANCE, WORDS };
    double all[WORDS + TOPT_SESSION_WORDS] = {s->loss, s->balanced};
    if (says && s->options.say)
        s->options.say(s->options.ctx, all + WORDS);
    topt_run_at(s->options.place, s->step, s->loss_at, 1);
    if (s->comm->ops->sum(s->comm, all, WORDS + TOPT_SESSION_WORDS, err))
        return topt_wrap(err, "the sum of the loss");
    if (says)
        memcpy(s->heard, all + WORDS, sizeof s->heard);
    *ret_loss = all[LOSS];
    s->balance = all[BALANCE];
    return 0;
}

/* Labels that count are those of a whole batch. */
static void count_labels(struct topt_session *s)
{
    s->labels = s->feed->labels ? s->feed->labels(s->feed->ctx, s->step) : 0;
}

int topt_session_step(struct topt_session *s, double *ret_loss, struct topt_error *err)
{
    double loss = 0;
    const struct topt_program *p = s->p;
    int64_t rounds = p->settings.micro_batches;
    s->loss = s->balanced = 0;
    s->scale = 1;
    count_labels(s);
    s->lr = topt_lr_at(&s->options.schedule, s->options.lr, s->step);
    int rc = run(s, p->init_end, p->micro_begin, err);
    for (s->micro = 0; !rc && s->micro < rounds; s->micro++)
        rc = run(s, p->micro_begin, p->micro_end, err);
    if (rc || run(s, p->micro_end, p->ninstr, err) || s->dev->ops->sync(s->dev, err) ||
        tell_all(s, 1, &loss, err))
        return topt_wrap(err, "step %lld", (long long)s->step + 1);
    int routers = routers_of(p->model);
    s->balance /= routers ? (double)(routers * p->model->batch * rounds) : 1;
    s->step++;
    *ret_loss = loss / (double)rounds;
    return 0;
}

int topt_session_evaluate(struct topt_session *s, const struct topt_feed *feed, int64_t n,
                          double *ret_loss, double *ret_right, struct topt_error *err)
{
    const struct topt_program *p = s->p;
    struct topt_session_times times = s->times;
    int64_t step = s->step, rounds = p->settings.micro_batches;
    int rc = 0;
    double loss = 0;
    s->loss = s->right[0] = s->right[1] = 0;
    s->evaluates = 1;
    s->feed = feed;
    for (s->step = 0; !rc && s->step < n; s->step++) {
        count_labels(s);
        for (s->micro = 0; !rc && s->micro < rounds; s->micro++)
            rc = run_part(s, p->micro_begin, p->micro_end, FORWARD, err);
    }
    s->step = step;
    s->evaluates = 0;
    s->feed = &s->options.feed;
    s->times = times;
    if (rc || tell_all(s, 0, &loss, err) || s->comm->ops->sum(s->comm, s->right, 2, err))
        return topt_wrap(err, "evaluation");
    *ret_loss = n > 0 ? loss / (double)(n * rounds) : 0;
    *ret_right = s->right[0] > 0 ? s->right[1] / s->right[0] : NAN;
    return 0;
}

static int read_logits(struct topt_session *s, int buffer, int64_t position, double *ret,
                       int64_t n, struct topt_error *err)
{
    int bytes = topt_session_element_bytes(s, TOPT_ELEM_REAL);
    void *host = topt_scratch(s, n * bytes);
    if (!host || alive(s, buffer, err))
        return host ? -1 : topt_nomem(err, NULL);
    if (position < 0 || n < 1 || (position + 1) * n > topt_buffer_elements(s, buffer))
        return topt_fail(err, TOPT_ERR_INVAL, "the loss reads no %lld numbers at %lld",
                         (long long)n, (long long)position);
    const char *at = (const char *)s->ptr[buffer] + position * n * bytes;
    if (s->dev->ops->read(s->dev, host, at, n * bytes, err))
        return -1;
    for (int64_t i = 0; i < n; i++)
        ret[i] = topt_number_get(s->dev->dtype, host, i);
    return 0;
}

int topt_session_logits(struct topt_session *s, const struct topt_feed *feed,
                        int64_t position, double *ret, int64_t n, struct topt_error *err)
{
    const struct topt_program *p = s->p;
    int at = topt_program_find_loss(p);
    int64_t step = s->step;
    if (s->comm->size > 1 || at < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "logits are read on a single rank");
    s->feed = feed;
    s->evaluates = 1;
    s->step = s->micro = 0;
    count_labels(s);
    int rc = run_part(s, p->micro_begin, at, FORWARD, err) ||
             read_logits(s, p->instr[at].value[0], position, ret, n, err) ||
             run_part(s, at, p->micro_end, FORWARD, err);
    s->step = step;
    s->evaluates = 0;
    s->feed = &s->options.feed;
    return rc ? -1 : 0;
}

static int64_t outputs_of_part(const struct topt_session *s)
{
    int at = topt_program_find_loss(s->p);
    int64_t n = at < 0 ? 0 : 1;
    const struct topt_shape *x =
        at < 0 ? NULL : &s->p->buffer[s->p->instr[at].value[0]].shape;
    for (int d = 0; x && d < x->ndim; d++)
        n *= x->dim[d].count * x->dim[d].unit;
    return n;
}

int64_t topt_session_outputs(const struct topt_session *s)
{
    return outputs_of_part(s) * s->p->settings.micro_batches;
}

/* One micro-batch. */
static int predict_part(struct topt_session *s, double *ret, struct topt_error *err)
{
    const struct topt_program *p = s->p;
    int at = topt_program_find_loss(p);
    double *whole = NULL;
    int64_t n;
    int rc = run_part(s, p->micro_begin, at, FORWARD, err) ||
             topt_session_gather(s, p->instr[at].value[0], &whole, &n, NULL, err) ||
             run_part(s, at, p->micro_end, FORWARD, err);
    if (!rc && whole)
        memcpy(ret, whole, (size_t)n * sizeof *ret);
    free(whole);
    return rc ? -1 : 0;
}

int topt_session_predict(struct topt_session *s, const struct topt_feed *feed,
                         double *ret, struct topt_error *err)
{
    int64_t step = s->step, n = outputs_of_part(s);
    int rc = n ? 0 : topt_fail(err, TOPT_ERR_INVAL, "the model has no outputs");
    s->feed = feed;
    s->evaluates = 1;
    s->step = 0;
    count_labels(s);
    for (s->micro = 0; !rc && s->micro < s->p->settings.micro_batches; s->micro++)
        rc = predict_part(s, ret + s->micro * n, err);
    s->step = step;
    s->evaluates = 0;
    s->feed = &s->options.feed;
    return rc ? topt_wrap(err, "prediction") : 0;
}

const double *topt_session_heard(const struct topt_session *s)
{
    return s->heard;
}

double topt_session_gradient_norm(const struct topt_session *s)
{
    return s->norm;
}

double topt_session_balance(const struct topt_session *s)
{
    return s->balance;
}

double topt_session_lr(const struct topt_session *s)
{
    return s->lr;
}

int64_t topt_session_peak_bytes(const struct topt_session *s)
{
    return s->meter.peak;
}

int64_t topt_session_arena_bytes(const struct topt_session *s)
{
    return s->arena_bytes;
}

struct topt_session_times topt_session_times(const struct topt_session *s)
{
    return s->times;
}

const struct topt_program *topt_session_program(const struct topt_session *s)
{
    return s->p;
}
