/* topt_answer_text.h - answers about plans as text: for `topt`, `topt client`, and of
 * toptd for sbatch.
 *
 * All append to 'out' and set its oom on failure.  Thread safety: reentrant; documents are only read.
 */
#ifndef TOPT_ANSWER_TEXT_H
#define TOPT_ANSWER_TEXT_H

#include <jansson.h>
#include <stdint.h>

#include "topt_text.h"

/* The answer of topt_plan.  'path': the file that the plan is written to, or NULL. */
void topt_text_of_plan(struct topt_text *out, const json_t *answer, const char *path);
/* The head: model, cluster, framework and the defaults that were taken. */
void topt_text_of_question(struct topt_text *out, const json_t *answer);
/* "16 GPUs (2 nodes x 8 GPUs)"; "1 GPU". */
void topt_text_of_gpus(struct topt_text *out, int64_t gpus, int64_t nodes, int64_t each);
/* Rows of alternatives, or of answers for several batches or several kinds of hardware ("hw" of a row), to
 * a question ('job'). */
enum topt_rows_by { TOPT_ROWS_BY_NAME, TOPT_ROWS_BY_BATCH, TOPT_ROWS_BY_HW };
void topt_text_of_rows(struct topt_text *out, const json_t *rows, const json_t *job,
                       enum topt_rows_by by);
/* When the search of an answer was stopped, as "after 60 s ..."; NULL where it was not.  The caller frees
 * it. */
char *topt_stopped_words(const json_t *answer);
/* How good a plan document's search was: its space, what is proven, what was fixed by heuristic. */
void topt_text_of_search(struct topt_text *out, const json_t *doc);
/* How good an answer is known to be, where it is not exact. */
void topt_text_of_claim(struct topt_text *out, const json_t *answer);
/* The framework's features that no question searches, from an answer, a curve or a frontier; nothing where
 * there are none. */
void topt_text_of_lacks(struct topt_text *out, const json_t *answer);
/* A heading and folded text. */
void topt_text_of_words(struct topt_text *out, const char *heading, const char *text);
/* A sentence about the cost of pins ("pins" of a plan or of an answer), against the plan's time and memory.
 * The caller frees it. */
char *topt_pins_words(const json_t *pins, int64_t time_ns, int64_t memory_bytes);
/* The printed name of a part of memory. */
const char *topt_part_words(const char *part);
/* Add a line with the memory as PyTorch and nvidia-smi show it ("memory" of a plan's prediction);
 * nothing where 'numbers' is NULL. */
void topt_memory_words(struct topt_text *out, const json_t *numbers);
/* A sentence about the moment of the peak, from "memory_parts": gradients that are not there yet, a loss that
 * holds much.  The caller frees it; NULL where there is nothing to say. */
char *topt_text_of_peak(const json_t *memory_parts);
/* What a run takes, context and libraries included, from "band" and "verdict".  The caller frees it; NULL
 * where there is no band. */
char *topt_text_of_memory_band(const json_t *band, const char *verdict);
/* The data that rest in the memory of a node's host, and their cost ("host" of an answer or of predictions);
 * owned, NULL where nothing does. */
char *topt_text_of_host(const json_t *host);

#endif
