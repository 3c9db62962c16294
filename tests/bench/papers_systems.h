/* papers_systems.h - the part of docs/PAPERS.md that is about AccPar, HyPar and Parallax. */
#ifndef PAPERS_SYSTEMS_H
#define PAPERS_SYSTEMS_H

/* Their tables; and what is said of them, at the end of the document. */
void papers_systems(void);
void papers_systems_why(void);

#endif
