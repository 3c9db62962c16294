#!/bin/sh
# threads.sh ROOT TOPT [few] - every command of the README with two threads: it answers as one thread does.  In the build
# with the thread sanitizer a race ends the program that has it.
# few: one thread is not asked, which has no races, and whose answers other builds compare.
root=$1 topt=$2 few=${3-}
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
cp "$root"/deploy/quickstart/*.json .
export TSAN_OPTIONS="${TSAN_OPTIONS:-}:halt_on_error=1"

ran=
ask() { # ask TO WORDS...: topt, with this on standard output
    to=$1
    shift
    ran="$ran $1"
    "$topt" "$@" >"$to" 2>err
}
# What a clock measured differs from run to run.
timeless() {
    sed -E 's/"(search_ns|seconds|search_s)": *[0-9.e+-]+,?//g'
}
both() { # both WORDS...: by two threads what one says
    if [ "$few" ]; then
        ask two "$@" --json --threads 2
        check "topt $* by two threads"
        return
    fi
    ask one "$@" --json --threads 1 && ask two "$@" --json --threads 2 &&
        timeless <one >a && timeless <two >b && cmp a b >out
    check "topt $*"
}

# Lines that begin with "$ topt", as they stand.
sed -n '/^In `ours.json`:$/,/^    \$ /{/^    [{ ]/p}' "$root/README.md" >ours.json
sed -n 's/^ *\$ topt \(plan\|compare\|frontier\) /\1 /p' "$root/README.md" >lines
while read -r line; do
    # shellcheck disable=SC2086 # words of a command line
    ask two $line --threads 2
    check "README: topt $line"
done <lines
[ "$n" -ge 2 ]
check "the README shows $n of them"

a100="llama-3.1-8b.json --hw a100-80-dgx --batch 64 --seq 4096"
# shellcheck disable=SC2086 # words of a command line
{
    both plan $a100 --gpus 8
    both plan $a100 --min-efficiency 0.8
    both plan $a100 --batch 32,64
    both plan $a100 --mode profiling
    both plan $a100 --framework deepspeed --gpus 8
    both plan $a100 --framework megatron --gpus 8
    both plan $a100 --framework torchtitan --gpus 8
    both plan $a100 --precision bf16
    both plan $a100 --framework topt --space canonical --gpus 4 --pin '*.gate_up=n:4'
}
both plan llama-3.1-8b.json --hw a100-80-dgx --batch auto --seq 4096
both plan gpt-small.json --hw lab-cpu --batch 8 --framework topt
both plan moe.json --hw lab-cpu --batch 8 --framework topt --gpus 4
both plan lstm.json --hw lab-cpu --framework topt --space full --gpus 4
both plan cnn.json --hw lab-cpu --framework topt --gpus 4
both plan mlp.json --hw v100-dgx1-2x8 --batch 16 --framework topt --space full --gpus 16
both plan mlp.json --hw a100-80-dgx --batch 64 --framework topt --space canonical --factors none --gpus 32
both frontier gpt-small.json --hw lab-cpu --batch 8 --gpus 2
both frontier gpt-small.json --hw lab-cpu --batch 8 --gpus 2 --framework topt
[ "$(grep -c '"memory_bytes"' two)" -gt 0 ] && [ "$(grep -o '"memory_bytes"' two | wc -l)" -gt 128 ]
check "with enough points for two threads to check"
both compare gpt-small.json --hw lab-cpu --batch 8 --gpus 4 --framework topt

ask two plan gpt-small.json --hw lab-cpu --batch 8 --gpus 4 --framework topt --threads 2 -o topt.json
ask two plan gpt-small.json --hw a100-80-dgx --batch 8 --gpus 2 --threads 2 -o plan.json
both explain plan.json --around
ask two evaluate gpt-small.json --hw a100-80-dgx --batch 8 --plan plan.json
check "topt evaluate"
ask two launch plan.json --for torchrun
check "topt launch"
ask two simulate topt.json --svg step.svg && [ -s step.svg ]
check "topt simulate"
ask two costgraph mlp.json --hw lab-cpu --gpus 2 -o costs.json
check "topt costgraph"
both solve costs.json
ask two sample gpt-small.json --hw lab-cpu --gpus 2 --count 3 --seed 1 -o samples
check "topt sample"
ask two hw list
check "topt hw"
ask two import gpt-small.json -o native.json && ask two inspect native.json
check "topt import and inspect"
ask two study parallax
check "topt study"
echo '{"format": "topt-measured/1", "model": "gpt-small.json", "gpus": 1, "batch": 8, "uniform": {"micro_batch": 8}, "step_seconds": 1}' >measured.json
ask two calibrate a100-80-dgx measured.json
check "topt calibrate"
for name in $(grep -oE '(`|\$ |^    |--> )topt [a-z]+' "$root/README.md" | sed 's/.* //' | sort -u); do
    case $name in
        run | profile | client | report | rightsize | sbatch | queue | cluster) continue ;; # they search nothing by themselves
    esac
    case " $ran " in
        *" $name "*) ;;
        *) false ;;
    esac
    check "the README's topt $name is among them"
done
finish
