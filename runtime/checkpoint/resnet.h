/* resnet.h - inside checkpoints: the tensors of ResNets (transformers' ResNetForImageClassification). */
#ifndef TOPT_CHECKPOINT_RESNET_H
#define TOPT_CHECKPOINT_RESNET_H

#include "naming.h"

/* Pieces of a model of that family, running statistics among them; of others none. */
int topt_resnet_name(struct topt_naming *n, struct topt_error *err) TOPT_MUST_CHECK;

#endif
