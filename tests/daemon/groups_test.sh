#!/usr/bin/env bash
# groups_test.sh TOPTD TOPT-CLIENT - plans on several groups of unlike GPUs, asked of toptd: the documents of topt plan, what is
# refused, and that a job that sbatch sizes has GPUs of one kind.
# shellcheck source-path=SCRIPTDIR source=sys.sh
. "$(dirname "$0")/sys.sh"
client=$2 solver=$(dirname "$2")/topt-solver
command -v python3 >/dev/null || { echo "1..0 # skipped: python3 is not installed"; exit 77; }
export TOPT_URL=unix:$sock
text=(-H 'Accept: text/plain')
has() { python3 -c 'import json, sys; a = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$dir/body" "$1"; }

group() # group NAME SLOWER
{
    printf '{"name":"%s","nodes":2,"gpus_per_node":2,
      "device":{"name":"rank %s","memory_bytes":1073741824,"flops":{"f32":%s},"efficiency":{"matmul":0.6,"attention":0.1,
        "elementwise":0.05},"memory_bandwidth":%s,"launch_ns":2000,"source":"assumed"},
      "links":[{"level":"node","bytes_per_second":4e9,"latency_ns":2000,"source":"assumed"},
               {"level":"cluster","bytes_per_second":4e9,"latency_ns":20000,"source":"assumed"}]}' "$1" "$1" \
        "$(awk "BEGIN { print 4e10 / $2 }")" "$(awk "BEGIN { print 1e10 / $2 }")"
}
cluster() # cluster NAME GROUPS: a profile
{
    printf '{"format":"topt-hw/1","name":"%s","groups":[%s],"between":{"bytes_per_second":3e9,"latency_ns":20000,"source":"assumed"}}' \
        "$1" "$2" >"$dir/$1.json"
}
cluster mixed "$(group fast 1),$(group slow 2.3)"
cluster mixed-slow-first "$(group slow 2.3),$(group fast 1)"
cluster three "$(group fast 1),$(group slow 2.3),$(group slowest 4)"
cat >"$dir/gpt.json" <<'M'
{"model_type":"gpt2","n_embd":128,"n_layer":4,"n_head":4,"n_positions":128,"vocab_size":512}
M

start --threads 2
for name in mixed mixed-slow-first three; do
    topt_client add-hw "$dir/$name.json"
    [ "$status" = 0 ] && says "$name"; ok $? "a profile with groups is registered: $name"
done

# The answer of toptd is that of the command line, and what toptd adds to every answer.
cat >"$dir/same.py" <<'P'
import json, sys
ours, line = (json.load(open(f)) for f in sys.argv[1:3])
for name in ("model_id", "hw_id", "slurm"):
    del ours[name]
if "plan_id" not in line:
    ours.pop("plan_id", None)
sys.exit(json.dumps(ours, sort_keys=True) != json.dumps(line, sort_keys=True))
P
asked() # asked TEXT OPTIONS...: of both
{
    local what=$1
    shift
    topt_client plan "$dir/gpt.json" --batch 32 --seq 64 --precision f32 "$@" --json
    local hw=$2
    shift 2
    "$solver" plan "$dir/gpt.json" --quiet --batch 32 --seq 64 --precision f32 --hw "$dir/$hw.json" "$@" --json >"$dir/line" 2>>"$dir/err"
    [ "$status" = 0 ] && python3 "$dir/same.py" "$dir/body" "$dir/line" 2>>"$dir/err"
    ok $? "$what: as topt plan answers $(head -c 300 "$dir/err")"
}
stages=(--hw mixed --gpus 8 --framework megatron --pipeline 2)
asked "a pipeline over both groups" "${stages[@]}"
has 'len(a["stages"]) == 2 and {s["group"] for s in a["stages"]} == {"fast", "slow"}'
ok $? "each of its stages lies on one"
has 'a["slurm"] == {"parts": [{"group": s["group"], "nodes": 2, "gpus_per_node": 2} for s in a["stages"]],
                    "flags": " : ".join(["--nodes=2 --gpus-per-node=2 --ntasks-per-node=1"] * 2)}'
ok $? "for Slurm the parts of a heterogeneous job, in the order of the stages"
asked "the group that is enough" --hw mixed --framework topt
has 'a["group"] == "fast" and a["slurm"]["nodes"] == 1 and "parts" not in a["slurm"]'; ok $? "which is a job like any other"
asked "one strategy for both, where no group has so many" --hw mixed --gpus 3 --framework topt
has '"plan" in a and a["plan_id"] == a["plan"]["id"] and [p["gpus_per_node"] for p in a["slurm"]["parts"]] == [g["gpus"] for g in a["groups"]]'
ok $? "has a plan, and parts with a task for each GPU: $(grep -o '"flags":"[^"]*"' "$dir/body")"
asked "shares by plans of their own" --hw mixed-slow-first --gpus 8 --framework topt
has '"no_plan" in a and "plan" not in a and a["slurm"] is None'; ok $? "which no program runs together, so that Slurm is asked for nothing"
asked "a group by its name" --hw mixed --gpus 4 --framework megatron --groups slow
has 'a["group"] == "slow"'; ok $? "is the only one that is asked about"
topt_client plan "$dir/gpt.json" --batch 32 --seq 64 --precision f32 --hw three --gpus 8 --framework topt --groups fast,slowest --json
[ "$status" = 0 ] && has '[g["name"] for g in a["groups"]] == ["fast", "slowest"] and [c["groups"] for c in a["choices"]] == [["fast", "slowest"]]'
ok $? "two of three by their names"

topt_client plan "$dir/gpt.json" --batch 32 --seq 64 --precision f32 "${stages[@]}" -o "$dir/of-toptd.json"
[ "$status" = 0 ] && says ' by one pipeline of 2 stages, each on GPUs of one group$' && says '^slurm +--nodes=2 .* : --nodes=2 ' &&
    says 'parts of a heterogeneous job, (fast and slow|slow and fast): '
ok $? "topt client plan prints it, and what to book"
"$solver" plan "$dir/gpt.json" --quiet --batch 32 --seq 64 --precision f32 --hw "$dir/mixed.json" "${stages[@]:2}" -o "$dir/of-topt.json" >/dev/null 2>"$dir/err"
cat >"$dir/same-plan.py" <<'P'
import json, sys
one, other = (json.dumps(json.load(open(f)), sort_keys=True) for f in sys.argv[1:3])
sys.exit(one != other)
P
python3 "$dir/same-plan.py" "$dir/of-toptd.json" "$dir/of-topt.json" 2>>"$dir/err"; ok $? "the plan is that of topt plan -o, member by member"
id=$(sed -n 's/^plan *\(p-[0-9a-f]*\).*/\1/p' "$dir/body")
topt_client get-plan "$id" -o "$dir/kept.json"
[ "$status" = 0 ] && python3 "$dir/same-plan.py" "$dir/kept.json" "$dir/of-topt.json"
ok $? "and it is kept"
ask GET "/v1/plans/$id/launch"; check "its script is a heterogeneous job" 200 '#SBATCH hetjob'
"$solver" launch "$dir/kept.json" --sbatch >"$dir/script" 2>"$dir/err"; cmp -s "$dir/script" "$dir/body"; ok $? "as topt launch --sbatch writes it"
before=$(curl -s --unix-socket "$sock" http://localhost/metrics | sed -n 's/^topt_searches_total //p')
topt_client plan "$dir/gpt.json" --batch 32 --seq 64 --precision f32 "${stages[@]}" --json
[ "$(curl -s --unix-socket "$sock" http://localhost/metrics | sed -n 's/^topt_searches_total //p')" = "$before" ]
ok $? "asked again it is in the store"

# What can't be.
refuses() # refuses STATUS PATTERN TEXT OPTIONS...
{
    local want=$1 part=$2 what=$3
    shift 3
    topt_client plan "$dir/gpt.json" --batch 32 --seq 64 --precision f32 "$@"
    [ "$status" = "$want" ] && says "$part" && [ "$(wc -l <"$dir/err")" = 1 ]; ok $? "$what: $(cat "$dir/err")"
}
refuses 2 "there is no group 'medium' in mixed: it has fast, slow .*groups" "an unknown group" --hw mixed --groups fast,medium
refuses 2 "there is no group 'fast' in lab-cpu, whose devices are alike" "a profile without groups" --hw lab-cpu --groups fast
refuses 2 "groups: .*twice|groups: .*again|groups: .*before" "one group twice" --hw mixed --groups fast,fast
refuses 2 'no groups of mixed have 9 devices in numbers that are booked: 4 of fast, 4 of slow' "more GPUs than there are" --hw mixed --gpus 9
refuses 2 'no group of mixed has 8 devices .*: 4 of fast, 4 of slow; several together need --groups all' "more than any group has, of one" \
    --hw mixed --gpus 8 --groups one
refuses 2 'no group of mixed has 8 devices .*: 4 of slow; ' "more than the group that is named has" --hw mixed --gpus 8 --groups slow
refuses 2 'of groups of unlike devices one plan is made: no --mode profiling' "a curve of both" --hw mixed --groups all --mode profiling
refuses 2 'searched by ft alone' "another algorithm" --hw mixed --gpus 8 --algorithm tofu
refuses 2 'tokens and --samples are for GPUs of one kind' "totals of both" --hw mixed --gpus 8 --tokens 1B
refuses 3 'one chunk of layers and nothing on the host fits' "stages of several chunks" "${stages[@]}" --virtual-stages 2
refuses 3 'neither a group by itself nor groups together hold it' "too little memory" --hw mixed --memory 1MiB
cluster single "$(group fast 1)"
topt_client add-hw "$dir/single.json"; [ "$status" != 0 ] && says 'groups'; ok $? "a profile with one group is none: $(cat "$dir/err")"
printf '{"model":%s,"batch":32,"seq":64,"precision":"f32","hw":"mixed","groups":["fast"]}' "$(cat "$dir/gpt.json")" >"$dir/question"
ask POST /v1/plan -H 'Content-Type: application/json' --data-binary "@$dir/question"
check "in JSON groups are a text" 400 '"source":"groups"'

# A job that sbatch sizes.
job="/v1/plan?batch=32&seq=64&precision=f32&hw=mixed&framework=megatron"
ask POST "$job&pipeline=2&gpus=8" "${text[@]}" --data-binary "@$dir/gpt.json"
check "lines of a plan on both are refused" 422 'text/plain is of a job that has GPUs of one kind: ask with groups=one'
ask POST "$job&groups=one" "${text[@]}" --data-binary "@$dir/gpt.json"; check "lines of one group" 200 '^TOPT_PLAN_ID='
ask POST "$job&slurm_tasks=node" "${text[@]}" --data-binary "@$dir/gpt.json"
check "a job has GPUs of one kind" 200 '^TOPT_WHY=.*GPUs of group fast, as one job takes GPUs of one kind'
grep -q "^TOPT_NOTE=planned for the GPUs of group 'fast': name their nodes" "$dir/body"; ok $? "and is told to name their nodes"
ask POST "$job&slurm_tasks=node&gpus=8" "${text[@]}" --data-binary "@$dir/gpt.json"
check "more than one group has" 400 'several together need --groups all, of topt plan, or of topt client plan'
for groups in all fast,slow; do
    ask POST "$job&slurm_tasks=node&groups=$groups" "${text[@]}" --data-binary "@$dir/gpt.json"
    check "groups=$groups" 400 "topt-groups=$groups: a job that sbatch sizes has GPUs of one kind: ask .topt client plan."
done
ask POST "$job&slurm_tasks=node&groups=slow" "${text[@]}" --data-binary "@$dir/gpt.json"
check "a group by its name is one kind" 200 '^TOPT_GPUS='
stop TERM
! grep -q 'WARNING: ThreadSanitizer' "$dir/log"; ok $? "nothing that threads share was touched without a lock"
finish
