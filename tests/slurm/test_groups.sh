#!/bin/bash
# test_groups.sh - a cluster with two kinds of nodes: a job that sbatch sizes has GPUs of one kind, and says what to type for both;
# and a plan on both runs as the heterogeneous job that topt launch writes, each rank on the kind that the plan has for it.
# Nodes of the two kinds alternate, so that the order of Slurm's nodes is not that of the plan.  Slurm's backfill scheduler alone
# starts heterogeneous jobs, every 30 seconds where its interval is not set.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/planner.sh"
need_slurm
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
"$TOPT" client get-plan "$id" -o plan.json && "$TOPT" launch plan.json --sbatch >job.sh 2>err
like "$?$(cat job.sh)" "--pipeline-model-parallel-layout" "topt launch writes its job"
curl -s --unix-socket toptd.sock "http://localhost/v1/plans/$id/launch" >of-toptd.sh
is "$(cmp job.sh of-toptd.sh 2>&1)" "" "and toptd gives the same script"
# Stand-ins for launchers, which say where each of their ranks is.
mkdir bin
cat >bin/torchrun <<'S'
#!/bin/bash
for word; do case $word in --nnodes=* | --nproc-per-node=* | --node-rank=* | --master-addr=*) declare "$(tr - _ <<<"${word#--}")" ;; esac; done
for ((i = 0; i < nproc_per_node; i++)); do
    echo "$node_rank $i $SLURMD_NODENAME of $nnodes from $master_addr with $(wc -w <<<"${CUDA_VISIBLE_DEVICES//,/ }") GPUs for ${*: -2}"
done
S
cat >bin/deepspeed <<'S'
#!/bin/bash
while [ "$1" != train.py ]; do declare "${1#--}=$2"; [ "$1" = --no_ssh ] || shift; shift; done
slots=$(sed -n "$((node_rank + 1))s/.*slots=//p" "$hostfile")
exec torchrun --nnodes="$num_nodes" --nproc-per-node="$slots" --node-rank="$node_rank" --master-addr="$master_addr" "$@"
S
chmod 755 bin bin/*
# ranks KIND: the node of each of the plan's ranks on that kind, as the nodes of the kind come in Slurm's order
ranks()
{
    local node
    for node in $(case $1 in old) echo n2 n4 ;; new) echo n1 n3 ;; esac | head -c "${3:-99}"); do
        printf "$node %.0s" $(seq "$2")
    done
}
in_order() # TEXT WANTED: the ranks of 'out' are on these nodes, and meet at the first
{
    is "$(grep ' from ' out | sort -n -k1,1 -k2,2 | cut -d' ' -f3 | tr '\n' ' ')" "$2" "$1: ranks are in the order of the stages"
    is "$(sed -n 's/.* from \([^ ]*\) .*/\1/p' out | sort -u)" "${2%% *}" "$1: they meet at the first"
}
runs() # TEXT WANTED [options of sbatch]...: a job of job.sh
{
    local text=$1 want=$2 job
    shift 2
    rm -f out
    job=$(PATH=$work/bin:$PATH sbatch --parsable -o out "$@" job.sh --lr 3e-4 2>err)
    wait_job "${job%%;*}"
    in_order "$text" "$want"
    is "$(grep -c ' for --lr 3e-4$' out)" "$(wc -w <<<"$want")" "$text: with the arguments of the script $(cat err)"
}
feature() { case $1 in old) echo ampere ;; new) echo hopper ;; esac; }
both="$(ranks "$first" 4)$(ranks "$second" 4)"
runs "as it is, where partitions are called as the groups" "$both"
is "$(grep -c ' of 4 from .* with 4 GPUs' out)" 16 "four nodes of four: $(head -1 out)"
job=$(sbatch --parsable --hold -t 20 job.sh)
is "$(squeue -h -j "$job" -o %l | xargs)" "20:00 20:00" "an option without a colon is of all components"
scancel "$job"
sed -i 's/^#SBATCH --partition=.*/#SBATCH --partition=elsewhere/' job.sh
is "$(sbatch --parsable job.sh 2>err)/$(head -1 err)" "/sbatch: error: invalid partition specified: elsewhere" "else sbatch asks where they are"
runs "by partitions" "$both" -p "$first" : -p "$second"
runs "by features" "$both" -p all -C "$(feature "$first")" : -p all -C "$(feature "$second")"
runs "by types of GPUs" "$both" -p all --gpus-per-node="$first:4" : -p all --gpus-per-node="$second:4"
runs "with CPUs for each task, and NODE_RANK of somebody's shell" "$both" -p "$first" -c 2 --export=ALL,NODE_RANK=7 : -p "$second" -c 2
PATH=$work/bin:$PATH salloc -p "$first" -N2 --gpus-per-node=4 --ntasks-per-node=4 : -p "$second" -N2 --gpus-per-node=4 --ntasks-per-node=2 \
    bash job.sh --lr 3e-4 >out 2>err
in_order "in a job of two components that has other tasks" "$both"
sbatch --parsable -o out -N2 --wrap "bash job.sh" >jobs 2>err
wait_job "$(cat jobs)"
like "$(cat out)" "this is no heterogeneous job of 2 components" "in a job of one component nothing is started"

# --- nodes of different sizes, and DeepSpeed
sed 's/"name": "old-new"/"name": "small-large"/; s/"nodes": 2, "gpus_per_node": 4}, {"name": "new"/"nodes": 2, "gpus_per_node": 2}, {"name": "new"/;
    s/"nodes": 2, "gpus_per_node": 4}\]/"nodes": 1, "gpus_per_node": 4}]/' hw.json >uneven.json
for framework in megatron deepspeed; do
    "$TOPT" plan model.json --quiet --hw uneven.json --batch 64 --seq 1024 --framework "$framework" --gpus 8 --pipeline 2 -o uneven.plan >said 2>err
    "$TOPT" launch uneven.plan --sbatch >job.sh 2>>err
    want="$(ranks old 2)$(ranks new 4 2)"
    [ "$(grep -m1 -o '^#SBATCH --partition=.*' job.sh)" = "#SBATCH --partition=old" ] || want="$(ranks new 4 2)$(ranks old 2)"
    runs "$framework on nodes of two and of four" "$want"
    is "$(sed -n 's/.* of 3 from .* with \([24]\) GPUs.*/\1/p' out | sort | uniq -c | xargs)" "4 2 4 4" "$framework: each node with its GPUs"
done

# --- one strategy with shares, a task of MPI for each GPU
if [ -f "${TOPT_MPI_HELLO:-}" ] && srun --mpi=list 2>&1 | grep -q pmix; then
    group() # NAME SLOWER
    {
        printf '{"name":"%s","nodes":2,"gpus_per_node":2,"device":{"name":"rank","memory_bytes":1073741824,"flops":{"f32":%s},
            "efficiency":{"matmul":0.6,"attention":0.1,"elementwise":0.05},"memory_bandwidth":%s,"launch_ns":2000,"source":"assumed"},
            "links":[{"level":"node","bytes_per_second":4e9,"latency_ns":2000,"source":"assumed"},
                     {"level":"cluster","bytes_per_second":4e9,"latency_ns":20000,"source":"assumed"}]}' "$1" "$2e10" "$2e9"
    }
    printf '{"format":"topt-hw/1","name":"ranks","groups":[%s,%s],"between":{"bytes_per_second":3e9,"latency_ns":20000,"source":"assumed"}}' \
        "$(group new 4)" "$(group old 2)" >ranks.json
    echo '{"model_type":"gpt2","n_embd":128,"n_layer":2,"n_head":4,"n_positions":128,"vocab_size":512}' >gpt.json
    "$TOPT" plan gpt.json --quiet --hw ranks.json --batch 32 --seq 64 --precision f32 --framework topt --gpus 3 -o shares.plan >said 2>err
    "$TOPT" launch shares.plan --sbatch >job.sh 2>>err
    printf '#!/bin/sh\necho "0 $SLURM_PROCID $SLURMD_NODENAME from n1 "\nexec %s "$@"\n' "$TOPT" >bin/topt
    chmod 755 bin/topt
    job=$(PATH=$work/bin:$PATH sbatch --parsable -o out job.sh --data synthetic --steps 2 2>err)
    wait_job "$job"
    in_order "topt run" "$(ranks new 2 2)$(ranks old 1 2)"
    like "$(cat out)" "2 steps on 3 ranks" "and they train together $(cat err)"
fi

# --- why not one job with so many nodes of each feature: its ranks are in the order of its nodes
printf '#!/bin/sh\nsrun sh -c '\''echo $SLURM_NODEID $SLURMD_NODENAME'\''\n' >mixed.sh
job=$(sbatch --parsable -o out -N4 --gpus-per-node=4 --ntasks-per-node=1 --constraint="[ampere*2&hopper*2]" mixed.sh 2>err)
wait_job "$job"
is "$(sort -n out | cut -d' ' -f2 | tr '\n' ' ')" "n1 n2 n3 n4 " "a job of so many nodes of each feature has them in Slurm's order"
is "$(settled_nodes | grep -c drain)" 0 "no node was drained"
finish
