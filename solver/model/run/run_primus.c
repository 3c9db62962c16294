/* run_primus.c - Primus's experiments: YAML, whose overrides are Megatron-LM's arguments by the names of their variables.
 *
 * A line "tensor_model_parallel_size: 8" is read as --tensor-model-parallel-size 8, on top of what Primus's presets say
 * otherwise than Megatron-LM (primus/configs/modules/megatron/pre_trainer.yaml, models/megatron/language_model.yaml at
 * fd1eeab).  Values have one line; ${NAME:VALUE} is VALUE. */
#include "run.h"

#include <ctype.h>
#include <string.h>

/* What presets say where an experiment says nothing. */
static const struct preset {
    const char *key, *argument;
} presets[] = {
    {"use_distributed_optimizer", "--use-distributed-optimizer"},
    {"bf16", "--bf16"},
    {"sequence_parallel", "--sequence-parallel"},
    {"micro_batch_size", "--micro-batch-size 2"},
    {"global_batch_size", "--global-batch-size 16"},
    {"seq_length", "--seq-length 1024"},
};
enum { PRESETS = sizeof presets / sizeof *presets };

/* Options by another name than their key's; "": not read. */
static const struct renamed {
    const char *key, *option;
} renamed[] = {
    {"fp8", "fp8-format"},
    {"fp4", "fp4-format"},
    {"fp4_param", "fp4-param-gather"},
    {"moe_token_dispatcher_type", ""},
    {"moe_enable_deepep", ""},
    {"moe_flex_dispatcher_backend", ""},
};

struct span {
    const char *at;
    size_t n;
};

static int is(struct span s, const char *word)
{
    return strlen(word) == s.n && !memcmp(s.at, word, s.n);
}

/* The line that begins here without its end, comment and blanks. */
static struct span line_at(const char *at)
{
    size_t n = strcspn(at, "\n");
    for (size_t i = 0; i + 1 < n; i++)
        if (at[i] == ' ' && at[i + 1] == '#')
            n = i;
    while (n && isspace((unsigned char)at[n - 1]))
        n--;
    return (struct span){at, n};
}

static const char *next_line(const char *at)
{
    at += strcspn(at, "\n");
    return at + (*at == '\n');
}

/* Key and value of "  key: value", and by how much it is indented: 1; 0: it is no such line. */
static int split(struct span line, int *indent, struct span *key, struct span *value)
{
    const char *end = line.at + line.n, *at = line.at;
    while (at < end && *at == ' ')
        at++;
    *indent = (int)(at - line.at);
    *key = (struct span){at, 0};
    while (at < end && (isalnum((unsigned char)*at) || *at == '_'))
        at++;
    key->n = (size_t)(at - key->at);
    if (!key->n || at == end || *at != ':')
        return 0;
    for (at++; at < end && *at == ' ';)
        at++;
    *value = (struct span){at, (size_t)(end - at)};
    return 1;
}

/* Without quotes, and of a variable what it is where nobody sets it. */
static struct span plain(struct span v)
{
    if (v.n > 3 && !memcmp(v.at, "${", 2) && v.at[v.n - 1] == '}') {
        const char *colon = memchr(v.at, ':', v.n);
        if (colon)
            v = (struct span){colon + 1, (size_t)(v.at + v.n - 1 - (colon + 1))};
    }
    if (v.n > 1 && (*v.at == '"' || *v.at == '\'') && v.at[v.n - 1] == *v.at)
        v = (struct span){v.at + 1, v.n - 2};
    return v;
}

static void put_value(struct span v, struct topt_text *t)
{
    int list = v.n > 1 && *v.at == '[';
    topt_text_add(t, list ? " " : " '");
    for (size_t i = 0; i < v.n; i++)
        if (list ? !strchr("[],'\"", v.at[i]) : v.at[i] != '\'')
            topt_text_add(t, "%c", v.at[i]);
    topt_text_add(t, list ? "" : "'");
}

/* A key as an argument: true is an option alone; false and null are none. */
static void put_argument(struct span key, struct span value, struct topt_text *t)
{
    const char *option = NULL;
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (is(key, renamed[i].key))
            option = renamed[i].option;
    if (!value.n || is(value, "false") || is(value, "null") || (option && !*option))
        return;
    topt_text_add(t, " --%s", option ? option : "");
    for (size_t i = 0; i < key.n && !option; i++)
        topt_text_add(t, "%c", key.at[i] == '_' ? '-' : key.at[i]);
    if (!is(value, "true"))
        put_value(value, t);
    topt_text_add(t, "\n");
}

/* The overrides as arguments: lines of one indent below "overrides:". */
static void put_arguments(const char *text, struct topt_text *t)
{
    int indent, outer = -1, inner = -1, said = 0;
    struct span key, value;
    for (const char *at = text; *at; at = next_line(at)) {
        if (!split(line_at(at), &indent, &key, &value))
            continue;
        if (outer >= 0 && indent <= outer)
            break;
        if (outer < 0) {
            outer = is(key, "overrides") ? indent : -1;
            continue;
        }
        inner = inner < 0 ? indent : inner;
        if (indent != inner)
            continue;
        for (int i = 0; i < PRESETS; i++)
            said |= is(key, presets[i].key) << i;
        put_argument(key, plain(value), t);
    }
    for (int i = 0; i < PRESETS; i++)
        if (!(said >> i & 1))
            topt_text_add(t, " %s\n", presets[i].argument);
}

/* The schedule that runs by Primus's own passes. */
static int read_schedule(struct run *r)
{
    static const char *const rows[][2] = {{"1f1b", "1f1b"},
                                          {"1f1b-interleaved", "interleaved-1f1b"},
                                          {"zero-bubble", "zb-h1"},
                                          {"zbv-formatted", "zbv"}};
    char *name = NULL;
    const char *schedule = NULL;
    if (run_has(r, "--patch-zero-bubble"))
        return topt_fail(
            r->err, TOPT_ERR_INVAL,
            "patch_zero_bubble has no counterpart here, so that the run can't "
            "be costed");
    if (!run_has(r, "--patch-primus-pipeline"))
        return 0;
    if (run_text(r, "--pp-algorithm", &name) < 0)
        return -1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(name ? name : "1f1b-interleaved", rows[i][0]))
            schedule = rows[i][1];
    int rc = schedule
                 ? 0
                 : topt_fail(r->err, TOPT_ERR_INVAL,
                             "pp_algorithm %.40s has no counterpart here, so that the "
                             "run can't be costed",
                             name);
    if (schedule)
        run_word(r, "schedule", schedule);
    free(name);
    return rc;
}

int run_is_primus(const struct run *r)
{
    return strstr(r->text, "pre_trainer:") && strstr(r->text, "overrides:");
}

int run_read_primus(struct run *r)
{
    struct topt_text arguments = {0};
    put_arguments(r->text, &arguments);
    int rc = arguments.oom
                 ? topt_nomem(r->err, "the experiment")
                 : topt_megatron_split(&r->words, arguments.s, arguments.len, r->err);
    topt_text_fini(&arguments);
    if (rc || run_read_megatron(r) || read_schedule(r))
        return -1;
    run_word(r, "framework", "primus");
    if (run_has(r, "--recompute-layer-ids"))
        run_note(r, "recompute_layer_ids: all layers are taken as recomputed");
    if (run_has(r, "--use-turbo-deepep"))
        run_note(r, "use_turbo_deepep: tokens are taken to go to experts by all-to-all");
    return 0;
}
