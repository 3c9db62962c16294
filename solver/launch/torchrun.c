/* torchrun.c - PyTorch by its own means: a torchrun line, and topt_apply.py, which wraps a model
 * as the plan says (DDP, ZeroRedundancyOptimizer, fully_shard, DTensor, checkpointing).
 *
 * The Python file is a file of this folder, put into the library by the assembler; what is
 * written replaces its line "PLAN = {}" by the plan's numbers. */
#include "job.h"
#include "topt_launch.h"
#include "topt_roles.h"

#include <stdio.h>
#include <string.h>

enum { NAMES = 400 };

__asm__(".pushsection .rodata\n"
        ".hidden topt_apply_source\n"
        ".global topt_apply_source\n"
        "topt_apply_source:\n"
        ".incbin \"topt_apply.py\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char topt_apply_source[] __attribute__((visibility("hidden")));

/* Names of the linear modules that are split so, with spaces between. */
static const char *modules(enum topt_role_split split, char ret[NAMES])
{
    static const struct {
        enum topt_role_split split;
        const char *modules;
    } rows[] = {
#define X(id, name, split, modules) {TOPT_BY_##split, modules},
        TOPT_ROLES(X)
#undef X
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].split == split)
            n += (size_t)snprintf(ret + n, NAMES - n, "%s", rows[i].modules);
    ret[n ? n - 1 : 0] = '\0';
    return ret;
}

static void write_plan(const struct job *j, struct topt_text *t)
{
    char column[NAMES], row[NAMES];
    topt_text_add(t,
                  "PLAN = {\"id\": \"%s\", \"dp\": %lld, \"tp\": %lld, \"zero\": %lld, "
                  "\"recompute\": %d, \"shard\": %lld, \"offload\": %d,\n"
                  "        \"micro_batch\": %lld, \"accumulation\": %lld, "
                  "\"precision\": \"%s\",\n"
                  "        \"column\": \"%s\",\n"
                  "        \"row\": \"%s\",\n"
                  "        \"train\": \"%s\", \"trained\": %lld}\n",
                  j->id, (long long)j->dp, (long long)j->tp, (long long)topt_job_zero(j),
                  j->recompute, (long long)j->shard,
                  (j->offload & JOB_HOST_PARAMETERS) != 0, (long long)j->micro,
                  (long long)j->steps, topt_job_precision(j->precision),
                  modules(TOPT_BY_COLUMN, column), modules(TOPT_BY_ROW, row), j->train,
                  (long long)j->trained);
}

void topt_job_offload_kept(const struct job *j, struct sheet *s)
{
    if (j->offload & JOB_HOST_KEPT)
        topt_sheet_script(s,
                          "forward and loss run inside of torchtune.training."
                          "OffloadActivations(): what layers keep goes to the host on a "
                          "stream of its own");
}

/* topt_apply.py with the plan's numbers. */
static int write_apply(const struct job *j, struct sheet *s, struct topt_error *err)
{
    static const char line[] = "PLAN = {}\n";
    const struct topt_launch_pin *pin = topt_launch_pin("torchrun");
    const char *at = strstr(topt_apply_source, line);
    struct topt_text t = {0};
    if (!at)
        return topt_fail(err, TOPT_ERR_INTERNAL,
                         "topt_apply.py has no line for the plan");
    topt_text_put(&t, topt_apply_source, (size_t)(at - topt_apply_source));
    topt_text_add(&t, "# Names checked against %s %s (%s),\n# %s.\n", pin->repository,
                  pin->commit, pin->date, pin->run);
    write_plan(j, &t);
    at += sizeof line - 1;
    topt_text_put(&t, at, strlen(at));
    return topt_sheet_file(s, "topt_apply.py", &t, err);
}

int topt_job_train_fits(const struct job *j, int shards_from, struct topt_error *err)
{
    const char *bits = strchr(j->train, '+');
    if (j->tp > 1 && (bits || !strncmp(j->train, "lora", 4)))
        return topt_job_refuse(j, "pytorch", err,
                               "adapters and few bits are not split by tensor "
                               "parallelism, and this plan has %lld",
                               (long long)j->tp);
    if (bits && !strcmp(bits, "+8bit") && j->zero >= shards_from && j->dp > 1)
        return topt_job_refuse(j, "pytorch", err,
                               "bitsandbytes' 8-bit matrices can't be sharded");
    return 0;
}

/* The script's own part: adapters by peft, quantised weights by bitsandbytes. */
static void remark_train(const struct job *j, struct sheet *s)
{
    const char *bits = strchr(j->train, '+');
    if (!strcmp(j->train, "all"))
        return;
    if (!strncmp(j->train, "lora", 4))
        topt_sheet_script(s,
                          "%.60s: topt_apply.py freezes the model and puts adapters in, "
                          "alpha the rank: peft's LoraConfig(r=, lora_alpha=, "
                          "target_modules=) where peft is installed, else its own; "
                          "%lld parameters are trained, in %s",
                          j->train, (long long)j->trained,
                          j->precision == JOB_BF16 ? "bf16" : "f32");
    else
        topt_sheet_script(
            s, "topt_apply.py freezes all but %.60s: %lld parameters are trained",
            j->train, (long long)j->trained);
    if (bits)
        topt_sheet_script(s,
                          "from_pretrained(NAME, **topt_apply.loading()): bitsandbytes "
                          "stores the frozen matrices in %c bits%s",
                          bits[1], bits[1] == '4' ? " (nf4, double quantization)" : "");
}

int topt_job_write_train(const struct job *j, struct sheet *s, struct topt_error *err)
{
    if (!strcmp(j->train, "all"))
        return 0;
    topt_sheet_script(s, "import topt_apply; model = topt_apply.trainable(model) before "
                         "the optimizer is made");
    remark_train(j, s);
    return write_apply(j, s, err);
}

/* What fully_shard and DTensor can't do together, or not at all. */
static int check(const struct job *j, struct topt_error *err)
{
    if (topt_job_splits(j, "pytorch", 0, err) || topt_job_train_fits(j, 2, err))
        return -1;
    if (j->tp > 1 && j->dp > 1 && j->zero < 2)
        return topt_job_refuse(j, "pytorch", err,
                               "DDP does not take tensor parallel parameters, and this "
                               "plan has data %lld, tensor %lld, ZeRO-%lld",
                               (long long)j->dp, (long long)j->tp, (long long)j->zero);
    if (j->tp > 1 && j->model.distance)
        return topt_job_refuse(
            j, "pytorch", err,
            "scores by distance (ALiBi, a table) are made for all heads, "
            "which tensor parallelism splits");
    if (j->tp > 1 && j->model.experts)
        return topt_job_refuse(j, "pytorch", err,
                               "PyTorch has no tensor parallelism for experts");
    return 0;
}

int topt_launch_torchrun(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0};
    if (check(j, err))
        return -1;
    topt_job_import_here(&t);
    topt_job_start_torchrun(j, "torchrun", &t);
    topt_text_add(&t, " train.py \"$@\"\n");
    if (topt_sheet_file(s, "launch.sh", &t, err))
        return -1;
    topt_sheet_script(s, "train.py imports topt_apply: start(), apply(), optimizer(), "
                         "micro_batches(), rows()");
    remark_train(j, s);
    topt_sheet_script(s, "topt_apply.optimizer() makes a %s", j->calls);
    if (!strcmp(j->optimizer, "muon"))
        topt_sheet_script(s, "matrices of blocks are updated by torch.optim.Muon, other "
                             "parameters by AdamW: two optimizers in train.py");
    topt_job_offload_kept(j, s);
    if (j->cuda_graphs)
        topt_sheet_script(s, "forward and backward are recorded as CUDA graphs: "
                             "torch.cuda.make_graphed_callables() or "
                             "torch.compile(mode=\"reduce-overhead\")");
    if (j->low && !strcmp(j->low, "mxfp8"))
        topt_sheet_script(s,
                          "linear modules of blocks become MXFP8 before apply(): "
                          "torchao's quantize_() with MXLinearConfig, and torch.compile");
    else if (j->low)
        topt_sheet_script(
            s,
            "linear modules of blocks become FP8 before apply(): torchao.float8's "
            "convert_to_float8_training(model, config=Float8LinearConfig."
            "from_recipe_name(\"%s\"), module_filter_fn=) but the head%s; "
            "and torch.compile",
            j->low, j->low_params ? ", with enable_fsdp_float8_all_gather" : "");
    if (j->precision == JOB_F16_MIXED)
        topt_sheet_script(s, "the loss is scaled: scaler = topt_apply.scaler(), "
                             "scaler.scale(loss).backward(), scaler.step(optimizer), "
                             "scaler.update()");
    if (j->dp > 1 && j->zero == 1)
        topt_sheet_differs(s,
                           "ZeroRedundancyOptimizer gives whole parameters to ranks: the "
                           "fullest may hold as much more state as the largest one has");
    if (j->tp > 1)
        topt_sheet_script(s,
                          "the model's attention takes its number of heads from the "
                          "tensors, and its linear modules are named in topt_apply.py");
    if (j->tp > 1 && j->model.tied)
        topt_sheet_differs(s, "the embedding, which the output shares, is not split");
    else if (j->tp > 1)
        topt_sheet_differs(s, "embedding and output are split by vocabulary");
    return write_apply(j, s, err);
}
