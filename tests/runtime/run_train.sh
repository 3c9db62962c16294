#!/bin/sh
# run_train.sh - schedules, clipping, evaluation and metrics: the same under every plan.
# usage: run_train.sh TOPT_RUNTIME MAKE_PLAN MPIEXEC
runtime=$1 make_plan=$2 mpiexec=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

yes 'a small crowd of numbers adds itself up over four quiet machines. ' | head -30 >text
head -c 1500 text >other
# settings SECONDS...: what is tried, beside the plan
settings="--data text --steps 12 --dtype f64 --optimizer adamw --lr 0.01 --schedule cosine --warmup 3 --clip 0.5
    --beta1 0.8 --beta2 0.95 --eps 1e-6 --weight-decay 0.2 --eval-data other --eval-every 5 --eval-batches 3"
numbers() { # numbers METRICS: losses, norms and evaluations, a line each
    tr -d '{}"' <"$1" | tr ',' '\n' | grep -E 'loss|norm|lr' | awk '{ print $1, $2 }'
}
agree() { # agree A B: as close as f64 is written
    numbers "$1" >one && numbers "$2" >two && [ -s one ] && [ "$(wc -l <one)" = "$(wc -l <two)" ] &&
        paste one two | awk '{ d = $2 - $4; if (d < 0) d = -d; if ($1 != $3 || d > 3e-8 * ($2 < 0 ? -$2 : $2)) bad = 1 }
            END { exit bad }'
}
"$make_plan" gpt 1 7 1 plan1- >out 2>err && "$make_plan" gpt 4 5 4 plan4- >out 2>err
check "plans"
# shellcheck disable=SC2086
"$runtime" run plan1-0.json $settings --metrics m1 --report r1 >out 2>err && [ "$(wc -l <m1)" = 12 ] &&
    [ "$(grep -c eval_loss m1)" = 3 ] && grep -q '"eval_loss"' r1 && grep -q 'evaluation' err
check "one process: a line a step, three evaluations"
awk -F'"gradient_norm": ' '$2 + 0 > 0.5 { n++ } END { exit n < 6 }' m1
check "... gradients are longer than they may be"
for plan in 0 1 2 3; do
    # shellcheck disable=SC2086
    "$mpiexec" -n 4 "$runtime" run plan4-$plan.json $settings --metrics m4 >out 2>err && agree m1 m4
    check "4 ranks, plan $plan: the same losses, norms, rates and evaluations"
done
# the rate: a straight line, then half a cosine to a tenth
awk -F'"lr": ' '{ split($2, a, ","); print a[1] }' m1 | awk '
    NR <= 3 { want = 0.01 * NR / 3 }
    NR > 3 { want = 0.001 + 0.009 * 0.5 * (1 + cos(3.14159265358979 * (NR - 4) / 9)) }
    { d = $1 - want; if (d < 0) d = -d; if (d > 1e-8) bad = 1 }
    END { exit bad || NR != 12 }'
check "... which are as documented"
# going on cuts the lines that are made again
# shellcheck disable=SC2086
"$runtime" run plan1-0.json $settings --metrics m2 --checkpoint ck --every 4 >out 2>err
rm -r ck/step-000000012
# shellcheck disable=SC2086
"$runtime" run plan1-0.json $settings --metrics m2 --checkpoint ck --resume >out 2>err && grep -q 'after step 8' err && agree m1 m2
check "metrics of a run that went on are those of one that was not interrupted"
refused 1 'No space left' "$runtime" run plan1-0.json --data text --metrics /dev/full
check "no room for metrics"
refused 2 "unknown --schedule 'cosin'" "$runtime" run plan1-0.json --data text --schedule cosin
check "another schedule"
for pair in 'eval-every 2:eval-data' 'eval-batches 2:eval-data' 'every 2:checkpoint' 'keep 2:checkpoint' 'min-lr 0.1:schedule' \
    'config plan1-0.json:weights DIR or --save-weights'; do
    # shellcheck disable=SC2086
    refused 2 "^topt run: --${pair%% *} does nothing without --${pair#*:} " "$runtime" run plan1-0.json --data text --${pair%:*}
    check "--${pair%% *} without --${pair#*:}"
done
for pair in 'weight-decay 0.1:adamw' 'beta2 0.9:adam or adamw' 'eps 1e-6:adam, adamw or row_wise_adagrad' 'beta1 0.8:momentum, adam or adamw'; do
    # shellcheck disable=SC2086
    refused 2 "^topt run: --${pair%% *}: sgd, the optimizer of the plan, has none; it is of ${pair#*:} " \
        "$runtime" run plan1-0.json --data text --optimizer sgd --${pair%:*}
    check "--${pair%% *} of sgd"
done
refused 1 "^topt run: --eval-data: 'synthetic' is synthetic, the data to train on are text" \
    "$runtime" run plan1-0.json --data text --eval-data synthetic
check "an evaluation on data of another kind"
refused 3 'of it for --checkpoint and --clip' "$runtime" run plan1-0.json --data text --checkpoint new --clip 1 --memory 150KiB
check "what a checkpoint is copied to counts"
finish
