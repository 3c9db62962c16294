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
    int adam = !strncasecmp(type, "adam", 4), sgd = !strcasecmp(type, "sgd");
    if (!adam && !sgd)
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "optimizer.type: %.40s has no counterpart here", type);
    run_word(r, "optimizer", adam ? "adamw" : "momentum");
    return 0;
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
    static const char *const offload[] = {"offload_optimizer", "offload_param"};
    for (int i = 0; i < 2; i++) {
        const json_t *o = json_object_get(zero, offload[i]);
        if (o && strcmp(topt_json_words_at(o, "device"), "none"))
            return topt_fail(r->err, TOPT_ERR_INVAL,
                             "zero_optimization.%s has no counterpart here, so that the "
                             "run can't be costed",
                             offload[i]);
    }
    stages = stages ? stages : 1;
    tensor = tensor ? tensor : 1;
    run_degree(r, "tp", tensor);
    run_degree(r, "pp", stages);
    run_degree(r, "zero", json_integer_value(json_object_get(zero, "stage")));
    read_batch(r, doc, tensor * stages);
    run_word(r, "framework", "deepspeed");
    run_word(r, "precision",
             is_on(doc, "bf16")   ? "bf16-mixed"
             : is_on(doc, "fp16") ? "fp16-mixed"
                                  : "f32");
    run_note(r, "whether activations are recomputed stands in the script: what is faster "
                "is taken (--degrees recompute=0 or 1 says it)");
    return read_optimizer(r, doc);
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
