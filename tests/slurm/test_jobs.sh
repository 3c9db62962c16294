#!/bin/bash
# test_jobs.sh - what jobs get: sizes as the controller sees them, and their environment.
. "$(dirname "$0")/lib.sh"
need_slurm
start_all
topt="--topt-mode=mini-parallelism --topt-model=config.json --topt-framework=topt"

cat >tasks.sh <<'JOB'
#!/bin/bash
srun -l /bin/bash -c 'echo $SLURM_NTASKS $SLURMD_NODENAME $SLURM_GPUS_ON_NODE $TOPT_PLAN $TOPT_GPUS'
JOB
printf '#!/bin/bash\nenv\n' >env.sh

# --- sizes
for want in "1 1" "1 2" "1 4" "2 1" "2 4"; do
    set -- $want
    plan "$1" "$2"
    job=$(sbatch --parsable $topt -o out tasks.sh 2>err)
    is "$?" 0 "sbatch: $1 x $2 is submitted"
    is "$(cat err)" "sbatch: topt: $(($1 * $2)) GPU$([ $(($1 * $2)) = 1 ] || echo s) ($1 node$([ $1 = 1 ] || echo s) x $2 GPU$([ $2 = 1 ] || echo s)): needs 1 MiB a GPU on $(($1 * $2)); data parallel; plan p-0123456789abcdef" "one line says what and why"
    wait_job "$job"
    is "$(shape "$job")" "$1/$(($1 * $2))/gres:gpu:$2" "the controller sees nodes/tasks/GPUs"
    is "$(sort -u -k2 out | cut -d' ' -f2,4- | sort -u)" "$(($1 * $2)) $2 p-0123456789abcdef $(($1 * $2))" "every task has its number, GPUs and plan"
    is "$(wc -l <out)/$(cut -d' ' -f3 out | sort -u | wc -l)" "$(($1 * $2))/$1" "a step takes all tasks and nodes"
done

# --- environment of the batch script
plan 2 4
want_env="SLURM_GPUS_PER_NODE=4 SLURM_NPROCS=8 SLURM_NTASKS=8 TOPT_GPUS=8 TOPT_GPUS_PER_NODE=4 TOPT_MEMORY_BYTES=1048576 TOPT_NODES=2 TOPT_NTASKS=8 TOPT_PLAN=p-0123456789abcdef TOPT_PLAN_ID=p-0123456789abcdef TOPT_TIME_NS=2500000 TOPT_URL=$url"
for how in "" "--export=NONE" "-n8" "-N2 --gpus-per-node=4 --ntasks-per-node=4" "--gpus=8" "-N 1-2 --gres=gpu:4"; do
    job=$(sbatch --parsable $how $topt -o out env.sh 2>err)
    wait_job "$job"
    is "$(grep -E '^(TOPT_|SLURM_(GPUS|GPUS_PER_NODE|GPUS_PER_TASK|NTASKS|NPROCS|NTASKS_PER_NODE)=)' out | sort | tr '\n' ' ')" "$want_env " "environment with '$how'"
    is "$(shape "$job")" "2/8/gres:gpu:4" "size with '$how'"
    is "$(field "$job" TresPerJob)" "" "no second word about GPUs with '$how'"
done

# --- one choice for the whole model: what a script of another framework obeys
printf 'TOPT_DP=4\nTOPT_TP=2\nTOPT_FSDP=3\nTOPT_RECOMPUTE=1\nTOPT_MICRO_BATCH=16\n' >>"$answer"
job=$(sbatch --parsable --export=NONE $topt -o out env.sh 2>err)
wait_job "$job"
is "$(grep -E '^TOPT_(DP|TP|FSDP|RECOMPUTE|MICRO_BATCH)=' out | sort | tr '\n' ' ')" \
    "TOPT_DP=4 TOPT_FSDP=3 TOPT_MICRO_BATCH=16 TOPT_RECOMPUTE=1 TOPT_TP=2 " "a uniform plan says it all"

# --- another number that is worth asking for, and a question without a job
plan 1 2
echo 'TOPT_HINT=8 GPUs would be 3.9 times as fast for the same GPU-hours: --topt-min-efficiency=0.8' >>"$answer"
job=$(sbatch --parsable $topt -o out env.sh 2>err)
is "$(sed -n 2p err)" "sbatch: topt: 8 GPUs would be 3.9 times as fast for the same GPU-hours: --topt-min-efficiency=0.8" "a second line says what else to ask"
wait_job "$job"
: >requests
sbatch --parsable $topt --topt-dry-run --topt-tensor-parallel -o out env.sh >job 2>err
is "$?/$(cat job)/$(wc -l <err)" "0//3" "--topt-dry-run says it all and submits nothing"
like "$(cat err)" "1.00 MiB per GPU, 2.50 ms per step; not submitted" "with memory and time"
like "$(cat requests)" "&tensor_parallel=1&" "a flag is sent"
plan 1 2
sed -i '1s/.*/later 6/' "$answer"
job=$(python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' sbatch --parsable $topt -o out env.sh </dev/null)
like "$job" "sbatch: topt: asking the planner ..." "a terminal is told what is waited for"
wait_job "$(echo "$job" | tail -1 | tr -d '\r')"

# --- where options may stand
plan 1 2
{
    printf '#!/bin/bash\n#SBATCH --topt-mode=mini-parallelism\n#SBATCH --topt-batch=4\n'
    printf '#SBATCH --topt-model=config.json\n#SBATCH -n 1 -o out\nenv\n'
} >lines.sh
: >requests
job=$(sbatch --parsable -n 4 --topt-batch=8 --topt-seq=64 --topt-memory=16MiB --topt-hw='a b' lines.sh 2>err)
wait_job "$job"
is "$(shape "$job")" "1/2/gres:gpu:2" "#SBATCH lines are heard"
is "$(cut -d' ' -f1 requests)" "/v1/plan?name=config&mode=mini-parallelism&hw=a%20b&batch=8&seq=64&memory=16MiB&max_gpus=4&slurm_tasks=gpu&wait_ms=54000" "and the command line wins over them"
is "$(cut -d' ' -f2- requests)" "$(wc -c <config.json) $(sha256sum <config.json | cut -d' ' -f1)" "the model's bytes are sent"
job=$(sbatch --parsable <lines.sh 2>err)
is "$(shape "$job")" "1/1/gres:gpu:2" "-n 1 from the #SBATCH line is no bound"
wait_job "$job"
job=$(sbatch --parsable -n 2 <lines.sh 2>err)
wait_job "$job"
is "$(shape "$job")" "1/2/gres:gpu:2" "script on standard input"
job=$(sbatch --parsable --array=1-2 $topt -o out.%a env.sh 2>err)
wait_job "$job"
is "$(grep -h ^TOPT_GPUS= out.1 out.2 | tr '\n' ' ')" "TOPT_GPUS=2 TOPT_GPUS=2 " "a job array"
sbatch --test-only $topt env.sh >out 2>err
is "$?" 0 "--test-only"
is "$(sbatch -Q $topt -o out env.sh 2>&1)" "" "-Q: not a word"
mkdir folder && cp config.json folder/
is "$(sbatch -Q --topt-mode=mini-time --topt-gpus=2 --topt-model=folder -o out env.sh >/dev/null 2>&1; echo $?)" 0 "a folder stands for its config.json"
like "$(tail -1 requests)" "name=folder&mode=mini-time&gpus=2&slurm_tasks=node&wait_ms=54000 " "mini-time sends its number"
: >out && chmod 666 out
# A build inside a private home can't be entered by others, and so not its plugin.
if su nobody -s /bin/bash -c "test -r '$TOPT_PLUGIN'"; then
    job=$(su nobody -s /bin/bash -c "cd $work && SLURM_CONF=$SLURM_CONF sbatch --parsable $topt -o out env.sh" 2>err)
    wait_job "$job"
    like "$(cat out)" "TOPT_PLAN=p-0123456789abcdef" "a user who isn't root"
else
    ok "a user who isn't root # SKIP only root can read $TOPT_PLUGIN" true
fi

# --- salloc and srun
plan 2 3
salloc $topt /bin/bash -c 'echo $TOPT_PLAN $SLURM_NTASKS; srun -l /bin/echo $TOPT_GPUS' >out 2>err
is "$?" 0 "salloc"
is "$(grep -c '^[0-5]: 6$' out)" 6 "its step takes all tasks"
like "$(cat out)" "p-0123456789abcdef 6" "its shell knows the plan"
srun $topt /bin/bash -c 'echo $TOPT_PLAN $SLURM_NTASKS $SLURM_GPUS_ON_NODE $SLURMD_NODENAME' >out 2>err
is "$?" 0 "srun"
is "$(sort out | uniq -c | tr -s ' ' | tr '\n' ';')" " 3 p-0123456789abcdef 6 3 n1; 3 p-0123456789abcdef 6 3 n2;" "three tasks and GPUs on each node"

# --- a list of numbers of nodes, which Slurm takes from 23.02 on: the largest is the bound, and the plan's is set
if sbatch --test-only -N 1,2 --wrap true >out 2>err; then
    for how in "-N 1,2" "--nodes=1,2,4"; do
        plan 1 3
        job=$(sbatch --parsable $how $topt -o out tasks.sh 2>err)
        wait_job "$job"
        is "$(shape "$job")/$(wc -l <out)" "1/3/gres:gpu:3/3" "a plan of one node with '$how': $(cat err)"
        plan 2 2
        job=$(sbatch --parsable $how $topt -o out tasks.sh 2>err)
        wait_job "$job"
        is "$(shape "$job")/$(wc -l <out)" "2/4/gres:gpu:2/4" "a plan of two with '$how'"
    done
fi

# --- other launch shapes
plan 2 4
for how in "--ntasks-per-node=1" "--topt-tasks=node" "-N2 --ntasks-per-node=1 --gpus-per-node=4 -c 4" "-N2 -n2 --gpus-per-node=4" \
    "--ntasks=2 --gpus-per-task=4" "--topt-framework=pytorch" "--topt-framework=deepspeed -n1"; do
    job=$(sbatch --parsable $topt $how -o out --wrap 'env; srun env | grep -c ^SLURM_PROCID=; srun env >steps' 2>err)
    wait_job "$job"
    is "$(shape "$job")" "2/2/gres:gpu:4" "one task a node with '$how': $(cat err)"
    is "$(grep -c ^SLURM_PROCID= steps)/$(grep -c ^SLURM_GPUS_ON_NODE=4 steps)" "2/2" "a step's tasks have all its GPUs"
    is "$(grep -E '^(SLURM_NTASKS|SLURM_GPUS_PER_TASK|TOPT_NTASKS)=' out | sort | tr '\n' ' ')" "SLURM_NTASKS=2 TOPT_NTASKS=2 " \
        "and the script knows with '$how'"
done
for how in "-n1" "--ntasks-per-gpu=1 -n8" "--ntasks-per-node=1 --topt-tasks=gpu -n1"; do
    [ "${how#*tasks=gpu}" = "$how" ] || { plan 4 1; plan 2 1; }
    job=$(sbatch --parsable $how $topt -o out tasks.sh 2>err)
    wait_job "$job"
    is "$(cut -d' ' -f2 out | sort -u)" "$(field "$job" NumTasks)" "a task for each GPU with '$how': $(cat err)"
done
plan 2 4

# --- a job that is resized while it waits keeps no plan for other ranks
job=$(sbatch --parsable --hold $topt -o out --wrap 'env; srun -n1 -N1 env | grep -c TOPT_PLAN' 2>err)
scontrol update "JobId=$job" NumNodes=1-1 NumTasks=4 && scontrol update "JobId=$job" NumCPUs=4
scontrol release "$job"
wait_job "$job"
is "$(grep -c TOPT_PLAN= out)/$(grep -c '^0$' out)" "0/1" "a resized job has no plan, nor have its steps"
like "$(cat out)" "plan p-0123456789abcdef is for 2 nodes, and the job has 1: it was resized" "and says why"

# --- several at once
plan 1 2
for i in 1 2 3 4 5 6; do
    sbatch --parsable $topt -o /dev/null --wrap 'sleep 0.1' >job.$i 2>/dev/null &
    pids[$i]=$!
done
for i in 1 2 3 4 5 6; do
    wait "${pids[$i]}"
done
is "$(for i in 1 2 3 4 5 6; do shape "$(cat job.$i)"; done | sort -u)" "1/2/gres:gpu:2" "six jobs at once"
for i in 1 2 3 4 5 6; do
    wait_job "$(cat job.$i)"
done

# --- jobs within jobs
cat >nested.sh <<JOB
#!/bin/bash
sbatch --parsable -o plain.out env.sh >plain.id
sbatch --parsable -n 8 $topt -o sized.out env.sh >sized.id 2>sized.err
srun $topt /bin/echo step
JOB
plan 1 4
job=$(sbatch --parsable $topt -o out nested.sh 2>err)
wait_job "$job"
is "$(grep -c '^step$' out)" 4 "a step with --topt options runs as a step"
like "$(cat out)" "topt: --topt-mode sizes jobs, not the steps in them" "and is told so"
wait_job "$(cat plain.id)"
wait_job "$(cat sized.id)"
is "$(grep -cE '^(SLURM_)?TOPT_(PLAN|GPUS)' plain.out)" 0 "a job's own plain sbatch inherits no plan"
is "$(shape "$(cat sized.id)")" "1/4/gres:gpu:4" "and its sbatch with topt is sized"
like "$(cat sized.out)" "TOPT_PLAN=p-0123456789abcdef" "and has its plan"

# --- without topt nothing changes
: >requests
job=$(sbatch --parsable -n 3 -o out env.sh 2>err)
wait_job "$job"
is "$(cat err)$(grep -c TOPT_ out)$(cat requests)$(field "$job" NumTasks)" "03" "a job without --topt options is left alone"

# --- Open MPI over both nodes
if command -v mpicc >/dev/null && [ -f "${TOPT_MPI_HELLO:-}" ] && srun --mpi=list 2>&1 | grep -q pmix; then
    plan 2 2
    job=$(sbatch --parsable $topt -o out --wrap "srun --mpi=pmix '$TOPT_MPI_HELLO'" 2>err)
    wait_job "$job"
    is "$(sort out | tr '\n' ';')" "0 of 4, sum 6;1 of 4, sum 6;2 of 4, sum 6;3 of 4, sum 6;" "MPI ranks are the plan's GPUs"
fi

is "$(settled_nodes)" idle "no node was drained"
finish
