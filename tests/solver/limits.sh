#!/bin/sh
# limits.sh ROOT TOPT [large] - a search that is stopped, or is too large: the answer is the best of what was searched, says so,
# and after counted work it is the same with any number of threads.  'large': what is too large, which takes 3 GiB.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
command -v jq >/dev/null || { echo "1..0 # skipped: jq is not installed" && exit 77; }
gpt=$root/deploy/quickstart/gpt-small.json

# What a clock measured, and how much was done at a time, differ from run to run.
same() { # same COMMAND OPTIONS...: with one thread and with three, to one
    "$topt" "$@" --json --threads 1 >one 2>err || return 1
    "$topt" "$@" --json --threads 3 >three 2>err || return 1
    for f in one three; do
        jq 'del(.. | .search_ns?) | del(.. | .stats?) | del(.. | .peak_bytes_of_search?)' $f >$f.json || return 1
    done
    cmp one.json three.json >out
}
job="$gpt --hw v100-dgx1-2x8 --batch 16 --framework topt"
for work in 1 3000000; do
    for command in plan frontier compare; do
        # shellcheck disable=SC2086 # a list of words
        same $command $job --gpus 4 --max-work $work
        check "topt $command after $work pairs of points: the same with one thread and three"
        jq -e --argjson n $work '(.stopped != true) or .stopped_after_work == $n' one >out
        check "and says after how many, where it was stopped"
    done
done
# shellcheck disable=SC2086
"$topt" plan $job --gpus 4 --json >whole 2>err && "$topt" plan $job --gpus 4 --max-work 1 --json >one 2>err &&
    jq -e --slurpfile whole whole '.stopped and .feasible and .exact == false and .found_in == "uniform"
        and .time_ns >= $whole[0].time_ns and $whole[0].exact' one >out
check "with no work to speak of it is the best of the uniform space, and not exact"
# shellcheck disable=SC2086
"$topt" plan $job --gpus 4 --max-work 1 >out 2>err && grep -q '^stopped .*found in the uniform space' out
check "in words too"
# shellcheck disable=SC2086
"$topt" frontier $job --gpus 4 --max-work 1 --json >one 2>err && jq -e '.stopped and (.points | length) > 1 and .exact == false' one >out
check "a frontier is that of the uniform space"
# shellcheck disable=SC2086
"$topt" plan $job --gpus 4 --seconds none --json >none 2>err && jq -e '.stopped == null and .exact' none >out
check "no limit can be asked for"

# shellcheck disable=SC2086
"$topt" frontier $job --gpus 2 --seconds none --json >none 2>err && jq -e .exact none >out &&
    "$topt" frontier $job --gpus 2 --max-work 9000000000000000000 --json >most 2>err &&
    jq 'del(.. | .search_ns?)' none >none.json && jq 'del(.. | .search_ns?)' most >most.json && cmp none.json most.json >out
check "a limit that is not reached changes nothing in a frontier"

# An end that is claimed is that of the whole frontier, one that is not may fall short of it; both are seen.
# shellcheck disable=SC2086
"$topt" frontier $job --gpus 2 --seconds none --json >whole 2>err
: >claims
for work in 1 30000 1000000 30000000 1000000000; do
    # shellcheck disable=SC2086
    "$topt" frontier $job --gpus 2 --max-work $work --json >one 2>err || break
    jq -r --slurpfile whole whole '.ends.least as $least | .points[0].memory_bytes as $a | $whole[0].points[0].memory_bytes as $b
        | "\($least) \(if $least then $a == $b else $a >= $b end)"' one >>claims
    jq -r --slurpfile whole whole '.ends.fastest as $fastest | .points[-1].time_ns as $a | $whole[0].points[-1].time_ns as $b
        | "\($fastest) \(if $fastest then $a == $b else $a >= $b end)"' one >>claims
done
[ "$(wc -l <claims)" = 10 ] && ! grep -q 'false$' claims && grep -q '^true' claims && grep -q '^false' claims
check "ends of a frontier are claimed where they were found: $(sort claims | uniq -c | tr -s ' \n' ' ')"

[ "${3:-}" = large ] || finish
# 256 experts on 256 GPUs: tables beyond the limit, or choices that no bound covers.
cat >experts.json <<'M'
{"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
 "moe_intermediate_size": 2048, "num_hidden_layers": 6, "first_k_dense_replace": 2, "num_attention_heads": 128,
 "num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 8,
 "topk_group": 4, "routed_scaling_factor": 2.5, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64,
 "qk_nope_head_dim": 128, "v_head_dim": 128, "vocab_size": 129280, "max_position_embeddings": 163840,
 "rms_norm_eps": 1e-6, "tie_word_embeddings": false}
M
job="experts.json --hw h100-80-dgx --batch 1024 --seq 4096 --framework topt --gpus 256"
# shellcheck disable=SC2086
"$topt" plan $job --json >large 2>err && jq -e '.feasible and .stopped and .exact == false and .found_in == "uniform"
    and (.too_large | test("max-table-bytes|bounded"))' large >out
check "a space that is too large: the best of the uniform one, and why: $(jq -r '.too_large // ""' large | cut -c1-60)"
# shellcheck disable=SC2086
"$topt" compare $job --json >large 2>err && jq -e '.systems[0].feasible and (.too_large or .stopped)' large >out
check "a comparison answers, too"
# shellcheck disable=SC2086
refused 1 'max-table-bytes of 1.00 MiB' "$topt" plan $job --max-table-bytes 1MiB
check "but where tables were limited by hand it is refused"
finish
