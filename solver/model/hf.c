/* hf.c - a Hugging Face config.json to a model: which family it is of.
 *
 * A family is known by its model_type, or by its architecture where that is absent;
 * nothing is guessed.  A config that nests the language model's (text_config) gives
 * that model alone, and is named after it. */
#include "hf_build.h"
#include "hf_families.h"
#include "hf_read.h"
#include "model_impl.h"
#include "topt_json.h"
#include "topt_near.h"

#include <stdio.h>
#include <string.h>

int topt_hf_looks_like(const json_t *doc)
{
    return json_object_get(doc, "model_type") || json_object_get(doc, "architectures");
}

/* The row of that type and architecture; NULL stands for any. */
static const struct hf_family *find_family(const char *type, const char *architecture)
{
    for (const struct hf_family *f = topt_hf_families; f->model_type; f++)
        if ((!type || !strcmp(f->model_type, type)) &&
            (!architecture || !strcmp(f->architecture, architecture)))
            return f;
    return NULL;
}

/* Names who is unknown, what it may be a slip of, and what it would take: most often
 * it is no slip but another family.  Names of architectures share most of their
 * letters. */
static void refuse_unknown(const char *type, const char *architecture,
                           struct topt_error *err)
{
    enum { SLIPS = 2 };
    int by_type = type || !architecture;
    struct topt_near near = {.name = type ? type : architecture ? architecture : "null"};
    char meant[TOPT_NEAR_WORDS];
    for (const struct hf_family *f = topt_hf_families; f->model_type; f++)
        topt_near_try(&near, by_type ? f->model_type : f->architecture);
    const char *close = near.distance <= SLIPS ? topt_near_words(&near, meant) : "";
    topt_fail(
        err, TOPT_ERR_USAGE,
        "%s \"%.40s\" is not known%s%s it would need a reader in "
        "solver/model/hf_read_*.c, and rows for what its blocks do that no operator "
        "does",
        by_type ? "model_type" : "architecture", near.name, close,
        *close ? " Else" : ":");
}

/* The one name in "architectures", or NULL where there is none. */
static int read_architecture(const json_t *doc, const char **ret, struct topt_error *err)
{
    const json_t *list = json_object_get(doc, "architectures");
    *ret = NULL;
    if (!list || json_is_null(list))
        return 0;
    *ret = json_string_value(json_array_get(list, 0));
    return *ret && json_array_size(list) == 1
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "architectures must be an array of one name");
}

/* The family by model_type, by architectures where that is absent; both must agree. */
static const struct hf_family *choose(const json_t *doc, struct topt_error *err)
{
    const char *type = NULL, *architecture;
    if (topt_json_string_or(doc, "", "model_type", &type, err) ||
        read_architecture(doc, &architecture, err))
        return NULL;
    const struct hf_family *f =
        type || architecture ? find_family(type, type ? NULL : architecture) : NULL;
    const struct hf_family *row = f ? find_family(type, architecture) : NULL;
    if (!f) {
        refuse_unknown(type, architecture, err);
    } else if (!f->read) {
        topt_fail(err, TOPT_ERR_INVAL,
                  "model_type \"%s\" needs %s, which no operator does yet", f->model_type,
                  f->missing);
        return NULL;
    } else if (!row) {
        topt_fail(err, TOPT_ERR_USAGE,
                  "architecture \"%.60s\" is not known; %s is, of %s", architecture,
                  f->architecture, f->model_type);
    }
    return row;
}

/* The config of the language model inside one of several towers; NULL where there is
 * none.  What only the outer one says about both holds for it too. */
static int nested_text(const json_t *doc, json_t **ret, struct topt_error *err)
{
    json_t *text = json_object_get(doc, "text_config");
    json_t *tied = json_object_get(doc, "tie_word_embeddings");
    *ret = NULL;
    if (!text || json_is_null(text))
        return 0;
    if (!json_is_object(text))
        return topt_fail(err, TOPT_ERR_INVAL, "text_config must be an object");
    *ret = json_copy(text);
    if (*ret && tied && !json_object_get(text, "tie_word_embeddings"))
        json_object_set(*ret, "tie_word_embeddings", tied);
    return *ret ? 0 : topt_nomem(err, "text_config");
}

/* Classes have a head of their own, whatever the family's language model has. */
static int read_classes(const json_t *doc, enum hf_head head, struct hf_arch *a,
                        struct topt_error *err)
{
    const char *kind = NULL;
    a->head = head;
    if (head == HF_LANGUAGE)
        return 0;
    a->tied = 0;
    topt_hf_classes(doc, a);
    if (topt_json_string_or(doc, "", "problem_type", &kind, err))
        return -1;
    return !kind || !strcmp(kind, a->classes == 1 ? "regression"
                                                  : "single_label_classification")
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "problem_type is \"%.40s\": there is no loss for that", kind);
}

/* What every family may ask for and no model here does. */
static void note_what_is_left_out(const json_t *doc, struct hf_arch *a)
{
    const json_t *quantized = json_object_get(doc, "quantization_config"), *value;
    const char *key;
    int drops = 0;
    json_object_foreach((json_t *)doc, key, value) drops |=
        (strstr(key, "dropout") || strstr(key, "pdrop")) && json_number_value(value) > 0;
    if (drops)
        topt_hf_note(a, "dropout is left out");
    if (quantized && !json_is_null(quantized))
        topt_hf_note(a, "quantization_config is left out");
}

static struct topt_model *build_plain(const json_t *doc, const char *name,
                                      const struct topt_import_options *o,
                                      struct topt_error *err)
{
    struct hf_arch a = {0};
    const struct hf_family *f = choose(doc, err);
    if (!f || f->read(doc, &a, err) || read_classes(doc, f->head, &a, err))
        return NULL;
    note_what_is_left_out(doc, &a);
    struct topt_model *m = topt_hf_build_arch(&a, name, f->build, o, err);
    if (m)
        m->family = f->model_type;
    return m;
}

struct topt_model *topt_hf_build(const json_t *doc, const char *name,
                                 const struct topt_import_options *o,
                                 struct topt_error *err)
{
    char text_name[120];
    json_t *text;
    if (nested_text(doc, &text, err))
        return NULL;
    if (!text)
        return build_plain(doc, name, o, err);
    snprintf(text_name, sizeof text_name, "%s-text", name);
    struct topt_model *m = build_plain(text, text_name, o, err);
    json_decref(text);
    if (!m)
        topt_wrap(err, "text_config");
    return m;
}
