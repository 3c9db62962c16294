#!/bin/sh
# flexflow_walk.sh ROOT FLEXFLOW_WALK - on topt's links ft is at most 3 % slower than FlexFlow's best walk, on six models and 16 P100.
# Inception is told without the sums of its batch norms' statistics over devices: ft's plan is chosen with them, and they are not among
# FlexFlow's tasks.
root=$1 walk=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"

# beside MODEL BATCH PROPOSALS [norms-apart]
beside()
{
    "$walk" "paper:$1" "$2" p100-4x4 4 4 "$3" 1 $4 >out 2>err
    ratio=$(sed -n "s/^topt's links .* \([0-9.]*\)$/\1/p" out)
    awk -v r="$ratio" 'BEGIN {exit !(r > 0 && r <= 1.03)}'
    check "$1: ft takes $ratio of FlexFlow's best of $3 proposals${4:+, $4}"
}

beside rnn 0 3000
beside rnnlm 0 8000
beside nmt 0 8000
beside alexnet 0 4000
beside inception 0 2000 norms-apart
beside wideresnet 64 1000
finish
