/* papers_index.h - the table of claims at the end of docs/PAPERS.md. */
#ifndef PAPERS_INDEX_H
#define PAPERS_INDEX_H

/* After all other tables, of which it counts the rows. */
void papers_index(void);

#endif
