/* launch.c - targets by name, what all of them share, and the answer as text and as environment.
 *
 * A plan is made for one framework: its memory and time are what that one takes.  A target of
 * another framework refuses it; a plan of topt's own runtime may be launched by any, and the
 * answer says that the prediction is not for it. */
#include "job.h"
#include "topt_launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_json.h"
#include "topt_rendezvous.h"

/* How targets name optimizers: a class that the script makes, an option, a component; or by the plan's name. */
enum optimizer_words {
    BY_CLASS,
    BY_MEGATRON,
    BY_TORCHTITAN,
    BY_TRAINER,
    BY_TORCHTUNE,
    BY_NAME,
    WORDINGS
};

/* NULL: the target has none.  Adam is AdamW without decay.  Megatron-LM's adam decays as AdamW does, and its sgd has a
 * momentum unless it is told otherwise (core/optimizer, d98e8a6). */
static const struct optimizer {
    const char *name, *called[WORDINGS];
} optimizers[] = {
    {"sgd",
     {"torch.optim.SGD", "sgd --sgd-momentum 0", NULL, "sgd", "torch.optim.SGD", "sgd"}},
    {"momentum",
     {"torch.optim.SGD with momentum=0.9", "sgd --sgd-momentum 0.9", NULL,
      "sgd --optim_args momentum=0.9", NULL, "momentum"}},
    {"adam",
     {"torch.optim.Adam", "adam --weight-decay 0", "AdamW",
      "adamw_torch_fused --weight_decay 0", "torch.optim.Adam", "adam"}},
    {"adamw",
     {"torch.optim.AdamW", "adam", "AdamW", "adamw_torch_fused", "torch.optim.AdamW",
      "adamw"}},
    {"adamw_bf16",
     {NULL,
      "adam --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16",
      NULL, NULL, NULL, NULL}},
    {"adafactor", {"transformers.Adafactor", NULL, NULL, "adafactor", NULL, NULL}},
    {"adam8", {"bitsandbytes.optim.AdamW8bit", NULL, NULL, "adamw_8bit", NULL, NULL}},
    {"paged_adamw",
     {"bitsandbytes.optim.PagedAdamW32bit", NULL, NULL, "paged_adamw_32bit", NULL, NULL}},
    {"paged_adamw8",
     {"bitsandbytes.optim.PagedAdamW8bit", NULL, NULL, "paged_adamw_8bit", NULL, NULL}},
    {"row_wise_adagrad",
     {"torchrec.optim.rowwise_adagrad.RowWiseAdagrad", NULL, NULL, NULL, NULL,
      "row_wise_adagrad"}},
    {"muon", {"torch.optim.Muon", "muon", NULL, NULL, NULL, NULL}},
};

/* The words and abilities of targets that take Megatron-LM's arguments. */
#define AS_MEGATRON                                                                      \
    .words = BY_MEGATRON, .replicas = 1, .experts = 1, .stage_levels = 1 << 0 | 1 << 1,  \
    .chunks = 1, .uneven = 1, .empty = 1,                                                \
    .modules = " core_attn mlp moe shared_experts moe_act layernorm mla_up_proj "

/* The first target of a framework is the usual one. */
static const struct target {
    const char *name, *framework;
    int (*write)(const struct job *j, struct sheet *s, struct topt_error *err);
    struct topt_launch_pin pin;
    const char *no_fp16; /* why what it starts can't train in fp16; NULL: it can */
    /* scalings of products in few bits that it can be told of, with spaces around; NULL: none */
    const char *low;
    const char *modules; /* of recomputation, likewise */
    int replicas; /* it shards over a part of the data parallel ranks, where it is told so */
    /* Of pipeline stages: levels of sharding beside them, as bits; 0: a script has to have them written out.
     * Whether a stage may have several chunks, chunks unlike numbers of layers, and one between others none. */
    int stage_levels, chunks, uneven, empty;
    enum optimizer_words words; /* for optimizers */
    int experts; /* it is told by options that experts are shared out; else the script has that written out */
} targets[] = {
    {.name = "torchrun",
     .framework = "pytorch",
     .write = topt_launch_torchrun,
     .low = " tensorwise rowwise mxfp8 ",
     .replicas = 1,
     .pin = {"pytorch/pytorch", "v2.14.1", "2026-10-20",
             "tested on CPU with a small GPT on 2026-11-22, not on GPUs"}},
    {.name = "accelerate",
     .framework = "pytorch",
     .write = topt_launch_accelerate,
     .pin = {"huggingface/accelerate", "16cb6eb80dd9aa8b4df1a63ef57863e455d53b83",
             "2026-07-24", "parsed by the launcher of 1.14.0 on 2026-11-22, not run"}},
    {.name = "deepspeed",
     .framework = "deepspeed",
     .write = topt_launch_deepspeed,
     .pin = {"deepspeedai/DeepSpeed", "edaa7221267243c7be7fb49c5d5f5c4fb97b4641",
             "2026-08-22", "not run"},
     .stage_levels = 1 << 0 | 1 << 1},
    {.name = "megatron",
     .framework = "megatron",
     .write = topt_launch_megatron,
     .low = " delayed tensorwise blockwise mxfp8 nvfp4 ",
     .pin = {"NVIDIA/Megatron-LM", "d98e8a64ddf34856e74b24714e3bedb2f5a39553",
             "2026-08-22", "not run"},
     AS_MEGATRON},
    {.name = "primus",
     .framework = "primus",
     .write = topt_launch_primus,
     .low = " delayed tensorwise blockwise mxfp8 ",
     .pin = {"AMD-AGI/Primus", "fd1eeabbad15135e3702094087e96142b4b4eacb", "2026-08-22",
             "not run"},
     AS_MEGATRON},
    {.name = "torchtitan",
     .framework = "torchtitan",
     .write = topt_launch_torchtitan,
     .words = BY_TORCHTITAN,
     .no_fp16 = "torchtitan scales no loss, so that it does not train in fp16",
     .low = " rowwise mxfp8 nvfp4 ",
     .modules = " op ",
     .pin = {"pytorch/torchtitan", "b5bcd76c66d0acb1a08b176d9639425bc55e0b2a",
             "2026-08-21", "not run"},
     .replicas = 1,
     .experts = 1,
     .stage_levels = 1 << 0 | 1 << 2 | 1 << 3,
     .chunks = 1,
     .uneven = 1},
    {.name = "hf",
     .framework = "pytorch",
     .write = topt_launch_hf,
     .words = BY_TRAINER,
     .pin = {"huggingface/transformers", "v5.12.1", "2026-08-01",
             "DDP tested on CPU with a small Llama and FSDP's arguments parsed on "
             "2026-11-23, "
             "not on GPUs"}},
    {.name = "torchtune",
     .framework = "pytorch",
     .write = topt_launch_torchtune,
     .words = BY_TORCHTUNE,
     .no_fp16 = "torchtune trains in bf16 or f32 alone",
     .pin = {"pytorch/torchtune", "bd2a0fc7c31430972728494fa01aaeeb0ebf1ba1",
             "2026-04-23", "not run"}},
    {.name = "topt", .framework = "topt", .write = topt_launch_topt, .words = BY_NAME},
};
enum { NTARGETS = sizeof targets / sizeof *targets };

static const struct target *find(const char *name)
{
    for (int i = 0; i < NTARGETS; i++)
        if (!strcmp(targets[i].name, name))
            return &targets[i];
    return NULL;
}

const struct topt_launch_pin *topt_launch_pin(const char *target)
{
    const struct target *t = find(target);
    return t ? &t->pin : NULL;
}

/* ---- as text ----------------------------------------------------------------------------- */

static const char *member(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static void add_remarks(struct topt_text *t, const char *head, const json_t *list)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        const char *words = json_string_value(v);
        struct topt_text folded = {0};
        topt_text_add(t, "# %s: ", head);
        topt_text_fold(&folded, words, strlen(words), 0, 88 - strlen(head));
        for (const char *line = folded.s; line && *line;) { /* each a comment */
            size_t n = strcspn(line, "\n");
            topt_text_put(t, line, n);
            line += n + (line[n] == '\n');
            topt_text_add(t, *line ? "\n#   " : "\n");
        }
        t->oom = t->oom || folded.oom;
        topt_text_fini(&folded);
    }
}

/* The remarks before the command. */
static void put_head(const struct target *t, const struct job *j, const struct sheet *s,
                     struct topt_text *text)
{
    topt_text_add(text, "# plan %s for %s: %s\n", j->id, t->name,
                  json_array_size(s->differs)
                      ? "settings of the plan are below, except for the differences"
                      : "every setting of the plan is below");
    if (t->pin.repository)
        topt_text_add(text, "# option names checked against %s %.12s (%s); %s\n",
                      t->pin.repository, t->pin.commit, t->pin.date, t->pin.run);
    add_remarks(text, "differs", s->differs);
    add_remarks(text, "script", s->script);
}

/* Write lines before the command, in the file that holds it.  Takes the text. */
static int put_before_command(const struct sheet *s, struct topt_text *text,
                              struct topt_error *err)
{
    json_t *first = json_array_get(s->files, 0);
    const char *command = member(first, "text");
    topt_text_put(text, command, strlen(command));
    int rc = text->oom ? -1 : json_object_set_new(first, "text", json_string(text->s));
    topt_text_fini(text);
    return rc ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for the answer") : 0;
}

/* Segments of PyTorch's allocator that grow leave fewer gaps; graphs of kernels with NCCL do not go with them
 * unasked (docs/source/notes/cuda.rst of PyTorch; run_train.sh of torchtitan sets them, too). */
static int set_allocator(const struct target *t, const struct job *j,
                         const struct sheet *s, struct topt_error *err)
{
    struct topt_text text = {0};
    if (strcmp(t->framework, "topt") && !j->cuda_graphs)
        topt_text_add(&text, "export PYTORCH_CUDA_ALLOC_CONF=\"${PYTORCH_CUDA_ALLOC_CONF-"
                             "expandable_segments:True}\"\n");
    return put_before_command(s, &text, err);
}

/* The remarks, in the file that holds the command. */
static int head(const struct target *t, const struct job *j, const struct sheet *s,
                struct topt_error *err)
{
    struct topt_text text = {0};
    topt_text_add(&text, "#!/bin/sh\n");
    put_head(t, j, s, &text);
    return put_before_command(s, &text, err);
}

/* How to store several files that are printed as one text. */
static void put_how_to_store(struct topt_text *t, const json_t *files)
{
    size_t i;
    json_t *f;
    topt_text_add(t, "# %zu files for one folder: ", json_array_size(files));
    json_array_foreach(files, i, f) topt_text_add(
        t,
        i ? ", %s the lines after '# ---- %s'" : "%s the lines up to the next '# ----'",
        member(f, "name"), member(f, "name"));
    topt_text_add(t, ".\n# topt launch with -o DIR writes them; with --sbatch it prints "
                     "one script that holds all.\n");
}

char *topt_launch_text(const json_t *launch)
{
    struct topt_text t = {0};
    size_t i;
    json_t *f, *files = json_object_get(launch, "files");
    json_array_foreach(files, i, f)
    {
        const char *text = member(f, "text");
        size_t first = i || json_array_size(files) < 2 ? 0 : strcspn(text, "\n") + 1;
        if (i)
            topt_text_add(&t, "\n# ---- %s\n", member(f, "name"));
        topt_text_put(&t, text, first); /* "#!/bin/sh" stays the first line */
        if (first)
            put_how_to_store(&t, files);
        text += first;
        topt_text_put(&t, text, strlen(text));
    }
    return topt_text_take(&t);
}

/* ---- the answer -------------------------------------------------------------------------- */

static int refuse_own(const struct job *j, struct topt_error *err)
{
    return topt_job_refuse(
        j, "pytorch", err,
        "this plan splits operators individually, which only `topt run` supports");
}

static int refuse_fp16(const struct job *j, const struct target *t,
                       struct topt_error *err)
{
    char again[64];
    snprintf(again, sizeof again, "%s --precision f32", t->framework);
    return topt_job_refuse(j, again, err, "%s", t->no_fp16);
}

/* What there is instead: FP8 by rows, or bf16. */
static int refuse_low(const struct job *j, const struct target *t, struct topt_error *err)
{
    char again[64];
    snprintf(again, sizeof again, "%s --precision %s", t->framework,
             t->low && strstr(t->low, "rowwise") ? "fp8-rowwise" : "bf16-mixed");
    return topt_job_refuse(j, again, err, "%s can't be told of products in %.20s scaling",
                           t->name, j->low);
}

static int takes_low(const struct job *j, const struct target *t)
{
    char word[24];
    snprintf(word, sizeof word, " %.20s ", j->low ? j->low : "");
    return !j->low || (t->low && strstr(t->low, word));
}

/* Has it flags for all modules that the plan recomputes? */
static int takes_modules(const struct job *j, const struct target *t)
{
    for (const char *at = j->modules; *at;) {
        char word[24];
        int n = (int)strcspn(at, "+");
        snprintf(word, sizeof word, " %.*s ", n < 20 ? n : 20, at);
        if (!t->modules || !strstr(t->modules, word))
            return 0;
        at += n + (at[n] == '+');
    }
    return 1;
}

/* The kernels of the loss that a target has no flag for, or not at all. */
static const struct loss {
    const char *target, *kernel;
    const char *script, *differs, *refuse;
} losses[] = {
#define OWN_SCRIPT(target)                                                               \
    {target, "fused",                                                                    \
     "the loss is fused: cross_entropy under torch.compile, or Liger's "                 \
     "LigerCrossEntropyLoss, on logits in bf16",                                         \
     NULL, NULL},                                                                        \
        {target, "chunked",                                                              \
         "the loss is Liger's LigerFusedLinearCrossEntropyLoss, on the last hidden "     \
         "states in place of the head",                                                  \
         NULL, NULL},                                                                    \
    {                                                                                    \
        target, "chunked-saved",                                                         \
            "head and cross_entropy run on an eighth of the sequence at a time, as "     \
            "torchtune's LinearCrossEntropyLoss",                                        \
            NULL, NULL                                                                   \
    }
    OWN_SCRIPT("torchrun"),
    OWN_SCRIPT("accelerate"),
    OWN_SCRIPT("deepspeed"),
    {"hf", "chunked-saved", NULL, NULL,
     "Trainer has the losses written, fused and chunked (Liger's), not chunked-saved"},
    {"torchtitan", "written", NULL,
     "the loss is computed in chunks of the sequence, so logits take less memory than "
     "planned",
     NULL},
    {"torchtitan", "fused", NULL,
     "the loss is computed in chunks of the sequence, so logits take less memory than "
     "planned",
     NULL},
    {"torchtune", "written", NULL,
     "the loss is computed in chunks of the sequence, so logits take less memory than "
     "planned",
     NULL},
    {"torchtune", "fused", NULL, NULL,
     "torchtune's loss is chunked-saved, which takes more memory than a fused one"},
    {"torchtune", "chunked", NULL, NULL,
     "torchtune's loss is chunked-saved, which takes more memory than a chunked one"},
};

static int check_loss(const struct job *j, const struct target *t, struct sheet *s,
                      struct topt_error *err)
{
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        const struct loss *x = &losses[i];
        if (strcmp(x->target, t->name) || strcmp(x->kernel, j->loss) || !j->model.vocab)
            continue;
        if (x->refuse)
            return topt_job_refuse(j, "pytorch --loss-kernel written", err, "%s",
                                   x->refuse);
        if (x->script)
            topt_sheet_script(s, "%s", x->script);
        if (x->differs)
            topt_sheet_differs(s, "%s", x->differs);
    }
    return 0;
}

/* Find what the target calls the plan's optimizer. */
static int name_optimizer(struct job *j, const struct target *t, struct topt_error *err)
{
    char again[64];
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        if (!strcmp(optimizers[i].name, j->optimizer))
            j->calls = optimizers[i].called[t->words];
    snprintf(again, sizeof again, "%s --optimizer adamw", t->framework);
    return j->calls ? 0
                    : topt_job_refuse(j, again, err, "%s has no optimizer %.40s", t->name,
                                      j->optimizer);
}

/* What a framework refuses of pipeline stages: read of Megatron-LM's arguments.py and schedules.py,
 * torchtitan's distributed/pipeline_parallel.py and DeepSpeed's runtime/pipe at the pinned commits. */
static int check_stages(const struct job *j, const struct target *t,
                        struct topt_error *err)
{
    size_t i;
    json_t *layers;
    if (!t->stage_levels)
        return topt_job_refuse(
            j, "megatron", err,
            "for %.20s pipeline stages have to be written into the training "
            "script; this plan has %lld",
            t->name, (long long)j->pp);
    if (j->dp > 1 && !(t->stage_levels >> j->zero & 1))
        return topt_job_refuse(j, t->framework, err,
                               "%.20s has no ZeRO-%lld beside pipeline stages", t->name,
                               (long long)j->zero);
    if (j->vp > 1 && !t->chunks)
        return topt_job_refuse(j, "megatron", err,
                               "%.20s has no interleaved schedule, and this plan has "
                               "%lld chunks of each stage",
                               t->name, (long long)j->vp);
    if (!t->uneven && !topt_job_even_stages(j))
        return topt_job_refuse(j, t->framework, err,
                               "%.20s's stages have equally many layers here", t->name);
    json_array_foreach(j->layers, i, layers)
    {
        int end = i == 0 || i + 1 == json_array_size(j->layers);
        if (json_integer_value(layers) < !(end || t->empty))
            return topt_job_refuse(j, t->framework, err,
                                   "chunk %zu of the pipeline has no layer", i);
    }
    return 0;
}

/* Say which nodes have which ranks, where GPUs are of several groups. */
static void remark_components(const struct job *j, struct sheet *s)
{
    struct topt_text t = {0};
    int64_t first = 0;
    for (int i = 0; i < j->components && j->components > 1; i++) {
        const struct topt_component *c = &j->component[i];
        int64_t end = first + (s->each_gpu ? c->nodes * c->per_node : c->nodes);
        topt_text_add(&t, "%s%lld", i ? ", " : "", (long long)first);
        if (end - first > 1)
            topt_text_add(&t, " to %lld", (long long)end - 1);
        topt_text_add(&t, " on %.60s", c->group);
        first = end;
    }
    if (t.s && s->each_gpu)
        topt_sheet_script(
            s, "GPUs are of several groups: name mpirun's hosts in their order, ranks %s",
            t.s);
    else if (t.s)
        topt_sheet_script(s,
                          "GPUs are of several groups: start it on each node with "
                          "NODE_RANK, %s, and MASTER_ADDR, node 0",
                          t.s);
    topt_text_fini(&t);
}

static int check(const struct job *j, const struct target *t, struct sheet *s,
                 struct topt_error *err)
{
    int is_own = !strcmp(j->framework, "topt");
    if (is_own && strcmp(t->name, "topt"))
        topt_sheet_differs(
            s, "this plan's memory and time are predicted for topt's own runtime");
    else if (strcmp(j->framework, t->framework))
        return topt_job_refuse(j, t->framework, err, "this plan was made for %.20s",
                               j->framework);
    if (!j->dp && strcmp(t->name, "topt"))
        return refuse_own(j, err);
    if (j->shard < j->dp && !t->replicas)
        return topt_job_refuse(j, "pytorch", err,
                               "for %.20s parameters are sharded over all %lld data "
                               "parallel ranks, not over %lld with replicas",
                               t->name, (long long)j->dp, (long long)j->shard);
    if (j->unequal_shares && strcmp(t->name, "topt"))
        return topt_job_refuse(j, "topt", err,
                               "this plan gives each group of unlike GPUs a share of its "
                               "own, which only `topt run` supports");
    if (j->pp > 1 && check_stages(j, t, err))
        return -1;
    if (j->ep > 1 && !t->experts)
        return topt_job_refuse(j, "megatron", err,
                               "for %.20s experts that are shared out have to be written "
                               "into the training script; this plan has %lld",
                               t->name, (long long)j->ep);
    if (j->precision == JOB_F16_MIXED && t->no_fp16)
        return refuse_fp16(j, t, err);
    if (!takes_low(j, t))
        return refuse_low(j, t, err);
    if (!takes_modules(j, t))
        return topt_job_refuse(j, j->framework, err,
                               "%s can't be told to recompute %.60s", t->name,
                               j->modules);
    if (j->precision == JOB_F64 && strcmp(t->name, "topt"))
        return topt_job_refuse(j, t->framework, err, "%s does not train in f64", t->name);
    return 0;
}

/* Without a name, the usual target of the plan's framework. */
static const struct target *choose(const struct job *j, const char *name)
{
    for (int i = 0; i < NTARGETS; i++)
        if (!strcmp(name ? targets[i].name : targets[i].framework,
                    name ? name : j->framework))
            return &targets[i];
    return NULL;
}

static int no_target(const struct job *j, const char *name, struct topt_error *err)
{
    struct topt_text names = {0};
    for (int i = 0; i < NTARGETS; i++)
        topt_text_add(&names, "%s%s", i ? ", " : "", targets[i].name);
    topt_fail(err, TOPT_ERR_NOTFOUND, "unknown target %s'%.40s'; --for takes one of: %s",
              name ? "" : "for the framework ", name ? name : j->framework,
              names.s ? names.s : "");
    topt_text_fini(&names);
    return -1;
}

static int answer(const struct target *t, const struct job *j, const struct sheet *s,
                  json_t **ret, struct topt_error *err)
{
    json_t *a =
        json_pack("{s:s, s:s, s:s, s:b, s:O, s:O, s:O}", "target", t->name, "framework",
                  t->framework, "plan", j->id, "complete", !json_array_size(s->differs),
                  "differs", s->differs, "script", s->script, "files", s->files);
    if (a && t->pin.repository &&
        json_object_set_new(a, "pin",
                            json_pack("{s:s, s:s, s:s, s:s}", "repository",
                                      t->pin.repository, "commit", t->pin.commit, "date",
                                      t->pin.date, "run", t->pin.run))) {
        json_decref(a);
        a = NULL;
    }
    *ret = a;
    return a ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for the answer");
}

/* The numbers of the plan as variables, all but how it is started. */
static json_t *plan_numbers(const struct job *j)
{
    const struct {
        const char *name;
        int64_t value;
        int is_there;
    } numbers[] = {{"TOPT_GPUS", j->gpus, 1},
                   {"TOPT_NODES", j->nodes, 1},
                   {"TOPT_GPUS_PER_NODE", j->per_node, j->per_node > 0},
                   {"TOPT_DP", j->dp, 1},
                   {"TOPT_TP", j->tp, 1},
                   {"TOPT_PP", j->pp, 1},
                   {"TOPT_VP", j->vp, 1},
                   {"TOPT_FSDP", j->zero, 1},
                   {"TOPT_RECOMPUTE", j->recompute, 1},
                   {"TOPT_MICRO_BATCH", j->micro, 1},
                   {"TOPT_ACCUMULATION", j->steps, 1},
                   {"TOPT_BATCH", j->batch, 1},
                   {"TOPT_SEQ", j->seq, 1},
                   {"TOPT_CP", j->cp, j->cp > 1},
                   {"TOPT_EP", j->ep, j->ep > 1},
                   {"TOPT_ETP", j->etp, j->ep > 1},
                   {"TOPT_SHARD", j->shard, j->shard < j->dp}};
    json_t *e = json_object();
    json_object_set_new(e, "TOPT_PLAN_ID", json_string(j->id));
    json_object_set_new(e, "TOPT_FRAMEWORK", json_string(j->framework));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)numbers[i].value);
        if (numbers[i].is_there)
            json_object_set_new(e, numbers[i].name, json_string(number));
    }
    json_object_set_new(e, "TOPT_PRECISION",
                        json_string(topt_job_precision(j->precision)));
    json_object_set_new(e, "TOPT_TRAIN", json_string(j->train));
    return e;
}

/* One script with all files in it. */
static int as_job(const struct target *t, const struct job *j, struct sheet *s,
                  struct topt_error *err)
{
    struct topt_text head = {0};
    put_head(t, j, s, &head);
    json_t *env = j->dp ? plan_numbers(j) : NULL;
    int rc = head.oom ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for the answer")
                      : topt_job_as_slurm(j, head.s, env, s, err);
    json_decref(env);
    topt_text_fini(&head);
    return rc;
}

int topt_launch(const json_t *plan, const char *target, int is_job, json_t **ret,
                struct topt_error *err)
{
    struct job j;
    if (topt_job_read(plan, &j, err))
        return -1;
    const struct target *t = choose(&j, target);
    if (!t)
        return no_target(&j, target, err);
    struct sheet s = {json_array(), json_array(), json_array(), NULL};
    int rc = check(&j, t, &s, err) || name_optimizer(&j, t, err) ? -1 : 0;
    rc = rc ? rc : t->write(&j, &s, err);
    if (!rc && strcmp(j.framework, "topt"))
        rc = check_loss(&j, t, &s, err);
    if (!rc && !is_job)
        remark_components(&j, &s);
    rc = rc ? rc : set_allocator(t, &j, &s, err);
    rc = rc ? rc : is_job ? as_job(t, &j, &s, err) : head(t, &j, &s, err);
    rc = rc ? rc : answer(t, &j, &s, ret, err);
    json_decref(s.differs);
    json_decref(s.script);
    json_decref(s.files);
    return rc;
}

/* ---- as environment ---------------------------------------------------------------------- */

/* The arguments of srun and torchrun for one launcher a node; in a job with the place where they
 * meet. */
static void put_launchers(const struct job *j, json_t *e)
{
    const char *id = getenv("SLURM_JOB_ID");
    char words[TOPT_RENDEZVOUS_SIZE];
    topt_rendezvous_srun(j->nodes, 1, words);
    json_object_set_new(e, "TOPT_SRUN", json_string(words));
    topt_rendezvous_torchrun(j->nodes, j->per_node,
                             id ? getenv("SLURM_JOB_NODELIST") : NULL,
                             id ? strtoll(id, NULL, 10) : 0, words);
    json_object_set_new(e, "TOPT_TORCHRUN", json_string(words));
}

int topt_launch_environment(const json_t *plan, json_t **ret, struct topt_error *err)
{
    struct job j;
    if (topt_job_read(plan, &j, err))
        return -1;
    if (!j.dp)
        return refuse_own(&j, err);
    if (j.components > 1)
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "the plan's GPUs are of several groups, and options of one srun "
                         "don't order ranks by groups; run: topt launch PLAN --sbatch");
    json_t *e = plan_numbers(&j);
    put_launchers(&j, e);
    *ret = e;
    return 0;
}
