/* heap.h - tasks that are to be looked at, by ready time.  Private to flexflow/. */
#ifndef FLEXFLOW_HEAP_H
#define FLEXFLOW_HEAP_H

#include "ff_data.h"

int ff_push(struct topt_flexflow *f, struct ff_entry e);
int ff_pop(struct topt_flexflow *f, struct ff_entry *ret); /* 0: empty */

#endif
