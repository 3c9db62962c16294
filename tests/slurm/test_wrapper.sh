#!/bin/bash
# test_wrapper.sh - topt sbatch, where the plugin isn't installed: what it says and what the job gets are what the plugin
# says and gives; and without toptd it plans itself.
. "$(dirname "$0")/planner.sh"

start_all
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
cp c/plugstack.conf with
export TOPT_URL=$url
printf '#!/bin/bash\nenv\n' >env.sh
cat >lines.sh <<'S'
#!/bin/bash
#SBATCH --topt-mode=mini-time --topt-gpus=2 --topt-model="model.json" # ours
#SBATCH -n 8 --gres=gpu:4 --comment='two words'

#SBATCH --topt-batch 8 --topt-seq=64
env
#SBATCH --no-such-option
S
few="--topt-mode=mini-parallelism --topt-model=model.json --topt-batch=8 --topt-seq=64"
fast="--topt-mode=mini-time --topt-model=model.json --topt-batch=8 --topt-seq=64"

# What each of them says, but for the number of the job, and the job's shape and place.
told() # COMMAND...
{
    # shellcheck disable=SC2294 # words are quoted in the questions
    job=$(eval "$@" 2>err)
    echo "$?"
    sed 's/^sbatch: //; s/^error: //' err
    [ -z "$job" ] || {
        shape "$job"
        field "$job" Partition
        field "$job" Comment
        field "$job" JobName
        scancel "$job"
    }
}

while read -r question; do
    cp with c/plugstack.conf
    told "sbatch --parsable --hold $question" >plugin
    : >c/plugstack.conf
    told "$TOPT sbatch --parsable --hold $question" >wrapper
    is "$(cat wrapper)" "$(cat plugin)" "the same as the plugin: $question"
done <<QUESTIONS
$few env.sh
$few --topt-memory=8MiB -N 1 env.sh
$few --topt-memory=6MiB -N 1 env.sh
$few --topt-min-efficiency=0.9 --gres=gpu:4,license:0 env.sh
$few --topt-train=lora:4 --gpus=8 -n8 env.sh
$fast --topt-gpus=4 --topt-tasks=node env.sh
$fast --gpus-per-node=4 -N2 --ntasks-per-node=1 env.sh
$few --topt-dry-run --topt-explain env.sh
--topt-batch=0 $few env.sh
--comment=mine lines.sh
-J name --topt-gpus 4 lines.sh
$fast --topt-gpus=9 --gpus-per-node=4 -N 2 env.sh
--topt-mode=profiling --topt-model=model.json --topt-batch=8 --topt-seq=64 --wrap env
QUESTIONS

# The job without the plugin.
job=$("$TOPT" sbatch --parsable -o out lines.sh first 2>err)
wait_job "$job"
is "$(grep -E '^(SLURM_(NTASKS|GPUS_PER_NODE|JOB_NAME)|TOPT_(GPUS|NTASKS))=' out | sort | tr '\n' ' ')" \
    "SLURM_GPUS_PER_NODE=2 SLURM_JOB_NAME=lines.sh SLURM_NTASKS=2 TOPT_GPUS=2 TOPT_NTASKS=2 " "a script's lines are heard: $(tail -1 err)"
is "$(grep -c '^SLURM_TOPT_PLAN_DOC=1\.' out)" 1 "the plan is in the job's environment"
job=$("$TOPT" sbatch --parsable -o out -n 2 <lines.sh 2>err)
wait_job "$job"
is "$(grep -E '^(SLURM_JOB_NAME|TOPT_GPUS)=' out | sort | tr '\n' ' ')" "SLURM_JOB_NAME=sbatch TOPT_GPUS=2 " "a script on standard input"
job=$(SBATCH_GPUS=4 SBATCH_PARTITION=main TOPT_SEQ=64 "$TOPT" sbatch --parsable --hold --topt-mode=mini-time --topt-model=model.json --topt-batch=8 --wrap env 2>err)
is "$(shape "$job")/$(field "$job" TresPerJob)" "1/1/gres:gpu:4/" "variables of sbatch are heard, and said once"
scancel "$job"
job=$("$TOPT" sbatch --parsable --hold -N1 -n3 env.sh 2>err)
is "$(shape "$job")/$(cat err)" "1/3//" "without topt's options it is sbatch"
scancel "$job"
"$TOPT" sbatch --parsable --no-such-thing env.sh >out 2>err
is "$?" 255 "what sbatch does not know it says: $(head -1 err)"
"$TOPT" sbatch $few -N1 : -N2 env.sh >out 2>err
like "$?$(cat err)" "1topt: the parts of a heterogeneous job can't be sized" "a heterogeneous job"

# Without toptd: the same answer, planned here.
"$TOPT" sbatch --parsable --hold $few env.sh >jobs 2>err
scancel "$(cat jobs)"
stop_toptd
job=$("$TOPT" sbatch --parsable --hold $few --topt-hw=lab-cpu env.sh 2>alone)
like "$(head -1 alone)" "toptd does not answer; planning on this machine" "without toptd it says so"
is "$(tail -n +2 alone)" "$(cat err)" "and gives the same answer"
is "$(shape "$job")" "1/1/gres:gpu:1" "and size"
scancel "$job"
"$TOPT" sbatch --parsable $few --topt-hw=lab-cpu --topt-memory=3MiB --topt-max-gpus=2 env.sh >jobs 2>err
like "$?$(tail -1 err)" "1topt: nothing fits in 3.00 MiB per GPU" "what does not fit is refused: $(tail -1 err)"
finish
