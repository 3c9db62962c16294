#!/bin/bash
# test_groups.sh - a cluster with two kinds of nodes: a job that sbatch sizes has GPUs of one kind, and says what to type for both;
# and a plan on both runs as the heterogeneous job that topt client prints, each rank on the kind that the plan has for it.
# Nodes of the two kinds alternate, so that the order of Slurm's nodes is not that of the plan.  Slurm's backfill scheduler alone
# starts heterogeneous jobs, every 30 seconds where its interval is not set.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/planner.sh"
need_slurm
need_planner
nodes="SchedulerParameters=batch_sched_delay=0,bf_interval=1
n1 CPUs=16 RealMemory=4000 Gres=gpu:new:4 Feature=hopper
n2 CPUs=16 RealMemory=4000 Gres=gpu:old:4 Feature=ampere
n3 CPUs=16 RealMemory=4000 Gres=gpu:new:4 Feature=hopper
n4 CPUs=16 RealMemory=4000 Gres=gpu:old:4 Feature=ampere
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=old Nodes=n2,n4 MaxTime=INFINITE State=UP
PartitionName=new Nodes=n1,n3 MaxTime=INFINITE State=UP"
planner_waits=1
start_all
export TOPT_URL=$url
cat >hw.json <<'P'
{"format": "topt-hw/1", "name": "old-new", "between": {"bytes_per_second": 1.25e10, "latency_ns": 14000, "source": "assumed"},
 "groups": [{"name": "old", "like": "a100-80-dgx", "nodes": 2, "gpus_per_node": 4}, {"name": "new", "like": "h100-80-dgx", "nodes": 2, "gpus_per_node": 4}]}
P
cat >model.json <<'M'
{"model_type":"llama","hidden_size":1024,"num_hidden_layers":12,"num_attention_heads":8,"num_key_value_heads":8,
 "intermediate_size":4096,"vocab_size":32000,"hidden_act":"silu","tie_word_embeddings":false,"max_position_embeddings":2048}
M
start_toptd
"$TOPT" client add-hw hw.json >said 2>&1
is "$?" 0 "the administrator registers a profile of both: $(cat said)"
about="--batch 64 --seq 1024 --framework megatron"
topt="--topt-model=model.json --topt-batch=64 --topt-seq=1024 --topt-framework=megatron"

# --- sbatch: GPUs of one kind
gets "1/1/gres:gpu:1" "GPUs of group" "sbatch takes one kind" $topt
like "$(cat err)" "name their nodes by --partition or --constraint, or their type" "and says that nothing keeps the job on its nodes"
like "$(cat err)" "planned for the GPUs of group 'new'" "whose they are"
refused "no group of old-new has 16 devices in numbers that are booked: 8 of old, 8 of new; several together need --groups all, of topt plan, or of topt client plan, which prints the job of Slurm" \
    "more GPUs than one kind has" $topt --topt-gpus=16
refused "--topt-groups=all: a job that sbatch sizes has GPUs of one kind: ask \`topt client plan\` with the same options" "both kinds" \
    $topt --topt-groups=all
refused "there is no group 'newer' in old-new: it has old, new" "an unknown kind" $topt --topt-groups=newer
gets "1/1/gres:gpu:4" "4 GPUs (1 node x 4 GPUs" "a kind by its name" $topt --topt-groups=new --topt-gpus=4 -p new
refused "are more than partition 'new' with 2 nodes of 4 GPUs allows; GPUs of several groups are planned by topt client plan" \
    "more than the partition has" $topt --topt-gpus=16 -p new
printf '#!/bin/sh\nenv\n' >env.sh
sbatch -N1 $topt : -N1 env.sh >jobs 2>err
is "$?/$(grep -c Submitted jobs)" "1/0" "parts that topt should size are refused"
like "$(cat err)" "give none of them --topt-..., and book what \`topt client plan\` prints" "and what to type is said"

# --- topt client plan: both, and the heterogeneous job that it prints
"$TOPT" client plan model.json $about --gpus 16 --pipeline 2 >said 2>err
is "$?" 0 "topt client plan cuts the model over both: $(grep 'by one pipeline' said)"
id=$(sed -n 's/^plan *\(p-[0-9a-f]*\).*/\1/p' said)
parts=$(sed -n 's/^slurm *//p' said)
is "$parts" "--nodes=2 --gpus-per-node=4 --ntasks-per-node=1 : --nodes=2 --gpus-per-node=4 --ntasks-per-node=1" "it prints the options of sbatch"
first=$(sed -n 's/.*parts of a heterogeneous job, \([a-z]*\) and.*/\1/p' said) second=new
[ "$first" = old ] || second=old
"$TOPT" client get-plan "$id" -o plan.json && "$TOPT" launch plan.json >launch.sh 2>err
like "$?$(cat launch.sh)" "--pipeline-model-parallel-layout" "topt launch writes its command"
mkdir bin
cat >bin/torchrun <<'S'
#!/bin/sh
for word; do case $word in --node-rank=* | --nnodes=* | --nproc-per-node=* | --master-addr=*) printf '%s ' "$word" ;; esac; done
echo "on $SLURMD_NODENAME"
S
chmod 755 bin bin/torchrun
cat >job.sh <<'S'
#!/bin/sh
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST_HET_GROUP_0" | head -n 1)
srun --het-group=0,1 sh -c 'NODE_RANK=$SLURM_NODEID exec sh launch.sh'
S
# ranks KIND: the nodes of that kind, as the plan's ranks come to them
ranks()
{
    case $1 in old) echo "n2 n4" ;; new) echo "n1 n3" ;; esac
}
runs() # TEXT PARTS...: they start the plan's ranks on the nodes of their kind
{
    local text=$1 job
    shift
    job=$(PATH=$work/bin:$PATH sbatch --parsable -o out "$@" job.sh 2>err)
    wait_job "${job%%;*}"
    sed -n 's/.*--node-rank=\([0-9]*\).* on \(.*\)/\1 \2/p' out | sort -n | cut -d' ' -f2 | tr '\n' ' ' >order
    is "$(cat order)" "$(ranks "$first") $(ranks "$second") " "$text: ranks are in the order of the stages"
    is "$(grep -c -e '--nnodes=4 --nproc-per-node=4' out)" 4 "$text: on four nodes of four: $(head -1 out)"
    is "$(grep -o 'master-addr=[^ ]*' out | sort -u)" "master-addr=$(ranks "$first" | cut -d' ' -f1)" "$text: they meet at the first"
}
runs "by partitions" -p "$first" ${parts%% : *} : -p "$second" ${parts##* : }
feature() { case $1 in old) echo ampere ;; new) echo hopper ;; esac; }
runs "by features" -C "$(feature "$first")" ${parts%% : *} : -C "$(feature "$second")" ${parts##* : }

# --- why not one job with so many nodes of each feature: its ranks are in the order of its nodes
printf '#!/bin/sh\nsrun sh -c '\''echo $SLURM_NODEID $SLURMD_NODENAME'\''\n' >mixed.sh
job=$(sbatch --parsable -o out -N4 --gpus-per-node=4 --ntasks-per-node=1 --constraint="[ampere*2&hopper*2]" mixed.sh 2>err)
wait_job "$job"
is "$(sort -n out | cut -d' ' -f2 | tr '\n' ' ')" "n1 n2 n3 n4 " "a job of so many nodes of each feature has them in Slurm's order"
is "$(settled_nodes | grep -c drain)" 0 "no node was drained"
finish
