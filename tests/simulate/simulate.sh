#!/bin/sh
# simulate.sh ROOT TOPT - topt simulate: what it says of a plan, what it writes, what it refuses.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
model=$root/deploy/quickstart/mlp.json

"$topt" plan "$model" --hw lab-cpu --framework topt --mode mini-time --gpus 4 --json -o plan.json >out 2>err
check "a plan"
"$topt" simulate plan.json --trace trace.json --svg step.svg >out 2>err &&
    grep -q " per step: " out && grep -q "predicts .*+0.0 %" out
check "a step of it takes what is predicted"
grep -q '"traceEvents"' trace.json && grep -q '"ph":"X"' trace.json && head -c 4 step.svg | grep -q '<svg'
check "a trace and a picture are written"
"$topt" simulate plan.json --json >out 2>err && grep -q 'topt-simulation/1' out && grep -q '"predicted_ns"' out
check "figures as JSON"
"$topt" simulate plan.json --overlap fsdp --bucket 1MiB --json >out 2>err && ! grep -q predicted_ns out &&
    grep -q '"bucket_bytes": *1048576' out
check "of another overlap than the plan's nothing was predicted"

# Uniform plans: what the search takes off for overlap is what the schedule hides.
near() # near MODEL HW GPUS FRAMEWORK OPTIONS...: within 3 %
{
    asked="$1 on $3 of $2 for $4"
    model_=$1 hw_=$2 gpus_=$3 for_=$4
    shift 4
    "$topt" plan "$model_" --hw "$hw_" --gpus "$gpus_" --framework "$for_" --mode mini-time --precision f32 "$@" -o u.json >out 2>err &&
        "$topt" simulate u.json --json >out 2>err &&
        awk -F'[:,]' '{for (i = 1; i < NF; i++) {if ($i ~ /"predicted_ns"/) p = $(i + 1); if ($i ~ /"time_ns"/) t = $(i + 1)}}
            END {r = p / t; print r >"ratio"; exit !(r > 0.97 && r < 1.03)}' out
    check "$asked: $(cat ratio) of the schedule"
}
near paper:vgg16 v100-dgx1-2x8 16 pytorch
near paper:vgg16 h100-80-dgx 64 pytorch
near paper:wideresnet v100-dgx1-2x8 16 deepspeed
near paper:transformer-s v100-dgx1-2x8-no-rdma 16 deepspeed
near paper:transformer a100-80-dgx 16 pytorch
near "$root/deploy/quickstart/llama-3.1-8b.json" a100-80-dgx 16 pytorch --batch 64
near "$root/deploy/quickstart/llama-3.1-8b.json" h100-80-dgx 64 megatron --batch 256
near "$root/deploy/quickstart/gpt-small.json" h100-80-dgx 8 pytorch --batch 64
near "$root/deploy/quickstart/lstm.json" a100-80-dgx 16 megatron --batch 64
near "$root/deploy/quickstart/llama-3.1-8b.json" a100-40-dgx 8 pytorch --batch 256 --seq 4096 --precision bf16-mixed
grep -q checkpointing u.json
check "which recomputes"
near "$root/deploy/quickstart/llama-3.1-8b.json" h100-80-dgx 16 megatron --batch 32 --seq 8192 --precision fp8-tensorwise --pipeline 1 --memory 40GiB
# Context ranks by a ring, and sums of gradients beside what tensor parallelism waits for, by one mechanism: within 1 %.
near "$root/deploy/quickstart/llama-3.1-8b.json" h100-80-dgx 8 megatron --batch 16 --seq 4096 --precision bf16-mixed --degrees cp=8
awk '{exit !($1 > 0.99 && $1 < 1.01)}' ratio && grep -q '"cp_comm": *"p2p"' u.json
check "keys and values that go around: $(cat ratio)"
near "$root/deploy/quickstart/llama-3.1-8b.json" h100-80-dgx 16 megatron --batch 16 --seq 4096 --precision bf16 --degrees tp=8,dp=2,zero=0
awk '{exit !($1 > 0.99 && $1 < 1.01)}' ratio
check "gradients beside tensor parallelism: $(cat ratio)"
"$topt" plan paper:vgg16 --hw v100-dgx1-2x8 --mode mini-time --gpus 16 --framework topt --algorithm data-parallel --accounting paper \
    --overlap ddp >out 2>err && grep -q "205.5 ms per step" out && grep -q "148.7 ms when the whole step is simulated" out
check "elsewhere the schedule's time is said beside the sum"
refused 2 "which plan?" "$topt" simulate
check "a plan is needed"
refused 1 "nosuch.json" "$topt" simulate nosuch.json
check "one that can be read: $(cat err)"
refused 1 "plan: " "$topt" simulate "$model"
check "and is a plan: $(cat err)"
refused 2 "unknown overlap 'dpd'; did you mean ddp?" "$topt" simulate plan.json --overlap dpd
check "a wrong overlap: $(cat err)"
refused 1 "nowhere/t.json" "$topt" simulate plan.json --trace nowhere/t.json
check "a trace that can't be written is an error"
finish
