/* topt_hint.h - the next question worth asking, in a line.
 * Thread safety: reentrant. */
#ifndef TOPT_HINT_H
#define TOPT_HINT_H

#include <jansson.h>
#include <stdint.h>

/* Of an answer's "alternatives" the largest count of GPUs that is faster than the
 * answer's for at most a quarter more GPU-hours, with the efficiency that would choose it
 * after 'option' ("--min-efficiency="): "8 GPUs would be 3.9 times as fast for the same
 * GPU-hours: --min-efficiency=0.8".  Owned; NULL where there is none. */
char *hint_line(const json_t *answer, const char *option);

/* What more than 'most' GPUs, as 'limit' allows ("-N 1"), would give: of an answer's
 * alternatives the fastest of these. "more than -N 1: 8 GPUs on 2 nodes would be 1.9
 * times as fast for 1.1 times the GPU-hours".  Owned; NULL without memory. */
char *hint_beyond(const json_t *answer, int64_t most, const char *limit);

/* What would fit if it had been asked for (an answer's "with"), options written with 'prefix'
 * ("--", "--topt-"): "with --topt-tensor-parallel 8 GPUs would hold it".  Owned; NULL where
 * nothing would. */
char *hint_with(const json_t *answer, const char *prefix);

#endif
