/* papers.h - the models that papers on strategy search measure.  Private to model/. */
#ifndef TOPT_PAPERS_H
#define TOPT_PAPERS_H

#include "topt_model.h"

/* A model by its name in papers on strategy search; 'name' without the "paper:" before
 * it. */
struct topt_model *topt_paper_build(const char *name, const struct topt_import_options *o,
                                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
