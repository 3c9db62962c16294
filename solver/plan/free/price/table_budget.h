/* table_budget.h - will a problem's tables have room?  Private to plan/. */
#ifndef TOPT_TABLE_BUDGET_H
#define TOPT_TABLE_BUDGET_H

#include "free.h"
#include "topt_error.h"

/* Will the tables take no more memory than the options allow? */
int topt_table_budget_check(const struct topt_problem *p,
                            struct topt_error *err) TOPT_MUST_CHECK;

#endif
