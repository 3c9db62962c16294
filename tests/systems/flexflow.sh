#!/bin/sh
# flexflow.sh ROOT TOPT - FlexFlow as a row of `topt compare`, and the column of times in which
# gradients are reduced behind backward.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"

compare() # compare MODEL GPUS OPTIONS...: into 'out', without what the search took
{
    model=$1 gpus=$2
    shift 2
    "$topt" compare "$model" --hw v100-dgx1-2x8 --gpus "$gpus" --accounting paper --blocks alike --json "$@" 2>err |
        sed 's/"search_ns": *[0-9]*/"search_ns":0/g' >out
    [ -s out ]
}
# field NAME SYSTEM: of a system's row
field()
{
    tr -d '\n' <out | tr '{' '\n' | grep "\"algorithm\": *\"$2\"" | sed -n "s/.*\"$1\": *\([0-9][0-9]*\).*/\1/p"
}
least() # least A B: A is no more
{
    awk -v a="$1" -v b="$2" 'BEGIN {exit !(a != "" && b != "" && a + 0 <= b + 0)}'
}

compare paper:vgg16 8 --space canonical --seed 5 --proposals 300 && cp out first &&
    compare paper:vgg16 8 --space canonical --seed 5 --proposals 300 && cmp -s out first
check "the same for the same seed"
[ "$(field ours_ns flexflow)" -gt 0 ] && [ -n "$(field time_ns flexflow)" ] && [ "$(field time_ns flexflow)" = "$(field overlapped_ns flexflow)" ]
check "flexflow moves while it computes, and our plan is put through the same simulation"
compare paper:rnn 16 --space canonical --proposals 300 && least "$(field time_ns ft)" "$(field time_ns flexflow)"
check "the RNN: ft is faster than flexflow, $(field time_ns ft) and $(field time_ns flexflow) ns"
"$topt" compare paper:vgg16 --hw v100-dgx1-2x8 --gpus 8 --accounting paper --space canonical --blocks alike --seed 5 --proposals 300 >out 2>err &&
    grep -q "flexflow .*\*" out && grep -q "walked [0-9]* proposals from data parallel" out
check "the table says what it did"
finish
