/* rows.c - published runs, read from files of one set of columns.
 *
 * Every cell is as its source has it; nothing is a prediction's.  Of a table stand here all rows
 * that can be expressed, or those of one length of sequence; none was left out for being far off.
 * A cell that holds a comma or a quote stands in quotes, as RFC 4180 has it.  models.json holds the
 * public config.json of each model, and its parameters where they were published. */
#include "rows.h"

#include <ctype.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_digest.h"
#include "topt_hw.h"
#include "topt_model.h"
#include "topt_lower.h"
#include "topt_text.h"

enum kind { TEXT, COUNT, NUMBER };

#define COLUMN(kind, name)                                                               \
    {                                                                                    \
#name, kind, offsetof(struct row, name)                                          \
    }
static const struct column {
    const char *name;
    enum kind kind;
    size_t at;
} columns[] = {
    COLUMN(TEXT, source),
    COLUMN(TEXT, also),
    COLUMN(TEXT, at),
    COLUMN(COUNT, year),
    COLUMN(TEXT, group),
    COLUMN(TEXT, model),
    COLUMN(TEXT, named),
    COLUMN(TEXT, device),
    COLUMN(TEXT, hw),
    COLUMN(NUMBER, device_gib),
    COLUMN(COUNT, gpus),
    COLUMN(COUNT, per_node),
    COLUMN(COUNT, shards),
    COLUMN(COUNT, tensor),
    COLUMN(TEXT, sequence_parallel),
    COLUMN(COUNT, pipeline),
    COLUMN(COUNT, virtual),
    COLUMN(COUNT, context),
    COLUMN(COUNT, expert),
    COLUMN(COUNT, zero),
    COLUMN(TEXT, recompute),
    COLUMN(COUNT, seq),
    COLUMN(COUNT, documents),
    COLUMN(COUNT, batch),
    COLUMN(COUNT, micro),
    COLUMN(TEXT, precision),
    COLUMN(TEXT, train),
    COLUMN(TEXT, optimizer),
    COLUMN(TEXT, framework),
    COLUMN(TEXT, overlap),
    COLUMN(TEXT, eager),
    COLUMN(TEXT, attention),
    COLUMN(TEXT, gradients),
    COLUMN(TEXT, measure),
    COLUMN(NUMBER, value),
    COLUMN(NUMBER, memory_gib),
    COLUMN(NUMBER, beside_gib),
    COLUMN(TEXT, memory_kind),
    COLUMN(TEXT, outcome),
    COLUMN(TEXT, job),
    COLUMN(TEXT, ask),
    COLUMN(TEXT, needs),
    COLUMN(TEXT, note),
    COLUMN(TEXT, open),
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* ---- what a run needs ---------------------------------------------------------------------- */

static int in_stages(const struct row *r)
{
    return r->pipeline > 1;
}

/* PyTorch's own context parallelism, which a script has to write out, is none that its row of the planner has. */
static int in_contexts(const struct row *r)
{
    return r->context > 1 && strcmp(r->framework, "megatron") &&
           strcmp(r->framework, "torchtitan");
}

static int with_experts_apart(const struct row *r)
{
    return r->expert > 1;
}

/* A row with more ranks for experts than a stage has is misprinted, or its stages share them. */
static int with_experts_beyond(const struct row *r)
{
    return r->expert > 1 && r->expert * r->pipeline > r->gpus;
}

static int in_eight_bits(const struct row *r)
{
    return !strcmp(r->precision, "fp8");
}

static int with_adapters_split(const struct row *r)
{
    return *r->train && r->tensor > 1;
}

/* Mechanisms that a plan of ran.c may lack: those that the degrees tell, and words of the column
 * 'needs'.  A mechanism that ran.c learns is costed from then on. */
static const struct mechanism {
    const char *name;
    int (*needed)(const struct row *r); /* NULL: the column says it */
    int costed;
} mechanisms[] = {
    {"pipeline", in_stages, 1},
    {"context", in_contexts, 0},
    {"expert", with_experts_apart, 1},
    {"expert-ranks", with_experts_beyond, 0},
    /* DeepEP, or HybridEP: tokens go once to a node, not once to each expert. */
    {"dispatch", NULL, 1},
    /* A router for measuring, whose tokens take one after another as many experts as each is sent to. */
    {"runs-of-experts", NULL, 1},
    /* All-to-all of experts beside another micro-batch's compute, --schedule combined-1f1b. */
    {"expert-overlap", NULL, 1},
    /* DualPipe: the same in a V of two chunks a stage, each direction of its ranks a copy. */
    {"dualpipe", NULL, 1},
    /* --fp8-activation */
    {"fp8-activation", NULL, 1},
    /* An expert gets fewer than 4,096 tokens of a micro-batch, so that a device makes its products before the host
     * has started the next expert's: the time is the host's, whose share of Python is not known. */
    {"expert-host", NULL, 0},
    /* Biased experts with a clamped activation, and attention with sinks: Megatron-LM's passes are priced, but runs take
     * a third longer than that for reasons that are not known. */
    {"clamped-experts", NULL, 0},
    /* Modules that are recomputed, or a schedule that holds less, which no plan of ran.c has: the time is held against
     * the row, not whether it fits. */
    {"recipe-memory", NULL, 1},
    /* The prediction was held against the run while it was made: seen, whatever the group's hash says. */
    {"met", NULL, 1},
    /* The peak is of the last rank, so of the last stage. */
    {"last-rank", NULL, 1},
    /* Each chunk of a stage has as many layers, as Megatron-LM cuts them where it is not told otherwise. */
    {"even-stages", NULL, 1},
    /* "pipelines=N": a step fills and empties its pipeline N times, each with a part of the micro-batches. */
    {"pipelines", NULL, 1},
    /* Stages wait for what they send: each step of PyTorch's multi-stage schedules ends with its sends and receives up to
     * 2.9 (PipelineScheduleMulti of torch/distributed/pipelining/schedules.py). */
    {"sends-wait", NULL, 1},
    /* Schedules of these names. */
    {"zb-h1", NULL, 1},
    {"zbv", NULL, 1},
    /* All rates of the profile are from data sheets or assumed, and no run on the device told more yet: a time says how far
     * these are off.  Times of one job beside each other are held all the same. */
    {"assumed-rates", NULL, 0},
    {"fp8", in_eight_bits, 0},
    {"adapters-tensor", with_adapters_split, 0},
    {"async-tensor", NULL, 1},
    {"scan-tensor", NULL, 0},
    {"megatron-fsdp", NULL, 0},
    {"schedule", NULL, 0},
    /* Of activations, to the host: all that layers keep, or what modules do, "offload=core_attn+attn_proj". */
    {"offload", NULL, 1},
    {"optimizer-in-backward", NULL, 0},
    {"paged-optimizer", NULL, 0},
    {"linear-loss", NULL, 0},
    /* Logits and their loss by chunks of the sequence, --loss-kernel chunked-saved. */
    {"chunked-loss", NULL, 1},
    /* The loss fused by PyTorch's compiler, which holds a copy of the logits in f32 more than in place (Megatron-LM,
     * core/fusions/fused_cross_entropy.py, d98e8a6). */
    {"compiled-loss", NULL, 0},
    {"decoder-length", NULL, 0},
    {"distillation", NULL, 0},
    {"reinforcement-learning", NULL, 0},
    /* A module that predicts one more token (multi-token prediction), --mtp 1. */
    {"mtp", NULL, 1},
    {"model", NULL, 0},
    {"layout", NULL, 0},
};
enum { MECHANISMS = sizeof mechanisms / sizeof *mechanisms };

const char *row_mechanism(int i)
{
    return i < MECHANISMS ? mechanisms[i].name : NULL;
}

/* The words of a cell one by one: the next from '*at', its length in 'ret'; NULL at the end. */
static const char *next_word(const char **at, size_t *ret)
{
    const char *word = *at + strspn(*at, " ");
    *ret = strcspn(word, " ");
    *at = word + *ret;
    return *ret ? word : NULL;
}

/* Is a word the name of a mechanism, or that with something behind '='? */
static int is_word(const char *word, size_t n, const char *name)
{
    size_t len = strlen(name);
    return n >= len && !strncmp(word, name, len) && (n == len || word[len] == '=');
}

static int has_word(const char *cell, const char *name)
{
    size_t n;
    for (const char *word; (word = next_word(&cell, &n));)
        if (is_word(word, n, name))
            return 1;
    return 0;
}

int row_needs(const struct row *r, int i)
{
    const struct mechanism *m = &mechanisms[i];
    return m->needed ? m->needed(r) : has_word(r->needs, m->name);
}

int row_is_narrow(const struct row *r)
{
    return !in_eight_bits(r) && strpbrk(r->precision, "48") != NULL;
}

int row_uses(const struct row *r, const char *mechanism)
{
    return has_word(r->needs, mechanism);
}

void row_says(const struct row *r, const char *mechanism, char *ret, size_t size)
{
    size_t n, len = strlen(mechanism) + 1;
    const char *at = r->needs;
    *ret = '\0';
    for (const char *word; (word = next_word(&at, &n));)
        if (n > len && is_word(word, n, mechanism))
            snprintf(ret, size, "%.*s", (int)(n - len), word + len);
}

int row_lacks_only(const struct row *r, const char *mechanism)
{
    for (int i = 0; i < MECHANISMS; i++)
        if (!mechanisms[i].costed && row_needs(r, i) &&
            strcmp(mechanisms[i].name, mechanism) != 0)
            return 0;
    return !row_is_left_out(r);
}

int row_is_costed(const struct row *r)
{
    return row_lacks_only(r, "");
}

/* ---- files --------------------------------------------------------------------------------- */

struct reader {
    const char *file;
    char *at; /* what is not read yet */
    int line, column;
};

__attribute__((noreturn)) static void give_up(const struct reader *r, const char *why)
{
    fprintf(stderr, "%s:%d: column %d: %s\n", r->file, r->line, r->column + 1, why);
    exit(1);
}

__attribute__((noreturn)) static void refuse(const struct reader *r, const char *column,
                                             const char *cell, const char *why)
{
    fprintf(stderr, "%s:%d: %s '%s': %s\n", r->file, r->line, column, cell, why);
    exit(1);
}

/* The next cell, unquoted in place; the sign after it: ',', '\n' or '\0'. */
static char *next_cell(struct reader *r, char *end)
{
    char *from = r->at, *to = from, *in = from;
    int quoted = *in == '"';
    for (in += quoted; *in && (quoted || (*in != ',' && *in != '\n')); in++) {
        if (quoted && *in == '"' && *++in != '"')
            break;
        *to++ = *in;
    }
    if (*in && *in != ',' && *in != '\n')
        give_up(r, "',' or the end of the line is missing after '\"'");
    *end = *in;
    r->at = in + (*in != '\0');
    *to = '\0';
    return from;
}

static void put_cell(const struct reader *r, const char *cell, struct row *row)
{
    const struct column *c = &columns[r->column];
    char *field = (char *)row + c->at, *end = NULL;
    if (c->kind == TEXT)
        memcpy(field, &cell, sizeof cell);
    else if (c->kind == COUNT)
        *(int64_t *)field = strtoll(cell, &end, 10);
    else
        *(double *)field = strtod(cell, &end);
    if (end && (*end || (end == cell && *cell)))
        give_up(r, "a number is missing");
}

/* Put a line's cells into 'row', or hold the head against the columns where it is NULL. */
static void read_line(struct reader *r, struct row *row)
{
    char end = ',';
    for (r->column = 0; end == ','; r->column++) {
        char *cell = next_cell(r, &end);
        if (r->column == COLUMNS)
            give_up(r, "there are more cells than columns");
        if (row)
            put_cell(r, cell, row);
        else if (strcmp(cell, columns[r->column].name))
            refuse(r, "column", cell, columns[r->column].name);
    }
    if (r->column < COLUMNS)
        give_up(r, "there are fewer cells than columns");
}

static int is_among(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (!strcmp(word, *words))
            return 1;
    return 0;
}

/* What a reader of the row could not work with is refused, column by column. */
static void check(const struct reader *r, const struct row *row, const json_t *models)
{
    static const char *const measures[] = {"", "s", "tokens/s/gpu", "tflops/gpu", NULL};
    static const char *const kinds[] = {"",        "tensors",    "allocated", "reserved",
                                        "process", "at-failure", NULL};
    static const char *const gradients[] = {"", "throughout", "bf16", NULL};
    static const char *const outcomes[] = {"ran", "oom", "left out", NULL};
    const char *needs = row->needs;
    size_t n;
    if (!*row->source)
        refuse(r, "source", "", "give 'repository:path', a paper or a page");
    if (!is_among(row->outcome, outcomes))
        refuse(r, "outcome", row->outcome, "give ran, oom or left out");
    if (!is_among(row->gradients, gradients))
        refuse(r, "gradients", row->gradients, "give throughout or bf16");
    for (const char *word; (word = next_word(&needs, &n));) {
        int i = 0;
        while (i < MECHANISMS &&
               (mechanisms[i].needed || !is_word(word, n, mechanisms[i].name) ||
                (memchr(word, '=', n) && strcmp(mechanisms[i].name, "offload") &&
                 strcmp(mechanisms[i].name, "pipelines"))))
            i++;
        if (i == MECHANISMS)
            refuse(r, "needs", row->needs, "a word is no mechanism of rows.c");
    }
    if (row_is_left_out(row))
        return;
    if (!json_object_get(models, row->model) && !has_word(row->needs, "model"))
        refuse(r, "model", row->model, "models.json does not have it");
    if (!is_among(row->hw, topt_hw_shipped()))
        refuse(r, "hw", row->hw, "no such profile is shipped");
    if (!is_among(row->measure, measures))
        refuse(r, "measure", row->measure, "give s, tokens/s/gpu or tflops/gpu");
    if (!is_among(row->memory_kind, kinds))
        refuse(r, "memory_kind", row->memory_kind,
               "give tensors, allocated, reserved, process or at-failure");
    if (row_is_costed(row) && (row->gpus < 1 || row->per_node < 1 || row->tensor < 1 ||
                               row->batch < 1 || row->micro < 1 || row->seq < 1))
        refuse(r, "gpus ... micro", "",
               "gpus, per_node, tensor, seq, batch and micro count from 1");
}

/* rows/NAME, or a file by its whole path; owned. */
static char *text_of(const char *name)
{
    struct topt_error err = {0};
    char path[1024];
    size_t len;
    snprintf(path, sizeof path, "%s%s%s", *name == '/' ? "" : TOPT_BENCH_ROWS,
             *name == '/' ? "" : "/", name);
    char *text = topt_read_file(path, 1 << 24, &len, &err);
    if (text)
        return text;
    fprintf(stderr, "%s\n", err.text);
    exit(1);
}

void rows_read(const char *stem, struct rows *ret)
{
    char name[512];
    snprintf(name, sizeof name, "%s.csv", stem);
    struct reader r = {.file = name, .line = 1};
    json_t *models = rows_json("models");
    *ret = (struct rows){.text = text_of(name)};
    r.at = ret->text;
    read_line(&r, NULL);
    for (const char *p = r.at; *p; p++)
        ret->n += *p == '\n';
    ret->row = calloc((size_t)ret->n + 1, sizeof *ret->row);
    if (!ret->row)
        give_up(&r, "out of memory");
    for (ret->n = 0; *r.at; ret->n++) {
        r.line++;
        read_line(&r, &ret->row[ret->n]);
        check(&r, &ret->row[ret->n], models);
    }
    json_decref(models);
}

void rows_fini(struct rows *rows)
{
    free(rows->row);
    free(rows->text);
    *rows = (struct rows){0};
}

json_t *rows_json(const char *stem)
{
    char name[64];
    json_error_t where;
    snprintf(name, sizeof name, "%s.json", stem);
    char *text = text_of(name);
    json_t *doc = json_loads(text, 0, &where);
    free(text);
    if (doc)
        return doc;
    fprintf(stderr, "%s:%d: %s\n", name, where.line, where.text);
    exit(1);
}

__attribute__((noreturn)) static void no_model(const struct row *r, const char *why)
{
    fprintf(stderr, "models.json: '%s': %s\n", r->model, why);
    exit(1);
}

/* A row's entry of models.json, owned. */
static json_t *entry_of(const struct row *r)
{
    json_t *all = rows_json("models"), *of = json_incref(json_object_get(all, r->model));
    json_decref(all);
    if (!json_object_get(of, "config"))
        no_model(r, "is not there");
    return of;
}

struct topt_model *row_model(const struct row *r, int64_t batch)
{
    struct topt_error err = {0};
    struct topt_model_stats stats;
    struct topt_import_options o = {.batch = batch,
                                    .seq = r->seq,
                                    .document_length = r->documents,
                                    .mtp = row_uses(r, "mtp"),
                                    .train = *r->train ? r->train : NULL,
                                    .apart = r->context > 1 ? TOPT_APART_HEADS : 0};
    json_t *of = entry_of(r);
    const json_t *source = json_object_get(of, "config");
    int64_t positions =
        json_integer_value(json_object_get(source, "max_position_embeddings"));
    if (r->context > 1 && positions &&
        positions < r->seq) /* trained for longer samples */
        json_object_set_new((json_t *)source, "max_position_embeddings",
                            json_integer(r->seq));
    char *config = json_is_string(source) ? strdup(json_string_value(source))
                                          : json_dumps(source, JSON_COMPACT);
    int64_t published = json_integer_value(json_object_get(of, "parameters"));
    struct topt_model *m = topt_model_import(config, strlen(config), r->model, &o, &err);
    if (!m)
        no_model(r, err.text);
    topt_model_stats(m, &stats);
    topt_fail(&err, TOPT_ERR_INVAL, "has %lld parameters, published are %lld",
              (long long)stats.parameters, (long long)published);
    if (published && !*r->train && !o.mtp && stats.parameters != published)
        no_model(r, err.text);
    free(config);
    json_decref(of);
    return m;
}

static int64_t at_least_one(int64_t degree)
{
    return degree > 1 ? degree : 1;
}

int64_t row_data(const struct row *r)
{
    int64_t all =
        at_least_one(r->tensor) * at_least_one(r->pipeline) * at_least_one(r->context);
    return at_least_one(r->gpus / all);
}

int64_t row_accumulation(const struct row *r)
{
    int64_t data = row_data(r);
    return (r->batch + data * r->micro - 1) / (data * r->micro);
}

int64_t row_pipelines(const struct row *r)
{
    char times[8];
    row_says(r, "pipelines", times, sizeof times);
    return at_least_one(atoi(times));
}

int row_is_left_out(const struct row *r)
{
    return !strcmp(r->outcome, "left out");
}

/* Floating-point operations of a step by the authors' own count (Narayanan et al. 2021). */
static double counted_flops(const struct row *r)
{
    json_t *of = entry_of(r);
    int h = 0, layers = 0, vocab = 0;
    if (json_unpack(of, "{s:{s:i, s:i, s:i}}", "config", "n_embd", &h, "n_layer", &layers,
                    "vocab_size", &vocab))
        no_model(r, "is no GPT, whose operations the source counts");
    json_decref(of);
    double tokens = (double)(r->batch * r->seq), width = h;
    return 96 * tokens * layers * width * width *
           (1 + (double)r->seq / (6 * width) + vocab / (16 * layers * width));
}

double row_seconds(const struct row *r)
{
    double tokens = (double)(r->batch * r->seq);
    if (!strcmp(r->measure, "s"))
        return r->value;
    if (!strcmp(r->measure, "tokens/s/gpu"))
        return tokens / (r->value * (double)r->gpus);
    return strcmp(r->measure, "tflops/gpu")
               ? 0
               : counted_flops(r) / ((double)r->gpus * r->value * 1e12);
}

/* ---- runs that are kept apart ---------------------------------------------------------------- */

void row_group_name(const struct row *r, const char *source, char *buf, size_t size)
{
    snprintf(buf, size, "%s|%s|%s", source, *r->named ? r->named : r->model, r->device);
    for (; *buf; buf++)
        *buf = (char)tolower((unsigned char)*buf);
}

static int is_odd(const struct row *r, const char *source)
{
    char name[512], hex[TOPT_DIGEST_HEX];
    row_group_name(r, source, name, sizeof name);
    topt_sha256_hex(name, strlen(name), hex);
    return strchr("13579bdf", hex[strlen(hex) - 1]) != NULL;
}

int row_is_judged(const struct row *r)
{
    return is_odd(r, r->source) && (!*r->also || is_odd(r, r->also)) &&
           !row_uses(r, "met");
}

/* ---- words --------------------------------------------------------------------------------- */

void row_add_plan(const struct row *r, struct topt_text *to)
{
    static const char *const level[] = {"", ", ZeRO-1", ", ZeRO-2", ", ZeRO-3"};
    static const char *const recomputed[][2] = {
        {"blocks", ", blocks recomputed"},
        {"whole", ", blocks recomputed"},
        {"second", ", every second block recomputed"},
        {"products", ", all but every second product recomputed"},
        {"attention", ", attention recomputed"},
        {"up", ", projections recomputed"},
        {"projections", ", norms and projections recomputed"}};
    topt_text_add(to, "data %d", (int)row_data(r));
    if (r->tensor > 1)
        topt_text_add(to, " x tensor %d%s", (int)r->tensor,
                      strcmp(r->sequence_parallel, "on") ? "" : ", sequence parallel");
    topt_text_add(to, "%s",
                  r->zero == 3 && strcmp(r->framework, "deepspeed") ? ", FSDP"
                                                                    : level[r->zero]);
    if (r->shards && r->shards < r->gpus)
        topt_text_add(to, " of %d", (int)r->shards);
    if (*r->train)
        topt_text_add(to, ", %s", r->train);
    for (size_t i = 0; i < sizeof recomputed / sizeof *recomputed; i++)
        if (!strcmp(recomputed[i][0], r->recompute))
            topt_text_add(to, "%s", recomputed[i][1]);
    int64_t modules;
    if (!topt_modules_parse(r->recompute, &modules, NULL) && modules)
        topt_text_add(to, ", %s recomputed", r->recompute);
    if (r->pipeline > 1)
        topt_text_add(to, ", %d stages", (int)r->pipeline);
    if (r->virtual > 1)
        topt_text_add(to, " of %d parts each", (int)r->virtual);
    static const char *const schedules[] = {"zb-h1", "zbv"};
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
        if (row_uses(r, schedules[i]))
            topt_text_add(to, ", schedule %s", schedules[i]);
    if (r->context > 1)
        topt_text_add(to, ", positions over %d", (int)r->context);
    if (r->expert > 1)
        topt_text_add(to, ", experts over %d", (int)r->expert);
    topt_text_add(to, ", micro-batch %d", (int)r->micro);
    if (row_accumulation(r) > 1)
        topt_text_add(to, " x %d", (int)row_accumulation(r));
    if (row_pipelines(r) > 1)
        topt_text_add(to, " in %d pipelines", (int)row_pipelines(r));
    if (r->seq > 1)
        topt_text_add(to, ", %d positions", (int)r->seq);
    if (r->documents)
        topt_text_add(to, " of documents of %d", (int)r->documents);
    topt_text_add(to, ", %s", r->precision);
    if (strncmp(r->optimizer, "adam", 4) || !strcmp(r->optimizer, "adam8") ||
        !strcmp(r->optimizer, "adamw_bf16"))
        topt_text_add(to, ", %s", r->optimizer);
}

void row_print_plan(const struct row *r)
{
    struct topt_text plan = {0};
    row_add_plan(r, &plan);
    printf("%s", plan.s);
    topt_text_fini(&plan);
}

void row_print_source(const struct row *r)
{
    const char *colon = strchr(r->source, ':');
    if (colon)
        printf("github.com/%.*s:%s", (int)(colon - r->source), r->source, colon + 1);
    else
        printf("%s", r->source);
    if (*r->at)
        printf(" (%s)", r->at);
}
