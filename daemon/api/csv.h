/* csv.h - the points of a curve or a frontier as lines for a spreadsheet (RFC 4180).
 * Thread safety: reentrant. */
#ifndef TOPTD_CSV_H
#define TOPTD_CSV_H

#include "server.h"

/* 'answer' is the document; a 406 where it has no points. */
struct reply csv_reply(const struct request *q, const json_t *answer);

#endif
