/* accelerate.c - Hugging Face accelerate: its configuration file, and `accelerate launch`.
 *
 * It writes plans for PyTorch: FSDP2 where parameters or gradients are sharded, else DDP. */
#include "job.h"

static const char *yes(int on)
{
    return on ? "true" : "false";
}

static void write_fsdp(const struct job *j, struct topt_text *t)
{
    topt_text_add(t,
                  "fsdp_config:\n"
                  "  fsdp_version: 2\n"
                  "  fsdp_reshard_after_forward: %s\n"
                  "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
                  "  fsdp_activation_checkpointing: false\n"
                  "  fsdp_offload_params: %s\n"
                  "  fsdp_state_dict_type: SHARDED_STATE_DICT\n",
                  yes(topt_job_zero(j) == 3), yes(j->offload & JOB_HOST_PARAMETERS));
    if (j->tp > 1)
        topt_text_add(t,
                      "parallelism_config:\n"
                      "  parallelism_config_dp_replicate_size: 1\n"
                      "  parallelism_config_dp_shard_size: %lld\n"
                      "  parallelism_config_tp_size: %lld\n"
                      "  parallelism_config_cp_size: 1\n",
                      (long long)j->dp, (long long)j->tp);
}

static int write_config(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0};
    int fsdp = topt_job_zero(j) >= 2 && (j->gpus > 1 || j->offload);
    topt_text_add(&t,
                  "compute_environment: LOCAL_MACHINE\n"
                  "distributed_type: %s\n"
                  "mixed_precision: %s\n"
                  "num_machines: %lld\n"
                  "num_processes: %lld\n"
                  "main_training_function: main\n"
                  "rdzv_backend: static\n"
                  "same_network: true\n"
                  "use_cpu: false\n",
                  fsdp          ? "FSDP"
                  : j->gpus > 1 ? "MULTI_GPU"
                                : "'NO'",
                  j->precision == JOB_F16_MIXED    ? "fp16"
                  : j->precision == JOB_BF16_MIXED ? "bf16"
                                                   : "'no'",
                  (long long)j->nodes, (long long)j->gpus);
    if (fsdp)
        write_fsdp(j, &t);
    return topt_sheet_file(s, "accelerate.yaml", &t, err);
}

static int check(const struct job *j, struct topt_error *err)
{
    if (topt_job_splits(j, "pytorch", 0, err) || topt_job_train_fits(j, 2, err))
        return -1;
    if (!j->per_node)
        return topt_fail(
            err, TOPT_ERR_INFEASIBLE,
            "accelerate starts equally many ranks on each node, and the plan's groups "
            "have nodes of different sizes; torchrun does not: topt launch --for "
            "torchrun");
    if (j->dp > 1 && j->zero == 1)
        return topt_fail(
            err, TOPT_ERR_INFEASIBLE,
            "accelerate has no ZeRO-1 of PyTorch's own (this plan shards only the "
            "optimizer state); torchrun does: topt launch --for torchrun");
    if (j->tp > 1 && (j->zero < 2 || j->dp == 1))
        return topt_job_refuse(
            j, "pytorch", err,
            "accelerate splits tensors only beside FSDP2, and this plan "
            "has data %lld with ZeRO-%lld",
            (long long)j->dp, (long long)j->zero);
    if (j->tp > 1 && j->model.experts)
        return topt_job_refuse(j, "pytorch", err,
                               "PyTorch has no tensor parallelism for experts");
    return 0;
}

static void remarks(const struct job *j, struct sheet *s)
{
    topt_sheet_script(s, "its data loader yields %lld sample%s per rank at a time",
                      (long long)j->micro, j->micro == 1 ? "" : "s");
    topt_sheet_script(s, "its optimizer is %s", j->calls);
    if (j->steps > 1)
        topt_sheet_script(
            s,
            "Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin("
            "num_steps=%lld%s)), and forward and backward inside accumulate()%s",
            (long long)j->steps, j->zero >= 2 ? ", sync_each_batch=True" : "",
            j->zero >= 2 ? ": else whole gradients stay in memory between micro-batches"
                         : "");
    if (j->zero >= 2 && topt_job_is_mixed(j))
        topt_sheet_differs(s, "gradients are reduced in %s, not in f32",
                           j->precision == JOB_F16_MIXED ? "fp16" : "bf16");
    /* accelerate's own wraps each module of a block by itself, and so keeps several inputs of it.
     */
    if (j->recompute)
        topt_sheet_script(s, "model.gradient_checkpointing_enable()");
    topt_job_offload_kept(j, s);
    if (j->precision == JOB_BF16)
        topt_sheet_script(s, "the model is loaded in bf16");
    if (j->tp > 1)
        topt_sheet_script(s, "the model is loaded with tp_plan=\"auto\" on the mesh that "
                             "Accelerator makes");
    if (j->zero == 2 && j->steps > 1)
        topt_sheet_differs(s, "parameters are gathered anew in each micro-batch");
}

int topt_launch_accelerate(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0};
    if (check(j, err))
        return -1;
    topt_job_import_here(&t);
    topt_text_add(&t, "accelerate launch --config_file \"$here/accelerate.yaml\" \\\n");
    if (j->nodes > 1)
        topt_text_add(&t, "    --machine_rank \"${SLURM_NODEID:-$NODE_RANK}\" "
                          "--main_process_ip \"$MASTER_ADDR\" \\\n");
    topt_text_add(&t,
                  "    --main_process_port \"${MASTER_PORT:-29500}\" train.py \"$@\"\n");
    if (topt_sheet_file(s, "launch.sh", &t, err))
        return -1;
    remarks(j, s);
    return write_config(j, s, err) || topt_job_write_train(j, s, err) ? -1 : 0;
}
