/* deepspeed.c - DeepSpeed: ds_config.json and its launcher.
 *
 * Its batch equation multiplies micro-batch and accumulation by all ranks, those of tensor
 * parallelism included, so the batch itself is only written where there is none.  Pipeline stages are
 * code there: topt_pipeline.py has the module that makes them. */
#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "topt_json.h"

/* The optimizer's share on the host is said of ZeRO-3 alone. */
static void put_offload(const struct job *j, json_t *zero)
{
    json_t *o;
    if (j->offload & JOB_HOST_STATES) {
        o = json_pack("{s:s, s:b}", "device", "cpu", "pin_memory", 1);
        if (j->offload_permille < 1000)
            json_object_set_new(o, "ratio",
                                json_real((double)j->offload_permille / 1000));
        json_object_set_new(zero, "offload_optimizer", o);
    }
    if (j->offload & JOB_HOST_PARAMETERS)
        json_object_set_new(zero, "offload_param",
                            json_pack("{s:s, s:b}", "device", "cpu", "pin_memory", 1));
}

static json_t *config(const struct job *j)
{
    json_t *c = json_pack("{s:I, s:I, s:{s:I}, s:{s:b}}",
                          "train_micro_batch_size_per_gpu", (json_int_t)j->micro,
                          "gradient_accumulation_steps", (json_int_t)j->steps,
                          "zero_optimization", "stage", (json_int_t)topt_job_zero(j),
                          j->precision == JOB_F16_MIXED ? "fp16" : "bf16", "enabled",
                          j->precision != JOB_F32);
    if (!c)
        return NULL;
    /* By itself it hides communication from level 3 on alone. */
    if (j->overlap && j->zero >= 1)
        json_object_set_new(json_object_get(c, "zero_optimization"), "overlap_comm",
                            json_true());
    put_offload(j, json_object_get(c, "zero_optimization"));
    if (j->gradient_f32)
        json_object_set_new(c, "data_types",
                            json_pack("{s:s}", "grad_accum_dtype", "fp32"));
    if (!strcmp(j->optimizer, "muon"))
        json_object_set_new(c, "optimizer",
                            json_pack("{s:s, s:{}}", "type", "Muon", "params"));
    if (j->tp == 1)
        json_object_set_new(c, "train_batch_size", json_integer(j->batch));
    else
        json_object_set_new(c, "tensor_parallel",
                            json_pack("{s:I}", "autotp_size", (json_int_t)j->tp));
    if (j->pp > 1) /* 1: each layer is checkpointed */
        json_object_set_new(
            c, "pipeline",
            json_pack("{s:i}", "activation_checkpoint_interval", j->recompute));
    if (j->precision == JOB_BF16) {
        json_t *b = json_object_get(c, "bf16");
        json_object_set_new(b, "bf16_master_weights_and_grads", json_true());
        json_object_set_new(b, "bf16_optimizer_states", json_true());
    }
    return c;
}

/* Layers whose class is named are dealt out equally; what stands before and behind them stays with the
 * first and the last stage. */
static int write_stages(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0};
    topt_text_add(
        &t,
        "\"\"\"The pipeline stages of the plan %s.\"\"\"\n"
        "from deepspeed.pipe import PipelineModule\n\n\n"
        "def stages(layers, loss_fn, block):\n"
        "    \"\"\"Layers in the order of the model; block: the class of those that "
        "repeat, by name.\"\"\"\n"
        "    return PipelineModule(layers=layers, loss_fn=loss_fn, "
        "num_stages=%lld, partition_method=\"type:\" + block)\n",
        j->id, (long long)j->pp);
    return topt_sheet_file(s, "topt_pipeline.py", &t, err);
}

static int write_config(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0};
    json_t *c = config(j);
    char *text = c ? topt_json_text(c, 2) : NULL;
    json_decref(c);
    if (text)
        topt_text_add(&t, "%s\n", text);
    else
        t.oom = 1;
    free(text);
    return topt_sheet_file(s, "ds_config.json", &t, err);
}

static void remarks(const struct job *j, struct sheet *s)
{
    if (!strcmp(j->optimizer, "muon"))
        topt_sheet_script(s,
                          "the learning rate is optimizer.params.lr of ds_config.json, "
                          "and the data loader gives %lld sample%s per rank at a time",
                          (long long)j->micro, j->micro == 1 ? "" : "s");
    else
        topt_sheet_script(
            s,
            "deepspeed.initialize() gets the optimizer (%s); the data loader gives "
            "%lld sample%s per rank at a time",
            !(j->offload & JOB_HOST_STATES) ? j->calls
            : strcmp(j->optimizer, "adamw")
                ? "deepspeed.ops.adam.DeepSpeedCPUAdam with adamw_mode=False"
                : "deepspeed.ops.adam.DeepSpeedCPUAdam",
            (long long)j->micro, j->micro == 1 ? "" : "s");
    if (j->pp > 1)
        topt_sheet_script(s,
                          "the model is topt_pipeline.stages(LAYERS, LOSS, CLASS), and "
                          "engine.train_batch(ITERATOR) takes a step of %lld "
                          "micro-batches",
                          (long long)j->steps);
    else if (j->recompute)
        topt_sheet_script(s,
                          "model.gradient_checkpointing_enable(): the configuration can "
                          "only tune checkpoints that the model makes");
    if (j->tp > 1) {
        topt_sheet_script(s,
                          "the ranks of a tensor parallel group (%lld neighbours) load "
                          "the same samples; the batch that DeepSpeed prints counts "
                          "them all",
                          (long long)j->tp);
        topt_sheet_differs(s, "embeddings are not split");
    }
}

/* On one node those GPUs of it that the job has.  On several the launcher is started on each, so
 * that it needs no ssh: names of hosts only number them, and it is told which one it is on.  The
 * hostfile says how many GPUs each has. */
static void write_start(const struct job *j, struct topt_text *t)
{
    topt_job_import_here(t);
    topt_job_put_node(j, t);
    topt_text_add(t, "deepspeed");
    if (j->nodes > 1) {
        topt_text_add(t,
                      " --hostfile \"$here/hostfile\" --no_ssh \\\n"
                      "    --node_rank \"%s\" "
                      "--master_addr \"$MASTER_ADDR\" \\\n",
                      j->components > 1 ? "$node" : "${SLURM_NODEID:-$NODE_RANK}");
        topt_text_add(t, "    --num_nodes %lld", (long long)j->nodes);
        if (j->per_node)
            topt_text_add(t, " --num_gpus %lld", (long long)j->per_node);
    } else {
        topt_text_add(t, " --include \"localhost:${CUDA_VISIBLE_DEVICES:-0");
        for (int64_t i = 1; i < j->per_node; i++)
            topt_text_add(t, ",%lld", (long long)i);
        topt_text_add(t, "}\"");
    }
    topt_text_add(t, " --master_port \"${MASTER_PORT:-29500}\" \\\n"
                     "    train.py --deepspeed_config \"$here/ds_config.json\" \"$@\"\n");
}

static int write_hosts(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0};
    int64_t node = 0;
    for (int c = 0; c < j->components; c++)
        for (int64_t i = 0; i < j->component[c].nodes; i++)
            topt_text_add(&t, "node-%lld slots=%lld\n", (long long)node++,
                          (long long)j->component[c].per_node);
    return topt_sheet_file(s, "hostfile", &t, err);
}

int topt_launch_deepspeed(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0};
    if (topt_job_splits(j, "deepspeed", 0, err) || topt_job_train_fits(j, 3, err))
        return -1;
    if (j->tp > 1 && j->pp > 1)
        return topt_job_refuse(j, "deepspeed", err,
                               "DeepSpeed's AutoTP splits models of transformers, not "
                               "the layers of pipeline stages");
    if (j->tp > 1 && j->model.experts)
        return topt_job_refuse(j, "deepspeed", err,
                               "DeepSpeed does not split experts by tensor parallelism");
    if (j->offload & JOB_HOST_STATES && strcmp(j->optimizer, "adamw") &&
        strcmp(j->optimizer, "adam"))
        return topt_job_refuse(j, "deepspeed --optimizer adamw", err,
                               "DeepSpeed has Adam and AdamW on the host, not %.40s",
                               j->optimizer);
    if (j->precision == JOB_BF16 && j->zero == 0)
        return topt_job_refuse(j, "deepspeed", err,
                               "DeepSpeed keeps optimizer states in bf16 only with ZeRO");
    write_start(j, &t);
    if (topt_sheet_file(s, "launch.sh", &t, err))
        return -1;
    remarks(j, s);
    if (write_config(j, s, err) || topt_job_write_train(j, s, err) ||
        (j->pp > 1 && write_stages(j, s, err)))
        return -1;
    return j->nodes > 1 ? write_hosts(j, s, err) : 0;
}
