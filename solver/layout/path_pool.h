/* path_pool.h - many questions for shortest paths, answered by several threads.
 * Private to layout/.
 *
 * Each thread has its own search; the threads share out the sources of the questions. */
#ifndef TOPT_PATH_POOL_H
#define TOPT_PATH_POOL_H

#include <stdatomic.h>

#include "shortest_paths.h"

/* The pool; NULL where memory is short. */
struct topt_path_pool;
struct topt_path_pool *topt_path_pool_create(const struct topt_hw *hw,
                                             const struct topt_mesh *mesh);
void topt_path_pool_destroy(struct topt_path_pool *t);
/* The one that the caller may use. */
struct topt_paths *topt_path_pool_first(struct topt_path_pool *t);
/* Answer all; 'question' is put in order.  Where 'cancel' (which may be NULL) is set
 * meanwhile, TOPT_ERR_CANCELED: answers have no steps, or are right. */
int topt_path_pool_answer(struct topt_path_pool *t, struct topt_path_question **question,
                          int n, int threads, const atomic_bool *cancel,
                          struct topt_error *err) TOPT_MUST_CHECK;

#endif
