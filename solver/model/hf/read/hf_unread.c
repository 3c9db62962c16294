/* hf_unread.c - keys of a Hugging Face config that no reader asked for.
 *
 * A number that is read in silence as if it were not there makes a wrong count, so each
 * such key is told of.  Left out are keys of tokenizers, generation, training and
 * bookkeeping, which no model is built from ("harmless" in hf_defaults.json), and values
 * that say "not used". */
#include "hf_unread.h"
#include "hf_complete.h"
#include "hf_read.h"
#include "topt_json.h"

#include <stdio.h>
#include <string.h>

static int is_among(const char *list, const char *key)
{
    char word[90];
    snprintf(word, sizeof word, " %.80s ", key);
    return strstr(list, word) != NULL;
}

/* Is the key one of bookkeeping, tokens, generation or training, or has it such a part? */
static int is_harmless(const json_t *list, const char *key, const json_t *value)
{
    const char *part = topt_json_words_at(list, "parts");
    if (key[0] == '_' || is_among(topt_json_words_at(list, "whole"), key))
        return 1;
    for (size_t n; *(part += strspn(part, " ")); part += n) {
        n = strcspn(part, " ");
        if (memmem(key, strlen(key), part, n))
            return 1;
    }
    if (json_is_string(value) && (strstr(key, "activation") || strstr(key, "_act")))
        return 1;
    return is_among(topt_json_words_at(list, "ones"), key) &&
           json_integer_value(value) == 1;
}

/* Is it a second name of a size that was read, with the same value? */
static int is_second_name(const json_t *whole, const char *key, const json_t *value)
{
    static const char *const names[][2] = {{"d_model", "hidden_size"},
                                           {"n_embd", "hidden_size"},
                                           {"n_layer", "num_hidden_layers"},
                                           {"n_layers", "num_hidden_layers"},
                                           {"num_layers", "num_hidden_layers"},
                                           {"n_head", "num_attention_heads"},
                                           {"n_heads", "num_attention_heads"},
                                           {"num_heads", "num_attention_heads"},
                                           {"moe_intermediate_size", "intermediate_size"},
                                           {"num_experts", "n_routed_experts"},
                                           {NULL, NULL}};
    for (int i = 0; names[i][0]; i++)
        if (!strcmp(names[i][0], key) && topt_json_was_asked(whole, names[i][1]) &&
            json_equal(value, json_object_get(whole, names[i][1])))
            return 1;
    return 0;
}

/* A share or an expansion makes a size; other fractions scale numbers. */
static int is_scale(const char *key)
{
    return !strstr(key, "ratio") && !strstr(key, "expan") && !strstr(key, "dim") &&
           !strstr(key, "width") && !strstr(key, "size");
}

/* Nothing is switched on by null or false, or by an empty list. */
static int says_nothing(const char *key, const json_t *value)
{
    return json_is_null(value) || json_is_false(value) ||
           (json_is_array(value) && !json_array_size(value)) ||
           (json_is_object(value) && !json_object_size(value)) ||
           (json_is_string(value) && !json_string_length(value)) ||
           (json_is_integer(value) && !json_integer_value(value)) ||
           (json_is_real(value) && is_scale(key));
}

int topt_hf_unread_keys(const json_t *doc, const json_t *whole, const char *type,
                        char *ret, size_t size)
{
    const char *key;
    json_t *value, *row = type ? topt_hf_class(type) : NULL,
                   *list = topt_hf_class("harmless");
    size_t n = 0;
    int found = 0;
    ret[0] = '\0';
    json_object_foreach((json_t *)doc, key, value)
    {
        if (says_nothing(key, value) || is_harmless(list, key, value) ||
            is_second_name(whole, key, value) || topt_hf_asked(whole, row, key, value))
            continue;
        found++;
        if (n + 80 < size)
            n += (size_t)snprintf(ret + n, size - n, "%s%.60s", n ? ", " : "", key);
    }
    json_decref(row);
    json_decref(list);
    return found;
}

void topt_hf_note_unread(const json_t *doc, const json_t *whole, const char *type,
                         struct hf_arch *a)
{
    char keys[300], text[360];
    if (!topt_hf_unread_keys(doc, whole, type, keys, sizeof keys))
        return;
    snprintf(text, sizeof text, TOPT_HF_UNREAD "%s", keys);
    topt_hf_note(a, text);
}
