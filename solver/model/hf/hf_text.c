/* hf_text.c - the config of a language model among towers: nested under one of a few keys, or its
 * keys beside those of the towers. */
#include "hf_text.h"
#include "hf_families.h"
#include "hf_suggest.h"
#include "topt_json.h"

#include <stdio.h>
#include <string.h>

static const char *type_of(const json_t *doc)
{
    return json_string_value(topt_json_member(doc, "model_type"));
}

/* The family of a text whose keys stand beside the towers', by the type of the whole. */
static int flat_family(const json_t *doc, char *ret, size_t size)
{
    const char *type = type_of(doc);
    if (!type)
        return 0;
    if (topt_json_member(doc, "vocab_size") && topt_hf_flat_text_of(type, ret, size))
        return 1;
    snprintf(ret, size, "%.60s_text", type);
    return json_is_object(topt_json_member(doc, "vision_config")) && topt_hf_family(ret);
}

/* Objects of a flat config that are the text's own. */
static int is_of_text(const char *key)
{
    return !strncmp(key, "rope", 4) || !strcmp(key, "quantization_config");
}

static int flat_text(const json_t *doc, json_t **ret, struct topt_error *err)
{
    char text[100];
    const char *key;
    json_t *value;
    void *next;
    *ret = NULL;
    if (!flat_family(doc, text, sizeof text))
        return 0;
    *ret = json_copy((json_t *)doc);
    if (!*ret)
        return topt_nomem(err, "text_config");
    json_object_set_new(*ret, "model_type", json_string(text));
    json_object_del(*ret, "architectures");
    json_object_foreach_safe(*ret, next, key,
                             value) if (json_is_object(value) && !is_of_text(key))
        json_object_del(*ret, key);
    return 0;
}

/* A text that names neither type nor class has that of its class, by the type around it. */
static void name_text(const json_t *doc, json_t *text)
{
    const char *type = type_of(doc);
    const struct hf_family *f = type ? topt_hf_family_of_text(type) : NULL;
    char other[100];
    if (!type || topt_json_member(text, "model_type"))
        return;
    if (f)
        json_object_set_new(text, "model_type", json_string(f->model_type));
    else if (!topt_json_member(text, "architectures") &&
             topt_hf_text_of(type, other, sizeof other))
        json_object_set_new(text, "model_type", json_string(other));
}

int topt_hf_nested_text(const json_t *doc, json_t **ret, struct topt_error *err)
{
    static const char *const keys[] = {"text_config", "llm_config", "language_config",
                                       NULL};
    json_t *text = NULL, *tied = topt_json_member(doc, "tie_word_embeddings");
    const char *key = keys[0];
    *ret = NULL;
    for (int i = 0; keys[i] && (!text || json_is_null(text)); i++)
        text = topt_json_member(doc, key = keys[i]);
    if (!text || json_is_null(text))
        return flat_text(doc, ret, err);
    if (!json_is_object(text))
        return topt_fail(err, TOPT_ERR_INVAL, "%s must be an object", key);
    *ret = json_copy(text);
    if (!*ret)
        return topt_nomem(err, "text_config");
    name_text(doc, *ret);
    if (tied)
        json_object_set(*ret, "tie_word_embeddings", tied);
    return 0;
}
