/* papers_index.h - the table of claims at the end of docs/PAPERS.md. */
#ifndef PAPERS_INDEX_H
#define PAPERS_INDEX_H

/* Told as the document is printed: the title of a table, and each of its rows. */
void papers_index_section(const char *title);
void papers_index_claim(int holds);
void papers_index(void);

#endif
