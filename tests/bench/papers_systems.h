/* papers_systems.h - the part of docs/PAPERS.md that is about AccPar, HyPar and Parallax. */
#ifndef TOPT_PAPERS_SYSTEMS_H
#define TOPT_PAPERS_SYSTEMS_H

/* A row of a table: does it hold, where, what the paper says, what came out; and the title of the
 * next table. */
typedef void papers_claim(int holds, const char *where, const char *says, const char *fmt,
                          ...);
typedef void papers_head(const char *title);

void papers_systems(papers_claim *claim, papers_head *head);
void papers_systems_why(void);

#endif
