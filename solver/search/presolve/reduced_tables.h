/* reduced_tables.h - a problem without some configurations, with tables of its own.
 * Internal to this folder.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_REDUCED_TABLES_H
#define TOPT_SEARCH_REDUCED_TABLES_H

#include "config_dominance.h"

/* Give a problem that has few of its configurations left (topt_subproblem_of) tables of
 * its own, of their classes alone.  Edges that share a table and have the same classes
 * left share the new one. */
int topt_subproblem_tables(struct reduced_problem *n,
                           struct topt_error *err) TOPT_MUST_CHECK;

#endif
