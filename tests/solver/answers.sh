#!/bin/sh
# answers.sh ROOT TOPT - the answer that a person acts on: numbers of GPUs that people book, the choices beside each
# other, what was assumed, what was left out, and batches.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
model=$root/deploy/quickstart/llama-3.1-8b.json
command -v jq >/dev/null || { echo "1..0 # skipped: jq is not installed" && exit 77; }

ask() { # ask OPTIONS...: the default question with these, as JSON in out
    "$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --json "$@" >whole 2>err
    status=$?
    jq .plan whole >plan.json && jq 'del(.plan)' whole >out
    return $status
}
holds() { # holds EXPRESSION: of the answer
    jq -e "$1" out >/dev/null
}

ask && holds '.feasible and .job.framework == "pytorch" and .space == "uniform" and .exact'
check "a question without more is asked for PyTorch in the uniform space"
holds '[.assumed[].what] | index("framework") and index("precision") and index("optimizer") and (index("batch") | not)'
check "what was not said is named, and what was said is not"
holds '.alternatives | (map(.names[]) | sort) == ["fastest", "fewest", "knee"]'
check "the fewest, the knee and the fastest stand beside each other"
holds '.gpus == .alternatives[0].gpus and .uniform.tp == 1
    and (.uniform.dp * .uniform.micro_batch * .micro_batches) == 64'
check "the fewest is the answer; the batch is ranks x micro-batch x accumulation"
holds '[.alternatives[] | (.gpus as $n | [1, 2, 4, 8, 16, 32, 64] | index($n)) and .memory_bytes > 0
    and .gpu_hours_per_million_samples > 0 and .why != "" and .band.memory.high_bytes >= .memory_bytes] | all'
check "each is a number that people book, with speed, GPU-hours, memory, its band and a reason"
holds '.with | map(select(.ask == "--train lora")) | length == 1 and .[0].gpus < 2'
check "that adapters would fit on fewer is said"

fewest=$(jq .gpus out) best=$(jq '[.alternatives[].gpus] | max' out)
ask --min-efficiency 0.8 && holds ".gpus == $best and .gpus > $fewest"
check "an efficiency asks for the most GPUs that keep it"
ask --min-efficiency 1 && holds '.alternatives[0].efficiency == 1 and .gpus >= .alternatives[0].gpus'
check "and all of the best speed can be asked for"

ask --framework torchtitan && holds '.job.framework == "torchtitan"' && ask --framework megatron &&
    holds '.uniform.zero <= 1'
check "frameworks are asked for by name, and each has the levels that it has"
"$topt" plan "$model" --hw a100-80-dgx --batch 16 --seq 65536 --json >whole 2>err && jq 'del(.plan)' whole >out && holds '.uniform.tp > 1 and .needs'
check "tensor parallelism is a last resort, and what a script needs for it is said"
ask --tensor-parallel && holds '.feasible'
check "it can be asked for"

[ "$("$topt" plan "$model" --hw a100-80-dgx --batch 64 --gpus 24 2>err | grep -c 'with --batch 48 or 72 they can')" -eq 1 ]
check "a number of GPUs that can't share the batch names the batches that it can"
ask --mode profiling --max-gpus 64 && holds '[.points[] | select(.gpus == 40 or .gpus == 48 or .gpus == 56)]
    | length == 3 and all(.feasible == false and (.batches | length) == 2)'
check "a curve hides none of them"

"$topt" plan "$model" --hw a100-80-dgx --batch 32,64 --seq 4096 --json >out 2>err &&
    holds '[.batches[].batch] == [32, 64] and all(.batches[]; .tokens_per_second > 0)'
check "batches are compared"
"$topt" plan "$model" --hw a100-80-dgx --batch auto --seq 4096 --gpus 8 --json >whole 2>err &&
    jq 'del(.plan)' whole >out && holds '.micro_batches == 1 and .gpus == 8 and (.tried | length) > 1
        and ([.tried[] | .samples_per_second // 0] | max) as $m
        | .job.batch == (.tried[] | select(.samples_per_second == $m) | .batch)'
check "the batch that fills a GPU is the one of the largest speed"

jq '.vocab_size = 50257' "$model" >odd.json && jq '.vocab_size = 50304' "$model" >even.json
for vocab in odd even; do
    "$topt" plan $vocab.json --hw a100-80-dgx --batch 64 --seq 2048 --gpus 8 --framework megatron --json 2>err |
        jq '.memory_parts.buffers' >$vocab.bytes
done
[ "$(cat even.bytes)" -eq 0 ] && [ "$(cat odd.bytes)" -gt 0 ]
check "Megatron-LM pads a vocabulary that is no multiple of 128, and that is charged"

refused 2 "at most 4" "$topt" plan "$model" --hw a100-80-dgx --gpus 8 --max-gpus 4
check "more GPUs than at most are no question"
refused 2 "more than the 80.00 GiB" "$topt" plan "$model" --hw a100-80-dgx --memory 100GiB
check "no more memory than a device has"
refused 2 "did you mean pytorch" "$topt" plan "$model" --hw a100-80-dgx --framework pytroch
check "a slip in a name is understood"

ask --gpus 8 && "$topt" explain plan.json --around >words 2>err &&
    grep -q '^  4 GPUs: .* it fits too' words && grep -q '^  16 GPUs: ' words && ! grep -q ' 7 GPUs' words
check "what fewer and more GPUs would do is asked of numbers that people book"
grep -q "Precision bf16-mixed: computed in bf16" words && grep -q "For PyTorch" words
check "a plan says for whom it is, and what its numbers are kept in"
finish
