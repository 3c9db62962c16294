/* papers_flexflow.h - FlexFlow's part of docs/PAPERS.md. */
#ifndef PAPERS_FLEXFLOW_H
#define PAPERS_FLEXFLOW_H

/* Its tables; and what is said of them, at the end of the document. */
void papers_flexflow(void);
void papers_flexflow_why(void);

#endif
