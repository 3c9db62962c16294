#!/bin/sh
# run_topology.sh - profiles, links and the binding of ranks follow from what hwloc sees of a node.
# usage: run_topology.sh TOPT TOPOLOGIES.PY
topt=$1 make=$2
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

for kind in pairs switches apart cpu; do
    python3 "$make" $kind >$kind.xml || exit 1
done
see() { # see KIND ARGUMENTS...
    kind=$1
    shift
    "$topt" profile --topology "$kind.xml" "$@" >out 2>err
}
see pairs && head -1 out | grep -q '^2 packages, 4 cores (8 threads), L3 16.00 MiB, 4 GPUs joined by NVLink, 2 network adapters: a processor$'
check "packages, cores, caches, GPUs but no display adapters: $(head -1 out)"
grep -q 'rank 0 .*nvml0 .*0000:11:00.0 *processors 0-1, nearest adapter mlx5_0' out &&
    grep -q 'rank 3 .*nvml3 .*0000:22:00.0 *processors 6-7, nearest adapter mlx5_1' out
check "each rank beside its GPU, on cores of its own"
grep -q -- '--ntasks-per-node=4 --cpu-bind=mask_cpu:0x3,0xc,0x30,0xc0$' out
check "... in Slurm's words"
rate() { sed -n '/"level": "'"$1"'"/,/}/s/.*"bytes_per_second": \([0-9]*\).*/\1/p' "$2"; }
see pairs -o pairs.json --like a100-40-dgx --nodes 4 --name mine && [ "$(rate node pairs.json)" = 75000000000 ] &&
    [ "$(rate cluster pairs.json)" = 50000000000 ] && grep -q '"gpus_per_node": 4' pairs.json && grep -q '"nodes": 4' pairs.json
check "three NVLinks of 25 GB/s; two adapters of 25 GB/s"
see switches -o switches.json --like a100-40-dgx && head -1 out | grep -q 'joined by NVLink' && [ "$(rate node switches.json)" = 100000000000 ]
check "two links to switches, which join all"
see apart -o apart.json --like a100-40-dgx && ! head -1 out | grep -q NVLink && [ "$(rate node apart.json)" = 31500000000 ]
check "links that do not join all: the slots are what counts"
"$topt" hw check pairs.json >out 2>err && "$topt" hw show apart.json >out 2>err
check "they are profiles"
see cpu --per-node 2 && grep -q 'mask_cpu:0xf,0xf0$' out && see cpu && grep -q 'mask_cpu:0x3,0xc,0x30,0xc0$' out
check "ranks without GPUs: spread over the packages; one for each core"
refused 1 'has no GPUs' "$topt" profile --topology cpu.xml -o new.json --like a100-40-dgx
check "no profile of GPUs without GPUs"
refused 2 'like is missing' "$topt" profile --topology pairs.xml -o new.json
check "what hwloc can't see has to come from somewhere"
echo '<topology version="3.0">' >bad.xml
refused 1 "hwloc can't read" "$topt" profile --topology bad.xml
check "what is no topology"
# hwloc's module of the PCI bus never frees what libpciaccess took.
HWLOC_COMPONENTS=-pci "$topt" profile --topology this >out 2>err && grep -q 'cores\{0,1\}' out && grep -q 'mask_cpu:0x' out
check "this machine: $(head -1 out)"
finish
