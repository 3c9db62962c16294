/* packed.c - frozen parameters that rest in 4 or 8 bits, under adapters that are trained (Dettmers et al., QLoRA, 2023).
 *
 * In 4 bits: blocks of 64 numbers, each the nearest of 16 levels times the block's scale (NF4: the levels are quantiles
 * of a normal distribution, QLoRA's appendix E).  The scale has 8 bits, too, which are its logarithm in eighths of an
 * octave.  So a block is known by its own numbers alone, and has the same wherever a plan puts it; QLoRA's second scale,
 * one for 256 blocks, is not needed, though plans have room for it.  In 8 bits: rows with a scale in f32 each (Dettmers
 * et al., LLM.int8(), 2022).
 *
 * Before a kernel reads such a parameter an UNPACK instruction makes its numbers.  They are the same on all ranks as long
 * as no block is cut, which topt_packed_check() sees to; and packed again they are what they were, so that a checkpoint
 * has them as plain f32.  The host alone does it. */
#include "packed.h"
#include "memory.h"
#include "topt_text.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 64, LEVELS = 16, OCTAVE = 8, ONE = 200, MOST_CODE = 255, MOST_BYTE = 127 };

static const float level[LEVELS] = {-1.0f,
                                    -0.6961928009986877f,
                                    -0.5250730514526367f,
                                    -0.39491748809814453f,
                                    -0.28444138169288635f,
                                    -0.18477343022823334f,
                                    -0.09105003625154495f,
                                    0.0f,
                                    0.07958029955625534f,
                                    0.16093020141124725f,
                                    0.24611230194568634f,
                                    0.33791524171829224f,
                                    0.44070982933044434f,
                                    0.5626170039176941f,
                                    0.7229568362236023f,
                                    1.0f};

/* ---- 4 bits -------------------------------------------------------------------------- */

static float largest(const float *x, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most;
}

static uint8_t code_of(float scale)
{
    if (!(scale > 0))
        return 0;
    double code = ONE + round(OCTAVE * log2((double)scale));
    return (uint8_t)(code < 1 ? 1 : code > MOST_CODE ? MOST_CODE : code);
}

static float scale_of(uint8_t code)
{
    return code ? (float)exp2((double)(code - ONE) / OCTAVE) : 0;
}

/* The nearest level of x, by halves. */
static unsigned nearest(float x)
{
    unsigned from = 0, to = LEVELS - 1;
    while (from < to) {
        unsigned mid = (from + to) / 2;
        if (x > (level[mid] + level[mid + 1]) / 2)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static void put_block(const float *x, int64_t n, uint8_t *half, uint8_t *code)
{
    *code = code_of(largest(x, n));
    float scale = scale_of(*code);
    for (int64_t i = 0; i < n; i++) {
        unsigned k = nearest(scale > 0 ? x[i] / scale : 0);
        half[i / 2] = (uint8_t)(i % 2 ? half[i / 2] | k << 4 : k);
    }
}

static void get_block(const uint8_t *half, uint8_t code, int64_t n, float *ret)
{
    float scale = scale_of(code), times[LEVELS];
    for (int k = 0; k < LEVELS; k++)
        times[k] = level[k] * scale;
    for (int64_t i = 0; i < n; i++)
        ret[i] = times[half[i / 2] >> (i % 2 ? 4 : 0) & (LEVELS - 1)];
}

/* ---- a rank's part of a parameter ------------------------------------------------------ */

struct packed {
    int bits;
    int64_t n, cols;
    uint8_t *number, *scale;
};

static int64_t parts(int64_t n, int64_t of)
{
    return (n + of - 1) / of;
}

static struct packed packed_of(const struct topt_session *s, int buffer)
{
    struct topt_shape shape = topt_buffer_shape(s->p, buffer);
    struct topt_box box = topt_buffer_box(s, buffer);
    int last = shape.ndim - 1;
    struct packed k = {.bits = topt_packed_bits(s->p, buffer),
                       .n = topt_box_elements(&shape, &box),
                       .cols = box.len[last] * shape.dim[last].unit,
                       .number = s->ptr[buffer]};
    k.scale = k.number + (k.bits == 4 ? parts(k.n, 2) : k.n);
    return k;
}

static void put_row(const float *x, int64_t n, uint8_t *number, uint8_t *at)
{
    float scale = largest(x, n) / MOST_BYTE;
    for (int64_t i = 0; i < n; i++)
        number[i] = (uint8_t)(int8_t)(scale > 0 ? roundf(x[i] / scale) : 0);
    memcpy(at, &scale, sizeof scale);
}

static void get_row(const uint8_t *number, const uint8_t *at, int64_t n, float *ret)
{
    float scale;
    memcpy(&scale, at, sizeof scale);
    for (int64_t i = 0; i < n; i++)
        ret[i] = (float)(int8_t)number[i] * scale;
}

/* Numbers [at, at + *n) have one scale, '*scale'. */
static void part_at(const struct packed *k, int64_t at, int64_t *n, uint8_t **scale)
{
    int64_t most = k->bits == 4 ? BLOCK : k->cols;
    *n = k->n - at < most ? k->n - at : most;
    *scale = k->scale + at / most * (k->bits == 4 ? 1 : (int64_t)sizeof(float));
}

void topt_packed_put(struct topt_session *s, int buffer, const float *x)
{
    struct packed k = packed_of(s, buffer);
    uint8_t *scale;
    for (int64_t at = 0, n; at < k.n; at += n) {
        part_at(&k, at, &n, &scale);
        if (k.bits == 4)
            put_block(x + at, n, k.number + at / 2, scale);
        else
            put_row(x + at, n, k.number + at, scale);
    }
}

static void get_part(const struct packed *k, int64_t at, int64_t n, const uint8_t *scale,
                     float *ret)
{
    if (k->bits == 4)
        get_block(k->number + at / 2, *scale, n, ret);
    else
        get_row(k->number + at, scale, n, ret);
}

void topt_packed_get(const struct topt_session *s, int buffer, float *ret)
{
    struct packed k = packed_of(s, buffer);
    uint8_t *scale;
    for (int64_t at = 0, n; at < k.n; at += n) {
        part_at(&k, at, &n, &scale);
        get_part(&k, at, n, scale, ret + at);
    }
}

/* In f64 by strips, since what is packed is in f32. */
int topt_session_unpack(struct topt_session *s, const struct topt_instr *i,
                        struct topt_error *err)
{
    if (!s->ptr[i->a] || !s->ptr[i->b])
        return topt_fail(err, TOPT_ERR_INTERNAL, "what is unpacked is not there");
    if (s->dev->dtype == TOPT_F32) {
        topt_packed_get(s, i->a, s->ptr[i->b]);
        return 0;
    }
    struct packed k = packed_of(s, i->a);
    double *to = s->ptr[i->b];
    uint8_t *scale;
    for (int64_t at = 0, n; at < k.n; at += n) {
        float *x = (float *)(to + at); /* the first half of its own place */
        part_at(&k, at, &n, &scale);
        get_part(&k, at, n, scale, x);
        for (int64_t j = n - 1; j >= 0; j--) {
            float one;
            memcpy(&one, x + j, sizeof one);
            to[at + j] = (double)one;
        }
    }
    return 0;
}

/* ---- what can be had ------------------------------------------------------------------- */

/* Numbers of dimensions [from, to) of a whole. */
static int64_t numbers(const struct topt_shape *s, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= s->dim[i].count * s->dim[i].unit;
    return n;
}

/* Does a box begin and end where blocks do?  Its runs are those of the innermost dimension that is cut. */
static int keeps_blocks(const struct topt_shape *s, const struct topt_box *b, int bits)
{
    int cut = s->ndim - 1;
    while (cut >= 0 && b->len[cut] == s->dim[cut].count)
        cut--;
    if (cut < 0)
        return 1;
    int64_t inner = numbers(s, cut + 1, s->ndim) * s->dim[cut].unit;
    int64_t whole = inner * s->dim[cut].count;
    return bits == 8 ? cut + 1 < s->ndim
                     : !(b->off[cut] * inner % BLOCK) && !(b->len[cut] * inner % BLOCK) &&
                           (numbers(s, 0, cut) == 1 || !(whole % BLOCK));
}

static int check_buffer(const struct topt_program *p, int buffer, struct topt_error *err)
{
    const struct topt_buffer *b = &p->buffer[buffer];
    struct topt_shape shape = topt_buffer_shape(p, buffer);
    int bits = topt_packed_bits(p, buffer);
    for (int r = 0; r < p->mesh.devices; r++) {
        struct topt_box box = topt_layout_box(&p->mesh, &shape, &b->layout, r);
        if (!keeps_blocks(&shape, &box, bits))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "the plan cuts '%.80s', which is stored in %d bits, inside "
                             "of numbers that share a scale (%s); plan with more memory "
                             "a GPU or fewer GPUs, or with --train lora",
                             p->model->op[b->op].name, bits,
                             bits == 4 ? "64 of them" : "a row");
    }
    return 0;
}

int topt_packed_check(const struct topt_program *p, const struct topt_device *device,
                      struct topt_error *err)
{
    for (int i = 0; i < p->ninstr; i++) {
        const struct topt_instr *in = &p->instr[i];
        int init = in->kind == TOPT_I_INIT, move = in->kind == TOPT_I_MOVE;
        if (!(init || move) || !topt_packed_bits(p, in->a))
            continue;
        const char *name = p->model->op[p->buffer[in->a].op].name;
        if (strcmp(device->ops->name, "host"))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "'%.80s' is stored in few bits, which is done on CPUs only; "
                             "run with --device host, or plan with --train lora",
                             name);
        if (move)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "the plan shards '%.80s', which is stored in few bits, over "
                             "replicas; plan with more memory a GPU, or with --train "
                             "lora",
                             name);
        if (check_buffer(p, in->a, err))
            return -1;
    }
    return 0;
}
