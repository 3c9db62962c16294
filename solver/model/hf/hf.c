/* hf.c - a Hugging Face config.json to a model: which family it is of.
 *
 * A family is known by its model_type, or by its architecture where that is absent;
 * nothing is guessed.  A config that nests the language model's (text_config) gives
 * that model alone, and is named after it. */
#include "hf_build.h"
#include "hf_complete.h"
#include "hf_families.h"
#include "hf_audio_tower.h"
#include "hf_read.h"
#include "hf_read_vision.h"
#include "hf_suggest.h"
#include "hf_text.h"
#include "hf_unread.h"
#include "hf_vision.h"
#include "hf.h"
#include "topt_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int topt_hf_looks_like(const json_t *doc)
{
    return topt_json_member(doc, "model_type") || topt_json_member(doc, "architectures");
}

/* The one name in "architectures", or NULL where there is none. */
static int read_architecture(const json_t *doc, const char **ret, struct topt_error *err)
{
    const json_t *list = topt_json_member(doc, "architectures");
    *ret = NULL;
    if (!list || json_is_null(list) || (json_is_array(list) && !json_array_size(list)))
        return 0;
    *ret = json_string_value(json_array_get(list, 0));
    return *ret && json_array_size(list) == 1
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "architectures must be an array of one name");
}

/* Models that are parts of others, by how their names end. */
static const char *part_of_another(const char *architecture)
{
    static const char *const parts[][2] = {
        {"EncoderModel", "a text encoder alone, which another model reads"},
        {"TextModel", "a text encoder alone, which another model reads"},
        {"TextModelWithProjection", "a text encoder alone, which another model reads"},
        {"VisionModelWithProjection",
         "an image encoder alone, which another model reads"},
        {"BidirectionalModel",
         "an encoder of texts for search, for which there is no loss"},
        {"ForRanking", "a model that ranks texts, for which there is no loss"},
        {NULL, NULL}};
    size_t len = strlen(architecture);
    for (int i = 0; parts[i][0]; i++) {
        size_t k = strlen(parts[i][0]);
        if (len > k && !strcmp(architecture + len - k, parts[i][0]))
            return parts[i][1];
    }
    return NULL;
}

static void refuse_task(const struct hf_family *f, const char *architecture,
                        struct topt_error *err)
{
    char list[300] = "";
    size_t n = 0;
    if (part_of_another(architecture)) {
        topt_fail(err, TOPT_ERR_USAGE, "architecture \"%.60s\" is not read: it is %s",
                  architecture, part_of_another(architecture));
        return;
    }
    for (const struct hf_task *t = f->tasks; t->suffix && n + 60 < sizeof list; t++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s%s", n ? ", " : "",
                              f->prefix, t->suffix);
    topt_fail(err, TOPT_ERR_USAGE,
              "architecture \"%.60s\" of %s ends in something that is not known; known "
              "are %s",
              architecture, f->model_type, list);
}

static struct topt_model *build_plain(const json_t *doc, const json_t *around,
                                      const char *name,
                                      const struct topt_import_options *o,
                                      struct topt_error *err);

/* By the longest end that fits; NULL: none does. */
static const struct hf_task *find_end(const struct hf_family *f, const char *architecture)
{
    const struct hf_task *found = NULL;
    size_t len = strlen(architecture), longest = 0;
    for (const struct hf_task *t = f->tasks; t->suffix; t++) {
        size_t k = strlen(t->suffix);
        if (len > k && k > longest && !strcmp(architecture + len - k, t->suffix)) {
            found = t;
            longest = k;
        }
    }
    return found;
}

/* What an architecture ends with, by the rest of its name after the family's part of it;
 * where that part is another's, by the longest end that fits.  NULL: nobody knows. */
static const struct hf_task *find_task(const struct hf_family *f,
                                       const char *architecture)
{
    size_t n = strlen(f->prefix);
    if (strncmp(architecture, f->prefix, n) != 0)
        return find_end(f, architecture);
    for (const struct hf_task *t = f->tasks; t->suffix; t++)
        if (!strcmp(architecture + n, t->suffix))
            return t;
    return NULL;
}

/* By the architecture alone: the family's part of the name and the end must both fit. */
static const struct hf_family *find_architecture(const char *architecture)
{
    for (const struct hf_family *f = topt_hf_families; f->model_type; f++)
        if (!strncmp(architecture, f->prefix, strlen(f->prefix)) &&
            find_task(f, architecture))
            return f;
    return NULL;
}

/* The words before sizes that a config left to its class. */
#define OF_CLASS "the config leaves out, and its class has: "

/* Parameters of the config read as of another family; 0 where that family does not read all
 * that it says, or has sizes of which it says nothing. */
static double parameters_as(const json_t *doc, const char *as)
{
    struct topt_import_options o = {.as = as};
    struct topt_error unused = {0};
    struct topt_model_stats stats = {0};
    struct topt_model *m = build_plain(doc, NULL, "a config", &o, &unused);
    if (m && !(m->note && (strstr(m->note, TOPT_HF_UNREAD) || strstr(m->note, OF_CLASS))))
        topt_model_stats(m, &stats);
    topt_model_destroy(m);
    return (double)stats.parameters;
}

/* The family by model_type, or as the user says, or by architecture where there is no
 * type; and what its models end with. */
static const struct hf_family *choose(const json_t *doc, const char *as,
                                      const struct hf_task **ret, struct topt_error *err)
{
    const char *type = as, *architecture;
    char why[160];
    if ((!as && topt_json_string_or(doc, "", "model_type", &type, err)) ||
        read_architecture(doc, &architecture, err))
        return NULL;
    const struct hf_family *f = type           ? topt_hf_family(type)
                                : architecture ? find_architecture(architecture)
                                               : NULL;
    if (!f && type && !topt_hf_why_unread(type, why, sizeof why))
        f = topt_hf_family_of_text(type);
    /* a type of its own for a class that is known */
    if (!f && type && !as && architecture && !topt_hf_why_unread(type, why, sizeof why))
        f = find_architecture(architecture);
    if (!f) {
        topt_hf_refuse_unknown(doc, type, architecture, as ? NULL : parameters_as, err);
        return NULL;
    }
    *ret = architecture ? find_task(f, architecture) : f->tasks;
    if (!*ret && !as) { /* a later family under the type of an earlier one */
        const struct hf_family *own = find_architecture(architecture);
        f = own ? own : f;
        *ret = own ? find_task(own, architecture) : NULL;
    }
    if (!*ret && as)
        *ret = find_end(f, architecture);
    if (!*ret && as)
        *ret = f->tasks;
    if (*ret)
        return f;
    refuse_task(f, architecture, err);
    return NULL;
}

/* Classes of images by a tower of two: the config of that tower, with the classes of the
 * outer one; NULL where it is no such model. */
static int images_alone(const json_t *doc, json_t **ret, struct topt_error *err)
{
    static const char *const kept[] = {"architectures", "id2label", "num_labels", NULL};
    static const char end[] = "ForImageClassification";
    const char *name =
        json_string_value(json_array_get(topt_json_member(doc, "architectures"), 0));
    const json_t *vision = topt_json_member(doc, "vision_config");
    size_t n = name ? strlen(name) : 0, k = sizeof end - 1;
    *ret = NULL;
    if (n < k || strcmp(name + n - k, end) || !json_is_object(vision) ||
        !topt_hf_has_images(doc))
        return 0;
    *ret = json_copy((json_t *)vision);
    if (!*ret)
        return topt_nomem(err, "vision_config");
    if (!topt_json_member(*ret, "model_type"))
        json_object_set_new(*ret, "model_type", json_string(topt_hf_tower_type(doc)));
    for (int i = 0; kept[i]; i++)
        if (topt_json_member(doc, kept[i]))
            json_object_set(*ret, kept[i], topt_json_member(doc, kept[i]));
    return 0;
}

/* Classes have a head of their own, whatever the family's language model has. */
static int read_classes(const json_t *doc, enum hf_head head, struct hf_arch *a,
                        struct topt_error *err)
{
    const char *kind = NULL;
    a->head = head;
    if (a->pooler_kept && (head == HF_LANGUAGE || head == HF_TOKEN_CLASS))
        a->unused += a->width * (a->width + 1);
    if (head == HF_LANGUAGE)
        return 0;
    a->tied = 0;
    topt_hf_classes(doc, a);
    if (head == HF_ANSWER || head == HF_BARE || head == HF_TOKEN_CLASS ||
        head == HF_EACH_PIXEL)
        return 0;
    if (topt_json_string_or(doc, "", "problem_type", &kind, err))
        return -1;
    return !kind || !strcmp(kind, a->classes == 1 ? "regression"
                                                  : "single_label_classification")
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "problem_type is \"%.40s\": there is no loss for that", kind);
}

/* Layers behind the last that predict further tokens, by the names that families have
 * for how many there are; in Qwen3-Next's weights there is one that its config does not
 * tell of. */
static void note_further_layers(const json_t *doc, const struct hf_family *f,
                                struct hf_arch *a)
{
    static const char *const keys[] = {
        "num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers",
        "num_mtp_modules",          "num_mtp_layers",        NULL};
    int64_t n = !strcmp(f->model_type, "qwen3_next");
    char text[120];
    for (int i = 0; keys[i]; i++) {
        const json_t *value = topt_json_member(doc, keys[i]);
        n = json_is_integer(value) ? json_integer_value(value) : n;
    }
    snprintf(
        text, sizeof text,
        "left out: %lld layer%s that predict%s further tokens (MTP; --mtp %lld has %s)",
        (long long)n, n > 1 ? "s" : "", n > 1 ? "" : "s", (long long)n,
        n > 1 ? "them" : "it");
    if (n > 0 && !a->mtp && a->head == HF_LANGUAGE)
        topt_hf_note(a, text);
}

/* Bits of linear weights as AWQ, GPTQ, bitsandbytes and compressed-tensors store them: 4 or 8; 0:
 * they are stored otherwise, or not quantized. */
static int stored_bits(const json_t *doc)
{
    const json_t *q = json_object_get(doc, "quantization_config");
    const char *method = topt_json_words_at(q, "quant_method");
    const json_t *group = json_object_get(json_object_get(q, "config_groups"), "group_0");
    const json_t *weights = json_object_get(group, "weights");
    int64_t bits = 0;
    if (!strcmp(method, "awq") || !strcmp(method, "gptq"))
        bits = topt_json_whole_at(q, "bits");
    else if (!strcmp(method, "bitsandbytes"))
        bits = json_is_true(json_object_get(q, "load_in_4bit"))   ? 4
               : json_is_true(json_object_get(q, "load_in_8bit")) ? 8
                                                                  : 0;
    else if (!strcmp(method, "compressed-tensors") &&
             !strcmp(topt_json_words_at(weights, "type"), "int"))
        bits = topt_json_whole_at(weights, "num_bits");
    return bits == 4 || bits == 8 ? (int)bits : 0;
}

/* What every family may ask for and no model here does. */
static void note_what_is_left_out(const json_t *doc, struct hf_arch *a)
{
    const json_t *quantized = topt_json_member(doc, "quantization_config"), *value;
    char text[120];
    const char *key;
    int drops = 0, bits = stored_bits(doc);
    json_object_foreach((json_t *)doc, key, value)
    {
        static const char *const residual[] = {"resid_pdrop", "hidden_dropout_prob",
                                               "hidden_dropout", "dropout_rate",
                                               "dropout"};
        int here = (strstr(key, "dropout") || strstr(key, "pdrop")) &&
                   json_number_value(value) > 0;
        drops |= here;
        for (size_t i = 0; here && i < sizeof residual / sizeof *residual; i++)
            a->dropout |= !strcmp(key, residual[i]);
    }
    if (drops)
        topt_hf_note(a, TOPT_HF_DROPS);
    snprintf(text, sizeof text,
             "weights are stored in %d bits, which --train lora keeps and training all "
             "does not",
             bits);
    if (quantized && !json_is_null(quantized))
        topt_hf_note(a, bits ? text : "quantization_config is ignored");
}

/* Slots of experts: where nobody asks for more, tokens are taken to be balanced, which
 * costs what training without dropped tokens does. */
static void take_capacity(double asked, struct hf_arch *a)
{
    char text[160];
    if (!a->experts)
        return;
    if (asked > 0) {
        a->capacity = asked;
        snprintf(text, sizeof text,
                 "experts have slots for %g times their share of tokens and drop those "
                 "beyond",
                 asked);
        topt_hf_note(a, text);
    } else {
        topt_hf_note(a, "tokens are balanced over experts and none is dropped (topt run "
                        "drops those beyond --capacity)");
    }
}

/* Sizes that the config left to its class are told of, since they are most of a model. */
static void note_what_is_filled_in(const json_t *doc, const char *type, struct hf_arch *a)
{
    char keys[300], text[360];
    topt_hf_filled_in(doc, type, keys, sizeof keys);
    snprintf(text, sizeof text, OF_CLASS "%s", keys);
    if (keys[0])
        topt_hf_note(a, text);
}

/* Is the activation the one that transformers has of elementwise kernels (NewGELUActivation)? */
static int is_written_out(const json_t *doc)
{
    static const char *const keys[] = {"activation_function", "hidden_act", "activation"};
    int is = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *name = json_string_value(json_object_get(doc, keys[i]));
        is |= name && !strcmp(name, "gelu_new");
    }
    return is;
}

static struct topt_model *build_family(const json_t *doc, const json_t *around,
                                       const struct hf_family *f,
                                       const struct hf_task *task, const char *name,
                                       const struct topt_import_options *o,
                                       struct topt_error *err)
{
    const char *type = f->like ? f->like : f->model_type;
    json_t *whole = topt_hf_complete(doc, type, err);
    struct hf_arch *a = calloc(1, sizeof *a);
    struct hf_tower *tower = calloc(2, sizeof *tower), *audio = tower + 1;
    struct topt_model *m = NULL;
    if (!a || !tower)
        topt_nomem(err, "a config");
    else if (whole) {
        a->own_tower = tower;
        a->traits = f->traits;
        a->full_every = f->full_every;
        int rc = f->read(whole, a, err) || read_classes(doc, task->head, a, err);
        a->written |= is_written_out(whole);
        if (!rc && task->head == HF_LANGUAGE && !strcmp(task->suffix, "ForPreTraining"))
            topt_hf_note(a, "the pooler and the next-sentence head are left out");
        if (!rc && around && topt_hf_has_images(around)) {
            rc = topt_hf_read_tower(around, a->width, tower, err);
            a->tower = tower;
            if (tower->a.note[0])
                topt_hf_note(a, tower->a.note);
            a->add_image_tokens = topt_hf_add_image_tokens;
        }
        if (!rc && around && topt_hf_has_audio(around)) {
            rc = topt_hf_read_audio_tower(around, a->width, audio, err);
            a->audio_tower = audio;
            if (audio->a.note[0])
                topt_hf_note(a, audio->a.note);
            a->add_audio_tokens = topt_hf_add_audio_tokens;
        }
        if (!rc) {
            take_capacity(o ? o->capacity : 0, a);
            a->mtp = o ? o->mtp : 0;
            a->apart = o && o->apart & TOPT_APART_HEADS;
            a->gates_apart = o && o->apart & TOPT_APART_GATES;
            note_what_is_left_out(doc, a);
            if (!o || !o->part)
                note_further_layers(whole, f, a);
            note_what_is_filled_in(doc, type, a);
            topt_hf_note_unread(doc, whole, type, a);
            m = topt_hf_build_arch(a, name, f->build, o, err);
        }
    }
    if (m) {
        m->family = f->model_type;
        m->stored_bits = stored_bits(doc);
    }
    free(tower);
    free(a);
    json_decref(whole);
    return m;
}

/* Towers and their projectors, by the names of their configs; bits of 'towers': it
 * has images, audio. */
static void name_parts(const json_t *doc, int towers, char *ret, size_t size)
{
    const char *key;
    json_t *value;
    size_t n = 0;
    json_object_foreach((json_t *)doc, key, value)
    {
        size_t k = strlen(key);
        const char *type = json_string_value(topt_json_member(value, "model_type"));
        if (!json_is_object(value) || !strcmp(key, "text_config") || k < 7 ||
            (towers & 1 &&
             (!strcmp(key, "vision_config") || !strcmp(key, "qformer_config"))) ||
            (towers & 2 && !strcmp(key, "audio_config")) ||
            strcmp(key + k - 7, "_config") || !strcmp(key, "quantization_config") ||
            n + 120 > size)
            continue;
        n += (size_t)snprintf(ret + n, size - n, "%s%.60s%s%.40s%s", n ? ", " : "", key,
                              type && *type ? " (" : "", type ? type : "",
                              type && *type ? ")" : "");
    }
}

/* Note the parts of a config that the model does not have, and 'unread' keys beside them, but not
 * parts that were asked to be left out. */
static int note_parts(struct topt_model *m, const json_t *doc, const char *part,
                      int towers, const char *unread, struct topt_error *err)
{
    static const char *const what[] = {
        "the text model alone",
        "one image a sample, whose tokens are among the text's (--part text: without)",
        "half a minute of audio a sample, whose tokens are among the text's "
        "(--part text: without)",
        "one image and half a minute of audio a sample, whose tokens are among the "
        "text's "
        "(--part text: without)"};
    char parts[500] = "", note[1500];
    name_parts(doc, towers, parts, sizeof parts);
    if (part)
        return 0;
    snprintf(note, sizeof note, "%s%s%s%s%s%s%s%s", m->note ? m->note : "",
             m->note ? "; " : "", what[towers], parts[0] ? "; left out: " : "", parts,
             parts[0] ? " and their projectors" : "",
             unread[0] ? "; " TOPT_HF_UNREAD : "", unread);
    return topt_model_note(m, note, err);
}

/* Keys beside the parts that no reader asked for.  Those that the text has too, as where all
 * of them stand in one object, were asked for there or told of. */
static void name_unread(const json_t *doc, const json_t *text, const json_t *outer,
                        char *ret, size_t size)
{
    json_t *own = json_copy((json_t *)doc), *value;
    const char *key;
    json_object_foreach((json_t *)doc, key,
                        value) if (json_is_object(value) || json_object_get(text, key))
        json_object_del(own, key);
    topt_hf_unread_keys(own, outer, NULL, ret, size);
    json_decref(own);
}

/* 'around' is the config of the towers, NULL where there are none, or none are wanted. */
static struct topt_model *build_plain(const json_t *doc, const json_t *around,
                                      const char *name,
                                      const struct topt_import_options *o,
                                      struct topt_error *err)
{
    const struct hf_task *task;
    const struct hf_family *f = choose(doc, o ? o->as : NULL, &task, err);
    return f ? build_family(doc, around, f, task, name, o, err) : NULL;
}

/* A config that stands alone must say at least one of its sizes: what its class has where
 * nobody says is another model. */
static struct topt_model *build_alone(const json_t *doc, const char *name,
                                      const struct topt_import_options *o,
                                      struct topt_error *err)
{
    const struct hf_task *task;
    const struct hf_family *f = choose(doc, o ? o->as : NULL, &task, err);
    const char *type = !f ? NULL : f->like ? f->like : f->model_type;
    if (f && topt_hf_is_sizeless(doc, type)) {
        char keys[300];
        topt_hf_filled_in(doc, type, keys, sizeof keys);
        topt_fail(
            err, TOPT_ERR_INVAL,
            "it says none of its sizes; give the whole config.json (the class of %s "
            "has %s, where nobody says)",
            f->model_type, keys);
        return NULL;
    }
    return f ? build_family(doc, NULL, f, task, name, o, err) : NULL;
}

/* The part that hears, sees and writes, of a model of type 'whole' that may speak too. */
static struct topt_model *build_thinker(const json_t *thinker, const char *whole,
                                        const char *name,
                                        const struct topt_import_options *o,
                                        struct topt_error *err)
{
    char note[1500], type[100];
    json_t *typed = json_copy((json_t *)thinker);
    snprintf(type, sizeof type, "%.60s_thinker", whole ? whole : "");
    if (typed && !topt_json_member(typed, "model_type"))
        json_object_set_new(typed, "model_type", json_string(type));
    struct topt_model *m = typed ? topt_hf_build(typed, name, o, err) : NULL;
    json_decref(typed);
    if (!m) {
        topt_wrap(err, "thinker_config");
        return NULL;
    }
    snprintf(note, sizeof note, "%s%sthe thinker alone: what speaks is left out",
             m->note ? m->note : "", m->note ? "; " : "");
    if (!topt_model_note(m, note, err))
        return m;
    topt_model_destroy(m);
    return NULL;
}

struct topt_model *topt_hf_build(const json_t *doc, const char *name,
                                 const struct topt_import_options *o,
                                 struct topt_error *err)
{
    char text_name[120], unread[300] = "", why[160];
    json_t *text;
    const char *part = o ? o->part : NULL;
    const json_t *thinker = topt_json_member(doc, "thinker_config");
    if (json_is_object(thinker) &&
        json_is_object(topt_json_member(thinker, "text_config")))
        return build_thinker(thinker,
                             json_string_value(topt_json_member(doc, "model_type")), name,
                             o, err);
    if (part && strcmp(part, "text")) {
        topt_fail(err, TOPT_ERR_USAGE, "--part %.40s is not known; text is", part);
        return NULL;
    }
    if (topt_hf_refuse_draft(doc, err) || images_alone(doc, &text, err))
        return NULL;
    if (text) {
        struct topt_model *m = build_plain(text, NULL, name, o, err);
        json_decref(text);
        return m;
    }
    if (topt_hf_nested_text(doc, &text, err))
        return NULL;
    if (!text)
        return build_alone(doc, name, o, err);
    int towers = part ? 0 : topt_hf_has_images(doc) + 2 * topt_hf_has_audio(doc);
    snprintf(text_name, sizeof text_name, "%s%s", name, towers ? "" : "-text");
    json_t *outer = json_copy((json_t *)doc);
    struct topt_model *m = NULL;
    if (!outer)
        topt_nomem(err, "a config");
    else if (!topt_json_watch(outer, err))
        m = build_plain(text, towers ? outer : NULL, text_name, o, err);
    if (towers)
        name_unread(doc, text, outer, unread, sizeof unread);
    json_decref(outer);
    json_decref(text);
    const char *type = json_string_value(topt_json_member(doc, "model_type"));
    if (!m && !part && type && topt_hf_why_unread(type, why, sizeof why)) {
        topt_fail(err, TOPT_ERR_USAGE, "model_type \"%.40s\" is not read: %s", type, why);
    } else if (!m) {
        topt_wrap(err, "text_config");
    } else if (note_parts(m, doc, part, towers, unread, err)) {
        topt_model_destroy(m);
        m = NULL;
    }
    return m;
}
