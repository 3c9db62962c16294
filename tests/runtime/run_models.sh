#!/bin/sh
# run_models.sh - from a native model to a trained one on the command line: a plan for two
# devices, two ranks that run it, the losses of one device, in the memory that was planned;
# and plans that were made for another framework.
# usage: run_models.sh TOPT MPIEXEC MODELS_DIR MAKE_ONNX
topt=$1 mpiexec=$2 models=$3 make_onnx=$4
fashion=/usr/share/datasets/fashion-mnist
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
numbers() { # numbers NAME FILE: those of that name in a report, measured and then predicted
    sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$2"
}
losses() { # losses FILE: one a line
    sed -n '/"losses": \[/,/\]/p' "$1" | tr -d ' ,' | grep '^[0-9]'
}
same_losses() { # same_losses STEPS: of the reports one and two, which are left in FILE.losses
    losses one >one.losses && losses two >two.losses && [ "$(wc -l <one.losses)" -eq "$1" ] &&
        paste one.losses two.losses | awk '{ d = $1 - $2; if (d * d > 1e-6 * $1 * $1) bad = 1 } END { exit bad }'
}
try_model() { # try_model MODEL STEPS LR DATA...: on one device and on two
    model=$1 steps=$2 lr=$3
    shift 3
    for gpus in 1 2; do
        case $model in *.onnx | *.native) file=$model ;; *) file=$models/$model.json ;; esac
        "$topt" plan "$file" --mode mini-time --gpus $gpus --hw lab-cpu --framework topt \
            -o plan$gpus >out 2>err
        check "$model: a plan for $gpus"
    done
    "$topt" run plan1 "$@" --steps "$steps" --lr "$lr" --report one --quiet >out 2>err &&
        "$mpiexec" -n 2 "$topt" run plan2 "$@" --steps "$steps" --lr "$lr" --report two --quiet >out 2>err
    check "$model: one rank and two train${2:+ on $2}"
    same_losses "$steps"
    check "... to the same losses"
    head -1 two.losses >out && tail -1 two.losses >>out && awk 'NR == 1 { first = $1 } END { exit !($1 < 0.9 * first) }' out
    check "... that fall"
    numbers peak_bytes two | paste -s | awk '{ exit !($1 > 0.98 * $2 && $1 <= $2) }'
    check "... within 2 % of the planned memory"
    echo "# buffers of $(numbers peak_bytes two | head -1) bytes at once;" \
        "the process grew by $(numbers process_growth_bytes two)"
}

try_model lstm 40 0.01 --data synthetic
try_model moe 20 0.003 --data synthetic
try_model cnn 12 0.002
if "$make_onnx" digits >digits.onnx; then
    try_model digits.onnx 40 0.05 --data synthetic
else
    echo "# this topt reads no ONNX"
fi
if [ -d $fashion ]; then
    try_model cnn 20 0.002 --data $fashion
else
    echo "# no Fashion-MNIST on this machine"
fi
# Imported models that have what no other here has: relative positions; capped scores and windows;
# chunks, sigmoids, what experts read weighed; latent attention and groups of experts.
cat >t5.json <<'EOF'
{"model_type": "t5", "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "vocab_size": 64}
EOF
cat >gemma2.json <<'EOF'
{"model_type": "gemma2", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48, "vocab_size": 64, "sliding_window": 6}
EOF
cat >llama4.json <<'EOF'
{"model_type": "llama4_text", "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4,
 "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 24, "intermediate_size_mlp": 40,
 "num_local_experts": 4, "interleave_moe_layer_step": 2, "attention_chunk_size": 5, "vocab_size": 64,
 "max_position_embeddings": 32768}
EOF
cat >deepseek.json <<'EOF'
{"model_type": "deepseek_v3", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
 "intermediate_size": 48, "moe_intermediate_size": 8, "kv_lora_rank": 8, "q_lora_rank": 8, "qk_nope_head_dim": 8,
 "qk_rope_head_dim": 8, "v_head_dim": 8, "n_routed_experts": 8, "num_experts_per_tok": 2, "first_k_dense_replace": 1,
 "n_group": 4, "topk_group": 2, "vocab_size": 64, "max_position_embeddings": 64,
 "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 16}}
EOF
for model in t5 gemma2 llama4 deepseek; do
    "$topt" import $model.json --batch 8 --seq 16 -o $model.native >out 2>err
    check "$model is imported"
    try_model $model.native 24 0.01 --data synthetic
done
# One choice for the whole model for another framework, whose memory is accounted for otherwise, is a plan like any.
yes 'a small crowd of numbers adds itself up over four quiet machines. ' | head -30 >text
gpt="$models/gpt-small.json --batch 4 --seq 32 --hw lab-cpu --optimizer adam --framework"
# shellcheck disable=SC2086 # words on purpose
"$topt" plan $gpt topt --gpus 1 -o plan1 >out 2>err && "$topt" run plan1 --data text --steps 12 --report one --quiet
check "gpt-small: a plan for 1 that runs"
for of in pytorch:14MiB pytorch:10MiB deepspeed:14MiB megatron:8MiB; do
    framework=${of%:*}
    # shellcheck disable=SC2086
    "$topt" plan $gpt $framework --gpus 2 --memory "${of#*:}" -o plan2 >out 2>err &&
        grep -q '"space": "uniform"' plan2 && grep -q "\"framework\": \"$framework\"" plan2 &&
        "$mpiexec" -n 2 "$topt" run plan2 --data text --steps 12 --report two --quiet >out 2>err
    check "gpt-small: two ranks train by a plan for $framework ($(sed -n 's/.*"strategy": "\(.*\)".*/\1/p' plan2 | head -1))"
    same_losses 12
    check "... to the same losses"
    numbers peak_bytes two | paste -s | awk '{ exit !($1 <= $2) }'
    check "... in what the program was said to take"
done
"$topt" plan llama4.json --batch 2 --seq 8192 --mode mini-time --gpus 1 --hw lab-cpu --framework topt -o long >out 2>err &&
    grep -q "^topt run  *cannot train this model" out
check "what no operator computes is planned"
refused 1 "planned, not run" "$topt" run long --steps 1 --data synthetic
check "... and not run"

finish
