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
"""

# What classes of diffusers (0.35) take for keys that no reader here asks for: with another value the key is told of.
DIFFUSERS = {
    "UNet2DConditionModel": {
        "mid_block_type": "UNetMidBlock2DCrossAttn", "downsample_padding": 1, "mid_block_scale_factor": 1,
        "act_fn": "silu", "norm_num_groups": 32, "resnet_time_scale_shift": "default", "freq_shift": 0,
        "flip_sin_to_cos": True, "use_linear_projection": False, "upcast_attention": False,
        "resnet_out_scale_factor": 1.0, "time_embedding_type": "positional", "conv_in_kernel": 3,
        "conv_out_kernel": 3, "attention_type": "default", "addition_embed_type_num_heads": 64},
    "FluxTransformer2DModel": {"patch_size": 1, "axes_dims_rope": [16, 56, 56]},
    "WanTransformer3DModel": {"in_channels": 16, "freq_dim": 256, "qk_norm": "rms_norm_across_heads"},
    "DiTTransformer2DModel": {"activation_fn": "gelu-approximate", "attention_bias": True, "norm_num_groups": 32},
    "Transformer2DModel": {"activation_fn": "gelu-approximate", "attention_bias": True, "norm_num_groups": 32},
}

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
        row = {"keys": keys_of(cls)}
        row["none"] = empty_of(cls)
        if cls.attribute_map:
            row["also"] = dict(cls.attribute_map)
        theta = getattr(cls, "default_theta", None)
        if isinstance(theta, (int, float)) and "rope_parameters" in {f.name for f in dataclasses.fields(cls)}:
            row["theta"] = theta
        rows[name] = row
    rows |= {name: {"keys": keys, "none": []} for name, keys in DIFFUSERS.items()}
    lines = [f"{json.dumps(n)}: {json.dumps(r, separators=(',', ':'))}" for n, r in rows.items()]
    print('{"from": "transformers %s",' % transformers.__version__)
    print(",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
