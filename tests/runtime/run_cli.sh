#!/bin/sh
# run_cli.sh - topt run and topt profile as people start them.
# usage: run_cli.sh TOPT_RUNTIME MAKE_PLAN MPIEXEC
runtime=$1 make_plan=$2 mpiexec=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

yes 'a small crowd of numbers adds itself up over four quiet machines. ' | head -30 >text
for gpus in 1 2 4; do
    "$make_plan" gpt $gpus 7 1 plan$gpus- >out 2>err
    check "a plan for $gpus devices"
done

"$runtime" run plan1-0.json --data text --steps 12 --report r1 >out 2>err
check "one device runs without a launcher"
planned=$(jq .predicted.time_ns plan1-0.json) expected=$(jq .predicted.time_ns r1)
[ "$expected" -lt "$planned" ] && grep -q '^note: the plan predicts .* per step; fused kernels make it' err
check "that its time is not the plan's is said: $(grep '^note: the plan says' err)"
"$runtime" run plan1-0.json --data text --steps 1 --quiet >out 2>err && ! grep -q 'note: the plan' err
check "... and not to who wants no notes"
for gpus in 2 4; do
    "$mpiexec" -n $gpus "$runtime" run plan$gpus-0.json --data text --steps 12 --report r$gpus >out 2>err
    check "$gpus ranks train"
    [ "$(grep -o 'loss.*to [0-9.]*' out)" = "$("$runtime" run plan1-0.json --data text --steps 12 | grep -o 'loss.*to [0-9.]*')" ]
    check "... to the loss of one"
    [ "$(sed -n 's/.*"peak_bytes": \([0-9]*\).*/\1/p' r$gpus | sort -u | wc -l)" = 1 ]
    check "... in the memory that was predicted"
done
"$mpiexec" -n 2 "$runtime" run plan2-0.json --data text --steps 3 --dtype f64 --optimizer adam \
    --dump-gradients grads --json >out 2>err && grep -q '"dtype": "f64"' out &&
    grep -q '"optimizer": "adam"' out && [ -s grads/index.json ] && [ -s grads/004-w.f64 ]
check "other numbers, another optimizer, gradients of the first step"

# adapters beside frozen maps: what has a gradient is they alone
for gpus in 1 2; do
    "$make_plan" llama $gpus 7 1 lora$gpus- lora:2 >out 2>err
    check "a plan of adapters for $gpus devices"
done
"$mpiexec" -n 2 "$runtime" run lora2-0.json --data text --steps 8 --dump-gradients adapters >out 2>err &&
    [ "$(grep -c '"op"' adapters/index.json)" = "$(grep -c '"op": .*lora_[ab]"' adapters/index.json)" ] &&
    [ "$(grep -c '"op"' adapters/index.json)" -gt 0 ]
check "only adapters have gradients"
[ "$(grep -o 'loss.*to [0-9.]*' out)" = "$("$runtime" run lora1-0.json --data text --steps 8 | grep -o 'loss.*to [0-9.]*')" ]
check "... and two ranks train them to the loss of one"
for bits in 4 8; do
    "$make_plan" llama 1 7 1 packed- lora:2+${bits}bit >out 2>err && "$runtime" run packed-0.json --data text --steps 8 >out 2>err &&
        grep -q 'peak \(.*\) (predicted \1)' out
    check "adapters are trained over parameters of $bits bits, in the memory that was predicted"
done
"$make_plan" llama 2 1 1 cut- lora:2+4bit >out 2>err
refused 1 "the plan cuts 'linear2', which is stored in 4 bits, inside of numbers that share a scale" \
    "$mpiexec" -n 2 "$runtime" run cut-0.json --data text
check "blocks of numbers with one scale are not cut"

# a plan by its id: from topt-client beside the program, asked by one rank alone
mkdir bin && cp "$runtime" bin/topt-runtime
cat >bin/topt-client <<END
#!/bin/sh
echo "\$*" >>"$dir/asked"
[ "\$3" = p-0123456789abcdef ] && cat "$dir/plan2-0.json"
END
chmod +x bin/topt-client
"$mpiexec" -n 2 bin/topt-runtime run p-0123456789abcdef --data text --steps 2 >out 2>err &&
    [ "$(cat asked)" = "client get-plan p-0123456789abcdef -o -" ]
check "a plan by its id, asked for once"
refused 1 "did not give plan 'p-00" "$mpiexec" -n 2 bin/topt-runtime run p-0000000000000000 --data text
check "an id that the server does not know"

refused 1 'for 4 devices, but 1 process was' "$runtime" run plan4-0.json --data text
check "too few processes"
refused 1 'for 4 devices, but 2 processes were' "$mpiexec" -n 2 "$runtime" run plan4-0.json --data text
check "too few ranks: one line"
refused 1 nowhere "$mpiexec" -n 2 "$runtime" run plan2-0.json --data nowhere
check "no text"
head -c 5 text >short
refused 1 'has 5 bytes' "$runtime" run plan1-0.json --data short
check "too short a text"
refused 3 'the plan needs' "$runtime" run plan1-0.json --data text --memory 1KiB
check "too little memory"
refused 1 nowhere "$runtime" run nowhere.json --data text
check "no plan"
echo '{"format": "topt-model/1"}' >model
refused 1 'topt-model/1' "$runtime" run model --data text
check "not a plan"
refused 2 'data' "$runtime" run plan1-0.json
check "no --data"
refused 2 'steps' "$runtime" run plan1-0.json --data text --steps 0
check "no steps"
refused 1 'bf16' "$runtime" run plan1-0.json --data text --dtype bf16
check "numbers that the host does not have"
refused 1 'smaller' "$mpiexec" -n 2 "$runtime" run plan2-0.json --data text --lr 1e30
check "a loss that is not a number"
mkdir texts && cp text texts/b && cp text texts/a
"$runtime" run plan1-0.json --data texts --quiet >out 2>err && [ ! -s out ] && [ ! -s err ]
check "a directory of texts, quietly"

"$mpiexec" -n 4 "$runtime" profile -o hw.json --nodes 2 --max-product 32 --max-bytes 4KiB >out 2>err &&
    grep -q '"gpus_per_node": 2' hw.json && grep -q all_to_all hw.json
check "a profile of two nodes of two ranks"
refused 2 'nodes 3 does not fit the 4 ranks that were started' "$mpiexec" -n 4 "$runtime" profile -o hw.json --nodes 3
check "nodes that do not divide"
refused 2 '-o is missing' "$runtime" profile
check "a profile that goes nowhere"
finish
