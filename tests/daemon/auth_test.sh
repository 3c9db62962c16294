#!/usr/bin/env bash
# auth_test.sh TOPTD TOPT-CLIENT - users who do not trust each other: over TCP with a munged of the test's own,
# over the Unix socket, and through the socket of a web proxy.
# shellcheck source-path=SCRIPTDIR source=sys.sh
. "$(dirname "$0")/sys.sh"
client=$2
skip()
{
    echo "1..0 # skipped: $*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "several users need root"
PATH=$PATH:/usr/sbin:/sbin
for tool in munged munge unmunge setpriv; do
    command -v $tool >/dev/null || skip "$tool is not installed"
done
"$toptd" --auth munge --socket "$dir/x" --state "$dir/x" --log-level nonsense 2>&1 | grep -q 'without libmunge' &&
    skip "built without MUNGE"
alice=61001 bob=61002 web=61003
chmod 755 "$dir"

# --- a munged of its own
mkdir "$dir/munge"
head -c 128 /dev/urandom >"$dir/munge/key"
chmod 600 "$dir/munge/key"
export TOPT_MUNGE_SOCKET=$dir/munge/socket
munged --foreground --force --num-threads=2 --key-file="$dir/munge/key" --socket="$TOPT_MUNGE_SOCKET" \
    --pid-file="$dir/munge/pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" \
    </dev/null >"$dir/munge/out" 2>&1 &
munged=$!
trap 'kill $munged 2>/dev/null; cleanup' EXIT
for _ in $(seq 500); do
    [ -S "$TOPT_MUNGE_SOCKET" ] && break
    sleep 0.02
done
[ -S "$TOPT_MUNGE_SOCKET" ] || skip "munged does not start here"

as() # as UID COMMAND...
{
    local uid=$1
    shift
    setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"
}

# credential UID METHOD TARGET BODY [MUNGE ARGS...]
credential()
{
    local uid=$1 method=$2 target=$3 body=$4
    shift 4
    printf 'topt-request/1\n%s\n%s\n%s\n' "$method" "$target" "$(printf %s "$body" | sha256sum | cut -d' ' -f1)" |
        as "$uid" munge --socket="$TOPT_MUNGE_SOCKET" --ttl=60 "$@"
}

# tcp METHOD TARGET CREDENTIAL BODY [CURL ARGS...]: as 'ask', over TCP
tcp()
{
    local method=$1 target=$2 credential=$3 body=$4
    shift 4
    status=$(curl -s -o "$dir/body" -D "$dir/head" -w '%{http_code}' -X "$method" --max-time 60 \
        ${credential:+-H "Authorization: MUNGE $credential"} ${body:+-d "$body"} "$@" "http://127.0.0.1:$port$target")
}

unix() # unix UID METHOD PATH [CURL ARGS...]: as 'ask', of that user
{
    local uid=$1 method=$2 path=$3
    shift 3
    as "$uid" curl -s -i -X "$method" --max-time 60 --unix-socket "$sock" "$@" "http://localhost$path" >"$dir/both"
    status=$(sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p' "$dir/both")
    sed '/^\r$/q' "$dir/both" >"$dir/head"
    sed '1,/^\r$/d' "$dir/both" >"$dir/body"
}

logged() # logged PATTERN TEXT
{
    grep -qE -- "$1" "$dir/log"
    ok $? "$2"
}

start --hw fake-hw --auth munge --operators "$bob" --proxy-socket "$dir/p.sock" --proxy-uid "$web" --host planner.example.org
[ -n "$port" ]; ok $? "it starts"
q='/v1/plan?mode=mini-parallelism&batch=8' model='{"fake_bytes":5000}'

# --- TCP without a credential is nobody
tcp GET /livez '' ''; check "it lives, for anybody" 200
tcp GET /readyz '' ''; check "and is ready" 200
tcp GET / '' ''; check "it has a page" 200 '<html'
for path in /v1/models /v1/plans /v1/hardware /metrics; do
    tcp GET $path '' ''; check "$path is for those who are known" 401 '"error":"unauthorized"'
done
header '^WWW-Authenticate: MUNGE'; ok $? "and how is named"
logged 'refused: r-[0-9]+: GET /v1/models: 401 to uid -1 \(nobody, unknown\) at 127.0.0.1: unauthenticated' "each leaves a line"
tcp POST "$q" '' "$model"; check "no question either" 401
tcp GET /v1/models '' '' -H 'Authorization: Basic cm9vdDo='; check "nor with a password" 401 'no credential of MUNGE'

# --- with one
c=$(credential $alice POST "$q" "$model")
tcp POST "$q" "$c" "$model" -H 'Accept: text/plain'; check "alice asks" 200 '^TOPT_PLAN_ID='
answer=$(sed -n 's/^Topt-Answer: MUNGE \([^\r]*\).*/\1/p' "$dir/head")
[ -n "$answer" ]; ok $? "the answer is signed"
echo "$answer" >"$dir/answer"
as $bob unmunge --socket="$TOPT_MUNGE_SOCKET" <"$dir/answer" >"$dir/out" 2>&1
grep -qi 'unauthorized' "$dir/out"; ok $? "for her alone"
as $alice unmunge --socket="$TOPT_MUNGE_SOCKET" <"$dir/answer" >"$dir/out" 2>&1
{ printf 'topt-answer/1\n%s\n200\n' "$(printf %s "MUNGE $c" | sha256sum | cut -d' ' -f1)"
    sha256sum <"$dir/body" | cut -d' ' -f1; } >"$dir/want"
tail -4 "$dir/out" | cmp -s - "$dir/want" && grep -qE '^UID: .*\(0\)|^UID: *0' "$dir/out"
ok $? "by the daemon's user, over her credential, the status and the body"
tcp POST "$q" "$c" "$model"; check "the same again is refused" 401 'replayed credential'
header '^Topt-Answer'; [ $? = 1 ]; ok $? "and that is not signed"
logged 'POST /v1/plan: 401 to uid -1 .* at 127.0.0.1: replayed credential' "it leaves a line"
tcp POST "$q" "$(credential $alice POST "$q" "$model")" '{"fake_bytes":5001}'; check "another body" 401 'another request'
tcp POST "$q&seq=9" "$(credential $alice POST "$q" "$model")" "$model"; check "another query" 401 'another request'
tcp DELETE /v1/models "$(credential $alice GET /v1/models '')" ''; check "another method" 401 'another request'
c=$(credential $alice GET /v1/models '')
other=x
[ "${c:40:1}" = x ] && other=y
tcp GET /v1/models "${c:0:40}$other${c:41}" ''; check "altered" 401 'altered credential'
tcp GET /v1/models "$c" ''; check "the true one, afterwards" 200
tcp GET /v1/models "$(credential $alice GET /v1/models '' --ttl=3600)" ''; check "one that lives for an hour" 401 'longer than 60 s'
tcp GET /v1/models "$(credential $alice GET /v1/models '' --restrict-uid=$bob)" ''; check "one for another daemon" 401 'another reader'
tcp GET /v1/models "$(credential $alice GET /v1/models '' --restrict-uid=0)" ''; check "one for this daemon" 200
c=$(credential $alice GET /v1/models '' --ttl=1)
sleep 3
tcp GET /v1/models "$c" ''; check "one that is too old" 401 'expired credential'
tcp GET /openapi.json "$(credential $alice GET /openapi.json '')" '' -H 'Accept-Encoding: gzip'
sed -n 's/^Topt-Answer: MUNGE \([^\r]*\).*/\1/p' "$dir/head" | as $alice unmunge --socket="$TOPT_MUNGE_SOCKET" >"$dir/out" 2>&1
header '^Content-Encoding: gzip' && [ "$(tail -1 "$dir/out")" = "$(sha256sum <"$dir/body" | cut -d' ' -f1)" ]
ok $? "what is compressed is signed as it was sent"
tcp GET /v1/nosuch "$(credential $alice GET /v1/nosuch '')" ''; check "what is not there" 404
header '^Topt-Answer'; ok $? "is said under a signature"
tcp GET '/v1/models?%00=1' "$(credential $alice GET '/v1/models?%00=1' '')" ''; check "and what can't be read" 400
header '^Topt-Answer'; ok $? "too"
tcp HEAD /v1/models "$(credential $alice HEAD /v1/models '')" '' -I; check "HEAD" 200

# --- topt client
echo "$model" >"$dir/model.json"
chmod 644 "$dir/model.json"
ask_client() # UID ARGS...
{
    local uid=$1
    shift
    TOPT_URL=http://127.0.0.1:$port as "$uid" "$client" client "$@" >"$dir/body" 2>"$dir/err"
    status=$?
}
ask_client $alice models; check "topt client lists over TCP" 0
ask_client $alice get-plan no-such; grep -q 'no plan' "$dir/err"; ok $? "and tells the daemon's refusals"
ask_client $alice plan "$dir/model.json" --json; check "and plans" 0 '"plan_id"'
ask_client $alice models --daemon-uid $bob
[ $status = 1 ] && grep -q 'does not know who asks' "$dir/err"; ok $? "it asks nobody but the daemon's user: $(cat "$dir/err")"
ask_client $alice models --daemon-uid no-such-user
[ $status = 2 ] && grep -q "no user 'no-such-user'" "$dir/err"; ok $? "who must be known"
TOPT_URL=unix:$sock as $alice "$client" client models >"$dir/body" 2>"$dir/err"; ok $? "root's socket is trusted"

# --- a stranger's socket, a stranger's server
python3 - "$dir" $bob "$TOPT_MUNGE_SOCKET" <<'P' &
import os, socket, sys, threading
folder, uid = sys.argv[1], int(sys.argv[2])
folder += "/rogue"
os.mkdir(folder); os.chown(folder, uid, uid); os.chmod(folder, 0o755)
os.setgid(uid); os.setuid(uid)
unix = socket.socket(socket.AF_UNIX); unix.bind(folder + "/sock"); os.chmod(folder + "/sock", 0o777)
tcp = socket.socket(); tcp.bind(("127.0.0.1", 0))
for s in unix, tcp:
    s.listen(8)
with open(folder + "/tmp", "w") as f:
    f.write(str(tcp.getsockname()[1]))
os.rename(folder + "/tmp", folder + "/port")
def serve(s):
    while True:
        c, _ = s.accept()
        got = c.recv(65536)
        if got:
            open(folder + "/got", "ab").write(got)
            c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\n{"models":[]}')
        c.close()
threading.Thread(target=serve, args=(unix,), daemon=True).start()
serve(tcp)
P
rogue=$!
trap 'kill $munged $rogue 2>/dev/null; cleanup' EXIT
for _ in $(seq 500); do
    [ -s "$dir/rogue/port" ] && break
    sleep 0.02
done
TOPT_URL=unix:$dir/rogue/sock as $alice "$client" client models >"$dir/body" 2>"$dir/err"
[ $? = 1 ] && grep -q "uid $bob: neither root, nor you" "$dir/err"; ok $? "who took the socket's place is not asked: $(cat "$dir/err")"
[ ! -s "$dir/rogue/got" ]; ok $? "and is sent nothing"
TOPT_URL=http://127.0.0.1:$(cat "$dir/rogue/port") as $alice "$client" client models >"$dir/body" 2>"$dir/err"
[ $? = 1 ] && grep -q 'is not signed: not believed' "$dir/err"; ok $? "an answer without a signature is not believed"
kill $rogue

# --- roles, on the Unix socket
profile='{"format":"topt-hw/1","name":"lab"}'
unix $alice POST /v1/hardware -d "$profile"; check "hardware is the admin's" 403 'takes an admin, and you are a user'
logged "POST /v1/hardware: 403 to uid $alice \(user, socket\) at uid $alice: that takes an admin" "which leaves a line"
unix $bob POST /v1/hardware -d "$profile"; check "not an operator's" 403 'you are an operator'
unix 0 POST /v1/hardware -d "$profile"; check "root is one" 201
unix $alice GET /metrics; check "metrics are the operators'" 403
unix $bob GET /metrics; check "of whom bob is one" 200 '^topt_requests_total'
tcp GET /metrics "$(credential $bob GET /metrics '')" ''; check "over TCP too" 200
unix $alice GET /v1/models -H 'X-Remote-User: root'; check "a login counts nowhere else" 200
unix $alice POST /v1/hardware -d "$profile" -H 'X-Remote-User: root'; check "not even root's" 403
TOPT_URL=unix:$sock as $alice "$client" client status >"$dir/body" 2>"$dir/err"
[ $? = 0 ] && grep -q 'is ready' "$dir/body"; ok $? "topt client status is for users too"

# --- the proxy's socket
main=$sock sock=$dir/p.sock
unix $web GET /v1/models -H "X-Remote-User: $alice"; check "whom the proxy logged in" 200
logged "GET /v1/models: 200 in .* uid $alice " "is known"
unix $web GET /v1/models; check "nobody else is known there" 401
unix $web GET / ; check "but the page is there" 200 '<html'
unix $web GET /v1/models -H 'X-Remote-User: no-such-user'; check "nor is a stranger" 401 'no user'
unix $web GET /v1/models -H "X-Remote-User: $bob" -H "x-remote-user: $alice"; check "two logins are none" 401 'more than once'
unix $web POST /v1/hardware -d "$profile" -H 'X-Remote-User: root'; check "root by its word is no admin" 403 'you are an operator'
unix $alice GET /v1/models -H "X-Remote-User: $bob"; check "nobody but the proxy may use it" 403 "proxy's alone"
unix 0 GET /v1/models -H "X-Remote-User: $bob"; check "not even root" 403
unix $web GET /v1/models -H "X-Remote-User: $alice" -H 'Host: planner.example.org'; check "under the site's name" 200
sock=$main

# --- pages and hosts
unix $alice GET /v1/models -H 'Host: evil.example:8080'; check "a name that was made to mean this machine" 403 '"source":"Host"'
unix $alice GET /v1/models -H 'Host: localhost:8080' -H 'Origin: http://localhost:8080'; check "the page itself, through ssh" 200
unix $alice GET /v1/models -H 'Host: localhost:8080' -H 'Origin: http://localhost:9'; check "another page" 403 '"source":"Origin"'
unix $alice POST "$q" -d "$model" -H 'Host: localhost:8080' -H 'Origin: http://localhost:8080'
check "what a page writes is JSON" 403 '"source":"Content-Type"'
unix $alice POST /v1/plan -d "{\"model\":$model}" -H 'Host: localhost:8080' -H 'Origin: http://localhost:8080' \
    -H 'Content-Type: application/json'
check "which is taken" 200

# --- whose a model, a plan and a task are; users are in a group of their own number, and alice in 61010 too
lab=61010
in_lab() # in_lab UID COMMAND...: of the group, too
{
    local uid=$1
    shift
    setpriv --reuid="$uid" --regid=$lab --clear-groups "$@"
}
own='{"fake_bytes":7000,"name":"secret"}'
unix $alice POST "$q" -d "$own"; check "alice asks about a model of hers" 200
plan=$(field plan_id) model_id=$(field model_id)
unix $alice GET /v1/models; check "it is hers" 200 "$model_id"
unix $alice GET "/v1/plans/$plan"; check "and so is the plan" 200
header '^Cache-Control: private'; ok $? "which no cache may share"
for path in "/v1/models/$model_id" "/v1/models/$model_id/curve" "/v1/plans/$plan" /v1/models/secret; do
    unix $bob GET "$path"; check "bob has no ${path%-*}" 404
done
cp "$dir/body" "$dir/hers"
# Who sends it, too, is told what the first was told, and searched for as the first was: neither status nor time tells that it is there.
for user in $alice $bob; do
    unix $user POST /v1/models -d '{"fake_bytes":7001,"name":"common"}'; check "a model is new to each of its owners" 201
    unix $user POST /v1/models -d '{"fake_bytes":7001,"name":"common"}'; check "once" 200
    unix $user DELETE "/v1/models/$model_id/groups/$user"; status_of_hers=$status
    unix $user DELETE "/v1/models/m-00000000000000000000000000000000/groups/$user"
    [ $user = $alice ] || [ "$status $status_of_hers" = "404 404" ]; ok $? "what is another's is as what is not there"
done
searches() { unix 0 GET /metrics; grep -E '^topt_searches_total' "$dir/body" | cut -d' ' -f2; }
before=$(searches)
for user in $alice $bob $alice; do
    unix $user POST "${q}1" -d '{"fake_bytes":7001,"name":"common"}'; check "each of them asks" 200
done
[ $(($(searches) - before)) = 2 ]; ok $? "and is answered by a search of the own, once: $before, then $(searches)"
unix $bob GET /v1/models/secrets; ! grep -q 'did you mean' "$dir/body"; ok $? "and is not told what there is"
unix $bob POST "/v1/plan?model_id=$model_id"; check "an id is no capability" 404
unix $bob POST /v1/plan -H 'Content-Type: application/json' -d "{\"model_id\":\"$model_id\"}"; check "in JSON neither" 404
tcp GET "/v1/plans/$plan" "$(credential $bob GET "/v1/plans/$plan" '')" ''; check "nor over TCP" 404
tcp GET "/v1/plans/$plan" "$(credential $alice GET "/v1/plans/$plan" '')" ''; check "where she has it" 200
unix $bob GET /v1/plans; ! grep -q "$plan" "$dir/body"; ok $? "it is in no list of his"
unix $bob GET /v1/models; ! grep -q "$model_id" "$dir/body"; ok $? "nor is the model"
unix 0 GET "/v1/plans/$plan"; check "an admin reads all" 200
carol=61004
measured="{\"job\":17,\"plan_id\":\"$plan\",\"step_ns\":1000}"
unix $carol POST /v1/observations -d "$measured"; check "who does not own a plan can't report of it" 404 'you own no plan'
unix $alice POST /v1/observations -d "$measured"; check "who owns it can" 201 '"step_ns":1000'
unix $alice GET /v1/observations; check "and sees it" 200 '"job":17'
unix $carol GET /v1/observations; check "others do not" 200 '"observations":\[\]'
unix $bob GET /v1/observations; check "but an operator does" 200 '"job":17'
unix $bob DELETE /v1/observations/1; check "who can't take it away" 403
unix 0 DELETE /v1/observations/1; check "as an admin can" 204
unix $bob PUT "/v1/plans/$plan/groups/$bob"; check "bob can't share it with himself" 404
unix $alice PUT "/v1/plans/$plan/groups/$lab"; check "alice can't with a group that she is not in" 403 'not in that group'
in_lab $alice "$client" client share "$plan" --group $lab --url "unix:$sock"; ok $? "with one of hers she can"
in_lab $bob "$client" client get-plan "$plan" --url "unix:$sock" >"$dir/out"; ok $? "bob, who is in it, reads it"
unix $bob GET "/v1/plans/$plan"; check "but not where he is not in it" 404
in_lab $bob "$client" client plans --url "unix:$sock" >"$dir/out"
grep -q "$plan" "$dir/out"; ok $? "it is in his list then"
in_lab $bob "$client" client share "$plan" --group $lab --url "unix:$sock" 2>"$dir/err"; [ $? = 1 ]; ok $? "he can't share it on"
in_lab $alice "$client" client unshare "$plan" --group $lab --url "unix:$sock"; ok $? "she shares it no longer"
in_lab $bob "$client" client get-plan "$plan" --url "unix:$sock" >"$dir/out" 2>&1; [ $? = 1 ]; ok $? "so he reads it no longer"
in_lab $alice "$client" client share "$model_id" --group $lab --url "unix:$sock"; ok $? "a model is shared alike"
in_lab $bob "$client" client plan "model:$model_id" --url "unix:$sock" --json >"$dir/body"; ok $? "and asked about"
unix $bob POST "$q" -d "$own"; check "who has the document himself asks for himself" 200 "\"plan_id\":\"$plan\""
unix $bob GET "/v1/plans/$plan"; check "and owns plan" 200
unix $bob GET "/v1/models/$model_id"; check "and model, too" 200

unix $alice POST "$q&wait_ms=20" -d '{"fake_ms":30000}'; check "a long search of alice's" 202
task=$(field task)
unix $bob GET "/v1/tasks/$task"; check "bob has no such task" 404
tcp GET "/v1/tasks/$task" "$(credential 61004 GET "/v1/tasks/$task" '')" ''; check "nor has anybody else" 404
unix 61004 DELETE "/v1/tasks/$task"; check "whom it can't be ended by" 404
unix 61004 GET /v1/tasks; check "nor does it stand in his list" 200 '"tasks":\[\]'
unix $alice GET /v1/tasks; check "but in hers" 200 "\"tasks\":\\[\\{\"task\":\"$task\",\"state\":\"(running|queued)\""
unix $alice GET "/v1/tasks/$task"; check "but she" 200 '"state":"(running|queued)"'
unix $bob DELETE "/v1/tasks/$task"; check "an operator may end it" 200

# --- hardware is the admin's
"$client" client put-hw "$dir/hw.json" --url "unix:$sock" >"$dir/out" 2>&1; [ $? = 1 ]; ok $? "a file that is not there"
echo '{"format":"topt-hw/1","name":"lab","speed":2}' >"$dir/hw.json"
unix 0 GET /v1/hardware; check "one profile" 200 '"name":"lab"'
"$client" client put-hw "$dir/hw.json" --url "unix:$sock" >"$dir/body"; status=$?; check "is replaced" 0 '^h-[0-9a-f]+  lab$'
unix $alice PUT /v1/hardware/lab -d "$profile"; check "not by a user" 403
unix $alice DELETE /v1/hardware/lab; check "who can't retire it either" 403
as $alice "$client" client delete-hw lab --url "unix:$sock" 2>"$dir/err"; [ $? = 1 ] && grep -q 'takes an admin' "$dir/err"; ok $? "with words"
"$client" client delete-hw lab --url "unix:$sock"; ok $? "the admin can"
unix $alice GET /v1/hardware/lab; check "then it is gone" 404
unix 0 PUT /v1/hardware/other -d "$profile"; check "a name is the path's" 400 '"source":"name"'
unix 0 DELETE /v1/hardware/fake-hw; check "shipped ones stay" 409

# --- munged goes away
kill $munged
wait $munged 2>/dev/null
tcp GET /v1/models "$answer" ''; check "without munged that is no fault of the client" 503 '"error":"no_munge"'
ask_client $alice models
[ $status = 1 ] && grep -q 'MUNGE can.t make a credential' "$dir/err"; ok $? "whose own error says so"
unix $alice GET /v1/models; check "the Unix socket needs none" 200
stop TERM; ok $? "it stops"
[ ! -e "$dir/p.sock" ]; ok $? "and takes both sockets with it"
start --open-metrics yes
tcp GET /metrics '' ''; check "metrics that are open" 200
unix $alice POST "$q" -d '{"fake_bytes":9}'; check "without a default profile the server has an outage" 503 '"error":"no_default"'
header '^Retry-After'; [ $? = 1 ]; ok $? "which does not end by itself"
unix $alice POST "$q&hw=nosuch" -d '{"fake_bytes":9}'; check "while a wrong one is the user's" 404 '"source":"hw"'
tcp GET /v1/models "$answer" ''; check "without --auth munge credentials are worth nothing" 401 'use the Unix socket'
stop TERM
"$toptd" --listen 0.0.0.0:0 --socket "$dir/y" --state "$dir/state2" >"$dir/out" 2>&1
[ $? = 2 ] && grep -q 'without --auth munge' "$dir/out"; ok $? "and no address but loopback is taken"
start --hw fake-hw --auth munge --listen 0.0.0.0:0
tcp GET /livez '' ''; check "with it any is" 200
stop TERM
finish
