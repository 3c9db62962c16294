/* hf_read_each.c - readers of decoders whose layers differ one by one in heads and widths.
 *
 * A copy of the config gets usual names and a list with a number for each layer; the reader
 * that others share takes those lists, and a layer without one of its halves is marked here. */
#include "hf_read_each.h"
#include "hf_read.h"
#include "hf_read_decoder.h"
#include "topt_json.h"

#include <stdio.h>

/* ---- Puzzle: Nemotron Super and Ultra (Bercovich et al., 2024) ---------------------- */

/* Two thirds of so many widths for gate and up, in whole multiples of 256. */
static int64_t gated_width(double times, int64_t width)
{
    enum { UNIT = 256 };
    int64_t n = (int64_t)(2 * times * (double)width / 3);
    return (n + UNIT - 1) / UNIT * UNIT;
}

/* A half of a block: it is there, it is not, or one linear map stands in its place. */
static unsigned kind_of_half(const json_t *half, unsigned none, unsigned map)
{
    return json_is_true(topt_json_member(half, "no_op"))                 ? none
           : json_is_true(topt_json_member(half, "replace_with_linear")) ? map
                                                                         : 0;
}

static unsigned kind_of_block(const json_t *block)
{
    return kind_of_half(topt_json_member(block, "attention"), HF_NO_MIX, HF_MAP_MIX) |
           kind_of_half(topt_json_member(block, "ffn"), HF_NO_MLP, HF_MAP_MLP);
}

/* Key-value heads and the width inside of one block; a half that is not there keeps the sizes
 * of a whole model, which nothing reads. */
static int read_block(const json_t *block, int64_t i, const struct hf_arch *sizes,
                      json_t *kv_heads, json_t *inner, struct topt_error *err)
{
    const json_t *attention = topt_json_member(block, "attention");
    const json_t *ffn = topt_json_member(block, "ffn");
    unsigned kind = kind_of_block(block);
    int64_t group = 1, width = 0;
    double times = 1;
    char place[60];
    snprintf(place, sizeof place, "block_configs[%lld]", (long long)i);
    if (!json_is_object(attention) || !json_is_object(ffn))
        return topt_fail(err, TOPT_ERR_INVAL, "%s must have attention and ffn", place);
    if (!(kind & (HF_NO_MIX | HF_MAP_MIX)) &&
        (topt_json_int(attention, place, "n_heads_in_group", 1, HF_MAX_HEADS, &group,
                       err) ||
         topt_hf_divides("num_attention_heads", sizes->heads, "n_heads_in_group", group,
                         err)))
        return topt_wrap(err, "%s", place);
    if (!(kind & (HF_NO_MLP | HF_MAP_MLP)) &&
        (topt_json_real_or(ffn, place, "ffn_mult", 1e-3, 1e3, &times, err) ||
         topt_json_int_or(ffn, place, "intermediate_size", 1, HF_MAX_WIDTH, &width, err)))
        return -1;
    json_array_append_new(kv_heads, json_integer(sizes->heads / group));
    json_array_append_new(inner,
                          json_integer(width ? width : gated_width(times, sizes->width)));
    return 0;
}

/* Blocks that a search chose, each with its share of key-value heads and its width inside, or
 * without one of its halves. */
int topt_hf_read_puzzle(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("hidden_size", width, HF_MAX_WIDTH),
        HF_SIZE("num_attention_heads", heads, HF_MAX_HEADS),
        HF_SIZE("num_hidden_layers", layers, HF_MAX_LAYERS),
        {0}};
    const json_t *blocks = topt_json_member(doc, "block_configs");
    if (topt_hf_sizes(doc, sizes, a, err))
        return -1;
    if (!json_is_array(blocks) || (int64_t)json_array_size(blocks) != a->layers)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "block_configs must be an array of %lld blocks",
                         (long long)a->layers);
    json_t *usual = json_copy((json_t *)doc), *kv = json_array(), *inner = json_array();
    int rc = usual && kv && inner ? 0 : topt_nomem(err, "a config");
    for (int64_t i = 0; !rc && i < a->layers; i++) {
        const json_t *block = json_array_get(blocks, (size_t)i);
        rc = read_block(block, i, a, kv, inner, err);
        a->layer[i] = (uint16_t)kind_of_block(block);
    }
    rc = rc || json_object_set(usual, "num_key_value_heads", kv) ||
         json_object_set(usual, "intermediate_size", inner) ||
         topt_hf_read_decoder(usual, a, err);
    json_decref(kv);
    json_decref(inner);
    json_decref(usual);
    return rc ? -1 : 0;
}

/* ---- DeciLM ------------------------------------------------------------------------ */

int topt_hf_read_decilm(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    json_t *each = topt_json_member(doc, "num_key_value_heads_per_layer");
    json_t *usual = json_copy((json_t *)doc);
    if (!usual)
        return topt_nomem(err, "a config");
    if (each)
        json_object_set(usual, "num_key_value_heads", each);
    int rc = topt_hf_read_decoder(usual, a, err);
    json_decref(usual);
    return rc;
}

/* ---- OpenELM (Mehta et al., 2024) --------------------------------------------------- */

/* So many widths to the nearest multiple of 'unit', but not a tenth less. */
static int64_t rounded_width(double times, int64_t width, int64_t unit)
{
    double wanted = times * (double)width;
    int64_t n = (int64_t)(wanted + (double)unit / 2) / unit * unit;
    n = n < unit ? unit : n;
    return (double)n < 0.9 * wanted ? n + unit : n;
}

static json_t *widths_inside(const json_t *times, int64_t width, int64_t unit)
{
    json_t *ret = json_array();
    for (size_t i = 0; ret && i < json_array_size(times); i++) {
        double n = json_number_value(json_array_get(times, i));
        json_array_append_new(
            ret, json_integer(n > 0 && n < 1e3 ? rounded_width(n, width, unit) : 0));
    }
    return ret;
}

int topt_hf_read_openelm(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const char *const names[][2] = {
        {"model_dim", "hidden_size"},
        {"num_transformer_layers", "num_hidden_layers"},
        {"num_query_heads", "num_attention_heads"},
        {"num_kv_heads", "num_key_value_heads"},
        {"max_context_length", "max_position_embeddings"},
        {"share_input_output_layers", "tie_word_embeddings"},
        {"activation_fn_name", "hidden_act"},
        {"rope_freq_constant", "rope_theta"},
        {NULL, NULL}};
    int64_t width = 0, unit = 256;
    json_t *times = topt_json_member(doc, "ffn_multipliers");
    int norms = 1;
    if (topt_json_int(doc, "", "model_dim", 1, HF_MAX_WIDTH, &width, err) ||
        topt_json_int_or(doc, "", "ffn_dim_divisor", 1, HF_MAX_WIDTH, &unit, err) ||
        topt_json_bool_or(doc, "", "normalize_qk_projections", &norms, err) ||
        topt_hf_refuse_flag(doc, "ffn_with_glu", 1, "it has gated feed-forwards alone",
                            err) ||
        topt_hf_expect(doc, "normalization_layer_name", "rms_norm", err))
        return -1;
    if (!json_is_array(times))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "ffn_multipliers must be an array with a number for each layer");
    /* they follow from lists that are read */
    (void)topt_json_member(doc, "num_gqa_groups");
    (void)topt_json_member(doc, "qkv_multipliers");
    a->traits |= norms ? HF_T_HEADS : 0;
    json_t *usual = json_copy((json_t *)doc);
    if (!usual)
        return topt_nomem(err, "a config");
    for (int i = 0; names[i][0]; i++)
        if (topt_json_member(doc, names[i][0]))
            json_object_set(usual, names[i][1], topt_json_member(doc, names[i][0]));
    json_object_set_new(usual, "intermediate_size", widths_inside(times, width, unit));
    int rc = topt_hf_read_decoder(usual, a, err);
    json_decref(usual);
    return rc;
}
