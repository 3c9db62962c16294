#!/bin/sh
# compare.sh ROOT TOPT - the rows of `topt compare`: which are asked, what each may take, and by which question.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"

# row SYSTEM: its members
row()
{
    tr -d '\n' <out | tr '{' '\n' | grep "\"algorithm\": *\"$1\""
}
# whole NAME SYSTEM
whole()
{
    row "$2" | sed -n "s/.*\"$1\": *\([0-9][0-9]*\).*/\1/p"
}
vgg="paper:vgg16 --hw v100-dgx1-2x8 --gpus 8 --accounting paper --space canonical --blocks alike"

# shellcheck disable=SC2086
"$topt" compare $vgg --systems hypar,optcnn --json >out 2>err && [ "$(grep -c '"algorithm"' out)" = 3 ] && row ft >row && row hypar >row &&
    row optcnn >row
check "--systems: these rows and ft"
# shellcheck disable=SC2086
refused 2 "no system is called 'optcn'; did you mean optcnn?" "$topt" compare $vgg --systems hypar,optcn
check "a row that nobody knows"

# shellcheck disable=SC2086
"$topt" compare $vgg --framework topt --systems optcnn >table 2>err
asked=$(tr '\n' ' ' <table | sed -n 's/.*the same as topt plan \(.*\), and all *else as here.*/\1/p')
# shellcheck disable=SC2086
"$topt" compare $vgg --framework topt --systems optcnn --json >out 2>err && "$topt" plan $vgg $asked --json >plan 2>err &&
    [ -n "$asked" ] && [ "$(whole time_ns ft)" = "$(sed -n 's/^ *"time_ns": *\([0-9]*\).*/\1/p' plan | head -1)" ]
check "ft's row is what the header's topt plan answers ($asked)"

# shellcheck disable=SC2086
"$topt" plan $vgg --framework topt -o plan.json >plan 2>err
least=$(for how in "" "--bucket 64MiB"; do
    # shellcheck disable=SC2086
    "$topt" simulate plan.json --overlap ddp $how --json | sed -n 's/^ *"time_ns": *\([0-9]*\).*/\1/p'
done | sort -n | head -1)
[ -n "$least" ] && [ "$(whole overlapped_ns ft)" -le "$least" ] &&
    awk -v a="$(whole overlapped_ns ft)" -v b="$least" 'BEGIN {exit !(a > 0.98 * b)}'
check "ft's overlapped time is that of its own plan, $(whole overlapped_ns ft) of $least ns"

# of the plans that need as little, the fastest
# shellcheck disable=SC2086
"$topt" compare $vgg --framework topt --factors none --memory 1GiB --systems mesh-tensorflow,mesh-tensorflow-reshape --json >out 2>err
for system in mesh-tensorflow mesh-tensorflow-reshape; do
    # shellcheck disable=SC2086
    "$topt" frontier $vgg --framework topt --factors none --algorithm $system --json >frontier 2>err
    point=$(grep -o '"\(memory_bytes\|time_ns\)": *[0-9]*' frontier | grep -o '[0-9]*$' | head -2 | tr '\n' ' ')
    [ "$(whole memory_bytes $system) $(whole time_ns $system) " = "$point" ]
    check "where nothing fits $system has the fastest plan of least memory, $point"
done

# shellcheck disable=SC2086
"$topt" compare $vgg --systems optcnn,flexflow,hypar --json >out 2>err && [ "$(grep -c '"budget": *"1.25e+10 pairs of points"' out)" = 2 ] &&
    grep -q '"budget": *"1e+11 pairs of points"' out && row flexflow | grep -q '"budget": *"[0-9]* proposals of seeds 1 to [0-9]*"'
check "each row says its budget of counted work, FlexFlow its proposals and seeds"
# shellcheck disable=SC2086
"$topt" compare paper:transformer --hw v100-dgx1-2x8 --gpus 16 --space canonical --blocks free --factors none --threads 1 --seconds 2 \
    --systems optcnn,flexflow,data-parallel --json >out 2>err
row ft | grep -q '"budget": *"1 s"' && row data-parallel >row && row optcnn >row && row flexflow | grep -q '"budget": *"[0-9.]* s"'
check "a limit of time is shared: the last row has its part of it, $(row flexflow | sed -n 's/.*"budget": *"\([^"]*\)".*/\1/p')"
finish
