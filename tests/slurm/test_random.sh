#!/bin/bash
# test_random.sh - COUNT random submissions on a cluster of two GPU kinds, three partitions with limits and four users, against
# a model of what is right (random_jobs.py).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/planner.sh"
need_slurm
need_planner
count=${1:-30} seed=${2:-19}

planner_waits=1 # until there is a cluster to ask about
nodes='n1 CPUs=16 RealMemory=4000 Gres=gpu:a100:4
n2 CPUs=16 RealMemory=4000 Gres=gpu:a100:4
n3 CPUs=8 RealMemory=2000 Gres=gpu:v100:4
n4 CPUs=8 RealMemory=2000 Gres=gpu:v100:2
PartitionName=ampere Nodes=n[1-2] Default=YES MaxTime=60 State=UP
PartitionName=volta Nodes=n[3-4] MaxTime=INFINITE State=UP
PartitionName=mixed Nodes=ALL MaxTime=INFINITE MaxNodes=1 State=UP'
start_all --plugin-args timeout_ms=30000
cat >map <<M
mixed a100 lab-cpu
mixed v100 v100-pcie-1x8
volta * v100-pcie-1x8
ampere * lab-cpu
M
start_toptd --site-map "$work/map"
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
chmod 644 model.json
su nobody -s /bin/bash -c "test -r '$work/c/spank_topt.so'" || skip_all "others can't read the plugin"
python3 "$source_dir/tests/slurm/random_jobs.py" "$count" "$seed" "$TOPT" "$work/model.json"
