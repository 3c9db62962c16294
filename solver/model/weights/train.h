/* train.h - adapters as PEFT trains them.  Private to model/. */
#ifndef TOPT_MODEL_TRAIN_H
#define TOPT_MODEL_TRAIN_H

#include "topt_model.h"

/* As topt_model_train(); 'drops': PEFT's lora_dropout is more than 0, so that of what each adapter reads a part is dropped. */
int topt_model_adapt(struct topt_model **m, const char *spec, int drops,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
