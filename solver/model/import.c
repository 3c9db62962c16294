/* import.c - a model from text or a file, told apart by content and never by name: a
 * native document says its format, a Hugging Face config its model_type or
 * architectures, Megatron-LM's arguments their names, and ONNX is protobuf, which no
 * JSON text looks like.
 *
 * A PyTorch module is a program, which is not run here; it is refused with the lines
 * that export it. */
#include "adapters.h"
#include "hf.h"
#include "hf_diffusers.h"
#include "megatron.h"
#include "megatron_source.h"
#include "model_place.h"
#include "model_text.h"
#include "native.h"
#include "onnx.h"
#include "papers.h"
#include "topt_json.h"
#include "topt_label.h"
#include "topt_near.h"
#include "topt_text.h"
#include "train.h"
#include "weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A model of a million operators has fewer values. */
enum {
    MAX_JSON_BYTES = 64 << 20,
    MAX_MODEL_BYTES = 512 << 20,
    MAX_JSON_VALUES = 8 << 20,
    MAX_JSON_DEPTH = 64
};

/* First byte that is not white space, or -1. */
static int first_byte(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr(" \t\r\n", text[i]) || !text[i])
            return (unsigned char)text[i];
    return -1;
}

/* An ONNX file starts with field 1, ir_version, a small varint. */
static int looks_like_onnx(const char *text, size_t len)
{
    return len > 2 && text[0] == 0x08 && text[1] > 0 && text[1] < 0x20;
}

/* Bytes somewhere in the first part of a text. */
static int holds(const char *text, size_t len, const char *what)
{
    enum { FIRST = 1 << 20 };
    return memmem(text, len < FIRST ? len : FIRST, what, strlen(what)) != NULL;
}

/* What torch.save writes, a zip of pickles or before 1.6 a pickle, and modules as
 * Python. */
static int looks_like_torch(const char *text, size_t len, const char *what)
{
    static const char *const ends[] = {".py'", ".pt'", ".pth'", ".bin'", ".ckpt'"};
    size_t n = strlen(what);
    if (len > 4 && (!memcmp(text, "PK\3\4", 4) || !memcmp(text, "\x80\2", 2)))
        return 1;
    for (int i = 0; i < 5; i++)
        if (n > strlen(ends[i]) && !strcmp(what + n - strlen(ends[i]), ends[i]))
            return 1;
    return holds(text, len, "import torch") || holds(text, len, "from torch") ||
           holds(text, len, "nn.Module");
}

/* An error is one line, and Python takes the three statements on one. */
static int refuse_torch(const char *what, struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_INVAL,
                     "%.60s is a PyTorch module or its weights; export it where it runs: "
                     "import torch; x = torch.zeros(1, 1024, dtype=torch.long); "
                     "torch.onnx.export(model, (x,), \"model.onnx\")",
                     what);
}

/* Why bytes that are not JSON can't be read, as exactly as their start tells. */
static int refuse_bytes(const char *text, size_t len, const char *what,
                        struct topt_error *err)
{
    if (looks_like_torch(text, len, what))
        return refuse_torch(what, err);
    if (len > 8 && text[8] == '{' && !text[7])
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s looks like safetensors, which holds weights and no "
                         "architecture; give the config.json beside it",
                         what);
    if (strstr(what, ".toml"))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s has settings of a run and no model; give the model's "
                         "config.json, and this file behind --as-is",
                         what);
    return topt_fail(
        err, TOPT_ERR_INVAL,
        "%s is neither a native model, a Hugging Face config.json, a script or "
        "file of Megatron-LM's arguments nor ONNX",
        what);
}

static int check_options(const struct topt_import_options *o, struct topt_error *err)
{
    static const char *const losses[] = {"cross_entropy", "mse", NULL};
    char meant[TOPT_NEAR_WORDS];
    if (o && (o->batch < 0 || o->batch > 1 << 24))
        return topt_fail(err, TOPT_ERR_USAGE, "batch %lld must be 1..16777216",
                         (long long)o->batch);
    if (o && (o->seq < 0 || o->seq > 1 << 24))
        return topt_fail(err, TOPT_ERR_USAGE, "seq %lld must be 1..16777216",
                         (long long)o->seq);
    if (o && o->loss && strcmp(o->loss, "cross_entropy") && strcmp(o->loss, "mse"))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "unknown loss '%.40s'%s (one of cross_entropy, mse)", o->loss,
                         topt_near_among(o->loss, losses, meant));
    if (o && (o->mtp < 0 || o->mtp > TOPT_MAX_MTP))
        return topt_fail(err, TOPT_ERR_USAGE, "--mtp %lld must be 1..%d",
                         (long long)o->mtp, TOPT_MAX_MTP);
    return 0;
}

/* Is what lies there again adapters, and no model? */
static int is_of_adapters(const char *path)
{
    static const char end[] = "adapter_config.json";
    char file[TOPT_PLACE], dir[TOPT_PLACE];
    struct topt_error unused = {0};
    size_t k = sizeof end - 1;
    if (topt_model_place(path, file, dir, &unused))
        return 0;
    size_t n = strlen(file);
    return n >= k && !strcmp(file + n - k, end);
}

/* Where nobody asked for another, what the config trains. */
static int train_adapters(struct topt_model **m, const json_t *config, const char *train,
                          struct topt_error *err)
{
    char spec[660], said[1500];
    const char *note = NULL;
    if (!train && topt_adapters_spec(config, *m, spec, sizeof spec, &note, err))
        return -1;
    int drops = !train && json_number_value(json_object_get(config, "lora_dropout")) > 0;
    if (topt_model_adapt(m, train ? train : spec, drops, err))
        return -1;
    (*m)->adapted = 1;
    snprintf(said, sizeof said, "%s%s%s", (*m)->note ? (*m)->note : "",
             (*m)->note ? "; " : "", note ? note : "");
    return note ? topt_model_note(*m, said, err) : 0;
}

/* An adapter_config.json is a model with the one that it names, which must be here. */
static struct topt_model *build_adapters(const json_t *config, const char *what,
                                         const struct topt_import_options *o,
                                         struct topt_error *err)
{
    const char *base = NULL, *kind = "LORA";
    struct topt_error inner = {0};
    struct topt_import_options with = o ? *o : (struct topt_import_options){0};
    if (topt_json_string(config, "", "base_model_name_or_path", &base, err) ||
        topt_json_string_or(config, "", "peft_type", &kind, err))
        return NULL;
    if (is_of_adapters(base)) {
        topt_fail(err, TOPT_ERR_INVAL,
                  "%s has adapters of '%.200s', which are adapters themselves; give the "
                  "model that they begin with",
                  what, base);
        return NULL;
    }
    if (strcmp(kind, "LORA")) {
        topt_fail(err, TOPT_ERR_INVAL,
                  "%s has adapters of kind %.40s, of which LORA alone is known", what,
                  kind);
        return NULL;
    }
    with.train = NULL;
    struct topt_model *m = topt_model_load(base, &with, &inner);
    if (!m)
        topt_fail(err, TOPT_ERR_NOTFOUND,
                  "%s has adapters of another model: %.300s; or give that model's "
                  "config.json and --train lora:R:NAMES",
                  what, inner.text);
    else if (train_adapters(&m, config, o ? o->train : NULL, err)) {
        topt_wrap(err, "%s", what);
        topt_model_destroy(m);
        return NULL;
    }
    return m;
}

/* A config whose path has no name of its own is called as it says that it was, or after its
 * family. */
static void name_config(const json_t *doc, const char *what, char ret[TOPT_LABEL])
{
    const char *was = topt_json_words_at(doc, "_name_or_path");
    topt_label(what, ret);
    if (strcmp(ret, "model") && strcmp(ret, "config"))
        return;
    if (*was && !strchr("/.~", *was))
        topt_label(was, ret);
    else if (*topt_json_words_at(doc, "model_type"))
        topt_label(topt_json_words_at(doc, "model_type"), ret);
}

static struct topt_model *build(const json_t *doc, const char *what,
                                const struct topt_import_options *o,
                                struct topt_error *err)
{
    char name[TOPT_LABEL];
    struct topt_model *m;
    if (o && o->loss) {
        topt_fail(err, TOPT_ERR_USAGE, "a loss can be asked for of ONNX files only");
        m = NULL;
    } else if (json_object_get(doc, "format")) {
        m = topt_native_build(doc, o, err);
    } else if (json_object_get(doc, "base_model_name_or_path") &&
               json_object_get(doc, "peft_type")) {
        return build_adapters(doc, what, o, err);
    } else if (json_object_get(doc, "_class_name")) {
        topt_label(what, name);
        m = topt_diffusers_build(doc, name, o, err);
    } else if (topt_hf_looks_like(doc)) {
        name_config(doc, what, name);
        m = topt_hf_build(doc, name, o, err);
    } else {
        topt_fail(
            err, TOPT_ERR_INVAL,
            "no \"format\": \"topt-model/1\" and no \"model_type\" in it; a native model "
            "or a Hugging Face config.json is needed");
        m = NULL;
    }
    if (!m)
        topt_wrap(err, "%s", what);
    return m;
}

static struct topt_model *build_onnx(const char *text, size_t len, const char *what,
                                     const struct topt_import_options *o,
                                     struct topt_error *err)
{
    char name[TOPT_LABEL];
    topt_label(what, name);
    struct topt_model *m = topt_onnx_build(text, len, name, o, err);
    if (!m)
        topt_wrap(err, "%s", what);
    return m;
}

static struct topt_model *build_megatron(const char *text, size_t len, const char *what,
                                         const struct topt_import_options *o,
                                         struct topt_error *err)
{
    char name[TOPT_LABEL];
    topt_label(what, name);
    struct topt_model *m = topt_megatron_build(text, len, name, o, err);
    if (!m)
        topt_wrap(err, "%s", what);
    return m;
}

static struct topt_model *import(const char *text, size_t len, const char *what,
                                 const struct topt_import_options *options,
                                 struct topt_error *err)
{
    enum { MARK = 3 };
    if (check_options(options, err) || topt_model_refuse_other(text, len, what, err))
        return NULL;
    if (len >= MARK && !memcmp(text, "\xef\xbb\xbf", MARK)) { /* of UTF-8 */
        text += MARK;
        len -= MARK;
    }
    if (looks_like_onnx(text, len))
        return build_onnx(text, len, what, options, err);
    if (len > MAX_JSON_BYTES) {
        topt_fail(err, TOPT_ERR_LIMIT, "%s has %zu bytes, more than %d", what, len,
                  MAX_JSON_BYTES);
        return NULL;
    }
    int first = first_byte(text, len);
    if (first < 0) {
        topt_fail(err, TOPT_ERR_INVAL, "%s is empty", what);
        return NULL;
    }
    if (first != '{' && topt_megatron_looks_like(text, len))
        return build_megatron(text, len, what, options, err);
    if (first != '{') {
        char sources[300];
        topt_megatron_sources(text, len, sources, sizeof sources);
        if (sources[0])
            topt_fail(
                err, TOPT_ERR_INVAL,
                "%s has no --num-layers, --hidden-size and --num-attention-heads; it "
                "sources %s: put the text of the file that has them in place of that "
                "line",
                what, sources);
        else
            refuse_bytes(text, len, what, err);
        return NULL;
    }
    if (topt_json_within(text, len, what, MAX_JSON_VALUES, MAX_JSON_DEPTH, err))
        return NULL;
    size_t plain_len;
    char *plain = topt_model_plain_json(text, len, &plain_len);
    json_t *doc = plain ? topt_json_parse(plain, plain_len, what, err)
                        : topt_json_parse(text, len, what, err);
    struct topt_model *m = doc ? build(doc, what, options, err) : NULL;
    json_decref(doc);
    free(plain);
    return m;
}

/* Documents that a sample packs attend to themselves alone, so that a causal mask is one of chunks; where it already has
 * shorter ones or a window, these hold. */
static int pack(struct topt_model *m, int64_t length, struct topt_error *err)
{
    int causal = 0;
    for (int i = 0; i < m->nops; i++) {
        struct topt_op *o = &m->op[i];
        if (!topt_op_attends(o) || !o->attrs->causal)
            continue;
        causal = 1;
        if (length < topt_attention_keys(o))
            o->attrs->chunk = length;
    }
    return causal ? 0
                  : topt_fail(
                        err, TOPT_ERR_USAGE,
                        "a length of documents needs a model whose attention is causal; "
                        "leave out --document-length");
}

/* Once all is known of the model as it is. */
static struct topt_model *finished(struct topt_model *m,
                                   const struct topt_import_options *options,
                                   struct topt_error *err)
{
    if (m && options && options->document_length &&
        pack(m, options->document_length, err)) {
        topt_model_destroy(m);
        return NULL;
    }
    if (m && options && options->mtp && m->mtp == m->nops) {
        topt_fail(
            err, TOPT_ERR_USAGE,
            "--mtp: '%.60s' can have no modules that predict further tokens; the "
            "config.json of a plain decoder of text, or Megatron-LM's arguments, can",
            m->name);
        topt_model_destroy(m);
        return NULL;
    }
    if (m && options && options->train && !m->adapted &&
        topt_model_train(&m, options->train, err)) {
        topt_model_destroy(m);
        return NULL;
    }
    return m;
}

struct topt_model *topt_model_import(const char *text, size_t len, const char *what,
                                     const struct topt_import_options *options,
                                     struct topt_error *err)
{
    return finished(import(text, len, what, options, err), options, err);
}

/* A script with the files beside it that it sources. */
static void take_sources(char **text, size_t *len, const char *file)
{
    char dir[TOPT_PLACE];
    const char *slash = strrchr(file, '/');
    size_t n;
    int first = first_byte(*text, *len);
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - file) + 1 : 1,
             slash ? file : ".");
    char *whole = first == '#' || first == '.' || first == 's'
                      ? topt_megatron_with_sources(*text, *len, dir, &n)
                      : NULL;
    if (whole) {
        free(*text);
        *text = whole;
        *len = n;
    }
}

static struct topt_model *
load(const char *path, const struct topt_import_options *options, struct topt_error *err)
{
    static const char paper[] = "paper:";
    char file[TOPT_PLACE], dir[TOPT_PLACE], what[200];
    if (!strncmp(path, paper, sizeof paper - 1))
        return check_options(options, err)
                   ? NULL
                   : topt_paper_build(path + sizeof paper - 1, options, err);
    path += *path == '@'; /* as in arguments: the file that holds them */
    if (topt_weights_alone(path)) {
        topt_weights_refuse(path, err);
        return NULL;
    }
    if (topt_model_place(path, file, dir, err))
        return NULL;
    snprintf(what, sizeof what, "'%.190s'", file);
    size_t len;
    char *text = topt_read_file(file, MAX_MODEL_BYTES, &len, err);
    if (!text)
        return NULL;
    take_sources(&text, &len, file);
    struct topt_model *m = import(text, len, what, options, err);
    free(text);
    if (m && dir[0] && !m->adapted && topt_safetensors_check(dir, m, err)) {
        topt_wrap(err, "'%.150s'", dir);
        topt_model_destroy(m);
        return NULL;
    }
    return m;
}

struct topt_model *topt_model_load(const char *path,
                                   const struct topt_import_options *options,
                                   struct topt_error *err)
{
    return finished(load(path, options, err), options, err);
}
