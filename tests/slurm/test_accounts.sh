#!/bin/bash
# test_accounts.sh - limits of accounting bind a plan: of a QOS, of an account, of a user.  With a slurmdbd of its own,
# from $TOPT_ACCOUNTING (deploy/cluster.sh --accounting) or where it is installed.
. "$(dirname "$0")/planner.sh"
accounting=${TOPT_ACCOUNTING:-}
[ -n "$accounting" ] || ! PATH=$PATH:/usr/sbin command -v slurmdbd mariadbd >/dev/null || accounting=/
[ -n "$accounting" ] || skip_all "no slurmdbd: unpack slurmdbd, slurm-wlm-mysql-plugin and mariadb-server-core, and name the folder in TOPT_ACCOUNTING"

planner_waits=1
# Two kinds of GPU, and partitions for one account, or one QOS.
nodes='n1 CPUs=16 RealMemory=4000 Gres=gpu:a100:4
n2 CPUs=16 RealMemory=4000 Gres=gpu:a100:4
PartitionName=main Nodes=ALL Default=YES State=UP
PartitionName=rich Nodes=ALL AllowAccounts=lab State=UP
PartitionName=fast Nodes=ALL AllowQos=short State=UP'
start_all --accounting "$accounting"
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
{
    sacctmgr -iQ add qos short
    sacctmgr -iQ modify qos short set MaxTRESPerJob=gres/gpu=2 MaxWall=60
    sacctmgr -iQ add qos alone
    sacctmgr -iQ modify qos alone set MaxTRESPerJob=node=1
    sacctmgr -iQ add qos kinds
    sacctmgr -iQ modify qos kinds set MaxTRESPerJob=gres/gpu:a100=2
    sacctmgr -iQ add account poor
    sacctmgr -iQ modify account poor set GrpTRES=gres/gpu=3
    sacctmgr -iQ add user root account=poor
    sacctmgr -iQ modify user root where account=lab set qos+=short,alone,kinds
    sacctmgr -iQ add user nobody account=lab
    sacctmgr -iQ modify user nobody where account=lab set MaxTRES=gres/gpu=1
} >sacctmgr.out 2>&1
chmod 644 model.json
start_toptd --hw lab-cpu
fast="--topt-mode=mini-time --topt-model=model.json --topt-batch=8 --topt-seq=64 --topt-framework=topt --topt-precision=f32"

gets() # WANT TEXT OPTIONS...
{
    local want=$1 text=$2 job
    shift 2
    # shellcheck disable=SC2068
    job=$(sbatch --parsable $@ --wrap 'true' 2>err)
    is "$(shape "$job")" "$want" "$text: $(head -1 err)"
    wait_job "$job"
    is "$(squeue -h -j "$job" -o %r 2>/dev/null)" "" "$text: it ran"
}

gets 1/2/gres:gpu:2 "as many as the QOS allows" $fast --topt-gpus=2 --account=lab --qos=short
refused "4 GPUs are more than QOS 'short' (2 GPUs) allows" "more than the QOS allows" $fast --topt-gpus=4 --account=lab --qos=short
refused "--time=01:01:00 is more than QOS 'short' (60 minutes) allows" "longer than the QOS allows" $fast --topt-gpus=2 --account=lab --qos=short --time=61
refused "8 GPUs are more than QOS 'alone' (1 node) in partition 'main' allows" "more nodes" $fast --topt-gpus=8 --account=lab --qos=alone
refused "4 GPUs are more than account 'poor' (3 GPUs) allows" "more than the account" $fast --topt-gpus=4 --account=poor
gets 1/2/gres:gpu:a100:2 "as many of a type as the QOS allows" $fast --topt-gpus=2 --account=lab --qos=kinds --gpus-per-node=a100:4
refused "4 GPUs are more than QOS 'kinds' (2 GPUs of type a100) allows" "more of a type than the QOS allows" $fast --topt-gpus=4 --account=lab \
    --qos=kinds --gpus-per-node=a100:4
gets 1/4/gres:gpu:4 "a job that names no type, which Slurm doesn't hold against it" $fast --topt-gpus=4 --account=lab --qos=kinds
gets 1/2/gres:gpu:2 "an account that may use the partition" $fast --topt-gpus=2 -p rich --account=lab
refused "account 'poor' may not use partition 'rich' (AllowAccounts=lab); partition 'main' would do" "AllowAccounts" $fast --topt-gpus=2 -p rich \
    --account=poor
refused "QOS 'normal' may not use partition 'fast' (AllowQos=short); partition 'main' would do" "AllowQos, of a job that names no QOS" $fast \
    --topt-gpus=2 -p fast --account=lab
gets 1/2/gres:gpu:2 "a QOS that may use the partition" $fast --topt-gpus=2 -p fast --account=lab --qos=short
gets 2/8/gres:gpu:4 "without a limit" $fast --topt-gpus=8 --account=lab
if su nobody -s /bin/bash -c "test -r '$TOPT_PLUGIN'"; then
    su nobody -s /bin/bash -c "cd $work && SLURM_CONF=$SLURM_CONF sbatch --parsable $fast --topt-gpus=2 --wrap env" >jobs 2>err
    like "$(cat err)" "2 GPUs are more than user 'nobody' (1 GPU) allows" "a user's own limit"
else
    ok "a user's own limit # SKIP only root can read $TOPT_PLUGIN" true
fi
"$TOPT" rightsize >said 2>&1
is "$?/$(head -1 said)" "0/8 of 8 GPUs are idle; 0 waiting jobs agreed to another number" "topt rightsize reads these limits, too"
finish
