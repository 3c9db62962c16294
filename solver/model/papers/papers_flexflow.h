/* papers_flexflow.h - models that FlexFlow's paper measures.  Private to solver/model. */
#ifndef TOPT_PAPERS_FLEXFLOW_H
#define TOPT_PAPERS_FLEXFLOW_H

struct paper;

void topt_paper_alexnet(struct paper *p);
void topt_paper_inception(struct paper *p);
void topt_paper_rnnlm(struct paper *p);
void topt_paper_nmt(struct paper *p);

#endif
