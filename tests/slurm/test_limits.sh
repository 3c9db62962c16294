#!/bin/bash
# test_limits.sh - partitions of two GPU kinds with limits: the profile and the limits of the one that a job goes to count.
. "$(dirname "$0")/planner.sh"

planner_waits=1 # until there is a cluster to ask about
nodes='n1 CPUs=16 RealMemory=4000 Gres=gpu:a100:4 Feature=fast
n2 CPUs=8 RealMemory=2000 Gres=gpu:v100:4 Feature=slow
PartitionName=ampere Nodes=n1 Default=YES MaxTime=60 State=UP
PartitionName=volta Nodes=n2 MaxTime=INFINITE State=UP
PartitionName=both Nodes=ALL MaxTime=INFINITE MaxNodes=1 State=UP
PartitionName=twice Nodes=ALL MaxTime=INFINITE State=UP
PartitionName=all Nodes=ALL MaxTime=INFINITE State=UP
PartitionName=one Nodes=ALL MaxTime=INFINITE MaxNodes=1 State=UP
PartitionName=v100 Nodes=n2 MaxTime=INFINITE State=UP
PartitionName=main Nodes=n1 MaxTime=INFINITE State=UP
PartitionName=narrow Nodes=n1 MaxCPUsPerNode=3 State=UP
PartitionName=lean Nodes=n1 DefMemPerGPU=1500 MaxMemPerNode=3500 State=UP
PartitionName=club Nodes=n1 AllowGroups=daemon State=UP
SelectTypeParameters=CR_Core_Memory
DefMemPerNode=100'
start_all
cat >map <<M
# partition  GPU type  profile
both         a100      lab-cpu # the better ones of the two
both         v100      v100-pcie-1x8
volta        *         v100-pcie-1x8
ampere       *         lab-cpu
all          a100      lab-cpu
twice        *         lab-cpu
one          *         lab-cpu
v100         v100      v100-pcie-1x8
main         *         lab-cpu
narrow       *         lab-cpu
lean         *         lab-cpu
club         *         lab-cpu
M
start_toptd --site-map "$work/map"
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
topt="--topt-model=model.json --topt-batch=8 --topt-seq=64 --topt-framework=topt --topt-precision=f32 --topt-on-error=abort"
few="--topt-mode=mini-parallelism $topt"

gets 1/1/gres:gpu:1 "1.00 GiB" "the default partition's profile" $few
gets 1/1/gres:gpu:1 "14.50 GiB" "another partition's" $few -p volta
gets 1/1/gres:gpu:a100:1 "1.00 GiB" "the first kind of several" $few -p both
gets 1/1/gres:gpu:v100:1 "14.50 GiB" "the job's own GPU type" $few -p both --gpus=v100:4
gets 1/1/gres:gpu:v100:1 "14.50 GiB" "the profile that was asked for" $few -p both --topt-hw=v100-pcie-1x8
gets 1/4/gres:gpu:4 "fastest on 4 GPUs" "all of a node, without --topt-mode" --topt-gpus=4 $topt
gets 1/4/gres:gpu:4 "4 GPUs" "as many CPUs as there are" --topt-mode=mini-time --topt-gpus=4 $topt -c 4
is "$(grep -c "more than partition 'ampere'" err)" 0 "no word of limits where they don't matter"

gets 1/1/gres:gpu:a100:1 "1.00 GiB" "the kind that a feature means" $few -p both -C fast
refused "--topt-hw=h100-80-dgx: by the site's table partition 'both' has other GPUs: --topt-hw=lab-cpu would do" "a profile of no line" $few -p both --topt-hw=h100-80-dgx
gets 1/1/gres:gpu:v100:1 "14.50 GiB" "the kind that another feature means" $few -p both -C slow
gets 1/1/gres:gpu:v100:1 "14.50 GiB" "the kind of the node that -w names" $few -p both -w n2
gets 1/1/gres:gpu:a100:1 "1.00 GiB" "and of another" $few -p both -w n1
gets 1/1/gres:gpu:1 "14.50 GiB" "of partitions the one with that node" $few -p ampere,volta -w n2
gets 1/1/gres:gpu:v100:1 "14.50 GiB" "--nodelist, with a list of Slurm's" $few -p both --nodelist=n[2-2]
refused "-w n2: node 'n2' has no GPUs of type a100: --topt-hw=v100-pcie-1x8 would do" "a profile of other nodes than -w names" $few -p both -w n2 --topt-hw=lab-cpu
refused "-w n2: node 'n2' is not in partition 'ampere'; partition 'volta' would do" "-w of another partition" $few -w n2
refused "-w n1,n2: node 'n2' has no GPUs of type a100, and no line of the site's table is of all these nodes: name nodes with the same GPUs" "-w of two kinds" \
    $few -p all -w n1,n2
refused "-w n2: node 'n2' lacks the features of --constraint 'fast'" "-w without the feature" $few -p both -w n2 -C fast
refused "-w n1,n2: 2 nodes are more than partition 'one' with 1 node of 4 GPUs, MaxNodes=1 allows; partition 'twice' would do" "-w of more nodes than MaxNodes" $few -p one -w n1,n2
fast="--topt-mode=mini-time $topt"
gets 2/8/gres:gpu:4 "8 GPUs" "-w of two kinds, of which one line is" $fast --topt-gpus=8 -p twice -w n1,n2
gets 2/8/gres:gpu:4 "8 GPUs" "a node beside the one that -w names" $fast --topt-gpus=8 -p twice -w n2
gets 2/2/gres:gpu:1 "2 GPUs" "a GPU on each node of -w" $fast --topt-gpus=2 -p twice -w n1,n2 --gpus-per-node=1
refused "-w names 2 nodes, and the plan is of 4 GPUs on 1: name 1, or say with --gpus-per-node" "-w of more nodes than the plan has" \
    $fast --topt-gpus=4 -p twice -w n1,n2
refused "-c 9 is more than the 8 CPUs" "-c on the node that -w names" $few -p twice -w n2 -c 9
gets 1/1/gres:gpu:v100:1 "14.50 GiB" "of a list of partitions the first with a profile" $few -p v100,main
gets 1/1/gres:gpu:1 "1.00 GiB" "in the other order" $few -p main,v100
job=$(sbatch --parsable --hold $few -p v100,main --wrap env 2>err)
is "$(field "$job" Partition)" v100 "and it goes to the partition with that profile alone"
scancel "$job"
mv c/plugstack.conf with
: >c/plugstack.conf
# shellcheck disable=SC2086
job=$(TOPT_URL=$url "$TOPT" sbatch --parsable --hold $few -p both -w n2 --wrap env 2>err)
is "$(shape "$job")" 1/1/gres:gpu:v100:1 "-w to topt sbatch: $(cat err)"
scancel "$job"
mv with c/plugstack.conf
refused "8 GPUs are more than partition 'ampere' with 1 node of 4 GPUs allows; partition 'twice' would do" "more nodes than the partition has" $fast --topt-gpus=8
refused "MaxNodes=1" "MaxNodes" $fast --topt-gpus=8 -p both
refused "8 GPUs are more than -N 1 in partition 'twice', 4 GPUs per node allows" "-N 1" $fast --topt-gpus=8 -N 1 -p twice
gets 2/8/gres:gpu:4 "8 GPUs" "two nodes" $fast --topt-gpus=8 -p twice
gets 1/1/gres:gpu:4 "more than -N 1 in partition 'twice', 4 GPUs per node: 8 GPUs on 2 nodes would be 1." "-N 1, and what more nodes would give" \
    --topt-mode=mini-parallelism --topt-model=model.json --topt-batch=8 --topt-seq=64 -p twice -N 1 --topt-memory=8MiB
refused "within -N 1 in partition 'twice', 4 GPUs per node: nothing fits; it fits on 8 GPUs on 2 nodes" "-N 1 that is too few" \
    --topt-mode=mini-parallelism --topt-model=model.json --topt-batch=8 --topt-seq=64 -p twice -N 1 --topt-memory=4MiB
gets 2/8/gres:gpu:4 "8 GPUs" "the partition of a list that has as many nodes" $fast --topt-gpus=8 -p ampere,twice
gets 1/4/gres:gpu:4 "4 GPUs" "of two kinds the first" $fast --topt-gpus=4 -p ampere,volta
job=$(sbatch --parsable --hold $fast --topt-gpus=4 -p ampere,volta,twice --wrap env 2>err)
is "$(field "$job" Partition)" ampere,twice "and a partition of the other kind is left out"
scancel "$job"
refused "--time=02:00:00 is more than partition 'ampere' allows (MaxTime=60 minutes); partition 'both' would do" "MaxTime" $few \
    --time=2:00:00
refused "-c 17 is more than the 16 CPUs of a node in partition 'ampere'" "-c" $few -c 17
refused "with 1 node of 2 GPUs, by -c 8 allows" "-c for each of four tasks" $fast --topt-gpus=4 -c 8
refused "--mem=8G is more than the 4000 MiB of a node in partition 'ampere'" "--mem" $few --mem=8G
refused "--mem-per-gpu=5000 is more than the 4000 MiB" "--mem-per-gpu" $few --mem-per-gpu=5000M
gets 1/2/gres:gpu:2 "2 GPUs" "--mem-per-cpu that two tasks have" $fast --topt-gpus=2 --mem-per-cpu=2000
refused "with 1 node of 2 GPUs, by --mem-per-cpu=2000 allows" "--mem-per-cpu" $fast --topt-gpus=4 --mem-per-cpu=2000
refused "with 1 node of 2 GPUs, by --cpus-per-gpu=8 allows" "--cpus-per-gpu" $fast --topt-gpus=4 --cpus-per-gpu=8
refused "partition 'narrow' with 1 node of 3 GPUs, by MaxCPUsPerNode=3 allows; partition 'ampere' would do" "MaxCPUsPerNode" $fast --topt-gpus=4 -p narrow
refused "-c 4 is more than partition 'narrow' allows on a node (MaxCPUsPerNode=3)" "a task that is too large" $fast --topt-gpus=1 -c 4 -p narrow
gets 1/2/gres:gpu:2 "2 GPUs" "as many as DefMemPerGPU allows" $fast --topt-gpus=2 -p lean
refused "1 node of 2 GPUs, by DefMemPerGPU=1500 and MaxMemPerNode=3500 allows; partition 'ampere' would do" "DefMemPerGPU" $fast --topt-gpus=4 -p lean
gets 1/4/gres:gpu:4 "4 GPUs" "which --mem-per-gpu takes the place of" $fast --topt-gpus=4 -p lean --mem-per-gpu=800
if su nobody -s /bin/bash -c "test -r '$TOPT_PLUGIN'"; then
    chmod 644 model.json
    su nobody -s /bin/bash -c "cd $work && SLURM_CONF=$SLURM_CONF sbatch --parsable $few -p club --wrap env" >jobs 2>err
    like "$(cat err)" "user 'nobody' may not use partition 'club' (AllowGroups=daemon); partition 'ampere' would do" "AllowGroups: $(cat err)"
else
    ok "AllowGroups # SKIP only root can read $TOPT_PLUGIN" true
fi
scontrol create reservation reservationname=course nodes=n1 partitionname=twice users=root starttime=now duration=60 >/dev/null
stop_toptd && start_toptd --site-map "$work/map"
gets 1/4/gres:gpu:4 "4 GPUs" "a reservation's nodes, in its partition" $fast --topt-gpus=4 --reservation=course
refused "8 GPUs are more than partition 'twice' and reservation 'course' with 1 node of 4 GPUs allows" "more nodes than a reservation has" \
    $fast --topt-gpus=8 --reservation=course
refused "--time=01:30:00 is more than reservation 'course' has left (" "longer than a reservation" $few --reservation=course --time=90
refused "reservation 'course' is of partition 'twice'" "a reservation of another partition" $few --reservation=course -p volta
scontrol delete reservationname=course
scontrol create reservation reservationname=theirs nodes=n1 partitionname=twice users=daemon starttime=now duration=60 >/dev/null
stop_toptd && start_toptd --site-map "$work/map"
refused "reservation 'theirs' is not for user 'root' (Users=daemon)" "a reservation of others" $few --reservation=theirs
scontrol delete reservationname=theirs
refused "no node up with GPUs and --constraint=idle" "--constraint" $few -C idle
refused "within partition 'ampere' with 1 node of 4 GPUs" "what does not fit names the limit" $few --topt-memory=3MiB

# What is shown is what topt plan shows, and submits nothing where that was asked.
"$TOPT" plan model.json --hw lab-cpu --max-gpus 4 --batch 8 --seq 64 >told 2>err
sbatch --parsable --topt-mode=mini-parallelism --topt-model=model.json --topt-batch=8 --topt-seq=64 --topt-dry-run --wrap env >jobs 2>err
is "$?/$(cat jobs)" "0/" "--topt-dry-run submits nothing"
is "$(grep -vE '^(sbatch: |not tried )' err)" "$(sed -E '/^[0-9]+ GPUs?( \(|:)/,$d' told)" "and shows the question and the alternatives of topt plan"
is "$(grep -c '^fewest' err)" 1 "which there are"
"$TOPT" plan model.json --hw lab-cpu --max-gpus 4 --batch 8 --seq 64 --framework topt --precision f32 >told 2>err
sbatch --parsable $few --topt-dry-run --topt-explain --wrap env >jobs 2>err
is "$(grep -v '^sbatch: ' err)" "$(cat told)" "--topt-explain shows all that topt plan does"
job=$(sbatch --parsable --hold $few --topt-explain --wrap env 2>err)
is "$(shape "$job")/$(grep -c '^memory  ' err)" "1/1/gres:gpu:1/1" "and submits"
scancel "$job"
sbatch --parsable --topt-mode=profiling $topt --wrap env >jobs 2>err
is "$?/$(cat jobs)/$(cat err)" "0//$("$TOPT" plan model.json --mode profiling --hw lab-cpu --max-gpus 4 --batch 8 --seq 64 --framework topt --precision f32)" \
    "--topt-mode=profiling shows the curve"
sbatch --parsable --topt-gpus=1,2 $topt --wrap env 2>&1 | grep -cE '^ +[0-9]+ ' >rows
is "$(cat rows)" 2 "of the numbers that were asked for"

scontrol update NodeName=n2 State=DRAIN Reason=test
stop_toptd && start_toptd --site-map "$work/map"
refused "partition 'volta' has no node up with GPUs" "a node that is drained" $few -p volta
scontrol update NodeName=n2 State=RESUME

# Without scontrol the table counts alone; with a table that says nothing of it a partition is refused.
stop_toptd && start_toptd --site-map "$work/map" --scontrol ''
gets 1/1/gres:gpu:v100:1 "14.50 GiB" "the table alone" $few -p volta --gpus=v100:4
refused "no profile for partition 'elsewhere'" "a partition that the table lacks" $few -p elsewhere
echo 'too few' >map
ok "a table that can't be read is an error" test -n "$("$TOPTD" --socket "$work/other.sock" --state "$work/other" --site-map map 2>&1 |
    grep 'map:1: a line is PARTITION GPU-TYPE PROFILE')"
finish
