#!/bin/sh
# doors.sh ROOT TOPT - one question, every command that answers it: topt plan --gpus, its curve, the frontier and
# what fits at its ends say the same; and a search that is stopped says so, and never that nothing fits.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
command -v jq >/dev/null || { echo "1..0 # skipped: jq is not installed" && exit 77; }

ask() { # ask FILE COMMAND OPTIONS...: the answer as JSON
    to=$1 command=$2
    shift 2
    # shellcheck disable=SC2086 # $job is a list of words
    "$topt" "$command" $job --json "$@" >"$to" 2>err
}
of() { # of FILE EXPRESSION
    jq -r "$2" "$1"
}
fits='[.points[] | select(.memory_bytes <= $limit)]'

agree() { # agree GPUS NAME: of $job
    ask plan.json plan --gpus "$1" && limit=$(of plan.json .memory_limit) && time=$(of plan.json .time_ns) &&
        ask plan.json plan --gpus "$1" --memory "$limit"B &&
        ask curve.json plan --mode profiling --gpus "$1" --memory "$limit"B && ask frontier.json frontier --gpus "$1"
    check "$2: each command answers for $1 GPUs"
    [ $((100 * (time - $(of plan.json .time_ns)))) -lt $((3 * time)) ]
    check "the limit of a device, where nobody says it, leaves room for less than 3 % of the time"
    [ "$(of plan.json .strategy)" = "$(jq -r --argjson limit "$limit" "$fits | last.strategy" frontier.json)" ]
    check "the frontier's fastest point that fits is the plan's strategy"
    [ "$(of plan.json '"\(.time_ns) \(.memory_bytes)"')" = "$(of curve.json '.points[0] | "\(.time_ns) \(.memory_bytes)"')" ]
    check "the curve has the time and memory of the plan"
    [ "$(of plan.json .time_ns)" = "$(jq --argjson limit "$limit" "$fits | last.time_ns" frontier.json)" ]
    check "the fastest point of the frontier that fits is as fast as the plan"
    least=$(of frontier.json '.points[0].memory_bytes')
    ask least.json plan --gpus "$1" --memory "$least"B &&
        [ "$(of least.json .time_ns)" -le "$(of frontier.json '.points[0].time_ns')" ]
    check "the frontier's least memory holds a plan"
    ask less.json plan --gpus "$1" --memory "$((least - 1))"B
    if jq -e '.left_out // "" | test("tensor parallelism")' frontier.json >/dev/null; then
        jq -e '.feasible and .uniform.tp > 1' less.json >/dev/null
        check "a byte less holds one with what the frontier says that it leaves out"
    else
        jq -e '.feasible == false and (.why | test("nothing fits"))' less.json >/dev/null
        check "and a byte less holds none"
    fi
    middle=$(jq --argjson limit "$limit" "$fits | .[length / 2 | floor].memory_bytes" frontier.json)
    ask middle.json plan --gpus "$1" --memory "$middle"B &&
        jq -e --argjson m "$middle" --slurpfile p middle.json \
            '[.points[] | select(.memory_bytes == $m)][0].time_ns >= $p[0].time_ns' frontier.json >/dev/null
    check "what is between can be booked: topt plan with that much memory is as fast, or faster"
}

llama=$root/deploy/quickstart/llama-3.1-8b.json gpt=$root/deploy/quickstart/gpt-small.json
job="$llama --hw a100-80-dgx --batch 16 --seq 4096"
agree 8 "PyTorch"
job="$job --framework megatron"
agree 8 "Megatron-LM"
job="$llama --hw a100-80-dgx --batch 16 --seq 4096 --framework topt"
agree 4 "topt run"
of frontier.json .space | grep -q canonical && of frontier.json .ends.space | grep -q full &&
    jq -e '.exact and .ends.least and .ends.fastest and (.points | last.micro_batches) == 1
        and .points[0].micro_batches > 1' frontier.json >/dev/null
check "its frontier has micro-batches by default, and says which space each part of it is of"
job="$gpt --hw lab-cpu --batch 8 --framework topt"
agree 2 "a small model"

# Context ranks have a model of their own, beside tensor parallelism that has the other.
job="$llama --hw a100-40-dgx --batch 16 --seq 65536 --framework torchtitan"
agree 8 "long samples"

# Encoder and decoder read one embedding: what the first block of the decoder recomputes, others do not.
echo '{"model_type": "t5", "d_model": 1024, "d_ff": 16384, "d_kv": 128, "num_layers": 6, "num_heads": 32,
    "vocab_size": 32128}' >t5.json
job="t5.json --hw a100-40-dgx --batch 128 --seq 512 --framework megatron"
agree 2 "an encoder and a decoder"

# With the limit between what sharding alone takes at its fastest and at its least, micro-batches can be faster.
job="$llama --hw a100-80-dgx --batch 24 --seq 4096 --framework topt --gpus 8"
ask auto.json plan && ask all.json plan --factors all && ask zero.json plan --factors zero
jq -e --slurpfile all all.json --slurpfile zero zero.json \
    '.time_ns <= $all[0].time_ns and .time_ns <= ($zero[0].time_ns // .time_ns)' auto.json >/dev/null
check "a plan is no slower than with either choice of factors"

job="$gpt --hw lab-cpu --batch 8 --framework topt --gpus 2"
ask compare.json compare && jq -e '.left_out | test("micro-batches")' compare.json >/dev/null
check "systems are compared without, and that is said"

# Beside the fewest GPUs stand the knee and the fastest, of a space that is quick to search: --gpus does no worse.
job="$llama --hw a100-80-dgx --batch 64 --seq 4096 --framework topt"
ask fewest.json plan && jq -e '(.alternatives | map(.names[]) - ["knee", "one node"] | sort) == ["cheapest", "fastest", "fewest"] and
    .alternatives[0].gpus == .gpus and .alternatives[0].time_ns == .time_ns and .alternatives[0].space == .space and
    ([.alternatives[1:][].space] | unique) == ["uniform"]' fewest.json >/dev/null
check "the fewest GPUs, the knee and the fastest: $(of fewest.json '[.alternatives[].gpus] | join(", ")')"
# shellcheck disable=SC2086
"$topt" plan $job >out 2>err && grep -q 'below the first row, all layers share one strategy' out
check "in words, with what the others are of"
ask min.json plan --min-efficiency 0.9 &&
    jq -e --slurpfile few fewest.json '.gpus > $few[0].gpus and (.why | test("90 %"))' min.json >/dev/null
check "an efficiency chooses more than the fewest: $(of min.json .gpus)"
jq -e --slurpfile few fewest.json '.gpus as $n | .time_ns as $t |
    all($few[0].alternatives[1:][]; .gpus != $n or .time_ns >= $t)' min.json >/dev/null
check "and the plan there is no slower than what was said beside the fewest"

# A search that ends early.
job="$root/deploy/quickstart/moe.json --hw lab-cpu --batch 8 --framework topt"
ask stopped.json plan --seconds 0.000001
jq -e '.feasible != false and (.stopped == null or .stopped_after_s == 0.000001)' stopped.json >/dev/null
check "what was not searched in time is not said to fit nowhere"
job="$llama --hw a100-80-dgx --batch 64 --seq 4096 --framework topt --gpus 16"
ask stopped.json plan --seconds 0.05 && jq -e '.feasible and .stopped and .stopped_after_s == 0.05' stopped.json >/dev/null
check "a plan comes in time, and says after how long it was stopped"
# shellcheck disable=SC2086
"$topt" plan $job --seconds 0.05 >out 2>err && grep -q '^stopped   after 0.05 s (raise with --seconds' out && grep -q '^proven ' out
check "in words, with what is proven"
ask stopped.json frontier --seconds 0.05 &&
    jq -e '.stopped and (.points | length) > 3 and .ends.fastest == false' stopped.json >/dev/null
check "a frontier has both ends, as far as they are known"
job="$gpt --hw lab-cpu --batch 8"
ask any.json plan --gpus 2 --seconds none && jq -e '.stopped == null' any.json >/dev/null
check "no limit at all can be asked for"
finish
