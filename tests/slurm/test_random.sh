#!/bin/bash
# test_random.sh - COUNT random submissions on a cluster of two GPU kinds, seven partitions with limits, a reservation and four
# users, against a model of what is right (random_jobs.py).
. "$(dirname "$0")/lib.sh"
need_slurm
[ -x "${TOPTD:-}" ] && [ -x "${TOPT:-}" ] || skip_all "toptd is not built"
count=${1:-30} seed=${2:-19}

start_planner()
{
    planner=
    url=unix:$work/toptd.sock
    cat >"$work/nodes" <<N
n1 CPUs=16 RealMemory=4000 Gres=gpu:a100:4
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
PartitionName=lean Nodes=n1,n3 MaxTime=INFINITE DefMemPerGPU=1200 MaxMemPerNode=3000 State=UP
PartitionName=club Nodes=n[3-4] MaxTime=INFINITE AllowGroups=daemon State=UP
PartitionName=held Nodes=n5 MaxTime=INFINITE State=UP
N
    cat >"$work/map" <<M
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
}

stop_planner()
{
    [ -z "$planner" ] || { kill "$planner" && wait "$planner"; }
    planner=
}

real=$cluster
cluster=of_two_kinds
of_two_kinds() { if [ "$1" = start ]; then "$real" "$@" --nodes "$work/nodes"; else "$real" "$@"; fi; }
start_all --plugin-args timeout_ms=30000
scontrol create reservation reservationname=course nodes=n5 partitionname=held users=root,daemon,bin starttime=now duration=60 >/dev/null
"$TOPTD" --socket "$work/toptd.sock" --state "$work/state" --site-map "$work/map" >"$work/log" 2>&1 7>&- &
planner=$!
left=200
while ! curl -s --unix-socket "$work/toptd.sock" http://localhost/readyz >/dev/null && [ $left -gt 0 ]; do
    left=$((left - 1))
    sleep 0.05
done
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
chmod 644 model.json
su nobody -s /bin/bash -c "test -r '$work/c/spank_topt.so'" || skip_all "others can't read the plugin"
python3 "$source_dir/tests/slurm/random_jobs.py" "$count" "$seed" "$TOPT" "$work/model.json"
