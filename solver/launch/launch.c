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

static const struct target {
    const char *name, *framework;
    int (*write)(const struct job *j, struct sheet *s, struct topt_error *err);
    struct topt_launch_pin pin;
} targets[] = {
    {"torchrun",
     "pytorch",
     topt_launch_torchrun,
     {"pytorch/pytorch", "v2.14.1", "2026-10-20",
      "run on the CPU with a small GPT on 2026-11-22, not on GPUs"}},
    {"accelerate",
     "pytorch",
     topt_launch_accelerate,
     {"huggingface/accelerate", "16cb6eb80dd9aa8b4df1a63ef57863e455d53b83", "2026-07-24",
      "read by the launcher of 1.14.0 on 2026-11-22, not run"}},
    {"deepspeed",
     "deepspeed",
     topt_launch_deepspeed,
     {"deepspeedai/DeepSpeed", "edaa7221267243c7be7fb49c5d5f5c4fb97b4641", "2026-08-22",
      "not run"}},
    {"megatron",
     "megatron",
     topt_launch_megatron,
     {"NVIDIA/Megatron-LM", "d98e8a64ddf34856e74b24714e3bedb2f5a39553", "2026-08-22",
      "not run"}},
    {"torchtitan",
     "torchtitan",
     topt_launch_torchtitan,
     {"pytorch/torchtitan", "b5bcd76c66d0acb1a08b176d9639425bc55e0b2a", "2026-08-21",
      "not run"}},
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

/* Put what is to be known before the command, in the file that holds it. */
static int head(const struct target *t, const struct job *j, const struct sheet *s,
                struct topt_error *err)
{
    json_t *first = json_array_get(s->files, 0);
    struct topt_text text = {0};
    const char *command = member(first, "text");
    topt_text_add(&text, "#!/bin/sh\n# plan %s for %s: %s\n", j->id, t->name,
                  json_array_size(s->differs) ? "not exact, see what differs" : "exact");
    topt_text_add(&text, "# names checked against %s %.12s (%s), %s\n", t->pin.repository,
                  t->pin.commit, t->pin.date, t->pin.run);
    add_remarks(&text, "differs", s->differs);
    add_remarks(&text, "script", s->script);
    topt_text_put(&text, command, strlen(command));
    int rc = text.oom ? -1 : json_object_set_new(first, "text", json_string(text.s));
    topt_text_fini(&text);
    return rc ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for the answer") : 0;
}

char *topt_launch_text(const json_t *launch)
{
    struct topt_text t = {0};
    size_t i;
    json_t *f;
    json_array_foreach(json_object_get(launch, "files"), i, f)
    {
        const char *text = member(f, "text");
        if (i)
            topt_text_add(&t, "\n# ---- %s\n", member(f, "name"));
        topt_text_put(&t, text, strlen(text));
    }
    if (t.oom) {
        topt_text_fini(&t);
        return NULL;
    }
    return t.s;
}

/* ---- the answer -------------------------------------------------------------------------- */

static int check(const struct job *j, const struct target *t, struct sheet *s,
                 struct topt_error *err)
{
    if (!strcmp(j->framework, "topt"))
        topt_sheet_differs(
            s, "memory and time of this plan are those of topt's own runtime");
    else if (strcmp(j->framework, t->framework))
        return topt_job_refuse(j, t->framework, err, "this plan was made for %.20s",
                               j->framework);
    if (j->precision == JOB_F64)
        return topt_job_refuse(j, t->framework, err, "%s does not train in f64", t->name);
    return 0;
}

int topt_launch(const json_t *plan, const char *target, json_t **ret,
                struct topt_error *err)
{
    const struct target *t = find(target);
    struct job j;
    if (!t)
        return topt_fail(err, TOPT_ERR_NOTFOUND,
                         "no target '%.40s'; there are torchrun, accelerate, deepspeed, "
                         "megatron, torchtitan",
                         target);
    if (topt_job_read(plan, &j, err))
        return -1;
    struct sheet s = {json_array(), json_array(), json_array()};
    int rc = check(&j, t, &s, err);
    rc = rc ? rc : t->write(&j, &s, err);
    rc = rc ? rc : head(t, &j, &s, err);
    if (!rc) {
        *ret = json_pack("{s:s, s:s, s:s, s:{s:s, s:s, s:s, s:s}, s:b, s:O, s:O, s:O}",
                         "target", t->name, "framework", t->framework, "plan", j.id,
                         "pin", "repository", t->pin.repository, "commit", t->pin.commit,
                         "date", t->pin.date, "run", t->pin.run, "exact",
                         !json_array_size(s.differs), "differs", s.differs, "script",
                         s.script, "files", s.files);
        if (!*ret)
            rc = topt_fail(err, TOPT_ERR_NOMEM, "no memory for the answer");
    }
    json_decref(s.differs);
    json_decref(s.script);
    json_decref(s.files);
    return rc;
}

/* ---- as environment ---------------------------------------------------------------------- */

int topt_launch_environment(const json_t *plan, json_t **ret, struct topt_error *err)
{
    struct job j;
    char number[24];
    if (topt_job_read(plan, &j, err))
        return -1;
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"TOPT_GPUS", j.gpus},
                   {"TOPT_NODES", j.nodes},
                   {"TOPT_GPUS_PER_NODE", j.per_node},
                   {"TOPT_DP", j.dp},
                   {"TOPT_TP", j.tp},
                   {"TOPT_FSDP", j.zero},
                   {"TOPT_RECOMPUTE", j.recompute},
                   {"TOPT_MICRO_BATCH", j.micro},
                   {"TOPT_ACCUMULATION", j.steps},
                   {"TOPT_BATCH", j.batch},
                   {"TOPT_SEQ", j.seq}};
    json_t *e = json_object();
    json_object_set_new(e, "TOPT_PLAN_ID", json_string(j.id));
    json_object_set_new(e, "TOPT_FRAMEWORK", json_string(j.framework));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(number, sizeof number, "%lld", (long long)numbers[i].value);
        json_object_set_new(e, numbers[i].name, json_string(number));
    }
    json_object_set_new(e, "TOPT_PRECISION",
                        json_string(topt_job_precision(j.precision)));
    struct topt_text t = {0};
    topt_text_add(&t, "--nnodes=%lld --nproc-per-node=%lld%s", (long long)j.nodes,
                  (long long)j.per_node, j.nodes > 1 ? "" : " --standalone");
    int rc = t.oom ? -1 : json_object_set_new(e, "TOPT_TORCHRUN", json_string(t.s));
    topt_text_fini(&t);
    if (rc) {
        json_decref(e);
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the environment");
    }
    *ret = e;
    return 0;
}
