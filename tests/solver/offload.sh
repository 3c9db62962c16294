#!/bin/sh
# offload.sh ROOT TOPT - what rests on the host: bytes as the frameworks count them, the host's memory as a limit, what it
# costs, when it is named unasked, and what is refused.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
command -v jq >/dev/null || { echo "1..0 # skipped: jq is not installed" && exit 77; }
cp "$root/deploy/quickstart/llama-3.1-8b.json" config.json

plan() { # plan OPTIONS...: the answer as JSON in out
    "$topt" plan config.json --seq 4096 --hw h100-80-dgx "$@" --json >out 2>err
}
holds() { # holds EXPRESSION: of the answer
    jq -e "$1" out >/dev/null
}
refused() { # refused WORDS OPTIONS...
    words=$1 && shift
    ! plan "$@" && grep -q -- "$words" err && [ "$(wc -l <err)" = 1 ]
    check "refused: $(cat err)"
}
per() { # per PATH: bytes a parameter, of all GPUs
    jq "($1) * .nodes / .job.parameters * 100 | round / 100" out
}

# DeepSpeed's own estimate (runtime/zero/stage_1_and_2.py and stage3.py): 16 bytes a parameter on the host, 2 on one GPU.
plan --framework deepspeed --gpus 1 --batch 8 --offload optimizer
[ "$(per .host.bytes_per_node)" = 16 ] && [ "$(per .memory_parts.parameters)" = 2 ] && holds '.memory_parts.optimizer == 0 and .memory_parts.gradients == 0'
check "ZeRO-Offload on one GPU: 16 bytes a parameter on the host, 2 on the GPU"
holds '.time_ns == .compute_ns + .network_ns + .host.wait_ns and .host.wait_ns > .host.update_ns'
check "a step is longer by the host's optimizer and what is copied after it"
plan --framework deepspeed --gpus 8 --batch 64 --offload parameters
[ "$(per .host.bytes_per_node)" = 18 ] && holds '.memory_parts.parameters == 0 and .uniform.zero == 3'
check "ZeRO-3 with parameters: 18 bytes a parameter on the host, none on GPUs"
plan --framework pytorch --gpus 8 --batch 64 --offload parameters
[ "$(per .host.bytes_per_node)" = 16 ] && holds '[.memory_parts | .parameters, .optimizer] == [0, 0] and .uniform.zero >= 2'
check "FSDP2 has the master copy, its gradient and moments there: 16 bytes"
"$topt" plan config.json --seq 4096 --hw h100-80-dgx --gpus 8 --batch 64 --offload parameters >text 2>err
grep -q "^host  *119.7 GiB of a node's 2.00 TiB" text && grep -q 'waiting for the host' text
check "the answer says what lies there and what it costs: $(grep '^host' text)"

# A part of the optimizer: less on the host, less time.
plan --framework megatron --gpus 8 --batch 64 --offload optimizer && jq .host out >whole
plan --framework megatron --gpus 8 --batch 64 --offload optimizer --offload-fraction 0.5 && jq .host out >half
jq -ne --slurpfile a whole --slurpfile b half '$b[0].bytes_per_node * 2 == $a[0].bytes_per_node and $b[0].wait_ns < 0.6 * $a[0].wait_ns' >/dev/null
check "half of the optimizer: half of the bytes, about half of the time"
plan --framework megatron --gpus 16 --batch 64 --pipeline 2 --offload optimizer
holds '.time_ns == .compute_ns + .network_ns + .idle_ns + .host.wait_ns and .host.wait_ns > 0 and .uniform.pp == 2'
check "a stage waits for the host when its last backward is over"

# Activations.
plan --framework pytorch --gpus 8 --batch 64 --factors zero,micro && jq '[.memory_parts.activations, .micro_batches, .time_ns]' out >here
plan --framework pytorch --gpus 8 --batch 64 --factors zero,micro --micro-batches "$(jq '.[1]' here)" --offload activations &&
    jq -e --slurpfile a here '.memory_parts.activations < $a[0][0] / 4 and .time_ns >= $a[0][2] and .host.what == ["activations"]' out >/dev/null
check "activations on the host leave a few layers' on the GPU, and cost time"
plan --framework megatron --gpus 8 --batch 64 --offload activations && holds '.uniform.recompute == false and (.uniform.pp // 1) == 1'
check "Megatron-LM recomputes nothing beside them and has no stages"

# What modules keep, of Megatron-LM alone.
plan --framework megatron --gpus 8 --batch 64 --degrees pp=2,vp=1,tp=1,zero=1,mbs=1,recompute=none && jq '[.memory_parts.activations, .time_ns]' out >here
plan --framework megatron --gpus 8 --batch 64 --degrees pp=2,vp=1,tp=1,zero=1,mbs=1,recompute=none --offload core_attn,attn_proj &&
    jq -e --slurpfile a here '.memory_parts.activations < $a[0][0] and .memory_parts.activations > $a[0][0] / 2 and .time_ns >= $a[0][1] and .host.bytes_per_node > 0 and .host.what == ["core_attn", "attn_proj"]' out >/dev/null
check "beside stages what core_attn and attn_proj keep rests on the host"
jq -e --slurpfile a here '.time_ns < 1.05 * $a[0][1] and .host.wait_ns < 0.05 * $a[0][1]' out >/dev/null
check "... and comes back in time, nearly"
refused "add core_attn" --framework megatron --offload attn_proj
refused "the model has no such part" --framework megatron --offload expert_fc1
refused "leave one of both out" --framework megatron --offload core_attn,activations
refused "recompute=full makes these anew" --framework megatron --offload core_attn --degrees recompute=full
refused "deepspeed does not have it (it has optimizer or parameters)" --framework deepspeed --offload core_attn
refused "beside --cuda-graphs" --framework megatron --offload core_attn --cuda-graphs

# Unasked it is named where nothing fits; asked for, the host's memory is a limit.
plan --gpus 1 --batch 8
holds '.feasible == false and ([.with[].ask] | index("--offload parameters"))'
check "named where nothing fits: $(jq -c '[.with[].ask]' out)"
plan --gpus 8 --batch 64 && holds '(.host // .with) == null'
check "... and where something does it is not"
jq '{format: "topt-hw/1", name: "small", like: "h100-80-dgx", host: {memory_bytes: 400000000000, memory_bandwidth: 614400000000, bytes_per_second: 56900000000, source: "a test"}}' -n >small.json
refused "needs at least 119.7 GiB per GPU, whose share of the host's 372.5 GiB is 46.57 GiB" --framework deepspeed --gpus 1 --batch 8 --offload optimizer --hw small.json
plan --framework deepspeed --gpus 8 --batch 64 --offload optimizer --hw small.json && holds '.host.bytes_per_node <= .host.limit_bytes_per_node'
check "eight GPUs have room there"
plan --framework megatron --gpus 8 --batch 64 --offload activations && jq '.host.bytes_per_node, .micro_batches' out >whole
jq '.host.memory_bytes = 60000000000' small.json >less.json && plan --framework megatron --gpus 8 --batch 64 --offload activations --hw less.json &&
    jq -e --slurpfile a whole '.host.bytes_per_node <= 60e9 and $a[0] > 60e9 and .micro_batches > $a[1]' out >/dev/null
check "of activations it limits what GPUs take at a time: $(jq -c '[.host.bytes_per_node, .micro_batches]' out)"
jq '.host.memory_bytes = 4000000000' small.json >less.json
refused "needs at least 2.23 GiB per GPU.*or leave activations on the GPUs" --framework megatron --gpus 8 --batch 64 --offload activations --hw less.json
refused "needs at least 2.89 GiB per GPU" --framework megatron --gpus 8 --batch 64 --degrees pp=2,vp=1,tp=1,zero=1,mbs=1,recompute=none --offload core_attn,attn_proj --hw less.json
refused "torchtitan does not have it (it has parameters)" --framework torchtitan --offload optimizer
refused "topt does not have it" --framework topt --offload optimizer
refused "has no host" --hw p100-4x4 --framework deepspeed --precision f32 --offload optimizer
refused "--offload-fraction" --framework pytorch --offload parameters --offload-fraction 0.5
refused "beside --cuda-graphs" --framework pytorch --offload parameters --cuda-graphs

# Launched.
launched() { # launched WORDS TARGET OPTIONS...: plan, then launch
    words=$1 target=$2 && shift 2
    "$topt" plan config.json --seq 4096 --hw h100-80-dgx "$@" -o plan.json >/dev/null 2>err && "$topt" launch plan.json --for "$target" >text 2>err && grep -q -e "$words" text
    check "$target: $words"
}
launched '"device": "cpu"' deepspeed --framework deepspeed --gpus 1 --batch 8 --offload optimizer
grep -q '"stage": 2' text && ! grep -q offload_param text
check "... of ZeRO-2 on one GPU"
launched '"ratio": 0.25' deepspeed --framework deepspeed --gpus 8 --batch 64 --offload optimizer --offload-fraction 0.25
launched '--optimizer-cpu-offload --use-precision-aware-optimizer' megatron --framework megatron --gpus 8 --batch 64 --offload optimizer
launched '--cpu-offloading-num-layers 31' megatron --framework megatron --gpus 8 --batch 64 --offload activations
launched '--fine-grained-activation-offloading --offload-modules core_attn attn_proj' megatron --framework megatron --gpus 8 --batch 64 --offload core_attn,attn_proj
grep -q '^export NVTE_CPU_OFFLOAD_V1=1' text
check "... with the variable that it asks for"
launched 'training.enable_cpu_offload = True' torchtitan --framework torchtitan --gpus 8 --batch 64 --offload parameters
launched '"offload": 1' torchrun --gpus 1 --batch 8 --offload parameters
launched 'fsdp_offload_params: true' accelerate --gpus 8 --batch 64 --offload parameters
launched '"cpu_offload": true' hf --gpus 8 --batch 64 --offload parameters
launched 'fsdp_cpu_offload=True' torchtune --gpus 8 --batch 64 --offload parameters --precision bf16
! "$topt" simulate plan.json >out 2>err && grep -q 'rests on the host' err
check "simulate says that it has no copies to the host: $(cat err)"
finish
