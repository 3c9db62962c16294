/* papers_flexflow.h - FlexFlow's part of docs/PAPERS.md. */
#ifndef PAPERS_FLEXFLOW_H
#define PAPERS_FLEXFLOW_H

#include "papers_systems.h"

void papers_flexflow(papers_claim *claim, papers_head *head);
/* What was measured by hand, after the table. */
void papers_flexflow_said(void);

#endif
