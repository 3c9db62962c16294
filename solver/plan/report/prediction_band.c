/* prediction_band.c - what a prediction is worth: its parts, and the band around it.
 *
 * Time and a framework's memory are wrong by shares that depend on what each part rests on (band.c), to
 * both sides.  Memory of our own runtime lies between the peak of the program with the least that the
 * runtime takes beside it, and the sum that decides with the most. */
#include "topt_plan_doc.h"

#include "band.h"
#include "topt_minmax.h"

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

int64_t topt_memory_share(const struct topt_settings *s,
                          const struct topt_strategy_cost *c)
{
    int64_t come = c->memory_bytes - c->sum.beside_bytes;
    for (int i = 0; i < TOPT_CLASS_BUFFERS;
         i++) /* what follows has the allocator's share */
        come -= c->sum.class_bytes[i];
    return come - come / (1000 + s->allocator_permille) * 1000;
}

json_t *topt_memory_numbers(const struct topt_costing *k,
                            const struct topt_strategy_cost *c)
{
    int64_t low, high, all = c->memory_bytes;
    int64_t reserved = all - c->sum.beside_bytes; /* these are no tensors */
    int64_t allocated = reserved - topt_memory_share(k->settings, c);
    topt_hw_runtime_bytes(k->hw, &low, &high);
    return json_pack("{s:I, s:I, s:I}", "allocated_bytes", (json_int_t)allocated,
                     "reserved_bytes", (json_int_t)reserved, "process_bytes",
                     (json_int_t)(all + (low + high) / 2));
}

int64_t topt_memory_states(const struct topt_strategy_cost *c)
{
    const int64_t *bytes = c->sum.class_bytes;
    return bytes[TOPT_CLASS_PARAM] + bytes[TOPT_CLASS_GRAD] + bytes[TOPT_CLASS_STATE];
}

/* Time by basis, and the band that follows. */
static json_t *time_band(const struct topt_hw *hw, const struct topt_settings *s,
                         const struct topt_strategy_cost *c)
{
    int unseen =
        s->attention == TOPT_ATTENTION_OWN && c->sum.basis_ns[TOPT_BASIS_ANALYTIC];
    int64_t low, high;
    json_t *rests = json_object();
    topt_band_time_ends(topt_hw_bands(hw), c->sum.basis_ns, &low, &high);
    for (int b = 0; b < TOPT_BASIS_COUNT; b++)
        json_object_set_new(rests, topt_basis_name((enum topt_basis)b),
                            json_integer(c->sum.basis_ns[b]));
    return json_pack("{s:I, s:I, s:o, s:s*}", "low_ns", (json_int_t)low, "high_ns",
                     (json_int_t)high, "rests_on_ns", rests, "unseen",
                     unseen ? "never run on a GPU" : NULL);
}

json_t *topt_prediction_band(const struct topt_hw *hw, const struct topt_settings *s,
                             const struct topt_strategy_cost *c, int64_t peak_bytes)
{
    int64_t low, high, least = topt_min(peak_bytes, c->memory_bytes),
                       most = c->memory_bytes;
    topt_hw_runtime_bytes(hw, &low, &high);
    if (s->allocator_permille)
        topt_band_memory_ends(topt_memory_states(c), topt_memory_share(s, c), most,
                              &least, &most);
    return json_pack("{s:{s:I, s:I}, s:o}", "memory", "low_bytes",
                     (json_int_t)(least + low), "high_bytes", (json_int_t)(most + high),
                     "time", time_band(hw, s, c));
}

void topt_put_verdict(json_t *answer, const struct topt_hw *hw, int64_t limit)
{
    int64_t low, context;
    topt_hw_runtime_bytes(hw, &low, &context);
    const json_t *memory = json_object_get(json_object_get(answer, "band"), "memory");
    const char *words =
        topt_json_whole_at(answer, "memory_bytes") > limit           ? "does not fit"
        : topt_json_whole_at(memory, "high_bytes") - context > limit ? "tight"
                                                                     : "fits";
    json_object_set_new(answer, "verdict", json_string(words));
}
