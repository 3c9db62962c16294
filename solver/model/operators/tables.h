/* tables.h - what rows of tables share.  Private to model/. */
#ifndef TOPT_TABLES_H
#define TOPT_TABLES_H

#include "topt_model.h"

/* -1 where a table's density is one that no lookups have. */
int topt_refuse_density(const struct topt_op *op, struct topt_error *err);

#endif
