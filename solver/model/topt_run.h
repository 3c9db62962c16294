/* topt_run.h - a training run that exists already, as its script or its configuration says it.
 *
 * Read are scripts and files of arguments for Megatron-LM, torchtitan's configurations (TOML, Python, or
 * the --parallelism.* of a command line), DeepSpeed's ds_config.json and Primus's experiments.  Thread safety: reentrant. */
#ifndef TOPT_RUN_H
#define TOPT_RUN_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"
#include "topt_query.h"

/* What the text says of the run:
 *     {"fields": members of a question by their names (topt_fields.h): "framework", "degrees", ...,
 *      "notes": [what is taken otherwise than it says]}
 * 'what' names it in messages; 'gpus' is the number that the asker gave, 0: none.  A new reference; NULL
 * with INVAL where it is no such text, or says something that has no counterpart. */
json_t *topt_run_read(const char *text, size_t len, const char *what, int64_t gpus,
                      struct topt_error *err);
/* The same from a file. */
json_t *topt_run_load(const char *path, int64_t gpus, struct topt_error *err);

/* Take what a run says into a question that says the rest; its own words win, but degrees stand
 * beside the run's.  '*ret_source' names the field at fault. */
int topt_run_ask(const json_t *run, struct topt_query *asked, const char **ret_source,
                 struct topt_error *err) TOPT_MUST_CHECK;
/* Put what asks for the run itself into what an answer says of it: "degrees", and "options" where it takes others, too. */
void topt_run_put_question(json_t *as_is, const struct topt_query *asked);
/* The question that a plan beside the run answers: without what the run has chosen. */
struct topt_query topt_run_left_out(const struct topt_query *asked);

#endif
