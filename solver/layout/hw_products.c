/* hw_products.c - rates of matrix products by shape.
 *
 * A GPU makes a product tile by tile, as many at once as it has multiprocessors.  A tile's start and
 * end cost as much as some terms of the sums that it adds up, however many it has; and the last wave of
 * tiles leaves multiprocessors idle, as if there were some results more.  Hence the time
 *
 *     2 (outputs + o) (depth + d) / (share x peak)
 *
 * of a product with so many results, each a sum of 'depth' terms.  share, d and o are fitted to
 * tables of measured products; d rules where sums are short, as those of attention written out and of
 * small models, o where the result is small, as gradients of small weights. */
#include "hw_products.h"

#include <string.h>

#include "hw_impl.h"
#include "topt_json.h"

static int read_row(const json_t *row, size_t i, const char *const types[],
                    struct topt_product_rate *ret, struct topt_error *err)
{
    static const char *const fields[] = {"type",  "share",  "depth", "outputs",
                                         "range", "source", NULL};
    const char *type = json_string_value(json_object_get(row, "type"));
    char path[40];
    int t = 0;
    snprintf(path, sizeof path, "device.products[%zu]", i);
    if (topt_json_only(row, path, fields, err))
        return -1;
    while (types[t] && (!type || strcmp(types[t], type) != 0))
        t++;
    if (!types[t] || ret[t].share > 0)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s.type must be one of f32, f64, bf16, f16, f8, f8-block, mxf8 "
                         "and nvf4, and of no other row",
                         path);
    if (!json_is_string(json_object_get(row, "source")))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s.source must say where the figures come from", path);
    return topt_json_real(row, path, "share", 1e-3, 1, &ret[t].share, err) ||
                   topt_json_real(row, path, "depth", 0, 1e6, &ret[t].depth, err) ||
                   topt_json_real(row, path, "outputs", 0, 1e9, &ret[t].outputs, err)
               ? -1
               : 0;
}

int topt_products_read(const json_t *device, const char *const types[],
                       struct topt_product_rate *ret, struct topt_error *err)
{
    json_t *rows = topt_hw_rows(device, "products", TOPT_DTYPE_COUNT, err);
    int rc = rows ? 0 : -1;
    memset(ret, 0, TOPT_DTYPE_COUNT * sizeof *ret);
    for (size_t i = 0; i < json_array_size(rows) && !rc; i++)
        rc = read_row(json_array_get(rows, i), i, types, ret, err);
    json_decref(rows);
    return rc;
}

double topt_product_operations(const struct topt_product_rate *rate, double flops,
                               double outputs)
{
    return (flops + 2 * rate->depth * outputs) * (1 + rate->outputs / outputs) /
           rate->share;
}
