#!/bin/sh
# run_given.sh - samples that the program has: each rank is asked for its part of the batch under any plan, and trains as one does.
# usage: run_given.sh GIVEN MAKE_PLAN MPIEXEC
given=$1 make_plan=$2 mpiexec=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

steps=4
same() { # same ONE FOUR: losses to 1e-5
    grep '^loss' "$1" >one && grep '^loss' "$2" >two && [ "$(wc -l <one)" = $steps ] && [ "$(wc -l <two)" = $steps ] &&
        paste one two | awk '{ d = $2 - $4; if (d < 0) d = -d; if (!(d <= 1e-5 * $2)) bad = 1 } END { exit bad }'
}
for model in table gpt; do
    "$make_plan" $model 1 3 1 alone- >out 2>err && "$given" alone-0.json $steps >alone 2>err
    check "$model: one rank"
    "$make_plan" $model 4 9 2 plan- >out 2>err
    check "$model: two plans for four ranks"
    for plan in 0 1; do
        "$mpiexec" -n 4 "$given" plan-$plan.json $steps >four 2>err && same alone four
        check "$model, plan $plan: losses are those of one rank"
        # all of a batch once: what one rank was asked for alone, and no rank for more than its part
        grep '^asked' alone four | sed 's/.*asked //' | awk '
            NR == 1 { split($0, all) }
            NR > 1 { for (k = 1; k <= 3; k++) { sum[k] += $k; if ($k > all[k] / 4) bad = 1 } }
            END { for (k = 1; k <= 3; k++) if (sum[k] != all[k]) bad = 1; exit bad || NR != 5 }'
        check "$model, plan $plan: each rank gave a quarter of the samples"
        cp four plan$plan.four
    done
    grep -h '^moves' plan*.four | awk '{ n += $2 > 0 } END { exit n < 1 }'
    check "$model: samples are sent on, which has a price"
done
refused 1 "no samples 0 to 7 of .* for step 2" timeout 60 "$given" alone-0.json $steps 2
check "no samples on one rank"
refused 1 "no samples . to . of .* for step 2" timeout 60 "$mpiexec" -n 4 "$given" plan-0.json $steps 2
check "... on four, said once"
finish
