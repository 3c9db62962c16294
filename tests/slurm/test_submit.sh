#!/bin/bash
# test_submit.sh - job_submit/topt in the controller: the site's policy, and requests that carry a plan.
. "$(dirname "$0")/lib.sh"
need_slurm
[ -f "${TOPT_JOB_SUBMIT:-}" ] || skip_all "job_submit_topt.so is not built"
start_all --job-submit "$TOPT_JOB_SUBMIT"
printf '# ours\ncap main 2\ncap - 2\n' >c/topt_submit.conf
topt="--topt-mode=mini-parallelism --topt-model=config.json --topt-framework=topt"

got() # OPTIONS...: the shape of what was submitted
{
    # shellcheck disable=SC2068
    job=$(sbatch --parsable --hold $@ --wrap env 2>err) || { cat err && return; }
    shape "$job"
    scancel "$job"
}

is "$(got -N1 --gpus-per-node=2)" "1/1/gres:gpu:2" "a job without a plan within the cap"
like "$(got -N1 --gpus-per-node=3)" "3 GPUs without a plan are more than the 2 that the site allows: ask with --topt-model" "above it: refused, and why"
like "$(got -N2 --gpus-per-node=2)" "4 GPUs without a plan" "GPUs of all nodes count"
like "$(got --gpus=3)" "3 GPUs without a plan" "by --gpus"
like "$(got -n3 --gpus-per-task=1)" "3 GPUs without a plan" "by --gpus-per-task"
like "$(got -N1 --sockets-per-node=2 --gpus-per-socket=2)" "4 GPUs without a plan" "by --gpus-per-socket"
nobody() { (cd / && setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups "$@"); }
chmod 755 "$PWD" 2>/dev/null
job=$(nobody sbatch --parsable --hold -N1 --gpus-per-node=1 --wrap env 2>err)
like "$(nobody scontrol update job="$job" NumNodes=1 TresPerNode=gres:gpu:4 2>&1)" "Invalid generic resource" "nor later, by scontrol update"
like "$(nobody scontrol update job="$job" NumNodes=2 2>&1)" "Invalid generic resource" "nor by nodes alone"
like "$(cat c/log/slurmctld.log)" "can't be changed to 4 GPUs, more than the 2 that the site allows" "the controller's log says why"
nobody scontrol update job="$job" NumNodes=1 TresPerNode=gres:gpu:2
is "$(field "$job" TresPerNode)" "gres:gpu:2" "as much as the cap is given"
scontrol update job="$job" NumNodes=1 TresPerNode=gres:gpu:4
is "$(field "$job" TresPerNode)" "gres:gpu:4" "and the site may all"
scancel "$job"
plan 2 4
is "$(got $topt)" "2/8/gres:gpu:4" "a job with a plan may have more"
: >c/plugstack.conf
carried="env SLURM_TOPT_PLAN=p-1 SLURM_TOPT_NODES=2 SLURM_TOPT_GPUS_PER_NODE=3 SLURM_TOPT_NTASKS=6"
job=$($carried sbatch --parsable --hold -n1 --gpus=2 --gres=license:0 --wrap env 2>err)
is "$(shape "$job")" "2/6/gres:gpu:3,gres:license:0" "a request that carries a plan, without the plugin in sbatch, is sized: $(cat err)"
is "$(field "$job" TresPerJob)" "" "said once"
scontrol release "$job"
wait_job "$job"
is "$(field "$job" JobState)" COMPLETED "and runs"
SLURM_TOPT_PLAN=p-1 SLURM_TOPT_NODES=2 sbatch --parsable --hold --wrap env >out 2>err
like "$?$(cat err)" "1sbatch: error: plan p-1 comes without SLURM_TOPT_GPUS_PER_NODE" "a plan that doesn't add up is refused"
printf 'require -\n' >c/topt_submit.conf
like "$(got -N1 --gpus-per-node=2)" "a job of several GPUs needs a plan here" "another policy counts at once"
printf 'no such line\n' >c/topt_submit.conf
is "$(got -N1 --gpus-per-node=4)" "1/1/gres:gpu:4" "with a mistake in it all jobs pass"
like "$(cat c/log/slurmctld.log)" "line 1 is neither 'cap PARTITION GPUS'" "which the log names"
finish
