/* hf.c - a Hugging Face config.json to a model: which family it is of.
 *
 * A family is known by its model_type, or by its architecture where that is absent; nothing is
 * guessed.  A config that nests the language model's (text_config) gives that model alone, and
 * is named after it. */
#include "hf.h"
#include "model_impl.h"
#include "topt_json.h"

#include <stdio.h>
#include <string.h>

int topt_hf_looks_like(const json_t *doc)
{
    return json_object_get(doc, "model_type") || json_object_get(doc, "architectures");
}

static const struct hf_family *find_family(const char *type, const char *architecture)
{
    for (const struct hf_family *f = topt_hf_families; f->model_type; f++)
        if (type ? !strcmp(f->model_type, type) : !strcmp(f->architecture, architecture))
            return f;
    return NULL;
}

/* Names who is unknown, and what it would take. */
static void refuse_unknown(const char *what, const char *name, struct topt_error *err)
{
    topt_fail(
        err, TOPT_ERR_INVAL,
        "%s \"%.40s\" is not known: it would need a reader in solver/model/hf_read.c, "
        "and rows for what its blocks do that no operator does",
        what, name);
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
        type || architecture ? find_family(type, architecture) : NULL;
    if (!f) {
        refuse_unknown(type || !architecture ? "model_type" : "architecture",
                       type           ? type
                       : architecture ? architecture
                                      : "null",
                       err);
    } else if (architecture && strcmp(f->architecture, architecture)) {
        topt_fail(err, TOPT_ERR_INVAL,
                  "architecture \"%.60s\" is not known; %s is, of %s", architecture,
                  f->architecture, f->model_type);
        f = NULL;
    } else if (!f->read) {
        topt_fail(err, TOPT_ERR_INVAL,
                  "model_type \"%s\" needs %s, which no operator does yet", f->model_type,
                  f->missing);
        f = NULL;
    }
    return f;
}

/* The config of the language model inside one of several towers; NULL where there is none.
 * What only the outer one says about both holds for it too. */
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
    return *ret ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for text_config");
}

static struct topt_model *build_plain(const json_t *doc, const char *name,
                                      const struct topt_import_options *o,
                                      struct topt_error *err)
{
    struct hf_arch a = {0};
    const struct hf_family *f = choose(doc, err);
    return f && !f->read(doc, &a, err) ? topt_hf_build_arch(&a, name, f->build, o, err)
                                       : NULL;
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
