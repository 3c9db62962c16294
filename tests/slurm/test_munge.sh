#!/bin/bash
# test_munge.sh - one toptd for a whole cluster: sbatch asks it over TCP by MUNGE, and so does the job, wherever it runs.
. "$(dirname "$0")/lib.sh"
need_slurm
[ -x "${TOPTD:-}" ] && [ -x "${TOPT:-}" ] || skip_all "toptd is not built"

start_planner()
{
    "$TOPTD" --socket "$work/toptd.sock" --state "$work/state" --hw lab-cpu --auth munge --munge-socket \
        "$work/c/munge/socket" --listen 127.0.0.1:0 --port-file "$work/port" >"$work/log" 2>&1 7>&- &
    planner=$!
    local left=200
    while [ ! -s "$work/port" ] && [ $left -gt 0 ]; do
        left=$((left - 1))
        sleep 0.05
    done
    if [ ! -s "$work/port" ] && grep -q 'without libmunge' "$work/log"; then
        skip_all "built without MUNGE"
    fi
    url=http://127.0.0.1:$(cat "$work/port")
}

stop_planner()
{
    kill "$planner" && wait "$planner"
}

plugstack() # ARGS: the plugin's, from now on
{
    echo "optional $work/c/spank_topt.so url=$url munge_socket=$work/c/munge/socket $patience $*" >"$work/c/plugstack.conf"
}

start_all
plugstack daemon_uid=root
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
topt="--topt-mode=mini-time --topt-gpus=2 --topt-model=model.json --topt-batch=8 --topt-framework=topt"
cat >job.sh <<JOB
#!/bin/bash
env
"$TOPT" client get-plan "\$TOPT_PLAN" >plan.json && echo got
JOB
sbatch --parsable $topt -o out job.sh >id 2>err
is "$?" 0 "sbatch over TCP: $(cat err)"
wait_job "$(cat id)"
is "$(field "$(cat id)" NumTasks)" 2 "the job is sized"
like "$(cat out)" "TOPT_URL=$url" "it knows where its plan is"
like "$(cat out)" "TOPT_DAEMON_UID=0" "and whose word for it counts"
is "$(tail -1 out)" got "where it fetches it"
plan=$(sed -n 's/^TOPT_PLAN=//p' out)
like "$(cat plan.json)" '"format":"topt-plan/1"' "$plan"
other=$(TOPT_MUNGE_SOCKET=$work/c/munge/socket TOPT_URL=$url setpriv --reuid=65534 --regid=65534 --clear-groups \
    "$TOPT" client get-plan "$plan" 2>&1)
is "$?" 1 "nobody else fetches it: $other"
like "$(cat log)" 'POST /v1/plan: 200 in' "the daemon was asked"
like "$(cat log)" 'uid 0 pid 0' "by root, over TCP"

# --- a plan that is too long to be carried is fetched by the job's owner, and by nobody else
sed 's/"n_embd": [0-9]*/"n_embd": 16/; s/"n_head": [0-9]*/"n_head": 2/; s/"n_layer": [0-9]*/"n_layer": 100/; s/"n_positions": [0-9]*/"n_positions": 16/' \
    "$source_dir/deploy/quickstart/gpt-small.json" >deep.json
"$TOPT" import deep.json --batch 2 --seq 16 -o short.json && python3 "$source_dir/tests/slurm/long_names.py" short.json long.json
chmod 644 long.json && mkdir theirs && chmod 777 theirs
cat >theirs/long.sh <<JOB
#!/bin/bash
echo "carried \${SLURM_TOPT_PLAN_DOC:+a plan}"
srun "$TOPT" run "\$TOPT_PLAN" --data synthetic --steps 1 && echo "ran \$TOPT_PLAN as \$(id -u)"
JOB
if su nobody -s /bin/bash -c "test -r '$work/c/spank_topt.so' && test -x '$TOPT'"; then
    su nobody -s /bin/bash -c "cd $work/theirs && SLURM_CONF=$SLURM_CONF sbatch --parsable \
        --topt-mode=mini-time --topt-gpus=1 --topt-model=$work/long.json --topt-framework=topt -o out long.sh" >id 2>err
    is "$?" 0 "a long plan: $(cut -c1-100 err)"
    wait_job "$(cat id)"
    is "$(head -1 theirs/out)" "carried " "it is not carried"
    like "$(cat theirs/out)" "ran $(sed -n 's/.*; plan \(p-[0-9a-f]*\).*/\1/p' err) as 65534" "its owner's job fetches it: $(tail -1 theirs/out)"
    other=$(TOPT_MUNGE_SOCKET=$work/c/munge/socket TOPT_URL=$url setpriv --reuid=1 --regid=1 --clear-groups \
        "$TOPT" client get-plan "$(sed -n 's/.*; plan \(p-[0-9a-f]*\).*/\1/p' err)" 2>&1)
    is "$?" 1 "another user does not: $other"
else
    ok "a long plan # SKIP others can't read the build" true
fi

# --- a daemon that is not the site's
plugstack daemon_uid=65534
job=$(sbatch --parsable -n2 --gpus=2 $topt -o out job.sh 2>err)
is "$?/$(wc -l <err)" 0/1 "a daemon of another user is an outage"
like "$(cat err)" "does not know who asks (401)" "which is said: $(cat err)"
wait_job "$job"
is "$(grep -c '^TOPT_PLAN' out)" 0 "the job goes on as it was asked"
plugstack "daemon_uid=no-such-user on_error=abort"
sbatch -n2 $topt -o out job.sh >id 2>err
is "$?" 1 "a mistake in plugstack.conf, with abort"
like "$(cat err)" "no user 'no-such-user'" "is named: $(cat err)"
finish
