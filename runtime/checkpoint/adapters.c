/* adapters.c - low-rank adapters (Hu et al., LoRA, 2021) as PEFT's files have them.
 *
 * An adapter is two linear operators here, "STEM.lora_a" and "STEM.lora_b" beside the
 * operator STEM, or "OPERATOR.MODULE.lora_a" beside one of the modules that the operator is
 * in a checkpoint.  PEFT names both maps by the module.  Rows of the second lie as the
 * module's own do there, so that where those of queries are turned so are these. */
#include "adapters.h"
#include "topt_array.h"
#include "topt_json.h"
#include "topt_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4096, MOST_CONFIG = 1 << 20 };

static const char config_name[] = "adapter_config.json";

static int ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n > k && !strcmp(s + n - k, end);
}

/* ---- names ------------------------------------------------------------------------- */

static int weight_of(const struct topt_op *op)
{
    int o = 0;
    while (o < op->spec->noperands && op->operand[o].role != TOPT_PARAM)
        o++;
    return o;
}

static int64_t rows_of(const struct topt_op *op)
{
    const struct topt_dim *d = op->operand[weight_of(op)].dim;
    return d->count * d->unit;
}

static int64_t cols_of(const struct topt_op *op)
{
    const struct topt_dim *d = &op->operand[weight_of(op)].dim[1];
    return d->count * d->unit;
}

/* "model.layers.0.self_attn.q_proj.weight" -> "q_proj", for as long as 'buf' is. */
static const char *module_of(const struct topt_name_piece *p, char buf[200])
{
    snprintf(buf, 200, "%s", p->name);
    if (ends_in(buf, ".weight"))
        buf[strlen(buf) - strlen(".weight")] = '\0';
    const char *dot = strrchr(buf, '.');
    return dot ? dot + 1 : buf;
}

/* Which rows of its parent an adapter of module 'module' is beside: modules follow each other in
 * each of the parent's units. */
static int place_part(const struct topt_naming *n, struct topt_adapter *a,
                      const char *module)
{
    const struct topt_op *parent = &n->model->op[a->parent];
    int64_t count = parent->operand[parent->output].dim[2].count, before = 0;
    int w = weight_of(parent), found = 0;
    char buf[200];
    for (int i = 0; i < n->base && !found; i++) {
        const struct topt_name_piece *p = &n->piece[i];
        if (p->op != a->parent || p->operand != w)
            continue;
        found = !strcmp(module_of(p, buf), module);
        a->unit = p->dim[0] / count;
        a->offset = before;
        before += a->unit;
    }
    a->total = rows_of(parent) / count;
    return found ? 0 : -1;
}

/* The operator that an adapter of that stem is beside; -1: none. */
static int place(const struct topt_naming *n, struct topt_adapter *a, const char *stem)
{
    char name[200];
    snprintf(name, sizeof name, "%s", stem);
    a->parent = topt_model_find(n->model, name);
    if (a->parent >= 0) {
        a->unit = a->total = rows_of(&n->model->op[a->parent]);
        return 0;
    }
    char *dot = strrchr(name, '.');
    if (!dot)
        return -1;
    *dot = '\0';
    a->parent = topt_model_find(n->model, name);
    return a->parent < 0 ? -1 : place_part(n, a, dot + 1);
}

/* One of both maps as PEFT calls it. */
static int add_map(struct topt_naming *n, int op, const char *module, char map)
{
    const struct topt_op *o = &n->model->op[op];
    char name[200];
    snprintf(name, sizeof name, "base_model.model.%.150s.lora_%c.weight", module, map);
    struct topt_weight w = {.name = name,
                            .op = op,
                            .operand = weight_of(o),
                            .piece = TOPT_WEIGHT_WHOLE,
                            .ndim = 2,
                            .dim = {rows_of(o), cols_of(o)}};
    return topt_naming_add(n, &w);
}

static int name_adapter(struct topt_naming *n, int first, const char *stem,
                        struct topt_error *err)
{
    struct topt_adapter a = {.a = first, .b = -1};
    char name[220], module[200];
    snprintf(name, sizeof name, "%s%s", stem, TOPT_ADAPTER_SECOND);
    a.b = topt_model_find(n->model, name);
    if (a.b < 0 || place(n, &a, stem))
        return topt_fail(err, TOPT_ERR_INVAL, "the adapter '%.80s' is beside no module",
                         stem);
    if (TOPT_ROOM(n->adapter, n->nadapters, n->adapters_cap, 64))
        return topt_nomem(err, NULL);
    a.weight = weight_of(&n->model->op[a.parent]);
    n->adapter[n->nadapters++] = a;
    struct topt_name_source of = topt_naming_adapter_source(n, &a, 0);
    if (!of.piece || (topt_naming_is_shared(of.piece) &&
                      topt_naming_rows(n, of.piece->name) != of.piece->dim[0]))
        return 0;
    (void)module_of(of.piece, module);
    return add_map(n, a.a, module, 'A') || add_map(n, a.b, module, 'B')
               ? topt_nomem(err, NULL)
               : 0;
}

int topt_adapters_name(struct topt_naming *n, struct topt_error *err)
{
    n->base = n->n;
    for (int i = 0; i < n->model->nops; i++) {
        const char *name = n->model->op[i].name;
        char stem[200];
        if (!ends_in(name, TOPT_ADAPTER_FIRST))
            continue;
        snprintf(stem, sizeof stem, "%.*s",
                 (int)(strlen(name) - strlen(TOPT_ADAPTER_FIRST)), name);
        if (name_adapter(n, i, stem, err))
            return -1;
    }
    return 0;
}

/* ---- reading ----------------------------------------------------------------------- */

/* What is there beside the maps that PEFT would add to what a module makes. */
static int refuse_more(const json_t *config, struct topt_error *err)
{
    const char *bias = topt_json_words_at(config, "bias");
    const char *what = json_is_true(json_object_get(config, "use_dora"))
                           ? "DoRA (use_dora)"
                       : *bias && strcmp(bias, "none") != 0 ? "trained biases (bias)"
                       : json_array_size(json_object_get(config, "modules_to_save"))
                           ? "modules that are trained whole (modules_to_save)"
                       : json_object_size(json_object_get(config, "alpha_pattern"))
                           ? "scales by module (alpha_pattern)"
                           : NULL;
    return what ? topt_fail(err, TOPT_ERR_INVAL, "%s has %s, which are not read",
                            config_name, what)
                : 0;
}

int topt_adapters_read_config(const char *dir, double *ret_scale, struct topt_error *err)
{
    char path[PATH];
    int64_t rank = 8;
    double alpha = 8;
    snprintf(path, sizeof path, "%.4000s/%s", dir, config_name);
    json_t *config = topt_json_load(path, MOST_CONFIG, err);
    if (!config)
        return -1;
    int rc = topt_json_int_or(config, "", "r", 1, 1 << 16, &rank, err) ||
             topt_json_real_or(config, "", "lora_alpha", 1e-6, 1e6, &alpha, err) ||
             refuse_more(config, err);
    int rooted = json_is_true(json_object_get(config, "use_rslora"));
    *ret_scale = alpha / (rooted ? sqrt((double)rank) : (double)rank);
    json_decref(config);
    return rc ? topt_wrap(err, "%s", path) : 0;
}

int topt_adapters_check_file(const struct topt_naming *n,
                             const struct topt_tensor_file *f, struct topt_error *err)
{
    const char *name;
    const json_t *entry;
    json_object_foreach(f->header, name, entry)
    {
        int known = !strcmp(name, "__metadata__");
        for (int i = n->base; i < n->n && !known; i++)
            known = !strcmp(n->piece[i].name, name);
        if (!known)
            return topt_fail(
                err, TOPT_ERR_INVAL,
                "there is '%.120s', which the plan does not train; plan with "
                "the same modules (--train lora:RANK:NAMES)",
                name);
    }
    return 0;
}

/* ---- writing ----------------------------------------------------------------------- */

/* The names of the modules, each once. */
static json_t *targets_of(const struct topt_naming *n)
{
    json_t *list = json_array(), *seen = json_object();
    for (int i = 0; i < n->nadapters; i++) {
        const struct topt_adapter *a = &n->adapter[i];
        struct topt_name_source of = topt_naming_adapter_source(n, a, 0);
        char buf[200];
        const char *module = of.piece ? module_of(of.piece, buf) : "";
        if (*module && !json_object_get(seen, module)) {
            json_object_set_new(seen, module, json_true());
            json_array_append_new(list, json_string(module));
        }
    }
    json_decref(seen);
    return list;
}

/* The folder that a base's config lies in, whole where that can be said. */
static void folder_of(const char *base, char ret[PATH])
{
    char whole[PATH];
    const char *known = realpath(base, whole) ? whole : base;
    snprintf(ret, PATH, "%s", known);
    if (ends_in(ret, "/config.json"))
        ret[strlen(ret) - strlen("/config.json")] = '\0';
}

/* Does a tensor of a module hold the transpose, as GPT-2's do? */
static int is_turned(const struct topt_naming *n)
{
    for (int i = 0; i < n->base; i++)
        if (n->piece[i].piece == TOPT_WEIGHT_TURNED)
            return 1;
    return 0;
}

int topt_adapters_write_config(const struct topt_naming *n, const char *base,
                               const char *dir, double dropout, struct topt_error *err)
{
    char path[PATH], folder[PATH];
    json_int_t rank = n->nadapters ? rows_of(&n->model->op[n->adapter[0].a]) : 0;
    snprintf(path, sizeof path, "%.4000s/%s", dir, config_name);
    folder_of(base, folder);
    json_t *doc =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:s, s:b, s:b, s:b, s:o}", "peft_type",
                  "LORA", "task_type", "CAUSAL_LM", "base_model_name_or_path", folder,
                  "r", rank, "lora_alpha", rank, "lora_dropout", dropout, "bias", "none",
                  "fan_in_fan_out", is_turned(n), "use_rslora", 0, "inference_mode", 1,
                  "target_modules", targets_of(n));
    char *text = doc ? topt_json_text(doc, 2) : NULL;
    int rc =
        text ? topt_write_file(path, text, strlen(text), err) : topt_nomem(err, NULL);
    free(text);
    json_decref(doc);
    return rc;
}
