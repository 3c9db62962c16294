/* scalar_pass.c - a weighted sum of costs, and what every entry of every table weighs at
 * least by it. */
#include "scalar_pass.h"

#include "search_common.h"

#include <stdlib.h>

int topt_scalar_pass_init(struct scalar_pass *b, const struct tables *ts,
                          struct topt_error *err)
{
    *b = (struct scalar_pass){0};
    b->least = malloc((size_t)ts->nentries * sizeof *b->least);
    b->rest = malloc((size_t)ts->nentries * sizeof *b->rest);
    b->flat = malloc((size_t)ts->nentries * sizeof *b->flat);
    b->room = malloc(((size_t)ts->matrix_room + 1) * sizeof *b->room);
    return b->least && b->rest && b->flat && b->room ? 0 : topt_search_nomem(err);
}

void topt_scalar_pass_fini(struct scalar_pass *b)
{
    free(b->least);
    free(b->rest);
    free(b->flat);
    free(b->room);
    *b = (struct scalar_pass){0};
}
