/* parts.h - a large problem's frontier as parts, each searched on what it needs of the problem.
 * Internal to this folder.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_PARTS_H
#define TOPT_SEARCH_PARTS_H

#include "search_impl.h"

/* Does that pay for the problem?  It has to be so large that some tens of weighings are nothing beside its
 * search, and wanted as a whole. */
int topt_parts_pay(const struct topt_search_problem *p,
                   const struct topt_search_options *options);

/* The search itself, of any problem of at least one operator: topt_search_parts (search_impl.h). */

#endif
