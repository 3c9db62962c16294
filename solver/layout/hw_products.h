/* hw_products.h - rates of matrix products by shape.  See hw_products.c. */
#ifndef TOPT_HW_PRODUCTS_H
#define TOPT_HW_PRODUCTS_H

#include "topt_hw.h"

/* A row of device.products; a share of 0: there is none. */
struct topt_product_rate {
    double share;   /* of the peak, of products that are large in every dimension */
    double depth;   /* terms of a sum that starting and ending a tile takes */
    double outputs; /* results that the last wave of tiles lacks, in the mean */
};

/* Read device.products: an array of rows, one a type at most, or the name of a shipped profile whose
 * rows hold for this device too.  'types': the names of enum topt_dtype, NULL-ended; 'ret': a row for
 * each.  INVAL where a row is not well formed. */
int topt_products_read(const json_t *device, const char *const types[],
                       struct topt_product_rate *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Operations over the peak, in which products of 'flops' operations with 'outputs' results end. */
double topt_product_operations(const struct topt_product_rate *rate, double flops,
                               double outputs);

#endif
