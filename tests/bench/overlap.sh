#!/bin/sh
# overlap.sh ROOT TOPT - what the search says of uniform plans that overlap, beside the schedule of all their instructions
# (topt simulate): a line for each plan, and how many are within 3 %. Not a test: docs/VALIDATION.md has its count.
root=$1 topt=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
all=0 near=0 remade=0
plan() # plan MODEL HW GPUS FRAMEWORK OPTIONS...: where there is one
{
    what="$(basename "$1" .json) on $3 of $2 for $4"
    model=$1 hw=$2 gpus=$3 framework=$4
    shift 4
    "$topt" plan "$model" --hw "$hw" --gpus "$gpus" --framework "$framework" --mode mini-time "$@" -o "$dir/p.json" >"$dir/out" 2>"$dir/err" &&
        "$topt" simulate "$dir/p.json" --json >"$dir/s.json" 2>"$dir/err" && grep -q predicted_ns "$dir/s.json" || return
    ratio=$(awk -F'[:,]' '{for (i = 1; i < NF; i++) {if ($i ~ /"predicted_ns"/) p = $(i + 1); if ($i ~ /"time_ns"/) t = $(i + 1)}}
        END {printf "%.3f", p / t}' "$dir/s.json")
    strategy=$(sed -n 's/.*"strategy": *"\([^"]*\)".*/\1/p' "$dir/p.json" | head -1)
    within=$(awk -v r="$ratio" 'BEGIN {print (r > 0.97 && r < 1.03) ? 1 : 0}')
    all=$((all + 1)) near=$((near + within))
    case $strategy in *checkpoint* | *recomput*) remade=$((remade + 1)) ;; esac
    [ "$within" = 1 ] && mark='' || mark=' beyond'
    echo "$ratio$mark  $what $*: $strategy"
}
llama=$root/deploy/quickstart/llama-3.1-8b.json gpt=$root/deploy/quickstart/gpt-small.json lstm=$root/deploy/quickstart/lstm.json
for framework in pytorch deepspeed megatron torchtitan; do
    for hw in v100-dgx1-2x8 a100-80-dgx h100-80-dgx; do
        for gpus in 8 16; do
            plan paper:vgg16 $hw $gpus $framework --precision f32
            plan paper:transformer-s $hw $gpus $framework --precision f32
        done
    done
    plan paper:wideresnet v100-dgx1-2x8 16 $framework --precision f32
    plan paper:transformer a100-80-dgx 16 $framework --precision f32
    for gpus in 8 16 64; do
        plan "$llama" a100-80-dgx $gpus $framework --batch 64
        plan "$llama" h100-80-dgx $gpus $framework --batch 256 --seq 4096
        plan "$llama" a100-40-dgx $gpus $framework --batch 256 --seq 4096
    done
    for gpus in 8 16 32; do
        plan "$llama" a100-40-dgx $gpus $framework --batch 64 --seq 8192
        plan "$llama" h100-80-dgx $gpus $framework --batch 128 --seq 16384
    done
    plan "$gpt" h100-80-dgx 8 $framework --batch 64
    plan "$lstm" a100-80-dgx 16 $framework --batch 64
done
echo "$near of $all uniform plans are within 3 % of the schedule; $remade of them recompute"
