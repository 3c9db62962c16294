/* validation_page.h - docs/validation.html, all comparisons in one table that can be filtered.  See
 * validation_page.c. */
#ifndef TOPT_BENCH_VALIDATION_PAGE_H
#define TOPT_BENCH_VALIDATION_PAGE_H

#include <jansson.h>

#include "figures.h"

/* Append row i's comparisons, an object each. */
void page_add(json_t *rows, const struct group *g, int i, int judged);

/* Write the page with these; 0, or -1 where the file can't be written. */
int page_write(const char *path, const json_t *rows);

#endif
