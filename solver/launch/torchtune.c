/* torchtune.c - torchtune: `tune run` with a recipe, one of its own configurations, and what the
 * plan says otherwise.
 *
 * Its recipes train in one type throughout, shard parameters or gradients (FSDP2) and keep nothing
 * of DDP; tensor parallelism has a plan for the Llama 3 family alone. */
#include "job.h"

#include <stdlib.h>
#include <string.h>

/* The recipes that have a configuration of a model; their names end with these. */
enum { FULL = 1, FULL_ONE = 2, LORA = 4, LORA_ONE = 8 };
static const struct recipe {
    int bit;
    const char *name, *end;
} recipes[] = {
    {FULL, "full_finetune_distributed", "full"},
    {FULL_ONE, "full_finetune_single_device", "full_single_device"},
    {LORA, "lora_finetune_distributed", "lora"},
    {LORA_ONE, "lora_finetune_single_device", "lora_single_device"},
};

struct known {
    const char *name;
    int64_t layers, hidden, heads, kv_heads, ffn, vocab;
    int recipes;
};

static const struct known *find(const struct job_model *m)
{
    enum { ALL = FULL | FULL_ONE | LORA | LORA_ONE };
    static const struct known table[] = {
        {"llama3_1/8B", 32, 4096, 32, 8, 14336, 128256, ALL},
        {"llama3_1/70B", 80, 8192, 64, 8, 28672, 128256, FULL | LORA},
        {"llama3_2/1B", 16, 2048, 32, 8, 8192, 128256, ALL},
        {"llama3_2/3B", 28, 3072, 24, 8, 8192, 128256, ALL},
        {"llama2/7B", 32, 4096, 32, 32, 11008, 32000, FULL | LORA | LORA_ONE},
        {"llama2/13B", 40, 5120, 40, 40, 13824, 32000, FULL | LORA},
        {"llama2/70B", 80, 8192, 64, 8, 28672, 32000, LORA},
        {"mistral/7B", 32, 4096, 32, 8, 14336, 32000, FULL | LORA | LORA_ONE},
        {"phi4/14B", 40, 5120, 40, 10, 17920, 100352, FULL | LORA | LORA_ONE},
        {"qwen2_5/0.5B", 24, 896, 14, 2, 4864, 151936, ALL},
        {"qwen2_5/1.5B", 28, 1536, 12, 2, 8960, 151936, ALL},
        {"qwen2_5/3B", 36, 2048, 16, 2, 11008, 151936, ALL},
        {"qwen2_5/7B", 28, 3584, 28, 4, 18944, 152064, ALL},
        {"qwen2_5/32B", 64, 5120, 40, 8, 27648, 152064, LORA},
        {"qwen2_5/72B", 80, 8192, 64, 8, 29568, 152064, LORA},
        {"qwen3/0.6B", 28, 1024, 16, 8, 3072, 151936, ALL},
        {"qwen3/1.7B", 28, 2048, 16, 8, 6144, 151936, ALL},
        {"qwen3/4B", 36, 2560, 32, 8, 9728, 151936, ALL},
        {"qwen3/8B", 36, 4096, 32, 8, 12288, 151936, ALL},
        {"qwen3/32B", 64, 5120, 64, 8, 25600, 151936, LORA},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct known *k = &table[i];
        if (k->layers == m->layers && k->hidden == m->hidden && k->heads == m->heads &&
            k->kv_heads == m->kv_heads && k->ffn == m->ffn && k->vocab == m->vocab &&
            !m->experts)
            return k;
    }
    return NULL;
}

static int is_llama3(const struct known *k)
{
    return !strncmp(k->name, "llama3", 6);
}

/* ---- adapters ---------------------------------------------------------------------------- */

/* Beside which linear maps of a block; 'rank' 0: all parameters are trained. */
struct adapters {
    int64_t rank;
    int at[8]; /* as 'places' */
};
enum { ATTENTION = 4, MLP = 3, HEAD = ATTENTION + MLP };
static const char *const places[8][2] = {{"q_proj", "q_proj"}, {"k_proj", "k_proj"},
                                         {"v_proj", "v_proj"}, {"o_proj", "output_proj"},
                                         {"gate_proj", ""},    {"up_proj", ""},
                                         {"down_proj", ""},    {"lm_head", ""}};

static int read_place(const struct job *j, const char *name, struct adapters *a,
                      struct topt_error *err)
{
    int all = !strcmp(name, "all-linear"), found = all;
    for (int i = 0; i < 8; i++)
        if (all ? i != HEAD : !strcmp(name, places[i][0]))
            found = a->at[i] = 1;
    return found ? 0
                 : topt_job_refuse(j, "pytorch", err,
                                   "torchtune has no adapters beside '%.40s'", name);
}

/* torchtune puts adapters into all of an MLP or none, and into some map of the attention. */
static int check_places(const struct job *j, const struct adapters *a,
                        struct topt_error *err)
{
    int mlp = 0, attention = 0;
    for (int i = 0; i < HEAD; i++)
        *(i < ATTENTION ? &attention : &mlp) += a->at[i];
    if (!attention || (mlp && mlp != MLP))
        return topt_job_refuse(j, "pytorch", err,
                               "torchtune has adapters beside some map of the attention, "
                               "and all or none of gate_proj, up_proj and down_proj");
    return 0;
}

/* "all", "lora", "lora:16", "lora:16:q_proj,v_proj". */
static int read_adapters(const struct job *j, struct adapters *ret,
                         struct topt_error *err)
{
    struct adapters a = {0};
    char copy[200], *save = NULL, *names, *end;
    const char *train = j->train;
    *ret = a;
    if (!strcmp(train, "all"))
        return 0;
    if (strncmp(train, "lora", 4) || strchr(train, '+') || strlen(train) >= sizeof copy)
        return topt_job_refuse(j, "pytorch", err,
                               "torchtune trains all parameters or adapters beside those "
                               "in bf16 or f32, and this plan %.60s",
                               train);
    strcpy(copy, train[4] == ':' ? train + 5 : "16");
    a.rank = strtoll(copy, &end, 10);
    a.rank = end == copy ? 16 : a.rank;
    names = strchr(copy, ':');
    names = names ? names + 1 : strcpy(copy, "all-linear");
    for (char *name = strtok_r(names, ",", &save); name;
         name = strtok_r(NULL, ",", &save))
        if (read_place(j, name, &a, err))
            return -1;
    *ret = a;
    return check_places(j, &a, err);
}

/* ---- what it takes ----------------------------------------------------------------------- */

static const struct recipe *recipe_of(const struct job *j, const struct adapters *a)
{
    return &recipes[(a->rank ? 2 : 0) + (j->gpus == 1)];
}

static int check_model(const struct job *j, const struct known *k, const struct recipe *r,
                       struct topt_error *err)
{
    if (!k)
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "torchtune has no configuration of this model's shape; torchrun "
                         "needs none: topt launch --for torchrun");
    if (!(k->recipes & r->bit))
        return topt_fail(
            err, TOPT_ERR_INFEASIBLE,
            "torchtune's %s has no configuration of %s; torchrun needs none: "
            "topt launch --for torchrun",
            r->name, k->name);
    if (j->tp > 1 && (!is_llama3(k) || r->bit == LORA))
        return topt_job_refuse(j, "pytorch", err,
                               "torchtune splits the tensors of Llama 3 alone, and those "
                               "without adapters");
    return topt_job_splits(j, "pytorch", 0, err);
}

static int check(const struct job *j, const struct known *k, const struct recipe *r,
                 struct topt_error *err)
{
    if (check_model(j, k, r, err))
        return -1;
    if (j->precision == JOB_BF16_MIXED)
        return topt_job_refuse(j, "pytorch --precision bf16", err,
                               "torchtune trains in one type throughout, not in "
                               "bf16-mixed");
    if (j->dp > 1 && j->zero < 2)
        return topt_fail(
            err, TOPT_ERR_INFEASIBLE,
            "torchtune shards parameters or gradients, and this plan has data "
            "%lld with ZeRO-%lld; torchrun does that: topt launch --for torchrun",
            (long long)j->dp, (long long)j->zero);
    if (j->offload & JOB_HOST_PARAMETERS && (j->gpus == 1 || r->bit == LORA))
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "torchtune's %s leaves no parameters on the host; torchrun's "
                         "script does: topt launch --for torchrun",
                         r->name);
    if (j->offload & JOB_HOST_KEPT && !j->recompute)
        return topt_job_refuse(j, "pytorch --factors all", err,
                               "torchtune leaves activations on the host beside "
                               "checkpointing alone");
    return 0;
}

static void set(struct topt_text *t, const char *key, const char *value)
{
    topt_text_add(t, " \\\n    %s=%s", key, value);
}

static void set_number(struct topt_text *t, const char *key, int64_t value)
{
    topt_text_add(t, " \\\n    %s=%lld", key, (long long)value);
}

static const char *yes(int on)
{
    return on ? "True" : "False";
}

static void write_parallel(const struct job *j, struct topt_text *t)
{
    set_number(t, "data_parallel_shard_dim", j->dp);
    set_number(t, "data_parallel_replicate_dim", 1);
    set(t, "fsdp_reshard_after_forward", yes(j->zero != 2));
    if (j->offload & JOB_HOST_PARAMETERS)
        set(t, "fsdp_cpu_offload", "True");
    set_number(t, "tensor_parallel_dim", j->tp);
    if (j->tp > 1)
        set(t, "tensor_parallel_plan._component_",
            "torchtune.models.llama3.base_llama_tp_plan");
}

static void write_training(const struct job *j, struct topt_text *t)
{
    set_number(t, "batch_size", j->micro);
    set_number(t, "gradient_accumulation_steps", j->steps);
    set_number(t, "tokenizer.max_seq_len", j->seq);
    set(t, "dataset.packed", "True"); /* so that each sample has that length */
    set(t, "dtype", j->precision == JOB_F32 ? "fp32" : "bf16");
    set(t, "enable_activation_checkpointing", yes(j->recompute));
    set(t, "enable_activation_offloading", yes(j->offload & JOB_HOST_KEPT));
    set(t, "optimizer._component_", j->calls);
    set(t, "optimizer.fused", "True");
    set(t, "compile", "False");
}

static void write_adapters(const struct adapters *a, struct topt_text *t)
{
    int n = 0;
    topt_text_add(t, " \\\n    'model.lora_attn_modules=[");
    for (int i = 0; i < ATTENTION; i++)
        if (a->at[i])
            topt_text_add(t, "%s%s", n++ ? "," : "", places[i][1]);
    topt_text_add(t, "]'");
    set(t, "model.apply_lora_to_mlp", yes(a->at[ATTENTION]));
    set(t, "model.apply_lora_to_output", yes(a->at[HEAD]));
    set_number(t, "model.lora_rank", a->rank);
    set_number(t, "model.lora_alpha", a->rank);
    set(t, "model.lora_dropout", "0.0");
}

static void remarks(const struct job *j, struct sheet *s)
{
    topt_sheet_script(
        s, "data, checkpoint, tokenizer, learning rate and length are those of the "
           "configuration: launch.sh KEY=VALUE ... says otherwise");
    if (j->zero == 2 && j->dp > 1 && j->steps > 1)
        topt_sheet_differs(s, "parameters are gathered anew in each micro-batch");
    if (j->tp > 1)
        topt_sheet_differs(s,
                           "embedding and output are split by vocabulary, and positions "
                           "between blocks");
}

int topt_launch_torchtune(const struct job *j, struct sheet *s, struct topt_error *err)
{
    const struct known *k = find(&j->model);
    struct adapters a;
    struct topt_text t = {0};
    if (read_adapters(j, &a, err) || check(j, k, recipe_of(j, &a), err))
        return -1;
    const struct recipe *r = recipe_of(j, &a);
    if (j->gpus > 1)
        topt_job_start_torchrun(j, "tune run", &t);
    else
        topt_text_add(&t, "tune run");
    topt_text_add(&t, " %s --config %s_%s", r->name, k->name, r->end);
    if (j->gpus > 1)
        write_parallel(j, &t);
    write_training(j, &t);
    if (!a.rank) /* the other recipes have no such thing */
        set(&t, "optimizer_in_bwd", "False");
    if (a.rank)
        write_adapters(&a, &t);
    topt_text_add(&t, " \\\n    \"$@\"\n");
    if (topt_sheet_file(s, "launch.sh", &t, err))
        return -1;
    remarks(j, s);
    return 0;
}
