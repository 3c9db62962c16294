/* sample_data.h - files of text and pictures that stand for a person's, so that loading them is measured.  See sample_data.c. */
#ifndef TOPT_SAMPLE_DATA_H
#define TOPT_SAMPLE_DATA_H

#include "topt_error.h"

/* A folder of this process's own; 'text' and 'pictures' are paths in it. */
struct topt_sample_data {
    char dir[256], text[300], pictures[300], labels[300];
};

/* A text of few letters, and grey pictures of 'rows' x 'rows' with their labels, as idx files.  The caller removes it. */
int topt_sample_data_make(int rows, struct topt_sample_data *ret,
                          struct topt_error *err) TOPT_MUST_CHECK;
void topt_sample_data_remove(const struct topt_sample_data *d);

#endif
