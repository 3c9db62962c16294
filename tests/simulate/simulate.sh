#!/bin/sh
# simulate.sh ROOT TOPT - topt simulate: what it says of a plan, what it writes, what it refuses.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
model=$root/deploy/quickstart/mlp.json

"$topt" plan "$model" --hw lab-cpu --framework topt --mode mini-time --gpus 4 --json -o plan.json >out 2>err
check "a plan"
"$topt" simulate plan.json --trace trace.json --svg step.svg >out 2>err &&
    grep -q "a step takes" out && grep -q "predicted .*+0.0 %" out
check "a step of it takes what is predicted"
grep -q '"traceEvents"' trace.json && grep -q '"ph":"X"' trace.json && head -c 4 step.svg | grep -q '<svg'
check "a trace and a picture are written"
"$topt" simulate plan.json --json >out 2>err && grep -q 'topt-simulation/1' out && grep -q '"predicted_ns"' out
check "figures as JSON"
"$topt" simulate plan.json --overlap fsdp --bucket 1MiB --json >out 2>err && ! grep -q predicted_ns out &&
    grep -q '"bucket_bytes": *1048576' out
check "of another overlap than the plan's nothing was predicted"
refused 2 "which plan?" "$topt" simulate
check "a plan is needed"
refused 1 "nosuch.json" "$topt" simulate nosuch.json
check "one that can be read: $(cat err)"
refused 1 "plan: " "$topt" simulate "$model"
check "and is a plan: $(cat err)"
refused 2 "unknown overlap 'dpd'; did you mean ddp?" "$topt" simulate plan.json --overlap dpd
check "a wrong overlap: $(cat err)"
refused 1 "nowhere/t.json" "$topt" simulate plan.json --trace nowhere/t.json
check "a trace that can't be written is an error"
finish
