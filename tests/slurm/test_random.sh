#!/bin/bash
# test_random.sh - COUNT random submissions on a cluster of two GPU kinds, seven partitions with limits, a reservation and four
# users, against a model of what is right (random_jobs.py).
. "$(dirname "$0")/planner.sh"
count=${1:-30} seed=${2:-2}

planner_waits=1 # until there is a cluster to ask about
nodes='n1 CPUs=16 RealMemory=4000 Gres=gpu:a100:4
n2 CPUs=16 RealMemory=4000 Gres=gpu:a100:4
n3 CPUs=8 RealMemory=2000 Gres=gpu:v100:4
n4 CPUs=8 RealMemory=2000 Gres=gpu:v100:2
n5 CPUs=16 RealMemory=4000 Gres=gpu:a100:4
SelectTypeParameters=CR_Core_Memory
DefMemPerNode=100
PartitionName=ampere Nodes=n[1-2] Default=YES MaxTime=60 State=UP
PartitionName=volta Nodes=n[3-4] MaxTime=INFINITE State=UP
PartitionName=mixed Nodes=n[1-4] MaxTime=INFINITE MaxNodes=1 State=UP
PartitionName=narrow Nodes=n[1-2] MaxTime=INFINITE MaxCPUsPerNode=3 State=UP
PartitionName=lean Nodes=n1,n3 MaxTime=INFINITE DefMemPerGPU=900 MaxMemPerNode=3000 State=UP
PartitionName=club Nodes=n[3-4] MaxTime=INFINITE AllowGroups=daemon State=UP
PartitionName=held Nodes=n5 MaxTime=INFINITE State=UP'
start_all
scontrol create reservation reservationname=course nodes=n5 partitionname=held users=root,daemon,bin starttime=now duration=60 >/dev/null
cat >map <<M
mixed a100 lab-cpu
mixed v100 v100-pcie-1x8
volta * v100-pcie-1x8
ampere * lab-cpu
narrow * lab-cpu
lean a100 lab-cpu
lean v100 v100-pcie-1x8
club * v100-pcie-1x8
held * lab-cpu
M
start_toptd --site-map "$work/map"
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
chmod 644 model.json
su nobody -s /bin/bash -c "test -r '$work/c/spank_topt.so'" || skip_all "others can't read the plugin"
python3 "$source_dir/tests/slurm/random_jobs.py" "$count" "$seed" "$TOPT" "$work/model.json"
