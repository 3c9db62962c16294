/* question.c - what people ask, in words, as a request: the one place where all doors
 * (command line, REST, sbatch, dashboard) get what was not said from the framework's row,
 * so that one question has one answer. */
#include "algorithm.h"
#include "pins.h"
#include "fixed.h"
#include "request.h"
#include "topt_named.h"
#include "topt_text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

TOPT_NAMED_HERE(switch_at, 2, i ? "off" : "on")
TOPT_NAMED_HERE(gradients_at, 2, i ? "f32" : "bf16")

/* On or off beside tensor parallelism. */
static int read_positions(const char *word, struct topt_request *r,
                          struct topt_error *err)
{
    unsigned i;
    if (topt_name_find("sequence parallelism", word, switch_at, 2, &i, err))
        return -1;
    r->sequence_parallel = i ? TOPT_POSITIONS_OFF : TOPT_POSITIONS_ON;
    return 0;
}

static int read_schedule(const char *word, struct topt_request *r, struct topt_error *err)
{
    unsigned row;
    if (topt_name_find("schedule", word, topt_order_name, TOPT_ORDERS, &row, err))
        return -1;
    r->schedule = (int)row + 1;
    return 0;
}

/* Its words about operators are read once the model is there. */
static int read_pins(const char *text, struct topt_error *err)
{
    struct topt_pins pins;
    if (topt_pins_parse(text, &pins, err))
        return -1;
    topt_pins_fini(&pins);
    return 0;
}

/* The words, each where it was said; '*field' is the one that is read. */
static int read_words(const struct topt_query *w, struct topt_request *r,
                      const char **field, struct topt_error *err)
{
#define SAID(name) (*field = #name, *w->name)
    struct topt_settings *s = &r->settings;
    unsigned gradient_f32;
    return (SAID(mode) && topt_mode_parse(w->mode, &r->mode, err)) ||
           (SAID(space) && topt_space_parse(w->space, &r->space, err)) ||
           (SAID(blocks) && topt_blocks_parse(w->blocks, &r->blocks, err)) ||
           (SAID(factors) && topt_factors_parse(w->factors, &r->factors, err)) ||
           (SAID(counts) && topt_counts_parse(w->counts, &r->counts, err)) ||
           (SAID(pin) && read_pins(w->pin, err)) ||
           (SAID(degrees) && topt_fixed_parse(w->degrees, &r->fixed, err)) ||
           (SAID(algorithm) && topt_algorithm_check(w->algorithm, err)) ||
           (SAID(schedule) && read_schedule(w->schedule, r, err)) ||
           (SAID(gradients) && topt_name_find("type of gradients", w->gradients,
                                              gradients_at, 2, &gradient_f32, err)) ||
           (SAID(sequence_parallel) && read_positions(w->sequence_parallel, r, err)) ||
           (SAID(framework) && topt_framework_find(w->framework, &r->framework, err)) ||
           (SAID(precision) && topt_precision_find(w->precision, &r->precision, err)) ||
           (SAID(optimizer) && topt_optimizer_parse(w->optimizer, &s->optimizer, err)) ||
           (SAID(accounting) &&
            topt_accounting_parse(w->accounting, &s->accounting, err)) ||
           (SAID(overlap) && topt_overlap_parse(w->overlap, &s->overlap, err)) ||
           (SAID(attention) && topt_attention_parse(w->attention, &s->attention, err)) ||
           (SAID(dispatch) && topt_dispatch_parse(w->dispatch, &s->dispatch, err)) ||
           (SAID(loss_kernel) && topt_loss_parse(w->loss_kernel, &s->loss, err)) ||
           (SAID(eager) && topt_eager_parse(w->eager, &s->eager, err)) ||
           (SAID(offload) && topt_offload_parse(w->offload, &r->offload, err));
#undef SAID
}

/* Read the numbers that no framework decides; those that were not said stay as they are. */
static void read_numbers(const struct topt_query *w, struct topt_request *r)
{
#define SAID(name, member) r->member = w->name > 0 ? w->name : r->member
    SAID(max_gpus, max_gpus);
    SAID(min_efficiency, min_efficiency);
    SAID(offload_fraction, offload_fraction);
    SAID(micro_batches, micro_batches);
    SAID(pipeline, pipeline);
    SAID(virtual_stages, virtual_stages);
    SAID(shard_ranks, shard_ranks);
    SAID(context, context);
    SAID(expert, expert);
    SAID(expert_tensor, expert_tensor);
    SAID(software, software);
    SAID(sequence_splits, sequence_splits);
    SAID(memory_bytes, memory_limit);
    SAID(epsilon, epsilon);
    SAID(max_table_bytes, max_table_bytes);
#undef SAID
    if (!w->ngpus)
        return;
    r->gpu_list = w->gpus;
    r->ngpu_list = w->ngpus;
    r->gpus = w->ngpus == 1 && r->mode != TOPT_PROFILING ? w->gpus[0] : 0;
}

int topt_request_read(const struct topt_query *w, struct topt_request *r,
                      const char **ret_field, struct topt_error *err)
{
    const char *field;
    if (read_words(w, r, &field, err) || topt_totals_read(w, &r->totals, &field, err)) {
        if (ret_field)
            *ret_field = field;
        return -1;
    }
    read_numbers(w, r);
    r->fixed.any |= *w->degrees != '\0';
    r->tensor_parallel = w->tensor_parallel;
    if (r->fixed.any && topt_fixed_take(r, err)) {
        if (ret_field)
            *ret_field = "degrees";
        return -1;
    }
    r->algorithm = *w->algorithm && strcmp(w->algorithm, "ft") ? w->algorithm : NULL;
    r->pin = *w->pin ? w->pin : NULL;
    r->settings.gradient_f32 = !strcmp(w->gradients, "f32");
    r->settings.low_params = w->fp8_params;
    r->settings.cuda_graphs = w->cuda_graphs;
    r->settings.low_attention = w->fp8_attention;
    r->settings.low_activation = w->fp8_activation;
    r->settings.tensor_overlap = w->tensor_overlap;
    r->given = (*w->framework ? TOPT_GIVEN_FRAMEWORK : 0) |
               (*w->precision ? TOPT_GIVEN_PRECISION : 0) |
               (*w->optimizer ? TOPT_GIVEN_OPTIMIZER : 0) |
               (*w->overlap ? TOPT_GIVEN_OVERLAP : 0) |
               (*w->eager ? TOPT_GIVEN_EAGER : 0) |
               (*w->attention ? TOPT_GIVEN_ATTENTION : 0) |
               (*w->loss_kernel ? TOPT_GIVEN_LOSS : 0) |
               (*w->gradients ? TOPT_GIVEN_GRADIENT : 0) |
               (w->batch ? TOPT_GIVEN_BATCH : 0) | (w->seq ? TOPT_GIVEN_SEQ : 0);
    return 0;
}

/* Searches of other systems, and the papers' accounting, are about the search itself. */
static int choose_framework(struct topt_request *r, struct topt_error *err)
{
    int own = r->algorithm || topt_accounting_is_papers(r->settings.accounting);
    const char *name = own ? "topt" : topt_framework_at(0)->name;
    return r->framework ? 0 : topt_framework_find(name, &r->framework, err);
}

/* The type of its products. */
static enum topt_dtype type_of(const struct topt_precision *p)
{
    return p->low ? topt_low_type(p->low) : p->dtype;
}

/* Can the device and the framework have it? */
static int can_have(const struct topt_request *r, const struct topt_precision *p)
{
    return topt_hw_has_dtype(r->hw, p->dtype) && topt_hw_has_dtype(r->hw, type_of(p)) &&
           topt_framework_trains(r->framework, p, r->software);
}

/* The device has no such type, or the framework does not train so: fails with what both have. */
static int refuse_precision(const struct topt_request *r, struct topt_error *err)
{
    const struct topt_precision *p, *asked = r->precision;
    int have = 0;
    char use[TOPT_NAMED_BITS];
    for (int i = 0; (p = topt_precision_at(i)); i++)
        have |= can_have(r, p) << i;
    topt_named_bits(have, topt_precision_name, use);
    if (topt_hw_has_dtype(r->hw, type_of(asked)))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "'%s' does not train in %s; use --precision %s",
                         r->framework->name, asked->name, use);
    return topt_fail(err, TOPT_ERR_USAGE,
                     "'%s' (%s) has no products in %.*s; use --precision %s",
                     topt_hw_name(r->hw), topt_hw_device(r->hw),
                     (int)strcspn(asked->name, "-"), asked->name, use);
}

/* The first usual one that device and framework have; topt run does not scale a loss, and papers
 * count numbers of four bytes. */
static void choose_usual(struct topt_request *r)
{
    int papers = topt_accounting_is_papers(r->settings.accounting);
    const struct topt_precision *p;
    for (int i = 0; !r->precision && (p = topt_precision_at(i)); i++)
        if (p->usual && can_have(r, p) && (p->dtype == TOPT_F32 || !papers) &&
            (p->dtype != TOPT_F16 || r->framework->uniform_only))
            r->precision = p;
}

static int choose_precision(struct topt_request *r, struct topt_error *err)
{
    choose_usual(r);
    if (!r->precision && topt_precision_find("f32", &r->precision, err))
        return -1;
    r->settings.dtype = r->precision->dtype;
    r->settings.state_bf16 = r->precision->state_bf16;
    r->settings.low = r->precision->low;
    return can_have(r, r->precision) ? 0 : refuse_precision(r, err);
}

/* The kernel that was said, else --eager's word: "loss" is the framework's own one that is not
 * fused, the first of its row. */
static void choose_loss(struct topt_request *r)
{
    struct topt_settings *s = &r->settings;
    int k = (int)r->framework->loss;
    if (r->given & TOPT_GIVEN_EAGER) {
        int others = r->framework->losses & ~(1 << TOPT_LOSS_FUSED);
        int first = others ? __builtin_ctz((unsigned)others) : TOPT_LOSS_WRITTEN;
        k = s->eager & TOPT_EAGER_LOSS ? first : TOPT_LOSS_FUSED;
    }
    s->eager &= ~TOPT_EAGER_LOSS;
    if (!(r->given & TOPT_GIVEN_LOSS))
        s->loss = (enum topt_loss_kernel)k;
}

static int check_loss(const struct topt_request *r, struct topt_error *err)
{
    char has[TOPT_NAMED_BITS];
    int losses = r->framework->losses;
    if (!(r->given & TOPT_GIVEN_LOSS) || losses >> r->settings.loss & 1)
        return 0;
    return topt_fail(err, TOPT_ERR_USAGE,
                     "--loss-kernel %s: %s does not have it (it has %s)",
                     topt_loss_kernel_name(r->settings.loss), r->framework->title,
                     topt_named_bits(losses, topt_loss_kernel_name, has));
}

/* Bytes that libraries keep in the allocator, which rounds blocks up.  Transformer Engine has one
 * workspace, and one for each stream of products that experts have (get_num_cublas_streams). */
enum { BLOCK_BYTES = 512, ENGINE_BYTES = 4 << 20, HOPPER_BYTES = 32 << 20, STREAMS = 4 };
static int64_t workspaces_of(const struct topt_request *r)
{
    const struct topt_framework *f = r->framework;
    int64_t each = topt_hw_workspace_bytes(r->hw);
    int64_t engine = each < HOPPER_BYTES ? ENGINE_BYTES : HOPPER_BYTES;
    if (!each) /* the profile does not say */
        return 0;
    return f->workspaces * each +
           f->engine * (topt_model_experts(r->model) ? 1 + STREAMS : 1) * engine;
}

/* FlashAttention 2 and later and cuDNN's fused kernel need an Ampere GPU, the first with bf16; before, PyTorch
 * runs the memory-efficient kernel; Transformer Engine runs cuDNN's from Hopper on, whose GPUs have FP8 (README of github.com/Dao-AILab/flash-attention, 2026;
 * check_sm_version in aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, github.com/pytorch/pytorch 001f694). */
static enum topt_attention attention_of(const struct topt_request *r,
                                        const struct topt_software *software)
{
    int before =
        topt_hw_has_dtype(r->hw, TOPT_F16) && !topt_hw_has_dtype(r->hw, TOPT_BF16);
    if (before && r->framework->uniform_only)
        return TOPT_ATTENTION_XFORMERS;
    if (software->attention == TOPT_ATTENTION_OWN && /* papers have their own words */
        (!topt_hw_has_gpus(r->hw) || r->settings.accounting != TOPT_ACCOUNTING_RUN))
        return TOPT_ATTENTION_FLASH2;
    return software->attention == TOPT_ATTENTION_CUDNN &&
                   !topt_hw_has_dtype(r->hw, TOPT_F8)
               ? TOPT_ATTENTION_FLASH2
               : software->attention;
}

/* The parts that torch.compile fuses.  torchtitan requires it for asynchronous tensor parallelism and for its float8 and MX
 * converters. */
enum { UNCOMPILED = TOPT_EAGER_OPERATORS | TOPT_EAGER_NORMS };

static void take_row(struct topt_request *r)
{
    const struct topt_framework *f = r->framework;
    struct topt_settings *s = &r->settings;
    const struct topt_software *software = topt_framework_software(f, r->software);
    int compiled = s->tensor_overlap || (s->low && f->low_compiled);
    int mixed = topt_dtype_is_half(s->dtype) && !s->state_bf16;
    if (!(r->given & TOPT_GIVEN_OVERLAP))
        s->overlap = f->overlap;
    if (!(r->given & TOPT_GIVEN_EAGER))
        s->eager = software->eager & ~(compiled ? UNCOMPILED : 0);
    if (!(r->given & TOPT_GIVEN_ATTENTION))
        s->attention = attention_of(r, software);
    else if (!(r->given & TOPT_GIVEN_EAGER))
        s->eager &= ~TOPT_EAGER_SCORES;
    choose_loss(r);
    if (!(r->given & TOPT_GIVEN_GRADIENT))
        s->gradient_f32 =
            mixed && f->gradient_f32 && !(s->dtype == TOPT_F16 && f->gradient_f16);
    if (!(r->given & TOPT_GIVEN_OPTIMIZER))
        s->optimizer = f->uniform_only ? TOPT_ADAMW : TOPT_ADAM;
    s->shard_f32 = mixed && f->shard_f32;
    s->low_apart = s->low && f->low_apart;
    s->low_strided = s->low_apart && s->low == TOPT_LOW_ROWWISE && software->low_strided;
    s->experts_apart = f->engine;
    s->operands_wait = f->operands_wait;
    s->tensor_async = software->tensor_async;
    s->regather = f->uniform_only ? TOPT_REGATHER_FIXED | f->regather : 0;
    s->merge = software->merge;
    s->muon = s->optimizer == TOPT_MUON ? f->muon : 0;
    s->rest_f32 = mixed && f->rest_f32 && r->model->train && strchr(r->model->train, '+');
    s->gather = f->gather;
    s->by_unit = f->uniform_only;
    s->positions_first = f->positions_first;
    s->vocab_multiple = f->vocab_multiple;
    s->pool_numbers = f->pool_numbers;
    s->bucket_numbers = f->bucket_numbers;
    s->allocator_permille = topt_hw_allocator_permille(r->hw, f->allocator_permille);
    s->host_ns = s->cuda_graphs ? 0 : f->host_ns;
    s->workspace_bytes = workspaces_of(r);
    if (!f->uniform_only)
        return;
    if (!s->granule_bytes)
        s->granule_bytes = BLOCK_BYTES;
    if (r->space == TOPT_SPACE_AUTO)
        r->space = TOPT_SPACE_UNIFORM;
    if (r->factors == TOPT_FACTORS_AUTO)
        r->factors = TOPT_FACTORS_ALL;
    if (r->blocks == TOPT_BLOCKS_AUTO)
        r->blocks = TOPT_BLOCKS_ALIKE;
}

/* What a framework can leave on the host, bits by enum topt_offer. */
static int offered(const struct topt_framework *f)
{
    int bits = 0;
    for (int i = 0; i < TOPT_OFFERS; i++)
        bits |= (f->offers[i].away != 0) << i;
    return bits;
}

/* What Megatron-LM refuses beside modules whose activations rest on the host (core/transformer/transformer_config.py). */
static int check_offloaded_modules(const struct topt_request *r, struct topt_error *err)
{
    const int experts = TOPT_OFFLOAD_OF(EXPERT_FC1) | TOPT_OFFLOAD_OF(MOE_ACT);
    int64_t away = r->settings.offload, asked = away & TOPT_OFFLOAD_MODULES;
    int64_t again = r->fixed.recompute > 0 ? r->fixed.recompute : 0;
    int64_t lacks = asked & ~(int64_t)topt_offload_present(r->model);
    char words[TOPT_NAMED_BITS];
    const char *why =
        lacks
            ? "the model has no such part, or (a norm) Transformer Engine has it in the "
              "product behind it; leave it out"
        : asked && away & TOPT_OFFLOAD_ACTIVATIONS
            ? "activations are all that layers keep; leave one of both out"
        : asked & TOPT_OFFLOAD_OF(ATTN_PROJ) && !(asked & TOPT_OFFLOAD_OF(CORE_ATTN))
            ? "attention's backward reads attn_proj's input as well; add core_attn"
        : asked & experts && again & TOPT_MODULE_MOE
            ? "recompute=moe makes these anew; leave one of both out"
        : asked && again == TOPT_MODULE_WHOLE
            ? "recompute=full makes these anew; leave one of both out"
            : NULL;
    lacks = (lacks ? lacks : asked) / TOPT_OFFLOAD_OF(ATTN_NORM) << TOPT_OFFER_ATTN_NORM;
    return why ? topt_fail(err, TOPT_ERR_USAGE, "--offload %s: %s",
                           topt_named_bits((int)lacks, topt_offer_name, words), why)
               : 0;
}

int topt_request_offload(struct topt_request *r, struct topt_error *err)
{
    const struct topt_framework *f = r->framework;
    struct topt_settings *s = &r->settings;
    int part = ~0;
    char has[TOPT_NAMED_BITS];
    s->offload = s->offload_permille = 0;
    r->levels = s->optimizer == TOPT_MUON ? (int)f->muon_levels : 0;
    r->offload_keeps = 0;
    for (int i = 0; i < TOPT_OFFERS; i++) {
        if (!(r->offload >> i & 1))
            continue;
        if (!f->offers[i].away)
            return topt_fail(
                err, TOPT_ERR_USAGE, "--offload %s: %s does not have it%s%s%s",
                topt_offer_name((enum topt_offer)i), f->name,
                offered(f) ? " (it has " : "",
                topt_named_bits(offered(f), topt_offer_name, has), offered(f) ? ")" : "");
        s->offload |= f->offers[i].away;
        r->levels = (r->levels ? r->levels : ~0) & f->offers[i].levels;
        r->offload_keeps |= f->offers[i].keeps; /* 3: a contradiction, refused */
        part &= f->offers[i].away & TOPT_OFFLOAD_STATE ? f->offers[i].part : ~0;
    }
    if (s->optimizer == TOPT_MUON && s->offload & TOPT_OFFLOAD_STATE)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--offload: the states of --optimizer muon stay on the GPUs; "
                         "offload activations, or use adamw");
    int some = r->offload_fraction > 0 && r->offload_fraction < 1;
    if (some && (!(s->offload & TOPT_OFFLOAD_STATE) || !part))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--offload-fraction: %s has it with --offload optimizer of "
                         "megatron and deepspeed",
                         f->name);
    if (!s->offload)
        return 0;
    if (some)
        r->levels &= part;
    if (s->offload & TOPT_OFFLOAD_STATE)
        s->offload_permille = some ? (int64_t)(1000 * r->offload_fraction + 0.5) : 1000;
    if (topt_hw_host(r->hw)->link <= 0)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--offload: '%s' has no host; give the memory and the link of a "
                         "node's host as "
                         "\"host\" in a profile of your own (docs/formats/hw.md)",
                         topt_hw_name(r->hw));
    if (s->offload & ~(int64_t)TOPT_OFFLOAD_STATE &&
        (s->cuda_graphs ||
         (r->pipeline > 1 && s->offload & ~(int64_t)TOPT_OFFLOAD_MODULES)))
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "--offload: beside %s only the optimizer of megatron%s may rest on the host",
            s->cuda_graphs ? "--cuda-graphs" : "pipeline stages",
            s->cuda_graphs ? "" : " and the activations of its modules");
    return check_offloaded_modules(r, err);
}

/* Refuse options that the framework's row does not offer. */
static int check_offered(const struct topt_request *r, struct topt_error *err)
{
    const struct topt_framework *f = r->framework;
    const struct topt_settings *s = &r->settings;
    int apart = r->sequence_parallel == TOPT_POSITIONS_OFF;
    const struct {
        int asked, has;
        const char *option, *lacks;
    } rows[] = {
        {r->model->mtp < r->model->nops, f->engine, "--mtp",
         "has no modules that predict further tokens; megatron does"},
        {s->cuda_graphs, f->cuda_graphs, "--cuda-graphs", "has none; leave it out"},
        {r->virtual_stages > 1 && f->pipeline_orders,
         f->pipeline_orders >> TOPT_ORDER_INTERLEAVED & 1, "--virtual-stages",
         "has no interleaved schedule; leave it out"},
        {s->low_params, s->low && f->low_params >> s->low & 1, "--fp8-params",
         "has no weights in the bits of --precision; leave it out"},
        {r->given & TOPT_GIVEN_GRADIENT && !s->gradient_f32,
         f->engine || !f->gradient_f32, "--gradients bf16",
         "accumulates them in f32; megatron need not"},
        {s->optimizer == TOPT_MUON, f->muon_levels != 0, "--optimizer muon",
         "does not have it; megatron, deepspeed and pytorch (DDP) do"},
        {s->optimizer == TOPT_ADAMW_BF16, f->engine, "--optimizer adamw_bf16",
         "does not have it; megatron does"},
        {s->low_activation, f->engine, "--fp8-activation",
         "does not have it; megatron does"},
        {s->low_attention, f->low_attention >> s->low & 1, "--fp8-attention",
         "has none here; megatron does: fp8-delayed, fp8-tensorwise, mxfp8, nvfp4"},
        {s->tensor_overlap, f->tensor_overlap && !apart, "--tensor-overlap",
         "does not have it; megatron and torchtitan do, beside --sequence-parallel on"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].asked && !rows[i].has)
            return topt_fail(err, TOPT_ERR_USAGE, "%s: %s %s", rows[i].option, f->name,
                             rows[i].lacks);
    return 0;
}

static int check_memory(const struct topt_request *r, struct topt_error *err)
{
    int64_t has = topt_hw_capacity_bytes(r->hw);
    char asked[32], have[32];
    if (r->memory_limit <= has)
        return 0;
    return topt_fail(
        err, TOPT_ERR_USAGE,
        "--memory %s is more than the %s of a %s; ask for less, or for other hardware",
        topt_show_bytes(r->memory_limit, asked, sizeof asked),
        topt_show_bytes(has, have, sizeof have), topt_hw_device(r->hw));
}

int topt_request_complete(struct topt_request *r, struct topt_error *err)
{
    if (choose_framework(r, err) || choose_precision(r, err) || check_memory(r, err) ||
        check_offered(r, err) || check_loss(r, err) || topt_request_offload(r, err) ||
        topt_totals_check(&r->totals, r->model->seq, err))
        return -1;
    take_row(r);
    return 0;
}

/* ---- what was taken for granted ---------------------------------------------------- */

static void assume(json_t *list, const struct topt_request *r, enum topt_given bit,
                   const char *what, json_t *value, const char *option)
{
    if (r->given & (int)bit)
        json_decref(value);
    else
        json_array_append_new(list, json_pack("{s:s, s:o, s:s}", "what", what, "value",
                                              value, "option", option));
}

json_t *topt_request_assumed(const struct topt_request *r)
{
    json_t *list = json_array();
    if (r->framework)
        assume(list, r, TOPT_GIVEN_FRAMEWORK, "framework",
               json_string(r->framework->name), "--framework");
    assume(list, r, TOPT_GIVEN_PRECISION, "precision",
           json_string(topt_precision_of(&r->settings)->name), "--precision");
    if (r->settings.dtype == TOPT_F16 && !(r->given & TOPT_GIVEN_PRECISION)) {
        char why[100];
        snprintf(why, sizeof why, "a %.60s has no bf16", topt_hw_device(r->hw));
        json_object_set_new(json_array_get(list, json_array_size(list) - 1), "why",
                            json_string(why));
    }
    if (!r->model->train)
        assume(list, r, 0, "training", json_string("all parameters"), "--train");
    else if (!strncmp(r->model->train, "lora", 4) && !strchr(r->model->train, ':'))
        assume(list, r, 0, "LoRA rank", json_integer(TOPT_LORA_RANK),
               "--train lora:RANK");
    assume(list, r, TOPT_GIVEN_OPTIMIZER, "optimizer",
           json_string(topt_optimizer_name(r->settings.optimizer)), "--optimizer");
    if (r->framework && topt_model_attends(r->model))
        assume(list, r, TOPT_GIVEN_ATTENTION, "attention",
               json_string(r->settings.eager & TOPT_EAGER_SCORES
                               ? "written out"
                               : topt_attention_name(r->settings.attention)),
               "--attention");
    if (r->framework && r->framework->uniform_only && topt_loss_has_kernels(r->model))
        assume(list, r, TOPT_GIVEN_LOSS, "loss kernel",
               json_string(topt_loss_kernel_name(r->settings.loss)), "--loss-kernel");
    if (r->framework && r->framework->tensor_overlap && !r->settings.tensor_overlap)
        assume(list, r, 0, "overlap of tensor parallelism",
               json_string(r->settings.tensor_async ? "inputs' gradients" : "none"),
               "--tensor-overlap");
    assume(list, r, TOPT_GIVEN_BATCH, "batch", json_integer(r->model->batch), "--batch");
    if (r->model->seq > 1)
        assume(list, r, TOPT_GIVEN_SEQ, "seq", json_integer(r->model->seq), "--seq");
    return list;
}

void topt_request_put_lacks(const struct topt_request *r, json_t *doc)
{
    int64_t all = (int64_t)topt_hw_max_nodes(r->hw) * topt_hw_gpus_per_node(r->hw);
    const struct topt_model *apart;
    struct topt_tensor_map map;
    struct topt_text t = {.oom = topt_request_contexts(r, &apart, &map, NULL) != 0};
    char *lacks =
        topt_framework_not_searched(r->framework, topt_request_stages(r), apart != NULL);
    if (lacks)
        topt_text_add(&t, "%s", lacks);
    if (r->max_gpus > all)
        topt_text_add(&t, "%smore GPUs than the %lld of %s (another profile's \"nodes\")",
                      lacks ? "; " : "", (long long)all, topt_hw_name(r->hw));
    free(lacks);
    topt_tensor_map_fini(&map);
    lacks = topt_text_take(&t);
    if (lacks && *lacks)
        json_object_set_new(doc, "not_searched", json_string(lacks));
    free(lacks);
}

json_t *topt_request_job(const struct topt_request *r)
{
    struct topt_model_stats stats;
    topt_model_stats(r->model, &stats);
    json_t *job =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:s, s:s}", "model", r->model->name, "hw",
                  topt_hw_name(r->hw), "parameters", (json_int_t)stats.parameters,
                  "batch", (json_int_t)r->model->batch, "seq", (json_int_t)r->model->seq,
                  "precision", topt_precision_of(&r->settings)->name, "optimizer",
                  topt_optimizer_name(r->settings.optimizer));
    json_object_set_new(job, "samples", json_string(stats.images ? "images" : "samples"));
    topt_totals_put(job, &r->totals);
    /* MFU is defined for a step that trains all parameters. */
    if (stats.trained == stats.parameters)
        json_object_update_new(
            job,
            json_pack("{s:I, s:I, s:f}", "model_flops_per_sample",
                      (json_int_t)stats.model_flops_per_sample, "masked_flops_per_sample",
                      (json_int_t)stats.masked_flops_per_sample, "peak_flops",
                      topt_hw_mean_peak(r->hw, r->settings.dtype)));
    if (r->model->train)
        json_object_set_new(job, "train", json_string(r->model->train));
    if (r->model->note)
        json_object_set_new(job, "note", json_string(r->model->note));
    if (r->framework) {
        json_object_set_new(job, "framework", json_string(r->framework->name));
        json_object_set_new(job, "framework_title", json_string(r->framework->title));
        topt_request_put_lacks(r, job);
    }
    return job;
}
