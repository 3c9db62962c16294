/* papers_tables.h - models with tables, of papers.  Private to model/. */
#ifndef TOPT_PAPERS_TABLES_H
#define TOPT_PAPERS_TABLES_H

#include "paper_parts.h"

void topt_paper_words(struct paper *p);
void topt_paper_dlrm(struct paper *p);
void topt_paper_dlrm_terabyte(struct paper *p);

#endif
