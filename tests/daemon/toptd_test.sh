#!/usr/bin/env bash
# toptd_test.sh TOPTD TOPT-CLIENT - the daemon from outside, with a planner that does as the model says.
# shellcheck source-path=SCRIPTDIR source=sys.sh
. "$(dirname "$0")/sys.sh"
json=(-H 'Content-Type: application/json')
text=(-H 'Accept: text/plain')
mini='/v1/plan?mode=mini-parallelism'

start --hw fake-hw --workers 2 --queue 2 --idle-timeout 5 --request-timeout 2 --connections 16
ask GET /livez; check "it lives" 200 '^ok'
ask GET /readyz; check "it is ready" 200 '^ok'
status=$(curl -s -o "$dir/body" -w '%{http_code}' "http://127.0.0.1:$port/livez")
check "over TCP too" 200

# --- a plan, both ways
echo '{"format":"topt-model/1","name":"tiny","fake_bytes":5000}' >"$dir/model.json"
ask POST "$mini&batch=8&seq=64&name=config.json" "${text[@]}" --data-binary "@$dir/model.json"
check "a plan as text" 200 '^TOPT_PLAN_ID=p-[0-9a-f]{32}$'
for line in TOPT_GPUS=4 TOPT_NODES=1 TOPT_GPUS_PER_NODE=4 TOPT_MEMORY_BYTES=5000 \
    TOPT_PEAK_BYTES=5000 TOPT_TIME_NS=1000 TOPT_SPACE=full 'TOPT_STRATEGY=data 4' \
    'TOPT_WHY=one line with a break'; do
    grep -qx "$line" "$dir/body"; ok $? "has $line"
done
[ "$(wc -l <"$dir/body")" = 11 ] && grep -q "^TOPT_PLAN_DOC=" "$dir/body"; ok $? "the plan itself, and nothing else"
plan=$(sed -n 's/TOPT_PLAN_ID=//p' "$dir/body")
ask POST /v1/plan "${json[@]}" -d '{"mode":"mini-parallelism","batch":8,"seq":64,
    "model":{"fake_bytes":5000,"name":"tiny","format":"topt-model/1"}}'
check "the same in JSON" 200 "\"plan_id\":\"$plan\""
check "with the plan inside" 200 '"plan":\{"format":"topt-plan/1"'
check "and flags for Slurm, of one task a node" 200 '"flags":"--nodes=1 --gpus-per-node=4 --ntasks-per-node=1"'
[ "$(metric topt_searches_total)" = 1 ]; ok $? "one search for both"
[ "$(metric topt_cache_hits_total)" = 1 ]; ok $? "the second was in the store"
ask POST "$mini&batch=16&space=uniform" "${text[@]}" --data-binary "@$dir/model.json"
check "a uniform plan says what scripts obey" 200 '^TOPT_DP=2$'
for line in TOPT_TP=2 TOPT_FSDP=3 TOPT_RECOMPUTE=1 TOPT_MICRO_BATCH=4 TOPT_ACCUMULATION=2; do
    grep -qx "$line" "$dir/body"; ok $? "has $line"
done
ask POST "$mini&batch=16&min_efficiency=0.1" "${text[@]}" --data-binary "@$dir/model.json"
check "another count that is worth asking for" 200 \
    '^TOPT_HINT=16 GPUs would be 3.9 times as fast for the same GPU-hours: --topt-min-efficiency=0.9$'
ask POST /v1/plan "${json[@]}" -d '{"min_efficiency":0.2,"model":{"fake_bytes":5000}}'
check "in JSON the alternatives" 200 '"alternatives":\[\{"gpus":4'
ask POST "$mini&name=a/config.json" "${text[@]}" -d '{"fake_bytes":6}'
check "a model without a name" 200
a=$(metric topt_searches_total)
ask POST "$mini&name=a" "${text[@]}" -d '{"fake_bytes":6}'
[ "$(metric topt_searches_total)" = "$a" ]; ok $? "is called after its folder"
ask POST "$mini&name=b" "${text[@]}" -d '{"fake_bytes":6}'
[ "$(metric topt_searches_total)" = $((a + 1)) ]; ok $? "and with another name is another model"
ask GET "/v1/plans/$plan"; check "the plan is pinned" 200 '^\{"format":"topt-plan/1"'
ask GET /v1/plans; check "and listed" 200 "\"id\":\"$plan\""
ask POST "$mini&gpus=4" -d '{}'; check "a field of another mode" 400 '"source":"gpus"'
ask POST '/v1/plan?mode=mini-time&gpus=2' -d '{}'; check "mini-time" 200 '"gpus":2'
ask POST '/v1/plan?mode=profiling' -d '{}'; check "profiling gives points" 200 '"points":'
ask POST '/v1/plan?mode=profiling' "${text[@]}" -d '{}'; check "but not as text" 406 '^ERROR='

# --- models and hardware
ask POST /v1/models --data-binary "@$dir/model.json"; check "a model known from a plan" 200
model=$(field id)
ask POST /v1/models -d '{"fake_ms":1}'; check "a new model" 201 '"id":"m-[0-9a-f]{32}"'
ask POST /v1/models -d '{"fake_ms":1}'; check "registering twice is fine" 200
ask GET /v1/models; check "models are listed" 200 "\"id\":\"$model\""
ask GET "/v1/models/$model"; check "and shown" 200 '"parameters":42'
ask GET "/v1/models/$model/curve?hw=other-hw&max_gpus=8&counts=pow2"; check "a curve" 200 '"points"'
ask GET "/v1/models/$model/frontier?gpus=4"; check "a frontier" 200 '"points"'
ask GET "/v1/models/$model/frontier"; check "a frontier of how many?" 400 '"source":"gpus"'
ask POST "/v1/plan?mode=mini-time&gpus=2&model_id=$model"; check "a plan by model id" 200 '"gpus":2'
ask GET /v1/models/m-0; check "no such model" 404
ask POST '/v1/models?name=only%20one' -d '{"fake_bytes":77}'; check "a model with a name" 201
only=$(field id)
ask POST '/v1/plan?mode=mini-time&gpus=2&model_id=only%20one'; check "by which it is found" 200 "\"model_id\":\"$only\""
ask POST '/v1/plan?mode=mini-time&gpus=2&model_id=only%20won'; check "not by another" 404 'did you mean only one\?'
for bytes in 78 79; do ask POST '/v1/models?name=both' -d "{\"fake_bytes\":$bytes}"; check "one of two of a name" 201; done
ask GET /v1/models/both; check "which is the name of neither" 404 'several models have the name .both.; give the id of one'
for field in batch=0 seq=0 max_gpus=0 micro_batches=0 memory=80 factors=zero,zero; do
    ask POST "$mini&$field" -d '{}'; check "$field" 400 "\"source\":\"${field%%=*}\""
done
ask POST '/v1/plan?mode=profiling&gpus=1,2,2' -d '{}'; check "gpus=1,2,2" 400 '"source":"gpus"'
ask POST /v1/hardware -d '{"format":"topt-hw/1","name":"lab"}'; check "a profile" 201 '"name":"lab"'
ask POST /v1/hardware -d '{"format":"topt-hw/1","name":"fake-hw"}'; check "a shipped name" 409
ask POST /v1/hardware -d '{"format":"topt-hw/1","name":"a/b"}'; check "no name" 400
ask POST /v1/hardware -d '{"format":"topt-hw/1","name":"x","y":1}'; check "unknown field" 400 'y: unknown field'
ask GET /v1/hardware; check "profiles are listed" 200 '"shipped":true'
ask GET /v1/hardware/lab; check "and shown" 200 '"format":"topt-hw/1"'
ask POST "$mini&hw=nosuch" -d '{}'; check "no such profile" 404 '"source":"hw"'
ask POST "$mini&hw=fake-wh" -d '{}'; check "which may be a slip" 404 'did you mean fake-hw\?'
ask POST "$mini&hw=lba" -d '{}'; check "of one that was registered" 404 'did you mean lab\?'
ask POST "$mini&hw=/etc/passwd" -d '{}'; check "a file is never opened" 400 'never opened'

ask POST "$mini&name=%ff%fe" -d '{"fake_bytes":3}'; check "a name that is no UTF-8" 200
ask POST '/v1/models?name=%c3' -d '{"fake_bytes":4}'; check "nor here" 201
ask POST "$mini" -d "{\"fake_bytes\":5,\"name\":\"$(printf 'é%.0s' $(seq 100))\"}"; check "a long one" 200
ask GET /v1/models; check "do not break the list" 200 '"models":\['

# --- refusals
ask POST "$mini&memory_bytes=1000" "${text[@]}" --data-binary "@$dir/model.json"
check "infeasible" 422 '^ERROR=infeasible$'
grep -q '^NEAREST=4 GPUs with 4.88 KiB each; with --topt-tensor-parallel it fits on 2 GPUs$' "$dir/body"
ok $? "with the nearest, and what to ask instead"
ask POST "$mini&memory_bytes=1000" --data-binary "@$dir/model.json"
check "infeasible in JSON" 422 '"nearest":\{"gpus":4'
check "with what was taken for granted" 422 '"with":\[\{"ask":"--tensor-parallel".*"assumed":\['
ask POST "$mini&memory_bytes=1" "${text[@]}" --data-binary "@$dir/model.json"
check "undecided" 422 '^ERROR=undecided$'
ask POST "$mini&memory_bytes=1" --data-binary "@$dir/model.json"
check "undecided in JSON" 422 '"feasible":null'
ask POST "$mini" -d '{"a":'; check "truncated JSON" 400 '"errors":\[\{"error":"invalid"'
ask POST "$mini" "${text[@]}" -d '{"a":'; check "truncated JSON as text" 400 '^DESCRIPTION='
ask POST "$mini"; check "no body" 400
ask POST "$mini" -d '[1]'; check "not an object" 400
ask POST "$mini" -d '{"a":1,"a":2}'; check "a key twice" 400
ask POST "$mini" --data-binary "$(printf '[%.0s' $(seq 5000))"; check "too deep" 413 'nested deeper'
ask POST "$mini" -d '{"model_type":"unknown"}'; check "unknown architecture" 400 'unknown architecture'
ask POST "$mini&colour=red" -d '{}'; check "unknown parameter" 400 'colour: unknown field'
ask POST /v1/plan "${json[@]}" -d '{"mode":"mini-parallelism","model":{},"colour":1}'
check "unknown field" 400 'colour: unknown field'
ask POST /v1/plan "${json[@]}" -d '{"mode":"mini-parallelism"}'; check "no model" 400 '"source":"model"'
ask POST '/v1/plan?mode=maxi' -d '{}'; check "unknown mode" 400 '"source":"mode"'
ask POST "$mini%00x" -d '{}'; check "a zero byte" 400
ask GET /nosuch; check "no such path" 404 '"not_found"'
ask GET /v1/plans/../../etc/passwd --path-as-is; check "no way up" 404
ask GET '/v1/plans/%2e%2e%2fx'; check "nor encoded" 404
ask DELETE /v1/plan; check "wrong method" 405
header '^Allow: POST'; ok $? "the right one is named"
ask GET '/v1/models?limit=2'; check "a page of a list" 200 '"more":true'
last=$(grep -o '"id":"[^"]*"' "$dir/body" | tail -1 | cut -d'"' -f4)
cp "$dir/body" "$dir/first"
ask GET "/v1/models?limit=500&before=$last"; check "and what is older" 200 '"more":false'
! grep -q "$last" "$dir/body" && [ "$(cat "$dir/first" "$dir/body" | grep -o '"id":"[^"]*"' | sort | uniq -d)" = "" ]
ok $? "each is on one page"
ask GET '/v1/models?limit=0'; check "no page" 400 '"source":"limit"'
ask GET '/v1/plans?before=/etc'; check "no id" 400 '"source":"before"'
ask GET '/v1/models?x=1'; check "no parameters there" 400 'x: unknown parameter'
ask POST /v1/models -F "file=@$dir/model.json"; check "a form" 415 'unsupported_media_type'
ask POST "$mini" -H 'Content-Encoding: gzip' -d '{}'; check "compressed" 415
ask POST /v1/plan -H 'Content-Type: application/json; charset=utf-16' -d '{}'; check "charset" 415
head -c 17000000 /dev/zero >"$dir/big"
ask POST "$mini" --data-binary "@$dir/big"; check "too long" 413 '"limit"'
ask POST "$mini" -H 'Transfer-Encoding: chunked' --data-binary "@$dir/big"; check "too long, unannounced" 413
rm -f "$dir/big"
status=$(curl -s -o "$dir/body" -w '%{http_code}' -H 'Host: evil.example' "http://127.0.0.1:$port/v1/models")
check "a foreign host" 403
status=$(curl -s -o "$dir/body" -w '%{http_code}' -H 'Origin: http://evil.example' "http://127.0.0.1:$port/v1/models")
check "a foreign page" 403

# --- long searches
uniform=$mini
mini="$mini&space=full" # a search, not a short question
slow='{"fake_ms":20000}'
ask POST "$mini&wait_ms=50" -d "$slow"; check "a long search is a task" 202 '"task":"t-[0-9a-f]{16}"'
header '^Location: /v1/tasks/t-'; ok $? "with its place"
header '^Retry-After: '; ok $? "and when to ask again"
task=$(field task)
ask GET "/v1/tasks/$task"; check "it runs" 200 '"state":"running"'
ask POST "$mini&wait_ms=50" -d "$slow"; check "the same again" 202
[ "$(metric topt_searches_shared_total)" = 1 ]; ok $? "shares the search"
second=$(field task)
ask DELETE "/v1/tasks/$task"; check "one gives up" 200 '"state":"canceled"'
ask GET "/v1/tasks/$task"; check "its task is canceled" 200 '"state":"canceled".*"status":409,"result":\{"errors"'
ask GET "/v1/tasks/$second"; check "the other's goes on" 200 running
ask GET "/v1/tasks/$second" "${text[@]}"; check "as lines it is said as of the question" 202 '^STATE=running'
ask POST "$mini&wait_ms=50" "${text[@]}" -d '{"fake_ms":20001}'; check "a task as text" 202 '^TASK=t-'
third=$(sed -n 's/TASK=//p' "$dir/body")
queued=()
for i in 1 2; do
    ask POST "$mini&wait_ms=50" -d "{\"fake_ms\":2100$i}"; check "task $i waits" 202 '"queued"'
    queued[i]=$(field task)
done
ask POST "$mini&wait_ms=50" -d '{"fake_ms":22000}'; check "the queue is full" 503 'queue_full'
header '^Retry-After: '; ok $? "with Retry-After"
ask POST "$uniform&batch=8&seq=64" --data-binary "@$dir/model.json"; check "what is known needs no queue" 200
for t in $second $third ${queued[1]} ${queued[2]}; do ask DELETE "/v1/tasks/$t"; done
ask GET "/v1/tasks/$second?wait_ms=5000"; check "all are gone" 200 '"state":"canceled"'
ask GET /v1/tasks/t-0; check "no such task" 404
ask POST "$mini&wait_ms=20" -d '{"fake_ms":300,"fake_bytes":1}'; check "a shorter one" 202
task=$(field task)
ask GET "/v1/tasks/$task?wait_ms=20000"; check "is waited for" 200 '"state":"done".*"status":200,"result":\{.*"plan_id"'
ask GET "/v1/tasks/$task" "${text[@]}"; check "and answers as text too" 200 '^TOPT_PLAN_ID='

echo '{"fake_ms":20002}' >"$dir/slow.json"
script -qec "'$2' client plan '$dir/slow.json' --url unix:$sock --timeout 2" /dev/null >"$dir/body" 2>&1
status=$?
[ $status = 1 ] && grep -Eq '(asking the planner|searching), 1 s' "$dir/body" && grep -q 'longer than 2 s .*; raise --timeout' "$dir/body"
ok $? "topt client says on a terminal how long it takes, and gives up in time"

# --- many at once share one search
before=$(metric topt_searches_total)
for i in 1 2 3 4 5 6; do
    curl -s -o "$dir/out$i" --unix-socket "$sock" --data-binary '{"fake_ms":600}' \
        "http://localhost$mini&wait_ms=20000" &
    waits[i]=$!
done
wait "${waits[@]}"
[ "$(metric topt_searches_total)" = $((before + 1)) ]; ok $? "six at once are one search"
[ "$(cat "$dir"/out[1-6] | grep -o '"plan_id":"[^"]*"' | sort | uniq -c | sed 's/^ *//')" = \
    "6 $(grep -o '"plan_id":"[^"]*"' "$dir/out1")" ]; ok $? "and have one plan"

# --- slow clients
mini=$uniform
for i in 1 2 3; do
    { trap '' PIPE; exec 9<>"/dev/tcp/127.0.0.1/$port" && printf 'POST /v1/plan HTTP/1.1\r\nHost: 127' >&9 &&
        for _ in 1 2 3 4 5 6 7 8; do sleep 0.5; printf '.' >&9 || exit 0; done; exit 1; } 2>/dev/null &
    drips[i]=$!
done
ask GET /livez; check "slow clients hold up nobody" 200
gone=0
for i in 1 2 3; do wait "${drips[$i]}" && gone=$((gone + 1)); done
[ $gone = 3 ]; ok $? "and are cut off though they drip on ($gone of 3)"

# --- pages
ask GET /; check "the dashboard" 200 '<html'
! grep -qE '(src|href)="?https?:' "$dir/body"; ok $? "needs nothing from elsewhere"
ask GET /metrics; check "metrics" 200 '^topt_requests_total [0-9]+'
ask GET /openapi.json; check "the API's description" 200 '"openapi"'
missing=
for path in /v1/plan '/v1/plans/\{id\}' /v1/plans '/v1/tasks/\{id\}' /v1/models '/v1/models/\{id\}' \
    '/v1/models/\{id\}/curve' '/v1/models/\{id\}/frontier' /v1/hardware '/v1/hardware/\{id\}' \
    /livez /readyz /metrics /openapi.json; do
    grep -qE "\"$path\" *:" "$dir/body" || missing="$missing $path"
done
[ -z "$missing" ]; ok $? "names every path$missing"

# --- a second one, kill -9, SIGTERM
"$toptd" --socket "$dir/other.sock" --state "$dir/state" >"$dir/second" 2>&1
[ $? -eq 1 ] && grep -q 'another toptd uses the state directory' "$dir/second"
ok $? "a second one on the same state is refused"
"$toptd" --socket "$sock" --state "$dir/state2" >"$dir/second" 2>&1
[ $? -eq 1 ] && grep -q 'another server listens' "$dir/second"; ok $? "and one on the same socket"
"$toptd" --listen 0.0.0.0:80 --socket "$dir/x.sock" --state "$dir/state3" >"$dir/second" 2>&1
[ $? -eq 2 ] && grep -q 'only loopback' "$dir/second"; ok $? "and one on a public address"
"$toptd" --hw nosuch --socket "$dir/x.sock" --state "$dir/state3" >"$dir/second" 2>&1
[ $? -eq 2 ] && grep -q "unknown hardware 'nosuch'" "$dir/second"; ok $? "and an unknown default"
{ stop KILL; } 2>/dev/null
[ -S "$sock" ]; ok $? "killed, it leaves its socket"
start --hw fake-hw
ask GET "/v1/plans/$plan"; check "the plan is there after kill -9" 200 '"format":"topt-plan/1"'
ask POST "$mini&batch=8&seq=64" --data-binary "@$dir/model.json"; check "and so is the answer" 200
[ "$(metric topt_searches_total)" = 0 ]; ok $? "without a search"
curl -s -o "$dir/out" -w '%{http_code}' --unix-socket "$sock" --data-binary '{"fake_ms":60000}' \
    "http://localhost$mini&wait_ms=30000" >"$dir/code" &
waiting=$!
ask POST "$mini&wait_ms=50" -d '{"fake_ms":60000,"fake_stubborn":true}'
began=$(date +%s%N)
stop TERM; ok $? "SIGTERM ends it with 0 while it searches"
took=$(( ($(date +%s%N) - began) / 1000000 ))
[ $took -lt 2000 ]; ok $? "within 2 s ($took ms)"
wait $waiting
[ "$(cat "$dir/code")" = 503 ]; ok $? "who waited is told so"
[ ! -e "$sock" ]; ok $? "the socket is removed"
start --hw fake-hw
ask GET /v1/models; check "it starts again" 200
stop INT; ok $? "SIGINT ends it too"
finish
