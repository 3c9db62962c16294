/* request.h - what a request allows.  Private to plan/. */
#ifndef TOPT_REQUEST_H
#define TOPT_REQUEST_H

#include "topt_question.h"
#include "topt_tensor.h"

/* The next shape of 'gpus' devices after '*nodes' (start from 0); 0 when there is
 * none. */
int topt_next_grid(const struct topt_hw *hw, int64_t gpus, int *nodes, int *per_node);

/* The next shape that a request may use: with counts that are booked whole, or powers of
 * two, only the one with the fewest nodes. */
int topt_request_grid(const struct topt_request *r, int64_t gpus, int *nodes,
                      int *per_node);

/* Fails with the error that there is no grid of so many GPUs. */
int topt_no_grid(const struct topt_request *r, int64_t gpus, struct topt_error *err);

/* Is what is asked possible at all? */
int topt_request_check(const struct topt_request *r,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Where tensor parallelism is tried at the n-th attempt (0, 1...), each only where
 * nothing fits by those before; -1 past the last. */
int topt_request_tensor_at(const struct topt_request *r, int n);

/* The framework's rules of tensor parallelism, in the uniform space; NULL: any split.  And whether
 * sequence parallelism goes with it. */
const struct topt_tensor_rules *topt_request_tensor_rules(const struct topt_request *r);
int topt_request_positions(const struct topt_request *r);

/* Are pipeline stages searched?  By which schedules, as bits? */
int topt_request_stages(const struct topt_request *r);
int topt_request_orders(const struct topt_request *r);
/* Are plans without stages left out? */
int topt_request_only_stages(const struct topt_request *r);

/* Are experts shared out over ranks? */
int topt_request_experts(const struct topt_request *r);
/* Has each chunk of pipeline stages as many layers? */
int topt_request_even_stages(const struct topt_request *r);
/* Are groups of unlike devices, where stages lie on them, made of so many stages in all, each of whole nodes or a part
 * of one? */
int topt_request_places(const struct topt_request *r, int stages);
/* Into how many chunks units can be cut; 0: into none. */
int topt_request_most_chunks(const struct topt_request *r,
                             const struct topt_stage_units *u);

/* Positions of a sample that each context rank has at least, unless their number is asked for: the fewest in the layouts
 * that NVIDIA recommends, of which 22 have context ranks (github.com/NVIDIA/NeMo at 8cfedd7, model_configs_*.csv;
 * github.com/NVIDIA/dgxc-benchmarking at 841f546).  What the host takes to start a ring's
 * steps, and how much slower attention is by short steps, is not priced, so that shorter parts would look better than
 * they are. */
enum { TOPT_LEAST_POSITIONS = 4096 };

/* How context ranks split the model that '*ret' is, the request's own or its 'apart'; NULL, and an empty map: they are
 * not planned. */
int topt_request_contexts(const struct topt_request *r, const struct topt_model **ret,
                          struct topt_tensor_map *ret_map,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* Does the framework split samples, heads and features into equal parts only? */
int topt_request_even(const struct topt_request *r);

int64_t topt_request_limit(const struct topt_request *r);

/* The options of its searches, without limits and exact. */
struct topt_search_options topt_request_searches(const struct topt_request *r);

/* The factors that are searched beside splits on so many devices. */
int topt_request_factors(const struct topt_request *r, enum topt_space space);

/* The factors that are searched where nothing fits so: all for `auto`, the given ones
 * otherwise. */
int topt_request_widest(const struct topt_request *r, enum topt_space space);

/* A request as of the uniform space, where blocks choose alike, with these factors.  It takes
 * milliseconds a number of GPUs, so that neither a stop nor a limit of work ends it. */
struct topt_request topt_request_uniform(const struct topt_request *r, int factors);

/* The request in the canonical space, where blocks choose as in the request. */
struct topt_request topt_request_canonical(const struct topt_request *r, int factors);

/* Is the best so far to be the answer? */
int topt_request_stopped(const struct topt_request *r);
/* Is what stands beside the answer to be left out?  Not where an efficiency chooses from it. */
int topt_request_brief(const struct topt_request *r);

/* Counts a request asks for, ascending; owned by the caller. */
int topt_request_counts(const struct topt_request *r, int64_t **ret, int *ret_n,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* Devices along the axes before 'cut'. */
int64_t topt_data_ranks(const struct topt_mesh *mesh, int cut);

/* The first axis that tensor parallelism may take. */
int topt_tensor_from(const struct topt_mesh *mesh, enum topt_tensor_where where);

#endif
