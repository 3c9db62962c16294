/* torchtitan.c - torchtitan: a Python file with a function that returns its configuration, and
 * the line that trains by it.
 *
 * At the pinned commit a run is configured by such a function; it begins with one of
 * torchtitan's own where that is of the same shape. */
#include "job.h"

#include <stddef.h>
#include <string.h>

struct known {
    const char *module, *function;
    int64_t layers, hidden, heads, kv_heads, ffn, vocab, experts;
};

static const struct known *find(const struct job_model *m)
{
    static const struct known table[] = {
        {"llama3", "llama3_8b", 32, 4096, 32, 8, 14336, 128256, 0},
        {"llama3", "llama3_70b", 80, 8192, 64, 8, 28672, 128256, 0},
        {"llama3", "llama3_405b", 126, 16384, 128, 8, 53248, 128256, 0},
        {"qwen3", "qwen3_0_6b", 28, 1024, 16, 8, 3072, 151936, 0},
        {"qwen3", "qwen3_1_7b", 28, 2048, 16, 8, 6144, 151936, 0},
        {"qwen3", "qwen3_14b", 40, 5120, 40, 8, 17408, 151936, 0},
        {"qwen3", "qwen3_32b", 64, 5120, 64, 8, 25600, 151936, 0},
        {"qwen3", "qwen3_30b_a3b", 48, 2048, 32, 4, 768, 151936, 128},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct known *k = &table[i];
        if (k->layers == m->layers && k->hidden == m->hidden && k->heads == m->heads &&
            k->kv_heads == m->kv_heads && k->ffn == m->ffn && k->vocab == m->vocab &&
            k->experts == m->experts)
            return k;
    }
    return NULL;
}

static void set_number(struct topt_text *t, const char *key, int64_t value)
{
    topt_text_add(t, "    config.%s = %lld\n", key, (long long)value);
}

static void set_word(struct topt_text *t, const char *key, const char *value)
{
    topt_text_add(t, "    config.%s = \"%s\"\n", key, value);
}

static void write_parallel(const struct job *j, struct topt_text *t)
{
    int sharded = j->zero >= 2;
    set_number(t, "parallelism.data_parallel_replicate_degree", sharded ? 1 : j->dp);
    set_number(t, "parallelism.data_parallel_shard_degree", sharded ? j->dp : 1);
    set_word(t, "parallelism.fsdp_reshard_after_forward",
             j->zero == 2 ? "never" : "always");
    set_number(t, "parallelism.tensor_parallel_degree", j->tp);
    topt_text_add(t, "    config.parallelism.enable_sequence_parallel = False\n");
    set_number(t, "parallelism.pipeline_parallel_degree", 1);
    set_number(t, "parallelism.context_parallel_degree", 1);
    set_number(t, "parallelism.expert_parallel_degree", 1);
}

static void write_training(const struct job *j, struct topt_text *t)
{
    int pure = j->precision == JOB_BF16, f32 = j->precision == JOB_F32;
    set_number(t, "training.num_tokens_per_microbatch_per_dp_rank", j->micro * j->seq);
    set_number(t, "training.num_tokens_per_train_step", j->batch * j->seq);
    set_number(t, "training.max_context_length", j->seq);
    set_word(t, "training.dtype", pure ? "bfloat16" : "float32");
    set_word(t, "training.mixed_precision_param", f32 ? "float32" : "bfloat16");
    topt_text_add(t, "    config.activation_checkpoint = %s\n",
                  j->recompute ? "FullAC.Config()" : "None");
}

static int write_config(const struct job *j, const struct known *k, struct sheet *s,
                        struct topt_error *err)
{
    struct topt_text t = {0};
    if (j->recompute)
        topt_text_add(&t, "from torchtitan.distributed.activation_checkpoint import "
                          "FullAC\n");
    topt_text_add(&t, "from torchtitan.models.%s.config_registry import %s\n\n\n",
                  k ? k->module : "MODEL", k ? k->function : "FUNCTION");
    topt_text_add(&t, "def planned():\n    \"\"\"The plan %s.\"\"\"\n    config = %s()\n",
                  j->id, k ? k->function : "FUNCTION");
    write_parallel(j, &t);
    write_training(j, &t);
    topt_text_add(&t, "    return config\n");
    return topt_sheet_file(s, "topt_torchtitan.py", &t, err);
}

static int check(const struct job *j, struct topt_error *err)
{
    if (topt_job_splits(j, "torchtitan", 0, err))
        return -1;
    if (j->tp > 1 && j->model.experts)
        return topt_job_refuse(j, "torchtitan", err,
                               "torchtitan splits experts by expert parallelism, not by "
                               "tensor parallelism");
    if (j->dp > 1 && j->zero == 1)
        return topt_job_refuse(
            j, "torchtitan", err,
            "torchtitan does not shard optimizer states alone (ZeRO-1)");
    if (strncmp(j->optimizer, "adam", 4) || !strcmp(j->optimizer, "adam8"))
        return topt_job_refuse(j, "torchtitan", err,
                               "torchtitan's configurations train with AdamW, not %s",
                               j->optimizer);
    return 0;
}

static void remarks(const struct job *j, const struct known *k, struct sheet *s)
{
    if (!k)
        topt_sheet_script(s,
                          "MODEL and FUNCTION in topt_torchtitan.py: torchtitan has no "
                          "configuration of this model's shape");
    topt_sheet_script(s,
                      "data, tokenizer, learning rate and number of steps are those of "
                      "the configuration that it begins with");
    if (j->zero == 2 && j->steps > 1)
        topt_sheet_differs(s, "parameters are gathered anew in each micro-batch");
    if (j->zero < 2 && j->dp > 1 && j->steps > 1)
        topt_sheet_differs(s, "gradients are reduced in each micro-batch");
    topt_sheet_differs(s,
                       "the loss is computed in parts of the positions, so that logits "
                       "take less memory than planned");
    if (k && !strcmp(k->function, "llama3_405b"))
        topt_sheet_differs(s, "that configuration computes in float8 and compiles");
}

int topt_launch_torchtitan(const struct job *j, struct sheet *s, struct topt_error *err)
{
    const struct known *k = find(&j->model);
    struct topt_text t = {0};
    if (check(j, err))
        return -1;
    topt_job_start_torchrun(j, &t);
    topt_text_add(&t, " -m torchtitan.train --module topt_torchtitan --config planned\n");
    if (topt_sheet_file(s, "launch.sh", &t, err))
        return -1;
    remarks(j, k, s);
    return write_config(j, k, s, err);
}
