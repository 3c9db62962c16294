#!/bin/bash
# test_carry.sh - the plan travels with the job: what was submitted starts under its plan with toptd gone.
. "$(dirname "$0")/planner.sh"
unshare -n true 2>/dev/null && alone="unshare -n" || alone=

start_all
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
topt="--topt-mode=mini-time --topt-gpus=1 --topt-model=model.json --topt-hw=lab-cpu --topt-batch=8 --topt-seq=64
    --topt-framework=topt"

# What a job does with its plan: where toptd is gone, and in a network of its own as well.
cat >job.sh <<JOB
#!/bin/bash
[ "\${SLURM_RESTART_COUNT:-0}" = "\${WANT_RESTARTS:-0}" ] || exit 0
srun /bin/bash -c '$alone "$TOPT" run "\$TOPT_PLAN" --data synthetic --steps 1 && echo "ran \$TOPT_PLAN"'
JOB
cat >launch.sh <<JOB
#!/bin/bash
"$TOPT" explain "\$TOPT_PLAN" && "$TOPT" simulate "\$TOPT_PLAN" --json | grep -c '"time_ns"'
exec $alone "$TOPT" launch --for torchrun -o "files-\$SLURM_JOB_ID"
JOB
chmod 755 job.sh launch.sh

# --- submitted while toptd is there, held until it is gone
# shellcheck disable=SC2086 # options are words
{
    plain=$(sbatch --parsable --hold $topt -o plain.out job.sh 2>err)
    id=$(sed -n 's/.*; plan \(p-[0-9a-f]*\).*/\1/p' err)
    like "$id" p- "a plan: $(head -1 err)"
    none=$(sbatch --parsable --hold --export=NONE $topt -o none.out job.sh 2>err)
    array=$(sbatch --parsable --hold --array=1-2 $topt -o array.%a.out job.sh 2>err)
    again=$(WANT_RESTARTS=1 sbatch --parsable --hold --requeue $topt -o again.out job.sh 2>err)
    torch=$(sbatch --parsable --hold ${topt/framework=topt/framework=pytorch} -o torch.out launch.sh 2>err)
    broken=$(sbatch --parsable --hold $topt -o broken.out --wrap "SLURM_TOPT_PLAN_DOC=1.x exec ./job.sh" 2>err)
    salloc $topt /bin/bash -c "kill $planner; while kill -0 $planner 2>/dev/null; do sleep 0.05; done; ./job.sh" >salloc.out 2>err
}
wait "$planner"
planner=
ok "toptd is gone" [ ! -S toptd.sock ] || rm -f toptd.sock
is "$(grep -c "^ran $id\$" salloc.out)" 1 "salloc's step starts under its plan: $(tail -1 err)"
scontrol release "$plain" "$none" "$array" "$again" "$torch" "$broken"
for job in "$plain" "$none" "$array" "$torch" "$broken"; do
    wait_job "$job"
done
is "$(grep -c "^ran $id\$" plain.out)" 1 "a job starts under its plan: $(tail -1 plain.out)"
is "$(grep -c "^ran $id\$" none.out)" 1 "under --export=NONE: $(tail -1 none.out)"
is "$(cat array.1.out array.2.out | grep -c "^ran $id\$")" 2 "so does each of an array"
wait_job "$again"
is "$(cat again.out)" "" "the first start of the other did nothing"
left=60
until squeue -h -j "$again" -o %T 2>/dev/null | grep -qx "PENDING\|RUNNING" || [ $left = 0 ]; do
    left=$((left - 1))
    scontrol requeue "$again" 2>/dev/null # refused while its end is not all written down
    sleep 0.5
done
# Slurm lets it wait for two minutes, from whenever it has put it back: asked for now until it has begun.
left=240
until grep -q "^ran $id\$" again.out || [ $left = 0 ]; do
    left=$((left - 1))
    scontrol update "JobId=$again" StartTime=now 2>/dev/null
    sleep 0.5
done
is "$(grep -c "^ran $id\$" again.out)" 1 "after a requeue: $(tail -1 again.out)"
like "$(cat torch.out)" "files-$torch/" "topt launch writes the files of torchrun"
like "$(cat torch.out)" "Why: fastest on 1 GPU" "topt explain tells of the carried plan: $(head -1 torch.out)"
like "$(cat broken.out)" "the document that is carried is damaged" "a damaged plan is named"
is "$(grep -c '^ran' broken.out)" 0 "and not run"
finish
