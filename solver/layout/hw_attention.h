/* hw_attention.h - rates of attention kernels by kernel, head and length.  See hw_attention.c. */
#ifndef TOPT_HW_ATTENTION_H
#define TOPT_HW_ATTENTION_H

#include "topt_hw.h"

struct topt_attention_rates; /* opaque: the rows of one device */

/* Read device.attention: an array of rows, or the name of a shipped profile whose rows hold for this
 * device too; the table is empty where the device has none.  'types': the names of enum topt_dtype,
 * NULL-ended.  The caller owns the table.  INVAL where a row is not well formed. */
int topt_attention_rates_read(const json_t *device, const char *const types[],
                              struct topt_attention_rates **ret,
                              struct topt_error *err) TOPT_MUST_CHECK;
void topt_attention_rates_free(struct topt_attention_rates *rates);

/* The share of the peak of type 't' that a kernel reaches; 0 where no row tells it. */
double topt_attention_share(const struct topt_attention_rates *rates, enum topt_dtype t,
                            const struct topt_attention_run *run);
/* The same of the module's own kernel where it has no rows; 'otherwise': what attention reaches of the
 * peak in general.  0 where that kernel does not take such an attention. */
double topt_attention_own_share(const struct topt_attention_rates *rates,
                                enum topt_dtype t, const struct topt_attention_run *run,
                                double otherwise);

#endif
