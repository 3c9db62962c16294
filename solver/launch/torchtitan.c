/* torchtitan.c - torchtitan: a Python file with a function that returns its configuration, and
 * the line that trains by it.
 *
 * At the pinned commit a run is configured by such a function; it begins with one of
 * torchtitan's own where that is of the same shape. */
#include "job.h"

#include <stddef.h>
#include <string.h>

/* Its models: a function that configures a run, and the flavor of the model where that function
 * has another. */
struct known {
    const char *module, *function, *flavor;
    int64_t layers, hidden, heads, kv_heads, ffn, vocab, experts;
};

static const struct known table[] = {
    {"llama3", "llama3_8b", NULL, 32, 4096, 32, 8, 14336, 128256, 0},
    {"llama3", "llama3_8b", "1B", 16, 2048, 32, 8, 8192, 128256, 0},
    {"llama3", "llama3_8b", "3B", 28, 3072, 24, 8, 8192, 128256, 0},
    {"llama3", "llama3_70b", NULL, 80, 8192, 64, 8, 28672, 128256, 0},
    {"llama3", "llama3_405b", "405B", 126, 16384, 128, 8, 53248, 128256, 0},
    {"qwen3", "qwen3_0_6b", NULL, 28, 1024, 16, 8, 3072, 151936, 0},
    {"qwen3", "qwen3_1_7b", NULL, 28, 2048, 16, 8, 6144, 151936, 0},
    {"qwen3", "qwen3_1_7b", "4B", 36, 2560, 32, 8, 9728, 151936, 0},
    {"qwen3", "qwen3_14b", "8B", 36, 4096, 32, 8, 12288, 151936, 0},
    {"qwen3", "qwen3_14b", NULL, 40, 5120, 40, 8, 17408, 151936, 0},
    {"qwen3", "qwen3_32b", NULL, 64, 5120, 64, 8, 25600, 151936, 0},
    {"qwen3", "qwen3_30b_a3b", NULL, 48, 2048, 32, 4, 768, 151936, 128},
    {"qwen3", "qwen3_30b_a3b", "235B-A22B", 94, 4096, 64, 4, 1536, 151936, 128},
    {"deepseek_v3", "deepseek_v3_16b", NULL, 27, 2048, 16, 16, 1408, 102400, 64},
    {"deepseek_v3", "deepseek_v3_671b", NULL, 61, 7168, 128, 128, 2048, 129280, 256},
    {"gpt_oss", "gpt_oss_20b", NULL, 24, 2880, 64, 8, 2880, 201088, 32},
    {"gpt_oss", "gpt_oss_120b", NULL, 36, 2880, 64, 8, 2880, 201088, 128},
};

/* How many fields differ from those of torchtitan's model; the first two are written. */
static int differences(const struct job_model *m, const struct known *k,
                       struct topt_text *t)
{
    const struct {
        const char *name;
        int64_t own, theirs;
    } fields[] = {
        {"layers", m->layers, k->layers},   {"hidden size", m->hidden, k->hidden},
        {"heads", m->heads, k->heads},      {"key-value heads", m->kv_heads, k->kv_heads},
        {"inner features", m->ffn, k->ffn}, {"vocabulary", m->vocab, k->vocab},
        {"experts", m->experts, k->experts}};
    int n = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].own == fields[i].theirs)
            continue;
        if (n < 2)
            topt_text_add(t, "%s%s %lld, not %lld", n ? ", " : "", fields[i].name,
                          (long long)fields[i].own, (long long)fields[i].theirs);
        n++;
    }
    if (n > 2)
        topt_text_add(t, " and %d more", n - 2);
    return n;
}

/* The nearest of its models, and how the job's differs from it. */
static const struct known *find(const struct job_model *m, struct topt_text *differs)
{
    const struct known *best = NULL;
    int least = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct topt_text t = {0};
        int n = differences(m, &table[i], &t);
        if (!best || n < least) {
            topt_text_fini(differs);
            *differs = t;
            best = &table[i];
            least = n;
        } else {
            topt_text_fini(&t);
        }
    }
    return best;
}

/* The one of the job's shape; none: NULL, and the error says how its nearest differs. */
static const struct known *known_shape(const struct job *j, struct topt_error *err)
{
    struct topt_text differs = {0};
    const struct known *k = find(&j->model, &differs);
    int is_other = differs.len > 0;
    if (is_other)
        topt_job_refuse(j, "pytorch", err,
                        "torchtitan has no such model; %s%s%s differs in: %s",
                        k->flavor ? k->module : k->function, k->flavor ? " " : "",
                        k->flavor ? k->flavor : "", differs.s);
    topt_text_fini(&differs);
    return is_other ? NULL : k;
}

static void set_number(struct topt_text *t, const char *key, int64_t value)
{
    topt_text_add(t, "    config.%s = %lld\n", key, (long long)value);
}

static void set_word(struct topt_text *t, const char *key, const char *value)
{
    topt_text_add(t, "    config.%s = \"%s\"\n", key, value);
}

/* What torchtitan calls the rows of schedules; those that it has no class of are written pass by pass. */
static const char *const classes[TOPT_ORDERS] = {
    [TOPT_ORDER_1F1B] = "1F1B",
    [TOPT_ORDER_INTERLEAVED] = "Interleaved1F1B",
    [TOPT_ORDER_GPIPE] = "GPipe",
    [TOPT_ORDER_INTERLEAVED_ZB] = "InterleavedZeroBubble",
    [TOPT_ORDER_ZBV] = "ZBVZeroBubble",
    [TOPT_ORDER_DUALPIPE_V] = "DualPipeV"};
static const char any_class[] = "PipelineScheduleMulti", csv[] = "topt_schedule.csv";

/* A line for each stage: chunk, what a pass does (F, B, or B as I and W), micro-batch. */
static int write_schedule(const struct job *j, struct sheet *s, struct topt_error *err)
{
    const struct topt_order *o = &topt_orders[j->order];
    struct topt_order_shape shape = {(int)j->pp, (int)j->vp, j->steps};
    struct topt_text t = {0};
    for (int stage = 0; stage < shape.stages; stage++) {
        struct topt_order_plan plan;
        topt_order_plan(o, &shape, stage, &plan);
        for (int64_t i = 0; i < plan.turns; i++) {
            struct topt_turn turn = topt_order_turn(&plan, i);
            topt_text_add(&t, "%s%d%c%lld", i ? "," : "",
                          topt_order_chunk(o, &shape, stage, turn.chunk),
                          turn.backward ? "BIW"[turn.part] : 'F',
                          (long long)turn.micro_batch);
        }
        topt_text_add(&t, "\n");
    }
    return topt_sheet_file(s, csv, &t, err);
}

/* The modules of each chunk of layers, in the model's order. */
static void write_stages(const struct job *j, struct topt_text *t)
{
    int64_t layer = 0, n = (int64_t)json_array_size(j->layers);
    const char *class = classes[j->order];
    set_number(t, "parallelism.pipeline_parallel_degree", j->pp);
    if (j->pp == 1)
        return;
    set_word(t, "parallelism.pipeline_parallel_schedule", class ? class : any_class);
    if (!class)
        topt_text_add(t,
                      "    config.parallelism.pipeline_parallel_schedule_csv = "
                      "os.path.join(os.path.dirname(__file__), \"%s\")\n",
                      csv);
    set_number(t, "parallelism.num_pp_microbatches", j->steps);
    topt_text_add(t, "    config.parallelism.module_fqns_per_model_part = [\n");
    for (int64_t i = 0; i < n; i++) {
        json_int_t layers = json_integer_value(json_array_get(j->layers, (size_t)i));
        int last = i == n - 1;
        topt_text_add(t, "        [%s%s", i ? "" : "\"tok_embeddings\"",
                      !i && (layers || last) ? ", " : "");
        if (layers == 1)
            topt_text_add(t, "\"layers.%lld\"", (long long)layer);
        else if (layers)
            topt_text_add(t, "*(f\"layers.{i}\" for i in range(%lld, %lld))",
                          (long long)layer, (long long)(layer + layers));
        topt_text_add(t, "%s%s],\n", last && layers ? ", " : "",
                      last ? "\"norm\", \"lm_head\"" : "");
        layer += layers;
    }
    topt_text_add(t, "    ]\n");
}

static void write_parallel(const struct job *j, struct topt_text *t)
{
    int sharded = topt_job_zero(j) >= 2;
    int64_t shard = sharded ? j->shard : 1;
    set_number(t, "parallelism.data_parallel_replicate_degree", j->dp / shard);
    set_number(t, "parallelism.data_parallel_shard_degree", shard);
    set_word(t, "parallelism.fsdp_reshard_after_forward",
             topt_job_zero(j) == 2 ? "never" : "always");
    set_number(t, "parallelism.tensor_parallel_degree", j->tp);
    if (j->tp > 1)
        topt_text_add(t, "    config.parallelism.enable_sequence_parallel = %s\n",
                      j->sequence_parallel ? "True" : "False");
    write_stages(j, t);
    set_number(t, "parallelism.context_parallel_degree", j->cp);
    set_number(t, "parallelism.expert_parallel_degree", j->ep);
}

static const char *checkpointing(const struct job *j)
{
    return *j->modules ? "SelectiveAC" : "FullAC";
}

static void write_training(const struct job *j, struct topt_text *t)
{
    int pure = j->precision == JOB_BF16, f32 = j->precision == JOB_F32;
    set_number(t, "training.num_tokens_per_microbatch_per_dp_rank", j->micro * j->seq);
    set_number(t, "training.num_tokens_per_train_step", j->batch * j->seq);
    set_number(t, "training.max_context_length", j->seq);
    set_word(t, "training.dtype", pure ? "bfloat16" : "float32");
    set_word(t, "training.mixed_precision_param", f32 ? "float32" : "bfloat16");
    topt_text_add(t, "    config.training.disable_cuda_graphs = %s\n",
                  j->cuda_graphs ? "False" : "True");
    if (j->offload & JOB_HOST_PARAMETERS)
        topt_text_add(t, "    config.training.enable_cpu_offload = True\n");
    if (j->recompute)
        topt_text_add(t, "    config.activation_checkpoint = %s.Config()\n",
                      checkpointing(j));
    else
        topt_text_add(t, "    config.activation_checkpoint = None\n");
}

/* The converter of linear modules in layers, by the scaling of their products. */
static const char *converter_of(const struct job *j)
{
    return !strcmp(j->low, "mxfp8")   ? "MXFP8LinearConverter"
           : !strcmp(j->low, "nvfp4") ? "NVFP4LinearConverter"
                                      : "Float8LinearConverter";
}

static void write_low(const struct job *j, struct topt_text *t)
{
    topt_text_add(t,
                  "    converter = %s.Config(%s, model_compile_enabled=True)\n"
                  "    config.model_spec.model = "
                  "converter.build().convert(config.model_spec.model)\n",
                  converter_of(j),
                  !strcmp(j->low, "rowwise")
                      ? "recipe_name=\"rowwise\", filter_fqns=[\"lm_head\"]"
                      : "fqns=[\"layers\"]");
}

/* Layers are compiled for products in few bits and for communication beside products; the function of the 405B has
 * both, which a plan without them takes back. */
static void write_compile(const struct job *j, const struct known *k, struct topt_text *t)
{
    int beside = j->tensor_overlap && j->tp > 1,
        has = !strcmp(k->function, "llama3_405b");
    if (j->low || beside)
        topt_text_add(t, "    config.compile.enable = True\n"
                         "    config.compile.components = [\"model\", \"loss\"]\n");
    else if (has)
        topt_text_add(t, "    config.compile.enable = False\n");
    if (beside || has)
        topt_text_add(t, "    config.compile.enable_async_tensor_parallel = %s\n",
                      beside ? "True" : "False");
}

static int write_config(const struct job *j, const struct known *k, struct sheet *s,
                        struct topt_error *err)
{
    struct topt_text t = {0};
    int by_passes = j->pp > 1 && !classes[j->order];
    if (by_passes && write_schedule(j, s, err))
        return -1;
    if (by_passes)
        topt_text_add(&t, "import os\n\n");
    if (j->recompute)
        topt_text_add(&t, "from torchtitan.distributed.activation_checkpoint import %s\n",
                      checkpointing(j));
    if (j->low)
        topt_text_add(&t, "from torchtitan.components.quantization import %s\n",
                      converter_of(j));
    if (k->flavor)
        topt_text_add(&t, "from torchtitan.models.%s import model_registry\n", k->module);
    topt_text_add(&t, "from torchtitan.models.%s.config_registry import %s\n\n\n",
                  k->module, k->function);
    topt_text_add(&t, "def planned():\n    \"\"\"The plan %s.\"\"\"\n    config = %s()\n",
                  j->id, k->function);
    if (k->flavor)
        topt_text_add(&t, "    config.model_spec = model_registry(\"%s\")\n", k->flavor);
    write_parallel(j, &t);
    write_training(j, &t);
    if (j->low)
        write_low(j, &t);
    write_compile(j, k, &t);
    topt_text_add(&t, "    return config\n");
    return topt_sheet_file(s, "topt_torchtitan.py", &t, err);
}

static int check(const struct job *j, struct topt_error *err)
{
    if (topt_job_trains_all(j, "torchtitan", err) ||
        topt_job_splits(j, "torchtitan", 0, err))
        return -1;
    if (j->cuda_graphs && j->pp > 1)
        return topt_job_refuse(j, "torchtitan --pipeline 1", err,
                               "torchtitan has no CUDA graphs over pipeline stages");
    if (topt_job_sharers(j) > 1 && j->zero == 1)
        return topt_job_refuse(
            j, "torchtitan", err,
            "torchtitan does not shard optimizer states alone (ZeRO-1)");
    /* torch/distributed/pipelining/stage.py, backward_maybe_with_nosync() */
    if (j->pp > 1 && j->zero == 3 && topt_job_sharers(j) > 1)
        return topt_job_refuse(j, "torchtitan", err,
                               "stages keep parameters and gradients whole between "
                               "micro-batches, for which this plan has no memory: plan "
                               "anew, or with zero=2");
    return 0;
}

static void remarks(const struct job *j, struct sheet *s)
{
    topt_sheet_script(s,
                      "data, tokenizer, learning rate and number of steps are those of "
                      "the configuration that it begins with");
    if (strcmp(j->optimizer, "adamw"))
        topt_sheet_script(s, "the configuration's AdamW gets no weight decay, which is "
                             "the plan's Adam");
    if (j->steps > 1 && j->pp == 1 && j->zero == 2)
        topt_sheet_differs(s, "parameters are gathered anew in each micro-batch");
    if (j->steps > 1 && j->pp == 1 && j->zero < 2 && topt_job_sharers(j) > 1)
        topt_sheet_differs(s, "gradients are reduced in each micro-batch");
}

int topt_launch_torchtitan(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0};
    if (check(j, err))
        return -1;
    const struct known *k = known_shape(j, err);
    if (!k)
        return -1;
    topt_job_import_here(&t);
    topt_job_start_torchrun(j, "torchrun", &t);
    topt_text_add(&t, " -m torchtitan.train --module topt_torchtitan --config planned "
                      "\"$@\"\n");
    if (topt_sheet_file(s, "launch.sh", &t, err))
        return -1;
    remarks(j, s);
    return write_config(j, k, s, err);
}
