#!/bin/bash
# test_nodes.sh - jobs that have their nodes for themselves: --exclusive, OverSubscribe=EXCLUSIVE and the site's table.
# Whole nodes are planned, and a plan of fewer GPUs than such a job has is kept.
. "$(dirname "$0")/planner.sh"

planner_waits=1 # until there is a cluster to ask about
nodes='n1 CPUs=16 RealMemory=4000 Gres=gpu:a100:4
n2 CPUs=16 RealMemory=4000 Gres=gpu:a100:4
PartitionName=main Nodes=ALL Default=YES State=UP
PartitionName=whole Nodes=ALL OverSubscribe=EXCLUSIVE State=UP
PartitionName=named Nodes=ALL State=UP'
start_all
printf 'named * lab-cpu whole\n* * lab-cpu\n' >map
start_toptd --site-map "$work/map"
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
topt="--topt-model=model.json --topt-batch=8 --topt-seq=64 --topt-precision=f32 --topt-on-error=abort --topt-tasks=gpu"
few="--topt-mode=mini-parallelism $topt"

# What a job does with its plan: what its environment says, what srun and topt make of it.
cat >job.sh <<JOB
#!/bin/bash
echo "plan \$TOPT_GPUS \$TOPT_TORCHRUN"
echo "stale \$TOPT_STALE"
srun bash -c 'echo "task \$SLURM_PROCID of \$SLURM_NTASKS, \$SLURM_GPUS_ON_NODE GPUs, \$TOPT_GPUS"'
[ -z "\$TOPT_TORCHRUN" ] || { "$TOPT" launch --env && "$TOPT" launch --for torchrun -o files >/dev/null && echo launched; }
[ "\$TOPT_GPUS" != 1 ] || srun "$TOPT" run "\$TOPT_PLAN" --data synthetic --steps 1
JOB
chmod 755 job.sh

gets() # SHAPE PART TEXT OPTIONS...
{
    local want=$1 part=$2 text=$3
    shift 3
    # shellcheck disable=SC2068
    job=$(sbatch --parsable --hold $@ -o out job.sh 2>err)
    is "$(shape "$job")" "$want" "$text: $(head -1 err)"
    like "$(cat err)" "$part" "$text: it says so"
}

runs() # GPUS TASKS TEXT
{
    rm -f out files/*
    scontrol release "$job"
    wait_job "$job"
    is "$(grep -c "^plan $1 " out)/$(grep '^stale' out)/$(grep -c "^task .* of $2, " out)" "1/stale /$2" "$3: the plan is the job's, and srun starts its ranks"
    [ "$1" = 1 ] || is "$(grep -c "TOPT_PLAN_ID=p-.* TOPT_GPUS=$1 " out)/$(grep -c '^launched$' out)" "1/1" "$3: topt launch has it"
}

# --- whole nodes are planned
for how in "--exclusive=" "-p whole=partition 'whole' (OverSubscribe=EXCLUSIVE)" "-p named=the site's table, of partition 'named'"; do
    by=${how#*=}
    gets 1/4/gres:gpu:a100:4 "topt: ${by:---exclusive} gives whole nodes: planned in multiples of 4 GPUs" "the fewest with '${how%%=*}'" \
        "$few ${how%%=*} --gpus-per-node=a100:4"
    scancel "$job"
done
gets 1/4/gres:gpu:4 "topt: --exclusive gives whole nodes: planned in multiples of 4 GPUs" "the fewest where no GPUs are named" $few --exclusive
like "$(cat err)" "fits on 1 node, 1.00 GiB per GPU" "and why"
runs 4 4 "a whole node"
gets 2/8/gres:gpu:4 "8 GPUs (2 nodes x 4 GPUs)" "a number of whole nodes" --topt-gpus=8 $topt -p whole
is "$(grep -c 'whole nodes' err)" 0 "of which nothing is to be said"
scancel "$job"

# --- a number that is none is obeyed, and the job keeps its plan though Slurm gives it all GPUs of its nodes
gets 1/1/gres:gpu:1 "topt: --exclusive gives whole nodes of 4 GPUs: what the plan leaves of them is idle" "one GPU of a whole node" \
    --topt-gpus=1 $topt --exclusive --topt-framework=topt
runs 1 1 "one GPU of a whole node"
is "$(field "$job" TRES | grep -o 'cpu=[0-9]*')" cpu=16 "which the job has whole"
like "$(cat out)" "topt: the job has 1 node of 4 GPUs, and plan p-" "what is idle is said"
like "$(cat out)" "uses 1 of 4 GPUs: the others are idle" "in numbers"
is "$(grep '^task' out)" "task 0 of 1, 1 GPUs, 1" "a step has the plan's GPUs"
is "$(grep -c '^1 step on 1 rank' out)" 1 "topt run trains on one: $(tail -1 out)"
gets 1/2/gres:gpu:2 "what the plan leaves of them is idle" "a bound below a node" $few --topt-gpus=2 --topt-mode=mini-time -p whole
runs 2 2 "two GPUs of a whole node"
gets 1/1/gres:gpu:1 "what the plan leaves of them is idle" "the fewest within --gpus=2" $few -p whole --gpus=2
scancel "$job"

# --- salloc, whose shell has its nodes; a job that shares its nodes; one that was given more while it waited
salloc --topt-gpus=2 $topt --exclusive ./job.sh >out 2>err
is "$(grep -c '^plan 2' out)/$(grep -c '^task .* of 2, ' out)/$(grep -c '^launched$' out)" "1/2/1" "salloc --exclusive: $(tail -1 out)"
gets 1/1/gres:gpu:1 "fits on one GPU" "nodes that are shared" $few
is "$(grep -c 'whole nodes' err)" 0 "and nothing is said of them"
scancel "$job"
gets 1/2/gres:gpu:2 "2 GPUs" "a job that is given another node" --topt-gpus=2 $topt
scontrol update "JobId=$job" NumNodes=2-2
runs 2 2 "two nodes where the plan needs one"
like "$(cat out)" "the job has 2 nodes of 2 GPUs, and plan p-" "what is idle is said"

# --- where the plugin isn't installed
: >c/plugstack.conf
TOPT_URL=$url "$TOPT" sbatch --parsable --hold $few --exclusive -o out job.sh >said 2>err
job=$(tail -1 said)
is "$(shape "$job")" 1/4/gres:gpu:4 "topt sbatch --exclusive: $(head -1 err)"
like "$(cat err)" "--exclusive gives whole nodes: planned in multiples of 4 GPUs" "says so"
TOPT_URL=$url "$TOPT" sbatch --parsable --hold --topt-gpus=2 $topt --exclusive -o out job.sh >said 2>err
job=$(tail -1 said)
rm -f out files/*
scontrol release "$job"
wait_job "$job"
is "$(grep -c '^plan 2' out)/$(grep -c '^launched$' out)" "1/1" "one of fewer GPUs is kept without the plugin, too: $(tail -1 out)"
finish
