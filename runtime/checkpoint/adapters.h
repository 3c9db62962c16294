/* adapters.h - inside checkpoints: low-rank adapters as PEFT's files have them. */
#ifndef TOPT_CHECKPOINT_ADAPTERS_H
#define TOPT_CHECKPOINT_ADAPTERS_H

#include "naming.h"

/* Pieces of the adapters that the model has, behind all others.  An adapter that stands
 * beside a part of a module has no name there: it is left out. */
int topt_adapters_name(struct topt_naming *n, struct topt_error *err) TOPT_MUST_CHECK;
/* The adapter_config.json in 'dir': what second maps are multiplied by ('*ret_scale').
 * INVAL for what is not read. */
int topt_adapters_read_config(const char *dir, double *ret_scale,
                              struct topt_error *err) TOPT_MUST_CHECK;
/* Has the file a tensor that the plan has not? */
int topt_adapters_check_file(const struct topt_naming *n,
                             const struct topt_tensor_file *f,
                             struct topt_error *err) TOPT_MUST_CHECK;
/* An adapter_config.json into 'dir'; 'base' is the folder or file of the model's config. */
int topt_adapters_write_config(const struct topt_naming *n, const char *base,
                               const char *dir, double dropout,
                               struct topt_error *err) TOPT_MUST_CHECK;

#endif
