/* topt_hint.h - one line that proposes the next question.
 * Thread safety: reentrant. */
#ifndef TOPT_HINT_H
#define TOPT_HINT_H

#include <jansson.h>
#include <stdint.h>

/* The largest number of GPUs among an answer's "alternatives" that is faster for at most a quarter more
 * GPU-hours, with the efficiency that chooses it after 'option' ("--min-efficiency="): "8 GPUs would be 3.9 times as fast for the same
 * GPU-hours: --min-efficiency=0.8".  The caller frees it; NULL where there is none. */
char *hint_line(const json_t *answer, const char *option);

/* The fastest of an answer's alternatives with more GPUs than 'most', the number that 'limit' ("-N 1") allows: "more than -N 1: 8 GPUs on 2 nodes would be 1.9
 * times as fast for 1.1 times the GPU-hours".  The caller frees it; NULL without memory. */
char *hint_beyond(const json_t *answer, int64_t most, const char *limit);

/* Options with which it would fit (an answer's "with"), written with 'prefix' ("--", "--topt-"):
 * "with --topt-tensor-parallel it fits on 8 GPUs".  The caller frees it; NULL where there are none. */
char *hint_with(const json_t *answer, const char *prefix);

#endif
