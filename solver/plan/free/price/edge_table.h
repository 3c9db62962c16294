/* edge_table.h - what edges between the configurations of two families cost, by class.
 *  Private to plan/. */
#ifndef TOPT_EDGE_TABLE_H
#define TOPT_EDGE_TABLE_H

#include "problem_data.h"

/* The table between two families, listed where it is new, priced later. */
int topt_edge_table_of(struct topt_problem *p, int from, int to, int input);

/* Ask for the exact prices of an entry of a part of a problem with bounds, to be answered. */
int topt_table_ask_exact(struct topt_problem *p, const struct edge_table *e,
                         int64_t entry, struct topt_error *err) TOPT_MUST_CHECK;

/* Price a table with the moves as they are. */
int topt_table_price(struct topt_problem *p, struct edge_table *e,
                     struct topt_error *err) TOPT_MUST_CHECK;

int64_t topt_table_entries(const struct topt_problem *p, const struct edge_table *e);

/* Will the tables take no more memory than the options allow? */
int topt_table_budget_check(const struct topt_problem *p,
                            struct topt_error *err) TOPT_MUST_CHECK;

void topt_table_fini(struct edge_table *e);

#endif
