#!/bin/bash
# test_requeue.sh - a running job that got more GPUs than it asked for, and agreed to be requeued, is stopped by topt rightsize
# --requeue where another would be late for it, and waits in its place with what it asked for; also when the run is killed.
. "$(dirname "$0")/planner.sh"
start_all
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
topt="--topt-mode=mini-time --topt-tasks=gpu --topt-model=model.json --topt-batch=8 --topt-seq=64 --topt-min-efficiency=0.1"
printf '#!/bin/bash\nsleep 600\n' >script.sh
log=$work/log.jsonl
rightsize()
{
    "$TOPT" rightsize --log "$log" --requeue --settle 0 "$@" >said 2>&1
}
state() # JOB: what became of it
{
    echo "$(field "$1" JobState) $(field "$1" Restarts)"
}
# What a job that waits again asks for: NumNodes is still what it ran on, until Slurm looks at it.
asks() # JOB
{
    echo "$(scontrol -o show job "$1" | grep -oE " (Req)?TRES=[^ ]*" | head -1 | sed 's/.*node=\([0-9]*\).*/\1/')/$(shape "$1" | cut -d/ -f2-)"
}
# A job that asked for two GPUs and runs on all eight.
grown()
{
    job=$(sbatch --parsable --requeue --hold --time=60 --topt-gpus=2 $topt --topt-elastic="$1" -o /dev/null script.sh 2>err)
    scontrol update JobId="$job" NumNodes=2-2 NumTasks=8 TasksPerNode=4 Gres=gpu:4 NumCPUs=8 MinCPUsNode=4
    scontrol release "$job"
    wait_state "$job" RUNNING
}
wait_state() # JOB STATE
{
    local left=400
    while [ "$(field "$1" JobState)" != "$2" ] && [ $left -gt 0 ]; do
        left=$((left - 1))
        sleep 0.05
    done
}

# --- who did not agree runs on
grown 8
late=$(sbatch --parsable -N1 -n4 --gpus-per-node=4 --ntasks-per-node=4 --time=5 --wrap "sleep 600")
rightsize --apply
is "$?/$(state "$job")" "0/RUNNING 0" "a job that did not agree to be requeued runs on"
scancel "$job" "$late"
wait_job "$job"
wait_job "$late"

# --- who did is stopped
grown requeue,8
like "$(cat err)" "it may be stopped, and wait again" "that it may is said at submission"
like "$(scontrol -o show job "$job")" ";requeue" "and stands in the job's comment"
priority=$(field "$job" Priority)
late=$(sbatch --parsable -N1 -n4 --gpus-per-node=4 --ntasks-per-node=4 --time=5 --wrap "sleep 600")
rightsize
is "$?/$(state "$job")" "0/RUNNING 0" "a dry run: $(grep -E "^ +$job " said)"
like "$(cat said)" "it has 8 GPUs and asked for 2; job $late would end" "and why"
"$TOPT" rightsize --log "$log" --settle 0 --apply >said 2>&1
is "$(state "$job")" "RUNNING 0" "without --requeue it runs on"
rightsize --apply
is "$?/$(state "$job")" "0/PENDING 1" "it is stopped: $(grep "^job $job" said)"
is "$(asks "$job")/$(field "$job" Priority)" "1/2/gres:gpu:2/$priority" "and waits with what it asked for, in its place"
wait_state "$late" RUNNING
is "$(field "$late" JobState)" RUNNING "the job that was late runs"
like "$(scontrol show reservation)" "No reservations" "nothing is reserved any more"
like "$(tail -1 "$log")" '"result":"done","stop":true' "the log has it"
eligible=$(($(date -d "$(field "$job" EligibleTime)" +%s) - $(date -d "$(field "$job" SubmitTime)" +%s)))
ok "Slurm starts it again $eligible s after it was stopped, at the earliest" [ "$eligible" -gt 0 ]
scancel "$job" "$late"
wait_job "$job"
wait_job "$late"

# --- a run that is killed once the job is held: the next one, which stops none itself, goes on
cat >killer <<'S'
#!/bin/bash
if [ "$1" = requeuehold ]; then
    scontrol "$@"
    kill -9 $PPID
    exit
fi
exec scontrol "$@"
S
chmod 755 killer
grown requeue,8
late=$(sbatch --parsable -N1 -n4 --gpus-per-node=4 --ntasks-per-node=4 --time=5 --wrap "sleep 600")
rightsize --apply --scontrol ./killer
is "$?/$(grep -c '"result":"begun"' "$log")" "137/2" "killed once the job is held"
"$TOPT" rightsize --log "$log" --apply --job 0 >said 2>&1
is "$?/$(state "$job")/$(field "$job" Reason | grep -c held)" "0/PENDING 1/0" "the next run lets it wait"
is "$(asks "$job")" "1/2/gres:gpu:2" "with what it asked for"
like "$(scontrol show reservation)" "No reservations" "and gives the nodes back"

finish
