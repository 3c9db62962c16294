#!/bin/sh
# help.sh ROOT TOPT HAVE_MPI - what --help says holds: every example of every command that was built runs, on files that this makes,
# and a default that topt plan prints is the one in effect.
root=$1 topt=$2 have_mpi=$3
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
command -v jq >/dev/null || { echo "1..0 # skipped: jq is not installed" && exit 77; }

# What the examples read.  Slurm is one that takes each script, and whose one partition is empty.
mkdir bin
ln -s "$topt" bin/topt
printf '#!/bin/sh\necho "Submitted batch job 17"\n' >bin/sbatch
printf '#!/bin/sh\necho "PartitionName=gpu State=UP"\n' >bin/scontrol
printf '#!/bin/sh\ntrain\n' >train.sh
chmod +x bin/sbatch bin/scontrol
PATH=$dir/bin:$PATH
TOPT_URL=unix:$dir/toptd.sock
export PATH TOPT_URL
toptd=$(dirname "$topt")/toptd daemon=
if [ -x "$toptd" ]; then
    "$toptd" --socket "$dir/toptd.sock" --state "$dir/state" >toptd.log 2>&1 &
    daemon=$!
    trap 'kill $daemon 2>/dev/null; wait; rm -rf "$dir"' EXIT
    for _ in $(seq 100); do [ -S toptd.sock ] && break || sleep 0.1; done
fi
cp "$root/deploy/quickstart/llama-3.1-8b.json" config.json
cp "$root/deploy/quickstart/pretrain_gpt3.sh" pretrain_gpt.sh
"$topt" plan config.json --hw a100-80-dgx --batch 64 --seq 4096 -o plan.json >/dev/null 2>err
check "a plan for the examples"
for n in 1 2; do
    "$topt" plan config.json --hw a100-80-dgx --batch 64 --seq 4096 --gpus $((8 * n)) --json 2>err |
        jq '{format: "topt-measured/1", plan: .plan, step_seconds: (.time_ns * 1.2e-9)}' >measured-$n.json
done
printf 'submit_s,gpus,run_s\n0,1,40000\n600,8,7000\n' >trace.csv
"$topt" plan config.json --hw a100-80-dgx --batch 64 --seq 4096 --gpus 2,4,8 --json >curve.json 2>err
check "a curve for the examples"
cp curve.json a.json
cp curve.json b.json

# The same for commands that train: a small model of a few words, in a folder of its own.
if "$topt" run --help >/dev/null 2>&1; then
    yes 'a small crowd of numbers adds itself up. ' | head -40 >text.txt
    cp "$root/tests/runtime/tokenizers/gpt2.json" tokenizer.json
    echo '{"model_type": "gpt2", "n_embd": 32, "n_head": 2, "n_layer": 1, "n_positions": 32, "vocab_size": 424}' >gpt.json
    "$topt" plan gpt.json --framework topt --hw lab-cpu --batch 4 --seq 24 --gpus 1 -o one.json >out 2>err &&
        "$topt" run one.json --data text.txt --tokenizer tokenizer.json --steps 2 --quiet --save-weights model --config gpt.json >out 2>err
    check "a model that was trained, for the examples"
fi

commands=$("$topt" --help | awk '/^  / { print $1 }')
for command in $commands; do
    case $command in
        client) called='client plan' ;; # report is one of its commands
        report) continue ;;
        *) called=$command ;;
    esac
    # shellcheck disable=SC2086 # two words
    "$topt" $called --help >help 2>err || { echo "# topt $command was not built" && continue; }
    case $command in
        run | profile) [ "$have_mpi" = ON ] || { echo "# topt $command was built without MPI" && continue; } ;;
    esac
    case $command in
        run) "$topt" plan gpt.json --framework topt --hw lab-cpu --batch 4 --seq 24 --gpus 2 -o plan.json >/dev/null 2>&1 ;;
    esac
    sed -n '/^Examples:/,/^Options:/s/^    \([^ ].*\)/\1/p' help >lines
    least=1
    [ "$command" != plan ] || least=3
    [ "$(wc -l <lines)" -ge $least ]
    check "topt $command has examples"
    while read -r line; do
        sh -c "$line" >out 2>err </dev/null
        check "$line"
    done <lines
done
[ -s curve.svg ] && [ -s step.svg ] && [ -d job ] && [ "$(find samples -type f | wc -l)" = 2 ]
check "examples write the files that they name"

# Defaults of topt plan: each is a value that is given here, or in words that have a row below.
"$topt" plan --help >help
awk '/^Options:/ { on = 1; next }
    !on { next }
    /^  -/ { if (name != "") print name "\t" text; name = $1; text = "" }
    { sub(/^ +/, ""); text = text " " $0 }
    END { print name "\t" text }' help >options
without=' --svg --as-is --lines --as --part --json --quiet -o '
given() # OPTION: the value whose effect its default words are
{
    case $1 in
        --mode) echo mini-parallelism ;;
        --max-gpus) "$topt" hw list --json | jq '.profiles[] | select(.name == "a100-80-dgx") | .max_nodes * .gpus_per_node' ;;
        --gpus-per-node) echo 8 ;;
        --batch) echo 8 ;;
        --seq | --document-length) echo 1024 ;;
        --precision) echo bf16-mixed ;;
        --optimizer) echo adamw ;;
        --framework) echo pytorch ;;
        --space) echo uniform ;;
        --memory) echo 76GiB ;;
        --min-efficiency) echo 0 ;;
        --groups) echo all ;;
        --threads) echo 1 ;;
        --seconds) echo none ;;
        --epsilon) echo 0 ;;
        --max-table-bytes) echo 4GiB ;;
        --overlap) echo fsdp ;;
        --attention) echo flash-2 ;;
        --software) echo 2026 ;;
        --loss-kernel) echo written ;;
        --eager) echo operators,loss ;;
        --gpus | --tokens | --samples | --price | --hw | --loss | --capacity | --micro-batches | --sequence-parallel | --pin | --max-work | --gradients | --tensor-parallel | --pipeline | --virtual-stages | --schedule | --shard-ranks | --context | --expert | --expert-tensor | --degrees | --fp8-params | --cuda-graphs | --fp8-attention | --fp8-activation | --tensor-overlap | --offload | --sequence-splits | --mtp) echo - ;;
    esac
}
answer() # OPTIONS...
{
    "$topt" plan config.json --hw a100-80-dgx --json "$@" 2>err | jq 'del(.assumed, .plan.request, .plan.id)'
}
answer >plain
tab=$(printf '\t')
while IFS=$tab read -r option text; do
    default=$(echo "$text" | sed -n 's/.*(default: \(.*\))$/\1/p')
    case $without in
        *" $option "*) [ -z "$default" ]; check "$option has no default"; continue ;;
    esac
    value=$(given "$option")
    [ -n "$value" ] || value=$default
    [ -n "$default" ]
    check "$option says its default: $default"
    [ "$value" = - ] || { answer "$option" "$value" >with; [ -s with ] && diff plain with >err; }
    check "which is in effect: $option $value"
done <options
finish
