#!/bin/sh
# see.sh ROOT TOPT - what a person sees of plans: pictures, words, lists, and nothing more than
# that where nobody looks.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
model=$root/deploy/quickstart/mlp.json

"$topt" frontier "$model" --hw lab-cpu --gpus 2 --svg a.svg >out 2>err
check "a frontier is drawn"
[ ! -s err ] && grep -q "fastest that fits" out && grep -q '⣀\|⠉' out
check "on the terminal too, and nothing is said of progress where no terminal is"
"$topt" frontier "$model" --hw lab-cpu --gpus 2 --svg b.svg --json --threads 2 >out 2>err && cmp -s a.svg b.svg
check "the same bytes for any number of threads"
head -c 4 a.svg | grep -q '<svg' && tail -n 1 a.svg | grep -q '</svg>'
check "which are SVG"
"$topt" plan "$model" --hw lab-cpu --framework topt --mode profiling --gpus 1,2,4 --memory 1MiB --svg c.svg >out 2>err &&
    grep -q "does not fit in 1.00 MiB" c.svg && grep -q "perfect scaling" c.svg
check "a curve says where it does not fit"
refused 3 "nothing fits in 4.00 KiB" "$topt" frontier "$model" --hw lab-cpu --gpus 2 --memory 4KiB --json &&
    grep -q '"points": \[\]' out
check "a frontier without points is said to be one"
refused 2 "profiling" "$topt" plan "$model" --hw lab-cpu --mode mini-time --gpus 2 --svg d.svg
check "one plan is no curve"
refused 2 "threads" "$topt" plan "$model" --hw lab-cpu --mode mini-time --gpus 2 --threads 257
check "there may be 256 threads"
refused 1 "d.svg" "$topt" frontier "$model" --hw lab-cpu --gpus 2 --svg nowhere/d.svg
check "a picture that can't be written is an error"

"$topt" plan "$model" --hw lab-cpu --framework topt --mode mini-parallelism --memory 1MiB -o plan.json >out 2>err &&
    [ "$(awk 'length($0) > 100 && !/^(fewest|one node|cheapest|knee|fastest)|GPUs  .* step /' out | wc -l)" -eq 0 ]
check "a plan is told in lines that fit"
ln -s plan2.json link && mkfifo pipe && : >plan2.json
"$topt" plan "$model" --hw lab-cpu --framework topt --mode mini-parallelism --memory 1MiB -o link >out 2>err &&
    [ -L link ] && cmp -s plan.json plan2.json
check "a plan is written through a link"
timeout 20 cat pipe >plan3.json & "$topt" plan "$model" --hw lab-cpu --framework topt --mode mini-parallelism --memory 1MiB -o pipe >out 2>err
wait && [ -p pipe ] && cmp -s plan.json plan3.json
check "and into a pipe, which stays one"
"$topt" explain plan.json >out 2>err && grep -q "compute-bound" out && grep -q "1 would need" out
check "and explained: why not fewer, what bounds it"
"$topt" explain plan.json --json >out 2>err && head -c 1 out | grep -q '{' && grep -q '"splits"' out
check "as JSON, too"
refused 1 "plan: " "$topt" explain "$model"
check "what is no plan is refused"

if [ -c /dev/full ] && [ -w /dev/full ]; then
    kept=0 asked=0
    for ask in "explain plan.json" "hw list" "plan $model --hw lab-cpu --mode mini-time --gpus 1" \
        "evaluate $model --hw lab-cpu --plan plan.json" "inspect $model"; do
        asked=$((asked + 1))
        # shellcheck disable=SC2086 # words on purpose
        "$topt" $ask >/dev/full 2>err
        [ $? -eq 1 ] && [ "$(grep -c "can't be written to stdout" err)" -eq 1 ] && kept=$((kept + 1))
    done
    : >out
    [ $kept -eq $asked ]
    check "on a full disk no answer is said to be one"
fi

"$topt" hw check lab-cpu >out 2>err && grep -q "topt profile" out && grep -q "nothing implausible" out
check "a profile: what was not measured, and how it could be"
printf '{"format":"topt-hw/1","like":"v100-dgx1-2x8","name":"odd","device":{"launch_ns":200000}}' >odd.json
"$topt" hw check odd.json >out 2>err && grep -q "kernel launch takes 200 us" out
check "and what can't well be so"
"$topt" inspect "$model" >out 2>err && grep -q "ids of embedding: b 16, s 32" out
check "a model: what it reads"
finish
