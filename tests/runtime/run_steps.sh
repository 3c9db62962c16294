#!/bin/sh
# run_steps.sh - once training has begun its steps allocate nothing and make no groups of ranks.
# usage: run_steps.sh RUNTIME_ARENA MAKE_PLAN MPIEXEC
arena=$1 make_plan=$2 mpiexec=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

yes 'a small crowd of numbers adds itself up over four quiet machines. ' | head -30 >text
for model in gpt moe; do
    data=text
    [ $model = gpt ] || data=synthetic
    for gpus in 1 4; do
        "$make_plan" $model $gpus 5 1 plan >out 2>err && "$mpiexec" -n $gpus "$arena" plan0.json $data >out 2>err &&
            [ "$(grep -c '^ok' out)" = 3 ] && ! grep -q '^not ok' out
        check "$model on $gpus: $(grep '^ok' out | sed 's/.*: //' | paste -sd';')"
    done
done
finish
