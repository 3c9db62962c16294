/* cmd_model.c - topt import (any model to a native document) and topt inspect (its numbers
 * that people check first). */
#include "topt_cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "topt_error.h"
#include "topt_json.h"
#include "topt_model.h"
#include "topt_options.h"
#include "topt_text.h"

struct args {
    struct topt_import_options import;
    const char *out, *weights;
    int json;
};

#define BATCH_AND_SEQ                                                                    \
    {"batch", TOPT_OPT_COUNT, offsetof(struct args, import.batch), "N",                  \
     "global batch size (default: the model's, or 8)"},                                  \
    {                                                                                    \
        "seq", TOPT_OPT_COUNT, offsetof(struct args, import.seq), "N",                   \
            "sequence length (default: the model's, at most 1024)"                       \
    }

#define LOSS_AND_TRAIN                                                                   \
    {"loss", TOPT_OPT_STRING, offsetof(struct args, import.loss), "NAME",                \
     "loss of an ONNX graph: cross_entropy or mse (default: by its output)"},            \
        {"as", TOPT_OPT_STRING, offsetof(struct args, import.as), "FAMILY",              \
         "read a config of an unknown family as this family"},                           \
        {"part", TOPT_OPT_STRING, offsetof(struct args, import.part), "PART",            \
         "part of a multimodal config: text"},                                           \
        {"capacity", TOPT_OPT_POSITIVE, offsetof(struct args, import.capacity), "X",     \
         "capacity factor of mixtures of experts (default: no token is dropped)"},       \
        {"mtp", TOPT_OPT_COUNT, offsetof(struct args, import.mtp), "N",                  \
         "modules that predict further tokens (multi-token prediction; default: none)"}, \
    {                                                                                    \
        "train", TOPT_OPT_STRING, offsetof(struct args, import.train), "WHAT",           \
            "all (default), names, or lora[:RANK[:NAMES]]; +4bit or +8bit"               \
    }

static const struct topt_option import_table[] = {
    TOPT_EXAMPLE("topt import config.json --batch 8 --seq 1024 -o model.json",
                 "the model operator by operator"),
    BATCH_AND_SEQ,
    LOSS_AND_TRAIN,
    {"o", TOPT_OPT_STRING, offsetof(struct args, out), "FILE",
     "write there, - is stdout"},
    {0}};

static const struct topt_option inspect_table[] = {
    TOPT_EXAMPLE("topt inspect config.json --batch 8 --seq 4096",
                 "how large it is, and where its operations are"),
    BATCH_AND_SEQ,
    LOSS_AND_TRAIN,
    {"json", TOPT_OPT_FLAG, offsetof(struct args, json), NULL, "print JSON"},
    {0}};

/* Parse and load.  NULL with '*ret_status' set where the command is over; weights that
 * come without a config are no model: then their path is in 'args'. */
static struct topt_model *begin(const char *usage, const struct topt_option *table,
                                int argc, char **argv, struct args *args, int *ret_status)
{
    struct topt_error err;
    const char *path = NULL;
    struct topt_model *m = NULL;
    int n, rc = topt_options_parse(table, argc, argv, args, &path, 1, &n, &err);
    *ret_status = 0;
    if (rc == 1) {
        topt_options_help(stdout, usage, table);
        return NULL;
    }
    if (!rc && !path)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "which model? try --help");
    if (!rc && table == inspect_table && topt_weights_alone(path)) {
        args->weights = path;
        return NULL;
    }
    if (!rc)
        m = topt_model_load(path, &args->import, &err);
    if (!m) {
        fprintf(stderr, "topt %s: %s\n", argv[0], err.text);
        *ret_status = topt_err_exit(err.code);
    }
    return m;
}

int topt_cmd_import(int argc, char **argv)
{
    struct args args = {0};
    struct topt_error err;
    int status;
    struct topt_model *m = begin("topt import MODEL [options] -o model.json\n"
                                 "A model as topt's own document.",
                                 import_table, argc, argv, &args, &status);
    if (!m)
        return status;
    json_t *doc = topt_model_to_json(m);
    int rc = doc ? topt_cli_write_json(doc, args.out ? args.out : "-", &err)
                 : topt_fail(&err, TOPT_ERR_NOMEM, "no memory for the document");
    if (rc) {
        fprintf(stderr, "topt import: %s\n", err.text);
        status = topt_err_exit(err.code);
    }
    json_decref(doc);
    topt_model_destroy(m);
    return status;
}

/* The next kind of the table that has a name of its own (rows of several ranks share one) and
 * operators in the model; NULL past the end. */
static const char *next_kind(const struct topt_model *m, int *at,
                             struct topt_model_stats *ret)
{
    const struct topt_op_spec *row;
    while ((row = topt_op_spec_at(*at))) {
        int first = 1;
        for (int k = 0; k < *at; k++)
            first &= strcmp(topt_op_spec_at(k)->name, row->name) != 0;
        ++*at;
        if (first)
            topt_model_kind_stats(m, row->name, ret);
        if (first && ret->operators)
            return row->name;
    }
    return NULL;
}

static int inspect_json(const struct topt_model *m, const struct topt_model_stats *s)
{
    json_t *kinds = json_object();
    struct topt_model_stats one;
    const char *kind;
    for (int k = 0; (kind = next_kind(m, &k, &one));)
        json_object_set_new(
            kinds, kind,
            json_pack("{s:I, s:I, s:I, s:I, s:I}", "operators", (json_int_t)one.operators,
                      "parameters", (json_int_t)one.parameters, "trained",
                      (json_int_t)one.trained, "flops_per_sample",
                      (json_int_t)one.flops_per_sample, "activation_bytes_per_sample",
                      (json_int_t)one.activation_bytes_per_sample));
    json_t *doc = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "name", m->name, "batch",
        (json_int_t)m->batch, "seq", (json_int_t)m->seq, "vocab", (json_int_t)m->vocab,
        "parameters", (json_int_t)s->parameters, "trained", (json_int_t)s->trained,
        "operators", (json_int_t)s->operators, "flops_per_sample",
        (json_int_t)s->flops_per_sample, "activation_bytes_per_sample",
        (json_int_t)s->activation_bytes_per_sample, "kinds", kinds);
    if (doc)
        json_object_set_new(doc, "model_flops_per_sample",
                            json_integer(s->model_flops_per_sample));
    if (doc)
        json_object_set_new(doc, "masked_flops_per_sample",
                            json_integer(s->masked_flops_per_sample));
    if (doc && m->note)
        json_object_set_new(doc, "note", json_string(m->note));
    if (doc && m->train)
        json_object_set_new(doc, "train", json_string(m->train));
    if (doc && m->plan_only)
        json_object_set_new(doc, "plan_only", json_string(m->plan_only));
    struct topt_error err;
    int rc = doc ? topt_cli_write_json(doc, "-", &err) : -1;
    json_decref(doc);
    return rc ? 1 : 0;
}

/* "124 439 808": digits in threes. */
static const char *in_threes(int64_t n, char buf[32])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)n), out = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            buf[out++] = ' ';
        buf[out++] = digits[i];
    }
    buf[out] = '\0';
    return buf;
}

/* "1.182 T": operations as people say them. */
static const char *in_powers(int64_t n, char *buf, size_t size)
{
    static const char unit[] = " KMGTPE";
    double x = (double)n;
    int i = 0;
    for (; x >= 1000 && i < 6; i++)
        x /= 1000;
    snprintf(buf, size, i ? "%.4g %c" : "%.0f", x, unit[i]);
    return buf;
}

/* What the loader brings: "x of image: b 256, c 3, h 224, w 224". */
static void put_data(struct topt_text *t, const struct topt_op *op, int operand)
{
    const struct topt_op_spec *spec = op->spec;
    topt_text_add(t, "  %-24s %s of %s:", t->len ? "" : "reads",
                  spec->operand[operand].name, op->name);
    for (int d = 0; d < topt_operand_rank(op, operand); d++) {
        const struct topt_dim *dim = &op->operand[operand].dim[d];
        topt_text_add(t, "%s %s %lld", d ? "," : "",
                      spec->dim[spec->operand[operand].dim[d]].name,
                      (long long)(dim->count * dim->unit));
    }
    int real = op->operand[operand].role != TOPT_DATA || spec->operand[operand].real;
    topt_text_add(t, real ? " (real numbers)\n" : " (integers)\n");
}

/* Does the loader bring this operand?  Of an operator that has nothing else it is the output. */
static int is_brought(const struct topt_op *op, int operand)
{
    if (!op->operand[operand].present || op->operand[operand].role == TOPT_DATA)
        return op->operand[operand].present;
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->operand[o].present && op->operand[o].role != TOPT_OUTPUT)
            return 0;
    return 1;
}

static void show_data(const struct topt_model *m)
{
    struct topt_text t = {0};
    for (int i = 0; i < m->nops; i++)
        for (int o = 0; o < m->op[i].spec->noperands; o++)
            if (is_brought(&m->op[i], o))
                put_data(&t, &m->op[i], o);
    fputs(t.s ? t.s : "", stdout);
    topt_text_fini(&t);
}

static void show_blocks(const struct topt_model *m)
{
    struct topt_blocks b = {0};
    struct topt_error err;
    if (topt_model_blocks(m, &b, &err))
        return;
    for (int k = 0; k < b.nkinds; k++)
        printf("  %-24s %d of %d operators each, starting at %s\n",
               k ? "" : "repeated blocks", b.of[k].count, b.of[k].length,
               m->op[b.of[k].first].name);
    topt_blocks_fini(&b);
}

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void show_kinds(const struct topt_model *m, const struct topt_model_stats *s)
{
    struct topt_model_stats one;
    const char *kind;
    char n[32], flops[32], bytes[32];
    printf("\n  %-17s %9s %18s  %4s %10s  %4s %17s\n", "kind", "operators", "parameters",
           "%", "FLOPs", "%", "activations, bf16");
    for (int k = 0; (kind = next_kind(m, &k, &one));)
        printf("  %-17s %9lld %18s  %4.1f %10s  %4.1f %17s\n", kind,
               (long long)one.operators, in_threes(one.parameters, n),
               percent(one.parameters, s->parameters),
               in_powers(one.flops_per_sample, flops, sizeof flops),
               percent(one.flops_per_sample, s->flops_per_sample),
               topt_show_bytes(one.activation_bytes_per_sample / 2, bytes, sizeof bytes));
}

/* A sentence below the table, each clause on a line of its own. */
static void show_note(const char *head, const char *note)
{
    enum { INDENT = 4, COLUMNS = 88 };
    struct topt_text t = {0};
    topt_text_add(&t, "\n  %s\n", head);
    while (*note) {
        size_t clause = strcspn(note, ";");
        topt_text_add(&t, "%*s", INDENT, "");
        topt_text_fold(&t, note, clause, INDENT, COLUMNS);
        topt_text_add(&t, "\n");
        note += clause + (note[clause] == ';');
    }
    fputs(t.s ? t.s : "", stdout);
    topt_text_fini(&t);
}

static void inspect_text(const struct topt_model *m, const struct topt_model_stats *s)
{
    char a[32], b[32], c[32];
    printf("%s: batch %lld", m->name, (long long)m->batch);
    if (m->seq > 1)
        printf(", sequence %lld", (long long)m->seq);
    if (m->vocab > 1)
        printf(", vocabulary or classes %lld", (long long)m->vocab);
    printf("\n");
    show_data(m);
    printf("  parameters               %s (%s in f32, %s in bf16)\n",
           in_threes(s->parameters, a), topt_show_bytes(4 * s->parameters, b, sizeof b),
           topt_show_bytes(2 * s->parameters, c, sizeof c));
    if (s->trained < s->parameters)
        printf("  trained                  %s (%.3g %%)%s%s\n", in_threes(s->trained, a),
               percent(s->trained, s->parameters), m->train ? ": " : "",
               m->train ? m->train : "");
    printf("  operators                %s\n", in_threes(s->operators, a));
    show_blocks(m);
    printf("  FLOPs per sample         %s: forward and backward as kernels run them, of "
           "attention what a mask leaves\n",
           in_powers(s->flops_per_sample, a, sizeof a));
    printf(
        "  model FLOPs per sample   %s: as MFU counts them, 3 x the products of forward, "
        "attention without its mask\n",
        in_powers(s->model_flops_per_sample, a, sizeof a));
    if (s->masked_flops_per_sample < s->model_flops_per_sample)
        printf("                           %s without what the mask of attention leaves "
               "out\n",
               in_powers(s->masked_flops_per_sample, a, sizeof a));
    printf("  activations per sample   %s in bf16, %s in f32, saved for backward\n",
           topt_show_bytes(s->activation_bytes_per_sample / 2, a, sizeof a),
           topt_show_bytes(s->activation_bytes_per_sample, b, sizeof b));
    show_kinds(m, s);
    if (m->note)
        show_note("note:", m->note);
    if (m->plan_only)
        show_note("topt run cannot train this model: no kernel for", m->plan_only);
}

/* ---- weights without a config ------------------------------------------------------ */

static int weights_json(const struct topt_weights_told *told)
{
    struct topt_error err;
    json_t *kinds = json_array(), *types = json_object();
    for (int i = 0; i < told->nkinds; i++)
        json_array_append_new(kinds,
                              json_pack("{s:s, s:i, s:I}", "name", told->kind[i].name,
                                        "tensors", told->kind[i].tensors, "parameters",
                                        (json_int_t)told->kind[i].numbers));
    for (int i = 0; i < told->ntypes; i++)
        json_object_set_new(types, told->type[i].name,
                            json_integer((json_int_t)told->type[i].bytes));
    json_t *doc =
        json_pack("{s:i, s:i, s:I, s:I, s:o, s:o}", "files", told->files, "tensors",
                  told->tensors, "parameters", (json_int_t)told->numbers, "bytes",
                  (json_int_t)told->bytes, "bytes_by_type", types, "kinds", kinds);
    int rc = doc ? topt_cli_write_json(doc, "-", &err) : -1;
    json_decref(doc);
    return rc ? 1 : 0;
}

static void weights_text(const char *path, const struct topt_weights_told *told)
{
    char n[32], bytes[32];
    printf("%s: weights without a config.json\n", path);
    printf("  %-24s %s in %d file%s\n", "tensors", in_threes(told->tensors, n),
           told->files, told->files == 1 ? "" : "s");
    if (told->numbers)
        printf("  %-24s %s\n", "parameters", in_threes(told->numbers, n));
    printf("  %-24s %s", "bytes", topt_show_bytes(told->bytes, bytes, sizeof bytes));
    for (int i = 0; i < told->ntypes; i++)
        printf("%s%s %s", i ? ", " : " (", told->type[i].name,
               topt_show_bytes(told->type[i].bytes, bytes, sizeof bytes));
    printf("%s\n\n  %9s %18s  %s\n", told->ntypes ? ")" : "", "tensors", "parameters",
           "name, each # a number");
    for (int i = 0; i < told->nkinds; i++)
        printf("  %9d %18s  %s\n", told->kind[i].tensors,
               told->numbers ? in_threes(told->kind[i].numbers, n) : "",
               told->kind[i].name);
    show_note("for counting only:",
              "a plan needs the model's config.json: tensor shapes do not show the "
              "number of heads or of experts per token");
}

static int inspect_weights(const char *path, int json)
{
    struct topt_weights_told told;
    struct topt_error err;
    if (topt_weights_tell(path, &told, &err)) {
        fprintf(stderr, "topt inspect: %s\n", err.text);
        return topt_err_exit(err.code);
    }
    int status = 0;
    if (json)
        status = weights_json(&told);
    else
        weights_text(path, &told);
    topt_weights_told_fini(&told);
    return status;
}

int topt_cmd_inspect(int argc, char **argv)
{
    struct args args = {0};
    struct topt_model_stats stats;
    int status;
    struct topt_model *m =
        begin("topt inspect MODEL [options]\n"
              "Operators, parameters, FLOPs and activation bytes, by kind of operator.",
              inspect_table, argc, argv, &args, &status);
    if (args.weights)
        return inspect_weights(args.weights, args.json);
    if (!m)
        return status;
    topt_model_stats(m, &stats);
    if (args.json)
        status = inspect_json(m, &stats);
    else
        inspect_text(m, &stats);
    topt_model_destroy(m);
    return status;
}
