/* delta.h - tasks and edges that come and go, and what that changes.  Private to flexflow/. */
#ifndef FLEXFLOW_DELTA_H
#define FLEXFLOW_DELTA_H

#include "ff_data.h"

int ff_task_add(struct topt_flexflow *f, int group, const struct ff_task *t);
void ff_edge_add(struct topt_flexflow *f, int from, int to);
void ff_group_remove(struct topt_flexflow *f, int group);
void ff_settle(struct topt_flexflow *f);

#endif
