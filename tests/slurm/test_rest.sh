#!/bin/bash
# test_rest.sh - a request through slurmrestd passes no sbatch, so no SPANK plugin sees it: one that carries a plan of toptd is
# sized by job_submit/topt in the controller, and the steps of the job have the plan.
. "$(dirname "$0")/planner.sh"
[ -f "${TOPT_JOB_SUBMIT:-}" ] || skip_all "job_submit_topt.so is not built"
PATH=$PATH:/usr/sbin
command -v slurmrestd >/dev/null || skip_all "slurmrestd is not installed"
start_all --job-submit "$TOPT_JOB_SUBMIT"
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json

# rest_auth/local believes the user at the other end of its socket, who must be its own; it refuses to be root.
mkdir rest && chown nobody rest && chmod 644 model.json
nobody() { setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups "$@"; }
# The plugins that want a slurmdbd are left out.
openapi=
case $(slurmctld -V) in
    *' 22.05'*) openapi="-s openapi/v0.0.38" ;;
    *' 23'*) ;;
    *) openapi="-s openapi/slurmctld" ;;
esac
# shellcheck disable=SC2086
nobody slurmrestd -f "$SLURM_CONF" -a rest_auth/local $openapi "unix:$work/rest/sock" >rest.log 2>&1 7>&- &
rest=$!
trap 'kill "$rest" 2>/dev/null; stop_all' EXIT
ask() { nobody curl -s --unix-socket "$work/rest/sock" "$@"; }
left=200
while [ -z "${door:-}" ] && [ $left -gt 0 ]; do
    left=$((left - 1))
    sleep 0.05
    door=$(ask http://localhost/openapi/v3 | tr -d '\\' | grep -oE 'slurm/v0\.0\.[0-9]+/job/submit' | sort -uV | tail -1)
done
ok "slurmrestd answers: $door" test -n "$door"
[ -n "$door" ] || { tail -5 rest.log | sed 's/^/# /' && finish; }

# What toptd says in lines, under the names that travel, is the environment of the request.
plan_lines() # QUESTION
{
    curl -s --unix-socket "$work/toptd.sock" -H 'Accept: text/plain' --data-binary @model.json \
        "http://localhost/v1/plan?batch=8&seq=64&framework=topt&precision=f32&$1" | grep '^TOPT_'
}

body() # FILE-OF-LINES TASKS: the request as that release of slurmrestd has it
{
    python3 - "$1" "$2" "$work/rest/out" "${door//[!0-9]/ }" <<'PY'
import json, sys
lines = [line.rstrip("\n").split("=", 1) for line in open(sys.argv[1])]
env = {"PATH": "/usr/bin:/bin", **{"SLURM_" + k: v for k, v in lines}}
if "SLURM_TOPT_PLAN_ID" in env:
    env.update(SLURM_TOPT_PLAN=env["SLURM_TOPT_PLAN_ID"], SLURM_TOPT_NTASKS=sys.argv[2])
script = "#!/bin/sh\nenv\nsrun -l sh -c 'echo step $TOPT_PLAN'\n"
job = {"name": "rest", "current_working_directory": "/tmp", "standard_output": sys.argv[3], "environment": env}
if int(sys.argv[4].split()[2]) <= 38:
    print(json.dumps({"script": script, "job": {**job, "ntasks": 1}}))
else:
    print(json.dumps({"job": {**job, "environment": [f"{k}={v}" for k, v in env.items()], "tasks": 1, "script": script}}))
PY
}

submit() # FILE: the job's number, else all that was said
{
    ask -H 'Content-Type: application/json' --data-binary @"$1" "http://localhost/$door" | python3 -c '
import json, sys
said = json.load(sys.stdin)
print(said.get("job_id") or json.dumps(said))'
}

plan_lines "mode=mini-time&gpus=8" >lines
body lines 8 >request.json
job=$(submit request.json)
is "$(shape "$job")" "2/8/gres:gpu:4" "a request that carries a plan of 8 GPUs has its nodes, tasks and GPUs"
wait_job "$job"
is "$(field "$job" JobState)" COMPLETED "it runs"
plan=$(sed -n 's/^TOPT_PLAN_ID=//p' lines)
is "$(grep -cE "^[0-7]: step $plan\$" rest/out)" 8 "each task of its step has the plan"
is "$(sed -n 's/^TOPT_PLAN_ID=//p' rest/out)" "$plan" "and the script"
is "$(sed -n 's/^SLURM_TOPT_PLAN_DOC=//p' rest/out | wc -c)" "$(sed -n 's/^TOPT_PLAN_DOC=//p' lines | wc -c)" "which carries the plan itself"
sed -i '/NODES=/d' lines
body lines 8 >request.json
refused() # PART TEXT: slurmrestd of 22.05 hands on that it was refused, and not why, which the controller's log has
{
    local said
    said=$(submit request.json)$(grep -h 'job_submit/topt' c/log/slurmctld.log | tail -1)
    like "$said" "Invalid generic resource" "$2"
    like "$said" "$1" "$2: why"
}
refused "comes without SLURM_TOPT_NODES" "a plan that doesn't add up is refused"
echo 'require -' >c/topt_submit.conf
: >lines
body lines 1 | sed "s/\"name\"/$([ "${door#*0.0.38}" = "$door" ] && echo '"tres_per_node": "gres\/gpu:2"' || echo '"gres": "gpu:2"'), \"name\"/" >request.json
refused "a job of several GPUs needs a plan here" "the site's policy counts there, too"
finish
