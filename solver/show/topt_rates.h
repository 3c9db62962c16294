/* topt_rates.h - the rates that people compare: samples and tokens a second, of all GPUs and of one,
 * and model FLOPs utilization (MFU).
 *
 * MFU is a step's model FLOPs over what all GPUs compute in its time at the dense peak of the type
 * that they compute in (PaLM, Chowdhery et al. 2022, appendix B).  Thread safety: reentrant. */
#ifndef TOPT_RATES_H
#define TOPT_RATES_H

#include <jansson.h>
#include <stdint.h>

#include "topt_text.h"

/* Add to 'row', which has "gpus" and "time_ns", the rates of its step: "samples_per_second",
 * "tokens_per_second" and "tokens_per_second_per_gpu" (of sequences),
 * "gpu_hours_per_million_samples", and "mfu" (a share of 1) where 'job', as topt_request_job makes
 * it, has "model_flops_per_sample" and "peak_flops", "mfu_masked" beside it where a mask leaves a part of
 * attention ("masked_flops_per_sample"), and the totals of topt_totals_put_row where it
 * has "training".  A row without a time gets none. */
void topt_rates_put(json_t *row, const json_t *job);
/* The same for an answer and its "alternatives", by its own "job". */
void topt_rates_put_all(json_t *answer);

/* "5,370 tokens/s, 2,680 tokens/s per GPU, MFU 44 %", with "(31.0 % without the masked part of attention)" behind it where
 * these are far apart; nothing where 'row' has no rates. */
void topt_rates_text(struct topt_text *out, const json_t *row, const json_t *job);
/* Does it matter much for a job's MFU whether what a mask leaves out of attention counts? */
int topt_rates_mask_tells(const json_t *job);
/* What samples of a job are called where they are counted: "images" or "samples". */
const char *topt_rates_samples(const json_t *job);
/* 12345678 as "12,345,678"; returns 'buf'. */
const char *topt_rates_grouped(int64_t n, char buf[32]);
/* Three significant digits, thousands apart: "5,370". */
const char *topt_rates_number(double x, char buf[32]);

#endif
