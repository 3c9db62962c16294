#!/bin/bash
# typed.sh - what people type as README, TUTORIAL, SLURM, LAUNCH and TORCH have it, in a private Slurm of two nodes with toptd and
# the plugin, where torchrun, accelerate, deepspeed and the like are stand-ins that write down how they were started.
# shellcheck source=tests/slurm/planner.sh disable=SC2154 # lib.sh gives these
. "$(dirname "$0")/../slurm/planner.sh"

# shellcheck disable=SC2034 # planner.sh and lib.sh read them
planner_waits=1 nodes='n1 CPUs=16 RealMemory=4000 Gres=gpu:a100:4
n2 CPUs=16 RealMemory=4000 Gres=gpu:a100:4
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes=ALL MaxTime=INFINITE State=UP
PartitionName=a100 Nodes=n1 MaxTime=INFINITE State=UP
PartitionName=v100 Nodes=n2 MaxTime=INFINITE State=UP
SchedulerParameters=batch_sched_delay=0,bf_interval=1'
start_all
start_toptd --hw a100-80-dgx --hw lab-cpu
TOPT_URL=$url python3 "$source_dir/tests/launch/typed.py" "$source_dir" "$(dirname "$TOPT")"
