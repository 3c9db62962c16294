/* hf_read.c - what the readers of Hugging Face configs share, and the table of
 * families.
 *
 * What a config asks for and the operators can't do is refused by the name of its key.
 * Fields that change neither shapes nor arithmetic of training (token ids, cache, ...)
 * are not read.  Where a key may be left out, its value is the one that the family's
 * configuration class gives it. */
#include "hf_read.h"
#include "topt_json.h"

#include <stdio.h>
#include <string.h>

int topt_hf_sizes(const json_t *doc, const struct hf_size *s, struct hf_arch *a,
                  struct topt_error *err)
{
    for (; s->key; s++)
        if (topt_json_int(doc, "", s->key, 1, s->max, (int64_t *)((char *)a + s->offset),
                          err))
            return -1;
    return 0;
}

int topt_hf_sizes_or(const json_t *doc, const struct hf_size *s, struct hf_arch *a,
                     struct topt_error *err)
{
    for (; s->key; s++)
        if (topt_json_int_or(doc, "", s->key, 1, s->max,
                             (int64_t *)((char *)a + s->offset), err))
            return -1;
    return 0;
}

int topt_hf_refuse_flag(const json_t *doc, const char *key, int want, const char *why,
                        struct topt_error *err)
{
    int on = want;
    if (topt_json_bool_or(doc, "", key, &on, err))
        return -1;
    return on == want ? 0
                      : topt_fail(err, TOPT_ERR_INVAL, "%s is %s: %s", key,
                                  on ? "true" : "false", why);
}

int topt_hf_divides(const char *what, int64_t n, const char *by, int64_t d,
                    struct topt_error *err)
{
    return n % d == 0
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "%s %lld is not a multiple of %s %lld",
                           what, (long long)n, by, (long long)d);
}

int topt_hf_unturned(const json_t *doc, int64_t every, struct hf_arch *a,
                     struct topt_error *err)
{
    const json_t *list = topt_json_member(doc, "no_rope_layers");
    if (topt_json_int_or(doc, "", "no_rope_layer_interval", 1, HF_MAX_LAYERS, &every,
                         err))
        return -1;
    if (json_array_size(list) && json_array_size(list) != (size_t)a->layers)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "no_rope_layers must be an array of %lld numbers",
                         (long long)a->layers);
    for (int64_t i = 0; i < a->layers; i++) {
        int turned = json_array_size(list)
                         ? json_integer_value(json_array_get(list, (size_t)i)) != 0
                         : !every || (i + 1) % every;
        a->layer[i] |= turned ? 0 : HF_UNTURNED;
    }
    return 0;
}

int topt_hf_activation_named(const char *key, const char *name, int *ret,
                             struct topt_error *err)
{
    static const struct {
        const char *name;
        enum topt_activation a;
    } known[] = {{"gelu_new", TOPT_ACT_GELU},
                 {"gelu", TOPT_ACT_GELU_ERF},
                 {"gelu_fast", TOPT_ACT_GELU},
                 {"gelu_pytorch_tanh", TOPT_ACT_GELU},
                 {"gelu_python", TOPT_ACT_GELU_ERF},
                 {"gelu_accurate", TOPT_ACT_GELU},
                 {"relu", TOPT_ACT_RELU},
                 {"silu", TOPT_ACT_SILU},
                 {"swish", TOPT_ACT_SILU},
                 {"tanh", TOPT_ACT_TANH},
                 {"sigmoid", TOPT_ACT_SIGMOID},
                 {"relu2", TOPT_ACT_RELU2},
                 {"relu_squared", TOPT_ACT_RELU2},
                 {"quick_gelu", TOPT_ACT_QUICK_GELU}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name)) {
            *ret = (int)known[i].a;
            return 0;
        }
    return topt_fail(err, TOPT_ERR_INVAL, "%s is \"%.40s\", which is not known", key,
                     name);
}

int topt_hf_activation(const json_t *doc, const char *key, int *ret,
                       struct topt_error *err)
{
    const char *name = NULL;
    if (topt_json_string_or(doc, "", key, &name, err))
        return -1;
    return name ? topt_hf_activation_named(key, name, ret, err) : 0;
}

int topt_hf_activation_of(const char *key, const char *name, struct hf_arch *a,
                          struct topt_error *err)
{
    static const struct {
        const char *name, *like, *why;
    } near[] = {{"xielu", "silu", "xielu"},
                {"laplace", "gelu", "laplace"},
                {"mish", "silu", "mish"}};
    a->curved = !strcmp(name, "xielu");
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        if (!strcmp(near[i].name, name)) {
            a->not_run = near[i].why;
            name = near[i].like;
            break;
        }
    return topt_hf_activation_named(key, name, &a->activation, err);
}

int topt_hf_set_heads(struct hf_arch *a, struct topt_error *err)
{
    a->kv_heads = a->kv_heads ? a->kv_heads : a->heads;
    if (topt_hf_divides("the number of heads", a->heads, "num_key_value_heads",
                        a->kv_heads, err) ||
        (!a->head_dim &&
         topt_hf_divides("the width", a->width, "the number of heads", a->heads, err)))
        return -1;
    a->head_dim = a->head_dim ? a->head_dim : a->width / a->heads;
    return 0;
}

int topt_hf_expect(const json_t *doc, const char *key, const char *want,
                   struct topt_error *err)
{
    const char *have = want;
    if (topt_json_string_or(doc, "", key, &have, err))
        return -1;
    return !strcmp(have, want)
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "%s is \"%.40s\": no operator does that",
                           key, have);
}

const struct hf_size topt_hf_usual_sizes[] = {
    HF_SIZE("hidden_size", width, HF_MAX_WIDTH),
    HF_SIZE("num_hidden_layers", layers, HF_MAX_LAYERS),
    HF_SIZE("num_attention_heads", heads, HF_MAX_HEADS),
    HF_SIZE("intermediate_size", inner, 4 * HF_MAX_WIDTH),
    HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
    HF_SIZE("max_position_embeddings", context, HF_MAX_CONTEXT),
    {0}};

const struct hf_size topt_hf_two_stacks[] = {
    HF_SIZE("d_model", width, HF_MAX_WIDTH),
    HF_SIZE("encoder_layers", encoder_layers, HF_MAX_LAYERS),
    HF_SIZE("decoder_layers", layers, HF_MAX_LAYERS),
    HF_SIZE("encoder_attention_heads", encoder_heads, HF_MAX_HEADS),
    HF_SIZE("decoder_attention_heads", heads, HF_MAX_HEADS),
    HF_SIZE("encoder_ffn_dim", encoder_inner, 4 * HF_MAX_WIDTH),
    HF_SIZE("decoder_ffn_dim", inner, 4 * HF_MAX_WIDTH),
    HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
    {0}};

int topt_hf_window(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return topt_json_int_or(doc, "", "sliding_window", 1, INT64_MAX, &a->window, err);
}

/* One entry of "layer_types". */
static int layer_type(const json_t *name, int64_t i, struct hf_arch *a,
                      struct topt_error *err)
{
    const char *s = json_string_value(name);
    int local = s && (!strcmp(s, "sliding_attention") || !strcmp(s, "chunked_attention"));
    if (!local && (!s || strcmp(s, "full_attention")))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "layer_types[%lld] is \"%.40s\": no operator does that",
                         (long long)i, s ? s : "no string");
    a->layer[i] |= local ? HF_LOCAL : 0;
    return 0;
}

int topt_hf_local_layers(const json_t *doc, int64_t first, int64_t full_every,
                         struct hf_arch *a, struct topt_error *err)
{
    const json_t *types = topt_json_member(doc, "layer_types");
    if (!types || json_is_null(types)) {
        for (int64_t i = first; i < a->layers; i++)
            a->layer[i] |= full_every && (i + 1) % full_every == 0 ? 0 : HF_LOCAL;
        return 0;
    }
    if (!json_is_array(types) || json_array_size(types) != (size_t)a->layers)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "layer_types must be an array of %lld names",
                         (long long)a->layers);
    for (int64_t i = 0; i < a->layers; i++)
        if (layer_type(json_array_get(types, (size_t)i), i, a, err))
            return -1;
    return 0;
}

void topt_hf_classes(const json_t *doc, struct hf_arch *a)
{
    const json_t *names = topt_json_member(doc, "id2label");
    const json_t *number = topt_json_member(doc, "num_labels");
    size_t n = json_object_size(names);
    if (!n && json_is_integer(number) && json_integer_value(number) > 0)
        n = (size_t)json_integer_value(number);
    a->classes = n ? (int64_t)n : 2;
}

void topt_hf_note(struct hf_arch *a, const char *what)
{
    size_t n = strlen(a->note);
    snprintf(a->note + n, sizeof a->note - n, "%s%s", n ? "; " : "", what);
}

void topt_hf_give_slots(struct hf_arch *a)
{
    a->capacity = 1;
}

int topt_hf_stage_list(const json_t *doc, const char *key, int64_t max, struct hf_arch *a,
                       int64_t *ret, struct topt_error *err)
{
    const json_t *list = topt_json_member(doc, key);
    size_t n = json_array_size(list);
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list) || n < 1 || n > HF_MAX_STAGES ||
        (a->stages && n != (size_t)a->stages))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s must be an array of numbers, one for each of at most %d "
                         "stages",
                         key, HF_MAX_STAGES);
    a->stages = (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(list, i);
        ret[i] = json_is_integer(one) ? json_integer_value(one) : 0;
        if (ret[i] < 1 || ret[i] > max)
            return topt_fail(err, TOPT_ERR_INVAL, "%s[%zu] must be 1..%lld", key, i,
                             (long long)max);
    }
    return 0;
}
