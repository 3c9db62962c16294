/* tasks.h - the tasks of an operator, of a use of a tensor.  Private to flexflow/. */
#ifndef FLEXFLOW_TASKS_H
#define FLEXFLOW_TASKS_H

#include "ff_data.h"

void ff_op_tasks(struct topt_flexflow *f, int op);
void ff_use_tasks(struct topt_flexflow *f, int op, int input);
int ff_groups(const struct topt_flexflow *f);
int ff_use_group(const struct topt_flexflow *f, int op, int input);

#endif
