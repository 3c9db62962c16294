#!/bin/bash
# test_rightsize.sh - jobs with --topt-elastic: what travels with them, what they run by after they were resized by topt
# rightsize, by hand or by what takes no plan, and the way back.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/planner.sh"
need_slurm
need_planner
start_all
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
topt="--topt-mode=mini-time --topt-model=model.json --topt-batch=8 --topt-seq=64 --topt-elastic --topt-min-efficiency=0.1"
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

# --- what is said, and what the comment says
busy=$(sbatch --parsable -N1 -n3 --gpus-per-node=3 --ntasks-per-node=3 --wrap "sleep 600")
eight=$(sbatch --parsable --comment="my own" --time=20 --topt-gpus=8 $topt -o out.8 script.sh 2>err)
like "$(cat err)" "plans for 1, 2 and 4 GPUs travel with the job: it may be resized while it waits" "what travels is said"
like "$(scontrol -o show job "$eight")" "Comment=my own topt-elastic=2x4:" "and stands behind the job's own comment"
hand=$(sbatch --parsable --hold --topt-gpus=8 $topt -o out.hand script.sh 2>err)
none=$(sbatch --parsable --hold --topt-gpus=4 $topt --topt-elastic=1,2 -o out.none script.sh 2>err)
array=$(sbatch --parsable --array=1-2 --topt-gpus=8 $topt -o /dev/null script.sh 2>err)
plain=$(sbatch --parsable --topt-gpus=8 $topt --topt-elastic=no -o /dev/null script.sh 2>err)
is "$(wc -l <err)/$(field "$plain" Comment)" "1/" "a job that did not agree says nothing"
waits "$eight"

# --- a dry run
rightsize
is "$?" 0 "a dry run: $(grep -E "^ +$eight " said)"
like "$(cat said)" "8 (2x4)    4 (1x4)" "a shape that fits now is proposed"
like "$(cat said)" "1 would be changed: --apply does it" "and only that one"
is "$(shape "$eight")/$(grep -c '"result":"dry run"' "$log")" "2/8/gres:gpu:4/1" "nothing is changed, and the log says so"
rightsize --json && is "$(python3 -c 'import json; d = json.load(open("said")); print([(j["gpus"], j["gpus_then"]) for j in d["jobs"] if j["job"] == '"$eight"'])')" "[(8, 4)]" "the same as JSON"

# --- done, undone, and left alone from then on; this scontrol holds the job, so that it does not start while it is looked at
cat >held <<'S'
#!/bin/bash
[ "$1" != update ] || scontrol hold "${2#JobId=}"
exec scontrol "$@"
S
chmod 755 held
rightsize --apply --job "$eight" --max-gpus 1 --scontrol ./held
is "$?/$(shape "$eight")/$(field "$eight" TimeLimit)" "0/1/1/gres:gpu:1/00:37:00" "--apply: $(grep "^job" said)"
like "$(scontrol -o show job "$eight")" "NumCPUs=1 NumTasks=1 CPUs/Task=1 " "CPUs follow"
is "$(grep -c '"result":"done"' "$log")" 1 "the log has it"
rightsize --undo
like "$(cat said)" "the log has what it was before" "--undo: $(grep "^ *$eight" said)"
rightsize --undo --apply
is "$?/$(shape "$eight")/$(field "$eight" TimeLimit)" "0/2/8/gres:gpu:4/00:20:00" "taken back"
scancel "$plain" "$array"
scontrol release "$eight"
waits "$eight"
rightsize --apply --settle 0
is "$?/$(shape "$eight")" "0/2/8/gres:gpu:4" "and left alone: $(grep "^ *$eight" said)"
scancel "$eight"

# --- a job starts in the shape that it was given, by the plan of it
job=$(sbatch --parsable --topt-gpus=8 $topt -o out script.sh 2>err)
waits "$job"
rightsize --apply --settle 0
wait_job "$job"
is "$(grep ran out)/$(grep stale out)" "ran 4 1 4 4 TOPT_GPUS=4/stale " "it runs by the plan of four: $(head -1 out)"
rightsize --undo --apply
is "$?/$(grep -c "^ *$job " said)" "0/0" "what has run is not undone"

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
TOPT_URL=$url "$TOPT" sbatch --hold $topt --topt-gpus=8 -o out script.sh >said 2>err
job=$(tail -1 said | tr -dc 0-9)
by_hand "$job" 2
like "$(cat out)" "TOPT_GPUS=2" "topt sbatch without a plugin: topt launch takes the plan of two"
TOPT_URL=$url "$TOPT" sbatch --hold $topt --topt-gpus=8 -o out script.sh >said 2>err
job=$(tail -1 said | tr -dc 0-9)
by_hand "$job" 3
like "$(cat out)" "is for 2 nodes of 4 GPUs, and the job has 1 of 3: it was resized" "and of three it says so"
cp with c/plugstack.conf

# --- who may not change others' jobs is told so
if su nobody -s /bin/bash -c "test -x '$TOPT'"; then
    job=$(sbatch --parsable --topt-gpus=8 $topt -o out script.sh 2>err)
    waits "$job"
    su nobody -s /bin/bash -c "SLURM_CONF=$SLURM_CONF '$TOPT' rightsize --apply --log /dev/null" >said 2>&1
    is "$?/$(shape "$job")" "1/2/8/gres:gpu:4" "nobody changes it"
    like "$(cat said)" "job $job: refused: " "by Slurm: $(grep "^job" said)"
    scancel "$job"
else
    ok "who may not change jobs # SKIP only root can start $TOPT" true
fi
is "$(sinfo -h -N -o %T | sort -u | tr '\n' ' ')" "idle mixed " "no node was drained"
scancel "$busy"
finish
