#!/bin/sh
# search_tables.sh ROOT TOPT [SECONDS] - TensorOpt's table 3: its search with linear dynamic programming (ft-plain) and by
# elimination alone (ft-elimination), beside ours (ft), in counted pairs of points, on its models and 16 GPUs.  A cell has so many
# seconds of the wall (600); one that does not finish says so, with the pairs until then.
root=$1 topt=$2 seconds=${3:-600}
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"

# cell MODEL ALGORITHM: its pairs and seconds, or that it did not finish; the frontier into MODEL.ALGORITHM
cell()
{
    begin=$(date +%s)
    "$topt" frontier "paper:$1" --hw v100-dgx1-2x8 --gpus 16 --framework topt --precision f32 --accounting paper-reuse --space canonical \
        --blocks free --factors none --algorithm "$2" --threads 1 --seconds "$seconds" --json >answer 2>err
    pairs=$(sed -n 's/^ *"products": *\([0-9]*\).*/\1/p' answer)
    if grep -q '"exact": *true' answer; then
        grep -o '"\(memory_bytes\|time_ns\)": *[0-9]*' answer >"$1.$2"
        echo "$pairs ($(($(date +%s) - begin)) s)"
    else
        echo "not finished (${pairs:-0})"
    fi
}

printf '# %-12s %24s %24s %24s\n' model ft ft-plain ft-elimination
for model in rnn transformer wideresnet; do
    ours=$(cell $model ft) plain=$(cell $model ft-plain) elimination=$(cell $model ft-elimination)
    printf '# %-12s %24s %24s %24s\n' "$model" "$ours" "$plain" "$elimination"
    same=0
    for one in "$model".ft*; do
        for other in "$model".ft*; do
            cmp -s "$one" "$other" || same=1
        done
    done
    [ $same = 0 ] || [ ! -f "$one" ]
    check "$model: whatever finishes finds the same frontier"
done
finish
