/* torchrun.c - PyTorch by its own means: a torchrun line, and topt_apply.py, which wraps a model
 * as the plan says (DDP, ZeroRedundancyOptimizer, fully_shard, DTensor, checkpointing).
 *
 * The Python file is a file of this folder, put into the library by the assembler; what is
 * written replaces its line "PLAN = {}" by the plan's numbers. */
#include "job.h"
#include "topt_launch.h"

#include <string.h>

__asm__(".pushsection .rodata\n"
        ".hidden topt_apply_source\n"
        ".global topt_apply_source\n"
        "topt_apply_source:\n"
        ".incbin \"topt_apply.py\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char topt_apply_source[] __attribute__((visibility("hidden")));

static void write_plan(const struct job *j, struct topt_text *t)
{
    topt_text_add(t,
                  "PLAN = {\"id\": \"%s\", \"dp\": %lld, \"tp\": %lld, \"zero\": %lld, "
                  "\"recompute\": %d,\n"
                  "        \"micro_batch\": %lld, \"accumulation\": %lld, "
                  "\"precision\": \"%s\"}\n",
                  j->id, (long long)j->dp, (long long)j->tp, (long long)j->zero,
                  j->recompute, (long long)j->micro, (long long)j->steps,
                  topt_job_precision(j->precision));
}

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

/* What fully_shard and DTensor can't do together, or not at all. */
static int check(const struct job *j, struct topt_error *err)
{
    if (topt_job_splits(j, "pytorch", 0, err))
        return -1;
    if (j->tp > 1 && j->dp > 1 && j->zero < 2)
        return topt_job_refuse(j, "pytorch", err,
                               "DDP does not take tensor parallel parameters, and this "
                               "plan has data %lld, tensor %lld, ZeRO-%lld",
                               (long long)j->dp, (long long)j->tp, (long long)j->zero);
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
    topt_job_start_torchrun(j, &t);
    topt_text_add(&t, " train.py\n");
    if (topt_sheet_file(s, "launch.sh", &t, err))
        return -1;
    topt_sheet_script(s, "train.py imports topt_apply: start(), apply(), optimizer(), "
                         "micro_batches(), rows()");
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
