/* weights.h - what reading a checkpoint's headers and knowing its tensors' names
 * share.  Private to model/. */
#ifndef TOPT_WEIGHTS_H
#define TOPT_WEIGHTS_H

#include "topt_model.h"

/* May the checkpoint hold a tensor of that name beside the model's parameters?
 * Buffers, tied tables stored twice, heads for another task, layers that are left out
 * here. */
int topt_weights_may_be_there(const struct topt_model *m, const char *name);

/* Weights without a config are no model: always -1, with what they are. */
int topt_weights_refuse(const char *path, struct topt_error *err);

/* Are the weights in a directory (*.safetensors and their index; none is well) the
 * model's, by name and shape?  -1 with the differences named. */
int topt_safetensors_check(const char *dir, struct topt_model *m,
                           struct topt_error *err) TOPT_MUST_CHECK;

#endif
