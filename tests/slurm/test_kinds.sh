#!/bin/bash
# test_kinds.sh - jobs with --topt-elastic=kinds: plans for the GPUs of other partitions travel with them, and they run by
# them where topt rightsize moves them there; what does not travel, and the way back.
. "$(dirname "$0")/planner.sh"
nodes="n1 CPUs=16 RealMemory=4000 Gres=gpu:a:4
n2 CPUs=16 RealMemory=4000 Gres=gpu:b:4
PartitionName=fast Nodes=n1 Default=YES MaxTime=INFINITE State=UP
PartitionName=slow Nodes=n2 MaxTime=INFINITE State=UP
PartitionName=typed Nodes=n2 MaxTime=INFINITE State=UP"
planner_waits=1
start_all
printf '%s\n' "fast * lab-cpu" "slow * v100-dgx1-2x8" "typed b v100-dgx1-2x8" >map
start_toptd --site-map "$work/map"
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
topt="--topt-mode=mini-time --topt-gpus=4 --topt-tasks=gpu --topt-model=model.json --topt-batch=8 --topt-seq=64 --topt-precision=f32 --time=20"
cat >script.sh <<S
#!/bin/bash
echo "ran \$SLURM_JOB_PARTITION \$TOPT_GPUS \$SLURM_NTASKS" "\$($TOPT launch --env | tr ' ' '\n' | grep ^TOPT_GPUS=)"
echo "stale \$TOPT_STALE"
case \$SLURM_TOPT_PLAN_1x4_1 in *"PLAN=\$TOPT_PLAN "*) echo "by the plan of the kind" ;; esac
launched=\$($TOPT launch --env | tr ' ' '\n' | grep ^TOPT_PLAN_ID=)
case \$SLURM_TOPT_PLAN_1x4_1 in "\${launched#TOPT_} "*) echo "launched by the plan of the kind" ;; esac
S
log=$work/log.jsonl
waits() # JOB: until Slurm has said that it waits for nodes
{
    local left=200
    while [ "$(field "$1" Reason)" != Resources ] && [ "$(field "$1" Reason)" != Priority ] && [ $left -gt 0 ]; do
        left=$((left - 1))
        sleep 0.05
    done
}
rightsize()
{
    "$TOPT" rightsize --log "$log" --max-slowdown 1000 "$@" >said 2>&1
}

# --- what travels, and what does not
busy=$(sbatch --parsable -p fast -N1 -n4 --gpus-per-node=4 --ntasks-per-node=4 --wrap "sleep 600")
job=$(sbatch --parsable -p fast,slow $topt --topt-elastic=kinds -o out script.sh 2>err)
like "$(cat err)" "plans for GPUs of other kinds travel with the job: 4 in partition slow; it may be moved there" "what travels is said: $(head -1 err)"
like "$(field "$job" Comment)" "@1;kinds=fast,slow" "the comment says it"
is "$(field "$job" Partition)" fast "it waits for what it was planned for"
both=$(sbatch --parsable --hold -p fast,slow $topt --topt-elastic=kinds,1,2 -o /dev/null script.sh 2>err)
like "$(cat err)" "plans for 1 and 2 GPUs travel with the job" "numbers and kinds"
like "$(cat err)" "4 in partition slow" "and both travel"
sbatch --hold -p fast,typed $topt --topt-elastic=kinds -o /dev/null script.sh >id 2>err
like "$(cat err)" "no plan for another number of GPUs travels" "none of GPUs whose type is set on the job: Slurm changes no type"
sbatch --hold -p fast $topt --topt-elastic=kinds -o /dev/null script.sh >id 2>err
like "$(cat err)" "no plan for another number of GPUs travels" "none where it names one partition"
plain=$(sbatch --parsable -p fast,slow $topt --topt-elastic=4 -o /dev/null script.sh 2>err)
waits "$job"
waits "$plain"

# --- done and undone; this scontrol holds the job, so that it does not start while it is looked at
cat >held <<'S'
#!/bin/bash
[ "$1" != update ] || scontrol hold "${2#JobId=}"
exec scontrol "$@"
S
chmod 755 held
rightsize
like "$(cat said)" "in partition slow with 4 GPUs" "a dry run: $(grep -E "^ +$job " said)"
rightsize --apply --scontrol ./held
is "$?/$(shape "$job")/$(field "$job" Partition)" "0/1/4/gres:gpu:4/slow" "moved: $(grep "^job" said)"
is "$(field "$plain" Partition)" fast "who did not agree stays"
like "$(tail -1 "$log")" '"partition":"slow"' "the log has both partitions"
rightsize --undo --apply
is "$?/$(field "$job" Partition)/$(field "$job" TimeLimit)" "0/fast/00:20:00" "taken back: $(grep "^job" said)"
scancel "$job" "$plain"

# --- it runs there
job=$(sbatch --parsable -p fast,slow $topt --topt-elastic=kinds -o out script.sh 2>err)
waits "$job"
rightsize --apply
wait_job "$job"
is "$(grep ran out)/$(grep stale out)" "ran slow 4 4 TOPT_GPUS=4/stale " "it runs there: $(grep "^job" said)"
is "$(grep -c "by the plan of the kind" out)" 2 "by the plan of these GPUs"

# --- an array as a whole
array=$(sbatch --parsable -p fast,slow --array=1-2 $topt --topt-elastic=kinds -o out.%a script.sh 2>err)
waits "$array"
rightsize --apply
wait_job "$array"
is "$(cat out.1 out.2 | grep -c "^ran slow 4 4 TOPT_GPUS=4")" 2 "both tasks of an array run there: $(grep "^job" said)"

# --- where there is no plugin
cp c/plugstack.conf with && : >c/plugstack.conf
rm out
TOPT_URL=$url "$TOPT" sbatch -p fast,slow $topt --topt-elastic=kinds -o out script.sh >said.sbatch 2>err
job=$(tail -1 said.sbatch | tr -dc 0-9)
like "$(cat err)" "4 in partition slow" "topt sbatch says what travels"
waits "$job"
rightsize --apply
wait_job "$job"
is "$(grep -c "^ran slow " out)/$(grep -c "^launched by the plan of the kind" out)" 1/1 "topt launch has the plan there: $(grep "^job" said)"
cp with c/plugstack.conf
scancel "$busy"
wait_job "$busy"
is "$(settled_nodes)" idle "no node was drained"
finish
