/* rates.c - see topt_rates.h. */
#include "topt_rates.h"

#include <math.h>
#include <stdio.h>

#include "topt_json.h"
#include "topt_totals.h"

/* Both ways to count attention are told where a causal mask takes a tenth of the model FLOPs, which it does
 * where attention is a fifth of them. */
static const double TELLING = 0.9;

void topt_rates_put(json_t *row, const json_t *job)
{
    double seconds = topt_json_number_at(row, "time_ns") / 1e9,
           gpus = topt_json_number_at(row, "gpus"), seq = topt_json_number_at(job, "seq"),
           flops = topt_json_number_at(job, "model_flops_per_sample"),
           masked = topt_json_number_at(job, "masked_flops_per_sample"),
           peak = topt_json_number_at(job, "peak_flops");
    const json_t *own = json_object_get(row, "batch");
    double batch = own ? json_number_value(own) : topt_json_number_at(job, "batch");
    if (seconds <= 0 || gpus <= 0 || batch <= 0)
        return;
    double samples = batch / seconds;
    json_object_set_new(row, "samples_per_second", json_real(samples));
    if (seq > 1) {
        json_object_set_new(row, "tokens_per_second", json_real(samples * seq));
        json_object_set_new(row, "tokens_per_second_per_gpu",
                            json_real(samples * seq / gpus));
    }
    json_object_set_new(row, "gpu_hours_per_million_samples",
                        json_real(1e6 / samples * gpus / 3600));
    if (flops > 0 && peak > 0)
        json_object_set_new(row, "mfu", json_real(samples * flops / gpus / peak));
    if (masked > 0 && masked < flops && peak > 0)
        json_object_set_new(row, "mfu_masked", json_real(samples * masked / gpus / peak));
    topt_totals_put_row(row, json_object_get(job, "training"), batch, gpus);
}

int topt_rates_mask_tells(const json_t *job)
{
    return topt_json_number_at(job, "masked_flops_per_sample") <
           TELLING * topt_json_number_at(job, "model_flops_per_sample");
}

void topt_rates_put_all(json_t *answer)
{
    const json_t *job = json_object_get(answer, "job");
    size_t i;
    json_t *row;
    if (json_is_true(json_object_get(answer, "feasible")))
        topt_rates_put(answer, job);
    json_array_foreach(json_object_get(answer, "alternatives"), i, row)
        topt_rates_put(row, job);
}

const char *topt_rates_samples(const json_t *job)
{
    const char *unit = topt_json_words_at(job, "samples");
    return *unit ? unit : "samples";
}

const char *topt_rates_grouped(int64_t n, char buf[32])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
    for (int i = 0; i < len && at < 30; i++) {
        if (i && (len - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

const char *topt_rates_number(double x, char buf[32])
{
    double unit = x >= 1000 ? pow(10, floor(log10(x)) - 2) : 1;
    if (x >= 1000 && x < 1e18)
        return topt_rates_grouped((int64_t)(floor(x / unit + 0.5) * unit), buf);
    snprintf(buf, 32, "%.3g", x);
    return buf;
}

void topt_rates_text(struct topt_text *out, const json_t *row, const json_t *job)
{
    char a[32], b[32];
    double gpus = topt_json_number_at(row, "gpus");
    int tokens = json_object_get(row, "tokens_per_second") != NULL;
    const char *unit = tokens ? "tokens" : topt_rates_samples(job);
    double rate =
        topt_json_number_at(row, tokens ? "tokens_per_second" : "samples_per_second");
    if (rate <= 0)
        return;
    topt_text_add(out, "%s %s/s", topt_rates_number(rate, a), unit);
    if (gpus > 1)
        topt_text_add(out, ", %s %s/s per GPU", topt_rates_number(rate / gpus, b), unit);
    double mfu = 100 * topt_json_number_at(row, "mfu"),
           masked = 100 * topt_json_number_at(row, "mfu_masked");
    if (mfu > 0)
        topt_text_add(out, ", MFU %.1f %%", mfu);
    if (masked > 0 && masked < TELLING * mfu)
        topt_text_add(out, " (%.1f %% without the masked part of attention)", masked);
}
