/* hf_unread.c - keys of a Hugging Face config that no reader asked for.
 *
 * A number that is read in silence as if it were not there makes a wrong count, so each
 * such key is told of.  Left out are keys of tokenizers, generation, training and
 * bookkeeping, which no model is built from, and values that say "not used". */
#include "hf_unread.h"
#include "hf_complete.h"
#include "hf_read.h"
#include "topt_json.h"

#include <stdio.h>
#include <string.h>

/* Keys of which no parameter comes: bookkeeping, tokens, generation, training, what a
 * forward pass does beside weights, and second names of sizes that readers ask for.
 * Between blanks. */
static const char harmless[] =
    " architectures model_type name_or_path transformers_version auto_map use_cache "
    "id2label label2id num_labels problem_type finetuning_task "
    "task_specific_params prefix torchscript gradient_checkpointing "
    "tokenizer_class return_dict pruned_heads is_encoder_decoder is_decoder "
    "tie_encoder_decoder use_return_dict use_mems_eval use_mems_train mem_len "
    "unsloth_version unsloth_fixed quantization_config compression_config "
    "use_bfloat16 use_flash_attn use_flash_attention use_flash_attention_2 "
    "attn_implementation use_sdpa memory_efficient_attention unpad_inputs "
    "flash_attn use_kernels max_length min_length max_new_tokens do_sample "
    "early_stopping num_beams num_beam_groups temperature top_p typical_p "
    "repetition_penalty length_penalty diversity_penalty num_return_sequences "
    "remove_invalid_values bad_words_ids exponential_decay_length_penalty "
    "no_repeat_ngram_size encoder_no_repeat_ngram_size max_sequence_length "
    "model_max_length seq_length max_seq_len max_seq_length n_ctx "
    "initial_context_length original_max_position_embeddings tokenizer_model "
    "use_stable_embedding output_past normalize_before normalize_embedding n_group "
    "topk_group topk_method norm_topk_prob scoring_func score_function "
    "router_dtype seq_aux ep_size moe_capacity swiglu_limit num_experts_per_tok "
    "input_jitter_noise layer_switch order_of_interleaved_layers "
    "use_embedding_sharing use_gated_activation use_parallel_block "
    "use_parallel_embedding qk_norm_type normalization_function "
    "mamba_inner_layernorms block_dim conv_dim kv_channels attn_rotary_emb "
    "mlp_multipliers ssm_multipliers decoder_bias static_position_embeddings "
    "post_layer_norm rmsnorm no_bias pos_att_type codevector_dim "
    "apply_spec_augment learned_pos_emb attn_config position_embedding_type "
    "global_block_size expert_capacity afn adapter_kernel_size adapter_stride "
    "num_adapter_layers num_feat_extract_layers output_hidden_size projection_dim "
    "num_clusters num_codevector_groups num_codevectors_per_group "
    "pooler_hidden_size untie_r attention_head_dim expand d_inner "
    "summary_proj_to_labels summary_type summary_use_proj num_negatives "
    "proj_codevector_dim pool_scales decoder_sparse_step encoder_sparse_step "
    "ignore_index image_seq_length use_linear_projection addition_time_embed_dim "
    "pos_embed_max_size caption_projection_dim xvector_output_dim tie_weights_ "
    "median_filter_width directionality pooler_fc_size pooler_num_attention_heads "
    "pooler_num_fc_layers pooler_size_per_head pooler_type n_positions "
    "add_final_layer_norm layernorm_embedding extra_pos_embeddings add_bias_logits "
    "force_bos_token_to_be_generated offset_alibi skip_bias_add skip_bias_add_qkv "
    "masked_softmax_fusion slow_but_exact scale_attn_weights scale_embedding "
    "apply_query_key_layer_scaling fp32_residual_connection cache_implementation "
    "fused_dense flash_rotary verbose use_mamba_kernels "
    "calc_logits_for_entire_prompt rescale_prenorm_residual "
    "moe_shared_expert_overlap num_logits_to_keep experts_per_token "
    "shared_moe_mode attn_type_list use_rmsnorm moe_use_aux_free cla_share_factor "
    "num_media_embeds pool_type group_limited_greedy moe_drop_tokens "
    "moe_random_routing_dropped_token encoder_stride use_weighted_layer_sum "
    "is_gated_act max_model_len vision_feature_layer "
    "vision_feature_select_strategy projector_hidden_act image_grid_pinpoints "
    "use_image_newline_parameter downsample_mode template system_message "
    "ps_version select_layer min_dynamic_patch max_dynamic_patch "
    "dynamic_image_size use_thumbnail force_image_size image_size_for_tokens "
    "pad2square mm_tokens_per_image boi_token_index eoi_token_index "
    "image_text_hidden_size logit_scale_init_value use_backbone_lora use_llm_lora "
    " language_model_only "
    "fullatt_block_indexes spatial_patch_size tokens_per_second vision_output_dim "
    "intermediate_layers_indices spatial_pool_mode spatial_pool_stride video_seq_length "
    "position_id_per_seconds seconds_per_chunk use_decoder_only_language_model crop_size "
    "ext_pw_out_channel nemo_conv_channels chunk_size_feed_forward default_output_length "
    "standardize vision_soft_tokens_per_image "
    "context_window_size prefill_chunk_size attention_sink_size sliding_window_size "
    "moe_router_enable_expert_bias use_dynamic_ntk use_logn_attn n_special "
    "predict_special_tokens is_llama_config "
    "transformers.js_config full_attn_mod interpolate_factor pretraining_tp ";

/* Parts of names that are as harmless. */
static const char *const parts[] = {"dropout",
                                    "pdrop",
                                    "token_id",
                                    "_token_index",
                                    "dtype",
                                    "_coef",
                                    "_loss",
                                    "noise",
                                    "init",
                                    "_eps",
                                    "epsilon",
                                    "rope",
                                    "rotary",
                                    "droppath",
                                    "drop_path",
                                    "layerdrop",
                                    "output_router",
                                    "output_att",
                                    "output_hidden_st",
                                    "suppress_tokens",
                                    "ctc_",
                                    "forced_",
                                    "_token_",
                                    "mask_time",
                                    "mask_feature",
                                    "time_step",
                                    "tdnn",
                                    "contrastive",
                                    "softmax_",
                                    "in_fp32",
                                    "router_prob",
                                    "nextn",
                                    "mtp",
                                    NULL};

/* Says something where it is no 1. */
static const char ones[] = " moe_layer_freq num_hidden_groups ";

static int is_among(const char *list, const char *key)
{
    char word[90];
    snprintf(word, sizeof word, " %.80s ", key);
    return strstr(list, word) != NULL;
}

static int is_harmless(const char *key, const json_t *value)
{
    if (key[0] == '_' || is_among(harmless, key))
        return 1;
    for (int i = 0; parts[i]; i++)
        if (strstr(key, parts[i]))
            return 1;
    if (json_is_string(value) && (strstr(key, "activation") || strstr(key, "_act")))
        return 1;
    return is_among(ones, key) && json_integer_value(value) == 1;
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
           (json_is_real(value) && is_scale(key));
}

int topt_hf_unread_keys(const json_t *doc, const json_t *whole, const char *type,
                        char *ret, size_t size)
{
    const char *key;
    json_t *value, *row = type ? topt_hf_class(type) : NULL;
    size_t n = 0;
    int found = 0;
    ret[0] = '\0';
    json_object_foreach((json_t *)doc, key, value)
    {
        if (says_nothing(key, value) || is_harmless(key, value) ||
            is_second_name(whole, key, value) || topt_hf_asked(whole, row, key, value))
            continue;
        found++;
        if (n + 80 < size)
            n += (size_t)snprintf(ret + n, size - n, "%s%.60s", n ? ", " : "", key);
    }
    json_decref(row);
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
