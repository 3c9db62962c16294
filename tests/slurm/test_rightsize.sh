#!/bin/bash
# test_rightsize.sh - jobs with --topt-elastic: what travels with them, what they run by after they were resized by topt
# rightsize, by hand or by Slurm itself, where nothing travels, and the way back.
. "$(dirname "$0")/planner.sh"
start_all
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
# So that larger numbers than four are no use, and Slurm is not asked to choose.
topt="--topt-mode=mini-time --topt-tasks=gpu --topt-model=model.json --topt-batch=8 --topt-seq=64 --topt-elastic --topt-min-efficiency=0.3"
# What a job runs by: its plan's numbers, and those of the plan that topt launch finds.
cat >script.sh <<S
#!/bin/bash
echo "ran \$TOPT_GPUS \$TOPT_NODES \$TOPT_NTASKS \$SLURM_NTASKS" "\$($TOPT launch --env | tr ' ' '\n' | grep ^TOPT_GPUS=)"
echo "stale \$TOPT_STALE"
S
log=$work/log.jsonl
waits() # JOB: until Slurm has said that it waits for resources
{
    local left=200
    while [ "$(field "$1" Reason)" != Resources ] && [ $left -gt 0 ]; do
        left=$((left - 1))
        sleep 0.05
    done
}
rightsize()
{
    "$TOPT" rightsize --log "$log" "$@" >said 2>&1
}

# --- what is said, and what the comment says; two GPUs of each node are idle
busy=$(sbatch --parsable -N2 -n4 --gpus-per-node=2 --ntasks-per-node=2 --wrap "sleep 600")
four=$(sbatch --parsable --comment="my own" --time=20 --topt-gpus=4 $topt -o out.4 script.sh 2>err)
like "$(cat err)" "plans for 1, 2 and 8 GPUs travel with the job: it may be resized while it waits" "what travels is said"
like "$(scontrol -o show job "$four")" "Comment=my own topt-elastic=1x4:" "and stands behind the job's own comment"
sbatch --topt-gpus=4 $topt --topt-batch=4 --topt-dry-run script.sh 2>err
like "$(grep travel err)" "plans for 1 and 2 GPUs travel" "no plan that needs more of the script travels: 8 GPUs would split operators"
hand=$(sbatch --parsable --hold --topt-gpus=4 $topt -o out.hand script.sh 2>err)
none=$(sbatch --parsable --hold --topt-gpus=4 $topt --topt-elastic=1,2 -o out.none script.sh 2>err)
array=$(sbatch --parsable --hold --array=1-2 --topt-gpus=4 $topt -o out.array.%a script.sh 2>err)
plain=$(sbatch --parsable --topt-gpus=4 $topt --topt-elastic=no -o /dev/null script.sh 2>err)
is "$(wc -l <err)/$(field "$plain" Comment)" "1/" "a job that did not agree says nothing"
waits "$four"

# --- a dry run
rightsize
is "$?" 0 "a dry run: $(grep -E "^ +$four " said)"
like "$(cat said)" "4 (1x4)    2 (1x2)" "a shape that fits now is proposed"
like "$(cat said)" "1 would be changed: --apply does it" "and only that one"
is "$(shape "$four")/$(grep -c '"result":"dry run"' "$log")" "1/4/gres:gpu:4/1" "nothing is changed, and the log says so"
rightsize --json
is "$(python3 -c 'import json; d = json.load(open("said")); print([(j["gpus"], j["gpus_then"]) for j in d["jobs"] if j["job"] == '"$four"'])')" \
    "[(4, 2)]" "the same as JSON"

# --- done, undone, and left alone from then on; this scontrol holds the job, so that it does not start while it is looked at
cat >held <<'S'
#!/bin/bash
[ "$1" != update ] || scontrol hold "${2#JobId=}"
exec scontrol "$@"
S
chmod 755 held
rightsize --apply --job "$four" --max-gpus 1 --scontrol ./held
is "$?/$(shape "$four")/$(field "$four" TimeLimit)" "0/1/1/gres:gpu:1/00:39:00" "--apply: $(grep "^job" said)"
like "$(scontrol -o show job "$four")" "NumCPUs=1 NumTasks=1 CPUs/Task=1 " "CPUs follow"
is "$(grep -c '"result":"done"' "$log")" 1 "the log has it"
rightsize --undo
like "$(cat said)" "the log has what it was before" "--undo: $(grep "^ *$four" said)"
rightsize --undo --apply
is "$?/$(shape "$four")/$(field "$four" TimeLimit)" "0/1/4/gres:gpu:4/00:20:00" "taken back"

# --- a run that is killed in the middle of a change: the next one puts the job back
cat >killer <<'S'
#!/bin/bash
if [ "$1" = update ]; then
    scontrol update "$2" "$3" "$4" "$5"
    kill -9 $PPID
    exit
fi
exec scontrol "$@"
S
chmod 755 killer
killed=$(sbatch --parsable --topt-gpus=4 $topt -o /dev/null script.sh 2>err)
waits "$killed"
before=$(shape "$killed")/$(field "$killed" NumTasks)
"$TOPT" rightsize --log "$log" --apply --job "$killed" --scontrol ./killer >said 2>&1
status=$?
scontrol hold "$killed"
is "$status/$(tail -1 "$log" | grep -c '"result":"begun"')" "137/1" "killed while it changes a job: $(field "$killed" NumTasks) tasks of $before"
rightsize --apply --job 0
is "$(shape "$killed")/$(field "$killed" NumTasks)" "$before" "the next run puts it back"
like "$(tail -1 "$log")" '"result":"put back"' "and the log says so"
scancel "$killed"

# --- who waits for what
"$TOPT" queue >said 2>&1
is "$?" 0 "topt queue: $(grep -E "^ +$plain " said)"
like "$(grep -E "^ +$plain " said)" "as it asked" "jobs that did not agree are in it, too"
like "$(head -1 said)" "GPUs are idle" "and what is idle"

scancel "$plain"
scontrol release "$four"
waits "$four"
rightsize --apply --settle 0
is "$?/$(shape "$four")" "0/1/4/gres:gpu:4" "and left alone: $(grep "^ *$four" said)"
scancel "$four"

# --- an array, all of its tasks at once; two GPUs of each node are idle
scontrol release "$array"
waits "$array"
rightsize --apply --job "$array"
like "$(cat said)" "with 2 GPUs for each of its 2 tasks" "an array: $(grep "^ *$array" said)"
wait_job "$array"
is "$(cat out.array.1 out.array.2 2>/dev/null | grep -c "^ran 2 1 2 2 TOPT_GPUS=2")" 2 "both of its tasks run by the plan of two: $(grep "^job" said)"
array=$(sbatch --parsable --array=1-2 --topt-gpus=2 $topt -o /dev/null --wrap "sleep 600" 2>err)
left=200
while [ "$(squeue -h -j "$array" -t RUNNING | wc -l)" = 0 ] && [ $left -gt 0 ]; do
    left=$((left - 1))
    sleep 0.05
done
scontrol update "JobId=$array" NumNodes=1-1 NumTasks=1 TasksPerNode=1 Gres=gpu:1 NumCPUs=1 MinCPUsNode=1 >said 2>&1
like "$(cat said)" "not supported for job arrays" "Slurm resizes none of which a task has started"
scancel "$array"
wait_job "$array"

# --- who may not change others' jobs is told so
job=$(sbatch --parsable --topt-gpus=4 $topt -o out script.sh 2>err)
waits "$job"
if su nobody -s /bin/bash -c "test -x '$TOPT'"; then
    su nobody -s /bin/bash -c "SLURM_CONF=$SLURM_CONF '$TOPT' rightsize --apply --log /dev/null" >said 2>&1
    is "$?/$(shape "$job")" "1/1/4/gres:gpu:4" "nobody changes it"
    like "$(cat said)" "job $job: refused: " "by Slurm: $(grep "^job" said)"
else
    ok "who may not change jobs # SKIP only root can start $TOPT" true
fi

# --- a job starts in the shape that it was given, by the plan of it
rightsize --apply --settle 0
wait_job "$job"
is "$(grep ran out)/$(grep stale out)" "ran 2 1 2 2 TOPT_GPUS=2/stale " "it runs by the plan of two: $(head -1 out)"
rightsize --undo --apply
is "$?/$(grep -c "^ *$job " said)" "0/0" "what has run is not undone"
scancel "$busy"
wait_job "$busy"

# --- by hand; to a shape that no plan is of; where there is no plugin
by_hand() # JOB GPUS
{
    scontrol update "JobId=$1" NumNodes=1-1 NumTasks="$2" TasksPerNode="$2" Gres="gpu:$2" NumCPUs="$2" MinCPUsNode="$2"
    scontrol release "$1"
    wait_job "$1"
}
by_hand "$hand" 2
is "$(grep ran out.hand)" "ran 2 1 2 2 TOPT_GPUS=2" "resized by hand it runs by the plan of two"
by_hand "$none" 3
like "$(grep -c "^ran   " out.none)$(grep stale out.none)" "1stale plan p-" "of three GPUs none travels: it runs without"
cp c/plugstack.conf with && : >c/plugstack.conf
TOPT_URL=$url "$TOPT" sbatch --hold $topt --topt-gpus=4 -o out script.sh >said 2>err
job=$(tail -1 said | tr -dc 0-9)
by_hand "$job" 2
like "$(cat out)" "TOPT_GPUS=2" "topt sbatch without a plugin: topt launch takes the plan of two"
TOPT_URL=$url "$TOPT" sbatch --hold $topt --topt-gpus=4 -o out script.sh >said 2>err
job=$(tail -1 said | tr -dc 0-9)
by_hand "$job" 3
like "$(cat out)" "is for 1 node of 4 GPUs, and the job has 1 of 3: it was resized" "and of three it says so"
cp with c/plugstack.conf

# --- Slurm chooses among numbers of nodes
case $(sbatch --version | tr -dc 0-9.) in
    2[012].*) ok "Slurm takes numbers of nodes # SKIP from 23.02 on" true ;;
    *)
        job=$(sbatch --parsable --topt-gpus=8 $topt -o out script.sh 2>err)
        like "$(cat err)" "Slurm starts it on as many nodes as are free of 1,2" "a job that takes one node or two"
        wait_job "$job"
        is "$(grep ran out)" "ran 8 2 8 8 TOPT_GPUS=8" "two are free: it runs on them"
        busy=$(sbatch --parsable -N1 -n1 --gpus-per-node=1 --ntasks-per-node=1 --wrap "sleep 600")
        job=$(sbatch --parsable --topt-gpus=8 $topt -o out script.sh 2>err)
        wait_job "$job"
        is "$(grep ran out)" "ran 4 1 4 4 TOPT_GPUS=4" "one is free: it runs by the plan of one"
        scancel "$busy"
        wait_job "$busy"
        ;;
esac
is "$(settled_nodes)" idle "no node was drained"
finish
