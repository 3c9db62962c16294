/* primus.c - Primus, which trains by Megatron-LM on AMD's GPUs: an experiment in YAML, and its launcher.
 *
 * The overrides of the experiment are Megatron-LM's arguments by the names of their variables (--tensor-model-parallel-size
 * is tensor_model_parallel_size), on top of presets, whose values differ from Megatron-LM's defaults: what a plan does not
 * switch on is switched off explicitly (primus/configs/modules/megatron/pre_trainer.yaml, models/megatron/language_model.yaml of
 * AMD-AGI/Primus at fd1eeab).  Schedules that make gradients of parameters apart are Primus's own
 * (core/pipeline_parallel/scheduler/algorithms), beside which gradients are reduced after all passes
 * (docs_deprecated/tech_blogs/primus_pipeline/primus_pipeline.md). */
#include "job.h"

#include <ctype.h>
#include <string.h>

/* Options whose key is not their own name; with a value of their own where they have none. */
static const struct renamed {
    const char *option, *key, *value;
} renamed[] = {
    {"--disable-bias-linear", "add_bias_linear", "false"},
    {"--fp8-format", "fp8", NULL},
    {"--microbatch-group-size-per-virtual-pipeline-stage",
     "microbatch_group_size_per_vp_stage", NULL},
};

/* Keys that presets set, and what is written where the plan has no such option. */
static const struct preset {
    const char *key, *otherwise;
    int of_model; /* of the architecture */
} presets[] = {
    {"sequence_parallel", "false", 0},
    {"use_distributed_optimizer", "false", 0},
    {"bf16", "false", 0},
    {"add_bias_linear", "true", 1},
    {"swiglu", "false", 1},
    {"untie_embeddings_and_output_weights", "false", 1},
};
enum { PRESETS = sizeof presets / sizeof *presets };

/* The next word of a shell's arguments, quotes left out; its length, 0 at the end. */
static size_t next_word(const char **at, const char **word)
{
    const char *p = *at + strspn(*at, " \\\n");
    int quoted = *p == '\'';
    *word = p + quoted;
    size_t n = strcspn(*word, quoted ? "'" : " \n");
    *at = *word + n + quoted;
    return n;
}

static int is(const char *word, size_t n, const char *of)
{
    return strlen(of) == n && !memcmp(word, of, n);
}

/* A scalar of YAML 1.1, where 1e-05 would be a text. */
static void put_value(const char *word, size_t n, struct topt_text *t)
{
    int plain = 1, number = isdigit((unsigned char)*word);
    for (size_t i = 0; i < n; i++)
        plain = plain && (isalnum((unsigned char)word[i]) || strchr("._-", word[i]));
    const char *e = number && plain ? memchr(word, 'e', n) : NULL;
    int whole = e && !memchr(word, '.', (size_t)(e - word));
    if (whole)
        topt_text_add(t, "%.*s.0%.*s", (int)(e - word), word,
                      (int)(n - (size_t)(e - word)), e);
    else
        topt_text_add(t, plain ? "%.*s" : "\"%.*s\"", (int)n, word);
}

/* NULL: the key is the option's own name. */
static const struct renamed *renamed_of(const char *option, size_t n)
{
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (is(option, n, renamed[i].option))
            return &renamed[i];
    return NULL;
}

/* The key of an option, 'r' where it is renamed; the bit of the preset that it sets, or 0. */
static int put_key(const char *option, size_t n, const struct renamed *r,
                   struct topt_text *t)
{
    size_t from = t->len;
    int set = 0;
    topt_text_add(t, "%s", r ? r->key : "");
    for (size_t i = 2; i < n && !r; i++)
        topt_text_add(t, "%c", option[i] == '-' ? '_' : option[i]);
    for (int i = 0; i < PRESETS && t->s; i++)
        set |= is(t->s + from, t->len - from, presets[i].key) << i;
    return set;
}

/* A line of the overrides for each option; bits of 'presets' that they set. */
static int put_options(const char *arguments, struct topt_text *t)
{
    const char *word, *at = arguments;
    int set = 0;
    for (size_t n = next_word(&at, &word); n;) {
        const struct renamed *r = renamed_of(word, n);
        topt_text_add(t, "      ");
        set |= put_key(word, n, r, t);
        topt_text_add(t, ": ");
        int list = is(word, n, "--recompute-modules"), values = 0;
        n = next_word(&at, &word);
        for (; n && strncmp(word, "--", 2) != 0; n = next_word(&at, &word)) {
            topt_text_add(t, "%s", values++ ? ", " : list ? "[" : "");
            put_value(word, n, t);
        }
        topt_text_add(t, "%s\n",
                      values          ? list ? "]" : ""
                      : r && r->value ? r->value
                                      : "true");
    }
    return set;
}

/* The schedule of its own that the plan has, by its name there; NULL: Megatron-LM's are the same. */
static const char *algorithm(const struct job *j)
{
    return j->pp == 1                     ? NULL
           : j->order == TOPT_ORDER_ZB_H1 ? "zero-bubble"
           : j->order == TOPT_ORDER_ZBV   ? "zbv-formatted"
                                          : NULL;
}

static int check(const struct job *j, struct topt_error *err)
{
    if (!algorithm(j) && !topt_launch_megatron_schedules(j))
        return topt_job_refuse(j, "primus", err, "Primus has no schedule %s",
                               topt_order_name(j->order));
    return j->per_node ? 0
                       : topt_job_refuse(j, "primus", err,
                                         "Primus takes one number of GPUs for all nodes");
}

/* What Primus's own schedules run with. */
static void put_schedule(const struct job *j, struct topt_text *t)
{
    const char *name = algorithm(j);
    if (name)
        topt_text_add(t,
                      "      patch_primus_pipeline: true\n"
                      "      pp_algorithm: %s\n"
                      "      overlap_grad_reduce: false\n"
                      "      overlap_param_gather: false\n"
                      "      no_persist_layer_norm: true\n"
                      "      create_attention_mask_in_dataloader: false\n"
                      "      gradient_accumulation_fusion: true\n",
                      name);
}

static int write_experiment(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0}, arguments = {0};
    int whole = topt_launch_megatron_arguments(j, &arguments, s, err);
    if (whole < 0 || arguments.oom) {
        topt_text_fini(&arguments);
        return whole < 0 ? -1
                         : topt_fail(err, TOPT_ERR_NOMEM, "no memory for the answer");
    }
    topt_text_add(&t,
                  "# The plan %s.\nwork_group: ${PRIMUS_TEAM:topt}\n"
                  "user_name: ${PRIMUS_USER:root}\nexp_name: ${PRIMUS_EXP_NAME:",
                  j->id);
    topt_job_put_name(j->name, &t);
    topt_text_add(&t, "}\nworkspace: ${PRIMUS_WORKSPACE:./output}\n\nmodules:\n"
                      "  pre_trainer:\n    framework: megatron\n"
                      "    config: pre_trainer.yaml\n    model: language_model.yaml\n"
                      "    overrides:\n");
    int set = put_options(arguments.s, &t);
    for (int i = 0; i < PRESETS; i++)
        if (!(set >> i & 1) && (whole || !presets[i].of_model))
            topt_text_add(&t, "      %s: %s\n", presets[i].key, presets[i].otherwise);
    put_schedule(j, &t);
    topt_text_fini(&arguments);
    if (!whole)
        topt_sheet_script(s, "name the model's preset in primus.yaml, in place of "
                             "language_model.yaml");
    return topt_sheet_file(s, "primus.yaml", &t, err);
}

int topt_launch_primus(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0};
    if (check(j, err))
        return -1;
    topt_sheet_script(s,
                      "run it in Primus's folder and container (PRIMUS=primus-cli where "
                      "it is installed); arguments are Primus's, as --train_iters 1000 "
                      "--mock_data true");
    topt_job_here(&t);
    topt_launch_megatron_queues(j, &t);
    topt_job_put_node(j, &t);
    topt_text_add(&t, "export NNODES=%lld GPUS_PER_NODE=%lld%s%s\n", (long long)j->nodes,
                  (long long)j->per_node, j->components > 1 ? " NODE_RANK=\"$node\"" : "",
                  j->nodes > 1 ? " MASTER_ADDR MASTER_PORT=\"${MASTER_PORT:-29500}\""
                               : "");
    topt_text_add(&t, "\"${PRIMUS:-./primus-cli}\" direct -- train pretrain --config "
                      "\"$here/primus.yaml\" \"$@\"\n");
    return topt_sheet_file(s, "launch.sh", &t, err) || write_experiment(j, s, err) ? -1
                                                                                   : 0;
}
