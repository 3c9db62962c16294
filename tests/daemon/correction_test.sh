#!/usr/bin/env bash
# correction_test.sh TOPTD TOPT-CLIENT - finished jobs correct what answers say: first of who reported them, then, as Slurm
# confirms them, of everybody; until an admin resets that.
# shellcheck source-path=SCRIPTDIR source=sys.sh
. "$(dirname "$0")/sys.sh"
client=$2
skip()
{
    echo "1..0 # skipped: $*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "several users need root"
command -v setpriv >/dev/null || skip "setpriv is not installed"
alice=61001 bob=61002 carol=61003 dave=61004
chmod 755 "$dir"

unix() # unix UID METHOD PATH [CURL ARGS...]: as 'ask', of that user
{
    local uid=$1 method=$2 path=$3
    shift 3
    status=$(setpriv --reuid="$uid" --regid="$uid" --clear-groups curl -s -X "$method" --max-time 60 --unix-socket "$sock" \
        -w '\n%{http_code}' "$@" "http://localhost$path" >"$dir/both"; tail -1 "$dir/both")
    head -n -1 "$dir/both" >"$dir/body"
}

# A scontrol that knows jobs 1 to 3 as alice's, 4 and 5 as bob's, 6 as carol's.
cat >"$dir/scontrol" <<'S'
#!/bin/sh
case $3 in
job=[123]) uid=61001 ;;
job=[45]) uid=61002 ;;
job=6) uid=61003 ;;
job=*) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1 ;;
*) exit 1 ;;
esac
echo "JobId=${3#job=} JobName=x UserId=u($uid) GroupId=g(1) JobState=COMPLETED Comment=y"
S
chmod 755 "$dir/scontrol"

model='{"fake_bytes":5000}' # every plan says 5,000 bytes and 1,000 ns a step
q='/v1/plan?mode=mini-parallelism&batch=8'

report() # report UID JOB STEP PEAK
{
    unix "$1" POST /v1/observations -d "{\"job\":$2,\"plan_id\":\"$plan\",\"step_ns\":$3,\"peak_bytes\":$4}"
}
given() # given UID [MORE]: the answer of that user
{
    unix "$1" POST "$q${2:-}" -d "$model"
}
confirmed() # confirmed N: wait until Slurm has confirmed so many
{
    for _ in $(seq 500); do
        unix 0 GET /v1/observations
        [ "$(grep -o '"confirmed":true' "$dir/body" | wc -l)" -ge "$1" ] && return 0
        sleep 0.02
    done
    return 1
}

start --hw fake-hw --scontrol "$dir/scontrol"
for uid in $alice $bob $carol $dave; do
    given $uid; check "uid $uid asks" 200 '"plan_id"'
done
plan=$(field plan_id)
! grep -q '"correction"' "$dir/body"; ok $? "nothing is corrected"

# --- one's own
report $alice 1 2000 10000; check "a job of alice's took twice the time and memory" 201 '"predicted":\{"time_ns":1000,"memory_bytes":5000\}'
given $alice; check "her answers say so" 200 '"correction":\{"time":\{"factor":1\.122[0-9]*,"jobs":1,"users":1,"of":"yours"\},"memory":\{"factor":1\.122[0-9]*,'
check "beside what was computed" 200 '"time_ns":1122,"memory_bytes":5610'
grep -q '"memory_bytes":5000,' "$dir/body"; ok $? "which stays"
given $bob; ! grep -q '"correction"' "$dir/body"; ok $? "bob's do not"
given $alice '&memory_bytes=5500'; check "within less than her jobs took nothing fits, for her" 422 '"correction":\{"time"'
given $bob '&memory_bytes=5500'; check "for bob it does" 200 '"plan_id"'
given $alice '&memory_bytes=5700'; check "with so much more it fits her, too" 200 '"correction"'
unix $alice POST "$q" -d "$model" -H 'Accept: text/plain'
check "as text" 200 '^TOPT_CORRECTION=1 job of yours took 1.122 times the predicted time; 1 job of yours took'
unix $alice GET /v1/corrections; check "the list" 200 '"corrections":\[\{"model_id":"m-[0-9a-f]*","hw_id":"h-[0-9a-f]*","time":\{"factor":1.122'
unix $dave GET /v1/corrections; check "is empty for who reported nothing" 200 '"corrections":\[\]'
echo "$model" >"$dir/model.json"
chmod 644 "$dir/model.json"
setpriv --reuid=$alice --regid=$alice --clear-groups "$client" client corrections --url "unix:$sock" >"$dir/body" 2>&1
status=$?; check "topt client lists it" 0 'fake-hw|h-[0-9a-f]+.*1\.122 of 1 job.*yours'

setpriv --reuid=$alice --regid=$alice --clear-groups "$client" client plan "$dir/model.json" --batch 8 --mode mini-parallelism \
    --url "unix:$sock" >"$dir/body" 2>&1
status=$?; check "and shows it beside a plan" 0 '^measured +.* per step, .* per GPU are to be expected:'
check "with the jobs it is of" 0 'time 1\.122 times the prediction on 1 job of yours; memory 1\.122 times'
setpriv --reuid=$alice --regid=$alice --clear-groups "$client" client observations --url "unix:$sock" >"$dir/body" 2>&1
status=$?; check "and what was reported" 0 'job 1 .* step .*\(predicted .*\)  memory'

# --- the site's
report $dave 17 500 4000; check "dave's job is none that Slurm knows" 201
report $alice 2 2000 10000
report $bob 4 2000 10000
report $bob 5 2000 10000
confirmed 4; ok $? "Slurm confirms four jobs of two users"
given $carol; ! grep -q '"correction"' "$dir/body"; ok $? "which are too few for others"
report $bob 6 2000 10000; check "bob reports carol's job" 201
report $carol 6 3000 15000; check "she does, too" 201
confirmed 5; ok $? "which is hers"
given $dave; check "now everybody's answers are corrected, by the jobs confirmed" 200 '"time":\{"factor":1\.41[34][0-9]*,"jobs":5,"users":3,"of":"site"\},"memory":\{"factor":1\.41[34][0-9]*,'
given $carol; check "who reported oneself, too" 200 '"of":"site"'
unix 0 GET /v1/observations; check "five of seven are confirmed" 200
[ "$(grep -o '"confirmed":true' "$dir/body" | wc -l)" = 5 ] && [ "$(grep -o '"confirmed":false' "$dir/body" | wc -l)" = 2 ]; ok $? "and no others"
stop TERM
start --hw fake-hw --scontrol "$dir/scontrol"
given $dave; check "also after a restart" 200 '"of":"site"'

# --- reset
model_id=$(field model_id) hw_id=$(field hw_id)
unix $alice DELETE "/v1/corrections/$model_id/$hw_id"; check "a user can't reset it" 403
"$client" client reset-correction "$model_id" --hw "$hw_id" --url "unix:$sock"; ok $? "an admin can"
given $dave; ! grep -q '"correction"' "$dir/body"; ok $? "nothing is corrected any more"
given $alice; ! grep -q '"correction"' "$dir/body"; ok $? "nor for who reported"
unix 0 GET /v1/observations; check "the reports are there still" 200 '"counts":false'
unix 0 DELETE "/v1/corrections/$model_id/$hw_id"; check "there is nothing more to reset" 404
report $alice 3 2000 10000
given $alice; check "what is reported later counts again" 200 '"jobs":1,"users":1,"of":"yours"'
stop TERM

# --- without Slurm
rm -r "$dir/state"
start --hw fake-hw --scontrol ''
for uid in $alice $bob $carol; do
    given $uid
    plan=$(field plan_id)
    for i in 1 2 3; do
        report $uid $((uid + i)) 2000 10000
    done
done
given $dave; ! grep -q '"correction"' "$dir/body"; ok $? "where nobody confirms, nobody's answers are corrected by others"
given $bob; check "but by one's own" 200 '"jobs":3,"users":1,"of":"yours"'
stop TERM
finish
