#!/bin/sh
# gpu_sh.sh - deploy/gpu.sh where there is no GPU: what it says, and with 'all' every part of it on the emulated one.
# usage: gpu_sh.sh GPU.SH BUILD [all]
script=$1 build=$2 all=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

status() # STATUS ARGUMENTS...: gpu.sh ends with it
{
    want=$1
    shift
    bash "$script" --emulated "$build" --out "$dir/results" "$@" >out 2>err
    [ $? -eq "$want" ]
}
rows() # PATTERN: how many parts the summary has that became that
{
    grep -c "$1" results/summary.txt
}

TOPT_FAKE_GPUS=-1 status 77 && grep -q '^nothing was tested: skipped: no GPU: no NVIDIA driver here' out
check "no driver: $(tail -1 out)"
TOPT_FAKE_GPUS=0 status 77 && [ "$(rows 'skipped: no GPU: no GPU here')" = 8 ]
check "no GPU: each part says so"
SECONDS=3595 status 3 && [ "$(rows 'NOT RUN: [0-5] s were left')" -ge 8 ] && ! [ -e results/rates.json ]
check "no time left: each part says so"
status 2 --minutes soon && grep -q 'a number' err
check "a budget that is none"
status 2 --arch 80
check "the emulated module is not built"
[ -n "$all" ] || finish

status 0 --minutes 30 && [ "$(rows ' ok: ')" -ge 11 ] && [ "$(rows EMULATED)" = 1 ] && [ -s results/rates.json ] &&
    grep -q '"all_reduce"' results/profile.json
check "all of it on the emulated GPU: $(tail -1 out)"
finish
