/* keep.h - inside of the store: that a row was used. */
#ifndef TOPTD_STORE_KEEP_H
#define TOPTD_STORE_KEEP_H

#include "db.h"

/* Write down soon that a row is used; often said, it costs a comparison. */
void store_touch(struct store *s, enum touch what, int64_t row);

#endif
