#!/bin/bash
# test_four.sh - nodes of four GPUs as Perlmutter (4 A100 40 GB, 64 cores of two threads), Leonardo (4 A100 of 64 GB, 32 cores),
# JUWELS Booster (4 A100 40 GB, 48 cores of two threads) and JUPITER (4 GH200, 288 cores) have: profiles of nodes with eight are
# made smaller, several nodes are planned, and -c bounds GPUs of a node.
. "$(dirname "$0")/planner.sh"

planner_waits=1 # until there is a cluster to ask about
nodes='n1 CPUs=128 RealMemory=256000 Gres=gpu:a100:4 Feature=gpu,hbm40g
n2 CPUs=128 RealMemory=256000 Gres=gpu:a100:4 Feature=gpu,hbm40g
n3 CPUs=32 RealMemory=494000 Gres=gpu:a100:4
n4 CPUs=32 RealMemory=494000 Gres=gpu:a100:4
n5 CPUs=96 RealMemory=504000 Gres=gpu:a100:4
n6 CPUs=288 RealMemory=860000 Gres=gpu:gh200:4
PartitionName=perlmutter Nodes=n[1-2] Default=YES OverSubscribe=EXCLUSIVE State=UP
PartitionName=leonardo Nodes=n[3-4] MaxTime=24:00:00 State=UP
PartitionName=booster Nodes=n[1-2,5] OverSubscribe=EXCLUSIVE State=UP
PartitionName=jupiter Nodes=n6 State=UP
SelectTypeParameters=CR_Core_Memory'
start_all
cat >map <<M
perlmutter  *     a100-40-dgx
leonardo    *     a100-64-leonardo
booster     *     a100-40-dgx
jupiter     *     h100-80-dgx
M
cat >leonardo.json <<P
{"format": "topt-hw/1", "name": "a100-64-leonardo", "like": "a100-80-dgx", "nodes": 512, "gpus_per_node": 4,
 "device": {"memory_bytes": 68719476736}}
P
start_toptd --site-map "$work/map"
curl -s --unix-socket "$work/toptd.sock" --data-binary @leonardo.json -H 'Content-Type: application/json' http://localhost/v1/hardware >/dev/null
topt="--topt-model=$source_dir/deploy/quickstart/llama-3.1-8b.json --topt-batch=64 --topt-seq=4096 --topt-on-error=abort --topt-tasks=gpu"
short=${topt/seq=4096/seq=1024} # four GPUs of 40 GB hold it
few="--topt-mode=mini-parallelism $topt"

gets 2/8/gres:gpu:4 "fewest GPUs that fit in 38.00 GiB each" "Perlmutter, the fewest" $few -C gpu
gets 2/8/gres:gpu:4 "8 GPUs (2 nodes x 4 GPUs)" "a number over two nodes" --topt-gpus=8 $topt -C gpu
gets 2/8/gres:gpu:4 "8 GPUs (2 nodes x 4 GPUs)" "a task for each GPU, of 32 threads" --topt-gpus=8 $topt -C gpu -N 2 --ntasks-per-node=4 -c 32 --gpus-per-task=1
refused "12 GPUs are more than partition 'perlmutter' with 2 nodes of 4 GPUs" "more than there are" --topt-gpus=12 $topt -C gpu
gets 2/4/gres:gpu:2 "4 GPUs (2 nodes x 2 GPUs)" "-c leaves two GPUs of each node" --topt-gpus=4 $short -C gpu -c 64
refused "8 GPUs are more than partition 'perlmutter' with 2 nodes of 2 GPUs, by -c 64 allows" "-c and too many GPUs" --topt-gpus=8 $topt -C gpu -c 64
gets 2/4/gres:gpu:2 "4 GPUs (2 nodes x 2 GPUs)" "--cpus-per-gpu as well" --topt-gpus=4 $topt -p leonardo --cpus-per-gpu=16
refused "--cpus-per-gpu=64 for each GPU of a whole node is more than the 128 CPUs of a node in partition 'perlmutter'" "which of a whole node counts for all" \
    --topt-gpus=4 $short -C gpu --cpus-per-gpu=64
refused "--mem-per-gpu=70G for each GPU of a whole node is more than the 256000 MiB of a node" "as memory does" --topt-gpus=4 $short -C gpu --mem-per-gpu=70G
gets 2/4/gres:gpu:2 "4 GPUs (2 nodes x 2 GPUs)" "spread by --gpus-per-node" --topt-gpus=4 $short -C gpu -N 2 --gpus-per-node=2
gets 1/4/gres:gpu:4 "4 GPUs (1 node x 4 GPUs)" "-N alone is a bound" --topt-gpus=4 $short -C gpu -N 2
gets 2/8/gres:gpu:4 "planned in multiples of 4 GPUs" "whole nodes" $few -C gpu -N 2
gets 1/4/gres:gpu:4 "fewest GPUs that fit in 60.00 GiB each" "Leonardo, of 64 GB" $few -p leonardo --gres=gpu:4
gets 2/8/gres:gpu:4 "8 GPUs (2 nodes x 4 GPUs)" "eight cores for each GPU" --topt-gpus=8 $topt -p leonardo --gres=gpu:4 -N 2 --ntasks-per-node=4 --cpus-per-task=8
gets 2/4/gres:gpu:2 "4 GPUs (2 nodes x 2 GPUs)" "and sixteen" --topt-gpus=4 $topt -p leonardo --cpus-per-task=16
gets 3/12/gres:gpu:4 "12 GPUs (3 nodes x 4 GPUs)" "JUWELS Booster, 24 threads for each GPU" --topt-gpus=12 ${topt/batch=64/batch=96} -p booster --cpus-per-task=24 --gres=gpu:4
gets 1/4/gres:gpu:4 "4 GPUs (1 node x 4 GPUs)" "JUPITER" --topt-gpus=4 $topt -p jupiter --gres=gpu:4 -c 72
refused "8 GPUs are more than partition 'jupiter' with 1 node of 4 GPUs" "of which there is one node" --topt-gpus=8 $topt -p jupiter

# The same question of topt plan has the same answer.
sbatch --parsable --topt-gpus=8 $topt -C gpu --topt-dry-run --wrap env >jobs 2>err
"$TOPT" plan "$source_dir/deploy/quickstart/llama-3.1-8b.json" --batch 64 --seq 4096 --hw a100-40-dgx --gpus-per-node 4 --gpus 8 >told 2>&1
is "$(sed -n 's/.*; plan \(p-[0-9a-f]*\).*/\1/p' err)" "$(sed -n 's/^plan *\(p-[0-9a-f]*\).*/\1/p' told)" "topt plan --gpus-per-node has the same plan"
like "$(cat told)" "a100-40-dgx-x4" "of the smaller profile"
finish
