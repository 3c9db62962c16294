/* hf.c - Hugging Face's Trainer: the arguments of TrainingArguments, and the JSON of its FSDP, for
 * a script that reads them (HfArgumentParser) and is started by torchrun.
 *
 * It writes plans for PyTorch: FSDP2 where parameters or gradients are sharded, else DDP. */
#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "topt_json.h"

static int is_sharded(const struct job *j)
{
    return topt_job_zero(j) >= 2 && (j->dp > 1 || j->offload);
}

static int write_json(struct sheet *s, const char *name, json_t *doc,
                      struct topt_error *err)
{
    struct topt_text t = {0};
    char *text = doc ? topt_json_text(doc, 2) : NULL;
    json_decref(doc);
    if (text)
        topt_text_add(&t, "%s\n", text);
    else
        t.oom = 1;
    free(text);
    return topt_sheet_file(s, name, &t, err);
}

/* Checkpoints are the model's own: those of FSDP keep the inputs of each module of a block. */
static int write_fsdp(const struct job *j, struct sheet *s, struct topt_error *err)
{
    if (!is_sharded(j))
        return 0;
    if (write_json(s, "fsdp.json",
                   json_pack("{s:i, s:b, s:s, s:b, s:b, s:s}", "version", 2,
                             "reshard_after_forward", topt_job_zero(j) == 3,
                             "auto_wrap_policy", "TRANSFORMER_BASED_WRAP",
                             "activation_checkpointing", 0, "cpu_offload",
                             (j->offload & JOB_HOST_PARAMETERS) != 0, "state_dict_type",
                             "SHARDED_STATE_DICT"),
                   err))
        return -1;
    if (j->steps == 1)
        return 0;
    return write_json(
        s, "accelerator.json",
        json_pack("{s:{s:b}}", "gradient_accumulation_kwargs", "sync_each_batch", 1),
        err);
}

static int check(const struct job *j, struct topt_error *err)
{
    if (j->tp > 1)
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "Trainer's arguments can't say tensor parallelism (this plan "
                         "has %lld); torchrun does it: topt launch --for torchrun",
                         (long long)j->tp);
    if (j->dp > 1 && j->zero == 1)
        return topt_fail(
            err, TOPT_ERR_INFEASIBLE,
            "Trainer has no ZeRO-1 of PyTorch's own (this plan shards only the optimizer "
            "state); torchrun does: topt launch --for torchrun");
    if (topt_job_train_fits(j, 2, err))
        return -1;
    if (j->offload & JOB_HOST_KEPT)
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "Trainer leaves no activations on the host; torchrun's script "
                         "does: topt launch --for torchrun");
    return 0;
}

static void remarks(const struct job *j, struct sheet *s)
{
    topt_sheet_script(s, "train.py reads its TrainingArguments from the command line "
                         "(HfArgumentParser); data, output folder, learning rate and "
                         "length are yours: launch.sh ARGUMENTS hands them on");
    topt_sheet_script(s, "its samples have %lld positions", (long long)j->seq);
    if (!strcmp(j->train, "all")) /* else topt_apply.trainable() sets types */
        topt_sheet_script(
            s,
            "from_pretrained(..., dtype=torch.%s): by itself it takes that of the "
            "checkpoint",
            j->precision == JOB_BF16 ? "bfloat16" : "float32");
    if (is_sharded(j) && topt_job_is_mixed(j))
        topt_sheet_differs(s, "gradients are reduced in %s, not in f32",
                           j->precision == JOB_F16_MIXED ? "fp16" : "bf16");
    if (is_sharded(j) && j->zero == 2 && j->steps > 1)
        topt_sheet_differs(s, "parameters are gathered anew in each micro-batch");
}

int topt_launch_hf(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0};
    if (check(j, err))
        return -1;
    topt_job_import_here(&t);
    topt_job_start_torchrun(j, "torchrun", &t);
    topt_text_add(&t,
                  " train.py \\\n    --per_device_train_batch_size %lld "
                  "--gradient_accumulation_steps %lld \\\n    --optim %s --%s %s "
                  "--gradient_checkpointing %s \\\n",
                  (long long)j->micro, (long long)j->steps, j->calls,
                  j->precision == JOB_F16_MIXED ? "fp16" : "bf16",
                  topt_job_is_mixed(j) ? "True" : "False",
                  j->recompute ? "True" : "False");
    if (is_sharded(j))
        topt_text_add(&t, "    --fsdp --fsdp_config \"$here/fsdp.json\" \\\n");
    /* else whole gradients stay between micro-batches */
    if (is_sharded(j) && j->steps > 1)
        topt_text_add(&t, "    --accelerator_config \"$here/accelerator.json\" \\\n");
    if (!strcmp(j->loss, "fused") || !strcmp(j->loss, "chunked"))
        topt_text_add(&t,
                      "    --use_liger_kernel True --liger_kernel_config "
                      "'{\"rope\": false, \"swiglu\": false, \"rms_norm\": false, "
                      "\"cross_entropy\": %s, \"fused_linear_cross_entropy\": %s}' \\\n",
                      *j->loss == 'f' ? "true" : "false",
                      *j->loss == 'f' ? "false" : "true");
    topt_text_add(&t, "    \"$@\"\n");
    if (topt_sheet_file(s, "launch.sh", &t, err))
        return -1;
    remarks(j, s);
    return write_fsdp(j, s, err) || topt_job_write_train(j, s, err) ? -1 : 0;
}
