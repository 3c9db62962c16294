/* prediction_band.c - what a prediction is worth: its parts, and the band around it.
 *
 * Memory lies between the peak of the program with the least that the runtime takes
 * beside it, and the sum that decides with the most.  Time is wrong by a share that
 * depends on what each part rests on: measured, interpolated, or worked out from data
 * sheets. */
#include "topt_plan_doc.h"

#include <jansson.h>
#include <string.h>

#include "topt_json.h"

json_t *topt_memory_parts(const struct topt_hw *hw, const struct topt_strategy_cost *c)
{
    int64_t low, high;
    json_t *parts = json_object();
    for (int i = 0; i <= TOPT_CLASS_KEPT; i++)
        json_object_set_new(parts, topt_class_name((enum topt_class)i),
                            json_integer(c->sum.class_bytes[i]));
    json_object_set_new(parts, topt_class_name(TOPT_CLASS_RECOMPUTED),
                        json_integer(c->recomputed_bytes));
    json_object_set_new(parts, c->at_loss ? "loss" : "transient",
                        json_integer(c->transient_cap));
    json_object_set_new(parts, "waiting", json_integer(c->crossing * c->crossing_cap));
    topt_hw_runtime_bytes(hw, &low, &high);
    json_object_set_new(parts, "reserve", json_integer(high));
    return parts;
}

/* Shares of the time by basis, and the band that follows. */
static json_t *time_band(const struct topt_hw *hw, const struct topt_strategy_cost *c)
{
    double low = 0, high = 0;
    json_t *rests = json_object();
    for (int b = 0; b < TOPT_BASIS_COUNT; b++) {
        int64_t part = c->sum.basis_ns[b];
        double ns = (double)part, band = topt_hw_band(hw, (enum topt_basis)b);
        low += ns * (1 - band);
        high += ns * (1 + band);
        json_object_set_new(rests, topt_basis_name((enum topt_basis)b),
                            json_integer(part));
    }
    return json_pack("{s:I, s:I, s:o}", "low_ns", (json_int_t)low, "high_ns",
                     (json_int_t)high, "rests_on_ns", rests);
}

json_t *topt_prediction_band(const struct topt_hw *hw, const struct topt_strategy_cost *c,
                             int64_t peak_bytes)
{
    int64_t low, high, least = peak_bytes;
    topt_hw_runtime_bytes(hw, &low, &high);
    if (least > c->memory_bytes) /* another framework needs less than our program */
        least = c->memory_bytes;
    return json_pack("{s:{s:I, s:I}, s:o}", "memory", "low_bytes",
                     (json_int_t)(least + low), "high_bytes",
                     (json_int_t)(c->memory_bytes + high), "time", time_band(hw, c));
}

void topt_put_verdict(json_t *answer, int64_t limit)
{
    const json_t *memory = json_object_get(json_object_get(answer, "band"), "memory");
    const char *words = topt_json_whole_at(answer, "memory_bytes") > limit
                            ? "does not fit"
                        : topt_json_whole_at(memory, "high_bytes") > limit ? "tight"
                                                                           : "fits";
    json_object_set_new(answer, "verdict", json_string(words));
}
