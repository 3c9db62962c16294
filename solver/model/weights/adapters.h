/* adapters.h - what an adapter_config.json of PEFT asks of a model.  Private to model/. */
#ifndef TOPT_ADAPTERS_H
#define TOPT_ADAPTERS_H

#include "topt_model.h"

/* The same as "lora:RANK:NAMES" for 'base', the model that the adapters are beside.  What adds
 * parameters that no such words have is refused; what adds few is told of in 'ret_note'. */
int topt_adapters_spec(const json_t *config, const struct topt_model *base, char *ret,
                       size_t size, const char **ret_note,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
