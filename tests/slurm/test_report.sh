#!/bin/bash
# test_report.sh - a job tells what it measured as it ends, and topt report shows it beside what its plan had said.
. "$(dirname "$0")/planner.sh"

start_all
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
topt="--topt-mode=mini-time --topt-gpus=1 --topt-model=model.json --topt-batch=8 --topt-seq=64 --topt-framework=topt"
cat >job.sh <<JOB
#!/bin/bash
srun "$TOPT" run "\$TOPT_PLAN" --data synthetic --steps 3
JOB
chmod 755 job.sh
export TOPT_URL=$url
job=$(sbatch --parsable $topt -o out job.sh 2>err)
quiet=$(TOPT_REPORT=1 sbatch --parsable $topt -o said job.sh 2>err)
wait_job "$job" && wait_job "$quiet"
sed -i 's/$/ report=1/' c/plugstack.conf
site=$(sbatch --parsable $topt -o site.out job.sh 2>err)
user=$(TOPT_REPORT=0 sbatch --parsable $topt -o user.out job.sh 2>err)
wait_job "$site" && wait_job "$user"
sed -i 's/ report=1$//' c/plugstack.conf
is "$(grep -c '^topt: step' site.out)/$(grep -c '^topt: step' user.out)" "1/0" "a line in every job's output where the site has report=1, unless the job says no"
"$TOPT" report "$job" >report 2>err
is "$?" 0 "topt report: $(head -1 report)$(cat err)"
ok "it says both" grep -qE '^step [0-9.]+ m?s predicted, [0-9.]+ m?s measured \([+-][0-9]+ %\); memory [0-9.]+ [KM]iB predicted, [0-9.]+ [KM]iB measured' report
ok "and the plan" grep -q '^plan p-' report
is "$(cat err)" "" "and nothing went wrong"
torch=$(sbatch --parsable --topt-mode=mini-parallelism --topt-model=model.json --topt-batch=8 --topt-seq=64 -o torch.out \
    --wrap '"$TOPT" client observe "$TOPT_PLAN" --step-seconds 0.07 --steps 20' --export=ALL,TOPT="$TOPT" 2>err)
wait_job "$torch"
like "$("$TOPT" report "$torch" 2>&1)" "next time: 2 GPUs would be " "and what else to ask"
is "$(grep -c '^topt: step' out)/$(grep -c '^topt: step' said)" "0/1" "a line in the job's output where \$TOPT_REPORT asks for it"
is "$("$TOPT" client report "$quiet" --json | grep -c '"steps": 3')" 1 "topt client report is the same"
"$TOPT" report 999999 >out 2>err
is "$?/$(cat out)" "1/" "a job that told nothing: $(cat err)"
like "$(cat err)" "topt client observe" "says how it would"
"$TOPT" client observe "$(sed -n 's/^plan //p' report)" --job 77 --step-seconds 0.05 --peak-memory 40MiB >out 2>err
like "$(cat out)" "50.00 ms measured" "another script tells: $(cat out err)"
"$TOPT" report 77 >report 2>err
like "$(cat report)" "memory" "and topt report shows it: $(head -1 report)"
"$TOPT" client observe p-x >out 2>err
like "$(cat err)" "--job is needed" "outside of a job it must be named"
finish
