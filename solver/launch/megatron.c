/* megatron.c - Megatron-LM: arguments of pretrain_gpt.py, which Primus reads as keys of a file (primus.c).
 *
 * Its data parallelism shards at most the optimizer state (the distributed optimizer).  The
 * arguments of the architecture are written where the model is a plain decoder; what Megatron
 * needs beside the plan (data, tokenizer, learning rate) is handed on to it. */
#include "job.h"
#include "job_latent.h"

#include <string.h>

static void flag(struct topt_text *t, int on, const char *name)
{
    if (on)
        topt_text_add(t, " \\\n    %s", name);
}

static void number(struct topt_text *t, const char *name, int64_t value)
{
    topt_text_add(t, " \\\n    %s %lld", name, (long long)value);
}

/* Chunks of layers: E the embedding, t a layer, m a module that predicts a further token, L the loss, | between chunks. */
static void write_layout(const struct job *j, struct topt_text *t)
{
    topt_text_add(t, " \\\n    --pipeline-model-parallel-layout 'E");
    for (size_t i = 0; i < json_array_size(j->layers); i++) {
        topt_text_add(t, "%s", i ? "|" : "");
        for (json_int_t n = json_integer_value(json_array_get(j->layers, i)); n > 0; n--)
            topt_text_add(t, "t");
    }
    for (int64_t i = 0; i < j->model.mtp; i++)
        topt_text_add(t, "m");
    topt_text_add(t, "L'");
}

static void write_stages(const struct job *j, struct topt_text *t)
{
    number(t, "--pipeline-model-parallel-size", j->pp);
    if (j->pp > 1 && !topt_job_even_stages(j))
        write_layout(j, t);
    else if (j->vp > 1)
        number(t, "--num-virtual-stages-per-pipeline-rank", j->vp);
    if (j->model.mtp)
        number(t, "--mtp-num-layers", j->model.mtp);
    if (topt_orders[j->order].pairs) {
        struct topt_order_shape shape = {(int)j->pp, (int)j->vp, j->steps};
        flag(t, 1, "--overlap-moe-expert-parallel-comm");
        if (topt_order_group(&topt_orders[j->order], &shape) != j->pp)
            number(t, "--microbatch-group-size-per-virtual-pipeline-stage",
                   topt_order_group(&topt_orders[j->order], &shape));
    }
}

static void write_low(const struct job *j, struct topt_text *t)
{
    const char *low = j->low ? j->low : "";
    int four = !strcmp(low, "nvfp4"), past = !strcmp(low, "delayed");
    flag(t, four, "--fp4-format e2m1 --fp4-recipe nvfp4");
    if (*low && !four)
        topt_text_add(t, " \\\n    --fp8-format %s --fp8-recipe %s",
                      past || !strcmp(low, "tensorwise") ? "hybrid" : "e4m3", low);
    flag(t, past, "--fp8-amax-history-len 1024 --fp8-amax-compute-algo max");
    flag(t, j->low_params, four ? "--fp4-param-gather" : "--fp8-param-gather");
    flag(t, j->low_params && !strcmp(low, "mxfp8"),
         "--reuse-grad-buf-for-mxfp8-param-ag");
}

static void write_offload(const struct job *j, struct topt_text *t)
{
    static const char *const modules[] = {"attn_norm", "qkv_linear", "core_attn",
                                          "attn_proj", "mlp_norm",   "expert_fc1",
                                          "moe_act"};
    flag(t, j->offload & JOB_HOST_STATES,
         "--optimizer-cpu-offload --use-precision-aware-optimizer "
         "--overlap-cpu-optimizer-d2h-h2d");
    if (j->offload & JOB_HOST_STATES && j->offload_permille < 1000)
        topt_text_add(t, " \\\n    --optimizer-offload-fraction %.3f",
                      (double)j->offload_permille / 1000);
    if (j->offload & JOB_HOST_KEPT)
        number(t, "--cpu-offloading-num-layers", j->model.layers - 1);
    flag(t, j->offload >= JOB_HOST_MODULES,
         "--fine-grained-activation-offloading --offload-modules");
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (j->offload / JOB_HOST_MODULES >> i & 1)
            topt_text_add(t, " %s", modules[i]);
}

static void write_parallel(const struct job *j, struct topt_text *t)
{
    number(t, "--tensor-model-parallel-size", j->tp);
    write_stages(j, t);
    if (j->cp > 1) {
        number(t, "--context-parallel-size", j->cp);
        topt_text_add(t, " \\\n    --cp-comm-type %s", j->cp_comm);
    }
    if (j->ep > 1) {
        number(t, "--expert-model-parallel-size", j->ep);
        number(t, "--expert-tensor-parallel-size", j->etp);
        flag(t, 1,
             strcmp(j->dispatch, "deepep")
                 ? "--moe-token-dispatcher-type alltoall"
                 : "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend "
                   "deepep");
    }
    /* Products of all of a rank's experts at once, as they are priced; grouped ones are of bf16 alone. */
    flag(t, j->model.experts && j->precision == JOB_BF16_MIXED, "--moe-grouped-gemm");
    flag(t, j->tp > 1 && (j->sequence_parallel || j->model.experts),
         "--sequence-parallel");
    flag(t, j->tensor_overlap && j->tp > 1, "--tp-comm-overlap");
    number(t, "--micro-batch-size", j->micro);
    number(t, "--global-batch-size", j->batch);
    flag(t,
         (j->zero == 1 && topt_job_sharers(j) > 1) || j->low_params ||
             j->offload & JOB_HOST_STATES || !strcmp(j->optimizer, "adamw_bf16"),
         "--use-distributed-optimizer");
    write_offload(j, t);
    if (j->shard < j->dp)
        number(t, "--num-distributed-optimizer-instances", j->dp / j->shard);
    flag(t, topt_job_sharers(j) > 1 && j->overlap, "--overlap-grad-reduce");
    flag(t, topt_job_sharers(j) > 1 && j->overlap && j->zero == 1,
         "--overlap-param-gather");
    if (*j->modules) {
        topt_text_add(t,
                      " \\\n    --recompute-granularity selective --recompute-modules ");
        for (const char *at = j->modules; *at; at++)
            topt_text_add(t, "%c", *at == '+' ? ' ' : *at);
    } else if (j->recompute) {
        topt_text_add(t, " \\\n    --recompute-granularity full --recompute-method %s",
                      j->recompute_layers ? "block" : "uniform");
        number(t, "--recompute-num-layers",
               j->recompute_layers ? j->recompute_layers : 1);
    }
    flag(t, !strcmp(j->loss, "fused"),
         "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te");
    flag(t, j->precision == JOB_BF16_MIXED, "--bf16");
    flag(t, j->precision == JOB_F16_MIXED, "--fp16");
    flag(t, j->precision == JOB_BF16_MIXED && !j->gradient_f32, "--grad-reduce-in-bf16");
    write_low(j, t);
    flag(t, j->cuda_graphs,
         "--cuda-graph-impl full_iteration --no-check-for-nan-in-loss-and-grad");
    topt_text_add(t, " \\\n    --optimizer %s", j->calls);
    /* With the distributed optimizer each matrix is updated by one rank of data parallelism. */
    flag(t, !strcmp(j->optimizer, "muon") && j->tp > 1, "--muon-tp-mode duplicated");
}

static void write_positions(const struct job *j, struct topt_text *t)
{
    const struct job_model *m = &j->model;
    int64_t positions = m->positions > j->seq ? m->positions : j->seq;
    number(t, "--seq-length", j->seq);
    number(t, "--max-position-embeddings", positions);
    topt_text_add(t, " \\\n    --position-embedding-type %s",
                  m->rotary      ? "rope"
                  : m->positions ? "learned_absolute"
                                 : "none");
    if (m->rotary)
        number(t, "--rotary-base", (int64_t)m->theta);
    if (m->rope_factor > 0)
        topt_text_add(t, " \\\n    --use-rope-scaling \\\n    --rope-scaling-factor %g",
                      m->rope_factor);
}

/* Latent attention, which layers have experts, and how these are chosen. */
static void write_latent(const struct job *j, const struct job_latent *l,
                         struct topt_text *t)
{
    flag(t, 1, "--multi-latent-attention");
    if (l->query_rank)
        number(t, "--q-lora-rank", l->query_rank);
    number(t, "--kv-lora-rank", l->rank);
    number(t, "--qk-head-dim", l->plain);
    number(t, "--qk-pos-emb-head-dim", l->turned);
    number(t, "--v-head-dim", l->value);
    flag(t, 1, "--qk-layernorm");
    topt_text_add(t, " \\\n    --moe-layer-freq '([0]*%lld+[1]*%lld)'",
                  (long long)l->dense, (long long)(j->model.layers - l->dense));
    number(t, "--moe-ffn-hidden-size", l->expert_inner);
    if (l->shared_inner)
        number(t, "--moe-shared-expert-intermediate-size", l->shared_inner);
    flag(t, 1, "--moe-router-score-function sigmoid");
    flag(t, l->corrected, "--moe-router-enable-expert-bias");
    if (l->groups > 1) {
        number(t, "--moe-router-num-groups", l->groups);
        number(t, "--moe-router-group-topk", l->top_groups);
    }
    if (l->scaling != 1)
        topt_text_add(t, " \\\n    --moe-router-topk-scaling-factor %g", l->scaling);
}

static void write_latent_positions(const struct job *j, const struct job_latent *l,
                                   struct topt_text *t)
{
    number(t, "--seq-length", j->seq);
    number(t, "--max-position-embeddings", j->seq);
    flag(t, 1, "--position-embedding-type rope");
    number(t, "--rotary-base", (int64_t)l->theta);
    if (l->factor > 0)
        topt_text_add(t,
                      " \\\n    --rope-type yarn \\\n    --rotary-scaling-factor %g "
                      "\\\n    --mscale %.4g \\\n    --mscale-all-dim %.4g",
                      l->factor, l->mscale, l->mscale);
    else
        flag(t, 1, "--rope-type rope");
}

/* 'l': NULL for a plain decoder. */
static void write_model(const struct job *j, const struct job_latent *l,
                        struct topt_text *t)
{
    const struct job_model *m = &j->model;
    number(t, "--num-layers", m->layers);
    number(t, "--hidden-size", m->hidden);
    number(t, "--ffn-hidden-size", l && l->inner ? l->inner : m->ffn);
    number(t, "--num-attention-heads", m->heads);
    if (l)
        write_latent(j, l, t);
    else
        number(t, "--kv-channels", m->head_dim);
    if (m->kv_heads < m->heads) {
        flag(t, 1, "--group-query-attention");
        number(t, "--num-query-groups", m->kv_heads);
    }
    if (l)
        write_latent_positions(j, l, t);
    else
        write_positions(j, t);
    number(t, "--vocab-size", m->vocab);
    topt_text_add(t, " \\\n    --normalization %s", m->rms ? "RMSNorm" : "LayerNorm");
    topt_text_add(t, " \\\n    --norm-epsilon %g", m->eps);
    flag(t, m->gated, "--swiglu");
    flag(t, !m->bias, "--disable-bias-linear");
    flag(t, m->qkv_bias && !m->bias, "--add-qkv-bias");
    flag(t, m->head_norm, "--qk-layernorm");
    flag(t, !m->tied, "--untie-embeddings-and-output-weights");
    flag(t, 1, "--hidden-dropout 0.0");
    flag(t, 1, "--attention-dropout 0.0");
    if (m->experts) {
        number(t, "--num-experts", m->experts);
        number(t, "--moe-router-topk", m->top_k);
    }
}

/* A decoder of text, whose loss is that of the next token; pretrain_gpt.py builds some that are
 * not written out here. */
static int is_text(const struct job_model *m)
{
    static const char *const others[] = {"mse", "insert", "transpose", "mean", "select"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (m->other && !strcmp(m->other, others[i]))
            return 0;
    return m->causal && m->vocab;
}

static const char *what_else(const struct job_model *m)
{
    return !m->layers   ? "it has no attention"
           : !m->vocab  ? "it reads no tokens"
           : !m->causal ? "its attention looks to both sides"
                        : m->other;
}

/* The framework that a refusal proposes to plan for: Megatron-LM, or Primus for a plan of its own. */
static const char *again(const struct job *j)
{
    return strcmp(j->framework, "primus") ? "megatron" : j->framework;
}

static int check(const struct job *j, struct topt_error *err)
{
    if (!is_text(&j->model))
        return topt_job_refuse(j, "pytorch", err,
                               "Megatron-LM's pretrain_gpt.py predicts the next token, "
                               "and %.40s does not: %.50s",
                               j->name, what_else(&j->model));
    if (topt_job_trains_all(j, "Megatron-LM", err) ||
        topt_job_splits(j, again(j), 1, err))
        return -1;
    if (topt_job_sharers(j) > 1 && j->zero > 1)
        return topt_job_refuse(
            j, again(j), err,
            "Megatron-LM shards optimizer states at most, and this plan "
            "has ZeRO-%lld",
            (long long)j->zero);
    if (j->low && !strcmp(j->low, "delayed") &&
        (strstr(j->modules, "moe_act") || strstr(j->modules, "layernorm")))
        return topt_job_refuse(j, again(j), err,
                               "Megatron-LM recomputes no moe_act and layernorm beside "
                               "FP8 with delayed scaling");
    if (j->precision == JOB_BF16)
        return topt_job_refuse(
            j, again(j), err,
            "Megatron-LM keeps gradients and optimizer state of bf16 in "
            "f32");
    return 0;
}

static int is_decoder(const struct job_model *m)
{
    const char *a = m->activation ? m->activation : "";
    return !m->other && m->causal && m->vocab &&
           (m->gated ? !strcmp(a, "silu") : !strncmp(a, "gelu", 4));
}

/* A decoder of latent attention and experts. */
static int is_latent(const struct job *j, struct job_latent *ret)
{
    const struct job_model *m = &j->model;
    const json_t *model = json_object_get(j->plan, "model");
    return m->causal && m->vocab && m->gated && m->rms && !m->bias &&
           !strcmp(m->activation ? m->activation : "", "silu") &&
           job_latent_read(json_object_get(model, "ops"), ret);
}

/* The kernel that adds a bias and activates computes the tanh form, the activation alone the exact one. */
static void remark_gelu(const struct job_model *m, struct sheet *s)
{
    const char *a = m->activation ? m->activation : "";
    if (m->bias && !strcmp(a, "gelu_erf"))
        topt_sheet_differs(s, "the activation is the tanh form of gelu; the exact one is "
                              "that of --no-bias-gelu-fusion, in kernels of its own");
    if (!m->bias && !strcmp(a, "gelu"))
        topt_sheet_differs(s, "the activation is the exact gelu, not its tanh form");
}

static void remarks(const struct job *j, int written, struct sheet *s)
{
    const struct job_model *m = &j->model;
    int64_t multiple = 128 * j->tp;
    topt_sheet_script(s, "give data, tokenizer, learning rate and number of steps: "
                         "launch.sh ARGUMENTS passes them on");
    if (!written)
        topt_sheet_script(s,
                          "the arguments of the architecture are not written, since it "
                          "has more than a plain decoder (%s)",
                          m->other ? m->other : "its activation");
    if (j->low_attention)
        topt_sheet_script(s, "the transformer's configuration sets "
                             "fp8_dot_product_attention = True, for which "
                             "pretrain_gpt.py has no option");
    if (j->low_activation)
        topt_sheet_script(s, "the transformer's configuration sets "
                             "activation_func_fp8_input_store = True, for which "
                             "pretrain_gpt.py has no option");
    if (m->vocab % multiple)
        topt_sheet_differs(s, "the vocabulary of %lld is padded to a multiple of %lld",
                           (long long)m->vocab, (long long)multiple);
    if (j->tp > 1 && m->experts && !j->sequence_parallel)
        topt_sheet_differs(s, "positions are split too between blocks (sequence "
                              "parallelism), which experts with tensor parallelism need");
    remark_gelu(m, s);
}

/* How many queues the device has.  With one, kernels run in the order in which they are started, so that what is sent
 * runs beside the products that were started after it; arguments.py refuses tensor and context parallelism without,
 * up to Hopper.  Where passes of two micro-batches run as one, it would run after them. */
void topt_launch_megatron_queues(const struct job *j, struct topt_text *t)
{
    int queues = topt_orders[j->order].pairs ? 32 : j->tp > 1 || j->cp > 1;
    if (queues)
        topt_text_add(t, "export CUDA_DEVICE_MAX_CONNECTIONS=%d\n", queues);
}

int topt_launch_megatron_arguments(const struct job *j, struct topt_text *t,
                                   struct sheet *s, struct topt_error *err)
{
    struct job_latent l;
    int plain = is_decoder(&j->model), latent = !plain && is_latent(j, &l);
    if (check(j, err))
        return -1;
    write_parallel(j, t);
    if (plain || latent)
        write_model(j, latent ? &l : NULL, t);
    remarks(j, plain || latent, s);
    return plain || latent;
}

int topt_launch_megatron_schedules(const struct job *j)
{
    return j->pp == 1 || j->order == TOPT_ORDER_1F1B ||
           j->order == TOPT_ORDER_INTERLEAVED || j->order == TOPT_ORDER_COMBINED;
}

static int check_order(const struct job *j, struct topt_error *err)
{
    if (topt_launch_megatron_schedules(j))
        return 0;
    return topt_job_refuse(
        j, "megatron", err, "Megatron-LM has no schedule %s%s", topt_order_name(j->order),
        j->order == TOPT_ORDER_COMBINED_V
            ? "; its fork MindSpeed does: --schedules-method "
              "dualpipev --moe-fb-overlap"
        : topt_orders[j->order].splits ? "; AMD's Primus does (--framework primus)"
                                       : "");
}

int topt_launch_megatron(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0};
    if (check_order(j, err))
        return -1;
    topt_launch_megatron_queues(j, &t);
    /* arguments.py asks for it beside Transformer Engine 2.10 */
    if (j->offload >= JOB_HOST_MODULES)
        topt_text_add(&t, "export NVTE_CPU_OFFLOAD_V1=1\n");
    topt_job_start_torchrun(j, "torchrun", &t);
    topt_text_add(&t, " pretrain_gpt.py");
    if (topt_launch_megatron_arguments(j, &t, s, err) < 0) {
        topt_text_fini(&t);
        return -1;
    }
    topt_text_add(&t, " \\\n    \"$@\"\n");
    return topt_sheet_file(s, "launch.sh", &t, err);
}
