#!/usr/bin/env bash
# cluster.sh TOPT ROOT - `topt cluster simulate` from a curve of `topt plan` to a table, a document and a drawing.
set -u
topt=$1 root=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
"$topt" plan "$root/deploy/quickstart/llama-3.1-8b.json" --hw a100-80-dgx --batch 64 --seq 4096 --gpus 1,2,4,8,16 --json >curve.json 2>err
check "a curve"
printf 'submit_s,gpus,run_s\n0,1,40000\n600,8,7000\n700,8,9000\n800,2,20000\n' >trace.csv
"$topt" cluster simulate trace.csv curve.json --nodes 2 --svg drawing.svg >out 2>err && grep -q '^moldable ' out && grep -q '^rubick ' out
check "a table of all policies"
grep -q '</svg>' drawing.svg
check "and a drawing"
"$topt" cluster simulate trace.csv curve.json --nodes 2 --policy asked,moldable --json >doc.json 2>err &&
    [ "$(grep -c '"policy"' doc.json)" = 2 ] && grep -q '"topt-cluster/1"' doc.json
check "a document of two"
"$topt" cluster simulate trace.csv curve.json --load 0.8 --jobs 50 --policy asked --json >a 2>err &&
    "$topt" cluster simulate trace.csv curve.json --load 0.8 --jobs 50 --policy asked --json >b 2>err && cmp -s a b
check "drawn jobs are the same again"
"$topt" plan "$root/deploy/quickstart/llama-3.1-8b.json" --hw h100-80-dgx --batch 64 --seq 4096 --gpus 4,8 --json >new.json 2>err &&
    "$topt" cluster simulate trace.csv curve.json new.json --kind a100-80-dgx=2x8,h100-80-dgx=1x8 --any-kind --failures 40 --error 0.2 >a 2>err &&
    "$topt" cluster simulate trace.csv curve.json new.json --kind a100-80-dgx=2x8,h100-80-dgx=1x8 --any-kind --failures 40 --error 0.2 >b 2>err &&
    cmp -s a b && grep -q "a100-80-dgx: 2 nodes of 8 GPUs and h100-80-dgx: 1 nodes" a
check "two kinds of nodes that fail, the same again"
printf 'curve,kind,gpus,run_s,restart_s\nbert,t4,4,5000,100\nbert,t4,8,2600,100\n' >curves.csv
printf 'name,time,application,num_replicas,batch_size\nbert-0,10,bert,6,32\n' >work.csv
"$topt" cluster simulate work.csv curves.csv --kind t4=2x4 --policy asked >out 2>err && grep -q "^asked  *0.75 " out
check "a workload whose curves are a table"
refuses() # WORDS PATTERN
{
    # shellcheck disable=SC2086
    "$topt" cluster $1 >out 2>err
    [ $? -ne 0 ] && [ "$(wc -l <err)" = 1 ] && grep -q -- "$2" err
    check "topt cluster $1: refused: $(cat err)"
}
refuses "" "which trace"
refuses "simulate trace.csv" "which curves"
refuses "simulate trace.csv trace.csv" "trace.csv"
refuses "simulate none.csv curve.json" "none.csv"
refuses "simulate trace.csv curve.json --policy best" "no policy 'best'"
refuses "simulate trace.csv curve.json --least-overhead 0.5" "least-overhead"
refuses "simulate trace.csv curve.json --kind a100-80-dgx=2" "NODESxGPUS"
refuses "simulate trace.csv curve.json --kind h100-80-dgx=2x8" "no --kind names"
finish
