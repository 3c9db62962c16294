/* topt_hub.h - the folder in which Hugging Face's tools keep what they download: one rule for the
 * command line, toptd's client and sbatch. Thread safety: reads the environment; plain values. */
#ifndef TOPT_HUB_H
#define TOPT_HUB_H

#include "topt_error.h"

enum { TOPT_HUB_PATH = 4096 };

/* The snapshot in the folder of a cached repository that refs/main names, or the only one; -1:
 * it has no config. */
int topt_hub_snapshot(const char *repository, char ret[TOPT_HUB_PATH]);

/* The snapshot of "org/name" in the cache ($HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub);
 * -1: it is not there, or the name is no such id. */
int topt_hub_find(const char *id, char ret[TOPT_HUB_PATH]);

/* NOTFOUND with what to download, where 'path', which is no file, may be an id; else 0. */
int topt_hub_refuse(const char *path, struct topt_error *err) TOPT_MUST_CHECK;

/* A folder by a path that names it: "." and paths that end in dots as a whole path; without
 * slashes at its end. */
void topt_hub_named(const char *folder, char ret[TOPT_HUB_PATH]);

/* The file to read: the config.json of a folder, or of the snapshot of an id where no such file
 * is here, else 'path'.  NOTFOUND as topt_hub_refuse(). */
int topt_hub_config(const char *path, char ret[TOPT_HUB_PATH],
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
