/* model_place.h - from what a user calls a model to the file that says what it is.
 * Private to model/. */
#ifndef TOPT_MODEL_PLACE_H
#define TOPT_MODEL_PLACE_H

#include <stddef.h>

#include "topt_error.h"
#include "topt_hub.h"

enum { TOPT_PLACE = TOPT_HUB_PATH };

/* The file to read in 'ret', and in 'ret_dir' the folder around it where that was named
 * ("" where it was not).  A folder has a config.json, or is a cache of a hub's snapshots;
 * "org/name" is looked for in that cache where no such file is here.  Refused are what
 * never ends (devices, pipes by name), folders of pipelines and of sharded weights
 * alone. */
int topt_model_place(const char *path, char ret[TOPT_PLACE], char ret_dir[TOPT_PLACE],
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Has the folder weights of safetensors, and no config? */
int topt_model_place_weights(const char *dir);
/* The config.json in the folder of a file of weights: is there one? */
int topt_model_place_beside(const char *path, char ret[TOPT_PLACE]);

#endif
