#!/usr/bin/env python3
"""Write solver/model/hf/read/hf_defaults.json: what the configuration classes of Hugging Face transformers
take where a config.json leaves a key out.

    python3 make_defaults.py > ../../../solver/model/hf/read/hf_defaults.json

Run it where the transformers are whose defaults are wanted (the file says which wrote it).  Of each class
come the numbers, flags and words that say something of a model's shape or arithmetic, the other names that
its configs may use, and the base of its rotary angles.  None stands for what the class computes from
other keys and is left out."""
import dataclasses
import json

import transformers
from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

TYPES = """
afmoe albert apertus arcee audio-spectrogram-transformer bamba bart beit bert biogpt blenderbot bloom camembert
clip clip_text_model clip_vision_model codegen cohere cohere2 convnext dbrx deberta deberta-v2 deepseek_v2
deepseek_v3 deepseek_v32 deepseek_v4 deit dinov2 dinov3_vit distilbert dots1 electra ernie4_5 ernie4_5_moe esm
eurobert exaone4 exaone_moe falcon falcon_h1 falcon_mamba flex_olmo gemma gemma2 gemma3_text gemma3n_text
gemma4_text glm glm4 glm4_moe glm4_moe_lite glm4v_text glm4v_moe_text glm_moe_dsa gpt2 gpt_bigcode gpt_neo gpt_neox
gpt_oss gptj granite granitemoe granitemoehybrid granitemoeshared helium hubert hunyuan_v1_dense hunyuan_v1_moe
hy_v3 internvl_vision jamba lfm2 lfm2_moe llama llama4_text llama4_vision_model longt5 m2m_100 mamba mamba2 marian mbart
minimax minimax_m2 ministral ministral3 mistral mistral4 mixtral mllama_text_model modernbert modernbert-decoder mpnet mpt
mt5 nanochat nemotron nemotron_h nomic_bert olmo olmo2 olmo3 olmoe opt pegasus persimmon phi phi3 phimoe pixtral qwen2 qwen2_5_vl
qwen2_5_vl_text qwen2_5_vl_vision qwen2_moe qwen2_vl qwen2_vl_text qwen2_vl_vision qwen3 qwen3_5_moe_text qwen3_5_moe_vision
qwen3_5_text qwen3_5_vision qwen3_moe qwen3_next qwen3_vl_moe_text qwen3_vl_moe_vision qwen3_vl_text
qwen3_vl_vision roberta seed_oss siglip2_vision_model siglip siglip_text_model siglip_vision_model smollm3 solar_open stablelm
aya_vision big_bird hyperclovax jais2 layoutlm longformer blenderbot-small convnextv2 cwm data2vec-audio data2vec-text data2vec-vision dinov2_with_registers ernie
gemma4_vision glm4v_vision idefics2_vision idefics3_vision megatron-bert mllama_vision_model mvp openai-gpt plbart resnet
roberta-prelayernorm smolvlm_vision swin unispeech unispeech-sat vit_mae vit_msn starcoder2 switch_transformers t5 umt5 vaultgemma vit wav2vec2 wavlm whisper xglm xlm-roberta xlm-roberta-xl
bert-generation bros dpr efficientnet flaubert ibert jina_embeddings_v3 layoutlmv3 mobilenet_v1 mobilenet_v2 mra nystromformer regnet
roformer segformer tapas xlm xlnet yoso
aria_text bitnet cohere2_moe ctrl diffllama gemma4_unified_text glm_image_text glm_ocr_text laguna mellum
olmo_hybrid qwen2_5_omni_text qwen2_5_omni_vision_encoder qwen2_5_omni_audio_encoder qwen2_audio_encoder voxtral_encoder
audioflamingo3_encoder blip_2_vision_model blip_2_qformer phi4_multimodal phi4_multimodal_audio phi4_multimodal_vision led rwkv youtu siglip2_text_model metaclip_2_text_model metaclip_2_vision_model
longcat_flash minimax_m3_vl_text
"""

# What classes of diffusers (0.35) take for keys that no reader here asks for: with another value the key is told of.
DIFFUSERS = {
    "UNet2DConditionModel": {
        "mid_block_type": "UNetMidBlock2DCrossAttn", "downsample_padding": 1, "mid_block_scale_factor": 1,
        "act_fn": "silu", "norm_num_groups": 32, "resnet_time_scale_shift": "default", "freq_shift": 0,
        "flip_sin_to_cos": True, "use_linear_projection": False, "upcast_attention": False,
        "resnet_out_scale_factor": 1.0, "time_embedding_type": "positional", "conv_in_kernel": 3,
        "conv_out_kernel": 3, "attention_type": "default", "addition_embed_type_num_heads": 64},
    "ChromaTransformer2DModel": {"patch_size": 1, "axes_dims_rope": [16, 56, 56]},
    "Flux2Transformer2DModel": {"patch_size": 1, "axes_dims_rope": [32, 32, 32, 32], "timestep_guidance_channels": 256,
                                "rope_theta": 2000},
    "HunyuanVideoTransformer3DModel": {"qk_norm": "rms_norm", "rope_theta": 256.0, "rope_axes_dim": [16, 56, 56]},
    "LTXVideoTransformer3DModel": {
        "patch_size_t": 1, "qk_norm": "rms_norm_across_heads", "attention_bias": True, "attention_out_bias": True,
        "norm_elementwise_affine": False, "activation_fn": "gelu-approximate"},
    "PixArtTransformer2DModel": {
        "norm_num_groups": 32, "attention_bias": True, "num_embeds_ada_norm": 1000, "norm_type": "ada_norm_single",
        "attention_type": "default", "norm_elementwise_affine": False, "activation_fn": "gelu-approximate"},
    "ZImageTransformer2DModel": {"all_f_patch_size": [1], "all_patch_size": [2], "axes_dims": [32, 48, 48],
                                 "axes_lens": [1024, 512, 512]},
    "FluxTransformer2DModel": {"patch_size": 1, "axes_dims_rope": [16, 56, 56]},
    "QwenImageTransformer2DModel": {"patch_size": 2, "axes_dims_rope": [16, 56, 56], "zero_cond_t": False,
                                    "use_layer3d_rope": False},
    "CogVideoXTransformer3DModel": {
        "in_channels": 16, "activation_fn": "gelu-approximate", "timestep_activation_fn": "silu", "flip_sin_to_cos": True,
        "freq_shift": 0, "norm_elementwise_affine": True, "patch_bias": True,
        "use_rotary_positional_embeddings": False},
    "WanTransformer3DModel": {"in_channels": 16, "freq_dim": 256, "qk_norm": "rms_norm_across_heads"},
    "DiTTransformer2DModel": {"activation_fn": "gelu-approximate", "attention_bias": True, "norm_num_groups": 32},
    "Transformer2DModel": {"activation_fn": "gelu-approximate", "attention_bias": True, "norm_num_groups": 32},
}

# Keys of configs of which no parameter comes: bookkeeping, tokens, generation, training, what a forward pass does beside
# weights, and second names of sizes that readers ask for; parts of names that are as harmless; and keys that say something
# where they are no 1.
HARMLESS = {"whole": """
architectures model_type name_or_path transformers_version auto_map use_cache id2label label2id num_labels
problem_type finetuning_task task_specific_params prefix torchscript gradient_checkpointing tokenizer_class
return_dict pruned_heads is_encoder_decoder is_decoder tie_encoder_decoder use_return_dict use_mems_eval
use_mems_train mem_len unsloth_version unsloth_fixed quantization_config compression_config use_bfloat16
use_flash_attn use_flash_attention use_flash_attention_2 attn_implementation use_sdpa memory_efficient_attention
unpad_inputs flash_attn use_kernels max_length min_length max_new_tokens do_sample early_stopping num_beams
num_beam_groups temperature top_p typical_p repetition_penalty length_penalty diversity_penalty num_return_sequences
remove_invalid_values bad_words_ids exponential_decay_length_penalty no_repeat_ngram_size
encoder_no_repeat_ngram_size max_sequence_length model_max_length seq_length max_seq_len max_seq_length n_ctx
initial_context_length original_max_position_embeddings tokenizer_model use_stable_embedding output_past
normalize_before normalize_embedding n_group topk_group topk_method norm_topk_prob scoring_func score_function
router_dtype seq_aux ep_size moe_capacity swiglu_limit num_experts_per_tok input_jitter_noise layer_switch
order_of_interleaved_layers use_embedding_sharing use_gated_activation use_parallel_block use_parallel_embedding
qk_norm_type normalization_function mamba_inner_layernorms block_dim conv_dim kv_channels attn_rotary_emb
mlp_multipliers ssm_multipliers decoder_bias static_position_embeddings post_layer_norm rmsnorm no_bias pos_att_type
codevector_dim apply_spec_augment learned_pos_emb attn_config position_embedding_type global_block_size
expert_capacity afn adapter_kernel_size adapter_stride num_adapter_layers num_feat_extract_layers output_hidden_size
projection_dim num_clusters num_codevector_groups num_codevectors_per_group pooler_hidden_size untie_r
attention_head_dim expand d_inner summary_proj_to_labels summary_type summary_use_proj num_negatives
proj_codevector_dim pool_scales decoder_sparse_step encoder_sparse_step ignore_index image_seq_length
use_linear_projection addition_time_embed_dim pos_embed_max_size caption_projection_dim xvector_output_dim
tie_weights_ median_filter_width directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
pooler_size_per_head pooler_type n_positions add_final_layer_norm layernorm_embedding extra_pos_embeddings
add_bias_logits force_bos_token_to_be_generated offset_alibi skip_bias_add skip_bias_add_qkv masked_softmax_fusion
slow_but_exact scale_attn_weights scale_embedding apply_query_key_layer_scaling fp32_residual_connection
cache_implementation fused_dense flash_rotary verbose use_mamba_kernels calc_logits_for_entire_prompt
rescale_prenorm_residual moe_shared_expert_overlap num_logits_to_keep experts_per_token shared_moe_mode
attn_type_list use_rmsnorm moe_use_aux_free cla_share_factor num_media_embeds pool_type group_limited_greedy
moe_drop_tokens moe_random_routing_dropped_token encoder_stride use_weighted_layer_sum is_gated_act max_model_len
vision_feature_layer vision_feature_select_strategy projector_hidden_act image_grid_pinpoints
use_image_newline_parameter downsample_mode template system_message ps_version select_layer min_dynamic_patch
max_dynamic_patch dynamic_image_size use_thumbnail force_image_size image_size_for_tokens pad2square
mm_tokens_per_image boi_token_index eoi_token_index image_text_hidden_size logit_scale_init_value use_backbone_lora
use_llm_lora language_model_only fullatt_block_indexes spatial_patch_size tokens_per_second vision_output_dim
intermediate_layers_indices spatial_pool_mode spatial_pool_stride video_seq_length position_id_per_seconds
seconds_per_chunk use_decoder_only_language_model crop_size ext_pw_out_channel nemo_conv_channels
chunk_size_feed_forward default_output_length standardize vision_soft_tokens_per_image context_window_size
prefill_chunk_size attention_sink_size sliding_window_size moe_router_enable_expert_bias use_dynamic_ntk
use_logn_attn n_special predict_special_tokens is_llama_config transformers.js_config full_attn_mod
interpolate_factor pretraining_tp use_grouped_topk use_gemma_norm use_routing_bias moe_layer_offset moe_every_n_layer
need_fp32_gate swiglu_limits swiglu_limits_shared swiglu_alpha yarn_only_types attention_chunk_size true_head_dim qk_head_dim top_k output_gate_type
upcast_attention moe_router_score_func activation_sparsity_pattern quantization group_size bits block_use_swiglu
conv_dim_out use_pos_enc do_image_splitting encoder_patch_size max_image_tokens max_tiles min_image_tokens min_tiles
tile_size use_image_special_tokens image_seq_len postnorm
""", "parts": """
dropout pdrop token_id _token_index dtype _coef _loss noise init _eps epsilon rope rotary droppath drop_path
layerdrop output_router output_att output_hidden_st suppress_tokens ctc_ forced_ _token_ mask_time mask_feature
time_step tdnn contrastive softmax_ in_fp32 router_prob nextn mtp
""", "ones": "moe_layer_freq num_hidden_groups"}

# Types that transformers has and no reader here takes, by what they do for which there is no operator, loss or reader.
UNREAD = {
    "it is an object detector, whose loss matches boxes": """
        conditional_detr d_fine dab-detr deformable_detr deimv2 detr grounding-dino lw_detr mm-grounding-dino
        omdet-turbo owlv2 owlvit pp_doclayout_v2 pp_doclayout_v3 rf-detr rf_detr rt_detr rt_detr_resnet rt_detr_v2 lw_detr_vit sam3_detr_decoder sam3_detr_encoder
        sam3_lite_text_detr_decoder sam3_lite_text_detr_encoder slanet slanext table-transformer yolos""",
    "it is a segmentation model": """
        clipseg edgetam eomt_dinov3 sam3_geometry_encoder sam3_lite_text_geometry_encoder sam3_lite_text_mask_decoder
        sam3_mask_decoder sapiens2 sapiens2_head videomt vitmatte vitpose edgetam_video eomt mask2former maskformer maskformer-swin oneformer sam sam2
        sam2_hiera_det_model sam2_video sam2_vision_model sam3 sam3_lite_text sam3_lite_text_text_model sam3_tracker
        sam3_tracker_video sam3_video sam3_vision_model sam3_vit_model sam_hq sam_hq_vision_model sam_vision_model
        seggpt upernet""",
    "it estimates depth": """
        chmv2 depth_anything depth_pro dpt glpn prompt_depth_anything zoedepth""",
    "it matches keypoints of two images": """
        efficientloftr lightglue superglue superpoint""",
    "it is an audio codec or a vocoder": """
        dac encodec higgs_audio_v2_tokenizer mimi speecht5_hifigan univnet vibevoice_acoustic_tokenizer
        vibevoice_acoustic_tokenizer_decoder vibevoice_acoustic_tokenizer_encoder xcodec""",
    "it generates speech or music": """
        bark clvp csm dia fastspeech2_conformer fastspeech2_conformer_with_hifigan higgs_audio_v2 moshi musicgen
        musicgen_melody pop2piano speecht5 vits""",
    "its audio encoder is not read": """
        audio-spectrogram-transformer clap cohere_asr gemma3n_audio gemma4_audio
        glmasr_encoder kyutai_speech_to_text lasr_ctc lasr_encoder moonshine moonshine_streaming
        moonshine_streaming_encoder parakeet_ctc parakeet_encoder
        parakeet_rnnt parakeet_tdt pe_audio_encoder seamless_m4t
        seamless_m4t_v2 sew sew-d speech_to_text voxtral_realtime voxtral_realtime_encoder
        wav2vec2-bert wav2vec2-conformer""",
    "it forecasts time series": """
        autoformer informer patchtsmixer patchtst time_series_transformer timesfm timesfm2_5""",
    "it is a video model": """
        timesformer tvp video_llama_3_vision videomae vivit vjepa2 xclip""",
    "it is a policy for robots or games": """
        decision_transformer pi0""",
    "its network for documents is not read": """
        donut-swin layoutlmv2 layoutxlm lilt markuplm mgp-str pix2struct pp_formulanet pp_lcnet pp_lcnet_v3 pp_lcnet_v4 pp_ocrv5_server_det pp_ocrv6_medium_det
        pp_ocrv5_mobile_det pp_ocrv5_mobile_rec
        pp_ocrv5_server_rec pp_ocrv6_small_det pp_ocrv6_small_rec pp_ocrv6_tiny_rec textnet trocr udop uvdoc""",
    "its vision tower, or the projector behind it, is not read": """
        aimv2 aimv2_text_model aimv2_vision_model align align_text_model altclip altclip_text_model blip
        blip_2_qformer blip_text_model bridgetower bridgetower_text_model chinese_clip chinese_clip_text_model
        chinese_clip_vision_model colmodernvbert colqwen2 ernie4_5_vl_moe ernie4_5_vl_moe_text evolla
        exaone4_5_vision flava flava_text_model git paddleocr_vl glm_image_vision
        glm_image_vqmodel glm_ocr_vision groupvit groupvit_text_model idefics ijepa kosmos-2 kosmos_2_text_model
        kosmos_2_5_text_model kosmos-2.5 lxmert mlcd mlcd_vision_model 
        minicpmo minicpmv molmo molmo2 moondream1
        moondream2 moondream3 phi4-siglip youtu_vl perceiver pixio qianfan_ocr_vision vilt
        visual_bert""",
    "its stages of images at falling resolution are not read": """
        bit cvt dinat dinov3_convnext focalnet hgnet_v2 hiera imagegpt levit mobilevit mobilevitv2 poolformer pvt pvt_v2
        swiftformer swin2sr swinv2 vitdet timm_wrapper timm_backbone""",
    "its kind of attention, or what stands in place of it, is not read": """
        blt canine convbert cpmant longcat_flash_ngram doge fnet funnel gpt_neox_japanese hrm_text jetmoe luke
        mobilebert openai_privacy_filter recurrent_gemma reformer rembert roc_bert splinter
        squeezebert xmod zamba""",
    "it is a part of another model, and no model alone": """
        audioflamingo3_encoder qwen2_audio_encoder voxtral_encoder gemma4_vision glm4v_moe_vision glm4v_vision
        qwen3_5_moe_vision qwen3_5_vision qwen3_vl_moe_vision qwen3_vl_vision
        EvollaModel align_vision_model altclip_vision_model blip_2_vision_model blip_vision_model
        blt_global_transformer blt_local_decoder blt_local_encoder blt_patcher bridgetower_vision_model chameleon_vqgan
        clap_audio_model clap_text_model clipseg_text_model clipseg_vision_model clvp_decoder clvp_encoder
        csm_depth_decoder_model deepseek_ocr2_encoder deepseek_ocr2_sam_vision_model deepseek_ocr2_vision dia_decoder
        dia_encoder emu3_vqgan ernie4_5_vl_moe_vision fastspeech2_conformer_hifigan flava_image_model
        flava_multimodal_model florence_vision gemma3n_vision gemma4_unified_audio gemma4_unified_vision
        git_vision_model granite_speech_encoder granite_speech_plus_encoder groupvit_vision_model idefics2_perceiver
        idefics2_vision idefics_perciever idefics_vision instructblip_qformer instructblip_vision_model
        instructblipvideo_qformer instructblipvideo_vision_model janus_vision_model janus_vqgan kosmos_2_5_vision_model
        kosmos_2_vision_model llama4_vision_model minicpmv4_6_vision minimax_m3_vl_vision mllama_vision_model
        moshi_depth muse_glimmer_vision musicgen_decoder musicgen_melody_decoder owlv2_text_model owlv2_vision_model
        owlvit_text_model owlvit_vision_model paddleocr_vl_vision phi4_multimodal_audio phi4_multimodal_vision
        pix2struct_text_model pix2struct_vision_model qwen2_5_omni_audio_encoder qwen2_5_omni_bigvgan qwen2_5_omni_dit
        qwen2_5_omni_talker qwen2_5_omni_token2wav qwen2_5_omni_vision_encoder qwen2_5_vl_vision qwen2_vl_vision
        qwen3_omni_moe_audio_encoder qwen3_omni_moe_talker_code_predictor qwen3_omni_moe_talker_text
        qwen3_omni_moe_vision_encoder qwen_omni_thinker_audio_encoder rf_detr_dinov2 t5_gemma_module t5gemma2_decoder
        t5gemma2_encoder t5gemma2_text uvdoc_backbone vitpose_backbone voxtral_realtime_text xclip_text_model
        xclip_vision_model diffusion_gemma_text qwen3_asr_audio_encoder""",
    "it decodes text by another kind of attention, or by images as tokens": """
        chameleon diffusion_gemma emu3 emu3_text_model""",
    "its kind of encoder and decoder is not read": """
        bigbird_pegasus encoder-decoder fsmt led nllb-moe pegasus_x prophetnet rag t5gemma2
        vision-encoder-decoder speech-encoder-decoder vision-text-dual-encoder""",
}

# Families of the text in models of several towers whose text_config names none (class defaults, or those of the
# code that comes with the weights), where that is not the whole's type with an end like _text.
TEXTS = {
    "llama": """deepseek_vl deepseek_vl_hybrid glmasr granite4_vision idefics3 janus llava llava_next llava_next_video
        perception_lm smolvlm video_llava vipllava voxtral multi_modality""",
    "qwen2": """audioflamingo3 fast_vlm got_ocr2 internvl llava_onevision musicflamingo ovis2 pp_chart2table qwen2_audio
        vibevoice_asr video_llama_3""",
    "qwen3": "lighton_ocr qianfan_ocr qwen3_asr qwen3_asr_thinker",
    "cohere2": "aya_vision cohere2_vision", "opt": "blip-2 instructblip instructblipvideo",
    "gemma": "colpali paligemma", "exaone4": "exaone4_5", "persimmon": "fuyu", "glm4v_text": "glm46v glmga",
    "granite": "granite_speech granite_speech_plus", "mistral": "idefics2 mistral3", "lfm2": "lfm2_vl",
    "gemma3_text": "shieldgemma2", "qwen3_vl_text": "cosmos3_omni", "modernbert": "modernvbert pe_audio",
    "deepseek_v3": "kimi_vl", "deepseek_v2": "deepseek_vl_v2 deepseek_ocr", "kimi_k2": "kimi_k25",
    "qwen3_omni_moe_text": "qwen3_omni_moe_thinker", "ernie4_5": "paddleocr_vl",
    "minimax_m3_vl_text": "minimax_m3",
}
# ... and of those whose keys stand beside the towers'.
FLAT_TEXTS = {
    "phi3": "phi3_v phi4mm", "qwen2": "llava_qwen2 llava-qwen2", "llama": "llava_llama bunny-llama",
    "ernie4_5": "paddleocr_vl", "hunyuan_v1_dense": "hunyuan_vl",
}

# Keys that a class computes from others, or that nothing of it reads.
COMPUTED = {"longcat_flash": ("num_hidden_layers", "head_dim"), "glm_moe_dsa": ("num_experts", "head_dim"),
            "deepseek_v32": ("num_experts", "head_dim")}

# What says nothing of shapes or arithmetic, or names tokens.
DULL = ("dropout", "pdrop", "_token", "_coef", "time_step", "time_mask", "mask_", "ctc_", "feat_quantizer", "codevector",
        "kernels", "pretraining_tp", "use_cache", "num_logits_to_keep", "cache_dtype", "layerdrop", "_loss", "noise",
        "init_device", "chunk_size_feed", "_init", "residual_in_fp32", "rescale_", "mambapy", "associative_scan",
        "overlap", "compile", "deterministic", "median", "begin_suppress", "suppress", "dtype", "softmax_in_fp32", "tdnn",
        "contrastive", "diversity", "xvector", "negatives", "adapter_", "vocab_list", "architecture")
GENERAL = {f.name for f in dataclasses.fields(PreTrainedConfig)} - {"tie_word_embeddings"}


def keys_of(cls):
    found = {}
    for field in dataclasses.fields(cls):
        value = field.default
        plain = isinstance(value, (bool, int, float, str))
        if field.name in GENERAL or not plain or any(word in field.name for word in DULL):
            continue
        found[field.name] = value
    return found


def empty_of(cls):
    """Fields that are None where nobody says: computed from others, or switched off."""
    return [f.name for f in dataclasses.fields(cls)
            if f.default is None and f.name not in GENERAL and not any(word in f.name for word in DULL)]


def main():
    rows = {}
    for name in TYPES.split():
        try:
            cls = CONFIG_MAPPING[name]
        except KeyError:
            cls = None
        if cls is None:
            for known in list(CONFIG_MAPPING.keys()):
                sub = getattr(CONFIG_MAPPING[known], "sub_configs", None) or {}
                cls = cls or next((c for c in sub.values() if getattr(c, "model_type", "") == name), None)
        if cls is None:
            raise SystemExit(f"no class for {name}")
        row = {"keys": {k: v for k, v in keys_of(cls).items() if k not in COMPUTED.get(name, ())}}
        row["none"] = empty_of(cls)
        if cls.attribute_map:
            row["also"] = dict(cls.attribute_map)
        theta = getattr(cls, "default_theta", None)
        if isinstance(theta, (int, float)) and "rope_parameters" in {f.name for f in dataclasses.fields(cls)}:
            row["theta"] = theta
        rows[name] = row
    rows |= {name: {"keys": keys, "none": []} for name, keys in DIFFUSERS.items()}
    for name, words in (("harmless", HARMLESS), ("unread", UNREAD), ("texts", TEXTS), ("flat_texts", FLAT_TEXTS)):
        rows[name] = {key: f" {' '.join(text.split())} " for key, text in words.items()}
    lines = [f"{json.dumps(n)}: {json.dumps(r, separators=(',', ':'))}" for n, r in rows.items()]
    print('{"from": "transformers %s",' % transformers.__version__)
    print(",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
