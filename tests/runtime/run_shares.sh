#!/bin/sh
# run_shares.sh - devices with unequal shares of the batch train to the losses of one.
# usage: run_shares.sh TOPT TOPT_RUNTIME MAKE_PLAN MPIEXEC MODEL
topt=$1 runtime=$2 make_plan=$3 mpiexec=$4 model=$5
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

losses() { # losses METRICS: a line each
    sed -E 's/.*"loss": ([0-9.eE+-]*).*/\1/' "$1"
}
agree() { # agree A B: as close as f64 is written
    losses "$1" >one && losses "$2" >two && [ -s one ] && paste one two |
        awk 'NF != 2 { exit 1 } { d = $1 - $2; if (d < 0) d = -d; if (d > 3e-8 * $1) exit 1 }'
}
measured() { # measured REPORT: is the peak of the largest rank the predicted one?
    [ "$(grep -o '"peak_bytes": [0-9]*' "$1" | sort -u | wc -l)" = 1 ]
}
train="--data text --steps 4 --dtype f64"
yes 'a small crowd of numbers adds itself up over four quiet machines. ' | head -40 >text

# a group of ranks, and one of slower ones; as a step has what rows do not change, a group that is 2.3 times as fast takes
# three times the rows of so small a batch
group() { # group NAME SLOWER
    printf '{"name":"%s","nodes":1,"gpus_per_node":2,
      "device":{"name":"rank %s","memory_bytes":1073741824,"flops":{"f32":%s},"efficiency":{"matmul":0.6,"attention":0.1,
        "elementwise":0.05},"memory_bandwidth":%s,"launch_ns":%s,"source":"assumed"},
      "links":[{"level":"node","bytes_per_second":4e9,"latency_ns":2000,"source":"assumed"}]}' "$1" "$1" \
        "$(awk "BEGIN { print 4e10 / $2 }")" "$(awk "BEGIN { print 1e10 / $2 }")" "$(awk "BEGIN { print 2000 * $2 }")"
}
printf '{"format":"topt-hw/1","name":"two-speeds","groups":[%s,%s],"between":{"bytes_per_second":3e9,"latency_ns":20000,
    "source":"assumed"}}' "$(group fast 1)" "$(group slow 2.3)" >two.json
ask="--batch 16 --seq 16 --framework topt"
# shellcheck disable=SC2086
"$topt" plan "$model" --hw lab-cpu --gpus 1 $ask --space uniform -o one.json >out 2>err &&
    "$topt" plan "$model" --hw two.json --gpus 4 $ask -o joint.json >out 2>err && grep -q '^fast .* 12 rows' out &&
    grep -q '^slow .* 4 rows' out && tr -d ' \n' <joint.json | grep -q '"shares":\[[0-9]*,[0-9]*\]'
check "groups of unlike speed: rows 3 to 1"
# shellcheck disable=SC2086
"$runtime" run one.json $train --metrics m1 >out 2>err &&
    "$mpiexec" -n 4 "$runtime" run joint.json $train --metrics m4 --report r >out 2>err && agree m1 m4
check "4 ranks with these rows: the losses of one"
measured r
check "... in the bytes that were predicted"
# two ranks of the one group and one of the other
# shellcheck disable=SC2086
"$topt" plan "$model" --hw two.json --gpus 3 $ask -o three.json >out 2>err && grep -q '^groups *2 of fast and 1 of slow' out &&
    "$mpiexec" -n 3 "$runtime" run three.json $train --metrics m3 --report r >out 2>err && agree m1 m3 && measured r
check "3 ranks, two of a group and one of a slower one: the losses of one, in the bytes that were predicted"
# of the state other shares than of rows: parameters, gradients and states where they rest
# shellcheck disable=SC2086
"$topt" plan "$model" --hw two.json --gpus 4 $ask --space uniform -o uniform.json >out 2>err &&
    sed 's/^\( *"mesh": {\)/\1"state_shares": [1, 3],/' uniform.json >state.json
grep -q state_shares state.json && grep -q '"shares"' state.json && "$mpiexec" -n 4 "$runtime" run state.json $train --metrics m5 --report r >out 2>err && agree m1 m5
check "rows 3 to 1, state 1 to 3: the losses of one"
"$make_plan" gpt 4 5 3 mixed- >out 2>err &&
    sed 's/^\( *"mesh": {\)/\1"state_shares": [1, 3],/' mixed-0.json >shared.json
"$runtime" run shared.json --data synthetic >out 2>err
grep -q 'the first axis splits parameters of' err
check "what the first axis splits by a configuration has no other shares"
printf '{"format":"topt-hw/1","name":"turned","groups":[%s,%s],"between":{"bytes_per_second":3e9,"latency_ns":20000,
    "source":"assumed"}}' "$(group slow 2.3)" "$(group fast 1)" >turned.json
# shellcheck disable=SC2086
refused 3 'groups stand in the profile before others that are faster' "$topt" plan "$model" --hw turned.json --gpus 4 $ask -o none.json
check "ranks are given to groups in the order of the profile, the fastest first"
# shellcheck disable=SC2086
"$topt" plan "$model" --hw two.json --gpus 4 --framework topt --batch 1 --seq 16 >out 2>err
[ $? = 3 ] && grep -q 'more groups than rows' out
check "one row for two groups is no plan"

# any strategy, not only data parallelism
for name in gpt moe; do
    "$make_plan" $name 1 7 1 one- >out 2>err && "$make_plan" $name 4 5 3 four- >out 2>err &&
        "$runtime" run one-0.json --data synthetic --steps 3 --dtype f64 --metrics n1 >out 2>err
    check "$name: plans of random choices"
    for plan in 0 1 2; do
        sed 's/^\( *"mesh": {\)/\1"shares": [3, 1],/' four-$plan.json >shared.json
        grep -q shares shared.json && "$mpiexec" -n 4 "$runtime" run shared.json --data synthetic --steps 3 --dtype f64 \
            --metrics n4 --report r >out 2>err && agree n1 n4 && measured r
        check "$name, plan $plan, the first axis 3 to 1: losses of one, in the bytes predicted"
    done
done
sed 's/^\( *"mesh": {\)/\1"shares": [1, 3],/' four-0.json >shared.json
refused 1 'mesh.shares: shares are 1 to .* the largest first' "$runtime" run shared.json --data synthetic
check "shares with the largest last"
sed 's/^\( *"mesh": {\)/\1"shares": [3, 2, 1],/' four-0.json >shared.json
refused 1 'mesh.shares: 3 shares, and the first axis' "$runtime" run shared.json --data synthetic
check "more shares than parts"
finish
