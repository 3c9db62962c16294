#!/bin/bash
# pretended_slurm.sh - scontrol of a cluster of two nodes of four GPUs, as far as `topt queue` asks it: job 1 runs, and job 2 of ann,
# which agreed to other numbers, job 3 of root and job 4 of nobody wait.  With SLURM_IS_DOWN a controller that nobody reaches.
if [[ -n ${SLURM_IS_DOWN:-} ]]; then
    echo "Slurm is down" >&2
    exit 1
fi
job() { # ID USER(UID) STATE MINUTES NODES GPUS-OF-EACH [MORE]
    echo "JobId=$1 JobName=train UserId=$2 Priority=$((10 - $1)) JobState=$3 Reason=Resources BatchFlag=1 TimeLimit=$(($4 / 60)):$(($4 % 60)):00" \
        "SubmitTime=2026-11-23T06:07:01 Partition=gpu NumNodes=$5-$5 NumCPUs=$(($5 * $6)) NumTasks=$(($5 * $6)) CPUs/Task=1" \
        "NtasksPerN:B:S:C=$6:0:*:* MinCPUsNode=$6 TresPerNode=gres:gpu:$6 ${*:7}"
}
case "$*" in
*"show job"*)
    job 1 "ann(1001)" RUNNING 90 1 4 "StartTime=$(date -d '-20 min' +%FT%T) EndTime=$(date -d '+70 min' +%FT%T) NodeList=n1"
    job 2 "ann(1001)" PENDING 60 2 4 "Comment=topt-elastic=1x2:40000000,1x4:21000000,2x4:20000000*"
    job 3 "root(0)" PENDING 180 2 4
    job 4 "nobody(65534)" PENDING 45 1 2
    ;;
*"show node"*)
    for n in 1 2; do
        echo "NodeName=n$n CPUEfctv=16 Gres=gpu:4(S:0) GresUsed=gpu:$((n == 1 ? 4 : 0))(IDX:0) CPUAlloc=0 AllocMem=0 RealMemory=64000 State=MIXED Partitions=gpu"
    done
    ;;
*"show partition"*) echo "PartitionName=gpu Default=YES MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP" ;;
*) ;;
esac
