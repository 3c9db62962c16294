#!/bin/sh
# deepseek.sh SOURCE TOPT - DeepSeek-V3 at the degrees that its report trained it with (DeepSeek-AI, DeepSeek-V3, 2024): 2,048 H800
# with 80 GB, 16 stages by DualPipe, which are two mirrored copies of 8 stages of two chunks, experts over 64 GPUs, ZeRO-1, FP8 by
# blocks, no tensor parallelism.  With all that the report says is recomputed or kept in fewer bits it fits; without one of these it
# does not.  The limit is the 76 GiB that such a GPU has beside its driver's reserve.  What no framework of the
# table has (attention's result kept in 12 bits, moving averages on the host) is not counted.
. "$1/tests/tap.sh"
topt=$2
cat >v3.json <<'M'
{"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
 "moe_intermediate_size": 2048, "num_hidden_layers": 61, "first_k_dense_replace": 3, "num_attention_heads": 128,
 "num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 8,
 "topk_group": 4, "routed_scaling_factor": 2.5, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64,
 "qk_nope_head_dim": 128, "v_head_dim": 128, "vocab_size": 129280, "max_position_embeddings": 163840,
 "rms_norm_eps": 1e-6, "tie_word_embeddings": false}
M
"$topt" hw show h800-80-hgx | sed 's/"nodes": 128/"nodes": 256/' >h800.json
ran() # MODULES OPTIONS...
{
    modules=$1
    shift
    "$topt" plan v3.json --hw h800.json --gpus 2048 --batch 15360 --seq 4096 --framework megatron --dispatch deepep --json \
        --degrees "tp=1,pp=8,vp=2,ep=64,mbs=1,zero=1,recompute=$modules" --schedule combined-dualpipev "$@" 2>err
}
all=layernorm+mla_up_proj+mlp+shared_experts
low="--precision fp8-blockwise --fp8-params"
# shellcheck disable=SC2086
ran $all $low --fp8-activation --optimizer adamw_bf16 >fits && jq -e '.feasible and .memory_bytes < 76 * 1073741824 and .uniform.ep == 64 and
    .uniform.pp == 8 and (.uniform.layers | length == 16 and add == 61)' fits >out
check "DeepSeek-V3 fits 80 GB at its own degrees: $(jq -c '[.memory_bytes / 1073741824, .time_ns / 1e9, .uniform.layers]' fits)"
jq -e '.uniform.layers | .[0] + .[15] < .[1] + .[14]' fits >out
check "... with fewer layers on the stage that has embedding and head"
without() # WHAT MODULES OPTIONS...
{
    what=$1
    shift
    ran "$@" >out
    [ $? -eq 3 ] && jq -e '.feasible == false' out >/dev/null
    check "but not $what"
}
# shellcheck disable=SC2086
{
    without "with the input of SwiGLU in bf16" $all $low --optimizer adamw_bf16
    without "with latent attention's products kept" layernorm+mlp+shared_experts $low --fp8-activation --optimizer adamw_bf16
    without "with weights in bf16 beside those in FP8" $all --precision fp8-blockwise --fp8-activation --optimizer adamw_bf16
}
finish
