/* run_deepspeed.c - a run of DeepSpeed, from its ds_config.json; names as of deepspeed/runtime/config.py
 * at commit edaa7221.  Values that are "auto" are those of whoever starts it, and not said. */
#include "run.h"
#include "topt_json.h"

#include <string.h>

static int64_t number_at(const json_t *o, const char *key)
{
    int64_t n = json_integer_value(json_object_get(o, key));
    return n > 0 && n < 1 << 30 ? n : 0;
}

static int is_on(const json_t *doc, const char *key)
{
    return json_is_true(json_object_get(json_object_get(doc, key), "enabled"));
}

static int read_optimizer(struct run *r, const json_t *doc)
{
    const char *type =
        json_string_value(json_object_get(json_object_get(doc, "optimizer"), "type"));
    if (!type)
        return 0;
    int adam = !strncasecmp(type, "adam", 4), sgd = !strcasecmp(type, "sgd"),
        muon = !strcasecmp(type, "muon");
    if (!adam && !sgd && !muon)
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "optimizer.type: %.40s has no counterpart here", type);
    int64_t stage = json_integer_value(
        json_object_get(json_object_get(doc, "zero_optimization"), "stage"));
    if (muon && stage == 3)
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "optimizer.type: Muon with stage 3 has no counterpart here, so "
                         "that the run can't be costed; stages 1 and 2 have");
    run_word(r, "optimizer", adam ? "adamw" : muon ? "muon" : "momentum");
    return 0;
}

/* Where it puts one of both: 1 the host's memory, 0 the GPU's; -1 elsewhere.  'old' is the switch of before. */
static int is_away(struct run *r, const json_t *zero, const char *name, const char *old)
{
    const json_t *o = json_object_get(zero, name);
    const char *device = topt_json_words_at(o, "device");
    if (json_is_true(json_object_get(zero, old)))
        return 1;
    if (!o || json_is_null(o) || !*device || !strcmp(device, "none"))
        return 0;
    return !strcmp(device, "cpu")
               ? 1
               : topt_fail(r->err, TOPT_ERR_INVAL,
                           "zero_optimization.%s: device %.40s has no counterpart here, "
                           "so that the run can't be costed; cpu has",
                           name, device);
}

/* The optimizer's ratio on the host is read of stage 3 alone. */
static int read_offload(struct run *r, const json_t *zero)
{
    const char optimizer[] = "offload_optimizer";
    int states = is_away(r, zero, optimizer, "cpu_offload"),
        parameters = is_away(r, zero, "offload_param", "cpu_offload_param");
    const json_t *ratio = json_object_get(json_object_get(zero, optimizer), "ratio");
    if (states < 0 || parameters < 0)
        return -1;
    if (parameters && !states)
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "zero_optimization.offload_param without offload_optimizer has "
                         "no counterpart here, so that the run can't be costed");
    int64_t stage = json_integer_value(json_object_get(zero, "stage"));
    if (states && stage < 2)
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "zero_optimization.offload_optimizer with stage %lld has no "
                         "counterpart here, so that the run can't be costed; stages 2 "
                         "and 3 have",
                         (long long)stage);
    if (states && stage == 3 && json_is_number(ratio) && json_number_value(ratio) < 1)
        json_object_set_new(r->fields, "offload_fraction",
                            json_real(json_number_value(ratio)));
    if (states)
        run_word(r, "offload", parameters ? "parameters" : "optimizer");
    return 0;
}

/* Switches of ZeRO that change what is sent or kept, and are not costed. */
static void note_others(struct run *r, const json_t *zero)
{
    static const char *const names[] = {"zero_quantized_weights",
                                        "zero_quantized_gradients",
                                        "zero_hpz_partition_size", "mics_shard_size"};
    char note[120];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *o = json_object_get(zero, names[i]);
        if (!json_is_true(o) && json_integer_value(o) < 2)
            continue;
        snprintf(note, sizeof note, "zero_optimization.%s is not counted", names[i]);
        run_note(r, note);
    }
}

/* Ranks over which the model is split; micro-batches and accumulation are of all others. */
static void read_batch(struct run *r, const json_t *doc, int64_t ranks)
{
    int64_t micro = number_at(doc, "train_micro_batch_size_per_gpu"),
            steps = number_at(doc, "gradient_accumulation_steps"),
            all = number_at(doc, "train_batch_size");
    if (micro)
        run_degree(r, "mbs", micro);
    else if (all && steps && r->gpus && all % (steps * (r->gpus / ranks)) == 0)
        run_degree(r, "mbs", all / (steps * (r->gpus / ranks)));
    run_batch(r, all, micro * (steps ? steps : 1), ranks);
}

static int read(struct run *r, const json_t *doc)
{
    const json_t *zero = json_object_get(doc, "zero_optimization");
    int64_t stages = number_at(json_object_get(doc, "pipeline"), "stages"),
            tensor = number_at(json_object_get(doc, "tensor_parallel"), "autotp_size");
    stages = stages ? stages : 1;
    tensor = tensor ? tensor : 1;
    run_degree(r, "tp", tensor);
    run_degree(r, "pp", stages);
    run_degree(r, "zero", json_integer_value(json_object_get(zero, "stage")));
    read_batch(r, doc, tensor * stages);
    run_word(r, "framework", "deepspeed");
    const json_t *bf16 = json_object_get(doc, "bf16");
    int pure = json_is_true(json_object_get(bf16, "bf16_master_weights_and_grads")) &&
               json_is_true(json_object_get(bf16, "bf16_optimizer_states"));
    run_word(r, "precision",
             is_on(doc, "bf16")   ? (pure ? "bf16" : "bf16-mixed")
             : is_on(doc, "fp16") ? "fp16-mixed"
                                  : "f32");
    run_note(r, "whether activations are recomputed stands in the script: what is faster "
                "is taken (--degrees recompute=0 or 1 says it)");
    if (!strcmp(
            topt_json_words_at(json_object_get(doc, "data_types"), "grad_accum_dtype"),
            "fp32"))
        run_word(r, "gradients", "f32");
    note_others(r, zero);
    return read_offload(r, zero) || read_optimizer(r, doc) ? -1 : 0;
}

int run_read_deepspeed(struct run *r)
{
    json_t *doc = topt_json_parse(r->text, r->len, "ds_config.json", r->err);
    if (!doc)
        return -1;
    static const char *const known[] = {
        "zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size",
        "gradient_accumulation_steps"};
    int some = 0;
    for (int i = 0; i < 4; i++)
        some |= json_object_get(doc, known[i]) != NULL;
    int rc = some ? read(r, doc)
                  : topt_fail(r->err, TOPT_ERR_INVAL,
                              "it is no ds_config.json: neither zero_optimization nor "
                              "train_micro_batch_size_per_gpu is in it");
    json_decref(doc);
    return rc;
}
