/* onnx_numbers.c - the numbers of an initializer or attribute, as doubles.
 *
 * Shapes, axes and scalars are computed with; weights are not, so only small constants
 * hold their numbers (whole numbers beyond 2^53 are ends of slices and nothing else). */
#include "onnx_numbers.h"

#include <math.h>
#include <string.h>

static double half_to_double(unsigned h)
{
    int exponent = (int)(h >> 10 & 31), fraction = (int)(h & 1023);
    double x = exponent == 0    ? ldexp(fraction, -24)
               : exponent == 31 ? (fraction ? NAN : INFINITY)
                                : ldexp(1024 + fraction, exponent - 25);
    return h >> 15 & 1 ? -x : x;
}

/* Bytes of an element in raw data; 0 where its numbers are not read. */
static size_t raw_size(int32_t type)
{
    switch (type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
        return 4;
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
        return 8;
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
        return 2;
    case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8:
        return 1;
    default:
        return 0;
    }
}

static double raw_number(const uint8_t *at, int32_t type)
{
    float f;
    double d;
    int32_t i;
    int64_t l;
    uint16_t h;
    switch (type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
        memcpy(&f, at, sizeof f);
        return (double)f;
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
        memcpy(&d, at, sizeof d);
        return d;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
        memcpy(&i, at, sizeof i);
        return i;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
        memcpy(&l, at, sizeof l);
        return (double)l;
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
        memcpy(&h, at, sizeof h);
        return half_to_double(h);
    default:
        return *at;
    }
}

/* Number 'i' of a field of the message; NAN past its end. */
static double field_number(const Onnx__TensorProto *t, int64_t i)
{
    size_t k = (size_t)i;
    switch (t->data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
        return k < t->n_float_data ? (double)t->float_data[k] : NAN;
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
        return k < t->n_double_data ? t->double_data[k] : NAN;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
        return k < t->n_int64_data ? (double)t->int64_data[k] : NAN;
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
        return k < t->n_int32_data ? half_to_double((unsigned)t->int32_data[k] & 0xffff)
                                   : NAN;
    default:
        return k < t->n_int32_data ? (double)t->int32_data[k] : (double)NAN;
    }
}

double *topt_onnx_numbers(struct onnx *x, const Onnx__TensorProto *t)
{
    double n = 1;
    for (size_t d = 0; d < t->n_dims; d++)
        n *= (double)t->dims[d];
    size_t size = raw_size(t->data_type);
    if (!(n >= 0 && n <= ONNX_MAX_HELD) || !size ||
        t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL ||
        (t->has_raw_data && t->raw_data.len < (size_t)n * size))
        return NULL;
    double *ret = TOPT_NEW(x->arena, (size_t)n, double);
    for (int64_t i = 0; ret && i < (int64_t)n; i++) {
        ret[i] = t->has_raw_data
                     ? raw_number(t->raw_data.data + (size_t)i * size, t->data_type)
                     : field_number(t, i);
        if (isnan(ret[i]) && !t->has_raw_data)
            return NULL;
    }
    return ret;
}
