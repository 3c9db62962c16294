#!/bin/sh
# questions.sh BUILD [--against BUILD] [--count [S]] [--only NAME] [--quick | --once] [--limit S] - ask all of questions.txt.
#
# A line a question: name, seconds of the processor (the least of 3 runs; one where it takes more than 5),
# peak of resident memory in MiB, and a digest of the answer without how it was found.
#   --count [S]      also the instructions, as cachegrind counts them, of questions of up to S seconds (2);
#                    the same program differs by up to 2 %, as the hashing of JSON is seeded at random
#   --against OTHER  ask another build too: seconds of both, the ratio of instructions, or of seconds where
#                    these are not counted, MiB of both, and whether the answers are the same (question.c
#                    says what that means).  The exit status is 1 where one contradicts the other's
#   --only NAME      just this one; with a * at its end all that begin so
#   --quick          one run each, and no guard rows
#   --once           one run each
#   --limit S        a question of more than S seconds (60) is stopped
here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 1 ] || usage
build=$(cd "$1" && pwd) || exit 2
shift
other='' count='' only='' runs=3 guards=1 limit=60
while [ $# -gt 0 ]; do
    case $1 in
    --against) other=$(cd "$2" && pwd) || exit 2; shift ;;
    --count) count=2
        case ${2-} in [0-9]*) count=$2; shift ;; esac ;;
    --only) only=$2; shift ;;
    --quick) runs=1 guards=0 ;;
    --once) runs=1 ;;
    --limit) limit=$2; shift ;;
    *) usage ;;
    esac
    shift
done
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
cd "$dir" || exit 2

# ---- models and clusters -----------------------------------------------------------------------

# llama_like FILE TYPE WIDTH LAYERS HEADS GROUPS INNER VOCABULARY [MORE]
llama_like() {
    cat >"$1" <<END
{"model_type":"$2","hidden_size":$3,"num_hidden_layers":$4,"num_attention_heads":$5,"num_key_value_heads":$6,
 "intermediate_size":$7,"vocab_size":$8,"hidden_act":"silu","max_position_embeddings":131072,
 "tie_word_embeddings":false${9-}}
END
}
cp "$here/../../deploy/quickstart/llama-3.1-8b.json" llama8.json
cp "$here/../../deploy/quickstart/gpt-small.json" "$here/../../deploy/quickstart/moe.json" .
llama_like llama70.json llama 8192 80 64 8 28672 128256
llama_like llama405.json llama 16384 126 128 8 53248 128256
llama_like mixtral.json mixtral 4096 32 32 8 14336 32000 ',"num_local_experts":8,"num_experts_per_tok":2'
llama_like deepseek.json deepseek_v3 7168 61 128 128 18432 129280 ',"kv_lora_rank":512,"q_lora_rank":1536,
 "qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"n_routed_experts":256,"n_shared_experts":1,
 "num_experts_per_tok":8,"moe_intermediate_size":2048,"first_k_dense_replace":3,"n_group":8,"topk_group":4,
 "scoring_func":"sigmoid","topk_method":"noaux_tc","norm_topk_prob":true,"routed_scaling_factor":2.5'
echo '{"model_type":"gpt2","n_layer":96,"n_embd":12288,"n_head":96,"n_positions":2048,"vocab_size":50257}' >gpt3.json
sed 's/"n_routed_experts":256/"n_routed_experts":384/; s/"num_attention_heads":128,"num_key_value_heads":128/"num_attention_heads":64,"num_key_value_heads":64/
     s/"first_k_dense_replace":3,"n_group":8,"topk_group":4/"first_k_dense_replace":1,"n_group":1,"topk_group":1/; s/129280/163840/' deepseek.json >moe1t.json
# 16,384 GPUs.
"$build/bin/topt" hw show h100-80-dgx | sed 's/"nodes": 128/"nodes": 2048/' >h100-16k.json
# Of which plans may use 80 GiB.
"$build/bin/topt" hw show a100-80-dgx | sed 's/"memory_bytes": 85899345920/"memory_bytes": 90194313216/' >a100-84.json

# Large problems, made once they are asked for.
make_problem() {
    case $1 in
    chain-480x28) "$build/tests/make_costs" chain 480 28 random >chain-480x28.json ;;
    forkjoin-96x32) "$build/tests/make_costs" forkjoin 96 32 random >forkjoin-96x32.json ;;
    esac
}

# ---- asking ------------------------------------------------------------------------------------

# ask BUILD KEEP ARGUMENTS... - one line, as question.c prints it.  The solver itself, not its dispatcher.
ask() {
    solver=$1/libexec/topt/topt-solver keep=$2
    shift 2
    set -- -- "$solver" "$@"
    [ "$3" != solve ] || set -- --with --json "$@"
    "$build/tests/question" ask --runs $runs --limit "$limit" ${count:+--count "$count"} --keep "$keep" "$@"
}

tolerance_of() {
    while [ $# -gt 1 ]; do
        [ "$1" = --epsilon ] && { echo "$2"; return; }
        shift
    done
    echo 0
}

report() {
    name=$1
    shift
    rm -f before.json after.json
    after=$(ask "$build" after.json "$@")
    if [ -z "$other" ]; then
        printf '%-21s %s\n' "$name" "$after" | awk -v n="$(echo "$after" | wc -w)" -v count="$count" '
            n == 3 && !count { printf "%-21s %9.3f %9.1f  %s\n", $1, $2, $3, $4; next }
            n == 4 && count { printf "%-21s %9.3f %9.1f %16s  %s\n", $1, $2, $3, $4, $5; next }
            { print }'
        return
    fi
    before=$(ask "$other" before.json "$@")
    if [ -f before.json ] && [ -f after.json ]; then
        same=$("$build/tests/question" compare before.json after.json "$(tolerance_of "$@")")
    elif [ -f before.json ]; then
        same=LOST
    else
        same=none
    fi
    case $same in DIFFERS | LOST) echo "$name" >>differ ;; esac
    printf '%s\n%s\n' "$before" "$after" | awk -v name="$name" -v same="$same" -v count="$count" '
        { ok[NR] = $1 ~ /^[0-9]/; s[NR] = $1; mib[NR] = $2; refs[NR] = count ? $3 : "-"; line[NR] = $0 }
        END {
            if (!ok[1] || !ok[2]) { printf "%-21s %s: %s, then %s\n", name, same, line[1], line[2]; exit }
            counted = refs[1] != "-" && refs[2] != "-"
            ratio = counted ? refs[2] / refs[1] : s[1] > 0 ? s[2] / s[1] : 0
            printf "%-21s %9.3f %9.3f %9.3f %-12s %9.1f %9.1f  %s\n", name, s[1], s[2], ratio,
                counted ? "instructions" : "seconds", mib[1], mib[2], same
        }'
    if [ "$same" = DIFFERS ]; then
        diff before.json after.json | head -n 12 | sed 's/^/    /'
    fi
}

wanted() {
    case $only in
    '') return 0 ;;
    *'*') case $1 in "${only%?}"*) return 0 ;; esac ;;
    "$1") return 0 ;;
    esac
    return 1
}

# The questions name these.
# shellcheck disable=SC2034
a='--hw a100-80-dgx --threads 1 --json'
# shellcheck disable=SC2034
p='--hw v100-dgx1-2x8 --batch 256 --framework topt --accounting paper --threads 1 --json'
if [ -n "$other" ]; then
    printf '%-21s %9s %9s %9s %-12s %9s %9s  %s\n' question 's before' 's after' ratio of 'MiB' 'MiB' answer
elif [ -n "$count" ]; then
    printf '%-21s %9s %9s %16s  %s\n' question seconds MiB instructions answer
else
    printf '%-21s %9s %9s  %s\n' question seconds MiB answer
fi
while read -r name arguments; do
    case $name in
    '' | '#'*) continue ;;
    =) [ $guards = 1 ] || break
        echo "guard rows"
        continue ;;
    esac
    wanted "$name" || continue
    make_problem "$name"
    eval "set -- $arguments"
    report "$name" "$@" </dev/null
    rm -f chain-*.json forkjoin-*.json
done <"$here/questions.txt"
[ ! -f differ ] || { echo "contradicted: $(tr '\n' ' ' <differ)"; exit 1; }
