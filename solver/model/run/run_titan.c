/* run_titan.c - a run of torchtitan: its TOML, its function in Python, or its command line.
 *
 * A setting is "parallelism.tensor_parallel_degree": an option of that name, a line of that section, or an
 * assignment to config.NAME.  Names and defaults are those of torchtitan/config at commit b5bcd76c, and
 * of the TOML files that it had before. */
#include "run.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE = 80 };

/* One line of the file, of the section in which it stands: is it the setting? */
static int is_setting(const char *line, size_t len, const char *section, const char *name,
                      char ret[VALUE])
{
    char key[2 * VALUE];
    size_t n = strcspn(line, "=\n");
    if (n >= len || n >= VALUE)
        return 0;
    const char *value = line + n + 1;
    while (n && isspace((unsigned char)line[n - 1]))
        n--;
    if (!strncmp(line, "config.", 7))
        snprintf(key, sizeof key, "%.*s", (int)n - 7, line + 7);
    else
        snprintf(key, sizeof key, "%s.%.*s", section, (int)n, line);
    if (strcmp(key, name))
        return 0;
    value += strspn(value, " \t\"'");
    snprintf(ret, VALUE, "%.*s",
             (int)strcspn(value, *value == '[' ? "]\r\n" : " \t\r\n\"'#"), value);
    return 1;
}

static int in_file(const struct run *r, const char *name, char ret[VALUE])
{
    char section[VALUE] = "";
    int found = 0;
    for (const char *line = r->text; *line && !found;) {
        size_t len = strcspn(line, "\n");
        const char *at = line + strspn(line, " \t");
        if (*at == '[')
            snprintf(section, sizeof section, "%.*s", (int)strcspn(at + 1, "]\n"),
                     at + 1);
        else if (at < line + len)
            found = is_setting(at, (size_t)(line + len - at), section, name, ret);
        line += len + (line[len] == '\n');
    }
    return found;
}

/* 1 and its text, 0 where nothing says it, -1. */
static int setting(struct run *r, const char *name, char ret[VALUE])
{
    char option[VALUE + 2], *value;
    snprintf(option, sizeof option, "--%s", name);
    int rc = run_text(r, option, &value);
    if (rc < 1)
        return rc ? -1 : in_file(r, name, ret);
    snprintf(ret, VALUE, "%s", value);
    free(value);
    return 1;
}

static int whole(struct run *r, const char *name, int64_t *ret)
{
    char text[VALUE];
    int rc = setting(r, name, text);
    if (rc < 1)
        return rc;
    if (!strcmp(text, "-1") || !strcmp(text, "None")) /* what is left, or none */
        return 0;
    return topt_parse_int(text, 1, 1 << 30, ret, r->err) ? topt_wrap(r->err, "%s", name)
                                                         : 0;
}

static int is_word(struct run *r, const char *name, const char *part)
{
    char text[VALUE];
    return setting(r, name, text) > 0 && strcasestr(text, part) != NULL;
}

/* A switch is on where it is true, and as an option without a value. */
static int is_on(struct run *r, const char *name)
{
    char text[VALUE], option[VALUE + 2];
    snprintf(option, sizeof option, "--%s", name);
    return setting(r, name, text) > 0 &&
           (!strcasecmp(text, "true") || (run_has(r, option) && strchr("-", *text)));
}

/* Ranks that hold replicas, those that shard, and where parameters are gathered once a step.  'ranks' are those of
 * the other degrees. */
static int read_sharding(struct run *r, int64_t stages, int64_t ranks)
{
    int64_t replicate = 1, shard = 0;
    const char reshard[] = "parallelism.fsdp_reshard_after_forward";
    if (whole(r, "parallelism.data_parallel_replicate_degree", &replicate) ||
        whole(r, "parallelism.data_parallel_shard_degree", &shard))
        return -1;
    int64_t sharing = shard ? shard : r->gpus / ranks / replicate;
    int gathered =
        is_word(r, reshard, "never") || (stages > 1 && !is_word(r, reshard, "always"));
    if (shard != 1 && sharing > 1)
        run_number(r, "shard_ranks", sharing);
    run_degree(r, "zero", shard == 1 ? 0 : gathered ? 2 : 3);
    return 0;
}

/* The lists in "module_fqns_per_model_part", one for each chunk; 0: it is not there. */
static int64_t count_parts(const struct run *r)
{
    const char *s = strstr(r->text, "module_fqns_per_model_part");
    int64_t depth = 0, parts = 0;
    s = s ? strchr(s, '[') : NULL;
    for (; s && *s; s++) {
        depth += *s == '[' ? 1 : *s == ']' ? -1 : 0;
        parts += *s == '[' && depth == 2;
        if (!depth)
            break;
    }
    return parts;
}

/* Its classes of schedules; chunks of each stage where nothing says them. */
static void read_schedule(struct run *r, int64_t stages)
{
    static const char name[] = "parallelism.pipeline_parallel_schedule";
    static const struct {
        const char *class, *schedule;
        int chunks;
    } rows[] = {{"GPipe", "gpipe", 1},
                {"InterleavedZeroBubble", "interleaved-zb", 2},
                {"Interleaved1F1B", "interleaved-1f1b", 2},
                {"ZBVZeroBubble", "zbv", 2},
                {"DualPipeV", "dualpipev", 2}};
    const char *schedule = "1f1b";
    int64_t chunks = 1, parts = count_parts(r);
    if (stages < 2)
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_word(r, name, rows[i].class)) {
            schedule = rows[i].schedule;
            chunks = rows[i].chunks;
        }
    if (is_word(r, name, "PipelineSchedule") || is_word(r, name, "LoopedBFS"))
        run_note(r, "the schedule is taken as 1F1B");
    run_word(r, "schedule", schedule);
    if (parts)
        run_degree(r, "vp", parts / stages > 1 ? parts / stages : 1);
    else if (!is_word(r, "parallelism.pipeline_parallel_layers_per_stage", ""))
        run_degree(r, "vp", chunks);
    run_note(r, "layers of stages are cut by topt");
}

/* Samples that a rank takes at once, and in a step, by the names of now and of before. */
static int read_batch(struct run *r, int64_t stages, int64_t ranks)
{
    int64_t seq = 0, local = 0, global = 0, tokens = 0, micro = 1, step = 0, pass = 1;
    char note[120];
    if (whole(r, "training.seq_len", &seq) ||
        whole(r, "training.max_context_length", &seq) ||
        whole(r, "training.local_batch_size", &local) ||
        whole(r, "training.global_batch_size", &global) ||
        whole(r, "parallelism.pipeline_parallel_microbatch_size", &micro) ||
        whole(r, "training.num_tokens_per_microbatch_per_dp_rank", &tokens) ||
        whole(r, "parallelism.num_pp_microbatches", &pass) ||
        whole(r, "training.num_tokens_per_train_step", &step))
        return -1;
    if (seq)
        run_number(r, "seq", seq);
    if (seq && tokens >= seq) {
        run_degree(r, "mbs", tokens / seq);
        global = step / seq;
        pass = stages > 1 ? pass : 1;
        /* Of an accumulation step, which is a whole one unless that is said. */
        local = tokens / seq * pass;
        if (stages > 1 && global && r->gpus && r->gpus / ranks * local < global) {
            snprintf(note, sizeof note,
                     "accumulation steps of %lld micro-batches (num_pp_microbatches) are "
                     "taken as one pass through the pipeline",
                     (long long)pass);
            run_note(r, note);
        }
    } else if (local) {
        run_degree(r, "mbs", stages > 1 ? micro : local);
    }
    run_batch(r, global, local, ranks);
    return 0;
}

static void read_recompute(struct run *r)
{
    static const char *const modes[] = {"activation_checkpoint.mode",
                                        "activation_checkpoint"};
    int full = 0, none = 0, op = 0;
    for (int i = 0; i < 2; i++) {
        full |= is_word(r, modes[i], "full");
        none |= is_word(r, modes[i], "none");
        op |= is_word(r, modes[i], "selective");
    }
    int layers = is_word(r, "activation_checkpoint.selective_ac_option", "") &&
                 !is_word(r, "activation_checkpoint.selective_ac_option", "op");
    if (layers || !(full || none || op))
        run_note(r, layers ? "recomputation of every so many layers is taken as none"
                           : "recomputation that is not said here is taken as none");
    if (op && !layers)
        run_degree_word(r, "recompute", "op");
    else
        run_degree(r, "recompute", full);
}

/* Is there a converter of linear modules, a class of now or a word of "model.converters" of before? */
static int converts(struct run *r, const char *class, const char *word)
{
    return strstr(r->text, class) || is_word(r, "model.converters", word);
}

/* FP8 with a scale for each tensor, the default, left torchtitan in 2026. */
static const char *read_float8(struct run *r)
{
    static const char *const names[] = {"float8.recipe_name",
                                        "quantize.linear.float8.recipe_name"},
                             *const gathers[] = {
                                 "float8.enable_fsdp_float8_all_gather",
                                 "quantize.linear.float8.enable_fsdp_float8_all_gather"};
    int rows = strstr(r->text, "Float8LinearConverter") != NULL;
    for (int i = 0; i < 2; i++)
        rows |= is_word(r, names[i], "rowwise");
    if (rows)
        return "fp8-rowwise";
    run_number(r, "software", 2025);
    if (is_on(r, gathers[0]) || is_on(r, gathers[1]))
        run_flag(r, "fp8_params");
    return "fp8-tensorwise";
}

static void read_precision(struct run *r)
{
    const char *wide = is_word(r, "training.mixed_precision_param", "float32") ? "f32"
                       : is_word(r, "training.dtype", "bfloat16")              ? "bf16"
                                                                  : "bf16-mixed";
    run_word(r, "precision",
             converts(r, "NVFP4LinearConverter", "nvfp4")     ? "nvfp4"
             : converts(r, "MXFP8LinearConverter", "mx")      ? "mxfp8"
             : converts(r, "Float8LinearConverter", "float8") ? read_float8(r)
                                                              : wide);
    if (is_word(r, "mx.recipe_name", "fp4") ||
        is_word(r, "quantize.linear.mx.recipe_name", "fp4"))
        run_note(r, "products in MXFP4 are taken as in MXFP8");
}

static void read_others(struct run *r)
{
    static const char *const async[] = {"compile.enable_async_tensor_parallel",
                                        "parallelism.enable_async_tensor_parallel",
                                        "experimental.enable_async_tensor_parallel"};
    int by_function = strstr(r->text, "config.") || strstr(r->text, "--module");
    if (is_on(r, "compile.enable") || is_on(r, "training.compile")) {
        run_word(r, "eager", "none");
        if (by_function) /* whose loss is chunked, compiled or not */
            run_word(r, "loss_kernel", "chunked");
    }
    for (int i = 0; i < 3; i++)
        if (is_on(r, async[i]))
            run_flag(r, "tensor_overlap");
    if (is_on(r, "training.enable_cpu_offload"))
        run_word(r, "offload", "parameters");
    if (is_word(r, "training.disable_cuda_graphs", "false"))
        run_flag(r, "cuda_graphs");
}

int run_read_titan(struct run *r)
{
    static const struct {
        const char *name, *key;
    } rows[] = {{"parallelism.tensor_parallel_degree", "tp"},
                {"parallelism.pipeline_parallel_degree", "pp"},
                {"parallelism.context_parallel_degree", "cp"},
                {"parallelism.expert_parallel_degree", "ep"}};
    int64_t n[4] = {1, 1, 1, 1};
    run_word(r, "framework", "torchtitan");
    for (int i = 0; i < 4; i++) {
        if (whole(r, rows[i].name, &n[i]))
            return -1;
        run_degree(r, rows[i].key, n[i]);
    }
    if (read_sharding(r, n[1], n[0] * n[1] * n[2]) ||
        read_batch(r, n[1], n[0] * n[1] * n[2]))
        return -1;
    read_schedule(r, n[1]);
    read_recompute(r);
    read_precision(r);
    read_others(r);
    return 0;
}
