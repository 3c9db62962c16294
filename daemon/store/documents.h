/* documents.h - inside of the store: a model that comes with an answer. */
#ifndef TOPTD_STORE_DOCUMENTS_H
#define TOPTD_STORE_DOCUMENTS_H

#include "db.h"

/* In a transaction: the model under its name, owned by 'uid' where that is not -1.  1 new, 0, -1.
 */
int store_add_model(struct conn *c, const struct store_doc *m, int64_t uid,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
