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
#include "topt_model.h"
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
    COLUMN(TEXT, source),       COLUMN(TEXT, also),
    COLUMN(TEXT, at),           COLUMN(TEXT, group),
    COLUMN(TEXT, model),        COLUMN(TEXT, named),
    COLUMN(TEXT, device),       COLUMN(TEXT, hw),
    COLUMN(NUMBER, device_gib), COLUMN(COUNT, gpus),
    COLUMN(COUNT, per_node),    COLUMN(COUNT, shards),
    COLUMN(COUNT, tensor),      COLUMN(TEXT, sequence_parallel),
    COLUMN(COUNT, pipeline),    COLUMN(COUNT, context),
    COLUMN(COUNT, expert),      COLUMN(COUNT, zero),
    COLUMN(TEXT, recompute),    COLUMN(COUNT, seq),
    COLUMN(COUNT, batch),       COLUMN(COUNT, micro),
    COLUMN(TEXT, precision),    COLUMN(TEXT, train),
    COLUMN(TEXT, optimizer),    COLUMN(TEXT, framework),
    COLUMN(TEXT, overlap),      COLUMN(TEXT, eager),
    COLUMN(TEXT, attention),    COLUMN(TEXT, gradients),
    COLUMN(TEXT, measure),      COLUMN(NUMBER, value),
    COLUMN(NUMBER, memory_gib), COLUMN(NUMBER, beside_gib),
    COLUMN(TEXT, memory_kind),  COLUMN(TEXT, outcome),
    COLUMN(TEXT, job),          COLUMN(TEXT, ask),
    COLUMN(TEXT, note),         COLUMN(TEXT, open),
};
enum { COLUMNS = sizeof columns / sizeof *columns };

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
            give_up(r, columns[r->column].name);
    }
    if (r->column < COLUMNS)
        give_up(r, "there are fewer cells than columns");
    r->line++;
}

/* rows/NAME, owned. */
static char *text_of(const char *name)
{
    struct topt_error err = {0};
    char path[512];
    size_t len;
    snprintf(path, sizeof path, "%s/%s", TOPT_BENCH_ROWS, name);
    char *text = topt_read_file(path, 1 << 24, &len, &err);
    if (text)
        return text;
    fprintf(stderr, "%s\n", err.text);
    exit(1);
}

void rows_read(const char *stem, struct rows *ret)
{
    char name[64];
    snprintf(name, sizeof name, "%s.csv", stem);
    struct reader r = {.file = name, .line = 1};
    *ret = (struct rows){.text = text_of(name)};
    r.at = ret->text;
    read_line(&r, NULL);
    for (const char *p = r.at; *p; p++)
        ret->n += *p == '\n';
    ret->row = calloc((size_t)ret->n + 1, sizeof *ret->row);
    if (!ret->row)
        give_up(&r, "out of memory");
    for (ret->n = 0; *r.at; ret->n++)
        read_line(&r, &ret->row[ret->n]);
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
    if (!json_is_object(json_object_get(of, "config")))
        no_model(r, "is not there");
    return of;
}

struct topt_model *row_model(const struct row *r, int64_t batch)
{
    struct topt_error err = {0};
    struct topt_model_stats stats;
    struct topt_import_options o = {
        .batch = batch, .seq = r->seq, .train = *r->train ? r->train : NULL};
    json_t *of = entry_of(r);
    char *config = json_dumps(json_object_get(of, "config"), JSON_COMPACT);
    int64_t published = json_integer_value(json_object_get(of, "parameters"));
    struct topt_model *m = topt_model_import(config, strlen(config), r->model, &o, &err);
    if (!m)
        no_model(r, err.text);
    topt_model_stats(m, &stats);
    topt_fail(&err, TOPT_ERR_INVAL, "has %lld parameters, published are %lld",
              (long long)stats.parameters, (long long)published);
    if (published && !*r->train && stats.parameters != published)
        no_model(r, err.text);
    free(config);
    json_decref(of);
    return m;
}

int64_t row_accumulation(const struct row *r)
{
    int64_t data = r->gpus / r->tensor;
    return (r->batch + data * r->micro - 1) / (data * r->micro);
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
    return is_odd(r, r->source) && (!*r->also || is_odd(r, r->also));
}

/* ---- words --------------------------------------------------------------------------------- */

void row_print_plan(const struct row *r)
{
    static const char *const level[] = {"", ", ZeRO-1", ", ZeRO-2", ", ZeRO-3"};
    static const char *const recomputed[][2] = {
        {"blocks", ", blocks recomputed"},
        {"whole", ", blocks recomputed"},
        {"second", ", every second block recomputed"},
        {"products", ", all but every second product recomputed"},
        {"attention", ", attention recomputed"}};
    printf("data %d", (int)(r->gpus / r->tensor));
    if (r->tensor > 1)
        printf(" x tensor %d%s", (int)r->tensor,
               strcmp(r->sequence_parallel, "on") ? "" : ", sequence parallel");
    printf("%s",
           r->zero == 3 && strcmp(r->framework, "deepspeed") ? ", FSDP" : level[r->zero]);
    for (size_t i = 0; i < sizeof recomputed / sizeof *recomputed; i++)
        if (!strcmp(recomputed[i][0], r->recompute))
            printf("%s", recomputed[i][1]);
    printf(", micro-batch %d", (int)r->micro);
    if (row_accumulation(r) > 1)
        printf(" x %d", (int)row_accumulation(r));
    if (r->seq > 1)
        printf(", %d positions", (int)r->seq);
    printf(", %s", r->precision);
    if (strncmp(r->optimizer, "adam", 4) || !strcmp(r->optimizer, "adam8"))
        printf(", %s", r->optimizer);
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
