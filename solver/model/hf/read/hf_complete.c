/* hf_complete.c - keys that a Hugging Face config leaves out.
 *
 * hf_defaults.json has what the configuration classes of transformers take for them, by
 * model_type; tests/model/oracle/make_defaults.py writes it.  The assembler puts it into
 * the library, so that a program needs no data directory. */
#include "hf_complete.h"
#include "topt_json.h"

#include <stdio.h>
#include <string.h>

__asm__(".pushsection .rodata\n"
        ".hidden topt_hf_defaults\n"
        ".global topt_hf_defaults\n"
        "topt_hf_defaults:\n"
        ".incbin \"hf_defaults.json\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char topt_hf_defaults[] __attribute__((visibility("hidden")));

/* The line of a class begins with its name in quotes: parsing one is far quicker than parsing
 * all. */
json_t *topt_hf_class(const char *type)
{
    char start[80];
    snprintf(start, sizeof start, "\n\"%.60s\": {", type);
    const char *line = strstr(topt_hf_defaults, start);
    if (!line)
        return NULL;
    line = strchr(line, '{');
    size_t n = strcspn(line, "\n");
    while (n && line[n - 1] != '}')
        n--;
    /* the last line closes the whole document too */
    json_t *row = json_loadb(line, n, 0, NULL);
    return row ? row : json_loadb(line, n - 1, 0, NULL);
}

/* What families write that have it, and others may carry along without meaning it. */
static const char *const flags[] = {
    "attention_bias",  "attention_out_bias",    "mlp_bias",    "qkv_bias",     "use_bias",
    "use_qkv_bias",    "lm_head_bias",          "use_qk_norm", "qk_layernorm", "bias",
    "add_bias_linear", "use_parallel_residual", NULL};

static void drop_foreign_flags(json_t *doc, const json_t *keys)
{
    for (int i = 0; flags[i]; i++)
        if (!json_object_get(keys, flags[i]))
            json_object_del(doc, flags[i]);
}

/* One value under both names; the class's own name where both are said. */
static int use_both_names(json_t *doc, const json_t *also)
{
    const char *usual;
    json_t *own;
    int rc = 0;
    json_object_foreach((json_t *)also, usual, own)
    {
        const char *name = json_string_value(own);
        json_t *value = name ? json_object_get(doc, name) : NULL;
        json_t *other = json_object_get(doc, usual);
        if (value)
            rc |= json_object_set(doc, usual, value);
        else if (other && name)
            rc |= json_object_set(doc, name, other);
    }
    return rc;
}

static int fill_in(json_t *doc, const json_t *row)
{
    const json_t *keys = json_object_get(row, "keys");
    json_t *theta = json_object_get(row, "theta"), *value;
    const char *key;
    int rc = 0;
    json_object_foreach((json_t *)keys, key, value) if (!json_object_get(doc, key)) rc |=
        json_object_set(doc, key, value);
    if (theta && !json_object_get(doc, "rope_theta") &&
        !json_object_get(doc, "rotary_emb_base"))
        rc |= json_object_set(doc, "rope_theta", theta);
    return rc;
}

json_t *topt_hf_complete(const json_t *doc, const char *type, struct topt_error *err)
{
    json_t *ret = json_copy((json_t *)doc), *row = type ? topt_hf_class(type) : NULL;
    int rc = !ret;
    if (ret && row) {
        const json_t *also = json_object_get(row, "also");
        rc = use_both_names(ret, also) || fill_in(ret, row) || use_both_names(ret, also);
        drop_foreign_flags(ret, json_object_get(row, "keys"));
    }
    json_decref(row);
    if (ret && topt_json_watch(ret, err)) {
        json_decref(ret);
        return NULL;
    }
    if (!rc)
        return ret;
    json_decref(ret);
    topt_nomem(err, "a config");
    return NULL;
}

int topt_hf_asked(const json_t *whole, const json_t *row, const char *key,
                  const json_t *value)
{
    const char *usual;
    json_t *own;
    if (topt_json_was_asked(whole, key) ||
        json_equal(value, json_object_get(json_object_get(row, "keys"), key)))
        return 1;
    json_object_foreach(json_object_get(row, "also"), usual, own)
    {
        const char *name = json_string_value(own);
        if (name && (!strcmp(name, key) || !strcmp(usual, key)) &&
            (topt_json_was_asked(whole, name) || topt_json_was_asked(whole, usual)))
            return 1;
    }
    for (int i = 0; row && flags[i]; i++)
        if (!strcmp(key, flags[i]) && !json_object_get(whole, key))
            return 1;
    return 0;
}

/* Is the key there, or one that means the same to the class? */
static int is_said(const json_t *doc, const json_t *also, const char *key)
{
    const char *usual;
    json_t *own;
    if (json_object_get(doc, key))
        return 1;
    json_object_foreach((json_t *)also, usual, own)
    {
        const char *name = json_string_value(own);
        if (name && !strcmp(name, key) && json_object_get(doc, usual))
            return 1;
    }
    return 0;
}

/* Keys without which nobody could tell how large a model is. */
/* clang-format off */
static const char *const sizes[] = {
    "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "vocab_size", "num_key_value_heads", "head_dim", "d_model", "num_layers", "d_ff",
    "d_kv", "num_heads", "n_embd", "n_layer", "n_head", "dim", "n_layers", "n_heads",
    "hidden_dim", "encoder_layers", "decoder_layers", "moe_intermediate_size",
    "num_experts", "n_routed_experts", "num_local_experts", "ffn_dim",
    "dense_intermediate_size", NULL};
/* clang-format on */

void topt_hf_filled_in(const json_t *doc, const char *type, char *ret, size_t size)
{
    json_t *row = type ? topt_hf_class(type) : NULL;
    const json_t *keys = json_object_get(row, "keys"),
                 *also = json_object_get(row, "also");
    size_t n = 0;
    ret[0] = '\0';
    for (int i = 0; sizes[i]; i++) {
        const json_t *value = json_object_get(keys, sizes[i]);
        if (json_is_integer(value) && !is_said(doc, also, sizes[i]) && n + 60 < size)
            n += (size_t)snprintf(ret + n, size - n, "%s%s %lld", n ? ", " : "", sizes[i],
                                  (long long)json_integer_value(value));
    }
    json_decref(row);
}

int topt_hf_is_sizeless(const json_t *doc, const char *type)
{
    json_t *row = type ? topt_hf_class(type) : NULL;
    const json_t *keys = json_object_get(row, "keys"),
                 *also = json_object_get(row, "also");
    enum { FEW = 3 }; /* sizes of stages are lists */
    int known = 0, said = 0;
    for (int i = 0; sizes[i]; i++) {
        int has = json_is_integer(json_object_get(keys, sizes[i]));
        known += has;
        said |= (has && is_said(doc, also, sizes[i])) || json_object_get(doc, sizes[i]);
    }
    json_decref(row);
    return known >= FEW && !said;
}

static int lists(const json_t *names, const char *key)
{
    for (size_t i = 0; i < json_array_size(names); i++)
        if (!strcmp(json_string_value(json_array_get(names, i)), key))
            return 1;
    return 0;
}

json_t *topt_hf_keys_of_classes(const json_t *doc)
{
    json_t *ret = json_array(), *value;
    const char *key;
    json_object_foreach((json_t *)doc, key, value)
    {
        char quoted[90];
        snprintf(quoted, sizeof quoted, "\"%.80s\"", key);
        if (strstr(topt_hf_defaults, quoted))
            json_array_append_new(ret, json_string(key));
    }
    return ret;
}

int topt_hf_knows(const json_t *keys, const char *type)
{
    json_t *row = topt_hf_class(type);
    int known = row ? 0 : -1;
    for (size_t i = 0; row && i < json_array_size(keys); i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        known += json_object_get(json_object_get(row, "keys"), key) ||
                 json_object_get(json_object_get(row, "also"), key) ||
                 lists(json_object_get(row, "none"), key);
    }
    json_decref(row);
    return known;
}
