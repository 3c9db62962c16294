/* hf_suggest.c - what a config of an unknown family may be: a slip of a known name, or
 * something that a known family reads as it is. */
#include "hf_suggest.h"
#include "hf_complete.h"
#include "hf_families.h"
#include "topt_near.h"

#include <stdio.h>
#include <string.h>

/* A slip of few letters in a name; in a short one it is mostly another name. */
enum { SLIPS = 2, SHORT = 10 };

/* The key of hf_defaults.json's row 'row' under which a type is listed. */
static int listed_under(const char *row, const char *type, char *ret, size_t size)
{
    json_t *lists = topt_hf_class(row), *types;
    const char *key;
    char word[90];
    snprintf(word, sizeof word, " %.80s ", type);
    ret[0] = '\0';
    json_object_foreach(lists, key, types) if (strstr(json_string_value(types), word))
        snprintf(ret, size, "%s", key);
    json_decref(lists);
    return ret[0] != '\0';
}

/* Types that transformers has and no reader here takes stand there by what they do for which
 * there is no operator, loss or reader. */
int topt_hf_why_unread(const char *type, char *ret, size_t size)
{
    return listed_under("unread", type, ret, size);
}

int topt_hf_text_of(const char *type, char *ret, size_t size)
{
    return listed_under("texts", type, ret, size);
}

int topt_hf_flat_text_of(const char *type, char *ret, size_t size)
{
    return listed_under("flat_texts", type, ret, size);
}

static void near_type(const char *type, char *ret, size_t size)
{
    struct topt_near near = {.name = type};
    for (const struct hf_family *f = topt_hf_families; f->model_type; f++)
        topt_near_try(&near, f->model_type);
    int slips = strlen(type) < SHORT ? 1 : SLIPS;
    const char *close = near.distance <= slips ? topt_near_name(&near) : NULL;
    snprintf(ret, size, "%s", close ? close : "");
}

/* Names of architectures share most of their letters, so that few slips are allowed. */
static void near_architecture(const char *name, char *ret, size_t size)
{
    int best = SLIPS + 1;
    for (const struct hf_family *f = topt_hf_families; f->model_type; f++)
        for (const struct hf_task *t = f->tasks; t->suffix; t++) {
            char full[120];
            struct topt_near near = {.name = name};
            snprintf(full, sizeof full, "%s%s", f->prefix, t->suffix);
            topt_near_try(&near, full);
            if (near.best && near.distance < best) {
                best = near.distance;
                snprintf(ret, size, "%s", full);
            }
        }
}

/* Another number in a name is another version, and another part another model: no slips. */
static int same_version(const char *a, const char *b)
{
    static const char digits[] = "0123456789_-.";
    for (;; a++, b++) {
        a += strcspn(a, digits);
        b += strcspn(b, digits);
        if (*a != *b || !*a)
            return *a == *b;
    }
}

/* Would the family have latent attention of which the config has no size? */
static int adds_a_latent(const json_t *doc, const char *type)
{
    static const char rank[] = "kv_lora_rank";
    json_t *row = topt_hf_class(type);
    int adds = json_object_get(json_object_get(row, "keys"), rank) &&
               !json_object_get(doc, rank);
    json_decref(row);
    return adds;
}

/* The family whose class knows the most of the config's keys, if those are nearly all, and
 * that reads every size in it; the first of several. */
static const char *fitting(const json_t *doc, topt_hf_try *parameters_as, double *ret)
{
    enum { NEARLY = 5, MOST_FAMILIES = 400 };
    json_t *keys = topt_hf_keys_of_classes(doc);
    int n = (int)json_array_size(keys), known[MOST_FAMILIES], count = 0, usual = -1;
    const char *best = NULL;
    for (; topt_hf_families[count].model_type && count < MOST_FAMILIES; count++) {
        const struct hf_family *f = &topt_hf_families[count];
        known[count] = f->like || n <= NEARLY ? -1 : topt_hf_knows(keys, f->model_type);
        usual = strcmp(f->model_type, "llama") ? usual : count;
    }
    /* most that are new are built like it */
    if (usual >= 0 && known[usual] >= n - n / NEARLY)
        known[usual] = n + 1;
    for (int most = n + 1; !best && most > 0 && most >= n - n / NEARLY; most--)
        for (int i = 0; !best && i < count; i++) {
            const char *type = topt_hf_families[i].model_type;
            if (known[i] == most && !adds_a_latent(doc, type) &&
                (*ret = parameters_as(doc, type)) > 0)
                best = type;
        }
    json_decref(keys);
    return best;
}

int topt_hf_refuse_draft(const json_t *doc, struct topt_error *err)
{
    static const struct {
        const char *part, *kind;
    } parts[] = {{"Eagle", "EAGLE"},
                 {"EAGLE", "EAGLE"},
                 {"Medusa", "Medusa"},
                 {"DFlash", "DFlash"},
                 {"Draft", "a draft"},
                 {"Speculator", "a speculator"},
                 {"Assistant", "an assistant"},
                 {"NextN", "MTP"},
                 {"MTP", "MTP"},
                 {NULL, NULL}};
    static const char *const keys[] = {"draft_vocab_size",
                                       "eagle_config",
                                       "dflash_config",
                                       "medusa_num_heads",
                                       "speculators_config",
                                       "backbone_hidden_size",
                                       NULL};
    const char *name =
        json_string_value(json_array_get(json_object_get(doc, "architectures"), 0));
    const char *kind = NULL;
    for (int i = 0; name && !kind && parts[i].part; i++)
        kind = strstr(name, parts[i].part) ? parts[i].kind : NULL;
    for (int i = 0; !kind && keys[i]; i++)
        kind = json_object_get(doc, keys[i]) ? keys[i] : NULL;
    if (!kind || json_is_object(json_object_get(doc, "vision_config")))
        return 0;
    return topt_fail(
        err, TOPT_ERR_USAGE,
        "\"%.60s\" drafts tokens for another model (%s), whose hidden states "
        "it reads, and is no model alone: give the config.json of the model "
        "that it drafts for",
        name ? name : "the config", kind);
}

void topt_hf_refuse_unknown(const json_t *doc, const char *type, const char *architecture,
                            topt_hf_try *parameters_as, struct topt_error *err)
{
    char slip[120] = "", suggestion[200] = "";
    int by_type = type || !architecture;
    const char *name = type ? type : architecture ? architecture : "null";
    char why[160];
    double parameters = 0;
    if (!type && !architecture) {
        topt_fail(
            err, TOPT_ERR_USAGE,
            "it names no model_type and no architecture; --as FAMILY reads it as one "
            "of that");
        return;
    }
    if (type && topt_hf_why_unread(type, why, sizeof why)) {
        topt_fail(err, TOPT_ERR_USAGE, "model_type \"%.40s\" is not read: %s", type, why);
        return;
    }
    if (by_type)
        near_type(name, slip, sizeof slip);
    else
        near_architecture(name, slip, sizeof slip);
    if (!same_version(name, slip))
        slip[0] = '\0';
    const char *like =
        slip[0] || !parameters_as ? NULL : fitting(doc, parameters_as, &parameters);
    if (slip[0])
        snprintf(suggestion, sizeof suggestion, "; did you mean %s?", slip);
    else if (like)
        snprintf(
            suggestion, sizeof suggestion,
            "; its keys are those of %s, as which it has %.4g %s parameters: if that is "
            "right, say --as %s",
            like, parameters / (parameters < 1e9 ? 1e6 : 1e9),
            parameters < 1e9 ? "million" : "billion", like);
    topt_fail(err, TOPT_ERR_USAGE, "%s \"%.40s\" is not known%s",
              by_type ? "model_type" : "architecture", name, suggestion);
}
