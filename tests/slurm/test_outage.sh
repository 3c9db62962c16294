#!/bin/bash
# test_outage.sh - when there is no plan: a planner that is away doesn't lose a submission, a
# request that can't be met doesn't become a job.
. "$(dirname "$0")/lib.sh"
need_slurm
start_all
topt="--topt-mode=mini-parallelism --topt-model=config.json --topt-framework=topt"
asked="-n2 --gpus-per-node=2"

plugstack() # ARGS: the plugin's, from now on
{
    echo "optional $work/c/spank_topt.so $*" >"$work/c/plugstack.conf"
}

# The job is submitted as it was asked, after one line with this in it.
goes_on() # PART TEXT OPTIONS...
{
    local part=$1 text=$2 job rc
    shift 2
    job=$(sbatch --parsable $asked $topt "$@" -o out --wrap env 2>err)
    rc=$?
    is "$rc/$(wc -l <err)" "0/1" "$text: submitted, one line"
    like "$(cat err)" "sbatch: error: topt: " "$text: it is topt's"
    like "$(cat err)" "$part" "$text: it says why"
    wait_job "$job"
    is "$(shape "$job")" "1/2/gres:gpu:2" "$text: as it was asked"
    is "$(grep -c TOPT_PLAN out)" 0 "$text: without a plan"
}

# Refused: status 1, one line with this in it, and no job.
refused() # PART TEXT OPTIONS...
{
    local part=$1 text=$2 rc before
    shift 2
    before=$(squeue -h -t all -o %i | sort -n | tail -1)
    sbatch --parsable "$@" -o out --wrap env >jobs 2>err
    rc=$?
    is "$rc/$(wc -l <err)/$(cat jobs)" "1/1/" "$text: refused with one line"
    like "$(cat err)" "$part" "$text: it says why"
    is "$(squeue -h -t all -o %i | sort -n | tail -1)" "$before" "$text: no job"
}

# --- the planner is away
plan 2 4
plugstack "url=unix:$work/nobody timeout_ms=2000"
goes_on "no answer from unix:$work/nobody" "no socket"
refused "on-error=abort" "no socket, abort" $asked $topt --topt-on-error=abort
salloc --gpus=1 $topt /bin/true >out 2>err
is "$?" 0 "salloc goes on"
srun --gres=gpu:1 $topt /bin/true >out 2>err
is "$?" 0 "srun goes on"
refused "not submitted, since it asks for no GPUs itself" "no socket, no GPUs" -n 2 $topt
refused "not submitted, since it asks for no GPUs itself" "no GPUs by the environment" --gres=license:1 $topt
job=$(sbatch --parsable -n2 $topt --topt-on-error=submit -o out --wrap env 2>err)
is "$?/$(grep -c 'is submitted as it was asked' err)" "0/1" "who wants it so goes on without GPUs"
job=$(TOPT_ON_ERROR=submit sbatch --parsable -n2 $topt -o out --wrap env 2>err)
is "$?/$(grep -c 'is submitted as it was asked' err)" "0/1" "or says so in the environment"
plugstack "url=unix:$work/nobody on_error=submit"
job=$(sbatch --parsable -n2 $topt -o out --wrap env 2>err)
is "$?/$(grep -c 'is submitted as it was asked' err)" "0/1" "and so does the site"
plugstack "url=unix:$work/nobody on_error=abort"
refused "on-error=abort" "the site's abort" $asked $topt
goes_on "no answer from" "the user's submit over the site's abort" --topt-on-error=submit
salloc -n1 $topt /bin/true >out 2>err
is "$?" 1 "salloc is refused too"
srun -n1 $topt /bin/true >out 2>err
is "$?" 1 "srun is refused too"
plugstack "url=http://127.0.0.1:1 timeout_ms=600"
goes_on "no answer from http://127.0.0.1:1" "no port"

# A planner that is being restarted: its socket is there before anybody listens.
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$work/restarts"
plugstack "url=unix:$work/restarts timeout_ms=10000"
(sleep 0.5 && ln -sfT "$work/sock" "$work/restarts") &
job=$(sbatch --parsable $topt -o out --wrap env 2>err)
is "$(shape "$job")" "2/8/gres:gpu:4" "a refused connection is tried again: $(cat err)"
wait_job "$job"

echo hang >"$answer"
plugstack "url=$url timeout_ms=400"
goes_on "no answer from $url in time" "a hanging planner"
before=$(date +%s%N)
sbatch --test-only $topt --wrap true >out 2>err
took=$((($(date +%s%N) - before) / 1000000))
ok "the deadline of 400 ms holds: $took ms" [ $took -ge 400 -a $took -lt 1500 ]

plugstack "url=$url"
plan 1 4
: >requests
sbatch --test-only $topt --wrap true >out 2>err
like "$(tail -1 requests)" "&wait_ms=2700 " "without a deadline of the site's it is 3 s"

plugstack "url=$url $patience"
echo garbage >"$answer"
goes_on "doesn't speak HTTP" "no HTTP"
error 500 internal "the store is full"
goes_on "the planner answered 500: the store is full" "status 500"
printf '404\nnot here\n' >"$answer"
goes_on "the planner answered 404" "a 404 that isn't toptd's"
printf '200\nTOPT_PLAN_ID=p-1\nTOPT_GPUS=8\nTOPT_NODES=3\nTOPT_GPUS_PER_NODE=3\n' >"$answer"
goes_on "no whole plan" "a plan that doesn't add up"

plan 1 4
sed -i '1s/.*/later 2/' "$answer"
job=$(sbatch --parsable $topt -o out --wrap env 2>err)
is "$(shape "$job")" "1/4/gres:gpu:4" "a planner that needs some time is asked again"
wait_job "$job"
plugstack "url=$url timeout_ms=abc"
goes_on "plugstack.conf: timeout_ms" "a mistake in plugstack.conf"
plugstack "url=$url speed=9"
goes_on "plugstack.conf: 'speed=9'" "an unknown word in plugstack.conf"
plugstack "url=$url $patience"

# --- the request is wrong
error 400 parse "model: no such field 'modle_type'"
refused "topt: model: no such field 'modle_type'; not submitted" "status 400" $topt
error 404 not-found "hardware 'moon' is unknown"
refused "hardware 'moon' is unknown" "status 404" $topt --topt-hw=moon
error 422 infeasible "needs 40 GiB a GPU" "8 GPUs with 21 GiB"
refused "needs 40 GiB a GPU; nearest: 8 GPUs with 21 GiB" "status 422" $topt
refused "with -n 4 as upper bound: needs 40 GiB" "status 422 and -n" $topt -n 4
srun $topt /bin/true >out 2>err
is "$?" 1 "srun is refused"
salloc $topt /bin/true >out 2>err
is "$?" 1 "salloc is refused"
error 422 undecided "nothing was found" ""
goes_on "nothing was found" "what the planner can't decide"

# --- before anybody is asked
: >requests
mode=--topt-mode=mini-parallelism
refused "can't read 'nowhere.json': No such file" "no model file" $mode --topt-model=nowhere.json
HF_HUB_CACHE=$PWD refused "huggingface-cli download org/absent config.json" "an id that is not in the cache" \
    $mode --topt-model=org/absent
mkfifo pipe
refused "'pipe' is not a file" "a pipe" $mode --topt-model=pipe
: >empty
refused "'empty' is empty" "an empty file" $mode --topt-model=empty
refused "--topt-mode needs --topt-model=FILE" "no --topt-model" $mode
refused "--topt-batch needs --topt-model=FILE" "--topt-batch alone" --topt-batch=3
refused "--topt-mode: 'fast' is not one of" "an unknown mode" --topt-mode=fast --topt-model=config.json
refused "--topt-batch: 'x' is not a whole number" "a bad batch" $topt --topt-batch=x
refused "--topt-memory: '16XB'" "a bad memory" $topt --topt-memory=16XB
refused "--topt-on-error: 'maybe'" "a bad --topt-on-error" $topt --topt-on-error=maybe
refused "mini-time needs --topt-gpus=N" "mini-time without a number" --topt-mode=mini-time --topt-model=config.json
refused "--topt-gpus is for mini-time" "--topt-gpus with mini-parallelism" $topt --topt-gpus=4
refused "--topt-gpus=8 is more than --gpus=4 allows" "--topt-gpus over --gpus" --topt-mode=mini-time --topt-model=config.json --topt-gpus=8 --gpus=4
refused "one GPU type" "two GPU types" $topt --gpus=a100:2,v100:2
is "$(cat requests)" "" "none of these reached the planner"

# --- the plan and the user's own options
plan 2 4
refused "the plan needs 2 nodes but the job has -N 1" "-N 1" $topt -N 1
refused "the plan needs 8 tasks, one for each GPU, but the job has -n 4" "-n 4" $topt -n 4
refused "the plan needs 8 GPUs but the job has --gpus 4" "--gpus" $topt --gpus=4
refused "the plan needs 4 GPUs on a node but the job has --gpus-per-node 2" "--gres" $topt --gres=gpu:2
printf '#!/bin/bash\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n1\ntrue\n' >het.sh
sbatch $topt het.sh >jobs 2>err
is "$?/$(grep -c Submitted jobs)" "1/0" "a heterogeneous job is refused"
printf '#!/bin/bash\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n1 %s\ntrue\n' "$topt" >het2.sh
sbatch het2.sh >jobs 2>err
is "$?/$(grep -c Submitted jobs)" "1/0" "also with topt in its second part"
like "$(cat err)" "the parts of a heterogeneous job can't be sized" "which is said"
refused "--topt-tasks: 'rank' is neither gpu nor node" "a bad --topt-tasks" $topt --topt-tasks=rank

is "$(sinfo -h -N -o %T | grep -vc -E 'idle|alloc|mix|comp')" 0 "no node was drained"
finish
